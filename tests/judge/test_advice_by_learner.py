"""Advice that fits what learns: trees have a depth and no warm-up, linear models a scale of their features."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mldebug_mcp.judge.causes import OF_NETWORKS_ALONE, learner_of
from mldebug_mcp.judge.diagnosis import diagnose_run, update_diagnosis
from mldebug_mcp.judge.run_verdict import name_of
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import LEARNERS, advice_for
from mldebug_mcp.logs import read_run
from mldebug_mcp.models import Diagnosis

OF_NETWORKS = re.compile(
    r"(?i)warm-?up|clip|weight.?decay|dropout|lora|epoch|gradient norm|scheduler|BatchNorm|bf16|fp16|batch.?size|"
    r"checkpoint|\badam|module|\btower|optimizer\.|backward|token"
)
LIKELY = 1.0
"""Of 1000 runs: causes of boosting that are rarer than this have no advice of their own."""
SHARED = ("healthy", "unknown", "hardware_fault", "library_defect", *OF_NETWORKS_ALONE)
"""Causes that no learner's advice differs for, and those that only networks have."""


def xgboost(path: Path, losses: list[tuple[float, float]]) -> Diagnosis:
    lines = [f"[{at}]\ttrain-logloss:{a:.5f}\teval-logloss:{b:.5f}" for at, (a, b) in enumerate(losses)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return diagnose_run(path)


def lightgbm(path: Path, losses: list[tuple[float, float]]) -> Diagnosis:
    lines = [
        f"[{at}]\ttraining's binary_logloss: {a:.5f}\tvalid_1's binary_logloss: {b:.5f}"
        for at, (a, b) in enumerate(losses, start=1)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return diagnose_run(path)


def catboost(path: Path, losses: list[tuple[float, float]]) -> Diagnosis:
    best = [min(b for _, b in losses[: at + 1]) for at in range(len(losses))]
    lines = [
        f"{at}:\tlearn: {a:.7f}\ttest: {b:.7f}\tbest: {best[at]:.7f} (0)\ttotal: {at + 1}ms\tremaining: 1s"
        for at, (a, b) in enumerate(losses)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return diagnose_run(path)


def histograms(path: Path, losses: list[tuple[float, float]]) -> Diagnosis:
    lines = [
        f"[{at}/{len(losses)}] 1 tree, 31 leaves, max depth = 8, train loss: {a:.5f}, val loss: {b:.5f}, in 0.002s"
        for at, (a, b) in enumerate(losses, start=1)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return diagnose_run(path)


OVERFITS = [(0.69 * 0.97**at, 0.6 + 0.05 * abs(at - 12) / 12) for at in range(150)]
NOT_MOVING = [(0.6927, 0.6932)] * 80
TOO_SLOW = [(0.69179 - 0.0001 * at, 0.6956 - 0.00005 * at) for at in range(200)]


@pytest.mark.parametrize("library", [xgboost, lightgbm, catboost, histograms])
@pytest.mark.parametrize("losses", [OVERFITS, NOT_MOVING, TOO_SLOW], ids=["overfits", "not moving", "too slow"])
def test_advice_on_trees_names_settings_of_trees_alone(
    library: object, losses: list[tuple[float, float]], tmp_path: Path
) -> None:
    diagnosis = library(tmp_path / "train.log", losses)  # type: ignore[operator]
    assert diagnosis.run.kind == "boosting"
    said = [diagnosis.verdict.fix, diagnosis.verdict.next, *(one.how for one in diagnosis.what_to_log)]
    said += [one.fix for one in diagnosis.hypotheses if one.cause not in SHARED]
    said += [step.action for step in diagnosis.next_steps if step.id.partition(".")[0] not in SHARED]
    assert [text for text in said if OF_NETWORKS.search(text)] == []


def test_every_cause_that_boosting_gets_has_advice_for_it() -> None:
    likely = [cause for cause in catalogue().causes if catalogue().prior(cause, "boosting") >= LIKELY]
    assert [cause for cause in likely if cause not in SHARED and advice_for(cause, "boosting") is None] == []


@pytest.mark.parametrize("learner", LEARNERS)
def test_advice_names_a_known_cause_and_nothing_of_other_learners(learner: str) -> None:
    for cause in catalogue().causes:
        advice = advice_for(cause, learner)
        if advice is None:
            continue
        assert all((advice.fix, advice.action, advice.confirms, advice.refutes))
        assert advice.cost in ("seconds", "minutes", "hours")
        assert learner == "rl" or not OF_NETWORKS.search(f"{advice.fix} {advice.action}".replace("batch_size", ""))
        assert name_of(cause, learner) == (advice.name or name_of(cause))


def test_a_cause_that_only_networks_have_is_out_for_trees(tmp_path: Path) -> None:
    diagnosis = xgboost(tmp_path / "train.log", [(0.5 + 0.3 * (at % 2) * at, 1 + at) for at in range(60)])
    assert diagnosis.hypotheses[0].cause not in OF_NETWORKS_ALONE


def test_a_linear_model_is_told_to_scale_its_features(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    blocks = [
        f"-- Epoch {at}\nNorm: {10.0**at:.2f}, NNZs: 20, Bias: 1.0, T: {800 * at}, Avg. loss: {3.0**at:.6f}, "
        f"Objective: {3.0**at:.6f}\nTotal training time: 0.00 seconds."
        for at in range(1, 41)
    ]
    log.write_text("\n".join(blocks), encoding="utf-8")
    assert learner_of(read_run(log)) == "linear"
    assert diagnose_run(log).verdict.fix.startswith("Scale the features")


def test_the_check_of_a_learner_can_be_made_and_is_not_asked_again(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    check = xgboost(log, OVERFITS).next_steps[0].id
    updated = update_diagnosis({}, {check: "confirms"}, path=log)
    assert check not in [step.id for step in updated.next_steps]
    assert "max_depth" in updated.at_a_glance.fix
