"""PLAYBOOK.md and references/causes.md → the causes.

A page of PLAYBOOK.md stands under `## id`: a paragraph on what goes wrong, with a citation of its main claim, then
paragraphs that begin with `**Shows:**`, `**Rules it out:**`, `**Check:**` and `**Fix:**`.

references/causes.md may have a section for the same id: further checks as a numbered list, and paragraphs that begin
with `**Disagreement:**`, `**More quotes:**`, `**On the first check:**` or `**Quotes against it:**`.

A check is the action, its cost in brackets, then `Confirms:`, `Refutes:` and, where one of our tools makes it, `Call:`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, cast

from pydantic import ValidationError

from mldebug_mcp.core.errors import CatalogueError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import plain
from mldebug_mcp.knowledge.catalogue import CAUSES as TABLE_OF_CAUSES
from mldebug_mcp.knowledge.catalogue import (
    FOLDER,
    LINKS,
    Catalogue,
    Cause,
    CauseRow,
    Effect,
    Frequency,
    Link,
    Menu,
    MenuItem,
    Quote,
    Source,
    read_cause_rows,
    read_links,
    relation_weights,
)
from mldebug_mcp.models import NextStep

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# The Markdown of the knowledge files, parsed by markdown-it-py to blocks that know their line.
#
# Only block structure is parsed: text stays as it stands in the file, because a quote has to be verbatim.


_KEPT_AS_TEXT = ["code", "hr", "html_block", "lheading", "reference", "inline"]
"""What of CommonMark the knowledge files do not use, and the text inside blocks, which stays as it is."""


@dataclass(slots=True)
class Block:
    """A block of a file; blocks inside a quote are part of the quote.

    Args:
        kind: "heading", "paragraph", "quote", "item" or "code". A table is none.
        line: Its first line in the file, from 1.
        text: Its text: of a heading the title, of a quote the lines without their marks.
        level: Of a heading 1 to 6, of an item its depth from 1.
        number: Of an item of a numbered list: its number.
    """

    kind: str
    line: int
    text: str
    level: int = 0
    number: int | None = None


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # only where the files are read anew

    return MarkdownIt("commonmark").enable("table").disable(_KEPT_AS_TEXT)


def parse_blocks(text: str) -> list[Block]:
    """Return the blocks of a Markdown text in order."""
    return list(_blocks(text))


def _blocks(text: str) -> Iterator[Block]:
    lines = text.split("\n")
    quotes, tables = 0, 0
    items: list[Block] = []  # those that are open, outermost first; one that has no text yet is not given
    tokens = _parser().parse(text)
    for token, following in zip_longest(tokens, tokens[1:]):
        quotes += token.nesting * (token.type in ("blockquote_open", "blockquote_close"))
        tables += token.nesting * (token.type in ("table_open", "table_close"))
        first, end = token.map or (0, 0)
        content = " ".join(following.content.split()) if following is not None else ""
        if token.type == "blockquote_open" and quotes == 1:
            yield Block("quote", first + 1, _unquoted(lines[first:end]))
        elif quotes or tables:
            continue
        elif token.type == "list_item_open":
            number = int(token.info) if token.info else None
            items.append(Block("item", first + 1, "", len(items) + 1, number))
        elif token.type == "list_item_close":
            items.pop()
        elif token.type == "paragraph_open" and items and not items[-1].text:
            items[-1].text = content
            yield items[-1]
        elif token.type == "paragraph_open":
            yield Block("paragraph", first + 1, content, len(items))
        elif token.type == "heading_open":
            yield Block("heading", first + 1, content, int(token.tag[1:]))
        elif token.type == "fence":
            yield Block("code", first + 1, token.content)


def _unquoted(lines: list[str]) -> str:
    stripped = (line.strip().removeprefix(">").strip() for line in lines)
    return "\n".join(filter(None, stripped))


FILE = "PLAYBOOK.md"
FURTHER = "references/causes.md"
"""What the pages leave out: further checks and quotes, and where sources disagree."""
CAUSES = "Causes"
"""The part of the files that holds the causes."""
SHOWS = "Shows"
RULES_OUT = "Rules it out"
CHECK = "Check"
FIX = "Fix"
DISAGREEMENT = "Disagreement"
MORE = "More quotes"
FIRST_CHECK = "On the first check"
CONTRARY = "Quotes against it"

_LINK = regex(r"\]\((?:\.\./)?evidence/\w+\.md#(\w+)\)")
"""A citation: a link to a quote's record."""
_LABEL = regex(r"\*\*([^*]+):\*\*\s*")
_NUMBERED_STEP = regex(
    r"(?P<action>.+) \((?P<cost>seconds|minutes|hours)\) Confirms: (?P<confirms>.+?)\.? "
    r"Refutes: (?P<refutes>.+?)\.?(?: Call: `(?P<call>[^`]+)`)?"
)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a file: what stands under one second-level heading."""

    file: str
    heading: Block
    blocks: Sequence[Block]
    markdown: str

    @property
    def id(self) -> str:
        """The id of what it is about."""
        return self.heading.text

    def labelled(self, allowed: Iterable[str]) -> dict[str, str]:
        """Return its paragraphs that begin with a label; raises CatalogueError where one is not allowed here."""
        found: dict[str, str] = {}
        for block in self.blocks:
            label = _LABEL.match(block.text) if block.kind == "paragraph" else None
            if label is None:
                continue
            if label[1] not in allowed or label[1] in found:
                fail(self, block, f"`**{label[1]}:**` is not expected here; allowed once are {', '.join(allowed)}")
            found[label[1]] = block.text[label.end() :].strip()
        return found


def read_sections(folder: Path, file: str = FILE) -> dict[str, list[Section]]:
    """Return the sections of a file by the first-level heading that they stand under."""
    text = (folder / file).read_text(encoding="utf-8")
    lines, blocks = text.splitlines(), parse_blocks(text)
    tops = [index for index, block in enumerate(blocks) if block.kind == "heading" and block.level <= 2]
    parts: dict[str, list[Section]] = {}
    part: list[Section] = []
    for start, end in pairwise([*tops, len(blocks)]):
        heading = blocks[start]
        if heading.level == 1:
            part = parts.setdefault(heading.text, [])
            continue
        last_line = blocks[end].line - 1 if end < len(blocks) else len(lines)
        markdown = "\n".join(lines[heading.line - 1 : last_line]).strip()
        part.append(Section(file, heading, blocks[start + 1 : end], markdown))
    return parts


def read_causes(
    pages: Sequence[Section],
    further: Sequence[Section] = (),
    links: Iterable[Link] = (),
    rows: Mapping[str, CauseRow] | None = None,
) -> list[Cause]:
    """Return the causes in file order.

    Args:
        pages: The sections of PLAYBOOK.md on causes.
        further: Those of references/causes.md.
        links: The rows of `links.csv`.
        rows: The rows of `causes.csv`.

    Raises:
        CatalogueError: a section breaks the grammar.
    """
    effects: dict[str, list[Effect]] = {}
    for link in links:
        if link.word:
            effect = Effect(symptom=link.outcome, frequency=Frequency(link.word), quotes=link.quotes)
            effects.setdefault(link.cause, []).append(effect)
    known, by_id = {page.id for page in pages}, {section.id: section for section in further}
    for section in further:
        if section.id not in known:
            fail(section, section.heading, f"{section.id} has no page in {FILE}")
    return [
        _cause(page, by_id.get(page.id), effects.get(page.id, ()), (rows or {}).get(page.id, CauseRow()))
        for page in pages
    ]


def _cause(page: Section, further: Section | None, effects: Sequence[Effect], row: CauseRow) -> Cause:
    labelled = page.labelled((SHOWS, RULES_OUT, CHECK, FIX))
    for label in (SHOWS, RULES_OUT, CHECK, FIX):
        if not labelled.get(label):
            fail(page, page.heading, f"{page.id}: `**{label}:**` is missing")
    summary = next((block.text for block in page.blocks), "")
    if not summary or _LABEL.match(summary):
        fail(page, page.heading, f"{page.id}: the first paragraph, on what goes wrong, is missing")
    more = {} if further is None else further.labelled((DISAGREEMENT, MORE, FIRST_CHECK, CONTRARY))
    on_cause = _cited(summary, labelled[FIX], more.get(MORE, ""))
    contrary = _cited(labelled[RULES_OUT], more.get(CONTRARY, ""))
    disagreeing = _cited(more.get(DISAGREEMENT, ""))
    of_effects = tuple(quote for effect in effects for quote in effect.quotes)
    on_checks = _cited(labelled[CHECK], more.get(FIRST_CHECK, ""), *_items(further))
    return Cause(
        id=page.id,
        summary=summary,
        mistaken_for=row.mistaken_for,
        effects=tuple(effects),
        shows=labelled[SHOWS],
        against=labelled[RULES_OUT],
        next_steps=tuple(_next_steps(page, labelled[CHECK], further)),
        fix=labelled[FIX],
        disagreement=more.get(DISAGREEMENT, "").replace("](../", "]("),
        on_cause=on_cause,
        contrary=tuple(quote for quote in dict.fromkeys((*contrary, *disagreeing)) if quote not in on_cause),
        disagreeing=disagreeing,
        quotes=tuple(dict.fromkeys((*on_cause, *of_effects, *contrary, *on_checks, *disagreeing))),
        markdown=page.markdown,
    )


def _items(section: Section | None) -> list[str]:
    return [block.text for block in section.blocks if block.kind == "item"] if section is not None else []


def _cited(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[1] for text in texts for match in _LINK.finditer(text)))


def cited(section: Section) -> tuple[str, ...]:
    """Return the ids of the quotes that a section cites, in order."""
    return _cited(section.markdown)


def _next_steps(page: Section, check: str, further: Section | None) -> Iterable[NextStep]:
    """Yield the check of the page, then those that follow."""
    first = next(block for block in page.blocks if block.text.startswith(f"**{CHECK}:**"))
    yield _next_step(page, first, check, 1)
    if further is None:
        return
    for number, block in enumerate((block for block in further.blocks if block.kind == "item"), start=2):
        if block.number is None or block.level > 1:
            fail(further, block, f"{page.id}: the checks are one numbered list")
        yield _next_step(further, block, block.text, number)


def _next_step(section: Section, block: Block, text: str, number: int) -> NextStep:
    step = _NUMBERED_STEP.fullmatch(text)
    if step is None:
        fail(
            section,
            block,
            f"{section.id}: a check is `ACTION (seconds) Confirms: … Refutes: …`, then `Call:` or nothing",
        )
    return NextStep(
        id=f"{section.id}.{number}",
        action=plain(step["action"]),
        cost=cast("Literal['seconds', 'minutes', 'hours']", step["cost"]),
        confirms=plain(step["confirms"]),
        refutes=plain(step["refutes"]),
        call=step["call"],
        for_causes=[section.id],
    )


def fail(section: Section, block: Block, problem: str) -> NoReturn:
    """Raise a CatalogueError that names the file and the line of a block."""
    raise CatalogueError(section.file, block.line, problem)


# From the files that people write to a catalogue, with every quote checked against its source.


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
    priors = {cause: dict(rows.get(cause, CauseRow()).prior) for cause in causes}
    names = {cause: row.name for cause, row in rows.items()}
    return Catalogue(causes, quotes, sources, menus, links, names, priors, relation_weights(tables))


def _quotes(folder: Path) -> dict[str, Quote]:
    quotes: dict[str, Quote] = {}
    for quote in read_evidence(folder / "evidence"):
        if quote.id in quotes:
            other = quotes[quote.id].source.id
            raise CatalogueError(f"evidence/{quote.source.id}.md", 1, f"{quote.id} is in {other} too; ids are unique")
        quotes[quote.id] = quote
    return quotes
