"""A path → a Run: a single log, or a run folder searched for its logs and its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mldebug_mcp.access import is_folder, links_left_out, require
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.accumulation import accumulation_note
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.config import find_config, read_config, read_found_config
from mldebug_mcp.logs.continued import goes_further, joined
from mldebug_mcp.logs.kinds import kind_of_run
from mldebug_mcp.logs.merge import merged, of_evaluation
from mldebug_mcp.logs.readers import read_files
from mldebug_mcp.logs.run import Run, Scalar
from mldebug_mcp.logs.run_folders import EVALUATION_FOLDERS, LOG_SUFFIXES, MAX_DEPTH, RunFolder, runs_in
from mldebug_mcp.logs.several import choose_run
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.paths import expanded, unreadable
from mldebug_mcp.text import shorten

MAX_RUNS = 300
"""Runs of a folder that are read to find the longest: some seconds' work."""
REASONS = 3
"""Files that could not be read of which it is said why."""
ONLY_ERRORS = "no metrics in it, only lines that read like errors"


def read_run(path: str | Path, config: str | Path | None = None, run: str = "") -> Run:
    """Read a log file or a run folder.

    Args:
        path: A log file, or a folder that holds a run's logs and, if it has one, the training configuration.
        config: The training configuration (JSON or YAML), where it does not stand beside the log.
        run: Which run to read, where a folder, an export or a store holds several; by default the fullest.

    Raises:
        InputError: the path is missing, unreadable, binary, empty, or holds no metrics; or it has no such run.
    """
    place = expanded(path)
    require(place)
    notes: list[str] = []
    try:
        if is_folder(place):
            found, settings_file = _read_folder(place, run, notes)
        else:
            found, settings_file = _read_log(place, run), find_config(place.parent)
        found = replace(found, path=str(path))
        if config is not None:
            named = expanded(config)
            found = _configured(found, read_config(named), f"configuration read from {named.name}")
        elif settings_file is not None:
            found = _configured(found, *read_found_config(settings_file))
        note = accumulation_note(found)
        notes += [] if note is None else [note]
        return replace(found, notes=(*found.notes, *notes, *links_left_out()))
    except OSError as error:
        raise InputError(f"{unreadable(path, error)}; check the path") from None
    except UnicodeError as error:
        raise InputError(
            f"{shorten(str(path), 200)}: not text in a known encoding ({error}); save it as UTF-8"
        ) from None


def _configured(run: Run, read: Mapping[str, Scalar], note: str) -> Run:
    """Add the settings of a file."""
    settings = {**run.config, **read}
    return replace(run, config=settings, kind=kind_of_run(run.series, settings), notes=(*run.notes, note))


def _read_log(path: Path, wanted: str = "", more: Sequence[Path] = ()) -> Run:
    """Read a file; `more` are event files of the same run."""
    builder = RunBuilder()
    builder.wanted_run = wanted
    read_files([LogFile.open(one) for one in (path, *more)], builder)
    run = builder.build(str(path))
    if wanted and not builder.holds_runs:
        note = f"the log holds a single run, which is read; no run {shorten(wanted, 60)!r} is looked for in it"
        run = replace(run, notes=(*run.notes, note))
    if not run.series and not run.messages:
        raise InputError(
            f"{shorten(str(path), 200)}: no metrics found in it (read as {builder.formats[0]}); "
            "name the file that holds the losses; for an error message use explain_error (`mldebug-mcp error`)"
        )
    if not run.series:
        run = replace(run, notes=(*run.notes, ONLY_ERRORS))
    return run


