"""What a reader needs first of a diagnosis. What leads in plain words, the facts that it rests on, and the fix."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mldebug_mcp.core.text import capitalised, counted, figure, percent, shorten
from mldebug_mcp.judge.hypotheses import usual_symptoms
from mldebug_mcp.judge.ranking import MIN_SPEAKING_BITS
from mldebug_mcp.judge.what_to_log import LEAST_STEPS
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import advice_for
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names.lexicon import SET_ASIDE
from mldebug_mcp.logs.names.metrics import is_loss
from mldebug_mcp.logs.names.quantities import LOSSES, PAIRS, Quantity
from mldebug_mcp.models import Finding, Hypothesis, MetricToLog, NextStep, Reason, RunSummary, RunVerdict, Sheet, State
from mldebug_mcp.models.base import NO_FAULTS, OTHER, SOUND
from mldebug_mcp.models.diagnosis import Tried

MAX_METRICS_SHOWN = 8
_OTHERS = LOSSES | PAIRS | {Quantity.REWARD, Quantity.PERPLEXITY, Quantity.BITS}


def names_nothing(run: Run) -> bool:
    """Say whether a run logs metrics, and none of them is understood as a loss, a score or a reward."""
    return bool(run.series) and not any(_is_result(run, name) for name in run.series)


def without_result(run: Run) -> list[str]:
    """Return the note on a log in which no loss, score or reward was found, if it is one."""
    if not names_nothing(run):
        return []
    if run.series and all(name.startswith(SET_ASIDE) for name in run.series):
        return [
            "only the closing figures of a run are here, no records of its course: name its log or trainer_state.json"
        ]
    logged = [shorten(series.logged_as or name, 40) for name, series in run.series.items()]
    some = ", ".join(logged[:MAX_METRICS_SHOWN]) + (", …" if len(logged) > MAX_METRICS_SHOWN else "")
    unknown = [
        shorten(series.logged_as or name, 40) for name, series in run.series.items() if _may_be_loss(name, series)
    ]
    if not unknown:
        return [f"no loss, score or reward is logged, only {some}"]
    return [
        f"no loss, score or reward found among {some}: name it with --map {unknown[0]}=loss "
        f'(names={{"{unknown[0]}": "loss"}}), or nothing can be judged of this training'
    ]


def _may_be_loss(name: str, series: Series) -> bool:
    """Say whether a metric that is not understood may be a loss: of records, and its values are not all whole."""
    understood = series.role is not None or name.startswith(SET_ASIDE)
    return not understood and bool(np.any(series.finite.value % 1))


def _is_result(run: Run, name: str) -> bool:
    role = run[name].role
    if role is None:
        return is_loss(name) or name.startswith(("rewards/", "eval_"))
    return role.quantity in _OTHERS or role.quantity.higher_is_better or role.quantity.lower_is_better


def name_of(cause: str, learner: str = "") -> str:
    """Return what a cause is called in a sentence, of a learner too; its id in words where it has no name yet."""
    advice = advice_for(cause, learner)
    if advice is not None and advice.name:
        return advice.name
    return catalogue().names.get(cause, cause.replace("_", " "))


SURELY_HEALTHY = 0.6
"""Probability from which a run is called healthy without reserve. Chosen: below it faults have nearly as much."""
ALMOST_CERTAIN = 0.86
"""Probability from which a fault is called almost certain: Kesselman's (see `ranking.credence`)."""
MIN_PROBABLE_SHARE = 0.56
"""Probability from which a fault is called probable: Kesselman's "likely", so that no answer calls one both."""
MIN_POSSIBLE_SHARE = 0.25
"""Probability from which a fault is called possible. Chosen."""
MIN_SHARE_OF_RUNNER_UP = 0.05
"""Probability from which the second hypothesis is named. Chosen: below it nobody would look."""
MAX_FACTS = 2
MIN_BITS_OF_FACT = 0.5
"""What weighs less is not named first. Chosen."""
AS_MUCH = 0.1
"""Bits within which a fact weighs as much for the second cause. Chosen: counts of runs are no more exact."""
MIN_BITS_OF_USUAL = 2.0
"""What is usual is a reason all the same where it weighs so much for the cause. Chosen: four to one."""
MIN_BITS_AGAINST = 2.0
"""What weighs so much against the second cause is a reason to name the first. Chosen: four to one."""
MAX_FACT_CHARACTERS = 110
"""A line and a half of a terminal. Whole clauses and sentences are left out beyond, none is cut."""
MAX_NEXT_CHARACTERS = 140
"""Two lines of a terminal."""
MAX_FIX_CHARACTERS = 320
"""Four lines of a terminal."""
MAX_CLAUSE_CHARACTERS = 300
"""Characters of a clause that quotes the log, such as an error message."""
MAIN_METRICS = ("loss", "eval_loss", "reward", "grad_norm", "learning_rate")
MAX_LOOKED_AT = 4
MAX_NAME_CHARACTERS = 40


