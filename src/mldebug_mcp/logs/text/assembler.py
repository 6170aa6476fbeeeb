"""Parsed lines → records.

A line with a counter and metrics is a record. Lines without a counter belong to the heading or record above them.
Lines that never come near a counter count only if the log has nothing better.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.lazy import regex, replace
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs.align import MAX_RATIO_OF_REPEATS
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats, Rows
from mldebug_mcp.logs.line_prefixes import names_phase, set_in
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.metrics import (
    COUNTERS,
    UNNAMED,
    canonical,
    is_evaluation,
    is_of_record,
    is_pace,
    is_telling,
    set_of,
)
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.run_tables import COMPARED_IN_WORDS, MAX_RANKS, is_compared
from mldebug_mcp.logs.text.counters import Counters
from mldebug_mcp.logs.text.pairs import evaluation_name
from mldebug_mcp.logs.text.parsed_line import Parsed, is_remark

# The batch of an epoch → a step: "epoch 9 step 440/440" counts within the epoch, or over all of them.
#
# Both are printed alike. Within an epoch the counter begins anew where the epoch rises; over all of them it goes on
# there by its usual interval, and is the step as it stands.

MAX_INTERVALS_AT_EPOCH = 2.0
"""Times the interval within an epoch that a counter over all of them may move by where the epoch rises; chosen."""
MIN_RISES_OF_BOTH = 3
"""Times that the epoch rises with the counter, from which on one length of an epoch fits all by no chance; chosen."""


class FirstPass:
    """The first pass of an epoch over data: one of another length behind its end is an evaluation."""

    def __init__(self) -> None:
        self.epoch: float | None = None
        self.total = 0
        self._metrics: tuple[str, ...] = ()
        self._is_done = False

    def is_over(self, epoch: float, at: float, total: int, metrics: tuple[str, ...]) -> bool:
        """Take a place in a pass; return whether the first pass of its epoch was over and this is another one.

        Args:
            epoch: The epoch.
            at: How far the pass is.
            total: How long it is.
            metrics: The names of what is reported; an evaluation that no word marks reports the same.
        """
        if self.epoch != epoch:
            self.epoch, self.total, self._metrics, self._is_done = epoch, total, metrics, False
        if total == self.total:
            self._is_done = self._is_done or at >= total
            return False
        return self._is_done and metrics == self._metrics

    def reaches(self, epoch: float, at: float) -> None:
        """Say how far the first pass of an epoch is, after many places of passes that are all as long."""
        self.epoch, self._is_done = epoch, at >= self.total


class EpochBatches:
    """Turns epochs and batches into steps, in the order in which they come."""

    def __init__(self) -> None:
        self._base: float | None = None
        self._epoch = np.nan
        self._count = np.nan
        self._interval = np.nan
        self._over_all: bool | None = None
        self._ended_at: float | None = None
        self._early: dict[float, float] = {}
        self._last = (0.0, 0.0, 0.0, 0.0)
        self._rises = 0
        self._lengths = (0.0, np.inf)  # of an epoch, by which counts over all epochs would be in the epochs they name

    def begin(self, epoch: float, first_epoch: float | None) -> None:
        """Say which epoch is the first one that is seen, and the number of the first one where the framework tells."""
        if self._base is None:
            guessed = 0.0 if epoch == 0 else 1.0
            self._base = guessed if first_epoch is None else first_epoch

    def count_over_all(self) -> None:
        """Say that batches are counted over all epochs."""
        self._over_all = True

    def end(self, epoch: float, count: float) -> None:
        """Take the end of an epoch that no heading named, and the batch before it."""
        if self._base is None:
            self.begin(epoch, None)
            self._ended_at = count

    def step(self, epoch: float, count: float, total: float) -> float:
        """Return the step of a batch."""
        return float(self.steps(*(np.array([number]) for number in (epoch, count, total)))[0])

    def steps(self, epoch: Floats, count: Floats, total: Floats) -> Floats:
        """Return the steps of many batches, each array of shape (n,)."""
        at = 0
        while self._over_all is None and at < len(count):
            self._see(float(epoch[at]), float(count[at]))
            at += 1
        within: Floats = (epoch - (self._base or 0.0)) * total + count
        if self._over_all is None:
            other = within != count
            self._early.update(zip(within[other].tolist(), count[other].tolist(), strict=True))
        self._last = float(within[-1]), float(epoch[-1]), float(count[-1]), float(total[-1])
        return count if self._over_all else within

    def is_another(self, count: float, total: float) -> bool:
        """Say whether a batch is of another pass than the last one was, which counts anew and to another end."""
        _, _, last, length = self._last
        return 0 < length != total and count <= total and last >= count

    def stands_at(self, count: float, total: float) -> bool:
        """Say whether the last batch was this one, of as many."""
        return self._last[2:] == (count, total)

    def is_whole_epoch(self, counters: Mapping[str, float]) -> bool:
        """Say whether a line is at the end of its epoch: it names as its step how many batches the epoch has."""
        _, epoch, last, total = self._last
        return (
            self._over_all is not True and counters.get("epoch") == epoch and counters.get("step") == last == total > 0
        )

    def note(self) -> str:
        """Return how steps are counted where the lines begin anew in each epoch; empty elsewhere."""
        if self._over_all is not False:
            return ""
        step, epoch, count, total = map(figure, self._last)
        return f"lines count within an epoch, steps here count on: step {step} is {count} of {total} in epoch {epoch}"

    @property
    def are_over_all(self) -> bool:
        """Whether batches are counted over all epochs."""
        return self._over_all is True

    def correct(self, builder: RunBuilder, counters: dict[str, float]) -> None:
        """Correct the steps that were given before it was known that batches are counted over all epochs.

        `counters` are those of the record that is still open.
        """
        if self._over_all is None or not self._early:
            return
        meant, self._early = self._early if self._over_all else {}, {}
        wrong = {row: meant[step] for row, step in builder.column("step") if step in meant} if meant else {}
        if wrong:
            builder.overwrite_steps(np.array([*wrong]), np.array([*wrong.values()]))
        if counters.get("step") in meant:
            counters["step"] = meant[counters["step"]]

    def _see(self, epoch: float, count: float) -> None:
        if self._ended_at is not None:
            self._over_all, self._ended_at = count > self._ended_at, None
        moved = count - self._count
        if epoch == self._epoch:
            self._interval = moved if moved > 0 else self._interval
        elif epoch > self._epoch and not np.isnan(self._interval):
            self._over_all = bool(0 < moved <= MAX_INTERVALS_AT_EPOCH * self._interval)
        elif epoch > self._epoch and moved <= 0:
            self._over_all = False
        elif epoch > self._epoch:
            self._see_both_rise(epoch, count)
        self._epoch, self._count = epoch, count

    def _see_both_rise(self, epoch: float, count: float) -> None:
        """Take a count of a later epoch where no epoch has two: "epoch 38, 5750 of 10000", "epoch 39, 6000"."""
        for number, at in ((self._epoch, self._count), (epoch, count)):
            done = number - (self._base or 0.0)
            least, most = self._lengths
            self._lengths = max(least, at / (done + 1)), min(most, at / done if done > 0 else np.inf)
        self._rises += 1
        if self._lengths[0] >= self._lengths[1]:
            self._over_all = False
        elif self._rises >= MIN_RISES_OF_BOTH:
            self._over_all = True


# How far the run is to go, by its own counters: "Epoch 3/10", "step 5/240", "Epoch [3/10], Step [20/100]".


class CountedPlan:
    """Takes what counters say of their ends; what the last ones say counts."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._first_epoch: float | None = None
        self._batches = 0.0
        self._step = -math.inf
        self._epoch = math.inf
        self._is_over_all = False

    def take(self, counters: Counters, step: float | None, batches: float) -> None:
        """Take the counters of a line of training.

        Args:
            counters: They.
            step: The step that it is read at.
            batches: Of how many batches of an epoch the line counts, 0 if it does not.
        """
        epoch = counters.values.get("epoch")
        if self._first_epoch is None:
            self._first_epoch = epoch if counters.first_epoch is None else counters.first_epoch
        for name, total in counters.planned:
            if name == "epoch" and self._first_epoch == 0 and (epoch == total or counters.first_epoch == 0):
                total += 1  # "Epoch 0/9" is the first of ten  # noqa: PLW2901
            if name == "step" and step is not None and step < self._step >= total:
                total = 0  # it begins anew behind its end: a pass of several  # noqa: PLW2901
            if name == "step" and step is not None and epoch is not None and epoch > self._epoch:
                self._is_over_all = self._step < step <= total == self._totals.get(name)
            self._totals[name] = 0.0 if self._totals.get(name) == 0 else float(total)
        self._batches = batches or self._batches
        self._step = self._step if step is None else step
        self._epoch = self._epoch if epoch is None else epoch

    def totals(self, *, counts_over_all: bool) -> dict[str, float]:
        """Return the planned number by counter; batches that are counted over all epochs are the steps of the run."""
        totals = {name: total for name, total in self._totals.items() if total}
        if self._batches and "epoch" in totals:
            totals["step"] = self._batches * (1.0 if counts_over_all else totals["epoch"])
        elif ("epoch" in totals and not self._is_over_all) or self._step > totals.get("step", math.inf):
            totals.pop("step", None)  # the batches of an epoch
        return totals