def _read_folder(folder: Path, wanted: str, notes: list[str]) -> tuple[Run, Path | None]:
    """Read one run of a folder, and find its configuration; its notes name the other runs."""
    builder = RunBuilder()
    builder.wanted_run = wanted
    from mldebug_mcp.logs.formats import mlflow_folder

    if mlflow_folder.read_folder(folder, builder):
        return builder.build(str(folder)), None
    places, refused = runs_in(folder, notes), _Refused()
    if len(places) == 1:
        run = _read_place(places[0], refused, "" if wanted == places[0].name else wanted)
        read = [] if run is None else [(places[0], run)]
    else:
        read = _read_places([place for place in places if wanted and place.name == wanted], refused)
        read = read or _read_places(_largest(places, notes), refused)
    if not read:
        said = refused.of_logs or (refused.reasons if len(refused.reasons) <= REASONS else [])
        looked = "; ".join([*said[:REASONS], *notes])
        raise InputError(
            f"{shorten(str(folder), 200)}: no training log found in this folder, {MAX_DEPTH} levels deep "
            f"(looked for trainer_state.json, event files and files ending in {', '.join(LOG_SUFFIXES)}); "
            f"name the log file itself{f' ({looked})' if looked else ''}"
        )
    notes += [f"not read: {reason}" for reason in refused.of_logs[:REASONS]]
    configs = {place.name: place.config() for place, _ in read}
    runs = [(place.name, run) for place, run in read if run.series] or [(place.name, run) for place, run in read]
    runs = runs if wanted else joined(runs)
    if len(runs) == 1 and (len(places) == 1 or not wanted):
        return runs[0][1], configs[runs[0][0]]
    own = next((name for name, run in runs if name == "." and run.series), "")
    builder = RunBuilder()
    builder.wanted_run = wanted or own
    chosen = choose_run(builder, str(folder), {name: run.records for name, run in runs}, {})
    run = dict(runs)[chosen]
    if own and not wanted:
        below = [(name, other) for name, other in runs if name != own]
        run = _with_what_came_after(run, below)
        others = shorten(", ".join(name for name, _ in below), 300)
        builder.note(f"this folder holds a run of its own, which is read; logs below it: {others}")
    return replace(run, notes=(*run.notes, *builder.notes)), configs[chosen]


def _largest(places: list[RunFolder], notes: list[str]) -> list[RunFolder]:
    """Return the runs that are read to find the longest of them: all, or those with most bytes of very many."""
    if len(places) <= MAX_RUNS:
        return places
    notes.append(
        f"only the {MAX_RUNS} largest of {len(places):,} runs were looked at; run=NAME (--run NAME) reads any of them"
    )
    kept = {place.name for place in sorted(places, key=RunFolder.size, reverse=True)[:MAX_RUNS]} | {"."}
    return [place for place in places if place.name in kept]


def _read_places(places: list[RunFolder], refused: _Refused) -> list[tuple[RunFolder, Run]]:
    return [(place, run) for place in places if (run := _read_place(place, refused)) is not None]


def _with_what_came_after(own: Run, others: Sequence[tuple[str, Run]]) -> Run:
    """Return the run of a folder, from a log below it where that tells the same losses and goes on after them.

    A run that crashed leaves the state of its last checkpoint, and event files that go up to the crash.
    """
    further = [item for item in others if goes_further(own, item[1])]
    return merged([("trainer_state.json", own), *further]) if further else own


@dataclass(slots=True)
class _Refused:
    """Why files of a folder could not be read.

    Args:
        reasons: One for each of them.
        of_logs: Those of files whose name says that they are logs: what else is no log is passed over in silence.
    """

    reasons: list[str] = field(default_factory=list)
    of_logs: list[str] = field(default_factory=list)

    def take(self, path: Path, error: InputError) -> None:
        """Take the reason of a file."""
        self.reasons.append(str(error))
        if "tfevents" in path.name or path.suffix == ".wandb" or path.name == "trainer_state.json":
            self.of_logs.append(str(error))


def _read_place(place: RunFolder, refused: _Refused, wanted: str = "") -> Run | None:
    """Read the logs of one run; what is no log is passed over."""
    runs = []
    for files in _together(place.files):
        try:
            run = _read_log(files[0], wanted, files[1:])
        except InputError as error:
            refused.take(files[0], error)
            continue
        if files[0].parent != place.folder and files[0].parent.name.lower() in EVALUATION_FOLDERS:
            run = of_evaluation(run)
        runs.append((shorten(str(files[0].relative_to(place.folder)), 80), run))
    return merged(runs) if runs else None


def _together(files: list[Path]) -> list[list[Path]]:
    """Return the files that are read together: TensorBoard starts an event file whenever a writer is made."""
    events = [path for path in files if "tfevents" in path.name and path.stat().st_size]
    folders = {path.parent for path in events}
    return [
        *([path for path in events if path.parent == folder] for folder in sorted(folders)),
        *([path] for path in files if path not in events),
    ]
