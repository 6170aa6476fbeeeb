"""The knowledge files (PLAYBOOK.md, references/causes.md, evidence and tables) → the catalogue.

They are read when the package is built, and in an editable install when they have changed.
"""

from __future__ import annotations

from pathlib import Path

from mldebug_mcp.errors import CatalogueError
from mldebug_mcp.knowledge.catalogue import Catalogue
from mldebug_mcp.knowledge.entries import Quote
from mldebug_mcp.knowledge.evidence import read_evidence
from mldebug_mcp.knowledge.menus import MENUS, read_menus
from mldebug_mcp.knowledge.playbook import CAUSES, FILE, FURTHER, cited, fail, read_causes, read_sections
from mldebug_mcp.knowledge.tables import CAUSES as TABLE_OF_CAUSES
from mldebug_mcp.knowledge.tables import FOLDER, LINKS, read_cause_rows, read_links


def read_catalogue(folder: Path, tables: Path = FOLDER) -> Catalogue:
    """Read the knowledge files in a folder, and the tables.

    Raises:
        CatalogueError: a file breaks its grammar or cites what is not there.
    """
    quotes, links, rows = _quotes(folder), read_links(tables), read_cause_rows(tables)
    parts, further = read_sections(folder, FILE), read_sections(folder, FURTHER)
    causes = {one.id: one for one in read_causes(parts.get(CAUSES, []), further.get(CAUSES, []), links, rows)}
    menus = {menu.id: menu for menu in read_menus(parts.get(MENUS, []), further.get(MENUS, []))}
    for line, link in enumerate(links, start=2):
        if link.cause not in causes:
            raise CatalogueError(LINKS, line, f"{link.cause} has no page in {FILE}")
        for missing in set(link.quotes) - quotes.keys():
            raise CatalogueError(LINKS, line, f"{link.cause} and {link.outcome} cite {missing}, which no record holds")
    for line, (cause, row) in enumerate(rows.items(), start=2):
        for missing in {cause, *row.mistaken_for} - causes.keys():
            raise CatalogueError(TABLE_OF_CAUSES, line, f"{missing} has no page in {FILE}")
    for section in (section for part in (*parts.values(), *further.values()) for section in part):
        for missing in set(cited(section)) - quotes.keys():
            fail(section, section.heading, f"{section.id} cites {missing}, which no record holds")
    for section in parts.get(MENUS, []):
        for missing in set(menus[section.id].causes) - causes.keys():
            fail(section, section.heading, f"{section.id} names {missing}, which has no page")
    sources = {quote.source.id: quote.source for quote in quotes.values()}
    return Catalogue(causes, quotes, sources, menus, links)


def _quotes(folder: Path) -> dict[str, Quote]:
    quotes: dict[str, Quote] = {}
    for quote in read_evidence(folder / "evidence"):
        if quote.id in quotes:
            other = quotes[quote.id].source.id
            raise CatalogueError(f"evidence/{quote.source.id}.md", 1, f"{quote.id} is in {other} too; ids are unique")
        quotes[quote.id] = quote
    return quotes
