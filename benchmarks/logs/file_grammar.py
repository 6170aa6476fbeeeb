"""Whole logs drawn from tables of parts, and what of them is read wrong.

    python -m benchmarks.logs.file_grammar [--logs 300] [--seed 0] [--kind NAME] [--show NUMBER]

A log is a kind (lines of two phases, counters, tables, blocks, JSON lines) of drawn counters, names, forms of numbers,
and noise. Nothing is written by hand for the reader, and no step equals the number of its line. What is read wrong is
listed by log, and then by part: of the logs that have a part, how many are misread.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import TypeVar

import numpy as np

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.run import Run, Series

RECORDS = 60
"""Records of a log, about."""
T = TypeVar("T")
Point = tuple[float, float]
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|\bnan\b|\binf(?:inity)?\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Form:
    """How a number is printed; what is read of it is the first number of the text times the factor."""

    text: Callable[[float], str]
    factor: float = 1.0

    def value(self, text: str) -> float:
        """Return the number that a text in this form states."""
        found = _NUMBER.search(text.removeprefix("np.float32"))
        return float(found[0].replace(",", "")) * self.factor if found else float("nan")


LOSS = {
    "4f": Form(lambda x: f"{x:.4f}"), "e": Form(lambda x: f"{x:.3e}"), "12e": Form(lambda x: f"{x * 10:.1e}"),
    "negative": Form(lambda x: f"{x - 4:.3f}"), "thousands": Form(lambda x: f"{x * 1000:,.1f}"),
    "6f": Form(lambda x: f"{x:.6f}"), "nan": Form(lambda x: f"{x:.4f}" if x > 2.05 else "NaN"), "-nan": Form(lambda x: f"{x:.4f}" if x > 2.05 else "-nan"),
    "tensor": Form(lambda x: f"tensor({x:.4f})"), "float": Form(lambda x: f"np.float32({x:.4f})", 1.0),
    "Infinity": Form(lambda x: f"{x:.4f}" if x > 2.02 else "Infinity"), "int": Form(lambda x: f"{x * 100:.0f}"),
    "inf": Form(lambda x: f"{x:.4f}" if x > 2.02 else "inf"), "-inf": Form(lambda x: f"{x:.4f}" if x > 2.02 else "-inf"),
}  # fmt: skip
WRAPPED = ("tensor", "float")
BESIDE = {
    "none": "{}", "plus": "{} ± 0.021", "plus glued": "{}±0.021", "+/-": "{} +/- 0.021", "mean": "{} (mean)",
    "average": "{} ({:.4f})",
}  # fmt: skip
ACCURACY = {
    "share": Form(lambda x: f"{1 / x:.4f}"), "percent": Form(lambda x: f"{100 / x:.2f}%", 0.01),
    "percent apart": Form(lambda x: f"{100 / x:.2f} %", 0.01), "whole": Form(lambda x: f"{int(100 / x)}%", 0.01),
}  # fmt: skip
RATE = {"e": Form(lambda x: f"{x * 1e-4:.2e}"), "f": Form(lambda x: f"{x * 1e-4:.7f}")}
NORM = {"f": Form(lambda x: f"{x * 0.7:.3f}"), "e": Form(lambda x: f"{x * 7:.1e}")}
ASIDE = {
    "none": "", "ms": "time {a:.1f}ms", "s apart": "time {b:.2f} s", "gib": "mem {b:.1f}GiB", "tok": "tok/s {a:,.0f}k",
    "eta": "eta 1:{c:02d}:{c:02d}",
}  # fmt: skip
NOISE = {
    "none": (),
    "warning": ("UserWarning: lr_scheduler.step() was called before optimizer.step() 3 times, see 2.1",),
    "bar": ("\rprocessing:  40%|████      | 40/100 [00:03<00:04, 13.1it/s]",),
    "traceback": (
        "Traceback (most recent call last):", '  File "data.py", line 88, in load', "    img = open(path)",
        "OSError: cannot read image 4711", "skipped sample 4711, going on",
    ),
    "saving": ("saved checkpoint 3 of 12 to /out/ckpt-3.pt in 2.31 s",),
}  # fmt: skip
HEADS = {
    "none": (),
    "settings": ("Namespace(batch_size=32, epochs=90, lr=0.001, seed=7)", ""),
    "keys": ("batch_size: 32", "learning rate: 0.001", "params: 12.3M", ""),
}
TAILS = {
    "none": (),
    "summary": ("", "Training finished in 3412.5 s", "best val loss 1.234 at step 4711", "final accuracy: 0.9123"),
}
PREFIXES = {"none": "", "clock": "2026-11-20 10:{m:02d}:{s:02d},123 - INFO - ", "short": "[10:{m:02d}:{s:02d}] "}


@dataclass
class Log:
    """A log while it is drawn.

    Args:
        draw: The source of what is drawn.
        kind: What sort of log it is.
        suffix: Of its file.
        parts: What was drawn, by the name of the table.
        lines: Its lines.
        points: What it states: by canonical name, the steps and values in order.
        is_loose: The log does not say how many batches an epoch has, so that steps need only rise.
    """

    draw: random.Random
    kind: str
    suffix: str = ".log"
    parts: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    points: dict[str, list[Point]] = field(default_factory=dict)
    is_loose: bool = False

    def pick(self, table: str, options: Mapping[str, T] | Sequence[str]) -> T:
        """Draw a part and remember it."""
        name = self.draw.choice(list(options))
        self.parts[table] = name
        return options[name] if isinstance(options, Mapping) else name  # type: ignore[return-value]

    def number(self, known_as: str, step: float, form: Form, text: str) -> str:
        """Note what a text states, and return it."""
        self.points.setdefault(known_as, []).append((step, form.value(text)))
        return text

    def level(self, step: float, last: float) -> float:
        """Draw a value that falls from five to two."""
        return 2 + 3 * exp(-3 * step / last) * self.draw.random()

    def noisy(self, at: int) -> None:
        """Print noise now and then."""
        if at % 7 == 3:
            self.lines += NOISE[self.parts["noise"]]

    def prefix(self, at: int) -> str:
        """Return what stands before a line."""
        return PREFIXES[self.parts["prefix"]].format(m=at // 60, s=at % 60)


def _steps(log: Log) -> list[int]:
    first, every = log.draw.choice([(41, 10), (100, 100), (4000, 500), (13, 37), (0, 50)])
    return [first + every * number for number in range(RECORDS)]


@dataclass
class Values:
    """The metrics of a log in its forms: loss, accuracy or none, rate or none, norm or none."""

    log: Log

    def __post_init__(self) -> None:
        log = self.log
        in_text = log.kind in ("phases", "counters")
        self.loss = log.pick("loss", {name: form for name, form in LOSS.items() if in_text or name not in WRAPPED})
        self.beside = log.pick("beside", BESIDE)
        self.forms: dict[str, Form] = {"loss": self.loss}
        optional = (("accuracy", ACCURACY), ("learning_rate", RATE), ("grad_norm", NORM))
        for name, table in optional:
            if log.draw.random() < 0.6:
                self.forms[name] = log.pick(name, table)

    def texts(self, step: float, last: float, phase: str = "", *, bare: bool = False) -> dict[str, str]:
        """Draw and note the values of a record; of an evaluation there are no rate and norm."""
        texts = {}
        for name, form in self.forms.items():
            if phase and name not in ("loss", "accuracy"):
                continue
            text = form.text(self.log.level(step, last))
            if name == "loss" and not bare and not (phase and "(" in self.beside):
                text = self.beside.format(text, self.log.draw.uniform(2, 4))
            texts[name] = self.log.number(f"{phase}{name}", step, form, text)
        return texts


NAMES = (
    {"loss": "loss", "accuracy": "acc", "learning_rate": "lr", "grad_norm": "grad_norm"},
    {"loss": "Loss", "accuracy": "accuracy", "learning_rate": "LR", "grad_norm": "gnorm"},
    {"loss": "train_loss", "accuracy": "train_acc", "learning_rate": "learning_rate", "grad_norm": "grad norm"},
)
PAIRING = {"=": ("=", " "), ": ,": (": ", ", "), "blank |": (" ", " | "), ": |": (": ", " | "), ": two": (": ", "  ")}
WORDS = (
    "val ", "valid: ", "[eval] ", "Validation - ", "test: ", "dev: ", "held-out ", "(val) ", "VAL | ", "Eval: ",
    "validation: ", ">>> eval ", "* Val ", "Validation Results - ", "[valid] ", "evaluation ", "[dev] ",
)  # fmt: skip
STEPS = ("step {}", "step={}", "iter: {}", "[{}]", "it {}/9000", "global_step {}", "Step {} of 9000")


def _pairs(names: Mapping[str, str], texts: Mapping[str, str], pairing: tuple[str, str], before: str = "") -> str:
    return pairing[1].join(f"{before}{names[name]}{pairing[0]}{text}" for name, text in texts.items())


def phases(log: Log) -> None:
    """Training lines and evaluation lines in turn."""
    values, steps = Values(log), _steps(log)
    names, pairing = log.draw.choice(NAMES[:2]), log.pick("pairing", PAIRING)
    counter, word, every = log.pick("counter", STEPS), log.pick("word", WORDS), log.draw.choice([3, 5, 10])
    style = log.pick("evaluation", ("same", "own", "epoch", "none", "one line", "block", "first", "behind", "headed", "rounds"))
    prefixed, epochs, aside = log.pick("prefixed", ("no", "val_")), log.pick("epochs", ("no", "yes")), log.pick("aside", ASIDE)
    per_epoch = 10
    for at, step in enumerate(steps):
        shown = f"epoch {at // per_epoch} " if epochs == "yes" or style == "epoch" else ""
        head = f"{log.prefix(at)}{shown}{counter.format(step)}{log.draw.choice([' '])}"
        before = "val_" if prefixed != "no" else ""
        if style == "one line":
            train, evaluated = values.texts(step, steps[-1]), values.texts(step, steps[-1], "eval_")
            log.lines.append(f"{head}train {_pairs(names, train, pairing)} {word.strip(' :-|')} {_pairs(names, evaluated, pairing)}")
            continue
        due = at % every == every - 1 if style != "epoch" else at % per_epoch == per_epoch - 1
        if style == "first" and at == 0:
            early = values.texts(step, steps[-1], "eval_")
            log.lines.append(f"{log.prefix(at)}{word}{counter.format(step)} {_pairs(names, early, pairing, before)}")
        texts = values.texts(step, steps[-1])
        extra = aside.format(a=log.draw.uniform(80, 120), b=log.draw.uniform(1, 9), c=log.draw.randint(1, 59))
        log.lines.append(f"{head}{_pairs(names, texts, pairing)}{pairing[1] + extra if extra else ''}")
        log.noisy(at)
        if not due or (style == "first" and at == 0):
            continue
        texts, start = values.texts(step, steps[-1], "eval_"), f"{log.prefix(at)}{word}"
        if style in ("same", "first"):
            log.lines.append(f"{start}{counter.format(step)} {_pairs(names, texts, pairing, before)}")
        elif style == "own":
            log.lines.append(f"{start}[25/25] {_pairs(names, texts, pairing, before)}")
        elif style == "epoch":
            log.lines.append(f"{start}epoch {at // per_epoch} {_pairs(names, texts, pairing, before)}")
        elif style == "none":
            log.lines.append(f"{start}{_pairs(names, texts, pairing, before)}")
        elif style == "behind":
            log.lines.append(f"{log.prefix(at)}{counter.format(step)} {word}{_pairs(names, texts, pairing, before)}")
        elif style == "headed":
            log.lines.append(f"{log.prefix(at)}{word}at step {step}")
            log.lines += [f"{log.prefix(at)}  {before}{names[name]}{pairing[0]}{text}" for name, text in texts.items()]
        elif style == "rounds":
            log.lines += [f"{log.prefix(at)}{word}[{part}/25] {names['loss']}{pairing[0]}9.{part}" for part in (5, 15)]
            log.lines.append(f"{start}[25/25] {_pairs(names, texts, pairing, before)}")
        else:
            log.lines.append(f"{log.prefix(at)}{word.strip()}")
            log.lines += [f"{log.prefix(at)}  {before}{names[name]}{pairing[0]}{text}" for name, text in texts.items()]


BATCHES = {
    "batch of": "Epoch {e}/9 batch {b}/{n}", "brackets": "epoch {e} [{b}/{n}]", "both": "Epoch [{e}/9], Step [{b}/{n}]",
    "lone": "epoch {e} batch {b}", "tutorial": "[{e}, {b:5d}]", "samples": "Train Epoch: {e} [{s}/{t} ({p:.0f}%)]",
    "heading": "  batch {b}/{n}", "heading bare": "  [{b}/{n}]", "colon": "E{e} | {b:4d}/{n} |", "lone i": "epoch: {e} i: {b}",
    "heading lone": "  batch {b}", "heading step": "  step {b} of {n}:", "words": "epoch {e}, batch {b} of {n}:",
    "percent": "Epoch {e} ({b}/{n}, {p:.1f}%)", "tuple": "({e}, {b})", "ep it": "ep {e:02d} it {b:05d}",
}  # fmt: skip
AXES = {
    "fraction": ("epoch {x:.4f}", "epoch"), "fraction json": ("epoch: {x:.2f}", "epoch"), "12k": ("step {k:g}k", "step"),
    "1.2M": ("step {m:.4f}M", "step"), "12,000": ("step {i:,}", "step"), "tokens": ("tokens {j:,}", "num_tokens"),
    "tokens M": ("tokens: {m:.4f}M", "num_tokens"), "samples": ("samples seen {i}", "num_samples"),
    "episode": ("episode {e}", "episode"), "episode of": ("Episode {e}/900:", "episode"), "epoch 0": ("Epoch {z}/60", "epoch"),
    "env": ("env_steps {i}", "step"), "timesteps": ("total_timesteps: {i}", "step"), "update": ("update {e}", "step"),
    "time": ("elapsed {y:.1f}s", "elapsed"), "frames": ("frames={i:,}", "step"), "consumed": ("consumed samples: {i}", "num_samples"), "round": ("round {e}:", "step"),
    "behind": ("{i} steps", "step"), "bracket": ("[{i} steps]", "step"), "slash": ("Steps: {i:,} / 900,000", "step"),
    "iters": ("Iters {i:08d}", "step"), "minutes": ("[{q:02d}m{w:02d}s]", "elapsed"), "word": ("iteration number {i}", "step"),
    "tr": ("train_step={i}", "step"), "global": ("global-step {i}", "step"), "at": ("@{i}", "step"), "gen": ("Generation {e}", "step"), "epoch": ("epoch {e:03d}:", "epoch"),
}  # fmt: skip


def counters(log: Log) -> None:
    """Counters of other sorts: batches that begin again in each epoch, thousands, tokens, episodes, time."""
    values, names, pairing = Values(log), log.draw.choice(NAMES), log.pick("pairing", PAIRING)
    if log.draw.random() < 0.5:
        name = log.pick("axis", list(AXES))
        template, axis = AXES[name]
        first = 0 if name == "epoch 0" else 41
        for at in range(RECORDS):
            count = first + at * (1 if name.startswith("epoch") else 10)
            step = count * 100
            exact = {"x": count / 60, "k": step / 1000, "m": step / 1e6, "i": step, "j": step * 1024, "e": count, "z": count, "y": count * 1.5, "q": count // 6, "w": count % 6 * 10}
            shown = template.format(**exact)
            number = re.search(r"\d[\d,.]*", shown)
            unit = {"k": 1000.0, "M": 1e6}.get(shown[-1], 1.0)
            known = float(number[0].rstrip(".").replace(",", "")) * unit if number else 0.0
            known = count * 10 if name == "minutes" else known
            log.lines.append(f"{log.prefix(at)}{shown} {_pairs(names, values.texts(known, 6000), pairing)}")
            log.noisy(at)
        log.parts["axis name"] = axis
        return
    name, base, epoch_base = log.pick("batches", list(BATCHES)), log.draw.choice([0, 1]), log.draw.choice([0, 1])
    log.parts |= {"batch base": str(base), "epoch base": str(epoch_base)}
    total, every, size = log.draw.choice([(128, 20), (100, 10), (391, 50), (37, 5)]) + (64,)
    log.is_loose = name in ("lone", "tutorial", "lone i", "heading lone", "tuple", "ep it")
    per_epoch = range(base, total + base, every) if log.draw.random() < 0.5 else range(every - 1 + base, total + base, every)
    at = 0
    for epoch in range(max(3, RECORDS // len(per_epoch))):
        if name.startswith("heading"):
            log.lines.append(f"Epoch {epoch + epoch_base}/9")
        for batch in per_epoch:
            at += 1
            step = epoch * total + batch
            shown = BATCHES[name].format(
                e=epoch + epoch_base, b=batch, n=total, s=batch * size, t=total * size, p=100 * batch / total
            )
            step *= size if name == "samples" else 1
            log.lines.append(f"{log.prefix(at)}{shown} {_pairs(names, values.texts(step, 5 * total), pairing)}")
            log.noisy(at)


COLUMNS = (
    {"step": "step", "loss": "loss", "eval_loss": "val_loss", "accuracy": "acc", "learning_rate": "lr", "time": "time (s)"},
    {"step": "Step", "loss": "Training Loss", "eval_loss": "Validation Loss", "accuracy": "Train Accuracy", "learning_rate": "Learning Rate", "time": "Time (ms)"},
    {"step": "iter", "loss": "train/loss", "eval_loss": "val/loss", "accuracy": "train/acc", "learning_rate": "lr", "time": "mem/GiB"},
    {"step": "iteration", "loss": "train loss", "eval_loss": "valid loss", "accuracy": "train acc", "learning_rate": "lr [1e-3]", "time": "time/s"},
)  # fmt: skip
LAYOUTS = (
    "fixed", "fixed again", "markdown", "bars", "tabs", "semicolons", "commas", "rules", "csv", "pandas", "drawn", "two lines",
    "left",
)  # fmt: skip
BLANKS = ("", "-", "nan", "N/A", "--")


def tables(log: Log) -> None:
    """Tables in text or files of cells."""
    layout, names = log.pick("layout", LAYOUTS), log.pick("columns", {str(at): one for at, one in enumerate(COLUMNS)})
    values, blank = Values(log), log.pick("blank", BLANKS)
    steps, indexed = _steps(log), layout in ("csv", "tabs", "semicolons") and log.pick("index", ("no", "yes")) == "yes"
    chosen = [name for name in names if name in ("step", "loss") or log.draw.random() < 0.7]
    if layout.startswith(("fixed", "left", "two", "pandas", "rules")) and blank == "":
        blank = log.parts["blank"] = "-"
    header, every = [names[name] for name in chosen], log.draw.choice([1, 5])
    rate = Form(lambda x: f"{x * 0.1:.4f}", 1e-3) if "[1e-3]" in names["learning_rate"] else RATE["e"]
    forms = {"loss": values.loss if layout not in ("commas", "csv", "semicolons") else LOSS["6f"], "eval_loss": LOSS["4f"], "accuracy": ACCURACY["share"], "learning_rate": rate}
    rows = []
    for at, step in enumerate(steps):
        cells = []
        for name in chosen:
            if name == "step":
                cells.append(str(step))
            elif name == "time":
                cells.append(f"{log.draw.uniform(1, 9):.2f}")
            elif name == "eval_loss" and at % every:
                cells.append(blank)
            else:
                cells.append(log.number(name, step, forms[name], forms[name].text(log.level(step, steps[-1]))))
        rows.append(([str(at)] if indexed else []) + cells)
    header = ([""] if indexed else []) + header
    comment = log.pick("comment", ("no", "yes")) == "yes"
    if comment:
        log.lines += ["# run 7 of 2026-11-20", "# batch_size: 32"]
    separators = {"tabs": "\t", "semicolons": ";", "commas": ", ", "csv": ",", "bars": " | ", "markdown": " | "}
    if layout in separators:
        log.suffix = {"tabs": ".tsv", "semicolons": ".csv", "csv": ".csv"}.get(layout, ".log")
        if layout == "semicolons":
            rows = [[cell if "," in cell else cell.replace(".", ",") for cell in row] for row in rows]
        sided = (lambda text: f"| {text} |") if layout == "markdown" else (lambda text: text)
        written = [sided(separators[layout].join(row)) for row in [header, *rows]]
        if layout == "markdown":
            written.insert(1, "|" + "|".join(["---"] * len(header)) + "|")
        log.lines += written
        return
    width = max(map(len, header)) + 3
    first = "".join(name.rjust(width) for name in header)
    units = log.pick("second line", ("no", "yes")) == "yes"
    if layout == "two lines":
        upper, lower = zip(*(name.rpartition(" ")[::2] if " " in name else name.rpartition("/")[::2] for name in header), strict=True)
        log.lines.append("".join(name.rjust(width) for name in upper))
        first = "".join(name.rjust(width) for name in lower)
    side = "│" if layout == "drawn" else ""
    if layout == "drawn":
        first = side + side.join(name.center(width) for name in header) + side
        log.lines.append("┌" + "┬".join("─" * width for _ in header) + "┐")
    if layout == "left":
        first = "".join(name.ljust(width) for name in header).rstrip()
    if layout == "pandas":
        first = "    " + first
    for at, row in enumerate(rows):
        if at == 0 or (layout == "fixed again" and at % 20 == 0):
            log.lines += [first, *(["-" * len(first)] if layout == "rules" or units else [])]
        if layout == "left":
            log.lines.append("".join(cell.ljust(width) for cell in row))
        elif layout == "drawn":
            log.lines.append(side + side.join(f" {cell} ".rjust(width) for cell in row) + side)
        else:
            log.lines.append((f"{at:<4d}" if layout == "pandas" else "") + "".join(cell.rjust(width) for cell in row))
        log.noisy(at)


BLOCKS = ("blank", "rule", "box", "json", "python", "yaml list", "yaml documents", "heading", "indented", "sections", "dots", "json phases", "yaml phases", "unicode box", "columns")


def blocks(log: Log) -> None:
    """Records over several lines."""
    style, values, steps = log.pick("block", BLOCKS), Values(log), _steps(log)
    names, step_name = log.draw.choice(NAMES), log.pick("step name", ("step", "iteration", "global_step", "Step"))
    evaluates = log.pick("evaluates", ("no", "yes")) == "yes"
    log.suffix = ".yaml" if style.startswith("yaml") else ".log"
    for at, step in enumerate(steps):
        bare = "json" in style or "yaml" in style or "box" in style or style == "python"
        pairs = {step_name: str(step)}
        pairs |= {names[name]: text for name, text in values.texts(step, steps[-1], bare=bare).items()}
        if evaluates:
            drawn = values.texts(step, steps[-1], "eval_", bare=bare)
            pairs |= {f"val_{NAMES[0][name]}": text for name, text in drawn.items()}
        lines = [f"{name}: {text}" for name, text in pairs.items()]
        if "phases" in style:
            phased: dict[str, object] = {step_name: step}
            for phase, mark in (("train", ""), ("val", "val_")):
                inside = {n.removeprefix(mark): _value(x) for n, x in list(pairs.items())[1:] if n.startswith("val_") == bool(mark)}
                phased |= {phase: inside} if inside else {}
            text = json.dumps(phased, indent=2)
            if style == "yaml phases":
                log.lines += ["---", f"{step_name}: {step}"]
                for phase in [name for name in ("train", "val") if name in phased]:
                    log.lines += [f"{phase}:", *(f"  {n}: {_plain(str(x))}" for n, x in phased[phase].items())]  # type: ignore[attr-defined]
            else:
                log.lines += text.split("\n")
        elif style == "sections":
            log.lines += [f"{step_name} {step}", "Train:", *(f"  {line}" for line in lines[1:] if not line.startswith("val_"))]
            if evaluates:
                log.lines += ["Validation:", *(f"  {line[4:]}" for line in lines if line.startswith("val_"))]
        elif style == "dots":
            log.lines += [f"{name} {'.' * (20 - len(name))} {text}" for name, text in pairs.items()] + [""]
        elif style == "columns":
            log.lines += [f"{name:20s}{text}" for name, text in pairs.items()] + ["-" * 40]
        elif style == "unicode box":
            log.lines += ["╭" + "─" * 30 + "╮", *(f"│ {name:14s} │ {text:11s} │" for name, text in pairs.items()), "╰" + "─" * 30 + "╯"]
        elif style in ("json", "python"):
            quote = '"' if style == "json" else "'"
            inside = ",\n".join(f"  {quote}{name}{quote}: {_plain(text)}" for name, text in pairs.items())
            log.lines += ["{", *inside.split("\n"), "}"]
        elif style.startswith("yaml"):
            lines = [f"{name}: {_plain(text)}" for name, text in pairs.items()]
            log.lines += ["---", *lines] if style == "yaml documents" else [("- " if not n else "  ") + line for n, line in enumerate(lines)]
        elif style == "box":
            log.lines += ["+" + "-" * 30 + "+", *(f"| {name:14s} | {text:11s} |" for name, text in pairs.items()), "+" + "-" * 30 + "+"]
        elif style in ("heading", "indented"):
            mark = "==== {} ====" if style == "heading" else "{}:"
            log.lines += [mark.format(f"{step_name} {step}"), *(f"  {line}" for line in lines[1:])]
        else:
            log.lines += [*lines, "" if style == "blank" else "-" * 40]
        if not style.startswith("yaml"):
            log.noisy(at)


def _value(text: str) -> object:
    """Return what JSON holds of a text: a number, or the text where it has a unit."""
    return text if not _NUMBER.fullmatch(text) else float(text.replace(",", ""))


def _plain(text: str) -> str:
    return json.dumps(text) if text.endswith("%") or "," in text else text.replace("inf", "Infinity").replace("nan", "NaN")


KEYS = ("step", "global_step", "it", "iter", "n", "i", "t", "update", "num_timesteps", "trainer/global_step", "iteration")
NESTING = ("flat /", "flat .", "flat _", "by phase", "by metric", "long", "plain", "apart", "nulls", "envelope", "suffix", "list")
SPLITS = (("split", "train", "val"), ("phase", "TRAIN", "VALID"), ("mode", "training", "evaluation"), ("kind", "train", "test"),
          ("event", "train_step", "validation_end"), ("stage", "fit", "validate"), ("type", "train", "dev"))  # fmt: skip


def records(log: Log) -> None:
    """JSON lines: nested or flat, in one record or one for each metric."""
    style, key, steps, values = log.pick("nesting", NESTING), log.pick("key", KEYS), _steps(log), Values(log)
    as_text, wrap = log.pick("strings", ("no", "yes")) == "yes", log.pick("wrap", ("no", "no", "prefix", "message"))
    split = SPLITS[int(log.pick("split", [str(at) for at in range(len(SPLITS))]))] if style == "apart" else SPLITS[0]
    every, log.suffix = log.draw.choice([1, 5]), ".jsonl" if wrap == "no" else ".log"
    short = NAMES[0]
    for at, step in enumerate(steps):
        def number(text: str) -> object:
            return text if as_text or not _NUMBER.fullmatch(text) else float(text.replace(",", ""))
        trained = {short[name]: number(text) for name, text in values.texts(step, steps[-1], bare=True).items()}
        drawn = values.texts(step, steps[-1], "eval_", bare=True) if at % every == 0 else {}
        evaluated = {short[name]: number(text) for name, text in drawn.items()}
        counted = {key: str(step) if as_text else step}
        made: list[dict[str, object]] = []
        if style.startswith("flat"):
            mark = style[-1]
            made = [counted | {f"train{mark}{n}": v for n, v in trained.items()} | {f"val{mark}{n}": v for n, v in evaluated.items()}]
        elif style == "by phase":
            made = [counted | {"train": trained} | ({"val": evaluated} if evaluated else {})]
        elif style == "by metric":
            made = [counted | {n: {"train": v} | ({"val": evaluated[n]} if n in evaluated else {}) for n, v in trained.items()}]
        elif style == "long":
            both = {f"train/{n}": v for n, v in trained.items()} | {f"val/{n}": v for n, v in evaluated.items()}
            made = [{"name": n, "value": v} | counted for n, v in both.items()]
        elif style == "apart":
            field_name, train, held_out = split
            made = [counted | {field_name: train} | trained, *([counted | {field_name: held_out} | evaluated] if evaluated else [])]
        elif style == "nulls":
            made = [counted | trained | {f"val_{n}": evaluated.get(n) for n in trained if n in ("loss", "acc")}]
        elif style == "envelope":
            made = [counted | {"metrics": trained | {f"val_{n}": v for n, v in evaluated.items()}, "time": 1763632000 + at}]
        elif style == "suffix":
            made = [counted | {f"{n}_train": v for n, v in trained.items()} | {f"{n}_val": v for n, v in evaluated.items()}]
        elif style == "list":
            made = [counted | {"scalars": [{"tag": n, "value": v} for n, v in trained.items()]}]
            log.points = {name: points for name, points in log.points.items() if not name.startswith("eval_")}
        else:
            made = [counted | trained | {f"val_{n}": v for n, v in evaluated.items()}]
        lines = [json.dumps(record) for record in made]
        if wrap == "message":
            lines = [json.dumps({"level": "info", "ts": 1763632000 + at, "msg": line}) for line in lines]
        elif wrap == "prefix":
            lines = [f"2026-11-20 10:{at // 60:02d}:{at % 60:02d} INFO metrics: {line}" for line in lines]
        log.lines += lines


KINDS: dict[str, Callable[[Log], None]] = {
    "phases": phases, "counters": counters, "tables": tables, "blocks": blocks, "records": records,
}  # fmt: skip


def drawn_log(number: int, seed: int) -> Log:
    """Draw the log of a number: the kinds come in turn."""
    kind = list(KINDS)[number % len(KINDS)]
    log = Log(random.Random(f"{seed}/{number}"), kind)  # noqa: S311 - no secret
    plain = kind in ("tables", "records")
    log.pick("noise", NOISE)
    log.pick("prefix", ("none",) if kind in ("tables", "records", "blocks") else list(PREFIXES))
    KINDS[kind](log)
    is_text = log.suffix == ".log" and not plain
    head, tail = (log.pick("head", HEADS), log.pick("tail", TAILS)) if is_text else ((), ())
    log.lines = [*head, *log.lines, *tail]
    return log


def misread(log: Log, run: Run) -> dict[str, str]:
    """Return what is read wrong, by canonical name: "missing", "phase", "steps" or "values"."""
    wrong = {}
    for name, points in log.points.items():
        steps, values = np.array(points).T
        series = _like(run, name)
        if series is None:
            twin = _like(run, name.removeprefix("eval_") if name.startswith("eval_") else f"eval_{name}")
            moved = twin is not None and bool(np.isin(np.round(values, 9), np.round(_in_unit(twin), 9)).mean() > 0.5)
            wrong[name] = "phase" if moved else "missing"
        elif len(series) != len(values) or not _are_equal(series, values, run.notes):
            wrong[name] = f"values ({len(series)} of {len(values)})"
        elif log.is_loose:
            wrong |= {} if bool(np.all(np.diff(series.step) > 0)) else {name: "steps"}
        elif log.kind == "counters" and not np.ptp(np.diff(series.step - steps)) < 1e-6:
            wrong[name] = "steps"
        elif log.kind != "counters" and not np.array_equal(series.step, steps):
            wrong[name] = "steps"
    return wrong


def _are_equal(series: Series, values: Floats, notes: Sequence[str]) -> bool:
    in_percent = any(note.endswith("in percent") and series.logged_as in note for note in notes)
    found = _in_unit(series) * (0.01 if in_percent and "accuracy" in series.name else 1.0)
    return np.allclose(found, values, rtol=1e-6, equal_nan=True)


def _in_unit(series: Series) -> Floats:
    return series.value * (series.role.factor if series.role is not None and series.role.name != series.name else 1.0)


def _like(run: Run, name: str) -> Series | None:
    role = role_of(name)
    if name in run.series or role is None:
        return run.series.get(name)
    return next(run.with_role(role.quantity, phase="eval" if name.startswith("eval_") else "train"), None)


def main() -> None:
    """Draw the logs, read them, and print what is read wrong."""
    parser = argparse.ArgumentParser(description="Read drawn logs and list what is read wrong.")
    parser.add_argument("--logs", type=int, default=300, help="logs that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument("--kind", choices=list(KINDS), help="logs of this kind alone")
    parser.add_argument("--show", type=int, help="print the log of this number and what is read of it")
    options = parser.parse_args()
    count, wrong_by, of_part = 0, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(options.logs) if options.show is None else [options.show]:
            log = drawn_log(number, options.seed)
            if options.kind not in (None, log.kind):
                continue
            path, count = Path(temporary) / f"run{log.suffix}", count + 1
            path.write_text("\n".join([*log.lines, ""]), encoding="utf-8")
            try:
                run = read_run(path)
                wrong, notes = misread(log, run), run.notes
            except InputError as error:
                wrong, notes, run = {"all": "refused"}, (str(error),), None
            if options.show is not None:
                print("\n".join(log.lines[:24]), run, notes, run and run.step_name, sep="\n")
                for name in log.points:
                    series = _like(run, name) if run else None
                    print(name, log.points[name][:5], series and (series.name, list(zip(series.step[:5], series.value[:5]))))
            parts = [log.kind, *(f"{log.kind}: {table} = {part}" for table, part in log.parts.items())]
            of_part.update(parts)
            if wrong:
                wrong_by.update(parts)
                said = f" | NOTES {' / '.join(notes)}"[:160] if notes else ""
                print(f"{number} {log.kind} {wrong} {log.parts}{said}", flush=True)
    for part, total in sorted(of_part.items(), key=lambda item: -wrong_by[item[0]] / item[1]):
        if wrong_by[part]:
            print(f"{wrong_by[part]:4d} of {total:4d}  {part}")
    print(f"{sum(wrong_by[kind] for kind in KINDS)} of {count} logs are misread")


if __name__ == "__main__":
    main()
