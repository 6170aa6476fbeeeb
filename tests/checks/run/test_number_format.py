from __future__ import annotations

import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, state


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"fp16": True}, State.PRESENT),
        ({"precision": "16-mixed"}, State.PRESENT),
        ({"bf16": True}, State.ABSENT),
        ({"mixed_precision": "no"}, State.ABSENT),
        ({}, State.UNKNOWN),
    ],
)
def test_the_configured_precision_is_judged(config: dict[str, Scalar], answer: State) -> None:
    assert state("trains_in_fp16", run_of(loss=[1.0, 0.9], config=config)) is answer


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"fp8": True}, State.PRESENT),
        ({"mixed_precision": "fp8"}, State.PRESENT),
        ({"dtype": "float8_e4m3fn"}, State.PRESENT),
        ({"precision": "transformer-engine"}, State.PRESENT),
        ({"fp8": False}, State.ABSENT),
        ({"bf16": True}, State.ABSENT),
        ({"mixed_precision": "bf16"}, State.ABSENT),
        ({}, State.UNKNOWN),
    ],
)
def test_the_configured_precision_is_judged_of_trains_in_fp8(config: dict[str, Scalar], answer: State) -> None:
    assert state("trains_in_fp8", run_of(loss=[1.0, 0.9], config=config)) is answer


def test_a_log_of_scales_and_largest_values_shows_it() -> None:
    assert state("trains_in_fp8", run_of({"fp8/amax_min": [0.2, 0.1]}, loss=[1.0, 0.9])) is State.PRESENT
