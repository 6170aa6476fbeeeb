"""Is the gradient of a size from which such a run can learn?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.gradients import fall_of
from mldebug_mcp.measure.statistics import edge_width, end_level, median, noise, sample, start_level
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

UNSTABLE = {"sft": 100.0, "grpo": 10.0}
"""Axolotl, "Key Metrics": SFT 0.1 to 10, above 100 unstable; GRPO 0.001 to 1, above 10 unstable."""
USUAL = {"sft": (0.1, 10.0), "grpo": (0.001, 1.0)}
HIGH_SHARE = 0.1
"""Of the records after the first twentieth: fewer are spikes (`grad_norm_spike`). Chosen by hand."""
LEAST_HIGH = 5
ZERO_SHARE = 0.5
FAR_BELOW = {"sft": 0.1 / 50, "grpo": 0.001 / 50}
"""A fiftieth of the lower end of Axolotl's usual range ("Key Metrics")."""
TINY = 1e-6
"""For any other kind: with a loss that is not small itself, no averaged loss has so small a gradient."""
LEAST, NOTHING = 5, 1e-12
"""Records, but two are enough of norms that are rounding errors of float32: chosen far below its precision, 1e-7."""
FALL = 1000.0
SMALL_LOSS = 0.2
"""Where the loss fell below this share of its start, a small gradient is expected."""
SUDDEN = 30.0
"""A fall by this factor within two records for good; norms of sound runs fall by less, or more slowly. By hand."""
NO_BETTER = 0.02
"""A loss that is lower by this share after the fall has learnt something by it. Chosen by hand."""
REWARDED = ("grpo", "ppo", "rl")


@question(
    Outcome(
        "grad_norm_zero",
        """The gradient norm is exactly zero in most records, or in all from some step on.

        Not this when: single zeros occur in GRPO, where a group of equal rewards gives no gradient; it is zero in all
        records although the loss moves, so that it is just not computed. The share, half, was chosen by hand.
        """,
        background=0.003,
        sources=("axolotl_stability",),
    ),
    Outcome(
        "grad_norm_vanishing",
        """The gradient norm is tiny for this kind of run, or has fallen a thousandfold while the loss has not.

        Not this when: the loss is nearly zero, so that nothing is left to learn; the norm is exactly zero
        (`grad_norm_zero`). How far below the usual range counts was chosen by hand.
        """,
        background=0.01,
        sources=("axolotl_stability",),
    ),
    Outcome(
        "grad_norm_high",
        """The gradient norm lies above what is stable for this kind of run in a good part of the records.

        Not this when: single records do (`grad_norm_spike`); the run is of a kind without a known range. Healthy runs
        of classic RL, diffusion and fp16 Megatron have norms of 1e4 to 1e6: their bands are not known, and not judged.
        """,
        background=0.02,
        sources=("axolotl_stability",),
    ),
    Outcome(
        "grad_norm_drops",
        """The gradient norm falls by a factor of thirty or more within two records for good, and the loss does not.

        Not this when: the loss is lower afterwards, or nearly zero; it falls slowly, or comes back; a policy is
        trained, whose norm falls when rewards are alike. The factor was chosen by hand.
        """,
        background=0.004,
        needs=("loss",),
    ),
    needs=("grad_norm",),
    points=2,
)
def gradient_level(run: Run) -> Answers:
    """Ask for zeros, then for norms too small, too large and suddenly small: the first that is seen is told."""
    said: dict[str, Evidence | CannotTell] = {}
    for name, detect in _DETECTORS.items():
        try:
            found = detect(run)
        except CannotTell as why:
            said[name] = why
            continue
        if found is not None:
            return {name: found}
    return said


def _zero(run: Run) -> Evidence | None:
    norm = run["grad_norm"].finite
    zero = norm.value == 0
    if zero.all() and _learns(run):
        raise CannotTell("grad_norm is 0 in all records, yet the loss moves: the norm is not computed")
    tail = len(zero) if zero.all() else int(np.argmin(zero[::-1]))
    if zero.mean() < ZERO_SHARE and (tail < 3 or tail * 5 < len(zero)):
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
    moved = abs(end_level(loss) - start_level(loss))
    return moved > max(0.3 * abs(start_level(loss)), 6 * noise(loss))


