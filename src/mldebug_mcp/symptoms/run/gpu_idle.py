"""The GPU stands idle for much of the time."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

SHARE = 0.5
"""Half the time without a kernel: training that is bound by its GPU shows 0.9 and more. Chosen by hand."""
LEAST = 8
MOST_SHARE = 2.0
"""Above this, utilisation is in per cent though its name does not say so; sensors read somewhat more than all."""


@symptom(any_of=(Quantity.DEVICE_UTILISATION,), sources=("tuning_playbook",), background=0.1, as_chosen=True)
def gpu_idle(run: Run) -> Evidence | None:
    """The GPU's utilisation, the share of time in which any kernel runs, is below one half as a rule.

    Not this when: only the first records are low (start and compilation), or single ones (evaluation, saving). Small
    models leave a GPU idle too, so that by itself it says little.
    """
    shares = {
        one.name: share
        for one in run.with_role(Quantity.DEVICE_UTILISATION, parts=True)
        if len(share := _shares(one.finite.value)) >= LEAST
    }
    if not shares:
        raise CannotTell(f"the GPU's utilisation is not logged, or less than {LEAST} times")
    name = max(shares, key=lambda one: median(shares[one]))  # of several, the busiest
    typical = median(shares[name])
    if typical >= SHARE:
        return None
    return Evidence(
        f"{name} is {figure(typical * 100)} % in the median of {len(shares[name])} records",
        steps=(float(run[name].finite.step[0]),),
        values={"share": typical},
    )


def _shares(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return shares of 1 without the first tenth, in which things start."""
    later = values[len(values) // 10 :]
    return later / 100 if len(later) and float(later.max()) > MOST_SHARE else later
