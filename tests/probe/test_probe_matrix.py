"""The quickest pipelines of the matrix of the benchmarks, with faults and without."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks import probe_families, probe_matrix, probe_recipes

from .here import probe_here

QUICK_FAULTS = (
    "constant_labels", "constant_inputs", "loss_detached", "loss_of_another_tensor", "target_scale",
    "no_grad_around_the_body", "batch_changed_in_place", "copies_get_the_gradients",
)  # fmt: skip
QUICK_HEALTHY = ("contrastive", "stochastic_depth", "quantisation_aware", "mixture_of_experts")


@pytest.mark.parametrize("name", QUICK_FAULTS)
def test_a_fault_of_the_matrix_gets_its_verdict_and_its_cause(name: str, tmp_path: Path) -> None:
    verdicts, causes = probe_matrix.FAULTS[name]

    result = probe_here(tmp_path, entry=f"{probe_matrix.__file__}:{name}", seed=1)

    assert result.verdict in verdicts, result.summary
    assert (result.causes[0].cause if result.causes else "") in causes, result.causes[:3]


@pytest.mark.parametrize("name", QUICK_HEALTHY)
def test_a_healthy_pipeline_of_the_matrix_is_memorised(name: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{probe_matrix.__file__}:{name}", seed=1)

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary


QUICK_RECIPES = (
    "softmax_over_the_rows", "rows_shuffled_without_their_labels", "scores_beyond_half_precision", "weights_all_zero",
    "target_network_is_the_network", "schedule_ends_after_ten_steps", "rate_of_a_large_model",
    "error_against_every_label",
)  # fmt: skip


@pytest.mark.parametrize("name", QUICK_RECIPES)
def test_a_fault_of_a_recipe_gets_its_verdict_and_its_cause(name: str, tmp_path: Path) -> None:
    verdicts, causes = probe_recipes.FAULTS[name]

    result = probe_here(tmp_path, entry=f"{probe_recipes.__file__}:{name}", seed=1)

    assert result.verdict in verdicts, result.summary
    assert result.causes[0].cause in causes, result.causes[:3]


@pytest.mark.parametrize("name", ["mixed_up_rows", "two_passes_a_step", "critic_with_a_gradient_penalty"])
def test_a_healthy_recipe_is_memorised(name: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{probe_recipes.__file__}:{name}", seed=1)

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary


def test_weights_that_16_bits_round_back_are_named(tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{probe_recipes.__file__}:updates_lost_in_bfloat16", seed=1)

    assert "probe_update_rounded_away" in {one.symptom for one in result.findings if one.state == "present"}


def test_a_step_may_return_its_losses_by_name(tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{probe_matrix.__file__}:adversarial", steps=40)

    assert result.verdict != "failed", result.summary


def test_the_matrix_names_each_pipeline_once() -> None:
    names = [(file, name) for file in (probe_matrix, probe_recipes) for name in (*file.FAULTS, *file.HEALTHY)]

    assert len(names) == len({name for _, name in names})
    assert all(callable(getattr(file, name)) for file, name in names)


QUICK_FAMILIES = (
    "time_and_rows_exchanged", "recurrent_weights_too_large", "divergence_negated", "triplet_of_the_positive",
    "mask_hides_whole_rows", "generator_climbs",
)  # fmt: skip
QUICK_HEALTHY_FAMILIES = ("packed_recurrence", "one_expert_a_row", "angular_margin", "hinge_with_spectral_norm")


@pytest.mark.parametrize("name", QUICK_FAMILIES)
def test_a_fault_of_the_families_gets_its_verdict_and_its_cause(name: str, tmp_path: Path) -> None:
    verdicts, causes = probe_families.FAULTS[name]

    result = probe_here(tmp_path, entry=f"{probe_families.__file__}:{name}", seed=1)

    assert result.verdict in verdicts, result.summary
    assert (result.causes[0].cause if result.causes else "") in causes, result.causes[:3]


@pytest.mark.parametrize("name", QUICK_HEALTHY_FAMILIES)
def test_a_healthy_pipeline_of_the_families_is_memorised(name: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{probe_families.__file__}:{name}", seed=1)

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary
