"""A metric is found by the name that it was logged with, its canonical name, or its role."""

from __future__ import annotations

import pytest

from mldebug_mcp.checks.results import named, result_of
from mldebug_mcp.logs.in_memory import run_of_data

RUN = run_of_data(
    [
        {
            "step": step,
            "train/Loss": 3 - step / 100,
            "gnorm": 1.0,
            "layers/0/grad_norm": 2.0,
            "val/acc": 0.5,
            "odd": 1.0,
        }
        for step in range(50)
    ]
)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("train/Loss", ["loss"]),
        ("TRAIN/LOSS", ["loss"]),
        ("loss", ["loss"]),
        ("gnorm", ["grad_norm"]),
        ("grad_norm", ["grad_norm"]),
        ("eval_accuracy", ["eval_accuracy"]),
        ("odd", ["odd"]),
        ("reward", []),
        ("nothing of the kind", []),
    ],
)
def test_a_name_or_a_role_finds_its_series(asked: str, found: list[str]) -> None:
    assert [one.name for one in named(RUN, asked)] == found


def test_two_kinds_of_runs_are_compared_by_a_role_too() -> None:
    result = result_of(RUN, "Grad_Norm")
    assert result is not None
    assert (result.metric, result.last) == ("grad_norm", 1.0)
