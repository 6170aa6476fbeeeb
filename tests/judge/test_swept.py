"""A sweep says which settings are best, how sure that is, and when the best lie at the edge of what was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from mldebug_mcp.judge.sweep import Answered, left_out_of_sweep, shared_settings, sweep_of
from mldebug_mcp.models.runs import BestSetting, RunRow, Runs
from mldebug_mcp.report.runs_terminal import sweep_lines

RATES = (1e-4, 3e-4, 1e-3, 3e-3)
Loss = Callable[[dict[str, float]], float]


def answered(settings: dict[str, float], last: float, *, cause: str = "healthy", step: float = 100) -> Answered:
    name = "-".join(f"{one}{value:g}" for one, value in settings.items())
    row = RunRow(name=name, path="", step=step, metric="eval_loss", better="lower", last=last, cause=cause)
    return Answered(name, row, dict(settings))


def grid(loss: Loss, noise: float = 0.01, seeds: int = 3, draw: int = 0) -> Iterator[Answered]:
    random = np.random.default_rng(draw)
    for rate in RATES:
        for decay in (0.0, 0.1, 0.2):
            for seed in range(seeds):
                settings = {"learning_rate": rate, "weight_decay": decay, "seed": float(seed)}
                yield answered(settings, loss(settings) + float(random.normal(0, noise)))


def found(answers: list[Answered], setting: str) -> BestSetting:
    sweep = sweep_of(answers)
    assert sweep is not None
    return next(one for one in sweep.settings if one.setting == setting)


def test_the_best_value_inside_what_was_tried_is_named_as_sure_and_at_no_edge() -> None:
    best = found(list(grid(lambda one: abs(np.log(one["learning_rate"] / 1e-3)))), "learning_rate")
    assert (best.best, best.edge, best.as_good) == ("0.001", "", [])
    assert best.certainty is not None
    assert best.certainty > 0.99


def test_best_runs_at_the_largest_value_tried_are_told_with_counts_and_the_words_of_practitioners() -> None:
    answers = list(grid(lambda one: -np.log(one["learning_rate"])))
    best = found(answers, "learning_rate")
    assert (best.best, best.edge, best.at_edge, best.top) == ("0.003", "highest", 3, 3)
    lines = "\n".join(sweep_lines(sweep_of(answers)))
    assert "best at the edge: 3 of 3 best runs at the highest learning_rate tried" in lines
    assert "suspicious if the best point sampled from it is close to its boundary" in lines


def test_a_setting_without_effect_is_hardly_ever_called_best_or_at_an_edge() -> None:
    sure = at_edge = 0
    for draw in range(100):
        best = found(list(grid(lambda _: 1.0, draw=1000 + draw)), "learning_rate")
        at_edge += best.edge != ""
        sure += best.p <= 0.05
    assert at_edge <= 2
    assert sure <= 5


def test_runs_that_blew_up_beyond_the_best_value_make_no_edge_and_hide_nothing() -> None:
    answers = [
        *grid(lambda one: -np.log(one["learning_rate"])),
        *(answered({"learning_rate": 1e-2, "weight_decay": 0.1, "seed": float(seed)}, 1e30, cause="lr_too_high")
          for seed in range(3)),
    ]  # fmt: skip
    best = found(answers, "learning_rate")
    assert (best.best, best.edge) == ("0.003", "")
    assert best.certainty is not None
    assert best.certainty > 0.95


def test_values_of_runs_without_a_result_count_as_tried() -> None:
    crashed = [answered({"learning_rate": 1e-2, "weight_decay": 0.0}, float("nan"), step=3)]
    best = found([*grid(lambda one: -np.log(one["learning_rate"])), *crashed], "learning_rate")
    assert best.tried[-1] == "0.01"
    assert best.edge == ""


def test_the_spread_of_seeds_is_told_apart_from_that_of_settings() -> None:
    sweep = sweep_of(list(grid(lambda one: abs(np.log(one["learning_rate"] / 1e-3)), noise=0.02, seeds=5)))
    assert sweep is not None
    assert sweep.seed_groups == 12
    assert sweep.between_seeds == pytest.approx(0.02, rel=0.3)
    assert sweep.between_settings == pytest.approx(0.9, rel=0.3)
    assert not sweep.citations


def test_where_seeds_differ_more_than_settings_no_setting_stands_out_and_it_is_said_why() -> None:
    sweep = sweep_of(list(grid(lambda _: 1.0, noise=0.1, draw=1)))
    lines = sweep_lines(sweep)
    assert "no setting stands out" in lines[1]
    assert "Beware of random seeds" in lines[-1]


def test_a_random_search_is_judged_by_ranges() -> None:
    random = np.random.default_rng(0)
    answers = [
        answered({"learning_rate": float(rate), "dropout": float(random.random())}, -float(np.log(rate)))
        for rate in 10 ** random.uniform(-5, -2, 60)
    ]
    best = found(answers, "learning_rate")
    assert len(best.tried) == 5
    assert (best.edge, best.best) == ("highest", best.tried[-1])
    assert found(answers, "dropout").edge == ""


def test_a_fault_above_some_rate_of_a_random_search_is_found() -> None:
    random = np.random.default_rng(0)
    answers = [
        answered({"learning_rate": float(rate)}, 1.0, cause="lr_too_high" if rate > 2e-3 else "healthy")
        for rate in 10 ** random.uniform(-5, -2, 60)
    ]
    assert [one.setting for one in shared_settings(answers)] == ["learning_rate"]


def test_too_few_runs_and_runs_of_other_lengths_or_results_are_not_compared() -> None:
    answers = list(grid(lambda one: one["learning_rate"]))
    assert sweep_of(answers[:4]) is None
    young = [answered({"learning_rate": 1e-5}, -10.0, step=10)]
    sweep = sweep_of([*answers, *young])
    assert sweep is not None
    assert sweep.compared == len(answers)
    assert Runs(path="", rows=[one.row for one in answers], sweep=sweep).to_json()


@pytest.mark.parametrize("batches", [(16.0, 256.0), (8.0, 32.0, 64.0)])
def test_runs_of_equal_epochs_are_compared_however_many_steps_their_batches_make_of_them(
    batches: tuple[float, ...],
) -> None:
    answers = [
        answered(
            {"learning_rate": rate, "per_device_train_batch_size": batch, "seed": float(seed)},
            rate + seed * 1e-6,
            step=4096 / batch,
        )
        for rate in RATES
        for batch in batches
        for seed in range(3)
    ]
    sweep = sweep_of(answers)
    assert sweep is not None
    assert sweep.compared == len(answers)
    assert left_out_of_sweep(answers) == []


def test_runs_of_equal_steps_are_compared_whatever_their_batch() -> None:
    answers = [
        answered({"learning_rate": rate, "per_device_train_batch_size": batch}, rate, step=500)
        for rate in RATES
        for batch in (4.0, 64.0)
    ]
    sweep = sweep_of(answers)
    assert sweep is not None
    assert sweep.compared == len(answers)


def test_the_notes_say_how_many_runs_were_not_compared_and_why() -> None:
    young = [answered({"learning_rate": 1e-5, "seed": float(seed)}, 0.5, step=10) for seed in range(2)]
    broken = [answered({"learning_rate": 1.0}, float("nan"))]
    short, without = left_out_of_sweep([*grid(lambda one: one["learning_rate"]), *young, *broken])[::-1]
    assert "leaves out 2 runs with less than 50% of the steps" in short
    assert "leaves out 1 run without a finite eval_loss" in without


def test_runs_of_unknown_settings_are_no_seeds_of_one_setting() -> None:
    known = [answered({"learning_rate": rate}, 2 + rate) for rate in RATES[:2] for _ in range(2)]
    unknown = [answered({}, last) for last in (2.4, 2.4, 55.4, 11.8, 11.8, 4.9, 2.4)]
    assert sweep_of([*known, *unknown]) is None
    (note,) = left_out_of_sweep([*known, *unknown])
    assert "4 of 11 runs tell one" in note

    more = [*known, answered({"learning_rate": 3e-3}, 2.5), *unknown]
    sweep = sweep_of(more)
    assert sweep is not None
    assert (sweep.compared, sweep.between_seeds) == (5, None)
    assert left_out_of_sweep(more) == ["the comparison of settings leaves out 7 runs of unknown settings"]


def test_settings_that_differ_no_more_than_seeds_do_are_not_said_to_differ_by_0() -> None:
    lines = "\n".join(sweep_lines(sweep_of(list(grid(lambda one: one["seed"], noise=1e-9)))))
    assert "between settings by no more than chance gives" in lines


def test_two_seeds_at_each_of_three_values_tell_the_best_where_the_values_are_far_apart() -> None:
    ends = {1e-4: (0.86, 0.82), 3e-4: (0.57, 0.585), 3e-2: (7.018, 6.983)}
    answers = [
        answered({"learning_rate": rate, "seed": float(seed)}, last)
        for rate, both in ends.items()
        for seed, last in enumerate(both)
    ]
    best = found(answers, "learning_rate")
    assert best.best == "0.0003"
    assert best.p <= 0.05


def test_two_seeds_at_each_of_three_values_without_effect_hardly_ever_tell_one() -> None:
    random = np.random.default_rng(0)
    told = 0
    for _ in range(100):
        rates = [rate for rate in (1e-4, 3e-4, 3e-2) for _ in range(2)]
        ends = random.normal(1, 0.1, len(rates)).tolist()
        settings = [{"learning_rate": rate, "seed": float(seed)} for seed, rate in enumerate(rates)]
        answers = [answered(given, last) for given, last in zip(settings, ends, strict=True)]
        told += found(answers, "learning_rate").p <= 0.05
    assert told <= 10
