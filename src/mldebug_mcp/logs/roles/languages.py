"""Words of metrics in other languages than English, with the English words that they mean.

Latin letters stand here without their accents, as names are read without them. Russian words are inflected: of those
the beginning stands here that all their forms share.
"""

from __future__ import annotations

from mldebug_mcp.logs.roles import word_lists
from mldebug_mcp.logs.roles.word_lists import OTHER_LANGUAGES, grouped

PHASES = grouped(OTHER_LANGUAGES["phases"])
STATISTICS = grouped(OTHER_LANGUAGES["statistics"])
SYNONYMS = grouped(OTHER_LANGUAGES["synonyms"])
"""Word → what it means, beside `lexicon.SYNONYMS`."""

STEMS = grouped(OTHER_LANGUAGES["stems"])
"""Beginning of a Russian word → what it means."""

COMPOUNDED = tuple(word_lists.COMPOUNDED.split())
"""Words at whose beginning others may stand in one word, whatever these are: `Rekonstruktionsverlust`, 均衡损失."""
MOST_OF_AN_ENDING = 6
"""Letters by which a Russian word may be longer than its stem; chosen by hand."""
MOST_OF_A_STEM = max(map(len, STEMS))
LEAST_INFLECTED = 3
"""Letters of a stem from which on it may have an ending: a shorter one is an abbreviation that stands alone."""
