"""Count on the tuning part, and write what was counted where the package reads it."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from benchmarks.faults.counts import (
    AMONG_FAULTS,
    LabelledRun,
    count,
    fingerprint,
    fit_sharpness,
    with_counts,
    write_links,
)
from benchmarks.faults.figures import calibration_error
from benchmarks.faults.likeness import Numbered, fit_likeness
from benchmarks.faults.likeness import write as write_likeness
from benchmarks.faults.report import Judged
from benchmarks.faults.trust import Weighed, fit_trust, weighed
from mldebug_mcp.checks import symptoms
from mldebug_mcp.judge.hypotheses import (
    FITTED_FILE,
    MIN_RUNS_SHOWN,
    Fitted,
    Powers,
    backgrounds,
    candidates,
)
from mldebug_mcp.judge.likeness import ABOUT, LIKENESS_FILE, Likeness, has_a_course
from mldebug_mcp.judge.ranking import Candidate, CauseEvidence, Ranked, not_too_sure, rank, weigh
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import FOLDER, read_links
from mldebug_mcp.models import Finding
from mldebug_mcp.models.base import SOUND

HEALTHY_COUNTS_AS = 2.0
"""Faulty runs that a healthy one counts as where trust is fitted. Chosen: a false alarm costs more than a fault that
comes second; with three, fewer runs of authors whom the fit never saw have their cause first."""

OWN_GROUPS = 2
"""Parts of our own tasks that are each judged by the likeness to runs of the others. Chosen: each takes a minute."""


def fit(judged: Sequence[Judged]) -> tuple[Fitted, Likeness]:
    """Return the numbers counted on the runs of the tuning part whose log shows their fault, and the fitted likeness.

    Versions of one trained run count as one run together.

    Trust and sharpness are fitted on folds: each run is judged with counts of the runs of the other tasks, or of the
    other loops where it is of one, so that they are not chosen on the very counts that they were made with. The runs of
    each author's loops together count as much as those of each other's: how far to trust evidence in a log of a new
    author is what is asked.
    """
    used = [one for one in judged if one.label.tuning and (one.label.shows or one.label.cause == "healthy")]
    folds, alike = _folds(used), _counts_alike(used)
    beside, alone = (_powers(used, folds, alike, numbers=numbers) for numbers in (True, False))
    return replace(_counted(used), with_findings=beside, alone=alone), _likeness(used)


def _powers(
    used: Sequence[Judged], folds: Mapping[str, Ranker], alike: Mapping[str, float], *, numbers: bool
) -> Powers:
    """Return the powers under which the causes of runs are most probable, with their numbers or by findings alone."""
    ones = used if numbers else [replace(one, numbers={}) for one in used]
    questions = sorted({symptom.question.id for symptom in symptoms().values()}) + [ABOUT] * numbers
    trust = fit_trust(
        [folds[one.task].weighed(one, one.findings, questions, alike[one.name] * _counts_as(one)) for one in ones],
        questions,
    )
    powers = Powers(**asdict(trust))
    known = [(one, folds[one.task].evidence(one, one.findings, powers)) for one in ones]

    def error(sharpness: float) -> float:
        ranked = [folds[one.task].rank(one, evidence, sharpness) for one, evidence in known]
        answers = [_judged(*both) for both in zip(ones, ranked, strict=True)]
        return calibration_error(answers, weights=[alike[one.name] for one in ones])

    return replace(powers, sharpness=fit_sharpness(error))


def _folds(used: Sequence[Judged]) -> dict[str, Ranker]:
    """Return, by task, what ranks its runs by other runs: counts of the other tasks, the likeness of the other groups.

    A group is an author, or a part of our own tasks: one for each task would take an hour to fit.
    """
    tasks = sorted({one.task: one.loops for one in used}.items())
    own = [task for task, loops in tasks if not loops]
    group = {task: loops or f"{own.index(task) % OWN_GROUPS}" for task, loops in tasks}
    alike = {name: _likeness([one for one in used if group[one.task] != name]) for name in set(group.values())}
    return {
        task: Ranker(_counted([one for one in used if one.task != task]), alike[name]) for task, name in group.items()
    }


def _counts_alike(used: Sequence[Judged]) -> dict[str, float]:
    """Return what each run counts where versions of one trained run count as one, and those of each author alike."""
    versions = Counter(one.trained for one in used)
    authors = Counter({one.trained: one.loops for one in used}.values())
    return {one.name: 1 / versions[one.trained] / authors[one.loops] for one in used}


def _likeness(used: Sequence[Judged]) -> Likeness:
    counts = _counts_alike(used)
    return fit_likeness(
        [Numbered(one.numbers, (one.label.cause, *one.label.also), one.loops, counts[one.name]) for one in used]
    )


def _counts_as(one: Judged) -> float:
    return HEALTHY_COUNTS_AS if one.label.cause == SOUND else 1.0


def without_each(judged: Sequence[Judged], processes: int = 1) -> dict[str, list[Judged]]:
    """Return the runs of each author's loops as they are judged with numbers fitted on all runs but those."""
    authors = sorted({one.loops for one in judged} - {""})
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        left = pool.map(partial(_without, judged), authors, chunksize=1)
    return dict(zip(authors, left, strict=True))


