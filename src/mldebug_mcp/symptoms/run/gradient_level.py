"""Is the gradient finite, and of a size from which such a run can learn?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.gradients import SMALL_LOSS, label_noise_norm, loss_moved, refuse_uncomputed
from mldebug_mcp.measure.not_finite import lost
from mldebug_mcp.measure.rewards import most_earned, rewards_of
from mldebug_mcp.measure.scaler import are_skipped
from mldebug_mcp.measure.statistics import end_level, median, sample, start_level
from mldebug_mcp.symptoms.readings import first_of, outcome_of, reading
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import with_attribute
from mldebug_mcp.text import figure

ISOLATED, SETTLING = 0.01, 20
"""Share of the steps that a loss scaler loses while it probes, and steps in which it comes down from its first scale.
Chosen: one in a hundred; torch's 2 ** 16 is halved sixteen times."""
CAUGHT = 0.1
"""... and the share of records where each of them is told to be skipped. Chosen: half of what a log shows in vain."""
HIGH: Mapping[str, float] = {"sft": 100.0, "grpo": 10.0}
"""Norms that are unstable, by kind of run. Source: axolotl_stability."""
OF_ANY, ANY_SCALE = 100.0, ("diffusion", "ppo", "rl", "boosting")
"""Such a norm of any other kind, times a loss above 1, in at least half of the records; and kinds whose norms are of
any size. Fitted: 339 healthy runs of benchmarks stay below 21; sums over rows, and targets of any unit, scale both."""
LOW: Mapping[str, float] = {"sft": 0.002, "grpo": 2e-5}
"""A fiftieth of the least usual norm, by kind of run. Source: axolotl_stability."""
HIGH_SHARE, ZERO_SHARE = 0.1, 0.5
"""Share of the records that must be high, or zero. Chosen: fewer are spikes; equal rewards give some zeros."""
TINY = 1e-6
"""A norm of no averaged loss that is not small itself, for any other kind of run. Chosen: float32 resolves 1e-7."""
BELOW_LABELS, AS_LABELS, AT_CHANCE = 0.1, (0.8, 1.2), 0.05
"""Share of what the labels give the last bias alone: far below it, about it; and by which a loss may miss ln C. Fitted:
on trained runs, of which those that learn slowly have 1.5 times as much and more."""
FALL = 1000.0
"""Times that the norm fell. Chosen: sound norms fall by ten, about as the loss."""
LEAST, COURSE = 5, 20
"""Records for a level, and for a course. Chosen: a median of fewer is no level."""


def grad_norm_nonfinite(run: Run) -> Evidence | None:
    """The gradient norm is NaN or infinite.

    Not this when: single steps far apart, or the first steps only, are lost and the loss goes on as before, as with a
    loss scaler (a remark), which may tell that it skipped each of them; none is finite although the loss is learnt.
    """
    norm = run["grad_norm"]
    gone = lost(norm)
    if gone is None:
        return None
    if gone.bad.all():
        refuse_uncomputed(run, norm, "not finite")
    records = len(norm)
    later = gone.count if run.step_name != "step" else int((gone.bad & (norm.step > SETTLING)).sum())
    sound = "loss" not in run or bool(np.isfinite(run["loss"].value).all())
    rare = later / records <= ISOLATED or (later / records <= CAUGHT and are_skipped(run, norm.step[gone.bad]))
    isolated = sound and rare and not bool(gone.bad[-1])
    return Evidence(
        f"grad_norm is {gone.kind} at {run.place(gone.step)}; {gone.count} of {records} values are not finite"
        f"{'; the loss stays finite and the norm recovers each time' if isolated else ''}",
        steps=(gone.step,),
        values={"count": gone.count, "share": gone.count / records},
        present=not isolated,
    )


def grad_norm_never_finite(nonfinite: Evidence, run: Run) -> Evidence | None:
    """No gradient norm is finite from the first record on, and each loss is.

    So it is where each step is skipped for overflow. Not this when: any norm is finite; a loss is lost as well.
    """
    never = nonfinite.values["share"] == 1 and "loss" in run
    return nonfinite if never and bool(np.isfinite(run["loss"].value).all()) else None


def grad_norm_zero(run: Run) -> Evidence | None:
    """The gradient norm is exactly zero in most records, or in all from some step on.

    Not this when: single zeros occur in GRPO, where a group of equal rewards gives no gradient; all are zero although
    the loss moves, so that it is just not computed.
    """
    norm = run["grad_norm"].finite
    zero = norm.value == 0
    if zero.all():
        refuse_uncomputed(run, norm, "0")
    tail = len(zero) if zero.all() else int(np.argmin(zero[::-1]))
    if zero.mean() < ZERO_SHARE and tail < max(LEAST - 2, len(zero) * ZERO_SHARE**2):
        return None
    first = float(norm.step[int(np.argmax(zero))])
    said = f"grad_norm is exactly 0 at {run.place(first)} and in {int(zero.sum())} of {len(zero)} records"
    return Evidence(said, steps=(first,), values={"share": float(zero.mean()), "records_at_end": tail})


