"""Where the pipelines of the tests compute, tried on the device without memory, which is on every machine."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from mldebug_mcp.probe.worker.subject import to_device

from . import pipelines

TIED = {"layers_in_a_list", "body_detached", "overflow_under_autocast", "healthy_bfloat16"}
"""Layers that `model.to` does not find, a model that goes by way of NumPy, and autocast, which this device has not."""
OWN_STEP = {
    "labels_masked_with_an_own_step", "optimizer_never_steps", "learning_rate_of_adam_with_sgd", "zero_grad_missing",
    "zero_grad_missing_with_adam", "step_uphill", "trains_in_evaluation_mode", "healthy_accumulation",
    "healthy_train_step",
}  # fmt: skip
"""Loops of the user's own, which stay where the user put them."""


@pytest.mark.parametrize("name", sorted({*pipelines.BROKEN, *pipelines.HEALTHY} - TIED - OWN_STEP))
def test_a_pipeline_computes_its_loss_wherever_its_model_and_batch_are(name: str) -> None:
    given = getattr(pipelines, name)()
    device = torch.device("meta")

    loss = given.loss(given.model.to(device), to_device(given.batch, device))

    assert loss.device == device
