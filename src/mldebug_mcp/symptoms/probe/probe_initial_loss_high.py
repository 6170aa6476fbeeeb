"""The first loss lies far above that of a uniform guess."""

from __future__ import annotations

import math

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

FACTOR, MARGIN = 1.5, 0.5
"""Times the loss of a uniform guess, and nats beside. Chosen: a sound start is near the guess; usual output scales add
less."""


@probe_symptom(
    needs=("initial_loss", "reference"),
    effects={"bad_init": "usually", "exploding_gradients": "rarely", "wrong_loss": "rarely"},
    sources=("karpathy_recipe", "cs231n_nn3"),
    background=0.002,
)
def probe_initial_loss_high(seen: Measured) -> Evidence | None:
    """The first loss lies far above that of a uniform guess.

    Not this when: the loss is a sum over labels, or another quantity than the reference.
    """
    assert seen.initial_loss is not None
    assert seen.reference is not None
    if seen.loss_formula is None:
        raise CannotTell("the loss has no known form to compare with")
    if "summed" in seen.loss_formula or "negated" in seen.loss_formula or not math.isfinite(seen.initial_loss):
        raise CannotTell(f"the loss is {seen.loss_formula}, which has no uniform guess to compare with")
    uniform = seen.reference.uniform
    most = 10 * uniform if seen.targets == "values" else FACTOR * uniform + MARGIN
    if seen.initial_loss <= most:
        return None
    return Evidence(
        f"the first loss is {figure(seen.initial_loss)}; a uniform guess has {figure(uniform)}",
        values={"first": seen.initial_loss, "uniform_guess": uniform},
    )
