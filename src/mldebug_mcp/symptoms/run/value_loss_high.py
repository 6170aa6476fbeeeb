"""Value loss explodes."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.policy import NOT_POLICY
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, departure, end_level, median, median_of_three
from mldebug_mcp.text import counted, figure

GROWTH = 30.0
"""The level rises to this multiple of the lowest level before it."""
IMPOSSIBLE = 1e6
"""... or passes, on the way, this multiple of the squared reward: with a discount of 0.99 values err by 200 rewards."""
LEAST_IMPOSSIBLE = 1000.0
"""... or what follows from the longest episode: were the reward that of a step, returns would be at most as many of it
as the episode has steps. Not below this: most episodes may bring nothing, and few a lot."""
UNEXPLAINED = 100.0
"""... or this one, where beside it the critic explains nothing of the returns, as one far from them does. In 23 sound
runs that log it the multiple is at most 0.2, also where little is explained; where targets run away, above 6,000."""
NOTHING = 0.05
MOSTLY = 0.75
"""An explained variance this near to zero, in this share of the records, is none."""
GROWTH_ALONE = 1000.0
"""... or to this one where no reward tells the scale of returns."""


@symptom(any_of=("value_loss", "loss"), sources=("jones_rl_debugging",), not_for=NOT_POLICY, background=0.004)
def value_loss_high(run: Run) -> Evidence | None:
    """The loss of the value function or critic grows by orders of magnitude, past what returns can explain.

    Not this when: it is large because returns are large; it grows with the returns as the agent learns; it wobbles and
    never reaches zero; it jumps within what returns can explain and comes back.
    The multiples were chosen on simulated curves.
    """
    loss = _critic_loss(run)
    if np.isinf(loss.value).any():
        at = float(loss.step[int(np.argmax(np.isinf(loss.value)))])
        return Evidence(f"value_loss is infinite at {run.step_name} {figure(at)}", steps=(at,), values={"end": np.inf})
    loss = loss.finite
    scale, nothing = _return_scale(run), _explains_nothing(run)
    if len(loss) < 8:
        beyond = _beyond_returns(run, loss, scale, nothing=nothing) if len(loss) and scale is not None else None
        if beyond is not None:
            return beyond
        raise CannotTell(f"value_loss has {counted(len(loss), 'finite value')} here; 8 are needed")
    return _grown(run, loss, scale, nothing=nothing)


def _critic_loss(run: Run) -> Series:
    """Return the loss of the critic; that of Q-learning, which has nothing but a critic, is called the loss."""
    if "value_loss" in run:
        return run["value_loss"]
    # The loss of a policy takes both signs.
    if run.kind == "rl" and "policy_loss" not in run and not bool(np.any(run["loss"].finite.value < 0)):
        return run["loss"]
    raise CannotTell("not logged: value_loss")


def _grown(run: Run, loss: Series, scale: float | None, *, nothing: bool) -> Evidence | None:
    size = np.abs(loss.value)
    cut = blocks(size, 20)
    before, end = float(np.minimum.accumulate(cut.level)[-1]), end_level(size)
    # A critic that starts at zero output on zero rewards has no loss to speak of: compare with the typical one.
    before = max(before, 1e-3 * median(size), 1e-8)
    limit = GROWTH_ALONE * before if scale is None else max(GROWTH * before, (2 * scale) * (2 * scale))
    if end <= limit:
        return _beyond_returns(run, loss, scale, nothing=nothing) if scale is not None else None
    onset = float(loss.step[departure(np.log(np.maximum(size, before)), float(np.log(end)))])
    beside = f"; the largest reward on record is {figure(scale)}" if scale is not None else ""
    return Evidence(
        f"value_loss grows from {figure(before)} to {figure(end)}, {figure(end / before)} times, from "
        f"{run.step_name} {figure(onset)} on{beside}",
        steps=(onset,),
        values={"lowest": before, "end": end, "factor": end / before, **({"reward_scale": scale} if scale else {})},
    )


def _beyond_returns(run: Run, loss: Series, scale: float, *, nothing: bool) -> Evidence | None:
    """Return what is seen of a loss that no returns could explain while it lasted, though it came back."""
    size, limit = median_of_three(np.abs(loss.value)), (UNEXPLAINED if nothing else _impossible(run)) * scale * scale
    if float(size.max()) <= limit:
        return None
    back = " and comes back" if float(size[-1]) <= limit else ""
    onset = float(loss.step[int(np.argmax(size > limit))])
    beside = "; explained_variance stays at zero" if nothing else ""
    return Evidence(
        f"value_loss reaches {figure(float(size.max()))} from {run.step_name} {figure(onset)} on{back}; the "
        f"largest reward on record is {figure(scale)}{beside}",
        steps=(onset,),
        values={"peak": float(size.max()), "end": end_level(np.abs(loss.value)), "reward_scale": scale},
    )


def _impossible(run: Run) -> float:
    """Return the multiple of the squared reward that no error of a value can reach."""
    length = run["episode_length"].finite.value if "episode_length" in run else np.empty(0)
    if not len(length):
        return IMPOSSIBLE
    return float(np.clip((2 * length.max()) ** 2, LEAST_IMPOSSIBLE, IMPOSSIBLE))


def _explains_nothing(run: Run) -> bool:
    """Say whether the values of the critic have nothing to do with the returns, in most of the records."""
    if "explained_variance" not in run or not len(explained := run["explained_variance"].finite):
        return False
    return bool(np.mean(np.abs(explained.value) < NOTHING) >= MOSTLY)


def _return_scale(run: Run) -> float | None:
    """Return the largest reward in size, at least 1.

    Values between minus and plus that size are wrong by at most twice of it.
    """
    if "reward" not in run or not len(run["reward"].finite):
        return None
    return max(1.0, float(np.abs(run["reward"].finite.value).max()))
