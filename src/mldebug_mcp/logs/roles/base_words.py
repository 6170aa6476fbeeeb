"""The words of a name that say what is measured → the quantity, and of what part."""

from __future__ import annotations

from typing import NamedTuple

from mldebug_mcp.logs.roles import lexicon, meanings
from mldebug_mcp.logs.roles.quantities import LOSSES, Quantity
from mldebug_mcp.logs.roles.words import Words

_TUNED_BY_A_LOSS = frozenset({"alpha", "beta", "lambda", "coefficient"})
"""What is a setting elsewhere, and has a loss where it is learned: `alpha_loss` of SAC."""
_LETTERS = frozenset({"q", "v", "d", "g"})
"""What critics and the networks of a GAN are called; with a number, parts of another loss."""
_BESIDE_A_REWARD = frozenset({Quantity.EPISODE_LENGTH, Quantity.COMPLETION_LENGTH})
"""What stands in a box of rewards and is none."""
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
        if inside is not None and inside.quantity in meanings.NOT_IN_A_LOSS:
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
        found = inside if inside is not None and inside.quantity in meanings.OF_ROLLOUTS else None
    if found is None:
        found = _alone(every, words)
    if found is not None and words.numbers and found.quantity in LOSSES and not _LETTERS.isdisjoint(every):
        return None  # `loss_q1`
    return found


def all_of(every: frozenset[str], words: Words) -> Read | None:
    """Return the quantity that words are together, with soft ones or without."""
    core = every - lexicon.SOFT
    if words.unit in lexicon.SECONDS:
        for attempt in (every, every - {"total", "current"}, core):
            if (timed := meanings.TIMED.get(attempt)) is not None:
                return Read(timed, extra=len(every) - len(attempt))
    for attempt in (every, every - _COUNTER_SOFT, every - {"total"}, core):
        quantity = meanings.MEANINGS.get(attempt)
        if quantity is not None and (not quantity.is_counter or every - attempt <= _COUNTER_SOFT):
            return Read(quantity, extra=len(every) - len(attempt))
    return None


def _alone(every: frozenset[str], words: Words) -> Read | None:
    """Return the quantity that words are where no other stands in the name."""
    if words.statistic not in ("", "mean"):
        return None
    for attempt in (every, every - lexicon.SOFT):
        if (quantity := meanings.ALONE.get(attempt)) is not None:
            return Read(quantity, extra=1 + len(every) - len(attempt))
    if words.phase == "eval" and every == {"τ"}:
        return Read(Quantity.CORRELATION)  # elsewhere a temperature
    if words.unit in lexicon.SHARES and (shared := meanings.SHARED.get(every)) is not None:
        return Read(shared)
    if words.unit_leads:
        return None  # "GiB GPU" of a sentence
    in_bytes = every <= meanings.IN_BYTES and words.unit in lexicon.GIB and len(words.unit) > 1
    return Read(Quantity.DEVICE_MEMORY, extra=1) if in_bytes else None


def called_by_name(words: Words) -> Read | None:
    """Return the role of a loss that is called by what it computes, without the word: `val_bce`, `aux`.

    It is a part of the loss for all that a name can say; of a log that has no other, it is the loss.
    """
    if words.base[-1] == "em":
        return Read(Quantity.ACCURACY, " ".join(words.base), extra=len(words.base))
    every = frozenset(words.base) - lexicon.SOFT
    others = every - meanings.OF_A_LOSS_TOO - meanings.NAMED_LOSSES
    if (
        words.unit
        or words.statistic not in ("", "mean", "ema", "last", "sum")
        or not lexicon.SPOILERS.isdisjoint(every)
    ):
        return None
    named = not meanings.NAMED_LOSSES.isdisjoint(words.last) and meanings.CONCEPTS.isdisjoint(others)
    if named or (len(every) == 1 and every <= meanings.PARTS_OF_A_LOSS | meanings.METHODS):
        return Read(Quantity.LOSS, " ".join(words.base), extra=len(every))
    return None


