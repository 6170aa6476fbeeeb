"""What the tests of readers share: a text is written and read, and its metrics are compared step by step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mldebug_mcp.logs import Run, read_run

Points = dict[float, float]
"""A metric as {step: value}."""


def read(folder: Path, text: str, name: str = "train.log") -> Run:
    """Return what is read of a text."""
    (folder / name).write_text(text, encoding="utf-8")
    return read_run(folder / name)


def points(run: Run, metric: str) -> Points:
    """Return a metric as {step: value}."""
    return dict(zip(run[metric].step.tolist(), run[metric].value.tolist(), strict=True))


def assert_holds(run: Run, step_name: str, metrics: Mapping[str, Points]) -> None:
    """Check what a step of a run without restarts is, and its metrics at every step."""
    assert (run.step_name, len(run.segments)) == (step_name, 1)
    for metric, expected in metrics.items():
        assert run[metric].step.tolist() == pytest.approx(list(expected)), metric
        assert run[metric].value.tolist() == pytest.approx(list(expected.values()), nan_ok=True), metric
