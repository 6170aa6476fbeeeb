"""The verb `diagnose_run`: read the log, examine it, rank the causes, order the next steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mldebug_mcp.diagnose.calibrate import Fitted, fitted
from mldebug_mcp.diagnose.compare import compare, suspects
from mldebug_mcp.diagnose.information import Likelihood
from mldebug_mcp.diagnose.known_errors import beside, told_by_errors
from mldebug_mcp.diagnose.next_call import after_ranking
from mldebug_mcp.diagnose.next_steps import order_next_steps, possible_call
from mldebug_mcp.diagnose.outcomes import Outcome, told_by_checks, without_made
from mldebug_mcp.diagnose.ranking import WEIGHT, Candidate, Ranked, credence, rank
from mldebug_mcp.diagnose.ties import describe_ties, tied
from mldebug_mcp.diagnose.what_to_log import hardly_judged, what_to_log
from mldebug_mcp.knowledge import Catalogue, Cause, catalogue
from mldebug_mcp.knowledge.playbook import plain
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.run import Floats
from mldebug_mcp.logs.steps import ascends
from mldebug_mcp.models import Comparison, Diagnosis, Finding, Hypothesis, NextStep, RunSummary, State
from mldebug_mcp.symptoms import examine, symptoms
from mldebug_mcp.text import figure

SETTING_BITS = 2.0
"""What a setting that differs from that of a good run says for the fault it may be: four to one. Chosen by hand."""
LEADING = 0.02
"""Hypotheses below this probability are listed without fix, next steps and citations."""
HARDLY_JUDGED = "hardly any symptom could be judged from this log: the probabilities are nearly those of any run"
MAX_CITATIONS = 3
MAX_STEPS_EACH = 3
MAIN_METRICS = ("loss", "eval_loss", "reward", "grad_norm")
"""What a reader asks for first."""


def diagnose_run(
    path: str | Path,
    config: str | Path | None = None,
    reference: str | Path | None = None,
    findings: Sequence[Finding] = (),
    run: str = "",
    *,
    outcomes: Mapping[str, Outcome] | None = None,
) -> Diagnosis:
    """Say what is seen in a training log, which causes that fits, and what to check next.

    Args:
        path: A log file or a run folder.
        config: The training configuration (JSON or YAML), where it does not stand beside the log.
        reference: The log or folder of a run that went well, to compare with.
        findings: What other verbs found on the same run; of two findings on one symptom these stand.
        run: Which run to read, where the path holds several; by default the fullest.
        outcomes: How checks of an earlier diagnosis turned out: by the id of a next step (such as "lr_too_high.1")
            whether it "confirms" or "refutes".

    Returns:
        Every symptom with its state, every cause with its probability, best first, and the next steps in order.

    Raises:
        InputError: a path cannot be used, or a check does not exist; the message says why and what to do.
    """
    good = read_run(reference) if reference is not None else None
    return diagnose(read_run(path, config, run), good, findings, outcomes)


def diagnose(
    run: Run,
    reference: Run | None = None,
    findings: Sequence[Finding] = (),
    outcomes: Mapping[str, Outcome] | None = None,
) -> Diagnosis:
    """Diagnose a run that has been read; see `diagnose_run`."""
    checked = outcomes or {}
    evidence = gather(run, reference, findings)
    seen, told = evidence.findings, together(evidence.told, told_by_checks(checked))
    hypotheses = without_made(judge_causes(seen, run.kind, told, run.path), checked)
    next_steps = order_next_steps(hypotheses)
    causes = {one.id: one for one in candidates(run.kind, {})}
    likelihood = Likelihood(causes, backgrounds(), fitted().weight)
    return Diagnosis(
        run=_summary(run),
        findings=seen,
        hypotheses=hypotheses,
        next_steps=next_steps,
        next_step=after_ranking(next_steps, hypotheses),
        ties=describe_ties(run, seen, hypotheses, likelihood),
        what_to_log=what_to_log(run, seen, hypotheses, likelihood),
        comparison=evidence.comparison,
        notes=[*run.notes, *evidence.problems, *([HARDLY_JUDGED] if hardly_judged(seen) else [])],
    )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a run before its causes are ranked.

    Args:
        kind: Kind of run.
        findings: Every symptom with its state.
        told: What else speaks for a cause, in bits, by cause and by what says so.
        comparison: The run beside its reference, if there is one.
        problems: Notes on symptoms that broke.
    """

    kind: str
    findings: list[Finding]
    told: Mapping[str, Mapping[str, float]]
    comparison: Comparison | None = None
    problems: Sequence[str] = ()


