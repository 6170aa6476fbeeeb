"""Is a setting unusual by itself? Of several the least usual is told."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.usual import usual_of
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.text import figure

FAR_BELOW = 2.0
"""How far below the range, as a factor. Chosen: clearly outside."""
LENGTH_NORMALISED = ("simpo", "orpo", "cpo")
"""Losses whose beta is on another scale."""
SMALL = 4.0
"""Rows of an update. Chosen: its noise is half of what one row has, and no vocabulary of sizes goes below."""


def beta_low(run: Run) -> Evidence | None:
    """Preference optimisation holds the policy to the reference by a beta far below the usual range.

    Not this when: the loss is one whose beta is on another scale (SimPO, CPO, ORPO); beta is not in the configuration.
    """
    if run.kind != "preference":
        raise CannotTell("beta is judged in preference optimisation only")
    beta, loss, usual = run.setting("beta"), str(run.config.get("loss_type", "")).lower(), usual_of("beta", run.kind)
    if beta is None or usual is None:
        raise CannotTell("beta is not in the configuration")
    if any(name in loss for name in LENGTH_NORMALISED):
        raise CannotTell(f"the usual range of beta is not known for the loss {loss[:20]}")
    if beta >= usual.low / FAR_BELOW:
        return None
    return Evidence(
        f"beta is {figure(beta)}; usual are {usual}",
        values={"beta": beta, "usual_low": usual.low, "usual_high": usual.high},
    )


def batch_small(run: Run) -> Evidence | None:
    """The effective batch (per device, times accumulation, times devices) is at most four samples.

    Not this when: samples are long packed sequences, a few of which hold many tokens; it runs on more devices than the
    configuration names.
    """
    effective = run.facts.effective_batch
    if effective is None:
        raise CannotTell("the batch size is not in the configuration")
    packed = run.config.get("packing") is True or run.config.get("sample_packing") is True
    if effective > SMALL or packed:
        return None
    return Evidence(f"the effective batch is {figure(effective)} samples", values={"effective_batch": effective})


READINGS = (
    reading(beta_low, sources=("smol_playbook", "remote_gpu_trainer"), background=0.008, as_chosen=True),
    reading(batch_small, sources=("mccandlish_2018",), background=0.1, as_chosen=True),
)
"""How each outcome is seen, and how often a healthy run shows it. Chosen: the fit would count settings that were drawn
from a few."""


@question(*(one.outcome for one in READINGS), whole_run=True)
def settings(run: Run) -> Answers:
    """Look at beta and the batch."""
    return first_of(run, READINGS)
