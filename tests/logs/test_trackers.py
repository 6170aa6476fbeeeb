"""Files that trackers wrote (see samples/make/trackers.py): exact values, then cut off and broken ones."""

from __future__ import annotations

import math
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import Run, read_run

SAMPLES = Path(__file__).parent / "samples"
STEPS = [10.0 * index for index in range(12)]
LOSSES = [3 / (index + 1) for index in range(12)]
GRAD_NORMS = [math.nan if index == 7 else 1 + index / 8 for index in range(12)]
FILES = ("run.wandb", "mlflow.db", "trackio.db", "events.out.tfevents.simple", "events.out.tfevents.tensor")


def assert_is_the_sample(run: Run, *, precision: type[np.floating] = np.float64) -> None:
    assert run.records == 12
    assert run.step_name == "step"
    assert run["loss"].step.tolist() == STEPS
    assert run["loss"].value.tolist() == np.array(LOSSES, dtype=precision).tolist()
    np.testing.assert_array_equal(run["grad_norm"].value, GRAD_NORMS)
    assert run["eval_loss"].step.tolist() == [30, 70, 110]
    assert run["eval_loss"].value.tolist() == np.array([3.5 / 4, 3.5 / 8, 3.5 / 12], dtype=precision).tolist()


@pytest.mark.parametrize("name", ["events.out.tfevents.simple", "events.out.tfevents.tensor"])
def test_tensorboard_scalars_are_read_in_both_encodings(name: str) -> None:
    run = read_run(SAMPLES / name)
    assert run.formats == ("tensorboard",)
    assert_is_the_sample(run, precision=np.float32)


def test_an_offline_wandb_file_is_read_with_its_configuration() -> None:
    run = read_run(SAMPLES / "run.wandb")
    assert run.formats == ("wandb",)
    assert_is_the_sample(run)
    assert run["nested/a"].value.tolist() == STEPS
    assert run.config == {"learning_rate": 0.001, "optim": "adamw", "adam_beta1": 0.9, "adam_beta2": 0.95}


@pytest.mark.parametrize("name", ["mlflow.db", "mlruns", "mlruns/1"])
def test_mlflow_is_read_from_a_database_and_from_a_folder(name: str) -> None:
    run = read_run(SAMPLES / name)
    assert run.formats == ("mlflow",)
    assert_is_the_sample(run)
    assert run["unbounded"].value.tolist() == [math.inf, -math.inf]
    assert run.setting("learning_rate") == 0.001
    assert run.setting("per_device_train_batch_size") == 8
    assert any("read one, the longest" in note and "one (29), two (3)" in note for note in run.notes)


@pytest.mark.parametrize("name", ["mlflow.db", "mlruns"])
def test_another_run_of_a_store_is_read_by_name(name: str) -> None:
    run = read_run(SAMPLES / name, run="two")
    assert run["loss"].value.tolist() == [1, 2, 3]
    assert run["loss"].step.tolist() == [1, 2, 3]  # logged without a step
    assert any("without a step" in note for note in run.notes)


def test_a_run_that_a_store_does_not_have_is_an_error_that_lists_those_it_has() -> None:
    with pytest.raises(InputError, match=r"no run 'three'; there are one \(29\), two \(3\)"):
        read_run(SAMPLES / "mlflow.db", run="three")


def test_a_trackio_project_is_read_with_its_configuration() -> None:
    run = read_run(SAMPLES / "trackio.db")
    assert run.formats == ("trackio",)
    assert_is_the_sample(run)
    assert run.config == {"learning_rate": 0.001}


def test_reading_a_database_leaves_nothing_beside_it(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "trackio.db", tmp_path / "a project?#%.db")
    before = (tmp_path / "a project?#%.db").read_bytes()
    read_run(tmp_path / "a project?#%.db")
    assert [path.name for path in tmp_path.iterdir()] == ["a project?#%.db"]
    assert (tmp_path / "a project?#%.db").read_bytes() == before


def test_what_is_still_in_the_journal_of_a_live_database_is_read(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "trackio.db", tmp_path / "live.db")
    writer = sqlite3.connect(tmp_path / "live.db")
    writer.execute("PRAGMA journal_mode = WAL")
    run_id = writer.execute("SELECT run_id FROM metrics").fetchone()[0]
    values = ("run_id", "timestamp", "run_name", "step", "metrics")
    writer.execute(
        f"INSERT INTO metrics ({', '.join(values)}) VALUES (?, '', 'one', 120, '{{\"train/loss\": 0.5}}')",  # noqa: S608
        (run_id,),
    )
    writer.commit()
    try:
        assert read_run(tmp_path / "live.db")["loss"].value[-1] == 0.5
    finally:
        writer.close()


def test_a_view_in_the_place_of_the_metrics_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "hostile.db")
    database.execute(
        "CREATE VIEW metrics AS SELECT 1 AS key, 2 AS value, 3 AS timestamp, 4 AS run_uuid, 5 AS step, 0 AS is_nan"
    )
    database.commit()
    database.close()
    with pytest.raises(InputError, match="not MLflow's, Trackio's or Neptune's"):
        read_run(tmp_path / "hostile.db")


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_off_anywhere_is_read_up_to_there_or_refused(name: str, tmp_path: Path) -> None:
    whole = (SAMPLES / name).read_bytes()
    place = tmp_path / name
    records = []
    for size in range(1, len(whole), 37):
        place.write_bytes(whole[:size])
        try:
            run = read_run(place)
        except InputError:
            continue
        records.append(run.records)
        if "loss" in run:
            assert run["loss"].value.tolist() == pytest.approx(LOSSES[: len(run["loss"])])
    assert records == sorted(records)


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_flipped_byte_is_read_or_refused(name: str, tmp_path: Path) -> None:
    whole = (SAMPLES / name).read_bytes()
    place = tmp_path / name
    for at in range(0, len(whole), 41):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            run = read_run(place)
        except InputError:
            continue
        assert run.records <= 12 + 3
        if "loss" in run and name.startswith(("events", "run.wandb")):  # they carry checksums: nothing wrong comes out
            assert set(run["loss"].value.tolist()) <= {*LOSSES, *np.array(LOSSES, np.float32).tolist()}


def test_a_damaged_event_is_left_out_and_told(tmp_path: Path) -> None:
    whole = bytearray((SAMPLES / "events.out.tfevents.simple").read_bytes())
    whole[-6] ^= 1  # inside the last value
    (tmp_path / "events.out.tfevents.x").write_bytes(whole)
    run = read_run(tmp_path / "events.out.tfevents.x")
    assert len(run["eval_loss"]) == 2
    assert any("skipped 1 damaged record(s)" in note for note in run.notes)


def test_mlruns_lines_that_are_cut_off_are_told(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "mlruns", tmp_path / "mlruns")
    (loss,) = (tmp_path / "mlruns").glob("1/*/metrics/train/loss")
    loss.write_text(loss.read_text() + "17951 0.1")
    run = read_run(tmp_path)
    assert run["loss"].value.tolist() == LOSSES
    assert any("skipped 1 line(s) that are cut off" in note for note in run.notes)
