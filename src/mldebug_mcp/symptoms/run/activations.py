"""Do activations stay apart and in range: do logits grow until the loss fails, do embeddings come together?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.activations import is_log_z, likeness_of_others, logits_of, spreads_of
from mldebug_mcp.measure.statistics import blocks, median
from mldebug_mcp.measure.turning import fails_at
from mldebug_mcp.symptoms.readings import ask_in_turn, reading
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

GROWS = 1.4
"""Growth of logits up to where the loss fails. Chosen: those of sound runs grow as long as something is learnt."""
RISING = 0.6
"""Share of the later blocks that rise. Chosen: a half do by chance."""
LEAST_LOGITS, BLOCKS = 20, 10
"""Records, and the blocks that they are cut into. Chosen: two to a block."""
QUARTER = 4
"""The level to compare with is that of the second quarter. Chosen: the first holds the beginning."""
LEAST = 8
"""Records of a spread. Chosen: half of them are a level."""
LEFT, GONE = 0.2, 0.003
"""A spread is gone at this share of its highest, or where it was never above that. Chosen: at a fifth the cosine of two
embeddings of one length is 0.96; 2048 even dimensions have a spread of 0.022 each."""
OF_UNITS = 0.5
"""Highest spread that embeddings of length one have: a larger one may fall for many reasons. Chosen: half in one."""
ALIKE = 0.98
"""Cosine of embeddings of different things. Chosen: at their start untrained nets may make all inputs this alike."""
DOUBLES, LATELY, FAR, FAR_OF_MOST = 2.0, 1.15, 10.0, 100.0
"""Growth from the second quarter on, and over the last quarter, of logits that do not settle while the loss falls on,
and what log Z and others have come to. Chosen: those of sound runs flatten with their loss, and 10 leaves one wrong in
20,000."""
POLICIES = ("grpo", "ppo", "rl")


def logits_grow(run: Run) -> Evidence | None:
    """The logits, their maximum or their log Z grow over the run, up to where the loss turns or is no longer finite.

    Or they have doubled to far more than answers need, and grow on as steadily at the end. Not this when: the loss goes
    on falling and they flatten, because logits grow as long as something is learnt.
    """
    logged = logits_of(run)
    if not logged:
        raise CannotTell("not logged: the logits, their maximum or their log Z")
    end = fails_at(run["loss"])
    found = [evidence for one in logged if (evidence := _growth(run, one, end)) is not None]
    return max(found, key=lambda one: one.values["factor"], default=None)


def _growth(run: Run, logits: Series, fails: float | None) -> Evidence | None:
    end = run.last_step if fails is None else fails
    before = logits.finite.where(logits.finite.step <= end)
    if len(before) < LEAST_LOGITS:
        return None
    level = np.abs(blocks(before.value, BLOCKS).level)
    late, early = float(level[-1]), median(level[len(level) // QUARTER : len(level) // 2])
    if early <= 0 or late < GROWS * early or (np.diff(level[len(level) // 2 :]) > 0).mean() < RISING:
        return None
    far = FAR if is_log_z(logits) else FAR_OF_MOST
    if fails is None and (late < max(far, DOUBLES * early) or late < LATELY * float(level[-1 - len(level) // QUARTER])):
        return None
    there = "where the loss fails" if fails is not None else "the end of the log, as steadily as before"
    said = f"{logits.name} grows from {figure(early)} to {figure(late)} up to {run.place(end)}, {there}"
    return Evidence(said, steps=(end,), values={"from": early, "to": late, "factor": late / early})


def embedding_spread_gone(run: Run) -> Evidence | None:
    """All inputs have nearly one embedding: their spread falls to next to nothing, or those of different things agree.

    Not this when: the spread was as small from the start; they agree at first alone.
    """
    found = (
        *(_vanishes(run, one) for one in spreads_of(run) if len(one) >= LEAST),
        *(_agree(run, one) for one in likeness_of_others(run) if len(one) >= LEAST),
    )
    if not found:
        raise CannotTell("neither the spread of embeddings nor the likeness of different ones is logged")
    return next((evidence for evidence in found if evidence is not None), None)


def _vanishes(run: Run, spread: Series) -> Evidence | None:
    later, highest = spread.value[2 * len(spread) // 3 :], float(spread.value.max())
    least = LEFT * highest if highest < OF_UNITS else min(GONE, LEFT * highest)
    if not 0 <= median(later) < least or float(later.max()) > LEFT * highest:
        return None
    since = float(spread.step[int(np.argmax(spread.value < LEFT * highest))])
    return Evidence(
        f"{spread.name} falls from {figure(highest)} to {figure(median(later))} and stays there from "
        f"{run.place(since)} on",
        steps=(since,),
        values={"highest": highest, "later": median(later)},
    )


def _agree(run: Run, likeness: Series) -> Evidence | None:
    later = likeness.value[len(likeness) // 2 :]
    if not ALIKE <= float(later.min()) <= float(later.max()) <= 1:
        return None
    since = float(likeness.step[len(likeness) // 2])
    said = f"{likeness.name} is {figure(median(later))} from {run.place(since)} on: different inputs have one embedding"
    return Evidence(said, steps=(since,), values={"later": median(later)})


ask_in_turn(
    "activations",
    # Few runs log their logits, so that the priors of causes, which are shares of all runs, come too low here.
    reading(logits_grow, needs=("loss",), sources=("small_scale_proxies",), background=0.001, as_chosen=True),
    reading(embedding_spread_gone, not_for=("preference", "pretraining", "sft"), background=0.002),
    any_of=("loss", "*std*", "*sim*"),
    not_for=POLICIES,
)
