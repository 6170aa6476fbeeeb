"""The short forms of what the catalogue answers: an entry, an error message."""

from __future__ import annotations

from mldebug_mcp.models import ErrorExplanation, Explanation
from mldebug_mcp.text import shorten

MAX_TEXT = 5000
MAX_CITATIONS = 3
MAX_RELATED = 15


def concise_explanation(entry: Explanation) -> Explanation:
    """Return the beginning of a long entry, with some of its citations."""
    text = entry.text if len(entry.text) <= MAX_TEXT else f"{entry.text[:MAX_TEXT]}…"
    notes = list(entry.notes)
    if len(text) < len(entry.text) or len(entry.citations) > MAX_CITATIONS or len(entry.related) > MAX_RELATED:
        notes.append(
            f"{len(entry.text)} characters, {len(entry.citations)} citations, {len(entry.related)} related ids in all"
        )
    return entry.model_copy(
        update={
            "text": text,
            "citations": entry.citations[:MAX_CITATIONS],
            "related": entry.related[:MAX_RELATED],
            "notes": notes,
        }
    )


def concise_error(answer: ErrorExplanation) -> ErrorExplanation:
    """Return the likeliest match whole and the others as what they say the cause is."""
    others = [
        one.model_copy(update={"message": shorten(one.message, 80), "fix": "", "mistaken_for": ""})
        for one in answer.matches[1:]
    ]
    return answer.model_copy(update={"matches": [*answer.matches[:1], *others]})
