"""Parsed lines → records.

A line with a counter and metrics is a record. Lines without a counter belong to the heading or record above them. Lines
that never come near a counter count only if the log has nothing better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.lines.counters import Counters
from mldebug_mcp.logs.lines.epoch_batches import EpochBatches
from mldebug_mcp.logs.lines.leftovers import Leftovers
from mldebug_mcp.logs.lines.lots import Lot, carried, scattered, with_epochs
from mldebug_mcp.logs.lines.parsed import Parsed, is_remark
from mldebug_mcp.logs.lines.ranks import Ranks
from mldebug_mcp.logs.lines.rounded_steps import RoundedSteps
from mldebug_mcp.logs.names import COUNTERS, canonical, is_known, is_telling
from mldebug_mcp.logs.numbers import to_number

NEAR = 20
"""Lines below a record in which metrics without a counter belong to it."""


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
        self._total = 0
        self._batches = EpochBatches()
        self._leftovers = Leftovers(builder)
        self._told = 0
        self._counted = 0
        self.ranks = Ranks()
        self._rounded = RoundedSteps(builder)
        self._rounded_block = False
        self._loss = ""
        self._losses: set[str] = set()

    @property
    def epoch(self) -> float | None:
        """The epoch that the last heading or record named."""
        return self._epoch

    @property
    def is_open(self) -> bool:
        """Whether a record was begun that the next lines may add to."""
        return bool(self._block)

    def take(self, number: int, parsed: Parsed) -> None:
        """Take a line that was parsed."""
        if self.ranks.echoes(parsed):
            return
        self._count_of_the_run(parsed)
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
        elif values and not is_remark(parsed):
            self._open(number, values, {}, heading=True)
            self._add(_known(parsed))  # Caffe: "Iteration 100, lr = 0.01"
        elif not values and self._heading and self._block and number - self._line <= NEAR and len(parsed.metrics) == 1:
            self._add(parsed.metrics)  # a row of a block: "Mean episode length: 21.5"
        elif not values and self._counters and number - self._line <= NEAR // 4:
            self._add(_known(parsed))
            self._line = number if self._heading and parsed.metrics else self._line  # its block goes on

    @property
    def under_heading(self) -> bool:
        """Whether the last counter stood alone, so that metrics below belong to it."""
        return self._heading

    def passes_over(self, number: int, *, known: bool) -> bool:
        """Say whether a line without a counter and without a telling metric belongs to nothing above it.

        Args:
            number: Its line number.
            known: It names a metric that is known.
        """
        below = number - self._line
        if below > NEAR:
            return True
        return not self._heading and (not known or not self._counters or below > NEAR // 4)

    def is_steady(self, like: Parsed) -> bool:
        """Say whether lines like the one that was taken last are each a record of its own, and no exception."""
        counters = like.counters
        counted = bool(counters.values) or (counters.batch is not None and not like.evaluation)
        rounded = counters.rounded or (counters.batch is not None and like.evaluation)
        return like.telling and counted and bool(like.metrics) and not self._renames(like) and not rounded

    def stands_alone(self, number: int, like: Parsed) -> bool:
        """Say whether lines like the one that was taken last, without a counter, belong to nothing from a line on."""
        below = not self._counters or (not self._heading and number - self._line > NEAR)
        return below and not self._renames(like) and not self.ranks.is_echo(like)

    def many_alone(self, metrics: Mapping[str, Floats]) -> None:
        """Take lines of one shape that stand alone and follow one another.

        Args:
            metrics: What they say, shape (n,).
        """
        size = len(next(iter(metrics.values())))
        self._told, self._counted = self._told + size, self._counted + size * bool(self._counters)
        self._leftovers.many(metrics)

    def _renames(self, like: Parsed) -> bool:
        """Say whether the loss of lines like this one may get another name; see `_as_before`."""
        named = [name for name in like.metrics if canonical(name) == "loss"]
        return len(like.metrics) == 1 and bool(named) and named[0] != self._loss and named[0] not in self._losses

    def many(
        self,
        like: Parsed,
        counters: Mapping[str, Floats],
        batch: Sequence[Floats],
        metrics: Mapping[str, Floats],
        logged: Mapping[str, NDArray[np.bool_]],
    ) -> None:
        """Take lines of one shape that follow one another.

        Args:
            like: One of them: `take` has had it, and lines like it are steady.
            counters: Their counters by name, shape (n,).
            batch: Their batch of the epoch, and how many there are, each of shape (n,); or nothing.
            metrics: Their metrics by name, shape (n,).
            logged: Of a metric that not all lines have, which of them do, shape (n,).
        """
        size = len(next(iter(metrics.values())))
        if self.ranks.is_echo(like):
            self.ranks.leave_out(like, size)
            return
        self.flush()
        self._told, self._counted = self._told + size, self._counted + size
        columns = dict(counters)
        if batch and "step" not in columns:
            epoch = columns.get("epoch", np.full(size, self._epoch or 0.0))
            columns["step"] = self._batches.steps(epoch, np.trunc(batch[0]), np.trunc(batch[1]))
            self._batches.correct(self._builder, self._counters)
        if "step" in columns:
            self._step = float(columns["step"][-1])
        if "epoch" in columns:
            self._epoch = float(columns["epoch"][-1])
        elif self._epoch is not None:
            columns["epoch"] = np.full(size, self._epoch)
        self._builder.columns({**columns, **metrics}, logged)

    def keeps_loss(self, lots: Sequence[Lot]) -> bool:
        """Say whether none of the lines names a loss that failed otherwise than the records do; see `_as_before`."""
        plain = [(lot, name) for lot in lots if lot.like is not None for name in [_loss_in(lot.like.metrics)] if name]
        alone = [(lot, name) for lot, name in plain if lot.like is not None and len(lot.like.metrics) == 1]
        if {name for _, name in plain} <= {self._loss, *self._losses}:
            return True
        return all(bool(np.isfinite(lot.columns[name]).all()) for lot, name in alone)

    def goes_on(self, parsed: Parsed | None) -> bool:
        """Say whether a line with counters belongs to the open record."""
        return parsed is not None and self._belongs(parsed.counters.values, parsed.metrics)

    def many_together(self, lots: Sequence[Lot], size: int) -> int:
        """Take records of several kinds, with no line above or below belonging to them; return the row of the first.

        Args:
            lots: The lines by their kinds: dicts, and lines with counters but no batch.
            size: Records in all.
        """
        self.flush()
        first, epochs = self._builder.rows, carried(lots, size, self._epoch)
        lines = sum(len(lot.rows) for lot in lots if lot.like is not None)
        self._told, self._counted = self._told + lines, self._counted + lines
        self._epoch = self._epoch if np.isnan(epochs[-1]) else float(epochs[-1])
        last = max((lot for lot in lots if lot.like is not None), key=lambda lot: lot.rows[-1], default=None)
        if last is not None and "step" in last.columns:
            self._step = float(last.columns["step"][-1])
        losses = [(int(lot.rows[-1]), _loss_in(lot.like.metrics)) for lot in lots if lot.like is not None]
        self._loss = max([(-1, self._loss), *(one for one in losses if one[1])])[1]
        self._losses.update(name for _, name in losses if name)
        self._builder.columns(*scattered(with_epochs(lots, epochs), size))
        return first

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
        """Give the open record to the builder; what stands before all that was measured is configuration."""
        if self._block and (self._builder.records or any(map(is_telling, self._block))):
            if self._rounded_block and "step" in self._counters:
                self._rounded.take(self._builder.rows, self._counters["step"])
            self._builder.numbers({**self._counters, **self._block})
        self._block, self._counters, self._heading, self._rounded_block = {}, {}, False, False

    def end(self) -> None:
        """Finish: give what is left to the builder and say what was left out."""
        self.flush()
        self._leftovers.end()
        self.ranks.end(self._builder)
        self._rounded.settle()
        if self._counted and self._builder.formats[1:] == []:
            self._builder.note(
                f"text of no known framework: {self._counted / self._told:.0%} of the {self._told} lines with metrics "
                "stand by a step or an epoch, and are read as records"
            )

    def _placed(self, parsed: Parsed) -> dict[str, float]:
        """Return the counters of a line, with the batch of an epoch turned into a step."""
        counters: Counters = parsed.counters
        values = dict(counters.values)
        settings = counters.weak and not parsed.telling and values.keys() == {"epoch"}  # "lr=0.1 epochs=24"
        if "epoch" in values and not settings:
            self._epoch = values["epoch"]
        if counters.batch and "step" not in values and not parsed.evaluation:
            if self._epoch is not None:  # no sooner: a heading may tell how many there are
                self._batches.begin(self._epoch, counters.first_epoch)
            values["step"] = self._batches.step(self._epoch or 0.0, *counters.batch)
            self._batches.correct(self._builder, self._counters)
        if counters.batch and parsed.evaluation and not values and self._step is not None:
            values["step"] = self._step  # an evaluation that counts its own batches stands at the last step
        if parsed.telling:
            self._step = values.get("step", self._step)
        return values

    def _count_of_the_run(self, parsed: Parsed) -> None:
        """Take "[19/266]" of an evaluation for the step where training counts to as many, and names no epoch."""
        counters = parsed.counters
        if counters.batch is None or counters.values or self._epoch is not None:
            return
        at, total = counters.batch
        if not parsed.evaluation:
            self._total = total
        elif total == self._total and at >= (self._step or 0.0):
            counters.values, counters.batch = {"step": float(at)}, None

    def _with_counter(self, number: int, values: dict[str, float], parsed: Parsed) -> None:
        metrics = parsed.metrics
        if self._belongs(values, metrics):
            self._counters = {**self._counters, **values}
            self._add(metrics)
            self._line = number
        else:
            inherited = {"epoch": self._epoch} if "epoch" not in values and self._epoch is not None else {}
            self._open(number, {**inherited, **values}, metrics, heading=False)
        self._rounded_block = self._rounded_block or parsed.counters.rounded

    def _belongs(self, values: Mapping[str, float], metrics: Mapping[str, float]) -> bool:
        """Say whether a line with counters adds to the open record."""
        same = all(self._counters.get(name, value) == value for name, value in values.items())
        shared = any(name in self._counters for name in values)
        return same and shared and self._block.keys().isdisjoint(metrics)

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
            finest = next((one for one in ("step", "epoch") if one in self._counters), next(iter(self._counters)))
            self._open(number, {**self._counters, finest: self._counters[finest] + 1}, metrics, heading=False)
            self._builder.note(f"a loss that failed between two records is put at the {finest} after the first of them")
        return True

    def _as_before(self, metrics: dict[str, float]) -> dict[str, float]:
        """Give the loss of a message that it failed the name that it has in the records."""
        name = _loss_in(metrics)
        if len(metrics) == 1 and name and self._loss and name not in self._losses and not math.isfinite(metrics[name]):
            return {self._loss: metrics[name]}
        if name:
            self._loss = name
            self._losses.add(name)
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


def _loss_in(metrics: Iterable[str]) -> str:
    return next((name for name in metrics if canonical(name) == "loss"), "")


def _known(parsed: Parsed) -> dict[str, float]:
    return {name: value for name, value in parsed.metrics.items() if is_known(name)}
