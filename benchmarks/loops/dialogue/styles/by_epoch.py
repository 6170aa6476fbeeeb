"""Tables with a row, or a block, for each epoch."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.loops.dialogue.core import Record
from benchmarks.loops.dialogue.styles.common import epochs, num, save, stamp
from benchmarks.loops.dialogue.styles.names import long


def fastai(rec: Record, folder: Path) -> None:
    """A table of epochs on the terminal."""
    rows = epochs(rec)
    keys = [k for k in rows[0].train if k != "loss" and k not in ("lr",)]
    evals = list(dict.fromkeys(k for e in rows for k in e.evals))
    heads = (
        ["epoch", "train_loss"]
        + [f"valid_{long(k)}" if k == "loss" else long(k) for k in evals]
        + [f"t_{long(k)}" for k in keys]
        + ["time"]
    )
    out, last = ["".join(f"{h:<18}" for h in heads)], 0.0
    for e in rows:
        cells = [str(e.number - 1), f"{e.train.get('loss', float('nan')):.6f}"]
        cells += [f"{e.evals[k]:.6f}" if k in e.evals else "" for k in evals] + [
            f"{e.train.get(k, float('nan')):.6f}" for k in keys
        ]
        took, last = int(e.seconds - last), e.seconds
        cells.append(f"{took // 60:02d}:{took % 60:02d}")
        out += ["".join(f"{c:<18}" for c in cells), *e.text]
    save(folder, "notebook_output.txt", "\n".join(out) + "\n")


def blocks(rec: Record, folder: Path) -> None:
    """Several lines per epoch, under a ruler."""
    rows = epochs(rec)
    out = []
    for e in rows:
        out += ["=" * 60, f"Epoch {e.number}/{len(rows)}  (global step {e.step})", "=" * 60, "Train:"]
        out += [f"    {long(k):<22}{num(v)}" for k, v in e.train.items()]
        if e.evals:
            out += ["Validation:"] + [f"    {long(k):<22}{num(v)}" for k, v in e.evals.items()]
        out += [f"    elapsed               {e.seconds:.0f} s", *e.text, ""]
    save(folder, "training_log.txt", "\n".join(out) + "\n")


def markdown(rec: Record, folder: Path) -> None:
    """Lab notes with a table."""
    rows = epochs(rec)
    keys, evals = list(rows[0].train), list(dict.fromkeys(k for e in rows for k in e.evals))
    out = [
        f"# Run {stamp(rec, rec.rows[0], '%d %b')}",
        "",
        "Setup: " + ", ".join(f"`{k}={v}`" for k, v in rec.config.items()),
        "",
    ]
    out += [
        "| ep | step | " + " | ".join([f"train {long(k)}" for k in keys] + [f"dev {long(k)}" for k in evals]) + " |"
    ]
    out += ["|" + "---|" * (2 + len(keys) + len(evals))]
    for e in rows:
        cells = [num(e.train[k]) if k in e.train else "-" for k in keys] + [
            num(e.evals[k]) if k in e.evals else "-" for k in evals
        ]
        out.append(f"| {e.number} | {e.step} | " + " | ".join(cells) + " |")
    notes = [t for e in rows for t in e.text]
    out += [""] + [f"```\n{t}\n```" for t in notes]
    save(folder, "notes.md", "\n".join(out) + "\n")


def keras(rec: Record, folder: Path) -> None:
    """The history of a fit, with `val_` names."""
    rows = epochs(rec)
    history: dict[str, list[float]] = {long(k): [e.train.get(k, float("nan")) for e in rows] for k in rows[0].train}
    for k in dict.fromkeys(k for e in rows for k in e.evals):
        history["val_" + long(k)] = [e.evals.get(k, float("nan")) for e in rows]
    save(
        folder,
        "history.json",
        json.dumps(
            {"history": history, "epoch": list(range(len(rows))), "params": {"epochs": len(rows), "verbose": 1}}
        ),
    )
    save(folder, "hparams.json", json.dumps(rec.config))
    texts = [t for e in rows for t in e.text]
    if texts:
        save(folder, "stderr.txt", "\n".join(texts) + "\n")
