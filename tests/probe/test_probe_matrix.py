"""The quickest pipelines of the matrix of the benchmarks, with faults and without."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks import probe_matrix

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


def test_a_step_may_return_its_losses_by_name(tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{probe_matrix.__file__}:adversarial", steps=40)

    assert result.verdict != "failed", result.summary


def test_the_matrix_names_each_pipeline_once() -> None:
    names = [*probe_matrix.FAULTS, *probe_matrix.HEALTHY]

    assert len(names) == len(set(names))
    assert all(callable(getattr(probe_matrix, name)) for name in names)
