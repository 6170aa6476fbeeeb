"""Lines that hand-made loops print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.loops.studio.core import Entry, Record
from benchmarks.loops.studio.styles.common import hms, long, num, share, simple_yaml, stamp

Words = dict[str, str]


def renamed(values: dict[str, float], words: Words) -> dict[str, float]:
    """Values under other names."""
    return {words.get(k, k): v for k, v in values.items()}


def pairs(rec: Record, folder: Path) -> None:
    """Key and value separated by bars, the configuration as JSON on top."""
    import json

    out = ["config: " + json.dumps(rec.config)]
    for e in rec.entries:
        if e.split == "text":
            out.append(e.text)
            continue
        body = " | ".join(f"{k} {num(v)}" for k, v in e.values.items())
        if e.split == "train":
            out.append(f"epoch {e.epoch:5.2f}/{rec.epochs} | step {e.step} | {body}")
        else:
            out.append(f"  >> {e.split} @ step {e.step} | {body}")
    (folder / "stdout.txt").write_text("\n".join(out) + "\n")


def terse(rec: Record, folder: Path) -> None:
    """Abbreviations, and an argparse namespace on top."""
    words = {"loss": "L", "acc": "a", "grad_norm": "gn", "lr": "lr"}
    inner = ", ".join(f"{k}={v!r}" for k, v in rec.config.items())
    out = [f"Namespace({inner})"]
    for e in rec.entries:
        if e.split == "text":
            out.append("! " + e.text)
            continue
        body = " ".join(f"{k}={v:.4g}" for k, v in renamed(e.values, words).items())
        mark = "" if e.split == "train" else {"val": "V ", "test": "T "}.get(e.split, e.split + " ")
        out.append(f"{mark}E{max(1, int(-(-e.epoch // 1))):03d} I{e.step:05d} {body}")
    (folder / "nohup.out").write_text("\n".join(out) + "\n")


def bar(rec: Record, folder: Path) -> None:
    """Progress bars that overwrite themselves with carriage returns."""
    chunks: list[str] = []
    for e in rec.entries:
        if e.split == "text":
            chunks.append("\n" + e.text + "\n")
            continue
        body = ", ".join(f"{k}={v:.3g}" for k, v in e.values.items())
        if e.split != "train":
            chunks.append(f"\n[{e.split}] epoch {e.epoch:g}: {body}\n")
            continue
        inside = e.epoch - int(e.epoch)
        done = rec.per_epoch if inside < 1e-6 else round(inside * rec.per_epoch)
        part = done / rec.per_epoch
        epoch = int(e.epoch) - (1 if inside < 1e-6 else 0)
        fill = "█" * int(part * 10) + " " * (10 - int(part * 10))
        pace = e.step / max(e.clock, 1e-6)
        chunks.append(
            f"\rEpoch {epoch}: {part:4.0%}|{fill}| {done}/{rec.per_epoch} "
            f"[{hms(done / pace)}<{hms((rec.per_epoch - done) / pace)}, {pace:.2f}it/s, "
            f"{body}]"
        )
    (folder / "train.log").write_text("".join(chunks) + "\n")
    (folder / "config.yaml").write_text(simple_yaml(rec.config))


def logger(rec: Record, folder: Path) -> None:
    """The logging module with timestamps and levels."""
    out: list[str] = []

    def line(e: Entry, level: str, text: str) -> None:
        ms = f"{int(e.clock * 1000) % 1000:03d}"
        out.extend(
            f"{stamp(rec, e)},{ms} [{level}] trainer: {t}" if i == 0 else t for i, t in enumerate(text.split("\n"))
        )

    if rec.entries:
        for k, v in rec.config.items():
            line(rec.entries[0], "INFO", f"cfg.{k} = {v}")
    for e in rec.entries:
        if e.split == "text":
            line(e, "ERROR" if "Traceback" in e.text else "WARNING", e.text)
            continue
        body = ", ".join(f"{k}: {num(v, 5)}" for k, v in e.values.items())
        name = "Training" if e.split == "train" else f"Evaluation ({e.split})"
        line(e, "INFO", f"{name} [{e.step}/{rec.steps}] {body}")
    (folder / "run.log").write_text("\n".join(out) + "\n")


def blocks(rec: Record, folder: Path) -> None:
    """Several lines an epoch, with dots."""
    names = {"train": "training", "val": "validation", "test": "test"}
    out = [f"{k:<28}{v}" for k, v in rec.config.items()] + [""]
    last = -1.0
    for e in rec.entries:
        if e.split == "text":
            out.append("*** " + e.text)
            continue
        if e.epoch != last:
            unit = f"Iteration {e.step}" if long(rec) else f"Epoch {e.epoch:g} of {rec.epochs}"
            out += ["", f"===== {unit} " + "=" * 20]
            last = e.epoch
        for k, v in e.values.items():
            label = f"{names.get(e.split, e.split)} {k}".ljust(30, ".")
            out.append(f"  {label}: " + (f"{100 * v:.2f} %" if share(k) else num(v)))
    (folder / "log.txt").write_text("\n".join(out) + "\n")


def colour(rec: Record, folder: Path) -> None:
    """ANSI colours around the parts of a line."""
    out = ["\x1b[1m" + "  ".join(f"{k}={v}" for k, v in rec.config.items()) + "\x1b[0m"]
    for e in rec.entries:
        if e.split == "text":
            out.append(f"\x1b[31m{e.text}\x1b[0m")
            continue
        tone = "36" if e.split == "train" else "33"
        body = " ".join(f"{k}: \x1b[32m{num(v)}\x1b[0m" for k, v in e.values.items())
        out.append(f"\x1b[{tone}m[{e.split}]\x1b[0m (ep {e.epoch:.2f}, it {e.step}) {body}")
    (folder / "console.log").write_text("\n".join(out) + "\n")


def one_line(rec: Record, folder: Path) -> None:
    """A slash-separated line an epoch, training/validation; no configuration at all."""
    held: Entry | None = None
    out: list[str] = []
    for e in rec.entries:
        if e.split == "text":
            out.append(e.text)
        elif e.split == "train":
            if held is not None:
                out.append(_slash(rec, held, None))
            held = e
        elif held is not None and e.split == "val":
            out.append(_slash(rec, held, e))
            held = None
        else:
            out.append(f"      {e.split}: " + ", ".join(f"{k} {num(v)}" for k, v in e.values.items()))
    if held is not None:
        out.append(_slash(rec, held, None))
    (folder / "output.txt").write_text("\n".join(out) + "\n")


def _slash(rec: Record, t: Entry, v: Entry | None) -> str:
    head = f"it {t.step:>5}" if long(rec) else f"ep {t.epoch:>3g}/{rec.epochs}"
    parts = [f"{k} (train) {num(x, 3)}" for k, x in t.values.items()]
    parts += [f"{k} (valid) {num(x, 3)}" for k, x in v.values.items()] if v else []
    return f"{head}  t+{hms(t.clock)}  " + "; ".join(parts)


WRITERS: dict[str, Callable[[Record, Path], None]] = {
    "pairs": pairs,
    "terse": terse,
    "tqdm": bar,
    "logging": logger,
    "blocks": blocks,
    "ansi": colour,
    "one_line": one_line,
}
