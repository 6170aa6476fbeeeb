"""The lines of known frameworks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from benchmarks.loops.studio.core import Record
from benchmarks.loops.studio.styles.common import by_epoch, hms, keys, long, num, simple_yaml, stamp


def mmengine(rec: Record, folder: Path) -> None:
    """OpenMMLab's runner."""
    out = []
    for e in rec.entries:
        head = f"{stamp(rec, e, '%Y/%m/%d %H:%M:%S')} - mmengine - "
        if e.split == "text":
            out.append(head + "WARNING - " + e.text)
            continue
        epoch = max(1, math.ceil(e.epoch - 1e-9))
        inside = e.step - (epoch - 1) * rec.per_epoch
        v = dict(e.values)
        body = "  ".join(f"{k}: {num(x)}" for k, x in v.items() if k != "lr")
        if e.split == "train":
            left = (rec.steps - e.step) * e.clock / max(1, e.step)
            rate = f"lr: {v['lr']:.4e}  " if "lr" in v else ""
            time = "" if "step_time" in v else f"time: {e.clock / e.step:.4f}  "
            out.append(
                f"{head}INFO - Epoch(train) [{epoch}][{inside}/{rec.per_epoch}]  {rate}eta: {hms(left)}  {time}{body}"
            )
        else:
            out.append(f"{head}INFO - Epoch({e.split}) [{epoch}][4/4]    {body}")
    (folder / "20250303_111213.log").write_text("\n".join(out) + "\n")
    py = "\n".join(f"{k} = {v!r}" for k, v in rec.config.items())
    (folder / "config.py").write_text(py + "\n")


def detectron(rec: Record, folder: Path) -> None:
    """Detectron2's event printer."""
    out = []
    for e in rec.entries:
        head = f"[{stamp(rec, e, '%m/%d %H:%M:%S')} d2."
        if e.split == "text":
            out.append(head + "engine.train_loop]: " + e.text)
        elif e.split == "train":
            left = (rec.steps - e.step) * e.clock / max(1, e.step)
            words = {"loss": "total_loss"}
            body = "  ".join(f"{words.get(k, k)}: {v:.4g}" for k, v in e.values.items())
            out.append(f"{head}utils.events]:  eta: {hms(left)}  iter: {e.step - 1}  {body}")
        else:
            names = ",".join(e.values)
            cells = ",".join(f"{v:.4f}" for v in e.values.values())
            out += [
                f"{head}evaluation.testing]: copypaste: Task: {e.split}",
                f"{head}evaluation.testing]: copypaste: {names}",
                f"{head}evaluation.testing]: copypaste: {cells}",
            ]
    (folder / "log.txt").write_text("\n".join(out) + "\n")
    (folder / "config.yaml").write_text("SOLVER:\n" + simple_yaml({k.upper(): v for k, v in rec.config.items()}, "  "))


def fastai(rec: Record, folder: Path) -> None:
    """The table of fastai's recorder."""
    rows = by_epoch(rec)
    names = keys(rows)
    words = {"train:loss": "train_loss", "val:loss": "valid_loss", "val:acc": "accuracy"}
    heads = ["epoch", *(words.get(n, n.replace("val:", "").replace(":", "_")) for n in names), "time"]
    out = ["".join(f"{h:<14}" for h in heads)]
    last = 0.0
    for i, r in enumerate(rows):
        cells = [str(i), *(f"{r[n]:.6f}" if n in r else "None" for n in names), hms(r["clock"] - last)]
        last = r["clock"]
        out.append("".join(f"{c:<14}" for c in cells))
    out += [e.text for e in rec.texts()]
    (folder / "learn_output.txt").write_text("\n".join(out) + "\n")
    kw = ", ".join(f"{k}={v!r}" for k, v in rec.config.items())
    (folder / "cell.py").write_text(f"learn = make_learner({kw})\n")


