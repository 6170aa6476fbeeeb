"""One axis for training and evaluation: the same run logged by steps, epochs, batches, samples, tokens or time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.logs.reading import points, read

from mldebug_mcp.logs import Run, read_run

EPOCHS, BATCHES, EVERY = 6, 120, 10
ONSET = 41
"""Index of the training record at which the loss jumps."""
Record = dict[str, float]


def _losses() -> list[float]:
    count = EPOCHS * BATCHES // EVERY
    return [round(3.0 - 1.5 * at / count + (2.0 if at >= ONSET else 0.0) + 0.01 * (at % 3), 5) for at in range(count)]


def _evaluations() -> list[float]:
    return [round(3.1 - at / 4, 5) for at in range(EPOCHS)]


def _jsonl(train: Callable[[int, float], Record], evaluation: Callable[[int, float], Record]) -> str:
    """Write a run as records; `train` gets the step and the loss, `evaluation` the epochs done and its loss."""
    rows: list[Record] = []
    for at, loss in enumerate(_losses(), start=1):
        rows.append(train(at * EVERY, loss))
        if at * EVERY % BATCHES == 0:
            rows.append(evaluation(at * EVERY // BATCHES, _evaluations()[at * EVERY // BATCHES - 1]))
    return "".join(json.dumps(row) + "\n" for row in rows)


def _counting(name: str, unit: float) -> str:
    """Write a run that counts something else than steps, so many at each."""
    return _jsonl(
        lambda step, loss: {name: step * unit, "loss": loss},
        lambda epoch, loss: {name: epoch * BATCHES * unit, "eval_loss": loss},
    )


def _text(train: Callable[[int, int, float], str], evaluation: Callable[[int, float], str]) -> str:
    """Write a run as text; `train` gets the epoch from 0, the step and the loss."""
    lines = []
    for at, loss in enumerate(_losses(), start=1):
        step = at * EVERY
        lines.append(train((step - 1) // BATCHES, step, loss))
        if step % BATCHES == 0:
            lines.append(evaluation(step // BATCHES, _evaluations()[step // BATCHES - 1]))
    return "\n".join(lines) + "\n"


PLAN = EPOCHS * BATCHES
STYLES: Mapping[str, tuple[str, str, float]] = {
    "steps": (
        _jsonl(lambda s, x: {"step": s, "loss": x}, lambda e, x: {"step": e * BATCHES, "eval_loss": x}),
        "log.jsonl", 1.0,
    ),
    "steps, and evaluations by their epoch": (
        _jsonl(lambda s, x: {"step": s, "epoch": s / BATCHES, "loss": x}, lambda e, x: {"epoch": e, "eval_loss": x}),
        "log.jsonl", 1.0,
    ),
    "fractions of epochs": (
        _jsonl(lambda s, x: {"epoch": s / BATCHES, "loss": x}, lambda e, x: {"epoch": e, "eval_loss": x}),
        "log.jsonl", 1 / BATCHES,
    ),
    "tokens": (_counting("num_tokens", 512), "log.jsonl", 512.0),
    "samples": (_counting("samples_seen", 8), "log.jsonl", 8.0),
    "seconds": (_counting("elapsed", 0.5), "log.jsonl", 0.5),
    "batches within an epoch": (
        _text(
            lambda e, s, x: f"Epoch [{e + 1}][{(s - 1) % BATCHES + 1}/{BATCHES}] loss: {x}",
            lambda e, x: f"Epoch {e} val_loss: {x}",
        ),
        "train.log", 1.0,
    ),
    "batches over all epochs": (
        _text(
            lambda e, s, x: f"INFO train - epoch {e} step {s}/{PLAN} loss={x} lr=0.001",
            lambda e, x: f"INFO eval  - step {e * BATCHES} val_loss={x}",
        ),
        "train.log", 1.0,
    ),
    "steps that start again with each epoch": (
        _jsonl(
            lambda s, x: {"epoch": (s - 1) // BATCHES, "step": (s - 1) % BATCHES + 1, "loss": x},
            lambda e, x: {"epoch": e - 1, "eval_loss": x},
        ),
        "log.jsonl", 1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_a_run_is_the_same_whatever_its_axis_is(style: str, tmp_path: Path) -> None:
    text, name, unit = STYLES[style]
    run = read(tmp_path, text, name)
    loss, evaluation = run["loss"], run["eval_loss"]
    assert (len(run.attempts), len(run.segments)) == (1, 1)
    assert loss.value.tolist() == _losses()
    assert evaluation.value.tolist() == _evaluations()
    assert bool(np.all(np.diff(loss.step) > 0))
    interval = EVERY * unit
    assert loss.step.tolist() == pytest.approx([interval * at for at in range(1, len(loss) + 1)])
    # each evaluation stands by the last record of its epoch, and the jump within one record of where it is
    ends = loss.step[BATCHES // EVERY - 1 :: BATCHES // EVERY]
    assert evaluation.step.tolist() == pytest.approx(ends.tolist(), abs=0.5 * interval)
    onset = loss.step[int(np.argmax(np.diff(loss.value))) + 1]
    assert onset == pytest.approx((ONSET + 1) * interval, abs=interval)


def test_a_batch_that_counts_over_all_epochs_is_the_step_of_training_and_evaluation(tmp_path: Path) -> None:
    lines = [f"epoch {step // 44} step {step}/440 loss={3 - step / 300:.4f} acc=0.5" for step in range(4, 441, 4)]
    lines[54:54] = ["Resuming from checkpoint at step 216"]
    lines += ["eval - step 440 val_loss=1.5000"]
    run = read(tmp_path, "\n".join(lines) + "\n")
    assert run["loss"].step.tolist() == list(range(4, 441, 4))
    assert run["eval_loss"].step.tolist() == [440]
    assert run.resumes == (220,)


@pytest.mark.parametrize("every", [1, 4])
def test_a_counter_over_all_epochs_is_the_step_where_the_log_begins_in_a_later_epoch(
    tmp_path: Path, every: int
) -> None:
    steps = list(range(224, 441, every))
    run = read(tmp_path, "".join(f"epoch {step // 44} step {step}/440 loss={3 - step / 300:.4f}\n" for step in steps))
    assert run["loss"].step.tolist() == steps
    assert len(run.attempts) == 1


def test_a_bar_drawn_once_in_each_short_epoch_may_count_over_all_of_them(tmp_path: Path) -> None:
    bar = "Epoch {}: 10%|█ | {}/96 [73.89it/s, loss={}]"
    over_all = [bar.format(epoch, 8 * epoch - 4, 3 - epoch / 8) for epoch in range(1, 13)]
    assert read(tmp_path, "\n".join(over_all) + "\n")["loss"].step.tolist() == list(range(4, 96, 8))
    within = [bar.format(epoch, 8 * (7 * epoch % 12) + 4, 3 - epoch / 8) for epoch in range(1, 13)]
    steps = read(tmp_path, "\n".join(within) + "\n")["loss"].step.tolist()
    assert steps == [96 * (epoch - 1) + 8 * (7 * epoch % 12) + 4 for epoch in range(1, 13)]


def test_evaluations_at_the_end_of_a_log_stand_where_their_epochs_ended(tmp_path: Path) -> None:
    rows: list[Record] = [{"step": at * 10, "epoch": at // 10, "loss": 3 - at / 50} for at in range(60)]
    rows += [{"epoch": epoch, "eval_loss": 3.0 - epoch / 5} for epoch in range(6)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_run(tmp_path / "log.jsonl")
    assert run["eval_loss"].step.tolist() == [90, 190, 290, 390, 490, 590]


def _two_files(folder: Path, first_epoch: int) -> Run:
    rows = [f"{at * 10},{at // 10},{3 - at / 50}\n" for at in range(60)]
    (folder / "train.csv").write_text("step,epoch,loss\n" + "".join(rows))
    held_out = [f"{epoch + first_epoch},{3.2 - epoch / 5:.2f}\n" for epoch in range(6)]
    (folder / "eval.csv").write_text("epoch,eval_loss\n" + "".join(held_out))
    return read_run(folder)


@pytest.mark.parametrize("first_epoch", [0, 1])
def test_evaluations_of_another_file_are_placed_by_records_that_tell_step_and_epoch(
    first_epoch: int, tmp_path: Path
) -> None:
    run = _two_files(tmp_path, first_epoch)
    assert run.step_name == "step"
    assert points(run, "eval_loss") == {90: 3.2, 190: 3.0, 290: 2.8, 390: 2.6, 490: 2.4, 590: 2.2}


def test_a_resume_within_an_epoch_keeps_the_steps_of_the_epochs_before(tmp_path: Path) -> None:
    rows = [{"epoch": at // 50, "step": at % 50 + 1, "loss": 4 - at / 100} for at in (*range(180), *range(160, 250))]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_run(tmp_path / "log.jsonl")
    assert len(run.attempts) == 1
    assert run["loss"].step.tolist() == list(range(1, 251))
    assert [segment.first_step for segment in run.segments] == [1, 161]


MINDSPORE = "".join(
    f"epoch: {epoch} step: {step}, loss is {3 - step / 100 - epoch / 10}\n" + "epoch time\n" * (step == 180)
    for epoch in (1, 2, 3)
    for step in (60, 120, 180)
)
"""Lines each 60 steps of epochs of 187, as MindSpore prints them."""


def test_steps_are_counted_on_by_the_times_of_an_epoch_and_of_a_step(tmp_path: Path) -> None:
    timed = MINDSPORE.replace("epoch time", "Train epoch time: 1870.120 ms, per step time: 10.001 ms")
    run = read(tmp_path, timed)
    assert run["loss"].step.tolist() == [60, 120, 180, 247, 307, 367, 434, 494, 554]
    assert any("epochs of 187 steps" in note for note in run.notes)


def test_steps_behind_the_last_printed_one_of_an_epoch_are_unknown(tmp_path: Path) -> None:
    run = read(tmp_path, MINDSPORE.replace("epoch time\n", ""))
    assert run["loss"].step.tolist() == [60, 120, 180, 240, 300, 360, 420, 480, 540]
    assert any("may have up to 59 more" in note for note in run.notes)


UPDATES, STEPS_OF_UPDATE = 12, 256


def _episodes_and_updates(update: str, count: Callable[[int], int]) -> str:
    """Write episodes by the steps of the environment, and below them the updates by a counter of their own."""
    lines = []
    for at in range(1, UPDATES + 1):
        ended = () if at == 7 else (STEPS_OF_UPDATE * at - 200, STEPS_OF_UPDATE * at - 40)
        lines += [f"global_step={step}, episodic_return={20 + at}" for step in ended]
        lines.append(update.format(count(at), round(9 - at / 2, 3)))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("update", ["update {}/12 value_loss={} entropy=0.6", "iteration {}: value_loss {}"])
def test_updates_stand_at_the_steps_of_the_episodes_between_which_they_are_printed(update: str, tmp_path: Path) -> None:
    run = read(tmp_path, _episodes_and_updates(update, lambda at: at))
    assert len(run.segments) == 1
    assert not run.planned
    steps = list(points(run, "value_loss"))
    assert steps[:6] == [STEPS_OF_UPDATE * at - 40 for at in range(1, 7)]
    assert steps[5] < steps[6] < steps[7] == STEPS_OF_UPDATE * 8 - 40, "no episode ended before the seventh update"
    assert list(points(run, "value_loss").values()) == [9 - at / 2 for at in range(1, UPDATES + 1)]


def test_records_of_two_kinds_that_count_the_same_steps_keep_them(tmp_path: Path) -> None:
    late = _episodes_and_updates("step {}, value_loss={}", lambda at: STEPS_OF_UPDATE * at - 100)
    steps = list(points(read(tmp_path, late), "value_loss"))
    assert steps == [STEPS_OF_UPDATE * at - 100 for at in range(1, UPDATES + 1)]


@pytest.mark.parametrize(("number", "axis"), [("5", "record"), ("{step}", "step")])
def test_one_number_in_brackets_of_all_lines_is_no_step(number: str, axis: str, tmp_path: Path) -> None:
    lines = [f"[  {number.format(step=step)}]  loss {2 / step:.3f} acc {1 - 1 / step:.3f}" for step in range(1, 21)]
    run = read(tmp_path, "\n".join(lines) + "\n")
    assert (run.step_name, set(run.series)) == (axis, {"loss", "accuracy"})
    assert run["loss"].value[:2].tolist() == [2.0, 1.0]