def verdict_of(
    run: RunSummary,
    sheet: Sheet,
    findings: Sequence[Finding],
    hypotheses: Sequence[Hypothesis],
    *,
    steps: Sequence[NextStep] = (),
    missing: Sequence[MetricToLog] = (),
    learner: str = "",
) -> RunVerdict:
    """Return the verdict on a run that could be judged; hypotheses, steps and what is missing are best first."""
    leader = hypotheses[0]
    present = [finding for finding in findings if finding.state is State.PRESENT]
    unusual = [finding for finding in present if finding.symptom not in usual_symptoms()]
    rival, named = _rival(hypotheses), _named(hypotheses)
    if leader.cause == SOUND:
        doubt = doubt_of(hypotheses)
        return RunVerdict.model_construct(
            kind="healthy",
            headline=_healthy(run, sheet, present, hypotheses, learner),
            causes=named,
            facts=[f"{fact} (unusual, but no listed fault explains it better)" for fact in _summaries(unusual)],
            next=_first_check(doubt, about_faults(steps), learner)
            if doubt
            else _after_healthy(run, missing, sure=is_surely(leader)),
        )
    if leader.cause == OTHER:
        return RunVerdict.model_construct(
            kind="unclear",
            headline=headline_of(hypotheses, learner),
            causes=named,
            facts=_summaries(unusual),
            next=whole_sentences(steps[0].action, MAX_NEXT_CHARACTERS) if steps else "",
        )
    return RunVerdict.model_construct(
        kind="fault",
        headline=headline_of(hypotheses, learner),
        causes=named,
        facts=_facts(leader, rival, present, learner),
        next=_first_check(leader, steps, learner),
        fix=capitalised(whole_sentences(leader.fix, MAX_FIX_CHARACTERS)),
    )


def _first_check(leader: Hypothesis, steps: Sequence[NextStep], learner: str) -> str:
    """Return the first check, with the cause that it is about where that is not the leading one."""
    if not steps:
        return ""
    action, cause = whole_sentences(steps[0].action, MAX_NEXT_CHARACTERS), steps[0].id.partition(".")[0]
    if leader.cause in (cause, *steps[0].for_causes):
        return action
    return f"First {name_of(cause, learner)}, which is quicker to tell: {action[:1].lower()}{action[1:]}"


def doubt_of(hypotheses: Sequence[Hypothesis]) -> Hypothesis | None:
    """Return the fault that is worth a check where healthy leads by little: the next one, if anything supports it."""
    rival = None if is_surely(hypotheses[0]) else _rival(hypotheses)
    return rival if rival is not None and has_grounds(rival) else None


def has_grounds(hypothesis: Hypothesis) -> bool:
    """Say whether anything in the log supports a cause: without that its share is its prior."""
    return any(reason.bits >= MIN_SPEAKING_BITS for reason in hypothesis.reasons)


def is_surely(leader: Hypothesis) -> bool:
    """Say whether a run is called healthy without reserve, where healthy leads."""
    return leader.probability >= SURELY_HEALTHY


