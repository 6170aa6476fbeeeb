"""A bare batch, probed with a tiny model of our own."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from .here import probe_here

ROWS = [[random.Random(row * 100 + place).randrange(5, 200) for place in range(16)] for row in range(4)]
VALUES = [[random.Random(row * 10 + place).gauss(0, 1) for place in range(6)] for row in range(12)]


@pytest.mark.parametrize(
    ("batch", "verdict", "cause"),
    [
        ({"input_ids": ROWS, "labels": ROWS}, "memorised", "healthy"),
        ({"input_ids": ROWS}, "memorised", "healthy"),
        ({"input_ids": ROWS, "labels": [0, 1, 2, 0]}, "memorised", "healthy"),
        ({"x": VALUES, "labels": [row % 3 for row in range(12)]}, "memorised", "healthy"),
        ({"x": VALUES, "labels": [float(row) for row in range(12)]}, "memorised", "healthy"),
        ({"input_ids": ROWS, "labels": [[-100] * 16] * 4}, "cannot_learn", "all_labels_masked"),
        ({"input_ids": ROWS, "labels": [[*row[1:], -100] for row in ROWS]}, "memorised", "label_shift_error"),
        ({"x": [VALUES[0]] * 12, "labels": [row % 3 for row in range(12)]}, "cannot_learn", "no_signal"),
    ],
)
def test_a_batch_gets_its_verdict_and_its_cause(
    batch: dict[str, Any], verdict: str, cause: str, tmp_path: Path
) -> None:
    result = probe_here(tmp_path, batch=batch)

    assert (result.verdict, result.causes[0].cause) == (verdict, cause), result.summary


@pytest.mark.parametrize("length", [24, 40])
def test_a_batch_that_is_memorised_lists_no_row_that_was_not(length: int, tmp_path: Path) -> None:
    rows = [[random.Random(row * 77 + place).randrange(5, 900) for place in range(length)] for row in range(3)]
    result = probe_here(tmp_path, batch={"input_ids": rows})
    assert result.verdict == "memorised"
    assert result.accuracy is not None
    assert result.resisting_rows == []


def test_a_row_that_contradicts_another_is_listed_though_the_batch_is_memorised(tmp_path: Path) -> None:
    result = probe_here(tmp_path, batch={"x": [*VALUES, VALUES[3]], "labels": [row % 3 for row in range(12)] + [1]})
    assert {3, 12} >= {row.row for row in result.resisting_rows} != set()
    assert all("different label elsewhere" in row.why for row in result.resisting_rows)


def test_the_first_loss_is_compared_with_a_uniform_guess(tmp_path: Path) -> None:
    result = probe_here(tmp_path, batch={"input_ids": ROWS, "labels": ROWS})

    highest = max(map(max, ROWS))
    assert result.expected_initial_loss == pytest.approx(math.log(highest + 1))
    assert result.initial_loss == pytest.approx(result.expected_initial_loss, rel=0.05)
    assert result.final_loss is not None
    assert result.goal is not None
    assert result.final_loss <= result.goal


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        ({"input_ids": [[1, 2], [3]], "labels": [[1, 2], [3]]}, "pad the rows"),
        ({"labels": [1, 2]}, "needs inputs and labels"),
        ({"input_ids": [[-100, 2]], "labels": [[1, 2]]}, "must not be negative"),
    ],
)
def test_a_batch_that_cannot_be_used_fails_with_what_to_do(batch: dict[str, Any], told: str, tmp_path: Path) -> None:
    result = probe_here(tmp_path, batch=batch)

    assert result.verdict == "failed"
    assert told in result.summary
