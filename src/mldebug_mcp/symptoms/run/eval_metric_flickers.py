"""Evaluations that jump: by how much."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.quality import quality_metrics
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import all_known
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 8
"""Evaluations. Chosen: fewer show no typical change."""
SHARE, SHARE_OF_TOKENS, SHARE_LEVEL = 0.25, 0.08, 0.3
"""Typical change from one evaluation to the next, as a share of the level, at least of the third up to 1; of
the loss of a language model. Chosen: means over thousands of tokens of a random subset move by 1 or 2 %."""
RANDOM = 0.5
"""Half the mean squared change over the variance. Chosen: half way between a trend and pure chance."""


@symptom(
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
    background=0.03,
    as_chosen=True,
    follows=("loss_above_start", "loss_divergence", "loss_nonfinite"),
)
def eval_metric_flickers(run: Run) -> Evidence | None:
    """A metric or loss of evaluation jumps up and down from one evaluation to the next without a trend.

    By a quarter of its level, a language model's loss by 8 %. Not this when: it has a trend, however noisy; the jumps
    are small against its level. Small evaluation sets make healthy runs flicker.
    """
    measured = (*all_known(evaluation_losses, run), *all_known(quality_metrics, run))
    series = [one.finite for one in measured if len(one.finite) >= LEAST]
    if not series:
        raise CannotTell(f"no evaluation loss or metric has {LEAST} finite values")
    limits = {"eval_loss": SHARE_OF_TOKENS} if predicts_tokens(run) else {}
    found = [(one, *_flicker(one)) for one in series]
    found = [one for one in found if one[1] > limits.get(one[0].name, SHARE) and one[2] > RANDOM]
    if not found or (2 * len(found) < len(series) and not any(one[0].name == "eval_loss" for one in found)):
        return None
    one, typical, chance = max(found, key=lambda item: item[1])
    return Evidence(
        f"{one.name} changes by {typical:.0%} of its level from one evaluation to the next (median of {len(one) - 1}; "
        f"between {figure(one.value.min())} and {figure(one.value.max())}) without a trend",
        steps=(float(one.step[0]),),
        values={"typical_change": typical, "randomness": chance, "metrics": len(found)},
    )


def _flicker(series: Series) -> tuple[float, float]:
    """Return the typical change as a share of the level, and how random the curve is, over its later three quarters."""
    values = series.value[len(series) // 4 :]
    level = median(np.abs(values))
    if float(np.abs(values).max()) <= 1:
        level = max(level, SHARE_LEVEL)
    if not level:
        return 0.0, 0.0
    variance, change = float(np.var(values)), np.diff(values)
    return median(np.abs(change)) / level, float(np.mean(change**2)) / (2 * variance) if variance else 0.0
