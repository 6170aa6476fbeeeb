"""Accuracy that is exactly one in k: one answer for all of k classes of equal size."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import end_level, start_level
from mldebug_mcp.symptoms.quality import ACCURACIES, as_share
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

LEAST = 5
CLASSES = (*range(2, 11), 20, 50, 100, 200, 1000)
"""How many classes of equal size data sets have. Others leave shares that a class of an unbalanced set may have too."""
ROUNDED = 6e-5
"""A share is printed with four digits or more: 0.3333, 33.33%."""
BEYOND = 0.05
"""Training is not that far beyond it ..."""
FALLS = 0.8
"""... and where its accuracy is not logged, its loss ends no lower than this share of its start. All chosen by hand."""


def accuracy_at_guess(run: Run) -> Evidence | None:
    """The accuracy is exactly 1/k for a small whole k in all records, and training is no better.

    Classes of equal size, as in most benchmarks, of which the model gives one for all rows: the share of the largest
    class of unbalanced data is seldom such a number. Not this when: training gets beyond it, which an evaluation of few
    rows may not show. The digits and counts were chosen by hand.
    """
    series = next((run[name].finite for name in ACCURACIES if name in run), None)
    if series is None or len(series) < LEAST:
        raise CannotTell(f"no accuracy has {LEAST} finite values")
    value = as_share(float(series.value[0]))
    classes = next((k for k in CLASSES if abs(value - 1 / k) <= ROUNDED), None)
    if classes is None or float(np.ptp(series.value)) > 1e-9 or _learns(run, series, value):
        return None
    return Evidence(
        f"{series.name} is {figure(float(series.value[0]))}, one in {classes}, in all {len(series)} records from "
        f"{run.step_name} {figure(float(series.step[0]))} to {figure(float(series.step[-1]))}",
        steps=(float(series.step[0]),),
        values={"value": value, "classes": float(classes), "records": len(series)},
    )


def _learns(run: Run, series: Series, value: float) -> bool:
    """Say whether training is better than the guess, by its accuracy or else by its loss."""
    if series.name != "accuracy" and "accuracy" in run and len(trained := run["accuracy"].finite):
        return as_share(end_level(trained.value)) > value + BEYOND
    if "loss" not in run or not len(loss := run["loss"].finite):
        return False
    return start_level(loss.value) > 0 and end_level(loss.value) < FALLS * start_level(loss.value)
