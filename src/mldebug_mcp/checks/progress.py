"""How far a run has come, how often it has seen its data, and which loss a uniform guess has."""

from __future__ import annotations

import math
import re

import numpy as np

from mldebug_mcp.checks.curve import finite_of
from mldebug_mcp.core.arrays import are_whole
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run

# How far a run has come: excerpts from the middle, whose records are often only counted, and runs still young.


MAX_STARTING_PASSES = 1.5
"""Passes over the data after which nothing is a beginning. Chosen: rows are seen for the second time."""
FIRST_STEPS = 40
"""Optimizer steps in which a healthy run may make no progress yet, least of all while its learning rate warms up.

Fitted: healthy runs that were cut short (`python -m benchmarks.faults young`)."""
LEAST_RATES = 4
"""Records of a rate that climbs. Chosen: by hand."""
MIN_RATE_CLIMB_RATIO = 1.05
"""Times its value a quarter of the log before that a rate climbs to. Chosen: a constant one is rounded."""


def is_young(run: Run) -> bool:
    """Say whether a log holds no more than the first steps of a run, or ends while its learning rate warms up.

    Where half the records or more have an evaluation, a step is a round of many optimizer steps.
    """
    if warms_up(run) and not has_finished(run):
        return True
    if run.step_name != "step" or run.last_step + 1 >= FIRST_STEPS or "loss" not in run:
        return False
    evaluations = max((len(series) for name, series in run.series.items() if name.startswith("eval_")), default=0)
    return 2 * evaluations < len(run["loss"])


