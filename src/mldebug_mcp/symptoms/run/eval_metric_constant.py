"""An evaluation metric that does not move or is zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import end_level
from mldebug_mcp.symptoms.answers import is_error_rate
from mldebug_mcp.symptoms.quality import as_share, quality_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 5
SATURATED = 0.85
"""From here on an accuracy is near its best, where a model that has learnt all may score the same again and again."""
MANY, SAME, WITHIN, BEYOND = 10, 0.6, 0.005, 0.05
"""Of so many evaluations this share has one and the same accuracy, none is further from it, and training is not that
far beyond it: hardly one answer has changed, though the weights did. Chosen by hand."""
BY_HEART = 0.999
OF_NONE = -1.0
"""What COCO's evaluation says of objects of a size that there are none of."""


@symptom(
    needs=(),
    sources=("remote_gpu_trainer",),
    not_for=("grpo", "ppo", "rl"),
    background=0.02,
    follows=(
        "accuracy_at_guess",
        "eval_metric_zero",
        "loss_zero",
        "loss_constant",
        "loss_negative",
        "loss_nonfinite",
        "loss_plateau",
    ),
)
def eval_metric_constant(run: Run) -> Evidence | None:
    """A metric of evaluation is the same number at every evaluation, or zero throughout.

    An accuracy also where it is so at most of many, and next to it at the others. Not this when: it is saturated near
    its best (accuracy 0.85 and more), or that of training is throughout; it is a clock or a count; there are fewer than
    5 evaluations. If others move and it is not the only one of its name, it is remarked only. The number was
    chosen by hand.
    """
    metrics = [one.finite for one in quality_metrics(run)]
    metrics = [one for one in metrics if len(one) >= LEAST and bool(np.any(one.value != OF_NONE))]
    if not metrics:
        raise CannotTell(f"no metric of evaluation has {LEAST} finite values")
    still = [one for one in metrics if (_still(one) or _hardly_moves(run, one)) and not _by_heart(run, one)]
    if not still:
        return None
    one = still[0]
    value, times = _commonest(one)
    at = f"all {len(one)}" if times == len(one) else f"{times} of {len(one)}"
    others = f"; {len(still) - 1} more metrics do not move either" if len(still) > 1 else ""
    moving = f"; {len(metrics) - len(still)} other metrics move" if len(metrics) > len(still) else ""
    return Evidence(
        f"{one.name} is {figure(value)} at {at} evaluations from {run.step_name} "
        f"{figure(float(one.step[0]))} to {figure(float(one.step[-1]))}{others}{moving}",
        steps=(float(one.step[0]),),
        values={"value": value, "evaluations": len(one), "constant": len(still), "of": len(metrics)},
        present=2 * len(still) >= len(metrics),
    )


def _still(series: Series) -> bool:
    value = float(series.value[0])
    if not is_error_rate(series) and (SATURATED <= value <= 1 or 100 * SATURATED <= value <= 100):
        return False
    return bool(np.ptp(series.value) <= 1e-9 * max(abs(value), 1e-30)) or not series.value.any()


def _commonest(series: Series) -> tuple[float, int]:
    """Return the value that comes most often, and how often."""
    values, counts = np.unique(series.value, return_counts=True)
    return float(values[int(np.argmax(counts))]), int(counts.max())


def _hardly_moves(run: Run, series: Series) -> bool:
    """Say whether an accuracy of evaluation keeps to one value, which that of training does not leave behind."""
    if series.name != "eval_accuracy" or len(series) < MANY or "accuracy" not in run:
        return False
    value, times = _commonest(series)
    scale = 100.0 if value > 1 else 1.0
    trained = end_level(run["accuracy"].finite.value) if len(run["accuracy"].finite) else np.inf
    near = float(np.abs(series.value - value).max()) <= WITHIN * scale and trained <= value + BEYOND * scale
    return near and times >= SAME * len(series) and value < SATURATED * scale


def _by_heart(run: Run, series: Series) -> bool:
    """Say whether training had the best of such a score from its first record: it is done, and changes nothing."""
    name = series.name.removeprefix("eval_")
    trained = run[name].finite.value if name in run and name != series.name else np.empty(0)
    return bool(len(trained)) and bool(series.value.any()) and as_share(float(trained.min())) >= BY_HEART