def gather(run: Run, reference: Run | None = None, findings: Sequence[Finding] = ()) -> Evidence:
    """Examine a run; of two findings on one symptom those given stand."""
    seen, problems = examine(run)
    seen = list({finding.symptom: finding for finding in (*seen, *findings)}.values())
    comparison = compare(run, reference) if reference is not None else None
    return Evidence(run.kind, seen, together(_told(comparison), told_by_errors(run)), comparison, problems)


def prepare() -> None:
    """Load what every diagnosis needs: worth a thread while a large log is read."""
    symptoms()
    catalogue()
    fitted()


def judge_causes(
    findings: Sequence[Finding],
    kind: str,
    told: Mapping[str, Mapping[str, float]],
    path: str,
    only: Collection[str] | None = None,
) -> list[Hypothesis]:
    """Rank the causes, all or `only` some, on these findings, of a log or of a probe.

    `told` holds further evidence in bits, by cause and by what says so.
    """
    known = catalogue()
    probed = any(finding.symptom not in symptoms() for finding in findings)
    judged = [one for one in candidates(kind, told, probed=probed) if only is None or one.id in only]
    # Weight and sharpness are fitted on logs; what a probe measures, it measures one thing at a time.
    weight, sharpness = (fitted().weight, fitted().sharpness) if only is None else (WEIGHT, 1.0)
    ranked = rank(judged, independent(beside(findings, told)), backgrounds(probed=probed), weight, sharpness)
    ties = tied(ranked)
    absent = {finding.symptom for finding in findings if finding.state is State.ABSENT}
    return [_hypothesis(known, item, path, kind, tied_with=ties.get(item.id, []), absent=absent) for item in ranked]