def steps_asked(hypotheses: Sequence[Hypothesis], steps: Sequence[NextStep]) -> list[NextStep]:
    """Return the checks that follow a verdict, best first: a healthy run asks only for those of a doubt, if any."""
    if hypotheses[0].cause != SOUND:
        return list(steps)
    faults = about_faults(steps)
    return faults if doubt_of(hypotheses) is not None else [step for step in steps if step not in faults]


def about_faults(steps: Sequence[NextStep]) -> list[NextStep]:
    """Return the checks that are about a fault, best first."""
    return [step for step in steps if step.id.partition(".")[0] not in NO_FAULTS]


def not_judged(run: RunSummary, why: str, missing: Sequence[MetricToLog], players: Sequence[str] = ()) -> RunVerdict:
    """Return the verdict on a run with too few records or metrics.

    Args:
        run: What was read.
        why: Why nothing can be judged, and what to do; empty where too few records or metrics are there.
        missing: The metrics that would help, best first; they need not help a run of `players`.
        players: Losses of two networks against each other, which do not say how training goes.
    """
    if why:
        return RunVerdict.model_construct(kind="not judged", headline=f"Cannot be judged: {why}")
    names = [shorten(name, MAX_NAME_CHARACTERS) for name in run.metrics[:MAX_LOOKED_AT]]
    wanted = " and ".join(metric_to_log.metric for metric_to_log in missing[:2])
    facts = [f"{metric_to_log.metric}: {metric_to_log.how}" for metric_to_log in missing[:2]]
    if run.steps < LEAST_STEPS:
        logged = f"{counted(run.steps, run.step_name)} of {', '.join(names)}" if names else "no metric"
        more = "each step, not each epoch" if run.step_name == "epoch" else f"more {run.step_name}s"
        headline = f"the log holds only {logged}. To judge it, log {more}{f', and {wanted} too' if wanted else ''}."
    elif players:
        score = next((name for name in run.metrics if "fid" in name.lower()), "")
        judge = f"compare {score}" if score else "log a score of the samples, such as fid, and compare it"
        headline = (
            f"{' and '.join(players)} are losses of two networks against each other, which do not say how training "
            f"goes. To judge it, {judge} with that of a good run."
        )
        facts = []
    else:
        headline = f"{', '.join(names)} say too little of how training goes. To judge it, log {wanted or 'the loss'}."
    return RunVerdict.model_construct(kind="not judged", headline=f"Cannot be judged: {headline}", facts=facts)


def in_its_place(
    verdict: RunVerdict, runs: int, refuted: Tried | None, learner: str, *, place: str = "folder"
) -> RunVerdict:
    """Return a verdict on a log that says what else is known where the log lies.

    Args:
        verdict: By the log.
        runs: Runs where it lies; none is longer. What holds several is not called healthy by one of them.
        refuted: The verdict on the leading cause in the record next to it that refutes the cause, if any.
        learner: What learns, as `knowledge.advice` knows it.
        place: What holds the runs: a folder or a file.
    """
    headline, kind = verdict.headline, verdict.kind
    if refuted is not None:
        first = capitalised(f"{name_of(refuted.cause, learner)} was {refuted.verdict()} on {refuted.at[:10]}")
        by_log = f"{headline[:1].lower()}{headline[1:]}"
        headline = f"{first} by {refuted.by()}, says the record next to the run. By the log alone: {by_log}"
        verdict = verdict.model_copy(update={"headline": headline})
    if runs <= 1:
        return verdict
    headline = f"1 of {runs} runs in this {place}; none is longer. {headline}"
    kind = "unclear" if kind == "healthy" else kind
    return verdict.model_copy(update={"kind": kind, "headline": headline, "next": "Judge each of the runs."})


def _rival(hypotheses: Sequence[Hypothesis]) -> Hypothesis | None:
    return next((hypothesis for hypothesis in hypotheses[1:] if hypothesis.cause not in NO_FAULTS), None)


def _named(hypotheses: Sequence[Hypothesis]) -> list[str]:
    """Return the ids of the hypotheses that a headline names."""
    rival = _rival(hypotheses)
    return [hypotheses[0].cause, *([rival.cause] if rival is not None and _is_close_second(rival) else [])]


