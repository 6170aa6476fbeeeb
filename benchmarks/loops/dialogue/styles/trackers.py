"""Exports of experiment trackers and files of structured data."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

from benchmarks.loops.dialogue.core import Record
from benchmarks.loops.dialogue.styles.common import dice, epochs, jsonable, save, start_of, yaml_of
from benchmarks.loops.dialogue.styles.names import long


def _stamp(rec: Record, seconds: float) -> float:
    return start_of(rec).timestamp() + seconds


def wandb(rec: Record, folder: Path) -> None:
    """Summary, history and a config with value nodes."""
    lines, summary = list[str](), dict[str, float]()
    for r in rec.rows:
        if r.kind == "event":
            continue
        pre = "train/" if r.kind == "train" else "val/"
        entry = {pre + long(k): jsonable(v) for k, v in r.values.items()}
        entry.update({"_step": r.step, "_runtime": round(r.seconds, 2), "_timestamp": round(_stamp(rec, r.seconds), 2)})
        summary.update(entry)
        lines.append(json.dumps(entry))
    save(folder, "wandb-history.jsonl", "\n".join(lines) + "\n")
    save(folder, "wandb-summary.json", json.dumps(summary))
    save(
        folder,
        "config.yaml",
        "wandb_version: 1\n" + "".join(f"{k}:\n  desc: null\n  value: {v}\n" for k, v in rec.config.items()),
    )
    save(folder, "output.log", "\n".join(r.text for r in rec.of("event")) + "\n")


def tensorboard(rec: Record, folder: Path) -> None:
    """One CSV per tag, as the web page exports them."""
    for kind in ("train", "eval"):
        for key in rec.keys(kind):
            out = ["Wall time,Step,Value"]
            out += [
                f"{_stamp(rec, r.seconds):.3f},{r.step},{r.values[key]:.7g}" for r in rec.of(kind) if key in r.values
            ]
            save(folder, f"run-{kind}-tag-{long(key)}.csv", "\n".join(out) + "\n")
    texts = [r.text for r in rec.of("event")]
    if texts:
        save(folder, "console.log", "\n".join(texts) + "\n")


def mlflow(rec: Record, folder: Path) -> None:
    """The folders of a file store."""
    ident = hashlib.md5(str(rec.seed).encode(), usedforsecurity=False).hexdigest()
    root = f"mlruns/0/{ident}"
    for kind, pre in (("train", "train_"), ("eval", "val_")):
        for key in rec.keys(kind):
            rows = [
                f"{int(_stamp(rec, r.seconds) * 1000)} {r.values[key]:.7g} {r.step}"
                for r in rec.of(kind)
                if key in r.values
            ]
            save(folder, f"{root}/metrics/{pre}{long(key)}", "\n".join(rows) + "\n")
    for key, value in rec.config.items():
        save(folder, f"{root}/params/{key}", str(value))
    status = "FAILED" if any("Error" in r.text for r in rec.of("event")) else "FINISHED"
    save(
        folder, f"{root}/meta.yaml", f"experiment_id: '0'\nrun_id: {ident}\nstatus: {status}\nlifecycle_stage: active\n"
    )
    texts = [r.text for r in rec.of("event")]
    if texts:
        save(folder, f"{root}/artifacts/stderr.txt", "\n".join(texts) + "\n")


def lightning(rec: Record, folder: Path) -> None:
    """`metrics.csv` with holes, and `hparams.yaml`."""
    train = [("lr-AdamW" if k == "lr" else f"train_{long(k)}", k) for k in rec.keys("train")]
    evals = [(f"val_{long(k)}", k) for k in rec.keys("eval")]
    out = ["epoch,step," + ",".join(n for n, _ in train + evals)]
    for r in rec.rows:
        if r.kind == "event":
            continue
        cells = [f"{r.values[k]:.7g}" if r.kind == "train" and k in r.values else "" for _, k in train]
        cells += [f"{r.values[k]:.7g}" if r.kind == "eval" and k in r.values else "" for _, k in evals]
        out.append(f"{int(r.epoch)},{r.step}," + ",".join(cells))
    save(folder, "lightning_logs/version_0/metrics.csv", "\n".join(out) + "\n")
    save(folder, "lightning_logs/version_0/hparams.yaml", yaml_of(rec.config))
    texts = [r.text for r in rec.of("event")]
    if texts:
        save(folder, "stderr.log", "\n".join(texts) + "\n")


def nested(rec: Record, folder: Path) -> None:
    """JSON lines with inner objects."""
    lines = [json.dumps({"t": 0.0, "type": "init", "cfg": rec.config})]
    for r in rec.rows:
        if r.kind == "event":
            lines.append(json.dumps({"t": round(r.seconds, 1), "type": "msg", "text": r.text}))
        else:
            optim = {k: jsonable(v) for k, v in r.values.items() if k in ("lr", "gnorm", "upd", "wnorm", "scale")}
            rest = {long(k): jsonable(v) for k, v in r.values.items() if k not in optim}
            body = {"t": round(r.seconds, 1), "type": r.kind, "n": r.step, "metrics": rest}
            lines.append(json.dumps({**body, "opt": {long(k): v for k, v in optim.items()}} if optim else body))
    save(folder, "events.jsonl", "\n".join(lines) + "\n")


def flat(rec: Record, folder: Path) -> None:
    """JSON lines with a step and all values at one level; config as JSON."""
    lines = []
    for r in rec.rows:
        if r.kind == "event":
            lines.append(json.dumps({"step": r.step, "message": r.text}))
        else:
            pre = "" if r.kind == "train" else "val_"
            lines.append(
                json.dumps(
                    {
                        "step": r.step,
                        "epoch": round(r.epoch, 3),
                        **{pre + long(k): jsonable(v) for k, v in r.values.items()},
                    }
                )
            )
    save(folder, "metrics.jsonl", "\n".join(lines) + "\n")
    save(folder, "args.json", json.dumps(rec.config, indent=2))


def columns(rec: Record, folder: Path) -> None:
    """One JSON file with lists."""
    train, evals = rec.of("train"), rec.of("eval")
    history: dict[str, object] = {"iters": [r.step for r in train], "val_iters": [r.step for r in evals]}
    for k in rec.keys("train"):
        history[long(k)] = [jsonable(r.values.get(k, float("nan"))) for r in train]
    for k in rec.keys("eval"):
        history["val_" + long(k)] = [jsonable(r.values.get(k, float("nan"))) for r in evals]
    save(
        folder,
        "result.json",
        json.dumps({"args": rec.config, "history": history, "messages": [r.text for r in rec.of("event")]}),
    )


def _number(value: float) -> str:
    return ".nan" if math.isnan(value) else f"{value:.6g}"


def yaml_list(rec: Record, folder: Path) -> None:
    """A YAML list of epochs."""
    out = ["config:\n" + yaml_of(rec.config, "  ") + "epochs:"]
    for e in epochs(rec):
        out.append(f"- epoch: {e.number}\n  step: {e.step}\n  train:")
        out += [f"    {long(k)}: {_number(v)}" for k, v in e.train.items()]
        if e.evals:
            out += ["  valid:"] + [f"    {long(k)}: {_number(v)}" for k, v in e.evals.items()]
        if e.text:
            out.append("  notes: " + json.dumps(" / ".join(e.text)))
    save(folder, "log.yaml", "\n".join(out) + "\n")


def files(rec: Record, folder: Path) -> None:
    """One file per value: step and value, parted by a space."""
    for kind, pre in (("train", ""), ("eval", "val_")):
        for key in rec.keys(kind):
            rows = [f"{r.step} {r.values[key]:.6g}" for r in rec.of(kind) if key in r.values]
            save(folder, f"{pre}{long(key)}.txt", "\n".join(rows) + "\n")
    save(folder, "args.txt", "\n".join(f"--{k}={v}" for k, v in rec.config.items()) + "\n")
    texts = [r.text for r in rec.of("event")]
    if texts:
        save(folder, "log.txt", "\n".join(texts) + "\n")


def two_logs(rec: Record, folder: Path) -> None:
    """Training and evaluation in logs of their own."""
    sep = dice(rec).choice([" ", ", ", "\t"])
    train = [
        r.text if r.kind == "event" else f"{r.step}:{sep}" + sep.join(f"{long(k)} {v:.5g}" for k, v in r.values.items())
        for r in rec.rows
        if r.kind != "eval"
    ]
    evals = [
        f"checkpoint-{r.step}{sep}" + sep.join(f"{long(k)} {v:.5g}" for k, v in r.values.items())
        for r in rec.of("eval")
    ]
    save(folder, "train.log", "\n".join(train) + "\n")
    if evals:
        save(folder, "eval.log", "\n".join(evals) + "\n")
    save(folder, "cmd.sh", "python train.py " + " \\\n  ".join(f"--{k} {v}" for k, v in rec.config.items()) + "\n")
