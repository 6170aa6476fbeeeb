"""Reward drops after it had risen."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.policy import NOT_POLICY, REWARDS, TEXT_POLICIES, averaged, reward
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, departure, end_level
from mldebug_mcp.text import counted, figure

LEAST_RECORDS = 20
SHARE_OF_RISE = 0.5
"""At least half of what was gained is lost again."""
SHARE_OF_LEVEL = 0.3
"""... and this share of the best level, where a language model is trained: it begins with what it was given."""
AT_ONCE = 3
HALF = 0.5
OFTEN = 3.0
"""Lost at once: no record after the first three brings half of the first. That was more than luck, as the spread
between completions was at most three times their mean: of right and wrong answers, a tenth were right. By hand."""
SIGMAS = 6.0
"""... and the fall stands this far above the noise of block medians."""


@symptom(
    any_of=REWARDS,
    sources=("remote_gpu_trainer",),
    not_for=NOT_POLICY,
    background=0.006,
    follows=("reward_sinks",),
)
def reward_falls(run: Run) -> Evidence | None:
    """The mean reward falls far below the best level it had, and is still there at the end of the log.

    Not this when: it dips and comes back; the returns of an agent only swing; an agent is worse than random at first
    and learns later. The shares were chosen on simulated curves.
    """
    rewards = averaged(run, reward(run))
    value = rewards.value
    if len(value) < LEAST_RECORDS:
        raise CannotTell(f"reward has {counted(len(value), 'finite value')} here; {LEAST_RECORDS} are needed")
    if run.kind in TEXT_POLICIES and (lost := _lost_at_once(run, rewards)) is not None:
        return lost
    cut = blocks(value, 20)
    best = int(np.argmax(cut.level))
    top, end = float(cut.level[best]), end_level(value)
    rise = top - float(cut.level[: best + 1].min())
    rose = rise > 4 * cut.wobble
    if not rose and run.kind not in TEXT_POLICIES:
        return None
    needed = max(SHARE_OF_RISE * rise if rose else SHARE_OF_LEVEL * abs(top), SIGMAS * cut.wobble, 1e-9)
    fall = top - end
    tail = value[-max(3, len(value) // 10) :]
    if fall < needed or float(np.quantile(tail, 0.8)) > top - needed / 2:
        return None
    after = int(cut.first[best])
    onset = float(rewards.step[after + departure(value[after:], end)])
    before = f"after it had risen from {figure(top - rise)}" if rose else "without having risen before"
    return Evidence(
        f"reward falls from {figure(top)} to {figure(end)} from {run.step_name} {figure(onset)} on, {before}, "
        "and stays down to the end of the log",
        steps=(onset,),
        values={"best": top, "end": end, "rise_before": rise, "fall": fall},
    )


def _lost_at_once(run: Run, rewards: Series) -> Evidence | None:
    """Return what is seen of a policy that never again earns what it earned before its first updates."""
    first, rest = float(rewards.value[0]), rewards.value[AT_ONCE:]
    if first <= 0 or float(rest.max()) >= HALF * first or "reward_std" not in run:
        return None
    spread = run["reward_std"].finite.value
    if not len(spread) or float(spread[0]) > OFTEN * first:
        return None
    at, end = float(rewards.step[int(np.argmax(rewards.value < HALF * first))]), end_level(rewards.value)
    return Evidence(
        f"reward falls from {figure(first)} to {figure(end)} at {run.step_name} {figure(at)}, without having risen "
        "before, and stays down to the end of the log",
        steps=(at,),
        values={"best": first, "end": end, "fall": first - end},
    )