def _vanishing(run: Run) -> Evidence | None:
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < LEAST and not (len(norm) and norm.value.max() < NOTHING):
        raise CannotTell(f"{len(norm)} positive gradient norms; {LEAST} are needed")
    loss = run["loss"].finite.value if "loss" in run else np.empty(0)
    if len(loss) and run.kind != "grpo" and _is_small(loss):
        return None
    typical = median(sample(norm.value[len(norm) // 2 :]))
    start = start_level(norm.value)
    bound = FAR_BELOW.get(run.kind, TINY)
    fell = len(norm) >= 20 and start > FALL * typical
    if typical >= bound and not fell:
        return None
    low = norm.value < (bound if typical < bound else start / FALL)
    first = float(norm.step[int(np.argmax(low))])
    return Evidence(
        f"grad_norm has a median of {figure(typical)} over the later half of {len(norm)} records; it began at "
        f"{figure(start)} and is below {figure(bound if typical < bound else start / FALL)} from {run.step_name} "
        f"{figure(first)} on",
        steps=(first,),
        values={"median": typical, "start": start, "bound": bound},
    )


def _is_small(loss: Floats) -> bool:
    """Say whether the loss has fallen so far that a small gradient is what one expects."""
    edge = edge_width(len(loss))
    start, end = (median(np.abs(sample(part))) for part in (loss[:edge], loss[-edge:]))
    return end < SMALL_LOSS * start


def _high(run: Run) -> Evidence | None:
    bound = UNSTABLE.get(run.kind)
    if bound is None:
        raise CannotTell("no usual gradient norm is known for this kind of run")
    norm = run["grad_norm"].finite
    if len(norm) < LEAST_HIGH:
        raise CannotTell(f"grad_norm has {len(norm)} finite values here; {LEAST_HIGH} are needed")
    late = norm.where(np.arange(len(norm)) >= len(norm) // 20)
    high = late.value > bound
    if high.mean() < HIGH_SHARE or high.sum() < 3:
        return None
    low, top = USUAL[run.kind]
    first = float(late.step[int(np.argmax(high))])
    return Evidence(
        f"grad_norm is above {figure(bound)} in {high.mean():.0%} of {len(late)} records, first at {run.step_name} "
        f"{figure(first)}; its median is {figure(median(late.value))}; usual are {figure(low)} to "
        f"{figure(top)}",
        steps=(first,),
        values={"share": float(high.mean()), "median": median(late.value), "bound": bound},
    )


def _drops(run: Run) -> Evidence | None:
    if run.kind in REWARDED or "loss" not in run:
        raise CannotTell("no loss is logged, or a policy is trained")
    norm, loss = run["grad_norm"].finite, run["loss"].finite
    fall = None if _is_small(loss.value) else fall_of(norm)
    if fall is None or fall.before < SUDDEN * fall.after:
        return None
    before, after = loss.value[loss.step < fall.step], loss.value[loss.step >= fall.step]
    if len(before) < LEAST or not len(after):
        raise CannotTell("too few losses before or after the fall of grad_norm")
    recent = median(before[-2 * LEAST :])
    if end_level(after) < recent - max(NO_BETTER * abs(recent), noise(before)):
        return None
    return Evidence(
        f"grad_norm falls from {figure(fall.before)} to {figure(fall.after)} at {run.step_name} {figure(fall.step)} "
        f"and stays there; the loss goes from {figure(recent)} to {figure(end_level(after))}",
        steps=(fall.step,),
        values={"before": fall.before, "after": fall.after, "factor": fall.before / fall.after},
    )


_DETECTORS: dict[str, Callable[[Run], Evidence | None]] = {
    "grad_norm_zero": _zero,
    "grad_norm_vanishing": _vanishing,
    "grad_norm_high": _high,
    "grad_norm_drops": _drops,
}
