"""Bars that report metrics → records: the last drawing for a step counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bars import Bar
from mldebug_mcp.logs.lines.counters import Counters
from mldebug_mcp.logs.lines.parsed import Parsed
from mldebug_mcp.logs.lines.said import Drawing
from mldebug_mcp.logs.names import is_evaluation


class _Last(NamedTuple):
    key: tuple[object, ...]
    number: int
    parsed: Parsed
    keras: bool


class DrawnBars:
    """Holds the last drawing of a bar until another step is drawn.

    Args:
        records: Where the records go.
    """

    def __init__(self, records: Assembler) -> None:
        self._records = records
        self._last: _Last | None = None
        self._shown: dict[str, float] = {}
        self._finished: Bar | None = None
        self.evaluated = False

    @property
    def open(self) -> bool:
        """Whether a drawing waits for the next one."""
        return self._last is not None

    def take(self, number: int, drawing: Drawing) -> None:
        """Take a drawing that reports a metric of training."""
        bar = drawing.bar
        if bar.keras and self._is_evaluation(bar):
            self.evaluated = True
            return
        last = self._drawn(number, drawing)
        if self._last is not None and self._last.key != last.key:
            if bar.at == 0 and drawing.metrics == self._last.parsed.metrics:
                return  # Lightning opens the bar of the next epoch with what the last one showed
            self.end()
        self._last = last

    def draws_one(self, like: Drawing, at: Floats, total: Floats) -> bool:
        """Say whether drawings of Keras are all of one bar that is not finished yet."""
        return self._finished is None and not like.bar.line and bool(np.all(at != total))

    def many(self, like: Drawing, columns: Sequence[Floats]) -> bool:
        """Take drawings of different steps that follow one another, if they are all like the last one that was taken.

        Args:
            like: One of them.
            columns: Their numbers, each of shape (n,): where they are, totals, those of the head, counters and metrics.
        """
        behind = 2 + len(like.head)
        counters = dict(zip(like.counters, columns[behind:], strict=False))
        metrics = dict(zip(like.metrics, columns[behind + len(counters) :], strict=True))
        groups = [[name for name in metrics if belongs(name)] for belongs in _GOES_ON]
        shown = [name for name in metrics if name in groups[0] or name in groups[1]]
        others = {name: 0.0 for name in metrics if name not in shown}
        if like.evaluation or (groups[0] and groups[1]) or not others:
            return False
        self.end()
        at, total, size = columns[0], columns[1], len(columns[0])
        batch: list[Floats] = []
        if "epoch" in counters and "step" not in counters:
            batch = [at, total]
        else:
            counters.setdefault("step", np.trunc(at))
            if self._records.epoch is not None:
                counters.setdefault("epoch", np.full(size, self._records.epoch))
        place = Counters(dict.fromkeys(counters, 0.0), first_epoch=0.0 if like.from_zero else None)
        parsed = Parsed(place, others, None, telling=True)
        if not self._records.is_steady(parsed):
            return False
        logged: dict[str, NDArray[np.bool_]] = {}
        if shown:
            before = [np.append(self._shown.get(name, math.nan), metrics[name][:-1]) for name in shown]
            news = np.asarray(np.any([metrics[name] != one for name, one in zip(shown, before, strict=True)], axis=0))
            logged = dict.fromkeys(shown, news)
            self._shown |= {name: float(metrics[name][-1]) for name in shown}
        self._records.many(parsed, counters, batch, metrics, logged)
        return True

    def heading(self, epoch: float, *, bare: bool) -> None:
        """Take note of a line that names an epoch; under a bare one Keras draws the bars of the next one."""
        if bare:
            self._finished = None
        last = self._last.parsed.counters.values if self._last is not None and self._last.keras else {"epoch": epoch}
        if last.get("epoch") != epoch:
            if not last and epoch > 1:
                last["epoch"] = epoch - 1  # the log begins inside an epoch, behind its heading
            self.end()

    def end(self) -> None:
        """Give the last drawing to the records."""
        if self._last is None:
            return
        drawing, self._last = self._last, None
        metrics = drawing.parsed.metrics
        for belongs in () if drawing.keras else _GOES_ON:
            shown = {name: value for name, value in metrics.items() if belongs(name)}
            # A bar goes on showing the last evaluation: what has not changed is not new.
            if len(metrics) > len(shown) and all(self._shown.get(name) == value for name, value in shown.items()):
                for name in shown:
                    del metrics[name]
            self._shown |= shown
        self._records.take(drawing.number, drawing.parsed)

    def _is_evaluation(self, bar: Bar) -> bool:
        """Say whether a bar of Keras is that of `evaluate`, which comes under the heading of the last epoch."""
        done = self._finished
        if done is None:
            self._finished = bar if bar.at == bar.total and self._records.epoch is not None else None
            return False
        return bar.line or bar.total != done.total or bar.at < done.total

    def _drawn(self, number: int, drawing: Drawing) -> _Last:
        bar, values, evaluation = drawing.bar, dict(drawing.counters), drawing.evaluation
        place = Counters(values, first_epoch=0.0 if drawing.from_zero else None)
        parsed = Parsed(place, dict(drawing.metrics), None, telling=True, evaluation=evaluation)
        if bar.keras:
            epoch = self._records.epoch
            if epoch is not None:
                values["epoch"] = epoch
            return _Last(("epoch", epoch), number, parsed, keras=True)
        named = evaluation or "step" in values
        key = (drawing.words, drawing.head, None if named else bar.at, bar.total)
        if "epoch" in values and "step" not in values:
            place.batch = (bar.at, bar.total)
        elif not evaluation:
            values.setdefault("step", float(bar.at))
            if self._records.epoch is not None:  # a heading that comes before the last drawing ends is of the next one
                values.setdefault("epoch", self._records.epoch)
        return _Last(key, number, parsed, keras=False)


def _is_of_epoch(name: str) -> bool:
    return name.endswith("_epoch")


_GOES_ON = (is_evaluation, _is_of_epoch)
"""What a bar goes on showing after it was measured."""
