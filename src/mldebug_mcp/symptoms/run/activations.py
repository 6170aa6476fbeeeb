"""Do activations stay apart and in range: do logits grow until the loss fails, do embeddings come together?"""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.roles.lexicon import PHASES
from mldebug_mcp.logs.roles.words import pieces_of
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import blocks, median
from mldebug_mcp.measure.turning import fails_at
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
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
DOUBLES, LATELY, FAR = 2.0, 1.15, 10.0
"""Growth from the second quarter on, and over the last quarter, of logits that do not settle while the loss falls on,
and what they have come to. Chosen: those of sound runs flatten with their loss, and 10 leaves one wrong in 20,000."""
_LOGITS = re.compile(r"(?:.*_)?(?:log_?z|z_loss|(?:max_)?(?:attn_|attention_)?logits?(?:_(?:max|norm|abs_max))?)")
_LOG_Z = re.compile(r"log_?z")
"""The one of them that no answer needs to grow, as a constant in all logits leaves the answer as it is."""
_NOT = re.compile(r"chosen|rejected|scale|eval")
_SPREAD = re.compile(
    r"(?:.*[_/])?(?:feat(?:ure)?s?|emb(?:edding)?s?|repr(?:esentation)?s?|proj(?:ection)?s?|outputs?|z\d?|latent)"
    r"[_/]std(?:_mean|_avg)?",
    re.IGNORECASE,
)
NO_CODE = 0.05
"""Nats that the code of a row holds of it. Chosen: the least that a code of a few classes needs is 0.7."""
_RECONSTRUCTION = re.compile(r"(?:.*_)?(?:recon\w*|elbo)(?:_.*)?")
_APART = re.compile(
    r"(?:.*_)?(?:neg(?:ative)?s?_(?:cos(?:ine)?_)?sim(?:ilarity)?|(?:cos(?:ine)?_)?sim(?:ilarity)?_neg)"
)
"""What is measured of pairs that do not belong together."""
POLICIES = ("grpo", "ppo", "rl")


def logits_grow(run: Run) -> Evidence | None:
    """The logits, their maximum or their log Z grow over the run, up to where the loss turns or is no longer finite.

    Or log Z has doubled and grows on as steadily at the end. Not this when: the loss goes on falling and they flatten,
    because logits grow as long as something is learnt.
    """
    names = [name for name in run.series if _LOGITS.fullmatch(said := _in_words(name)) and not _NOT.search(said)]
    if not names:
        raise CannotTell("not logged: the logits, their maximum or their log Z")
    end = fails_at(run["loss"])
    found = [evidence for name in names if (evidence := _growth(run, run[name], end)) is not None]
    return max(found, key=lambda one: one.values["factor"], default=None)


def _in_words(name: str) -> str:
    """Return the words of a name in one spelling, without the phase: `TrainLogits/Max` is logits_max."""
    return "_".join(piece for piece in pieces_of(name) if PHASES.get(piece) != "train")


def _growth(run: Run, logits: Series, fails: float | None) -> Evidence | None:
    end = run.last_step if fails is None else fails
    before = logits.finite.where(logits.finite.step <= end)
    if len(before) < LEAST_LOGITS:
        return None
    level = np.abs(blocks(before.value, BLOCKS).level)
    late, early = float(level[-1]), median(level[len(level) // QUARTER : len(level) // 2])
    if early <= 0 or late < GROWS * early or (np.diff(level[len(level) // 2 :]) > 0).mean() < RISING:
        return None
    if fails is None and not _LOG_Z.search(_in_words(logits.name)):
        return None
    if fails is None and (late < max(FAR, DOUBLES * early) or late < LATELY * float(level[-1 - len(level) // QUARTER])):
        return None
    there = "where the loss fails" if fails is not None else "the end of the log, as steadily as before"
    return Evidence(
        f"{logits.name} grows from {figure(early)} to {figure(late)} up to {run.step_name} {figure(end)}, {there}",
        steps=(end,),
        values={"from": early, "to": late, "factor": late / early},
    )


def embedding_spread_gone(run: Run) -> Evidence | None:
    """All inputs have nearly one embedding: their spread falls to next to nothing, or those of different things agree.

    So it is where the divergence of a variational model comes to nothing. Not this when: the spread was as small from
    the start; they agree at first alone.
    """
    spreads = [run[name].finite for name in run.series if _SPREAD.fullmatch(name) and len(run[name].finite) >= LEAST]
    alike = [run[name].finite for name in run.series if _APART.fullmatch(_in_words(name))]
    codes = [one.finite for one in run.with_role(Quantity.KL)] if any(map(_is_reconstruction, run.series)) else []
    found = (
        *(_vanishes(run, one) for one in spreads),
        *(_agree(one) for one in alike if len(one) >= LEAST),
        *(_holds_nothing(one) for one in codes if len(one) >= LEAST),
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
        f"{spread.name} falls from {figure(highest)} to {figure(median(later))} and stays there from {run.step_name} "
        f"{figure(since)} on",
        steps=(since,),
        values={"highest": highest, "later": median(later)},
    )


def _agree(likeness: Series) -> Evidence | None:
    later = likeness.value[len(likeness) // 2 :]
    if not ALIKE <= float(later.min()) <= float(later.max()) <= 1:
        return None
    return Evidence(
        f"{likeness.name} is {figure(median(later))} over the later half of the log: different inputs have one "
        "embedding",
        steps=(float(likeness.step[len(likeness) // 2]),),
        values={"later": median(later)},
    )


def _is_reconstruction(name: str) -> bool:
    return _RECONSTRUCTION.fullmatch(_in_words(name)) is not None


def _holds_nothing(code: Series) -> Evidence | None:
    later = code.value[2 * len(code) // 3 :]
    if not 0 <= median(later) <= float(later.max()) < NO_CODE:
        return None
    said = f"{code.name} is {figure(median(later))} nats over the last third of the log: the code tells of no input"
    return Evidence(said, steps=(float(code.step[2 * len(code) // 3]),), values={"later": median(later)})


READINGS = (
    # Few runs log their logits, so that the priors of causes, which are shares of all runs, come too low here.
    reading(logits_grow, needs=("loss",), sources=("small_scale_proxies",), background=0.001, as_chosen=True),
    reading(embedding_spread_gone, not_for=("preference", "pretraining", "sft"), background=0.002),
)
"""How each outcome is seen. Chosen: the fit counts the backgrounds anew, but for those `as_chosen`."""


@question(*(one.outcome for one in READINGS), any_of=("loss", "*std*", "*sim*", Quantity.KL), not_for=POLICIES)
def activations(run: Run) -> Answers:
    """Look at the logits, then at the spread of embeddings."""
    return first_of(run, READINGS)
