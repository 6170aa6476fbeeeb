"""Staircase falls of the loss at epoch boundaries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.pass_profile import UNKNOWN_EPOCHS, epochs_of
from mldebug_mcp.measure.statistics import median, noise
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted, figure

LEAST_PER_EPOCH = 8
SHARE = 0.5
"""At least this share of all the fall from the middle of the first epoch on happens at the boundaries."""
LEAST_DROP = 0.04
"""... and a typical drop is this share of the level."""
MUCH = 0.125
"""Below this share it is a remark: healthy fine-tunes over several epochs lose 5 to 10 % at each boundary."""
MUCH_OF_PAIRS = 0.4
"""... and in preference tuning this share: DPO over two or three epochs is known for its steps. Chosen by hand."""
SIGMAS = 4.0


@symptom(
    needs=("loss",),
    sources=("smol_playbook",),
    points=24,
    not_for=("grpo", "ppo", "rl"),
    background=0.08,
    follows=("loss_pattern_by_epoch",),
)
def loss_epoch_steps(run: Run) -> Evidence | None:
    """The training loss falls in a step at each epoch boundary and is flat in between.

    Many healthy fine-tunes over several epochs show it: small steps are a remark. Not this when: it falls evenly; the
    learning rate is cut there; the records are means over whole epochs. Needs the epoch of each record or the steps
    per epoch. The shares were chosen on synthetic curves.
    """
    loss = run["loss"].finite
    epoch = epochs_of(run, loss)
    if epoch is None:
        raise CannotTell(UNKNOWN_EPOCHS)
    bounds = np.flatnonzero(np.diff(epoch) > 0) + 1
    if not len(bounds):
        raise CannotTell("the log does not reach a second epoch")
    length = int(median(np.diff(np.concatenate([[0], bounds])))) if len(bounds) > 1 else int(bounds[0])
    bounds = bounds[(bounds >= LEAST_PER_EPOCH) & (bounds <= len(loss) - max(3, LEAST_PER_EPOCH // 2))]
    if length < LEAST_PER_EPOCH or not len(bounds):
        raise CannotTell(f"about {counted(length, 'record')} per epoch; {LEAST_PER_EPOCH} are needed")
    side = max(3, length // 4)
    before = np.array([median(loss.value[max(0, at - side) : at]) for at in bounds])
    after = np.array([median(loss.value[at : at + side]) for at in bounds])
    drops = before - after
    error = 1.25 * noise(loss.value[side:]) * np.sqrt(2 / side)
    start = median(loss.value[length // 2 : length // 2 + side])
    fall = start - median(loss.value[-side:])
    typical = median(drops)
    clear = drops > max(SIGMAS * error, LEAST_DROP / 2 * median(before))
    if clear.mean() < 0.6 or typical < LEAST_DROP * median(before) or drops.sum() < SHARE * fall:
        return None
    if _rate_is_cut(run, loss.step[bounds]):
        return None
    first = int(np.argmax(clear))
    return Evidence(
        f"loss falls by {figure(typical)} (median) at {int(clear.sum())} of {len(bounds)} epoch boundaries, first from "
        f"{figure(float(before[first]))} to {figure(float(after[first]))} at {run.step_name} "
        f"{figure(float(loss.step[bounds[first]]))}; that is {min(1.0, drops.sum() / fall if fall > 0 else 1.0):.0%} "
        "of the fall since the middle of the first epoch",
        steps=tuple(float(step) for step in loss.step[bounds[clear]][:10]),
        values={"drop": typical, "boundaries": len(bounds), "clear": int(clear.sum())},
        present=typical >= (MUCH_OF_PAIRS if run.kind == "preference" else MUCH) * median(before),
    )


def _rate_is_cut(run: Run, steps: NDArray[np.float64]) -> bool:
    """Say whether the learning rate falls by a third or more at most of the boundaries."""
    if "learning_rate" not in run or run.step_name != "step":
        return False
    rate = run["learning_rate"].finite
    if len(rate) < 4:
        return False
    at = np.clip(np.searchsorted(rate.step, steps), 1, len(rate) - 1)
    return bool(np.mean(rate.value[at] < 0.67 * rate.value[at - 1]) > 0.5)
