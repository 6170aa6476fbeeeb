"""A path → a Run: a single log, or a run folder searched for its logs and its configuration.

The steps come in this order: find the files, order the ranks, read each log, merge the logs of one run; choose the
run, add its settings and what follows from them.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.core.access import entries, is_file, is_folder, links_left_out, open_input, require
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.limits import must_judge_now
from mldebug_mcp.core.paths import expanded, unreadable
from mldebug_mcp.core.text import clean, counted, figure, quoted, shorten
from mldebug_mcp.logs.attempts import least_to_judge
from mldebug_mcp.logs.builder import MAX_TEXT_LINE, MAX_TEXT_LINES, RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.files import (
    BARE,
    EVALUATION_FOLDERS,
    LOG_SUFFIXES,
    MAX_DEPTH,
    RECORD,
    RunFolder,
    bare_curves,
    curve_name,
    curves_by_tag,
    home_of,
    may_be_log,
    runs_in,
    scalars_tag,
    texts_in,
)
from mldebug_mcp.logs.formats import note_problems, read_files
from mldebug_mcp.logs.kinds import concluded
from mldebug_mcp.logs.log_file import CHUNK_BYTES, LogFile, rotated
from mldebug_mcp.logs.names.grammar import given_names
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.metrics import LISTED, is_telling
from mldebug_mcp.logs.names.quantities import LOSSES, OF_UPDATES, Quantity
from mldebug_mcp.logs.remote_files import Choice, brought_in
from mldebug_mcp.logs.run import RECORDER, Run, Series, Sibling, TextLine, ending_in_error, require_logged, warns
from mldebug_mcp.logs.run_tables import COMPARED_IN_WORDS, is_compared
from mldebug_mcp.logs.settings import Scalar, Settings
from mldebug_mcp.logs.settings.files import SettingsFile, find_settings, read_found, read_settings
from mldebug_mcp.logs.settings.printed import settings_printed_in
from mldebug_mcp.logs.settings.settings import Setting

if TYPE_CHECKING:
    from mldebug_mcp.logs.ranks import RankSummary

# The logs at one place → the runs that they tell: a file by itself, or the files of a folder that belong together.

ReadLog = Callable[[Path, str, Sequence[Path]], tuple[Run, bool]]
"""Reads a log as `read_log_file` does."""
MAX_OTHER_LOGS = 20
"""Logs in the folder of one that was named that are read to see whether they are other runs; more are. Chosen."""
MAX_OTHER_BYTES = 32 * 1024 * 1024
"""... and bytes of them."""
MAX_LOG_NAME = 80
"""Characters of the name of a log by which its lines are quoted."""
WHERE_TO_LOOK = "name the file that holds the losses; for an error message use explain_error (`mldebug-mcp error`)"
_OF_A_SEARCH = "each a run of its own: name the log of one trial"
_HOLDS_NO_CURVE = (
    (
        regex(r"\bTrial \d+ (?:finished with|pruned|failed)"),
        f"it lists the trials of an Optuna study, {_OF_A_SEARCH}",
    ),
    (
        regex(r"\bEPOCH (?:-? ?)?\d+ ?(?:-|:) ?(?:PROGRESS|training on)\b"),
        "gensim prints no loss: pass `compute_loss=True` and print `model.get_latest_training_loss()` in a callback",
    ),
)
"""Logs that hold no curve by their lines, and what to do instead."""
MIN_SHARE_OF_OTHER_SETTINGS = 0.5
"""Share of records before which a setting was another, in the list of a search. Chosen: a trial keeps its settings."""
MAX_OWN_LAYOUT_BYTES = 1024 * 1024
"""Size of a text whose lines are also read by the places of their numbers. Chosen: that takes a second per MB."""
MIN_ADDED_VALUES = 3
"""Values of a metric that is added so. Chosen: three evaluations show which way it goes."""
_NORMS = (Quantity.WEIGHT_NORM, Quantity.UPDATE_NORM)
"""Norms whose parts stand behind one heading: `weight norm emb 5.0 out 4.8`."""
RECORD_NAME = "record"
"""What a step of a run is called whose lines count nothing."""
MIN_TIMES_FULLER = 1.1
"""Times the values of a metric that a fuller reading has. Chosen: a cut line or two are no reason to read anew."""
MAX_ADDED_NAMES = 8
"""Names of such metrics that a note lists."""
ONLY_ERRORS = "no metrics in it, only lines that read like errors"


class _ListError(InputError):
    """A file is a list of things with a number each: no log, and no remark on one."""


def read_log_file(path: Path, wanted: str = "", more: Sequence[Path] = ()) -> tuple[Run, bool]:
    """Read a file; return also whether it holds several runs.

    Args:
        path: The file.
        wanted: Which run to read, of several.
        more: Event files of the same run, or rotated parts of the same log, oldest first.
    """
    builder = RunBuilder()
    builder.wanted_run = wanted
    files = (path, *more)
    are_curves = more and (curve_name(path) or bare_curves(files) or curves_by_tag(files))
    is_part_of_run = "tfevents" in path.name or are_curves
    read_files([LogFile.open(file) for file in files] if is_part_of_run else [LogFile.open(path, more)], builder)
    run = builder.build(str(path))
    if builder.formats == ["text"] and path.stat().st_size <= MAX_OWN_LAYOUT_BYTES:
        run = _completed_by_layout(run, LogFile.open(path, more))
    if not run.series and not run.messages:
        raise InputError(
            f"{shorten(str(path), 200)}: no metrics found in it (read as {builder.formats[0]}); "
            f"{_what_it_holds(path) or WHERE_TO_LOOK}"
        )
    if listed := _listed(run):
        raise _ListError(
            f"{shorten(str(path), 200)}: each row is a {listed}, not a record of training; give the log of one run"
        )
    if _are_trials(run):
        raise InputError(f"{shorten(str(path), 200)}: it lists the trials of a search, {_OF_A_SEARCH}")
    if not run.series:
        run = replace(run, notes=(*run.notes, ONLY_ERRORS))
    return run, builder.holds_runs


def _completed_by_layout(run: Run, file: LogFile) -> Run:
    """Return the run of a text of no framework with what known forms leave out of lines that come again.

    Where they find nothing, that is all. Else both readings have to agree on a metric, and it is of one attempt.
    """
    from mldebug_mcp.logs.text.own_layout import read_own_layout

    if run.messages if not run.series else len(run.attempts) > 1 or run.resumes or _is_read_whole(run, file):
        return run
    builder = RunBuilder()
    builder.formats.append("text")
    if not read_own_layout(file.lines(), builder):
        return run
    note_problems(file, builder)
    other = builder.build(str(file.path))
    return _with_layout(run, other) if run.series else _with_words_of(run, other)


_OF_NUMBERS_AND_BLANKS = b"0123456789.+- \t"


def _is_read_whole(run: Run, file: LogFile) -> bool:
    """Say whether all lines are records that are written alike, and each of their numbers is read by a known name."""
    columns = run.series.values()
    if run.step_name == RECORD_NAME or any(
        series.role is None or len(series) != run.records or series.finite is not series for series in columns
    ):
        return False
    text = b"".join(file.pieces(CHUNK_BYTES)).strip()
    words = text.translate(None, _OF_NUMBERS_AND_BLANKS).split(b"\n")
    return len(words) == run.records and len(set(words)) == 1 and _numbers_in(text) == len(words) * (len(columns) + 1)


def _numbers_in(text: bytes) -> int:
    """Count the numbers of a text, many times as fast as by a pattern; a comma parts two."""
    sign = np.frombuffer(text, dtype=np.uint8)
    is_digit = (sign >= ord("0")) & (sign <= ord("9")) | (sign == ord("."))
    is_exponent = np.append(False, is_digit[:-1]) & (sign | 32 == ord("e"))
    is_inside = is_digit | is_exponent | np.append(False, is_exponent[:-1]) & ((sign == ord("-")) | (sign == ord("+")))
    return int(np.count_nonzero(is_digit[1:] & ~is_inside[:-1])) + int(is_digit[0])


def _with_layout(run: Run, other: Run) -> Run:
    """Return a run, or another reading of the same text where that is the better one, or what both hold."""
    if _is_fuller(other, run):
        note = "lines of other forms have more of its numbers: all are read by their places (guessed)"
        return replace(_with_words_of(run, other), notes=(*other.notes, note))
    if _mixes_sets(run, other):
        note = "one name stands for several sets: they are named by the headings above their numbers (guessed)"
        return replace(_with_words_of(run, other), notes=(*other.notes, note))
    counts = run.step_name == RECORD_NAME != other.step_name and _has_all_of(run, other)
    return _with_words_of(run, other) if counts else _with_added(run, other)


def _with_added(run: Run, other: Run) -> Run:
    """Return a run with the metrics that another reading of the same text adds, where both agree on one."""
    if other.step_name != run.step_name:
        other = _at_steps_of(run, other)
    elif _is_shifted(run, other):
        return run
    known = {name: _alike(series, run.series.values()) for name, series in other.series.items()}
    if all(map(_is_constant, (series for alike in known.values() for series in alike))):
        return run
    renamed_before = {series.logged_as for series in run.series.values()}  # by what else is logged
    added = {
        name: series
        for name, series in other.series.items()
        if name not in run and name not in renamed_before and _adds(series, known[name], other.series)
    }
    if not added:
        return run
    renamed = {series.name for name in added for series in known[name]}
    renamed |= {name for name, series in run.series.items() if _is_of_several_sets(series, added)}

    def kept(series: Mapping[str, Series]) -> dict[str, Series]:
        return {name: curve for name, curve in series.items() if name not in renamed}

    segments = tuple(replace(segment, series=kept(segment.series)) for segment in run.segments)
    names = ", ".join(shorten(name, MAX_LOG_NAME) for name in list(added)[:MAX_ADDED_NAMES])
    note = f"named by the words in front of their numbers (guessed): {names}"
    return replace(run, series=kept(run.series), segments=segments).with_series(added, note)


def _with_words_of(run: Run, other: Run) -> Run:
    """Return a run with the settings and the lines of words that another reading of the same text has."""
    other = replace(other, text_lines=run.text_lines, margins=run.margins)
    return replace(other, settings=run.settings, messages=run.messages, ending=run.ending)


def _is_constant(series: Series) -> bool:
    return len(set(series.value.tolist())) < 2


def _has_values_of(series: Series, other: Series) -> bool:
    return np.array_equal(series.value, other.value, equal_nan=True)


def _has_all_of(run: Run, other: Run) -> bool:
    """Say whether another reading has all that moves in a run, under whatever names."""
    return any(map(is_telling, other.series)) and all(
        _is_constant(own) or any(np.array_equal(own.value, series.value) for series in other.series.values())
        for own in run.series.values()
    )


def _is_fuller(other: Run, run: Run) -> bool:
    """Say whether another reading has the course of all that moves in a run, and more values of the longest."""
    moving = sorted((series.value for series in run.series.values() if not _is_constant(series)), key=len)
    if not moving or max(map(len, other.series.values())) < MIN_TIMES_FULLER * len(moving[-1]):
        return False
    found = [
        max((len(series) for series in other.series.values() if _has_course_of(series.value, own)), default=0)
        for own in moving
    ]
    return min(found) > 0 and found[-1] >= MIN_TIMES_FULLER * len(moving[-1])


def _has_course_of(values: Floats, own: Floats) -> bool:
    """Say whether values come, in their order, among others."""
    others = iter(values.tolist())
    return all(any(value == other for other in others) for value in own.tolist())


def _is_of_several_sets(series: Series, added: Mapping[str, Series]) -> bool:
    """Say whether a metric holds the values that several sets have at the same steps, and that are named apart now."""
    last = series.name.rpartition(" ")[2]
    parts = [other for name, other in added.items() if last in re.split(r"[ _]", name)]
    if len(parts) < 2:
        return False
    step, value = (np.concatenate([getattr(part, axis) for part in parts]) for axis in ("step", "value"))
    return len(np.unique(step)) < len(step) and np.array_equal(np.sort(value), np.sort(series.value))


def _mixes_sets(run: Run, other: Run) -> bool:
    """Say whether a loss of a run holds, one after another, what another reading has as the losses of several sets."""
    losses = [series for name, series in other.series.items() if "loss" in name and len(series) >= MIN_ADDED_VALUES]
    mixed = run.series.get("loss")
    if mixed is None or len(losses) < 2 or "eval_loss" in run or "eval_loss" not in other:
        return False
    parts = np.sort(np.concatenate([series.value for series in losses]))
    return np.array_equal(parts, np.sort(mixed.value), equal_nan=True)


def _at_steps_of(run: Run, other: Run) -> Run:
    """Return what another reading counts otherwise at the steps of a run; nothing where both share no metric."""
    none = replace(other, series={})
    places: dict[float, float] = {}
    for series in other.series.values():
        for own in run.series.values():
            if not _is_constant(own) and _has_values_of(own, series):
                for at, step in zip(series.step.tolist(), own.step.tolist(), strict=True):
                    if places.setdefault(at, step) != step:
                        return none
    ordered = [step for _, step in sorted(places.items())]
    if not places or any(later <= earlier for earlier, later in pairwise(ordered)):
        return none
    moved = {
        name: replace(series, step=np.array([places[at] for at in series.step.tolist()]))
        for name, series in other.series.items()
        if all(at in places for at in series.step.tolist())
    }
    return replace(other, series=moved, step_name=run.step_name)


def _alike(series: Series, others: Iterable[Series]) -> list[Series]:
    """Return the metrics that have the same values at the same steps."""
    return [other for other in others if _has_values_of(other, series) and np.array_equal(other.step, series.step)]


def _is_shifted(run: Run, other: Run) -> bool:
    """Say whether a metric has the same values at other steps: the count stands below what it counts."""
    return any(
        not _is_constant(own) and _has_values_of(own, series) and not np.array_equal(own.step, series.step)
        for own in run.series.values()
        for series in other.series.values()
    )


def _is_settled(name: str) -> bool:
    """Say whether the rules for names have looked at a name: of a phase alone, or of a list."""
    return "/" in name or name.lower() in PHASES


def _adds(series: Series, known: Sequence[Series], others: Mapping[str, Series]) -> bool:
    """Say whether a metric is not known, or not what it is; the second number behind a word has no name of its own."""
    from mldebug_mcp.logs.text.own_layout import NUMBERED

    if _is_constant(series) and not _has_moving_sibling(series, others):
        return False  # of a sentence, or a setting
    if known:
        is_read = series.role is not None and (series.role.is_whole or series.role.quantity in _NORMS)
        return is_read and all(other.role is None and not _is_settled(other.name) for other in known)
    words = series.name.replace("_", " ").split()
    is_finite = bool(np.isfinite(series.value).all())
    is_named = any(len(word) > 2 for word in words) or series.role is not None or not is_finite
    is_second = words[-1] == "2" and f"{series.name[:-1]}1" not in others
    return len(series) >= MIN_ADDED_VALUES and is_named and not is_second and words[-2:-1] != [NUMBERED.strip()]


def _listed(run: Run) -> str:
    """Return what the rows of a list are, "seed", where nothing else counts them; "" for a log."""
    numbered = [series for name, series in run.series.items() if name.lower() in LISTED]
    return next(
        (series.name for series in numbered if run.step_name == RECORD_NAME and _numbers_each(series, run.records)), ""
    )


def _numbers_each(series: Series, records: int) -> bool:
    return len(series) == records > 2 and bool(np.all(np.diff(series.value) == 1))


def _has_moving_sibling(series: Series, others: Mapping[str, Series]) -> bool:
    """Say whether the same words, but for the last, name a metric that moves at the same steps: `norms emb`."""
    head = series.name.rpartition(" ")[0]
    return bool(head) and any(
        name.rpartition(" ")[0] == head and not _is_constant(other) and np.array_equal(other.step, series.step)
        for name, other in others.items()
    )


def _are_trials(run: Run) -> bool:
    """Say whether most records have a configuration of their own and speak of a trial, as FLAML writes its search."""
    if not any("trial" in name for name in run.series):
        return False
    settings = [series.value for name, series in run.series.items() if name.startswith("config/") and len(series) > 1]
    return any(float(np.mean(value[1:] != value[:-1])) > MIN_SHARE_OF_OTHER_SETTINGS for value in settings)


def _what_it_holds(path: Path) -> str:
    """Return what a log without metrics is known to hold, and what to do; "" if that is not known."""
    from mldebug_mcp.logs.formats.table import runs_listed_in  # its readers: only where nothing was found

    head = LogFile.open(path).head
    known = next((advice for pattern, advice in _HOLDS_NO_CURVE if pattern.search(head)), "")
    return known or runs_listed_in(head)


def file_names(place: RunFolder) -> set[str]:
    """Return the names by which a log in the folder of a run can be asked for."""
    prefix = "" if place.name == "." else f"{place.name}/"
    names = {os.path.normpath(f"{prefix}{place.name_of(file)}") for file in place.files}
    return names | {Path(name).stem for name in names}


@dataclass(frozen=True, slots=True)
class Read:
    """A run that was read from a folder: its name, where it stands, and the names of its files.

    Args:
        name: Its name, as `run=NAME` takes it.
        place: The folder that it is in.
        run: As it was read, without the settings of files.
        files: Names by which it can be asked for.
        holds_runs: One of its logs holds several runs.
        logs: Its logs.
        is_shared: The folder holds other runs too.
    """

    name: str
    place: RunFolder
    run: Run
    files: tuple[str, ...]
    holds_runs: bool
    logs: tuple[Path, ...] = ()
    is_shared: bool = False

    def config(self, texts: Sequence[Path] = ()) -> tuple[SettingsFile, ...]:
        """Return the files with its settings; see `RunFolder.config`."""
        return self.place.config(texts, self.logs, is_shared=self.is_shared)


def read_places(
    places: list[RunFolder], refused: Refused, read_log: ReadLog, notes: list[str], wanted: str = ""
) -> list[Read]:
    """Read the runs of several places; `wanted` is looked for inside of a log if there is but one place.

    `notes` says so where the time that a call may take ends before all of them are read.
    """
    inside = wanted if len(places) == 1 else ""
    found: list[Read] = []
    for number, place in enumerate(places, start=1):
        found += read_place(place, refused, read_log, inside)
        if found and number < len(places) and must_judge_now():
            notes.append(
                f"{number} of {len(places)} run folders were read in the time that a call may take; the others were "
                "not looked at; name the folder of one run, or use the command line, which has no such limit"
            )
            break
    return found


@dataclass(slots=True)
class Refused:
    """Why files of a folder could not be read.

    Args:
        reasons: One for each of them.
        of_logs: Those of files whose name says that they are logs: any other file is passed over in silence.
        paths: The files.
    """

    reasons: list[str] = field(default_factory=list)
    of_logs: list[str] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)

    def take(self, path: Path, error: InputError) -> None:
        """Take the reason of a file."""
        self.reasons.append(str(error))
        self.paths.append(path)
        if "tfevents" in path.name or path.suffix == ".wandb" or path.name == "trainer_state.json":
            self.of_logs.append(str(error))


def read_place(place: RunFolder, refused: Refused, read_log: ReadLog, wanted: str) -> list[Read]:
    """Read the logs in a folder, those of one run together; other files are passed over."""
    from mldebug_mcp.logs.merge import grouped, holds_evaluation, merged, of_evaluation

    ranks = None
    if place.ranks:
        from mldebug_mcp.logs.ranks import rank_summary

        ranks = rank_summary(place.ranks)
    numbers = {
        shorten(place.name_of(path), MAX_LOG_NAME): int(rank[0])
        for rank, files in place.ranks.items()
        for path in files
        if len(rank) == 1
    }
    if ranks is not None:
        place = replace(place, files=[*place.files, *ranks.worth_reading], ranks={})
    runs: list[tuple[str, Run]] = []
    logs: dict[str, Path] = {}
    remarks: list[Path] = []
    several = False
    wanted = "" if wanted in (place.name, *file_names(place)) else wanted
    for files in _file_groups(place.files):
        try:
            run, holds_runs = read_log(files[0], wanted, files[1:])
        except InputError as error:
            refused.take(files[0], error)
            remarks += [] if isinstance(error, _ListError) else files[:1]
            continue
        several = several or holds_runs
        below = files[0].parent != place.folder and files[0].parent.name.lower() in EVALUATION_FOLDERS
        is_named = run.formats == (BARE,)  # by its files, each with its phase
        if not is_named and (below or holds_evaluation(files[0].name, [other.name for other in place.files])):
            run = of_evaluation(run)
        name = shorten(place.name_of(files[0]), MAX_LOG_NAME)
        logs[name] = files[0]
        runs.append((name, run))
    if any(run.formats == (RECORDER,) for _, run in runs):
        from mldebug_mcp.logs.rank_recordings import joined_ranks, with_its_hang

        runs = [(name, with_its_hang(run, place.folder)) for name, run in joined_ranks(runs)]
    groups = grouped(runs, {place.name_of(path) for path in place.consoles})
    found = []
    is_shared = sum(bool(run.series) for group in groups for _, run in group[:1]) > 1
    for group in groups:
        names = [os.path.normpath(f"{place.name}/{name}") for name, _ in group]
        name = place.name if len(groups) == 1 else names[0]
        known = (*names, *(Path(text).stem for text in names))
        own = tuple(logs[log_name] for log_name, _ in group)
        found.append(Read(name, place, _with_ranks(merged(group), group, numbers), known, several, own, is_shared))
    if len(found) == 1 and not several:
        found[0] = replace(found[0], run=_with_remarks(found[0].run, remarks))
    if ranks is not None and found:
        first = _first_failure_first(found[0].run, ranks, place)
        found[0] = replace(found[0], run=replace(first, ranks=ranks, notes=(*ranks.lines(), *first.notes)))
    return found


MAX_REMARK_BYTES = 20_000
"""Bytes of a text next to a log that is read for what it says of the run. Chosen: people write less by hand."""
_REMARKS = (".txt", ".md", ".log", ".out")


def _with_remarks(run: Run, files: Sequence[Path]) -> Run:
    """Return a run with what short texts next to its log say: figures at its end without a counter, and words."""
    texts = [file for file in files if file.suffix.lower() in _REMARKS and file.stat().st_size <= MAX_REMARK_BYTES]
    if not texts or not run.series:
        return run
    from mldebug_mcp.logs.text.parsed_line import closing_figures

    read = {file.name: _lines_of(file) for file in texts}
    others = [name for name, lines in read.items() if not _is_of_a_run(lines)]
    if others:
        names = ", ".join(shorten(name, MAX_LOG_NAME) for name in others)
        run = replace(run, notes=(*run.notes, f"nothing of the run is found in {names}"))
    lines = [
        (name, number, line)
        for name, text in read.items()
        if name not in others
        for number, line in enumerate(text, start=1)
    ]
    if not lines:
        return run
    figures = closing_figures(line for _, _, line in lines)
    added = {
        name: Series(name, np.array([run.last_step]), np.array([value]))
        for name, value in figures.items()
        if name not in run.series
    }
    said = [(name, number, clean(line.strip())) for name, number, line in lines if line.strip()]
    words = [
        TextLine(run.first_step, number, shorten(f"{clean(name)}: {text}", MAX_TEXT_LINE))
        for name, number, text in said
    ]
    names = ", ".join(shorten(name, MAX_LOG_NAME) for name in read if name not in others)
    note = f"{names}: {counted(len(added), 'figure')} at the end of the run, and {counted(len(words), 'line')} of words"
    return replace(
        run,
        settings=Settings.merged(run.settings, settings_printed_in([line for _, _, line in lines])),
        text_lines=(*run.text_lines, *words[: max(0, MAX_TEXT_LINES - len(run.text_lines))]),
        margins=(*(shorten(text, MAX_TEXT_LINE) for _, _, text in said[:MAX_TEXT_LINES]), *run.margins),
    ).with_series(added, note)


MAX_NUMBERED_REMARK_SHARE = 0.34
"""Share of the lines of a note that hold a number, at most. Chosen: tables, lists of files and measures have more."""


def _is_of_a_run(lines: Sequence[str]) -> bool:
    """Say whether a text gives figures, settings or warnings of a run, or is a note in words."""
    from mldebug_mcp.logs.text.parsed_line import closing_figures

    written = [line for line in lines if line.strip()]
    numbered = sum(any(map(str.isdigit, line)) for line in written)
    in_words = numbered <= max(1, MAX_NUMBERED_REMARK_SHARE * len(written))
    return in_words or bool(closing_figures(lines) or settings_printed_in(lines)) or any(map(warns, written))


def _lines_of(file: Path) -> list[str]:
    with open_input(file) as opened:
        return opened.read(MAX_REMARK_BYTES).decode("utf-8", errors="replace").splitlines()


def _with_ranks(run: Run, group: Sequence[tuple[str, Run]], numbers: Mapping[str, int]) -> Run:
    """Return a run with what its ranks logged in files of their own, under names such as `data_time/rank_1`.

    Args:
        run: What was merged of all its logs.
        group: These, by name.
        numbers: The rank that wrote each of them.
    """
    ranks = [(numbers[name], log) for name, log in group if name in numbers]
    added: dict[str, Series] = {}
    for metric in filter(is_compared, run.series):
        curves = {rank: log[metric] for rank, log in reversed(ranks) if metric in log}
        if any(not np.array_equal(curve.value, run[metric].value) for curve in curves.values()):
            added |= {
                f"{metric}/rank_{rank}": replace(curve, name=f"{metric}/rank_{rank}", logged_as="")
                for rank, curve in sorted(curves.items())
            }
    if not added:
        return run
    return run.with_series(added, f"the {COMPARED_IN_WORDS} of {len({rank for rank, _ in ranks})} ranks are compared")


def _first_failure_first(run: Run, ranks: RankSummary, place: RunFolder) -> Run:
    """Return a run whose first error is that of the rank that failed first: those of the other ranks follow it."""
    file = "" if ranks.first_failed is None else shorten(place.name_of(ranks.first_failed.file), MAX_LOG_NAME)
    own = [message for message in run.fatal if message.file and message.file == file]
    if not own:
        return run
    return replace(
        run,
        messages=(*own, *(message for message in run.messages if message not in own)),
        ending=replace(ending_in_error(own), file=file),
    )


def settings_files_of(path: Path) -> tuple[SettingsFile, ...]:
    """Return the files with the settings of a log that was named, in its folder."""
    return find_settings([path.parent], [path], owns_folder=lambda: owns_folder(path))


def owns_folder(path: Path) -> bool:
    """Say whether the folder of a log holds no other run: logs that its name does not tie to it are read."""
    logs = [entry for entry in entries(path.parent) if entry != path and may_be_log(entry) and is_file(entry)]
    if not logs:
        return True
    from mldebug_mcp.logs.merge import are_named_for_same_run  # most logs have a folder of their own

    unknown = [log for log in logs if not are_named_for_same_run(path.name, log.name)]
    if len(unknown) > MAX_OTHER_LOGS or sum(log.stat().st_size for log in unknown) > MAX_OTHER_BYTES:
        return False
    if not unknown:
        return True
    found = read_place(RunFolder(".", path.parent, [path, *unknown]), Refused(), read_log_file, "")
    return sum(bool(read.run.series) for read in found) < 2


def record_file(run: Run) -> Path | None:
    """Return the file that holds, or is to hold, the record of what was tried on a run; None where it has no place.

    It has none for data in memory, for what was fetched or unpacked, and in a folder with the logs of several runs.
    """
    place, own = _record_files(run)
    if place is None or own is None:
        return place
    return own if is_file(own) or not owns_folder(expanded(run.path)) else place


def existing_record(run: Run) -> Path | None:
    """Return the record of a run, None where nothing was recorded; logs next to it are read only where it matters."""
    if not any(file is not None and is_file(file) for file in _record_files(run)):
        return None
    file = record_file(run)
    return None if file is None or not is_file(file) else file


def _record_files(run: Run) -> tuple[Path | None, Path | None]:
    """Return where the record of a run may be: that of its folder, and that of its log, if it is one."""
    place = Path(run.folder) / RECORD if run.folder and (run.runs_in_folder == 1 or run.name) else None
    if place is None or not is_file(path := expanded(run.path)):
        return place, None
    return place, path.with_name(f"{path.name}.{RECORD}")


def _file_groups(files: list[Path]) -> list[list[Path]]:
    """Return the files read together: the event files of a run, its curves, and a log with what was rotated.

    TensorBoard starts an event file whenever a writer is made.
    """
    events = [path for path in files if "tfevents" in path.name and path.stat().st_size]
    curves = [path for path in files if curve_name(path)]
    homes = {path: path.parent.parent if scalars_tag(path) else path.parent for path in events}
    bare = bare_curves(files)
    tagged = list(curves_by_tag(files))
    known = {*events, *curves, *tagged, *(path for some in bare for path in some)}
    older = rotated(path for path in files if path not in known)
    parts = {path for some in older.values() for path in some}
    return [
        *([path for path in events if homes[path] == home] for home in sorted(set(homes.values()))),
        *(some for some in (curves, tagged) if some),
        *bare,
        *([path, *older.get(path, ())] for path in files if path not in {*known, *parts}),
    ]


# Is the logged loss the mean over the accumulated micro-batches of a step, or their sum?
#
# Loops and some versions of the Trainer log the sum (transformers#34263): then every absolute level is a multiple. It
# shows against the evaluation loss, which is never accumulated, and against the loss of a uniform guess at the start.

MAX_DISTANCE_OF_QUOTIENT = 0.15
"""How near a quotient must come to 1 or to the number of micro-batches, as a share; chosen by hand."""


def accumulation_note(run: Run) -> str | None:
    """Return what the log shows of its convention, None if nothing is accumulated or nothing shows it."""
    number = run.setting("gradient_accumulation_steps")
    if number is None or number < 2 or "loss" not in run:
        return None
    for level, reference, evidence in _levels(run):
        if abs(level / (number * reference) - 1) <= MAX_DISTANCE_OF_QUOTIENT:
            return (
                f"the loss is logged as the sum over {figure(number)} accumulated micro-batches: {evidence}; "
                f"divide by {figure(number)}"
            )
        if abs(level / reference - 1) <= MAX_DISTANCE_OF_QUOTIENT:
            return f"the loss is logged as the mean over {figure(number)} accumulated micro-batches: {evidence}"
    return None


def _levels(run: Run) -> list[tuple[float, float, str]]:
    """Return levels of the loss, what they are to be compared with, and that in words."""
    loss = run["loss"].finite
    found = []
    evaluation = run.series.get("eval_loss")
    if evaluation is not None and len(loss) and len(evaluation.finite):
        held_out = evaluation.finite
        train, other = (
            median(np.interp(held_out.step, loss.step, loss.value)),
            median(held_out.value),
        )
        if min(train, other) > 0:
            found.append((train, other, f"it is at {figure(train / other)} x eval_loss"))
    size = run.facts.classes or run.facts.tokens
    if size is not None and size >= 2 and len(loss) and loss.value[0] > 0:
        first, uniform = float(loss.value[0]), math.log(size)
        found.append((first, uniform, f"it begins at {figure(first / uniform)} x ln({figure(size)})"))
    return found


# Runs of one sweep: beside one another, with most settings in common, or the same metrics over as many steps.

MIN_SHARED_SETTINGS = 0.7
"""Share of the settings of two runs, or of their metrics, that are the same in runs of one sweep. Chosen by hand."""
MAX_TIMES_AS_LONG = 3.0
"""Times as many steps that the longer of two runs with the same metrics may have. Chosen by hand."""
MAX_SIBLINGS = 50
_FIRST_WORD = regex(r"[^\W\d_]+")


def siblings_of(name: str, run: Run, others: Sequence[tuple[str, Run]]) -> tuple[Sibling, ...]:
    """Return which of other runs belong to the same sweep, with what is set otherwise in them."""
    found = [
        Sibling(other_name, other.path, _otherwise(run.config, other.config), other)
        for other_name, other in others
        if _share_settings(run.config, other.config) or (_may_share_sweep(name, other_name) and _log_alike(run, other))
    ]
    return tuple(found[:MAX_SIBLINGS])


def _may_share_sweep(name: str, other: str) -> bool:
    """Say whether the names of two runs allow that they are of one sweep: logs of one folder have to begin alike."""
    here, there = PurePath(name), PurePath(other)
    if here.parent != there.parent or not (here.suffix and there.suffix):
        return True
    first, other_first = (_FIRST_WORD.match(path.name) for path in (here, there))
    return first is not None and other_first is not None and first[0] == other_first[0]


def _otherwise(own: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> dict[str, Scalar]:
    names = dict.fromkeys((*own, *other))
    return {name: other.get(name) for name in names if own.get(name) != other.get(name)}


def _share_settings(own: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> bool:
    names = own.keys() | other.keys()
    same = sum(name in own and name in other and own[name] == other[name] for name in names)
    return same > 1 and same >= MIN_SHARED_SETTINGS * len(names)


def _log_alike(run: Run, other: Run) -> bool:
    names = run.series.keys() | other.series.keys()
    if run.step_name != other.step_name or len(run.series.keys() & other.series.keys()) < MIN_SHARED_SETTINGS * len(
        names
    ):
        return False
    short, long = sorted((run.last_step, other.last_step))
    return bool(names) and long <= MAX_TIMES_AS_LONG * short


# A path → a Run: a single log, or a run folder searched for its logs and its configuration.

MAX_RUNS = 300
"""Runs of a folder that are read to find the longest: some seconds' work."""
MAX_NEIGHBOUR_BYTES = 32 * 1024 * 1024
"""Bytes of logs that are read of the runs next to one that was asked for by its name."""
MAX_DIFFERENT = 4
"""Settings that differ between the log and a file that a note names."""

