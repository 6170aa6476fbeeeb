"""Training accuracy that does not move while the loss falls."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.quality import as_share
from mldebug_mcp.measure.statistics import end_level, noise, start_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

LEAST = 8
"""Finite losses without which it cannot be told. Chosen: by hand."""
SAME = 0.9
"""Share of the records that have one and the same accuracy. Chosen: by hand."""
SATURATED = 0.85
"""From here on an accuracy is near its best, as in `eval_metric_constant`. Chosen: by hand."""
FALL, SIGMAS = 0.2, 6.0
"""The loss must fall by this share of itself, and by this many times its noise. Chosen: by hand."""


def accuracy_stands_still(run: Run) -> Evidence | None:
    """The training accuracy is the same number in nearly all records, although the training loss falls.

    The answers become more confident but do not change: the most common class is always predicted, or the metric does
    not measure the answers, as an accuracy of a regression does not. Not this when: it is near its best; the loss does
    not move either (`loss_plateau`).
    """
    accuracy, loss = run["accuracy"].finite.value, run["loss"].finite.value
    if len(loss) < LEAST:
        raise CannotTell(f"loss has {counted(len(loss), 'finite value')}; {LEAST} are needed")
    start, end = start_level(loss), end_level(loss)
    if start <= 0 or start - end < max(FALL * start, SIGMAS * noise(loss) / np.sqrt(3)):
        raise CannotTell("the loss does not fall, so that the accuracy need not move")
    values, counts = np.unique(accuracy, return_counts=True)
    value, share = float(values[int(np.argmax(counts))]), float(counts.max()) / len(accuracy)
    if share < SAME or as_share(value) >= SATURATED:
        return None
    return Evidence(
        f"accuracy is {figure(value)} in {int(counts.max())} of {len(accuracy)} records, while the loss goes from "
        f"{figure(start)} to {figure(end)}",
        steps=(float(run["accuracy"].finite.step[0]),),
        values={"value": value, "share": share, "start": start, "end": end},
    )
