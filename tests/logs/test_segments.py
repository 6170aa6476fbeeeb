"""Restarts, resumes, appended runs, writers that share a log, ranks that print alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.logs.reading import read

from mldebug_mcp.logs import Run, read_run


def _jsonl(folder: Path, rows: list[dict[str, float]]) -> Run:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_run(path)


def test_a_resume_that_goes_back_replaces_what_it_repeats(tmp_path: Path) -> None:
    steps = [*range(1, 41), *range(31, 61)]
    run = _jsonl(tmp_path, [{"step": step, "loss": 1.0 + (index >= 40)} for index, step in enumerate(steps)])
    assert [(segment.first_step, segment.last_step) for segment in run.segments] == [(1, 40), (31, 60)]
    assert run["loss"].step.tolist() == list(range(1, 61))
    assert run["loss"].at(35) == 2.0
    assert run["loss"].at(30) == 1.0


def test_a_resume_that_goes_back_further_than_the_one_before_replaces_what_both_repeat(tmp_path: Path) -> None:
    steps = [*range(1, 41), *range(31, 51), *range(21, 61)]
    whose = [1.0] * 40 + [2.0] * 20 + [3.0] * 40
    run = _jsonl(tmp_path, [{"step": step, "loss": loss} for step, loss in zip(steps, whose, strict=True)])
    assert [(segment.first_step, segment.last_step) for segment in run.segments] == [(1, 40), (31, 50), (21, 60)]
    assert run["loss"].step.tolist() == list(range(1, 61))
    assert run["loss"].value.tolist() == [1.0] * 20 + [3.0] * 40


def test_a_log_that_starts_again_two_thousand_times_is_read_by_its_last_attempt(tmp_path: Path) -> None:
    run = _jsonl(tmp_path, [{"step": index % 10, "loss": 1.0 + index % 10} for index in range(20_000)])
    assert len(run.attempts) == 2000
    assert run["loss"].step.tolist() == list(range(10))


def test_a_log_of_more_attempts_than_are_told_apart_is_judged_by_its_last_too(tmp_path: Path) -> None:
    run = _jsonl(tmp_path, [{"step": index % 10, "loss": 1.0 + index % 10} for index in range(30_000)])
    assert run.records == 10
    assert run["loss"].step.tolist() == list(range(10))


def test_a_resume_that_repeats_a_single_record_is_a_segment_too(tmp_path: Path) -> None:
    steps = [5, 10, 15, 20, 25, 30, 25, 30, 35, 40, 45, 50]
    run = _jsonl(tmp_path, [{"step": step, "loss": 3 - index / 10} for index, step in enumerate(steps)])
    assert [(segment.first_step, segment.last_step) for segment in run.segments] == [(5, 30), (25, 50)]
    assert run["loss"].at(25) == pytest.approx(2.4)
    assert not any("out of order" in note for note in run.notes)


def test_an_evaluation_that_comes_late_is_no_resume(tmp_path: Path) -> None:
    rows: list[dict[str, float]] = [{"step": step, "loss": 2.0} for step in range(1, 21)]
    rows.insert(15, {"step": 10, "eval_loss": 2.5})
    run = _jsonl(tmp_path, rows)
    assert len(run.segments) == 1
    assert any(note == "1 record(s) out of order: sorted by step" for note in run.notes)


def test_one_record_out_of_order_is_no_restart(tmp_path: Path) -> None:
    steps = [*range(1, 30), 31, 30, *range(32, 60)]
    run = _jsonl(tmp_path, [{"step": step, "loss": float(step)} for step in steps])
    assert len(run.segments) == 1
    assert run["loss"].value.tolist() == [float(step) for step in range(1, 60)]


def test_two_writers_of_one_log_are_no_restarts(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 1.0} for index in range(50) for step in (10 * index + 30, 10 * index + 10)]
    run = _jsonl(tmp_path, rows)
    assert len(run.segments) == 1
    assert any("several writers" in note for note in run.notes)


def test_runs_appended_to_one_text_are_attempts(tmp_path: Path) -> None:
    one = "".join(f"Epoch {epoch}/5: Loss={2.0 / epoch:.4f}\n" for epoch in range(1, 6))
    run = read(tmp_path, one * 3)
    assert [attempt.records for attempt in run.attempts] == [5, 5, 5]
    assert (run.records, len(run.segments)) == (5, 1)


def test_a_step_that_starts_again_with_each_epoch_is_counted_on(tmp_path: Path) -> None:
    lines = [
        f"Epoch [{epoch}][{batch}/100] loss: {epoch + batch / 100:.2f}\n" for epoch in (1, 2, 3) for batch in (50, 100)
    ]
    run = read(tmp_path, "".join(lines))
    assert run["loss"].step.tolist() == [50, 100, 150, 200, 250, 300]
    assert len(run.segments) == 1


def test_ranks_that_print_alike_count_once(tmp_path: Path) -> None:
    lines = [f"[rank{rank}]: step {step} loss {step + rank / 10}\n" for step in range(1, 21) for rank in (0, 1, 2, 3)]
    run = read(tmp_path, "".join(lines))
    assert run.records == 20
    assert run["loss"].value.tolist() == [float(step) for step in range(1, 21)]
    assert any("60 line(s) that 3 other rank(s)" in note for note in run.notes)


def test_stdout_that_came_in_a_burst_still_has_its_steps(tmp_path: Path) -> None:
    bars = "".join(f"\r {step}%|#| {step}/100 [00:01<00:01, 9.99it/s]" for step in range(1, 101))
    dicts = "".join(
        f"{{'loss': {3 - k / 10:.1f}, 'learning_rate': 1e-05, 'epoch': {k * 0.2:.1f}}}\n" for k in range(1, 11)
    )
    run = read(tmp_path, bars + "\n" + dicts)
    assert run["loss"].step.tolist() == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert any("worked out" in note for note in run.notes)


def test_stdout_that_came_in_a_burst_has_its_steps_though_it_ends_within_an_epoch(tmp_path: Path) -> None:
    bars = "".join(f"\r {step}%|#| {step}/60 [00:01<00:01, 9.99it/s]" for step in range(1, 61))
    dicts = "".join(
        f"{{'loss': '2.5', 'learning_rate': '1e-05', 'epoch': '{step / 16}'}}\n" for step in range(5, 61, 5)
    )
    run = read(tmp_path, bars + "\n" + dicts)
    assert run["loss"].step.tolist() == list(range(5, 61, 5))


def test_settings_and_prose_with_numbers_are_no_records(tmp_path: Path) -> None:
    text = (
        "loss_weight: 2.0\nmax_steps: 1000\nwarmup steps: 100\nmodel saved at step 5\n"
        + "".join(f"step {step}: loss 1.5\n" for step in (1, 2, 3))
        + "Best loss 1.5 at step 1\nFinal loss: 1.5\n"
    )
    run = read(tmp_path, text)
    assert run["loss"].step.tolist() == [1, 2, 3]
    assert run.records == 3


def test_the_word_nan_in_a_counter_is_no_nan(tmp_path: Path) -> None:
    counters = "number of skipped iterations:   0 | number of nan iterations:   0 |"
    run = read(tmp_path, "".join(f"step {step:8d}/ 100 | lm loss: 2.5E+00 | {counters}\n" for step in range(1, 31)))
    assert run["nan_iterations"].value.tolist() == [0.0] * 30
    assert run["loss"].value.tolist() == [2.5] * 30


def test_many_evaluations_of_one_step_keep_their_step(tmp_path: Path) -> None:
    rows = [{"step": step, f"eval_set{k}_loss": float(k)} for step in (500, 1000) for k in range(20)]
    run = _jsonl(tmp_path, rows)
    assert run.step_name == "step"
    assert run["eval_set3_loss"].step.tolist() == [500, 1000]


def test_an_evaluation_that_stands_in_the_record_of_no_step_is_carried_to_the_last(tmp_path: Path) -> None:
    run = read(tmp_path, "step 10: loss 2.5\nstep 20: loss 2.25\nval loss 2.0\nstep 30: loss 2.0\n")
    assert run["eval_loss"].step.tolist() == [20]


def test_an_evaluation_before_training_stands_at_step_zero(tmp_path: Path) -> None:
    rows = [f"{{'loss': {3 - step / 10:.1f}, 'epoch': {step / 10}}}\r {step}%|# | {step}/40 [00:01<00:01, 9.9it/s]\n"
            for step in (10, 20, 30, 40)]  # fmt: skip
    start = "  0%|  | 0/40 [00:00<?, ?it/s]\n{'eval_loss': 3.5, 'epoch': 0}\n"
    run = read(tmp_path, start + " 1%|  | 1/40 [00:00<00:10, 9.9it/s]\n" + "".join(rows))
    assert run["eval_loss"].step.tolist() == [0]
    assert run["loss"].step.tolist() == [10, 20, 30, 40]


def test_what_keras_evaluates_after_training_is_not_of_the_last_epoch(tmp_path: Path) -> None:
    epochs = "".join(
        f"Epoch {epoch}/2\n16/16 - 1s - 50ms/step - loss: {1 / epoch} - val_loss: {1.5 / epoch}\n"
        f"Epoch {epoch}: early stopping\n"
        for epoch in (1, 2)
    )
    run = read(tmp_path, epochs + "4/4 - 0s - 20ms/step - loss: 9.5\n")
    assert run["loss"].value.tolist() == [1, 0.5]
    assert run["eval_loss"].value.tolist() == [1.5, 0.75]
    assert any("evaluate()" in note for note in run.notes)


def test_records_of_one_rounded_epoch_are_all_kept(tmp_path: Path) -> None:
    rows: list[dict[str, float]] = [{"loss": 3 - index / 10, "epoch": round(index / 150, 2)} for index in range(12)]
    rows[6:6] = [{"eval_loss": 2.5, "epoch": rows[5]["epoch"]}]
    run = _jsonl(tmp_path, rows)
    assert run.step_name == "epoch"
    assert run["loss"].value.tolist() == pytest.approx([3 - index / 10 for index in range(12)])
    assert run["eval_loss"].step[0] == run["loss"].step[5]
    assert bool((run["loss"].step[1:] > run["loss"].step[:-1]).all())
    assert any("several records are at one epoch" in note for note in run.notes)


def test_a_whole_epoch_that_was_done_again_stands_once(tmp_path: Path) -> None:
    epochs = [1, 2, 3, 3, 4, 5, 6, 7]
    run = _jsonl(tmp_path, [{"epoch": epoch, "loss": 2 - index / 20} for index, epoch in enumerate(epochs)])
    assert run["loss"].step.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert run["loss"].at(3) == pytest.approx(2 - 3 / 20)
