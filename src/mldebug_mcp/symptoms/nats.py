"""Jumps of a language model's loss in nats per token, where it was trained from scratch."""

from __future__ import annotations

import math

from mldebug_mcp.measure.scale import MAX_LN_VOCABULARY, uniform_loss
from mldebug_mcp.symptoms.beginning import is_late
from mldebug_mcp.symptoms.forms_of_jump import LEAST_RECORDS, Jumps
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

NATS = 1.0
"""Per token, above the level before: a mean over thousands of tokens does not move so far by hard text."""
RECORDS = 3
"""Records above half the height, or else jumps: one record may hold one broken batch. Both chosen by hand."""
LEAST_LN_OF_TEXT = math.log(30_000)
"""Tokenizers of text have 30,000 tokens (BERT's) or more; nothing else has so many classes, as a rule."""
NEAR, EARLY, SOON = 0.05, 0.005, 10
"""Within this share of ln(vocabulary) a new model guesses uniformly; this share of the log, or so many steps, is its
start."""
NOT_TOKENS = ("diffusion", "preference", "supervised", "sft")


def by_nats(jumps: Jumps) -> Evidence | None:
    """Say whether the loss jumps by a nat per token, for several records or several times, and comes back."""
    run, loss = jumps.run, jumps.loss
    if run.kind in NOT_TOKENS or len(loss) < LEAST_RECORDS:
        raise CannotTell(f"not judged for a run of kind {run.kind}, or of {counted(len(loss), 'record')}")
    _refuse_trained(jumps)
    up = [spike for spike in jumps.found if spike.recovered is not False and spike.height >= NATS]
    records = sum(spike.last - spike.first + 1 for spike in up)
    if records < RECORDS:
        return None
    worst = max(up, key=lambda spike: spike.height)
    return Evidence(
        f"loss jumps by {figure(worst.height)} nats per token from {figure(worst.level)} at {run.step_name} "
        f"{figure(jumps.step(worst))}; {counted(len(up), 'jump')} of {figure(NATS)} or more, of {records} records in "
        "all",
        steps=tuple(jumps.step(spike) for spike in up)[:10],
        values={"height": worst.height, "level": worst.level, "count": len(up), "records": records},
    )


def _refuse_trained(jumps: Jumps) -> None:
    """Raise CannotTell if the loss is not known to begin at that of a uniform guess among tokens of text."""
    step, first = float(jumps.loss.step[0]), float(jumps.loss.value[0])
    uniform = uniform_loss(jumps.run)
    if uniform is None and LEAST_LN_OF_TEXT <= first <= MAX_LN_VOCABULARY:
        uniform = first
    far = uniform is None or uniform < LEAST_LN_OF_TEXT or abs(first / uniform - 1) > NEAR
    if far or is_late(jumps.run, step, EARLY, SOON):
        raise CannotTell(f"the first loss, {figure(first)}, is not known to be that of a uniform guess among tokens")
