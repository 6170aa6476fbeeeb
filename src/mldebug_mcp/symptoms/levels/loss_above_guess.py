"""A cross-entropy that no guess over any vocabulary has."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.scale import nats_per_unit
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

TOKENS = 1_000_000
"""No tokenizer in common use has as many: the largest have some 262,000."""
LEAST = {"loss": 3, "eval_loss": 2}
"""One batch may be anything; an evaluation is the mean of many. Chosen by hand."""


def loss_above_guess(run: Run) -> Evidence | None:
    """The loss of a language model lies above that of a uniform guess over a million tokens, more than any has.

    It is sure of tokens that are wrong. Not this when: one batch stands out (`loss_spike`). Judged only where a
    perplexity is logged that is e, or 2, to the power of the loss: else a loss may be a sum, or none of tokens.
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
            highest, at = float(loss.value[top]), float(loss.step[top])
            return Evidence(
                f"{name} lies above {figure(guess)} = {logarithm}({TOKENS:,}) in {len(high)} of {len(loss)} records, "
                f"up to {figure(highest)} {units} per token at {run.step_name} {figure(at)}",
                steps=(float(loss.step[high[0]]),),
                values={"highest": highest, "records": float(len(high)), "uniform_guess": guess},
            )
    return None
