"""A column that says nothing of training moves no cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.labelled import Labelled
from benchmarks.reading.reads import own_logs

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.logs import Run, Series, read_run
from mldebug_mcp.logs.names.quantities import UTILISATIONS, Quantity

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
MOST_MOVED = 0.03


def probabilities(run: Run) -> dict[str, float]:
    return {one.cause: one.probability for one in diagnose(run).hypotheses}


@pytest.mark.parametrize("example", ["healthy", "loss_spike", "overfit", "divergence"])
def test_a_column_that_says_nothing_of_training_moves_no_cause(example: str) -> None:
    run = read_run(EXAMPLES / example)
    step, rng = next(iter(run.series.values())).step, np.random.default_rng(0)
    count = len(step)
    columns = {
        "memory/allocated_gib": 0.34 + 0.02 * rng.random(count),
        "memory/reserved_gib": np.full(count, 0.5),
        "gpu_util": 90 + rng.normal(0, 2, count),
        "frob": rng.normal(0, 1, count),
        "zork_level": np.linspace(0, 1, count),
    }
    before = probabilities(run)
    for name, value in columns.items():
        after = probabilities(replace(run, series={**run.series, name: Series(name, step, value)}))
        assert {cause: after[cause] for cause in before} == pytest.approx(before, abs=MOST_MOVED), name


def unrelated(count: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Return columns of a constant, noise, a counter, a clock, memory and throughput, each of shape (count,)."""
    rng = np.random.default_rng(1)
    return {
        "zork_constant": np.full(count, 3.0),
        "zork_noise": rng.normal(5, 1, count),
        "zork_counter": np.arange(count, dtype=float),
        "zork/wall_time_s": 1.7e9 + np.cumsum(rng.uniform(9.9, 10.1, count)),
        "zork/gpu_mem_gib": 12 + 0.01 * rng.random(count),
        "zork/samples_per_second": 800 + rng.normal(0, 4, count),
    }


def of_the_machine(run: Run) -> set[str]:
    """Return the columns of a run that are of the machine alone: its temperature, power, utilisation and clock."""
    found = run.with_role(Quantity.TEMPERATURE, Quantity.POWER, *UTILISATIONS, Quantity.TIME_LEFT, parts=True)
    return {one.name for one in found}


@pytest.mark.parametrize("log", own_logs(), ids=lambda log: log.name)
def test_columns_beside_training_move_no_cause_of_any_sample(log: Labelled) -> None:
    try:
        run = read_run(log.path)
    except InputError as refused:
        pytest.skip(str(refused))
    step = max((series.step for series in run.series.values()), key=len)
    before, machine = probabilities(run), of_the_machine(run)
    added = {name: Series(name, step, value) for name, value in unrelated(len(step)).items() if name not in run.series}
    fewer = {name: series for name, series in run.series.items() if name not in machine}
    for series in ({**run.series, **added}, *([fewer] if machine else [])):
        after = probabilities(replace(run, series=series))
        by = {cause: round(after.get(cause, 0.0) - one, 3) for cause, one in before.items()}
        assert {cause: one for cause, one in by.items() if abs(one) > MOST_MOVED} == {}
