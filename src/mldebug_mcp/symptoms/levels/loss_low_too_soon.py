"""A language model from scratch that is far below what so little training gives."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.token_level import LEAST_LN_OF_TEXT, token_level
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

SHARE = 0.1
"""Of ln(vocabulary): 1.1 nats of 50,257 tokens, 0.55 of 256 bytes. Chosen by hand."""
STEPS = 1000
"""With batches of a million tokens that is a thousand million of them, after which the best models from scratch have
about 3 nats on prose and 1.5 on code. Chosen by hand, with room for larger batches."""


def loss_low_too_soon(run: Run) -> Evidence | None:
    """The loss of a language model from scratch is below a tenth of ln(vocabulary) within a thousand steps.

    That is over rows that are new to it: at evaluation or, where there is none, in training within the first pass.
    So little training does not tell the next token, but the token itself in the input does.

    Not this when: only rows that come again are that low; the model comes trained; it has few tokens, as a made-up
    language has. The bounds were chosen by hand.
    """
    try:
        losses = evaluation_losses(run)
    except CannotTell:
        losses = []
    level = token_level(run, losses)
    if level is None or not (predicts_tokens(run) or level.uniform >= LEAST_LN_OF_TEXT):
        raise CannotTell("no loss over new rows is known to be one of a language model from scratch")
    if run.step_name != "step":
        raise CannotTell("the log does not count steps")
    below = level.below(SHARE)
    if below is None or below > STEPS or level.end <= 0:
        return None
    return Evidence(
        f"{level.loss.name} is {figure(level.end)} at the end and below {figure(SHARE * level.uniform)} from step "
        f"{figure(below)} on, {figure(level.share)} of the {figure(level.uniform)} of a uniform guess",
        steps=(below,),
        values={"end": level.end, "share": level.share, "uniform_guess": level.uniform},
    )
