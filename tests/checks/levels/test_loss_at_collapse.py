"""`loss_at_collapse`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

NAME = "loss_at_collapse"


@pytest.mark.parametrize("level", [0.2, 0.3, 1.0, math.log(2)])
def test_a_triplet_loss_that_stays_at_a_usual_margin_is_present(level: float) -> None:
    loss = np.concatenate([np.linspace(2 * level, level, 20), noisy([level] * 60, 1e-4)])
    finding = seen(NAME, run_of(triplet_loss=loss))
    assert finding.state is State.PRESENT
    assert finding.values["of_equal_embeddings"] == pytest.approx(level)


def test_the_configured_margin_is_the_one_that_counts() -> None:
    loss = noisy([0.3] * 40, 1e-4)
    assert state(NAME, run_of(triplet_loss=loss, config={"margin": 0.3})) is State.PRESENT
    assert state(NAME, run_of(triplet_loss=loss, config={"margin": 0.5})) is State.ABSENT


@pytest.mark.parametrize("candidates", [64, 127])
def test_a_contrastive_loss_at_the_logarithm_of_its_candidates_is_present(candidates: int) -> None:
    loss = noisy([math.log(candidates)] * 40, 1e-4)
    assert state(NAME, run_of(contrastive_loss=loss)) is State.PRESENT
    assert state(NAME, run_of(info_nce_loss=loss, config={"batch_size": 64})) is State.PRESENT
    assert state(NAME, run_of(info_nce_loss=loss, config={"batch_size": 100})) is State.ABSENT


def test_a_loss_that_goes_up_and_down_about_the_margin_is_absent() -> None:
    assert state(NAME, run_of(triplet_loss=noisy([0.5] * 80, 0.03))) is State.ABSENT


def test_a_loss_that_passes_the_margin_is_absent() -> None:
    assert state(NAME, run_of(triplet_loss=decay(80, start=1.0, end=0.05))) is State.ABSENT


def test_other_losses_are_unknown() -> None:
    assert state(NAME, run_of({"kl_divergence_loss": np.full(40, 0.2), "loss": np.full(40, 0.2)})) is State.UNKNOWN


@pytest.mark.parametrize(
    ("names", "first"),
    [(("kl_loss", "recon_loss"), 0.5), (("KLD", "reconstruction_loss"), 10.0), (("vae_kl_loss", "vae_r_loss"), 1e-3)],
)
def test_a_divergence_that_vanishes_beside_a_reconstruction_is_present(names: tuple[str, str], first: float) -> None:
    run = run_of({names[0]: first * np.geomspace(1, 1e-6, 40), names[1]: decay(40, 40, 27), "loss": decay(40, 41, 27)})
    finding = seen(NAME, run)
    assert finding.state is State.PRESENT
    assert finding.values["of_equal_embeddings"] == 0


@pytest.mark.parametrize(
    "divergence",
    [
        np.concatenate([np.linspace(0.6, 0.1, 8), np.linspace(0.1, 3, 32)]),
        np.linspace(9, 3, 40),
        1e-6 * np.linspace(40, 20, 40),
        np.concatenate([np.geomspace(1, 1e-4, 30), np.geomspace(1e-4, 0.02, 10)]),
        np.full(40, 0.0),
    ],
    ids=["dips and rises", "annealed", "weighted", "comes back", "never worked out"],
)
def test_a_divergence_that_lives_is_absent(divergence: np.ndarray) -> None:
    run = run_of(kl_loss=divergence, recon_loss=decay(40, 40, 27))
    assert state(NAME, run) is not State.PRESENT


def test_a_divergence_of_policies_is_unknown() -> None:
    assert state(NAME, run_of(kl=np.geomspace(1, 1e-4, 40), loss=decay(40))) is State.UNKNOWN


@pytest.mark.parametrize(("later", "expected"), [(0.004, State.PRESENT), (1.2, State.ABSENT)])
def test_a_variational_code_that_holds_nothing_of_its_input_has_collapsed(later: float, expected: State) -> None:
    columns = {"recon_loss": decay(60, 28, 26), "kl": decay(60, 0.06, later)}
    assert state("loss_at_collapse", run_of(columns, loss=decay(60, 28, 26))) is expected


def test_a_divergence_from_a_teacher_that_comes_to_nothing_is_no_collapse() -> None:
    run = run_of({"kl": decay(60, 0.06, 0.004)}, loss=decay(60, 28, 26))
    assert state("loss_at_collapse", run) is not State.PRESENT
