from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of, run_of_records, seen, state

FULL: dict[str, Scalar] = {"finetuning_type": "full"}
LORA: dict[str, Scalar] = {"lora_r": 16}
NO_PEFT: dict[str, Scalar] = {"use_peft": False}
QLORA: dict[str, Scalar] = {"adapter": "qlora"}


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [
        ("sft", 1e-3, FULL),
        ("sft", 4e-3, LORA),
        ("sft", 4e-3, {}),
        ("preference", 1e-4, FULL),
        ("preference", 1e-3, LORA),
        ("grpo", 1e-4, FULL),
        ("supervised", 0.03, {"optim": "adamw_torch"}),
    ],
)
def test_a_rate_far_above_the_usual_is_present(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    finding = seen("lr_high", run_of(learning_rate=np.linspace(rate, 0, 50), kind=kind, config=config))
    assert finding.state is State.PRESENT
    assert finding.values["peak"] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [
        ("sft", 1e-4, FULL),
        ("sft", 1e-3, LORA),
        ("preference", 5e-6, FULL),
        ("preference", 1e-4, LORA),
        ("pretraining", 1e-3, {"optim": "adamw"}),
    ],
)
def test_a_usual_rate_is_absent(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_high", run_of(learning_rate=[rate] * 20, kind=kind, config=config)) is State.ABSENT


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [("sft", 1e-3, {}), ("unknown", 1.0, {}), ("supervised", 0.1, {}), ("supervised", 0.1, {"optim": "sgd"})],
    ids=["LoRA or not", "kind unknown", "optimizer unknown", "not Adam"],
)
def test_what_the_rate_is_for_must_be_known(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_high", run_of(learning_rate=[rate] * 20, kind=kind, config=config)) is State.UNKNOWN


@pytest.mark.parametrize("kind", ["unknown", "pretraining", "supervised"])
def test_a_second_beta_is_that_of_adam_whose_rate_is_then_known(kind: str) -> None:
    adam: dict[str, Scalar] = {"beta2": 0.99}
    assert state("lr_high", run_of(learning_rate=[0.2] * 20, kind=kind, config=adam)) is State.PRESENT
    assert state("lr_high", run_of(learning_rate=[0.002] * 20, kind=kind, config=adam)) is not State.PRESENT
    named: dict[str, Scalar] = {**adam, "optim": "sgd"}
    assert state("lr_high", run_of(learning_rate=[0.2] * 20, kind=kind, config=named)) is not State.PRESENT


def test_a_configured_rate_that_is_logged_nowhere_has_no_step() -> None:
    adam: dict[str, Scalar] = {"learning_rate": 3.0, "optim": "adam"}
    finding = seen("lr_high", run_of(learning_rate=[2.97] * 20, kind="supervised", config=adam))
    assert finding.summary.startswith("learning_rate is set to 3;")


def test_the_configured_rate_is_enough() -> None:
    assert state("lr_high", run_of(loss=[1.0] * 9, kind="sft", config={"learning_rate": 4e-3})) is State.PRESENT


def test_a_rate_that_is_extreme_is_high_as_well() -> None:
    run = run_of(learning_rate=[0.1] * 20, kind="sft", config=LORA)
    assert state("lr_high", run) is State.PRESENT
    assert state("lr_extreme", run) is State.PRESENT


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [
        ("sft", 5e-3, FULL),
        ("sft", 2e-2, LORA),
        ("preference", 5e-3, FULL),
        ("pretraining", 0.1, {"optim": "adamw_torch"}),
        ("supervised", 0.1, {"optim": "adam"}),
    ],
)
def test_a_rate_an_order_of_magnitude_above_the_usual_is_present(
    kind: str, rate: float, config: dict[str, Scalar]
) -> None:
    finding = seen("lr_extreme", run_of(learning_rate=[rate] * 20, kind=kind, config=config))
    assert finding.values["factor"] > 15
    assert finding.values["peak"] == pytest.approx(rate)


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [
        ("sft", 5e-4, FULL),
        ("grpo", 1e-3, LORA),
        ("sft", 3e-3, LORA),
        ("pretraining", 0.02, {"optim": "adamw_torch"}),
        ("supervised", 0.02, {"optim": "adam"}),
    ],
)
def test_a_rate_a_few_times_above_the_usual_is_not_extreme(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    run = run_of(learning_rate=[rate] * 20, kind=kind, config=config)
    assert state("lr_high", run) is State.PRESENT
    assert state("lr_extreme", run) is State.ABSENT


@pytest.mark.parametrize("config", [{}, {"optim": "sgd"}], ids=["optimizer unknown", "not Adam"])
def test_what_an_extreme_rate_is_for_must_be_known(config: dict[str, Scalar]) -> None:
    run = run_of(learning_rate=[1.0] * 20, kind="supervised", config=config)
    assert state("lr_extreme", run) is State.UNKNOWN


def test_a_rate_that_no_network_of_an_agent_learns_at_is_present() -> None:
    run = run_of(learning_rate=[0.3] * 20, loss=[0.1] * 20, reward=[12.0] * 20, kind="rl")
    assert state("lr_extreme", run) is State.PRESENT


def test_the_rate_at_which_a_table_is_learnt_cannot_be_told() -> None:
    run = run_of(learning_rate=[0.5] * 20, reward=[12.0] * 20, kind="rl")
    assert state("lr_extreme", run) is State.UNKNOWN


def test_a_usual_rate_of_an_agent_may_yet_be_too_high() -> None:
    run = run_of(learning_rate=[3e-3] * 20, policy_loss=[0.1] * 20, reward=[12.0] * 20, kind="rl")
    assert state("lr_extreme", run) is State.UNKNOWN


@pytest.mark.parametrize(("rate", "expected"), [(3.0, State.PRESENT), (0.1, State.UNKNOWN), (3e-4, State.UNKNOWN)])
def test_a_trainers_rate_is_judged_though_it_is_not_known_what_it_trains(rate: float, expected: State) -> None:
    run = replace(run_of(loss=[2.0] * 20, learning_rate=[rate] * 20), formats=("hf_trainer_state",))
    assert state("lr_extreme", run) is expected


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [("sft", 1e-7, NO_PEFT), ("sft", 2e-6, QLORA), ("sft", 1e-8, {}), ("preference", 1e-9, NO_PEFT)],
)
def test_a_rate_far_below_the_usual_is_present(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_low", run_of(learning_rate=np.linspace(rate, 0, 50), kind=kind, config=config)) is State.PRESENT


@pytest.mark.parametrize(
    ("kind", "rate", "config"),
    [("sft", 2e-6, NO_PEFT), ("sft", 5e-5, QLORA), ("preference", 2e-7, NO_PEFT), ("sft", 1e-4, {})],
)
def test_a_usual_rate_is_not_low(kind: str, rate: float, config: dict[str, Scalar]) -> None:
    assert state("lr_low", run_of(learning_rate=[rate] * 20, kind=kind, config=config)) is State.ABSENT


def test_a_log_that_ends_in_warmup_cannot_tell() -> None:
    run = run_of(learning_rate=np.linspace(1e-9, 1e-7, 20), kind="sft", config=NO_PEFT)
    assert state("lr_low", run) is State.UNKNOWN


def test_a_rate_that_is_usual_without_lora_cannot_tell() -> None:
    assert state("lr_low", run_of(learning_rate=[5e-6] * 20, kind="sft")) is State.UNKNOWN


def test_without_a_rate_it_cannot_be_told() -> None:
    assert state("lr_low", run_of(loss=[1.0] * 9, kind="sft", config=NO_PEFT)) is State.UNKNOWN


@pytest.mark.parametrize(("epoch", "expected"), [(0.01, State.UNKNOWN), (0.9, State.PRESENT)])
def test_a_single_record_is_no_peak_where_the_run_has_just_begun(epoch: float, expected: State) -> None:
    record = {"loss": 1.0, "learning_rate": 1e-9, "epoch": epoch}
    assert state("lr_low", run_of_records([record], kind="sft", config=NO_PEFT)) is expected


def test_a_rate_at_which_no_agent_learns_is_present() -> None:
    curves = {"policy_loss": [0.1] * 20, "reward": [12.0] * 20}
    assert state("lr_low", run_of({**curves, "learning_rate": [1e-8] * 20}, kind="rl")) is State.PRESENT
    assert state("lr_low", run_of({**curves, "learning_rate": [3e-5] * 20}, kind="rl")) is State.UNKNOWN


@pytest.mark.parametrize(
    ("optimizer", "rate", "outcome"),
    [
        ("sgd", 50.0, "lr_extreme"),
        ("torch.optim.SGD", 1e-8, "lr_low"),
        ("lion_32bit", 0.05, "lr_high"),
        ("muon", 5.0, "lr_extreme"),
        ("adafactor", 1.0, "lr_extreme"),
        ("rmsprop", 2.0, "lr_high"),
    ],
)
def test_each_family_of_optimizers_has_its_own_range(optimizer: str, rate: float, outcome: str) -> None:
    run = run_of(learning_rate=[rate] * 20, kind="supervised", config={"optim": optimizer})
    assert state(outcome, run) is State.PRESENT


@pytest.mark.parametrize(
    ("optimizer", "rate"),
    [
        ("sgd", 1.0),
        ("sgd", 1e-4),
        ("lion", 1e-4),
        ("muon", 0.03),
        ("adafactor", 1e-2),
        ("rmsprop", 0.06),
        ("sophia", 1e-4),
    ],
)
@pytest.mark.parametrize("kind", ["supervised", "pretraining", "sft", "unknown"])
def test_rates_that_are_usual_somewhere_are_not_judged(optimizer: str, rate: float, kind: str) -> None:
    run = run_of(learning_rate=[rate] * 20, kind=kind, config={"optim": optimizer})
    assert {state(name, run) for name in ("lr_high", "lr_extreme", "lr_low")} == {State.UNKNOWN}


def test_a_rate_of_an_optimizer_that_sets_its_own_is_not_judged() -> None:
    run = run_of(learning_rate=[1.0] * 20, kind="sft", config={"optim": "prodigy"})
    assert state("lr_high", run) is State.UNKNOWN


PURE: dict[str, Scalar] = {"torch_dtype": "bfloat16", "optim": "adamw_torch", "learning_rate": 5e-6}


@pytest.mark.parametrize(("rows", "expected"), [(32, State.PRESENT), (8192, State.ABSENT)])
def test_the_rate_of_sgd_with_momentum_is_judged_beside_its_batch(rows: int, expected: State) -> None:
    config: dict[str, Scalar] = {"optim": "sgd", "momentum": 0.9, "per_device_train_batch_size": rows}
    run = run_of(learning_rate=np.full(20, 3.0), loss=np.ones(20), config=config, kind="supervised")
    found = state("lr_high", run)
    assert found is expected or (expected is State.ABSENT and found is State.UNKNOWN)


def test_a_rate_at_which_a_policy_learns_and_keeps_it_is_not_called_high() -> None:
    rate, rises = np.full(40, 4e-3), np.linspace(0.1, 0.8, 40)
    assert state("lr_high", run_of(learning_rate=rate, reward=rises, kind="grpo")) is State.UNKNOWN
    assert state("lr_high", run_of(learning_rate=rate, reward=rises[::-1], kind="grpo")) is State.PRESENT


@pytest.mark.parametrize(
    "told",
    [
        {"step_time": 0.01},
        {"steps_per_second": 90.0},
        {"mean_token_accuracy": 0.03},
        {"entropy": 3.3},
        {"num_tokens": 4e4, "summary/total_flos": 5.6e9},
        {"summary/train_steps_per_second": 60.0},
    ],
)
def test_a_model_that_is_tiny_or_new_by_its_log_takes_the_rates_of_one_from_scratch(told: dict[str, float]) -> None:
    columns = {name: np.full(30, value) for name, value in told.items()}
    run = run_of(columns, loss=np.linspace(3, 1, 30), learning_rate=[1e-3] * 30, kind="sft")
    assert state("lr_high", run) is State.ABSENT


@pytest.mark.parametrize("told", [{}, {"step_time": 0.9}, {"mean_token_accuracy": 0.5}, {"entropy": 1.1}])
def test_a_model_of_unknown_or_usual_size_does_not_take_them(told: dict[str, float]) -> None:
    columns = {name: np.full(30, value) for name, value in told.items()}
    run = run_of(columns, loss=np.linspace(3, 1, 30), learning_rate=[2e-3] * 30, kind="sft")
    assert state("lr_high", run) is State.PRESENT


@pytest.mark.parametrize(
    ("ends_at", "evaluated", "expected"),
    [
        (0.05, [2.0, 0.5, 0.1, 0.06], State.UNKNOWN),
        (0.05, [2.0, 0.1, 0.5, 0.6], State.PRESENT),
        (1.5, [2.4, 1.9, 1.6, 1.55], State.PRESENT),
    ],
)
def test_a_high_rate_at_which_nearly_all_is_learnt_accuses_nothing(
    ends_at: float, evaluated: list[float], expected: State
) -> None:
    loss = ends_at + (3 - ends_at) * np.exp(-np.arange(40) / 5)
    run = run_of(
        loss=loss, learning_rate=np.linspace(4e-3, 0, 40), eval_loss=evaluated, kind="sft", config={"lora_r": 16}
    )
    assert state("lr_high", run) is expected
