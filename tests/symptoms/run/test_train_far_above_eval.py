from __future__ import annotations

import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


def of_quotient(quotient: float, kind: str = "sft") -> Run:
    loss = noisy(decay(120, 1.5, 1.1), 0.02)
    return run_of(loss=loss, eval_loss={at: float(loss[at - 1]) / quotient for at in range(20, 121, 20)}, kind=kind)


@pytest.mark.parametrize(
    ("quotient", "answer"), [(3.3, State.PRESENT), (1.3, State.ABSENT), (1.0, State.ABSENT), (0.5, State.ABSENT)]
)
def test_a_training_loss_is_held_against_evaluation(quotient: float, answer: State) -> None:
    assert state("train_far_above_eval", of_quotient(quotient)) is answer


def test_a_classifier_with_strong_augmentation_cannot_tell() -> None:
    assert state("train_far_above_eval", of_quotient(3.3, "supervised")) is State.UNKNOWN
