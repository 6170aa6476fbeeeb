"""The small Markdown that the knowledge files are written in, parsed to blocks that know their line.

Only block structure is parsed: text stays as it stands in the file, because a quote has to be verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

# The grammars have no use for the rules that are off; each rule is tried at each line, so they would cost a fifth.
_PARSER = MarkdownIt("commonmark").enable("table").disable(["code", "hr", "html_block", "lheading", "reference"])
# Inline parsing would cost most of the time and give nothing that is wanted here.
_PARSER.core.ruler.enableOnly(["normalize", "block"])


@dataclass(slots=True)
class Block:
    """A block of a file.

    Args:
        kind: "heading", "paragraph", "quote", "item", "row" or "code".
        line: Its first line in the file, from 1.
        text: Its text: of a heading the title, of a quote the lines without their marks, of a row the cells.
        level: Of a heading 1 to 6, of an item its depth from 1.
        ordered: Of an item: whether its list is numbered.
        cells: Of a row: its cells.
    """

    kind: str
    line: int
    text: str
    level: int = 0
    ordered: bool = False
    cells: Sequence[str] = field(default_factory=tuple)


def parse_blocks(text: str) -> list[Block]:
    """Return the blocks of a Markdown text in order; blocks inside a quote are part of the quote."""
    return _BlockParser(text).parse()


class _BlockParser:
    """Turns the tokens of one text into blocks: each handler takes a token and what belongs to it."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._tokens = iter(_PARSER.parse(text))
        self._blocks: list[Block] = []
        self._lists: list[bool] = []  # for each list that is open, outermost first: whether it is numbered
        self._cells: list[str] = []  # of the row that is open

    def parse(self) -> list[Block]:
        """Return the blocks in order."""
        handlers: dict[str, Callable[[Token], None]] = {
            "heading_open": self._heading,
            "blockquote_open": self._quote,
            "bullet_list_open": self._open_list,
            "ordered_list_open": self._open_list,
            "bullet_list_close": self._close_list,
            "ordered_list_close": self._close_list,
            "paragraph_open": self._paragraph,
            "tr_open": self._open_row,
            "td_open": self._cell,
            "tr_close": self._close_row,
            "fence": self._code,
        }
        for token in self._tokens:
            handler = handlers.get(token.type)
            if handler is not None:
                handler(token)
        return self._blocks

    def _heading(self, token: Token) -> None:
        self._blocks.append(Block("heading", _line(token), self._content().strip(), level=int(token.tag[1])))

    def _quote(self, token: Token) -> None:
        first, end = token.map or (0, 0)
        text = "\n".join(
            line.lstrip().removeprefix(">").removeprefix(" ").rstrip()
            for line in self._lines[first:end]
            if line.strip()
        )
        self._blocks.append(Block("quote", first + 1, text))
        self._skip_to_close()

    def _skip_to_close(self) -> None:
        """Pass over the tokens of the quote that has just been opened, quotes inside it included."""
        depth = 1
        for token in self._tokens:
            depth += (token.type == "blockquote_open") - (token.type == "blockquote_close")
            if not depth:
                return

    def _open_list(self, token: Token) -> None:
        self._lists.append(token.type.startswith("ordered"))

    def _close_list(self, _: Token) -> None:
        self._lists.pop()

    def _paragraph(self, token: Token) -> None:
        depth = len(self._lists)
        is_item = depth > 0 and token.level == 2 * depth
        self._blocks.append(
            Block(
                "item" if is_item else "paragraph",
                _line(token),
                " ".join(self._content().split()),
                level=depth,
                ordered=is_item and self._lists[-1],
            )
        )

    def _open_row(self, _: Token) -> None:
        self._cells = []

    def _cell(self, _: Token) -> None:
        self._cells.append(self._content().strip())

    def _close_row(self, token: Token) -> None:
        # The row of headings has none of the cells that are read here.
        if self._cells:
            line = _line(token) if token.map else self._blocks[-1].line + 1
            self._blocks.append(Block("row", line, " | ".join(self._cells), cells=self._cells))

    def _code(self, token: Token) -> None:
        self._blocks.append(Block("code", _line(token), token.content))

    def _content(self) -> str:
        """Return the text of the block that has just been opened: its next token."""
        return next(self._tokens).content


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0
