"""Parsed lines → records.

A line with a counter and metrics is a record. Lines without a counter belong to the heading or record above them. Lines
that never come near a counter count only if the log has nothing better.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

import numpy as np

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.lines.counters import Counters
from mldebug_mcp.logs.lines.leftovers import Leftovers
from mldebug_mcp.logs.lines.parsed import Parsed
from mldebug_mcp.logs.lines.rounded_steps import RoundedSteps
from mldebug_mcp.logs.lines.template import Template, to_floats
from mldebug_mcp.logs.names import COUNTERS, canonical, is_known
from mldebug_mcp.logs.numbers import to_number

NEAR = 20
"""Lines below a record in which metrics without a counter belong to it."""
MANY = 8
"""Lines of one shape from which on they are taken together."""

_WORDS = re.compile(r"[A-Za-z]{3,}")


class Assembler:
    """Puts what lines say together and gives the records to the builder.

    Args:
        builder: Where the records go.
    """

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._counters: dict[str, float] = {}
        self._block: dict[str, float] = {}
        self._line = 0
        self._heading = False
        self._epoch: float | None = None
        self._step: float | None = None
        self._epoch_base: float | None = None
        self._leftovers = Leftovers(builder)
        self._told = 0
        self._counted = 0
        self._owner: dict[tuple[str, ...], int] = {}
        self._other_ranks: Counter[int] = Counter()
        self._rounded = RoundedSteps(builder)
        self._rounded_block = False
        self._loss = ""

    @property
    def epoch(self) -> float | None:
        """The epoch that the last heading or record named."""
        return self._epoch

    def take(self, number: int, parsed: Parsed) -> None:
        """Take a line that was parsed."""
        if parsed.rank is not None and parsed.telling and self._is_echo(parsed):
            return
        batch = parsed.counters.batch
        if parsed.evaluation and batch and batch[0] < batch[1] - 1:
            return  # an evaluation under way: its last line has the averages
        values = self._placed(parsed)
        if parsed.telling:
            parsed.metrics = self._as_before(parsed.metrics)
        self._told += parsed.telling
        self._counted += parsed.telling and (bool(values) or bool(self._counters))
        if parsed.telling and values:
            self._with_counter(number, values, parsed)
        elif parsed.telling:
            self._without_counter(number, parsed.metrics)
        elif values and len(parsed.metrics) > ("episode" not in values) and not self._builder.records:
            self._leftovers.take({**values, **parsed.metrics}, known=False)
        elif values and not self._is_remark(parsed):
            self._open(number, values, {}, heading=True)
            self._add(_known(parsed))  # Caffe: "Iteration 100, lr = 0.01"
        elif not values and self._heading and self._block and number - self._line <= NEAR and len(parsed.metrics) == 1:
            self._add(parsed.metrics)  # a row of a block: "Mean episode length: 21.5"
        elif not values and self._counters and number - self._line <= NEAR // 4:
            self._add(_known(parsed))
            self._line = number if self._heading and parsed.metrics else self._line  # its block goes on

    def many(self, template: Template, rows: list[tuple[str, ...]]) -> None:
        """Take lines of one shape that follow one another, as the texts of their numbers."""
        rank = template.like.rank
        if len(rows) < MANY or (rank is not None and self._owner.get(tuple(template.like.metrics), rank) != rank):
            for row in rows:
                self.take(self._line, template.parsed(row))
            return
        self.flush()
        self._told, self._counted = self._told + len(rows), self._counted + len(rows)
        texts = list(zip(*rows, strict=True))
        columns = {
            name: np.array(to_floats(texts[place])) * factor
            for place, name, factor in (*template.counters, *template.metrics)
        }
        batch, batches = columns.pop("batch", None), columns.pop("batches", None)
        if batch is not None and batches is not None and "step" not in columns:
            epoch = columns.get("epoch", np.full(len(rows), self._epoch or 0.0))
            columns = {"step": (epoch - (self._epoch_base or 0.0)) * batches + batch, **columns}
        if "step" in columns:
            self._step = float(columns["step"][-1])
        if "epoch" in columns:
            self._epoch = float(columns["epoch"][-1])
        elif self._epoch is not None:
            columns["epoch"] = np.full(len(rows), self._epoch)
        self._builder.columns(columns, {})

    def whole(self, number: int, values: Mapping[str, object]) -> int | None:
        """Take a record that is complete in itself, such as a dict; return its index, None if it held no number."""
        heading = self._counters if self._heading and not self._block and number - self._line <= NEAR else {}
        if not any(canonical(name) in COUNTERS for name in values):
            values = {**heading, **values}
        self.flush()
        self._line = number
        row = self._builder.rows
        self._epoch = to_number(values.get("epoch")) or self._epoch
        return row if self._builder.record(values) else None

    def flush(self) -> None:
        """Give the open record to the builder."""
        if self._block:
            if self._rounded_block and "step" in self._counters:
                self._rounded.take(self._builder.rows, self._counters["step"])
            self._builder.numbers({**self._counters, **self._block})
        self._block, self._counters, self._heading, self._rounded_block = {}, {}, False, False

    def end(self) -> None:
        """Finish: give what is left to the builder and say what was left out."""
        self.flush()
        builder = self._builder
        self._leftovers.end()
        if self._other_ranks:
            ranks = len(self._other_ranks)
            builder.note(
                f"left out {sum(self._other_ranks.values())} line(s) that {ranks} other rank(s) printed alike: "
                "one rank's records are read"
            )
        self._rounded.settle()
        if self._counted and self._builder.formats[1:] == []:
            self._builder.note(
                f"text of no known framework: {self._counted / self._told:.0%} of the {self._told} lines with metrics "
                "stand by a step or an epoch, and are read as records"
            )

    def _is_echo(self, parsed: Parsed) -> bool:
        """Say whether another rank prints lines of this shape too."""
        shape = tuple(parsed.metrics)
        owner = self._owner.setdefault(shape, parsed.rank or 0)
        if owner == parsed.rank:
            return False
        self._other_ranks[parsed.rank or 0] += 1
        return True

    def _placed(self, parsed: Parsed) -> dict[str, float]:
        """Return the counters of a line, with the batch of an epoch turned into a step."""
        counters: Counters = parsed.counters
        values = dict(counters.values)
        if "epoch" in values:
            self._epoch = values["epoch"]
        if counters.batch and "step" not in values and not parsed.evaluation:
            if self._epoch_base is None and self._epoch is not None:  # no sooner: a heading may tell how many there are
                guessed = 0.0 if self._epoch == 0 else 1.0
                self._epoch_base = guessed if counters.first_epoch is None else counters.first_epoch
            count, total = counters.batch
            values["step"] = ((self._epoch or 0.0) - (self._epoch_base or 0.0)) * total + count
        if counters.batch and parsed.evaluation and not values and self._step is not None:
            values["step"] = self._step  # an evaluation that counts its own batches stands at the last step
        if parsed.telling:
            self._step = values.get("step", self._step)
        return values

    @staticmethod
    def _is_remark(parsed: Parsed) -> bool:
        """Say whether a line with a counter but no metric is a remark ("saving the model at step 10"), no heading."""
        adjacent = not parsed.counters.weak or (parsed.counters.rest.strip(" |:-") == "")
        return not adjacent or len(_WORDS.findall(parsed.counters.rest)) > 5

    def _with_counter(self, number: int, values: dict[str, float], parsed: Parsed) -> None:
        metrics = parsed.metrics
        same = all(self._counters.get(name, value) == value for name, value in values.items())
        shared = any(name in self._counters for name in values)
        if same and shared and self._block.keys().isdisjoint(metrics):
            self._counters = {**self._counters, **values}
            self._add(metrics)
            self._line = number
        else:
            inherited = {"epoch": self._epoch} if "epoch" not in values and self._epoch is not None else {}
            self._open(number, {**inherited, **values}, metrics, heading=False)
        self._rounded_block = self._rounded_block or parsed.counters.rounded

    def _without_counter(self, number: int, metrics: dict[str, float]) -> None:
        if self._counters and (self._heading or number - self._line <= NEAR):
            if not self._heading and self._fails(number, metrics):
                return
            if self._block.keys().isdisjoint(metrics):
                self._add(metrics)
                self._line = number if self._heading else self._line
                return
            if self._heading:  # another record under the same heading
                counters = self._counters
                self._open(number, counters, metrics, heading=True)
                return
        self._leftovers.take(metrics, known=True)

    def _fails(self, number: int, metrics: dict[str, float]) -> bool:
        """Take a loss that failed between two records ("Loss is nan, stopping training"): a step after the first."""
        failed, before = metrics.get(self._loss, 0.0), self._block.get(self._loss)
        if math.isfinite(failed) or before is None:
            return False
        if math.isfinite(before):  # else another rank has said so
            finest = "step" if "step" in self._counters else "epoch"
            self._open(number, {**self._counters, finest: self._counters[finest] + 1}, metrics, heading=False)
            self._builder.note(f"a loss that failed between two records is put at the {finest} after the first of them")
        return True

    def _as_before(self, metrics: dict[str, float]) -> dict[str, float]:
        """Give the loss of a message that it failed the name that it has in the records."""
        name = next((name for name in metrics if canonical(name) == "loss"), "")
        if len(metrics) == 1 and name and self._loss and not math.isfinite(metrics[name]):
            return {self._loss: metrics[name]}
        self._loss = name or self._loss
        return metrics

    def _add(self, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._block.setdefault(name, value)

    def _open(self, number: int, counters: dict[str, float], metrics: dict[str, float], *, heading: bool) -> None:
        if heading and not metrics and counters == {name: self._counters.get(name) for name in counters}:
            return  # the same heading again
        self.flush()
        self._line, self._heading = number, heading
        self._counters, self._block = counters, dict(metrics)


def _known(parsed: Parsed) -> dict[str, float]:
    return {name: value for name, value in parsed.metrics.items() if is_known(name)}
