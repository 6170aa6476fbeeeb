"""The words of names, from the data file beside this module, and how its lists are written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

Groups = Mapping[str, str]

_FILE = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
METRICS: Groups = _FILE["metrics"]["lists"]
"""Lists of words that say one thing of a metric: name of the list → its words."""
METRIC_GROUPS: Mapping[str, Groups] = _FILE["metrics"]["groups"]
"""Tables of words of metrics: name of the table → meaning → the words that have it."""
OTHER_LANGUAGES: Mapping[str, Groups] = _FILE["languages"]["groups"]
COMPOUNDED: str = _FILE["languages"]["compounded"]
SETTING_LISTS: Groups = _FILE["settings"]["lists"]
SETTING_SYNONYMS: Groups = _FILE["settings"]["synonyms"]
SETTINGS: Mapping[str, Groups] = _FILE["settings"]["settings"]
"""Topic → canonical name of a setting → the kind of its value, and the phrases that name it."""


def all_of(words: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(words.split())


def grouped(groups: Groups) -> dict[str, str]:
    """Return word → meaning, of groups such as {"mean": "avg average"}; a meaning of one word is a word too."""
    found: dict[str, str] = {}
    for meaning, words in groups.items():
        found.update(dict.fromkeys(words.split(), meaning))
        if " " not in meaning:
            found.setdefault(meaning, meaning)
    return found


def phrases_in(groups: Groups) -> dict[frozenset[str], str]:
    """Return the words of each phrase → meaning, of groups such as {"loss": "loss, cross entropy loss"}."""
    return {frozenset(phrase.split()): meaning for meaning, phrases in groups.items() for phrase in phrases.split(", ")}
