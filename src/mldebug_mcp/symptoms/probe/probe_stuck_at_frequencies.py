"""The loss comes to rest where a guess that knows only how often each label occurs would be."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("curve", "reference", "memorised"),
    effects={
        "no_signal": "often",
        "params_not_training": "sometimes",
        "rows_mixed": "rarely",
        "dead_units": "often",
        "vanishing_gradients": "often",
        "too_little_capacity": "sometimes",
    },
    background=0.005,
)
def probe_stuck_at_frequencies(seen: Measured) -> Evidence | None:
    """The loss comes to rest where a guess that knows only how often each label occurs would be."""
    assert seen.curve is not None
    assert seen.reference is not None
    unigram = seen.reference.unigram
    if unigram is None or seen.memorised or not seen.curve.losses or unigram < 0.1:
        return None
    last = seen.curve.losses[-1]
    if abs(last - unigram) > 0.05 * unigram or seen.curve.losses[0] < last:
        return None
    return Evidence(f"the loss ends at {figure(last)}; label frequencies alone give {figure(unigram)}")
