"""How the loss of a language model stands on the scale of its vocabulary."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.beginning import PASSES, epoch_at, is_late
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.scale import nats_per_unit, predicts_tokens
from mldebug_mcp.measure.stall import HIGH_SHARE, stalled
from mldebug_mcp.measure.statistics import end_level, median
from mldebug_mcp.measure.token_level import LEAST_LN_OF_CHARACTERS, LEAST_LN_OF_TEXT, from_scratch, token_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

EARLY, FIRST_STEPS = 0.005, 10
"""Share of the log, or steps, that are its start. Chosen: losses fall fast from there."""
TOKENS = 1_000_000
"""Chosen: no tokenizer in common use has as many; the largest have some 262,000."""
LEAST = {"loss": 3, "eval_loss": 2}
"""Records. Chosen: one batch may be anything; an evaluation is the mean of many."""
ABOVE, FALLEN, RISEN, LEAST_STEPS = 0.8, 0.97, 1.05, 1000
"""Share of ln(vocabulary) still left, and from which it fell; times its lowest; steps by then. Chosen: the frequencies
of tokens give 0.6 of it within some hundreds of steps.
"""
SOON, STEPS = 0.1, 1000
"""Share of ln(vocabulary), and steps within which no model comes there. Chosen: with batches of a million tokens the
best have 3 nats on prose by then, 1.5 on code.
"""
LOW, LOW_OF_ANSWERS, LOW_OF_TEXT = 0.1, 0.02, 0.4
"""Nats per token, of tuning on answers, and of text from scratch. Chosen: the best models have 0.5 on running text;
labels and calls of functions may come to 0.05.
"""
SHARE_OF_CHARACTERS = 0.04
"""Of ln(vocabulary). Chosen: the best have some 0.6 on prose and 0.3 on code, byte by byte."""


def uniform_of_tokens(run: Run) -> float:
    """Return ln(vocabulary) of a model that starts at a uniform guess; CannotTell if it does not, or none is known."""
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    step, first = float(loss.step[0]), float(loss.value[0])
    if is_late(run, step, EARLY, FIRST_STEPS):
        raise CannotTell(f"the first loss is logged at {run.step_name} {figure(step)}, too late to speak of the start")
    known = from_scratch(run)
    if known is None or known < LEAST_LN_OF_TEXT:
        raise CannotTell(f"the first loss, {figure(first)}, is not known to be that of a uniform guess among tokens")
    return known


def loss_above_guess(run: Run) -> Evidence | None:
    """The loss of a language model lies above that of a uniform guess over a million tokens: it is sure and wrong.

    Not this when: one batch stands out (`loss_spike`). Needs a perplexity that shows the loss to be one of tokens.
    """
    unit = nats_per_unit(run)
    if unit is None:
        raise CannotTell("no perplexity beside the loss says that it is one of tokens")
    guess = math.log(TOKENS) / unit
    logarithm, units = ("ln", "nats") if unit == 1 else ("log2", "bits")
    for name, least in LEAST.items():
        loss = run[name].finite if name in run else None
        high = np.flatnonzero(loss.value > guess) if loss is not None else np.empty(0, dtype=np.int64)
        if loss is not None and len(high) >= least:
            top = int(np.argmax(loss.value))
            highest = float(loss.value[top])
            return Evidence(
                f"{name} lies above {figure(guess)} = {logarithm}({TOKENS:,}) in {len(high)} of {len(loss)} records, "
                f"up to {figure(highest)} {units} per token at {run.step_name} {figure(float(loss.step[top]))}",
                steps=(float(loss.step[high[0]]),),
                values={"highest": highest, "records": float(len(high)), "uniform_guess": guess},
            )
    return None


def loss_at_unigram(run: Run) -> Evidence | None:
    """The loss of a new language model stands at what the frequencies of tokens give, 0.6 ln(vocabulary), or above.

    It makes no use of the context. Not this when: it goes on falling, however slowly; the model comes trained.
    """
    loss = run["loss"].finite
    uniform = uniform_of_tokens(run)
    stall = stalled(loss)
    if stall is not None and stall.end >= HIGH_SHARE * uniform:
        end, since, moved = stall.end, stall.onset, stall.moved
    elif (still := _still_above(run, loss, uniform)) is not None:
        end, since, moved = still, float(loss.step[0]), 0.0
    else:
        return None
    return Evidence(
        f"loss falls from {figure(float(loss.value[0]))} to {figure(end)}, where it is from {run.step_name} "
        f"{figure(since)} to {figure(float(loss.step[-1]))}; a uniform guess has {figure(uniform)} = "
        f"ln({math.exp(uniform):,.0f}), the frequencies of tokens alone give about 0.6 of it",
        steps=(since,),
        values={"end": end, "moved_in_second_half": moved, "uniform_guess": uniform},
    )


def _still_above(run: Run, loss: Series, uniform: float) -> float | None:
    """Return where the loss is after a thousand steps, if it has fallen and not even learnt the frequencies."""
    if run.step_name != "step" or run.last_step < LEAST_STEPS:
        return None
    end = end_level(loss.value)
    high = ABOVE * uniform < end < FALLEN * uniform and end <= RISEN * float(loss.value.min())
    return end if high else None


def loss_too_low(run: Run) -> Evidence | None:
    """The loss of a language model over rows that are new to it is lower than text allows, or than so few steps give.

    Not this when: only rows that come again are that low; answers are a word or a label; few tokens; a scaled loss.
    """
    return _too_soon(run) or _too_low(run)


def _too_soon(run: Run) -> Evidence | None:
    try:
        losses = evaluation_losses(run)
    except CannotTell:
        losses = []
    level = token_level(run, losses)
    if level is None or not predicts_tokens(run) or run.step_name != "step":
        return None
    below = level.below(SOON)
    if below is None or below > STEPS or level.end <= 0:
        return None
    return Evidence(
        f"{level.loss.name} is {figure(level.end)} at the end and below {figure(SOON * level.uniform)} from step "
        f"{figure(below)} on, {figure(level.share)} of the {figure(level.uniform)} of a uniform guess",
        steps=(below,),
        values={"end": level.end, "share": level.share, "uniform_guess": level.uniform},
    )


def _too_low(run: Run) -> Evidence | None:
    if not predicts_tokens(run) and not _starts_at_a_guess(run):
        raise CannotTell("it is not known that this run trains a language model")
    losses = _over_new_rows(run)
    if not losses:
        raise CannotTell("no evaluation loss was logged twice")
    lowest = min(losses, key=lambda series: end_level(series.value))
    end, low = end_level(lowest.value), _bound(run)
    if not 0 <= end < low or median(lowest.value) == 0:
        return None
    onset = float(lowest.step[int(np.argmax(lowest.value < low))])
    return Evidence(
        f"{lowest.name} is {figure(end)} nats per token at the end and below {low:g} from {run.step_name} "
        f"{figure(onset)} on",
        steps=(onset,),
        values={"end": end, "bound": low},
    )


def _bound(run: Run) -> float:
    """Return the nats per token that no language model of this kind comes below on rows that are new to it."""
    if run.kind == "sft":
        return LOW_OF_ANSWERS
    if _starts_at_a_guess(run):
        return LOW_OF_TEXT
    uniform = from_scratch(run) or 0.0
    return max(LOW, SHARE_OF_CHARACTERS * uniform) if uniform >= LEAST_LN_OF_CHARACTERS else LOW


def _over_new_rows(run: Run) -> list[Series]:
    """Return the evaluation losses or, where a run of pretraining has none, its training loss in the first pass."""
    evaluated = any(name.startswith("eval_") for name in run.series)
    pretrains = run.kind == "pretraining" or (run.kind == "unknown" and _starts_at_a_guess(run))
    if evaluated or not pretrains:
        return [one for one in (series.finite for series in evaluation_losses(run)) if len(one) > 1]
    loss = run["loss"].finite
    return [loss] if (epoch_at(run, run.last_step) or 0.0) <= PASSES and len(loss) > 1 else []


def _starts_at_a_guess(run: Run) -> bool:
    try:
        uniform_of_tokens(run)
    except CannotTell:
        return False
    return True
