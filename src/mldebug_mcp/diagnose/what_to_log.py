"""Which missing metric would have decided it? The one whose symptoms split the leading hypotheses best.

Only findings that are unknown because something was not logged count, and only where there is doubt: a symptom that
cannot be judged for another reason, such as the kind of run, would not be judged with more metrics either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mldebug_mcp.diagnose.how_to_log import CONFIGURATION, LOGGABLE, SETTINGS, how_to_log
from mldebug_mcp.diagnose.information import Likelihood, Worth
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Finding, Hypothesis, MetricToLog, State
from mldebug_mcp.symptoms import Symptom, symptoms
from mldebug_mcp.symptoms.asking import not_logged

DOUBT = 0.15
"""There is doubt where the second hypothesis has this probability ...; chosen by hand: of a sound run of which a loss
alone is logged it has 0.1."""
FEW = 6
"""... or where nothing is seen and fewer symptoms than this could be judged: the hypotheses are those of any run."""
LEAST_STEPS = 5
"""... or the log has fewer steps than this, from which no course can be told; chosen by hand."""
LEADING, MOST_LEADING = 0.05, 8
"""Hypotheses from this probability on are to be told apart; of a run that could hardly be judged, the first eight."""
LEAST_BITS = 0.03
"""What tells less is not worth the asking."""
MAX_METRICS = 4
MAX_SPLITS = 4
LEAST_MOVE = 0.02
"""A hypothesis whose probability moves by less on average is not said to be split off."""


def what_to_log(
    run: Run, findings: Sequence[Finding], hypotheses: Sequence[Hypothesis], likelihood: Likelihood
) -> list[MetricToLog]:
    """Return the missing metrics that would split the leading hypotheses best, best first; none without doubt.

    Args:
        run: What was logged.
        findings: The symptoms as judged on it.
        hypotheses: As ranked, best first.
        likelihood: What the ranking knows of causes and symptoms.
    """
    if hypotheses[1].probability < DOUBT and not hardly_judged(findings, run):
        return []
    leading = {one.cause: one.probability for one in hypotheses if one.probability >= LEADING}
    if len(leading) == 1:
        leading = {one.cause: one.probability for one in hypotheses[:MOST_LEADING]}
    return metrics_that_split(leading, run, findings, likelihood)[:MAX_METRICS]


def hardly_judged(findings: Sequence[Finding], run: Run) -> bool:
    """Say whether nothing is seen in a log, because hardly anything could be judged."""
    states = [one.state for one in findings if one.state is not State.UNKNOWN]
    steps = max((len(series) for series in run.series.values()), default=0)
    return (len(states) < FEW or steps < LEAST_STEPS) and State.PRESENT not in states


def metrics_that_split(
    shares: Mapping[str, float], run: Run, findings: Sequence[Finding], likelihood: Likelihood
) -> list[MetricToLog]:
    """Return the missing metrics that would tell these causes apart, best first."""
    wanted = []
    for metric, unknown in _missing(run, findings).items():
        how = how_to_log(metric, run)
        told = likelihood.worth(shares, unknown)
        if how is not None and told.bits >= LEAST_BITS:
            wanted.append(MetricToLog(metric=metric, splits=_split(list(shares), told), bits=told.bits, how=how))
    return sorted(wanted, key=lambda one: -one.bits)


def _missing(run: Run, findings: Sequence[Finding]) -> dict[str, list[str]]:
    """Return the metrics and settings that were not logged, each with the symptoms that it alone keeps unknown."""
    states = {finding.symptom: finding.state for finding in findings}
    unknown = [
        one
        for one in symptoms().values()
        if states.get(one.id) is State.UNKNOWN and run.kind not in one.question.not_for
    ]
    missing: dict[str, list[str]] = {}
    for symptom in unknown:
        metric = _lacks(symptom, run)
        if metric is not None:
            missing.setdefault(metric, []).append(symptom.id)
    if states.get("trains_in_fp16") is State.ABSENT:
        missing.pop("loss_scale", None)  # other precisions have none
    return missing


def _lacks(symptom: Symptom, run: Run) -> str | None:
    """Return the one metric or setting without which a symptom is unknown, or None if it lacks none or several."""
    lacking = [_usual(group) for group in not_logged(symptom, run)]
    lacking += [metric for metric, one in LOGGABLE.items() if symptom.id in one.judges and metric not in run]
    settings = [name for name, judges in SETTINGS.items() if symptom.id in judges and name not in run.config]
    if settings and not (set(settings) & set(run.series)):
        lacking.append(settings[0] if run.config else CONFIGURATION)
    if not lacking and symptom.points > 1:
        metric = symptom.needs[0]
        stretch = run.last_step - run.first_step + 1
        if len(run[metric].finite) < symptom.points <= stretch:
            return metric
    return lacking[0] if len(lacking) == 1 else None


def _usual(group: Sequence[str]) -> str:
    """Return the name to ask for, of several under which a metric may be logged."""
    return next((name for name in group if name in LOGGABLE), group[0])


def _split(causes: Sequence[str], told: Worth) -> list[str]:
    order = np.argsort(-told.moves)[:MAX_SPLITS]
    return [causes[at] for at in order if told.moves[at] >= LEAST_MOVE]
