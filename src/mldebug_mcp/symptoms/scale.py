"""Absolute scales: the loss of a uniform guess, where the configuration tells how many there are to guess from."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run

MAX_LN_VOCABULARY = math.log(262_144)
"""ln of the largest vocabulary in common use (Gemma's); above it a language model does worse than any uniform guess."""

LANGUAGE_MODELS = frozenset({"pretraining", "sft"})


def uniform_loss(run: Run) -> float | None:
    """Return ln(number of classes or tokens), the cross-entropy of a uniform guess, or None if the number is not known.

    The source of the formula: karpathy_recipe, "verify loss @ init".
    """
    for name in ("num_labels", "vocab_size"):
        count = run.setting(name)
        if count is not None and count >= 2:
            return math.log(count)
    return None


def predicts_tokens(run: Run) -> bool:
    """Say whether a run trains a language model, by its kind or, where that is not known, by its vocabulary."""
    return run.kind in LANGUAGE_MODELS or (run.kind == "unknown" and run.setting("vocab_size") is not None)
