"""The Markdown of the knowledge files, parsed by markdown-it-py to blocks that know their line.

Only block structure is parsed: text stays as it stands in the file, because a quote has to be verbatim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

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
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
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
