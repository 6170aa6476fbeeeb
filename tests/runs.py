"""Runs made from arrays, built as the readers build them; and the curves to make them from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mldebug_mcp import RunDiagnosis, diagnose_run
from mldebug_mcp.checks import symptoms
from mldebug_mcp.checks.check import judge
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.kinds import concluded
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import Finding, State

Curve = Sequence[float | None] | NDArray[np.float64] | Mapping[int, float] | Mapping[float, float]
"""Values at steps 1, 2, 3, ... (None: not logged there), or a mapping of step to value."""


def run_of(
    metrics: Mapping[str, Curve] | None = None,
    *,
    config: Mapping[str, Scalar] | None = None,
    kind: str | None = None,
    every: float = 1,
    **more: Curve,
) -> Run:
    """Make a run from one curve per metric; names that are no identifiers go into `metrics`.

    Args:
        metrics: Curves by name.
        config: Training configuration, in canonical names.
        kind: Kind of run; None lets it be inferred.
        every: Steps between two values of a sequence.
        more: Further curves by name: `run_of(loss=[3.0, 2.0], eval_loss={2: 2.5})`.
    """
    rows: dict[float, dict[str, object]] = {}
    for name, curve in {**(metrics or {}), **more}.items():
        steps: Iterable[tuple[float, float | None]] = (
            curve.items() if isinstance(curve, Mapping) else _numbered(curve, every)
        )
        for step, value in steps:
            if value is not None:
                rows.setdefault(step, {"step": step})[name] = float(value)
    return run_of_records([rows[step] for step in sorted(rows)], config=config, kind=kind)


def run_of_records(
    records: Iterable[Mapping[str, object]],
    *,
    config: Mapping[str, Scalar] | None = None,
    kind: str | None = None,
) -> Run:
    """Make a run from log records in file order; a step counter that falls back makes a segment."""
    builder = RunBuilder()
    builder.configure(config or {})
    for record in records:
        builder.record(record)
    run = concluded(builder.build("run"))
    return run if kind is None else replace(run, kind=kind)


def seen(symptom: str, run: Run) -> Finding:
    """Judge one symptom on a run. A symptom that breaks fails the test."""
    finding, broke = judge(symptoms()[symptom], run)
    assert broke is None, broke
    return finding


def state(symptom: str, run: Run) -> State:
    """Return whether a symptom is present, absent or unknown on a run."""
    return seen(symptom, run).state


def decay(count: int, start: float = 4.0, end: float = 1.5, rate: float = 5.0) -> NDArray[np.float64]:
    """Return an exponential fall from `start` towards `end`, shape (count,)."""
    return end + (start - end) * np.exp(-rate * np.arange(count) / max(count - 1, 1))


def noisy(curve: ArrayLike, size: float = 0.05, seed: int = 0, tails: str = "normal") -> NDArray[np.float64]:
    """Return a curve with multiplicative noise of relative `size`; `tails` is normal, lognormal or t3 (heavy)."""
    values = np.asarray(curve, dtype=np.float64)
    draw = np.random.default_rng(seed)
    match tails:
        case "normal":
            factor = 1 + size * draw.standard_normal(values.shape)
        case "lognormal":
            factor = np.exp(size * draw.standard_normal(values.shape))
        case "t3":
            factor = 1 + size * draw.standard_t(3, values.shape) / np.sqrt(3)
        case _:
            raise ValueError(tails)
    return values * np.maximum(factor, 0.01)


def _numbered(curve: Iterable[float | None], every: float) -> Iterable[tuple[float, float | None]]:
    return ((every * (1 + position), value) for position, value in enumerate(curve))


def diagnosed(
    columns: Mapping[str, Callable[[int], Any]],
    evaluated: Mapping[str, Callable[[int], Any]] | None = None,
    steps: int = 120,
    **settings: Any,
) -> RunDiagnosis:
    """Diagnose a run whose columns are functions of the step, those of evaluation of every tenth step."""
    records = []
    for step in range(1, steps + 1):
        record = {"step": float(step)} | {name: float(value(step)) for name, value in columns.items()}
        if step % 10 == 0:
            record |= {name: float(value(step)) for name, value in (evaluated or {}).items()}
        records.append(record)
    return diagnose_run(records, settings=settings or None)
