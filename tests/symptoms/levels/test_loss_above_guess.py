from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, run_of, seen, state

NAME = "loss_above_guess"
HIGH = decay(20, 60.0, 8.0)


def test_a_loss_above_any_vocabulary_is_present_where_a_perplexity_is_its_power() -> None:
    finding = seen(NAME, run_of(loss=HIGH, ppl=np.exp(HIGH)))
    assert finding.state is State.PRESENT
    assert finding.values["highest"] == 60
    assert finding.values["records"] == np.count_nonzero(np.log(1e6) < HIGH)


def test_without_a_perplexity_it_may_be_a_sum() -> None:
    assert state(NAME, run_of(loss=HIGH)) is State.UNKNOWN
    assert state(NAME, run_of(loss=HIGH, codebook_perplexity=decay(20, 8.0, 90.0))) is State.UNKNOWN


@pytest.mark.parametrize("at", [0, 9])
def test_one_bad_batch_is_absent(at: int) -> None:
    loss = decay(20, 10.8, 4.0)
    loss[at] = 90.0
    assert state(NAME, run_of(loss=loss, train_ppl=np.exp(loss))) is State.ABSENT


def test_an_untrained_model_of_a_large_vocabulary_is_absent() -> None:
    loss = decay(20, 12.6, 4.0)
    assert state(NAME, run_of(loss=loss, perplexity=np.exp(loss))) is State.ABSENT


def test_an_evaluation_alone_may_show_it() -> None:
    evaluation = {5: 40.0, 10: 30.0, 15: 25.0, 20: 20.0}
    perplexity = {step: float(np.exp(loss)) for step, loss in evaluation.items()}
    finding = seen(NAME, run_of(loss=decay(20, 10.0, 5.0), eval_loss=evaluation, eval_ppl=perplexity))
    assert finding.state is State.PRESENT
    assert finding.steps == [5]


def test_a_perplexity_that_is_a_power_of_two_makes_it_bits() -> None:
    bits = decay(20, 60.0, 15.0)
    assert "log2" in seen(NAME, run_of(loss=bits, ppl=2**bits)).summary
    assert state(NAME, run_of(loss=decay(20, 17.6, 8.0), ppl=2 ** decay(20, 17.6, 8.0))) is State.ABSENT


def test_an_infinite_perplexity_is_the_power_of_a_loss_of_thousands() -> None:
    assert state(NAME, run_of(loss=[2837.2, 2819.2, 2802.8], ppl=[np.inf] * 3)) is State.PRESENT
    assert state(NAME, run_of(loss=[28.2, 28.1, 28.0], ppl=[np.inf] * 3)) is State.UNKNOWN
