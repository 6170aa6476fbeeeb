"""The verb `diagnose_runs`: every run of a folder in a line, the ones that need attention first."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from mldebug_mcp import __version__
from mldebug_mcp.checks.curve import thinned
from mldebug_mcp.checks.results import result_of
from mldebug_mcp.core.access import is_folder, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint, must_judge_now
from mldebug_mcp.core.paths import CACHE_VARIABLE, cache_folder, expanded, knowledge_folder
from mldebug_mcp.core.text import shorten
from mldebug_mcp.judge.at_a_glance import glance_at_runs
from mldebug_mcp.judge.diagnosis import diagnose_run, died_of, gather
from mldebug_mcp.judge.hypotheses import judge_causes
from mldebug_mcp.judge.next_call import diagnose_call
from mldebug_mcp.judge.next_steps import tried_in, tried_lines
from mldebug_mcp.judge.reader import Reader, with_reader
from mldebug_mcp.judge.run_verdict import names_nothing
from mldebug_mcp.judge.sheet import rests_on, speaks_first
from mldebug_mcp.judge.sweep import Answered, left_out_of_sweep, levels_of, shared_settings, sweep_of
from mldebug_mcp.judge.what_to_log import hardly_judged
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.files import RECORD, RunFolder, runs_in
from mldebug_mcp.logs.ranks import RankSummary
from mldebug_mcp.logs.read import holds_attempts, read_log_file, runs_of, texts_with_metrics
from mldebug_mcp.logs.remote_files import Choice, brought_in
from mldebug_mcp.models import Finding, Hypothesis, State
from mldebug_mcp.models.base import NO_FAULTS, OTHER
from mldebug_mcp.models.diagnosis import ReaderOpinion
from mldebug_mcp.models.runs import Ranks, RunRow, Runs

# Answers about runs whose files have not changed since: a file of JSON lines, one per place of a folder.


MAX_CACHE_BYTES = 1024**3
"""A run takes some two kilobytes, so this holds half a million. Chosen."""
WAY_OUT = f"name another folder in {CACHE_VARIABLE}, or switch it off with --no-cache"


def cache_file(path: str) -> Path | None:
    """Return the file of the user that keeps the answers about a folder; None where that is switched off.

    Raises:
        InputError: the user has no home folder.
    """
    try:
        folder = cache_folder()
    except InputError as error:
        raise InputError(f"the answers are not kept for the next call: {error}; {WAY_OUT}") from None
    name = hashlib.blake2b(os.path.realpath(path).encode(errors="surrogateescape"), digest_size=12).hexdigest()
    return None if folder is None else folder / f"runs-{name}.jsonl"


@lru_cache(maxsize=1)
def _mark_of_code() -> str:
    knowledge = knowledge_folder()
    menus = (knowledge / "PLAYBOOK.md").stat()
    below = code_mark(Path(__file__).parents[1], knowledge / "evidence", knowledge / "references")
    return f"{below} {menus.st_size} {menus.st_mtime_ns}"


def code_mark(*places: Path) -> str:
    """Return what changes with the code and the knowledge in these folders, which a version does not tell apart.

    It is made of names, sizes and times, so that it takes a few milliseconds.
    """
    digest = hashlib.blake2b(__version__.encode(), digest_size=16)
    for path, size, changed in sorted(chain.from_iterable(map(_files_below, places))):
        digest.update(f"\0{path}\0{size}\0{changed}".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _files_below(place: str | Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_file():
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _files_below(entry.path)


def fingerprint(place: RunFolder) -> str:
    """Return what changes with the files of a place, with its name, and with the code that judges them."""
    digest = hashlib.blake2b(f"{_mark_of_code()}\0{place.folder}".encode(), digest_size=16)
    for file in sorted((*place.all_files(), *(settings_file.path for settings_file in place.config()))):
        try:
            status = file.stat()
        except OSError:  # it was removed meanwhile
            continue
        digest.update(f"\0{file}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="surrogateescape"))
    return digest.hexdigest()


class RunCache:
    """Answers by fingerprint, in memory and in a file; without one they are kept for this call alone.

    The file holds nothing that cannot be made again. So one that cannot be read counts as empty, one that cannot be
    written is left as it is, and `notes` says so.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._kept: dict[str, list[Answered]] = {}
        self._asked: set[str] = set()
        self._changed = False
        self.notes: list[str] = []
        if file is not None:
            self._read(file)

    def __contains__(self, mark: object) -> bool:
        return mark in self._kept

    def keep(self, mark: str, answers: Sequence[Answered]) -> None:
        """Keep what was found at a place."""
        self._kept[mark] = list(answers)
        self._asked.add(mark)
        self._changed = True

    def answers(self, mark: str) -> list[Answered]:
        """Return what was found at a place."""
        self._asked.add(mark)
        return self._kept[mark]

    def write(self) -> None:
        """Write the answers that were asked for, in one step: a reader sees the old file or the new one."""
        if self._file is None or not self._changed:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("wb", dir=self._file.parent, delete=False) as file:
                try:
                    file.writelines(_line(mark, self._kept[mark]) for mark in sorted(self._asked))
                    file.flush()
                    os.replace(file.name, self._file)  # noqa: PTH105 - of a name
                except BaseException:
                    os.unlink(file.name)  # noqa: PTH108 - of a name
                    raise
        except OSError as error:
            self.notes.append(
                f"the answers are not kept for the next call: {shorten(str(self._file), 200)} cannot be written "
                f"({error.strerror or error}); {WAY_OUT}"
            )

    def _read(self, file: Path) -> None:
        try:
            size = file.stat().st_size
            if not file.is_file():  # a pipe would be waited for; what stands in the way is noted where it is written
                return
            lines = file.read_bytes().splitlines() if size <= MAX_CACHE_BYTES else [b"too large"]
        except FileNotFoundError:
            return
        except OSError as error:
            self.notes.append(
                f"the answers of earlier calls are not used: {shorten(str(file), 200)} cannot be read "
                f"({error.strerror or error}); {WAY_OUT}"
            )
            return
        for line in lines:
            entry = _entry(line)
            if entry is not None:
                self._kept[entry[0]] = entry[1]
        if len(self._kept) < len(lines):
            self._changed = True
            self.notes.append("the cache of earlier answers was damaged; runs whose answers were lost are read again")


