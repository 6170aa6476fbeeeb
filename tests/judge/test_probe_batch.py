"""What the probe takes from a batch file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.probe import read_probe_batch

IDS = [[5, 6, 7, 8], [7, 3, 2, 9]]


def columns(tmp_path: Path, content: object) -> Any:
    file = tmp_path / "batch.json"
    file.write_text(json.dumps(content))
    return read_probe_batch(file).columns


def test_ids_labels_and_mask_are_taken_as_they_are(tmp_path: Path) -> None:
    batch = {"input_ids": IDS, "labels": IDS, "attention_mask": [[1, 1, 1, 1], [1, 1, 1, 0]]}

    assert columns(tmp_path, batch) == batch


def test_rows_of_different_length_are_padded_with_labels_masked_there(tmp_path: Path) -> None:
    ids = [[5, 6, 7], [7]]

    taken = columns(tmp_path, {"input_ids": ids, "labels": ids})

    assert taken["attention_mask"] == [[1, 1, 1], [1, 0, 0]]
    assert taken["labels"] == [[5, 6, 7], [7, -100, -100]]
    assert taken["input_ids"][1][0] == 7


def test_a_loss_mask_becomes_labels(tmp_path: Path) -> None:
    taken = columns(tmp_path, [{"input_ids": row, "completion_mask": [0, 0, 1, 1]} for row in IDS])

    assert taken["labels"] == [[-100, -100, 7, 8], [-100, -100, 2, 9]]


def test_targets_that_are_the_next_tokens_are_moved_back(tmp_path: Path) -> None:
    taken = columns(tmp_path, {"tokens": IDS, "targets": [[*row[1:], 1] for row in IDS]})

    assert taken["labels"] == [[-100, *row[1:]] for row in IDS]


def test_of_a_preference_batch_the_chosen_rows_are_taken_and_it_says_so(tmp_path: Path) -> None:
    file = tmp_path / "batch.json"
    file.write_text(json.dumps({"chosen_input_ids": IDS, "rejected_input_ids": [row[::-1] for row in IDS]}))

    taken = read_probe_batch(file)

    assert taken.columns["input_ids"] == IDS
    assert taken.notes == ["only the chosen rows are probed"]


@pytest.mark.parametrize(("name", "labels"), [("label", [0, 1]), ("y", [0.5, -1.5])])
def test_float_inputs_keep_their_classes_or_values(name: str, labels: list[float], tmp_path: Path) -> None:
    taken = columns(tmp_path, {"x": [[0.5, math.nan], [0.25, 1.0]], name: labels})

    assert taken["labels"] == labels
    assert math.isnan(taken["x"][0][1])


def test_ids_with_one_class_for_each_row_keep_it(tmp_path: Path) -> None:
    assert columns(tmp_path, {"input_ids": IDS, "labels": [1, 0]})["labels"] == [1, 0]


def test_only_some_rows_of_a_large_file_are_taken(tmp_path: Path) -> None:
    np.savez(tmp_path / "batch.npz", pixel_values=np.zeros((100, 3, 160, 160)), labels=np.arange(100))

    taken = read_probe_batch(tmp_path / "batch.npz").columns

    assert len(taken["pixel_values"]) == len(taken["labels"]) == 52


@pytest.mark.parametrize("labels", [[[5, 6, 7], [7, 3, 2]], [5, 6, 7]])
def test_labels_that_do_not_fit_are_refused_and_not_left_out(labels: list[Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one label for each token or for each row"):
        columns(tmp_path, {"input_ids": IDS, "labels": labels})
