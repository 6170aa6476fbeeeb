from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import Curve, decay, noisy, run_of, seen, state

FALLS, HOLDS = "eval_score_falls_with_loss", "eval_score_outlives_loss"


def evaluated(losses: Curve, scores: Curve, name: str = "eval_accuracy") -> Run:
    return run_of({"loss": decay(20, 2.3, 0.3), "eval_loss": losses, name: scores}, kind="supervised")


RISES = noisy(2.6 - decay(20, 2.3, 1.7), 0.01)
SINKS = noisy(decay(20, 0.6, 0.2), 0.01)


def test_an_accuracy_that_sinks_while_the_loss_falls_is_seen() -> None:
    finding = seen(FALLS, evaluated(decay(20, 2.3, 0.5), SINKS))
    assert finding.state is State.PRESENT


def test_an_error_rate_that_rises_while_the_loss_falls_is_seen() -> None:
    assert state(FALLS, evaluated(decay(20, 2.3, 0.5), 1 - SINKS, "eval_error_rate")) is State.PRESENT


def test_a_loss_that_comes_down_from_an_explosion_is_no_better_evaluation() -> None:
    assert state(FALLS, evaluated(decay(20, 40.0, 1.6), SINKS)) is State.ABSENT


@pytest.mark.parametrize(
    ("losses", "scores"),
    [
        (decay(20, 2.3, 0.5), noisy(1 - decay(20, 0.8, 0.2), 0.02)),
        (decay(20, 2.3, 0.5), np.full(20, 0.9)),
        (noisy(np.full(20, 2.3), 0.01), noisy(np.full(20, 0.1), 0.1)),
        (decay(20, 2.3, 0.5), np.random.default_rng(1).binomial(12, 0.5, 20) / 12),
        (decay(20, 0.7, 0.3), np.r_[0.95, np.linspace(0.97, 0.93, 19)]),
        (RISES, SINKS),
    ],
    ids=["in step", "majority", "nothing learnt", "twelve rows", "hardly less", "both get worse"],
)
def test_scores_that_go_with_the_loss_or_stand_are_absent(losses: Curve, scores: Curve) -> None:
    assert state(FALLS, evaluated(losses, scores)) is State.ABSENT


OVERSURE = np.concatenate([decay(8, 2.3, 0.8), np.linspace(0.82, 1.3, 12)])


def test_a_loss_that_rises_while_the_accuracy_is_at_its_best_is_told() -> None:
    finding = seen(HOLDS, evaluated(OVERSURE, noisy(1 - decay(20, 0.8, 0.2), 0.001)))
    assert finding.state is State.PRESENT
    assert finding.steps == [8.0]


@pytest.mark.parametrize(
    "losses", [decay(20, 2.3, 0.8), np.concatenate([decay(8, 2.3, 0.8), np.linspace(0.8, 0.83, 12)])]
)
def test_a_loss_that_hardly_rises_outlives_nothing(losses: Curve) -> None:
    assert state(HOLDS, evaluated(losses, noisy(1 - decay(20, 0.8, 0.2), 0.001))) is State.ABSENT


def test_an_accuracy_that_never_left_chance_holds_nothing() -> None:
    assert state(HOLDS, evaluated(OVERSURE, noisy(np.full(20, 0.1), 0.01))) is State.ABSENT


def test_where_the_accuracy_falls_too_it_does_not_outlive_the_loss() -> None:
    falls = np.concatenate([1 - decay(8, 0.8, 0.2), np.linspace(0.8, 0.6, 12)])
    assert state(HOLDS, evaluated(OVERSURE, falls)) is State.ABSENT


def test_without_a_score_nothing_can_be_told() -> None:
    assert state(FALLS, run_of(loss=decay(20), eval_loss=decay(20), kind="supervised")) is State.UNKNOWN


CONVERGES = 0.2 + 2.0 * np.exp(-np.arange(200) / 40)
RIGHT = 0.95 - 0.8 * np.exp(-np.arange(200) / 40)


@pytest.mark.parametrize(("times", "expected"), [(1.0, State.ABSENT), (1.4, State.ABSENT), (3.0, State.PRESENT)])
def test_an_evaluation_loss_is_held_against_that_of_training_at_the_same_accuracy(
    times: float, expected: State
) -> None:
    at = range(20, 201, 20)
    run = run_of(
        loss=CONVERGES,
        accuracy=RIGHT,
        eval_loss={step: times * float(CONVERGES[step - 1]) for step in at},
        eval_accuracy={step: float(RIGHT[step - 1]) for step in at},
    )
    assert state("eval_loss_above_its_accuracy", run) is expected


def test_training_that_is_more_accurate_by_then_cannot_tell_what_the_loss_should_be() -> None:
    at = range(20, 201, 20)
    run = run_of(loss=CONVERGES, accuracy=RIGHT, eval_loss=dict.fromkeys(at, 3.0), eval_accuracy=dict.fromkeys(at, 0.3))
    assert state("eval_loss_above_its_accuracy", run) is not State.PRESENT


@pytest.mark.parametrize(("off", "expected"), [(0.4, State.PRESENT), (0.02, State.ABSENT)])
def test_scores_that_are_apart_while_the_losses_agree_are_told(off: float, expected: State) -> None:
    at = range(20, 201, 20)
    run = run_of(
        loss=CONVERGES,
        accuracy=RIGHT,
        eval_loss={step: float(CONVERGES[step - 1]) for step in at},
        eval_accuracy={step: float(RIGHT[step - 1]) - off for step in at},
    )
    assert state("eval_score_apart_alone", run) is expected