MAX_REASONS = 3
"""Files that could not be read whose reason is given."""
SHOWN_FILES, SHOWN_LINES, SHOWN_CHARACTERS = 6, 2, 100
"""Files of a folder without a log that are named, and last lines of the largest with their characters: what a person
needs to see which file it is."""
END_OF_FILE = 4096
"""Bytes in which those lines are looked for."""


def read_run(
    path: str | Path,
    config: str | Path | None = None,
    run: str = "",
    names: Mapping[str, str] | None = None,
    *,
    read_log: ReadLog | None = None,
) -> Run:
    """Read a log file or a run folder.

    Args:
        path: A log file, or a folder that holds a run's logs and, if it has one, the training configuration.
        config: The training configuration, in any usual form, where it does not stand next to the log.
        run: Which run to read, where a folder, an export or a store holds several; by default the fullest. Where a log
            holds several attempts, "attempt 1" is the first of them; by default the last that got anywhere is read.
        names: What names of the log mean that do not say it, such as {"L": "loss"}.
        read_log: What reads the logs of a folder; a reader that remembers reads what has changed alone.

    Raises:
        InputError: the path is missing, unreadable, binary, empty, or holds no metrics; it has no such run, or none of
            a name that `names` explains.
    """
    read_log = read_log or read_log_file
    choice = Choice(run)
    with given_names(names or {}), brought_in(path, choice) as place:
        found = _read(place, config, run, read_log)
    config_file = "" if config is None else str(config)
    found = replace(found, path=str(path), name=run, config_file=config_file, notes=(*found.notes, *choice.notes))
    if place != path:
        found = replace(found, folder="", logs=())  # it goes with the answer
    if names:
        require_logged(names, found, str(path))
    return found