def headline_of(hypotheses: Sequence[Hypothesis], learner: str = "") -> str:
    """Return what leads and what comes second, where a fault leads or none fits."""
    leader, rival, named = hypotheses[0], _rival(hypotheses), _named(hypotheses)
    share = round(leader.probability, 2)  # as `credence` has it
    if leader.cause == OTHER:
        others = [f"the likeliest is {_with_share(rival, learner)}"] if rival is not None else []
        headline = f"No listed cause fits well ({percent(share)})"
        return _sentence([headline, *others, *_healthy_share(hypotheses)], named)
    if share >= ALMOST_CERTAIN:
        word = "Almost certainly"
    elif share >= MIN_PROBABLE_SHARE:
        word = "Probably"
    else:
        word = "Perhaps" if share >= MIN_POSSIBLE_SHARE else "No cause leads clearly; perhaps"
    first = f"{word} {_with_share(leader, learner)}"
    if rival is not None and _is_close_second(rival):
        first += f", or {_with_share(rival, learner)}"
    return _sentence([first, *_healthy_share(hypotheses)], named)


def _healthy(
    run: RunSummary, sheet: Sheet, present: Sequence[Finding], hypotheses: Sequence[Hypothesis], learner: str
) -> str:
    leader, rival = hypotheses[0], _rival(hypotheses)
    sure = is_surely(leader)
    looked_at = _looked_at(run, sheet)
    what = "no fault shows" if present or not sure else "nothing unusual"
    if rival is not None and not sure and has_grounds(rival):
        what = "no fault is clear"
    word = "Healthy" if sure else "Not sure; perhaps healthy"
    parts = [f"{word} ({percent(leader.probability)}): {what}" + (f" in {looked_at}" if looked_at else "")]
    if rival is not None and not sure and not has_grounds(rival):
        parts.append("nothing in the log points to a fault")
    elif rival is not None and (_is_close_second(rival) or not sure):
        parts.append(f"the likeliest fault is {_with_share(rival, learner)} [{rival.cause}]")
    return f"{'; '.join(parts)}."


def _looked_at(run: RunSummary, sheet: Sheet) -> str:
    """Return which curves were looked at, the results with their first and last values."""
    curves = [curve for quantity in sheet.quantities for curve in quantity.curves]
    order = {name: place for place, name in enumerate(MAIN_METRICS)}
    curves.sort(key=lambda curve: order.get(curve.name, len(order)))
    names = [
        f"{shorten(curve.name, MAX_NAME_CHARACTERS)} ({figure(curve.first)} to {figure(curve.last)})"
        if "loss" in curve.name or "reward" in curve.name
        else shorten(curve.name, MAX_NAME_CHARACTERS)
        for curve in curves[:MAX_LOOKED_AT]
    ]
    if not names:
        return ""
    further = len(curves) - len(names)
    listed = ", ".join(names) + (f" and {counted(further, 'other metric')}" if further else "")
    return f"{listed} over {counted(run.records, 'record')}"


def _after_healthy(run: RunSummary, missing: Sequence[MetricToLog], *, sure: bool) -> str:
    """Return what to do after a healthy answer: the evaluation that is missing, else a comparison."""
    evaluates = any(name.startswith(("eval_", "rewards/", "reward")) for name in run.metrics)
    if not evaluates and run.kind not in ("rl", "ppo", "grpo"):
        return (
            "Log eval_loss on held-out data, as overfitting does not show without it; compare with the last good run."
        )
    if missing:
        return f"Compare with the last good run, and log {missing[0].metric}: {whole_clauses(missing[0].how)}."
    done = "Nothing has to be done. " if sure else ""
    return f"{done}A run that could be better looks healthy too: a good run to compare with shows it."


def _healthy_share(hypotheses: Sequence[Hypothesis]) -> list[str]:
    share = next((hypothesis.probability for hypothesis in hypotheses if hypothesis.cause == SOUND), 0.0)
    return [f"healthy {percent(share)}"]


