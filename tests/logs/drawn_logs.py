"""Logs drawn from tables of parts, and what of them is read wrong.

A whole log is a kind (lines of two phases, counters, tables, blocks, JSON lines) of drawn counters, names, forms of
numbers, and noise. A log of one form has a prefix, tag, counter, pairs, units and separators. Nothing is written by
hand for the reader, and no step equals the number of its line.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from math import exp
from typing import NamedTuple, TypeVar

import numpy as np

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.run import Run, Series

RECORDS = 60
"""Records of a log, about."""
NOTED = "steps, as a note says"
"""Of steps that are not read: the log counts something else, records stand in their order, and a note says so."""
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
    "6f": Form(lambda x: f"{x:.6f}"), "nan": Form(lambda x: f"{x:.4f}" if x > 2.05 else "NaN"),
    "-nan": Form(lambda x: f"{x:.4f}" if x > 2.05 else "-nan"),
    "tensor": Form(lambda x: f"tensor({x:.4f})"), "float": Form(lambda x: f"np.float32({x:.4f})", 1.0),
    "Infinity": Form(lambda x: f"{x:.4f}" if x > 2.02 else "Infinity"), "int": Form(lambda x: f"{x * 100:.0f}"),
    "inf": Form(lambda x: f"{x:.4f}" if x > 2.02 else "inf"),
    "-inf": Form(lambda x: f"{x:.4f}" if x > 2.02 else "-inf"),
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

    def pick(self, table: str, options: Mapping[str, T]) -> T:
        """Draw a part and remember its name."""
        return options[self.name(table, list(options))]

    def name(self, table: str, options: Sequence[str]) -> str:
        """Draw the name of a part and remember it."""
        self.parts[table] = self.draw.choice(options)
        return self.parts[table]

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


EVALUATIONS = {
    "same": ("{w}{c} {p}",), "first": ("{w}{c} {p}",), "own": ("{w}[25/25] {p}",), "epoch": ("{w}epoch {e} {p}",),
    "none": ("{w}{p}",), "behind": ("{c} {w}{p}",), "block": ("{w}", "{r}"), "headed": ("{w}at step {s}", "{r}"),
    "rounds": ("{w}[5/25] {b}", "{w}[15/25] {b}", "{w}[25/25] {p}"), "one line": (),
}  # fmt: skip
"""Lines of an evaluation: w is its word, c its counter, p its pairs, r a pair in each line, b a mean under way."""
PER_EPOCH = 10


def phases(log: Log) -> None:
    """Training lines and evaluation lines in turn."""
    values, steps = Values(log), _steps(log)
    names, pairing = log.draw.choice(NAMES[:2]), log.pick("pairing", PAIRING)
    counter, word, every = log.name("counter", STEPS), log.name("word", WORDS), log.draw.choice([3, 5, 10])
    lines, aside = log.pick("evaluation", EVALUATIONS), log.pick("aside", ASIDE)
    style, before = log.parts["evaluation"], log.pick("prefixed", {"no": "", "val_": "val_"})
    shown = "epoch {e} " if log.name("epochs", ("no", "yes")) == "yes" or style == "epoch" else ""
    every = PER_EPOCH if style == "epoch" else every

    def evaluate(at: int, step: int) -> None:
        texts = values.texts(step, steps[-1], "eval_")
        parts = {"w": word, "c": counter.format(step), "e": at // PER_EPOCH, "s": step, "b": f"{names['loss']} 9.5"}
        parts |= {"p": _pairs(names, texts, pairing, before)}
        for line in lines:
            rows = [f"  {before}{names[name]}{pairing[0]}{text}" for name, text in texts.items()]
            for row in rows if line == "{r}" else [line.format(**parts)]:
                log.lines.append(f"{log.prefix(at)}{row}")

    for at, step in enumerate(steps):
        if style == "first" and at == 0:
            evaluate(at, step)
        head = f"{log.prefix(at)}{shown.format(e=at // PER_EPOCH)}{counter.format(step)} "
        line = _pairs(names, values.texts(step, steps[-1]), pairing)
        if style == "one line":
            evaluated = _pairs(names, values.texts(step, steps[-1], "eval_"), pairing)
            log.lines.append(f"{head}train {line} {word.strip(' :-|')} {evaluated}")
            continue
        extra = aside.format(a=log.draw.uniform(80, 120), b=log.draw.uniform(1, 9), c=log.draw.randint(1, 59))
        log.lines.append(f"{head}{line}{pairing[1] + extra if extra else ''}")
        log.noisy(at)
        if at % every == every - 1:
            evaluate(at, step)


BATCHES = {
    "batch of": "Epoch {e}/9 batch {b}/{n}", "brackets": "epoch {e} [{b}/{n}]", "both": "Epoch [{e}/9], Step [{b}/{n}]",
    "lone": "epoch {e} batch {b}", "tutorial": "[{e}, {b:5d}]", "samples": "Train Epoch: {e} [{s}/{t} ({p:.0f}%)]",
    "heading": "  batch {b}/{n}", "heading bare": "  [{b}/{n}]", "colon": "E{e} | {b:4d}/{n} |",
    "lone i": "epoch: {e} i: {b}",
    "heading lone": "  batch {b}", "heading step": "  step {b} of {n}:", "words": "epoch {e}, batch {b} of {n}:",
    "percent": "Epoch {e} ({b}/{n}, {p:.1f}%)", "tuple": "({e}, {b})", "ep it": "ep {e:02d} it {b:05d}",
}  # fmt: skip
AXES = {
    "fraction": ("epoch {x:.4f}", "epoch"), "fraction json": ("epoch: {x:.2f}", "epoch"),
    "12k": ("step {k:g}k", "step"),
    "1.2M": ("step {m:.4f}M", "step"), "12,000": ("step {i:,}", "step"), "tokens": ("tokens {j:,}", "num_tokens"),
    "tokens M": ("tokens: {m:.4f}M", "num_tokens"), "samples": ("samples seen {i}", "num_samples"),
    "episode": ("episode {e}", "episode"), "episode of": ("Episode {e}/900:", "episode"),
    "epoch 0": ("Epoch {z}/60", "epoch"),
    "env": ("env_steps {i}", "step"), "timesteps": ("total_timesteps: {i}", "step"), "update": ("update {e}", "step"),
    "time": ("elapsed {y:.1f}s", "elapsed"), "frames": ("frames={i:,}", "step"),
    "consumed": ("consumed samples: {i}", "num_samples"), "round": ("round {e}:", "step"),
    "behind": ("{i} steps", "step"), "bracket": ("[{i} steps]", "step"), "slash": ("Steps: {i:,} / 900,000", "step"),
    "iters": ("Iters {i:08d}", "step"), "minutes": ("[{q:02d}m{w:02d}s]", "elapsed"),
    "word": ("iteration number {i}", "step"),
    "tr": ("train_step={i}", "step"), "global": ("global-step {i}", "step"), "at": ("@{i}", "step"),
    "gen": ("Generation {e}", "step"), "epoch": ("epoch {e:03d}:", "epoch"),
}  # fmt: skip


def counters(log: Log) -> None:
    """Counters of other sorts: batches that begin again in each epoch, thousands, tokens, episodes, time."""
    values, names, pairing = Values(log), log.draw.choice(NAMES), log.pick("pairing", PAIRING)
    if log.draw.random() < 0.5:
        name = log.name("axis", list(AXES))
        template, axis = AXES[name]
        first = 0 if name == "epoch 0" else 41
        for at in range(RECORDS):
            count = first + at * (1 if name.startswith("epoch") else 10)
            step = count * 100
            exact = {
                "x": count / 60,
                "k": step / 1000,
                "m": step / 1e6,
                "i": step,
                "j": step * 1024,
                "e": count,
                "z": count,
                "y": count * 1.5,
                "q": count // 6,
                "w": count % 6 * 10,
            }
            shown = template.format(**exact)
            number = re.search(r"\d[\d,.]*", shown)
            unit = {"k": 1000.0, "M": 1e6}.get(shown[-1], 1.0)
            known = float(number[0].rstrip(".").replace(",", "")) * unit if number else 0.0
            known = count * 10 if name == "minutes" else known
            log.lines.append(f"{log.prefix(at)}{shown} {_pairs(names, values.texts(known, 6000), pairing)}")
            log.noisy(at)
        log.parts["axis name"] = axis
        return
    name, base, epoch_base = log.name("batches", list(BATCHES)), log.draw.choice([0, 1]), log.draw.choice([0, 1])
    log.parts |= {"batch base": str(base), "epoch base": str(epoch_base)}
    total, every, size = (*log.draw.choice([(128, 20), (100, 10), (391, 50), (37, 5)]), 64)
    log.is_loose = name in ("lone", "tutorial", "lone i", "heading lone", "tuple", "ep it")
    per_epoch = (
        range(base, total + base, every) if log.draw.random() < 0.5 else range(every - 1 + base, total + base, every)
    )
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


COLUMNS = {
    "short": ("step", "loss", "val_loss", "acc", "lr", "time (s)"),
    "words": ("Step", "Training Loss", "Validation Loss", "Train Accuracy", "Learning Rate", "Time (ms)"),
    "places": ("iter", "train/loss", "val/loss", "train/acc", "lr", "mem/GiB"),
    "scaled": ("iteration", "train loss", "valid loss", "train acc", "lr [1e-3]", "time/s"),
}  # fmt: skip
KNOWN_AS = ("step", "loss", "eval_loss", "accuracy", "learning_rate", "")
SEPARATED = {"tabs": "\t", "semicolons": ";", "commas": ", ", "csv": ",", "bars": " | ", "markdown": " | "}
SUFFIXES = {"tabs": ".tsv", "semicolons": ".csv", "csv": ".csv"}
LAYOUTS = (*SEPARATED, "fixed", "fixed again", "rules", "pandas", "drawn", "two lines", "left")
BLANKS = ("", "-", "nan", "N/A", "--")


def tables(log: Log) -> None:
    """Tables in text or files of cells."""
    layout, names, values = log.name("layout", LAYOUTS), log.pick("columns", COLUMNS), Values(log)
    steps, every, blank = _steps(log), log.draw.choice([1, 5]), log.name("blank", BLANKS)
    blank = "-" if not blank and layout not in SEPARATED else blank
    chosen = [at for at, name in enumerate(KNOWN_AS) if name in ("step", "loss") or log.draw.random() < 0.7]
    forms = {"loss": LOSS["6f"] if layout in ("commas", "csv", "semicolons") else values.loss, "eval_loss": LOSS["4f"]}
    forms |= {"accuracy": ACCURACY["share"], "": LOSS["4f"], "step": Form(lambda x: f"{x:.0f}")}
    forms |= {"learning_rate": Form(lambda x: f"{x * 0.1:.4f}", 1e-3) if "[1e-3]" in names[4] else RATE["e"]}
    header, rows = [names[at] for at in chosen], []
    for at, step in enumerate(steps):
        cells = []
        for name in (KNOWN_AS[at] for at in chosen):
            text = str(step) if name == "step" else forms[name].text(log.level(step, steps[-1]))
            text = blank if name == "eval_loss" and at % every else text
            noted = name not in ("step", "") and text != blank
            cells.append(log.number(name, step, forms[name], text) if noted else text)
        rows.append(cells)
    if log.name("comment", ("no", "yes")) == "yes":
        log.lines += ["# run 7 of 2026-11-20", "# batch_size: 32"]
    if layout in SEPARATED:
        if layout in SUFFIXES and log.name("index", ("no", "yes")) == "yes":
            header, rows = ["", *header], [[str(at), *row] for at, row in enumerate(rows)]
        log.suffix = SUFFIXES.get(layout, ".log")
        log.lines += _separated(layout, header, rows)
    else:
        _in_columns(log, layout, header, rows)


def _separated(layout: str, header: list[str], rows: list[list[str]]) -> list[str]:
    if layout == "semicolons":
        rows = [[cell.replace(".", ",") for cell in row] for row in rows]
    lines = [SEPARATED[layout].join(row) for row in [header, *rows]]
    if layout != "markdown":
        return lines
    return [f"| {lines[0]} |", "|" + "---|" * len(header), *(f"| {line} |" for line in lines[1:])]


def _in_columns(log: Log, layout: str, header: list[str], rows: list[list[str]]) -> None:
    width = max(len(cell) for row in [header, *rows] for cell in row) + 2
    above, side = list[str](), "│" if layout == "drawn" else ""
    if layout == "two lines":
        parted = [name.rpartition(" " if " " in name else "/") for name in header]
        above, header = ["".join(name.rjust(width) for name, _, _ in parted)], [name for _, _, name in parted]

    def line(cells: list[str], index: str) -> str:
        if layout == "left":
            return "".join(cell.ljust(width) for cell in cells).rstrip()
        cells = [f"{cell} ".rjust(width) if side else cell.rjust(width) for cell in cells]
        return (index.ljust(4) if layout == "pandas" else "") + side + side.join(cells) + side

    is_ruled = log.name("second line", ("no", "yes")) == "yes" or layout == "rules"
    for at, row in enumerate(rows):
        if at == 0 or (layout == "fixed again" and at % 20 == 0):
            log.lines += [*above, line(header, ""), *(["-" * width * len(header)] if is_ruled else [])]
        log.lines.append(line(row, str(at)))
        log.noisy(at)


Pairs = Mapping[str, str]


def _items(pairs: Pairs) -> list[str]:
    return [f"{name}: {text}" for name, text in pairs.items()]


def _by_phase(pairs: Pairs) -> list[tuple[str, dict[str, str]]]:
    """Return what is of training and what of evaluation, without the counter."""
    parts = {
        phase: {n.removeprefix("val_"): x for n, x in [*pairs.items()][1:] if n.startswith("val_") == (phase == "val")}
        for phase in ("train", "val")
    }
    return [(phase, part) for phase, part in parts.items() if part]


def _json(pairs: Pairs) -> list[str]:
    return json.dumps({name: _value(text) for name, text in pairs.items()}, indent=2).split("\n")


def _sections(pairs: Pairs) -> list[str]:
    words = {"train": "Train:", "val": "Validation:"}
    rows = [[words[phase], *(f"  {item}" for item in _items(part))] for phase, part in _by_phase(pairs)]
    return [" ".join(next(iter(pairs.items()))), *chain(*rows)]


def _yaml_phases(pairs: Pairs) -> list[str]:
    rows = [[f"{phase}:", *(f"  {n}: {_plain(x)}" for n, x in part.items())] for phase, part in _by_phase(pairs)]
    return ["---", _items(pairs)[0], *chain(*rows)]


def _json_phases(pairs: Pairs) -> list[str]:
    phases = {phase: {name: _value(text) for name, text in part.items()} for phase, part in _by_phase(pairs)}
    name, step = next(iter(pairs.items()))
    return json.dumps({name: int(step), **phases}, indent=2).split("\n")


BLOCKS: dict[str, Callable[[Pairs], list[str]]] = {
    "blank": lambda pairs: [*_items(pairs), ""],
    "rule": lambda pairs: [*_items(pairs), "-" * 40],
    "box": lambda pairs: [
        "+" + "-" * 30 + "+",
        *(f"| {n:14s} | {x:11s} |" for n, x in pairs.items()),
        "+" + "-" * 30 + "+",
    ],
    "unicode box": lambda pairs: [
        "╭" + "─" * 30 + "╮",
        *(f"│ {n:14s} │ {x:11s} │" for n, x in pairs.items()),
        "╰" + "─" * 30 + "╯",
    ],
    "json": _json,
    "json phases": _json_phases,
    "python": lambda pairs: [
        line.replace('"', "'").replace("NaN", "nan").replace("Infinity", "inf") for line in _json(pairs)
    ],
    "yaml documents": lambda pairs: ["---", *(f"{name}: {_plain(text)}" for name, text in pairs.items())],
    "yaml list": lambda pairs: [f"{'  ' if at else '- '}{n}: {_plain(x)}" for at, (n, x) in enumerate(pairs.items())],
    "yaml phases": _yaml_phases,
    "heading": lambda pairs: [f"==== {' '.join(next(iter(pairs.items())))} ====", *_items(pairs)[1:]],
    "indented": lambda pairs: [f"{' '.join(next(iter(pairs.items())))}:", *(f"  {item}" for item in _items(pairs)[1:])],
    "sections": _sections,
    "dots": lambda pairs: [*(f"{name} {'.' * (20 - len(name))} {text}" for name, text in pairs.items()), ""],
    "columns": lambda pairs: [*(f"{name:20s}{text}" for name, text in pairs.items()), "-" * 40],
}


def blocks(log: Log) -> None:
    """Records over several lines."""
    block, values, steps, names = log.pick("block", BLOCKS), Values(log), _steps(log), log.draw.choice(NAMES)
    style, step_name = log.parts["block"], log.name("step name", ("step", "iteration", "global_step", "Step"))
    evaluates, bare = (
        log.name("evaluates", ("no", "yes")) == "yes",
        style.startswith(("json", "yaml", "python")) or "box" in style,
    )
    log.suffix = ".yaml" if style.startswith("yaml") else ".log"
    for at, step in enumerate(steps):
        texts = values.texts(step, steps[-1], bare=bare)
        pairs = {step_name: str(step)} | {names[name]: text for name, text in texts.items()}
        drawn = values.texts(step, steps[-1], "eval_", bare=bare) if evaluates else {}
        log.lines += block(pairs | {f"val_{NAMES[0][name]}": text for name, text in drawn.items()})
        if log.suffix == ".log":
            log.noisy(at)


def _value(text: str) -> object:
    """Return what JSON holds of a text: a number, or the text where it has a unit."""
    return text if not _NUMBER.fullmatch(text) else float(text.replace(",", ""))


def _plain(text: str) -> str:
    return json.dumps(text) if text.endswith("%") or "," in text else text


Fields = dict[str, object]


def _marked(mark: str) -> Callable[[Fields, Fields, Fields], list[Fields]]:
    return lambda at, trained, evaluated: [
        at | {f"train{mark}{n}": v for n, v in trained.items()} | {f"val{mark}{n}": v for n, v in evaluated.items()}
    ]


def _apart(field: str, train: str, held_out: str) -> Callable[[Fields, Fields, Fields], list[Fields]]:
    return lambda at, trained, evaluated: [
        at | {field: train} | trained,
        *([at | {field: held_out} | evaluated] if evaluated else []),
    ]


KEYS = (
    "step", "global_step", "it", "iter", "n", "i", "t", "update", "num_timesteps", "trainer/global_step", "iteration",
)  # fmt: skip
NESTING: dict[str, Callable[[Fields, Fields, Fields], list[Fields]]] = {
    "flat /": _marked("/"), "flat .": _marked("."), "flat _": _marked("_"),
    "plain": lambda at, trained, evaluated: [at | trained | {f"val_{n}": v for n, v in evaluated.items()}],
    "suffix": lambda at, trained, evaluated: [
        at | {f"{n}_train": v for n, v in trained.items()} | {f"{n}_val": v for n, v in evaluated.items()}
    ],
    "by phase": lambda at, trained, evaluated: [at | {"train": trained} | ({"val": evaluated} if evaluated else {})],
    "by metric": lambda at, trained, evaluated: [
        at | {n: {"train": v} | ({"val": evaluated[n]} if n in evaluated else {}) for n, v in trained.items()}
    ],
    "nulls": lambda at, trained,
    evaluated: [at | trained | {f"val_{n}": evaluated.get(n) for n in trained if n in ("loss", "acc")}],
    "envelope": lambda at, trained, evaluated: [
        at | {"metrics": trained | {f"val_{n}": v for n, v in evaluated.items()}, "time": 1_763_632_000.5}
    ],
    "long": lambda at, trained,
    evaluated: [{"name": n, "value": v} | at for n, v in _marked("/")({}, trained, evaluated)[0].items()],
    "list": lambda at, trained, evaluated: [
        at | {"scalars": [{"tag": n, "value": v} for n, v in _marked("/")({}, trained, evaluated)[0].items()]}
    ],
    "split": _apart("split", "train", "val"), "phase": _apart("phase", "TRAIN", "VALID"),
    "mode": _apart("mode", "training", "evaluation"), "kind": _apart("kind", "train", "test"),
    "event": _apart("event", "train_step", "validation_end"), "type": _apart("type", "train", "dev"),
}  # fmt: skip


def records(log: Log) -> None:
    """JSON lines: nested or flat, in one record or one for each metric."""
    made, key, steps, values = log.pick("nesting", NESTING), log.name("key", KEYS), _steps(log), Values(log)
    as_text, wrap = log.name("strings", ("no", "yes")) == "yes", log.name("wrap", ("no", "no", "prefix", "message"))
    every, log.suffix = log.draw.choice([1, 5]), ".jsonl" if wrap == "no" else ".log"
    for at, step in enumerate(steps):
        drawn = values.texts(step, steps[-1], "eval_", bare=True) if at % every == 0 else {}
        trained, evaluated = (
            {NAMES[0][name]: text if as_text else _value(text) for name, text in texts.items()}
            for texts in (values.texts(step, steps[-1], bare=True), drawn)
        )
        for record in made({key: str(step) if as_text else step}, trained, evaluated):
            line = json.dumps(record)
            if wrap == "message":
                line = json.dumps({"level": "info", "ts": 1_763_632_000 + at, "msg": line})
            log.lines.append(
                f"2026-11-20 10:{at // 60:02d}:{at % 60:02d} INFO metrics: {line}" if wrap == "prefix" else line
            )


KINDS: dict[str, Callable[[Log], None]] = {
    "phases": phases, "counters": counters, "tables": tables, "blocks": blocks, "records": records,
}  # fmt: skip


def drawn_log(number: int, seed: int) -> Log:
    """Draw the log of a number: the kinds come in turn."""
    kind = list(KINDS)[number % len(KINDS)]
    log = Log(random.Random(f"{seed}/{number}"), kind)
    plain = kind in ("tables", "records")
    log.pick("noise", NOISE)
    log.name("prefix", ["none"] if kind in ("tables", "records", "blocks") else list(PREFIXES))
    KINDS[kind](log)
    is_text = log.suffix == ".log" and not plain
    head, tail = (log.pick("head", HEADS), log.pick("tail", TAILS)) if is_text else ((), ())
    log.lines = [*head, *log.lines, *tail]
    return log


# --- lines of one form ------------------------------------------------------------------------------------------------

FIRST, EVERY = 41, 10
"""The step of the first line, and the steps between lines: a reader that counts lines instead has other steps."""
TOTAL = 1_000_000
"""Steps that the counters count to."""
EPOCH = 10_000
"""Steps of an epoch."""

# Templates: `step` is the step, `clock` and `fraction` are the time, `total` the steps, `epoch` counts from 0.

LINE_PREFIXES = (
    "", "2026-11-20 {clock},{fraction:03d} - INFO - ", "2026-11-20 {clock},{fraction:03d} - INFO - train.py:88 - ",
    "2026-11-20 {clock},{fraction:03d} - my.trainer - INFO - ", "[2026-11-20 {clock}] ",
    "[2026-11-20 {clock},{fraction:03d}][root][INFO] - ", "[2026-11-20 {clock} vit] (main.py 92): INFO ",
    "INFO:trainer:", "{clock} ", "[{clock}] INFO ", "[{clock}.{fraction:03d}] ", "2026-11-20T{clock}.{fraction:03d}Z ",
    "2026-11-20T{clock}+00:00 ", "I1120 {clock}.{fraction:06d} 140212 train.py:88] ",
    "2026-11-20 {clock}.{fraction:03d} | INFO     | __main__:train:88 - ", "2026/11/20 {clock} INFO ",
    "11/20/2026 {clock} - INFO - __main__ - ", "Nov 20 {clock} node-7 python[4121]: ", "Fri Nov 20 {clock} 2026 ",
    "\x1b[32m2026-11-20 {clock}\x1b[0m | ", "{seconds}.{fraction:03d} ", "[{seconds}.{fraction:03d}] ",
    "{seconds}.1s {step} ", "[INFO|trainer.py:88] 2026-11-20 {clock},{fraction:03d} >> ",
)  # fmt: skip
TAGS = ("", "[rank0] ", "[rank0]: ", "[0]: ", "0: ", "[train] ", "(Worker pid=1234) ", "rank=0 ", "[GPU 0] ")
COUNTERS = (
    "step {step}", "step: {step}", "step={step}", "Iter [{step}/{total}]", "iteration {step:6d}/{total:6d}",
    "global_step: {step}", "epoch: {epoch}, step: {step}", "Step [{step}/{total}]", "step: {step:,}",
    "epoch {epoch} | step {step}", "[{step}/{total}]", "step {step:06d}", "[{step}]", "({step}/{total})",
    "{step}/{total}", "({step})", "<{step}>", "#{step}", "{step}it", "i={step}", "n_iter {step}", "[it {step}/{total}]",
    "step {step} of {total}", "global step {step:,}",
)  # fmt: skip


def _printed(template: str, step: int) -> str:
    minutes, seconds = divmod(step, 60)
    hours, minutes = divmod(minutes, 60)
    clock, fraction = f"{hours % 24:02d}:{minutes:02d}:{seconds:02d}", step * 37 % 1000
    return template.format(
        clock=clock, fraction=fraction, seconds=1_763_632_000 + step, step=step, total=TOTAL, epoch=(step - 1) // EPOCH
    )


class Value(NamedTuple):
    """A number as it is printed: the name before it, the name under which a reader keeps it, and its form."""

    name: str
    known_as: str
    form: Form


LOSSES = (
    Value("loss", "loss", Form(lambda value: f"{value:.4f}")),
    Value("train_loss", "loss", Form(lambda value: f"{value:.6f}")),
    Value("loss", "loss", Form(lambda value: f"{value:.4e}")),
    Value("Loss", "loss", Form(lambda value: f"{value:.3f}")),
)
RATES = (
    Value("lr", "learning_rate", Form(lambda value: f"{value * 1e-4:.3e}")),
    Value("learning_rate", "learning_rate", Form(lambda value: f"{value * 1e-4:.8f}")),
)
OTHERS = (
    Value("grad_norm", "grad_norm", Form(lambda value: f"{value:.3f}")),
    Value("grad_norm", "grad_norm", Form(lambda value: "nan" if value > 4.99 else f"{value:.3f}")),
    Value("eta", "", Form(lambda value: f"{1 + int(value)}:{int(value * 11):02d}:{int(value * 7):02d}")),
    Value("acc", "accuracy", Form(lambda value: f"{value * 15:.2f}%", 0.01)),
    Value("tokens/s", "tokens/s", Form(lambda value: f"{value * 20_000:,.0f}")),
    Value("time", "", Form(lambda value: f"{value:.3f}s")),
    Value("mem", "", Form(lambda value: f"{value * 9:.2f}GiB")),
    Value("acc", "accuracy", Form(lambda value: f"{value / 6:.4f}")),
    Value("dt", "", Form(lambda value: f"{value * 120:.2f}ms")),
    Value("ppl", "ppl", Form(lambda value: f"{value * 10:.2f}")),
    Value("wps", "", Form(lambda value: f"{value * 12:.1f}k")),
    Value("loss_scale", "loss_scale", Form(lambda value: f"{2 ** int(value * 3)}")),
    Value("tps", "", Form(lambda value: f"{value * 3000:.0f}")),
)
SEPARATORS = (
    ("=", " "), (": ", ", "), (" ", ", "), (": ", " | "), ("=", ", "), (": ", " "), (" = ", ", "), (":", " "),
    ("=", "\t"), (": ", "; "), (": ", " - "), (" ", "  "), (" : ", " , "),
)  # fmt: skip
BEHIND_COUNTER = (" ", ", ", " | ", ": ", " - ")


@dataclass(frozen=True)
class Shape:
    """One way to print a record in a line."""

    name: str
    head: str
    values: tuple[Value, ...]
    separators: tuple[str, str]

    def log(self, count: int) -> Log:
        """Return a log of so many lines, the first of step `FIRST`."""
        log = Log(random.Random(self.name), "lines")
        to_value, between = self.separators
        for step in range(FIRST, FIRST + count * EVERY, EVERY):
            texts = []
            for value in self.values:
                text = value.form.text(2 + 3 * exp(-step / 30_000) * log.draw.random())
                texts.append(f"{value.name}{to_value}{text}")
                if value.known_as:
                    log.number(value.known_as, step, value.form, text)
            log.lines.append(_printed(self.head, step) + between.join(texts))
        return log


def shapes(count: int, seed: int = 0) -> list[Shape]:
    """Return that many shapes; each prefix meets each tag before any pair of both comes again.

    Args:
        count: How many.
        seed: Of the draw of everything else.
    """
    draw = random.Random(seed)
    heads = list(product(LINE_PREFIXES, TAGS))
    draw.shuffle(heads)
    drawn = (head for _ in range(1 + count // len(heads)) for head in heads)
    return [_shape(number, *head, draw) for number, head in enumerate(islice(drawn, count))]


def _shape(number: int, prefix: str, tag: str, draw: random.Random) -> Shape:
    counter, separators = draw.choice(COUNTERS), draw.choice(SEPARATORS)
    values = [draw.choice(LOSSES), draw.choice(RATES)]
    for value in draw.sample(OTHERS, draw.randint(0, 5)):
        if all(value.name != other.name for other in values):
            values.append(value)
    draw.shuffle(values)
    head = prefix + tag + counter + draw.choice(BEHIND_COUNTER)
    return Shape(
        f"{number}: {head}{separators[0].join(('name', 'value'))}{separators[1]}", head, tuple(values), separators
    )


# --- what is read wrong ----------------------------------------------------------------------------------------------


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
        elif not _are_steps(log, series.step, steps):
            wrong[name] = NOTED if any("records are counted instead" in note for note in run.notes) else "steps"
    return wrong


def _are_steps(log: Log, read_at: Floats, steps: Floats) -> bool:
    """Say whether steps are those that the log states; where batches begin anew, but for where the first begins."""
    if log.is_loose:
        return bool(np.all(np.diff(read_at) > 0))
    return bool(np.ptp(read_at - steps) < 1e-6) if log.kind == "counters" else bool(np.array_equal(read_at, steps))


def _are_equal(series: Series, values: Floats, notes: Sequence[str]) -> bool:
    in_percent = any(note.endswith("in percent") and series.logged_as in note for note in notes)
    found = _in_unit(series) * (0.01 if in_percent and "accuracy" in series.name else 1.0)
    return np.allclose(found, values, rtol=1e-9, equal_nan=True)


def _in_unit(series: Series) -> Floats:
    return series.value * (series.role.factor if series.role is not None and series.role.name != series.name else 1.0)


def _like(run: Run, name: str) -> Series | None:
    role = role_of(name)
    if name in run.series or role is None:
        return run.series.get(name)
    return next(run.with_role(role.quantity, phase="eval" if name.startswith("eval_") else "train"), None)