def _read(path: str | Path, config: str | Path | None, run: str, read_log: ReadLog) -> Run:
    place = expanded(path)
    require(place)
    notes: list[str] = []
    try:
        if is_folder(place):
            found, settings_files = _read_folder(place, run, notes, read_log)
        else:
            found, settings_files = _read_file(place, run), settings_files_of(place)
            found = replace(found, folder=str(Path(home_of(PurePosixPath(place.as_posix())))))
        found = replace(found, path=str(path))
        if config is not None:
            named = expanded(config)
            read = read_settings(named)
            notes += [f"configuration read from {shorten(named.name, 80)} (it was named)", *read.notes]
            found = replace(found, settings=Settings.merged(read, found.settings))
        else:
            found = configured(found, *read_found(settings_files))
        found = concluded(found)
        note = accumulation_note(found)
        notes += [] if note is None else [note]
        return replace(found, notes=(*found.notes, *notes, *links_left_out()))
    except OSError as error:
        raise InputError(f"{unreadable(path, error)}; check the path") from None
    except UnicodeError as error:
        raise InputError(
            f"{shorten(str(path), 200)}: not text in a known encoding ({error}); save it as UTF-8"
        ) from None


def configured(run: Run, of_files: Settings, notes: Sequence[str]) -> Run:
    """Return a run with the settings of files that it is tied to, below those that its log holds."""
    differ = [name for name, setting in run.settings.items() if setting.known and _differs(setting, of_files.get(name))]
    if differ:
        shown = ", ".join(
            f"{name} is {run.settings[name].value} in the log and {of_files[name].value} in {of_files[name].source}"
            for name in differ[:MAX_DIFFERENT]
        )
        notes = (*notes, f"settings in the log stand before those of files: {shorten(shown, 300)}")
    return replace(run, settings=Settings.merged(run.settings, of_files), notes=(*run.notes, *notes))


