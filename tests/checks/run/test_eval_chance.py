from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "eval_below_chance"
AT = range(25, 401, 25)
LOSS = decay(400, 1.6, 0.1)
FIVE: dict[str, Scalar] = {"num_labels": 5}


@pytest.mark.parametrize("scale", [1, 100], ids=["shares", "per cent"])
def test_an_accuracy_far_below_that_of_a_guess_is_present(scale: float) -> None:
    accuracy = {step: scale * (0.04 if step % 50 else 0.06) for step in AT}
    if scale == 100:
        accuracy[25] = 20.0
    finding = seen(NAME, run_of(loss=LOSS, eval_accuracy=accuracy, config=FIVE))
    assert finding.values["guess"] == pytest.approx(0.2)
    assert finding.values["reached"] == pytest.approx(0.05, abs=0.011)


def test_an_accuracy_of_a_guess_is_sound_here() -> None:
    run = run_of(loss=LOSS, eval_accuracy=dict.fromkeys(AT, 0.19), config=FIVE)
    assert state(NAME, run) is State.ABSENT


@pytest.mark.parametrize(("name", "answer"), [("eval_roc_auc", State.PRESENT), ("eval_pr_auc", State.UNKNOWN)])
def test_the_area_under_precision_and_recall_has_no_guess_of_one_half(name: str, answer: State) -> None:
    run = run_of({"loss": LOSS, name: dict.fromkeys(AT, 0.2)})
    assert state(NAME, run) is answer


def test_where_nothing_is_learnt_it_is_absent() -> None:
    run = run_of(loss=np.full(400, 1.6), eval_accuracy=dict.fromkeys(AT, 0.05), config=FIVE)
    assert state(NAME, run) is State.ABSENT


@pytest.mark.parametrize("config", [{}, FIVE], ids=["classes unknown", "no accuracy"])
def test_what_is_not_known_cannot_be_told(config: dict[str, Scalar]) -> None:
    accuracy = dict.fromkeys(AT, 0.01) if not config else {25: 0.01}
    assert state(NAME, run_of(loss=LOSS, eval_accuracy=accuracy, config=config)) is State.UNKNOWN


@pytest.mark.parametrize("name", ["eval_auc", "AUC", "roc_auc", "eval_auroc"])
@pytest.mark.parametrize(("level", "expected"), [(0.05, State.PRESENT), (0.6, State.ABSENT)])
def test_an_auc_far_below_a_half_is_present(name: str, level: float, expected: State) -> None:
    run = run_of({name: dict.fromkeys(AT, level)}, loss=LOSS)
    assert state(NAME, run) is expected


def test_the_auc_of_evaluation_is_judged_before_that_of_training() -> None:
    run = run_of(loss=LOSS, auc=dict.fromkeys(AT, 0.99), eval_auc=dict.fromkeys(AT, 0.3))
    assert seen(NAME, run).values["reached"] == 0.3


def test_a_good_ranking_that_is_lost_was_not_a_guess() -> None:
    run = run_of({"ndcg@10": {step: 0.6 if step == 25 else 0.3 for step in AT}}, loss=LOSS)
    assert state(NAME, run) is State.UNKNOWN


def test_an_auc_of_a_guess_tells_that_nothing_but_frequencies_is_learnt_or_that_it_is_measured_wrongly() -> None:
    """A loss of evaluation falls at first in any case, as the frequencies of the classes are learnt."""
    at, auc = range(25, 325, 25), {step: 0.5 + 0.01 * (-1) ** step for step in range(25, 325, 25)}
    first = {step: 0.69 if step == 25 else 0.43 for step in at}
    on = {step: 0.69 - step / 1000 for step in at}
    assert state("eval_learns_nothing", run_of(loss=LOSS, eval_loss=first, eval_auc=auc)) is State.PRESENT
    assert state("eval_score_behind_loss", run_of(loss=LOSS, eval_loss=first, eval_auc=auc)) is not State.PRESENT
    assert state("eval_learns_nothing", run_of(loss=LOSS, eval_loss=on, eval_auc=auc)) is not State.PRESENT
    assert state("eval_score_behind_loss", run_of(loss=LOSS, eval_loss=on, eval_auc=auc)) is State.PRESENT


def test_what_a_guess_has_is_only_bounded_where_the_classes_are_estimated_from_the_loss() -> None:
    training = {step: 0.3 + step / 800 for step in range(0, 400, 10)}
    run = run_of(loss=LOSS, accuracy=training, eval_accuracy=dict.fromkeys(AT, 0.01))
    assert "a guess has at least" in seen(NAME, run).summary


def test_a_loss_below_zero_tells_no_number_of_classes() -> None:
    training = dict.fromkeys(range(0, 400, 10), 0.1)
    negative = {step: 1.9 - step * 40 for step in range(0, 400, 10)}
    assert state(NAME, run_of(loss=negative, accuracy=training, eval_accuracy=dict.fromkeys(AT, 0.1))) is State.UNKNOWN
