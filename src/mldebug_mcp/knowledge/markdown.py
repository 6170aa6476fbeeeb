"""The small Markdown that the knowledge files are written in, parsed to blocks that know their line.

Only block structure is parsed: text stays as it stands in the file, because a quote has to be verbatim. All files are
read at each start, so this parser works on lines, in a tenth of the time of a general one. A test checks that a general
parser finds the same blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_START = re.compile(
    r"(?P<indent> *)"
    r"(?:(?P<heading>#{1,6})\s|(?P<quote>>)|(?P<row>\|)|(?P<fence>```)|(?P<item>(?P<mark>[-*]|\d+\.)\s+)(?=\S))"
)
"""How a line begins that begins a block."""
_CELL_END = re.compile(r"(?<!\\)\|")


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
    parser = _BlockParser()
    for number, line in enumerate(text.split("\n"), start=1):
        parser.take(number, line)
    return parser.blocks


class _BlockParser:
    """Takes the lines of one text in order."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: Block | None = None  # the block that the next line may go on with
        self._indents: list[int] = []  # for each list that is open, outermost first: where the text of its item begins
        self._table_lines = 0

    def take(self, number: int, line: str) -> None:
        """Take the next line."""
        if self._open is not None and self._open.kind == "code":
            self._code(line)
            return
        start = _START.match(line)
        self._table_lines = self._table_lines + 1 if start and start["row"] else 0
        if not line.strip():
            self._open = None
        elif start is None or (start["item"] and not self._begins_item(start)):
            self._go_on(number, line)
        elif start["item"]:
            self._item(number, line, start)
        elif start["row"]:
            self._row(number, line)
        else:
            self._begin(number, line, start)

    def _begin(self, number: int, line: str, start: re.Match[str]) -> None:
        """Begin a heading, a quote or code, or go on with a quote."""
        text = line[start.end() :].strip()
        if start["heading"]:
            self._indents = []
            self._add(Block("heading", number, text, level=len(start["heading"])))
            self._open = None
        elif start["fence"]:
            self._add(Block("code", number, ""))
        elif self._open is not None and self._open.kind == "quote":
            self._open.text += f"\n{text}" if text else ""
        else:
            self._add(Block("quote", number, text))

    def _begins_item(self, start: re.Match[str]) -> bool:
        """Say whether a line that looks like an item is one: in the middle of a text, `2.` may be the end of that."""
        beside = bool(self._indents) and len(start["indent"]) < self._indents[-1]
        return self._open is None or beside or start["mark"] in ("-", "*", "1.")

    def _item(self, number: int, line: str, start: re.Match[str]) -> None:
        while self._indents and len(start["indent"]) < self._indents[-1]:
            self._indents.pop()
        self._indents.append(start.end())
        text = " ".join(line[start.end() :].split())
        self._add(Block("item", number, text, level=len(self._indents), ordered=start["mark"][-1] == "."))

    def _row(self, number: int, line: str) -> None:
        self._open = None
        if self._table_lines > 2:  # below the headings and the line under them
            cells = [cell.replace("\\|", "|").strip() for cell in _CELL_END.split(line.strip().strip("|"))]
            self.blocks.append(Block("row", number, " | ".join(cells), cells=cells))

    def _code(self, line: str) -> None:
        if self._open is not None and not line.lstrip().startswith("```"):
            self._open.text += f"{line}\n"
        else:
            self._open = None

    def _go_on(self, number: int, line: str) -> None:
        """Go on with the open block, or begin a paragraph."""
        text = line.strip() if self._open and self._open.kind == "quote" else " ".join(line.split())
        if self._open is not None:
            self._open.text += f"\n{text}" if self._open.kind == "quote" else f" {text}"
            return
        while self._indents and len(line) - len(line.lstrip()) < self._indents[-1]:
            self._indents.pop()
        self._add(Block("paragraph", number, text, level=len(self._indents)))

    def _add(self, block: Block) -> None:
        self.blocks.append(block)
        self._open = block