def _line(mark: str, answers: Sequence[Answered]) -> bytes:
    rows = [
        [answer.name, dict(answer.row) | {"ranks": answer.row.ranks and dict(answer.row.ranks)}, dict(answer.settings)]
        for answer in answers
    ]
    content = json.dumps([mark, rows]).encode()
    return b"%s %s\n" % (_digest(content), content)


def _entry(line: bytes) -> tuple[str, list[Answered]] | None:
    """Return the fingerprint and the answers of a line; None unless it is as it was written."""
    digest, _, content = line.partition(b" ")
    if digest != _digest(content):
        return None
    try:
        mark, rows = json.loads(content)
        return str(mark), [Answered(name, RunRow.model_validate(row), settings) for name, row, settings in rows]
    except (ValueError, TypeError):
        return None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()


MOST_ENTRIES = 1_000_000
"""Entries of a folder that are looked at where all its runs are asked for: 10,000 runs of a hundred files each."""
LOOK = "what the log of the run that needs most attention tells"
MOST_SETTINGS = 12
"""Settings that a row tells."""
DRAWN_STRETCHES = 12
"""Stretches of a run whose extremes are drawn of it: some fifty points."""
READ_AT_MOST = 20
"""Runs that a reader reads of a folder: each is a call that somebody pays for. Chosen."""
MIN_SURE_PROBABILITY = 0.8
"""Probability of what leads below which a reader is asked, though no fault leads. Chosen."""
ASKED_AT_ONCE = 4
"""Calls of a reader side by side. Chosen."""
MAX_FAILURES = 3
"""Runs that a reader did not read which are named. Chosen."""
BROKEN = ("error", "silence", "interrupted", "cut")
"""Ways to end that need a look even where no cause leads."""


