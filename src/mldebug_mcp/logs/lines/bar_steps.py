"""The steps of printed dicts, which tell only the epoch: taken from the progress bar around them.

The Trainer prints its dict between two drawings of its bar, so the count of the next drawing is the step. Other bars
(evaluation, loading weights) and a bar that lags behind are told apart by the epoch, to which steps are proportional.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median

from mldebug_mcp.logs.builder import RunBuilder

_WAITING = 50
"""Dicts that wait for the next drawing."""
_MAX_BARS = 10_000
"""Bars, told apart by their lengths, that are remembered."""
ALIKE = 1.1
"""Times as many steps by the epochs as by the bar: then the bar lags. Chosen by hand."""
_LONGEST = 5
"""Bars that may be that of training: the longest ones."""


@dataclass(slots=True)
class _Dict:
    row: int
    epoch: float | None
    regular: bool
    counts: dict[int, int] = field(default_factory=dict)


class BarSteps:
    """Watches bars and dicts as they come."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._longest: list[int] = []
        self._dicts: list[_Dict] = []
        self._waiting: list[_Dict] = []
        self._events: list[_Dict] = []

    def __deepcopy__(self, memo: dict[int, object]) -> BarSteps:
        # A dict that has been printed changes only while bars are drawn below it.
        other = BarSteps()
        other._longest = self._longest  # replaced, never changed
        other._counts, other._dicts, other._waiting = self._counts.copy(), self._dicts.copy(), self._waiting.copy()
        other._events = self._events.copy()
        return other

    def bar(self, head: str, count: int, total: int) -> None:
        """Take a drawing of a bar that reports no metrics. The Trainer's own has no description before it."""
        if any(map(str.isalpha, head)) and not head.strip().lower().startswith("train"):
            return
        if total not in self._counts:
            if len(self._counts) >= _MAX_BARS:
                return
            self._longest = sorted((*self._longest, total), reverse=True)[:_LONGEST]
        self._counts[total] = count
        for one in self._waiting:
            one.counts[total] = count
        if self._waiting and total == self._longest[0]:
            self._waiting = []

    def printed(self, row: int, epoch: float | None, *, regular: bool) -> None:
        """Take a dict without a step: the record at `row`. A regular one has a training loss."""
        one = _Dict(row, epoch, regular, {total: self._counts[total] for total in self._longest})
        self._dicts.append(one)
        self._waiting = [*self._waiting[-_WAITING:], one]

    def event(self, row: int) -> None:
        """Take an event between records, such as a skipped step: the bar before it tells its step."""
        counts = self._counts.copy() if len(self._counts) <= _LONGEST else {}
        self._events.append(_Dict(row, None, regular=False, counts=counts))

    def settle(self, builder: RunBuilder) -> None:
        """Give the records their steps, if a bar tells them; if one exists and does not, say so."""
        told = [one for one in self._dicts if one.epoch is not None and one.epoch > 0]
        seen = Counter(total for one in told for total in one.counts)
        # Most bars of a long log stand by few of its records, and are no bar of training: look at the others alone.
        for total in sorted((total for total, times in seen.items() if times * 2 >= len(told)), reverse=True):
            steps = self._steps(told, total)
            if steps:
                builder.overwrite("step", {**self._of_events(total), **self._before_training(), **steps})
                builder.note("the printed records tell no step: it is read from the progress bar around them")
                return
        if len(self._dicts) < 2 and self._events and len(self._counts) == 1:  # nothing else it could be
            (total,) = self._counts
            shown = {one.row: float(one.counts[total]) for one in self._dicts if total in one.counts}
            builder.overwrite("step", {**self._of_events(total), **shown})
            builder.note("the printed records tell no step: it is read from the progress bar around them")
        elif steps := self._from_epochs(told):
            builder.overwrite("step", steps)
            builder.note(
                "the printed records tell no step: it is worked out from their epoch and the length of the bar"
            )
        elif told and self._counts:
            builder.note("the printed records tell no step, and the progress bar does not fit them: epochs are used")

    def _of_events(self, total: int) -> dict[int, float]:
        return {one.row: float(one.counts[total]) for one in self._events if total in one.counts}

    def _before_training(self) -> dict[int, float]:
        """Return step 0 for evaluations of epoch 0 that came before the first record of training."""
        first = next((one.row for one in self._dicts if one.regular), 0)
        return {one.row: 0.0 for one in self._dicts if one.row < first and one.epoch == 0}

    def _from_epochs(self, dicts: list[_Dict]) -> dict[int, float]:
        """Return the steps where stdout came in bursts, so that no bar stands by its record.

        The bar of training is the longest that was finished, and the last epoch is its end: a whole one, or one that
        makes the steps of an epoch whole. Epochs printed with two
        digits are too coarse to tell the step; then records at one interval are counted.
        """
        finished = [total for total, count in self._counts.items() if count == total]
        last = max((one.epoch or 0.0 for one in dicts), default=0.0)
        if not finished or not last:
            return {}
        per_epoch = max(finished) / last
        if last != round(last) and abs(per_epoch - round(per_epoch)) > 1e-3 * per_epoch:
            return {}
        steps = {one.row: float(round((one.epoch or 0.0) * per_epoch)) for one in dicts}
        logged = [one for one in dicts if one.regular]
        interval = float(max(finished) // max(len(logged), 1))
        slack = 0.0051 * per_epoch + 1
        counted = {one.row: interval * index for index, one in enumerate(logged, start=1)}
        if all(abs(counted[one.row] - (one.epoch or 0.0) * per_epoch) <= slack for one in logged):
            steps |= counted
        return steps if len(set(steps.values())) * 2 > len(steps) else {}

    def _steps(self, dicts: list[_Dict], total: int) -> dict[int, float]:
        """Return the step of each record if those of this bar are proportional to the epochs, else nothing."""
        seen = [(one, one.counts[total]) for one in dicts if one.counts.get(total)]
        if len(seen) * 2 < len(dicts) or len(seen) < 2:
            return {}
        per_epoch = median(count / (one.epoch or 1.0) for one, count in seen)
        if len({count for _, count in seen}) == 1:
            return {}
        # Epochs are printed rounded, to two or to four digits: both this one and the one that gave `per_epoch`.
        slack = 1 + 0.01 * per_epoch
        fits = {one.row for one, count in seen if abs(count - (one.epoch or 0.0) * per_epoch) <= slack + 0.02 * count}
        # Evaluations may stand by a later drawing; then their epoch tells the step.
        regular = [one.row for one in dicts if one.regular] or [one.row for one in dicts]
        if len(fits.intersection(regular)) * 10 < len(regular) * 9:
            return {}
        counted = {one.row: float(one.counts[total]) for one in dicts if one.row in fits}
        by_epoch = {one.row: float(round((one.epoch or 0.0) * per_epoch)) for one in dicts}
        # A bar that is drawn more seldom than dicts are printed stands still between two of them; late in the run it is
        # the smallest share of the steps that it lags by.
        last = max((one.epoch or 0.0, count / (one.epoch or 1.0)) for one, count in seen)[1]
        drawn_seldom = {one.row: float(round((one.epoch or 0.0) * last)) for one in dicts}
        apart = [len({steps[row] for row in fits.intersection(regular)}) for steps in (counted, drawn_seldom)]
        return drawn_seldom if apart[1] > ALIKE * apart[0] else {**by_epoch, **counted}
