"""The whole path on logs of classifiers, image models, boosting and agents: the cause that leads, and how surely."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike
from tests.runs import decay, noisy

from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.models import Hypothesis


def _diagnosed(folder: Path, columns: Mapping[str, ArrayLike]) -> list[Hypothesis]:
    """Write one record per row of the columns and return the ranking."""
    rows = zip(*(np.asarray(one, dtype=float).tolist() for one in columns.values()), strict=True)
    log = folder / "metrics.jsonl"
    log.write_text("\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows), encoding="utf-8")
    return diagnose_run(log).hypotheses


def _epochs(count: int, **columns: ArrayLike) -> dict[str, ArrayLike]:
    return {"epoch": np.arange(count), **columns}


def test_a_batch_that_takes_some_records_to_get_over_is_still_a_bad_batch(tmp_path: Path) -> None:
    loss = noisy(decay(280, 2.3, 0.05), 0.05)
    loss[150:155] = [440.0, 60.0, 20.0, 9.0, 3.0]
    norm = noisy(np.full(280, 1.0), 0.1, 1)
    norm[150] = 700.0
    leading = _diagnosed(tmp_path, {"step": 2 * np.arange(280), "loss": loss, "grad_norm": norm})[0]
    assert leading.cause == "bad_batch"


def test_an_adversarial_term_that_sets_in_leaves_a_run_healthy(tmp_path: Path) -> None:
    there = np.arange(260) >= 110
    parts = noisy(decay(260, 0.6, 0.12), 0.03)
    total = parts + there * (0.25 + 0.4 * np.exp(-np.maximum(0, np.arange(260) - 110) / 15))
    columns = {"step": 100 * np.arange(260), "loss": total, "rec_loss": parts, "disc_loss": 1.0 * there}
    leading = _diagnosed(tmp_path, columns)[0]
    assert leading.cause == "healthy"
    assert leading.probability > 0.5


@pytest.mark.parametrize(("floor", "cause"), [(0.64, "healthy"), (1.49, "double_softmax")])
def test_smoothed_labels_are_told_from_a_softmax_before_the_loss(tmp_path: Path, floor: float, cause: str) -> None:
    right = decay(30, 0.3, 0.985, 12)
    spread = (2.461 - floor) - 0.985
    losses = 2.461 - right - spread * (right - 0.3) / 0.685
    columns = _epochs(30, loss=losses + 0.01, val_loss=losses, accuracy=right - 0.01, val_accuracy=right)
    first = np.asarray(columns["loss"])
    first[0] = np.log(10)
    assert _diagnosed(tmp_path, columns)[0].cause == cause


def test_labels_that_were_permuted_for_evaluation_are_no_lack_of_signal(tmp_path: Path) -> None:
    columns = _epochs(
        20,
        loss=decay(20, 1.7, 0.02),
        accuracy=decay(20, 0.5, 0.99),
        val_loss=decay(20, 4.1, 15, 3),
        val_accuracy=np.tile([0.0, 0.002, 0.004, 0.002], 5),
    )
    leading = _diagnosed(tmp_path, columns)[0]
    assert leading.cause == "train_eval_mismatch"


def test_a_classifier_that_memorises_shuffled_labels_lacks_signal(tmp_path: Path) -> None:
    columns = _epochs(
        40,
        loss=decay(40, 2.31, 0.3, 3),
        accuracy=decay(40, 0.1, 0.95, 3),
        val_loss=2.303 + 0.05 * np.arange(40),
        val_accuracy=noisy(np.full(40, 0.1), 0.03),
    )
    ranked = _diagnosed(tmp_path, columns)
    assert "no_signal" in [one.cause for one in ranked[:2]]
    assert ranked[0].probability < 0.95


def test_a_training_that_broke_down_is_not_blamed_on_evaluation(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    columns = _epochs(
        14,
        loss=[2.33, *draw.uniform(3, 11, 13)],
        accuracy=[0.22, *draw.uniform(0.09, 0.12, 13)],
        val_loss=[5.9, *np.exp(draw.uniform(1.5, 7, 13))],
        val_accuracy=[0.29, *draw.uniform(0.09, 0.13, 13)],
    )
    leading = _diagnosed(tmp_path, columns)[0]
    assert leading.cause in {"lr_too_high", "missing_zero_grad"}


def test_policies_that_are_clipped_by_half_at_a_high_rate_speak_of_the_rate(tmp_path: Path) -> None:
    columns: dict[str, ArrayLike] = {
        "time/total_timesteps": 2048 * np.arange(1, 41),
        "rollout/ep_rew_mean": noisy(np.full(40, 20.0), 0.05),
        "train/clip_fraction": [0.1] * 5 + [0.55] * 35,
        "train/learning_rate": [0.1] * 40,
        "train/entropy_loss": noisy(np.full(40, -0.6), 0.02),
    }
    first = [one.cause for one in _diagnosed(tmp_path, columns)[:3]]
    assert "lr_too_high" in first