def rate(words: Words) -> Read | None:
    """Return the role of what is counted per second."""
    counted = next((one for one in reversed(words.base) if one in meanings.RATES), "")
    if not counted:
        return None
    ignored = lexicon.SOFT | {counted, "time", "throughput", "input"}
    rest = [one for one in words.base if one not in ignored]
    if rest in (["target"], ["interval"]):
        rest = []  # T5X counts the tokens that are predicted, Paddle those since it logged last
    if not lexicon.SPOILERS.isdisjoint(rest):
        return None
    return Read(meanings.RATES[counted], " ".join(rest))


def of_a_part(words: Words) -> Read | None:
    """Return the role of a quantity with words that are left: a namespace in front, or the name of a part."""
    base = list(dict.fromkeys(words.base))
    if (placed := _below(words) or _rate_of_a_group(base)) is not None:
        return placed
    found = _head(base)
    if words.leading == ["loss"] and (beside := _head(words.last)) and beside[0] in meanings.NOT_IN_A_LOSS:
        base, found = words.last, beside
    spoilers = lexicon.SPOILERS - (_TUNED_BY_A_LOSS if words.base[-1] == "loss" else set())
    if not spoilers.isdisjoint(one for one in base if found is None or one not in found[1]):
        return None
    if words.leading and words.phase != "eval" and meanings.CONCEPTS.isdisjoint(words.leading):
        inside = all_of(frozenset(words.last), words)
        if inside is not None and inside.quantity.is_named:
            return inside._replace(namespace=" ".join(words.leading), extra=inside.extra + len(words.leading))
    if found is None:
        return None
    return _with_rest(found[0], [one for one in base if one not in found[1]])


def _with_rest(quantity: Quantity, rest: list[str]) -> Read:
    """Return a quantity of what the rest of the words name."""
    if quantity is Quantity.LOSS and set(rest) & {"d", "discriminator"} and set(rest) <= _OF_OPPONENTS:
        quantity = Quantity.DISCRIMINATOR_LOSS  # `D_loss_real`
    return Read(quantity, " ".join(rest))


def _below(words: Words) -> Read | None:
    """Return the role of what stands below the reward or the learning rate."""
    if words.leading[:1] == ["reward"]:
        inside = all_of(frozenset(words.last), words)
        beside = inside is not None and inside.quantity in _BESIDE_A_REWARD
        return inside if beside else Read(Quantity.REWARD, " ".join(words.last))
    if words.leading == ["learning", "rate"] and lexicon.SPOILERS.isdisjoint(words.last):
        return Read(Quantity.LEARNING_RATE, extra=1 + len(words.last))  # kohya: that of the first of its networks
    return None


def _rate_of_a_group(base: list[str]) -> Read | None:
    """Return the role of the learning rate of some of the parameters: `lr_vit`, `last_layer_lr`."""
    if not {"learning", "rate"} < set(base):
        return None
    of = [one for one in base if one not in ("learning", "rate")]
    told = meanings.CONCEPTS - _OPPONENTS
    if not told.isdisjoint(of) or not lexicon.SPOILERS.isdisjoint(of):
        return None
    return Read(Quantity.LEARNING_RATE, " ".join(of), extra=len(of))


def _head(base: list[str]) -> tuple[Quantity, frozenset[str]] | None:
    """Return the quantity that most of the words name, and these; of several of one size the last, as in English."""
    named = [one for one in base if one not in lexicon.SOFT]
    for size in range(1, len(named)):
        ending = meanings.MEANINGS.get(frozenset(named[-size:]))
        if ending is not None and ending not in meanings.WITH_PARTS and ending not in LOSSES:
            return None  # "reward model lr" is a rate
    if "loss" in base:
        return Quantity.LOSS, frozenset({"loss"})
    if {"cross", "entropy"} <= set(base):
        return Quantity.LOSS, frozenset()
    every = frozenset(base)
    for word in base[1:-1]:  # `terminated` of "completions mean terminated length"
        if (quantity := meanings.MEANINGS.get(every - {word})) in meanings.WITH_PARTS and quantity is not None:
            return quantity, every - {word}
    for size in range(len(base) - 1, 0, -1):
        for first in range(len(base) - size, -1, -1):
            used = frozenset(base[first : first + size])
            quantity = meanings.MEANINGS.get(used)
            if quantity is not None and quantity in meanings.WITH_PARTS:
                return quantity, used
    return None
