"""The catalogue: everything the knowledge files hold, by id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mldebug_mcp.errors import CatalogueError
from mldebug_mcp.files import knowledge_folder
from mldebug_mcp.knowledge.entries import Cause, Menu, Quote, Source
from mldebug_mcp.knowledge.evidence import read_evidence
from mldebug_mcp.knowledge.menus import MENUS, read_menus
from mldebug_mcp.knowledge.playbook import CAUSES, FILE, read_causes, read_sections
from mldebug_mcp.models import Citation


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Causes, quotes, sources and menus by id."""

    causes: Mapping[str, Cause]
    quotes: Mapping[str, Quote]
    sources: Mapping[str, Source]
    menus: Mapping[str, Menu]

    def cite(self, ids: Iterator[str] | tuple[str, ...]) -> list[Citation]:
        """Return the quotes with these ids as answers carry them."""
        return [self.quotes[quote].cite() for quote in ids]

    def sides(self, cause: Cause) -> list[Quote]:
        """Return the quotes of the sources that disagree about a cause, oldest first."""
        return sorted((self.quotes[quote] for quote in cause.disagreeing), key=lambda quote: quote.source.year)

    def quotes_of(self, source: str) -> list[Quote]:
        """Return the quotes of a source in file order."""
        return [quote for quote in self.quotes.values() if quote.source.id == source]


def read_catalogue(folder: Path) -> Catalogue:
    """Read the knowledge files in a folder.

    Raises:
        CatalogueError: a file breaks its grammar or cites what is not there.
    """
    quotes: dict[str, Quote] = {}
    for quote in read_evidence(folder / "evidence"):
        if quote.id in quotes:
            raise CatalogueError(
                f"evidence/{quote.source.id}.md",
                1,
                f"{quote.id} is in {quotes[quote.id].source.id} too; ids are unique",
            )
        quotes[quote.id] = quote
    parts = read_sections(folder / FILE)
    causes = {cause.id: cause for cause in read_causes(parts.get(CAUSES, []))}
    menus = {menu.id: menu for menu in read_menus(parts.get(MENUS, []))}
    entries: list[Cause | Menu] = [*causes.values(), *menus.values()]
    for entry in entries:
        for missing in set(entry.quotes) - quotes.keys():
            raise CatalogueError(FILE, 1, f"{entry.id} cites {missing}, which no record holds")
        linked = entry.mistaken_for if isinstance(entry, Cause) else entry.causes
        for missing in set(linked) - causes.keys():
            raise CatalogueError(FILE, 1, f"{entry.id} names {missing}, which has no section")
    sources = {quote.source.id: quote.source for quote in quotes.values()}
    return Catalogue(causes, quotes, sources, menus)


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """Return the catalogue that ships with the package, read once."""
    return read_catalogue(knowledge_folder())
