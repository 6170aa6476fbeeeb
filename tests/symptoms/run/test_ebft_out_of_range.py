"""`ebft_out_of_range`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.models import State
from tests.runs import run_of, seen, state


def test_each_metric_outside_its_range_is_told() -> None:
    run = run_of({"ebft/alignment": np.linspace(0.5, 0.05, 40), "ebft/diversity": [3.0] * 40})
    finding = seen("ebft_out_of_range", run)
    assert finding.state is State.PRESENT
    assert set(finding.values) == {"ebft/alignment", "ebft/diversity"}


def test_values_that_end_within_their_ranges_are_absent() -> None:
    run = run_of({"ebft/alignment": np.linspace(0.1, 0.6, 40), "ebft/cfm_loss": np.linspace(30, 4, 40)})
    assert state("ebft_out_of_range", run) is State.ABSENT


def test_a_run_that_has_hardly_begun_is_unknown() -> None:
    assert state("ebft_out_of_range", run_of({"ebft/alignment": [0.1] * 5})) is State.UNKNOWN
