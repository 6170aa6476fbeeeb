"""A language model's loss stands at what the frequencies of tokens give."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.stall import HIGH_SHARE, stalled
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.symptoms.tokens import uniform_of_tokens
from mldebug_mcp.text import figure


def loss_at_unigram(run: Run) -> Evidence | None:
    """The loss of a new language model falls to half of ln(vocabulary) or less deep, and stands there.

    The frequencies of tokens alone bring it to 0.6 of ln(vocabulary): a model that stands there makes no use of the
    context. Where the configuration does not tell the vocabulary, a first loss between ln(30,000) and ln(262,144) does.

    Not this when: it goes on falling, however slowly; the model comes trained and starts far below ln(vocabulary).
    """
    loss = run["loss"].finite
    uniform = uniform_of_tokens(run)
    stall = stalled(loss)
    if stall is None or stall.end < HIGH_SHARE * uniform:
        return None
    return Evidence(
        f"loss falls from {figure(float(loss.value[0]))} to {figure(stall.end)} by {run.step_name} "
        f"{figure(stall.onset)} and moves by no more than {figure(stall.moved)} after; a uniform guess has "
        f"{figure(uniform)} = ln({math.exp(uniform):,.0f}), the frequencies of tokens alone give about 0.6 of it",
        steps=(stall.onset,),
        values={"end": stall.end, "moved_in_second_half": stall.moved, "uniform_guess": uniform},
    )
