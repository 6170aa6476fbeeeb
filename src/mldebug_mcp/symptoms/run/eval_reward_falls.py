"""The score of evaluation falls while the reward of training rises."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.policy import NOT_POLICY, REWARDS, reward
from mldebug_mcp.measure.rewards import averaged, held_out_scores, scores_beside
from mldebug_mcp.measure.statistics import blocks, end_level, median, noise
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST, LEAST_BESIDE = 6, 18
"""Finite values that a score of evaluation must have, and one of training. Chosen: two medians of three that share
none; of six blocks."""
SHARE, SIGMAS, BEGUN = 0.25, 4.0, 0.25
"""Of its best level, and times the noise between evaluations, that the score loses; of the fall, from which it has
begun. Chosen: by hand."""


@symptom(any_of=REWARDS, sources=("remote_gpu_trainer",), not_for=NOT_POLICY, background=0.001)
def eval_reward_falls(run: Run) -> Evidence | None:
    """A score of evaluation falls well below its best for good, while the reward of training does not fall.

    What training pays for and what is wanted come apart. Where evaluation gives no score, one that is logged beside
    the reward. Not this when: both fall (`reward_falls`); the score only scatters, or was best at one lucky evaluation.
    """
    scores = held_out_scores(run, LEAST) or scores_beside(run, LEAST_BESIDE)
    if not scores:
        raise CannotTell(f"no score of evaluation has {LEAST} finite values, and none beside the reward {LEAST_BESIDE}")
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
        f"{series.name} falls from {figure(top)} to {figure(end)} from {run.step_name} {figure(onset)} on, while the "
        f"reward goes from {figure(float(paid[0]))} to {figure(float(paid[-1]))}",
        steps=(onset,),
        values={"best": top, "end": end, "reward_at_start": float(paid[0]), "reward_at_end": float(paid[-1])},
    )


def _falls(score: Series, level: list[float]) -> bool:
    top = max(level)
    return top > 0 and top - level[-1] >= max(SHARE * top, SIGMAS * noise(score.value))
