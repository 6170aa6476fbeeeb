"""Does the gradient norm keep its level: does it rise over the run, or jump out of it?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.spikes import Spike, baseline, spikes
from mldebug_mcp.measure.statistics import blocks, mad, median, start_level
from mldebug_mcp.measure.turning import fails_at
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

GROWS, FAR = 4.0, 25.0
"""Times the early level at the end. Chosen: healthy norms drift by less than 4, and as rates decay by up to 10."""
SIGMAS = 6.0
"""Times the scatter of block medians that a growth must exceed. Chosen: chance in thousands of runs."""
LEAST, BLOCKS = 20, 20
"""Records, and the blocks that they are cut into. Chosen: blocks of a record or more."""
RISING = 0.8
"""Share of pairs of blocks of which the later is the higher: a trend, not one step. Chosen: chance gives a half."""
JUMPS = 10.0
"""Times the recent level: norms of 0.1 to 10 are healthy in fine-tuning, 100 unstable. Source: axolotl_stability."""
SPREADS = 8.0
"""Standard deviations of the logarithm that a jump must exceed. Chosen: heavy tails of small batches stay below."""
FEWEST = 12
"""Norms from which a jump is told. Chosen: a window of six before it, and some behind."""
WIDEST, NARROWEST = 50, 6
"""Records of the window before a jump, at most and at least. Chosen: a twentieth of the log between these."""
USUAL_SHARE, USUAL = 0.02, 5
"""Jumps, as a share of the records or in number, that are no exceptions. Chosen: then the norm is just noisy."""
END, BEGINS = 3, 4
"""Blocks that are the end, and the part of the rise where it begins. Chosen: an outlier in one moves no median."""
POLICIES = ("rl", "ppo", "grpo")


@question(
    Outcome(
        "grad_norm_growing",
        """The gradient norm grows over the run to several times its early level.

        Not this when: it jumps and comes back (`grad_norm_spike`), or grows within the first steps only. Unknown where
        it grows only once the loss rises, which is no more than the loss says, and for agents.
        """,
        background=0.03,
        sources=("axolotl_stability",),
    ),
    Outcome(
        "grad_norm_grows_far",
        """The gradient norm grows to more than 25 times its early level, whatever the loss does meanwhile.

        Clipping hides it in the loss for as long as the direction is still good. Not this when: it grows by less.
        """,
        background=0.002,
        sources=("axolotl_stability",),
        of="grad_norm_growing",
    ),
    Outcome(
        "grad_norm_spike",
        """The gradient norm jumps to many times its recent level.

        Not this when: norms vary by that much all the time; the first steps of a run; a policy with little left to
        learn meets a surprise, and its norm is still no larger than in the first records.
        """,
        background=0.02,
        sources=("axolotl_stability",),
        as_chosen=True,
        follows=("loss_spike",),
    ),
    needs=("grad_norm",),
    points=FEWEST,
)
def gradient_course(run: Run) -> Answers:
    """Compare the later blocks of the norm with the earlier ones, then each record with those before it."""
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < FEWEST:
        raise CannotTell(f"{len(norm)} positive gradient norms; {FEWEST} are needed")
    growing = _growing(run, norm)
    if isinstance(growing, Evidence):
        far = growing.values["factor"] >= FAR
        return {"grad_norm_growing": growing, **({"grad_norm_grows_far": growing} if far else {})}
    jump = _jump(run, norm)
    said = {"grad_norm_growing": growing, "grad_norm_spike": jump}
    return {name: one for name, one in said.items() if one is not None}


def _growing(run: Run, norm: Series) -> Evidence | CannotTell | None:
    if run.kind == "rl":
        return CannotTell("not judged for a run of kind rl")
    if len(norm) < LEAST:
        return CannotTell(f"{len(norm)} positive gradient norms; {LEAST} are needed")
    found = _growth(run, norm)
    turn = fails_at(run["loss"]) if found is not None and "loss" in run else None
    if turn is not None and _growth(run, norm.where(norm.step <= turn)) is None:
        return CannotTell(f"it grows only from {run.step_name} {figure(turn)} on, as the loss does")
    return found


def _growth(run: Run, norm: Series) -> Evidence | None:
    if len(norm) < LEAST:
        return None
    cut = blocks(np.log(norm.value), BLOCKS)
    level = cut.level[1:]
    lowest = int(np.argmin(level[: max(1, len(level) // 2)]))
    after = level[lowest:]
    least, end = float(level[lowest]), median(level[-END:])
    later = (after[None, :] > after[:, None])[np.triu_indices(len(after), 1)]
    rise = end - least
    if rise < max(np.log(GROWS), SIGMAS * cut.wobble) or later.mean() < RISING:
        return None
    quarter = int(np.argmax(after > least + rise / BEGINS))
    first = float(norm.step[int(cut.first[1 + lowest + quarter])])
    return Evidence(
        f"grad_norm grows from {figure(float(np.exp(least)))} to {figure(float(np.exp(end)))} from "
        f"{run.step_name} {figure(first)} on",
        steps=(first,),
        values={"from": float(np.exp(least)), "to": float(np.exp(end)), "factor": float(np.exp(rise))},
    )


def _jump(run: Run, norm: Series) -> Evidence | None:
    found = _jumps(norm)
    if run.kind in POLICIES:
        found = [spike for spike in found if norm.value[spike.peak] > start_level(norm.value)]
    if not found or len(found) > max(USUAL, USUAL_SHARE * len(norm)):
        return None
    worst = max(found, key=lambda spike: spike.height)
    at, top = float(norm.step[worst.first]), float(norm.value[worst.peak])
    more = f"; {len(found)} such jumps in all" if len(found) > 1 else ""
    level = float(np.exp(worst.level))
    return Evidence(
        f"grad_norm jumps from {figure(level)} to {figure(top)} at {run.step_name} {figure(at)}{more}",
        steps=(at, *(float(norm.step[spike.first]) for spike in found if spike is not worst))[:10],
        values={"level_before": level, "peak": top, "factor": float(np.exp(worst.height)), "count": len(found)},
    )


def _jumps(norm: Series) -> list[Spike]:
    """Return where the logarithm of the norm stands far above its level, in units of its own scatter."""
    log = np.log(norm.value)
    width = int(np.clip(len(log) // BLOCKS, NARROWEST, WIDEST))
    base = baseline(log, width)
    overall = mad(base.rest(log))
    spread = np.clip(base.spread, overall / 2, overall)  # a window may happen to be loud or quiet
    threshold = np.maximum(SPREADS * spread, np.log(JUMPS))
    return spikes(log, width, threshold, base, skip=width) if base.is_exceeded(log, threshold) else []
