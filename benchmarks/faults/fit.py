"""Count on the tuning part, and write what was counted where the package reads it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.faults.figures import calibration_error
from benchmarks.faults.report import Judged
from benchmarks.faults.trust import Weighed, fit_trust, weighed
from mldebug_mcp.diagnose.calibrate import (
    AMONG_FAULTS,
    FILE,
    LEAST_SHOWN,
    Counts,
    Fitted,
    LabelledRun,
    count,
    fingerprint,
    fit_sharpness,
)
from mldebug_mcp.diagnose.hypotheses import backgrounds, candidates, independent
from mldebug_mcp.diagnose.known_errors import beside
from mldebug_mcp.diagnose.ranking import Ranked, not_too_sure, rank
from mldebug_mcp.diagnose.weighing import Candidate, Trust, weigh
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Finding
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.symptoms import symptoms

HEALTHY_COUNTS_AS = 2.0
"""Faulty runs that a healthy one counts as where trust is fitted. Chosen: a false alarm costs more than a fault that
comes second; with three, fewer runs of authors whom the fit never saw have their cause first."""


def fit(judged: Sequence[Judged]) -> Fitted:
    """Return the numbers counted on the runs of the tuning part whose log shows their fault.

    Versions of one trained run count as one run together.

    Trust and sharpness are fitted on folds: each run is judged with counts of the runs of the other tasks, or of the
    other loops where it is of one, so that they are not chosen on the very counts that they were made with. The runs of
    each author's loops together count as much as those of each other's: how far to trust evidence in a log of a new
    author is what is asked.
    """
    used = [one for one in judged if one.label.tuning and (one.label.shows or one.label.cause == "healthy")]
    versions = Counter(one.trained for one in used)
    weights = {one.name: 1 / versions[one.trained] for one in used}
    folds = {task: Ranker(_counted([one for one in used if one.task != task])) for task in {one.task for one in used}}
    authors: Counter[str] = Counter()
    for one in used:
        authors[one.loops] += weights[one.name]  # type: ignore[assignment]  # typeshed counts integers alone
    questions = sorted({symptom.question.id for symptom in symptoms().values()})
    judged_as = [findings(one) for one in used]
    alike = {one.name: weights[one.name] / authors[one.loops] for one in used}
    trust = fit_trust(
        [
            folds[one.task].weighed(one, found, questions, alike[one.name] * _counts_as(one))
            for one, found in zip(used, judged_as, strict=True)
        ],
        questions,
    )

    def error(sharpness: float) -> float:
        ranked = [
            folds[one.task].ranked(one, found, trust, sharpness) for one, found in zip(used, judged_as, strict=True)
        ]
        answers = [_judged(*both) for both in zip(used, ranked, strict=True)]
        return calibration_error(answers, weights=[alike[one.name] for one in used])

    chosen = {**asdict(trust), "sharpness": fit_sharpness(error)}
    return _counted(used).model_copy(update=chosen)


def _counts_as(one: Judged) -> float:
    return HEALTHY_COUNTS_AS if one.label.cause == SOUND else 1.0


def without_each(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Return the runs of each author's loops as they are judged with numbers fitted on all runs but those."""
    left = {}
    for name in sorted({one.loops for one in judged} - {""}):
        numbers = fit([one for one in judged if one.loops != name])
        ranker, own = Ranker(numbers), [one for one in judged if one.loops == name and one.states]
        ranked = [ranker.ranked(one, findings(one), numbers.trust, numbers.sharpness) for one in own]
        left[name] = [_judged(*both) for both in zip(own, ranked, strict=True)]
    return left


