"""Checks that the log answers by itself: what it says is told beside them, and they are not asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mldebug_mcp.diagnose.rests_on import speaks_first
from mldebug_mcp.logs import Run
from mldebug_mcp.measure.course import course_of
from mldebug_mcp.measure.passes import passes_at
from mldebug_mcp.measure.rate import peak_of, rate_of
from mldebug_mcp.measure.scale import uniform_loss
from mldebug_mcp.measure.statistics import end_level, median
from mldebug_mcp.measure.usual_rates import peak_rate, usual_rates
from mldebug_mcp.models import Finding, Hypothesis, NextStep, State
from mldebug_mcp.symptoms.registry import CannotTell
from mldebug_mcp.text import figure, percent

RECORDS_AROUND = 4
"""Records that are shown of each curve up to the first value that is not finite. Chosen."""
Answer = Callable[[Run], str]
"""What the log says to a check; "" where it does not answer it."""


def with_answers(run: Run, hypotheses: Sequence[Hypothesis], findings: Sequence[Finding] = ()) -> list[Hypothesis]:
    """Return the hypotheses with what the log says to their checks, by its numbers or by what is seen in it."""
    seen = {one.symptom: one.summary for one in findings if one.state is State.PRESENT}
    settled = {check: [seen[name] for name in names if name in seen] for check, names in _SETTLED.items()}
    told = {check: " ".join(f"{one}." for one in some[:1]).rstrip(".") for check, some in settled.items()}
    told |= {check: said for check, answer in _ANSWERS.items() if (said := answer(run))}
    present = [one for one in findings if one.state is State.PRESENT]
    for one in hypotheses:
        if one.cause == "lr_too_high" and (onset := speaks_first(present, one)) is not None:
            told["lr_too_high.1"] = _rate_at(run, onset)
    return [
        one.model_copy(update={"next_steps": [_with(step, told.get(step.id, "")) for step in one.next_steps]})
        for one in hypotheses
    ]


def _with(step: NextStep, answer: str) -> NextStep:
    return step.model_copy(update={"answer": answer}) if answer else step


def _lowest_evaluation(run: Run) -> str:
    if "eval_loss" not in run or not len(run["eval_loss"].finite):
        return ""
    held = run["eval_loss"].finite
    at = int(held.value.argmin())
    passes = passes_at(run, held.step[at : at + 1])
    seen = "" if passes is None else f", after {figure(float(passes[0]))} passes over the data"
    return (
        f"evaluation loss is lowest at {run.place(float(held.step[at]))} with "
        f"{figure(float(held.value[at]))}{seen}, and {figure(float(held.value[-1]))} at the end"
    )


def _first_rates(run: Run) -> str:
    rate, peak = rate_of(run), peak_of(run)
    if rate is None or peak is None:
        return ""
    first = ", ".join(figure(float(one)) for one in rate.value[:4])
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


def _peak_beside_usual(run: Run) -> str:
    try:
        peak, _ = peak_rate(run)
        usual = usual_rates(run)
    except CannotTell:
        return ""
    told = " or ".join(f"{figure(one.low)} to {figure(one.high)} for {one.usual_for}" for one in usual)
    return f"the peak is {figure(peak)}; usual are {told}"


def _first_beside_guess(run: Run) -> str:
    uniform = uniform_loss(run)
    if uniform is None or "loss" not in run or not len(run["loss"].finite):
        return ""
    first = float(run["loss"].finite.value[0])
    return f"the first loss is {figure(first)}, {figure(first / uniform)} times that of a uniform guess"


def _end_beside_guess(run: Run) -> str:
    uniform = uniform_loss(run)
    if uniform is None or "loss" not in run or not len(run["loss"].finite):
        return ""
    return f"the loss ends at {figure(end_level(run['loss'].finite.value))}; a uniform guess has {figure(uniform)}"


def _norm_beside_clip(run: Run) -> str:
    clip = run.facts.clip
    if clip is None or "grad_norm" not in run or not len(run["grad_norm"].finite):
        return ""
    norm = run["grad_norm"].finite.value
    above = float((norm > clip).mean())
    return f"the median norm is {figure(median(norm))}, clipped at {figure(clip)}; {above:.0%} of the records lie above"


def _betas(run: Run) -> str:
    optimizer = run.facts.optimizer
    told = {"beta2": optimizer.betas[1], "epsilon": optimizer.epsilon}
    return ", ".join(f"{name} is {figure(value)}" for name, value in told.items() if value is not None)


def _shrinking(run: Run) -> str:
    decay, plan, rate = run.facts.optimizer.weight_decay, run.facts.plan, run.facts.schedule.peak
    if decay is None or plan is None or rate is None:
        return ""
    return f"rate x decay x steps is {figure(decay * plan * rate)}"


def _batch(run: Run) -> str:
    batch = run.facts.effective_batch
    return "" if batch is None else f"the effective batch is {figure(batch)} rows"


def _both_ends(run: Run) -> str:
    if not all(name in run and len(run[name].finite) for name in ("loss", "eval_loss")):
        return ""
    ends = [figure(end_level(run[name].finite.value)) for name in ("loss", "eval_loss")]
    return f"training loss ends at {ends[0]}, evaluation loss at {ends[1]}"


def _last_before_nan(run: Run) -> str:
    """Return loss and gradient norm in the records around the first value that is not finite."""
    named = [run[name] for name in ("loss", "grad_norm") if name in run]
    lost = [float(one.step[~np.isfinite(one.value)][0]) for one in named if not np.isfinite(one.value).all()]
    if not lost:
        return ""
    first = min(lost)
    told = []
    for one in named:
        at = int(np.searchsorted(one.step, first, side="right"))
        values = ", ".join(figure(float(value)) for value in one.value[max(0, at - RECORDS_AROUND) : at])
        told.append(f"{one.name} {values}")
    return f"the last records up to {run.place(first)}: {'; '.join(told)}"


def _norm_before_loss(run: Run) -> str:
    clip = run.facts.clip
    around = _last_before_nan(run)
    clipped = "" if clip is None else "clipping is off" if not math.isfinite(clip) else f"clipped at {figure(clip)}"
    return f"{around}; gradients are {clipped}" if around and clipped else ""


def _in_float32(run: Run) -> str:
    return "it computes in float32 already" if run.facts.precision == "fp32" else ""


def _precision(run: Run) -> str:
    precision = run.facts.precision
    scale = course_of(run["loss_scale"]) if "loss_scale" in run else None
    scaled = "" if scale is None else f"; loss scale from {figure(scale.first)} to {figure(scale.last)}: {scale}"
    return "" if precision is None else f"it computes in {precision}{scaled}"


_ANSWERS: Mapping[str, Answer] = {
    "overfitting.1": _lowest_evaluation,
    "insufficient_warmup.1": _first_rates,
    "lr_schedule_bug.1": _rate_course,
    "lr_too_high.2": _peak_beside_usual,
    "lr_too_low.1": _peak_beside_usual,
    "dpo_collapse.2": _peak_beside_usual,
    "bad_init.1": _first_beside_guess,
    "wrong_loss.1": _first_beside_guess,
    "no_signal.1": _end_beside_guess,
    "clip_too_tight.1": _norm_beside_clip,
    "adam_instability.1": _betas,
    "weight_decay_too_high.1": _shrinking,
    "batch_too_small.1": _batch,
    "too_little_capacity.1": _both_ends,
    "fp16_overflow.1": _precision,
    "exploding_gradients.1": _norm_before_loss,
    "invalid_math.1": _last_before_nan,
    "invalid_math.2": _in_float32,
}
"""The checks of PLAYBOOK.md that only read what was logged or set."""
_SETTLED: Mapping[str, tuple[str, ...]] = {
    "missing_zero_grad.1": ("gradients_kept",),
    "missing_zero_grad.2": ("gradients_kept",),
    "bad_data_pocket.1": ("loss_spike_single", "loss_spikes_regular", "loss_spikes_recur", "loss_periodic"),
    "exploding_gradients.1": ("grad_norm_growing", "gradient_lost_first"),
    "invalid_math.1": ("loss_climbs_to_nan",),
    "fp8_zero_scale.1": ("loss_climbs_to_nan",),
    "logit_drift.1": ("logits_grow",),
    "too_few_epochs.1": ("ends_while_improving",),
    "lr_schedule_bug.2": ("warmup_exceeds_plan",),
    "resume_state_lost.1": ("lr_jumps_at_resume",),
    "value_instability.1": ("value_loss_high", "explained_variance_low", "q_values_beyond_returns"),
    "entropy_collapse.1": ("entropy_low",),
    "kl_blowup.1": ("kl_runs_away", "kl_high"),
    "no_reward_variance.1": ("reward_std_zero",),
    "length_exploitation.1": ("completion_length_grows", "completion_length_shrinks"),
    "dpo_collapse.1": ("dpo_logps_fall",),
    "memory_leak.1": ("memory_grows",),
}
"""The checks of PLAYBOOK.md that ask for what a finding says: such a finding, where it is present, settles them."""
