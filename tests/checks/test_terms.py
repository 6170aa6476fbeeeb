from __future__ import annotations

import numpy as np
import pytest

from mldebug_mcp.checks.evaluation import term_set_in, terms_set_in
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import State
from tests.runs import decay, noisy, run_of, seen, state

SETS_IN = 120


def _run(name: str, *, at: int = SETS_IN) -> Run:
    """A loss that rises by half where a term, zero until then, sets in at a record."""
    there = np.arange(300) >= at
    loss = noisy(decay(300, 0.6, 0.2), 0.02) + 0.3 * (np.arange(300) >= SETS_IN)
    return run_of({name: np.where(there, noisy(np.full(300, 0.9), 0.05, 1), 0.0)}, loss=loss)


@pytest.mark.parametrize("name", ["disc_loss", "g_loss", "kl_weight", "adv"])
def test_a_term_that_sets_in_is_known_by_its_name_and_step(name: str) -> None:
    run = _run(name)
    assert [(one.name, one.step) for one in terms_set_in(run)] == [(name, SETS_IN + 1)]
    assert term_set_in(run, SETS_IN + 2) is not None
    assert term_set_in(run, 200) is None


@pytest.mark.parametrize("name", ["steps_skipped", "eval_loss", "accuracy"])
def test_what_is_no_term_of_the_loss_is_none_here_either(name: str) -> None:
    assert terms_set_in(_run(name)) == []


def test_a_loss_that_rises_with_a_term_is_no_divergence_and_no_spike() -> None:
    finding = seen("loss_divergence", _run("disc_loss"))
    assert finding.state is State.UNKNOWN
    assert "disc_loss sets in at step 121" in finding.summary
    assert state("loss_spike", _run("disc_loss")) is State.ABSENT


def test_a_loss_that_rises_elsewhere_is_a_divergence_all_the_same() -> None:
    assert state("loss_divergence", _run("disc_loss", at=30)) is State.PRESENT


def test_a_term_that_comes_and_goes_does_not_set_in() -> None:
    rare = (np.arange(300) % 40 == 39).astype(float)
    assert terms_set_in(run_of(aux_loss=rare, loss=decay(300))) == []
