"""The logs at one place → the runs that they tell: a file by itself, or the files of a folder that belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mldebug_mcp.access import is_file
from mldebug_mcp.errors import InputError
from mldebug_mcp.folders import entries
from mldebug_mcp.limits import must_judge_now
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.merge import merged, of_evaluation
from mldebug_mcp.logs.ranks.job import told_by_ranks
from mldebug_mcp.logs.ranks.recordings import joined_ranks, with_its_hang
from mldebug_mcp.logs.readers import read_files
from mldebug_mcp.logs.rotation import rotated
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.run_folders import EVALUATION_FOLDERS, RunFolder, may_be_log
from mldebug_mcp.logs.same_run import are_named_as_one, grouped, holds_evaluation
from mldebug_mcp.logs.settings.files import SettingsFile, find_settings
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import shorten

ReadLog = Callable[[Path, str, Sequence[Path]], tuple[Run, bool]]
"""Reads a log as `read_one` does."""
MAX_OTHER_LOGS = 20
"""Logs in the folder of one that was named that are read to see whether they are other runs; more are. Chosen."""
MAX_OTHER_BYTES = 32 * 1024 * 1024
"""... and bytes of them."""
ONLY_ERRORS = "no metrics in it, only lines that read like errors"


def read_one(path: Path, wanted: str = "", more: Sequence[Path] = ()) -> tuple[Run, bool]:
    """Read a file; return also whether it holds several runs.

    Args:
        path: The file.
        wanted: Which run to read, of several.
        more: Event files of the same run, or rotated parts of the same log, oldest first.
    """
    builder = RunBuilder()
    builder.wanted_run = wanted
    events = "tfevents" in path.name
    read_files([LogFile.open(one) for one in (path, *more)] if events else [LogFile.open(path, more)], builder)
    run = builder.build(str(path))
    if not run.series and not run.messages:
        raise InputError(
            f"{shorten(str(path), 200)}: no metrics found in it (read as {builder.formats[0]}); "
            "name the file that holds the losses; for an error message use explain_error (`mldebug-mcp error`)"
        )
    if not run.series:
        run = replace(run, notes=(*run.notes, ONLY_ERRORS))
    return run, builder.holds_runs


def file_names(place: RunFolder) -> set[str]:
    """Return the names by which a log in the folder of a run can be asked for."""
    beside = "" if place.name == "." else f"{place.name}/"
    names = {str(file.relative_to(place.folder)) for file in place.files}
    return {f"{beside}{name}" for name in names} | {Path(f"{beside}{name}").stem for name in names}


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
        of_logs: Those of files whose name says that they are logs: what else is no log is passed over in silence.
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
    """Read the logs in a folder, those of one run together; what is no log is passed over."""
    ranks = told_by_ranks(place.ranks) if place.ranks else None
    if ranks is not None:
        place = replace(place, files=[*place.files, *ranks.worth_reading], ranks={})
    runs: list[tuple[str, Run]] = []
    logs: dict[str, Path] = {}
    several = False
    wanted = "" if wanted in (place.name, *file_names(place)) else wanted
    for files in _together(place.files):
        try:
            run, holds_runs = read_log(files[0], wanted, files[1:])
        except InputError as error:
            refused.take(files[0], error)
            continue
        several = several or holds_runs
        below = files[0].parent != place.folder and files[0].parent.name.lower() in EVALUATION_FOLDERS
        if below or holds_evaluation(files[0].name, [other.name for other in place.files]):
            run = of_evaluation(run)
        name = shorten(str(files[0].relative_to(place.folder)), 80)
        logs[name] = files[0]
        runs.append((name, run))
    groups = grouped([(name, with_its_hang(run, place.folder)) for name, run in joined_ranks(runs)])
    found = []
    is_shared = sum(bool(run.series) for group in groups for _, run in group[:1]) > 1
    for group in groups:
        names = [name if place.name == "." else f"{place.name}/{name}" for name, _ in group]
        name = place.name if len(groups) == 1 else names[0]
        known = (*names, *(Path(one).stem for one in names))
        own = tuple(logs[one] for one, _ in group)
        found.append(Read(name, place, merged(group), known, several, own, is_shared))
    if ranks is not None and found:
        first = found[0].run
        found[0] = replace(found[0], run=replace(first, ranks=ranks, notes=(*ranks.lines(), *first.notes)))
    return found


def settings_beside(path: Path) -> tuple[SettingsFile, ...]:
    """Return the files with the settings of a log that was named, in its folder."""
    return find_settings([path.parent], [path], owns_folder=lambda: _owns_folder(path))


def _owns_folder(path: Path) -> bool:
    """Say whether the folder of a log holds no other run: logs that its name does not tie to it are read."""
    logs = [one for one in entries(path.parent) if may_be_log(one) and is_file(one)]
    unknown = [one for one in logs if one != path and not are_named_as_one(path.name, one.name)]
    if len(unknown) > MAX_OTHER_LOGS or sum(one.stat().st_size for one in unknown) > MAX_OTHER_BYTES:
        return False
    if not unknown:
        return True
    found = read_place(RunFolder(".", path.parent, [path, *unknown]), Refused(), read_one, "")
    return sum(bool(one.run.series) for one in found) < 2


def _together(files: list[Path]) -> list[list[Path]]:
    """Return the files that are read together: the event files of one folder, and a log with what was rotated.

    TensorBoard starts an event file whenever a writer is made.
    """
    events = [path for path in files if "tfevents" in path.name and path.stat().st_size]
    folders = {path.parent for path in events}
    older = rotated(path for path in files if path not in events)
    parts = {path for some in older.values() for path in some}
    return [
        *([path for path in events if path.parent == folder] for folder in sorted(folders)),
        *([path, *older.get(path, ())] for path in files if path not in events and path not in parts),
    ]
