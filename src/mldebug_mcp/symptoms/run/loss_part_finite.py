"""Parts of the loss that stay finite where the loss does not."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.names import is_part_of_loss
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure, shorten

SAID = 3


@symptom(needs=("loss",), not_for=("grpo", "ppo", "rl"), background=0.0005)
def loss_part_finite(run: Run) -> Evidence | None:
    """The training loss is not finite, and another part of it is, in the same records: the weights are finite still.

    What comes out of weights that are NaN is NaN in all parts. Not this when: all parts are lost, or none is logged;
    the loss comes back by itself. Not told by one record alone: where an unstable run overflows, one part is the first,
    before the update that takes the weights with it.
    """
    loss = run["loss"]
    lost = loss.step[~np.isfinite(loss.value)]
    if not len(lost):
        raise CannotTell("the loss is finite")
    parts = [one for name, one in run.series.items() if name != "loss" and is_part_of_loss(name)]
    there = [(one, one.value[np.isin(one.step, lost)]) for one in parts]
    finite = [one.name for one, values in there if len(values) and bool(np.all(np.isfinite(values)))]
    gone = [one.name for one, values in there if len(values) and not np.isfinite(values).any()]
    if not finite and not gone:
        raise CannotTell("no part of the loss is logged where it is not finite")
    if not finite:
        return None
    if len(lost) == 1:
        raise CannotTell("only one record shows the loss not finite: whether the weights are lost shows in the next")
    others = f"; {_names(gone)} {'are' if len(gone) > 1 else 'is'} not" if gone else ""
    stay = "are" if len(finite) > 1 else "is"
    return Evidence(
        f"from {run.step_name} {figure(float(lost[0]))} on the loss is not finite, yet {_names(finite)} {stay}{others}",
        steps=(float(lost[0]),),
        values={"finite_parts": float(len(finite)), "lost_parts": float(len(gone))},
    )


def _names(names: list[str]) -> str:
    return ", ".join(shorten(name, 40) for name in names[:SAID])
