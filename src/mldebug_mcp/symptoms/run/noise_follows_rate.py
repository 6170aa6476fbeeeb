"""The noise of the loss goes up and down with the learning rate."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.noise_and_rate import noise_and_rate
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

ALIKE = 0.75
"""Rank correlation of noise and rate over the stretches of a log; none of 216 healthy runs of our own
has that."""
SPAN = 2.0
"""Times the lowest rate that the highest is at least: else there is nothing to follow."""
TIMES = 2.0
"""Times as large as at the lowest rates the noise is at the highest. Chosen by hand."""
LEAST = 0.03
"""Of the level: a noise below it throws nothing about. Chosen by hand."""


@symptom(
    needs=("loss", "learning_rate"),
    sources=("mccandlish_2018",),
    points=60,
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
    background=0.01,
)
def noise_follows_rate(run: Run) -> Evidence | None:
    """The noise of the training loss, relative to its level, is large at high learning rates and small at low ones.

    Steps that go too far throw the weights about, the farther the higher the rate; what batches differ in does not
    depend on it. Not this when: the noise is as large whatever the rate, or larger as the rate decays, since the level
    falls. Judged from the peak of the rate on, over the stretches in which the loss is above a fifth of its first
    level: near zero both go down together. The correlation was fitted on runs of our own.
    """
    found = noise_and_rate(run)
    if found is None:
        raise CannotTell("too few records with a learning rate stand well above zero")
    if found.span < SPAN:
        raise CannotTell(f"the highest learning rate is only {figure(found.span)} times the lowest")
    low, high = found.at_low_and_high()
    if found.alike < ALIKE or high < max(TIMES * low, LEAST):
        return None
    return Evidence(
        f"the noise of the loss is {high:.1%} of its level where the learning rate is up to "
        f"{figure(float(found.rate.max()))}, and {low:.1%} where it is down to {figure(float(found.rate.min()))}; over "
        f"{len(found.rate)} stretches the two go together (rank correlation {found.alike:.2f})",
        steps=(found.first,),
        values={"correlation": found.alike, "noise_at_low_rate": low, "noise_at_high_rate": high},
    )
