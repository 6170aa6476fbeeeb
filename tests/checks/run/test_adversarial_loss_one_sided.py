"""`adversarial_loss_one_sided`: present cases, near-misses, and what cannot be told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, seen, state

NAME = "adversarial_loss_one_sided"


def test_a_discriminator_without_loss_beside_a_generator_that_climbs_is_present() -> None:
    finding = seen(NAME, run_of(d_loss=np.geomspace(0.5, 1e-6, 40), g_loss=np.linspace(0.7, 16, 40)))
    assert finding.state is State.PRESENT
    assert finding.values["discriminator_wins"] == 1


@pytest.mark.parametrize("names", [("D loss", "G loss"), ("Loss_D", "Loss_G"), ("errD", "errG"), ("dloss", "gen_loss")])
def test_the_losses_are_known_by_their_usual_names(names: tuple[str, str]) -> None:
    run = run_of({names[0]: np.full(10, 1e-5), names[1]: np.full(10, 16.118)})
    assert state(NAME, run) is State.PRESENT


def test_a_generator_whose_loss_stands_at_the_clip_is_present() -> None:
    assert state(NAME, run_of(d_loss=np.full(10, 1e-5), g_loss=np.full(10, 16.118))) is State.PRESENT


def test_a_squared_error_that_is_always_found_out_is_present() -> None:
    assert state(NAME, run_of(d_loss=np.full(20, 1e-3), g_loss=noisy([1.0] * 20, 0.01))) is State.PRESENT


def test_a_generator_without_loss_beside_a_discriminator_that_fails_is_present() -> None:
    finding = seen(NAME, run_of(d_loss=noisy([70.0] * 20, 0.1), g_loss=np.full(20, 1e-9)))
    assert finding.state is State.PRESENT
    assert finding.values["discriminator_wins"] == 0


def test_the_larger_of_the_losses_on_real_and_generated_samples_counts() -> None:
    lost = {"G_GAN": noisy([6.0] * 30, 0.1), "D_real": np.full(30, 1e-3)}
    assert state(NAME, run_of({**lost, "D_fake": np.full(30, 1e-3)})) is State.PRESENT
    assert state(NAME, run_of({**lost, "D_fake": noisy([0.4] * 30, 0.1)})) is State.ABSENT


@pytest.mark.parametrize(
    ("d_loss", "g_loss"),
    [
        (noisy([0.6] * 40, 0.2, tails="lognormal"), noisy([2.0] * 40, 0.3, tails="lognormal")),
        (np.tile([0.001, 0.001, 0.001, 0.6], 10), np.tile([7.0, 6.0, 6.5, 1.0], 10)),
        (np.full(40, 0.005), np.linspace(9.0, 3.5, 40)),
        (np.full(40, 0.25), np.full(40, 1.0)),
    ],
    ids=["in play", "near zero on most batches only", "the generator catches up", "squared errors in play"],
)
def test_two_networks_in_play_are_absent(d_loss: np.ndarray, g_loss: np.ndarray) -> None:
    assert state(NAME, run_of(d_loss=d_loss, g_loss=g_loss)) is State.ABSENT


def test_a_critic_is_unknown() -> None:
    assert state(NAME, run_of(d_loss=np.linspace(-5, -0.001, 40), g_loss=np.full(40, 4.0))) is State.UNKNOWN


def test_one_of_the_two_alone_is_unknown() -> None:
    assert state(NAME, run_of(d_loss=np.full(40, 1e-6))) is State.UNKNOWN


@pytest.mark.parametrize("names", [("D(x)", "D(G(z))"), ("d_real", "d_fake"), ("real_score", "fake_score")])
def test_outputs_that_tell_every_sample_apart_are_present_whatever_the_generator_is_given(
    names: tuple[str, str],
) -> None:
    run = run_of({
        "Loss_D": np.geomspace(1, 2e-3, 30), "Loss_G": -np.geomspace(0.5, 2e-3, 30),
        names[0]: np.linspace(0.7, 1, 30) ** 0.01, names[1]: np.geomspace(0.4, 2e-3, 30),
    })  # fmt: skip
    finding = seen(NAME, run)
    assert finding.state is State.PRESENT
    assert names[0] in finding.summary


def test_generated_samples_that_are_taken_for_real_ones_throughout_are_present() -> None:
    finding = seen(NAME, run_of({"D(x)": noisy([0.51] * 40, 0.01), "D(G(z))": noisy([0.6] * 40, 0.01)}))
    assert finding.state is State.PRESENT
    assert finding.values["discriminator_wins"] == 0


def test_the_losses_of_pix2pix_on_real_and_generated_samples_are_no_outputs() -> None:
    run = run_of({"G_GAN": np.full(40, 1.0), "D_real": noisy([0.3] * 40, 0.1), "D_fake": noisy([0.6] * 40, 0.1)})
    assert state(NAME, run) is State.ABSENT


def test_outputs_in_play_are_absent() -> None:
    assert state(NAME, run_of({"D(x)": np.tile([0.97, 0.8], 20), "D(G(z))": np.tile([0.02, 0.3], 20)})) is State.ABSENT


def test_outputs_that_are_no_probabilities_are_unknown() -> None:
    assert state(NAME, run_of({"D(x)": np.full(40, 6.0), "D(G(z))": np.full(40, -5.0)})) is State.UNKNOWN


def collapsed(at: int = 200, count: int = 500) -> str:
    """Return the log of a DCGAN whose discriminator wins from a record on."""
    lines = []
    for record in range(count):
        wobble = record * 37 % 17 / 100
        before = (
            f"Loss_D: {0.7 + wobble:.4f} Loss_G: {1.4 + wobble:.4f} D(x): 0.7 D(G(z)): {0.3 + wobble / 9:.4f} / 0.2"
        )
        after = f"Loss_D: 0.0000 Loss_G: {39 + wobble:.4f} D(x): 1.0000 D(G(z)): 0.0000 / 0.0000"
        lines.append(f"[{record // 20}/25][{record % 20 * 39}/782] {before if record < at else after}\n")
    return "".join(lines)


def test_a_gan_that_collapses_in_mid_run_has_one_onset_and_no_frozen_parameters(tmp_path: Path) -> None:
    path = tmp_path / "o.txt"
    path.write_text(collapsed())
    answer = diagnose_run(path)
    (finding,) = [finding for finding in answer.findings if finding.symptom == NAME]
    begun = 10 * 782.0  # the record 200 is the first of epoch 10
    assert finding.steps == [begun]
    assert f"from step {begun:g} on" in finding.summary
    shares = {hypothesis.cause: hypothesis.probability for hypothesis in answer.hypotheses}
    assert answer.hypotheses[0].cause == "adversarial_imbalance"
    assert shares["params_not_training"] < 0.2