def grad_norm_vanishing(run: Run) -> Evidence | None:
    """The gradient norm is tiny for this kind of run, or has fallen a thousandfold while the loss has not.

    Tiny is a fiftieth of what is usual, or a tenth of what the labels of a batch give the last bias of a classifier.
    Not this when: the loss is nearly zero; the norm is exactly zero (`grad_norm_zero`).
    """
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if not len(norm) or (len(norm) < LEAST and norm.value.max() >= TINY**2):
        raise CannotTell(f"{len(norm)} positive gradient norms; {LEAST} are needed")
    rewards = rewards_of(run)
    if rewards is not None and most_earned(rewards) is not None:
        return None  # what earns all that there is has nothing to learn
    moved, of_labels = loss_moved(run), label_noise_norm(run)
    if moved < SMALL_LOSS and run.kind != "grpo":
        return None
    typical, start = median(sample(norm.value[len(norm) // 2 :])), start_level(norm.value)
    stands = of_labels is not None and "loss" in run and len(run["loss"].finite) >= LEAST and moved > 1 - SMALL_LOSS
    bound = LOW.get(run.kind, max(TINY, BELOW_LABELS * of_labels) if stands and of_labels is not None else TINY)
    if typical >= bound and not (len(norm) >= COURSE and start > FALL * typical):
        return None
    below = bound if typical < bound else start / FALL
    first = float(norm.step[int(np.argmax(norm.value < below))])
    return Evidence(
        f"grad_norm has a median of {figure(typical)} over the later half of {len(norm)} records; it began at "
        f"{figure(start)} and is below {figure(below)} from {run.place(first)} on",
        steps=(first,),
        values={"median": typical, "start": start, "bound": bound},
    )


def grad_norm_of_labels(run: Run) -> Evidence | None:
    """The loss is that of a uniform guess, and the gradient no larger than what its labels give the last bias alone.

    Of C classes in a batch of B that is sqrt((1 - 1/C) / B): all other weights get next to nothing. Not this when: the
    norm is larger, as where learning is slow; classes or batch are not in the configuration.
    """
    expected, norm, loss = label_noise_norm(run), run["grad_norm"].finite, run["loss"].finite
    if expected is None or run.facts.classes is None or min(len(norm), len(loss)) < LEAST:
        raise CannotTell(f"the classes and the batch are not both configured, or {LEAST} norms and losses not logged")
    typical, guess = median(sample(norm.value[len(norm) // 2 :])), math.log(run.facts.classes)
    if abs(end_level(loss.value) / guess - 1) > AT_CHANCE or not AS_LABELS[0] <= typical / expected <= AS_LABELS[1]:
        return None
    return Evidence(
        f"grad_norm has a median of {figure(typical)} over the later half; the labels of a batch alone give the last "
        f"bias {figure(expected)}, and the loss is that of a guess, {figure(end_level(loss.value))}",
        steps=(float(norm.step[len(norm) // 2]),),
        values={"median": typical, "of_labels": expected},
    )


def grad_norm_high(run: Run) -> Evidence | None:
    """The gradient norm lies above what is stable for this kind of run in a good part of the records.

    Not this when: single records do (`grad_norm_spike`); the loss is as large, as a sum over rows or an error in large
    units. Healthy runs of classic RL, diffusion and fp16 Megatron have norms of 1e4 to 1e6.
    """
    norm, of_kind = run["grad_norm"].finite, HIGH.get(run.kind)
    unscaled = run.kind in ANY_SCALE or run.facts.precision == "fp16" or "loss_scale" in run
    if len(norm) < LEAST or (of_kind is None and (unscaled or "loss" not in run)):
        raise CannotTell(f"no usual gradient norm is known for this kind of run, or fewer than {LEAST} are logged")
    bound = of_kind if of_kind is not None else OF_ANY * max(1.0, abs(median(run["loss"].finite.value)))
    late = norm.where(np.arange(len(norm)) >= len(norm) // COURSE)
    high = late.value > bound
    if high.mean() < (HIGH_SHARE if of_kind is not None else ZERO_SHARE) or high.sum() <= 2:
        return None
    first = float(late.step[int(np.argmax(high))])
    return Evidence(
        f"grad_norm is above {figure(bound)} in {high.mean():.0%} of {len(late)} records, first at {run.place(first)}; "
        f"its median is {figure(median(late.value))}",
        steps=(first,),
        values={"share": float(high.mean()), "median": median(late.value), "bound": bound},
    )


_NORM, _SOURCES = ("grad_norm",), ("axolotl_stability",)
READINGS = (
    reading(
        grad_norm_nonfinite,
        needs=_NORM,
        sources=_SOURCES,
        background=0.005,
        follows=("loss_nonfinite",),
        instead=("grad_norm_growing", "loss_scale_falls", "steps_skipped"),
    ),
    reading(grad_norm_zero, needs=_NORM, points=2, sources=_SOURCES, background=0.003),
    reading(grad_norm_vanishing, needs=_NORM, points=2, sources=_SOURCES, background=0.01),
    reading(grad_norm_of_labels, needs=("grad_norm", "loss"), points=2, background=0.002),
    reading(grad_norm_high, needs=_NORM, points=2, sources=_SOURCES),
)
"""How each outcome is seen. Chosen: the fit counts the backgrounds anew."""


@question(
    *(one.outcome for one in READINGS),
    outcome_of(grad_norm_never_finite, 0.003, of="grad_norm_nonfinite", as_chosen=True),
    needs=_NORM,
)
def gradient_level(run: Run) -> Answers:
    """Ask for norms that are not finite, zero, too small or too large: the first seen is told."""
    return with_attribute(first_of(run, READINGS), "grad_norm_nonfinite", grad_norm_never_finite, run)
