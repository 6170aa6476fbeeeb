"""Quotes in a report: each stands once, with the first finding or hypothesis that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from mldebug_mcp.models import BatchFinding, Hypothesis
from mldebug_mcp.models.memory import MemoryFinding

Quoting = TypeVar("Quoting", BatchFinding, Hypothesis, MemoryFinding)


def quoted_once(items: Iterable[Quoting], most: int | None = None) -> list[Quoting]:
    """Return the items with those of their quotes that no earlier item has, at most `most` each."""
    told: set[str] = set()
    once = []
    for item in items:
        new = [one for one in item.citations if one.id not in told][:most]
        told.update(one.id for one in new)
        once.append(item if new == item.citations else item.model_copy(update={"citations": new}))
    return once
