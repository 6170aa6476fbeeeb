"""Which setting a key names: by the words of its last part, and of the parts around it where those are not enough.

`optimizer.lr`, `train.optim.learningRate`, `--learning-rate` and `LR` are one setting. A key is split at everything
other than a letter, and at the humps of camel case; abbreviations become words; empty words are dropped. What
is left has to be a phrase of `vocabulary`, whole: `lr_scale` is not the rate. A phrase may be spread over the parts
(`warmup: {steps: 100}`). Under a part that speaks of something else, `reward_model.lr`, nothing is the run's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.names.lexicon import SETTING_LISTS, SETTING_SYNONYMS, SETTINGS, all_of

# The settings that are known: canonical name, kind of value, and the phrases that name them, from `words.json`.
#
# Canonical names are those of Transformers' TrainingArguments and TRL's configurations where these have one. Only base
# words and true synonyms are listed: order, case, separators, plurals, abbreviations (`SYNONYMS`) and words that say
# nothing (`FILLERS`) are the grammar's. A phrase with "=" in front is so general that it holds only where nothing
# around it speaks of something else; one with "?" is, besides, believed only where no other key names the setting.

NUMBER, FLAG, TEXT, ANY = "number", "flag", "text", "any"
"""Kinds of values, besides "list"."""


class KnownSetting(NamedTuple):
    """A setting that is known: the kind of its value, and the phrases that name it besides its own name."""

    kind: str
    phrases: tuple[str, ...] = ()


def _known_setting(text: str) -> KnownSetting:
    """Return what "number: max lr, peak lr" says of a setting."""
    kind, _, phrases = text.partition(": ")
    return KnownSetting(kind, tuple(phrases.split(", ")) if phrases else ())


SYNONYMS = {word: tuple(meaning.split()) for meaning, words in SETTING_SYNONYMS.items() for word in words.split()}
"""Abbreviations and other words for the same, each with the words that stand for it."""

PLURALS_OF_THEIR_OWN = all_of(SETTING_LISTS["plurals_of_their_own"])
"""Words that mean something else without their s."""

FILLERS = all_of(SETTING_LISTS["fillers"])
"""Words that say nothing."""

NEUTRAL = FILLERS | all_of(SETTING_LISTS["neutral"])
"""Words around a key that leave it what it is."""

FOREIGN = all_of(SETTING_LISTS["foreign"])
"""Words of a part below which nothing is a setting of the training itself."""

OWN = all_of(SETTING_LISTS["own"])
"""... unless one of these stands with them: verl's `actor_rollout_ref`."""

OPTIMIZERS = all_of(SETTING_LISTS["optimizers"])
"""Names of optimizers, which may stand for their learning rate: `adam: 0.002`."""

PHRASES = {name: _known_setting(text) for settings in SETTINGS.values() for name, text in settings.items()}
"""Canonical name → what is known of the setting."""


_WORD = regex(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+")
_PARTS = regex(r"[/.]+(?!\d+\b)")
_IN_BRACKETS = regex(r"\([^()]{0,200}\)")
MAX_KEY = 200


class Match(NamedTuple):
    """The setting that a key names.

    Args:
        name: Its canonical name.
        words: Words of the phrase: the more, the plainer the key.
        weak: The phrase may mean something else, so that a plainer key stands before it.
    """

    name: str
    words: int
    weak: bool


class _Phrase(NamedTuple):
    name: str
    words: frozenset[str]
    generic: bool
    weak: bool


def words_of(part: str) -> list[str]:
    """Return the words of one part of a key, in lower case, abbreviations written out and plurals made singular."""
    found: list[str] = []
    for word in _WORD.findall(part):
        lower = word.lower()
        if lower.isdigit() and found:
            found[-1] += lower
            continue
        found += _written_out(lower)
    return found


@lru_cache(maxsize=20_000)
def _written_out(word: str) -> tuple[str, ...]:
    return SYNONYMS.get(word) or SYNONYMS.get(singular := _singular(word)) or (singular,)


def parts_of(key: str) -> list[str]:
    """Return the parts of a key: `a/b.c` has three; what stands in brackets is a remark."""
    return [part for part in _PARTS.split(_IN_BRACKETS.sub("", key).strip(" -+~\t")) if part]


@lru_cache(maxsize=20_000)
def settings_of(key: str, within: str = "") -> tuple[Match, ...]:
    """Return the settings that a key may name, the likeliest first; which it is depends on the value.

    Args:
        key: The key, its parts joined by "/" or ".".
        within: The name of its file, which may complete a phrase: `adapter_config.json` has the `r` of an adapter.
    """
    *around, last = parts_of(key[-MAX_KEY:]) or [""]
    words = words_of(last)
    own = frozenset(words) - FILLERS
    if not own or any(_is_foreign(part) for part in around):
        return ()
    context = frozenset(word for part in around for word in words_of(part))
    named = context or frozenset(words_of(within))  # a file is named for what stands in no section of it
    found = [*_phrases(own, context, named), *_below_a_word(words, context)]
    ordered = sorted(found, key=lambda phrase: (-len(phrase.words), phrase.weak))
    return tuple(Match(phrase.name, len(phrase.words & own), phrase.weak) for phrase in ordered)


def plain_name(key: str) -> str:
    """Return the name of a setting that is not known: its last part, where those around it say nothing."""
    *around, last = [part for part in key.split("/") if part] or [key]
    return last if all(word in NEUTRAL for part in around for word in words_of(part)) else key


def _phrases(own: frozenset[str], context: frozenset[str], named: frozenset[str]) -> Iterable[_Phrase]:
    first = min(own, key=lambda word: len(_BY_WORD.get(word, ())))
    for phrase in _BY_WORD.get(first, ()):
        if own <= phrase.words and phrase.words - own <= named:
            rest = context - phrase.words - NEUTRAL
            if not phrase.generic or all(word.isdigit() for word in rest):
                yield phrase


def _below_a_word(words: list[str], context: frozenset[str]) -> list[_Phrase]:
    """Return the phrases in a key that was joined from parts, `trainer_max_epochs`: another key may be plainer."""
    for first in range(1, len(words)):
        around = frozenset(words[:first])
        if not around <= NEUTRAL:
            break
        own = frozenset(words[first:]) - FILLERS
        found = list(_phrases(own, context | around, context | around)) if own else []
        if found:
            return [phrase._replace(weak=True) for phrase in found]
    return []


@lru_cache(maxsize=2_000)
def _is_foreign(part: str) -> bool:
    words = frozenset(words_of(part))
    return not words.isdisjoint(FOREIGN) and words.isdisjoint(OWN)


def _singular(word: str) -> str:
    if word in PLURALS_OF_THEIR_OWN or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-2] if word.endswith("sses") else word[:-1]


def _index() -> dict[str, list[_Phrase]]:
    found: dict[str, list[_Phrase]] = {}
    for name, known in PHRASES.items():
        for text in (name, *known.phrases):
            words = frozenset(words_of(text)) - FILLERS
            phrase = _Phrase(name, words, text.startswith(("=", "?")), text.startswith("?"))
            for word in words:
                found.setdefault(word, []).append(phrase)
    return found


_BY_WORD = _index()
