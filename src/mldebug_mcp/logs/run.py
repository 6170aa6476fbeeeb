"""A run: one series per metric, its configuration, its attempts, and what was skipped on the way in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import are_whole, median_gap, median_in_place, where_true
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity, Role, role_of
from mldebug_mcp.logs.settings import Scalar, Settings
from mldebug_mcp.logs.settings.settings import Facts, facts_of

if TYPE_CHECKING:
    import pandas as pd

    from mldebug_mcp.logs.ranks import RankSummary

# What is said of an attempt at a run: how it ended, the error lines in it, and what it logged.

Severity = Literal["error", "warning", "noise"]
"""How much an error line weighs by its words.

error: it may have ended its attempt (`fatal`); warning: the program itself calls it one, was stopped, or goes on by its
plan; noise: a retry, telemetry, or an exception that was ignored.
"""
How = Literal["finished", "error", "interrupted", "silence", "cut", "open"]
"""How a log ends.

finished: by its own words, its closing record, or at its plan; error: in a fatal error; interrupted: by a signal or a
user; silence: its clock runs on without records; cut: inside of a line; open: in none of these ways, as one that is
still being written.
"""

RECORDER = "recorder"
"""The format of our own recordings, as runs name it."""
MAX_RECORDS_AFTER_FATAL = 2
"""More records than this after an error show that training went on; a record or two may only have been printed late."""

_NOISE = regex(
    r"\bretrying\b|\bwill (?:be )?retr|\breconnecting\b|\battempt \d+ ?(?:of|/) ?\d+|\btelemetry\b|"
    r"\b(?:exception|error)s? (?:was |were )?ignored\b|\bignoring (?:the )?(?:exception|error)|\bnon-?fatal\b|"
    r"DeprecationWarning|FutureWarning",
    re.IGNORECASE,
)
_LEVEL = regex(r"\b(?:(?P<severe>ERROR|CRITICAL|FATAL|NCCL WARN)|WARN(?:ING)?|warning|\w{1,40}Warning)\b")
"""The level that a logging library writes; NCCL has none above its warning, which stands for errors."""
_SKIPPED = regex(r"\bOVERFLOW!|\bskipping (?:this )?(?:step|batch|sample|update)\b", re.IGNORECASE)
"""A step that is left out, as a dynamic loss scaler does: the program goes on by its own plan."""
_NAME = regex(r"(?:attempt|fold)[ _-]?([1-9]\d{0,4})", re.IGNORECASE, needs=("attempt", "fold"))
_IN_FRONT = 100
"""Characters of a line in which the level stands."""


@dataclass(frozen=True, slots=True)
class Message:
    """A line of the log that reads like an error.

    Args:
        line: Its line number, from 1.
        text: The line, cleaned and shortened.
        records: Log records of its attempt read before it.
        code: The line of code that raised it, where a traceback above shows it.
        severity: How much it weighs by its words.
        file: The log that it stands in, where that is not the one whose records are read.
        records_there: Log records of that log before it.
    """

    line: int
    text: str
    records: int = 0
    code: str = ""
    severity: Severity = "error"
    file: str = ""
    records_there: int = 0

    @property
    def place(self) -> str:
        """Where it stands, in words: its line, and its file where that is another one."""
        return f"line {self.line} of {self.file}" if self.file else f"line {self.line}"


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of words between the records, the first of its kind.

    Args:
        step: Step of the record above it; of the first record, where none is above.
        line: Its line number, from 1.
        text: The line, cleaned and shortened.
        warns: Whether the program itself calls it a warning.
    """

    step: float
    line: int
    text: str
    warns: bool = False


