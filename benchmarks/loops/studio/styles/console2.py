"""Further console styles: drawn tables, ratios with units, separate logs, Hydra."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.loops.studio.core import Record
from benchmarks.loops.studio.styles.common import by_epoch, hms, keys, num, share, simple_yaml, stamp


def drawn(rec: Record, folder: Path) -> None:
    """A table with borders, header only once."""
    rows = by_epoch(rec)
    names = keys(rows)
    heads = ["step", *(n.replace(":", " ") for n in names)]
    width = [max(9, len(h)) for h in heads]
    rule = "+" + "+".join("-" * (w + 2) for w in width) + "+"

    def line(cells: list[str]) -> str:
        return "|" + "|".join(f" {c:>{w}} " for c, w in zip(cells, width, strict=True)) + "|"

    out = [f"# {k} = {v}" for k, v in rec.config.items()] + [rule, line(heads), rule]
    out += [line([str(r["step"]), *(num(r[n]) if n in r else "-" for n in names)]) for r in rows]
    out += [rule, *(e.text for e in rec.texts())]
    (folder / "result.txt").write_text("\n".join(out) + "\n")


def units(rec: Record, folder: Path) -> None:
    """Times, percentages and units; the configuration as an ini file."""
    out = []
    for e in rec.entries:
        if e.split == "text":
            out.append(f"[{hms(e.clock)}] {e.text}")
            continue
        body = ", ".join(
            f"{k}={100 * v:.1f}%" if share(k) else f"{k}={1e3 * v:.1f}ms" if k.endswith("_time") else f"{k}={v:.3e}"
            for k, v in e.values.items()
        )
        tag = "" if e.split == "train" else f" {e.split.upper()}"
        out.append(f"[{hms(e.clock)}]{tag} iter {e.step}: {body}")
    (folder / "progress.log").write_text("\n".join(out) + "\n")
    ini = "[training]\n" + "".join(f"{k} = {v}\n" for k, v in rec.config.items())
    (folder / "settings.ini").write_text(ini)


def split_logs(rec: Record, folder: Path) -> None:
    """Training and evaluation in files of their own."""
    lines: dict[str, list[str]] = {"train": [], "eval": []}
    for e in rec.entries:
        if e.split == "text":
            lines["train"].append(e.text)
            continue
        body = "  ".join(f"{k}: {num(v, 5)}" for k, v in e.values.items())
        if e.split == "train":
            lines["train"].append(f"{stamp(rec, e, '%H:%M:%S')} iter={e.step}  {body}")
        else:
            lines["eval"].append(f"{stamp(rec, e, '%H:%M:%S')} {e.split} after iter={e.step}  {body}")
    for name, text in lines.items():
        if text:
            (folder / f"{name}.log").write_text("\n".join(text) + "\n")
    (folder / "args.json").write_text(json.dumps(rec.config, indent=1))


def hydra(rec: Record, folder: Path) -> None:
    """A Hydra output folder."""
    (folder / ".hydra").mkdir()
    groups: dict[str, dict[str, object]] = {"model": {}, "optim": {}, "trainer": {}}
    for k, v in rec.config.items():
        where = (
            "optim"
            if k in ("lr", "optimizer", "weight_decay", "momentum", "betas", "eps", "scheduler", "warmup_steps")
            else "trainer"
            if k in ("epochs", "batch_size", "seed", "grad_clip", "accumulate_grad_batches", "max_steps")
            else "model"
        )
        groups[where][k] = v
    text = "".join(f"{g}:\n" + simple_yaml(d, "  ") for g, d in groups.items() if d)
    (folder / ".hydra" / "config.yaml").write_text(text)
    (folder / ".hydra" / "overrides.yaml").write_text(f"- trainer.seed={rec.config.get('seed')}\n")
    out = []
    for e in rec.entries:
        head = f"[{stamp(rec, e)},{int(e.clock * 1e3) % 1000:03d}][__main__]"
        if e.split == "text":
            out.append(f"{head}[WARNING] - {e.text}")
            continue
        body = " ".join(f"{e.split}/{k}={num(v)}" for k, v in e.values.items())
        out.append(f"{head}[INFO] - epoch={e.epoch:.2f} global_step={e.step} {body}")
    (folder / "main.log").write_text("\n".join(out) + "\n")


def eta(rec: Record, folder: Path) -> None:
    """The meters of PyTorch's ImageNet example: current value and running mean."""
    out = ["=> creating model '" + str(rec.config.get("model", "net")) + "'"]
    out += [f"=> {k}: {v}" for k, v in rec.config.items()]
    sums: dict[str, float] = {}
    count, epoch = 0, -1
    for e in rec.entries:
        if e.split == "text":
            out.append(e.text)
            continue
        if e.split != "train":
            out.append(
                " * "
                + e.split
                + " "
                + " ".join(f"{k}@1 {100 * v:.3f}" if k == "acc" else f"{k} {num(v)}" for k, v in e.values.items())
            )
            continue
        now = max(0, int(-(-e.epoch // 1)) - 1)
        if now != epoch:
            sums, count, epoch = {}, 0, now
        count += 1
        cells = [f"Time {e.clock / e.step:6.3f}"]
        for k, v in e.values.items():
            sums[k] = sums.get(k, 0.0) + v
            cells.append(f"{k.capitalize()} {num(v)} ({num(sums[k] / count)})")
        inside = e.step - epoch * rec.per_epoch
        out.append(f"Epoch: [{epoch}][{inside:3d}/{rec.per_epoch}]\t" + "\t".join(cells))
    (folder / "train_stdout.log").write_text("\n".join(out) + "\n")


def prose(rec: Record, folder: Path) -> None:
    """Sentences."""
    out = []
    for e in rec.entries:
        if e.split == "text":
            out.append(e.text)
            continue
        body = ", ".join(f"{k.replace('_', ' ')} is {num(v, 3)}" for k, v in e.values.items())
        when = f"After epoch {e.epoch:g}" if e.epoch == int(e.epoch) else f"At update {e.step}"
        where = {"train": "on training data", "val": "on held-out data"}.get(e.split, f"on {e.split}")
        out.append(f"{when} {where}: {body}.")
    (folder / "log").write_text("\n".join(out) + "\n")
    toml = "".join(
        f"{k} = " + (f'"{v}"' if isinstance(v, str) else str(v).lower() if isinstance(v, bool) else str(v)) + "\n"
        for k, v in rec.config.items()
    )
    (folder / "experiment.toml").write_text(toml)


WRITERS: dict[str, Callable[[Record, Path], None]] = {
    "drawn_table": drawn,
    "units_ini": units,
    "split_logs": split_logs,
    "hydra": hydra,
    "imagenet": eta,
    "prose_toml": prose,
}
