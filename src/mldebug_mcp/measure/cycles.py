"""Learning rates that come back: warm restarts and cycles, which the loss follows."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import sample

TIMES, OF_PEAK = 2.0, 0.2
"""A rate comes back where it is so many times what it had come down to, and this share of its highest. Chosen: by
hand."""


def rate_comes_back(run: Run) -> list[float]:
    """Return the steps at which the learning rate, after it has come down, begins to rise again.

    The warmup is none of them: the rate has not come down before it.
    """
    if "learning_rate" not in run:
        return []
    series = run["learning_rate"].finite
    rates, steps = sample(series.value).tolist(), sample(series.step).tolist()
    least = OF_PEAK * max(rates, default=0.0)
    back: list[float] = []
    peak, low, at, down = 0.0, 0.0, 0.0, False
    for rate, step in zip(rates, steps, strict=True):
        if down and rate > TIMES * low and rate >= least:
            back.append(at)
            peak, down = rate, False
        elif (down and rate <= low) or (not down and rate * TIMES < peak):
            low, at, down = rate, step, True
        peak = rate if not down and rate > peak else peak
    return back
