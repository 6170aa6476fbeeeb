"""The quickest pipelines of the matrix of the benchmarks, with faults and without."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks.probe.__main__ import of_the_tests
from benchmarks.probe.kit import CASES

from .here import probe_here

QUICK_FAULTS = (
    "constant_labels", "loss_of_another_tensor", "target_scale", "batch_changed_in_place", "copies_get_the_gradients",
    "target_network_is_the_network", "schedule_ends_after_ten_steps", "time_and_rows_exchanged",
    "recurrent_weights_too_large", "divergence_negated", "triplet_of_the_positive", "mask_hides_whole_rows",
    "distance_of_equal_rows", "rounded_without_straight_through", "labels_smoothed_away",
)  # fmt: skip
QUICK_HEALTHY = (
    "contrastive", "stochastic_depth", "quantisation_aware", "mixed_up_rows", "two_passes_a_step",
    "critic_with_a_gradient_penalty", "packed_recurrence", "angular_margin", "gradient_checkpointing",
)  # fmt: skip


@pytest.mark.parametrize("name", [*QUICK_FAULTS, *QUICK_HEALTHY])
def test_a_pipeline_of_the_matrix_gets_its_verdict_and_its_cause(name: str, tmp_path: Path) -> None:
    case = CASES[name]

    result = probe_here(tmp_path, entry=f"{case.file}:{name}", seed=1)

    assert result.verdict in case.verdicts, result.summary
    assert (result.causes[0].cause if result.causes else "") in case.causes, result.causes[:3]


def test_weights_that_16_bits_round_back_are_named(tmp_path: Path) -> None:
    case = CASES["updates_lost_in_bfloat16"]

    result = probe_here(tmp_path, entry=f"{case.file}:{case.name}", seed=1)

    assert "probe_update_rounded_away" in {found.symptom for found in result.findings if found.state == "present"}


def test_a_step_may_return_its_losses_by_name(tmp_path: Path) -> None:
    case = CASES["slow_target_network"]

    result = probe_here(tmp_path, entry=f"{case.file}:{case.name}", steps=40)

    assert result.verdict != "failed", result.summary


def test_each_pipeline_has_a_name_of_its_own() -> None:
    assert not {case.name for case in of_the_tests()} & {*CASES}
