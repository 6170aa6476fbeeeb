"""Do activations, units and weights keep their range, and do the experts of a mixture share the tokens?"""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, ask_in_turn, outcome_of, some, symptom, too_few
from mldebug_mcp.checks.curve import LEAST_FOR_COURSE, blocks, departure, end_level, fails_at, start_level
from mldebug_mcp.checks.gradients import LAST_LAYERS
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import PARTS_OF_A_MODEL, PHASES
from mldebug_mcp.logs.names.words import in_words, pieces_of
from mldebug_mcp.logs.run import Run, Series

# What a log tells of activations: the logits, by their maximum or log Z, and how far apart embeddings are.


_LOGITS = regex(
    r"(?:.*_)?(?:(?:log_?z|lse|log_?sum_?exp)(?:_(?:max|mean|sq|squared))?|z_loss"
    r"|(?:max_)?(?:attn_|attention_)?logits?(?:_(?:max|norm|mean|abs_?max))?)",
    needs=("log", "lse", "z_loss"),
)
_LOG_Z = regex(r"log_?z|lse|log_?sum_?exp")
"""The one of them that no answer needs to grow, as a constant in all logits leaves the answer as it is."""
_NOT = regex(r"chosen|rejected|scale|eval")
_SPREAD = regex(
    r"(?:.*[_/])?(?:feat(?:ure)?s?|emb(?:ed(?:ding)?)?s?|repr(?:esentation)?s?|proj(?:ection)?s?|outputs?|z\d?|latent)"
    r"[_/]std(?:_mean|_avg)?",
    re.IGNORECASE,
    needs="std",
)
_APART = regex(
    r"(?:.*_)?(?:neg(?:ative)?s?_(?:cos(?:ine)?_)?sim(?:ilarity)?|(?:cos(?:ine)?_)?sim(?:ilarity)?_neg)", needs="sim"
)
"""What is measured of pairs that do not belong together."""


def logits_of(run: Run) -> list[Series]:
    """Return what is logged of the logits while training, by whatever name."""
    named = {name: in_words(name) for name in run.series}
    return [run[name] for name, called in named.items() if _LOGITS.fullmatch(called) and not _NOT.search(called)]


# Do activations stay apart and in range: do logits grow until the loss fails, do embeddings come together?


MIN_LOGIT_RISE_RATIO = 1.4
"""Growth of logits up to the failing loss, or to the end. Chosen: healthy ones grow while something is learnt."""
MIN_RISING_BLOCK_SHARE = 0.6
"""Share of the later blocks that rise. Chosen: a half do by chance."""
LOGIT_LEVEL_BLOCKS = 10
"""Blocks that they are cut into. Chosen: by hand."""
LEVEL_PART_DIVISOR = 4
"""The level to compare with is that of the second quarter. Chosen: the first holds the beginning."""
RUN_ACTIVATIONS_LEAST = 8
"""Records of a spread. Chosen: half of them are a level."""
RUN_ACTIVATIONS_LEFT = 0.2
"""Share of its highest at which a spread is gone. Chosen: at a fifth two embeddings have a cosine of 0.96."""
MAX_VANISHED_SPREAD = 0.003
"""The most that a spread which is gone may be. Chosen: 2048 even dimensions have a spread of 0.022 each."""
OF_UNITS = 0.5
"""Highest spread that embeddings of length one have: a larger one may fall for many reasons. Chosen: half in one."""
MIN_EMBEDDING_COSINE = 0.98
"""Cosine of embeddings of different things. Chosen: at their start untrained nets may make all inputs this alike."""
MIN_RATIO_WITHOUT_FAILURE = 2.0
"""Growth from the second quarter of logits that settle not with the loss. Chosen: healthy ones flatten with it."""
MIN_RECENT_RISE_RATIO = 1.15
"""Growth over the last quarter of the same logits. Chosen: those in healthy runs flatten with their loss."""
MIN_LOGIT_GROWTH = 10.0
"""What log Z comes to at least. Chosen: 10 leaves one wrong in 20,000."""
FAR_OF_MOST = 100.0
"""What other logits come to at least. Chosen: those in healthy runs flatten with their loss."""
POLICIES = ("grpo", "ppo", "rl")


