"""A language model's loss stands at what the frequencies of tokens give."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.stall import HIGH_SHARE, stalled
from mldebug_mcp.symptoms.beginning import is_late
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.scale import MAX_LN_VOCABULARY, uniform_loss
from mldebug_mcp.text import figure

LEAST_LN_OF_TEXT = math.log(30_000)
"""Tokenizers of text have 30,000 tokens (BERT's) or more; nothing else has so many classes, as a rule. Characters and
made-up languages may hold no more than their frequencies."""
NEAR = 0.05
"""Within this share of ln(vocabulary) a new model guesses uniformly."""
EARLY = 0.005


@symptom(
    needs=("loss",),
    sources=("karpathy_recipe",),
    points=20,
    settled=True,
    not_for=("grpo", "ppo", "rl", "diffusion", "preference", "supervised"),
    background=0.003,
    follows=("loss_plateau", "loss_scale_suspicious"),
    instead=NO_PROGRESS,
)
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


def uniform_of_tokens(run: Run) -> float:
    """Return ln(vocabulary) of a model that starts at a uniform guess; CannotTell if it does not, or none is known."""
    loss = run["loss"].finite
    if not len(loss):
        raise CannotTell("no finite loss")
    step, first = float(loss.step[0]), float(loss.value[0])
    if is_late(run, step, EARLY, 10):
        raise CannotTell(f"the first loss is logged at {run.step_name} {figure(step)}, too late to speak of the start")
    known = uniform_loss(run)
    if known is None and LEAST_LN_OF_TEXT <= first <= MAX_LN_VOCABULARY:
        known = first
    if known is None or known < LEAST_LN_OF_TEXT or abs(first / known - 1) > NEAR:
        raise CannotTell(f"the first loss, {figure(first)}, is not known to be that of a uniform guess among tokens")
    return known
