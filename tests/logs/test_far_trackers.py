"""Runs that little-used trackers wrote (see far_trackers.py): every value is held to what was logged."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.logs.far_trackers import EVALUATED_EVERY, RUNS, STEPS

from mldebug_mcp.logs import read_run

FAR = Path(__file__).parent / "samples" / "far"
EXACT = ("dvclive", "swanlab", "comet")
"""Trackers that keep numbers that are not finite."""


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("tracker", EXACT)
def test_every_value_a_tracker_logged_is_read(tracker: str, kind: str) -> None:
    losses, rate = RUNS[kind]
    run = read_run(FAR / tracker / kind)
    assert run.step_name == "step"
    assert run["loss"].step.tolist() == list(range(STEPS))
    np.testing.assert_array_equal(run["loss"].value, losses)
    np.testing.assert_array_equal(run["eval_loss"].value, [x + 0.1 for x in losses[EVALUATED_EVERY - 1 :: 5]])
    assert run["learning_rate"].value.tolist() == [rate] * STEPS
    assert run.setting("learning_rate") == rate
    assert run.setting("per_device_train_batch_size") == 32
    assert not any("damaged" in note for note in run.notes)


@pytest.mark.parametrize("kind", RUNS)
def test_neptune_keeps_the_finite_numbers_at_their_steps(kind: str) -> None:
    losses, rate = RUNS[kind]
    run = read_run(FAR / "neptune" / kind)
    assert run["loss"].value.tolist() == [loss for loss in losses if math.isfinite(loss)]
    assert run["learning_rate"].step.tolist() == list(range(STEPS))
    assert run.setting("learning_rate") == rate


def test_what_clearml_writes_as_zero_is_told() -> None:
    run = read_run(FAR / "clearml" / "diverged")
    assert run["loss"].value[:5].tolist() == RUNS["diverged"][0][:5]
    assert any("NaN and infinities as 0" in note for note in run.notes)
    assert run.setting("learning_rate") == 1.0
    assert run.first_step == 0


@pytest.mark.parametrize("kind", RUNS)
def test_scalars_of_a_dictionary_are_read_with_the_run_above_them(kind: str) -> None:
    run = read_run(FAR / "tensorboard" / kind)
    np.testing.assert_allclose(run["loss"].value, RUNS[kind][0], rtol=1e-6)
    np.testing.assert_allclose(run["accuracy"].value, [0.1 + step * 0.04 for step in range(STEPS)], rtol=1e-6)
    np.testing.assert_allclose(run["eval_accuracy"].value, [0.1 + step * 0.03 for step in range(STEPS)], rtol=1e-6)


def test_all_sets_of_catboost_are_read() -> None:
    run = read_run(FAR / "catboost" / "healthy")
    assert run["loss"].value[0] == 0.6407062531
    assert run["eval_loss"].value[0] == 0.6416872545
    assert run["test1-Logloss"].value[0] == 0.6588275345


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def swanlab_file(points: Sequence[tuple[int, float]]) -> bytes:
    """Return the file of a run of SwanLab with one loss for each step below 128."""
    written = b":SWL\0\0\0"
    for step, loss in points:
        value = field(5, bytes([1 << 3 | 1]) + struct.pack("<d", loss))
        message = field(13, field(1, b"loss") + bytes([2 << 3, step]) + value)
        written += struct.pack("<IHB", zlib.crc32(b"\x01" + message), len(message), 1) + message
    return written


@pytest.mark.parametrize(
    ("steps", "kept"),
    [([*range(0, 60, 2), *range(31, 90, 2)], [*range(0, 31, 2), *range(31, 90, 2)]), (range(60), range(60))],
    ids=["goes back", "goes on"],
)
def test_what_swanlab_keeps_of_a_run_given_up_is_not_in_the_curve_of_the_next(
    steps: Sequence[int], kept: Sequence[int], tmp_path: Path
) -> None:
    (tmp_path / "run.swanlab").write_bytes(swanlab_file([(step, 2.0 - step / 100) for step in steps]))
    run = read_run(tmp_path / "run.swanlab")
    assert run["loss"].step.tolist() == [*kept]
    notes = [note for note in run.notes if "SwanLab keeps the first value of each step" in note]
    assert [("from step 58 to 31" in note) for note in notes] == [True] * (len(steps) != len(kept))