def logits_grow(run: Run) -> Evidence | None:
    """The logits, their maximum or their log Z grow over the run, up to where the loss turns or stops being finite.

    Or they have doubled to far more than answers need, and grow on as steadily at the end. Not this when: the loss goes
    on falling and they flatten, because logits grow as long as something is learnt.
    """
    logged = some(logits_of(run), "not logged: the logits, their maximum or their log Z")
    end = fails_at(run["loss"])
    found = [evidence for series in logged if (evidence := _growth(run, series, end)) is not None]
    return max(found, key=lambda evidence: evidence.values["factor"], default=None)


def _growth(run: Run, logits: Series, fails: float | None) -> Evidence | None:
    end = run.last_step if fails is None else fails
    before = logits.finite.where(logits.finite.step <= end)
    if len(before) < LEAST_FOR_COURSE:
        return None
    level = np.abs(blocks(before.value, LOGIT_LEVEL_BLOCKS).level)
    late, early = float(level[-1]), median(level[len(level) // LEVEL_PART_DIVISOR : len(level) // 2])
    if (
        early <= 0
        or late < MIN_LOGIT_RISE_RATIO * early
        or (np.diff(level[len(level) // 2 :]) > 0).mean() < MIN_RISING_BLOCK_SHARE
    ):
        return None
    far = MIN_LOGIT_GROWTH if _LOG_Z.search(in_words(logits.name)) else FAR_OF_MOST
    if fails is None and (
        late < max(far, MIN_RATIO_WITHOUT_FAILURE * early)
        or late < MIN_RECENT_RISE_RATIO * float(level[-1 - len(level) // LEVEL_PART_DIVISOR])
    ):
        return None
    there = "where the loss fails" if fails is not None else "the end of the log, as steadily as before"
    summary = f"{logits.name} grows from {figure(early)} to {figure(late)} up to {run.place(end)}, {there}"
    return Evidence(summary, steps=(end,), values={"from": early, "to": late, "factor": late / early})


def embedding_spread_gone(run: Run) -> Evidence | None:
    """All inputs have nearly one embedding: their spread falls to next to nothing, or those of different things agree.

    Not this when: the spread was as small from the start; they agree at first alone.
    """
    long = {name: series.finite for name, series in run.series.items() if len(series.finite) >= RUN_ACTIVATIONS_LEAST}
    found = (
        *(_vanishes(run, spread) for name, spread in long.items() if _SPREAD.fullmatch(name)),
        *(_agree(run, likeness) for name, likeness in long.items() if _APART.fullmatch(in_words(name))),
    )
    if not found:
        raise CannotTell("neither the spread of embeddings nor the likeness of different ones is logged")
    return next((evidence for evidence in found if evidence is not None), None)


def _vanishes(run: Run, spread: Series) -> Evidence | None:
    later, highest = spread.value[2 * len(spread) // 3 :], float(spread.value.max())
    least = (
        RUN_ACTIVATIONS_LEFT * highest
        if highest < OF_UNITS
        else min(MAX_VANISHED_SPREAD, RUN_ACTIVATIONS_LEFT * highest)
    )
    if not 0 <= median(later) < least or float(later.max()) > RUN_ACTIVATIONS_LEFT * highest:
        return None
    since = float(spread.step[int(np.argmax(spread.value < RUN_ACTIVATIONS_LEFT * highest))])
    return Evidence(
        f"{spread.name} falls from {figure(highest)} to about {figure(median(later))} and stays there from "
        f"{run.place(since)} on",
        steps=(since,),
        values={"highest": highest, "later": median(later)},
    )


def _agree(run: Run, likeness: Series) -> Evidence | None:
    later = likeness.value[len(likeness) // 2 :]
    if not MIN_EMBEDDING_COSINE <= float(later.min()) <= float(later.max()) <= 1:
        return None
    since = float(likeness.step[len(likeness) // 2])
    summary = f"{likeness.name} is about {figure(median(later))} from {run.place(since)} on: inputs have one embedding"
    return Evidence(summary, steps=(since,), values={"later": median(later)})


ask_in_turn(
    "activations",
    # Few runs log their logits, so that the priors of causes, which are shares of all runs, come too low here.
    outcome_of(logits_grow, 0.001, "small_scale_proxies", needs=("loss",), as_chosen=True),
    outcome_of(embedding_spread_gone, 0.002, not_for=("preference", "pretraining", "sft")),
    any_of=("loss", "*std*", "*sim*"),
    not_for=POLICIES,
)


# Does a layer give nothing, whatever comes in?


PREFIX = "units_dead/"
"""How a recording names the share of the units of a layer that are dead."""
_DEAD = regex(
    r"(?:.*[/_.])?(?:units_dead|dead_(?:units?|neurons?|relus?|features?|latents?|frac(?:tion)?|share|ratio)|"
    r"never_(?:activ(?:e|ated)|fir(?:e|es|ed))|zero_activations?)(?:[/_.].*)?",
    re.IGNORECASE,
    needs=("dead", "never_", "zero_activation"),
)
"""How people name it, of a layer or of the model."""
_SILENT = frozenset({"dead", "silent", "inactive"})
_ZERO = frozenset({"zero", "zeros"})
_ACTIVATED = frozenset({"act", "acts", "activation", "activations", "relu", "unit", "units", "neuron", "neurons"})
_SHARE = frozenset({"share", "frac", "fraction", "ratio", "rate"})
"""Words that name it together, in any order."""
_LAYERS = PARTS_OF_A_MODEL - {"weight", "bias", "input", "output", "embed", "embedding", "embeddings"} | {
    "hidden", "hid", "dense", "ffn", "l1", "l2",
}  # fmt: skip
"""Parts whose zeros are those of their activations: weights that are pruned and empty input have zeros, too."""
_LAYER_LETTERS = frozenset({"h", "a", "z", "l"})
"""What formulas call a layer, by its number: `h1`."""
MIN_DEAD_UNIT_SHARE = 0.9
"""Share of the units of a layer. Chosen: sound layers of rectified units lose a half at most."""
ALL_ZERO = 0.98
"""Share of the activations that are zero. Chosen: each unit may be zero for most rows, and live for some."""
UNITS_DEAD_LEAST = 3
"""Looks at the layer. Chosen: at the first one nothing is learnt yet."""


def dead_share_bound(name: str) -> float | None:
    """Return the share from which the units that a name speaks of are dead; None of another name."""
    pieces = pieces_of(name)
    words = {piece for piece in pieces if not piece.isdecimal()}
    if _DEAD.fullmatch(name) is not None:
        return MIN_DEAD_UNIT_SHARE
    of_activations = words - PHASES.keys() <= _ZERO | _ACTIVATED | _LAYERS | _LAYER_LETTERS | LAST_LAYERS
    if of_activations and not _ACTIVATED.isdisjoint(words) and not _ZERO.isdisjoint(words):
        return ALL_ZERO  # `act_zero/fc1`: a share, as its values say
    if _SHARE.isdisjoint(words) or (_SILENT | _ZERO).isdisjoint(words):
        return None
    if not _ACTIVATED.isdisjoint(words):
        return ALL_ZERO if _SILENT.isdisjoint(words) else MIN_DEAD_UNIT_SHARE
    if words <= _SILENT | _SHARE | PARTS_OF_A_MODEL | _LAYERS | _LAYER_LETTERS:
        return MIN_DEAD_UNIT_SHARE
    is_of_layer = len(pieces) > len(words) or not _LAYERS.isdisjoint(words)
    return ALL_ZERO if is_of_layer and words <= _ZERO | _SHARE | _LAYERS | _LAYER_LETTERS else None


@symptom(whole=True, background=0.003, as_chosen=True)
def units_dead(run: Run) -> Evidence | None:
    """Nearly all units of a layer give nothing for any row of the batch, from look to look.

    Not this when: fewer units are dead; they come back; nobody looked into the model.
    """
    bounds = {name: bound for name in run.series if (bound := dead_share_bound(name)) is not None}
    judged = {
        name: share
        for name, share in ((name, run[name].finite) for name in bounds)
        if len(share) >= UNITS_DEAD_LEAST and float(share.value.min()) >= 0 and float(share.value.max()) <= 1
    }
    if not judged:
        raise CannotTell(f"the share of dead units is not logged {UNITS_DEAD_LEAST} times")
    shares = {name: median(share.value[len(share) // 2 :]) for name, share in judged.items()}
    worst = max(shares, key=lambda name: shares[name] - bounds[name])
    if shares[worst] < bounds[worst]:
        return None
    series = judged[worst]
    first = float(series.step[int((series.value >= bounds[worst]).argmax())])
    return Evidence(
        f"{figure(100 * shares[worst])} % of the units of {worst.removeprefix(PREFIX)} are dead, from "
        f"{run.place(first)} on",
        steps=(first,),
        values={"share": shares[worst], "layers": sum(share >= bounds[name] for name, share in shares.items())},
    )


# Do the weights lose what they have?


WEIGHTS_SHRINK_LEAST = 5
"""Records of the norm. Chosen: its end is then a level."""
WEIGHTS_SHRINK_LEFT = 0.5
"""Of the norm at first. Chosen: a usual decay takes some per cent, and what is learnt makes the norm grow."""


@symptom(any_of=(Quantity.WEIGHT_NORM,), whole=True, background=0.003, as_chosen=True)
def weights_shrink(run: Run) -> Evidence | None:
    """The norm of the weights falls to half of what it was and less.

    Not this when: it falls by some per cent; only the norm of a part of the model is logged.
    """
    norm = next(
        (series.finite for series in run.with_role(Quantity.WEIGHT_NORM) if len(series.finite) >= WEIGHTS_SHRINK_LEAST),
        None,
    )
    if norm is None:
        raise CannotTell(f"the norm of the weights is not logged {WEIGHTS_SHRINK_LEAST} times")
    first, end = float(norm.value[0]), end_level(norm.value)
    if first <= 0 or end > WEIGHTS_SHRINK_LEFT * first:
        return None
    since = float(norm.step[int((norm.value <= WEIGHTS_SHRINK_LEFT * first).argmax())])
    return Evidence(
        f"{norm.name} falls from {figure(first)} to {figure(end)}, and to half of it by {run.place(since)}",
        steps=(since,),
        values={"first": first, "end": end},
    )


# Do the experts of a mixture share the tokens, or does the router send most of them to a few?


MOST_DROPPED = 0.2
"""Share of the tokens that are dropped by the end. Chosen: a capacity factor above 1 drops some per cent."""
MOST_OVER = 5.0
"""Times its fair share by which the fullest expert is over it (MaxVio). Chosen: balanced routers stay below 1 or 2."""
MIN_ROUTING_GROWTH_RATIO = 4.0
"""Times what it was at the start. Chosen: at the very start a router may be as uneven."""
PER_CENT = 100.0
"""Times a share that a value in per cent is. Source: arithmetic."""
_DROPPED = regex(r"(?i)drop(?:ped)?[ _/-]?tokens?|tokens?[ _/-]{1,3}drop(?:ped)?", needs="drop")
_OVER = regex(r"(?i)max[ _-]?vio", needs="vio")
_OF_LOAD = regex(r"(?i)(?:expert|load|routing|router)s?[ _/-](?:load[ _/-])?entropy")


@symptom(background=0.002, as_chosen=True)
def routing_collapses(run: Run) -> Evidence | None:
    """A router comes to send most tokens to a few experts, which drop what is beyond their capacity.

    Not this when: it is as uneven at the start, and gets no worse; only the entropy of single tokens falls, as a router
    that learns gets sure.
    """
    judged = [series for name in run.series if _DROPPED.search(name) or _OVER.search(name) for series in [run[name]]]
    if not judged:
        raise CannotTell("not logged: the share of dropped tokens, or the load of the fullest expert")
    logged = [series.finite for series in judged if len(series.finite) >= LEAST_FOR_COURSE]
    if not logged:
        raise too_few(judged[0].name, len(judged[0].finite), LEAST_FOR_COURSE)
    grown = [(series, *levels) for series in logged if (levels := _grown(series)) is not None]
    if not grown:
        return None
    series, start, end = grown[0]
    onset = float(series.step[departure(series.value, end)])
    shown = [f"{each.name} goes from about {figure(first)} to about {figure(last)}" for each, first, last in grown]
    shown += [
        f"{name} from about {figure(start_level(values))} to about {figure(end_level(values))}"
        for name in run.series
        if _OF_LOAD.search(name) and len(values := run[name].finite.value)
    ]
    return Evidence(
        f"from {run.place(onset)} on {', '.join(shown)}", steps=(onset,), values={"start": start, "end": end}
    )


def _grown(series: Series) -> tuple[float, float] | None:
    """Return the first and the last level of what has grown too large, else None."""
    start, end = start_level(series.value), end_level(series.value)
    whole = PER_CENT if _DROPPED.search(series.name) and float(np.max(series.value)) > 1 else 1.0
    limit = MOST_DROPPED * whole if _DROPPED.search(series.name) else MOST_OVER
    return (start, end) if end >= limit and end >= MIN_ROUTING_GROWTH_RATIO * max(start, 0.0) else None
