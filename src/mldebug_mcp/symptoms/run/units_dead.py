"""Does a layer give nothing, whatever comes in?"""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

PREFIX = "units_dead/"
"""How a recording names the share of the units of a layer that are dead."""
_DEAD = re.compile(
    r"(?:.*[/_.])?(?:units_dead|dead_(?:units?|neurons?|relus?|frac(?:tion)?|share|ratio)|zero_activations?)(?:[/_.].*)?",
    re.IGNORECASE,
)
"""How people name it, of a layer or of the model."""
DEAD = 0.9
"""Share of the units of a layer. Chosen: sound layers of rectified units lose a half at most."""
LEAST = 3
"""Looks at the layer. Chosen: at the first one nothing is learnt yet."""


@symptom(whole_run=True, background=0.003, as_chosen=True)
def units_dead(run: Run) -> Evidence | None:
    """Nearly all units of a layer give nothing for any row of the batch, from look to look.

    Not this when: fewer units are dead; they come back; nobody looked into the model.
    """
    looked = {name: one.finite for name, one in run.series.items() if _DEAD.fullmatch(name)}
    judged = {
        name: one
        for name, one in looked.items()
        if len(one) >= LEAST and float(one.value.min()) >= 0 and float(one.value.max()) <= 1
    }
    if not judged:
        raise CannotTell(f"the share of dead units is not logged {LEAST} times")
    shares = {name: median(one.value[len(one) // 2 :]) for name, one in judged.items()}
    worst = max(shares, key=lambda name: shares[name])
    if shares[worst] < DEAD:
        return None
    series = judged[worst]
    first = float(series.step[int((series.value >= DEAD).argmax())])
    return Evidence(
        f"{figure(100 * shares[worst])} % of the units of {worst.removeprefix(PREFIX)} are dead, from "
        f"{run.place(first)} on",
        steps=(first,),
        values={"share": shares[worst], "layers": sum(share >= DEAD for share in shares.values())},
    )
