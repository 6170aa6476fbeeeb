"""The catalogue: everything the knowledge files hold, by id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mldebug_mcp.errors import CatalogueError
from mldebug_mcp.knowledge.entries import Cause, Quote, Source
from mldebug_mcp.knowledge.evidence import read_evidence
from mldebug_mcp.knowledge.playbook import FILE, read_playbook
from mldebug_mcp.models import Citation

_PACKAGE = Path(__file__).parent.parent


def knowledge_folder() -> Path:
    """Return where the knowledge files stand: inside an installed package, or at the root of the repository."""
    installed = _PACKAGE / "data"
    return installed if installed.is_dir() else _PACKAGE.parent.parent


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Causes, quotes and sources by id."""

    causes: Mapping[str, Cause]
    quotes: Mapping[str, Quote]
    sources: Mapping[str, Source]

    def cite(self, ids: Iterator[str] | tuple[str, ...]) -> list[Citation]:
        """Return the quotes with these ids as answers carry them."""
        return [self.quotes[quote].cite() for quote in ids]

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
                f"evidence/{quote.source.id}.md", 1, f"{quote.id} stands in {quotes[quote.id].source.id} too"
            )
        quotes[quote.id] = quote
    causes = {cause.id: cause for cause in read_playbook(folder / FILE)}
    for cause in causes.values():
        for missing in set(cause.quotes) - quotes.keys():
            raise CatalogueError(FILE, 1, f"{cause.id} cites {missing}, which no record holds")
        for missing in set(cause.mistaken_for) - causes.keys():
            raise CatalogueError(FILE, 1, f"{cause.id} is mistaken for {missing}, which has no section")
    sources = {quote.source.id: quote.source for quote in quotes.values()}
    return Catalogue(causes, quotes, sources)


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """Return the catalogue that ships with the package, read once."""
    return read_catalogue(knowledge_folder())
