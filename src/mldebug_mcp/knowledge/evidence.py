"""`evidence/<source>.md` → Source and its quotes. `evidence/README.md` describes the grammar."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError

from mldebug_mcp.errors import CatalogueError
from mldebug_mcp.knowledge.entries import Quote, Source
from mldebug_mcp.knowledge.markdown import Block, parse_blocks

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
