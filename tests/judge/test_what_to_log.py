"""Missing metrics that would have decided a diagnosis, and causes that a log cannot tell apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.runs import decay, run_of, state

from mldebug_mcp.checks import symptoms
from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.judge.next_steps import entropy, worth
from mldebug_mcp.judge.what_to_log import CONFIGURATION, LOGGABLE, SETTINGS
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import Diagnosis, State
from mldebug_mcp.report.diagnosis_concise import concise


def diagnosis_of(folder: Path, config: Mapping[str, object] | None = None, **curves: Floats) -> Diagnosis:
    length = len(next(iter(curves.values())))
    rows = [{"step": at + 1} | {name: float(curve[at]) for name, curve in curves.items()} for at in range(length)]
    folder.mkdir(exist_ok=True)
    (folder / "log.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return diagnose_run(folder)


def stuck(count: int = 300) -> Floats:
    return np.asarray(2.3 + 0.02 * np.random.default_rng(0).normal(size=count))


def falling(count: int = 300) -> Floats:
    return np.asarray(decay(count) + 0.02 * np.random.default_rng(0).normal(size=count))


def asked(diagnosis: Diagnosis) -> list[str]:
    return [one.metric for one in diagnosis.what_to_log]


def test_a_loss_that_does_not_move_asks_for_the_gradient_norm(tmp_path: Path) -> None:
    diagnosis = diagnosis_of(tmp_path, {"num_labels": 10}, loss=stuck(), learning_rate=np.full(300, 1e-3))
    assert "grad_norm" in asked(diagnosis)
    one = next(one for one in diagnosis.what_to_log if one.metric == "grad_norm")
    assert "params_not_training" in one.splits
    assert "clip_grad_norm_" in one.how
    assert one.bits > 0.05


def test_an_agent_that_learns_nothing_asks_for_the_gradient_norm(tmp_path: Path) -> None:
    rewards = np.random.default_rng(2).normal(size=200)
    diagnosis = diagnosis_of(tmp_path, reward=rewards, entropy=np.full(200, 1.2), policy_loss=0.01 * rewards)
    assert "grad_norm" in asked(diagnosis)


def test_what_was_logged_is_not_asked_for(tmp_path: Path) -> None:
    norm = np.random.default_rng(1).lognormal(size=300)
    diagnosis = diagnosis_of(tmp_path, {"num_labels": 10}, loss=stuck(), grad_norm=norm)
    assert "grad_norm" not in asked(diagnosis)


def test_nothing_is_asked_for_where_the_run_is_clearly_healthy(tmp_path: Path) -> None:
    diagnosis = diagnosis_of(tmp_path, loss=falling())
    assert diagnosis.hypotheses[0].cause == "healthy"
    assert diagnosis.what_to_log == []
    assert diagnosis.ties == []


def test_metrics_of_another_kind_of_run_are_not_asked_for(tmp_path: Path) -> None:
    diagnosis = diagnosis_of(tmp_path, {"num_labels": 10}, loss=stuck())
    assert not set(asked(diagnosis)) & {"reward", "kl", "entropy", "rewards/chosen", "value_loss"}


def test_without_a_configuration_it_is_asked_for_as_a_whole(tmp_path: Path) -> None:
    without = diagnosis_of(tmp_path / "a", loss=stuck())
    beside = diagnosis_of(tmp_path / "b", {"num_labels": 10, "max_grad_norm": 1.0}, loss=stuck())
    assert CONFIGURATION in asked(without)
    assert CONFIGURATION not in asked(beside)


def test_a_loss_logged_too_seldom_is_asked_for_at_every_step(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": value} for step, value in ((500, 2.31), (1000, 2.30), (1500, 9.0), (2000, 2.3))]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    diagnosis = diagnose_run(tmp_path / "log.jsonl")
    assert "loss" in asked(diagnosis)


def test_the_trainer_is_told_its_own_settings(tmp_path: Path) -> None:
    history = [{"step": at + 1, "epoch": at / 300, "loss": float(value)} for at, value in enumerate(stuck())]
    state_file = {"log_history": history, "global_step": 300, "max_steps": 300, "epoch": 1.0}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state_file), encoding="utf-8")
    diagnosis = diagnose_run(tmp_path / "trainer_state.json")
    assert next(one.how for one in diagnosis.what_to_log if one.metric == "grad_norm").startswith("Transformers")


def test_the_short_answer_names_at_most_two_metrics(tmp_path: Path) -> None:
    diagnosis = diagnosis_of(tmp_path, loss=stuck())
    assert len(diagnosis.what_to_log) > 2
    assert [one.metric for one in concise(diagnosis).what_to_log] == [one.metric for one in diagnosis.what_to_log[:2]]


@pytest.mark.parametrize("metric", [name for name, one in LOGGABLE.items() if one.judges])
def test_symptoms_that_ask_for_a_metric_by_themselves_are_unknown_without_it(metric: str) -> None:
    run = run_of(loss=falling())
    assert all(state(symptom, run) is State.UNKNOWN for symptom in LOGGABLE[metric].judges)


def test_symptoms_that_ask_for_a_setting_are_unknown_without_it() -> None:
    run = run_of(loss=2.0 + falling(), grad_norm=falling(), kind="supervised")
    asking = {symptom for names in SETTINGS.values() for symptom in names}
    assert asking <= set(symptoms())
    assert all(state(symptom, run) is State.UNKNOWN for symptom in asking)


def test_a_symptom_that_only_one_of_two_causes_shows_is_worth_the_bits_of_bayes() -> None:
    told = worth([0.5, 0.5], np.array([[0.9], [0.1]]))
    assert told.bits == pytest.approx(1 - entropy([0.9, 0.1]))
    assert told.moves == pytest.approx([0.4, 0.4])


def test_a_symptom_that_both_causes_show_alike_is_worth_nothing() -> None:
    assert worth([0.7, 0.3], np.array([[0.4], [0.4]])).bits == pytest.approx(0.0)


def test_causes_with_the_same_evidence_are_tied_and_the_text_names_what_splits_them(tmp_path: Path) -> None:
    diagnosis = diagnosis_of(tmp_path, loss=stuck(), learning_rate=np.full(300, 1e-3))
    tied = {one.cause: one.tied_with for one in diagnosis.hypotheses if one.tied_with}
    assert diagnosis.ties
    tie = diagnosis.ties[0]
    assert all(other in tied[tie.causes[0]] for other in tie.causes[1:])
    assert tie.summary.startswith("the log cannot tell these apart: ")
    assert "to split them" in tie.summary


def test_a_tie_goes_both_ways(tmp_path: Path) -> None:
    diagnosis = diagnosis_of(tmp_path, loss=stuck())
    tied = {one.cause: one.tied_with for one in diagnosis.hypotheses}
    assert any(tied.values())
    assert all(cause in tied[other] for cause, others in tied.items() for other in others)


def test_causes_that_the_evidence_tells_apart_are_not_tied(examples: Path) -> None:
    diagnosis = diagnose_run(examples / "overfit")
    assert diagnosis.hypotheses[0].cause == "overfitting"
    assert diagnosis.hypotheses[0].tied_with == []


def test_a_log_that_can_hardly_be_judged_says_so_and_asks_for_the_loss(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text("step,Gen Loss,Disc Loss\n" + "\n".join(f"{at},0.7,1.3" for at in range(50)), encoding="utf-8")
    diagnosis = diagnose_run(path)
    assert any("hardly any symptom could be judged" in note for note in diagnosis.notes)
    assert "loss" in asked(diagnosis)


@pytest.mark.parametrize(
    ("columns", "advice"),
    [("Gen Loss,Disc Loss", "log a score of the samples, such as fid"), ("G_loss,D_loss,fid", "compare fid with that")],
)
def test_losses_of_two_networks_against_each_other_do_not_tell_however_many_they_are(
    tmp_path: Path, columns: str, advice: str
) -> None:
    path = tmp_path / "history.csv"
    rows = "\n".join(",".join(["0.7"] * columns.count(",") + [f"{1.3 + at % 2 / 9}"]) for at in range(400))
    path.write_text(
        f"step,{columns}\n" + "\n".join(f"{at},{row}" for at, row in enumerate(rows.splitlines())), encoding="utf-8"
    )
    headline = diagnose_run(path).verdict.headline
    assert "against each other, which do not say how training goes" in headline
    assert advice in headline
    assert "only" not in headline


@pytest.mark.parametrize("unit", ["epoch", "step"])
def test_a_log_of_few_records_asks_for_more_of_them_and_for_no_timing(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{unit: at, "loss": 2 - at / 4, "eval_loss": 2 - at / 5, "eval_accuracy": at / 6} for at in range(1, 5)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    diagnosis = diagnose_run(path)
    headline = diagnosis.verdict.headline
    assert f"the log holds only 4 {unit}s of" in headline
    assert ("log each step, not each epoch" if unit == "epoch" else "log more steps") in headline
    assert not {"data_time", "step_time"} & set(asked(diagnosis))


def test_a_log_of_one_record_says_so_however_many_metrics_it_has(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    metrics = {"loss": 0.1, "reward": 0.4, "reward_std": 0.2, "kl": 0.01, "grad_norm": 0.5, "learning_rate": 1e-6}
    path.write_text(json.dumps({"step": 9} | metrics), encoding="utf-8")
    assert any("hardly any symptom could be judged" in note for note in diagnose_run(path).notes)


def test_a_log_that_can_be_judged_does_not_say_so(tmp_path: Path) -> None:
    assert not any("could be judged" in note for note in diagnosis_of(tmp_path, loss=falling()).notes)


def test_a_log_that_tells_next_to_nothing_is_not_called_likely_healthy(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 40, "loss": 1e10}\n', encoding="utf-8")
    leader = diagnose_run(path).hypotheses[0]
    assert leader.cause == "healthy"
    assert leader.probability < 0.56
    assert any("tells next to nothing" in said for said in leader.against)
