from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "eval_metric_zero"
AT = range(25, 201, 25)
LOSS = decay(200)


def test_an_accuracy_of_zero_throughout_is_present() -> None:
    finding = seen(NAME, run_of(loss=LOSS, eval_accuracy=dict.fromkeys(AT, 0.0)))
    assert finding.values["evaluations"] == len(AT)


def test_a_constant_accuracy_above_zero_is_another_symptom() -> None:
    assert state(NAME, run_of(loss=LOSS, eval_accuracy=dict.fromkeys(AT, 0.1))) is not State.PRESENT


def test_an_accuracy_that_begins_at_zero_is_sound() -> None:
    run = run_of(loss=LOSS, eval_accuracy={step: max(0.0, step / 200 - 0.5) for step in AT})
    assert state(NAME, run) is State.ABSENT


def test_a_metric_that_is_no_share_is_not_judged() -> None:
    assert state(NAME, run_of(loss=LOSS, eval_perplexity=dict.fromkeys(AT, 0.0))) is State.UNKNOWN


def test_without_evaluation_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=np.ones(20))) is State.UNKNOWN


@pytest.mark.parametrize(("epochs", "expected"), [(12, State.PRESENT), (5, State.UNKNOWN)])
def test_a_detector_without_a_hit_is_present_after_ten_epochs(epochs: int, expected: State) -> None:
    for name in ("metrics/mAP50(B)", "eval_bbox_mAP_50", "bbox/AP50"):
        assert state("eval_metric_zero", run_of({name: [0.0] * epochs})) is expected


def test_an_evaluation_loss_of_zero_beside_one_that_is_not_gone_is_present() -> None:
    run = run_of(loss=LOSS, eval_loss=dict.fromkeys(AT, 0.0))
    assert state(NAME, run) is State.PRESENT
    assert state("eval_below_train", run) is State.UNKNOWN
    assert state("eval_never_improves", run) is State.UNKNOWN
    learnt = run_of(loss=np.linspace(0.1, 1e-4, 200), eval_loss=dict.fromkeys(AT, 0.0))
    assert state(NAME, learnt) is State.UNKNOWN


@pytest.mark.parametrize(("metric", "value"), [("eval_bleu", 0.0), ("eval_wer", 1.0), ("eval_cer", 100.0)])
def test_no_right_answer_beside_a_loss_that_falls_far_is_present(metric: str, value: float) -> None:
    run = run_of({metric: dict.fromkeys(AT, value)}, loss=decay(200, 4.0, 0.1))
    assert state(NAME, run) is State.PRESENT
    assert state("loss_at_chance", run) is State.UNKNOWN


def test_no_right_answer_while_the_loss_is_on_its_way_cannot_tell() -> None:
    run = run_of({"eval_wer": dict.fromkeys(AT, 1.0)}, loss=np.linspace(4.0, 2.8, 200))
    assert state(NAME, run) is State.UNKNOWN


@pytest.mark.parametrize("first", [0.0, 0.005])
@pytest.mark.parametrize("recall", ["recall", "recall@20", "hit_rate@10"])
def test_a_ranking_that_finds_nothing_after_the_first_evaluation_is_present(recall: str, first: float) -> None:
    ranking = {step: first if step == 25 else 0.0 for step in AT}
    assert state(NAME, run_of({recall: ranking, "ndcg": ranking})) is State.PRESENT


def test_a_ranking_that_finds_something_is_absent() -> None:
    run = run_of({"recall@20": {step: step / 1000 for step in AT}, "ndcg@20": dict.fromkeys(AT, 0.0)}, loss=LOSS)
    assert state(NAME, run) is not State.PRESENT


def test_the_recall_of_a_class_may_be_zero() -> None:
    assert state(NAME, run_of(loss=LOSS, recall=dict.fromkeys(AT, 0.0))) is State.UNKNOWN


def test_a_score_of_everything_that_is_zero_beside_an_evaluation_loss_that_is_nearly_gone_is_present() -> None:
    def scored(end: float) -> Run:
        loss = decay(15, 0.8, end)
        return run_of(loss=loss, eval_loss=loss - 0.01, **{"metrics/Dice(M)": [0.0] * 15})  # type: ignore[arg-type]

    assert state("eval_metric_zero", scored(0.02)) is State.PRESENT
    assert state("eval_metric_zero", scored(0.5)) is not State.PRESENT


def test_an_auc_that_never_moves_while_the_loss_falls_is_told_beside_scores_that_do() -> None:
    at = range(10, 101, 10)
    scores = {name: dict(zip(at, np.linspace(0.1, 0.6, 10), strict=True)) for name in ("eval_f1", "eval_recall")}
    run = run_of(
        {
            "eval_loss": dict(zip(at, np.geomspace(0.7, 0.2, 10), strict=True)),
            "eval_auc": dict.fromkeys(at, 0.5),
            **scores,
        },
        loss=decay(100, 0.7, 0.2),
    )
    assert state("eval_metric_constant", run) is State.PRESENT
    assert state("eval_learns_nothing", run) is not State.PRESENT


def boosted(tmp_path: Path, *, last: str, losses: np.ndarray) -> Path:
    path = tmp_path / "train.log"
    rows = [f"[{at}]\tvalid's binary_logloss: {loss:.6f}\tvalid's score: nan" for at, loss in enumerate(losses, 1)]
    path.write_text("\n".join([*rows, *filter(None, [last]), rows[0]]) + "\n")
    return path


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize(
    "last", ["Early stopping, best iteration is:", "Did not meet early stopping. Best iteration is:", ""]
)
def test_a_metric_that_is_nan_and_stops_a_run_whose_loss_falls_is_present(
    tmp_path: Path, last: str, *, rising: bool
) -> None:
    losses = np.linspace(0.6, 0.2, 11)
    answer = diagnose_run(boosted(tmp_path, last=last, losses=losses[::-1] if rising else losses))
    present = {finding.symptom: finding.summary for finding in answer.findings if finding.state is State.PRESENT}
    if last.startswith("Early") and not rising:
        assert "valid's score is NaN at all of 11 evaluations" in present[NAME]
        assert answer.hypotheses[0].cause == "metric_bug"
    else:
        assert NAME not in present