def diagnose_runs(
    path: str | Path,
    *,
    processes: int = 1,
    cache: str | Path | None = None,
    most: int | None = None,
    ray: str | None = None,
    reader: Reader | None = None,
    read_at_most: int = READ_AT_MOST,
) -> Runs:
    """Diagnose every run of a folder, and say what those share in which the same cause leads.

    Args:
        path: A folder of runs, up to four levels deep, or a file that holds several; a zip archive, or a URL (zip://,
            s3://, gs://, memory://).
        processes: How many work side by side.
        cache: A file that keeps the answers, so that runs whose files have not changed are not read again.
        most: Read only so many runs, those with the newest files; by default all.
        ray: The address of a Ray cluster that does the work instead, such as "auto"; "local" starts one here.
        reader: What judges runs as well, a function from a prompt to a reply: those that need attention, and those of
            which the own ranking is unsure.
        read_at_most: How many runs it reads.

    Raises:
        InputError: it is not a folder and holds not several runs, or holds none; or no such cluster exists.
        MissingExtraError: Ray, or the package that a URL needs, is not installed.
    """
    choice = None if most is None else Choice(newest=True)
    with brought_in(path, choice) as place:
        found = _runs_of_folder(place, cache, most, partial(_diagnosed, processes=processes, ray=ray))
        if reader is not None:
            found = _read_by(reader, found, place, read_at_most)
    if choice is not None and choice.notes:
        found = found.model_copy(update={"notes": [*choice.notes, *found.notes]})
    if place == path:
        return found.model_copy(update={"at_a_glance": glance_at_runs(found)})
    rows = [row.model_copy(update={"path": str(path)}) for row in found.rows]
    look = diagnose_call(LOOK, str(path), run=rows[0].name)
    found = found.model_copy(update={"path": str(path), "rows": rows, "next_step": look})
    return found.model_copy(update={"at_a_glance": glance_at_runs(found)})


def _runs_of_folder(path: str | Path, cache: str | Path | None, most: int | None, work: Work) -> Runs:
    folder = expanded(path)
    require(folder)
    notes: list[str] = []
    if is_folder(folder):
        places = runs_in(folder, notes, MOST_ENTRIES if most is None else None)
    else:
        whole, _ = read_log_file(folder)
        if not whole.runs_in_file and not holds_attempts(whole):
            one_run = "a file of one run; `mldebug-mcp diagnose` (diagnose_run) judges it"
            raise InputError(f"{shorten(str(path), 200)}: {one_run}")
        places = [RunFolder(".", folder.parent, [folder], attempts_apart=not whole.runs_in_file)]
    if not places:
        raise InputError(f"{shorten(str(path), 200)}: no run found in this folder; name the folder that holds the logs")
    if most is not None and len(places) > most:
        notes.append(f"only the newest {most} of {len(places):,} runs were read; `mldebug-mcp runs` reads them all")
        newest_first = sorted(
            places, key=lambda place: max(file.stat().st_mtime for file in place.all_files()), reverse=True
        )
        places = newest_first[:most]
    kept = RunCache(expanded(cache) if cache is not None else None)
    try:
        answers = list(_answers(places, kept, work, notes))
        if all(answer.row.ending == "unread" for answer in answers) and (texts := texts_with_metrics(folder)):
            answers = list(_answers(texts, kept, work, notes))
        answers.sort(key=lambda answer: _attention(answer.row))
        answers = _without_folder_itself(answers, notes)
    finally:
        kept.write()  # what was read before it was interrupted is not read again
    notes += kept.notes
    look = diagnose_call(LOOK, str(path), run=answers[0].name)
    rows, damaged = _with_tried(_with_settings(answers), places)
    notes += [*damaged, *left_out_of_sweep(answers)]
    return Runs(
        path=str(path),
        rows=rows,
        shared=shared_settings(answers),
        sweep=sweep_of(answers),
        next_step=look,
        notes=notes,
    )


def _without_folder_itself(answers: list[Answered], notes: list[str]) -> list[Answered]:
    """Return the runs without a folder that holds others and no log of its own; `notes` says what was read there."""
    own = [answer for answer in answers if answer.name == "." and answer.row.ending == "unread"]
    if len(own) == len(answers):
        return answers
    notes += [f"the folder itself is not counted as a run: {answer.row.note}" for answer in own]
    return [answer for answer in answers if answer not in own]


def _read_by(reader: Reader, runs: Runs, path: str | Path, most: int) -> Runs:
    """Return the runs with what a reader makes of those that need it, and a note on how often it was asked."""
    readable = [row for row in runs.rows if row.ending != "unread"]
    wanted = [row for row in readable if row.is_sick or row.probability < MIN_SURE_PROBABILITY or row.ending in BROKEN]
    asked = wanted[:most]
    at = Counter(row.path for row in runs.rows)

    # A run is diagnosed here, in one thread: only the calls of the reader, which wait, are made side by side.
    answers = []
    for number, row in enumerate(asked, start=1):
        checkpoint(f"{number} of {len(asked)} runs made ready for the reader")
        answers.append(diagnose_run(row.path) if at[row.path] == 1 else diagnose_run(path, run=row.name))
    opinions: dict[str, ReaderOpinion] = {}
    failures: list[str] = []
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        read = zip(asked, pool.map(partial(with_reader, reader=reader), answers), strict=True)
        for number, (row, answer) in enumerate(read, start=1):
            checkpoint(f"{number} of {len(asked)} runs read by the reader")
            if answer.reader is not None:
                opinions[row.name] = answer.reader
            elif answer.notes:
                failures.append(f"{shorten(row.name, 60)}: {answer.notes[-1]}")
    notes = [f"the reader was asked about {len(asked)} of {len(wanted)} runs that need it (--read-at-most)"]
    rows = [row.model_copy(update={"reader": opinions.get(row.name)}) for row in runs.rows]
    return runs.model_copy(update={"rows": rows, "notes": [*runs.notes, *notes, *failures[:MAX_FAILURES]]})


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
        from mldebug_mcp.judge.ray import each_on_ray

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
    checkpoints = [path.absolute() for path in place.checkpoints]
    return RunFolder(place.name, place.folder.absolute(), files, checkpoints, ranks)


