from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import Finding, State
from tests.runs import run_of, seen

OUTCOMES = (
    "eval_score_stands",
    "eval_score_falls",
    "eval_score_gap_grows",
)
EVERY = 20


def scored(
    train: Sequence[float],
    evaluation: Sequence[float],
    *,
    rows: float | None = None,
    batch: float = 10,
    seed: int = 0,
    names: tuple[str, str] = ("accuracy", "eval_accuracy"),
    kind: str = "supervised",
    config: Mapping[str, Scalar] | None = None,
) -> Run:
    """A run with one evaluation every 20 steps, whose training score is that of batches of 64 rows."""
    every = np.interp(np.arange(1, EVERY * len(train) + 1), EVERY * np.arange(1, len(train) + 1), train)
    noise = np.sqrt(every * (1 - every) / 64) * np.random.default_rng(seed).standard_normal(len(every))
    settings: dict[str, Scalar] = {"eval_rows": 1000, **(config or {})}
    if rows is not None:
        settings |= {"train_rows": rows, "per_device_train_batch_size": batch}
    return run_of(
        {
            names[0]: np.clip(every + noise, 0, 1),
            names[1]: {EVERY * (at + 1): float(value) for at, value in enumerate(evaluation)},
        },
        config=settings,
        kind=kind,
    )


def told(run: Run) -> str:
    """Return the outcome that is seen, "" for none."""
    present = [name for name in OUTCOMES if seen(name, run).state is State.PRESENT]
    assert len(present) < 2
    return "".join(present)


def finding(name: str, run: Run) -> Finding:
    return seen(name, run)


LEARNS = [0.3, 0.5, 0.65, 0.75, 0.8, 0.84, 0.87, 0.89, 0.9, 0.9]
"""What a sound run scores."""


def test_an_evaluation_that_stays_at_chance_while_training_rises_is_seen_with_both_numbers() -> None:
    run = scored(LEARNS, [0.1, 0.11, 0.1, 0.09, 0.1, 0.12, 0.1, 0.1, 0.11, 0.1])
    assert told(run) == "eval_score_stands"
    assert "0.1" in finding("eval_score_stands", run).summary
    assert finding("eval_score_stands", run).values["gap"] > 0.7


def test_a_first_evaluation_before_batch_normalisation_has_settled_is_no_gap() -> None:
    run = scored(LEARNS, [0.1, 0.3, *[value - 0.02 for value in LEARNS[2:]]], rows=2000)
    assert told(run) == ""


MEMORISED = [0.4, 0.6, 0.8, 0.9, 0.96, 0.98, 0.99, 1.0, 1.0, 1.0]


def test_a_score_that_is_lost_again_while_training_goes_on_is_seen_with_its_best_step() -> None:
    run = scored(MEMORISED, [0.4, 0.6, 0.72, 0.74, 0.72, 0.69, 0.66, 0.63, 0.62, 0.61])
    assert told(run) == "eval_score_falls"
    assert finding("eval_score_falls", run).steps[0] == pytest.approx(80, abs=20)


def test_scores_that_both_fall_are_no_matter_of_evaluation() -> None:
    both = [0.4, 0.6, 0.72, 0.74, 0.6, 0.5, 0.4, 0.35, 0.3, 0.3]
    assert told(scored(both, both)) == ""


NOISY = [0.3, 0.45, 0.5, 0.55, 0.58, 0.6, 0.61, 0.62, 0.62, 0.62]


TWENTY_ROWS = (np.random.default_rng(2).binomial(20, LEARNS) / 20).tolist()
HEALTHY = {
    "in step": scored(LEARNS, [value - 0.03 for value in LEARNS]),
    "light dropout": scored(LEARNS, [value + 0.05 for value in LEARNS], config={"dropout": 0.1}),
    "a usual gap at the end": scored(MEMORISED, [0.4, 0.58, 0.7, 0.78, 0.82, 0.84, 0.85, 0.85, 0.86, 0.86]),
    "a hundred classes": scored(MEMORISED, [0.38, 0.55, 0.65, 0.7, 0.74, 0.76, 0.77, 0.77, 0.77, 0.77]),
    "solved before the first evaluation": scored([0.9, 0.95, 0.97, 0.98], [0.93, 0.93, 0.93, 0.93]),
    "begins trained": scored([0.6, 0.8, 0.9, 0.95], [0.55, 0.7, 0.78, 0.8]),
    "young": scored([0.1, 0.12, 0.15], [0.1, 0.11, 0.13]),
    "twenty rows": scored(
        LEARNS, (np.random.default_rng(2).binomial(20, LEARNS) / 20).tolist(), config={"eval_rows": 20}
    ),
    "nothing is learnt": scored([0.1] * 10, [0.1] * 10),
    "slow to generalise": scored(LEARNS, [0.1, 0.1, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.83, 0.85]),
    "flickers": scored(LEARNS, [0.25, 0.5, 0.4, 0.7, 0.6, 0.82, 0.7, 0.85, 0.8, 0.87]),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_sound_runs_show_none_of_it(name: str) -> None:
    assert told(HEALTHY[name]) == ""


def test_error_rates_are_compared_as_what_is_right() -> None:
    wrong = [1 - value for value in LEARNS]
    run = scored(wrong, [0.9] * 10, names=("train_error_rate", "eval_error_rate"))
    assert told(run) == "eval_score_stands"


def test_percentages_and_shares_are_not_compared() -> None:
    run = run_of(accuracy=[100 * value for value in LEARNS], eval_accuracy=[0.5] * 10, kind="supervised")
    assert finding("eval_score_stands", run).state is State.UNKNOWN


def test_two_evaluations_cannot_tell() -> None:
    assert finding("eval_score_stands", scored([0.5, 0.9], [0.1, 0.1])).state is State.UNKNOWN


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("eval_accuracy", [0.15, 0.18, 0.17, 0.26, 0.3, 0.29, 0.27, 0.22]),
        ("eval_cer", [1.1, 0.92, 0.93, 0.84, 0.8, 0.81, 0.83, 0.88]),
    ],
)
def test_a_score_that_stays_behind_while_its_loss_falls_to_a_fifth_is_seen(name: str, values: list[float]) -> None:
    at = [20 * place for place in range(1, 9)]
    falls = dict(zip(at, np.geomspace(1.7, 0.09, 8).tolist(), strict=True))
    run = run_of({name: dict(zip(at, values, strict=True))}, eval_loss=falls)
    assert seen("eval_score_behind_loss", run).state is State.PRESENT


def test_a_score_that_rises_with_its_loss_or_a_loss_that_falls_from_a_peak_is_none_behind() -> None:
    at = [20 * place for place in range(1, 9)]
    falls = dict(zip(at, np.geomspace(1.7, 0.09, 8).tolist(), strict=True))
    rises = dict(zip(at, np.linspace(0.4, 0.97, 8).tolist(), strict=True))
    assert seen("eval_score_behind_loss", run_of(eval_accuracy=rises, eval_loss=falls)).state is State.ABSENT
    stays = dict.fromkeys(at, 0.1) | {160: 0.11}
    peak = dict(zip(at, np.geomspace(500, 20, 8).tolist(), strict=True))
    run = run_of(loss=[2.3, 400.0, *np.geomspace(400, 20, 158)], eval_accuracy=stays, eval_loss=peak)
    assert seen("eval_score_behind_loss", run).state is State.ABSENT


@pytest.mark.parametrize(("right", "expected"), [(0.9, State.PRESENT), (0.998, State.ABSENT)])
def test_an_evaluation_loss_far_above_what_its_accuracy_cost_in_training_is_one_of_other_rows_or_of_few(
    right: float, expected: State
) -> None:
    wrong = np.concatenate([np.geomspace(0.6, 1 - right, 60), np.full(60, 1 - right)])
    evaluated = dict.fromkeys(range(60, 121, 10), 1 - right)
    run = run_of(
        {"accuracy": 1 - wrong, "eval_accuracy": dict.fromkeys(evaluated, right)},
        loss=2.5 * wrong,
        eval_loss={step: 9 * one for step, one in evaluated.items()},
        kind="supervised",
    )
    assert seen("eval_loss_above_its_accuracy", run).state is expected


@pytest.mark.parametrize("name", ["recall@10", "val/ndcg@20", "val/accuracy"])
def test_a_score_that_is_lost_while_the_training_loss_falls_on_is_present_without_any_other_curve(name: str) -> None:
    loss = {float(epoch): 340.0 * float(np.exp(-epoch / 20)) for epoch in range(1, 61)}
    rises, falls = np.linspace(0.0, 0.1147, 25), np.linspace(0.112, 0.045, 35)
    lost = dict(enumerate(np.concatenate([rises, falls]), start=1))
    assert told(run_of({"train_loss": loss, name: lost}, kind="unknown")) == "eval_score_falls"
    kept = dict(enumerate(np.concatenate([rises, np.full(35, 0.11)]), start=1))
    assert told(run_of({"train_loss": loss, name: kept}, kind="unknown")) != "eval_score_falls"
