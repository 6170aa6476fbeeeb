"""The loss is a multiple of what it should be."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.evaluation import beside_training, refuse_sums_of_epochs
from mldebug_mcp.measure.perplexity import loss_and_perplexity
from mldebug_mcp.measure.scale import LANGUAGE_MODELS, MAX_LN_VOCABULARY, uniform_loss
from mldebug_mcp.measure.statistics import mad, median, start_level
from mldebug_mcp.measure.terms import measured_term
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

NEAR_KNOWN, NEAR_GUESSED = 0.15, 0.04
"""How near a first loss must come to a multiple: of the configured number of micro-batches, of a usual one. Chosen: the
more there are to choose from, the nearer."""
OUTWEIGHED = 1 / 3
"""Share of a loss that what evaluation measures has at least, where it is what training is for. Chosen: by hand."""
NEAR_ROWS = 0.08
"""How near to a uniform guess the first loss of one row must come where rows are summed. Chosen: a new head is so near.
"""
NEAR_EVALUATION, SPREADS, NEAR_STEADY = 0.25, 3.0, 0.155
"""How near the quotient to the evaluation loss must come; its standard deviations and least where the quotients agree.
Chosen: noise, dropout and rows learnt by heart move it so far."""
FAR, STEADY = 2.5, 0.5
"""Quotient above which regularisation is unlikely, and logarithms by which those of a run differ. Chosen: dropout adds
less than a factor of two."""
GUESSES = (4, 8, 16, 32, 64, 128)
"""Usual numbers of micro-batches. Chosen: a quotient of 2 may have other reasons."""
MOST = 4096
"""Chosen: no run accumulates more."""
LEAST_RECORDS, SAME = 3, 0.01
"""Records at which a loss is a whole multiple of the logarithm of the perplexity, and how near. Chosen: both are
printed with three digits; bits are 1.44 times as many as nats."""
EARLY, FIRST_STEPS = 0.02, 10
"""Share of the run, or steps, that are its start. Chosen: later the loss has fallen."""
ABOVE, LEAST_LN = 1.1, 8.0
"""Times ln(vocabulary), which is at least the second, above which only a sum can lie. Chosen: heads add a tenth."""
PLAUSIBLE = (0.3, 4.5)
"""Nats per token of a trained language model on new text. Chosen: generously."""


def loss_scale_suspicious(run: Run) -> Evidence | None:
    """The training loss is a whole multiple of the evaluation loss, of a uniform guess, or of ln(perplexity) beside it.

    Not this when: it is no usual or configured number of micro-batches; each epoch has one record, maybe a sum.
    """
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    refuse_sums_of_epochs(run)
    if (term := measured_term(run)) is not None:
        raise CannotTell(f"evaluation measures {term.name} alone, a term of the training loss")
    accumulated = run.setting("gradient_accumulation_steps")
    accumulated = accumulated if accumulated is not None and 2 <= accumulated <= MOST else None
    answers = [_against_its_logarithm(run), _against_evaluation(run, accumulated), _at_start(run, accumulated)]
    summed = _summed_over_rows(run)
    if summed is not None:
        return summed
    if all(answer is None for answer in answers):
        raise CannotTell("there is neither an evaluation loss nor a known first loss to compare with")
    if answers[1] is False and answers[0] is None:
        # An evaluation on the same scale says more than a first loss that happens to be a multiple.
        return None
    return next((answer for answer in answers if isinstance(answer, Evidence)), None)


def _against_its_logarithm(run: Run) -> Evidence | None:
    """Compare a loss with the logarithm of the perplexity at the same records; None where they agree or none is."""
    for measured in loss_and_perplexity(run):
        times = measured.times if measured.times > 1 else 1 / measured.times
        number = round(times)
        if measured.records < LEAST_RECORDS or number < GUESSES[0] or abs(times / number - 1) > SAME:
            continue
        if measured.spread > SAME:
            continue
        return Evidence(
            f"{measured.loss.name} is {figure(measured.times)} times the logarithm of {measured.perplexity.name} at "
            f"{measured.records} records ({figure(measured.first[0])} against {figure(measured.first[1])} at "
            f"{run.place(measured.step)})",
            steps=(measured.step,),
            values={"factor": measured.times, "number": float(number)},
        )
    return None


def _against_evaluation(run: Run, accumulated: float | None) -> Evidence | bool | None:
    """Compare with the evaluation loss; False if on the same scale, None if that cannot be told."""
    if "eval_loss" not in run:
        return None
    steps, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    keep = (train > 0) & (evaluation > 0)
    if not keep.any():
        return None
    # The earlier half: later on memorised rows lower the training loss alone.
    keep &= np.cumsum(keep) <= max(LEAST_RECORDS, (int(keep.sum()) + 1) // 2)
    quotient = train[keep] / evaluation[keep]
    factor = median(quotient)
    far = accumulated is None or accumulated > FAR
    near = float(np.clip(SPREADS * mad(np.log(quotient)), NEAR_STEADY, NEAR_EVALUATION))
    number = _whole(factor, accumulated, *((near, near) if far else (NEAR_KNOWN, NEAR_GUESSED)))
    if number is None and accumulated is not None and accumulated > FAR and np.ptp(np.log(quotient)) < STEADY:
        number = _whole(1 / factor, accumulated, NEAR_GUESSED, 0.0)  # divided once too often
    steady = len(quotient) >= LEAST_RECORDS and float(np.ptp(np.log(quotient))) < STEADY and float(quotient.min()) > FAR
    if number is None or (accumulated is None and not steady):
        return False
    return Evidence(
        f"the training loss is {figure(factor)} times the evaluation loss (median of {len(quotient)}; "
        f"{figure(train[keep][0])} against {figure(evaluation[keep][0])} at "
        f"{run.place(steps[keep][0])}){_configured(accumulated)}",
        steps=(float(steps[keep][0]),),
        values={"factor": factor, "number": number},
    )


def _at_start(run: Run, accumulated: float | None) -> Evidence | bool | None:
    """Compare the first loss with that of a uniform guess; False if on its scale, None if that cannot be told."""
    loss = run["loss"].finite
    first, step = float(loss.value[0]), float(loss.step[0])
    if step > max(FIRST_STEPS, EARLY * run.last_step) or first <= 0:
        return None
    uniform = uniform_loss(run)
    number: float | None
    if run.kind == "sft" and uniform is None:
        uniform = MAX_LN_VOCABULARY
    if uniform is None:
        return None
    level = start_level(loss.value)
    far = min(first, level) > ABOVE * max(uniform, LEAST_LN)
    above = run.kind in LANGUAGE_MODELS and accumulated is not None and far
    if run.kind == "sft" and above and accumulated is not None:
        # A trained model's first loss is not known, but it lies in a band; above ln(vocabulary) only a sum can lie.
        number = accumulated if PLAUSIBLE[0] <= level / accumulated <= PLAUSIBLE[1] else None
    else:
        number = accumulated if accumulated and abs(first / uniform / accumulated - 1) < NEAR_KNOWN else None
    if number is None:
        return False
    return Evidence(
        f"the first loss is {figure(first)} at {run.place(step)}, {figure(first / uniform)} times the "
        f"{figure(uniform)} = ln({math.exp(uniform):,.0f}) of a uniform guess; divided by {figure(number)} it is "
        f"{figure(first / number)}{_configured(accumulated)}",
        steps=(step,),
        values={"first": first, "uniform_guess": uniform, "number": number},
    )


def _summed_over_rows(run: Run) -> Evidence | None:
    """Compare the first loss with a uniform guess times the rows of a batch: a sum where a mean is meant."""
    loss, rows = run["loss"].finite, run.setting("per_device_train_batch_size")
    uniform = uniform_loss(run) or (math.log(2) if any(run.with_role(Quantity.AUC, phase="eval")) else None)
    first, step = float(loss.value[0]), float(loss.step[0])
    if uniform is None or rows is None or rows < GUESSES[0] or step > max(FIRST_STEPS, EARLY * run.last_step):
        return None
    if abs(first / (uniform * rows) - 1) > NEAR_ROWS:
        return None
    return Evidence(
        f"the first loss is {figure(first)} at {run.place(step)}; divided by the {figure(rows)} rows of a "
        f"batch it is {figure(first / rows)}, and a uniform guess has {figure(uniform)}",
        steps=(step,),
        values={"first": first, "uniform_guess": uniform, "number": rows},
    )


def terms_outweigh(run: Run) -> Evidence | None:
    """What evaluation measures is less than a third of the training loss: the other terms of it are trained on instead.

    Not this when: evaluation measures the whole loss; or no term of training stands where it does.
    """
    term = measured_term(run)
    if term is None:
        raise CannotTell("no term of the training loss is what evaluation measures")
    whole = run["loss"].finite
    part, total = median(term.value), median(whole.value)
    share = part / abs(total) if total else math.inf
    if share > OUTWEIGHED:
        return None
    return Evidence(
        f"{term.name}, which evaluation measures, is {share:.0%} of the training loss (medians: {figure(part)} and "
        f"{figure(total)})",
        steps=(float(whole.step[0]),),
        values={"share": share},
    )


def _whole(factor: float, accumulated: float | None, near_known: float, near_guessed: float) -> float | None:
    """Return the number of micro-batches that a quotient is near to, or None."""
    if accumulated is not None:
        return accumulated if abs(factor / accumulated - 1) < near_known else None
    return next((float(guess) for guess in GUESSES if abs(factor / guess - 1) < near_guessed), None)


def _configured(accumulated: float | None) -> str:
    return "" if accumulated is None else f"; gradient_accumulation_steps is {figure(accumulated)}"
