"""A path → a Run: a single log, or a run folder searched for its logs and its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mldebug_mcp.access import is_folder, links_left_out, require
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.accumulation import accumulation_note
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.config import find_config, read_config
from mldebug_mcp.logs.kinds import kind_of_run
from mldebug_mcp.logs.merge import merged, of_evaluation
from mldebug_mcp.logs.readers import read_files
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.run_folders import EVALUATION_FOLDERS, LOG_SUFFIXES, RunFolder, runs_in
from mldebug_mcp.logs.several import choose_run
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.paths import expanded, unreadable
from mldebug_mcp.text import shorten

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
        found = _configured(replace(found, path=str(path)), settings_file if config is None else expanded(config))
        return replace(found, notes=(*found.notes, *notes, *links_left_out()))
    except OSError as error:
        raise InputError(f"{unreadable(path, error)}; check the path") from None
    except UnicodeError as error:
        raise InputError(
            f"{shorten(str(path), 200)}: not text in a known encoding ({error}); save it as UTF-8"
        ) from None


def _configured(run: Run, settings_file: Path | None) -> Run:
    """Add the settings of a file, if there is one, and what only the settings tell of the log's conventions."""
    if settings_file is not None:
        settings = {**run.config, **read_config(settings_file)}
        run = replace(
            run,
            config=settings,
            kind=kind_of_run(run.series, settings),
            notes=(*run.notes, f"configuration read from {settings_file.name}"),
        )
    note = accumulation_note(run)
    return run if note is None else replace(run, notes=(*run.notes, note))


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
    places = runs_in(folder, notes)
    if len(places) == 1:
        run = _read_place(places[0], "" if wanted == places[0].name else wanted)
        read = [] if run is None else [(places[0], run)]
    else:
        read = [(place, run) for place in places if (run := _read_place(place)) is not None]
    if not read:
        raise InputError(
            f"{shorten(str(folder), 200)}: no training log found in this folder "
            f"(looked for trainer_state.json, event files and files ending in {', '.join(LOG_SUFFIXES)}); "
            "name the log file itself"
        )
    if len(read) == 1 and (len(places) == 1 or not wanted):
        return read[0][1], read[0][0].config()
    own = next((place.name for place, run in read if place.name == "." and run.series), "")
    builder = RunBuilder()
    builder.wanted_run = wanted or own
    chosen = choose_run(builder, str(folder), {place.name: run.records for place, run in read}, {})
    place, run = next(item for item in read if item[0].name == chosen)
    if own and not wanted:
        others = ", ".join(place.name for place, _ in read if place.name != chosen)
        builder.note(f"the run of this folder itself is read; runs below it: {shorten(others, 300)}")
    return replace(run, notes=(*run.notes, *builder.notes)), place.config()


def _read_place(place: RunFolder, wanted: str = "") -> Run | None:
    """Read the logs of one run; what is no log is passed over."""
    runs = []
    for files in _together(place.files):
        try:
            run = _read_log(files[0], wanted, files[1:])
        except InputError:
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
