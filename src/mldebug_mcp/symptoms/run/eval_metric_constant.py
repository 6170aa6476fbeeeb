"""An evaluation metric that does not move or is zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.evaluation import quality_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 5
SATURATED = 0.85
"""From here on an accuracy is near its best, where a model that has learnt all may score the same again and again."""


@symptom(
    needs=(),
    sources=("remote_gpu_trainer",),
    not_for=("grpo", "ppo", "rl"),
    background=0.02,
    follows=("eval_metric_zero", "loss_zero", "loss_constant", "loss_plateau"),
)
def eval_metric_constant(run: Run) -> Evidence | None:
    """A metric of evaluation is the same number at every evaluation, or zero throughout.

    Not this when: it is saturated near its best (accuracy 0.85 and more); it is a clock or a count; there are fewer
    than 5 evaluations. If others move and it is not the only one of its name, it is remarked only. The number was
    chosen by hand.
    """
    metrics = [one.finite for one in quality_metrics(run)]
    metrics = [one for one in metrics if len(one) >= LEAST]
    if not metrics:
        raise CannotTell(f"no metric of evaluation has {LEAST} finite values")
    still = [one for one in metrics if _still(one)]
    if not still:
        return None
    one = still[0]
    others = f"; {len(still) - 1} more metrics do not move either" if len(still) > 1 else ""
    moving = f"; {len(metrics) - len(still)} other metrics move" if len(metrics) > len(still) else ""
    return Evidence(
        f"{one.name} is {figure(float(one.value[0]))} at all {len(one)} evaluations from {run.step_name} "
        f"{figure(float(one.step[0]))} to {figure(float(one.step[-1]))}{others}{moving}",
        steps=(float(one.step[0]),),
        values={"value": float(one.value[0]), "evaluations": len(one), "constant": len(still), "of": len(metrics)},
        present=2 * len(still) >= len(metrics),
    )


def _still(series: Series) -> bool:
    value = float(series.value[0])
    if SATURATED <= value <= 1 or 100 * SATURATED <= value <= 100:
        return False
    return bool(np.ptp(series.value) <= 1e-9 * max(abs(value), 1e-30)) or not series.value.any()