def _differs(setting: Setting, other: Setting | None) -> bool:
    return other is not None and other.known and other.value != setting.value


def _read_file(path: Path, wanted: str) -> Run:
    """Read a file that was named; of one that holds several runs, the one that is wanted."""
    run, holds_runs = read_log_file(path, wanted.removeprefix(f"{path.name}/"))
    if wanted and not holds_runs and wanted not in (path.name, path.stem):
        raise _no_such_run(path, wanted, [path.name])
    return run


def _reports_metrics(read: Sequence[Read]) -> bool:
    return any(is_telling(name) for entry in read for name in entry.run.series)


def _texts_with_metrics(folder: Path, read_log: ReadLog, notes: list[str]) -> list[Read]:
    """Return the runs in texts of any ending that report a metric of training or evaluation."""
    texts = _largest(texts_in(folder), [])
    return [place for place in read_places(texts, Refused(), read_log, notes) if _is_log(place)]


def _is_log(read: Read) -> bool:
    """Say whether a text of any ending is a log: it reports metrics, and a configuration is one record."""
    return read.run.records > 1 and _reports_metrics([read])


def texts_with_metrics(folder: Path) -> list[RunFolder]:
    """Return the runs of a folder whose logs are texts of any ending, each with the texts that report metrics."""
    found = []
    for place in texts_in(folder):
        logs = [
            path for read in read_places([place], Refused(), read_log_file, []) if _is_log(read) for path in read.logs
        ]
        if logs:
            found.append(replace(place, files=logs))
    return found