def keras(rec: Record, folder: Path) -> None:
    """The progress lines of Keras."""
    words = {"acc": "accuracy", "lr": "learning_rate"}
    out: list[str] = []
    for i, r in enumerate(by_epoch(rec)):
        if i < len([t for t in rec.rows() if t.split == "train"]):
            out.append(f"Epoch {i + 1}/{rec.epochs}")
        cells = []
        for k, v in r.items():
            if ":" in k:
                split, name = k.split(":")
                name = words.get(name, name)
                cells.append(f"{name if split == 'train' else split + '_' + name}: {num(v)}")
        n = rec.per_epoch
        took = r["clock"] / (i + 1)
        out.append(f"{n}/{n} ━━━━━━━━━━━━━━━━━━━━ {took:.0f}s {1e3 * took / n:.0f}ms/step - " + " - ".join(cells))
    out += [e.text for e in rec.texts()]
    (folder / "fit.log").write_text("\n".join(out) + "\n")
    (folder / "params.json").write_text(json.dumps(rec.config, indent=2))


def timm(rec: Record, folder: Path) -> None:
    """The training script of timm."""
    out = []
    for e in rec.entries:
        if e.split == "text":
            out.append(e.text)
            continue
        epoch = max(0, math.ceil(e.epoch - 1e-9) - 1)
        inside = e.step - epoch * rec.per_epoch
        rest = "  ".join(f"{k.capitalize() if k != 'lr' else 'LR'}: {num(v)}" for k, v in e.values.items())
        if e.split == "train":
            pct = 100 * inside / rec.per_epoch
            out.append(f"Train: {epoch} [{inside:>4d}/{rec.per_epoch} ({pct:>3.0f}%)]  {rest}")
        else:
            name = "Test" if e.split == "val" else e.split
            out.append(f"{name}: [{4:>4d}/4]  {rest}")
    (folder / "output.log").write_text("\n".join(out) + "\n")
    (folder / "args.yaml").write_text(simple_yaml(rec.config))


def trainer(rec: Record, folder: Path) -> None:
    """The dictionaries that Hugging Face's Trainer prints."""
    words = {"lr": "learning_rate"}
    out = []
    for e in rec.entries:
        if e.split == "text":
            out.append(e.text)
            continue
        pre = "" if e.split == "train" else "eval_" if e.split == "val" else e.split + "_"
        row = {pre + words.get(k, k): float(f"{v:.4g}") for k, v in e.values.items()}
        row["epoch"] = round(e.epoch, 2)
        out.append(str(row))
    (folder / "slurm-48213.out").write_text("\n".join(out) + "\n")
    (folder / "training_args.json").write_text(json.dumps(rec.config, indent=2))


def espnet(rec: Record, folder: Path) -> None:
    """ESPnet's epoch reports."""
    out = []
    for e in rec.entries:
        head = f"[gpu07] {stamp(rec, e)},{int(e.clock * 1e3) % 1000:03d} "
        if e.split == "text":
            out.append(head + "(trainer:290) WARNING: " + e.text)
            continue
        epoch = max(1, math.ceil(e.epoch - 1e-9))
        split = "valid" if e.split == "val" else e.split
        body = ", ".join(f"{k if k != 'loss' else 'loss_ctc'}={num(v, 3)}" for k, v in e.values.items())
        inside = e.step - (epoch - 1) * rec.per_epoch
        span = f":{max(1, inside - 4)}-{inside}batch" if split == "train" and long(rec) else ""
        out.append(f"{head}(trainer:{753 if split == 'train' else 338}) INFO: {epoch}epoch:{split}{span}: {body}")
    (folder / "train.1.log").write_text("\n".join(out) + "\n")
    (folder / "config.yaml").write_text(simple_yaml(rec.config))


def boosted(rec: Record, folder: Path) -> None:
    """The lines of boosting libraries: [round] name-metric:value."""
    out = [f"params: {rec.config}"]
    for r in by_epoch(rec):
        cells = [f"{k.replace(':', '-').replace('val-', 'valid-')}:{num(r[k], 5)}" for k in r if ":" in k]
        out.append(f"[{r['step']}]\t" + "\t".join(cells))
    out += [e.text for e in rec.texts()]
    (folder / "train.out").write_text("\n".join(out) + "\n")


WRITERS: dict[str, Callable[[Record, Path], None]] = {
    "mmengine": mmengine,
    "detectron2": detectron,
    "fastai": fastai,
    "keras_bar": keras,
    "timm": timm,
    "hf_trainer": trainer,
    "espnet": espnet,
    "boosting": boosted,
}
