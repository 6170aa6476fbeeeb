"""Gradient norm rises many times over."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.run.grad_norm_growing import grad_norm_growing
from mldebug_mcp.text import figure

FAR = 25.0
"""Sound runs whose norm rises at all, as the rate decays or rows are learnt by heart, gain a factor of 4 to 10.

Chosen by hand.
"""


@symptom(needs=("grad_norm",), sources=("axolotl_stability",), points=20, not_for=("rl",), background=0.002)
def grad_norm_grows_far(run: Run) -> Evidence | None:
    """The gradient norm grows to more than 25 times its early level, whatever the loss does meanwhile.

    Clipping hides it in the loss for as long as the direction is still good. Not this when: it grows by less
    (`grad_norm_growing`); it jumps and comes back.
    """
    grown = grad_norm_growing(run)
    if grown is None or grown.values["factor"] < FAR:
        return None
    return Evidence(
        f"grad_norm grows by a factor of {figure(grown.values['factor'])}, from {figure(grown.values['from'])} to "
        f"{figure(grown.values['to'])}, from {run.step_name} {figure(grown.steps[0])} on",
        steps=grown.steps,
        values=grown.values,
    )
