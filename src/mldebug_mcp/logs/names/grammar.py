"""A name of a metric → its role: quantity, phase, part, statistic and unit.

A name is split into segments at `/`, `.` and `:`, those into words at every other separator; at humps of camel case
and at digits; the lexicon says what each word means. What is left when phase, statistic, unit and words that say
nothing are taken out must be a quantity as a whole, in any order; or a quantity and the name of a part of it. A name
that no grammar can know has the role that the user gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.names import lexicon
from mldebug_mcp.logs.names.lexicon import IDIOMS
from mldebug_mcp.logs.names.quantities import LOSSES, Quantity
from mldebug_mcp.logs.names.words import Words, chunks_in, is_per_time, plain, segments_of, sorted_out, words_in

# The words of a name that say what is measured → the quantity, and of what part.

_TUNED_BY_A_LOSS = frozenset({"alpha", "beta", "lambda", "coefficient"})
"""What is a setting elsewhere, and has a loss where it is learned: `alpha_loss` of SAC."""
_LETTERS = frozenset({"q", "v", "d", "g"})
"""What critics and the networks of a GAN are called; with a number, parts of another loss."""
_LENGTHS_BELOW_REWARD = frozenset({Quantity.EPISODE_LENGTH, Quantity.COMPLETION_LENGTH})
"""What stands in a box of rewards and is none."""
_OF_HOW_MANY = (["num"], ["count"])
"""How a count begins that stands below a loss."""
_OPPONENTS = frozenset({"d", "g", "discriminator", "generator", "samples"})
_OF_OPPONENTS = frozenset({"d", "discriminator", "real", "fake"})
_COUNTER_SOFT = frozenset({"current", "global", "env", "optimizer", "sampled", "lifetime", "sofar", "so", "far"})


class Read(NamedTuple):
    """What the base words of a name are."""

    quantity: Quantity
    part: str = ""
    namespace: str = ""
    extra: int = 0


def whole(words: Words) -> Read | None:
    """Return the role if all words together are a quantity, but for soft ones."""
    if words.leading[:1] == ["loss"] and len(words.base) > 1:
        inside = all_of(frozenset(words.base[1:]), words)
        if inside is not None and inside.quantity in lexicon.NOT_IN_A_LOSS:
            return inside
        if inside is not None and inside.quantity is Quantity.VALUE and len(set(words.base)) > 2:
            return inside  # "losses/q_values", but "loss/value" is the loss of the value function
    every = frozenset(words.base)
    if words.base.count("reward") > 1 and every - lexicon.SOFT != {"reward"}:
        return None  # "rewards/accuracy_reward" is a function of rewards
    found = all_of(every, words)
    if found is None and words.leading and words.leading[0] in lexicon.PLACES:
        found = all_of(frozenset(words.base[1:]), words)
        if words.leading[0] == "loss" and found is not None and found.quantity is Quantity.REWARD:
            return None  # that of a model that learns to tell rewards
    if found is None and words.leading[:1] == ["value"]:
        inside = all_of(frozenset(words.base[1:]), words)
        found = inside if inside is not None and inside.quantity in lexicon.OF_ROLLOUTS else None
    if found is None:
        found = _single_quantity(every, words)
    if found is not None and words.numbers and found.quantity in LOSSES and not _LETTERS.isdisjoint(every):
        return None  # `loss_q1`
    return found


def all_of(every: frozenset[str], words: Words) -> Read | None:
    """Return the quantity that words are together, with soft ones or without."""
    core = every - lexicon.SOFT
    if words.unit in lexicon.SECONDS:
        for attempt in (every, every - {"total", "current"}, core):
            if (timed := lexicon.TIMED.get(attempt)) is not None:
                return Read(timed, extra=len(every) - len(attempt))
    for attempt in (every, every - _COUNTER_SOFT, every - {"total"}, core):
        quantity = lexicon.MEANINGS.get(attempt)
        if quantity is not None and (not quantity.is_counter or every - attempt <= _COUNTER_SOFT):
            return Read(quantity, extra=len(every) - len(attempt))
    return None


def _single_quantity(every: frozenset[str], words: Words) -> Read | None:
    """Return the quantity that words are where no other stands in the name."""
    if words.statistic not in ("", "mean"):
        return None
    for attempt in (every, every - lexicon.SOFT):
        if (quantity := lexicon.ALONE.get(attempt)) is not None:
            return Read(quantity, extra=1 + len(every) - len(attempt))
    if words.phase == "eval" and every == {"τ"}:
        return Read(Quantity.CORRELATION)  # elsewhere a temperature
    if words.unit in lexicon.SHARES and (shared := lexicon.SHARES_OF.get(every)) is not None:
        return Read(shared)
    if words.unit_leads:
        return None  # "GiB GPU" of a sentence
    in_bytes = every <= lexicon.IN_BYTES and words.unit in lexicon.GIB and len(words.unit) > 1
    return Read(Quantity.DEVICE_MEMORY, extra=1) if in_bytes else None


def called_by_name(words: Words) -> Read | None:
    """Return the role of a loss that is called by what it computes, without the word: `val_bce`, `aux`.

    It is a part of the loss for all that a name can say; of a log that has no other, it is the loss.
    """
    if words.base[-1] in ("em", "exact"):
        return Read(Quantity.ACCURACY, " ".join(words.base), extra=len(words.base))
    every = frozenset(words.base) - (lexicon.SOFT - {"usage"})
    others = every - lexicon.OF_A_LOSS_TOO - lexicon.NAMED_LOSSES
    if (
        words.unit
        or words.statistic not in ("", "mean", "ema", "last", "sum")
        or not lexicon.SPOILERS.isdisjoint(every)
    ):
        return None
    named = not lexicon.NAMED_LOSSES.isdisjoint(words.last) and lexicon.CONCEPTS.isdisjoint(others)
    if every == {"pix"} and words.statistic:
        return None  # of the pixels, next to their deviation
    if named or (len(every) == 1 and every <= lexicon.PARTS_OF_A_LOSS | lexicon.METHODS):
        return Read(Quantity.LOSS, " ".join(words.base), extra=len(every))
    return None


def rate(words: Words) -> Read | None:
    """Return the role of what is counted per second."""
    counted = next((text for text in reversed(words.base) if text in lexicon.RATES), "")
    if not counted:
        return None
    ignored = lexicon.SOFT | {counted, "time", "throughput", "input"}
    rest = [text for text in words.base if text not in ignored]
    if rest in (["target"], ["interval"]):
        rest = []  # T5X counts the tokens that are predicted, Paddle those since it logged last
    if not lexicon.SPOILERS.isdisjoint(rest):
        return None
    return Read(lexicon.RATES[counted], " ".join(rest))


def of_a_part(words: Words) -> Read | None:
    """Return the role of a quantity with words that are left: a namespace in front, or the name of a part."""
    if "loss" in words.leading and (words.last[-1:] == ["time"] or words.last[:1] in _OF_HOW_MANY):
        return None  # icefall's "tot_loss/utt_duration", tensorpack's "rpn_losses/level2/num_pos_anchor"
    base = list(dict.fromkeys(words.base))
    if (placed := _below(words) or _rate_of_a_group(base)) is not None:
        return placed
    found = _head(base)
    if (own := _own_below_a_loss(words)) is not None:
        base, found = words.last, own
    spoilers = lexicon.SPOILERS - (_TUNED_BY_A_LOSS if words.base[-1] == "loss" else set())
    if not spoilers.isdisjoint(text for text in base if found is None or text not in found[1]):
        return None
    if words.leading and words.phase != "eval" and lexicon.CONCEPTS.isdisjoint(words.leading):
        inside = all_of(frozenset(words.last), words)
        if inside is not None and inside.quantity.is_named:
            return inside._replace(namespace=" ".join(words.leading), extra=inside.extra + len(words.leading))
    if found is None:
        return None
    return _with_rest(found[0], [text for text in base if text not in found[1]])


def _with_rest(quantity: Quantity, rest: list[str]) -> Read:
    """Return a quantity of what the rest of the words name."""
    if quantity is Quantity.LOSS and set(rest) & {"d", "discriminator"} and set(rest) <= _OF_OPPONENTS:
        quantity = Quantity.DISCRIMINATOR_LOSS  # `D_loss_real`
    return Read(quantity, " ".join(rest))


def _below(words: Words) -> Read | None:
    """Return the role of what stands below the reward or the learning rate."""
    if words.leading[:1] == ["reward"]:
        inside = all_of(frozenset(words.last), words)
        is_length = inside is not None and inside.quantity in _LENGTHS_BELOW_REWARD
        return inside if is_length else Read(Quantity.REWARD, " ".join(words.last))
    if words.leading == ["learning", "rate"] and lexicon.SPOILERS.isdisjoint(words.last):
        return Read(Quantity.LEARNING_RATE, extra=1 + len(words.last))  # kohya: that of the first of its networks
    return None


def _rate_of_a_group(base: list[str]) -> Read | None:
    """Return the role of the learning rate of some of the parameters: `lr_vit`, `last_layer_lr`."""
    if not {"learning", "rate"} < set(base):
        return None
    of = [text for text in base if text not in ("learning", "rate")]
    concepts = lexicon.CONCEPTS - _OPPONENTS
    if not concepts.isdisjoint(of) or not lexicon.SPOILERS.isdisjoint(of):
        return None
    return Read(Quantity.LEARNING_RATE, " ".join(of), extra=len(of))


def _own_below_a_loss(words: Words) -> tuple[Quantity, frozenset[str]] | None:
    """Return the quantity that the last segment of a name is of by itself, where a loss is only its place."""
    if "loss" not in words.leading or "loss" in words.last:
        return None
    whole_of_last = lexicon.MEANINGS.get(frozenset(words.last))
    found = _head(words.last) or (whole_of_last and (whole_of_last, frozenset(words.last)))
    if not found:
        return None
    in_place = words.leading == ["loss"] and found[0] in lexicon.NOT_IN_A_LOSS
    return found if in_place or found[0].higher_is_better else None


_SURE = (
    (frozenset({"loss"}), Quantity.LOSS, frozenset({"loss"})),
    (frozenset({"cross", "entropy"}), Quantity.LOSS, frozenset[str]()),
    (frozenset({"map", "iou"}), Quantity.AVERAGE_PRECISION, frozenset({"map", "iou"})),  # at an overlap: "mAP@0.5IOU"
)
"""Words that tell the quantity of a part whatever else stands in its name, in this order; and those that name it."""


def _head(base: list[str]) -> tuple[Quantity, frozenset[str]] | None:
    """Return the quantity that most of the words name, and these; of several of one size the last, as in English."""
    named = [text for text in base if text not in lexicon.SOFT]
    for size in range(1, len(named)):
        ending = lexicon.MEANINGS.get(frozenset(named[-size:]))
        if ending is not None and ending not in lexicon.WITH_PARTS and ending not in LOSSES:
            return None  # "reward model lr" is a rate
    for sure, of_sure, named_by in _SURE:
        if sure <= set(base):
            return of_sure, named_by
    every = frozenset(base)
    for word in base[1:-1]:  # `terminated` of "completions mean terminated length"
        if (quantity := lexicon.MEANINGS.get(every - {word})) in lexicon.WITH_PARTS and quantity is not None:
            return quantity, every - {word}
    for size in range(len(base) - 1, 0, -1):
        for first in range(len(base) - size, -1, -1):
            used = frozenset(base[first : first + size])
            quantity = lexicon.MEANINGS.get(used)
            if quantity is not None and quantity in lexicon.WITH_PARTS:
                return quantity, used
    return None


# A name of a metric → its role: quantity, phase, part, statistic and unit.

MAX_NAME = 200
"""Characters of a name that is parsed: a longer one is prose."""
MAX_WORDS = 16
LEVELS = frozenset({"", "mean", "last", "ema", "sum", "median"})
"""Statistics that are as large as what they are of."""
_ALSO_LEVEL = {
    Quantity.DEVICE_MEMORY: "max",
    Quantity.HOST_MEMORY: "max",
    Quantity.EXPLAINED_VARIANCE: "var",
    Quantity.GROUPS_WITHOUT_SPREAD: "std",
    Quantity.REWARD_SPREAD: "std",
}
_IN_MINUTES = frozenset({Quantity.ELAPSED, Quantity.TIME_LEFT})
_AT_A_TIME = frozenset({"", "mean", "last", "sum"})
_OF_QUANTITIES = frozenset({"loss", "em", "exact", "reward", "per", *lexicon.NEGATED, *lexicon.RATES}).union(
    *lexicon.MEANINGS,
    *lexicon.ALONE,
    *lexicon.TIMED,
    lexicon.NAMED_LOSSES,
    lexicon.PARTS_OF_A_LOSS,
    lexicon.METHODS,
)
_NAMING = _OF_QUANTITIES.union(
    *(
        phrase
        for phrase, meaning in lexicon.PHRASES.items()
        if meaning not in ("eval", "spreadless", "truncated") and _OF_QUANTITIES.isdisjoint(phrase)
    )
)
"""Each name with a role has one of these words: most words of a text are none of them."""
_IN_IDIOMS = frozenset(chunk for name in IDIOMS for chunk in chunks_in(name))
_IN_GROUPS = frozenset({"group", "in", "within"})
_PLACES = lexicon.NAMESPACES | {"loss", "losses"}
_SPREADS = frozenset({"std", "var", "cos", "cosine", "sparsity", "snr"})
_GRADIENTS = frozenset({"grad", "grads", "gradient", "gradients"})
_PARTS = lexicon.PARTS_OF_A_MODEL | {"first", "last"}
_SUMMANDS = (lexicon.NAMED_LOSSES | lexicon.PARTS_OF_A_LOSS) | lexicon.all_of(
    "loss nll mse mae l1 l2 dice iou kl adv cross entropy total ssim lpips"
)
"""What losses are called in a sum of them, or behind an L."""
_POWER = regex(r"(?P<name>.*?\w)[ _]*(?:[x×*·] ?|[(\[][x×*]?)(?P<power>1e[+-]?\d{1,2})[)\]]?")
_LETTER = regex(r"(?:(?P<phase>[A-Za-z]+)[_ ])?L_(?P<part>[A-Za-z_0-9]+)")
_OF_A_UNIT = regex(r"[gm]i?b\b|_[gm]i?b(?:_|$)|%|pct|percent")
"""Units that tell what a name is where no word does: "GB peak", `gpu%`."""
_MARK = regex(r"[/:.]")
_PATH = regex(r"[^\W\d]\w*\.(?:\w+\.)*[^\W\d]\w*|[^\W\d]\w*\.\d+(?=\.|$)")
"""The path of a module in a model: names with dots between them."""
_LEAST_OF_A_PATH = 6
"""Segments of a name besides the path of a module, and one more."""
_OF_A_LEARNER = regex(r"^(?:info/)?learners?/[^/]+/(?:learner_stats/)?(?=.)", needs="learner")
"""RLlib: the name of the policy that is learned."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a metric is, as its name says.

    Args:
        quantity: What is measured.
        phase: "eval" for evaluation on held-out data, "train" where the name says so, else "".
        part: The part, such as a layer, a class, a component of the loss; "" for the whole.
        statistic: "mean", "max", "std", …; "" where the name says none.
        unit: The unit of the logged values as the name gives it, "" if it does not.
        factor: What logged values are multiplied by: times are in seconds, memory in GiB, shares of one.
        namespace: Leading words that are not understood; the reading holds if no other column claims the role.
        extra: Words beyond the barest name of the role: of two columns, the plainer is the metric.
    """

    quantity: Quantity
    phase: str = ""
    part: str = ""
    statistic: str = ""
    unit: str = ""
    factor: float = 1.0
    namespace: str = ""
    extra: int = 0

    @property
    def is_level(self) -> bool:
        """Whether it is a level rather than a spread or an extreme."""
        return self.statistic in LEVELS or self.statistic == _ALSO_LEVEL.get(self.quantity)

    @property
    def is_whole(self) -> bool:
        """Whether it is the level of the quantity itself, not of a part."""
        return not self.part and self.is_level

    @property
    def is_evaluation(self) -> bool:
        """Whether it was measured on held-out data."""
        return self.phase == "eval"

    @property
    def name(self) -> str:
        """The canonical name of its series, "" if the column keeps the name that it was logged with."""
        if not self.is_whole or not self.quantity.is_named or (self.quantity.is_memory and self.unit in lexicon.SHARES):
            return ""
        return f"eval_{self.quantity}" if self.is_evaluation else str(self.quantity)

    @property
    def read_in(self) -> str:
        """The unit of the values as they are read, where the name gives another: "GiB" of "mem (MiB)"; else ""."""
        if not self.unit or not self.name or self.factor == 1.0:
            return ""
        if self.unit in lexicon.SHARES:
            return "shares of 1"
        if self.quantity.is_memory:
            return "GiB"
        if self.quantity.is_duration:
            return "s"
        return "1/s" if self.unit in lexicon.SECONDS else "ones"


_OF_A_NETWORK = regex(r"(?<![A-Za-z])(q|critic|value|policy|actor)[-_ ]net(?:work)?(?=[-_ ]loss)", re.IGNORECASE)
"""The loss of a network is that of what it learns: "Q-network loss"."""


@lru_cache(maxsize=16384)
def role_of(name: str) -> Role | None:
    """Return the role that a name has by itself, None if it is not understood."""
    if len(name) > MAX_NAME or name.startswith(lexicon.SET_ASIDE) or not name.strip():
        return None
    written, power = _without_power(plain(name))
    written = _OF_A_NETWORK.sub(r"\1", written) if "net" in written else written
    if not may_mean(written) and _OF_A_UNIT.search(written.lower()) is None:
        return None
    if power != 1.0 and (role := _parsed(written)) is not None:
        return replace(role, factor=role.factor * power)
    known = _OF_A_LEARNER.sub("", normal(name))
    if known not in IDIOMS and not lexicon.STATISTICS.keys().isdisjoint(words := known.split("_")):
        known = "_".join(lexicon.STATISTICS.get(word, word) for word in words)  # "reward_stddev" is "reward_std"
    if known in IDIOMS:
        quantity, phase, factor = IDIOMS[known]
        return Role(quantity, phase, factor=factor, extra=MAX_WORDS) if quantity is not None else None
    role = (
        _sum_of_losses(written)
        or _of_letter(written)
        or _parsed(written)
        or _idiom_inside(known)
        or _rate_of_schedule(name)
        or _gradient_of(name)
    )
    is_norm_of_step = "|" in name and role is not None and role.quantity.is_counter  # "|dE/dw|it" counts nothing
    return None if is_norm_of_step else role


def _without_power(name: str) -> tuple[str, float]:
    """Return a name without the power of ten that its values are given in, and that.

    "lr x1e-4", "lr(1e-3)", "lr [1e-3]".
    """
    match = _POWER.fullmatch(name) if "1e" in name else None
    if match is None:
        return name, 1.0
    power = float(match["power"])
    return match["name"], power if power <= 1 else 1 / power  # "lr*1e5" is five powers too large


def _sum_of_losses(name: str) -> Role | None:
    """Return the role of a loss that is named by its summands: `trn bce+dice`."""
    if "+" not in name.strip("+") or "/" in name:
        return None
    words = sorted_out(segments_of(name))
    summed = len(words.base) > 1 and set(words.base) <= _SUMMANDS
    return Role(Quantity.LOSS, words.phase, " ".join(words.base), extra=1) if summed else None


def _of_letter(name: str) -> Role | None:
    """Return the role of a part of a loss that is called L: `L_box`."""
    place, _, last = name.rpartition("/")
    match = _LETTER.fullmatch(last) if "L_" in last else None
    if match is None or not set(base := words_in(match["part"])) <= _SUMMANDS:
        return None
    phase = sorted_out(segments_of(f"{place}/{match['phase'] or ''}")).phase
    return Role(Quantity.LOSS, phase, " ".join(base), extra=1)


def _gradient_of(name: str) -> Role | None:
    """Return the role of what stands below the gradient and names a part of a model: `grad/first_layer`."""
    place, *parts = re.split(r"[/_.]", name, maxsplit=1)
    part = "".join(parts)
    words = words_in(part)
    if place.lower() not in _GRADIENTS or not part or _PARTS.isdisjoint(words) or words[0] in _SPREADS:
        return None
    return Role(Quantity.GRADIENT_NORM, part=part, extra=1)


def _rate_of_schedule(name: str) -> Role | None:
    """Return the role of a rate that the name of its schedule stands behind, as in Paddle: `lr(LinearWarmup)`."""
    bare, bracket, _ = name.partition("(")
    role = _parsed(bare) if bracket and name.endswith(")") else None
    return role if role is not None and role.quantity is Quantity.LEARNING_RATE else None


def _idiom_inside(known: str) -> Role | None:
    """Return the role of an idiom that stands in a place which says nothing: `train/dt`."""
    place, _, inside = known.rpartition("/")
    if not place or inside not in IDIOMS:
        return None
    quantity, phase, factor = IDIOMS[inside]
    phases = {lexicon.PHASES.get(part, "" if part in _PLACES else part) for part in place.split("/")}
    if not phases <= {"", phase or "train"}:
        return None
    return Role(quantity, phase, factor=factor, extra=MAX_WORDS + 1) if quantity is not None else None


def _parsed(name: str) -> Role | None:
    """Return the role that the words of a name make, None if they are not understood."""
    found = _read(name)
    if found is not None and found.quantity is Quantity.REWARD and found.statistic == "std":
        in_groups = "group" in words_in(name) and set(found.part.split()) <= _IN_GROUPS
        if in_groups or not (found.part or name.isascii()):
            return replace(found, quantity=Quantity.REWARD_SPREAD, part="")
    return found if found is not None and not found.part else _of_a_module(name) or found


def _read(name: str) -> Role | None:
    segments = segments_of(name)
    if not segments or sum(map(len, segments)) > MAX_WORDS:
        return None
    ending = _unit_last(segments)
    if ending[-1][-1] in lexicon.SHORT_UNITS and (found := _in_short_unit(ending)) is not None:
        return found
    return _role(sorted_out(segments))


def may_mean(text: str) -> bool:
    """Say whether a name in a text may have a role by itself: a negative answer takes a fraction of the time."""
    return any(map(_is_of_names, chunks_in(text)))


@lru_cache(maxsize=16384)
def _is_of_names(chunk: str) -> bool:
    return chunk.lower() in _IN_IDIOMS or not _NAMING.isdisjoint(words_in(chunk))


def normal(name: str) -> str:
    """Return a name in lower case, with runs of spaces and hyphens as underscores."""
    if name.islower() and " " not in name and "-" not in name:
        return name
    joined = re.sub(r"[\s\-]+", "_", name.strip().lower())
    return joined.replace("._", "_").replace("_/_", "/")  # "Val. Loss", "Loss / Policy loss"


def _of_a_module(name: str) -> Role | None:
    """Return the role of a quantity of a part of the model that is named by its path: `grad_norm/layers.0.mlp`."""
    if _PATH.search(name) is None:
        return None
    pieces, marks = _MARK.split(name), _MARK.findall(name)
    for used in range(1, min(_LEAST_OF_A_PATH, len(pieces))):
        for first in range(used, -1, -1):
            last = len(pieces) - (used - first)
            words = sorted_out(
                [segment for piece in (*pieces[:first], *pieces[last:]) for segment in segments_of(piece)]
            )
            found = all_of(frozenset(words.base), words) if words.base else None
            if found is None or found.quantity not in lexicon.BY_MODULE or words.phases:
                continue
            if found.quantity is Quantity.WEIGHT_NORM and not _GRADIENTS.isdisjoint(map(str.lower, pieces[first:last])):
                continue  # `gradients/layers.0.weight_norm`: the norm of the gradient of a weight
            part = "".join(a + b for a, b in zip(pieces[first:last], [*marks[first : last - 1], ""], strict=True))
            return Role(found.quantity, words.phase, part, words.statistic, extra=found.extra + words.extra)
    return None


def _unit_last(segments: list[list[str]]) -> list[list[str]]:
    """Return the words of a name with the unit at the end, where a phase stands behind it: `data_time_s_train`."""
    *before, unit, phase = ["", "", *segments[-1]]
    if unit not in lexicon.SHORT_UNITS or phase not in lexicon.PHASES.values():
        return segments
    return [*segments[:-1], [*filter(None, before), phase, unit]]


def _in_short_unit(segments: list[list[str]]) -> Role | None:
    """Read the last word as a unit that is another word elsewhere: "(s)", `_m`, `_g`."""
    before = segments[-1][:-1]
    unit = segments[-1][-1]
    words = sorted_out([segment for segment in (*segments[:-1], before) if segment])
    if words.unit:
        return None
    words.unit = unit
    if unit in lexicon.SECONDS:
        words.per_time = is_per_time(segments[-1], len(before), words.base)
    found = _role(words)
    if unit == "min" and not words.per_time and found is not None and found.quantity not in _IN_MINUTES:
        return None  # the least of them
    return found


def _role(words: Words) -> Role | None:
    """Return the role of sorted words, None if some of them are not understood."""
    if not words.base and words.statistic == "max" and words.unit in lexicon.GIB and len(words.unit) > 1:
        return Role(Quantity.DEVICE_MEMORY, "", "", "max", words.unit, lexicon.GIB[words.unit], extra=2)  # "GB peak"
    if not words.base or words.phases:
        return None
    found = rate(words) if words.per_time else whole(words) or of_a_part(words) or called_by_name(words)
    if found is None or _is_another(found.quantity, words):
        return None
    quantity, part, namespace, extra = found
    if quantity.is_memory and "utilisation" in words.base:
        words.unit = words.unit or "%"
    factor = factor_of(quantity, words.unit)
    if factor is None or not _can_be(quantity, words.statistic) or (quantity.is_counter and words.phase_follows):
        return None
    if words.numbers:
        numbered = _numbered(quantity, words.numbers)
        if numbered is None:
            return None
        part, extra = f"{part} {numbered}".strip(), extra + len(words.numbers)
        if quantity is Quantity.LEARNING_RATE:
            extra += int(words.numbers[0][:6])  # the first group of parameters stands for all
    return Role(
        quantity,
        words.phase,
        part,
        words.statistic,
        words.unit,
        factor * words.sign,
        namespace,
        extra + words.extra + (words.phase == "train"),
    )


def _is_another(quantity: Quantity, words: Words) -> bool:
    """Say whether words next to those of a quantity make another of it, which goes by the same name."""
    if quantity is Quantity.LOSS and words.base[-1] == "score":
        return True
    if quantity is not Quantity.LEARNING_RATE and {"learning", "rate"} <= set(words.base):
        return True  # `lr_critic`
    return not lexicon.OTHERS.get(quantity, frozenset()).isdisjoint(words.base)


def _numbered(quantity: Quantity, numbers: list[str]) -> str | None:
    """Return which part the numbers in a name make of a quantity, "" if none; None where it cannot have any."""
    if quantity in (Quantity.LEARNING_RATE, Quantity.REWARD, Quantity.EPISODE_LENGTH):
        return ""  # of a group of parameters, or of episodes that are averaged
    if quantity not in lexicon.INDEXED and quantity not in lexicon.WITH_PARTS:
        return None
    if quantity is Quantity.GRADIENT_NORM and numbers == ["2", "0"]:
        return ""  # the order of the norm
    return "" if all(number == lexicon.WHOLE_INDICES.get(quantity) for number in numbers) else " ".join(numbers)


def factor_of(quantity: Quantity, unit: str) -> float | None:
    """Return what values in a unit are multiplied by, None if the quantity cannot be measured in it."""
    if not unit:
        return 1.0
    if unit in lexicon.SECONDS and (quantity.is_duration or quantity is Quantity.TIMESTAMP):
        return lexicon.SECONDS[unit]
    if unit in lexicon.SECONDS and (quantity in lexicon.COUNTED or quantity is Quantity.FLOPS):
        return 1.0 / lexicon.SECONDS[unit]
    if quantity.is_memory and unit in lexicon.GIB:
        return lexicon.GIB[unit]
    if unit in lexicon.SHARES and (quantity.is_share or quantity.is_memory or quantity is Quantity.PERCENTAGE_ERROR):
        return 1.0 if quantity is Quantity.PERCENTAGE_ERROR else lexicon.SHARES[unit]
    counts = quantity.is_counter or quantity in lexicon.COUNTED
    return lexicon.THOUSANDS[unit] if unit in lexicon.THOUSANDS and counts else None


def _can_be(quantity: Quantity, statistic: str) -> bool:
    """Say whether a quantity has a statistic: `max_steps` and `min_lr` are settings."""
    if quantity.is_counter or quantity in (Quantity.LEARNING_RATE, Quantity.BATCH_SIZE):
        return statistic in _AT_A_TIME
    return True


# Names that the user explains, for what no grammar can know: `L` is the loss.

TARGETS: Mapping[str, Role] = {
    name: Role(quantity, phase)
    for quantity in Quantity
    if quantity.is_named
    for phase, name in (("", str(quantity)), ("eval", f"eval_{quantity}"))
    if not phase or quantity.is_result
}
"""What the user can say that a name is: canonical names of metrics, those of evaluation with `eval_`."""

_given: ContextVar[Mapping[str, Role]] = ContextVar("given", default=MappingProxyType({}))


def given_role(name: str) -> Role | None:
    """Return the user's meaning of a name, None if nothing."""
    return _given.get().get(name)


def are_given() -> bool:
    """Say whether the user gave meanings of names."""
    return bool(_given.get())


@contextmanager
def given_names(names: Mapping[str, str]) -> Iterator[None]:
    """Read names as the user says, such as {"L": "loss"}, for as long as the block runs.

    Raises:
        InputError: a target is not a canonical name.
    """
    wrong = [target for target in names.values() if target not in TARGETS]
    if wrong:
        raise InputError(
            f"{shorten(wrong[0], 60)!r} is not a metric that a name can stand for; allowed are {', '.join(TARGETS)}"
        )
    token = _given.set({name: TARGETS[target] for name, target in names.items()})
    try:
        yield
    finally:
        _given.reset(token)