# Lines that may be records: metrics without a counter, or a counter beside names that nobody knows.
#
# They count only if the log has nothing better. Of such lines the shape that comes most often begins a record, and what
# the lines below it add belongs to the same one.

Shape = tuple[str, ...]

MAX_SHAPES = 1000
"""Shapes of lines that are kept."""
MIN_SURE_LINES = 2000
"""Lines of one shape in a log without a single sure record, from which on they are its records."""
MIN_REPEATED_LINES = 3
"""Lines of one shape that make it a record; chosen: two may be chance."""
MAX_LINES_BELOW_RECORD = 20
"""Lines below a record in which metrics without a counter belong to it."""
_ROWS_AT_ONCE = {("batch", "size"), ("bs",), ("bsz",), ("batchsize",)}
"""What the number of rows is called that an evaluation takes at once."""
_TURNS = frozenset({"run", "pass", "turn", "try", "trial", "repeat", "attempt", "seed"})
"""What counts evaluations that are made one after another."""
MAX_BEHIND = 20
"""Evaluations behind the records that are kept, by their rows at once or their turn. Chosen: sweeps are shorter."""
MAX_LINES_OF_BLOCK = 3
"""Lines between two of one block, where it stands alone. Chosen by hand."""


class Leftover(NamedTuple):
    """A line that may be a record or a part of one."""

    number: int
    shape: Shape
    values: tuple[float, ...]


def _following_line(line: Leftover) -> tuple[Shape, int]:
    return line.shape, line.number + 1


