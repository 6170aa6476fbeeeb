"""Jump of the loss where the run was resumed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median, noise
from mldebug_mcp.text import figure

SHARE = 0.05
SIGMAS = 5.0
AROUND = 10
"""Records before the join that stand for the level there; of those after it, half as many: a jump may recover."""
BACKGROUND = 0.002
"""How often a sound run shows it, among all: one in ten is resumed in its log, of which one in fifty jumps so.

It is judged in resumed runs alone, so that the priors of causes, which are shares of all runs, come too low for them.
Chosen by hand."""
MANY = 20
"""Resumes that a log tells of: of more it is no news."""
GAP = 5.0
"""Times the usual distance between records: so long a gap in the steps is a part of the log that is missing."""


@dataclass(frozen=True, slots=True)
class Join:
    """Where one stretch of a run goes on from another.

    Args:
        step: First step after the join.
        before, after: Level of the loss on either side.
        jump: What their difference has beyond the trend of either side.
        error: Standard error of their difference.
        replayed: Whether both sides stand at the same step, so that a fall means something too.
    """

    step: float
    before: float
    after: float
    jump: float
    error: float
    replayed: bool

    @property
    def jumped(self) -> bool:
        """Whether the loss jumps beyond noise: up, or also down where the same steps were run again."""
        size = abs(self.jump) if self.replayed else self.jump
        return size > max(SHARE * abs(self.before), SIGMAS * self.error)


@symptom(
    needs=("loss",),
    sources=("bekman_mle",),
    points=8,
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
    background=BACKGROUND,
    as_chosen=True,
)
def loss_jump_at_resume(run: Run) -> Evidence | None:
    """The training loss jumps where the run was resumed, by its steps or its words, or across a gap in the steps.

    Not this when: the second stretch starts from the beginning (another run); the jump is within the noise, or no more
    than the trend on either side. The share and the number of standard errors were chosen by hand.
    """
    joins = [join for join in (*_resumes(run), *_told(run), *_gaps(run)) if join is not None]
    if not joins:
        raise CannotTell("the log shows no resume: it tells of none, and its steps neither fall back nor have a gap")
    found = [join for join in joins if join.jumped]
    if not found:
        return None
    worst = max(found, key=lambda join: abs(join.jump))
    more = f"; {len(found)} such jumps at {len(joins)} joins" if len(joins) > 1 else ""
    resumed = worst.replayed or worst.step in run.resumes
    where = "where the run was resumed" if resumed else "after a gap in the logged steps"
    return Evidence(
        f"loss goes from {figure(worst.before)} to {figure(worst.after)} at {run.step_name} {figure(worst.step)}, "
        f"{where}{more}",
        steps=(worst.step, *(join.step for join in found if join is not worst))[:10],
        values={"before": worst.before, "after": worst.after, "jump": worst.after - worst.before, "joins": len(joins)},
    )


def _resumes(run: Run) -> list[Join | None]:
    """Return the joins between segments; one that starts where the first began is another run."""
    joins: list[Join | None] = []
    for old, new in pairwise(run.segments):
        if "loss" not in old.series or "loss" not in new.series:
            continue
        before, after = old.series["loss"].finite, new.series["loss"].finite
        if not len(after) or after.step[0] <= old.first_step + 0.05 * (old.last_step - old.first_step):
            continue
        before = before.where(before.step <= after.step[0])
        joins.append(_join(before, after, replayed=True))
    return joins


def _told(run: Run) -> list[Join | None]:
    """Return the joins that the log tells of in words, where its steps just go on."""
    loss = run["loss"]
    if len(run.segments) > 1 or len(run.resumes) > MANY:
        return []
    parts = [(loss.where(loss.step < step).finite, loss.where(loss.step >= step).finite) for step in run.resumes]
    return [_join(before, after, replayed=False) for before, after in parts if len(after)]


def _gaps(run: Run) -> list[Join | None]:
    loss = run["loss"]  # a stretch of NaN is not a gap
    gap = np.diff(loss.step)
    if len(gap) < 8 or run.step_name != "step":
        return []
    wide = np.flatnonzero(gap > GAP * median(gap)) + 1
    # Logs that grow sparser by design have many.
    if len(wide) > max(3, len(gap) // 50):
        return []
    here = [
        (loss.where(loss.step < loss.step[at]).finite, loss.where(loss.step >= loss.step[at]).finite)
        for at in wide.tolist()
    ]
    return [_join(before, after, replayed=False) for before, after in here]


def _join(before: Series, after: Series, *, replayed: bool) -> Join | None:
    old, new = before.value[-AROUND:], after.value[: AROUND // 2]
    if len(old) < 3 or len(new) < 2:
        return None
    size = max(noise(before.value[-50:]), float(np.std(old)) / 2, noise(after.value[:50]) / 2)
    error = 1.25 * size * float(np.sqrt(1 / len(old) + 1 / len(new)))
    start, end = median(old), median(new)
    distance = median(after.step[: len(new)]) - median(before.step[-len(old) :])
    trends = [0.0, distance * _slope(before, slice(-len(old), None)), distance * _slope(after, slice(len(new)))]
    expected = min(max(end - start, min(trends)), max(trends))
    return Join(float(after.step[0]), start, end, end - start - expected, error, replayed)


def _slope(loss: Series, part: slice) -> float:
    """Return the median change for a step: early in a run the loss falls from one window to the next without a jump."""
    step, value = loss.step[part], loss.value[part]
    half = len(value) // 2
    return median((value[-half:] - value[:half]) / np.maximum(step[-half:] - step[:half], 1e-12))
