"""Which quotes go with a hypothesis: those on what is seen in this run, in the domain of this run."""

from __future__ import annotations

from collections.abc import Collection

from mldebug_mcp.knowledge import Cause, Quote, catalogue

MAX_CITATIONS = 3
SPECIAL = frozenset({"rl", "vision", "diffusion", "vlm"})
"""Domains whose practice says little on runs of another one."""
DOMAINS = {
    "pretraining": frozenset({"llm"}),
    "sft": frozenset({"llm", "vlm"}),
    "preference": frozenset({"llm", "rl"}),
    "grpo": frozenset({"llm", "rl"}),
    "ppo": frozenset({"llm", "rl"}),
    "rl": frozenset({"rl"}),
    "supervised": frozenset({"vision", "vlm"}),
    "diffusion": frozenset({"diffusion", "vision"}),
}
"""By kind of run: the domains that it may belong to."""


def quotes_for(cause: Cause, seen: Collection[str], kind: str) -> tuple[str, ...]:
    """Return the ids of the quotes to show with a cause, at most `MAX_CITATIONS`.

    A section cites quotes for single symptoms and for the cause as a whole. One on a symptom that is not seen would
    read as if it were, so it is left out. So is one of another domain; where the kind of run is not known, only if
    there is another quote.

    Args:
        cause: The cause.
        seen: The symptoms that speak for it.
        kind: Kind of run.
    """
    shown = [quote for effect in cause.effects if effect.symptom in seen for quote in effect.quotes]
    elsewhere = {quote for effect in cause.effects for quote in effect.quotes} - set(shown)
    asked = list(dict.fromkeys([*shown, *(quote for quote in cause.quotes if quote not in elsewhere)]))
    known = catalogue().quotes
    fitting = [quote for quote in asked if _fits(known[quote], kind)]
    return tuple(fitting if fitting or kind in DOMAINS else asked)[:MAX_CITATIONS]


def _fits(quote: Quote, kind: str) -> bool:
    """Say whether a quote may be about such a run: of a kind that nobody knows, one that is special is not."""
    domains = set(quote.domains)
    return "general" in domains or bool(domains & DOMAINS.get(kind, frozenset())) or not domains & SPECIAL
