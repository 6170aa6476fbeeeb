"""Batches of image processors: each fault is found, and healthy batches are left alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("PIL")

from tests.batch.matrix import processors

from mldebug_mcp.judge.batch import inspect_batch

FAULTS, HEALTHY = 31, 17
"""So many stand in docs/accuracy.md."""
IMAGENET = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def test_there_are_enough_of_both() -> None:
    assert (len(processors.MADE) - len(processors.HEALTHY), len(processors.HEALTHY)) == (FAULTS, HEALTHY)


@pytest.mark.parametrize("name", processors.MADE)
def test_a_batch_of_a_processor_is_judged_rightly(name: str) -> None:
    sample = processors.sample(name)

    found = sample.inspect()

    assert sample.is_right(found), found


def pixels(*, normalised: int, rows: int = 6) -> np.ndarray:
    """Return bytes as shares, normalised so often with the constants of ImageNet, channels first."""
    shares = np.random.default_rng(3).integers(0, 256, (rows, 20, 24, 3)) / 255
    for _ in range(normalised):
        shares = (shares - IMAGENET[0]) / IMAGENET[1]
    return shares.transpose(0, 3, 1, 2).astype(np.float32)


@pytest.mark.parametrize("digits", [3, 7])
def test_normalising_twice_is_seen_in_numbers_of_few_digits_too(digits: int, tmp_path: Path) -> None:
    file = tmp_path / "batch.json"
    file.write_text(json.dumps({"pixel_values": pixels(normalised=2).round(digits).tolist()}), encoding="utf-8")

    summary = next(one.summary for one in inspect_batch(file).findings if one.check == "input_not_normalized")

    assert "normalised twice with mean 0.485, 0.456, 0.406" in summary


def test_blended_images_are_compared_with_the_range_of_the_processor_alone(tmp_path: Path) -> None:
    once = pixels(normalised=1)
    blended = 0.37 * once + 0.63 * once[::-1]
    np.savez(tmp_path / "batch.npz", pixel_values=blended)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "convnext"}), encoding="utf-8")
    settings = {"image_mean": IMAGENET[0].tolist(), "image_std": IMAGENET[1].tolist()}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings), encoding="utf-8")

    assert inspect_batch(tmp_path / "batch.npz", model=tmp_path).findings == []

    np.savez(tmp_path / "batch.npz", pixel_values=(blended - 0.485) / 0.229)
    found = inspect_batch(tmp_path / "batch.npz", model=tmp_path).findings

    assert [one.check for one in found] == ["input_not_normalized"]
    assert "outside the range of the model's processor" in found[0].summary


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"image_mean": "x"}', '{"image_mean": [0.5], "image_std": [0]}', '{"rescale_factor": true}']
)
def test_a_processor_that_says_nothing_usable_is_left_out(text: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "batch.npz", pixel_values=pixels(normalised=1))
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "preprocessor_config.json").write_text(text, encoding="utf-8")

    assert inspect_batch(tmp_path / "batch.npz", model=tmp_path).findings == []
