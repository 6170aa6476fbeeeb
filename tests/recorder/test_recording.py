from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mldebug_mcp import read_run
from mldebug_mcp.recorder import Recorder
from mldebug_mcp.recorder.recording import Recording

STEPS = 3000


def loss(step: int) -> float:
    return 50.0 if step == 700 else 2 / math.sqrt(step)


def record(path: Path, max_bytes: int, count: int = STEPS) -> Path:
    with Recorder(path, max_bytes=max_bytes) as recorder:
        for step in range(1, count + 1):
            with recorder.step():
                recorder.log(loss=loss(step), accuracy=step / count)
    return recorder.path


def test_parts_are_read_in_order_as_one_run(tmp_path: Path) -> None:
    file = record(tmp_path, 1_200_000)
    assert len(list(tmp_path.glob("recorder.jsonl.*"))) >= 2
    for place in (tmp_path, file):
        run = read_run(place)
        assert run.formats == ("recorder",)
    whole = read_run(tmp_path)
    assert whole["loss"].step.tolist() == list(range(1, STEPS + 1))
    assert len(whole.attempts) == 1
    assert len(whole.segments) == 1


def test_a_recording_stays_within_its_bound_and_keeps_extremes_and_the_newest(tmp_path: Path) -> None:
    record(tmp_path, 200_000)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 220_000
    found = read_run(tmp_path)["loss"]
    assert found.step[0] < 10
    assert found.step[-100:].tolist() == list(range(STEPS - 99, STEPS + 1))
    assert found.at(700) == 50.0
    assert float(found.value[found.step > 710].max()) < 1
    assert found.step.tolist() == sorted(set(found.step.tolist()))


def test_a_recording_ages_evenly(tmp_path: Path) -> None:
    record(tmp_path, 60_000)
    step = read_run(tmp_path)["loss"].step
    halves = [int(((step > low) & (step <= low + STEPS // 4)).sum()) for low in range(0, STEPS, STEPS // 4)]
    assert min(halves) > 10, halves


def test_values_that_are_not_finite_outlive_thinning(tmp_path: Path) -> None:
    with Recorder(tmp_path, max_bytes=60_000) as recorder:
        for step in range(1, STEPS + 1):
            with recorder.step():
                recorder.log(loss=math.nan if step == 900 else 1.0)
    run = read_run(tmp_path)
    assert math.isnan(run["loss"].at(900) or 0.0)
    assert any("become nan" in one.text for one in run.incidents)


def test_a_line_that_a_kill_cut_costs_that_line_alone(tmp_path: Path) -> None:
    file = record(tmp_path, 10**8, 50)
    with file.open("ab") as out:
        out.write(b'{"step": 51, "train/lo')
    record(tmp_path / "other", 10**8, 1)
    with Recorder(tmp_path) as recorder:
        recorder.begin(number=52)
        recorder.log(loss=0.1)
        recorder.end()
    assert read_run(tmp_path / "recorder.jsonl")["loss"].step.tolist() == [*range(1, 51), 52]


def test_a_disk_that_is_full_ends_the_recording_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording(tmp_path / "recorder.jsonl", 10**6, {"recorder": 1})

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mldebug_mcp.recorder.recording.os.write", full)
    recording.write({"step": 1})
    recording.write({"step": 2})
    assert capsys.readouterr().err.count("No space left on device; nothing more is recorded") == 1


def test_what_the_head_tells_is_read_as_settings_and_rows_as_no_metric(tmp_path: Path) -> None:
    sampler = {"kind": "torch.RandomSampler", "seed": 7, "batch_size": 16, "accumulation": 2, "world": 1, "rank": 0}
    records: list[dict[str, object]] = [
        {
            "recorder": 1,
            "rows_kind": "index",
            "data_length": 4000,
            "sampler": sampler,
            "settings": {"learning_rate": 1e-3},
        }
    ]
    records += [{"step": at, "train/loss": 1 / at, "rows": [at, 2 * at]} for at in range(1, 30)]
    (tmp_path / "recorder.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    run = read_run(tmp_path)
    assert set(run.series) == {"loss", "row_again"}  # how many steps ago a batch's first row was there
    assert run.setting("train_rows") == 4000
    assert run.setting("learning_rate") == 1e-3
    assert run.facts.effective_batch == 32


@pytest.mark.parametrize(
    "line",
    ['{"recorder": []}', '{"recorder": 1, "sampler": 7, "settings": [1]}', '{"step": 3, "event": 5}',
     '{"step": 3, "event": "nonfinite", "began": {"outputs": 4}, "value": "x"}', '{"step": 1e999, "event": "spike"}',
     '{"step": 3, "event": "hang", "stacks": {"a": []}}', f'{{"step": {"9" * 400}, "event": "spike"}}',
     f'{{"step": 3, "event": "spike", "value": {"9" * 400}}}'],
)  # fmt: skip
def test_heads_and_events_of_any_shape_are_read(tmp_path: Path, line: str) -> None:
    file = tmp_path / "recorder.jsonl"
    rest = "".join(f'{{"step": {at}, "train/loss": {1 / at}}}\n' for at in range(1, 9))
    file.write_text(f'{{"recorder": 1}}\n{rest}{line}\n', encoding="utf-8")
    assert len(read_run(file)["loss"]) == 8
