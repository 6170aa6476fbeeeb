"""Logs of MLPerf, as mlperf_logging writes them: results at their epochs, settings, and the lines between them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.logs.reading import points, read


def told(key: str, value: object, event: str = "POINT_IN_TIME", **metadata: object) -> str:
    place = {"file": "train.py", "lineno": 12, **metadata}
    line = {"namespace": "", "time_ms": 1.6e12, "event_type": event, "key": key, "value": value, "metadata": place}
    return f":::MLLOG {json.dumps(line)}\n"


SETTINGS = told("global_batch_size", 256) + told("opt_name", "lars") + told("train_samples", 1281167)


def test_values_with_a_place_are_records_and_those_without_are_settings(tmp_path: Path) -> None:
    text = SETTINGS + "".join(told("eval_accuracy", epoch / 10, epoch_num=epoch) for epoch in range(1, 6))
    run = read(tmp_path, text)
    assert run.formats == ("mllog",)
    assert run.step_name == "epoch"
    assert points(run, "eval_accuracy") == {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4, 5: 0.5}
    assert run.config["global_batch_size"] == 256
    assert run.config["train_samples"] == 1281167
    assert "lineno" not in run.series


def test_lines_between_them_are_read_as_text_and_ranks_may_stand_before_the_mark(tmp_path: Path) -> None:
    text = SETTINGS
    for epoch in range(1, 6):
        text += told("epoch_start", None, "INTERVAL_START", epoch_num=epoch)
        text += f"epoch {epoch} step {100 * epoch}: loss {7 - epoch}\n"
        text += f"0: {told('eval_accuracy', epoch / 10, epoch_num=epoch, step_num=100 * epoch)}"
    run = read(tmp_path, text + told("run_stop", None, "INTERVAL_END", status="success"))
    assert points(run, "loss") == {100: 6, 200: 5, 300: 4, 400: 3, 500: 2}
    assert points(run, "eval_accuracy") == {100: 0.1, 200: 0.2, 300: 0.3, 400: 0.4, 500: 0.5}


def test_several_values_of_one_line_are_one_record(tmp_path: Path) -> None:
    text = SETTINGS + "".join(
        told("tracked_stats", {"throughput": 1000.0 + step, "train_loss": 3.0 - step / 100}, step=step)
        for step in range(10, 60, 10)
    )
    run = read(tmp_path, text)
    assert points(run, "loss") == {10: 2.9, 20: 2.8, 30: 2.7, 40: 2.6, 50: 2.5}


def test_the_older_form_is_read(tmp_path: Path) -> None:
    place = '"metadata": {"file": "a.py", "lineno": 3, "epoch_num": %d}'
    text = ':::MLL 1556733699.71 global_batch_size: {"value": 128, "metadata": {"lineno": 1}}\n' + "".join(
        f':::MLL 15567337{epoch}.5 eval_accuracy: {{"value": 0.{epoch}, {place % epoch}}}\n' for epoch in range(1, 5)
    )
    run = read(tmp_path, text)
    assert points(run, "eval_accuracy") == {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}
    assert run.config["global_batch_size"] == 128


def test_a_line_that_is_cut_off_is_counted_in_the_notes(tmp_path: Path) -> None:
    text = SETTINGS + "".join(told("eval_accuracy", epoch / 10, epoch_num=epoch) for epoch in range(1, 6))
    run = read(tmp_path, text + told("eval_accuracy", 0.6, epoch_num=6)[:70])
    assert run.records == 5
    assert "skipped 1 line(s) of MLPerf that are cut off or no JSON" in run.notes
