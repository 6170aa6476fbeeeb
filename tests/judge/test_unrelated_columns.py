"""A column that says nothing of training moves no cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.judge.diagnosis import diagnose
from mldebug_mcp.logs import Run, Series, read_run

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
