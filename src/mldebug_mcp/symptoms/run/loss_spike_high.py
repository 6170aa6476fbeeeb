"""A jump of the loss that takes back a good part of the progress."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_spike import jumps, refuse_densities
from mldebug_mcp.symptoms.statistics import start_level
from mldebug_mcp.text import figure

SHARE_OF_START = 0.2
"""Of the loss at the start: a jump of this height. Hard batches of healthy runs make lower ones. Chosen by hand."""


@symptom(
    needs=("loss",),
    sources=("palm_2022",),
    points=12,
    not_for=("grpo", "ppo", "rl"),
    background=0.3,
    follows=("accuracy_below_chance",),
)
def loss_spike_high(run: Run) -> Evidence | None:
    """A jump of the training loss is as high as a good part of the loss at the start of the run.

    Not this when: it is lower, as hard batches and the twenty harmless spikes of a large run are. Of a log-density it
    cannot be told. Judged only where
    the loss jumps at all, so that one jump does not count twice.
    """
    loss = run["loss"].finite
    found = jumps(run)
    if not found:
        raise CannotTell("the loss does not jump")
    worst = max(found, key=lambda spike: spike.height)
    refuse_densities(loss, worst)
    start = start_level(loss.value)
    if not start or worst.height < SHARE_OF_START * abs(start):
        return None
    at = float(loss.step[worst.first])
    return Evidence(
        f"the jump at {run.step_name} {figure(at)} is {figure(worst.height)} high; "
        f"the loss began around {figure(start)}",
        steps=(at,),
        values={"height": worst.height, "start": start, "share": worst.height / abs(start)},
    )