def _without(judged: Sequence[Judged], author: str) -> list[Judged]:
    numbers, likeness = fit([one for one in judged if one.loops != author])
    ranker, own = Ranker(numbers, likeness), [one for one in judged if one.loops == author and one.states]
    ranked = [ranker.ranked(one, one.findings) for one in own]
    return [_judged(*both) for both in zip(own, ranked, strict=True)]


class Ranker:
    """Ranks the causes of judged runs anew, with some findings, under some numbers."""

    def __init__(self, numbers: Fitted, likeness: Likeness | None) -> None:
        self._numbers = numbers
        self._likeness = likeness
        self._bits: dict[str, dict[str, float]] = {}
        self._background = backgrounds(numbers)
        self._among_faults = numbers.among_faults
        self._candidates: dict[str, Sequence[Candidate]] = {}

    def ranked(self, one: Judged, findings: Sequence[Finding]) -> list[Ranked]:
        """Return the causes of a run, the most probable first, as if these were its findings."""
        powers = self._numbers.powers(self._alike(one, 1.0))
        return self.rank(one, self.evidence(one, findings, powers), powers.sharpness)

    def evidence(self, one: Judged, findings: Sequence[Finding], powers: Powers) -> list[CauseEvidence]:
        """Return all that speaks for and against the causes of a run, as if these were its findings."""
        alike = self._alike(one, powers.questions.get(ABOUT, 0.0))
        return [*weigh(self._causes(one.kind), findings, self._background, powers.trust), *one.evidence, *alike]

    def rank(self, one: Judged, evidence: Sequence[CauseEvidence], sharpness: float) -> list[Ranked]:
        """Return the causes of a run under some evidence, the most probable first."""
        priors = {cause.id: cause.prior for cause in self._causes(one.kind)}
        return not_too_sure(rank(priors, evidence, sharpness, self._among_faults), evidence)

    def weighed(self, one: Judged, findings: Sequence[Finding], questions: Sequence[str], weight: float) -> Weighed:
        """Return the bits of a run with these findings; see `trust`."""
        right = {one.label.cause, *one.label.also}
        causes = self._causes(one.kind)
        told = [*one.evidence, *self._alike(one, 1.0)]
        return weighed(causes, findings, self._background, told, questions=questions, right=right, weight=weight)

    def _alike(self, one: Judged, trust: float) -> Sequence[CauseEvidence]:
        model = self._likeness
        if model is None or not has_a_course(one.numbers):
            return []
        if one.name not in self._bits:
            self._bits[one.name] = model.bits(one.numbers)
        return [
            CauseEvidence(cause, trust * bits, ABOUT, "numbers", ABOUT) for cause, bits in self._bits[one.name].items()
        ]

    def _causes(self, kind: str) -> Sequence[Candidate]:
        if kind not in self._candidates:
            self._candidates[kind] = candidates(kind, self._numbers)
        return self._candidates[kind]


def _judged(one: Judged, ranked: Sequence[Ranked]) -> Judged:
    return replace(one, causes=[item.id for item in ranked], probability=ranked[0].probability)


def _labelled(one: Judged) -> LabelledRun:
    """Return the run with the findings that count when it is ranked: what another one brings about is not counted."""
    states = {finding.symptom: finding.state for finding in one.findings}
    return LabelledRun((one.label.cause, *one.label.also), states, one.trained)


def _counted(ones: Sequence[Judged]) -> Fitted:
    causes, healthy = count([_labelled(one) for one in ones])
    tasks = ", ".join(sorted({one.task for one in ones if not one.loops}))
    loops = ", ".join(sorted({one.loops for one in ones} - {""}))
    links = {cause: {effect.symptom for effect in catalogue().causes[cause].effects} for cause in causes}
    listed = {
        cause: {one: pair for one, pair in sorted(seen.items()) if one in links[cause] or pair[0] >= MIN_RUNS_SHOWN}
        for cause, seen in sorted(causes.items())
    }
    return Fitted(
        provenance=f"counted on {_runs(ones)} of benchmarks/corpus (own tasks: {tasks})"
        + (f" (authors: {loops})" if loops else ""),
        links=fingerprint(catalogue().causes.values()),
        causes=listed,
        healthy=dict(sorted(healthy.items())),
        among_faults=AMONG_FAULTS,
    )


def _runs(ones: Sequence[Judged]) -> str:
    runs = len({one.trained for one in ones})
    return f"{runs} runs" if runs == len(ones) else f"{len(ones)} logs of {runs} runs"


def write(numbers: Fitted, likeness: Likeness, folder: Path | None = None) -> None:
    """Write the powers, the counts and the classifier into a folder; where the package reads them without one."""
    write_powers(numbers, folder / FITTED_FILE.name if folder else FITTED_FILE)
    counted = {**numbers.causes, SOUND: numbers.healthy}
    write_links(with_counts(read_links(), counted), folder or FOLDER)
    write_likeness(likeness, folder / LIKENESS_FILE.name if folder else LIKENESS_FILE)


def write_powers(numbers: Fitted, path: Path) -> None:
    """Write the powers, one kind per line; the counts stand in the table of links."""
    powers = {name: value for name, value in asdict(numbers).items() if name not in ("causes", "healthy")}
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in powers.items())
    path.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
