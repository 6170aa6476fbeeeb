"""Values of curves: by name as logged or by role, in a stretch, thinned so that extremes survive."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import InputError, read_metric
from mldebug_mcp.cli import main
from mldebug_mcp.models import MetricReading
from mldebug_mcp.report.concise import MAX_READING_CHARACTERS, concise_reading, length

STEPS = 5000
SPIKE, DIP = 3210, 4444


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a long log with a spike and a dip of one record each."""
    loss = 2 + np.random.default_rng(0).normal(0, 0.02, STEPS)
    loss[SPIKE - 1], loss[DIP - 1] = 9.0, -1.0
    path = tmp_path / "log.jsonl"
    rows = [
        {"step": step, "train/loss": float(value), "gnorm": 1.0 + step / STEPS, "lr": 1e-3, "frobs": step % 7}
        | ({"eval_loss": 2.5} if step % 500 == 0 else {})
        for step, value in enumerate(loss, start=1)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def points(reading: MetricReading) -> dict[float, float]:
    return dict(reading.series[0].points)


@pytest.mark.parametrize("name", ["train/loss", "loss", "LOSS"])
def test_a_curve_is_found_as_logged_and_by_its_role_and_keeps_its_extremes(log: Path, name: str) -> None:
    reading = read_metric(log, [name], points=40)
    assert reading.series[0].name == "train/loss"
    assert (points(reading)[SPIKE], points(reading)[DIP]) == (9.0, -1.0)
    assert len(reading.series[0].points) <= 60
    assert {1, STEPS} <= points(reading).keys()


def test_a_stretch_is_read_whole_where_it_is_short(log: Path) -> None:
    reading = read_metric(log, ["loss"], first=3205, last=3215)
    assert list(points(reading)) == list(range(3205, 3216))
    assert reading.series[0].records == 11


def test_several_curves_are_read_at_once_and_the_others_are_named(log: Path) -> None:
    reading = read_metric(log, ["grad_norm", "learning_rate", "frobs"])
    assert [one.name for one in reading.series] == ["gnorm", "lr", "frobs"]
    assert "train/loss" in reading.others


def test_a_name_that_is_not_there_is_answered_with_the_nearest(log: Path) -> None:
    with pytest.raises(InputError, match=r"nothing called 'los' is in it; the nearest: .*train/loss"):
        read_metric(log, ["los"])
    with pytest.raises(InputError, match=r"name one to 20 of what .* has: .*train/loss"):
        read_metric(log, [])


def test_a_name_that_is_not_there_leaves_the_others_and_is_a_note(log: Path) -> None:
    reading = read_metric(log, ["grad_norm", "los", "frobs"])
    assert [one.name for one in reading.series] == ["gnorm", "frobs"]
    assert reading.notes[0].startswith("nothing called 'los' is in it; the nearest: ")


def test_a_stretch_without_values_and_a_number_of_points_that_is_none_are_refused(log: Path) -> None:
    with pytest.raises(InputError, match="was logged from step 1 to 5000"):
        read_metric(log, ["loss"], first=9000)
    with pytest.raises(InputError, match="points is 1; use 4 to 2000"):
        read_metric(log, ["loss"], points=1)


def test_the_short_form_has_fewer_points_and_the_extremes(log: Path) -> None:
    short = concise_reading(read_metric(log, ["loss", "grad_norm"], points=2000))
    assert length(short) <= MAX_READING_CHARACTERS
    assert (points(short)[SPIKE], points(short)[DIP]) == (9.0, -1.0)


def test_the_command_prints_a_picture_and_the_numbers(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", str(log), "loss", "--first", "3205", "--last", "3215"]) == 0
    printed = capsys.readouterr().out
    assert "3210: 9" in printed
    assert "█" in printed
    assert main(["read", str(log), "loss", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["series"][0]["metric"] == "loss"


def test_values_that_are_not_finite_are_read_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n" + "".join(f"{at},{'nan' if at > 20 else 3 - at / 20}\n" for at in range(1, 41)))
    assert main(["read", str(path), "loss"]) == 0
    printed = capsys.readouterr().out
    assert "×" in printed
    assert "not finite from 21" in printed
