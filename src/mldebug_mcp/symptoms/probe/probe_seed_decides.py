"""Whether the batch is memorised hangs on the seed of the initial weights."""

from __future__ import annotations

import math

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

FAR = 0.25
"""Share of the way from the first loss to the goal that a failed run has left. Chosen: a run that needs only some steps
more does not count."""


@probe_symptom(
    needs=("seeds", "initial_loss", "goal"),
    effects={
        "bad_init": "often",
        "dead_units": "often",
        "vanishing_gradients": "sometimes",
        "too_little_capacity": "sometimes",
    },
    sources=("dodge_2020",),
    background=0.002,
)
def probe_seed_decides(seen: Measured) -> Evidence | None:
    """Whether the batch is memorised hangs on the seed of the initial weights."""
    assert seen.seeds is not None
    assert seen.initial_loss is not None
    assert seen.goal is not None
    if seen.seeds.fixed:
        raise CannotTell("the probed code sets its seed itself")
    runs = [one for one in seen.seeds.runs if one.ended != "time"]
    if len(runs) < 2:
        raise CannotTell("there was no time for other seeds")
    far = seen.goal + FAR * (seen.initial_loss - seen.goal)
    done = [one for one in runs if one.ended == "goal"]
    failed = [one for one in runs if one.final_loss is None or not one.final_loss <= far]
    if not done or not failed or not math.isfinite(far):
        return None
    told = ", ".join(f"seed {one.seed} ends at {figure(one.final_loss or math.nan)}" for one in runs)
    return Evidence(
        f"{len(done)} of {len(runs)} seeds memorise the batch: {told}",
        values={"memorised": len(done), "seeds": len(runs)},
    )