def independent(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those that another one brings about: a NaN in the loss makes every metric NaN.

    And without the absence of what another one shows in another form: a loss that falls slowly is on no plateau.
    """
    present = {finding.symptom for finding in findings if finding.state is State.PRESENT}
    known = symptoms()

    def follows(finding: Finding) -> bool:
        symptom = known.get(finding.symptom)
        others = () if symptom is None else symptom.follows
        if symptom is not None and finding.state is State.ABSENT:
            others = (*others, *symptom.instead)
        return not present.isdisjoint(others)

    return [finding for finding in findings if not follows(finding)]


def candidates(
    kind: str, told: Mapping[str, Mapping[str, float]], numbers: Fitted | None = None, *, probed: bool = False
) -> list[Candidate]:
    """Return all causes as the ranking sees them, with frequencies as fitted (by default those that ship).

    The symptoms of a probe are among their effects only if something was `probed`: a log alone need not load them.
    """
    numbers = numbers or fitted()
    effects: Mapping[str, Mapping[str, float]] = {}
    if probed:
        from mldebug_mcp.symptoms.probe import probe_effects

        effects = probe_effects()
    return [
        Candidate(
            cause.id,
            cause.prior_for(kind),
            {
                effect.symptom: numbers.frequency(cause.id, effect.symptom, effect.frequency.share)
                for effect in cause.effects
            }
            | dict(effects.get(cause.id, {})),
            told.get(cause.id, {}),
        )
        for cause in catalogue().causes.values()
    ]


def backgrounds(numbers: Fitted | None = None, *, probed: bool = False) -> dict[str, float]:
    """Return how often a healthy run shows each symptom, those of a probe included if something was `probed`."""
    numbers = numbers or fitted()
    chosen = {one.id: one.background for one in symptoms().values()}
    as_chosen = {one.id for one in symptoms().values() if one.as_chosen}
    if probed:
        from mldebug_mcp.symptoms.probe import probe_symptoms

        chosen |= {one.id: one.background for one in probe_symptoms().values()}
    return {
        symptom: background if symptom in as_chosen else numbers.background(symptom, background)
        for symptom, background in chosen.items()
    }


def _told(comparison: Comparison | None) -> dict[str, dict[str, float]]:
    """Return what a comparison with a good run says of the causes, in bits."""
    if comparison is None or not (comparison.partings or comparison.alike):
        return {}
    results = [one for one in comparison.partings if one.metric != "learning_rate"]
    if not results:
        return {"healthy": {"no metric parts from the reference run": SETTING_BITS}}
    told = {cause: {difference: SETTING_BITS} for cause, difference in suspects(comparison).items()}
    first = results[0]
    return told | {"healthy": {f"{first.metric} parts from the reference run at {figure(first.step)}": -SETTING_BITS}}


def together(*tellings: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return what several sources say of the causes as one."""
    causes = {cause for told in tellings for cause in told}
    return {cause: {said: bits for told in tellings for said, bits in told.get(cause, {}).items()} for cause in causes}


def _hypothesis(
    known: Catalogue, item: Ranked, path: str, kind: str, *, tied_with: list[str], absent: Collection[str]
) -> Hypothesis:
    cause = known.causes[item.id]
    short = Hypothesis(
        cause=item.id,
        probability=item.probability,
        credence=credence(item.probability),
        because=_said(item, +1, absent),
        against=_said(item, -1, absent),
        tied_with=tied_with,
    )
    if item.probability < LEADING:
        return short
    return short.model_copy(
        update={
            "summary": plain(cause.summary),
            "fix": plain(cause.fix),
            "next_steps": [_filled(step, path, kind) for step in cause.next_steps[:MAX_STEPS_EACH]],
            "citations": known.cite(_cited(cause, item)),
        }
    )


def _said(item: Ranked, sign: int, absent: Collection[str]) -> list[str]:
    """Return what speaks for (+1) or against (-1) a cause, strongest first."""
    said = sorted((bits, what) for what, bits in item.bits.items() if bits * sign > 0.05)
    return [
        f"{what}{' is absent' if what in absent else ''} ({bits:+.1f} bits)"
        for bits, what in (reversed(said) if sign > 0 else said)
    ]


def _cited(cause: Cause, item: Ranked) -> tuple[str, ...]:
    """Return the quotes to show: those on the symptoms that are present, then those of the section."""
    seen = [quote for effect in cause.effects if item.bits.get(effect.symptom, 0) > 0 for quote in effect.quotes]
    return tuple(dict.fromkeys([*seen, *cause.quotes]))[:MAX_CITATIONS]


def _filled(step: NextStep, path: str, kind: str) -> NextStep:
    return step.model_copy(update={"call": possible_call(step.call, path, kind)})


def _summary(run: Run) -> RunSummary:
    return RunSummary(
        path=run.path,
        formats=list(run.formats),
        kind=run.kind,
        records=run.records,
        steps=_distinct_steps(series.step for series in run.series.values()),
        first_step=run.first_step,
        last_step=run.last_step,
        step_name=run.step_name,
        segments=max(1, len(run.segments)),
        metrics=sorted(run.series),
        last={name: float(run[name].value[-1]) for name in _main_metrics(run)},
    )


def _main_metrics(run: Run) -> list[str]:
    """Return what a reader asks for first; where none of that is logged, the first losses, else the first metrics."""
    logged = [name for name, series in run.series.items() if len(series)]
    main = [name for name in MAIN_METRICS if name in logged]
    return main or sorted(logged, key=lambda name: ("loss" not in name, name))[:3]


def _distinct_steps(steps: Iterable[Floats]) -> int:
    # Metrics that stand in every record share one array of steps, and evaluations stand at some of these.
    different = sorted({(step.ctypes.data, step.size): step for step in steps}.values(), key=len)
    if not different:
        return 0
    most = different.pop()
    if not ascends(most):
        return len(np.unique(np.concatenate([most, *different])))
    rest = np.unique(np.concatenate([np.empty(0), *different]))
    at = np.minimum(np.searchsorted(most, rest), len(most) - 1)
    return len(most) + int(np.count_nonzero(most[at] != rest))