def _what_lies_in(folder: Path) -> str:
    """Return the files of a folder without a log, and the last lines of its largest text, for people to look at."""
    files = [path for place in (*runs_in(folder, []), *texts_in(folder)) for path in place.files]
    files = sorted(dict.fromkeys(files), key=lambda path: -path.stat().st_size)
    if not files:
        return ""
    names = ", ".join(shorten(str(path.relative_to(folder)), 60) for path in files[:SHOWN_FILES])
    more = f" and {len(files) - SHOWN_FILES} more" if len(files) > SHOWN_FILES else ""
    with open_input(files[0]) as file:
        file.seek(max(0, files[0].stat().st_size - END_OF_FILE))
        lines = [line for line in file.read().decode("utf-8", errors="replace").splitlines() if line.strip()]
    ends = " / ".join(quoted(shorten(line, SHOWN_CHARACTERS)) for line in lines[-SHOWN_LINES:])
    return f"; there are {names}{more}" + (f"; {files[0].name} ends with {ends}" if ends else "")


def _no_such_run(path: Path, wanted: str, names: Sequence[str]) -> InputError:
    there = f"is only {names[0]}" if len(names) == 1 else f"are {shorten(', '.join(names), 300)}"
    return InputError(f"{shorten(str(path), 200)}: no run {shorten(wanted, 60)!r}; there {there}")


