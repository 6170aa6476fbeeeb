from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state


def resumed(factor: float, at: int = 150, seed: int = 0, again: int = 120) -> list[dict[str, object]]:
    loss = noisy(decay(300), 0.03, seed)
    first = [{"step": step + 1, "loss": loss[step]} for step in range(at)]
    healing = 1 + (factor - 1) * np.exp(-np.arange(300 - again) / 40)
    second = [{"step": step + 1, "loss": loss[step] * 1.01 * healing[step - again]} for step in range(again, 300)]
    return [*first, *second]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor", [1.4, 2.0])
def test_a_jump_up_where_a_run_goes_on_is_present(factor: float, seed: int) -> None:
    finding = seen("loss_jump_at_resume", run_of_records(resumed(factor, seed=seed)))
    assert finding.state is State.PRESENT
    assert finding.steps[0] == 121


@pytest.mark.parametrize("seed", range(10))
def test_a_smooth_resume_is_absent(seed: int) -> None:
    assert state("loss_jump_at_resume", run_of_records(resumed(1.0, seed=seed))) is State.ABSENT


def test_a_resume_while_the_loss_still_falls_fast_is_absent() -> None:
    loss = 2.7 + 1.5 * np.exp(-np.arange(14) / 5)
    steps = [*range(6), *range(4, 14)]
    rows: list[dict[str, object]] = [{"step": 5 * step + 5, "loss": loss[step]} for step in steps]
    assert state("loss_jump_at_resume", run_of_records(rows)) is State.ABSENT


def test_a_jump_across_a_gap_in_the_steps_is_present() -> None:
    loss = {float(step): 2.0 + 0.01 * (step % 3) for step in range(10, 500, 10)}
    loss |= {float(step): 3.0 + 0.01 * (step % 3) for step in range(900, 1200, 10)}
    assert state("loss_jump_at_resume", run_of(loss=loss)) is State.PRESENT


def test_progress_across_a_gap_is_absent() -> None:
    loss = {float(step): 3.0 + 0.01 * (step % 3) for step in range(10, 500, 10)}
    loss |= {float(step): 2.0 + 0.01 * (step % 3) for step in range(900, 1200, 10)}
    assert state("loss_jump_at_resume", run_of(loss=loss)) is State.ABSENT


def test_another_run_from_the_beginning_is_no_resume() -> None:
    rows = [{"step": step + 1, "loss": value} for _ in range(2) for step, value in enumerate(decay(50))]
    assert state("loss_jump_at_resume", run_of_records(rows)) is State.UNKNOWN


def test_a_run_in_one_piece_cannot_tell() -> None:
    assert state("loss_jump_at_resume", run_of(loss=decay(100))) is State.UNKNOWN


@pytest.mark.parametrize(
    "words", ["Resuming from checkpoint runs/1/ckpt_3000.pt", "=> resumed training from epoch 12", None]
)
def test_a_jump_where_the_log_tells_of_a_resume_is_present(words: str | None, tmp_path: Path) -> None:
    loss = noisy(decay(200, 4.0, 1.2, 8), 0.005)
    loss[120:] += 0.5 * np.exp(-np.arange(80) / 15)
    lines = [f"step {20 * at}: loss {one:.4f}" for at, one in enumerate(loss)]
    (tmp_path / "train.log").write_text("\n".join([*lines[:120], *([words] if words else []), *lines[120:]]) + "\n")
    finding = seen("loss_jump_at_resume", read_run(tmp_path / "train.log"))
    assert (finding.state, finding.steps) == ((State.PRESENT, [2400]) if words else (State.UNKNOWN, []))


def after_resume(extra: NDArray[np.float64]) -> Run:
    loss = noisy(np.linspace(4.0, 3.8, 160), 0.02)
    records = [{"step": float(at), "loss": float(loss[at])} for at in range(100)]
    records += [{"step": float(at), "loss": float(loss[at] + extra[at - 90])} for at in range(90, 160)]
    return run_of_records(records)


DICE = np.random.default_rng(0)
NOISE = 0.05 * DICE.standard_normal(300)
CLIMB = np.concatenate([2.0 + np.arange(150) / 150, 2.0 + np.arange(150) / 150])


def test_a_loss_that_starts_its_climb_over_is_seen() -> None:
    assert state("loss_falls_back", run_of(loss=CLIMB + NOISE)) is State.PRESENT


def test_the_step_of_the_fall_is_named() -> None:
    assert abs(seen("loss_falls_back", run_of(loss=CLIMB + NOISE)).steps[0] - 151) <= 6


def test_swings_far_above_the_start_are_no_falls_to_rows_seen_before() -> None:
    swinging = np.concatenate([np.linspace(0.7, 0.5, 20), 10 * CLIMB[:280:2]])
    assert state("loss_falls_back", run_of(loss=swinging)) is State.ABSENT


def test_a_fall_that_stays_is_progress() -> None:
    loss = np.concatenate([np.full(150, 2.0), np.full(150, 1.5)])
    assert state("loss_falls_back", run_of(loss=loss + NOISE)) is State.ABSENT


def test_the_end_of_a_stretch_of_bad_data_is_not_it() -> None:
    loss = np.full(300, 2.0)
    loss[100:112] += 1
    loss[200:212] += 1
    assert state("loss_falls_back", run_of(loss=loss + NOISE)) is State.ABSENT


def test_a_cut_of_the_learning_rate_explains_it() -> None:
    rate = np.repeat([1e-3, 1e-4], 150)
    assert state("loss_falls_back", run_of(loss=CLIMB + NOISE, learning_rate=rate)) is State.ABSENT


