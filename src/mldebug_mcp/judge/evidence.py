"""Evidence for and against causes that no question asks for.

It comes from error messages, checks that the log answers, settings and sibling runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mldebug_mcp.checks.check import CannotTell
from mldebug_mcp.checks.course import course_of
from mldebug_mcp.checks.curve import end_level
from mldebug_mcp.checks.learning_rate import peak_of, rate_of
from mldebug_mcp.checks.progress import passes_at, uniform_loss
from mldebug_mcp.checks.reference_settings import USUAL, Usual, peak_rate, usual_for, usual_instead, usual_rates
from mldebug_mcp.checks.results import AmongSiblings, among_siblings
from mldebug_mcp.checks.run.end_of_run import OF_DEVICE, error_that_ended
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import figure, percent
from mldebug_mcp.judge.columns import logged
from mldebug_mcp.judge.columns.facts import FOLLOWS_FROM
from mldebug_mcp.judge.next_steps import BITS, Outcome
from mldebug_mcp.judge.ranking import CauseEvidence, question_of
from mldebug_mcp.judge.sheet import speaks_first
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import Comparison, Finding, Hypothesis, NextStep, State
from mldebug_mcp.models.base import OTHER, SOUND

if TYPE_CHECKING:
    from mldebug_mcp.knowledge.errors import KnownError

# Checks that the log answers by itself: its answer stands with them, and they are not proposed.


RECORDS_AROUND = 4
"""Records that are shown of each curve up to the first value that is not finite. Chosen."""
Answer = Callable[[Run], str]
"""What the log says to a check; "" where it does not answer it."""


def with_answers(
    run: Run,
    hypotheses: Sequence[Hypothesis],
    findings: Sequence[Finding] = (),
    comparison: Comparison | None = None,
) -> list[Hypothesis]:
    """Return the hypotheses with what the log, or a comparison, says to their checks."""
    summaries = {finding.symptom: finding.summary for finding in findings if finding.state is State.PRESENT}
    settled = {check: [summaries[name] for name in names if name in summaries] for check, names in SETTLED.items()}
    answers = {check: " ".join(f"{text}." for text in some[:1]).rstrip(".") for check, some in settled.items()}
    answers |= {check: words for check, answer in _ANSWERS.items() if (words := answer(run))}
    answers |= {} if (shared := shared_jump(comparison)) is None else {OF_SHARED_JUMPS: shared.words}
    present = [finding for finding in findings if finding.state is State.PRESENT]
    for hypothesis in hypotheses:
        if hypothesis.cause == "lr_too_high" and (onset := speaks_first(present, hypothesis)) is not None:
            answers["lr_too_high.1"] = _rate_at(run, onset)
    return [
        hypothesis.model_copy(
            update={"next_steps": [_with_answer(step, answers.get(step.id, "")) for step in hypothesis.next_steps]}
        )
        if hypothesis.next_steps
        else hypothesis
        for hypothesis in hypotheses
    ]


OF_SHARED_JUMPS = "bad_batch.1"
"""The check that asks whether another run over the same rows jumps at the same step."""


class SharedJumpAnswer(NamedTuple):
    """What a comparison says to that check, in words, and whether it confirms or refutes it; None in doubt."""

    words: str
    outcome: Outcome | None


def shared_jump(comparison: Comparison | None) -> SharedJumpAnswer | None:
    """Return what a reference run does at the highest jump; None where that is not known, or it is the same run."""
    if comparison is None or comparison.same_losses or not comparison.jumps:
        return None
    jump = comparison.jumps[0]
    if jump.both:
        return SharedJumpAnswer(f"both runs jump at step {figure(jump.step)}", "confirms")
    words = f"the reference run passes step {figure(jump.step)} without a jump"
    if comparison.same_order:
        return SharedJumpAnswer(f"{words}, with the same seed", "refutes")
    return SharedJumpAnswer(f"{words}; that refutes it if both read the same rows there", None)


def evidence_from_jumps(comparison: Comparison | None, outcomes: Mapping[str, Outcome]) -> list[CauseEvidence]:
    """Return what a reference run says of a batch that makes the loss jump, unless the check was made by hand."""
    shared = shared_jump(comparison)
    if shared is None or shared.outcome is None or OF_SHARED_JUMPS in outcomes:
        return []
    return [CauseEvidence(OF_SHARED_JUMPS.partition(".")[0], BITS[shared.outcome], shared.words, "reference")]


def _with_answer(step: NextStep, answer: str) -> NextStep:
    return step.model_copy(update={"answer": answer}) if answer else step


def _lowest_evaluation(run: Run) -> str:
    if (evaluation := logged(run, "eval_loss")) is None:
        return ""
    at = int(evaluation.value.argmin())
    passes = passes_at(run, evaluation.step[at : at + 1])
    after_passes = "" if passes is None else f", after {figure(passes[0])} passes over the data"
    return (
        f"evaluation loss is lowest at {run.place(evaluation.step[at])} with "
        f"{figure(evaluation.value[at])}{after_passes}, and {figure(evaluation.value[-1])} at the end"
    )


def _first_rates(run: Run) -> str:
    rate, peak = rate_of(run), peak_of(run)
    if rate is None or peak is None:
        return ""
    first = ", ".join(figure(value) for value in rate.value[:4])
    return f"learning rate begins {first} and peaks at {figure(peak.value)} at {run.place(peak.step)}"


def _rate_at(run: Run, onset: float) -> str:
    """Return the learning rate at the step at which the trouble begins, as a share of its peak."""
    rate, peak = rate_of(run), peak_of(run)
    if rate is None or peak is None or not peak.value > 0:
        return ""
    known = rate.finite
    at = int(np.searchsorted(known.step, onset, side="right")) - 1
    if at < 0:
        return ""
    there = float(known.value[at])
    return (
        f"the trouble begins at {run.place(onset)}, where the learning rate is {figure(there)}, "
        f"{percent(there / peak.value)} of its peak at {run.place(peak.step)}"
    )


def _rate_course(run: Run) -> str:
    rate = rate_of(run)
    course = None if rate is None else course_of(rate)
    if course is None or course.records < 2:
        return ""
    planned = run.facts.schedule.peak
    configured = "" if planned is None else f"; configured is {figure(planned)}"
    return f"learning rate from {figure(course.first)} to {figure(course.last)}: {course}{configured}"


def _peak_and_usual(run: Run) -> str:
    try:
        peak, _ = peak_rate(run)
        usual = usual_rates(run)
    except CannotTell:
        return ""
    ranges = " or ".join(
        f"{figure(usual_range.low)} to {figure(usual_range.high)} for {usual_range.usual_for}" for usual_range in usual
    )
    return f"the peak is {figure(peak)}; usual are {ranges}"


def _first_and_guess(run: Run) -> str:
    uniform, loss = uniform_loss(run), logged(run, "loss")
    if uniform is None or loss is None:
        return ""
    first = float(loss.value[0])
    return f"the first loss is {figure(first)}, {figure(first / uniform)} times that of a uniform guess"


def _end_and_guess(run: Run) -> str:
    uniform, loss = uniform_loss(run), logged(run, "loss")
    if uniform is None or loss is None:
        return ""
    return f"the loss ends at {figure(end_level(loss.value))}; a uniform guess has {figure(uniform)}"


def _norm_and_clip(run: Run) -> str:
    clip, norm = run.facts.clip, logged(run, "grad_norm")
    if clip is None or norm is None:
        return ""
    above = float((norm.value > clip).mean())
    middle = figure(median(norm.value))
    return f"the median norm is {middle}, clipped at {figure(clip)}; {above:.0%} of the records lie above"


def _betas(run: Run) -> str:
    optimizer = run.facts.optimizer
    values = {"beta2": optimizer.betas[1], "epsilon": optimizer.epsilon}
    return ", ".join(f"{name} is {figure(value)}" for name, value in values.items() if value is not None)


def _shrinking(run: Run) -> str:
    decay, plan, rate = run.facts.optimizer.weight_decay, run.facts.plan, run.facts.schedule.peak
    if decay is None or plan is None or rate is None:
        return ""
    return f"rate x decay x steps is {figure(decay * plan * rate)}"


def _batch(run: Run) -> str:
    batch = run.facts.effective_batch
    return "" if batch is None else f"the effective batch is {figure(batch)} rows"


def _both_ends(run: Run) -> str:
    loss, evaluation = logged(run, "loss"), logged(run, "eval_loss")
    if loss is None or evaluation is None:
        return ""
    ends = figure(end_level(loss.value)), figure(end_level(evaluation.value))
    return f"training loss ends at {ends[0]}, evaluation loss at {ends[1]}"


def _last_before_nan(run: Run) -> str:
    """Return loss and gradient norm in the records around the first value that is not finite."""
    named = [run[name] for name in ("loss", "grad_norm") if name in run]
    lost = [
        float(series.step[~np.isfinite(series.value)][0]) for series in named if not np.isfinite(series.value).all()
    ]
    if not lost:
        return ""
    first = min(lost)
    courses = []
    for series in named:
        at = int(np.searchsorted(series.step, first, side="right"))
        values = ", ".join(figure(value) for value in series.value[max(0, at - RECORDS_AROUND) : at])
        courses.append(f"{series.name} {values}")
    return f"the last records up to {run.place(first)}: {'; '.join(courses)}"


def _norm_before_loss(run: Run) -> str:
    clip = run.facts.clip
    around = _last_before_nan(run)
    clipped = "" if clip is None else "clipping is off" if not math.isfinite(clip) else f"clipped at {figure(clip)}"
    return f"{around}; gradients are {clipped}" if around and clipped else ""


def _precision(run: Run) -> str:
    precision = run.facts.precision
    scale = course_of(run["loss_scale"]) if "loss_scale" in run else None
    scaled = "" if scale is None else f"; loss scale from {figure(scale.first)} to {figure(scale.last)}: {scale}"
    return "" if precision is None else f"it computes in {precision}{scaled}"


_ANSWERS: Mapping[str, Answer] = {
    "overfitting.1": _lowest_evaluation,
    "insufficient_warmup.1": _first_rates,
    "lr_schedule_bug.1": _rate_course,
    "lr_too_high.2": _peak_and_usual,
    "lr_too_low.1": _peak_and_usual,
    "dpo_collapse.2": _peak_and_usual,
    "bad_init.1": _first_and_guess,
    "wrong_loss.1": _first_and_guess,
    "no_signal.1": _end_and_guess,
    "clip_too_tight.1": _norm_and_clip,
    "adam_instability.1": _betas,
    "weight_decay_too_high.1": _shrinking,
    "batch_too_small.1": _batch,
    "too_little_capacity.1": _both_ends,
    "fp16_overflow.1": _precision,
    "exploding_gradients.1": _norm_before_loss,
    "invalid_math.1": _last_before_nan,
    "invalid_math.2": lambda run: "it computes in float32 already" if run.facts.precision == "fp32" else "",
}
"""The checks of PLAYBOOK.md that only read what was logged or set."""
SETTLED: Mapping[str, tuple[str, ...]] = {
    "missing_zero_grad.1": ("gradients_kept",),
    "missing_zero_grad.2": ("gradients_kept",),
    "bad_data_pocket.1": ("loss_spike_single", "loss_spikes_regular", "loss_spikes_recur", "loss_periodic"),
    "exploding_gradients.1": ("grad_norm_growing", "gradient_lost_first"),
    "invalid_math.1": ("loss_climbs_to_nan",),
    "fp8_zero_scale.1": ("loss_climbs_to_nan",),
    "logit_drift.1": ("logits_grow",),
    "too_few_epochs.1": ("ends_while_improving",),
    "lr_schedule_bug.2": ("warmup_exceeds_plan",),
    "resume_state_lost.1": ("lr_jump_at_resume",),
    "value_instability.1": ("value_loss_high", "explained_variance_low", "q_values_beyond_returns"),
    "entropy_collapse.1": ("entropy_low",),
    "kl_blowup.1": ("kl_runs_away", "kl_high"),
    "no_reward_variance.1": ("reward_std_zero",),
    "length_exploitation.1": ("completion_length_grows", "completion_length_shrinks"),
    "dpo_collapse.1": ("dpo_logps_fall",),
    "memory_leak.1": ("memory_grows",),
}
"""The checks of PLAYBOOK.md that ask for what a finding says: such a finding, where it is present, settles them."""


# What a known error message at the end of a log says about the causes, in bits.


FIRST_CAUSE_BITS = 6.0
"""Bits for the first cause that a row of errors.jsonl names. Chosen by hand, sixty-four to one: a message usually is
what its row says."""
BITS_LESS_PER_PLACE = 1.5
"""Bits fewer for each further cause of the row. Chosen by hand."""
KNOWN_MESSAGE_BITS = 7.0
"""Bits for every cause of the row because there is a known message at all: one healthy run in 130 has one."""


def evidence_from_errors(run: Run) -> list[CauseEvidence]:
    """Return what the error that ended a run says about each cause; nothing if no known error ended it.

    The first error counts, before the echoes of other ranks. One that no cause of the catalogue explains supports
    `unknown`.
    """
    if not run.fatal:
        return _evidence_from_fault(run)
    from mldebug_mcp.knowledge.errors import Role, match

    known = [
        (message, row) for message in run.fatal if (row := _row(match(message.text, code=message.code))) is not None
    ]
    if not known:
        return _evidence_from_fault(run)
    if not error_that_ended(run)[1]:
        return []  # they echo an error that no row knows
    message, row = min(known, key=lambda pair: pair[1].role is Role.ECHO)
    return _evidence_from_row(row, f"the error in {message.place} ({row.id})")


BEFORE_FAULT = 4
"""Records of the loss before the report of a fault. Chosen: by hand."""
AFTER_FAULT = 2
"""Records of the loss after it. Chosen: by hand."""
MIN_LOSS_JUMP_RATIO = 1.5
"""Factor by which the loss jumps there. Chosen: by hand."""
AT_A_JUMP = 7.0
"""Bits more where both stand together: by chance they do in one of a hundred records. Chosen: by hand."""


def _evidence_from_fault(run: Run) -> list[CauseEvidence]:
    """Return what it says that a device reported a fault where the loss jumps, though training went on."""
    loss = run["loss"] if "loss" in run and run.records else None
    if loss is None:
        return []
    for message in (message for message in run.messages if OF_DEVICE.search(message.text)):
        from mldebug_mcp.knowledge.errors import match

        at = round(message.records * len(loss) / run.records)
        row = _row(match(message.text, code=message.code, warnings=True))
        if row is None or not BEFORE_FAULT <= at < len(loss):
            continue
        before = median(loss.value[at - BEFORE_FAULT : at])
        highest = at + int(np.nan_to_num(loss.value[at : at + AFTER_FAULT], nan=np.inf).argmax())
        jumped, place = float(loss.value[highest]), run.place(loss.step[highest])
        if not jumped <= MIN_LOSS_JUMP_RATIO * abs(before):
            jump = f"the loss goes from about {figure(before)} to {figure(jumped)} at {place}"
            fact = f"the fault in {message.place} ({row.id}), where {jump}"
            return [
                cause_evidence._replace(bits=cause_evidence.bits + AT_A_JUMP)
                for cause_evidence in _evidence_from_row(row, fact)
            ]
    return []


def evidence_from_message(text: str) -> list[CauseEvidence]:
    """Return what an error message that ended a run says about each cause; nothing if it is not a known one."""
    from mldebug_mcp.knowledge.errors import match

    row = _row(match(text))
    return [] if row is None else _evidence_from_row(row, f"the error that ended it ({row.id})")


def findings_to_judge(findings: Sequence[Finding], evidence: Sequence[CauseEvidence]) -> list[Finding]:
    """Return the findings to judge: without `error_message`, if a known error has spoken for its own causes.

    That finding would support the causes of all other messages too. What a fact makes counts with the fact alone.
    """
    known = any(cause_evidence.kind == "error" for cause_evidence in evidence)
    follows = {question for each in evidence for question in FOLLOWS_FROM.get(each.about, ())}
    return [
        finding
        for finding in findings
        if not (known and finding.symptom == "error_message")
        and not (finding.state is State.PRESENT and question_of(finding.symptom) in follows)
    ]


def _evidence_from_row(row: KnownError, fact: str) -> list[CauseEvidence]:
    causes = row.causes or (OTHER,)
    return [
        CauseEvidence(
            cause,
            KNOWN_MESSAGE_BITS + max(FIRST_CAUSE_BITS - BITS_LESS_PER_PLACE * place, BITS_LESS_PER_PLACE),
            fact,
            "error",
        )
        for place, cause in enumerate(causes)
    ]


def _row(rows: Sequence[KnownError]) -> KnownError | None:
    from mldebug_mcp.knowledge.errors import Role

    known = (row for row in rows if not row.interpreter)
    return min(known, key=lambda row: row.role is Role.ECHO, default=None)


# What settings say of causes that are unusual by themselves, and that no question asks after.


UNUSUAL_BITS = 2.0
"""Bits for a cause that an unusual setting suggests, four to one, and one more for each factor of two beyond. By hand:
recipes that work are unusual, too."""
MOST_BITS = 4.0
"""Bits for such a cause at most, sixteen to one. By hand."""
_ASKED = ("weight_decay", "max_grad_norm", "effective_batch", "beta", "gamma", "adam_beta1", "adam_beta2")
"""Settings that questions ask after: what is unusual about them is a finding, and weighed as one."""
_ASKED_BELOW = ("adam_epsilon",)
"""The same of settings below what is usual."""
SIZES = ("hidden_size",)
"""Sizes of a model that are compared with what is usual."""
SIZE_BITS = 3.0
"""Bits more where such a size is below the usual: all 7 labelled runs with one are too small, no healthy one has it."""


def evidence_from_settings(run: Run) -> list[CauseEvidence]:
    """Return the causes that unusual settings suggest."""
    unusual = list(_unusual(run))
    if not unusual:
        return []
    from mldebug_mcp.judge.comparison import faults_of

    return [
        CauseEvidence(
            cause,
            min(MOST_BITS, UNUSUAL_BITS + beyond) + SIZE_BITS * (name in SIZES and direction < 0),
            fact,
            "log",
        )
        for name, direction, beyond, fact in unusual
        for cause in faults_of(name, direction)
    ]


def _unusual(run: Run) -> Iterator[tuple[str, int, float, str]]:
    """Yield each unusual setting, on which side of the usual it is, how far beyond in factors of two, and in words."""
    for name in (*USUAL, "planned_passes"):
        value = _value(run, name)
        instead = "" if value is None or name in _ASKED else usual_instead(run, name, value)
        if value is not None and instead:
            usual = usual_for(run, name)
            below = usual is not None and value < usual.low
            if below and name in _ASKED_BELOW:
                continue
            beyond = _beyond(usual, value) if usual is not None else 0.0
            yield name, -1 if below else +1, beyond, f"{name} is {figure(value)}; usual: {instead}"
    if run.settings.flag("shuffle") is False:
        yield "shuffle", -1, 0.0, "the data are not shuffled, by the configuration"


def _beyond(usual: Usual, value: float) -> float:
    """Return how far a value lies beyond what is marked, in factors of two; 0 where no factor tells it."""
    low, high = usual.marked
    near, far = sorted((abs(value), low if value < low else high))
    return math.log2(far / near) if near > 0 else 0.0


def _value(run: Run, name: str) -> float | None:
    if name == "planned_passes":
        return run.facts.passes_at(run.facts.plan) if run.facts.plan else None
    return run.setting(name)


# What the other runs of a sweep say about a run: whether its result is normal for this recipe, and what may be why.


MIN_WORSE_DEVIATIONS = 5.0
"""Standard deviations of its siblings by which a result has to be worse. Chosen: as where two curves are compared."""
WORSE_BITS = 3.0
"""Bits against `healthy` where it is, and for the fault that a setting may be that no sibling has. Chosen: fewer than
next to a run that is known to be good, as what differs may be what the sweep is about."""


def evidence_from_siblings(run: Run) -> list[CauseEvidence]:
    """Return what supports or contradicts causes where a run is clearly worse than its siblings."""
    siblings = among_siblings(run)
    if siblings is None or not _worse(siblings):
        return []
    from mldebug_mcp.judge.comparison import faults_of

    count = len(siblings.ahead)
    ahead = f"{count} siblings" if count == siblings.count else f"{count} better siblings"
    suspects = {
        cause: f"{name} is {_scalar_text(own)}, in {ahead} {_range(others)}"
        for name, (own, others) in _set_alone(run, siblings.ahead).items()
        for cause in faults_of(name, _direction(own, others))
    }
    ends = f"{siblings.metric} ends at {figure(siblings.own)}, in {siblings.count} siblings at {figure(siblings.usual)}"
    evidence = [CauseEvidence(cause, WORSE_BITS, difference, "reference") for cause, difference in suspects.items()]
    return [*evidence, CauseEvidence(SOUND, -WORSE_BITS, ends, "reference")]


def _worse(siblings: AmongSiblings) -> bool:
    """Say whether a result is worse by more than siblings are apart, and by more than is small for their gain."""
    from mldebug_mcp.judge.comparison import MIN_WORSE_RESULT_SHARE

    return siblings.worse_by > max(
        MIN_WORSE_DEVIATIONS * siblings.spread, MIN_WORSE_RESULT_SHARE * max(abs(siblings.usual), siblings.gained)
    )


def _set_alone(run: Run, ahead: Sequence[Run]) -> dict[str, tuple[Scalar, list[Scalar]]]:
    """Return the settings in which a run differs from every sibling that is ahead of it: its value, and theirs."""
    from mldebug_mcp.judge.comparison import settings_with_rate

    own, theirs = settings_with_rate(run), [settings_with_rate(sibling) for sibling in ahead]
    alone = [name for name in own if all(own[name] != other.get(name) for other in theirs)]
    return {name: (own[name], [other.get(name) for other in theirs]) for name in alone}


def _direction(own: Scalar, others: Sequence[Scalar]) -> int:
    """Return +1 where a setting is above that of every sibling, -1 where below; 0 where it is merely another."""
    numbers = _numbers((own, *others))
    if len(numbers) < len(others) + 1:
        return 0
    return (numbers[0] > max(numbers[1:])) - (numbers[0] < min(numbers[1:]))


def _numbers(values: Sequence[Scalar]) -> list[float]:
    return [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def _range(values: Sequence[Scalar]) -> str:
    """Return the values of siblings in words: the least and the greatest, or the first few that are no numbers."""
    numbers = _numbers(values)
    if len(numbers) < len(values):
        return ", ".join(dict.fromkeys(_scalar_text(value) for value in values[:4]))
    low, high = figure(min(numbers)), figure(max(numbers))
    return low if low == high else f"{low} to {high}"


def _scalar_text(value: Scalar) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return figure(value)
    return "not set" if value is None else str(value).lower()
