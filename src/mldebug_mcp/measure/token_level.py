"""How far the loss of a language model that starts from scratch has come down, on the scale of its vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.passes import passes_at
from mldebug_mcp.measure.scale import MAX_LN_VOCABULARY, uniform_loss
from mldebug_mcp.measure.statistics import end_level

LEAST_LN_OF_TEXT = math.log(30_000)
"""Tokenizers of text have 30,000 tokens (BERT's) or more; nothing else has so many classes, as a rule. Characters and
made-up languages may hold no more than their frequencies."""
LEAST_LN_OF_CHARACTERS = math.log(60)
"""A text of one script has some 60 characters; made-up languages, whose next token may well be certain, have fewer."""
NEAR, FALLEN = 0.05, 0.25
"""Within this share of ln(vocabulary) a new model guesses uniformly, and so far below it is a first record that is the
mean of several steps. Chosen: by hand; a model that was trained before has less than half."""
FRESH_PASSES = 1.5
"""Passes over the data up to which rows count as new. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class TokenLevel:
    """A loss of a language model from scratch, over rows that are new to it.

    Args:
        uniform: ln(vocabulary), the loss of a uniform guess and about what it began with.
        loss: The loss over new rows: of evaluation, or of training within the first pass.
        end: Where that ends, in nats per token.
        passes: Passes over the data at the end; None is not known.
    """

    uniform: float
    loss: Series
    end: float
    passes: float | None

    @property
    def share(self) -> float:
        """The end as a share of the loss of a uniform guess."""
        return self.end / self.uniform

    def below(self, share: float) -> float | None:
        """Return the first step from which the loss stays below a share of that of a uniform guess, None for never."""
        above = np.flatnonzero(self.loss.value >= share * self.uniform)
        first = int(above[-1]) + 1 if len(above) else 0
        return float(self.loss.step[first]) if first < len(self.loss) else None


def from_scratch(run: Run) -> float | None:
    """Return ln(vocabulary) of a model whose first loss is that of a uniform guess among tokens, None if it is not.

    Where the configuration does not tell the vocabulary, a first loss between ln(30,000) and ln(262,144) does. A first
    record after step 1 is a mean over steps that learnt already.
    """
    loss = run["loss"].finite if "loss" in run else None
    if loss is None or not len(loss):
        return None
    first, known = float(loss.value[0]), uniform_loss(run)
    if known is None and LEAST_LN_OF_TEXT <= first <= MAX_LN_VOCABULARY:
        known = first
    below = NEAR if loss.step[0] <= 1 else FALLEN
    return known if known is not None and -below <= first / known - 1 <= NEAR else None


def token_level(run: Run, losses: list[Series]) -> TokenLevel | None:
    """Measure the lowest of some evaluation losses or, where there is none, the training loss of a first pass.

    None if the model does not start from scratch, or every row may have been seen before.
    """
    uniform, made = from_scratch(run), passes_at(run, np.array([run.last_step]))
    if uniform is None or uniform < LEAST_LN_OF_CHARACTERS:
        return None
    passes = None if made is None else float(made[0])
    known = [one.finite for one in losses if len(one.finite) > 1]
    if not losses and (passes is not None and passes <= FRESH_PASSES) and len(run["loss"].finite) > 1:
        known = [run["loss"].finite]
    lowest = min(known, key=lambda one: end_level(one.value), default=None)
    return None if lowest is None else TokenLevel(uniform, lowest, end_level(lowest.value), passes)
