"""Bars that report metrics → records: the last drawing for a step counts."""

from __future__ import annotations

from typing import NamedTuple

from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bars import Bar
from mldebug_mcp.logs.lines.counters import Counters, find_counters
from mldebug_mcp.logs.lines.pairs import pairs_in
from mldebug_mcp.logs.lines.parsed import Parsed
from mldebug_mcp.logs.lines.phases import is_of_evaluation
from mldebug_mcp.logs.names import canonical, is_evaluation, is_telling


class _Drawing(NamedTuple):
    key: tuple[str, int]
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
        self._last: _Drawing | None = None
        self._shown: dict[str, float] = {}
        self._finished: Bar | None = None
        self.evaluated = False

    def take(self, number: int, bar: Bar) -> bool:
        """Take a drawing; return False if it reports no metric that training prints."""
        counters = find_counters(bar.head)
        evaluation = is_of_evaluation(bar.head)
        metrics = {
            name: value
            for name, value in pairs_in(f"{counters.rest} | {bar.metrics}", evaluation=evaluation).items()
            if canonical(name) not in ("step", "epoch")
        }
        if not any(map(is_telling, metrics)):
            return False
        if bar.keras and self._is_evaluation(bar):
            self.evaluated = True
            return True
        place = Counters(dict(counters.values), first_epoch=0.0 if "v_num" in bar.metrics else None)
        drawing = self._drawing(number, bar, Parsed(place, metrics, None, telling=True, evaluation=evaluation))
        if self._last is not None and self._last.key != drawing.key:
            if bar.at == 0 and metrics == self._last.parsed.metrics:
                return True  # Lightning opens the bar of the next epoch with what the last one showed
            self.end()
        self._last = drawing
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
        for belongs in () if drawing.keras else (is_evaluation, _is_of_epoch):
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

    def _drawing(self, number: int, bar: Bar, parsed: Parsed) -> _Drawing:
        values = parsed.counters.values
        if bar.keras:
            epoch = self._records.epoch
            if epoch is not None:
                values["epoch"] = epoch
            return _Drawing((f"epoch {epoch}", 0), number, parsed, keras=True)
        named = parsed.evaluation or "step" in values
        key = (bar.head if named else f"{bar.head} {bar.at}", bar.total)
        if "epoch" in values and "step" not in values:
            parsed.counters.batch = (bar.at, bar.total)
        elif not parsed.evaluation:
            values.setdefault("step", float(bar.at))
            if self._records.epoch is not None:  # a heading that comes before the last drawing ends is of the next one
                values.setdefault("epoch", self._records.epoch)
        return _Drawing(key, number, parsed, keras=False)


def _is_of_epoch(name: str) -> bool:
    return name.endswith("_epoch")
