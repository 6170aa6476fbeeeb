"""A run as the symptoms see it: one series per metric, the configuration, and what was skipped on the way in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.text import figure

Floats = NDArray[np.float64]
Scalar = str | float | int | bool | None


@dataclass(frozen=True, repr=False)
class Series:
    """One metric over the run.

    Args:
        name: Canonical name of the metric.
        step: Steps at which it was logged, ascending within a segment, shape (n,).
        value: What was logged there, NaN and Inf included, shape (n,). A step at which the metric was not logged has
            no entry: absence is never NaN.
    """

    name: str
    step: Floats
    value: Floats

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        ends = f", {figure(self.value[0])} to {figure(self.value[-1])}" if len(self) else ""
        return f"<Series {self.name}: {len(self)} values{ends}>"

    @property
    def finite(self) -> Series:
        """The series without its NaN and infinite values."""
        return self if self._is_finite else self.where(np.isfinite(self.value))

    @cached_property
    def _is_finite(self) -> bool:
        # Nearly every symptom asks, and nearly always the answer is yes.
        return bool(np.isfinite(self.value).all())

    def where(self, keep: NDArray[np.bool_]) -> Series:
        """Return the entries for which `keep` holds, shape (n,)."""
        return self if keep.all() else Series(self.name, self.step[keep], self.value[keep])

    def between(self, first: float, last: float) -> Series:
        """Return the entries with first <= step <= last."""
        return self.where((self.step >= first) & (self.step <= last))

    def interpolated(self, step: Floats) -> Floats:
        """Return the values at other steps, shape (len(step),), by straight lines between the logged ones."""
        # Metrics of the same records share one array of steps.
        return self.value if step is self.step else np.interp(step, self.step, self.value)

    def at(self, step: float) -> float | None:
        """Return the last value logged at or before `step`, or None if there is none."""
        index = int(np.searchsorted(self.step, step, side="right")) - 1
        return float(self.value[index]) if index >= 0 else None


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the run between restarts or resumes."""

    first_step: float
    last_step: float
    series: Mapping[str, Series]


@dataclass(frozen=True, slots=True)
class Message:
    """A line of the log that reads like an error.

    Args:
        line: Its line number, from 1.
        text: The line, cleaned and shortened.
        records: Log records read before it.
        code: The line of code that raised it, where a traceback above shows it.
    """

    line: int
    text: str
    records: int = 0
    code: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One training run as read from its logs.

    Args:
        path: What the user pointed at.
        formats: Names of the readers that read it.
        series: One series per metric, by canonical name. Where a resumed run logged a step again, the later value
            stands.
        config: Training configuration found beside or inside the log, flat, in the names of TrainingArguments.
        segments: Stretches between restarts, at least one; each holds its own series.
        step_name: What a step is: "step", "epoch", "episode" or "record".
        kind: Kind of run (`kinds.KINDS`), or "unknown".
        records: Log records read.
        messages: Lines that read like errors, in order.
        resumes: First steps behind lines that tell of a resume.
        notes: What was skipped, guessed and merged.
    """

    path: str
    formats: tuple[str, ...]
    series: Mapping[str, Series]
    config: Mapping[str, Scalar] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()
    step_name: str = "step"
    kind: str = "unknown"
    records: int = 0
    messages: tuple[Message, ...] = ()
    resumes: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        steps = f"{self.step_name}s {figure(self.first_step)} to {figure(self.last_step)}"
        return f"<Run {self.path}: {self.records} records, {steps}: {', '.join(self.series)}>"

    def __contains__(self, metric: object) -> bool:
        return metric in self.series

    def __getitem__(self, metric: str) -> Series:
        return self.series[metric]

    @cached_property
    def last_step(self) -> float:
        """The largest step logged, 0 for an empty run."""
        return max((float(step.max()) for step in self._axes()), default=0.0)

    @cached_property
    def first_step(self) -> float:
        """The smallest step logged, 0 for an empty run."""
        return min((float(step.min()) for step in self._axes()), default=0.0)

    def _axes(self) -> Iterable[Floats]:
        """Return the steps of all metrics; those of the same records share one array, which is returned once."""
        return {id(one.step): one.step for one in self.series.values() if len(one)}.values()

    def setting(self, name: str) -> float | None:
        """Return a number from the configuration, or None if it is not there or not a number."""
        value = self.config.get(name)
        if isinstance(value, bool) or value is None:
            return None
        try:
            return float(value)
        except ValueError:
            return None

    def parts(self) -> tuple[Run, ...]:
        """Return one run per segment, each to be judged by itself."""
        if len(self.segments) < 2:
            return (self,)
        return tuple(replace(self, series=segment.series, segments=(segment,)) for segment in self.segments)
