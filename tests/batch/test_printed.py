"""Batches that a program printed, and the lines in which trainers show an example, as people paste them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch
from mldebug_mcp.models.data import BatchInspection

TENSORS = """batch = {'input_ids': tensor([[    1,  410,  411,    0],
        [    1,  420,  421,  422]]), 'attention_mask': tensor([[1, 1, 1, 0],
        [1, 1, 1, 1]], device='cuda:0'), 'labels': tensor([[-100, -100,  411, -100],
        [-100, -100,  421,  422]])}
"""
LLAMA_FACTORY = """input_ids:
[1, 410, 411, 2]
inputs:
<s>Say it: now</s>
label_ids:
[-100, -100, -100, -100]
labels:

"""
SWIFT = """[INFO:swift] [INPUT_IDS] [1, 410, 411, 2]
[INFO:swift] [INPUT] <s>Say it: now</s>
[INFO:swift] [LABELS_IDS] [-100, -100, 411, 2]
[INFO:swift] [LABELS] [-100 * 2]now</s>
"""
AXOLOTL = "[2024-05-12 10:22:01,190] [INFO] [PID:7] <s>(-100, 1) Say(-100, 410) now(411, 411) </s>(2, 2) x(-100, 7)\n"
TENSORFLOW = """INFO:tensorflow:tokens: [CLS] say it [SEP]
INFO:tensorflow:input_ids: 101 410 411 102 0 0
INFO:tensorflow:input_mask: 1 1 1 1 0 0
INFO:tensorflow:label_ids: 0 1 2 0 0 0
INFO:tensorflow:input_ids: 101 420 421 422 102 0
INFO:tensorflow:input_mask: 1 1 1 1 1 0
INFO:tensorflow:label_ids: 0 1 1 2 0 0
"""


def inspected(text: str, folder: Path) -> BatchInspection:
    path = folder / "printed.txt"
    path.write_text(text)
    return inspect_batch(path)


@pytest.mark.parametrize(
    ("text", "rows", "tokens", "trained"),
    [(TENSORS, 2, 7, 3), (LLAMA_FACTORY, 1, 4, 0), (SWIFT, 1, 4, 2), (AXOLOTL, 1, 5, 2), (TENSORFLOW, 2, 9, None)],
    ids=["tensors", "llama_factory", "swift", "axolotl", "tensorflow"],
)
def test_a_printed_batch_is_read(text: str, rows: int, tokens: int, trained: int | None, tmp_path: Path) -> None:
    batch = inspected(text, tmp_path).batch
    assert (batch.formats, batch.rows, batch.tokens) == (["printed"], rows, tokens)
    assert batch.trained_tokens == trained


def test_an_example_without_any_label_is_an_error(tmp_path: Path) -> None:
    found = [finding.check for finding in inspected(LLAMA_FACTORY, tmp_path).findings]
    assert found == ["all_labels_masked"]


def test_labels_of_tensorflow_are_left_out_with_a_note(tmp_path: Path) -> None:
    answer = inspected(TENSORFLOW, tmp_path)
    assert answer.findings == []
    assert "left out label_ids: TensorFlow programs mask their loss by input_mask, not by -100" in answer.notes


def test_one_label_for_each_row_is_read_as_such(tmp_path: Path) -> None:
    text = "{'input_ids': tensor([[5, 6, 7], [8, 9, 4]]), 'labels': tensor([1, 0])}"
    assert inspected(text, tmp_path).batch.purpose == "classification"


def test_a_print_that_leaves_numbers_out_is_refused(tmp_path: Path) -> None:
    text = "{'input_ids': tensor([[128, 129,  ..., 130, 131]]), 'labels': tensor([[-100, -100,  ..., 130, 131]])}"
    with pytest.raises(InputError, match=r"left numbers out .*torch\.save"):
        inspected(text, tmp_path)


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    text = "input_ids: [[1, 2], [3, 4]]\nlabels: [[1, 2]]\n"
    with pytest.raises(InputError, match="input_ids 2, labels 1"):
        inspected(text, tmp_path)
