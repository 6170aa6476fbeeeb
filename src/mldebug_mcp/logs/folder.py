"""A path → a Run: a single log, or a run folder searched for its logs and its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mldebug_mcp.access import is_folder, links_left_out, require
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.accumulation import accumulation_note
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.continued import goes_further, joined
from mldebug_mcp.logs.elsewhere import Choice, brought_in
from mldebug_mcp.logs.merge import merged
from mldebug_mcp.logs.places import ReadLog, Refused, file_names, read_one, read_place, read_places, settings_beside
from mldebug_mcp.logs.plan import concluded
from mldebug_mcp.logs.roles.given import given_names
from mldebug_mcp.logs.run import Run, require_logged
from mldebug_mcp.logs.run_folders import LOG_SUFFIXES, MAX_DEPTH, RunFolder, runs_in
from mldebug_mcp.logs.settings import Settings
from mldebug_mcp.logs.settings.files import SettingsFile, read_found, read_settings
from mldebug_mcp.logs.settings.settings import Setting
from mldebug_mcp.logs.siblings import MAX_SIBLINGS, siblings_of
from mldebug_mcp.paths import expanded, unreadable
from mldebug_mcp.text import shorten

MAX_RUNS = 300
"""Runs of a folder that are read to find the longest: some seconds' work."""
MAX_BESIDE = 32 * 1024 * 1024
"""Bytes of logs that are read of the runs beside one that was asked for by its name."""
MAX_DIFFERENT = 4
"""Settings that differ between the log and a file that a note names."""

