"""The same training from other initial weights: does the seed decide?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from mldebug_mcp.judge.probe import interpret
from mldebug_mcp.models import Finding
from mldebug_mcp.probe import Measured
from mldebug_mcp.probe.host import RawProbe
from mldebug_mcp.probe.measured import Failure

from . import hostile
from .here import probe_here
from .test_batches import ROWS


def seed_finding(findings: list[Finding]) -> Finding:
    return next(one for one in findings if one.symptom == "probe_seed_decides")


@pytest.mark.parametrize(("seed", "memorised"), [(0, 2), (1, 1)])
def test_a_model_whose_units_are_dead_with_some_seeds_is_told(seed: int, memorised: int, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{hostile.__file__}:dead_with_odd_seeds", seed=seed)

    found = seed_finding(result.findings)
    assert found.state == "present", found.summary
    assert found.values == {"memorised": memorised, "seeds": 3}


def test_a_tiny_model_of_ours_learns_with_every_seed(tmp_path: Path) -> None:
    result = probe_here(tmp_path, batch={"input_ids": ROWS, "labels": ROWS})

    assert seed_finding(result.findings).state == "absent"


@pytest.mark.parametrize(
    ("name", "told"), [("healthy", "sets its seed itself"), ("healthy_only_once", "not measured: seeds")]
)
def test_what_cannot_be_tried_with_another_seed_is_unknown(name: str, told: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{hostile.__file__}:{name}")

    found = seed_finding(result.findings)
    assert (result.verdict, found.state) == ("memorised", "unknown")
    assert told in found.summary


def test_a_probe_that_is_ended_while_it_tries_other_seeds_keeps_its_answer() -> None:
    measured = Measured.model_validate(
        {"initial_loss": 3.0, "goal": 0.1, "memorised": True, "curve": {"losses": [3, 0]}}
    )
    failure = Failure(kind="time", message="the time limit was reached")

    result = interpret(RawProbe(measured=measured, failure=failure, stage="other seeds"))

    assert result.verdict == "memorised"
    assert "the time limit was reached" in result.notes[-1]


@pytest.mark.parametrize(
    ("last", "state"),
    [
        ({"ended": "steps", "final_loss": 2.0}, "present"),
        ({"ended": "not_finite", "final_loss": None}, "present"),
        ({"ended": "steps", "final_loss": 0.2}, "absent"),
        ({"ended": "goal", "final_loss": 0.1}, "absent"),
        ({"ended": "time", "final_loss": 2.0}, "unknown"),
    ],
)
def test_only_a_run_that_stays_far_from_the_goal_counts_as_failed(last: dict[str, Any], state: str) -> None:
    runs = [{"seed": 0, "ended": "goal", "final_loss": 0.1}, {"seed": 1, **last}]
    measured = Measured.model_validate({"initial_loss": 3.0, "goal": 0.1, "seeds": {"runs": runs}})

    assert seed_finding(interpret(RawProbe(measured=measured)).findings).state == state


@pytest.mark.parametrize(
    ("name", "losses", "verdict"),
    [
        ("comes to its floor", [1.12 + 1.3 * 0.99**step for step in range(300)], "cannot_learn"),
        ("comes to a floor a little sooner", [1.25 + 1.2 * 0.988**step for step in range(300)], "cannot_learn"),
        ("falls slowly and evenly", [3.0 - 0.004 * step for step in range(300)], "too_slow"),
        ("falls by a power of the steps", [3.0 / (1 + step) ** 0.3 for step in range(300)], "too_slow"),
        ("falls by the same part in each step", [3.0 * 0.995**step for step in range(300)], "too_slow"),
    ],
)
def test_a_curve_is_slow_only_while_much_of_its_loss_lies_ahead(name: str, losses: list[float], verdict: str) -> None:
    curve = {"losses": losses, "ended": "steps", "learning_rate": 1e-3}
    measured = Measured.model_validate({"initial_loss": losses[0], "goal": 0.1, "curve": curve})

    assert interpret(RawProbe(measured=measured)).verdict == verdict, name
