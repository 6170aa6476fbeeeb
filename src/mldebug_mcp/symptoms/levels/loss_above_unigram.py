"""A language model's loss is still far above what the frequencies of tokens give."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import end_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.symptoms.tokens import uniform_of_tokens
from mldebug_mcp.text import figure

SHARE = 0.8
"""Of ln(vocabulary). The frequencies of tokens alone give 0.6 of it, which is learnt in the first hundreds of steps."""
LEAST_STEPS = 1000
"""By then a warmup of two thousand steps is half over. Chosen by hand."""
FALLEN = 0.97


def loss_above_unigram(run: Run) -> Evidence | None:
    """After a thousand steps a new language model's loss is still above 0.8 of ln(vocabulary), although it has fallen.

    The frequencies of tokens, 0.6 of it, are the first thing learnt. Not this when: it never fell (`loss_plateau`), or
    blew up; it stands at those frequencies (`loss_at_unigram`); the model is a made-up one of few tokens.
    """
    loss = run["loss"].finite
    uniform = uniform_of_tokens(run)
    if run.step_name != "step" or run.last_step < LEAST_STEPS:
        raise CannotTell(f"fewer than {LEAST_STEPS} steps: a warmup may be all of it")
    end = end_level(loss.value)
    if not SHARE * uniform < end < FALLEN * uniform or end > 1.05 * float(loss.value.min()):
        return None
    return Evidence(
        f"the loss is {figure(end)} at {run.step_name} {figure(float(loss.step[-1]))}; a uniform guess has "
        f"{figure(uniform)} = ln({math.exp(uniform):,.0f}), the frequencies of tokens alone give about 0.6 of it",
        steps=(float(loss.step[0]),),
        values={"end": end, "uniform_guess": uniform},
    )