TOO_LITTLE = "cannot be judged: too little is logged"
UNJUDGED = ("", OTHER)


def _row(run: Run, place: RunFolder) -> RunRow:
    known = gather(run)
    leader, result = judge_causes(known.findings, run.kind, known.evidence, run.path)[0], result_of(run)
    present = [finding for finding in known.findings if finding.state is State.PRESENT]
    little = names_nothing(run) or hardly_judged(known.findings, run)
    died = died_of(run) if leader.cause in NO_FAULTS else None
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
        cause="" if little else leader.cause,
        probability=0.0 if little else leader.probability,
        seen=[finding.symptom for finding in present],
        error="" if died is None else died.words,
        note=TOO_LITTLE if little else "",
    )
    return row.model_copy(update={"onset": speaks_first(present, leader)}) if row.is_sick else row


def _drawn(run: Run, leader: Hypothesis, present: Sequence[Finding], metric: str) -> str:
    """Return which metric to draw: the result, unless the strongest finding for a fault rests on others alone."""
    strongest = next((finding for name in leader.symptoms[:1] for finding in present if finding.symptom == name), None)
    if leader.cause in NO_FAULTS or strongest is None:
        return metric
    names = [name for name in rests_on(run, strongest) if len(run[name].finite) > 1]
    return metric if metric in names or not names else names[0]


def _ranks(summary: RankSummary) -> Ranks:
    first = summary.first_failed
    return Ranks(
        count=summary.count,
        failed=summary.failed,
        first_failed="" if first is None else ".".join(first.rank),
        error="" if first is None else first.error,
        straggler=summary.straggler,
        told=summary.lines(),
    )


def _curve(series: Series) -> tuple[tuple[float, float], ...]:
    few = thinned(series, DRAWN_STRETCHES)
    return tuple(zip(few.step.tolist(), few.value.tolist(), strict=True))


def _with_settings(answers: Sequence[Answered]) -> list[RunRow]:
    varied = [name for name, _ in levels_of([answer.settings for answer in answers])][:MOST_SETTINGS]
    return [
        answer.row.model_copy(
            update={"settings": {name: answer.settings[name] for name in varied if name in answer.settings}}
        )
        for answer in answers
    ]


def _with_tried(rows: Sequence[RunRow], places: Sequence[RunFolder]) -> tuple[list[RunRow], list[str]]:
    """Return the rows with what the records next to the runs say, and notes on those that cannot be read whole."""
    several = Counter(row.path for row in rows)
    logs = {f"{file}": file for place in places for file in place.files}
    notes: list[str] = []
    found = []
    for row in rows:
        folder = Path(row.path)
        file = folder / RECORD
        if several[row.path] > 1:
            own = logs.get(str(folder / Path(row.name).name))
            file = folder / RECORD if own is None else own.with_name(f"{own.name}.{RECORD}")
        tried, damaged = tried_in(file) if several[row.path] == 1 or file.name != RECORD else ([], [])
        notes += [f"{shorten(row.name, 60)}: {note}" for note in damaged]
        found.append(row.model_copy(update={"tried": tried_lines(tried)}) if tried else row)
    return found, notes


def _attention(row: RunRow) -> tuple[int, float, str]:
    """Return the order of rows: faults, the surest first, then broken ends, the unclear, the sound and the unread."""
    if row.ending == "unread":
        return 4, 0.0, row.name
    if row.is_sick:
        return 0, -row.probability, row.name
    broken = 1 if row.ending in BROKEN else 2 if row.cause in UNJUDGED else 3
    return broken, -row.probability if row.cause in UNJUDGED else row.probability, row.name
