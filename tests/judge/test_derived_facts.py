"""What follows from several quantities: rollouts without a gradient, the end of entropy, what every pass repeats."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import RunDiagnosis, diagnose_run
from mldebug_mcp.cli import main
from mldebug_mcp.judge.watch import Watch
from mldebug_mcp.models.diagnosis import DerivedFact
from mldebug_mcp.report.diagnosis_html import diagnosis_html

Records = list[dict[str, float]]


def fact(answer: RunDiagnosis, name: str) -> DerivedFact | None:
    return next((one for one in answer.sheet.facts if one.fact == name), None)


def diagnosed(records: Records, **settings: float) -> RunDiagnosis:
    return diagnose_run(records, settings=settings or None)


def grpo(
    easy: float = 0.0, hard: float = 0.0, *, steps: int = 200, entropy: str = "", rising: float = 0.0, size: int = 8
) -> Records:
    """Return a run of groups of right and wrong answers, of which known shares are all right and all wrong."""
    rng = np.random.default_rng(5)
    records: Records = []
    tokens = 0.0
    for step in range(1, steps + 1):
        drawn = rng.random(64)
        right = int((drawn < easy + rising * step / steps).sum())
        wrong = min(64 - right, int((drawn > 1 - hard).sum()))
        others = [int(rng.integers(1, size)) for _ in range(64 - right - wrong)]
        tokens += 200.0 * 64 * size
        dead = (right + wrong) / 64
        record = {
            "step": float(step), "loss": 0.01, "kl": 0.02, "completions/mean_length": 200.0, "num_tokens": tokens,
            "reward": (right * size + sum(others)) / (64 * size), "reward_std": 0.45 * (1 - dead), "step_time": 10.0,
            "frac_reward_zero_std": dead, "entropy": 0.8 + float(rng.normal(0, 0.02)),
        }  # fmt: skip
        if entropy:
            level = 1.5 - 1.1 * step / steps if entropy == "line" else 1.5 * float(np.exp(-1.2 * step / steps))
            record["entropy"] = level + float(rng.normal(0, 0.02))
        records.append(record)
    return records


def test_groups_that_are_all_right_are_told_from_those_that_are_all_wrong() -> None:
    for easy, hard in ((0.5, 0.0), (0.0, 0.5), (0.3, 0.2)):
        found = fact(diagnosed(grpo(easy, hard), num_generations=8), "rollouts_without_gradient")
        assert found is not None
        value = found.values
        assert value["share"] == pytest.approx(easy + hard, abs=0.03)
        assert value["all_right_low"] - 0.02 <= easy <= value["all_right_high"] + 0.02
        assert value["all_wrong_low"] - 0.02 <= hard <= value["all_wrong_high"] + 0.02


def test_most_of_what_teaches_nothing_is_called_too_easy_or_too_hard_where_that_is_so() -> None:
    easy = fact(diagnosed(grpo(easy=0.7), num_generations=8), "rollouts_without_gradient")
    hard = fact(diagnosed(grpo(hard=0.7), num_generations=8), "rollouts_without_gradient")
    assert easy is not None
    assert hard is not None
    assert "Most of them are too easy" in easy.text
    assert "Most of them are too hard" in hard.text


def test_the_tokens_and_the_time_that_they_took_are_counted() -> None:
    found = fact(diagnosed(grpo(easy=0.5)), "rollouts_without_gradient")
    assert found is not None
    assert found.values["tokens_in_all"] == pytest.approx(200 * 200 * 64 * 8)
    assert found.values["tokens"] == pytest.approx(found.values["share"] * found.values["tokens_in_all"], rel=0.02)
    assert found.values["seconds_in_all"] == pytest.approx(2000)
    assert "of 20.5 million tokens" in found.text


def test_tokens_of_each_step_are_added_up_as_well() -> None:
    records = [{**one, "num_tokens": 1000.0 + (one["step"] % 3)} for one in grpo(easy=0.5)]
    found = fact(diagnosed(records), "rollouts_without_gradient")
    assert found is not None
    assert found.values["tokens_in_all"] == pytest.approx(200 * 1001, rel=0.01)


def test_whole_batches_without_spread_are_the_least_and_their_reward_says_which_they_are() -> None:
    records = []
    for step in range(1, 101):
        reward, spread = (1.0, 0.0) if step % 4 == 0 else (0.0, 0.0) if step % 4 == 1 else (0.5, 0.4)
        records.append({"step": float(step), "reward": reward, "reward_std": spread, "loss": 0.1, "kl": 0.1,
                        "completions/mean_length": 50.0})  # fmt: skip
    found = fact(diagnosed(records), "rollouts_without_gradient")
    assert found is not None
    assert found.text.startswith("At least 50%")
    assert found.values["all_right_low"] == found.values["all_right_high"] == pytest.approx(0.25)
    assert found.values["all_wrong_low"] == pytest.approx(0.25)


def test_where_rewards_have_no_known_ends_it_is_not_told_which_they_are() -> None:
    records = [{**one, "reward": 7.3 * one["reward"] + 2} for one in grpo(easy=0.5)]
    found = fact(diagnosed(records), "rollouts_without_gradient")
    assert found is not None
    assert "the log does not tell" in found.text
    assert "all_right_low" not in found.values


def test_of_graded_rewards_no_share_is_told_though_they_lie_between_0_and_1() -> None:
    noise = np.random.default_rng(0).normal(0, 0.005, 200)
    graded = [{**one, "reward": 0.67 + float(noise[place]), "reward_std": 0.02, "frac_reward_zero_std": share}
              for share in (0.9, 1.0) for place, one in enumerate(grpo())][:200]  # fmt: skip
    found = fact(diagnosed(graded), "rollouts_without_gradient")
    assert found is not None
    assert "the log does not tell" in found.text


def test_groups_that_the_log_counts_itself_are_taken_as_counted() -> None:
    records = [{"step": float(step), "reward": 0.4, "loss": 0.1, "kl": 0.1, "batch/solve_none": 16.0,
                "batch/solve_all": 8.0, "batch/solve_partial": 40.0} for step in range(1, 51)]  # fmt: skip
    found = fact(diagnose_run(records, settings={"algorithm": "grpo"}), "rollouts_without_gradient")
    assert found is not None
    assert found.values["all_wrong_low"] == pytest.approx(0.25)
    assert found.values["all_right_high"] == pytest.approx(0.125)


def test_groups_that_a_log_counts_show_a_policy_whatever_kind_the_run_is_taken_for() -> None:
    records = [{"step": float(step), "batch/solve_none": 16.0, "batch/solve_all": 8.0, "batch/solve_partial": 40.0}
               for step in range(1, 51)]  # fmt: skip
    found = fact(diagnosed(records), "rollouts_without_gradient")
    assert found is not None
    assert found.values["share"] == pytest.approx(0.375)


def test_a_run_whose_groups_nearly_all_teach_something_and_a_fine_tuning_run_hear_nothing_of_it() -> None:
    assert fact(diagnosed(grpo()), "rollouts_without_gradient") is None
    tuned = [{"step": float(step), "loss": 2 / step, "entropy": 1.5 - step / 200,
              "mean_token_accuracy": 0.6 + step / 1e4, "num_tokens": 100.0 * step}
             for step in range(1, 200)]  # fmt: skip
    assert diagnosed(tuned).sheet.facts == []


@pytest.mark.parametrize("steps", [120, 180])
def test_the_entropy_of_prompts_learnt_at_many_rates_runs_out_within_the_interval(steps: int) -> None:
    rng = np.random.default_rng(1)
    falls = 1.6 * np.exp(-np.outer(np.arange(1, 2000), np.geomspace(0.004, 0.06, 30))).mean(1)
    end = int(np.argmax(falls <= 0.1 * falls[0])) + 1
    log = [{**one, "entropy": float(falls[at] + rng.normal(0, 0.01))} for at, one in enumerate(grpo(steps=steps))]
    found = fact(diagnosed(log), "entropy_runs_out")
    assert found is not None
    assert found.values["low"] <= end <= found.values["high"]


def test_the_step_at_which_entropy_runs_out_lies_in_its_interval() -> None:
    line = fact(diagnosed(grpo(entropy="line")), "entropy_runs_out")
    assert line is not None
    assert line.values["low"] <= 200 * 1.35 / 1.1 <= line.values["high"]
    decay = fact(diagnosed(grpo(entropy="decay")), "entropy_runs_out")
    assert decay is not None
    assert decay.values["low"] <= 200 * np.log(10) / 1.2 <= decay.values["high"]


def test_the_planned_end_stands_beside_it() -> None:
    found = fact(diagnosed(grpo(entropy="line"), max_steps=600), "entropy_runs_out")
    assert found is not None
    assert "before the planned end at step 600" in found.text
    early = fact(diagnosed(grpo(entropy="line"), max_steps=205), "entropy_runs_out")
    assert early is not None
    assert "after the planned end at step 205" in early.text


def test_a_planned_end_inside_the_interval_is_neither_before_nor_after() -> None:
    known = fact(diagnosed(grpo(entropy="line")), "entropy_runs_out")
    assert known is not None
    inside = round((known.values["low"] + known.values["step"]) / 2)
    found = fact(diagnosed(grpo(entropy="line"), max_steps=inside), "entropy_runs_out")
    assert found is not None
    assert f"Whether that is before the planned end at step {inside} is open" in found.text


def test_without_a_clear_trend_no_step_is_named() -> None:
    assert fact(diagnosed(grpo()), "entropy_runs_out") is None
    levelled = [{**one, "entropy": 0.5 + float(np.exp(-one["step"] / 20)) + 0.01 * (one["step"] % 2)} for one in grpo()]
    assert fact(diagnosed(levelled), "entropy_runs_out") is None
    assert fact(diagnosed(grpo(entropy="line", steps=30)), "entropy_runs_out") is None


def passes(
    seed: int, *, jump: float = 0.0, gradient: float = 0.0, count: int = 6, each: int = 40, heavy: bool = False
) -> Records:
    """Return a run of several passes whose loss, and gradient norm, jump in the first two records of each."""
    rng = np.random.default_rng(seed)
    records: Records = []
    for place in range(count * each):
        first = place >= each and place % each < 2
        noise = float(rng.standard_t(3)) if heavy else float(rng.normal())
        records.append({
            "step": 10.0 * (place + 1), "epoch": (place + 1) / each, "learning_rate": 2e-5,
            "loss": 1.2 + 1.5 * float(np.exp(-place / (count * each / 4))) + 0.04 * noise + jump * first,
            "grad_norm": 1.0 + float(rng.normal(0, 0.08)) + gradient * first,
        })  # fmt: skip
    return records


def test_a_jump_at_each_pass_with_the_gradient_untouched_points_to_averaging_or_order_first() -> None:
    found = fact(diagnosed(passes(1, jump=0.4)), "recurs_at_every_pass")
    assert found is not None
    assert "in the first 2 records of 5 of 5 passes" in found.text
    assert "before it points to bad rows" in found.text
    assert "rank correlation" in found.text
    assert found.steps[0] == 410
    assert found.values["jump"] == pytest.approx(0.4, abs=0.08)


def test_a_jump_with_which_the_gradient_moves_is_one_of_the_rows() -> None:
    found = fact(diagnosed(passes(1, jump=0.4, gradient=1.0)), "recurs_at_every_pass")
    assert found is not None
    assert "the rows there do differ" in found.text


def test_passes_are_known_from_the_settings_where_no_epoch_is_logged() -> None:
    records = [{key: value for key, value in one.items() if key != "epoch"} for one in passes(2, jump=0.4)]
    found = fact(
        diagnosed(records, per_device_train_batch_size=8, train_rows=3200, gradient_accumulation_steps=1),
        "recurs_at_every_pass",
    )
    assert found is not None
    assert "Passes are known from the settings" in found.text


def test_a_loss_that_follows_the_position_in_each_pass_is_a_rank_correlation() -> None:
    records = [{**one, "loss": one["loss"] + 0.5 * (place % 40) / 40} for place, one in enumerate(passes(3))]
    found = fact(diagnosed(records), "recurs_at_every_pass")
    assert found is not None
    assert "rises with the position in the pass" in found.text
    assert found.values["correlation"] > 0.5


@pytest.mark.parametrize("seed", range(8))
def test_healthy_runs_of_several_passes_show_no_such_pattern(seed: int) -> None:
    assert fact(diagnosed(passes(seed, heavy=seed % 2 == 0)), "recurs_at_every_pass") is None
    stairs = [{**one, "loss": one["loss"] - 0.1 * (place // 40)} for place, one in enumerate(passes(seed))]
    assert fact(diagnosed(stairs), "recurs_at_every_pass") is None


def test_a_fact_moves_no_hypothesis() -> None:
    with_fact = diagnosed(passes(1, jump=0.4))
    assert not {"recurs_at_every_pass"} & {one.symptom for one in with_fact.findings}
    assert all(reason.kind != "fact" for one in with_fact.hypotheses for reason in one.reasons)


def test_facts_stand_in_the_terminal_on_the_page_and_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, grpo(easy=0.6, entropy="line"))))
    answer = diagnose_run(log)
    assert "have no gradient" in diagnosis_html(answer, answer.log)
    assert main(["diagnose", str(log), "--long"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "have no gradient" in printed
    assert "95 % interval" in printed
    assert main(["diagnose", str(log), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["sheet"]["facts"]
    assert [one["fact"] for one in facts] == ["rollouts_without_gradient", "entropy_runs_out"]


def test_watch_tells_a_fact_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    records = grpo(rising=0.9, steps=300)
    now = 0.0
    watch = Watch(log, clock=lambda: now)
    told = []
    for first in range(0, 300, 30):
        now += 30
        with log.open("a") as file:
            file.writelines(f"{json.dumps(one)}\n" for one in records[first : first + 30])
        told += [one.text for one in watch.look() if one.what == "fact"]
    assert 2 <= len(told) <= 10
    assert all("have no gradient" in one for one in told)
    shares = [int(one.partition(", ")[2].partition("%")[0]) for one in told]
    assert all(after - before >= 9 for before, after in pairwise(shares))
