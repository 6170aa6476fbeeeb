"""Labels of pretraining batches that stand at other places than their loss takes them from, and masks beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.batch.test_corpora import END, config, documents, found

from mldebug_mcp.judge import inspect_batch

WIDTH = 128
Rows = npt.NDArray[np.int64]


def windows(shift: int) -> tuple[Rows, Rows]:
    """Return windows of a stream, and those that begin so many tokens later."""
    stream = np.concatenate(documents(100))
    rows = stream[: len(stream) // (WIDTH + 4) * (WIDTH + 4)].reshape(-1, WIDTH + 4)
    return rows[:, 2 : WIDTH + 2], rows[:, 2 + shift : WIDTH + 2 + shift]


def columns(kind: str, ids: Rows, labels: Rows) -> dict[str, npt.NDArray[np.generic]]:
    if kind == "megatron":
        places = np.broadcast_to(np.arange(WIDTH), ids.shape)
        return {"tokens": ids, "labels": labels, "loss_mask": np.ones(ids.shape, np.float32), "position_ids": places}
    if " and " in kind:
        first, second = kind.split(" and ")
        return {first: ids, second: labels}
    return {"input_ids": ids, kind: labels}


@pytest.mark.parametrize("shift", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("kind", ["labels", "targets", "x and y", "inputs and targets", "megatron"])
def test_labels_at_other_places_than_the_loss_takes_them_from_are_reported(
    kind: str, shift: int, tmp_path: Path
) -> None:
    np.savez(tmp_path / "batch.npz", **columns(kind, *windows(shift)))  # type: ignore[arg-type]
    right = 0 if kind == "labels" else 1
    checks = [check for check in found(inspect_batch(tmp_path / "batch.npz")) if check != "document_end_missing"]
    assert checks == ([] if shift == right else ["labels_shifted"])


@pytest.mark.parametrize("padded", [False, True])
def test_a_window_that_begins_with_the_end_of_a_document_is_not_padded(padded: bool, tmp_path: Path) -> None:
    ids, labels = windows(1)
    ids, labels = ids[:16].copy(), labels[:16].copy()
    ids[3, 0] = END
    if padded:
        ids[5, :9], labels[5, :9] = END, END
    np.savez(tmp_path / "batch.npz", x=ids, y=labels)
    settings = {"model_type": "gpt2", "vocab_size": 50_000, "eos_token_id": END, "pad_token_id": END}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    answer = inspect_batch(tmp_path / "batch.npz", model=tmp_path / "config.json")
    assert ("padding_not_masked" in found(answer)) == padded


def test_a_loss_mask_of_zeros_is_one_finding(tmp_path: Path) -> None:
    ids, labels = windows(1)
    batch = columns("megatron", ids, labels) | {"loss_mask": np.zeros(ids.shape, np.float32)}
    np.savez(tmp_path / "batch.npz", **batch)  # type: ignore[arg-type]
    assert found(inspect_batch(tmp_path / "batch.npz", None, config(tmp_path))) == ["all_labels_masked"]


@pytest.mark.parametrize("mask", ["causal", "causal, padded", "causal, 1 hides", "documents"])
def test_a_causal_mask_does_not_keep_documents_apart(mask: str, tmp_path: Path) -> None:
    ids, _ = windows(0)
    ids = ids[:8]
    ends = ids == END
    number = np.cumsum(ends, axis=1) - ends
    sees = np.broadcast_to(np.tril(np.ones((WIDTH, WIDTH), np.bool_)), (len(ids), WIDTH, WIDTH)).copy()
    if mask == "causal, padded":
        sees[:, :, 120:] = False
    elif mask == "documents":
        sees &= number[:, :, None] == number[:, None, :]
    sees = ~sees if mask == "causal, 1 hides" else sees
    np.savez(tmp_path / "batch.npz", input_ids=ids, labels=ids, attention_mask=sees[:, None])
    answer = inspect_batch(tmp_path / "batch.npz", None, config(tmp_path))
    assert found(answer) == ([] if mask == "documents" else ["packing_without_position_reset"])
