from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "logits_grow"
STEPS = np.arange(200)
FALLING = 0.5 + 2 * np.exp(-STEPS / 40)
GROWING = 3 + STEPS / 10
FAILS = np.where(STEPS < 160, FALLING, np.nan)


def test_growth_up_to_a_loss_that_is_no_number_is_seen() -> None:
    assert state(NAME, run_of({"loss": FAILS, "logits/max": GROWING})) is State.PRESENT


def test_growth_up_to_a_loss_that_turns_is_seen() -> None:
    loss = np.where(STEPS < 140, FALLING, FALLING + (STEPS - 140) / 20)
    assert state(NAME, run_of(loss=loss, log_z=GROWING)) is State.PRESENT


def test_growth_while_the_loss_falls_is_learning() -> None:
    assert state(NAME, run_of({"loss": FALLING, "logits/max": GROWING})) is State.ABSENT


@pytest.mark.parametrize(
    "name", ["TrainLogits/Max", "logits/maxTraining", "train-logits/max", "log_z", "LogZ", "layers.3/attn_logits_max"]
)
def test_logits_are_known_in_any_spelling(name: str) -> None:
    assert state(NAME, run_of({"loss": FAILS, name: GROWING})) is State.PRESENT


@pytest.mark.parametrize(("name", "logits", "expected"), [
    ("logits/logsumexp", 6 * np.exp(np.maximum(STEPS - 30, 0) / 45), State.PRESENT),
    ("attn_logits_max", GROWING, State.PRESENT),
    ("log_z", 8 + np.maximum(STEPS - 160, 0), State.ABSENT),  # they grow as the loss does
], ids=["before the loss", "steadily", "with the loss"])  # fmt: skip
def test_a_loss_that_scatters_about_a_level_fails_where_it_leaves_that_level(
    name: str, logits: np.ndarray, expected: State
) -> None:
    loss = noisy(np.concatenate([np.linspace(4, 2.4, 10), np.full(140, 2.4), np.geomspace(2.4, 90, 50)]), 0.12)
    loss[10:20] -= 0.1  # its lowest level comes early
    assert state("logits_grow", run_of({name: logits}, loss=loss)) is expected


@pytest.mark.parametrize("name", ["logits/chosen", "logit_scale", "eval_logits"])
def test_what_only_sounds_like_logits_is_not_taken_for_them(name: str) -> None:
    assert state(NAME, run_of({"loss": FAILS, name: GROWING})) is State.UNKNOWN


def test_level_logits_before_the_loss_fails_are_not_it() -> None:
    level = 5 + 0.1 * np.random.default_rng(0).standard_normal(200)
    assert state(NAME, run_of(loss=FAILS, log_z=level)) is State.ABSENT


def test_without_logits_it_cannot_be_told() -> None:
    assert state(NAME, run_of(loss=FAILS)) is State.UNKNOWN


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_falls_steeply_to_its_end_has_not_failed(seed: int) -> None:
    loss = noisy(np.concatenate([np.full(20, 2.3), np.linspace(2.3, 1.4, 20)]), 0.02, seed)
    run = run_of({"logits/max": np.geomspace(0.2, 3.2, 40)}, loss=loss)
    assert state("logits_grow", run) is State.ABSENT


NAME_EMBEDDING_SPREAD_GONE = "embedding_spread_gone"


@pytest.mark.parametrize("name", ["feature_std", "train/embedding_std", "z_std", "proj/std_mean"])
def test_a_spread_that_vanishes_is_present(name: str) -> None:
    finding = seen(NAME_EMBEDDING_SPREAD_GONE, run_of({name: decay(60, 0.1, 1e-4, 40)}))
    assert finding.state is State.PRESENT
    assert finding.steps[0] < 10


@pytest.mark.parametrize("spread", [decay(60, 0.02, 0.0218), np.full(60, 0.0006), decay(60, 0.17, 0.05)])
def test_a_spread_that_holds_or_was_always_small_is_absent(spread: np.ndarray) -> None:
    assert state(NAME_EMBEDDING_SPREAD_GONE, run_of(feature_std=spread)) is State.ABSENT


@pytest.mark.parametrize(("later", "expected"), [(0.9999, State.PRESENT), (0.3, State.ABSENT)])
def test_embeddings_of_different_things_that_agree_are_one(later: float, expected: State) -> None:
    run = run_of({"pos_sim": np.full(60, 0.9999), "neg_sim": decay(60, 0.99, later)})
    assert state(NAME_EMBEDDING_SPREAD_GONE, run) is expected


def test_embeddings_of_one_length_that_keep_a_seventh_of_their_spread_have_come_together() -> None:
    assert state(NAME_EMBEDDING_SPREAD_GONE, run_of({"emb_std": decay(60, 0.0487, 0.0069, 5)})) is State.PRESENT
    assert state(NAME_EMBEDDING_SPREAD_GONE, run_of({"emb_std": decay(60, 4.87, 0.69, 5)})) is State.ABSENT


def test_without_either_it_cannot_be_told() -> None:
    assert state(NAME_EMBEDDING_SPREAD_GONE, run_of(loss=decay(100), reward_std=decay(100, 0.1, 0.0))) is State.UNKNOWN


def test_logits_that_grow_on_without_end_while_the_loss_falls_are_present() -> None:
    for name in ("logz", "lse_mean", "train/logsumexp", "log_sum_exp_max"):
        grows = run_of({name: np.linspace(1.8, 15.5, 36)}, loss=decay(36, 1.8, 0.1))
        assert state("logits_grow", grows) is State.PRESENT
    settles = run_of({"logz": 15.5 - 13.7 * np.exp(-np.arange(36) / 5)}, loss=decay(36, 1.8, 0.1))
    assert state("logits_grow", settles) is State.ABSENT


@pytest.mark.parametrize(("end", "expected"), [(970.0, State.PRESENT), (60.0, State.ABSENT)])
def test_attention_logits_that_grow_on_to_hundreds_drift(end: float, expected: State) -> None:
    run = run_of({"attn_logit_max": np.linspace(2.0, end, 36)}, loss=decay(36, 4.0, 1.9))
    assert state("logits_grow", run) is expected
