"""The verb `watch_run`: look at a run that is still going again and again, and tell what is new."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from mldebug_mcp.checks.progress import has_finished
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, duration, figure, percent
from mldebug_mcp.judge.at_a_glance import glance_at_verdict
from mldebug_mcp.judge.derived_facts import has_changed
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.judge.next_call import diagnose_command
from mldebug_mcp.judge.reader import Reader, opinion_lines, with_reader
from mldebug_mcp.judge.run_verdict import without_result
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.follow import FollowedRun
from mldebug_mcp.models import Diagnosis, Finding, State
from mldebug_mcp.models.base import NO_FAULTS, Glance
from mldebug_mcp.models.diagnosis import DerivedFact
from mldebug_mcp.models.runs import News

LOOK_INTERVAL_SECONDS = 30.0
"""Seconds between two looks."""
MIN_SILENT_SECONDS = 300.0
"""Seconds without a record after which a run is silent. Chosen by hand: an evaluation may take minutes."""
MIN_TIMES_USUAL_INTERVAL = 10.0
"""Times the usual interval that have to pass without a record, too. Chosen by hand."""
MAX_SHOWN_FACTS = 3
LOOKS_WITHOUT_RESULT = 2
"""Looks in a row at which no result is found before that is reported: the first records may come before any."""
LOOKS_BEFORE_ALARM = 2
"""Looks in a row at which a cause leads before it is reported. Chosen: one look may fall on an odd record."""
SURE_ALONE = 0.95
"""Probability of a fault from which the own ranking or the reader alone raises an alarm. Chosen."""
GOING_ON = Finding(symptom="log_stops", state=State.UNKNOWN, summary="the run is still going")
"""The log of a run that is watched ends before its plan because it is not over."""


def watch_run(
    path: str | Path,
    config: str | Path | None = None,
    run: str = "",
    *,
    every: float = LOOK_INTERVAL_SECONDS,
    names: Mapping[str, str] | None = None,
) -> Iterator[News]:
    """Yield what is new in a run, as it comes: findings, other leading hypotheses, silence. Ends when the run does.

    Args:
        path: A log file or a run folder; it may come into being later.
        config: The training configuration (JSON or YAML), if it is not next to the log.
        run: Which run to watch, if the path holds several.
        every: Seconds between two looks.
        names: What names of the log mean that do not say it, such as {"L": "loss"}.
    """
    watch = Watch(path, config, run, names=names)
    while not watch.finished:
        yield from watch.look()
        if not watch.finished:
            time.sleep(every)


class Watch:
    """A run that is watched; see `watch_run` for the arguments.

    Args:
        at: The least probability of a leading fault that is reported.
        looks: Looks in a row at which it leads, the first of a run apart.
        reader: What judges the run as well whenever another cause leads. Then there is an alarm only if both name a
            fault, or one is sure of it.
        clock: What time it is, in seconds.
    """

    def __init__(
        self,
        path: str | Path,
        config: str | Path | None = None,
        run: str = "",
        *,
        names: Mapping[str, str] | None = None,
        at: float = 0.0,
        looks: int = LOOKS_BEFORE_ALARM,
        reader: Reader | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._log = FollowedRun(path, config, run, names)
        self._grew: list[float] = []
        self._come: tuple[int, float] | None = None
        self._resumes = 0
        self._reported: dict[str, float] = {}
        self._facts_reported: dict[str, DerivedFact] = {}
        self._at, self._looks, self._reader = at, looks, reader
        self._leader = self._candidate = ""
        self._led = 0
        self._last = ""
        self._without_result = 0
        self.has_grown = False
        """Whether the last look found something new in the log."""
        self.finished = False
        """Whether the log says that training ended."""
        self.status = ""
        """How far the run has come, and what leads, in a line."""

    def look(self) -> list[News]:
        """Read what was written since the last look, and return what is new."""
        try:
            run = self._log.read()
        except InputError as error:
            return self._unrepeated_news(News(what="waiting", text=str(error)))
        come = (run.records, run.last_step)
        self.has_grown = come != self._come
        if not self.has_grown:
            return [*self._result(run), *self._silence(run)]
        if self._began_anew(run):
            self._reported, self._facts_reported, self._leader, self._candidate, self._come = {}, {}, "", "", None
        self._resumes = len(run.resumes)
        first, self._come = self._come is None, come
        self._grew = [*self._grew[-20:], self._clock()]
        self._last = ""
        diagnosis = diagnose(run, findings=[GOING_ON])
        self.status = _status(run, diagnosis)
        news = [_read_so_far(run, diagnosis)] if first else []
        news += self._findings(run, diagnosis)
        news += self._facts(run, diagnosis)
        news += self._leading(run, diagnosis, at_once=first)
        news += self._result(run)
        if has_finished(run):
            self.finished = True
            news.append(News(what="finished", text="the closing record of a finished run", **_progress_facts(run)))
        return news

    def _began_anew(self, run: Run) -> bool:
        """Return whether another run now writes here: the counter fell back, and no line mentions a resume."""
        return self._come is not None and run.last_step < self._come[1] and len(run.resumes) <= self._resumes

    def _unrepeated_news(self, news: News) -> list[News]:
        if news.text == self._last:
            return []
        self._last = news.text
        return [news]

    def _silence(self, run: Run) -> list[News]:
        quiet = self._clock() - self._grew[-1]
        intervals = [after - before for before, after in pairwise(self._grew)]
        usual = median(intervals) if intervals else 0.0
        if self._last == "silent" or quiet < max(MIN_SILENT_SECONDS, MIN_TIMES_USUAL_INTERVAL * usual):
            return []
        self._last = "silent"
        before = f", where records had come every {duration(usual)}" if intervals else ""
        return [News(what="silent", text=f"nothing was written for {duration(quiet)}{before}", **_progress_facts(run))]

    def _result(self, run: Run) -> list[News]:
        """Return, at the second look in a row or the last, that nothing in the log is a result."""
        reasons = without_result(run)
        self._without_result = self._without_result + 1 if reasons else 0
        if self._without_result != (1 if has_finished(run) else LOOKS_WITHOUT_RESULT):
            return []
        return [News(what="no_result", text=reasons[0], **_progress_facts(run), alarm=True)]

    def _findings(self, run: Run, diagnosis: Diagnosis) -> list[News]:
        """Return the findings that are new, or begin after what was known when they were reported."""
        present = [finding for finding in diagnosis.findings if finding.state is State.PRESENT]
        new = [
            finding
            for finding in present
            if finding.symptom not in self._reported
            or max(finding.steps, default=-1.0) > self._reported[finding.symptom]
        ]
        self._reported |= {finding.symptom: run.last_step for finding in new}
        return [
            News(what="finding", text=finding.summary, symptom=finding.symptom, **_progress_facts(run))
            for finding in new
        ]

    def _facts(self, run: Run, diagnosis: Diagnosis) -> list[News]:
        """Return the facts that are new or have changed since they were reported."""
        new = [fact for fact in diagnosis.sheet.facts if has_changed(self._facts_reported.get(fact.fact), fact)]
        self._facts_reported |= {derived_fact.fact: derived_fact for derived_fact in new}
        return [News(what="fact", text=derived_fact.text, **_progress_facts(run)) for derived_fact in new]

    def _leading(self, run: Run, diagnosis: Diagnosis, *, at_once: bool) -> list[News]:
        """Return the leading hypothesis if it is another one, at as many looks in a row as were asked for."""
        leader = diagnosis.hypotheses[0].cause
        self._led = self._led + 1 if leader == self._candidate else 1
        self._candidate = leader
        sure = (at_once and self._looks <= LOOKS_BEFORE_ALARM) or self._led >= self._looks
        if leader not in NO_FAULTS and diagnosis.hypotheses[0].probability < self._at:
            return []
        if not sure or leader == self._leader:
            return []
        before, self._leader = self._leader, leader
        if leader in NO_FAULTS and (not before or before in NO_FAULTS):
            return []
        causes = {
            hypothesis.cause: round(hypothesis.probability, 2) for hypothesis in diagnosis.hypotheses[:MAX_SHOWN_FACTS]
        }
        words = f"may be: {', '.join(f'{cause} {percent(share)}' for cause, share in causes.items())}"
        read = with_reader(diagnosis, self._reader)
        if self._reader is not None:
            words += f"; {opinion_lines(read)[0] if read.reader is not None else read.notes[-1]}"
        alarm = leader not in NO_FAULTS and _agreed(read)
        return [
            News(
                what="leader", text=words, **_progress_facts(run), causes=causes, alarm=alarm,
                at_a_glance=None if at_once else _at_a_glance(run, read),
            )
        ]  # fmt: skip


def _agreed(diagnosis: Diagnosis) -> bool:
    """Say whether own ranking and reader both name a fault, or one is sure of it; without a reader the own counts."""
    if diagnosis.reader is None:
        return True
    leaders = (diagnosis.hypotheses[0], diagnosis.reader.causes[0])
    faults = [leader for leader in leaders if leader.cause not in NO_FAULTS]
    return len(faults) == len(leaders) or any(fault.probability >= SURE_ALONE for fault in faults)


def _read_so_far(run: Run, diagnosis: Diagnosis) -> News:
    leader = diagnosis.hypotheses[0]
    return News(
        what="reading",
        text=f"{counted(run.records, 'record')} so far, kind of run: {run.kind}; {_status(run, diagnosis)}",
        **_progress_facts(run),
        causes={leader.cause: round(leader.probability, 2)},
        at_a_glance=_at_a_glance(run, diagnosis),
    )


def _at_a_glance(run: Run, diagnosis: Diagnosis) -> Glance:
    """Return the verdict, with the command that diagnoses the run whole: what to check next is in its answer."""
    verdict = diagnosis.verdict.model_copy(update={"next": "See the whole diagnosis, and what to check next."})
    return glance_at_verdict(verdict, diagnose_command(run))


def _progress_facts(run: Run) -> dict[str, Any]:
    """Return how far a run has come, as news tell it."""
    return {"step": run.last_step, "step_name": run.step_name}


def _status(run: Run, diagnosis: Diagnosis) -> str:
    leader = diagnosis.hypotheses[0]
    loss = f", loss {figure(run['loss'].value[-1])}" if "loss" in run else ""
    return f"{run.step_name} {figure(run.last_step)}{loss}, {leader.cause} {percent(leader.probability)}"
