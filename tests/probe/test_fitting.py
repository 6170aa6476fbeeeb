"""Memory that runs out, and 16-bit floats: what a GPU brings, tried without one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch

from mldebug_mcp.judge.probe import probe_overfit
from mldebug_mcp.probe.worker.probe import DTYPES
from mldebug_mcp.probe.worker.subject import Subject
from mldebug_mcp.probe.worker.training import Plan, train

from . import hostile, pipelines
from .here import probe_here
from .test_batches import ROWS
from .test_process import HOSTILE


def test_a_batch_too_large_for_memory_is_halved_and_probed(tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{HOSTILE}:has_room_for_half")

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy")
    assert "memory ran out: the probe began again with 4 of 8 rows" in result.notes


def test_memory_that_runs_out_whatever_is_tried_is_an_answer() -> None:
    result = probe_overfit(entry=f"{HOSTILE}:has_room_for_nothing", device="cpu")

    assert result.verdict == "failed"
    assert "CUDA out of memory" in result.summary


def test_the_batch_of_a_loop_of_the_users_own_is_not_halved(tmp_path: Path) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        probe_here(tmp_path, entry=f"{HOSTILE}:has_no_room_for_the_users_loop")


def test_positions_are_halved_once_there_is_one_row_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Subject.compute_loss

    def compute_loss(subject: Subject) -> object:
        if subject.batch["input_ids"].numel() > 8:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return usual(subject)

    monkeypatch.setattr(Subject, "compute_loss", compute_loss)

    result = probe_here(tmp_path, batch={"input_ids": ROWS, "labels": ROWS})

    assert result.verdict == "memorised"
    assert [note.rpartition("with ")[2] for note in result.notes] == ["2 of 4 rows", "1 of 2 rows", "8 of 16 positions"]


@pytest.mark.parametrize("name", ["healthy_language_model", "healthy_classifier"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_healthy_pipeline_is_memorised_in_16_bits(name: str, dtype: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, entry=f"{pipelines.__file__}:{name}", dtype=dtype)

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary


def test_a_loss_whose_gradients_overflow_at_first_is_trained_once_the_scale_fits() -> None:
    given: SimpleNamespace = hostile.healthy()
    subject = Subject(given.model, given.batch, lambda m, b: 1e4 * given.loss(m, b), dtype=DTYPES["float16"])
    begun = [one.detach().clone() for one in subject.model.parameters()]

    curve = train(subject, Plan(40, 0.0, float("inf")), 1e-2)

    assert subject.scaler is not None
    assert subject.scaler.get_scale() < 2.0**16
    assert curve.losses[-1] < curve.losses[0]
    assert all(not torch.equal(one, old) for one, old in zip(subject.model.parameters(), begun, strict=True))