MAX_SHOWN_OF_ENDING = 160
"""Characters that are kept of the line with which a log ends."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a log, or an attempt in it, ends.

    Args:
        how: See `How`.
        text: The line or the fact that shows it, cleaned and shortened; empty where nothing does.
        line: Line number of that line, 0 where it has none.
        file: The log that it stands in, where that is not the one whose records are read.
        written: When the last line of an open log was written, in seconds since 1970; None where that is not known.
    """

    how: How = "open"
    text: str = ""
    line: int = 0
    file: str = ""
    written: float | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a training program, with everything up to its end.

    Args:
        first_step: Where it began by its finest counter; None if it logged no record.
        last_step: Where it stopped.
        records: Log records of it.
        ending: How it ended.
        judged: Whether the run is this attempt: the one that was asked for, else the last one with substance.
        is_fold: Whether it is a fold of a cross-validation, and each other attempt of the log another one.
    """

    first_step: float | None
    last_step: float | None
    records: int
    ending: Ending
    judged: bool = False
    is_fold: bool = False


def named_attempt(wanted: str) -> int:
    """Return the number of the attempt or fold that a run is asked for by, from 1; 0 for other names."""
    found = _NAME.fullmatch(wanted.strip())
    return int(found[1]) if found else 0


def warns(line: str) -> bool:
    """Say whether a line calls itself a warning, and is not about a deprecation, retry or the like."""
    return _LEVEL.search(line[:_IN_FRONT]) is not None and not _NOISE.search(line)


def severity_of(text: str) -> Severity:
    """Return how much an error line weighs by its words."""
    if _NOISE.search(text):
        return "noise"
    if _SKIPPED.search(text) or text.startswith("KeyboardInterrupt"):
        return "warning"
    level = _LEVEL.search(text[:_IN_FRONT])
    return "warning" if level and not level["severe"] else "error"


SCHEDULED = regex(r"\bSIGTERM\b|\bsignal 15\b|\bCANCELLED AT\b|\bDUE TO (?:PREEMPTION|TIME LIMIT)")
"""A line that says that a scheduler ended a run."""


def fatal(messages: Iterable[Message], records: int, *, finished: bool) -> tuple[Message, ...]:
    """Return the error lines that ended an attempt: training did not go on after them, and had not ended before."""
    if finished:
        return ()
    return tuple(
        message
        for message in messages
        if message.severity == "error" and records - message.records <= MAX_RECORDS_AFTER_FATAL
    )


def ending_in_error(ended: Sequence[Message]) -> Ending:
    """Return the ending in error lines, in the words of the last one that tells what went wrong."""
    last = next((message for message in reversed(ended) if not message.text.startswith("Traceback")), ended[-1])
    return Ending("error", shorten(last.text, MAX_SHOWN_OF_ENDING), last.line)


# A run as the symptoms see it: one series per metric, the configuration, and what was skipped on the way in.

MAX_SHOWN_COLUMNS = 12
"""Columns that are named where one was not found."""


@dataclass(frozen=True, repr=False)
class Series:
    """One metric over the run.

    Args:
        name: Canonical name of the metric.
        step: Steps at which it was logged, ascending within a segment, shape (n,).
        value: What was logged there, NaN and Inf included, shape (n,). A step at which the metric was not logged has
            no entry: absence is never NaN.
        logged_as: The name that it was logged with, where that is another.
    """

    name: str
    step: Floats
    value: Floats
    logged_as: str = ""

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        ends = f", {figure(self.value[0])} to {figure(self.value[-1])}" if len(self) else ""
        return f"<Series {self.name}: {len(self)} values{ends}>"

    @cached_property
    def role(self) -> Role | None:
        """What it is, as its name says; None where that is not understood."""
        if not self.logged_as:
            return role_of(self.name)
        role, named = role_of(self.logged_as), role_of(self.name)
        is_own = named is None and role is not None and not role.name  # `val/aAcc` → `eval_aacc`, whose humps are lost
        return role if is_own or (role is not None and role.name == self.name) else named

    @property
    def quantity(self) -> Quantity | None:
        """What is measured, as its name says; None where that is not understood."""
        return None if self.role is None else self.role.quantity

    @property
    def unit(self) -> str:
        """The unit of its values, where the name that it was logged with gives another; else ""."""
        return "" if not self.logged_as or self.role is None else self.role.read_in

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
        if keep.all():
            return self
        kept = where_true(keep)
        return replace(self, step=self.step[kept], value=self.value[kept])

    def since_record(self, first: int) -> Series:
        """Return the entries from one on, by its index; copies nothing."""
        return replace(self, step=self.step[first:], value=self.value[first:]) if first > 0 else self

    def times(self, factor: float) -> Series:
        """Return the series with its values multiplied."""
        return replace(self, value=self.value * factor)

    def between(self, first: float, last: float) -> Series:
        """Return the entries with first <= step <= last."""
        return self.where((self.step >= first) & (self.step <= last))

    def interpolated(self, step: Floats) -> Floats:
        """Return the values at other steps, shape (len(step),), by straight lines between the logged ones."""
        # Metrics of the same records share one array of steps.
        return self.value if step is self.step else np.interp(step, self.step, self.value)

    def held(self, step: Floats) -> Floats:
        """Return the last value at or before each of other steps, or the first one of all, shape (len(step),)."""
        if step is self.step and bool(np.all(step[1:] > step[:-1])):
            return self.value
        return self.value[np.maximum(np.searchsorted(self.step, step, side="right") - 1, 0)]

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

    def with_series(self, added: Mapping[str, Series], *, whole: bool = False) -> Segment:
        """Return it with the part of other series that lies in it, or with the `whole` of them."""
        inside = {
            name: series if whole else series.between(self.first_step, self.last_step) for name, series in added.items()
        }
        return replace(self, series={**self.series, **{name: series for name, series in inside.items() if len(series)}})


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another run of the same sweep.

    Args:
        name: Its name, as `run=NAME` takes it.
        path: Where it stands.
        settings: What is set otherwise in it, by canonical name; a setting that only this run has is None in it.
        run: It as read.
    """

    name: str
    path: str
    settings: Mapping[str, Scalar]
    run: Run


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that a recording holds besides its numbers.

    Args:
        step: Where it happened.
        text: What it was, cleaned and shortened.
        began: What was not finite, of values that were lost there: names by "inputs", "weights", "outputs" (of
            modules), "loss" and "gradients".
    """

    step: float
    text: str
    began: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One training run as read from its logs.

    Args:
        path: What the user pointed at.
        formats: Names of the readers that read it.
        series: One series per metric, by canonical name. Where a resumed run logged a step again, the later value
            stands.
        settings: The configuration found next to or inside the log.
        segments: Stretches between restarts, at least one; each holds its own series.
        step_name: What a step is: "step", "epoch", "episode" or "record".
        kind: Kind of run (`catalogue.KINDS`), or "unknown".
        records: Log records of the attempt that is judged.
        messages: Lines of this attempt that read like errors, in order, with their severity.
        resumes: First steps behind lines that tell of a resume.
        text_lines: Lines of words between the records, each kind once.
        margins: The first and the last lines of its text, all of a short one, records and words.
        attempts: All attempts in the log, in order; the series, messages and settings are of the one that is judged.
        ending: How the attempt ends.
        incidents: What a recording holds on single steps besides its numbers.
        planned: How many epochs, steps or episodes there are to be by the counters of the log ("Epoch 3/10").
        runs_in_folder: Runs in the folder, this one included.
        runs_in_file: The names of the runs that its file holds, where it holds several.
        siblings: Other runs of the same sweep.
        name: The run that was asked for, where the path holds several; "" where none was.
        config_file: The configuration that was named, "" where none was.
        ranks: What the files of its ranks tell, where each of them wrote its own.
        folder: The folder of the run on this machine, where its checkpoints stand; "" for data in memory and for what
            was unpacked or fetched.
        logs: The logs of a run folder that were read.
        form_is_guessed: What counts its steps, or the form of its lines, is none that is known.
        notes: What was skipped, guessed and merged.
    """

    path: str
    formats: tuple[str, ...]
    series: Mapping[str, Series]
    settings: Settings = field(default_factory=Settings)
    segments: tuple[Segment, ...] = ()
    step_name: str = "step"
    kind: str = "unknown"
    records: int = 0
    messages: tuple[Message, ...] = ()
    resumes: tuple[float, ...] = ()
    text_lines: tuple[TextLine, ...] = ()
    margins: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    ending: Ending = field(default_factory=Ending)
    incidents: tuple[Incident, ...] = ()
    planned: Mapping[str, float] = field(default_factory=dict)
    siblings: tuple[Sibling, ...] = ()
    runs_in_folder: int = 1
    runs_in_file: tuple[str, ...] = ()
    name: str = ""
    config_file: str = ""
    ranks: RankSummary | None = None
    folder: str = ""
    logs: tuple[str, ...] = ()
    form_is_guessed: bool = False
    notes: tuple[str, ...] = ()

    @property
    def runs_found(self) -> int:
        """How many runs the folder or the file holds from which one was chosen."""
        return self.runs_in_folder if self.runs_in_folder > 1 else max(1, len(self.runs_in_file))

    @property
    def is_one_of_several(self) -> bool:
        """Whether the path holds several runs, and none of them was asked for."""
        return self.runs_found > 1 and not self.name

    def __repr__(self) -> str:
        steps = f"{self.step_name}s {figure(self.first_step)} to {figure(self.last_step)}"
        return f"<Run {self.path}: {self.records} records, {steps}: {', '.join(self.series)}>"

    def __contains__(self, metric: object) -> bool:
        return metric in self.series

    def __getitem__(self, metric: str) -> Series:
        return self.series[metric]

    def place(self, step: float) -> str:
        """Return a step as a sentence names it: "step 120", "epoch 3"."""
        return f"{self.step_name} {figure(step)}"

    def to_frame(self) -> pd.DataFrame:
        """Return the metrics as a DataFrame of pandas, a row per step; where one was not logged there stands NaN.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None

        columns = {
            name: pd.Series(series.value, index=series.step) for name, series in self.series.items() if len(series)
        }
        single = {name: column[~column.index.duplicated(keep="last")] for name, column in columns.items()}
        return pd.DataFrame(single).sort_index().rename_axis(self.step_name)

    def with_role(self, *quantities: Quantity, phase: str = "", parts: bool = False) -> Iterator[Series]:
        """Return the levels of some quantities, in their units, the plainest name of the first of them first.

        Args:
            quantities: What is asked for, the most wanted first.
            phase: "train" for all but evaluation, "eval" for evaluation alone; "" for both.
            parts: Whether parts are wanted as well as the whole.
        """
        found = []
        for name, series in self.series.items():
            role = series.role
            if role is None or role.quantity not in quantities or not (role.is_level if parts else role.is_whole):
                continue
            if phase and role.is_evaluation != (phase == "eval"):
                continue
            order = (quantities.index(role.quantity), name != role.name, role.namespace != "", role.extra)
            found.append(
                (order, series if series.name == role.name or role.factor == 1.0 else series.times(role.factor))
            )
        yield from (series for _, series in sorted(found, key=lambda pair: pair[0]))

    @cached_property
    def fatal(self) -> tuple[Message, ...]:
        """The error lines that ended the attempt; empty where it went on after them or had ended before.

        Of one that stood still it is not what a scheduler writes that ends it.
        """
        ended = fatal(self.messages, self.records, finished=self.ending.how == "finished")
        stood = self.ending.how == "silence"
        return tuple(message for message in ended if not (stood and SCHEDULED.search(message.text)))

    @cached_property
    def last_step(self) -> float:
        """The largest step logged, 0 for an empty run."""
        return max((float(step.max()) for step in self._axes()), default=0.0)

    @cached_property
    def first_step(self) -> float:
        """The smallest step logged, 0 for an empty run."""
        return min((float(step.min()) for step in self._axes()), default=0.0)

    @property
    def restarts(self) -> tuple[float, ...]:
        """First steps behind a resume, in order: one that a line states, or one from which steps come again."""
        return tuple(sorted({*self.resumes, *(segment.first_step for segment in self.segments[1:])}))

    def _axes(self) -> Iterable[Floats]:
        """Return the steps of all metrics; those of the same records share one array, which is returned once."""
        return {id(series.step): series.step for series in self.series.values() if len(series)}.values()

    @property
    def config(self) -> Mapping[str, Scalar]:
        """The plain values of the settings, in the names of TrainingArguments."""
        return self.settings.flat

    @cached_property
    def facts(self) -> Facts:
        """What follows from the settings, and from them and the epochs that were logged."""
        return facts_of(self.settings, self.kind, self._steps_per_epoch(), (self.last_step, self._interval()))

    def _interval(self) -> float:
        """Return the usual distance of two records of the series that is logged most often; 1 without any."""
        steps = max(self._axes(), key=len, default=None)
        return 1.0 if steps is None or len(steps) < 2 or self.step_name != "step" else median_gap(steps)

    def _steps_per_epoch(self) -> float | None:
        """Return the steps in one epoch, where the log counts both and tells parts of an epoch."""
        epoch = self.series.get("epoch")
        if self.step_name != "step" or epoch is None or len(epoch.finite) < 2:
            return None
        step, value = epoch.finite.step, epoch.finite.value
        made = float(value[-1] - value[0])
        if made <= 0 or are_whole(value):
            return None
        return _of_a_stream(step, value) or float(step[-1] - step[0]) / made

    def setting(self, name: str) -> float | None:
        """Return a number from the configuration, or None if it is not there or not a number."""
        return self.settings.number(name)

    def with_series(self, added: Mapping[str, Series], note: str) -> Run:
        """Return it with more series, in its segments too, and a note on them."""
        whole = len(self.segments) == 1
        segments = tuple(segment.with_series(added, whole=whole) for segment in self.segments)
        return replace(self, series={**self.series, **added}, segments=segments, notes=(*self.notes, note))

    def parts(self) -> tuple[Run, ...]:
        """Return one run per segment, each to be judged by itself."""
        if len(self.segments) < 2:
            return (self,)
        return tuple(replace(self, series=segment.series, segments=(segment,)) for segment in self.segments)


MIN_OF_A_JUMP = 0.1
"""Share of an epoch that is jumped over where the next begins. Chosen: rounding to whole batches jumps over less."""


def _of_a_stream(step: Floats, epoch: Floats) -> float | None:
    """Return the steps in one pass, where epochs grow too slowly and jump to the next whole number as a pass ends.

    Transformers 5.24.0 divides the steps of each pass over a stream by all that are planned, as it knows no length: of
    passes of ten steps in a run of thirty the epochs are 0.1, 0.2, 0.33, 1.03. Other logs give None.
    """
    whole = np.floor(epoch)
    within = whole[1:] == whole[:-1]
    if within.all() or not within.any():
        return None
    steps, epochs = np.diff(step), np.diff(epoch)
    if steps.min() <= 0:
        return None
    jumped, taken = epochs[~within], steps[~within]
    if bool(np.any(jumped < MIN_OF_A_JUMP)):
        return None
    epochs /= steps
    slope = median_in_place(epochs[within])
    if slope <= 0 or bool(np.any(jumped - slope * taken < MIN_OF_A_JUMP)):
        return None
    ends = [0, -1]
    first, last = step[ends] - (epoch[ends] - whole[ends]) / slope
    return float(last - first) / float(whole[-1] - whole[0])


def require_logged(names: Iterable[str], run: Run, where: str) -> None:
    """Raise InputError if a name that the user explains is not in the log; the message names what is."""
    logged = [series.logged_as or name for name, series in run.series.items()]
    missing = [name for name in names if name not in logged and name != run.step_name]
    if missing:
        shown = ", ".join(shorten(name, 40) for name in logged[:MAX_SHOWN_COLUMNS]) + (
            ", …" if len(logged) > MAX_SHOWN_COLUMNS else ""
        )
        raise InputError(f"{shorten(where, 200)}: nothing called {shorten(missing[0], 60)!r} is in it; it has {shown}")