class Ranker:
    """Ranks the causes of judged runs anew, with some findings, under some numbers."""

    def __init__(self, numbers: Fitted) -> None:
        self._numbers = numbers
        self._background = backgrounds(numbers)
        self._among_faults = numbers.among_faults
        self._candidates: dict[str, Sequence[Candidate]] = {}

    def ranked(self, one: Judged, findings: Sequence[Finding], trust: Trust, sharpness: float = 1.0) -> list[Ranked]:
        """Return the causes of a run, the most probable first, as if these were its findings."""
        causes = self._causes(one.kind)
        evidence = [*weigh(causes, findings, self._background, trust), *one.evidence]
        priors = {cause.id: cause.prior for cause in causes}
        return not_too_sure(rank(priors, evidence, sharpness, self._among_faults), evidence)

    def weighed(self, one: Judged, findings: Sequence[Finding], questions: Sequence[str], weight: float) -> Weighed:
        """Return the bits of a run with these findings; see `trust`."""
        right = {one.label.cause, *one.label.also}
        causes = self._causes(one.kind)
        told = one.evidence
        return weighed(causes, findings, self._background, told, questions=questions, right=right, weight=weight)

    def _causes(self, kind: str) -> Sequence[Candidate]:
        if kind not in self._candidates:
            self._candidates[kind] = candidates(kind, self._numbers)
        return self._candidates[kind]


def _judged(one: Judged, ranked: Sequence[Ranked]) -> Judged:
    return replace(one, causes=[item.id for item in ranked], probability=ranked[0].probability)


def _labelled(one: Judged) -> LabelledRun:
    """Return the run with the findings that count when it is ranked: what another one brings about is not counted."""
    states = {finding.symptom: finding.state for finding in findings(one)}
    return LabelledRun((one.label.cause, *one.label.also), states, one.trained)


def findings(one: Judged) -> list[Finding]:
    """Return the findings of a run that count when it is ranked: what another one brings about is left out."""
    found = [Finding(symptom=symptom, state=state) for symptom, state in one.states.items()]
    return independent(beside(found, one.evidence))


def _counted(ones: Sequence[Judged]) -> Fitted:
    causes, healthy = count([_labelled(one) for one in ones])
    tasks = ", ".join(sorted({one.task for one in ones if not one.loops}))
    loops = ", ".join(sorted({one.loops for one in ones} - {""}))
    links = {cause: {effect.symptom for effect in catalogue().causes[cause].effects} for cause in causes}
    listed = {
        cause: {one: pair for one, pair in sorted(seen.items()) if one in links[cause] or pair[0] >= LEAST_SHOWN}
        for cause, seen in sorted(causes.items())
    }
    return Fitted(
        provenance=f"counted on {_runs(ones)} of benchmarks/faults, tuning part (tasks: {tasks})"
        + (f", and of benchmarks/loops ({loops})" if loops else ""),
        links=fingerprint(catalogue().causes.values()),
        causes=listed,
        healthy=dict(sorted(healthy.items())),
        among_faults=AMONG_FAULTS,
    )


def _runs(ones: Sequence[Judged]) -> str:
    runs = len({one.trained for one in ones})
    return f"{runs} runs" if runs == len(ones) else f"{len(ones)} logs of {runs} runs"


def _plain(counts: Counts) -> dict[str, list[float]]:
    """Return counts as short as they can be written: whole ones as integers."""
    return {name: [int(n) if n == int(n) else round(n, 3) for n in pair] for name, pair in counts.items()}


def write(numbers: Fitted, path: Path = FILE) -> None:
    """Write the numbers, one cause per line."""
    rows = numbers.model_dump()
    counted = {cause: _plain(seen) for cause, seen in numbers.causes.items()}
    causes = ",\n".join(f"    {json.dumps(cause)}: {json.dumps(seen)}" for cause, seen in counted.items())
    without = _plain(numbers.healthy)
    healthy = ",\n".join(f"    {json.dumps(symptom)}: {json.dumps(seen)}" for symptom, seen in without.items())
    fitted = ("provenance", "links", "weight", "missed", "unlisted", "absent", "questions", "sharpness", "among_faults")
    head = "".join(f"  {json.dumps(name)}: {json.dumps(rows[name])},\n" for name in fitted)
    path.write_text(
        f'{{\n{head}  "causes": {{\n{causes}\n  }},\n  "healthy": {{\n{healthy}\n  }}\n}}\n', encoding="utf-8"
    )