def _sentence(parts: Sequence[str], named: Sequence[str]) -> str:
    ids = [text for text in named if text not in NO_FAULTS]
    return "; ".join(parts) + (f" [{', '.join(ids)}]" if ids else "")


def _with_share(hypothesis: Hypothesis, learner: str) -> str:
    return f"{name_of(hypothesis.cause, learner)} ({percent(hypothesis.probability)})"


def _is_close_second(hypothesis: Hypothesis) -> bool:
    return hypothesis.probability >= MIN_SHARE_OF_RUNNER_UP


def _facts(leader: Hypothesis, rival: Hypothesis | None, present: Sequence[Finding], learner: str) -> list[str]:
    """Return the facts that weigh most for the leading cause, what is seen before what is not.

    What the cause is known to show comes before what runs with it only happened to show.
    A fact that rules against the second cause alone comes second: it tells the two apart.
    """
    symptoms = {finding.symptom for finding in present}
    reasons = [reason for reason in leader.reasons if reason.bits >= MIN_BITS_OF_FACT and reason.kind != "numbers"]
    reasons = [
        reason for reason in reasons if reason.symptom not in usual_symptoms() or reason.bits >= MIN_BITS_OF_USUAL
    ]
    cause = catalogue().causes.get(leader.cause)
    shown = {effect.symptom for effect in cause.effects} if cause is not None else set()

    def order(reason: Reason) -> tuple[bool, bool]:
        is_finding = reason.kind == "finding"
        return is_finding and reason.symptom not in symptoms, is_finding and reason.symptom not in shown

    reasons.sort(key=order)
    if rival is not None and _is_close_second(rival):
        weights = {reason.fact: reason.bits for reason in rival.reasons}
        telling = [reason for reason in reasons if weights.get(reason.fact, 0.0) < reason.bits + AS_MUCH]
        reasons = telling or reasons
    facts = list(dict.fromkeys(whole_clauses(reason.fact) for reason in reasons))
    facts = [fact for fact in facts if not any(fact in longer for longer in facts if longer != fact)]
    if not facts:
        return [*_summaries(present), *_of_all_curves(leader.reasons)][:MAX_FACTS]
    against = _against(rival, leader, learner) if rival is not None and _is_close_second(rival) else []
    return [*facts[:1], *against, *facts[1:]][:MAX_FACTS]


def _against(rival: Hypothesis, leader: Hypothesis, learner: str) -> list[str]:
    """Return the log's strongest fact against the second cause that is none against the first."""
    shared = {reason.fact for reason in leader.reasons if reason.bits < 0}
    strong = [reason for reason in rival.reasons if reason.kind == "log" and reason.bits <= -MIN_BITS_AGAINST]
    facts = [reason.fact for reason in strong if reason.fact not in shared]
    return [f"against {name_of(rival.cause, learner)}: {fact}" for fact in facts[:1]]


def _of_all_curves(reasons: Sequence[Reason]) -> list[str]:
    together = any(reason.kind == "numbers" and reason.bits > 0 for reason in reasons)
    return ["the curves together resemble those of runs with this fault"] if together else []


def _summaries(present: Sequence[Finding]) -> list[str]:
    return [whole_clauses(finding.summary) for finding in present[:MAX_FACTS]]


def whole_clauses(text: str, room: int = MAX_FACT_CHARACTERS) -> str:
    """Return the first clauses of a sentence that fit into so many characters, at least one."""
    return shorten(_leading_parts(re.split(r"(?<=;)\s+(?![^()]*\))", text), room).rstrip("; "), MAX_CLAUSE_CHARACTERS)


def whole_sentences(text: str, room: int) -> str:
    """Return the first sentences of a text that fit into so many characters, at least one."""
    return _leading_parts(re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text), room)


def _leading_parts(parts: Sequence[str], room: int) -> str:
    kept = parts[0]
    for part in parts[1:]:
        if len(kept) + 1 + len(part) > room:
            break
        kept += f" {part}"
    return kept