def warms_up(run: Run) -> bool:
    """Say whether the learning rate still climbs where the log ends: it has been lower all along, and lately, too."""
    rate = finite_of(run, "learning_rate").value
    if len(rate) < LEAST_RATES:
        return False
    return bool(
        rate[-1] == rate.max()
        and rate[-1] > MIN_RATE_CLIMB_RATIO * rate[len(rate) * 3 // 4] > MIN_RATE_CLIMB_RATIO * rate[len(rate) // 2]
    )


def has_finished(run: Run) -> bool:
    """Say whether the log says that training has ended by itself, or has reached its plan."""
    return run.ending.how == "finished"


def epoch_at(run: Run, step: float) -> float | None:
    """Return the epoch of a step, or None if the log does not tell."""
    if run.step_name == "epoch":
        return step
    return finite_of(run, "epoch").at(step)


def is_late(run: Run, step: float, share: float, steps: float) -> bool:
    """Say whether a step lies beyond a share of what is logged, which is more than so many steps.

    Where records stand by their epoch, or are only counted and tell it, the epoch says how far the run was.
    """
    if run.step_name == "step":
        return step > max(steps, share * run.last_step)
    epoch, last = epoch_at(run, step), epoch_at(run, run.last_step)
    return epoch is not None and last is not None and epoch > share * last


# How often the training data had been seen at a step.


def passes_at(run: Run, steps: Floats) -> Floats | None:
    """Return the passes over the data made at each step, shape (n,), or None if neither settings nor log tell.

    Where the log counts whole epochs only, it is the most that it can be: the end of the epoch that is counted.
    """
    if run.step_name == "epoch":
        whole = are_whole(steps)
        return steps + 1.0 if whole and run.first_step == 0 else steps
    if run.step_name != "step":
        return None
    if run.facts.steps_per_pass:
        return steps / run.facts.steps_per_pass
    epoch = finite_of(run, "epoch")
    if len(epoch) < 2 or epoch.value[-1] <= epoch.value[0]:
        return None
    counted = epoch.held(steps)
    if not are_whole(epoch.value):
        return counted
    return counted - min(1.0, float(epoch.value[0])) + 1.0


# Absolute scales: the loss of a uniform guess, where the configuration tells how many there are to guess from.


MAX_LN_VOCABULARY = math.log(262_144)
"""ln of the largest vocabulary in common use (Gemma's); above it a language model does worse than any uniform guess."""
LEAST_LN_VOCABULARY = math.log(65)
"""ln of the smallest in common use, the characters of one book (nanoGPT's)."""
MIN_CLASSES = 2
"""Classes from which on a number counts them. Chosen: one needs no classifier."""
_OF_A_CLASS = regex(
    r"(?:^|[_/.])(?:class|cls|label)[_/ -]?(?P<number>\d{1,4})(?:$|[_/.])", needs=("class", "cls", "label")
)
"""A metric of one class: `eval_accuracy/class_3`, `class_0_f1`."""
CROSS_ENTROPY = regex(r"cross_?entropy|xent|(?:^|[/_.])(?:ce|nll)(?:$|[/_.])|mlogloss", re.IGNORECASE)
"""What the name of a mean cross-entropy holds."""
MAX_INFORMED_LOSS_SHARE = 0.8
"""Of the loss of a uniform guess: a model that begins below it knows something. Chosen: by hand."""
CLASSES = (2, 3, 4, 5, 10, 100, 1000)
"""Usual numbers of classes. Chosen: by hand."""
NEAR_GUESS = 0.03
"""Share by which a first loss may be off the guess of one of them. Chosen: by hand."""
TUNING = (5e-6, 5e-5)
"""Peak learning rates of full fine-tuning. Chosen: around 1e-5 to 5e-5 of axolotl_stability; few new models so."""
LANGUAGE_MODELS = frozenset({"pretraining", "sft"})
MOST_OF_LOSS = 0.5
"""Share of the loss that its squared error is in each record. Chosen: a penalty is the rest."""


def uniform_loss(run: Run) -> float | None:
    """Return ln(number of classes or tokens), the cross-entropy of a uniform guess, or None if the number is not known.

    None as well where the loss is one of values. The source of the formula: karpathy_recipe, "verify loss @ init".
    """
    count = classes_of(run) or run.facts.tokens
    return math.log(count) if count is not None and count >= 2 and not _is_of_values(run) else None


def _is_of_values(run: Run) -> bool:
    """Say whether most of the training loss is a squared error that is logged with it, as an autoencoder has it."""
    if "loss" not in run:
        return False
    loss = run["loss"]
    errors = (error for error in run.with_role(Quantity.SQUARED_ERROR) if np.array_equal(error.step, loss.step))
    return any(
        bool(np.all((MOST_OF_LOSS * loss.value <= error.value) & (error.value <= loss.value))) for error in errors
    )


def classes_of(run: Run) -> float | None:
    """Return the number of classes by the settings, or by metrics of each class; None where neither shows it.

    A loss does not: it comes near the logarithm of some whole number wherever it is.
    """
    if run.facts.classes is not None:
        return run.facts.classes if run.facts.classes >= MIN_CLASSES else None
    if run.kind in LANGUAGE_MODELS:
        return None
    numbers = {int(found["number"]) for name in run.series if (found := _OF_A_CLASS.search(name)) is not None}
    if len(numbers) < MIN_CLASSES or min(numbers) > 1 or max(numbers) - min(numbers) >= len(numbers):
        return None
    return float(len(numbers))


def predicts_tokens(run: Run) -> bool:
    """Say whether a run trains a language model, by its kind or, where that is not known, by its vocabulary."""
    return run.kind in LANGUAGE_MODELS or (run.kind == "unknown" and run.setting("vocab_size") is not None)


def comes_trained(run: Run, start: float) -> bool:
    """Say whether a loss that begins at this level is that of a model which knows something already.

    Where the size of the vocabulary is not known, it is at least that of characters. Where the kind is unknown, too:
    a rate of fine-tuning and a first loss unlike a guess among a usual number of classes say so.
    """
    uniform = uniform_loss(run)
    if uniform is None and run.kind == "unknown":
        guesses = any(abs(start / math.log(classes) - 1) < NEAR_GUESS for classes in CLASSES)
        return start < MAX_INFORMED_LOSS_SHARE * LEAST_LN_VOCABULARY and not guesses and _is_tuned(run)
    if uniform is None and run.kind in LANGUAGE_MODELS:
        uniform = LEAST_LN_VOCABULARY
    return uniform is not None and start < MAX_INFORMED_LOSS_SHARE * uniform


def knows_nothing(run: Run, start: float) -> bool:
    """Say whether a loss that begins at this level is that of a model which nothing was learnt by.

    Where the size of the vocabulary is not known, it is at most the largest in common use.
    """
    uniform = uniform_loss(run)
    if uniform is None and run.kind in LANGUAGE_MODELS:
        uniform = MAX_LN_VOCABULARY
    return uniform is not None and start >= MAX_INFORMED_LOSS_SHARE * uniform


def _is_tuned(run: Run) -> bool:
    rate = finite_of(run, "learning_rate").value
    return len(rate) > 0 and TUNING[0] <= float(rate.max()) <= TUNING[1]
