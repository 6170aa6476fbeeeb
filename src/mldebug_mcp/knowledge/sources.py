"""The knowledge files become the catalogue. These are PLAYBOOK.md, references, evidence and tables."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError

from mldebug_mcp.core.errors import CatalogueError
from mldebug_mcp.knowledge.catalogue import CAUSES as TABLE_OF_CAUSES
from mldebug_mcp.knowledge.catalogue import (
    FOLDER,
    LINKS,
    Catalogue,
    Menu,
    MenuItem,
    Quote,
    Source,
    read_cause_rows,
    read_links,
)
from mldebug_mcp.knowledge.playbook import (
    CAUSES,
    FILE,
    FURTHER,
    MORE,
    Block,
    Section,
    cited,
    fail,
    parse_blocks,
    read_causes,
    read_sections,
)

# The menus of PLAYBOOK.md: what to think of, by situation.
#
# A menu stands under `## menu_id`: a paragraph on the situation, `**First:**` the first check, and a list of what is
# seen, a colon, and ids of causes. references/causes.md may have further quotes on it.


MENUS = "Menus"
"""The part of the files that holds the menus."""

_FIRST = "**First:**"
_ITEM = re.compile(r"(?P<seen>.+): (?P<causes>\w+(?:, \w+)*)")


def read_menus(sections: Sequence[Section], further: Sequence[Section] = ()) -> list[Menu]:
    """Return the menus in file order; raises CatalogueError where a section breaks the grammar."""
    by_id = {section.id: section for section in further}
    return [_menu(section, by_id.get(section.id)) for section in sections]


def _menu(section: Section, further: Section | None) -> Menu:
    paragraphs = [block.text for block in section.blocks if block.kind == "paragraph"]
    items = tuple(_item(section, block) for block in section.blocks if block.kind == "item")
    if len(paragraphs) != 2 or not paragraphs[1].startswith(_FIRST) or not items:
        fail(section, section.heading, f"{section.id}: a menu is a paragraph, `{_FIRST}` and a list")
    if further is not None:
        further.labelled((MORE,))
    return Menu(
        id=section.id,
        summary=paragraphs[0],
        first=paragraphs[1].removeprefix(_FIRST).strip(),
        items=items,
        quotes=tuple(dict.fromkeys((*cited(section), *(cited(further) if further else ())))),
        markdown=section.markdown,
    )


def _item(section: Section, block: Block) -> MenuItem:
    item = _ITEM.fullmatch(block.text)
    if item is None:
        fail(section, block, "an item of a menu is what is seen, a colon, and ids of causes")
    return MenuItem(seen=item["seen"], causes=tuple(item["causes"].split(", ")))


# `evidence/<source>.md` → Source and its quotes. `evidence/README.md` describes the grammar.


_SOURCE_FIELDS = frozenset({"authors", "year", "url", "licence", "kind", "regime", "accessed", "notes"})
_QUOTE_FIELDS = frozenset(
    {"locator", "topics", "domains", "situations", "generality", "verified against", "grade", "sha256"}
)
_LISTS = frozenset({"topics", "domains", "situations"})
_TYPOGRAPHIC = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u00a0": " "}
)


def normalised(text: str) -> str:
    """Return a passage as quotes are compared: plain quotes and dashes, no emphasis marks, single spaces."""
    return " ".join(re.sub(r"[*_`]", "", text.translate(_TYPOGRAPHIC)).split())


def digest(text: str) -> str:
    """Return the SHA-256 of the normalised text, in hexadecimal."""
    return hashlib.sha256(normalised(text).encode()).hexdigest()


def read_evidence(folder: Path) -> Iterator[Quote]:
    """Yield the quotes of every record in a folder; raises CatalogueError where one breaks the grammar."""
    for path in sorted(folder.glob("*.md")):
        if path.name != "README.md":
            yield from _read_record(path)


def _read_record(path: Path) -> Iterator[Quote]:
    file = f"evidence/{path.name}"
    blocks = parse_blocks(path.read_text(encoding="utf-8"))
    if not blocks or blocks[0].kind != "heading" or blocks[0].level != 1:
        raise CatalogueError(file, 1, "a record begins with `# ` and the title of the source")
    sections = [list(section) for _, section in groupby(blocks, key=_Sections())]
    head, *quotes = sections
    try:
        source = Source.model_validate(
            {"id": path.stem, "title": blocks[0].text, **_fields(file, head, _SOURCE_FIELDS)}
        )
    except ValidationError as error:
        raise CatalogueError(file, 1, _first_problem(error)) from None
    if not quotes:
        raise CatalogueError(file, 1, "a record holds at least one quote under a `## id` heading")
    for section in quotes:
        yield _quote(file, section, source)


class _Sections:
    """Numbers the blocks by the second-level heading that they stand under."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, block: Block) -> int:
        self.number += block.kind == "heading" and block.level == 2
        return self.number


def _quote(file: str, section: Sequence[Block], source: Source) -> Quote:
    heading = section[0]
    texts = [block.text for block in section if block.kind == "quote"]
    if len(texts) != 1:
        raise CatalogueError(file, heading.line, f"{heading.text} needs exactly one blockquote, it has {len(texts)}")
    values = _fields(file, section, _QUOTE_FIELDS)
    fields: dict[str, object] = {key.replace(" ", "_"): value for key, value in values.items()}
    fields |= {key: tuple(filter(None, map(str.strip, values.get(key, "").split(",")))) for key in _LISTS}
    try:
        return Quote.model_validate({"id": heading.text, "source": source, "text": texts[0], **fields})
    except ValidationError as error:
        raise CatalogueError(file, heading.line, f"{heading.text}: {_first_problem(error)}") from None


def _fields(file: str, blocks: Sequence[Block], allowed: frozenset[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for block in blocks:
        if block.kind != "item":
            continue
        name, colon, value = block.text.partition(":")
        if not colon or name not in allowed:
            raise CatalogueError(
                file, block.line, f"{name!r} is not a field here; allowed are {', '.join(sorted(allowed))}"
            )
        if name in fields:
            raise CatalogueError(file, block.line, f"{name!r} is there twice")
        fields[name] = value.strip()
    return fields


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}"


# The knowledge files (PLAYBOOK.md, references/causes.md, evidence and tables) → the catalogue.
#
# They are read when the package is built, and in an editable install when they have changed.


def read_catalogue(folder: Path, tables: Path = FOLDER) -> Catalogue:
    """Read the knowledge files in a folder, and the tables.

    Raises:
        CatalogueError: a file breaks its grammar or cites what is not there.
    """
    quotes, links, rows = _quotes(folder), read_links(tables), read_cause_rows(tables)
    parts, further = read_sections(folder, FILE), read_sections(folder, FURTHER)
    causes = {entry.id: entry for entry in read_causes(parts.get(CAUSES, []), further.get(CAUSES, []), links, rows)}
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
