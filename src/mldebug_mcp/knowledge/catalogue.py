"""The catalogue: everything the knowledge files hold, by id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mldebug_mcp.knowledge.entries import Cause, Menu, Quote, Source
from mldebug_mcp.knowledge.tables import Link
from mldebug_mcp.models import Citation


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Causes, quotes, sources and menus by id, and the links of causes and outcomes."""

    causes: Mapping[str, Cause]
    quotes: Mapping[str, Quote]
    sources: Mapping[str, Source]
    menus: Mapping[str, Menu]
    links: Sequence[Link] = ()

    def cite(self, ids: Iterator[str] | tuple[str, ...]) -> list[Citation]:
        """Return the quotes with these ids as answers carry them."""
        return [self.quotes[quote].cite() for quote in ids]

    def sides(self, cause: Cause) -> list[Quote]:
        """Return the quotes of the sources that disagree about a cause, oldest first."""
        return sorted((self.quotes[quote] for quote in cause.disagreeing), key=lambda quote: quote.source.year)

    def quotes_of(self, source: str) -> list[Quote]:
        """Return the quotes of a source in file order."""
        return [quote for quote in self.quotes.values() if quote.source.id == source]
