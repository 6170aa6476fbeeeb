"""Kinds of logs that little-used frameworks write: counters, objects, bars and nulls that mean something else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import Run, read_run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def bars(head: str, lengths: tuple[int, ...], losses: Sequence[tuple[float, ...]]) -> str:
    lines = []
    for epoch, row in enumerate(losses, start=1):
        lines.append(f"Epoch {epoch}/{len(losses)}")
        for length, loss in zip(lengths, row, strict=True):
            lines += [head.format(at=at, total=length, loss=loss) for at in (length // 2, length)]
    return "\n".join(lines) + "\n"


TQDM = "100%|██████████| {at}/{total} [00:10<00:00, 5.0it/s, loss={loss:.4f}]"
PROGRESS = "Processing |################| ({at}/{total}) Batch: 0.27s | Loss: {loss:.4f}"


@pytest.mark.parametrize("head", [TQDM, PROGRESS])
def test_the_second_bar_of_an_epoch_is_validation(log: Path, head: str) -> None:
    log.write_text(bars(head, (40, 8), [(2.0, 2.5), (1.0, 2.0), (0.5, 1.5)]))
    run = read_run(log)
    assert len(run.attempts) == 1
    assert run["loss"].value[1::2].tolist() == [2.0, 1.0, 0.5]
    assert run["eval_loss"].value.tolist() == [2.5, 2.0, 1.5]
    assert run["eval_loss"].step.tolist() == [40, 80, 120]


def test_the_second_bar_is_validation_in_a_long_log(log: Path) -> None:
    losses = [(2.0 / epoch, 2.5 / epoch) for epoch in range(1, 301)]
    log.write_text(bars(TQDM, (40, 8), losses))
    run = read_run(log)
    assert len(run["loss"]) == 600
    np.testing.assert_allclose(run["eval_loss"].value, [one for _, one in losses], atol=1e-4)


@pytest.mark.parametrize("phases", [("Train ", "Val "), ("", "")])
@pytest.mark.parametrize("epochs", [3, 200])
def test_steps_of_another_length_in_an_epoch_are_of_validation(log: Path, phases: tuple[str, str], epochs: int) -> None:
    train, validation = phases
    lines = []
    for epoch in range(1, epochs + 1):
        lines.append(f"Epoch {epoch}/{epochs}")
        lines += [f"{train}step {at}/100 loss: {2 / epoch:.4f} acc: 0.3" for at in range(20, 101, 20)]
        lines += [f"{validation}step {at}/20 loss: {2.2 / epoch:.4f} acc: 0.2" for at in range(10, 21, 10)]
    log.write_text("\n".join(lines) + "\n")
    run = read_run(log)
    assert run["loss"].step.tolist() == [20.0 * step for step in range(1, 5 * epochs + 1)]
    assert run["eval_loss"].step.tolist() == [100.0 * epoch for epoch in range(1, epochs + 1)]
    np.testing.assert_allclose(run["eval_loss"].value, [2.2 / epoch for epoch in range(1, epochs + 1)], atol=1e-4)


def test_a_bar_of_training_stays_one_whatever_its_length(log: Path) -> None:
    text = bars(TQDM, (40, 40), [(2.0, 1.9), (1.0, 0.9)])
    log.write_text(text)
    assert "eval_loss" not in read_run(log)


def test_a_count_of_each_iteration_is_not_its_step(log: Path) -> None:
    rows = [(0, 33867), (1, 32273), (2, 33756), (3, 33340), (4, 33495), (5, 32905)]
    block = "Iteration: \t {}\nNumTrajs: \t 200\nNumTimesteps: \t {}\nLoss:     \t {}\nMeanRew: \t -260.0\n-----\n"
    log.write_text("".join(block.format(*row, 0.1 + row[0]) for row in rows))
    run = read_run(log)
    assert len(run.attempts) == 1
    assert run["loss"].step.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_count_of_each_iteration_is_not_the_step_of_a_table(log: Path) -> None:
    rows = [(33867, 0), (32273, 1), (33756, 2), (33340, 3), (33495, 4), (32905, 5)]
    table = log.with_suffix(".csv")
    table.write_text("timesteps,iteration,loss\n" + "".join(f"{a},{b},{0.1 + b}\n" for a, b in rows))
    run = read_run(table)
    assert len(run.attempts) == 1
    assert run["loss"].step.tolist() == [0, 1, 2, 3, 4, 5]
    assert any("no step of the run" in note for note in run.notes)


def test_the_current_metric_of_paddle_is_of_evaluation(log: Path) -> None:
    lines = []
    for step in range(10, 201, 10):
        place = f"[2022/01/01 10:00:00] ppocr INFO: epoch: [{step // 50 + 1}/100], global_step: {step}"
        lines.append(
            f"{place}, lr: 0.0001, acc: {step / 400}, norm_edit_dis: {step / 300:.4f}, loss: {25.3 - step / 10}"
        )
        if step % 50 == 0:
            lines.append(f"[2022/01/01 10:00:00] ppocr INFO: cur metric, acc: {step / 500}, fps: 1000.0")
            lines.append("[2022/01/01 10:00:00] ppocr INFO: best metric, acc: 0.9, is_float16: False, best_epoch: 1")
    log.write_text("\n".join(lines) + "\n")
    run = read_run(log)
    assert run["accuracy"].value.tolist() == [step / 400 for step in range(10, 201, 10)]
    assert run["eval_accuracy"].step.tolist() == [50, 100, 150, 200]
    assert run["eval_accuracy"].value.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert diagnose_run(log).hypotheses[0].cause == "healthy"


OBJECTS = (
    "0 {\n  val_loss: 1.637,\n  loss: 3.154\n}\n1 {\n  val_loss: 0.462,\n  loss: NaN\n}\n",
    "0 { val_loss: 1.637, loss: 3.154 }\n1 { val_loss: 0.462, loss: NaN }\n",
    "Epoch 0 {\n  val_loss: 1.637,\n  loss: 3.154\n}\nEpoch 1 {\n  val_loss: 0.462,\n  loss: NaN\n}\n",
)


@pytest.mark.parametrize("text", OBJECTS)
def test_objects_that_javascript_prints_are_records(log: Path, text: str) -> None:
    log.write_text(text)
    run = read_run(log)
    assert run.step_name == "epoch"
    assert run["loss"].step.tolist() == [0, 1]
    np.testing.assert_array_equal(run["loss"].value, [3.154, np.nan])
    assert run["eval_loss"].value.tolist() == [1.637, 0.462]


def test_a_null_after_numbers_is_read_as_nan_and_noted(log: Path) -> None:
    lines = log.with_suffix(".jsonl")
    lines.write_text('{"epoch":0,"loss":2.5}\n{"epoch":1,"loss":null}\n{"epoch":2,"loss":null}\n')
    run = read_run(lines)
    np.testing.assert_array_equal(run["loss"].value, [2.5, np.nan, np.nan])
    assert run["loss"].step.tolist() == [0, 1, 2]
    assert any("null is read as NaN" in note for note in run.notes)


@pytest.mark.parametrize("values", ["1.2", "nan"])
def test_a_precision_of_fp32_refutes_an_overflow_in_fp16(tmp_path: Path, values: str) -> None:
    for name, header in (("text", "loss"), ("policy", "reward,value_loss,policy_loss,loss")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text('{"precision": "fp32", "lr": 0.001}')
        count = header.count(",") + 1
        rows = "".join(f"{i},{','.join(['2.0' if i < 20 else values] * count)}\n" for i in range(30))
        (folder / "progress.csv").write_text(f"step,{header}\n{rows}")
        found = {one.cause: one.probability for one in diagnose_run(folder).hypotheses}
        assert found.get("fp16_overflow", 0.0) < 0.02


def test_a_rate_beyond_all_optimizers_explains_a_loss_that_is_lost(tmp_path: Path) -> None:
    records = [{"step": i, "loss": 2.3 if i == 0 else float("inf"), "learning_rate": 1e4} for i in range(20)]
    run_of([dict(record) for record in records], tmp_path)
    assert diagnose_run(tmp_path / "log.jsonl").hypotheses[0].cause == "lr_too_high"


def run_of(records: list[dict[str, object]], folder: Path) -> Run:
    path = folder / "log.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return read_run(path)


@pytest.mark.parametrize("size", [11, 20_000])
def test_a_null_between_evaluations_is_not_logged(tmp_path: Path, size: int) -> None:
    records = [{"step": i, "loss": 1.0 / (i + 1), "val_loss": 0.5 if i % 3 == 0 else None} for i in range(size)]
    run = run_of([dict(record) for record in records], tmp_path)
    assert len(run["eval_loss"]) == (size + 2) // 3
    assert not any("null" in note for note in run.notes)


def test_a_closing_record_of_evaluation_leaves_training_as_it_was(tmp_path: Path) -> None:
    records: list[dict[str, object]] = [{"step": i, "loss": 1.0, "test_loss": None} for i in range(5)]
    run = run_of([*records, {"step": 4, "loss": None, "test_loss": 0.9}], tmp_path)
    assert bool(np.isfinite(run["loss"].value).all())


def test_a_history_with_nulls_keeps_where_the_loss_was_lost(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text('{"loss":[2.5,1.2,null,null],"acc":[0.1,0.2,0.1,0.1]}')
    np.testing.assert_array_equal(read_run(path)["loss"].value, [2.5, 1.2, np.nan, np.nan])


def of_named_numbers(delimiter: str) -> str:
    rows = [("step", step, "loss", 2.5 - step / 10, "accuracy", 0.3 + step / 50) for step in range(1, 13)]
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


def test_a_line_that_names_its_numbers_is_no_header(log: Path) -> None:
    log.write_text(of_named_numbers(","))
    with pytest.raises(InputError, match="no metrics found"):
        read_run(log)


def test_names_between_numbers_name_those_behind_them(log: Path) -> None:
    log.write_text(of_named_numbers(";"))
    run = read_run(log)
    assert run["loss"].step.tolist() == list(range(1, 13))
    assert run["loss"].value.tolist() == [2.5 - step / 10 for step in range(1, 13)]
    assert run["accuracy"].value[-1] == 0.3 + 12 / 50


def test_tabs_between_names_and_numbers_are_read(log: Path) -> None:
    log.write_text(of_named_numbers("\t"))
    run = read_run(log)
    assert run.step_name == "step"
    assert run["loss"].step.tolist() == list(range(1, 13))
    assert run["loss"].value.tolist() == pytest.approx([2.5 - step / 10 for step in range(1, 13)])
    assert run["accuracy"].value.tolist() == pytest.approx([0.3 + step / 50 for step in range(1, 13)])


@pytest.mark.parametrize("name", ["perte_validation", "perdita_val", "verlust_val", "perdida_val"])
def test_a_loss_of_validation_in_another_language_is_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "log.csv").write_text(f"epoch,{name}\n1,2.0\n2,1.9\n3,1.7\n", encoding="utf-8")
    assert read_run(tmp_path / "log.csv")["eval_loss"].value.tolist() == [2.0, 1.9, 1.7]


def test_what_a_logger_captures_of_the_console_is_left_out_next_to_its_own_lines(tmp_path: Path) -> None:
    folder = Path(__file__).parent / "samples" / "far" / "composer"
    own = (folder / "healthy.txt").read_text().splitlines()
    console = (folder / "healthy.log").read_text().splitlines()
    bars = ["[stderr]: train  40%|####      | 6/15 [00:01<00:02, 4.1ba/s, loss/train/total=0.6]"]
    failed = ["[stderr]: Traceback (most recent call last):", "[stderr]: ValueError: the last batch is empty"]
    mixed = [
        line
        for place, line in enumerate(own)
        for line in (line, *(f"[stdout]: {said}" for said in console[place : place + 1]))
    ]
    (tmp_path / "log.txt").write_text("\n".join([*mixed, *bars, *failed]))
    run, alone = read_run(tmp_path / "log.txt"), read_run(folder / "healthy.txt")
    assert {name: (series.step.tolist(), series.value.tolist()) for name, series in run.series.items()} == {
        name: (series.step.tolist(), series.value.tolist()) for name, series in alone.series.items()
    }
    assert "left out lines under [stdout] and bars under [stderr]: the console's copies of records" in run.notes
    assert any("the last batch is empty" in message.text for message in run.messages)
