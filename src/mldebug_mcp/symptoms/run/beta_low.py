"""Beta of preference optimisation far below the usual range."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

USUAL = (0.01, 0.5)
"""smol_playbook scans this range; remote_gpu_trainer starts at 0.1 and goes to 0.3 to 0.5 where text degrades."""
FAR_BELOW = 2.0
"""How far below the range, as a factor. Chosen by hand."""
LENGTH_NORMALISED = ("simpo", "orpo", "cpo")
"""Losses whose beta is on another scale."""


@symptom(sources=("smol_playbook", "remote_gpu_trainer"), background=0.008, as_chosen=True)
def beta_low(run: Run) -> Evidence | None:
    """Preference optimisation holds the policy to the reference by a beta far below the usual range.

    Not this when: the loss is one whose beta is on another scale (SimPO, CPO, ORPO); beta is not in the configuration.
    """
    if run.kind != "preference":
        raise CannotTell("beta is judged in preference optimisation only")
    beta = run.setting("beta")
    if beta is None:
        raise CannotTell("beta is not in the configuration")
    loss = str(run.config.get("loss_type", "")).lower()
    if any(name in loss for name in LENGTH_NORMALISED):
        raise CannotTell(f"the usual range of beta is not known for the loss {loss[:20]}")
    if beta >= USUAL[0] / FAR_BELOW:
        return None
    return Evidence(
        f"beta is {figure(beta)}; usual are {figure(USUAL[0])} to {figure(USUAL[1])}",
        values={"beta": beta, "usual_low": USUAL[0], "usual_high": USUAL[1]},
    )
