"""Half of the trainable elements have a gradient of exactly zero, at the start and after training."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("gradients",),
    effects={
        "dead_units": "usually",
        "vanishing_gradients": "rarely",
        "all_labels_masked": "often",
        "params_not_training": "sometimes",
        "double_softmax": "rarely",
    },
    background=0.002,
)
def probe_gradient_zero(seen: Measured) -> Evidence | None:
    """Half of the trainable elements have a gradient of exactly zero, at the start and after training.

    Not this when: a layer begins at zero on purpose, and gets a gradient once its neighbour has moved.
    """
    assert seen.gradients is not None
    after = seen.gradients_after or seen.gradients
    share = min(seen.gradients.zero_share, after.zero_share)
    if share < 0.5 or seen.memorised:
        return None
    return Evidence(
        f"{share:.0%} of the trainable elements have a gradient of zero: {', '.join(seen.gradients.zero[:3])}"
    )
