from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state


def evaluated(size: float, kind: str = "sft") -> Run:
    levels = 1.2 + size * np.random.default_rng(3).standard_normal(15)
    return run_of(
        loss=noisy(decay(150, 1.5, 1.0), 0.02),
        eval_loss={10 * (place + 1): float(level) for place, level in enumerate(levels)},
        kind=kind,
    )


@pytest.mark.parametrize(("size", "answer"), [(0.3, State.PRESENT), (0.02, State.ABSENT)])
def test_scatter_of_a_loss_per_token_is_judged(size: float, answer: State) -> None:
    assert state("eval_tokens_flicker", evaluated(size)) is answer


def test_a_small_set_of_a_classifier_cannot_tell() -> None:
    assert state("eval_tokens_flicker", evaluated(0.3, "supervised")) is State.UNKNOWN
