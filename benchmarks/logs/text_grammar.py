"""Shapes of log lines drawn from a grammar: prefix, tag, counter, pairs, units, separators.

No shape is written by hand for the reader. Each line comes with the values that it prints, so that a reader can be
checked against what the generator wrote.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from math import exp

TOTAL = 30_000
"""Steps that the counters count to."""
EPOCH = 1000
"""Steps of an epoch."""

Printed = Callable[[int, random.Random], str]
"""A step and a source of randomness → what is printed."""


def _clock(step: int) -> str:
    minutes, seconds = divmod(step, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours % 24:02d}:{minutes:02d}:{seconds:02d}"


def _milliseconds(step: int) -> str:
    return f"{step * 37 % 1000:03d}"


PREFIXES: dict[str, Printed] = {
    "none": lambda step, draw: "",
    "logging": lambda step, draw: f"2026-11-20 {_clock(step)},{_milliseconds(step)} - INFO - ",
    "logging with a file": lambda step, draw: (
        f"2026-11-20 {_clock(step)},{_milliseconds(step)} - INFO - train.py:88 - "
    ),
    "logging with a name": lambda step, draw: f"2026-11-20 {_clock(step)},{_milliseconds(step)} - my.trainer - INFO - ",
    "brackets": lambda step, draw: f"[2026-11-20 {_clock(step)}] ",
    "brackets and level": lambda step, draw: f"[2026-11-20 {_clock(step)},{_milliseconds(step)}][root][INFO] - ",
    "level": lambda step, draw: "INFO:trainer:",
    "clock": lambda step, draw: f"{_clock(step)} ",
    "clock in brackets": lambda step, draw: f"[{_clock(step)}] INFO ",
    "ISO": lambda step, draw: f"2026-11-20T{_clock(step)}.{_milliseconds(step)}Z ",
    "absl": lambda step, draw: f"I1120 {_clock(step)}.{step * 37 % 1_000_000:06d} 140212 train.py:88] ",
    "loguru": lambda step, draw: f"2026-11-20 {_clock(step)}.{_milliseconds(step)} | INFO     | __main__:train:88 - ",
    "slashes": lambda step, draw: f"2026/11/20 {_clock(step)} INFO ",
    "colours": lambda step, draw: f"\x1b[32m2026-11-20 {_clock(step)}\x1b[0m | ",
}
TAGS: dict[str, Printed] = {
    "none": lambda step, draw: "",
    "rank": lambda step, draw: "[rank0] ",
    "rank and colon": lambda step, draw: "[rank0]: ",
    "number": lambda step, draw: "[0]: ",
    "phase": lambda step, draw: "[train] ",
    "Ray": lambda step, draw: "(Worker pid=1234) ",
}
COUNTERS: dict[str, Printed] = {
    "step": lambda step, draw: f"step {step}",
    "step:": lambda step, draw: f"step: {step}",
    "step=": lambda step, draw: f"step={step}",
    "Iter [i/N]": lambda step, draw: f"Iter [{step}/{TOTAL}]",
    "iteration i/N": lambda step, draw: f"iteration {step:6d}/{TOTAL:6d}",
    "global_step": lambda step, draw: f"global_step: {step}",
    "epoch and step": lambda step, draw: f"epoch: {(step - 1) // EPOCH}, step: {step}",
    "Step [i/N]": lambda step, draw: f"Step [{step}/{TOTAL}]",
    "thousands": lambda step, draw: f"step: {step:,}",
}


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
    Value("tps", "", lambda value: f"{value * 3000:.0f}"),
)
SEPARATORS = (("=", " "), (": ", ", "), (" ", ", "), (": ", " | "), ("=", ", "), (": ", " "), (" = ", ", "), (":", " "))
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
    prefix: Printed
    tag: Printed
    counter: Printed
    behind: str
    values: tuple[Value, ...]
    separators: tuple[str, str]

    def lines(self, count: int) -> Iterator[Line]:
        """Yield lines of steps from 1 on."""
        draw = random.Random(self.name)  # noqa: S311 - no secret
        to_value, between = self.separators
        for step in range(1, count + 1):
            texts, values = [], {"step": float(step)}
            for value in self.values:
                drawn = 2 + 3 * exp(-step / 3000) * draw.random()
                text = value.text(drawn)
                texts.append(f"{value.name}{to_value}{text}")
                if value.known_as:
                    values[value.known_as] = _number(text) * value.factor
            head = f"{self.prefix(step, draw)}{self.tag(step, draw)}{self.counter(step, draw)}{self.behind}"
            yield Line(head + between.join(texts), values)


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
    counter, separators = draw.choice(list(COUNTERS)), draw.choice(SEPARATORS)
    values = [draw.choice(LOSSES), draw.choice(RATES)]
    for value in draw.sample(OTHERS, draw.randint(0, 5)):
        if all(value.name != other.name for other in values):
            values.append(value)
    draw.shuffle(values)
    name = f"{number}: {prefix} / {tag} / {counter} / " + separators[0].join(("name", "value")) + separators[1]
    behind = draw.choice(BEHIND_COUNTER)
    return Shape(name, PREFIXES[prefix], TAGS[tag], COUNTERS[counter], behind, tuple(values), separators)
