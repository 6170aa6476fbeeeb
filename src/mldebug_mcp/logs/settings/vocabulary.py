"""The settings that are known: canonical name, kind of value, and the phrases that name them, from `words.json`.

Canonical names are those of Transformers' TrainingArguments and TRL's configurations where these have one. Only
base words and true synonyms are listed: order, case, separators, plurals, abbreviations (`SYNONYMS`) and words that say
nothing (`FILLERS`) are the grammar's. A phrase with "=" in front is so general that it holds only where nothing around
it speaks of something else; one with "?" is, besides, believed only where no other key names the setting.
"""

from __future__ import annotations

from typing import NamedTuple

from mldebug_mcp.logs.roles.word_lists import SETTING_LISTS, SETTING_SYNONYMS, SETTINGS, all_of

NUMBER, FLAG, TEXT, ANY = "number", "flag", "text", "any"
"""Kinds of values, beside "list"."""


class Known(NamedTuple):
    """A setting that is known: the kind of its value, and the phrases that name it besides its own name."""

    kind: str
    phrases: tuple[str, ...] = ()


def _known(text: str) -> Known:
    """Return what "number: max lr, peak lr" says of a setting."""
    kind, _, phrases = text.partition(": ")
    return Known(kind, tuple(phrases.split(", ")) if phrases else ())


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

PHRASES = {name: _known(text) for settings in SETTINGS.values() for name, text in settings.items()}
"""Canonical name → what is known of the setting."""
