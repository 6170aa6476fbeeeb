"""How fast text is read, compared with a bare Python loop that finds the numbers of each line.

    python -m benchmarks.logs.text_speed [--shapes 300] [--sample N] [--lines 30000] [--seed 0]

The shapes are drawn. Each value that is read is checked against what the generator wrote. `ratio`
is the CPU time of reading a log, divided by that of the loop, in one process that has imported everything.

A shape is a prefix, tag, counter, pairs, units and separators; none is written by hand for the reader. Each line comes
with the values that it prints.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from math import exp
from pathlib import Path

import numpy as np

from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.run import Run

FIRST, EVERY = 41, 10
"""The step of the first line, and the steps between lines: a reader that counts lines instead has other steps."""
TOTAL = 1_000_000
"""Steps that the counters count to."""
EPOCH = 10_000
"""Steps of an epoch."""

# Templates: `step` is the step, `clock` and `fraction` are the time, `total` the steps, `epoch` counts from 0.

PREFIXES = (
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


@dataclass(frozen=True)
class Value:
    """A number as it is printed.

    Args:
        name: The name that is printed.
        known_as: The name under which a reader keeps it.
        text: The number as text, with its unit.
        factor: What the number before the unit is multiplied with.
    """

    name: str
    known_as: str
    text: Callable[[float], str]
    factor: float = 1.0


LOSSES = (
    Value("loss", "loss", lambda value: f"{value:.4f}"),
    Value("train_loss", "loss", lambda value: f"{value:.6f}"),
    Value("loss", "loss", lambda value: f"{value:.4e}"),
    Value("Loss", "loss", lambda value: f"{value:.3f}"),
)
RATES = (
    Value("lr", "learning_rate", lambda value: f"{value * 1e-4:.3e}"),
    Value("learning_rate", "learning_rate", lambda value: f"{value * 1e-4:.8f}"),
)
OTHERS = (
    Value("grad_norm", "grad_norm", lambda value: f"{value:.3f}"),
    Value("grad_norm", "grad_norm", lambda value: "nan" if value > 4.99 else f"{value:.3f}"),
    Value("eta", "", lambda value: f"{1 + int(value)}:{int(value * 11):02d}:{int(value * 7):02d}"),
    Value("acc", "accuracy", lambda value: f"{value * 15:.2f}%", 0.01),
    Value("tokens/s", "tokens/s", lambda value: f"{value * 20_000:,.0f}"),
    Value("time", "", lambda value: f"{value:.3f}s"),
    Value("mem", "", lambda value: f"{value * 9:.2f}GiB"),
    Value("acc", "accuracy", lambda value: f"{value / 6:.4f}"),
    Value("dt", "", lambda value: f"{value * 120:.2f}ms"),
    Value("ppl", "ppl", lambda value: f"{value * 10:.2f}"),
    Value("wps", "", lambda value: f"{value * 12:.1f}k"),
    Value("loss_scale", "loss_scale", lambda value: f"{2 ** int(value * 3)}"),
    Value("tps", "", lambda value: f"{value * 3000:.0f}"),
)
SEPARATORS = (
    ("=", " "), (": ", ", "), (" ", ", "), (": ", " | "), ("=", ", "), (": ", " "), (" = ", ", "), (":", " "),
    ("=", "\t"), (": ", "; "), (": ", " - "), (" ", "  "), (" : ", " , "),
)  # fmt: skip
BEHIND_COUNTER = (" ", ", ", " | ", ": ", " - ")


@dataclass(frozen=True)
class Line:
    """A line, and the values that it prints by the name under which a reader keeps them, its step among them."""

    text: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Shape:
    """One way to print a record."""

    name: str
    head: str
    values: tuple[Value, ...]
    separators: tuple[str, str]

    def lines(self, count: int) -> Iterator[Line]:
        """Yield lines, the first of step `FIRST`."""
        draw = random.Random(self.name)  # noqa: S311 - no secret
        to_value, between = self.separators
        for step in range(FIRST, FIRST + count * EVERY, EVERY):
            texts, values = [], {"step": float(step)}
            for value in self.values:
                drawn = 2 + 3 * exp(-step / 30_000) * draw.random()
                text = value.text(drawn)
                texts.append(f"{value.name}{to_value}{text}")
                if value.known_as:
                    values[value.known_as] = _number(text) * value.factor
            yield Line(_printed(self.head, step) + between.join(texts), values)


def _number(text: str) -> float:
    return float(text.replace(",", "").rstrip("%"))


def shapes(count: int, seed: int = 0) -> list[Shape]:
    """Return that many shapes; each prefix meets each tag before any pair of both comes again.

    Args:
        count: How many.
        seed: Of the draw of everything else.
    """
    draw = random.Random(seed)  # noqa: S311 - no secret
    heads = list(product(PREFIXES, TAGS))
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


WORST, MEDIAN = 1.0, 0.5
"""The largest ratio of any shape, and the median of all, that are asked for."""
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def seconds(work: Callable[[], object], repeat: int = 2) -> float:
    """Return the CPU seconds of the fastest of some runs."""
    took = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


def loop(path: Path) -> int:
    """Find the numbers of each line as a short script does."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return sum(len([float(number) for number in _NUMBER.findall(line)]) for line in file)


def wrong_values(run: Run, lines: Sequence[Line]) -> list[str]:
    """Return the names of metrics whose values differ from those that were printed, at any step."""
    wrong = []
    steps = np.array([line.values["step"] for line in lines])
    for name in lines[0].values.keys() - {"step"}:
        printed = np.array([line.values[name] for line in lines])
        series = run.series.get(name)
        if series is None or len(series) != len(lines):
            wrong.append(f"{name} ({0 if series is None else len(series)} of {len(lines)})")
        elif not (np.array_equal(series.step, steps) and np.allclose(series.value, printed, rtol=1e-9, equal_nan=True)):
            wrong.append(f"{name} (values)")
    return wrong


def measure(shape: Shape, path: Path, count: int) -> tuple[float, list[str]]:
    """Write a log of a shape; return the ratio of its reading, and what was read wrong."""
    lines = list(shape.lines(count))
    path.write_text("".join(f"{line.text}\n" for line in lines), encoding="utf-8")
    wrong = wrong_values(read_run(path), lines)
    return seconds(partial(read_run, path)) / seconds(partial(loop, path)), wrong


def main() -> None:
    """Make the logs and print the table."""
    parser = argparse.ArgumentParser(description="Measure how fast text is read.")
    parser.add_argument("--shapes", type=int, default=300, help="shapes that are drawn")
    parser.add_argument("--sample", type=int, help="measure every so many-th shape only, so that N are measured")
    parser.add_argument("--lines", type=int, default=30_000, help="lines of each log")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    options = parser.parse_args()
    drawn = shapes(options.shapes, options.seed)
    chosen = drawn[:: max(1, len(drawn) // options.sample)][: options.sample] if options.sample else drawn
    ratios, misread = [], 0
    with tempfile.TemporaryDirectory() as temporary:
        for shape in chosen:
            ratio, wrong = measure(shape, Path(temporary) / "run.log", options.lines)
            ratios.append(ratio)
            misread += bool(wrong)
            print(f"{ratio:7.2f}  {shape.name}{'  WRONG: ' + ', '.join(sorted(wrong)) if wrong else ''}", flush=True)
    print(f"{len(ratios)} shapes: worst ratio {max(ratios):.2f} (asked for: {WORST}),")
    print(f"median {statistics.median(ratios):.2f} (asked for: {MEDIAN}); {misread} shapes read wrong")


if __name__ == "__main__":
    main()
