"""What an answer states of a curve's course is what the curve does: its peak, its way back, its level and its steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run

DIVERGED = Path("examples/divergence")


def events(steps: range, loss: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[str]:
    answer = diagnose_run({"step": list(steps), "loss": loss.tolist()})
    return [f"{event.step:.0f}: {event.text}" for event in answer.sheet.events]


def test_an_event_states_the_highest_value_and_the_one_to_which_it_comes_down() -> None:
    (jump,) = [event.text for event in diagnose_run(DIVERGED).sheet.events if event.text.startswith("loss from")]
    assert jump == "loss from about 3.948 to 5697 at 105 (down to 1541 at 108)"


def test_the_events_of_a_long_log_have_the_levels_and_steps_of_its_records() -> None:
    loss = np.random.default_rng(0).normal(2, 0.1, 300_000)
    loss[140_000] = 1.45  # the lowest of its stretch, and still noise
    loss[77_777] = 55.5
    loss[200_123:] += 3
    highest = 200_123 + int(np.argmax(loss[200_123:200_150]))
    single, lasting = events(range(300_000), loss)
    assert single.startswith("77777: loss from about 2.01 to 55.5 (down to 1.934 at 77778)")
    assert float(np.median(loss[77_650:77_700])) == pytest.approx(2.01, abs=5e-4)
    assert lasting == f"200123: loss from about 1.987 to {loss[highest]:.4g} at {highest} (stays)"
    assert float(np.median(loss[199_973:200_123])) == pytest.approx(1.987, abs=5e-4)


def summaries(path: Path) -> dict[str, str]:
    return {finding.symptom: finding.summary for finding in diagnose_run(path).present}


def test_a_loss_that_stays_up_is_not_called_back_at_its_level_and_the_norm_has_its_highest_value() -> None:
    seen = summaries(DIVERGED)
    assert seen["spike_fades"] == (
        "the jump at step 75 is below half of its height 1 record after its peak and comes down to 507.9 over 42 more; "
        "the level before it is 2.853"
    )
    assert seen["grad_norm_spike"].endswith("and does not come back; its highest is 6956 at 152")


def test_a_level_at_the_start_names_the_records_that_it_is_of(tmp_path: Path) -> None:
    loss = [*np.linspace(4.8, 3.2, 20), *np.geomspace(3.5, 900, 40), *np.geomspace(900, 3.4, 240)]
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{step},{value}\n" for step, value in enumerate(loss, 1)))
    seen = summaries(log)
    assert f"from about {loss[1]:.4g} in the first 3 records" in seen["loss_hump"]
    assert f"the first 15 records lie around {loss[7]:.4g}" in seen["loss_spike_high"]


def test_a_slow_fall_states_its_levels_with_where_they_are(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("epoch,loss\n" + "".join(f"{epoch},{2.05 - 0.05 * epoch}\n" for epoch in range(1, 21)))
    assert (
        "loss falls from about 1.95 at the start to about 1.212 around epoch 17 (37.8%)" in summaries(log)["loss_slow"]
    )


def test_the_early_level_of_a_short_curve_is_of_the_records_that_its_legend_names() -> None:
    losses = [6.0, 5.0, 3.0, 2.5, 2.25, 2.0]
    answer = diagnose_run({"step": list(range(6)), "loss": losses})
    assert answer.sheet.quantities[0].curves[0].early == 5.0
    assert any("early = median of the first 5 % (3 at least)" in line for line in answer.sheet.lines)


@pytest.mark.parametrize(
    ("header", "row"),
    [("step,loss\n", "{step},{loss:.4f}"), ("", "Epoch {step}: train acc {step}% loss {loss:.3f}")],
    ids=["table", "text"],
)
def test_only_a_last_line_that_is_shorter_than_the_others_is_called_cut_off(
    header: str, row: str, tmp_path: Path
) -> None:
    whole = header + "\n".join(row.format(step=step, loss=3 - step / 50) for step in range(10, 60))
    log = tmp_path / "log.csv"
    for text, is_cut in ((whole, False), (whole[:-5], True)):
        log.write_text(text)
        answer = diagnose_run(log)
        assert any("cut off" in line for line in answer.sheet.ran) is is_cut


def test_a_headline_does_not_say_that_no_fault_shows_above_a_jump_that_speaks_for_one() -> None:
    count = 20_000
    loss = 2 + 2 * np.exp(-np.arange(count) / 4_000) + np.random.default_rng(0).normal(0, 0.1, count)
    loss[7_777] = 55.5
    rate = np.minimum(1, np.arange(1, count + 1) / 500) * 3e-4
    columns = {"step": list(range(1, count + 1)), "loss": loss.tolist(), "lr": rate.tolist()}
    headline = diagnose_run(columns).verdict.headline
    assert "perhaps healthy" in headline
    assert "no fault is clear in loss" in headline
    assert "a bad batch" in headline


FALL_AND_RISE = np.concatenate([np.geomspace(2.4, 0.24, 200), 0.24 * 1.25 ** np.arange(100)])


def test_a_loss_that_explodes_to_its_last_record_is_not_said_to_come_back(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{step * 10},{value}\n" for step, value in enumerate(FALL_AND_RISE)))
    seen = summaries(log)
    assert "loss_hump" not in seen
    assert "loss rises from about 0.24" in seen["loss_divergence"]
    assert "from step 2000 on and stays up to the end" in seen["loss_divergence"]


@pytest.mark.parametrize("height", [3.0, 100.0])
def test_a_rise_begins_where_the_fall_before_it_ends(tmp_path: Path, height: float) -> None:
    loss = np.concatenate([np.linspace(2.3, 0.5, 75), np.geomspace(0.5, 0.5 * height, 75)])
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{step},{value}\n" for step, value in enumerate(loss)))
    answer = diagnose_run(log)
    rises = [finding for finding in answer.present if finding.symptom in {"loss_rises", "loss_divergence"}]
    assert [70 <= finding.steps[0] <= 90 for finding in rises] == [True]


def test_evaluations_that_are_nan_for_a_while_are_given_with_their_range_and_with_their_recovery() -> None:
    evaluation = [float("nan") if 5 <= epoch <= 11 else 2.3 - 0.05 * epoch for epoch in range(30)]
    training = [2.2 - 0.06 * epoch for epoch in range(30)]
    answer = diagnose_run({"epoch": list(range(30)), "train_loss": training, "val_loss": evaluation})
    (found,) = [finding.summary for finding in answer.present if finding.symptom == "eval_nonfinite"]
    assert found.endswith("not finite at 7 of 30 evaluations, epoch 5 to 11; it is finite from epoch 12 on")


def test_a_jump_that_is_soon_over_is_not_said_to_come_down_until_the_next() -> None:
    since = np.arange(1200) % 100
    noise = np.random.default_rng(0).normal(0, 0.03, 1200)
    loss = 2.4 + noise + np.where(np.arange(1200) >= 100, 3.2 * np.exp(-since / 6), 0)
    answer = diagnose_run({"step": (5 * np.arange(1200)).tolist(), "loss": loss.tolist()})
    (saw,) = [finding for finding in answer.present if finding.symptom == "loss_sawtooth"]
    assert "some 100 records apart, and comes down by nine tenths of that within some 14 records" in saw.summary


def test_a_loader_that_slows_down_late_is_seen_by_its_share_of_the_last_steps() -> None:
    noise = 0.01 * np.random.default_rng(0).random(600)
    waits = np.where(np.arange(1, 601) > 350, 1.4, 0.02) + noise
    columns = {"data_time": waits.tolist(), "batch_time": (waits + 0.39).tolist()}
    answer = diagnose_run({"step": list(range(1, 601)), "loss": np.geomspace(4.4, 1.5, 600).tolist(), **columns})
    assert answer.leader == "dataloader_bottleneck"
    (wait,) = [finding.summary for finding in answer.present if finding.symptom == "data_wait_high"]
    assert wait == "waiting for data takes 78% of a typical step (mean 78% of 250 records), from step 351 on"


def test_memory_that_runs_out_after_an_even_growth_is_rather_a_leak(tmp_path: Path) -> None:
    ends = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has 211.00 MiB free."
    answers = {}
    for name, per_step in (("level", 0.0), ("grows", 0.14)):
        lines = [f"step {at} loss {3 * 0.997**at:.4f} gpu_mem_alloc {20 + per_step * at:.2f}" for at in range(1, 401)]
        (tmp_path / f"{name}.log").write_text("\n".join([*lines, ends, ""]))
        answers[name] = diagnose_run(tmp_path / f"{name}.log")
    assert {name: answer.leader for name, answer in answers.items()} == {
        "level": "out_of_memory",
        "grows": "memory_leak",
    }
    (growth,) = [finding.summary for finding in answers["grows"].present if finding.symptom == "memory_grows"]
    assert "0.14 per step" in growth


def test_a_level_at_the_start_far_below_the_first_record_stands_next_to_it() -> None:
    noise = np.random.default_rng(0).normal(0, 0.15, 300)
    loss = 7.5 + 3.3 * np.exp(-np.arange(300)) + noise
    answer = diagnose_run({"step": (10 * np.arange(300)).tolist(), "loss": loss.tolist()})
    (flat,) = [finding.summary for finding in answer.present if finding.symptom == "loss_plateau"]
    assert f"about {np.median(loss[:15]):.4g} at the start (the first record is {loss[0]:.4g})" in flat