def _read_folder(
    folder: Path, wanted: str, notes: list[str], read_log: ReadLog
) -> tuple[Run, tuple[SettingsFile, ...]]:
    """Read one run of a folder, and find its configuration; its notes name the other runs."""
    builder = RunBuilder()
    builder.wanted_run = wanted
    from mldebug_mcp.logs.formats import curve_folders

    if curve_folders.read_folder(folder, builder):
        return replace(builder.build(str(folder)), folder=str(folder), runs_in_file=()), ()
    refused = Refused()
    read, not_read = _read_runs(folder, wanted, refused, notes, read_log)
    if not read:
        raise _no_log_in(folder, refused, notes)
    notes += [f"not read: {reason}" for reason in refused.of_logs[:MAX_REASONS]]
    with_series = [entry for entry in read if entry.run.series] or read
    if not wanted:
        with_series, unlike = without_lists(with_series)
        notes += unlike
    runs = [(series.name, series.run) for series in with_series]
    from mldebug_mcp.logs.merge import joined

    whole_runs = joined(runs)
    found = len(whole_runs) + not_read
    runs = runs if wanted else whole_runs
    configs = {series.name: series.config(refused.paths) for series in with_series}
    if wanted and not any(series.holds_runs for series in with_series):
        wanted = _wanted_name(folder, wanted, with_series)
    folders = {series.name: "" if series.is_shared else str(series.place.folder) for series in with_series}
    logs = {series.name: tuple(map(str, series.logs)) for series in with_series}
    if len(runs) == 1:
        name, run = runs[0]
        return replace(run, folder=folders[name], logs=logs[name]), configs[name]
    own, aside = _own_log(with_series, [run for _, run in runs])
    builder = RunBuilder()
    builder.wanted_run = wanted or (own.name if own else "")
    chosen = builder.choose(str(folder), {name: run.records for name, run in runs}, {})
    run = dict(runs)[chosen]
    others = [(name, other) for name, other in runs if name != chosen]
    if own and not wanted:
        run = _with_what_came_after(run, others)
        longest = max(other.records for _, other in runs)
        builder.note(_note_on_others(own, len(runs), longest, [name for name, _ in others]))
    with_settings = [(name, _with_settings(other, configs[name])) for name, other in others[:MAX_SIBLINGS]]
    if wanted or own is None or own.is_shared:
        run = replace(run, runs_in_folder=found - aside)
    siblings = siblings_of(chosen, _with_settings(run, configs[chosen]), with_settings)
    notes_of_all = (*builder.notes, *run.notes)
    return replace(run, siblings=siblings, folder=folders[chosen], logs=logs[chosen], notes=notes_of_all), configs[
        chosen
    ]


