"""Is the gradient finite, and of a size from which such a run can learn?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.gradients import label_noise_norm
from mldebug_mcp.measure.statistics import edge_width, end_level, median, noise, sample, start_level
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

ISOLATED = 0.01
"""Share of steps that a loss scaler loses while it probes for its limit. Chosen: one step in a hundred."""
SETTLING = 20
"""Steps in which a scaler comes down from its first scale. Chosen: torch's 2 ** 16 is halved sixteen times."""
UNSTABLE: Mapping[str, float] = {"sft": 100.0, "grpo": 10.0}
"""Norms that are unstable, by kind of run. Source: axolotl_stability."""
USUAL: Mapping[str, tuple[float, float]] = {"sft": (0.1, 10.0), "grpo": (0.001, 1.0)}
"""Usual norms, by kind of run. Source: axolotl_stability."""
HIGH_SHARE = 0.1
"""Share of the records after the first twentieth that must be high. Chosen: fewer are spikes."""
ZERO_SHARE = 0.5
"""Share of zeros that is too many anywhere, and a fifth at the end. Chosen: groups of equal rewards give some."""
BELOW = 50.0
"""Times below the lower end of what is usual. Chosen: far outside the range."""
TINY = 1e-6
"""A norm of no averaged loss that is not small itself, for any other kind of run. Chosen: float32 resolves 1e-7."""
NOTHING = 1e-12
"""Rounding errors of float32, of which two records are enough. Chosen: far below its precision."""
BELOW_LABELS = 0.1
"""Share of what the last bias alone must get. Chosen: a tenth leaves room for labels of uneven frequency."""
AS_LABELS = (0.8, 1.2)
"""Share of what the last bias alone must get at which nothing else gets any. Fitted: on trained runs, of which those
that learn slowly have 1.5 and more.
"""
AT_CHANCE = 0.05
"""Share by which a loss at the uniform guess may miss ln C. Chosen: the noise of a level.
"""
FALL = 1000.0
"""Times that the norm fell while the loss did not. Chosen: sound norms fall by ten."""
SMALL_LOSS = 0.2
"""Share of its start below which a loss explains a small gradient. Chosen: norms fall about as the loss."""
LEAST, COURSE = 5, 20
"""Records for a level, and for a course. Chosen: a median of fewer is no level."""


def grad_norm_nonfinite(run: Run) -> Evidence | None:
    """The gradient norm is NaN or infinite.

    Not this when: single steps far apart, or the first steps only, are lost and the loss goes on as before: the skipped
    steps of a loss scaler (a remark); none is finite although the loss is learnt, so that it is just not computed.
    """
    norm = run["grad_norm"]
    bad = ~np.isfinite(norm.value)
    count = int(bad.sum())
    if not count:
        return None
    if bad.all() and _learns(run):
        raise CannotTell("no grad_norm is finite, yet the loss is learnt: the norm is not computed")
    first = int(np.argmax(bad))
    later = count if run.step_name != "step" else int((bad & (norm.step > SETTLING)).sum())
    sound = "loss" not in run or bool(np.isfinite(run["loss"].value).all())
    isolated = sound and later / len(bad) <= ISOLATED and not bool(bad[-1])
    return Evidence(
        f"grad_norm is {'NaN' if np.isnan(norm.value[first]) else 'infinite'} at {run.step_name} "
        f"{figure(float(norm.step[first]))}; {count} of {len(bad)} values are not finite"
        f"{'; the loss stays finite and the norm recovers each time' if isolated else ''}",
        steps=(float(norm.step[first]),),
        values={"count": count, "share": count / len(bad)},
        present=not isolated,
    )


def grad_norm_zero(run: Run) -> Evidence | None:
    """The gradient norm is exactly zero in most records, or in all from some step on.

    Not this when: single zeros occur in GRPO, where a group of equal rewards gives no gradient; all are zero although
    the loss moves, so that it is just not computed.
    """
    norm = run["grad_norm"].finite
    zero = norm.value == 0
    if zero.all() and _learns(run):
        raise CannotTell("grad_norm is 0 in all records, yet the loss moves: the norm is not computed")
    tail = len(zero) if zero.all() else int(np.argmin(zero[::-1]))
    if zero.mean() < ZERO_SHARE and tail < max(LEAST - 2, len(zero) * ZERO_SHARE**2):
        return None
    first = float(norm.step[int(np.argmax(zero))])
    return Evidence(
        f"grad_norm is exactly 0 at {run.step_name} {figure(first)} and in {int(zero.sum())} of {len(zero)} records",
        steps=(first,),
        values={"share": float(zero.mean()), "records_at_end": tail},
    )


def _learns(run: Run) -> bool:
    """Say whether the loss moved by far more than its noise from start to end."""
    loss = run["loss"].finite.value if "loss" in run else np.empty(0)
    if len(loss) < LEAST:
        return False
    return abs(end_level(loss) - start_level(loss)) > max(SMALL_LOSS * abs(start_level(loss)), LEAST * noise(loss))


