"""First loss far above that of a uniform guess."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.scale import LANGUAGE_MODELS, MAX_LN_VOCABULARY, uniform_loss
from mldebug_mcp.symptoms.evaluation import refuse_sums_of_epochs
from mldebug_mcp.symptoms.levels.loss_scale_suspicious import loss_scale_suspicious
from mldebug_mcp.symptoms.quality import ACCURACIES
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

FACTOR = 1.6
MARGIN = 0.5
"""The first loss of a sound initialisation lies near ln(n).

Six tenths of it and half a nat more allow for common initialisations and for contrastive losses. Chosen by hand.
"""
FACTOR_OF_TOKENS = 1.35
"""... of a language model from scratch, whose last layer is drawn small: a second head that predicts the token after
the next adds up to 0.3. Chosen by hand."""
UNIGRAM = 0.6
"""Of ln(vocabulary): what the frequencies of tokens give, as in `loss_stall`; here of the largest vocabulary."""
STAYS = 5
"""Records in which a loss stays above any guess."""
EARLY = 0.02
"""The first record must stand within this share of the run, or among its first steps, to speak of the start."""


def initial_loss_high(run: Run) -> Evidence | None:
    """The first training loss lies far above ln(number of classes or tokens), the loss of a uniform guess.

    A model that comes trained does better from the start than the frequencies of tokens alone.

    Not this when: the loss is summed over micro-batches or tokens (`loss_scale_suspicious`), or is no cross-entropy,
    as one that stays so high to the end hardly is, where only an accuracy beside it says so.
    """
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    if loss.step[0] > max(10, EARLY * run.last_step):
        raise CannotTell(
            f"the first loss is logged at {run.step_name} {figure(float(loss.step[0]))}, too late to speak of the start"
        )
    if any("ctc" in name.lower() for name in run.series):
        raise CannotTell("a CTC loss is a sum over the sequence: it has no scale")
    refuse_sums_of_epochs(run)
    uniform = uniform_loss(run)
    if uniform is None:
        # An accuracy makes it a classifier, and none has more classes than a vocabulary has tokens.
        if run.kind not in LANGUAGE_MODELS and not any(name in run for name in ACCURACIES):
            raise CannotTell("the number of classes or tokens is not known")
        vocabulary = run.setting("vocab_size")
        uniform = math.log(vocabulary) if vocabulary is not None and vocabulary >= 2 else MAX_LN_VOCABULARY
        tokens = run.kind in LANGUAGE_MODELS or any("ppl" in name or "perplexity" in name for name in run.series)
        if not tokens and len(loss) >= STAYS and float(loss.value.min()) > FACTOR * uniform + MARGIN:
            raise CannotTell("the loss stays far above that of any guess: it may be that of a regression")
    first = float(loss.value[0])
    if run.kind == "sft" and run.setting("vocab_size") is None and UNIGRAM * uniform < first < uniform:
        return _worse_than_frequencies(run, first, uniform)
    is_new = run.kind == "pretraining" and run.facts.tokens is not None
    if first < (FACTOR_OF_TOKENS if is_new else FACTOR) * uniform + MARGIN:
        return None
    return Evidence(
        f"the first loss is {figure(first)} at {run.step_name} {figure(float(loss.step[0]))}; a uniform guess has "
        f"{figure(uniform)} = ln({math.exp(uniform):,.0f})",
        steps=(float(loss.step[0]),),
        values={"first": first, "uniform_guess": uniform, "factor": first / uniform},
    )


def _worse_than_frequencies(run: Run, first: float, uniform: float) -> Evidence | None:
    """Tell of a model that comes trained, and whose first loss is above what the frequencies of tokens give."""
    if isinstance(loss_scale_suspicious(run), Evidence):
        return None
    step = float(run["loss"].finite.step[0])
    return Evidence(
        f"the first loss is {figure(first)} at {run.step_name} {figure(step)}; the frequencies of tokens alone give at "
        f"most {figure(UNIGRAM * uniform)}, and a trained model starts far below",
        steps=(step,),
        values={"first": first, "uniform_guess": uniform, "factor": first / uniform},
    )
