"""Tables of two columns look like boxes of names and values; records may stand within the fields of a logger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.logs import read_run

GRID = """\
+--------------+--------------+
| global_step  | trainLossMean|
+--------------+--------------+
| 5            | 2.469        |
| 10           | 2.225        |
+--------------+--------------+
| global_step  | evalLossMean |
+--------------+--------------+
| 10           | 1.703        |
+--------------+--------------+
"""
MARKDOWN = """\
| global_step | loss_mean |
| --- | --- |
| 5 | 2.469 |
| 10 | 2.225 |
| global_step | dev_loss_mean |
| --- | --- |
| 10 | 1.703 |
"""


@pytest.mark.parametrize("text", [GRID, MARKDOWN], ids=["grid", "markdown"])
def test_a_table_of_two_columns_is_read_by_its_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.log").write_text(text)
    run = read_run(tmp_path / "train.log")
    assert run["loss"].step.tolist() == [5, 10]
    assert run["loss"].value.tolist() == [2.469, 2.225]
    assert (run["eval_loss"].step.tolist(), run["eval_loss"].value.tolist()) == ([10], [1.703])


def test_a_record_within_the_fields_of_a_logger_is_no_configuration(tmp_path: Path) -> None:
    numbers = [{"step": at, "training/loss": 2.0 / at, "training/lr": 1e-3, "clip_ratio": 0.1, "max_length": 7,
                "num_tokens": 90} for at in range(1, 30)]  # fmt: skip
    lines = [json.dumps({"time": "2025-03-14T09:26:54", "level": "INFO", "data": one}) for one in numbers]
    (tmp_path / "train.log").write_text("\n".join(["Using device: cuda:0", *lines]))
    run = read_run(tmp_path / "train.log")
    assert dict(run.config) == {}
    assert run["loss"].step.tolist() == list(range(1, 30))


def test_lines_of_text_with_a_number_behind_a_tab_are_no_table(tmp_path: Path) -> None:
    lines = [f"2026-11-01T10:00:{second:02}Z train loss\t{2.46 - second / 100:.2f}" for second in range(60)]
    (tmp_path / "train.log").write_text("\n".join(lines))
    loss = read_run(tmp_path / "train.log")["loss"]
    assert len(loss) == 60
    assert loss.value[0] == 2.46


ROWS = """\
replay_buffer/size              {0}000
trainer/QF1 Loss                   {1}
trainer/Policy Loss               -{0}.5
evaluation/Average Returns       {0}25.5
Epoch                              {0}
"""


@pytest.mark.parametrize(("above", "begins"), [("-----  ------\n", ""), ("", ""), ("", "> ")])
def test_rows_of_two_columns_whose_counter_comes_last_are_one_record(tmp_path: Path, above: str, begins: str) -> None:
    blocks = [above + ROWS.format(epoch, 9.5 - epoch) + (above or "\n") for epoch in range(4)]
    lines = [begins + line for block in blocks for line in block.splitlines()]
    (tmp_path / "train.log").write_text("\n".join(lines))
    run = read_run(tmp_path / "train.log")
    assert run.step_name == "epoch"
    read = {name: run[name].value.tolist() for name in ("value_loss", "policy_loss", "replay_buffer/size")}
    assert read["value_loss"] == [9.5, 8.5, 7.5, 6.5]
    assert read["policy_loss"] == [-0.5, -1.5, -2.5, -3.5]
    assert read["replay_buffer/size"] == [0, 1000, 2000, 3000]
    assert run["value_loss"].step.tolist() == [0, 1, 2, 3]


def test_boxes_that_empty_lines_part_are_records_of_their_own(tmp_path: Path) -> None:
    boxes = [f"| train/ |      |\n| loss   | {2 - at / 8} |\n| step   | {at} |\n| lr     | 0.1 |\n" for at in range(5)]
    (tmp_path / "train.log").write_text("\n".join(boxes))
    run = read_run(tmp_path / "train.log")
    assert run["loss"].step.tolist() == [0, 1, 2, 3, 4]
    assert run["loss"].value.tolist() == [2, 1.875, 1.75, 1.625, 1.5]


def test_a_box_above_an_error_stands_before_it(tmp_path: Path) -> None:
    boxes = [f"| step | {at} |\n| loss | {2 - at / 8} |\n" for at in range(5)]
    (tmp_path / "train.log").write_text("-----\n".join(boxes) + "ValueError: out of rows\n")
    (message,) = read_run(tmp_path / "train.log").messages
    assert message.records == 5