REASONS = 3
"""Files that could not be read of which it is said why."""


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
        config: The training configuration, in any usual form, where it does not stand beside the log.
        run: Which run to read, where a folder, an export or a store holds several; by default the fullest. Where a log
            holds several attempts, "attempt 1" is the first of them; by default the last that got anywhere is read.
        names: What names of the log mean that do not say it, such as {"L": "loss"}.
        read_log: What reads the logs of a folder; a reader that remembers reads what has changed alone.

    Raises:
        InputError: the path is missing, unreadable, binary, empty, or holds no metrics; it has no such run, or none of
            a name that `names` explains.
    """
    read_log = read_log or read_one
    choice = Choice(run)
    with given_names(names or {}), brought_in(path, choice) as place:
        found = _read(place, config, run, read_log)
    found = replace(found, path=str(path), notes=(*found.notes, *choice.notes))
    if names:
        require_logged(names, found, str(path))
    return found


def _read(path: str | Path, config: str | Path | None, run: str, read_log: ReadLog) -> Run:
    place = expanded(path)
    require(place)
    notes: list[str] = []
    try:
        if is_folder(place):
            found, beside = _read_folder(place, run, notes, read_log)
        else:
            found, beside = _read_file(place, run), settings_beside(place)
        found = replace(found, path=str(path))
        if config is not None:
            named = expanded(config)
            read = read_settings(named)
            notes += [f"configuration read from {shorten(named.name, 80)} (it was named)", *read.notes]
            found = replace(found, settings=Settings.merged(read, found.settings))
        else:
            found = configured(found, *read_found(beside))
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
    differ = [name for name, one in run.settings.items() if one.known and _differs(one, of_files.get(name))]
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
    run, holds_runs = read_one(path, wanted)
    if wanted and not holds_runs and wanted not in (path.name, path.stem):
        raise _no_such_run(path, wanted, [path.name])
    return run


def _no_such_run(path: Path, wanted: str, names: Sequence[str]) -> InputError:
    there = f"is only {names[0]}" if len(names) == 1 else f"are {shorten(', '.join(names), 300)}"
    return InputError(f"{shorten(str(path), 200)}: no run {shorten(wanted, 60)!r}; there {there}")


def _read_folder(
    folder: Path, wanted: str, notes: list[str], read_log: ReadLog
) -> tuple[Run, tuple[SettingsFile, ...]]:
    """Read one run of a folder, and find its configuration; its notes name the other runs."""
    builder = RunBuilder()
    builder.wanted_run = wanted
    from mldebug_mcp.logs.formats import mlflow_folder

    if mlflow_folder.read_folder(folder, builder):
        return builder.build(str(folder)), ()
    places, refused = runs_in(folder, notes), Refused()
    named = [place for place in places if wanted and wanted in (place.name, *file_names(place))]
    read = read_places(named, refused, read_log, notes)
    beside = _beside(named, places) if read else _largest(places, notes)
    read += read_places(beside, refused, read_log, notes, "" if read else wanted)
    if not read:
        said = refused.of_logs or (refused.reasons if len(refused.reasons) <= REASONS else [])
        looked = "; ".join([*said[:REASONS], *notes])
        raise InputError(
            f"{shorten(str(folder), 200)}: no training log found in this folder, {MAX_DEPTH} levels deep "
            f"(looked for trainer_state.json, event files and files ending in {', '.join(LOG_SUFFIXES)}); "
            f"name the log file itself{f' ({looked})' if looked else ''}"
        )
    notes += [f"not read: {reason}" for reason in refused.of_logs[:REASONS]]
    with_series = [one for one in read if one.run.series] or read
    runs = [(one.name, one.run) for one in with_series]
    runs = runs if wanted else joined(runs)
    configs = {one.name: one.config(refused.paths) for one in with_series}
    if wanted and not any(one.holds_runs for one in with_series):
        name = next((one.name for one in with_series if wanted in (one.name, one.place.name, *one.files)), "")
        if not name:
            shown = [one.files[0] if one.name == "." else one.name for one in with_series]
            records = [one.run.records for one in with_series]
            raise _no_such_run(
                folder, wanted, [f"{name} ({count})" for name, count in zip(shown, records, strict=True)]
            )
        wanted = name
    if len(runs) == 1:
        return runs[0][1], configs[runs[0][0]]
    own = max((one for one in with_series if one.place.name == "." and one.run.series),
              key=lambda one: one.run.records, default=None)  # fmt: skip
    builder = RunBuilder()
    builder.wanted_run = wanted or (own.name if own else "")
    chosen = builder.choose(str(folder), {name: run.records for name, run in runs}, {})
    run = dict(runs)[chosen]
    others = [(name, other) for name, other in runs if name != chosen]
    if own and not wanted:
        run = _with_what_came_after(run, others)
        told = shorten(", ".join(name for name, _ in others), 300)
        if own.is_shared:
            builder.note(
                f"this folder holds {len(runs)} runs; only {own.name}, the longest, is read here; "
                f"`mldebug-mcp runs` (diagnose_runs) judges each; run=NAME (--run NAME) reads another: {told}"
            )
        else:
            builder.note(f"this folder holds a run of its own, {own.name}, which is read; other runs in it: {told}")
    with_settings = [(name, _with_settings(other, configs[name])) for name, other in others[:MAX_SIBLINGS]]
    siblings = siblings_of(chosen, _with_settings(run, configs[chosen]), with_settings)
    return replace(run, siblings=siblings, notes=(*builder.notes, *run.notes)), configs[chosen]


def _beside(named: list[RunFolder], places: list[RunFolder]) -> list[RunFolder]:
    """Return the folders beside the one that was asked for which are read for runs of the same sweep."""
    others: list[RunFolder] = []
    room = MAX_BESIDE
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
    further = [item for item in others if goes_further(own, item[1])]
    return merged([("trainer_state.json", own), *further]) if further else own


def runs_of(place: RunFolder) -> list[Run]:
    """Read every run of one place of a folder, each with its settings.

    Raises:
        InputError: none of its files is a log; the message gives the reasons of the first.
    """
    refused = Refused()
    found = [one for one in read_place(place, refused, read_one, "") if one.run.series]
    if not found:
        said = "; ".join((refused.of_logs or refused.reasons)[:REASONS])
        raise InputError(f"{place.name}: no training log in it{f' ({said})' if said else ''}")
    return [concluded(replace(_with_settings(one.run, one.config(refused.paths)), path=one.name)) for one in found]
