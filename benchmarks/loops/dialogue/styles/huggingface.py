"""The wording and the files of the Transformers Trainer and TRL."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.loops.dialogue.core import Record
from benchmarks.loops.dialogue.styles.common import jsonable, save
from benchmarks.loops.dialogue.styles.names import TRL, pick


def _hf_entries(rec: Record) -> list[dict[str, float]]:
    entries = []
    for r in rec.rows:
        if r.kind == "train":
            entries.append(
                {**{pick(TRL, k): jsonable(v) for k, v in r.values.items()}, "epoch": round(r.epoch, 2), "step": r.step}
            )
        elif r.kind == "eval":
            entries.append(
                {
                    **{f"eval_{pick(TRL, k)}": jsonable(v) for k, v in r.values.items()},
                    "epoch": round(r.epoch, 2),
                    "step": r.step,
                }
            )
    return entries


def hf_lines(rec: Record, folder: Path) -> None:
    """Dictionaries on the terminal, as the Trainer prints them."""
    out = []
    for r in rec.rows:
        if r.kind == "event":
            out.append(r.text)
        else:
            pre = "eval_" if r.kind == "eval" else ""
            items = {pre + pick(TRL, k): jsonable(v) for k, v in r.values.items()}
            out.append(str({**items, "epoch": round(r.epoch, 2)}))
    save(folder, "train.out", "\n".join(out) + "\n")
    save(folder, "training_args.json", json.dumps(rec.config, indent=2))


def hf_state(rec: Record, folder: Path) -> None:
    """`trainer_state.json` in a checkpoint folder."""
    state = {
        "best_metric": None,
        "epoch": round(rec.rows[-1].epoch, 2),
        "global_step": rec.rows[-1].step,
        "is_local_process_zero": True,
        "log_history": _hf_entries(rec),
        "max_steps": rec.total,
        "num_train_epochs": max(1, rec.total // rec.epoch_len),
    }
    save(folder, f"checkpoint-{rec.rows[-1].step}/trainer_state.json", json.dumps(state, indent=2))
    texts = [r.text for r in rec.of("event")]
    if texts:
        save(folder, "stderr.txt", "\n".join(texts) + "\n")
    save(folder, "run_config.json", json.dumps(rec.config))


def trl_block(rec: Record, folder: Path) -> None:
    """One indented JSON block per logging step."""
    out = []
    for r in rec.rows:
        if r.kind == "event":
            out.append(r.text)
        else:
            pre = "eval_" if r.kind == "eval" else ""
            out.append(
                f"--- step {r.step} ---\n"
                + json.dumps({pre + pick(TRL, k): jsonable(v) for k, v in r.values.items()}, indent=4)
            )
    save(folder, "stdout.log", "config: " + json.dumps(rec.config) + "\n" + "\n".join(out) + "\n")
