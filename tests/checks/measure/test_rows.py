from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.checks.train_eval_gap import rows_behind, sampling_error


@pytest.mark.parametrize("rows", [7, 37, 173])
def test_shares_of_a_small_set_tell_how_many_rows_it_has(rows: int) -> None:
    right = np.array([1, 2, 3, 5, 6]) * (rows // 7)
    assert rows_behind(np.round(right / rows, 4)) == rows


def test_round_shares_and_those_of_many_rows_tell_nothing() -> None:
    assert rows_behind(np.array([0.5, 0.75])) is None
    assert rows_behind(np.array([0.0, 1.0])) is None
    assert rows_behind(np.random.default_rng(0).binomial(10_007, 0.8, 6) / 10_007) is None


def test_random_numbers_are_hardly_ever_taken_for_shares() -> None:
    draw = np.random.default_rng(0)
    taken = [rows_behind(np.round(draw.uniform(0.3, 0.9, 5), 4)) is not None for _ in range(300)]
    assert sum(taken) <= 1


def test_the_error_of_a_share_is_that_of_a_binomial() -> None:
    assert sampling_error(0.5, 100) == pytest.approx(0.05)
    assert sampling_error(1.0, 100) > 0
