from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, run_of_records, seen, state


def looked_into(shares: list[float]) -> Run:
    return run_of(loss=decay(len(shares)), rows_evaluated=shares)


def recomputed(loss: list[float], **anew: list[float]) -> Run:
    return run_of({"loss": loss, **{f"recomputed/{name}": values for name, values in anew.items()}})


def resumed(again: list[float], *, lost: int = 5, **config: float) -> Run:
    """A run that is resumed after 25 records, and makes some steps again."""
    steps = [number + 1 if number < 25 else number + 1 - lost for number in range(len(again))]
    records = [
        {"step": step, "loss": 4 - 0.01 * step, "row_again": one} for step, one in zip(steps, again, strict=True)
    ]
    return run_of_records(records, config=config)


def test_batches_with_rows_of_the_evaluation_are_present_from_the_first_on() -> None:
    finding = seen("rows_evaluated", looked_into([0.0, 0.25, 0.125, 0.25]))
    assert finding.state is State.PRESENT
    assert finding.steps == [2]


def test_one_row_of_a_batch_that_is_alike_by_chance_is_none() -> None:
    assert state("rows_evaluated", looked_into([0.0625] * 5)) is State.ABSENT


def test_without_looks_it_cannot_be_told() -> None:
    assert state("rows_evaluated", run_of(loss=decay(20))) is State.UNKNOWN
    assert state("rows_evaluated", looked_into([1.0] * 2)) is State.UNKNOWN


def test_rows_that_start_over_at_a_resume_are_told_with_its_step() -> None:
    finding = seen("rows_come_again", resumed([0.0] * 25 + [25.0] * 15))
    assert finding.state is State.PRESENT
    assert finding.steps == [21]


def test_lost_steps_that_are_made_again_on_their_own_rows_are_no_start_over() -> None:
    assert state("rows_come_again", resumed([0.0] * 25 + [5.0] * 5 + [0.0] * 10)) is State.ABSENT


def test_a_new_pass_in_the_same_order_that_begins_at_the_resume_is_none() -> None:
    assert state("rows_come_again", resumed([0.0] * 25 + [25.0] * 15, steps_per_epoch=20)) is State.ABSENT
    assert state("rows_come_again", resumed([0.0] * 10 + [10.0] * 30)) is State.ABSENT


def test_rows_that_are_drawn_anew_after_a_resume_are_none() -> None:
    assert state("rows_come_again", resumed([0.0] * 25 + [7.0, 0.0, 19.0, 3.0, 0.0, 22.0] * 2)) is State.ABSENT


def test_without_rows_a_start_over_cannot_be_told() -> None:
    assert state("rows_come_again", run_of(loss=decay(40), inputs_spread=[1.0] * 40)) is State.UNKNOWN


def test_a_loss_that_is_summed_over_micro_batches_is_a_multiple() -> None:
    anew = [2.3, 1.1, 0.4, 0.7]
    finding = seen("loss_multiplied", recomputed([4 * one for one in anew], once=anew))
    assert finding.state is State.PRESENT
    assert finding.values["factor"] == pytest.approx(4)


def test_a_loss_with_a_further_term_is_no_multiple() -> None:
    anew = [2.3, 1.1, 0.4, 0.1]
    assert state("loss_multiplied", recomputed([one + 0.8 for one in anew], once=anew)) is not State.PRESENT


def test_the_loss_of_the_outputs_themselves_is_nothing_of_note() -> None:
    anew = [2.3, 1.1, 0.4, 0.1]
    run = recomputed(anew, once=anew, twice=[2.2, 1.9, 1.6, 1.5])
    assert {state(one, run) for one in ("loss_multiplied", "softmax_taken_twice", "loss_unlike_outputs")} == {
        State.ABSENT
    }


def test_the_loss_of_the_next_token_is_that_of_a_shifted_label() -> None:
    anew = [2.3, 1.1, 0.4, 0.1]
    run = recomputed(anew, once=[3.0, 5.0, 2.0, 7.0], shifted=anew)
    assert state("loss_unlike_outputs", run) is State.ABSENT


