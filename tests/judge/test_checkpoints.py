"""Which checkpoint of a run to keep: among those that are there, by the metric that its author chose."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.judge.checkpoint_folders import (
    ACCURACY,
    FOLDERS,
    LOSS,
    at,
    both,
    checkpoints,
    files,
    state,
    table,
)

from mldebug_mcp import InputError, choose_checkpoint, diagnose_run
from mldebug_mcp.cli import main
from mldebug_mcp.report.diagnosis_html import diagnosis_html


@pytest.mark.parametrize("name", FOLDERS)
def test_of_folders_with_known_truth_the_right_checkpoint_is_kept(tmp_path: Path, name: str) -> None:
    known = FOLDERS[name]
    known.make(tmp_path)
    choice = choose_checkpoint(tmp_path)
    assert choice.keep == known.keep
    if known.keep:
        assert choice.best_saved is not known.never_saved
        assert ("has no checkpoint here" in choice.summary) is known.never_saved


def test_a_better_accuracy_is_kept_though_the_loss_rises_and_the_loss_is_a_fact_beside_it(tmp_path: Path) -> None:
    FOLDERS["hf_accuracy_with_rising_loss"].make(tmp_path)
    choice = choose_checkpoint(tmp_path)
    assert (choice.metric, choice.better, choice.value) == ("eval_accuracy", "higher", 0.85)
    assert "no reason to go back" in " ".join(choice.notes)


def test_the_metric_of_the_author_stands_before_the_usual_one(tmp_path: Path) -> None:
    FOLDERS["hf_author_chose_loss"].make(tmp_path)
    choice = choose_checkpoint(tmp_path)
    assert (choice.metric, choice.better) == ("eval_loss", "lower")
    assert choice.chosen_by == "metric_for_best_model names it"


def test_the_direction_of_the_author_stands_though_it_is_unusual_and_a_note_says_so(tmp_path: Path) -> None:
    state(tmp_path, at((0.2, 0.5, 0.4, 0.3), "eval_loss"), 400)
    checkpoints(tmp_path, (100, 200, 300, 400))
    (tmp_path / "training_args.json").write_text(
        json.dumps({"metric_for_best_model": "eval_loss", "greater_is_better": True, "learning_rate": 1e-4})
    )
    choice = choose_checkpoint(tmp_path)
    assert choice.keep == "checkpoint-200"
    assert "as its author set" in choice.notes[0]


def test_a_metric_that_is_asked_for_decides(tmp_path: Path) -> None:
    state(tmp_path, both(), 1000)
    checkpoints(tmp_path, range(100, 1001, 100))
    assert choose_checkpoint(tmp_path, metric="eval_loss").keep == "checkpoint-600"
    with pytest.raises(InputError, match="nothing called 'f7'"):
        choose_checkpoint(tmp_path, metric="f7")


def test_a_metric_of_the_author_that_is_not_logged_is_a_note(tmp_path: Path) -> None:
    state(tmp_path, at(LOSS), 1000)
    checkpoints(tmp_path, (500, 600))
    (tmp_path / "training_args.json").write_text(json.dumps({"metric_for_best_model": "f1", "learning_rate": 1e-4}))
    choice = choose_checkpoint(tmp_path)
    assert choice.metric == "eval_loss"
    assert choice.notes == ["f1 is not logged (metric_for_best_model names it)"]


def test_others_within_noise_are_named_and_those_beyond_it_are_not(tmp_path: Path) -> None:
    values = (2.0, 1.71, 1.52, 1.405, 1.394, 1.399, 1.41, 1.392, 1.401, 1.47, 1.62, 1.80)
    state(tmp_path, at(values), 1200)
    checkpoints(tmp_path, range(100, 1201, 100))
    choice = choose_checkpoint(tmp_path)
    assert choice.keep == "checkpoint-800"
    assert choice.verdict == "within noise"
    assert "checkpoint-500" in choice.as_good
    assert not {"checkpoint-200", "checkpoint-1200"} & set(choice.as_good)


def test_a_clear_best_has_no_rivals(tmp_path: Path) -> None:
    state(tmp_path, at((3.0, 2.5, 2.0, 1.5, 1.0, 1.5, 2.0, 2.5)), 800)
    checkpoints(tmp_path, range(100, 801, 100))
    choice = choose_checkpoint(tmp_path)
    assert (choice.keep, choice.verdict, choice.as_good) == ("checkpoint-500", "clear", [])


def test_with_too_few_evaluations_nothing_is_kept_by_chance(tmp_path: Path) -> None:
    state(tmp_path, at(LOSS[:2]), 200)
    checkpoints(tmp_path, (100, 200))
    choice = choose_checkpoint(tmp_path)
    assert (choice.keep, choice.verdict) == ("", "too few evaluations")
    assert choice.summary.startswith("Not enough evaluations to tell")


def test_weights_in_shards_are_one_checkpoint_and_optimizers_are_none(tmp_path: Path) -> None:
    state(tmp_path, at(LOSS[:4]), 400)
    for step in (300, 400):
        checkpoints(tmp_path, [step], "model-00001-of-00002.safetensors")
        checkpoints(tmp_path, [step], "model-00002-of-00002.safetensors")
    files(tmp_path, ["optimizer_300.pt", "rng_state_300.pth", "training_args.bin"])
    assert [one.name for one in choose_checkpoint(tmp_path).checkpoints] == ["checkpoint-300", "checkpoint-400"]


def test_a_folder_without_checkpoints_says_where_to_name_them_and_a_diagnosis_says_nothing(tmp_path: Path) -> None:
    state(tmp_path / "run", at(LOSS), 1000)
    files(tmp_path / "elsewhere", ["step_500.pt", "step_600.pt"])
    assert diagnose_run(tmp_path / "run").checkpoint is None
    with pytest.raises(InputError, match="checkpoints=FOLDER"):
        choose_checkpoint(tmp_path / "run")
    assert choose_checkpoint(tmp_path / "run", checkpoints=tmp_path / "elsewhere").keep == "step_600.pt"


def test_what_a_lightning_checkpoint_says_of_its_monitor_decides(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"epoch": epoch, "step": epoch * 50 + 49, "train_loss": round(2 / (1 + epoch), 3), "val_f1": value,
         "val_loss": LOSS[epoch]}
        for epoch, value in enumerate(ACCURACY[:8])
    ]  # fmt: skip
    table(tmp_path / "metrics.csv", rows)
    for epoch in (4, 5, 6, 7):
        key = "ModelCheckpoint{'monitor': 'val_loss', 'mode': 'min', 'every_n_train_steps': 0}"
        whole = {"epoch": epoch, "global_step": 50 * (epoch + 1), "state_dict": {"w": torch.zeros(3)},
                 "callbacks": {key: {"monitor": "val_loss", "best_model_score": torch.tensor(1.4)}}}  # fmt: skip
        (tmp_path / "checkpoints").mkdir(exist_ok=True)
        torch.save(whole, tmp_path / "checkpoints" / f"epoch={epoch}-step={50 * (epoch + 1)}.ckpt")
    choice = choose_checkpoint(tmp_path)
    assert choice.keep == "checkpoints/epoch=5-step=300.ckpt"
    assert choice.chosen_by == "ModelCheckpoint monitors it"


def test_a_checkpoint_whose_name_says_nothing_tells_its_step_inside(tmp_path: Path) -> None:
    state(tmp_path, at(LOSS), 1000)
    torch.save({"model": {"w": torch.zeros(2)}, "iter_num": 700}, tmp_path / "ckpt.pt")
    choice = choose_checkpoint(tmp_path)
    assert (choice.checkpoints[0].step, choice.checkpoints[0].value) == (700, LOSS[6])
    assert "the best evaluation has no checkpoint here" in choice.summary.lower()


def test_a_best_checkpoint_that_the_trainer_saved_and_something_took_away_is_named(tmp_path: Path) -> None:
    state(tmp_path, at(LOSS), 1000, best_metric=1.40, best_model_checkpoint="out/checkpoint-600")
    checkpoints(tmp_path, (800, 900, 1000))
    assert "was saved as checkpoint-600, which is not here now" in choose_checkpoint(tmp_path).summary


def test_the_diagnosis_the_page_and_both_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FOLDERS["hf_best_was_deleted"].make(tmp_path)
    answer = diagnose_run(tmp_path)
    assert answer.checkpoint is not None
    assert answer.checkpoint.keep == "checkpoint-800"
    assert "Keep checkpoint-800" in diagnosis_html(answer, answer.log)
    assert main(["diagnose", str(tmp_path)]) == 0
    assert "The best evaluation has no checkpoint here" in " ".join(capsys.readouterr().out.split())
    assert main(["checkpoint", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keep"] == "checkpoint-800"
    assert main(["checkpoint", str(tmp_path)]) == 0
    assert "checkpoint-1000" in capsys.readouterr().out
    assert main(["checkpoint", str(tmp_path / "nothing")]) == 2


def test_what_the_author_named_best_is_kept_and_it_is_not_claimed_by_which_metric(tmp_path: Path) -> None:
    rows = [{"epoch": epoch, "train_loss": 2 / epoch, "val_loss": LOSS[epoch - 1], "val_f1": ACCURACY[epoch - 1]}
            for epoch in range(1, 11)]  # fmt: skip
    table(tmp_path / "log.csv", rows)
    files(tmp_path, ["best_model.pth", "epoch_9.pth", "epoch_10.pth"])
    choice = choose_checkpoint(tmp_path)
    assert choice.keep == "best_model.pth"
    assert "no setting says by which metric" in choice.summary
    assert "Of the same evaluation: epoch_9.pth" in choice.summary


def test_steps_are_found_in_a_log_that_counts_epochs_alone(tmp_path: Path) -> None:
    lines = []
    for epoch in range(1, 9):
        lines += [str({"loss": round(2 / (epoch + part / 5), 4), "epoch": round(epoch - 1 + part / 5, 2)})
                  for part in range(1, 6)]  # fmt: skip
        lines.append(str({"eval_loss": LOSS[epoch - 1], "eval_runtime": 3.2, "epoch": float(epoch)}))
    (tmp_path / "train.log").write_text("\n".join(lines))
    checkpoints(tmp_path, range(125, 1001, 125))
    assert choose_checkpoint(tmp_path).keep == "checkpoint-750"


def test_a_checkpoint_that_is_named_stands_for_its_run(tmp_path: Path) -> None:
    for step in (400, 600, 1000):
        checkpoints(tmp_path, [step])
        state(tmp_path / f"checkpoint-{step}", at(LOSS[: step // 100]), step)
    assert choose_checkpoint(tmp_path / "checkpoint-1000").keep == "checkpoint-600"


@pytest.mark.parametrize(
    ("names", "keep"),
    [
        ([f"ep{epoch}-ba{100 * epoch}-rank0.pt" for epoch in range(2, 9)], "ep6-ba600-rank0.pt"),
        ([f"iter_{step:07d}/mp_rank_00/model_optim_rng.pt" for step in (400, 600, 800)], "iter_0000600"),
        ([f"global_step{step}/mp_rank_00_model_states.pt" for step in (400, 600, 800)], "global_step600"),
        ([f"checkpoints/{step}/default/manifest.ocdbt" for step in (400, 600, 800)], "checkpoints/600"),
        ([f"rl_model_{step}_steps.zip" for step in (400, 600, 800)], "rl_model_600_steps.zip"),
        ([f"model_{step - 1:07d}.pth" for step in (400, 600, 800)], "model_0000599.pth"),
        ([f"gpt2-large-step-{step}.safetensors" for step in (400, 600, 800)], "gpt2-large-step-600.safetensors"),
        ([f"model.ckpt-{step}.index" for step in (400, 600, 800)], "model.ckpt-600.index"),
    ],
)
def test_names_of_many_trainers_are_read(tmp_path: Path, names: list[str], keep: str) -> None:
    records: list[dict[str, float]] = [
        {"step": step, "train/loss": 3 / (1 + step / 400)} for step in range(20, 1001, 20)
    ]
    for record in records:
        if record["step"] % 100 == 0:
            record["eval/loss"] = LOSS[int(record["step"]) // 100 - 1]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, records)))
    files(tmp_path, names)
    assert choose_checkpoint(tmp_path).keep == keep


def test_a_log_beside_logs_of_other_runs_has_no_claim_on_the_checkpoints_there(tmp_path: Path) -> None:
    for name in ("first", "second"):
        lines = [json.dumps({"step": step, "loss": 2.0 - step / 2000, "eval_loss": 2.1 - step / 2000})
                 for step in range(100, 1001, 100)]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    files(tmp_path, ["step_500.pt", "step_1000.pt"])
    assert diagnose_run(tmp_path / "first.jsonl").checkpoint is None


def test_a_log_next_to_folders_of_other_runs_has_no_claim_on_their_checkpoints(tmp_path: Path) -> None:
    state(tmp_path / "other", {step: {"eval_loss": 1.0} for step in (200, 400, 600)}, 600)
    checkpoints(tmp_path / "other", (200, 600))
    log = tmp_path / "own.csv"
    log.write_text("step,loss,val_loss\n" + "".join(f"{step},{2 / step},{3 / step}\n" for step in range(1, 40)))
    with pytest.raises(InputError, match="no checkpoint"):
        choose_checkpoint(log)


@pytest.mark.parametrize(("theirs", "kept"), [(lambda own: own, "checkpoint-400"), (lambda own: own + 3, None)])
def test_a_checkpoint_whose_trainer_wrote_down_other_losses_is_of_another_run(
    tmp_path: Path, theirs: Callable[[float], float], kept: str | None
) -> None:
    own = {200: 1.5, 400: 1.2, 600: 1.4}
    (tmp_path / "own.csv").write_text("step,eval_loss\n" + "".join(f"{step},{loss}\n" for step, loss in own.items()))
    checkpoints(tmp_path / "out", (400, 600))
    state(tmp_path / "out" / "checkpoint-600", {step: {"eval_loss": theirs(loss)} for step, loss in own.items()}, 600)
    checkpoint = diagnose_run(tmp_path / "own.csv").checkpoint
    assert (checkpoint and checkpoint.keep.removeprefix("out/")) == kept


def test_a_checkpoint_that_is_the_working_folder_stands_for_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluations = {200: {"eval_loss": 1.5}, 400: {"eval_loss": 1.2}, 600: {"eval_loss": 1.4}}
    state(tmp_path, evaluations, 600)
    checkpoints(tmp_path, (200, 400, 600))
    state(tmp_path / "checkpoint-600", evaluations, 600)
    monkeypatch.chdir(tmp_path / "checkpoint-600")
    assert choose_checkpoint("trainer_state.json").keep == choose_checkpoint(tmp_path).keep == "checkpoint-400"


def test_a_name_that_a_slash_in_its_metric_parts_is_the_file_below(tmp_path: Path) -> None:
    scores = (0.80, 0.86, 0.89, 0.911, 0.905, 0.899)
    rows: list[dict[str, object]] = [
        {"epoch": epoch, "step": epoch * 80 + 79, "train_loss": round(0.7 / (1 + epoch), 3), "val/auroc": score}
        for epoch, score in enumerate(scores)
    ]
    table(tmp_path / "metrics.csv", rows)
    files(tmp_path / "checkpoints", [f"epoch={epoch}-val/auroc={scores[epoch]:.4f}.ckpt" for epoch in (2, 3, 4)])
    assert choose_checkpoint(tmp_path).keep == "checkpoints/epoch=3-val/auroc=0.9110.ckpt"


def test_a_distance_of_generated_samples_decides_where_nothing_else_was_evaluated(tmp_path: Path) -> None:
    distances = (90.0, 61.0, 44.0, 35.0, 31.0, 28.4, 29.9, 33.0)
    records = []
    for step in range(100, 8001, 100):
        record = {"step": float(step), "loss": round(0.12 * (1 + step / 500) ** -0.3, 5)}
        if step % 1000 == 0:
            record["fid"] = distances[step // 1000 - 1]
        records.append(json.dumps(record))
    (tmp_path / "metrics.jsonl").write_text("\n".join(records))
    files(tmp_path / "checkpoints", [f"step_{step}.pt" for step in range(1000, 8001, 1000)])
    choice = choose_checkpoint(tmp_path)
    assert (choice.keep, choice.metric, choice.better) == ("checkpoints/step_6000.pt", "fid", "lower")


@pytest.mark.parametrize("optimizers", [1, 2, 3])
def test_the_step_in_a_name_may_count_each_optimizer_of_a_gan(tmp_path: Path, optimizers: int) -> None:
    """Source: Lightning 2.6.6 with manual optimization; its CSVLogger counts batches from zero."""
    lines = ["epoch,loss,step,val_loss"]
    (tmp_path / "checkpoints").mkdir()
    for epoch, evaluated in enumerate((1.0, 0.6, 0.5, 0.7, 0.8, 0.9)):
        lines += [f"{epoch},{1.2 - step / 100},{step}," for step in range(epoch * 10, epoch * 10 + 10)]
        lines.append(f"{epoch},,{epoch * 10 + 9},{evaluated}")
        for step in (epoch * 10 + 5, epoch * 10 + 10):
            (tmp_path / "checkpoints" / f"epoch={epoch}-step={step * optimizers}.ckpt").write_text("weights")
    (tmp_path / "metrics.csv").write_text("\n".join(lines) + "\n")
    choice = choose_checkpoint(tmp_path)
    assert (choice.keep, choice.best_saved) == (f"checkpoints/epoch=2-step={30 * optimizers}.ckpt", True)


def test_a_checkpoint_whose_evaluation_is_nan_says_so_and_gets_no_value(tmp_path: Path) -> None:
    values = [1.4, 1.3, float("nan"), 1.1, 1.0, float("nan")]
    table(tmp_path / "log.csv", [{"step": 100 * place, "eval_loss": value} for place, value in enumerate(values, 1)])
    files(tmp_path, (f"step_{100 * place}.pt" for place in range(1, 7)))
    choice = choose_checkpoint(tmp_path)
    assert [(fact.value, fact.note) for fact in choice.checkpoints if fact.step in {300, 500, 600}] == [
        (None, "eval_loss is NaN there"),
        (1.0, ""),
        (None, "eval_loss is NaN there"),
    ]
    assert "eval_loss is not finite at 2 of 6 evaluations, first at step 300" in choice.notes


def test_a_perfect_rank_of_a_model_whose_loss_is_nan_is_no_best_one(tmp_path: Path) -> None:
    rows = [
        {"step": 100 * place, "train_loss": 2.0 - place / 10 if place < 7 else float("nan"),
         "val_mrr": 0.3 + place / 20 if place < 7 else 1.0}
        for place in range(1, 11)
    ]  # fmt: skip
    table(tmp_path / "log.csv", rows)
    files(tmp_path, (f"step_{row['step']}.pt" for row in rows))
    choice = choose_checkpoint(tmp_path, metric="val_mrr")
    assert choice.keep == "step_600.pt"
    assert "train_loss is not finite at 4 of 10 evaluations, first at step 700" in choice.notes


def test_a_checkpoint_far_smaller_than_others_like_it_may_not_be_whole(tmp_path: Path) -> None:
    table(tmp_path / "log.csv", [{"step": 100 * place, "eval_loss": 2 - 0.1 * place} for place in range(1, 6)])
    for place, size in enumerate((1000, 1000, 1010, 1000, 100), 1):
        (tmp_path / f"step_{100 * place}.pt").write_bytes(b"0" * size)
    (tmp_path / "model_best.pt").write_bytes(b"0" * 300)
    assert choose_checkpoint(tmp_path).notes == [
        "step_500.pt has 100 bytes where others like it have 1,000: it may not have been saved whole"
    ]


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("eval_perplexity", "lower"), ("eval_bpb", "lower"), ("eval_lpips", "lower"), ("eval_mape", "lower"),
        ("eval_psnr", "higher"), ("eval_ssim", "higher"), ("eval_spearman", "higher"), ("eval_tm_score", "higher"),
        ("eval_r2", "higher"), ("eval_mrr", "higher"), ("eval_rmse", "lower"),
    ],
)  # fmt: skip
def test_a_metric_whose_name_says_which_side_is_better_decides_where_it_alone_is_evaluated(
    tmp_path: Path, name: str, better: str
) -> None:
    state(tmp_path / "checkpoint-1000", at(LOSS, name), 1000)
    checkpoints(tmp_path, range(100, 1001, 100))
    choice = choose_checkpoint(tmp_path)
    assert (choice.metric, choice.better) == (name, better)
    assert choice.keep == ("checkpoint-600" if better == "lower" else "checkpoint-100")
    assert not choice.notes


def test_of_several_such_metrics_the_others_are_named(tmp_path: Path) -> None:
    logged = {step: {**two, "eval_lpips": 0.3} for step, two in at(LOSS, "eval_psnr").items()}
    state(tmp_path / "checkpoint-1000", logged, 1000)
    checkpoints(tmp_path, range(100, 1001, 100))
    choice = choose_checkpoint(tmp_path)
    assert choice.metric == "eval_psnr"
    assert "eval_lpips" in choice.notes[0]


def test_a_metric_whose_better_side_no_name_says_is_asked_for_by_its_name(tmp_path: Path) -> None:
    state(tmp_path / "checkpoint-1000", at(LOSS, "eval_zorp"), 1000)
    checkpoints(tmp_path, range(100, 1001, 100))
    choice = choose_checkpoint(tmp_path)
    assert not choice.keep
    assert "eval_zorp" in choice.summary
    assert choice.at_a_glance is not None
    assert choice.at_a_glance.command.endswith("--metric eval_zorp")
    asked = choose_checkpoint(tmp_path, metric="eval_zorp")
    assert asked.better == "higher"
    assert "its name does not say" in asked.notes[0]