def _read_runs(
    folder: Path, wanted: str, refused: Refused, notes: list[str], read_log: ReadLog
) -> tuple[list[Read], int]:
    """Read the run that is asked for and some next to it, else all; "FILE/NAME" is one of the runs of a file.

    Return also how many places next to the one that was asked for were not read. Where none of the others reports a
    metric, texts of any ending that do are read instead.
    """
    places = runs_in(folder, notes)
    named = [place for place in places if wanted and wanted in (place.name, *file_names(place))]
    read = read_places(named, refused, read_log, notes)
    inside = {place.name: name for place in places if not read and (name := _name_inside(wanted, place))}
    for place in [place for place in places if place.name in inside]:
        found = read_place(place, Refused(), read_log, inside[place.name])
        if of_file := [entry for entry in found if wanted.startswith(tuple(f"{name}/" for name in entry.files))]:
            return of_file[:1], 0
    neighbours = _neighbours(named, places) if read else _largest(places, notes)
    read += read_places(neighbours, refused, read_log, notes, "" if read else wanted)
    not_read = len(places) - len(named) - len(neighbours) if read and named else 0
    return (read if _reports_metrics(read) else _texts_with_metrics(folder, read_log, notes) or read), not_read


def without_lists(read: Sequence[Read]) -> tuple[list[Read], list[str]]:
    """Return what was read without texts that tell nothing of training next to logs that do, and notes on those."""
    trained = {entry.place.name for entry in read if all(_is_surely_training(entry.run))}
    names = {name for entry in read if _reports_metrics([entry]) for name in entry.run.series}
    kept = [
        entry
        for entry in read
        if entry.place.name not in trained
        or _tells_of_training(entry.run)
        or all(_is_surely_training(entry.run))
        or not names.isdisjoint(entry.run.series)
    ]
    names_kept = {entry.name for entry in kept}
    left = [name for entry in read if entry.name not in names_kept for name in entry.files[:1]]
    in_place = Counter(entry.place.name for entry in kept)
    alone = [
        replace(entry, name=entry.place.name, is_shared=False)
        if entry.is_shared and in_place[entry.place.name] == 1 and not entry.holds_runs
        else entry
        for entry in kept
    ]
    return alone, [f"no run, as no loss, score or reward is in it: {shorten(name, MAX_LOG_NAME)}" for name in left]


def _tells_of_training(run: Run) -> bool:
    quantities = {series.role.quantity for series in run.series.values() if series.role is not None}
    is_telling_of_it = any(map(is_telling, run.series)) or not quantities.isdisjoint(OF_UPDATES)
    return bool(run.messages) or is_telling_of_it


def _name_inside(wanted: str, place: RunFolder) -> str:
    """Return the name of a run within a log of a place that is asked for as "FILE/NAME", "" if none of it is."""
    files = sorted(file_names(place), key=len, reverse=True)
    return next((wanted.removeprefix(f"{file}/") for file in files if wanted.startswith(f"{file}/")), "")


