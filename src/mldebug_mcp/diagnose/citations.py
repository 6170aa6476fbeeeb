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
    "preference": frozenset({"llm", "vlm"}),
    "grpo": frozenset({"llm", "rl"}),
    "ppo": frozenset({"llm", "rl"}),
    "rl": frozenset({"rl"}),
    "supervised": frozenset({"vision"}),
    "diffusion": frozenset({"diffusion", "vision"}),
}
"""By kind of run: the domains that it may belong to."""
TECHNIQUES = {
    "dpo": ("preference",),
    "rlhf": ("ppo", "grpo", "preference"),
    "grpo": ("grpo", "ppo"),
    "ppo": ("ppo", "grpo", "rl"),
}
"""Topics of quotes that say something of these kinds of run alone."""
FAR = 2


def quotes_for(cause: Cause, seen: Collection[str], kind: str, present: Collection[str] = ()) -> tuple[str, ...]:
    """Return the ids of the quotes to show with a cause, at most `MAX_CITATIONS`.

    A section cites quotes for single symptoms and for the cause as a whole. One on a symptom that is not seen would
    read as if it were, so it is left out, as is one that speaks against the cause. So is one of another domain; where
    the kind of run is not known, only if there is another quote.

    Args:
        cause: The cause.
        seen: The symptoms that speak for it.
        kind: Kind of run.
        present: All symptoms of the run: a quote filed under one of them comes before others on the cause as a whole.
    """
    shown = [quote for effect in cause.effects if effect.symptom in seen for quote in effect.quotes]
    elsewhere = {quote for effect in cause.effects for quote in effect.quotes} - set(shown)
    unfit = elsewhere | set(cause.contrary)
    whole = [quote for quote in (*cause.on_cause, *cause.quotes) if quote not in unfit]
    known = catalogue().quotes

    def fitness(quote: str) -> tuple[bool, bool, int]:
        filed = {*known[quote].topics, *known[quote].situations}
        return quote not in shown, filed.isdisjoint(present), _distance(known[quote], kind)

    ranked = sorted(dict.fromkeys([*shown, *whole]), key=fitness)
    near = [quote for quote in ranked if _distance(known[quote], kind) < FAR]
    return tuple(near if near or kind in DOMAINS else ranked)[:MAX_CITATIONS]


def _distance(quote: Quote, kind: str) -> int:
    """Return how far a quote is from such a run: 0 of its domain or of all, 1 of practice near it, `FAR` of another."""
    domains, own = set(quote.domains), DOMAINS.get(kind, frozenset({"llm"}))
    if kind not in TECHNIQUES.get(next((topic for topic in quote.topics if topic in TECHNIQUES), ""), (kind,)):
        return FAR
    if "general" in domains or domains <= own:
        return 0
    return 1 if domains & own or domains - SPECIAL else FAR
