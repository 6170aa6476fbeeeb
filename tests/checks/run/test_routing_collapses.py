"""`routing_collapses`: a router that sends most tokens to a few experts, and near-misses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.models import State
from tests.runs import Curve, decay, run_of, seen, state

LATE = np.maximum(0, np.arange(200) - 80) / 120
"""Share of the way that a router has collapsed."""
COLLAPSES: dict[str, Curve] = {
    "moe/dropped_tokens_frac": 0.003 + 0.6 * LATE,
    "tokens dropped": 0.5 + 60 * LATE,
    "moe/max_violation": 0.3 + 30 * LATE,
}


@pytest.mark.parametrize("name", COLLAPSES)
def test_a_load_that_comes_to_lie_on_a_few_experts_is_present_from_where_it_does(name: str) -> None:
    finding = seen("routing_collapses", run_of({"loss": decay(200, 8, 3), name: COLLAPSES[name]}))
    assert finding.state is State.PRESENT
    assert 70 <= finding.steps[0] <= 110


@pytest.mark.parametrize(
    ("name", "curve"),
    [
        ("moe/dropped_tokens_frac", 0.03 + 0.02 * LATE),
        ("moe/dropped_tokens_frac", 0.4 - 0.3 * LATE),
        ("moe/max_violation", 0.3 + 1.5 * LATE),
        ("moe/max_violation", 8.0 - 7.0 * LATE),
    ],
)
def test_one_that_stays_even_or_gets_so_is_absent(name: str, curve: Curve) -> None:
    assert state("routing_collapses", run_of({"loss": decay(200, 8, 3), name: curve})) is State.ABSENT


def test_a_router_that_only_gets_sure_cannot_be_judged() -> None:
    assert state("routing_collapses", run_of({"moe/router_entropy": 4.8 - 4.5 * LATE})) is State.UNKNOWN


def test_a_run_whose_router_collapses_is_not_called_healthy(tmp_path: Path) -> None:
    loss = decay(200, 8, 3)
    rows = ["step,train/loss,moe/dropped_tokens_frac,moe/max_violation,moe/expert_entropy"]
    for step, late in enumerate(LATE):
        rows.append(f"{step},{loss[step]:.4f},{0.003 + 0.6 * late:.4f},{0.3 + 30 * late:.3f},{4.8 - 4.5 * late:.3f}")
    path = tmp_path / "moe.csv"
    path.write_text("\n".join(rows) + "\n")
    diagnosis = diagnose_run(path)
    assert diagnosis.leader == "unknown"
    assert "moe/expert_entropy from about 4.8" in next(
        finding.summary for finding in diagnosis.findings if finding.symptom == "routing_collapses"
    )
