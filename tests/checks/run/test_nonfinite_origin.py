from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from mldebug_mcp.logs.run import Incident, Run
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAMES = ("0", "2")


def lost(began: Mapping[str, tuple[str, ...]]) -> Run:
    return replace(run_of(loss=decay(50)), incidents=(Incident(7.0, "spike"), Incident(31.0, "lost", began)))


@pytest.mark.parametrize(
    ("began", "outcome"),
    [
        ({"inputs": NAMES, "loss": (), "gradients": NAMES}, "nonfinite_in_inputs"),
        ({"weights": NAMES, "outputs": NAMES, "loss": ()}, "nonfinite_in_weights"),
        ({"gradients": NAMES, "loss": (), "outputs": NAMES}, "nonfinite_in_forward"),
        ({"gradients": NAMES, "loss": ()}, "nonfinite_in_loss"),
        ({"gradients": NAMES}, "nonfinite_in_backward"),
    ],
)
def test_what_a_step_computes_first_is_where_it_began(began: Mapping[str, tuple[str, ...]], outcome: str) -> None:
    finding = seen(outcome, lost(began))
    assert finding.state is State.PRESENT
    assert finding.steps == [31]
    others = {"nonfinite_in_inputs", "nonfinite_in_weights", "nonfinite_in_forward", "nonfinite_in_loss"} - {outcome}
    assert all(state(other, lost(began)) is not State.PRESENT for other in others)


def test_without_a_recorder_that_looked_it_cannot_be_told() -> None:
    assert state("nonfinite_in_inputs", run_of(loss=decay(50))) is State.UNKNOWN
    assert (
        state("nonfinite_in_inputs", replace(run_of(loss=decay(50)), incidents=(Incident(7.0, "spike"),)))
        is State.UNKNOWN
    )


def test_a_place_that_is_not_known_is_none_of_them() -> None:
    assert state("nonfinite_in_inputs", lost({"elsewhere": NAMES})) is State.ABSENT
