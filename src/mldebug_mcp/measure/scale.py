"""Absolute scales: the loss of a uniform guess, where the configuration tells how many there are to guess from."""

from __future__ import annotations

import math
import re

import numpy as np

from mldebug_mcp.logs.run import Run

MAX_LN_VOCABULARY = math.log(262_144)
"""ln of the largest vocabulary in common use (Gemma's); above it a language model does worse than any uniform guess."""

LEAST_LN_VOCABULARY = math.log(65)
"""ln of the smallest in common use, the characters of one book (nanoGPT's)."""

MIN_CLASSES = 2
_OF_A_CLASS = re.compile(r"(?:^|[_/.])(?:class|cls|label)[_/ -]?(?P<number>\d{1,4})(?:$|[_/.])")
"""A metric of one class: `eval_accuracy/class_3`, `class_0_f1`."""

KNOWS = 0.8
"""Of the loss of a uniform guess: a model that begins below it knows something. Chosen: by hand."""

CLASSES, NEAR_GUESS = (2, 3, 4, 5, 10, 100, 1000), 0.03
"""Usual numbers of classes, and the share by which a first loss may be off the guess of one. Chosen: by hand."""
TUNING = (5e-6, 5e-5)
"""Peaks of the learning rate in full fine-tuning. Chosen: around the 1e-5 to 5e-5 of axolotl_stability; few models from
scratch are trained so."""

LANGUAGE_MODELS = frozenset({"pretraining", "sft"})


def uniform_loss(run: Run) -> float | None:
    """Return ln(number of classes or tokens), the cross-entropy of a uniform guess, or None if the number is not known.

    The source of the formula: karpathy_recipe, "verify loss @ init".
    """
    count = classes_of(run) or run.facts.tokens
    return math.log(count) if count is not None and count >= 2 else None


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

    Where the size of the vocabulary is not known, it is at least that of characters. Where not even the kind of run is,
    a rate of fine-tuning and a first loss that is no guess among a usual number of classes say so.
    """
    uniform = uniform_loss(run)
    if uniform is None and run.kind == "unknown":
        guesses = any(abs(start / math.log(classes) - 1) < NEAR_GUESS for classes in CLASSES)
        return start < KNOWS * LEAST_LN_VOCABULARY and not guesses and _is_tuned(run)
    if uniform is None and run.kind in LANGUAGE_MODELS:
        uniform = LEAST_LN_VOCABULARY
    return uniform is not None and start < KNOWS * uniform


def knows_nothing(run: Run, start: float) -> bool:
    """Say whether a loss that begins at this level is that of a model which nothing was learnt by.

    Where the size of the vocabulary is not known, it is at most the largest in common use.
    """
    uniform = uniform_loss(run)
    if uniform is None and run.kind in LANGUAGE_MODELS:
        uniform = MAX_LN_VOCABULARY
    return uniform is not None and start >= KNOWS * uniform


def _is_tuned(run: Run) -> bool:
    """Say whether the learning rate is one of those that trained models are tuned with."""
    rate = run["learning_rate"].finite.value if "learning_rate" in run else np.empty(0)
    return len(rate) > 0 and TUNING[0] <= float(rate.max()) <= TUNING[1]