class Leftovers:
    """Keeps such lines until it is known which of them begin a record; the builder gets them if nothing else comes."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._lines: list[Leftover] = []
        self._counts: Counter[Shape] = Counter()
        self._known: dict[Shape, bool] = {}
        self._rows: set[Shape] = set()
        self._begins: Shape | None = None
        self._open: dict[str, float] = {}
        self._opened = 0
        self._added = 0  # the last line that the open record holds
        self._behind: list[tuple[str, dict[str, float]]] = []
        self._alike: list[Leftover] = []  # lines with one label behind the records, one below the other
        self._label = ""
        self.left_out = 0

    def take(
        self, number: int, values: Mapping[str, float], *, known: bool, is_row: bool = False, label: str = ""
    ) -> None:
        """Take the line of a number; `known` says that its names are those of metrics, `is_row` see `give_rows`."""
        line = Leftover(number, tuple(values), tuple(values.values()))
        if line.shape not in self._counts and len(self._counts) >= MAX_SHAPES:
            self.left_out += known
            return
        self._counts[line.shape] += 1
        if self._begins is not None:
            self._put(line, known=known)
        elif self._builder.records:
            if known and not self.keeps(values):
                self.left_out += 1
                if any(map(is_evaluation, line.shape)):
                    self._see_alike(line, label)
        else:
            self._known.setdefault(line.shape, known)
            self._rows |= {line.shape} if is_row else set()
            self._lines.append(line)
            if self._counts[line.shape] >= MIN_SURE_LINES:
                self._begin(line.shape)

    def many(self, numbers: NDArray[np.int64], columns: Mapping[str, Floats]) -> None:
        """Take lines of one shape, of known names: their numbers, and their columns by name, each of shape (n,)."""
        shape, size = tuple(columns), len(numbers)
        rows = zip(*(column[:MIN_SURE_LINES].tolist() for column in columns.values()), strict=True)
        done = 0
        while shape != self._begins and done < min(size, MIN_SURE_LINES):
            self.take(int(numbers[done]), dict(zip(shape, next(rows), strict=True)), known=True)
            done += 1
        if shape != self._begins:
            self.left_out += size - done
        elif done < size:
            self._close()
            self._builder.columns({name: column[done:-1] for name, column in columns.items()}, {})
            last = {name: float(column[-1]) for name, column in columns.items()}
            self.take(int(numbers[-1]), last, known=True)

    def end(self) -> None:
        """Give the records to the builder if it has none, and say how many lines are left out."""
        if not self._builder.records and self._begins is None and (shape := self._first_shape()) is not None:
            self._begin(shape)
        self._close()
        self._put_behind()
        self.left_out += sum(self._known[line.shape] for line in self._lines)
        if self.left_out:
            self._builder.note(f"left out {self.left_out} line(s) with metrics but without a step or an epoch")

    def give_rows(self) -> None:
        """Give the builder the lines of a shape that has come again, with many names, above the first sure record."""
        if self._builder.records or self._begins is not None:
            return
        for line in self._lines:
            if line.shape in self._rows and self._counts[line.shape] > 1:
                self._builder.numbers(dict(zip(line.shape, line.values, strict=True)))
        self._lines = [line for line in self._lines if self._known[line.shape]]

    def keeps(self, values: Mapping[str, float]) -> bool:
        """Keep a line behind the records that evaluates so many rows at once, or again; return whether it is one."""
        rows = next((value for name, value in values.items() if tuple(pieces_of(name)[-2:]) in _ROWS_AT_ONCE), 0.0)
        turn = values.get("evaluated_again", 0.0)
        scores = {name: value for name, value in values.items() if is_telling(name)}
        is_kept = max(rows, turn) >= 1 and bool(scores) and len(self._behind) < MAX_BEHIND
        if is_kept:
            parts = [f"bs{int(rows)}"] * (rows >= 1) + [f"again{int(turn)}"] * (turn >= 1)
            self._behind.append(("_".join(parts), scores))
        return is_kept

    def keep_in_turn(self, lines: Sequence[Mapping[str, float]]) -> None:
        """Keep evaluations of the last weights, those that take as many rows at once in turn."""
        own = [
            tuple(pair for pair in line.items() if not is_telling(pair[0]) and pair[0] not in _TURNS) for line in lines
        ]
        turns: Counter[object] = Counter()
        for line, same in zip(lines, own, strict=True):
            turns[same] += 1
            again = {"evaluated_again": float(turns[same])} if own.count(same) > 1 else {}
            self.left_out += not self.keeps({**line, **again})

    def _see_alike(self, line: Leftover, label: str) -> None:
        """Keep evaluations with one label that stand one below the other; other lines begin anew, if these are few."""
        goes_on = self._alike and (label, line.shape, line.number) == (self._label, *_following_line(self._alike[-1]))
        if goes_on:
            self._alike.append(line)
        elif len(self._alike) < MIN_REPEATED_LINES:
            self._alike, self._label = [line], label

    def _are_repeats(self) -> bool:
        if not MIN_REPEATED_LINES <= len(self._alike) <= MAX_BEHIND:
            return False
        columns = zip(*(line.values for line in self._alike), strict=True)
        return all(0 < max(column) <= MAX_RATIO_OF_REPEATS * min(column) for column in columns)

    def _put_behind(self) -> None:
        """Give such lines to the builder, as `eval_loss_bs8` and `eval_loss_again2`, where they are several."""
        if not self._behind and self._are_repeats():
            self.left_out -= len(self._alike)
            for at, line in enumerate(self._alike, start=1):
                self.keeps({"evaluated_again": float(at), **dict(zip(line.shape, line.values, strict=True))})
        if len({turn for turn, _ in self._behind}) < 2:
            self.left_out += len(self._behind)
            return
        counters = {name: column[-1][1] for name in COUNTERS if (column := self._builder.column(name))}
        record: dict[str, float] = {}
        for turn, scores in self._behind:
            named = {name if is_evaluation(name) else evaluation_name(name): value for name, value in scores.items()}
            shown = {f"{name}_{turn}": value for name, value in named.items()}
            self.left_out += not record.keys().isdisjoint(shown)
            record = shown | record
        self._builder.numbers({**counters, **record})

    def _first_shape(self) -> Shape | None:
        """Return the shape that begins a record.

        That is the one that repeats most, or the first of a block with the loss or of scores of an evaluation.
        """
        shape, count = next(iter(self._counts.most_common(1)), (None, 0))
        if count >= MIN_REPEATED_LINES:
            return shape
        losses = (place for place, line in enumerate(self._lines) if self._is_loss(line))
        place = next(losses, None)
        if place is None:
            return self._first_score()
        names = set(map(canonical, self._lines[place].shape))
        while place and self._is_above(self._lines[place - 1], self._lines[place], names):
            place -= 1
            names |= set(map(canonical, self._lines[place].shape))
        return self._lines[place].shape

    def _first_score(self) -> Shape | None:
        """Return the shape of the first of several scores of an evaluation that stand right below each other."""
        at = [line.number for line in self._lines if all(map(is_evaluation, line.shape)) and self._known[line.shape]]
        first = next((place for place in at if {place + 1, place + 2} <= {*at}), None)
        return next((line.shape for line in self._lines if line.number == first), None)

    def _is_loss(self, line: Leftover) -> bool:
        return self._known[line.shape] and "loss" in map(canonical, line.shape)

    def _is_above(self, line: Leftover, below: Leftover, names: Collection[str]) -> bool:
        """Say whether a line is of the block of the one below it, whose lines so far hold these names."""
        near = below.number - line.number <= MAX_LINES_OF_BLOCK
        return near and self._known[line.shape] and self._adds(line.shape, names)

    def _begin(self, shape: Shape) -> None:
        """Let lines of a shape begin a record, and put the lines so far into records."""
        self._begins = shape
        if not self._known[shape]:
            names = ", ".join(shape[:5])
            self._builder.note(
                f"names of no known metric: lines with a counter that repeat are read as records ({names})"
            )
        lines, self._lines = self._lines, []
        for line in lines:
            self._put(line, known=self._known[line.shape])

    def _put(self, line: Leftover, *, known: bool) -> None:
        """Begin a record with a line, or add it to the open one if that has none of its names."""
        values = dict(zip(line.shape, line.values, strict=True))
        if line.shape == self._begins:
            self._close()
            self._open, self._opened, self._added = values, line.number, line.number
        elif known and self._goes_on(line):
            self._open |= values
            self._added = line.number
        else:
            self.left_out += known

    def _goes_on(self, line: Leftover) -> bool:
        near, names = line.number - self._opened <= MAX_LINES_BELOW_RECORD, set(map(canonical, self._open))
        is_next = line.number == self._added + 1 and all(map(is_evaluation, line.shape))
        adds = self._adds(line.shape, names) or (is_next and names.isdisjoint(map(canonical, line.shape)))
        return bool(self._open) and near and adds

    def _adds(self, shape: Shape, names: Collection[str]) -> bool:
        """Say whether lines of a shape add to a record that has these names: a single number may be an aside."""
        is_row = len(shape) > 1 or self._counts[shape] >= MIN_REPEATED_LINES
        return is_row and not any(canonical(name) in names for name in shape)

    def _close(self) -> None:
        if self._open:
            self._builder.numbers(self._open)
        self._open = {}


# Lines that several ranks of one training print: those of the first that printed them are the records of the run. Of
# the others the loss, the gradient norm and the times of each step are kept, so that the ranks can be compared.


MAX_OF_RANKS = 2_000_000
"""Values of other ranks that are kept. Chosen: 32 MB of numbers."""


class Ranks:
    """Knows which rank's lines are read, of each kind of line, and what those of the others say."""

    def __init__(self) -> None:
        self._owner: dict[tuple[str, ...], int] = {}
        self._others: Counter[int] = Counter()
        self._values: dict[tuple[str, int], list[tuple[Floats, Floats]]] = {}
        self._kept = 0

    def is_echo(self, like: Parsed) -> bool:
        """Say whether lines like this one are what another rank prints too."""
        return like.telling and like.rank is not None and self._owner.get(tuple(like.metrics), like.rank) != like.rank

    def echoes(self, parsed: Parsed) -> bool:
        """Take a line that was parsed; return whether it is left out."""
        if not parsed.telling or parsed.rank is None:
            return False
        self._owner.setdefault(tuple(parsed.metrics), parsed.rank)
        if not self.is_echo(parsed):
            return False
        counters = {name: np.array([value]) for name, value in parsed.counters.values.items()}
        self.leave_out(parsed, counters, {name: np.array([value]) for name, value in parsed.metrics.items()})
        return True

    def leave_out(self, like: Parsed, counters: Mapping[str, Floats], metrics: Mapping[str, Floats]) -> None:
        """Take lines of another rank.

        Each column has the shape (n,).
        """
        rank, size = like.rank or 0, len(next(iter(metrics.values())))
        self._others[rank] += size
        if "step" not in counters or (len(self._others) > MAX_RANKS and rank not in self._ranks):
            return
        for name, values in metrics.items():
            if is_compared(name) and self._kept + size <= MAX_OF_RANKS:
                self._kept += size
                self._values.setdefault((name, rank), []).append((counters["step"], values))

    @property
    def _ranks(self) -> set[int]:
        return {rank for _, rank in self._values}

    def end(self, builder: RunBuilder) -> None:
        """Give what is kept to the builder, and say what was left out."""
        if not self._others:
            return
        for names, owner in self._owner.items():
            for name in names:
                others = {rank: parts for (of, rank), parts in self._values.items() if of == name}
                if others:
                    builder.of_ranks(name, owner, {rank: _joined(parts) for rank, parts in others.items()})
        kept = f", and their {COMPARED_IN_WORDS} are compared" if self._values else ""
        builder.note(
            f"left out {sum(self._others.values())} line(s) that {len(self._others)} other rank(s) printed alike: "
            f"one rank's records are read{kept}"
        )


