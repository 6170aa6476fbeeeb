"""The loss climbs before it becomes NaN or Inf."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LAST = 3
FACTOR = 2.0
"""The last finite losses stand this many times above the lowest level before. Chosen by hand."""

STEEP = 1e3
"""Times that each of fewer records stands above the one before: no single batch takes a loss to overflow by powers of
ten. Chosen by hand."""


@symptom(needs=("loss",), sources=("axolotl_stability",), background=0.25, instead=("grad_norm_growing",))
def loss_climbs_to_nan(run: Run) -> Evidence | None:
    """The loss rises to many times its earlier level in the records just before it becomes NaN or infinite.

    Not this when: it is NaN from one record to the next, at an ordinary level: then one operation or one batch gives
    the NaN, not an unstable run. Judged only where the loss becomes NaN after at least four finite records.
    """
    loss = run["loss"]
    bad = ~np.isfinite(loss.value)
    first = int(np.argmax(bad)) if bad.any() else 0
    steep = 2 <= first <= LAST and bool(np.all(loss.value[1:first] > STEEP * loss.value[: first - 1]))
    if not bad.any() or (first < LAST + 1 and not steep):
        raise CannotTell("the loss is not seen to become NaN or infinite after finite records")
    before = loss.value[:first]
    level, peak = float(before[: max(1, first - LAST)].min()), float(before[-LAST:].max())
    if level > 0 and peak < FACTOR * level and bool(np.isposinf(loss.value[first])):
        raise CannotTell("the loss is infinite from one record to the next: whether it rose between them does not show")
    if level <= 0 or peak < FACTOR * level:
        return None
    return Evidence(
        f"loss rises from {figure(level)} to {figure(peak)} before it is not finite at {run.step_name} "
        f"{figure(float(loss.step[first]))}",
        steps=(float(loss.step[max(0, first - LAST)]),),
        values={"level": level, "last": peak},
    )
