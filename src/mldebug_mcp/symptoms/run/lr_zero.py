"""Learning rate is zero while training goes on."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

LEAST_RECORDS = 3
LEAST_SHARE = 0.03


@symptom(needs=("learning_rate",), sources=("transformers_docs",), points=5, background=0.01)
def lr_zero(run: Run) -> Evidence | None:
    """The learning rate is zero over a stretch of records while training goes on.

    Not this when: a schedule ends at zero with the last record, or warmup begins at zero with the first. The length
    of the stretch was chosen by hand.
    """
    rate = run["learning_rate"].finite
    zero = np.abs(rate.value) <= 1e-12 * max(float(np.abs(rate.value).max()), 1e-12)
    if not zero.any():
        return None
    needed = max(LEAST_RECORDS, LEAST_SHARE * len(zero))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], zero.astype(np.int8), [0]])))
    starts, ends = edges[::2], edges[1::2]
    long = np.flatnonzero(ends - starts >= needed)
    if not len(long):
        return None
    first, last = int(starts[long[0]]), int(ends[long[0]]) - 1
    return Evidence(
        f"learning_rate is 0 from {run.step_name} {figure(float(rate.step[first]))} to "
        f"{figure(float(rate.step[last]))} ({last - first + 1} records)",
        steps=(float(rate.step[first]),),
        values={"records": last - first + 1, "share": float(zero.mean())},
    )
