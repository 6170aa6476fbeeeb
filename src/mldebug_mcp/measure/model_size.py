"""Is the model so small, or so new, that it is trained like one from scratch?"""

from __future__ import annotations

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median

SMALL, NARROW = 2e7, 384
"""Parameters, and the width of a model whose parameters are not told, below which usual rates are those of a model
trained from scratch. Chosen: the smallest published language models that people tune have 1e8 and 576."""
QUICK = 0.025
"""Seconds of an optimizer's step. Chosen: one of 1e8 parameters takes 6e8 operations for a token, and as much memory
is read and written for its optimizer as takes a fast device a hundredth of a second."""
FLOPS = 6
"""Operations of training for each parameter and token. Source: Kaplan et al. 2020, arXiv 2001.08361."""
TOTAL_FLOPS, STEPS_A_SECOND = "total_flos", "train_steps_per_second"
"""What the Trainer sums up at the end of a run."""
GUESSED, WIDE = 0.15, 2.2
"""Share of tokens that are right, and nats of entropy, at the first record of a language model that has learnt nothing
yet. Chosen: a pretrained one has 0.3 at least, and seldom more than 1.5 nats."""


def is_small(run: Run) -> bool:
    """Say whether parameters, width, operations or pace tell of a model that nobody tunes who wants its answers."""
    parameters = run.setting("parameters") or _by_operations(run)
    if parameters is not None:
        return parameters < SMALL
    width, seconds = run.setting("hidden_size"), _step_seconds(run)
    return (width is not None and width < NARROW) or (seconds is not None and seconds < QUICK)


def _by_operations(run: Run) -> float | None:
    flops = _summed_up(run, TOTAL_FLOPS)
    tokens = next(run.with_role(Quantity.TOKENS_SEEN, phase="train"), None)
    if flops is None or tokens is None or not len(tokens.finite) or not float(tokens.finite.value[-1]) > 0:
        return None
    return flops / (FLOPS * float(tokens.finite.value[-1]))


def _step_seconds(run: Run) -> float | None:
    for quantity in (Quantity.STEP_TIME, Quantity.STEPS_PER_SECOND):
        pace = next(run.with_role(quantity, phase="train"), None)
        if pace is not None and len(pace.finite) and (typical := median(pace.finite.value)) > 0:
            return typical if quantity is Quantity.STEP_TIME else 1 / typical
    rate = _summed_up(run, STEPS_A_SECOND)
    return None if rate is None else 1 / rate


def _summed_up(run: Run, name: str) -> float | None:
    """Return the last value of what is summed up under a name, if it is positive."""
    found = next((one.finite for key, one in run.series.items() if key.rpartition("/")[2] == name), None)
    return float(found.value[-1]) if found is not None and len(found) and float(found.value[-1]) > 0 else None


def begins_untrained(run: Run) -> bool:
    """Say whether a language model begins with the answers of one that has learnt nothing: like a guess, or evenly."""
    for quantity in (Quantity.TOKEN_ACCURACY, Quantity.ENTROPY):
        first = next(run.with_role(quantity, phase="train"), None)
        if first is not None and len(first.finite):
            value = float(first.finite.value[0])
            return 0 < value < GUESSED if quantity is Quantity.TOKEN_ACCURACY else value > WIDE
    return False
