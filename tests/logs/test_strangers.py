"""Logs as strangers lay them out: names of their own, a configuration above them, facts in prose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.logs import read_run


def test_a_copied_run_of_mlflow_without_its_meta_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "params").mkdir()
    points = "".join(f"17954196{at:05d} {3.0 / at} {at * 10}\n" for at in range(1, 20))
    (tmp_path / "metrics" / "train_loss").write_text(points)
    (tmp_path / "params" / "lr").write_text("0.01")
    run = read_run(tmp_path)
    assert run["loss"].step[:2].tolist() == [10, 20]
    assert run.setting("learning_rate") == 0.01


def test_a_log_with_an_ending_of_its_own_is_found_where_no_other_is(tmp_path: Path) -> None:
    lines = [f"I1123 07:40:47.{at}9691 13312 train.py:88] step {at}0/600 loss={3.9 / at:.4f}" for at in range(1, 30)]
    (tmp_path / "train.INFO").write_text("\n".join(lines))
    (tmp_path / "model.pt").write_bytes(b"\x80\x02")
    assert read_run(tmp_path)["loss"].step[-1] == 290


def test_an_epoch_and_a_batch_in_brackets_are_one_axis(tmp_path: Path) -> None:
    text = "".join(
        f"[{epoch}][{batch:3d}/37] data 0.000s batch 0.010s loss {epoch + batch / 100:.4f} (1.5)\n"
        for epoch in (1, 2)
        for batch in range(0, 37, 4)
    )
    (tmp_path / "run.log").write_text(text)
    loss = read_run(tmp_path)["loss"]
    assert len(loss) == 20
    assert (loss.step[-1] - loss.step[0], loss.value[1]) == (37 + 36, 1.04)


@pytest.mark.parametrize("name", ["out.log", "out.jsonl"])
def test_a_configuration_in_the_first_line_is_none_of_the_metrics(tmp_path: Path, name: str) -> None:
    config = {"type": "config", "algo": "dqn", "lr": 0.002, "bs": 64, "steps": 30, "gamma": 0.9}
    records = [{"iter": at, "loss": 2.0 / at, "grad_norm": 0.5} for at in range(1, 31)]
    text = [json.dumps(one) if name.endswith("l") else f"iter {one['iter']} loss {one['loss']:.4f}" for one in records]
    (tmp_path / name).write_text("\n".join([json.dumps(config), *text]))
    run = read_run(tmp_path)
    assert len(run["loss"]) == 30
    assert not {"bs", "gamma", "learning_rate"} & run.series.keys()
    assert (run.setting("learning_rate"), run.setting("per_device_train_batch_size")) == (0.002, 64)


def test_a_small_configuration_that_is_printed_once_is_one(tmp_path: Path) -> None:
    first = "DQN Corridor-v0 {'exploration_fraction': 0.01, 'learning_starts': 100, 'lr': 0.001, 'tau': 4, 'seed': 1}"
    (tmp_path / "dqn.log").write_text("\n".join([first, *(f"step {at} loss {1 / at:.3f}" for at in range(1, 20))]))
    run = read_run(tmp_path)
    assert (run.setting("exploration_fraction"), run.setting("learning_rate")) == (0.01, 0.001)


@pytest.mark.parametrize(
    ("line", "setting", "value"),
    [
        ("number of parameters: 0.11M, vocab 36, tokens 154830", "vocab_size", 36),
        ("tokenizer vocab: 1,096  pad=0 | model: GPT2LMHeadModel", "vocab_size", 1096),
        ("found 4000 images of 12 classes", "num_labels", 12),
    ],
)
def test_what_prose_says_of_the_vocabulary_and_the_classes_is_a_setting(
    tmp_path: Path, line: str, setting: str, value: float
) -> None:
    (tmp_path / "run.log").write_text("\n".join([line, *(f"iter {at}: loss {3 / at:.3f}" for at in range(1, 20))]))
    assert read_run(tmp_path).setting(setting) == value


def test_a_part_of_the_model_below_the_gradient_is_its_norm(tmp_path: Path) -> None:
    rows = [{"step": at, "loss": 1.0, "grad/first_layer": 1e-9, "grad/head": 0.1} for at in range(1, 20)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    roles = {name: series.role for name, series in read_run(tmp_path).series.items()}
    assert {role.quantity for name, role in roles.items() if role and name.startswith("grad/")} == {"grad_norm"}


def test_lines_that_only_wait_behind_the_last_record_are_a_silence(tmp_path: Path) -> None:
    steps = [
        f"I1123 07:40:{at // 10:02d}.{at % 10}00000 13312 train.py:88] step {at}/600 loss=2.5{at}" for at in range(90)
    ]
    waits = [f"W1123 07:40:{9 + 3 * at}.000000 13312 train.py:88] queue empty, waiting" for at in range(1, 9)]
    (tmp_path / "train.log").write_text("\n".join([*steps, *waits]))
    ending = read_run(tmp_path).ending
    assert ending.how == "silence"
    assert "25 s behind the last record" in ending.text