def _joined(parts: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    return np.concatenate([step for step, _ in parts]), np.concatenate([value for _, value in parts])


# Steps that are printed rounded ("6K") → the exact ones, where the interval between records tells them.

_ROUNDED_TO = 1000
"""The unit of "6K": an exact step lies no further from what was printed."""


class RoundedSteps:
    """Keeps the records whose step is rounded."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._printed: dict[int, float] = {}

    def take(self, row: int, step: float) -> None:
        """Take note of a rounded step by the index of its record."""
        self._printed[row] = step

    def settle(self) -> None:
        """Give the records their exact steps: by the interval of the exact ones before them, else the mean one."""
        if not self._printed:
            return
        steps = self._builder.column("step")
        exact = [(row, step) for row, step in steps if row not in self._printed]
        if len(exact) >= 2:
            interval = exact[1][1] - exact[0][1]
            base_row, base = exact[-1]
        else:
            span = steps[-1][1] - steps[0][1]
            interval = float(f"{span / max(len(steps) - 1, 1):.1g}")
            base_row, base = steps[0]
        order = {row: index for index, (row, _) in enumerate(steps)}
        restored = {row: base + interval * (order[row] - order[base_row]) for row in sorted(self._printed)}
        if all(abs(restored[row] - printed) <= _ROUNDED_TO for row, printed in self._printed.items()):
            rows = np.array(list(restored), dtype=np.int64)
            self._builder.overwrite_steps(rows, np.array(list(restored.values())))
            if interval:
                counted_on = f"counted on by the interval of {interval:g} between the exact ones"
                self._builder.note(f"steps are printed rounded ('6K'): {counted_on}")
        else:
            self._builder.note("steps are printed rounded ('6K'): several records share one step")


# Records of one kind, many of them: how those of several kinds that take turns become columns.


class Lot(NamedTuple):
    """Lines of one shape that are records, or parts of one.

    Args:
        like: One of them; None if they are printed dicts.
        columns: Their counters and metrics by name, each of shape (n,).
        rows: Which record each of them belongs to, ascending, shape (n,).
        regular: They have a training loss.
    """

    like: Parsed | None
    columns: Mapping[str, Floats]
    rows: Rows
    regular: bool = False


def carried(lots: Sequence[Lot], size: int, before: float | None) -> Floats:
    """Return the epoch at each of `size` records, as last logged, NaN before any, shape (size,).

    `before` is the epoch that was logged before them.
    """
    epoch_at = np.full(size, np.nan)
    for lot in lots:
        if "epoch" in lot.columns:
            epochs = lot.columns["epoch"]
            sure = np.ones(len(epochs), dtype=np.bool_) if lot.like is not None else epochs != 0
            epoch_at[lot.rows[sure]] = epochs[sure]
    last = np.maximum.accumulate(np.where(np.isnan(epoch_at), -1, np.arange(size)))
    epochs = np.append(epoch_at, np.nan if before is None else before)[last]  # -1 is the one before
    return np.asarray(epochs)


def with_epochs(lots: Sequence[Lot], epochs: Floats) -> list[Lot]:
    """Return records where lines that name no epoch have that of the lines above them: `epochs`, shape (records,)."""
    filled: list[Lot] = []
    for lot in lots:
        here = epochs[lot.rows]
        known = ~np.isnan(here)
        if lot.like is None or "epoch" in lot.columns or not known.any():
            filled.append(lot)
        elif known.all():
            filled.append(lot._replace(columns={"epoch": here, **lot.columns}))
        else:
            filled += [lot, Lot(lot.like, {"epoch": here[known]}, lot.rows[known])]
    return filled


def scattered(lots: Sequence[Lot], size: int) -> tuple[dict[str, Floats], dict[str, NDArray[np.bool_]]]:
    """Return the columns of the records, and of each that some records lack, which hold it; all of shape (size,)."""
    values: dict[str, Floats] = {}
    holders: dict[str, list[int]] = {}
    for place, lot in enumerate(lots):
        for name, column in lot.columns.items():
            if name not in values:
                values[name] = np.empty(size)
            values[name][lot.rows] = column
            holders.setdefault(name, []).append(place)
    masks: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for places in {tuple(places) for places in holders.values()}:
        masks[places] = np.zeros(size, dtype=np.bool_)
        for place in places:
            masks[places][lots[place].rows] = True
    logged = {name: masks[tuple(places)] for name, places in holders.items()}
    return values, {name: mask for name, mask in logged.items() if not mask.all()}


# Parsed lines → records.

MIN_NAMES_OF_ROW, MOST_OTHER_WORDS = 4, 2
"""Numbers by name that make a record of a line with a counter whose names nobody knows, where the log has records; and
other words in it for each of these. Chosen by hand: a heading tells fewer, and a sentence more."""
_LETTERS = regex(r"[A-Za-z]{3,}")
_OF_WHOLE_EPOCH = regex(r"\bfinished\b|\[(?:avg|average|mean)\]", re.IGNORECASE, needs=("finished", "[a", "[mean"))
"""Words of a line that tells means over an epoch: "Finished Epoch[ 3 of 9]: ..." (CNTK), "[Epoch 3/9][Avg]"."""
MIN_EVALUATIONS_BEHIND = 2
"""Evaluations under the heading of a closing one that are compared with each other. Chosen: one is a result."""
_AGAIN = regex(r"(?:run|pass|turn|try|trial|repeat|repetition|attempt|time|seed)\s?#?\d{1,3}", re.IGNORECASE)
"""Labels of evaluations that are made one after another."""
_WORDS_OF_LINE = regex(r"[^\W\d]\w{0,40}")
MAX_WORDS_OF_METRIC = 3
"""Words for each metric of a line that is of the heading above. Chosen: more are a sentence on something else."""
_OF_TRAINING_ROWS = regex(r"\btrain", re.IGNORECASE)
MAX_EVALUATIONS_ALONE = 100_000
"""Evaluations in a log of nothing else that are kept. Chosen: a run has fewer."""
MIN_INTERVALS_BEFORE = 3
"""Intervals before the first evaluation of a log of nothing else, from which on it counts no batches. Chosen."""
MAX_ROWS_BETWEEN_COUNTERS = 3
"""Lines from the row above, up to which another counter is of the same block. Chosen by hand."""


class PassUnderWay(NamedTuple):
    """The last line of an evaluation that counts its batches, before its last batch has been shown.

    Args:
        number: Number of the line.
        parsed: What it says.
        batch: Its batch, and how many there are.
    """

    number: int
    parsed: Parsed
    batch: tuple[int, int]

    @property
    def tells_most(self) -> bool:
        """Whether half of the batches are behind it: before that, it says little of the whole evaluation."""
        return self.batch[0] >= self.batch[1] / 2 or not self.parsed.counters.length_is_known


class Assembler:
    """Puts what lines say together and gives the records to the builder."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._counters: dict[str, float] = {}
        self._block: dict[str, float] = {}
        self._rows_above: dict[str, float] = {}  # those under a heading that stand above its first metric
        self._line = 0
        self._added = 0  # the last line without a counter that added to the open record
        self._heading = False
        self._is_counted = False  # the heading says how many there are to be: it is none of a configuration
        self._drawn = False
        self._is_evaluated = False
        self._step_name = ""
        self._first_pass = FirstPass()
        self._epoch: float | None = None
        self._ended: float | None = None  # the epoch that a line above ended: what is trained below is of the next
        self._step: float | None = None
        self._total = 0
        self._names_both = False  # lines name the epoch and the step, which may go on over epochs
        self._early: tuple[int, Parsed] | None = None  # an evaluation above all training, at "0/9000"
        self._under_way: PassUnderWay | None = None
        self._evaluated: deque[PassUnderWay] = deque(maxlen=MAX_EVALUATIONS_ALONE)  # above all training
        self._shown_in_part: list[tuple[int, int]] = []  # the last batch, and how many there are, of such evaluations
        self._tells_loss_so_far = False
        self._batches = EpochBatches()
        self._plan = CountedPlan()
        self._of_batch: frozenset[str] = frozenset()
        self._leftovers = Leftovers(builder)
        self._metric_lines = 0
        self._counted = 0
        self.ranks = Ranks()
        self._rounded = RoundedSteps(builder)
        self._rounded_block = False
        self._loss = ""
        self._losses: set[str] = set()
        self._labels: set[str] = set()  # of the lines whose metrics are in the open record, "" for none
        self._in_heading: set[str] = set()  # what the line of the open heading tells itself
        self._below_heading: Mapping[str, object] = {}  # the dict that a heading counted last
        self._own_labels: set[str] = set()  # those whose lines are series of their own
        self._first_row: tuple[str, Set[str]] = "", frozenset()  # the label and names of the line taken last
        self._closing: list[tuple[int, Parsed]] | None = None  # lines under the heading of a closing evaluation
        self._closing_set = ""  # the set that a heading among them names

    @property
    def step(self) -> float | None:
        """The last step that a record named."""
        return self._step

    @property
    def epoch(self) -> float | None:
        """The epoch that the last heading or record named."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: float | None) -> None:
        self._epoch = epoch

    def count_batches_over_all(self) -> None:
        """Say that the batches of epochs are counted over all of them."""
        self._batches.count_over_all()

    @property
    def is_open(self) -> bool:
        """Whether a record was begun that the next lines may add to."""
        return bool(self._block)

    @property
    def holds_record(self) -> bool:
        """Whether what is open is a record; what stands before all that was measured is configuration."""
        has_begun = self._builder.records > 0 or self._is_evaluated or any(map(_is_of_training, self._block))
        return bool(self._block) and has_begun

    @property
    def _has_records(self) -> bool:
        """Whether the log has a record, which may still be open: so do a line's amounts belong to its step."""
        return self._builder.records > 0 or self.holds_record

    def take(self, number: int, parsed: Parsed) -> None:
        """Take a line that was parsed."""
        if self.ranks.echoes(parsed):
            return
        if self._closing is not None and parsed.telling and not (parsed.counters.values or parsed.counters.batch):
            few_words = len(_WORDS_OF_LINE.findall(parsed.counters.rest)) <= MAX_WORDS_OF_METRIC * len(parsed.metrics)
            if self._closing_set and few_words:
                parsed.metrics = {f"{name}_{self._closing_set}": value for name, value in parsed.metrics.items()}
            self._closing.append((number, parsed))
            return
        self._take_closing()
        self._count_of_the_run(parsed)
        self._mark_second_pass(parsed)
        batch = parsed.counters.batch
        if parsed.evaluation and batch and batch[0] < batch[1] - 1:
            if self._step is None and not parsed.counters.values:
                self._early = number, parsed
                self._evaluated.append(PassUnderWay(number, parsed, batch))
            if self._under_way and batch[0] < self._under_way.batch[0]:
                self._end_pass(as_shown=True)
            self._under_way = PassUnderWay(number, parsed, batch)
            return  # its last line has the averages
        if parsed.telling:
            self._add_loss_so_far(parsed)
            self._end_pass(as_shown=not parsed.sums_up and bool(parsed.counters.values or batch))
        self._take(number, parsed)

    def begin_closing(self) -> None:
        """Take note of a line that heads evaluations of trained weights: what stands below may be no record."""
        self._take_closing()
        self._closing, self._closing_set = [] if self._has_records else None, ""

    def name_closing_set(self, heading: str) -> bool:
        """Take note of the set that a heading below such a heading names, if it does: other sets give other values."""
        named = set_in(heading) if self._closing is not None else ""
        self._closing_set = named or self._closing_set
        return bool(named)

    def _take_closing(self) -> None:
        """Take the lines under such a heading as any others: training goes on behind them."""
        lines, self._closing = self._closing or [], None
        for number, parsed in lines:
            self.take(number, parsed)

    def end_closing(self) -> None:
        """Keep the lines under such a heading as evaluations of the last weights, where they are several.

        Those of training rows, or of a set that is named, are compared with no others.
        """
        lines = self._closing or []
        for _, line in lines:
            if _OF_TRAINING_ROWS.search(line.counters.rest):
                line.label = line.label or "rows of training"
        again = [line for _, line in lines if not line.label or _AGAIN.fullmatch(line.label)]
        if len(again) < MIN_EVALUATIONS_BEHIND:
            self._take_closing()
            return
        self._closing = None
        self._leftovers.keep_in_turn([line.metrics for line in again])
        for number, line in lines:
            if line not in again:
                self.take(number, line)

    def end_pass(self) -> None:
        """Leave an evaluation that is under way: something else stands behind its last line."""
        self._end_pass(as_shown=True)

    def _end_pass(self, *, as_shown: bool) -> None:
        """Leave an evaluation that is under way.

        Its last line stands for it (`as_shown`) where another pass or training begins behind that line. Anything else
        that is measured there, such as a line of averages, tells what came out.
        """
        ended, self._under_way = self._under_way, None
        placed = ended is not None and (self._step is not None or "epoch" in ended.parsed.counters.values)
        if ended and as_shown and ended.tells_most and ended.parsed.telling and placed:
            at, total = ended.batch
            self._shown_in_part.append((at, total if ended.parsed.counters.length_is_known else 0))
            self._take(ended.number, ended.parsed)

    def _take(self, number: int, parsed: Parsed) -> None:
        self._names_both |= parsed.telling and {"epoch", "step"} <= parsed.counters.values.keys()
        values = self._placed(number, parsed)
        if parsed.telling:
            self._take_metrics(number, values, parsed)
        elif values and parsed.goes_on and len(parsed.metrics) == 1:
            if self._block and self._belongs_by_counters(values):
                self._add({name: value for name, value in parsed.metrics.items() if self._lacks([name])})
        elif values and len(parsed.metrics) > ("episode" not in values) and not self._has_records:
            self._leftovers.take(number, {**values, **parsed.metrics}, known=False, is_row=_is_row(parsed))
        elif values and _is_row(parsed) and not self._belongs_by_counters(values):
            self._with_counter(number, values, parsed)
        elif values and not is_remark(parsed):
            named = parsed.metrics and not (parsed.evaluation or parsed.counters.weak)
            if named and self._block and self._belongs_by_counters(values):
                self._add({name: value for name, value in parsed.metrics.items() if self._lacks([name])})
                self._line = number
            else:
                self._take_heading(number, values, parsed)
        elif not values:
            self._take_below(number, parsed)

    def _take_below(self, number: int, parsed: Parsed) -> None:
        """Take a line without a counter that names no metric by which it is a record of its own."""
        near = number - self._line <= MAX_LINES_BELOW_RECORD
        begun = self._heading and (self._block or self._is_counted)
        if begun and near and (len(parsed.metrics) == 1 or any(map(is_pace, parsed.metrics))):
            # a row of a block: "Mean episode length: 21.5"
            if self._block:
                self._add(parsed.metrics)
            else:
                self._add(_record_metrics(parsed))
                self._rows_above |= parsed.metrics
        elif self._counters and number - self._line <= MAX_LINES_BELOW_RECORD // 4:
            named = parsed.metrics if parsed.goes_on and self.holds_record else _record_metrics(parsed)
            if parsed.goes_on and self._heading and not self._block:
                self._rows_above |= parsed.metrics
            self._add({name: value for name, value in named.items() if self._lacks([name])})
            self._line = number if self._heading and parsed.metrics else self._line  # its block goes on

    def _add_loss_so_far(self, parsed: Parsed) -> None:
        """Add the loss of the evaluation under way to a summary that has scores alone: " * Acc@1 71.2 Acc@5 90.1"."""
        if self._under_way is None or not parsed.evaluation or parsed.counters.batch:
            return
        (_, before, (at, of)), known = self._under_way, set(map(canonical, parsed.metrics))
        losses = {name: value for name, value in before.metrics.items() if canonical(name) == "eval_loss"}
        if (
            not self._under_way.tells_most
            or not losses
            or "eval_loss" in known
            or known.isdisjoint(map(canonical, before.metrics))
        ):
            return
        parsed.metrics = {**losses, **parsed.metrics}
        if not self._tells_loss_so_far:
            self._builder.note(f"eval_loss: the mean of an evaluation up to where it is printed, {at} of {of}")
        self._tells_loss_so_far = True

    def _take_metrics(self, number: int, values: dict[str, float], parsed: Parsed) -> None:
        self._metric_lines += 1
        self._counted += bool(values) or bool(self._counters)
        is_own = self._is_series_of_its_own(number, values, parsed)
        if is_own:
            self._own_labels.add(parsed.label)
            under = _of_row if parsed.labels_row else "{}/{}".format
            self._name_first_row(parsed)
            parsed.metrics = {under(parsed.label, name): value for name, value in parsed.metrics.items()}
        else:
            parsed.metrics = self._as_before(parsed.metrics)
            self._first_row = parsed.label if parsed.labels_row else "", frozenset(parsed.metrics)
        if values:
            if not self._has_records and not parsed.evaluation:
                self._leftovers.give_rows()
            self._with_counter(number, values, parsed)
        elif is_own and self._is_near_record(number):
            self._add(parsed.metrics)
        else:
            self._without_counter(number, parsed)

    def _is_series_of_its_own(self, number: int, values: Mapping[str, float], parsed: Parsed) -> bool:
        """Say whether a line measures something else than the open record: it repeats names under its own label."""
        if not parsed.label or parsed.label in self._own_labels:
            return parsed.label != ""
        if parsed.label in self._labels:
            return False
        here = self._belongs_by_counters(values) if values else self._is_near_record(number)
        block = {canonical(name): value for name, value in self._block.items()}
        block.pop("elapsed", None)  # a clock goes on
        again = [(block[known], value) for name, value in parsed.metrics.items() if (known := canonical(name)) in block]
        if parsed.label == "test":  # what is of training in the record tells nothing of another set
            again = [pair for pair in again if any(map(is_evaluation, block))]
        return here and any(before != value for before, value in again)

    def _name_first_row(self, like: Parsed) -> None:
        """Give the row above, whose names this one repeats, its label, too; a set keeps its names."""
        label, names = self._first_row
        if label and not names_phase(label) and names == like.metrics.keys():
            self._own_labels.add(label)
            self._block = {_of_row(label, name) if name in names else name: self._block[name] for name in self._block}

    def _is_near_record(self, number: int) -> bool:
        near = self._heading or number - self._line <= MAX_LINES_BELOW_RECORD or number == self._added + 1
        return bool(self._counters) and near

    def _take_heading(self, number: int, values: dict[str, float], parsed: Parsed) -> None:
        if parsed.counters.weak and not parsed.counters.step_name and not self._heading and self._has_records:
            return  # "#2" numbers something else where records count in words
        if self._is_second_step(number, values, parsed):
            self._add({parsed.counters.step_name: values["step"]})
            self._line = number
            return
        if self._heading and not self._block and self._tells_how_many(parsed.counters.step_name):
            total = replace(parsed.counters, planned=(("step", int(self._counters["step"])),))
            self._plan.take(total, values.get("step"), 0)
        self._step_name = parsed.counters.step_name
        self._open(number, values, {}, heading=True)
        is_alone = parsed.counters.rest.strip(" |:;.=-#[]") == "" and not parsed.counters.weak
        self._is_counted = bool(parsed.counters.planned) or is_alone
        self._add(_record_metrics(parsed))  # Caffe: "Iteration 100, lr = 0.01"
        self._in_heading = {*self._block}
        self._rows_above |= {name: value for name, value in parsed.metrics.items() if is_pace(name) or "_" in name}

    def _is_second_step(self, number: int, values: Mapping[str, float], parsed: Parsed) -> bool:
        """Say whether a row of a block counts steps by another name than the heading: "Iteration: 3", "Frames: 512"."""
        name = parsed.counters.step_name
        begun = self._heading and "step" in self._counters and number - self._line <= MAX_ROWS_BETWEEN_COUNTERS
        is_other = name not in ("", self._step_name) and not self._tells_how_many(name)
        return begun and values.keys() == {"step"} and not parsed.metrics and is_other

    def _tells_how_many(self, name: str) -> bool:
        """Say whether the heading names the plural of a counter: "updates = 320" above all "update = 20"."""
        return "step" in self._counters and name.strip() != "" and self._step_name.strip() == f"{name.strip()}s"

    @property
    def under_heading(self) -> bool:
        """Whether the last counter stood alone, so that metrics below belong to it."""
        return self._heading

    def passes_over(self, number: int, *, known: bool) -> bool:
        """Say whether a line without a counter and without a telling metric belongs to nothing above it."""
        below = number - self._line
        if below > MAX_LINES_BELOW_RECORD:
            return True
        return not self._heading and (not known or not self._counters or below > MAX_LINES_BELOW_RECORD // 4)

    def is_steady(self, like: Parsed) -> bool:
        """Say whether lines like the one that was taken last are each a record of its own, and no exception."""
        counters = like.counters
        counted = bool(counters.values) or (counters.batch is not None and not like.evaluation)
        rounded = counters.rounded or (counters.batch is not None and like.evaluation)
        if like.label in self._own_labels:
            return False
        is_first = counters.total in (None, self._first_pass.total) or not self._counts_pass(like)
        return is_first and like.telling and counted and bool(like.metrics) and not self._renames(like) and not rounded

    def stands_alone(self, number: int, like: Parsed) -> bool:
        """Say whether lines like the one that was taken last, without a counter, belong to nothing from a line on."""
        return not self._is_near_record(number) and not self._renames(like) and not self.ranks.is_echo(like)

    def many_alone(self, numbers: NDArray[np.int64], metrics: Mapping[str, Floats]) -> None:
        """Take lines of one shape that stand alone and follow one another.

        Each column has the shape (n,).
        """
        size = len(numbers)
        self._metric_lines, self._counted = self._metric_lines + size, self._counted + size * bool(self._counters)
        if size:
            self._leftovers.many(numbers, metrics)

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
            self.ranks.leave_out(like, counters, metrics)
            return
        begun = float(counters["epoch"][0]) if "epoch" in counters else None
        headed = {} if like.evaluation else self._take_headed({*counters, *(["step"] if batch else [])}, begun)
        headed = {name: value for name, value in headed.items() if name not in metrics}
        metrics = {**metrics, **{name: np.full(size, value) for name, value in headed.items()}}
        logged = {**logged, **dict.fromkeys(headed, np.arange(size) == 0)}
        self.flush()
        self._metric_lines, self._counted = self._metric_lines + size, self._counted + size
        columns = dict(counters)
        if not batch and not like.evaluation and self.counts_batches(like):
            batch = [columns.pop("step"), np.full(size, float(like.counters.total or 0))]
        if batch and "step" not in columns:
            epoch = columns.get("epoch", np.full(size, self._epoch or 0.0))
            columns["step"] = self._batches.steps(epoch, np.trunc(batch[0]), np.trunc(batch[1]))
            self._batches.correct(self._builder, self._counters)
        if "step" in columns:
            self._step = float(columns["step"][-1])
            if self._counts_pass(like):
                self._first_pass.reaches(self._epoch or 0.0, self._step)
        if "epoch" in columns:
            self._epoch = float(columns["epoch"][-1])
        elif self._epoch is not None:
            columns["epoch"] = np.full(size, self._epoch)
        if not like.evaluation:
            step = float(columns["step"][-1]) if "step" in columns else None
            self._plan.take(like.counters, step, float(batch[1][-1]) if batch else 0)
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

        The lots are dicts, and lines with counters but no batch; they make `size` records.
        """
        self._end_pass(as_shown=True)
        self.flush()
        first, epochs = self._builder.rows, carried(lots, size, self._epoch)
        lines = sum(len(lot.rows) for lot in lots if lot.like is not None)
        self._metric_lines, self._counted = self._metric_lines + lines, self._counted + lines
        self._epoch = self._epoch if np.isnan(epochs[-1]) else float(epochs[-1])
        last = max((lot for lot in lots if lot.like is not None), key=lambda lot: lot.rows[-1], default=None)
        if last is not None and "step" in last.columns:
            self._step = float(last.columns["step"][-1])
        if last is not None and last.like is not None and not last.like.evaluation:
            self._plan.take(last.like.counters, self._step, 0)
        losses = [(int(lot.rows[-1]), _loss_in(lot.like.metrics)) for lot in lots if lot.like is not None]
        self._loss = max([(-1, self._loss), *(loss for loss in losses if loss[1])])[1]
        self._losses.update(name for _, name in losses if name)
        self._builder.columns(*scattered(with_epochs(lots, epochs), size))
        return first

    def whole(self, number: int, values: Mapping[str, object]) -> int | None:
        """Take a record that is complete in itself, such as a dict; return its index, None if it held no number."""
        heads = self._heading and self._block.keys() == self._in_heading
        if not any(canonical(name) in COUNTERS for name in values):
            near = number - self._line <= MAX_LINES_BELOW_RECORD
            if near and not heads and values == self._below_heading:  # by another logger
                return None
            if near and heads and self._counters:
                self._below_heading = values
                values, self._block = {**self._counters, **self._block, **values}, {}
        self.flush()
        self._line = number
        row = self._builder.rows
        self._epoch = to_number(values.get("epoch")) or self._epoch
        return row if self._builder.record(values) else None

    def flush(self) -> None:
        """Give the open record to the builder."""
        self._take_closing()
        if self.holds_record:
            if self._rounded_block and "step" in self._counters:
                self._rounded.take(self._builder.rows, self._counters["step"])
            self._builder.numbers({**self._counters, **self._block})
        self._block, self._counters, self._heading, self._rounded_block = {}, {}, False, False
        self._rows_above = {}
        self._drawn = self._is_evaluated = False

    def keeps_by_rows(self, rows: float, scores: Mapping[str, float]) -> bool:
        """Keep what an evaluation of so many rows at once printed behind the records; return whether it is kept."""
        return self._leftovers.keeps({"eval_batch_size": rows, **scores})

    def end(self) -> None:
        """Finish: give what is left to the builder and say what was left out."""
        if self._are_of_run():
            self._under_way = None
            for number, parsed, (at, total) in self._evaluated:
                parsed.counters.values, parsed.counters.batch = {"step": float(at)}, None
                self._take(number, parsed)
                self._plan.take(replace(parsed.counters, planned=(("step", total),)), float(at), 0)
        if self._under_way:
            known = self._under_way.parsed.counters.length_is_known
            self._end_pass(as_shown=not known or self._under_way.batch in self._shown_in_part)
        self.flush()
        self._leftovers.end()
        self.ranks.end(self._builder)
        self._rounded.settle()
        self._builder.planned |= self._plan.totals(counts_over_all=self._batches.are_over_all)
        if note := self._batches.note():
            self._builder.note(note)
        if self._shown_in_part:
            at, total = self._shown_in_part[-1]
            self._builder.note(
                f"no line of the last batch ends {counted(len(self._shown_in_part), 'evaluation')}: the last one "
                f"shown stands for each, such as {at}{f' of {total}' if total else ''}"
            )
        if self._counted and self._builder.formats[1:] == []:
            self._builder.note(
                f"text of no known framework: {self._counted / self._metric_lines:.0%} of the {self._metric_lines} "
                "lines with metrics stand by a step or an epoch, and are read as records"
            )

    def _are_of_run(self) -> bool:
        """Say whether evaluations that count to an end they never reach count the steps of a run.

        So it is where nothing else is measured and the count stands in front: "[72000/300000] valid loss: 1.2". Batches
        follow each other, and begin near 0.
        """
        if self._has_records or len(self._evaluated) < MIN_REPEATED_LINES:
            return False
        pairs = list(pairwise(self._evaluated))
        rises = all(before.batch < after.batch and before.batch[1] == after.batch[1] for before, after in pairs)
        (first, _), (second, _) = (evaluated.batch for evaluated in pairs[0])
        begins_late = first > MIN_INTERVALS_BEFORE * (second - first)
        apart = all(after.number - before.number > 1 for before, after in pairs)
        return rises and (apart or begins_late) and not any(each.parsed.counters.phase for each in self._evaluated)

    def _placed(self, number: int, parsed: Parsed) -> dict[str, float]:
        """Return the counters of a line, with the batch of an epoch turned into a step."""
        counters: Counters = parsed.counters
        values = dict(counters.values)
        settings = counters.weak and not parsed.telling and values.keys() == {"epoch"}  # "lr=0.1 epochs=24"
        if not settings:
            self._take_epoch(values, parsed)
        if not parsed.evaluation and self.counts_batches(parsed):  # "Epoch 2/5", and below it "batch 15/391"
            counters.batch = (int(values.pop("step")), counters.total or 0)
        if counters.batch is None and not parsed.evaluation and self._batches.is_whole_epoch(values):
            counters.batch = (int(values["step"]), int(values.pop("step")))  # Poutyne: "Epoch: 2/5 Train steps: 15"
            parsed.metrics = {name: value for name, value in parsed.metrics.items() if name not in self._of_batch}
        elif counters.batch and parsed.telling and not parsed.evaluation:
            self._of_batch = frozenset(parsed.metrics)
        if counters.batch and "step" not in values and not parsed.evaluation:
            if self._epoch is not None:  # no sooner: a heading may tell how many there are
                self._batches.begin(self._epoch, counters.first_epoch)
            values["step"] = self._batches.step(self._epoch or 0.0, *counters.batch)
            self._batches.correct(self._builder, self._counters)
        if counters.batch and parsed.evaluation and not values and self._step is not None:
            values["step"] = self._step  # an evaluation that counts its own batches stands at the last step
        if parsed.telling:
            self._step = values.get("step", self._step)
        if not parsed.evaluation and not self._is_second_step(number, values, parsed):
            self._plan.take(counters, values.get("step"), counters.batch[1] if counters.batch else 0)
        return values

    def _take_epoch(self, values: Mapping[str, float], parsed: Parsed) -> None:
        """Take the epoch that a line names, or the next one where a line trains on behind the end of one.

        One that ends before any step says nothing of the steps below.
        """
        counters, epoch = parsed.counters, values.get("epoch")
        if epoch is None:
            if self._ended is not None and parsed.telling and not parsed.evaluation and (values or counters.batch):
                self._epoch, self._ended = self._ended + 1, None
            return
        self._ended = epoch if counters.ends_epoch and self._step is not None else None
        if counters.ends_epoch and self._step is None:
            return
        if self._ended is not None and self._epoch is None:
            self._batches.end(epoch, self._step or 0.0)
        self._epoch = epoch

    def _mark_second_pass(self, parsed: Parsed) -> None:
        """Take "step 5/60" for a batch of an evaluation where the epoch was trained on in "step 5/240"."""
        batch = parsed.counters.batch
        if batch and parsed.metrics and all(map(is_evaluation, parsed.metrics)):
            parsed.evaluation = parsed.evaluation or self._batches.is_another(*batch)
        if not self._counts_pass(parsed):
            return
        at, total, first = parsed.counters.values["step"], parsed.counters.total or 0, self._first_pass
        if parsed.evaluation:
            is_another = first.epoch == self._epoch and total != first.total
        else:
            is_another = first.is_over(self._epoch or 0.0, at, total, tuple(parsed.metrics))
        if is_another:
            parsed.evaluation, parsed.counters.batch = True, (int(at), total)
            parsed.counters.values = {"epoch": self._epoch or 0.0}
            parsed.metrics = {evaluation_name(name): value for name, value in parsed.metrics.items()}

    def counts_batches(self, like: Parsed) -> bool:
        """Say whether lines like this one count the batches of the epoch in a heading, and no line names both."""
        return not self._names_both and self._counts_pass(like)

    def _counts_pass(self, like: Parsed) -> bool:
        """Say whether lines like this one count a pass of the epoch that stands above them."""
        counters = like.counters
        counted = counters.total is not None and counters.values.keys() == {"step"} and counters.batch is None
        return counted and self._epoch is not None and like.telling

    def _count_of_the_run(self, parsed: Parsed) -> None:
        """Take "[19/266]" of an evaluation for the step where training counts to as many.

        Where epochs are named, training must have come exactly as far: an evaluation may have as many batches.
        """
        counters = parsed.counters
        if not parsed.evaluation:
            if counters.batch and not counters.values and self._epoch is None:
                self._total = counters.batch[1]
            elif counters.total and parsed.telling:
                self._total = counters.total
            self._take_early(counters)
        elif counters.batch and not counters.values:
            at, total = counters.batch
            reached = at == self._step or (self._epoch is None and at > (self._step or 0.0))
            if self._batches.stands_at(at, total) and self._step is not None:
                counters.values, counters.batch = {"step": self._step}, None
            elif total == self._total and reached:
                counters.values, counters.batch = {"step": float(at)}, None

    def _take_early(self, counters: Counters) -> None:
        """Take the evaluation that stands above all training, once that shows that it counts the same steps."""
        if self._early is None:
            return
        (number, early), self._early = self._early, None
        at, total = early.counters.batch or (0, 0)
        if total == (counters.batch[1] if counters.batch else counters.total):
            early.counters.values, early.counters.batch = {"step": float(at)}, None
            self.take(number, early)

    def _with_counter(self, number: int, values: dict[str, float], parsed: Parsed) -> None:
        metrics = parsed.metrics
        if self._drawn and not parsed.drawn and values.get("step") == self._counters.get("step", math.nan):
            metrics = {name: value for name, value in metrics.items() if self._lacks([name])}  # the bar shows the rest
        if self._ends_an_epoch(values, parsed):
            metrics = {f"epoch_mean/{name}" if name in self._block else name: metrics[name] for name in metrics}
        if self._belongs(values, metrics):
            self._counters = {**self._counters, **values}
            self._labels.add(parsed.label)
            self._add(metrics)
            self._line = number
        else:
            inherited = {"epoch": self._epoch} if "epoch" not in values and self._epoch is not None else {}
            values = {**inherited, **values}
            headed = {} if parsed.evaluation else self._take_headed(values.keys(), values.get("epoch"))
            self._open(number, values, {**headed, **metrics}, heading=False)
            self._is_evaluated = parsed.evaluation and parsed.telling  # by measures of one's own, before any training
            self._drawn, self._labels = parsed.drawn, {parsed.label}
        self._rounded_block = self._rounded_block or parsed.counters.rounded

    def _take_headed(self, counters: Collection[str], epoch: float | None) -> dict[str, float]:
        """Return the metrics in the heading of an epoch, for the first record of its steps: "Epoch 2, lr: 0.01"."""
        heads = self._heading and self._counters.keys() == {"epoch"} and self._block.keys() == self._in_heading
        if not heads or "step" not in counters or epoch not in (None, self._counters["epoch"]):
            return {}
        headed, self._block = self._block, {}
        return headed

    def _ends_an_epoch(self, values: Mapping[str, float], parsed: Parsed) -> bool:
        """Say whether a line of an epoch that is over repeats the loss of its last step: it tells the mean."""
        if _OF_WHOLE_EPOCH.search(parsed.counters.rest) is None:
            return False
        loss = _loss_in(parsed.metrics) or next(filter(is_telling, parsed.metrics), "")
        repeats = loss in self._block and not (parsed.evaluation or parsed.drawn or self._drawn)
        return repeats and values.keys() == {"epoch"} and "step" in self._counters and self._belongs_by_counters(values)

    def _belongs(self, values: Mapping[str, float], metrics: Mapping[str, float]) -> bool:
        """Say whether a line with counters adds to the open record."""
        return self._belongs_by_counters(values) and self._block.keys().isdisjoint(metrics)

    def _belongs_by_counters(self, values: Mapping[str, float]) -> bool:
        same = all(self._counters.get(name, value) == value for name, value in values.items())
        return same and any(name in self._counters for name in values)

    def _without_counter(self, number: int, parsed: Parsed) -> None:
        metrics, label = parsed.metrics, parsed.label
        if self._is_near_record(number):
            if not self._heading and self._fails(number, metrics):
                return
            if self._lacks(metrics) or (parsed.goes_on and self._block.keys().isdisjoint(metrics)):
                self._labels.add(label)
                self._add(metrics)
                self._line = number if self._heading else self._line
                self._added = number
                return
            if self._heading:  # another record under the same heading
                if self._step_name.strip().lower() in _OF_SEVERAL_RECORDS and "step" in self._counters:
                    self._counters = {"epoch": self._counters["step"]}
                counters = self._counters
                self._open(number, counters, metrics, heading=True)
                self._labels = {label}
                return
        self._leftovers.take(number, metrics, known=True, label=label)

    def _fails(self, number: int, metrics: dict[str, float]) -> bool:
        """Take a loss that failed between two records ("Loss is nan, stopping training"): a step after the first."""
        failed, before = metrics.get(self._loss, 0.0), self._block.get(self._loss)
        if math.isfinite(failed) or before is None:
            return False
        if math.isfinite(before):  # else another rank has said so
            finest = next((name for name in ("step", "epoch") if name in self._counters), next(iter(self._counters)))
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

    def _lacks(self, names: Iterable[str]) -> bool:
        """Say whether the open record has none of these metrics, by any name: one that it has is of something else."""
        return {canonical(name) for name in self._block}.isdisjoint(map(canonical, names))

    def _add(self, metrics: Mapping[str, float]) -> None:
        if any(map(_is_of_training, metrics)):
            above, self._rows_above = self._rows_above, {}
            self._block |= above
        for name, value in metrics.items():
            self._block.setdefault(name, value)

    def _open(self, number: int, counters: dict[str, float], metrics: dict[str, float], *, heading: bool) -> None:
        if heading and not metrics and counters == {name: self._counters.get(name) for name in counters}:
            return  # the same heading again
        self.flush()
        self._line, self._heading, self._labels, self._in_heading = number, heading, set(), set()
        self._counters, self._block = counters, dict(metrics)


_OF_SEVERAL_RECORDS = ("round", "cycle", "outer", "stage")
"""Counters whose headings may have several records below, as an epoch has."""


def _of_row(label: str, name: str) -> str:
    """Return the name that a metric has under the label of its row: as that of a part, where the label is of one."""
    named, spaced = f"{label}/{name}", f"{label} {name}"
    is_lost = (role := role_of(named)) is not None and role.is_whole and not role.is_evaluation
    return spaced if is_lost and (part := role_of(spaced)) is not None and part.part else named


def _is_row(parsed: Parsed) -> bool:
    """Say whether a line with a counter tells many numbers by names that nobody knows, and heads nothing."""
    names = parsed.metrics
    if len(names) < MIN_NAMES_OF_ROW or parsed.evaluation or parsed.counters.weak or parsed.rank is not None:
        return False
    if any(map(is_of_record, names)):
        return False
    others = len(_LETTERS.findall(parsed.counters.rest)) - sum(len(_LETTERS.findall(name)) for name in names)
    return others <= MOST_OTHER_WORDS * len(names)


def _loss_in(metrics: Iterable[str]) -> str:
    return next((name for name in metrics if canonical(name) == "loss"), "")


def _is_of_training(name: str) -> bool:
    """Say whether a name is of what is measured: also of steps that were skipped, which have no loss."""
    return is_telling(name) or canonical(name) == "skipped_iterations" or name == UNNAMED or set_of(name) != ""


def _record_metrics(parsed: Parsed) -> dict[str, float]:
    return {name: value for name, value in parsed.metrics.items() if is_of_record(name)}
