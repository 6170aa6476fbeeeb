"""Every metric in the tables of Axolotl's guide to training stability, judged against the range that it gives.

One row per metric, spelled as Axolotl and TRL log it: a course inside the healthy range, one that the guide calls a red
flag, and the symptom that tells them apart. The range holds for the kind of run that its table is about.
"""

from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, state

LENGTH = 200


def level(value: float, seed: int = 0) -> Floats:
    return noisy(np.full(LENGTH, value), 0.05, seed)


def course(start: float, end: float) -> Floats:
    return noisy(np.linspace(start, end, LENGTH), 0.03)


def spiked(value: float, peak: float) -> Floats:
    values = level(value)
    values[120] = peak
    return values


def warmed_up(then: Floats) -> Floats:
    return np.concatenate([np.linspace(0.1, 1, 20), then]) * 1e-5


SFT = [
    ("train/loss", noisy(decay(LENGTH, 2.0, 0.8), 0.02), level(2.3), "loss_plateau"),
    ("train/grad_norm", level(1.0), level(150.0), "grad_norm_high"),
    ("train/grad_norm", level(1.0), spiked(1.0, 120.0), "grad_norm_spike"),
    ("train/grad_norm", level(0.2), level(0.0005), "grad_norm_vanishing"),
    ("train/learning_rate", warmed_up(np.linspace(1, 0, 180)), warmed_up(np.zeros(180)), "lr_zero"),
]
GRPO = [
    ("rewards/accuracy_reward/mean", level(0.4), np.zeros(LENGTH), "reward_zero"),
    ("reward_std", level(0.3), np.zeros(LENGTH), "reward_std_zero"),
    ("frac_reward_zero_std", level(0.4), np.ones(LENGTH), "reward_std_zero"),
    ("grad_norm", level(0.3), level(20.0), "grad_norm_high"),
    ("grad_norm", level(0.3), level(0.000005), "grad_norm_vanishing"),
    ("grad_norm", np.where(np.arange(LENGTH) % 9 == 0, 0.0, 0.3), np.zeros(LENGTH), "grad_norm_zero"),
    ("entropy", course(0.45, 0.2), course(0.3, 0.001), "entropy_low"),
    ("entropy", course(0.45, 0.2), level(1.6), "entropy_high"),
    ("kl", course(0.001, 0.3), course(0.01, 3.5), "kl_high"),
    ("sampling/sampling_logp_difference/mean", level(0.03), level(1.4), "importance_ratio_off"),
    ("sampling/importance_sampling_ratio/min", level(0.4), level(0.001), "importance_ratio_off"),
    ("clip_ratio/region_mean", level(0.05), level(0.45), "clip_ratio_high"),
    ("completions/mean_length", level(300.0), course(200.0, 1000.0), "completion_length_grows"),
    ("completions/clipped_ratio", level(0.1), level(0.93), "completions_truncated"),
]
ROWS = [(kind, *row) for kind, rows in (("sft", SFT), ("grpo", GRPO)) for row in rows]


@pytest.mark.parametrize(
    ("kind", "metric", "healthy", "bad", "symptom"), ROWS, ids=[f"{row[0]}-{row[1]}-{row[4]}" for row in ROWS]
)
def test_a_metric_is_judged_by_the_range_of_its_table(
    kind: str, metric: str, healthy: Floats, bad: Floats, symptom: str
) -> None:
    assert state(symptom, run_of({metric: healthy}, kind=kind)) is State.ABSENT
    assert state(symptom, run_of({metric: bad}, kind=kind)) is State.PRESENT


def test_an_evaluation_loss_that_parts_from_the_training_loss_is_seen() -> None:
    every = {at: 1.5 - 0.01 * at / 10 for at in range(10, 80, 10)} | {at: 1.4 + 0.003 * at for at in range(80, 200, 10)}
    assert state("eval_gap_grows", run_of({"eval/loss": every}, loss=decay(LENGTH), kind="sft")) is State.PRESENT


def test_the_same_gradient_norm_is_high_for_grpo_and_not_for_fine_tuning() -> None:
    norm = level(20.0)
    assert state("grad_norm_high", run_of(grad_norm=norm, kind="grpo")) is State.PRESENT
    assert state("grad_norm_high", run_of(grad_norm=norm, kind="sft")) is State.ABSENT


def test_the_token_entropy_of_fine_tuning_is_not_judged_as_that_of_a_policy() -> None:
    assert state("entropy_high", run_of(entropy=level(1.6), kind="sft")) is State.UNKNOWN


@pytest.mark.parametrize("name", ["memory/max_alloc", "memory/max_reserved", "memory/max_active (GiB)"])
def test_the_memory_that_axolotl_logs_is_known(name: str) -> None:
    assert state("memory_grows", run_of({name: level(20.0)})) is State.ABSENT