def grad_norm_vanishing(run: Run) -> Evidence | None:
    """The gradient norm is tiny for this kind of run, or has fallen a thousandfold while the loss has not.

    Tiny is a fiftieth of the lower end of what is usual, and a tenth of what the labels of a batch alone give the last
    bias of a classifier. Not this when: the loss is nearly zero; the norm is exactly zero (`grad_norm_zero`).
    """
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < LEAST and not (len(norm) and norm.value.max() < NOTHING):
        raise CannotTell(f"{len(norm)} positive gradient norms; {LEAST} are needed")
    loss = run["loss"].finite.value if "loss" in run else np.empty(0)
    if len(loss) and run.kind != "grpo" and _falls_to(loss, SMALL_LOSS):
        return None
    typical, start = median(sample(norm.value[len(norm) // 2 :])), start_level(norm.value)
    bound = _least(run, loss)
    fell = len(norm) >= COURSE and start > FALL * typical
    if typical >= bound and not fell:
        return None
    below = bound if typical < bound else start / FALL
    first = float(norm.step[int(np.argmax(norm.value < below))])
    return Evidence(
        f"grad_norm has a median of {figure(typical)} over the later half of {len(norm)} records; it began at "
        f"{figure(start)} and is below {figure(below)} from {run.step_name} {figure(first)} on",
        steps=(first,),
        values={"median": typical, "start": start, "bound": bound},
    )


def _least(run: Run, loss: Floats) -> float:
    """Return the norm below which nothing is learnt."""
    if run.kind in USUAL:
        return USUAL[run.kind][0] / BELOW
    of_labels = label_noise_norm(run)
    if of_labels is None or len(loss) < LEAST or _falls_to(loss, 1 - SMALL_LOSS):
        return TINY
    return max(TINY, BELOW_LABELS * of_labels)


def _falls_to(loss: Floats, share: float) -> bool:
    """Say whether the loss has fallen below a share of its start."""
    edge = edge_width(len(loss))
    start, end = (median(np.abs(sample(part))) for part in (loss[:edge], loss[-edge:]))
    return end < share * start


def grad_norm_of_labels(run: Run) -> Evidence | None:
    """The loss is that of a uniform guess, and the gradient no larger than what its labels give the last bias alone.

    Of C classes in a batch of B that is sqrt((1 - 1/C) / B): all other weights get next to nothing. Not this when: the
    norm is larger, as where learning is slow; classes or batch are not in the configuration.
    """
    expected, norm, loss = label_noise_norm(run), run["grad_norm"].finite, run["loss"].finite
    if expected is None or run.facts.classes is None:
        raise CannotTell("the configuration does not tell both the classes and the batch")
    if min(len(norm), len(loss)) < LEAST:
        raise CannotTell(f"{min(len(norm), len(loss))} gradient norms or losses; {LEAST} are needed")
    typical, guess = median(sample(norm.value[len(norm) // 2 :])), math.log(run.facts.classes)
    low, high = AS_LABELS
    if abs(end_level(loss.value) / guess - 1) > AT_CHANCE or not low <= typical / expected <= high:
        return None
    return Evidence(
        f"grad_norm has a median of {figure(typical)} over the later half; the labels of a batch alone give the last "
        f"bias {figure(expected)}, and the loss is that of a guess, {figure(end_level(loss.value))}",
        steps=(float(norm.step[len(norm) // 2]),),
        values={"median": typical, "of_labels": expected},
    )


def grad_norm_high(run: Run) -> Evidence | None:
    """The gradient norm lies above what is stable for this kind of run in a good part of the records.

    Not this when: single records do (`grad_norm_spike`); the run is of a kind without a known range. Healthy runs of
    classic RL, diffusion and fp16 Megatron have norms of 1e4 to 1e6.
    """
    bound = UNSTABLE.get(run.kind)
    if bound is None:
        raise CannotTell("no usual gradient norm is known for this kind of run")
    norm = run["grad_norm"].finite
    if len(norm) < LEAST:
        raise CannotTell(f"grad_norm has {len(norm)} finite values here; {LEAST} are needed")
    late = norm.where(np.arange(len(norm)) >= len(norm) // COURSE)
    high = late.value > bound
    if high.mean() < HIGH_SHARE or high.sum() <= 2:
        return None
    low, top = USUAL[run.kind]
    first = float(late.step[int(np.argmax(high))])
    return Evidence(
        f"grad_norm is above {figure(bound)} in {high.mean():.0%} of {len(late)} records, first at {run.step_name} "
        f"{figure(first)}; its median is {figure(median(late.value))}; usual are {figure(low)} to {figure(top)}",
        steps=(first,),
        values={"share": float(high.mean()), "median": median(late.value), "bound": bound},
    )


_NORM = ("grad_norm",)
READINGS = (
    reading(
        grad_norm_nonfinite,
        needs=_NORM,
        sources=("axolotl_stability",),
        background=0.005,
        follows=("loss_nonfinite",),
        instead=("grad_norm_growing", "loss_scale_falls", "steps_skipped"),
    ),
    reading(grad_norm_zero, needs=_NORM, points=2, sources=("axolotl_stability",), background=0.003),
    reading(grad_norm_vanishing, needs=_NORM, points=2, sources=("axolotl_stability",), background=0.01),
    reading(grad_norm_of_labels, needs=("grad_norm", "loss"), points=2, background=0.002),
    reading(grad_norm_high, needs=_NORM, points=2, sources=("axolotl_stability",)),
)
"""How each outcome is seen, of how many values, and how often a healthy run shows it. Chosen: the fit counts the
backgrounds anew."""


NEVER_FINITE = Outcome(
    "grad_norm_never_finite",
    """No gradient norm is finite from the first record on, and each loss is.

    So it is where each step is skipped for overflow. Not this when: any norm is finite; a loss is lost as well.
    """,
    background=0.003,
    of="grad_norm_nonfinite",
    as_chosen=True,
)


@question(*(one.outcome for one in READINGS), NEVER_FINITE, needs=_NORM)
def gradient_level(run: Run) -> Answers:
    """Ask for norms that are not finite, zero, too small or too large: the first seen is told."""
    answers = first_of(run, READINGS)
    lost = answers.get("grad_norm_nonfinite")
    if not isinstance(lost, Evidence) or lost.values["share"] < 1 or "loss" not in run:
        return answers
    sound = bool(np.isfinite(run["loss"].value).all())
    return {**answers, "grad_norm_never_finite": lost} if sound else answers
