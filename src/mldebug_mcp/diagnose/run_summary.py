"""What was read of a run, in numbers: the head of a diagnosis."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mldebug_mcp.logs import Run
from mldebug_mcp.logs.columns import ascends
from mldebug_mcp.logs.run import Floats
from mldebug_mcp.models import RunSummary

MAIN_METRICS = ("loss", "eval_loss", "reward", "grad_norm")
"""What a reader asks for first."""


def run_summary(run: Run) -> RunSummary:
    """Return what was read: formats, kind, steps, metrics, and the last values of the main ones."""
    return RunSummary(
        path=run.path,
        formats=list(run.formats),
        kind=run.kind,
        records=run.records,
        steps=_distinct_steps(series.step for series in run.series.values()),
        first_step=run.first_step,
        last_step=run.last_step,
        step_name=run.step_name,
        segments=max(1, len(run.segments)),
        metrics=sorted(run.series),
        last={name: float(run[name].value[-1]) for name in _main_metrics(run)},
    )


def _main_metrics(run: Run) -> list[str]:
    """Return what a reader asks for first; where none of that is logged, the first losses, else the first metrics."""
    logged = [name for name, series in run.series.items() if len(series)]
    main = [name for name in MAIN_METRICS if name in logged]
    return main or sorted(logged, key=lambda name: ("loss" not in name, name))[:3]


def _distinct_steps(steps: Iterable[Floats]) -> int:
    # Metrics that stand in every record share one array of steps, and evaluations stand at some of these.
    different = sorted({(step.ctypes.data, step.size): step for step in steps}.values(), key=len)
    if not different:
        return 0
    most = different.pop()
    if not ascends(most):
        return len(np.unique(np.concatenate([most, *different])))
    rest = np.unique(np.concatenate([np.empty(0), *different]))
    at = np.minimum(np.searchsorted(most, rest), len(most) - 1)
    return len(most) + int(np.count_nonzero(most[at] != rest))
