"""A language model's loss below what text allows."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import end_level, median
from mldebug_mcp.measure.token_level import LEAST_LN_OF_CHARACTERS, from_scratch
from mldebug_mcp.symptoms.beginning import PASSES, epoch_at
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.symptoms.tokens import uniform_of_tokens
from mldebug_mcp.text import figure

LOW, LOW_OF_ANSWERS = 0.1, 0.02
"""Nats per token on data that is not trained on; the best language models have 0.5 and more on running text. Answers of
a fixed form, labels and calls of functions, which models are fine-tuned on, may well come to 0.05. Chosen by hand."""
SHARE_OF_CHARACTERS = 0.04
"""Of ln(vocabulary), where a model from scratch began as a guess among characters or bytes: 0.2 nats of 5. The best
have some 0.6 on prose and 0.3 on code, byte by byte. Chosen by hand."""
LOW_OF_TEXT = 0.4
"""... and for a model from scratch with a vocabulary of text: the best ones have 0.5 on code, 1.5 and more on prose."""


def loss_too_low(run: Run) -> Evidence | None:
    """The evaluation loss of a language model ends below a tenth of a nat per token, in fine-tuning below a fiftieth.

    Below 0.4 where it began as a uniform guess among the tokens of text, below 0.04 of ln(vocabulary) among characters.
    In training from scratch without an evaluation so does the training loss, which is over rows that are new.

    Not this when: only the training loss is that low, by memorising (`eval_gap_grows`); answers are a word or a label,
    or written by a template; the loss is scaled. The bounds were chosen by hand.
    """
    if not predicts_tokens(run) and not _starts_at_a_guess(run):
        raise CannotTell("it is not known that this run trains a language model")
    losses = _over_new_rows(run)
    if not losses:
        raise CannotTell("no evaluation loss was logged twice")
    lowest = min(losses, key=lambda series: end_level(series.value))
    end = end_level(lowest.value)
    low = _bound(run)
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
    names = [name for name in run.series if name.startswith("eval_")]
    if names or not (run.kind == "pretraining" or _is_from_scratch(run)):
        return [one for one in (series.finite for series in evaluation_losses(run)) if len(one) >= 2]
    return (
        [run["loss"].finite] if (epoch_at(run, run.last_step) or 0.0) <= PASSES and len(run["loss"].finite) > 1 else []
    )


def _is_from_scratch(run: Run) -> bool:
    return run.kind == "unknown" and _starts_at_a_guess(run)


def _starts_at_a_guess(run: Run) -> bool:
    try:
        uniform_of_tokens(run)
    except CannotTell:
        return False
    return True
