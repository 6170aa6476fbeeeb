"""The score of evaluation falls while the reward of training rises."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.policy import NOT_POLICY, REWARDS, reward
from mldebug_mcp.measure.rewards import averaged, held_out_scores, kept_rise, scores_beside
from mldebug_mcp.measure.statistics import blocks, end_level, median, noise
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST, LEAST_BESIDE = 6, 18
"""Finite values that a score of evaluation must have, and one of training. Chosen: two medians of three that share
none; of six blocks."""
NEVER, RESTS = 0.02, 0.1
"""A rate of success that is none, and the share of the whole rise by which a reward still moves that rests, over the
later half. Chosen: a reward that is shaped rises before the first success, and goes on to it."""
SHARE, SIGMAS, BEGUN = 0.25, 4.0, 0.25
"""Of its best level, and times the noise between evaluations, that the score loses; of the fall, from which it has
begun. Chosen: by hand."""


@symptom(any_of=REWARDS, sources=("remote_gpu_trainer",), not_for=NOT_POLICY, background=0.001)
def eval_reward_falls(run: Run) -> Evidence | None:
    """A score of evaluation falls well below its best for good, while the reward of training does not fall.

    What training pays for and what is wanted come apart. Where evaluation gives no score, one that is logged beside
    the reward; so does a success that never comes while the reward has risen to where it rests. Not this when: both
    fall (`reward_falls`); the score only scatters, or was best at one lucky evaluation.
    """
    scores = held_out_scores(run, LEAST) or scores_beside(run, LEAST_BESIDE)
    if not scores:
        raise CannotTell(f"no score of evaluation has {LEAST} finite values, and none beside the reward {LEAST_BESIDE}")
    if (earned := _earned_without_success(run)) is not None:
        return earned
    levels = [(one, [median(one.value[at : at + 3]) for at in range(len(one) - 2)]) for one in scores]
    lost = [(max(level) - level[-1], one, level) for one, level in levels if _falls(one, level)]
    if 2 * len(lost) <= len(scores):
        return None
    paid = blocks(averaged(run, reward(run)).value, 12).level
    if len(paid) < 4 or end_level(paid) < median(paid[: len(paid) // 2]):
        return None
    fall, series, level = max(lost, key=lambda one: one[0])
    top, end, best = max(level), level[-1], int(np.argmax(level))
    onset = float(series.step[best + int(np.argmax(series.value[best:] <= top - BEGUN * fall))])
    return Evidence(
        f"{series.name} falls from {figure(top)} to {figure(end)} from {run.place(onset)} on, while the "
        f"reward goes from {figure(paid[0])} to {figure(paid[-1])}",
        steps=(onset,),
        values={"best": top, "end": end, "reward_at_start": float(paid[0]), "reward_at_end": float(paid[-1])},
    )


def _earned_without_success(run: Run) -> Evidence | None:
    """Say that the reward has risen to where it rests, and the rate of success is zero to the end."""
    counted = [one.finite for one in run.with_role(Quantity.SUCCESS_RATE, parts=True)]
    rates = [one for one in counted if len(one) >= LEAST_BESIDE and float(one.value.max()) <= 1]
    never = [one for one in rates if float(one.value[len(one) // 2 :].max()) <= NEVER]
    rise = kept_rise(run)
    if not never or len(never) < len(rates) or rise is None:
        return None
    later = blocks(averaged(run, reward(run)).value, 12).level[6:]
    if len(later) < 4 or float(np.ptp(later)) > RESTS * (rise[1] - rise[0]):
        return None
    return Evidence(
        f"{never[0].name} is {figure(never[0].value.max())} at most in {len(never[0])} records and "
        f"{figure(never[0].value[-1])} at the end, while the reward goes from {figure(rise[0])} to "
        f"{figure(rise[1])} and rests there",
        steps=(float(never[0].step[0]),),
        values={"best": float(never[0].value.max()), "reward_at_start": rise[0], "reward_at_end": rise[1]},
    )


def _falls(score: Series, level: list[float]) -> bool:
    top = max(level)
    return top > 0 and top - level[-1] >= max(SHARE * top, SIGMAS * noise(score.value))
