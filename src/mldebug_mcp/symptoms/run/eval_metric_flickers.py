"""An evaluation metric that jumps at random."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.quality import quality_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

LEAST = 8
SHARE = 0.25
"""Typical change from one evaluation to the next, as a share of the level (of at least 0.3 for a metric up to 1)."""
RANDOM = 0.5
"""Half the mean squared change over the variance: 1 for pure chance, near 0 for a trend."""


@symptom(
    needs=(),
    not_for=("grpo", "ppo", "rl"),
    background=0.03,
    as_chosen=True,
    follows=(
        "loss_never_below_first",
        "eval_metric_swings",
    ),
)
def eval_metric_flickers(run: Run) -> Evidence | None:
    """A metric or loss of evaluation jumps up and down from one evaluation to the next without a trend.

    Not this when: it has a trend, however noisy; the jumps are small against its level; it is the return of an RL
    agent. The thresholds were chosen by hand: on a fixed evaluation set a metric has no noise of sampling. By itself
    it says little: batch normalisation and small evaluation sets make healthy runs flicker in their first epochs.
    """
    series: list[Series] = []
    for find in (evaluation_losses, quality_metrics):
        try:
            series += [one.finite for one in find(run)]
        except CannotTell:
            continue
    series = [one for one in series if len(one) >= LEAST]
    if not series:
        raise CannotTell(f"no evaluation loss or metric has {LEAST} finite values")
    found = [(one, *flicker(one)) for one in series]
    found = [item for item in found if item[1] > SHARE and item[2] > RANDOM]
    if not found or 2 * len(found) < len(series):
        return None
    one, typical, chance = max(found, key=lambda item: item[1])
    return Evidence(
        f"{one.name} changes by {typical:.0%} of its level from one evaluation to the next (median of {len(one) - 1}; "
        f"between {figure(float(one.value.min()))} and {figure(float(one.value.max()))}) without a trend",
        steps=(float(one.step[0]),),
        values={"typical_change": typical, "randomness": chance, "metrics": len(found)},
    )


def flicker(series: Series) -> tuple[float, float]:
    """Return the typical change as a share of the level, and how random the curve is, over its later three quarters."""
    values: Floats = series.value[len(series) // 4 :]
    change = np.diff(values)
    level = median(np.abs(values))
    if float(np.abs(values).max()) <= 1:
        level = max(level, 0.3)
    variance = float(np.var(values))
    if level == 0 or variance == 0:
        return 0.0, 0.0
    return median(np.abs(change)) / level, float(np.mean(change**2)) / (2 * variance)