def test_a_second_softmax_is_told_though_both_losses_are_of_one_size() -> None:
    twice = [2.6, 2.3, 2.25, 2.2]
    finding = seen("softmax_taken_twice", recomputed(twice, once=[2.7, 2.5, 2.1, 2.3], twice=twice))
    assert finding.state is State.PRESENT


def test_outputs_that_stay_uniform_tell_no_second_softmax() -> None:
    chance = [2.302, 2.303, 2.302, 2.303]
    assert state("softmax_taken_twice", recomputed(chance, once=chance, twice=chance)) is State.ABSENT


def test_a_loss_far_from_that_of_the_outputs_is_unlike_them() -> None:
    run = recomputed([9.7, 0.4, 0.02, 0.01], once=[1.6, 1.6, 1.6, 1.6], twice=[1.61] * 4)
    assert state("loss_unlike_outputs", run) is State.PRESENT


def test_smoothed_labels_leave_the_loss_like_the_outputs() -> None:
    anew = [2.3, 1.6, 1.1, 0.9]
    assert state("loss_unlike_outputs", recomputed([0.9 * one + 0.1 * 2.6 for one in anew], once=anew)) is State.ABSENT


def test_two_looks_at_outputs_are_too_few() -> None:
    assert state("loss_multiplied", recomputed([4.0, 2.0], once=[1.0, 0.5])) is State.UNKNOWN


def test_inputs_of_evaluation_that_lie_elsewhere_differ() -> None:
    assert state("inputs_differ", run_of(loss=decay(4), inputs_apart=[0.6, 0.5, 0.6, 0.5])) is State.PRESENT


def test_inputs_that_differ_as_small_batches_do_are_alike() -> None:
    assert state("inputs_differ", run_of(loss=decay(4), inputs_apart=[0.12, 0.3, 0.1, 0.09])) is State.ABSENT


def test_running_statistics_that_never_follow_are_stale() -> None:
    run = run_of({"loss": decay(4), "statistics_apart/1": [1.4, 0.1, 0.1, 0.1], "statistics_apart/4": [1.4] * 4})
    finding = seen("running_statistics_stale", run)
    assert finding.state is State.PRESENT
    assert "4 has" in finding.summary


def test_running_statistics_that_follow_after_the_first_look_are_not() -> None:
    run = run_of({"loss": decay(4), "statistics_apart/1": [1.4, 0.3, 0.1, 0.1]})
    assert state("running_statistics_stale", run) is State.ABSENT


@pytest.mark.parametrize("spread", [0.0, 30.0])
def test_a_batch_of_nothing_or_of_another_scale_is_odd(spread: float) -> None:
    spreads = noisy(np.ones(60))
    spreads[40] = spread
    finding = seen("inputs_odd", run_of(loss=decay(60), inputs_spread=spreads))
    assert finding.state is State.PRESENT
    assert finding.steps == [41]


def test_batches_that_vary_by_chance_are_not_odd() -> None:
    spreads = noisy(np.ones(400), size=0.2, tails="lognormal")
    assert state("inputs_odd", run_of(loss=decay(400), inputs_spread=spreads)) is State.ABSENT


def test_inputs_that_are_always_nothing_have_no_odd_batch() -> None:
    assert state("inputs_odd", run_of(loss=decay(60), inputs_spread=np.zeros(60))) is State.ABSENT


@pytest.mark.parametrize(("features", "expected"), [(2.0, State.PRESENT), (64.0, State.ABSENT)])
def test_a_last_layer_that_reads_two_numbers_for_ten_classes_has_few(features: float, expected: State) -> None:
    config = {"features": features, "num_labels": 10.0}
    run = run_of({"loss": decay(9), "recomputed/once": decay(9)}, config=config, kind="supervised")
    assert state("features_few", run) is expected


def test_a_last_layer_that_reads_as_many_numbers_as_there_are_classes_has_not() -> None:
    config = {"features": 2.0, "num_labels": 2.0}
    run = run_of({"loss": decay(9), "recomputed/once": decay(9)}, config=config, kind="supervised")
    assert state("features_few", run) is State.ABSENT
