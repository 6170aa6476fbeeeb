"""How fast text logs of any shape are read, beside a bare Python loop that finds the numbers of each line.

    python -m benchmarks.logs.text_speed [--shapes N] [--lines N] [--seed N]

Shapes are drawn from a grammar: prefix x level x place x rank x counter x pairs x separators x units. None was written
for the reader. Each value that is read is compared with what the generator wrote. The ratio is CPU time of reading the
file to CPU time of the loop, `re.findall` and `float` over all lines, in one process.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from mldebug_mcp.logs.read import read_run

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
LINES = 30_000
SHAPES = 300
SHOWN = 12
WARM = 200
"""Lines that are read first, so that no import is counted."""


def _clock(step: int, rng: random.Random) -> tuple[int, int, int, int]:
    return 8 + step // 3600 % 12, step // 60 % 60, step % 60, rng.randrange(1000)


PREFIXES: dict[str, Callable[[int, random.Random], str]] = {
    "": lambda _step, _rng: "",
    "2026-11-20 10:00:01,123": lambda step, rng: "2026-11-20 {:02}:{:02}:{:02},{:03} ".format(*_clock(step, rng)),
    "[2026-11-20 10:00:01]": lambda step, rng: "[2026-11-20 {:02}:{:02}:{:02}] ".format(*_clock(step, rng)),
    "2026-11-20T10:00:01Z": lambda step, rng: "2026-11-20T{:02}:{:02}:{:02}Z ".format(*_clock(step, rng)),
    "[10:00:01]": lambda step, rng: "[{:02}:{:02}:{:02}] ".format(*_clock(step, rng)),
    "[11/20 10:00:01]": lambda step, rng: "[11/20 {:02}:{:02}:{:02}] ".format(*_clock(step, rng)),
    "I1120 10:00:01.123456": lambda step, rng: "I1120 {:02}:{:02}:{:02}.{:03}456 4242 ".format(*_clock(step, rng)),
}
LEVELS = ("", "- INFO - ", "INFO: ", "[INFO] ", "| INFO | ")
PLACES: dict[str, Callable[[random.Random], str]] = {
    "": lambda _rng: "",
    "train.py:88": lambda _rng: "train.py:88 - ",
    "[trainer.py:120]": lambda _rng: "[trainer.py:120] ",
}
RANKS: dict[str, Callable[[random.Random], str]] = {
    "": lambda _rng: "",
    "[rank0]": lambda _rng: "[rank0] ",
    "[default0]:": lambda _rng: "[default0]:",
    "rank 0:": lambda _rng: "rank 0: ",
}
COUNTERS: dict[str, Callable[[int, int], str]] = {
    "step 17": lambda step, _last: f"step {step}",
    "step=17": lambda step, _last: f"step={step}",
    "Step: 17/30000": lambda step, last: f"Step: {step}/{last}",
    "Iter [17/30000]": lambda step, last: f"Iter [{step}/{last}]",
    "iteration 17/ 30000": lambda step, last: f"iteration {step:8d}/{last:8d}",
    "Epoch 0 step 17": lambda step, _last: f"Epoch 0 step {step}",
    "global_step: 17": lambda step, _last: f"global_step: {step}",
}
PAIRS = {": , ": (": ", ", "), "= ": ("=", " "), ": | ": (": ", " | "), "  | ": (" ", " | "), "=, ": ("=", ", ")}
AFTER = (" ", " | ", ": ", ", ")


@dataclass(frozen=True)
class Quantity:
    """A quantity of a line: how it is printed, and what is read of it."""

    name: str
    text: Callable[[float], str]
    draw: Callable[[int, random.Random], float]
    read_as: str = ""
    factor: float = 1.0


def _eta(value: float) -> str:
    return f"{int(value) // 3600}:{int(value) // 60 % 60:02}:{int(value) % 60:02}"


QUANTITIES = (
    Quantity("loss", lambda v: f"{v:.4f}", lambda s, r: 3 / (1 + s / 3000) + r.uniform(0, 0.1), "loss"),
    Quantity("lr", lambda v: f"{v:.3e}", lambda s, r: 1e-4 * (1 + s % 977) + 0 * r.random(), "learning_rate"),
    Quantity("grad_norm", lambda v: f"{v:.3f}", lambda _s, r: r.uniform(0.1, 30), "grad_norm"),
    Quantity("acc", lambda v: f"{v:.2f}%", lambda _s, r: r.uniform(0, 100)),
    Quantity("time", lambda v: f"{v:.3f}s", lambda _s, r: r.uniform(0.1, 0.9)),
    Quantity("data_time", lambda v: f"{v:.3f}", lambda _s, r: r.uniform(0.001, 0.1), "data_time"),
    Quantity("mem", lambda v: f"{v:.1f}GB", lambda _s, r: r.uniform(9, 30)),
    Quantity("tokens_per_sec", lambda v: f"{v:,.0f}", lambda _s, r: r.uniform(900, 120_000)),
    Quantity("eta", _eta, lambda _s, r: r.uniform(0, 36_000)),
    Quantity("aux_loss", lambda v: f"{v:.5f}", lambda _s, r: r.uniform(0, 0.5)),
)


@dataclass(frozen=True)
class Form:
    """A shape of lines."""

    prefix: str
    level: str
    place: str
    rank: str
    counter: str
    after: str
    pairs: str
    quantities: tuple[Quantity, ...]

    def lines(self, count: int, rng: random.Random, wrote: dict[str, list[float]]) -> Iterator[str]:
        """Yield lines; what they say goes into `wrote` by the name that it is read under."""
        middle, between = PAIRS[self.pairs]
        for step in range(1, count + 1):
            parts = []
            for quantity in self.quantities:
                text = quantity.text(quantity.draw(step, rng))
                parts.append(f"{quantity.name}{middle}{text}")
                if quantity.read_as:
                    wrote.setdefault(quantity.read_as, []).append(float(text))
            head = f"{PREFIXES[self.prefix](step, rng)}{self.level}{PLACES[self.place](rng)}{RANKS[self.rank](rng)}"
            yield f"{head}{COUNTERS[self.counter](step, count)}{self.after}{between.join(parts)}"

    def __str__(self) -> str:
        return next(self.lines(1, random.Random(0), {}))  # noqa: S311 - an example


def draw(rng: random.Random) -> Form:
    """Return a shape that was drawn from the grammar."""
    others = rng.sample(QUANTITIES[1:], rng.randint(1, 6))
    level = rng.choice(LEVELS) if rng.random() < 0.8 else ""
    return Form(
        rng.choice(list(PREFIXES)), level, rng.choice(list(PLACES)), rng.choice(list(RANKS)),
        rng.choice(list(COUNTERS)), rng.choice(AFTER), rng.choice(list(PAIRS)), (QUANTITIES[0], *others),
    )  # fmt: skip


@dataclass(frozen=True)
class Timed:
    """How fast a shape was read, and what was read wrongly."""

    form: Form
    ratio: float
    wrong: tuple[str, ...]


def time_form(form: Form, count: int, rng: random.Random, folder: Path) -> Timed:
    """Read a file of a shape beside the bare loop."""
    wrote: dict[str, list[float]] = {}
    text = "\n".join(form.lines(count, rng, wrote)) + "\n"
    file = folder / "train.log"
    file.write_text(text, encoding="utf-8")
    began = time.process_time()
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            for number in NUMBER.findall(line):
                float(number)
    bare = time.process_time() - began
    began = time.process_time()
    run = read_run(file)
    taken = time.process_time() - began
    wrong = [name for name, values in wrote.items() if not _same(run, name, values)]
    return Timed(form, taken / bare, tuple(wrong))


def _same(run: object, name: str, values: list[float]) -> bool:
    series = run.series.get(name)  # type: ignore[attr-defined]
    return series is not None and len(series) == len(values) and bool(np.array_equal(series.value, np.array(values)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser("benchmarks.logs.text_speed", description=__doc__)
    parser.add_argument("--shapes", type=int, default=SHAPES)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)  # noqa: S311 - a draw that can be repeated
    with tempfile.TemporaryDirectory() as folder:
        time_form(draw(rng), WARM, rng, Path(folder))
        found = [time_form(draw(rng), asked.lines, rng, Path(folder)) for _ in range(asked.shapes)]
    found.sort(key=lambda one: -one.ratio)
    ratios = [one.ratio for one in found]
    print(f"{len(found)} shapes of {asked.lines} lines: worst {ratios[0]:.2f}, ", end="")
    print(f"above 1: {sum(ratio > 1 for ratio in ratios)}, median {median(ratios):.2f}, best {ratios[-1]:.2f}")
    wrong = [one for one in found if one.wrong]
    print(f"read otherwise than written: {len(wrong)}")
    for one in found[:SHOWN]:
        print(f"  {one.ratio:6.2f}  {one.form}")
    for one in wrong[:SHOWN]:
        print(f"  wrong {', '.join(one.wrong)}: {one.form}")
    assert math.isfinite(ratios[0])


if __name__ == "__main__":
    main()