def test_a_new_epoch_explains_it() -> None:
    epoch = (np.arange(300) + 1) / 150
    assert state("loss_falls_back", run_of(loss=CLIMB + NOISE, epoch=epoch)) is State.ABSENT


def test_a_smooth_descent_in_noise_is_sound() -> None:
    loss = 1 + 2 * np.exp(-np.arange(300) / 80) + 4 * NOISE
    assert state("loss_falls_back", run_of(loss=loss)) is State.ABSENT


def test_a_short_log_cannot_tell() -> None:
    assert state("loss_falls_back", run_of(loss=CLIMB[140:170])) is State.UNKNOWN


def test_means_of_whole_epochs_cannot_tell() -> None:
    losses = [*np.linspace(2.0, 1.5, 40), *np.linspace(1.1, 1.4, 40)]
    records = [{"epoch": at, "loss": float(loss)} for at, loss in enumerate(losses)]
    assert state("loss_falls_back", run_of_records(records)) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_is_lower_from_a_resume_on_and_climbs_back_falls_back_there(seed: int) -> None:
    run = run_of_records(resumed(0.6, seed=seed))
    assert seen("loss_falls_back", run).steps[0] == pytest.approx(121, abs=3)
    assert state("falls_back_at_resume", run) is State.PRESENT


def test_where_steps_were_run_again_a_lower_loss_that_stays_is_a_jump_too() -> None:
    run = after_resume(np.full(70, -0.8))
    assert state("loss_jump_at_resume", run) is State.PRESENT
    assert state("loss_falls_back", run) is not State.PRESENT


def dips(depth: float, seed: int = 0, **more: float) -> Run:
    """Return a run that is resumed three times, after each of which the loss is lower for twenty records."""
    level = np.random.default_rng(seed).normal(2.0, 0.15, 240)
    records: list[dict[str, object]] = []
    for part, first in enumerate((0, 56, 116, 176)):
        for at in range(first, min(first + 64, 240)):
            low = depth if part and at < first + 20 else 0.0
            rate = {"learning_rate": 1e-3 * more["cut"] ** part} if "cut" in more else {}
            records.append({"step": at + 1, "loss": float(level[at] - low), **rate})
    return run_of_records(records)


@pytest.mark.parametrize("seed", range(4))
def test_dips_after_several_resumes_count_together(seed: int) -> None:
    run = dips(0.3, seed)
    assert state("loss_falls_back", run) is State.PRESENT
    assert state("falls_back_at_resume", run) is State.PRESENT
    assert state("loss_jump_at_resume", run) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(12))
def test_noise_about_several_smooth_resumes_is_no_fall(seed: int) -> None:
    assert state("loss_falls_back", dips(0.0, seed)) is State.ABSENT


def test_a_dip_with_a_lower_rate_says_nothing_of_the_data() -> None:
    assert state("falls_back_at_resume", dips(0.3, cut=0.5)) is State.UNKNOWN


def test_a_short_log_shows_a_dip_at_its_resume() -> None:
    levels = [2.0, 2.02, 1.99, 2.01, 2.0, 1.98, 2.01, 2.0, 2.02, 1.99]
    after = [1.4, 1.42, 1.39, 1.41, 1.4, 2.0, 1.99, 2.01, 2.0, 2.02, 2.0]
    records = [{"step": 10 * at + 10, "loss": one} for at, one in enumerate(levels)]
    records += [{"step": 10 * at + 90, "loss": one} for at, one in enumerate(after)]
    assert state("falls_back_at_resume", run_of_records(records)) is State.PRESENT


def test_a_fall_where_a_resume_begins_an_epoch_is_that_of_the_epoch() -> None:
    level = np.concatenate([np.full(60, 2.0), np.full(20, 1.5), np.full(60, 2.0)]) + NOISE[:140] / 5
    records = [{"step": at + 1, "loss": level[at], "epoch": (at + 1) / 60} for at in range(60)]
    records += [{"step": at + 1, "loss": level[at], "epoch": (at + 1) / 60} for at in range(60, 140)]
    run = replace(run_of_records(records), resumes=(61.0,))
    assert state("loss_falls_back", run) is State.ABSENT


def test_a_resume_with_larger_batches_and_less_noise_is_absent() -> None:
    loss = np.concatenate([2.0 + 4 * NOISE[:100], 2.0 + NOISE[100:200]])
    run = replace(run_of(loss=loss), resumes=(101.0,))
    assert state("loss_jump_at_resume", run) is State.ABSENT
    assert state("loss_falls_back", run) is State.ABSENT


STEPS = np.arange(120)


def test_an_epoch_that_falls_back_in_mid_pass_is_told_with_its_step() -> None:
    epoch = np.where(STEPS < 60, STEPS / 100, (STEPS - 60) / 100)
    finding = seen("epoch_starts_over", run_of(loss=noisy(decay(120), 0.02), epoch=epoch))
    assert finding.state is State.PRESENT
    assert (finding.steps, finding.values["before"]) == ([61.0], 0.59)


def test_one_that_goes_on_does_not() -> None:
    assert state("epoch_starts_over", run_of(loss=noisy(decay(120), 0.02), epoch=STEPS / 100)) is State.ABSENT


def test_a_new_stage_that_counts_from_zero_behind_a_whole_pass_does_not() -> None:
    epoch = np.where(STEPS < 60, STEPS / 60, (STEPS - 60) / 60)
    assert state("epoch_starts_over", run_of(loss=noisy(decay(120), 0.02), epoch=epoch)) is State.ABSENT


def test_whole_epochs_that_a_log_counts_do_not() -> None:
    assert state("epoch_starts_over", run_of(loss=noisy(decay(120), 0.02), epoch=np.floor(STEPS / 30))) is State.ABSENT
