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
