"""The verb `diagnose_runs`: every run of a folder in a line, the ones that need attention first."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeAlias

from mldebug_mcp.access import is_folder, require
from mldebug_mcp.diagnose.diagnosis import gather
from mldebug_mcp.diagnose.hypotheses import judge_causes
from mldebug_mcp.diagnose.levels import Answered, levels_of
from mldebug_mcp.diagnose.next_call import diagnose_call
from mldebug_mcp.diagnose.rests_on import rests_on, speaks_first
from mldebug_mcp.diagnose.run_cache import RunCache, fingerprint
from mldebug_mcp.diagnose.shared_settings import shared_settings
from mldebug_mcp.diagnose.swept import sweep_of
from mldebug_mcp.errors import InputError
from mldebug_mcp.limits import must_judge_now
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.elsewhere import Choice, brought_in
from mldebug_mcp.logs.folder import runs_of
from mldebug_mcp.logs.ranks.job import RanksTold
from mldebug_mcp.logs.run_folders import RunFolder, runs_in
from mldebug_mcp.measure.run_result import result_of
from mldebug_mcp.measure.thinned import thinned
from mldebug_mcp.models import Finding, Hypothesis, State
from mldebug_mcp.models.base import NO_FAULTS, OTHER
from mldebug_mcp.models.runs import Ranks, RunRow, Runs
from mldebug_mcp.paths import expanded
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

MOST_ENTRIES = 1_000_000
"""Entries of a folder that are looked at where all its runs are asked for: 10,000 runs of a hundred files each."""
LOOK = "what the log of the run that needs most attention tells"
MOST_SETTINGS = 12
"""Settings that a row tells."""
STRETCHES = 12
"""Stretches of a run whose extremes are drawn of it: some fifty points."""
BROKEN = ("error", "silence", "interrupted", "cut")
"""Ways to end that need a look even where no cause leads."""


def diagnose_runs(
    path: str | Path,
    *,
    processes: int = 1,
    cache: str | Path | None = None,
    most: int | None = None,
    ray: str | None = None,
) -> Runs:
    """Diagnose every run of a folder, and say what those share in which the same cause leads.

    Args:
        path: A folder of runs, up to four levels deep; a zip archive, or a URL (zip://, s3://, gs://, memory://).
        processes: How many work side by side.
        cache: A file that keeps the answers, so that runs whose files have not changed are not read again.
        most: Read only so many runs, those with the newest files; by default all.
        ray: The address of a Ray cluster that does the work instead, such as "auto"; "local" starts one here.

    Raises:
        InputError: it is no folder, or holds no run; or there is no such cluster.
        MissingExtraError: Ray, or the package that a URL needs, is not installed.
    """
    choice = None if most is None else Choice(newest=True)
    with brought_in(path, choice) as place:
        found = _runs_of_folder(place, cache, most, partial(_diagnosed, processes=processes, ray=ray))
    if choice is not None and choice.notes:
        found = found.model_copy(update={"notes": [*choice.notes, *found.notes]})
    if place == path:
        return found
    rows = [one.model_copy(update={"path": str(path)}) for one in found.rows]
    look = diagnose_call(LOOK, str(path), run=rows[0].name)
    return found.model_copy(update={"path": str(path), "rows": rows, "next_step": look})


def _runs_of_folder(path: str | Path, cache: str | Path | None, most: int | None, work: Work) -> Runs:
    folder = expanded(path)
    require(folder)
    if not is_folder(folder):
        raise InputError(f"{shorten(str(path), 200)}: not a folder; for a single run use diagnose_run")
    notes: list[str] = []
    places = runs_in(folder, notes, MOST_ENTRIES if most is None else None)
    if not places:
        raise InputError(f"{shorten(str(path), 200)}: no run found in this folder; name the folder that holds the logs")
    if most is not None and len(places) > most:
        notes.append(f"only the newest {most} of {len(places):,} runs were read; `mldebug-mcp runs` reads them all")
        places = sorted(places, key=_newest, reverse=True)[:most]
    kept = RunCache(expanded(cache) if cache is not None else None)
    try:
        answers = sorted(_answers(places, kept, work, notes), key=lambda one: _attention(one.row))
    finally:
        kept.write()  # what was read before it was interrupted is not read again
    notes += kept.notes
    look = diagnose_call(LOOK, str(path), run=answers[0].name)
    return Runs(
        path=str(path),
        rows=_with_settings(answers),
        shared=shared_settings(answers),
        sweep=sweep_of(answers),
        next_step=look,
        notes=notes,
    )


Fresh: TypeAlias = Sequence[tuple[RunFolder, str]]
"""Places whose runs are not known yet, each with its fingerprint."""
Work: TypeAlias = Callable[[Fresh], Iterator[tuple[str, list[Answered]]]]


def answered(place: RunFolder) -> list[Answered]:
    """Diagnose the runs of one place; what cannot be read has a row that says why."""
    try:
        return [Answered(run.path, _row(run, place), run.config) for run in runs_of(place)]
    except (InputError, OSError) as error:
        unread = RunRow(name=place.name, path=str(place.folder), ending="unread", note=str(error))
        return [Answered(place.name, unread, {})]


def _answers(places: Sequence[RunFolder], cache: RunCache, work: Work, notes: list[str]) -> Iterator[Answered]:
    prints = [fingerprint(place) for place in places]
    fresh = [(place, mark) for place, mark in zip(places, prints, strict=True) if mark not in cache]
    for number, (mark, found) in enumerate(work(fresh), start=1):
        checkpoint(f"{number} of {len(fresh)} runs diagnosed")
        cache.keep(mark, found)
        if number < len(fresh) and must_judge_now():
            notes.append(
                f"{number} of {len(fresh)} runs were read in the time that a call may take; the others were not looked "
                "at; name a folder below, or use `mldebug-mcp runs`, which has no such limit"
            )
            break
    for mark in prints:
        if mark in cache:
            yield from cache.answers(mark)


def _diagnosed(fresh: Fresh, processes: int, ray: str | None) -> Iterator[tuple[str, list[Answered]]]:
    places, marks = [place for place, _ in fresh], [mark for _, mark in fresh]
    if ray is not None and fresh:
        from mldebug_mcp.diagnose.ray_cluster import each_on_ray

        yield from zip(marks, each_on_ray(ray, answered, [_absolute(place) for place in places]), strict=True)
    elif processes < 2 or len(fresh) < 2:
        yield from zip(marks, map(answered, places), strict=True)
    else:
        with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
            yield from zip(marks, pool.map(answered, places, chunksize=4), strict=True)


def _absolute(place: RunFolder) -> RunFolder:
    """Return a place with paths that mean the same in another working directory."""
    ranks = {rank: [file.absolute() for file in files] for rank, files in place.ranks.items()}
    files = [file.absolute() for file in place.files]
    checkpoints = [one.absolute() for one in place.checkpoints]
    return RunFolder(place.name, place.folder.absolute(), files, checkpoints, ranks)


def _row(run: Run, place: RunFolder) -> RunRow:
    known = gather(run)
    leader, result = judge_causes(known.findings, run.kind, known.evidence, run.path)[0], result_of(run)
    present = [one for one in known.findings if one.state is State.PRESENT]
    drawn = _drawn(run, leader, present, "" if result is None else result.metric)
    row = RunRow(
        name=run.path,
        path=str(place.folder),
        kind=run.kind,
        ending=run.ending.how,
        step=run.last_step,
        step_name=run.step_name,
        metric="" if result is None else result.metric,
        better="" if result is None else "higher" if result.higher_is_better else "lower",
        last=None if result is None else result.last,
        final=None if result is None else float(run[result.metric].value[-1]),
        best=None if result is None else result.best,
        best_step=None if result is None else result.best_step,
        ranks=None if run.ranks is None else _ranks(run.ranks),
        curve=_curve(run[drawn]) if drawn else (),
        curve_metric=drawn,
        cause=leader.cause,
        probability=leader.probability,
        seen=[one.symptom for one in present],
    )
    return row.model_copy(update={"onset": speaks_first(present, leader)}) if row.is_sick else row


def _drawn(run: Run, leader: Hypothesis, present: Sequence[Finding], metric: str) -> str:
    """Return which metric to draw: the result, unless the strongest finding for a fault rests on others alone."""
    strongest = next((one for name in leader.symptoms[:1] for one in present if one.symptom == name), None)
    if leader.cause in NO_FAULTS or strongest is None:
        return metric
    names = [name for name in rests_on(run, strongest) if len(run[name].finite) > 1]
    return metric if metric in names or not names else names[0]


def _ranks(told: RanksTold) -> Ranks:
    first = told.first_failed
    return Ranks(
        count=told.count,
        failed=told.failed,
        first_failed="" if first is None else ".".join(first.rank),
        error="" if first is None else first.words(),
        straggler=told.straggler,
        told=told.lines(),
    )


def _curve(series: Series) -> tuple[tuple[float, float], ...]:
    few = thinned(series, STRETCHES)
    return tuple(zip(few.step.tolist(), few.value.tolist(), strict=True))


def _with_settings(answers: Sequence[Answered]) -> list[RunRow]:
    """Return the rows with the settings in which the runs differ."""
    varied = [name for name, _ in levels_of([one.settings for one in answers])][:MOST_SETTINGS]
    return [
        one.row.model_copy(update={"settings": {name: one.settings[name] for name in varied if name in one.settings}})
        for one in answers
    ]


def _attention(row: RunRow) -> tuple[int, float, str]:
    """Return the order of rows: faults, the surest first, then broken ends, the unclear, the sound and the unread."""
    if row.ending == "unread":
        return 4, 0.0, row.name
    if row.is_sick:
        return 0, -row.probability, row.name
    broken = 1 if row.ending in BROKEN else 2 if row.cause == OTHER else 3
    return broken, -row.probability if row.cause == OTHER else row.probability, row.name


def _newest(place: RunFolder) -> float:
    return max(file.stat().st_mtime for file in place.all_files())
