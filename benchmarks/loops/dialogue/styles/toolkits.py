"""The wording and the files of further toolkits for language."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.loops.dialogue.core import Record
from benchmarks.loops.dialogue.styles.common import dice, num, save, stamp, yaml_of
from benchmarks.loops.dialogue.styles.names import long


def fairseq(rec: Record, folder: Path) -> None:
    """Inner training and validation lines, parted by bars."""
    names = {"gnorm": "gnorm", "step_ms": "step_ms"}
    out = [f"{stamp(rec, rec.rows[0])} | INFO | fairseq_cli.train | {rec.config}"]
    for r in rec.rows:
        t = stamp(rec, r)
        body = ", ".join(f"{names.get(k, long(k))}={v:.5g}" for k, v in r.values.items())
        if r.kind == "event":
            out.append(f"{t} | INFO | fairseq.trainer | {r.text}")
        elif r.kind == "train":
            at = f"epoch {int(r.epoch) + 1:03d}: {r.step % rec.epoch_len:>5} / {rec.epoch_len}"
            out.append(f"{t} | INFO | train_inner | {at} {body}, num_updates={r.step}")
        else:
            bar = " | ".join(f"{long(k)} {v:.5g}" for k, v in r.values.items())
            at = f"epoch {int(r.epoch) + 1:03d} | valid on 'valid' subset"
            out.append(f"{t} | INFO | valid | {at} | {bar} | num_updates {r.step}")
    save(folder, "train.log", "\n".join(out) + "\n")


def megatron(rec: Record, folder: Path) -> None:
    """Very long lines with one value per field."""
    names = {
        "loss": "lm loss",
        "lr": "learning rate",
        "gnorm": "grad norm",
        "scale": "loss scale",
        "skipped": "number of skipped iterations",
        "wnorm": "params norm",
        "step_ms": "elapsed time per iteration (ms)",
        "acc": "token accuracy",
    }
    out = ["------------------------ arguments ------------------------"]
    out += [f"  {k} {'.' * max(2, 40 - len(k))} {v}" for k, v in rec.config.items()]
    out += ["-------------------- end of arguments ---------------------"]
    for r in rec.rows:
        if r.kind == "event":
            out.append(r.text)
        elif r.kind == "train":
            body = " | ".join(f"{names.get(k, long(k))}: {v:.6E}" for k, v in r.values.items())
            at = f"iteration {r.step:>8}/{rec.total:>8} | consumed samples: {r.step * 16:>10}"
            out.append(f" [{stamp(rec, r)}] {at} | {body} |")
        else:
            body = " | ".join(f"lm {long(k)}: {v:.6E}" for k, v in r.values.items())
            out += ["-" * 60, f" validation loss at iteration {r.step} | {body} |", "-" * 60]
    save(folder, "megatron.log", "\n".join(out) + "\n")


def opennmt(rec: Record, folder: Path) -> None:
    """Steps parted by semicolons."""
    names = {"loss": "xent", "acc": "acc", "ppl": "ppl", "lr": "lr"}
    out = [f"[{stamp(rec, rec.rows[0])},000 INFO] Missing transforms field for corpus_1 data, set to default: []."]
    for r in rec.rows:
        t = f"[{stamp(rec, r)},{int(r.seconds * 997) % 1000:03d} INFO]"
        values = {k: v * 100 if k == "acc" else v for k, v in r.values.items()}
        if r.kind == "event":
            out.append(f"{t} {r.text}")
        elif r.kind == "train":
            body = "; ".join(f"{names.get(k, long(k))}: {v:.5g}" for k, v in values.items())
            out.append(f"{t} Step {r.step}/{rec.total:>6}; {body}; {r.seconds:6.0f} sec;")
        else:
            out += [f"{t} Validation {long(k)}: {v:.5g}" for k, v in values.items()]
    save(folder, "onmt.log", "\n".join(out) + "\n")
    save(folder, "onmt.yml", yaml_of(rec.config))


def torchtune(rec: Record, folder: Path) -> None:
    """`Step 1 | loss:2.3 lr:2e-05` in a file named by a number."""
    out = []
    for r in rec.rows:
        if r.kind == "event":
            out.append(r.text)
        else:
            pre = "val_" if r.kind == "eval" else ""
            out.append(f"Step {r.step} | " + " ".join(f"{pre}{long(k)}:{v:.6g}" for k, v in r.values.items()))
    save(folder, f"log_{dice(rec).randint(1_700_000_000, 1_740_000_000)}.txt", "\n".join(out) + "\n")
    save(folder, "torchtune_config.yaml", yaml_of(rec.config))


def deepspeed(rec: Record, folder: Path) -> None:
    """Lines of rank 0 with lists."""
    out = []
    for r in rec.rows:
        head = f"[{stamp(rec, r)},{int(r.seconds * 997) % 1000:03d}] [INFO] [logging.py:96:log_dist] [Rank 0]"
        if r.kind == "event":
            out.append(f"[{stamp(rec, r)}] {r.text}")
            continue
        values = dict(r.values)
        rate = values.pop("lr", None)
        body = ", ".join(f"{'eval ' if r.kind == 'eval' else ''}{long(k)}={num(v)}" for k, v in values.items())
        out.append(
            f"{head} step={r.step}, " + (f"lr=[{rate:.6g}], mom=[(0.9, 0.99)], " if rate is not None else "") + body
        )
    save(folder, "rank0.log", "\n".join(out) + "\n")
    save(
        folder,
        "ds_config.json",
        json.dumps({"train_micro_batch_size_per_gpu": rec.config.get("batch_size"), "user_args": rec.config}, indent=1),
    )


def espnet(rec: Record, folder: Path) -> None:
    """Lines that name the epoch and the range of batches."""
    out, last = [f"# python3 -m train {' '.join(f'--{k} {v}' for k, v in rec.config.items())}"], 1
    for r in rec.rows:
        head = f"[node07] {stamp(rec, r)},{int(r.seconds * 997) % 1000:03d}"
        if r.kind == "event":
            out.append(f"{head} (trainer:301) WARNING: {r.text}")
        elif r.kind == "train":
            body = ", ".join(f"{long(k)}={v:.4g}" for k, v in r.values.items())
            out.append(f"{head} (trainer:756) INFO: {int(r.epoch) + 1}epoch:train:{last}-{r.step}batch: {body}")
            last = r.step + 1
        else:
            body = ", ".join(f"{long(k)}={v:.4g}" for k, v in r.values.items())
            out.append(f"{head} (trainer:354) INFO: {int(r.epoch) + 1}epoch results: [valid] {body}")
    save(folder, "train.1.log", "\n".join(out) + "\n")


def hydra(rec: Record, folder: Path) -> None:
    """A hydra output folder."""
    save(folder, ".hydra/config.yaml", "trainer:\n" + yaml_of(rec.config, "  ") + "hydra: null\n")
    save(folder, ".hydra/overrides.yaml", "".join(f"- trainer.{k}={v}\n" for k, v in list(rec.config.items())[:3]))
    out = []
    for r in rec.rows:
        body = (
            r.text
            if r.kind == "event"
            else f"{r.kind} step={r.step} " + " ".join(f"{long(k)}={num(v)}" for k, v in r.values.items())
        )
        out.append(f"[{stamp(rec, r)},{int(r.seconds * 1000) % 1000:03d}][src.train][INFO] - {body}")
    save(folder, "main.log", "\n".join(out) + "\n")
