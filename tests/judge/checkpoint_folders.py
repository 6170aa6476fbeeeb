"""Twenty run folders in which it is known which checkpoint to keep, as the trainers that people use leave them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LOSS = (2.9, 2.1, 1.7, 1.5, 1.42, 1.40, 1.47, 1.58, 1.71, 1.86)
"""An evaluation loss that is lowest at the sixth of ten evaluations."""
ACCURACY = (0.52, 0.61, 0.68, 0.70, 0.74, 0.77, 0.79, 0.82, 0.85, 0.84)
"""An accuracy that is highest at the ninth."""


@dataclass(frozen=True)
class Folder:
    """A folder and what is right.

    Args:
        make: Writes it.
        keep: The checkpoint to keep; "" where nothing can tell.
        never_saved: Whether the best evaluation has no checkpoint.
    """

    make: Callable[[Path], None]
    keep: str
    never_saved: bool = False


def state(
    folder: Path, evaluations: Mapping[int, Mapping[str, float]], last: int, per_epoch: int = 1000, **more: object
) -> None:
    """Write the state of a Transformers Trainer: training losses every 20 steps, and evaluations."""
    rng = np.random.default_rng(3)
    history: list[dict[str, object]] = []
    for step in range(20, last + 1, 20):
        loss = 0.6 + 2.4 * float(np.exp(-step / (0.35 * last))) + float(rng.normal(0, 0.03))
        history.append({"step": step, "epoch": step / per_epoch, "loss": round(loss, 4), "learning_rate": 2e-5,
                        "grad_norm": round(1.1 + float(rng.normal(0, 0.1)), 3)})  # fmt: skip
        if step in evaluations:
            history.append({"step": step, "epoch": step / per_epoch, "eval_runtime": 3.1, **evaluations[step]})
    folder.mkdir(parents=True, exist_ok=True)
    whole = {"global_step": last, "max_steps": last, "log_history": history, "best_metric": None, **more}
    (folder / "trainer_state.json").write_text(json.dumps(whole))


def checkpoints(folder: Path, steps: Iterable[int], file: str = "model.safetensors") -> None:
    """Write folders checkpoint-STEP with a file of weights each."""
    for step in steps:
        place = folder / f"checkpoint-{step}"
        place.mkdir(parents=True, exist_ok=True)
        (place / file).write_bytes(b"weights")


def files(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"weights")


def table(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def at(values: Sequence[float], name: str = "eval_loss", every: int = 100) -> dict[int, dict[str, float]]:
    return {every * place: {name: value} for place, value in enumerate(values, start=1)}


def both(every: int = 100) -> dict[int, dict[str, float]]:
    scores = at(ACCURACY, "eval_accuracy", every)
    return {step: {**losses, **scores[step]} for step, losses in at(LOSS, every=every).items()}


def hf_loss(folder: Path) -> None:
    state(folder, at(LOSS), 1000)
    checkpoints(folder, range(100, 1001, 100))


def hf_accuracy_with_rising_loss(folder: Path) -> None:
    state(folder, both(), 1000)
    checkpoints(folder, range(100, 1001, 100))


def hf_author_chose_loss(folder: Path) -> None:
    state(folder, both(), 1000)
    checkpoints(folder, range(100, 1001, 100))
    (folder / "training_args.json").write_text(
        json.dumps({"metric_for_best_model": "eval_loss", "greater_is_better": False, "learning_rate": 2e-5})
    )


def hf_best_metric_in_state(folder: Path) -> None:
    state(folder, both(), 1000, best_metric=0.85, best_global_step=900,
          best_model_checkpoint="/somewhere/else/out/checkpoint-900")  # fmt: skip
    checkpoints(folder, (800, 900, 1000), "adapter_model.safetensors")


def hf_best_was_deleted(folder: Path) -> None:
    state(folder, at(LOSS), 1000)
    checkpoints(folder, (800, 900, 1000))


def hf_saved_between_evaluations(folder: Path) -> None:
    state(folder, at(LOSS), 1000)
    checkpoints(folder, (250, 500, 750, 1000))


def hf_too_few(folder: Path) -> None:
    state(folder, {500: {"eval_loss": 1.4}, 1000: {"eval_loss": 1.38}}, 1000)
    checkpoints(folder, (500, 1000))


def hf_never_evaluated(folder: Path) -> None:
    state(folder, {}, 1000)
    checkpoints(folder, (500, 1000))


def hf_interrupted_save(folder: Path) -> None:
    state(folder, at(LOSS[:6]), 600)
    checkpoints(folder, (300, 400, 500))
    (folder / "checkpoint-600").mkdir()
    (folder / "checkpoint-600" / "rng_state.pth").write_bytes(b"state")


def hf_word_error_rate(folder: Path) -> None:
    rates = (0.9, 0.6, 0.41, 0.33, 0.29, 0.27, 0.28, 0.30)
    state(folder, at(rates, "eval_wer"), 800)
    checkpoints(folder, range(100, 801, 100), "pytorch_model.bin")
    (folder / "training_args.json").write_text(
        json.dumps({"metric_for_best_model": "wer", "greater_is_better": False, "learning_rate": 1e-4})
    )


def lightning_monitor_in_names(folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for epoch, value in enumerate(LOSS[:8]):
        rows += [
            {"epoch": epoch, "step": step, "train_loss": round(2.5 / (1 + step / 100), 4), "val_loss": ""}
            for step in range(epoch * 100 + 9, (epoch + 1) * 100, 10)
        ]
        rows.append({"epoch": epoch, "step": epoch * 100 + 99, "train_loss": "", "val_loss": value})
    table(folder / "metrics.csv", rows)
    files(folder / "checkpoints", [f"epoch={epoch}-step={100 * (epoch + 1)}.ckpt" for epoch in range(2, 8)])
    files(folder / "checkpoints", ["last.ckpt"])


def lightning_epochs_and_scores(folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for epoch, value in enumerate(ACCURACY[:8]):
        rows.append({"epoch": epoch, "step": epoch * 50 + 49, "train_loss": round(2 / (1 + epoch), 3),
                     "val_acc": value, "val_loss": LOSS[epoch]})  # fmt: skip
    table(folder / "metrics.csv", rows)
    files(folder / "checkpoints", [f"epoch={epoch}-val_loss={LOSS[epoch]:.2f}.ckpt" for epoch in (4, 5, 6)])


def keras_counts_from_one(folder: Path) -> None:
    rows = [{"epoch": epoch, "accuracy": round(0.6 + 0.04 * epoch, 3), "loss": round(1.4 / (1 + epoch), 3),
             "val_accuracy": round(value - 0.01, 3), "val_loss": LOSS[epoch]}
            for epoch, value in enumerate(ACCURACY)]  # fmt: skip
    table(folder / "training.csv", rows)
    files(folder, [f"model_{epoch:02d}.keras" for epoch in range(1, 11)])


def keras_weights_with_loss(folder: Path) -> None:
    rows = [{"epoch": epoch, "loss": round(1.4 / (1 + epoch), 3), "val_loss": value}
            for epoch, value in enumerate(LOSS)]  # fmt: skip
    table(folder / "history.csv", rows)
    files(folder, [f"weights.{epoch + 1:02d}-{LOSS[epoch]:.2f}.weights.h5" for epoch in range(2, 10)])


def torch_steps(folder: Path) -> None:
    lines = []
    for step in range(50, 4001, 50):
        record: dict[str, float] = {"step": step, "train/loss": round(3.2 * (1 + step / 300) ** -0.5, 4)}
        if step % 500 == 0:
            record["val/loss"] = (2.6, 2.2, 1.9, 1.75, 1.70, 1.72, 1.80, 1.91)[step // 500 - 1]
        lines.append(json.dumps(record))
    (folder / "log.jsonl").write_text("\n".join(lines))
    files(folder / "ckpts", [f"step_{step}.pt" for step in range(500, 4001, 500)])


def nanogpt_best(folder: Path) -> None:
    lines = ["Overriding config with config/train_shakespeare_char.py:", "always_save_checkpoint = False",
             "number of parameters: 10.65M"]  # fmt: skip
    values = (4.28, 2.02, 1.73, 1.60, 1.52, 1.49, 1.47, 1.48, 1.51, 1.55)
    for place, value in enumerate(values):
        lines.append(f"step {place * 250}: train loss {value - 0.03 * place:.4f}, val loss {value:.4f}")
        lines += [f"iter {step}: loss {value - 0.03 * place + 0.02:.4f}, time 33.00ms, mfu 17.80%"
                  for step in range(place * 250, (place + 1) * 250, 50)]  # fmt: skip
    (folder / "train.log").write_text("\n".join(lines))
    (folder / "config.json").write_text(json.dumps({"always_save_checkpoint": False, "learning_rate": 1e-3}))
    files(folder, ["ckpt.pt"])


def best_and_last(folder: Path) -> None:
    rows = [{"epoch": epoch, "train/box_loss": round(2.0 / (1 + 0.2 * epoch), 4),
             "metrics/precision(B)": round(0.5 + 0.03 * epoch, 4), "metrics/recall(B)": round(0.45 + 0.03 * epoch, 4),
             "metrics/mAP50(B)": value, "metrics/mAP50-95(B)": round(value * 0.7, 4), "val/box_loss": LOSS[epoch - 1]}
            for epoch, value in enumerate(ACCURACY, start=1)]  # fmt: skip
    table(folder / "results.csv", rows)
    files(folder / "weights", ["best.pt", "last.pt"])


def grpo_reward(folder: Path) -> None:
    rng = np.random.default_rng(7)
    history = []
    for step in range(5, 1001, 5):
        level = 0.2 + 0.6 * (1 - abs(step - 600) / 600) if step > 100 else 0.25
        history.append({"step": step, "reward": round(level + float(rng.normal(0, 0.05)), 4), "reward_std": 0.3,
                        "kl": 0.05, "loss": 0.001, "completions/mean_length": 200.0})  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 1000, "log_history": history}))
    checkpoints(folder, range(200, 1001, 200))


def torch_epochs_from_zero(folder: Path) -> None:
    rows = [{"epoch": epoch, "train_loss": round(1.9 / (1 + 0.5 * epoch), 4), "eval_top1": 100 * value}
            for epoch, value in enumerate(ACCURACY)]  # fmt: skip
    table(folder / "summary.csv", rows)
    files(folder, [f"checkpoint-{epoch}.pth.tar" for epoch in range(4, 10)])


def interrupted_and_all_alike(folder: Path) -> None:
    values = (1.502, 1.495, 1.503, 1.497, 1.501, 1.494, 1.499, 1.503)
    state(folder, at(values), 800)
    checkpoints(folder, range(100, 801, 100))


FOLDERS = {
    "hf_loss": Folder(hf_loss, "checkpoint-600"),
    "hf_accuracy_with_rising_loss": Folder(hf_accuracy_with_rising_loss, "checkpoint-900"),
    "hf_author_chose_loss": Folder(hf_author_chose_loss, "checkpoint-600"),
    "hf_best_metric_in_state": Folder(hf_best_metric_in_state, "checkpoint-900"),
    "hf_best_was_deleted": Folder(hf_best_was_deleted, "checkpoint-800", never_saved=True),
    "hf_saved_between_evaluations": Folder(hf_saved_between_evaluations, "checkpoint-500", never_saved=True),
    "hf_too_few": Folder(hf_too_few, ""),
    "hf_never_evaluated": Folder(hf_never_evaluated, ""),
    "hf_interrupted_save": Folder(hf_interrupted_save, "checkpoint-500", never_saved=True),
    "hf_word_error_rate": Folder(hf_word_error_rate, "checkpoint-600"),
    "lightning_monitor_in_names": Folder(lightning_monitor_in_names, "checkpoints/epoch=5-step=600.ckpt"),
    "lightning_epochs_and_scores": Folder(lightning_epochs_and_scores, "checkpoints/epoch=5-val_loss=1.40.ckpt"),
    "keras_counts_from_one": Folder(keras_counts_from_one, "model_09.keras"),
    "keras_weights_with_loss": Folder(keras_weights_with_loss, "weights.06-1.40.weights.h5"),
    "torch_steps": Folder(torch_steps, "ckpts/step_2500.pt"),
    "nanogpt_best": Folder(nanogpt_best, "ckpt.pt"),
    "best_and_last": Folder(best_and_last, "weights/best.pt"),
    "grpo_reward": Folder(grpo_reward, "checkpoint-600"),
    "torch_epochs_from_zero": Folder(torch_epochs_from_zero, "checkpoint-8.pth.tar"),
    "interrupted_and_all_alike": Folder(interrupted_and_all_alike, "checkpoint-600"),
}
