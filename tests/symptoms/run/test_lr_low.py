from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, run_of_records, state

FULL: dict[str, Scalar] = {"use_peft": False}
LORA: dict[str, Scalar] = {"adapter": "qlora"}


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [("sft", 1e-7, FULL), ("sft", 2e-6, LORA), ("sft", 1e-8, {}), ("preference", 1e-9, FULL)],
)
def test_a_rate_far_below_the_usual_is_present(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_low", run_of(learning_rate=np.linspace(rate, 0, 50), kind=kind, config=config)) is State.PRESENT


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [("sft", 2e-6, FULL), ("sft", 5e-5, LORA), ("preference", 2e-7, FULL), ("sft", 1e-4, {})],
)
def test_a_usual_rate_is_absent(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_low", run_of(learning_rate=[rate] * 20, kind=kind, config=config)) is State.ABSENT


def test_a_log_that_ends_in_warmup_cannot_tell() -> None:
    run = run_of(learning_rate=np.linspace(1e-9, 1e-7, 20), kind="sft", config=FULL)
    assert state("lr_low", run) is State.UNKNOWN


def test_a_rate_that_is_usual_without_lora_cannot_tell() -> None:
    assert state("lr_low", run_of(learning_rate=[5e-6] * 20, kind="sft")) is State.UNKNOWN


def test_without_a_rate_it_cannot_be_told() -> None:
    assert state("lr_low", run_of(loss=[1.0] * 9, kind="sft", config=FULL)) is State.UNKNOWN


@pytest.mark.parametrize(("epoch", "expected"), [(0.01, State.UNKNOWN), (0.9, State.PRESENT)])
def test_a_single_record_is_no_peak_where_the_run_has_just_begun(epoch: float, expected: State) -> None:
    record = {"loss": 1.0, "learning_rate": 1e-9, "epoch": epoch}
    assert state("lr_low", run_of_records([record], kind="sft", config=FULL)) is expected


def test_a_rate_at_which_no_agent_learns_is_present() -> None:
    curves = {"policy_loss": [0.1] * 20, "reward": [12.0] * 20}
    assert state("lr_low", run_of({**curves, "learning_rate": [1e-8] * 20}, kind="rl")) is State.PRESENT
    assert state("lr_low", run_of({**curves, "learning_rate": [3e-5] * 20}, kind="rl")) is State.UNKNOWN