def _no_log_in(folder: Path, refused: Refused, notes: Sequence[str]) -> InputError:
    if folder.name == ".aim" or is_folder(folder / ".aim"):
        from mldebug_mcp.logs.formats.trackers import OF_AIM

        return InputError(f"{shorten(str(folder), 200)}: {OF_AIM}")
    reasons = refused.of_logs or (refused.reasons if len(refused.reasons) <= MAX_REASONS else [])
    looked = "; ".join([*reasons[:MAX_REASONS], *notes])
    return InputError(
        f"{shorten(str(folder), 200)}: no training log found in this folder, {MAX_DEPTH} levels deep "
        f"(looked for trainer_state.json, event files and files ending in {', '.join(LOG_SUFFIXES)}); "
        f"name the log file itself{f' ({looked})' if looked else ''}{_what_lies_in(folder)}"
    )


def _own_log(read: Sequence[Read], runs: Sequence[Run]) -> tuple[Read | None, int]:
    """Return the log at the top of a folder that tells most, and how many others there tell too little to be read.

    What is surely of training is compared with its like alone, so that a long list does not take its place.
    """
    at_top = [series for series in read if series.place.name == "." and series.run.series]
    sure = {id(run): _is_surely_training(run) for run in (*runs, *(series.run for series in at_top))}
    telling = [
        series
        for series in at_top
        if _is_log_of_run(
            series.run, max((run.records for run in runs if sure[id(run)] >= sure[id(series.run)]), default=0)
        )
    ]
    surest = max((sure[id(series.run)] for series in telling), default=(False, False))
    telling = [series for series in telling if sure[id(series.run)] == surest]
    return max(telling, key=lambda series: series.run.records, default=None), len(at_top) - len(telling)


def _is_surely_training(run: Run) -> tuple[bool, bool]:
    """Say whether a run has a loss or a reward, or errors, and whether words that are known count it and name it.

    Tables of results by class or by query, next to a log, have neither.
    """
    quantities = {series.role.quantity for series in run.series.values() if series.role is not None}
    is_trained = bool(run.messages) or not quantities.isdisjoint(LOSSES | {Quantity.REWARD})
    return is_trained, not run.form_is_guessed


def _note_on_others(own: Read, count: int, longest: int, others: Sequence[str]) -> str:
    names = shorten(", ".join(others), 300)
    which = "the longest" if own.run.records == longest else "the longest that surely is a log of training"
    if not own.is_shared:
        name = own.files[0] if own.name == "." else own.name
        return f"this folder holds a run of its own, {name}, which is read; other runs in it: {names}"
    return (
        f"this folder holds {count} runs; only {own.name}, {which}, is read here; "
        f"`mldebug-mcp runs` (diagnose_runs) judges each; run=NAME (--run NAME) reads another: {names}"
    )


def _wanted_name(folder: Path, wanted: str, read: Sequence[Read]) -> str:
    """Return the name of the run that was asked for by its name, its folder or a file; raises InputError if none is."""
    name = next((entry.name for entry in read if wanted in (entry.name, entry.place.name, *entry.files)), "")
    if not name:
        shown = [entry.files[0] if entry.name == "." else entry.name for entry in read]
        records = [entry.run.records for entry in read]
        raise _no_such_run(folder, wanted, [f"{name} ({count})" for name, count in zip(shown, records, strict=True)])
    return name


def _is_log_of_run(run: Run, longest: int) -> bool:
    """Say whether the log of a folder itself tells enough to be read before a run below it with so many records.

    A framework that logs into a folder below leaves a line or two on the console. An error there is what to look at.
    """
    return bool(run.messages) or run.records >= least_to_judge(longest)


def _neighbours(named: list[RunFolder], places: list[RunFolder]) -> list[RunFolder]:
    """Return the folders next to the requested one that are read for runs of the same sweep."""
    others: list[RunFolder] = []
    room = MAX_NEIGHBOUR_BYTES
    for place in places:
        room -= 0 if place in named else place.size()
        if place not in named and room >= 0 and len(others) < MAX_SIBLINGS:
            others.append(place)
    return others


def _with_settings(run: Run, files: tuple[SettingsFile, ...]) -> Run:
    return configured(run, *read_found(files))


def _largest(places: list[RunFolder], notes: list[str]) -> list[RunFolder]:
    """Return the runs that are read to find the longest of them: all, or those with most bytes of very many."""
    if len(places) <= MAX_RUNS:
        return places
    notes.append(
        f"only the {MAX_RUNS} largest of {len(places):,} runs were looked at; run=NAME (--run NAME) reads any of them"
    )
    kept = {place.name for place in sorted(places, key=RunFolder.size, reverse=True)[:MAX_RUNS]} | {"."}
    return [place for place in places if place.name in kept]


def _with_what_came_after(own: Run, others: Sequence[tuple[str, Run]]) -> Run:
    """Return the run of a folder, from a log below it where that tells the same losses and goes on after them.

    A run that crashed leaves the state of its last checkpoint, and event files that go up to the crash.
    """
    if "hf_trainer_state" not in own.formats:
        return own
    from mldebug_mcp.logs.merge import goes_further, merged

    further = [item for item in others if goes_further(own, item[1])]
    return merged([("trainer_state.json", own), *further]) if further else own


def runs_of(place: RunFolder) -> list[Run]:
    """Read every run of one place of a folder, each with its settings; those of one file as "FILE/NAME".

    Raises:
        InputError: none of its files is a log; the message gives the reasons of the first.
    """
    refused = Refused()
    found, _ = without_lists([read for read in read_place(place, refused, read_log_file, "") if read.run.series])
    if not found:
        reasons = "; ".join((refused.of_logs or refused.reasons)[:MAX_REASONS])
        raise InputError(f"{place.name}: no training log in it{f' ({reasons})' if reasons else ''}")
    return [
        concluded(replace(_with_settings(run, read.config(refused.paths)), path=name))
        for read in found
        for name, run in _each_run(read, attempts_apart=place.attempts_apart)
    ]


def holds_attempts(run: Run) -> bool:
    """Say whether a log holds several starts of a program that logged records."""
    return sum(attempt.records > 0 for attempt in run.attempts) > 1


def _each_run(read: Read, *, attempts_apart: bool) -> Iterator[tuple[str, Run]]:
    """Yield what was read, by its name; of a file that holds several runs each of them."""
    if attempts_apart and holds_attempts(read.run):
        word = "fold" if read.run.attempts[0].is_fold else "attempt"
        for number, attempt in enumerate(read.run.attempts, start=1):
            if attempt.records:
                yield f"{word} {number}", read_log_file(read.logs[0], f"{word} {number}", read.logs[1:])[0]
        return
    if not read.run.runs_in_file:
        yield read.name, read.run
    for name in read.run.runs_in_file:
        yield f"{read.files[0]}/{name}", read_log_file(read.logs[0], name, read.logs[1:])[0]
