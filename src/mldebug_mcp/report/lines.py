"""Lines of a screen in pieces, each with a style, and the verdict block on such lines.

Where the output is not a terminal they are printed as they are: rich, which colours them, takes long to load.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable

from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import clean
from mldebug_mcp.judge.run_verdict import whole_sentences
from mldebug_mcp.report.sections import Block

PLAIN_WIDTH = 100
"""Columns where the output is not a terminal, so that what a pipe receives does not depend on a window."""
TAB = 8
"""Columns from one tab stop to the next, as in rich and in terminals."""


@dataclass(frozen=True)
class Line:
    """A line of text in pieces, each with its style as rich names it, "" for none."""

    pieces: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "".join(text for text, _ in self.pieces)

    def cropped(self, width: int, mark: str = "") -> Line:
        """Return the line in at most so many columns of a terminal; one that is cut ends with the mark."""
        from rich.cells import cell_len, set_cell_size

        whole = str(self)
        if cell_len(whole) <= width:
            return self
        kept, at, pieces = set_cell_size(whole, width - len(mark)) + mark, 0, []
        for text, style in self.pieces:
            pieces.append((kept[at : at + len(text)], style))
            at += len(text)
        return Line(tuple(pieces))


def line(*pieces: str | tuple[str, str]) -> Line:
    """Return a line of pieces, those with a style in a pair with it."""
    return Line(tuple((piece, "") if isinstance(piece, str) else piece for piece in pieces))


def is_plain() -> bool:
    """Say whether standard output goes elsewhere than to a terminal, and no variable asks rich for its styles."""
    return not sys.stdout.isatty() and not os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}


def print_plain(lines: Iterable[Line]) -> None:
    """Print lines without styles, each ended where its text ends."""
    parts = (part for text in lines for part in clean(str(text)).split("\n"))
    sys.stdout.writelines(f"{part.expandtabs(TAB).rstrip(' ')}\n" for part in parts)


# The verdict block, first in every answer that judges: verdict, why, next command, fix; each wraps, none is cut.


MIN_FACTS = 1
FILLED = 0.9
"""Share of the rows that text fills where words are kept whole. Chosen."""
_STYLES = {"fault": "bold red", "healthy": "bold green", "unclear": "bold yellow", "not judged": "bold yellow"}
_INDENT = 6


def block_lines(block: Block, width: int, most: int | None = None) -> list[Line]:
    """Return the block on lines of the width; a command keeps to one line, which a terminal may wrap.

    Fewer facts and sentences of the fix are kept to `most` rows, where the fix stands whole further below.
    """
    head = [line((text, _STYLES[block.kind])) for text in wrap(block.headline, width)]
    check = _next_lines(block, width)
    facts = list(block.facts)
    why = _labelled(block.why, facts, width)
    if most is None or not block.fix:
        return [*head, *why, *check, *_labelled("Fix", [block.fix] if block.fix else [], width, "green")]
    fix = _labelled("Fix", [whole_sentences(block.fix, 0)], width, "green")
    while len(facts) > MIN_FACTS and len(head) + len(why) + len(check) + len(fix) > most:
        facts.pop()
        why = _labelled(block.why, facts, width)
    room = (most - len(head) - len(why) - len(check)) * (width - _INDENT)
    fix = _labelled("Fix", [whole_sentences(block.fix, int(FILLED * room))], width, "green")
    return [*head, *why, *check, *fix]


def _next_lines(block: Block, width: int) -> list[Line]:
    needs = f" ({block.needs})" if block.needs else ""
    action = _labelled("Next", [f"{block.next}{needs}"], width) if block.next else []
    command = [line(" " * _INDENT, (block.command, "cyan"))] if block.command else []
    return [*action, *command]


def _labelled(label: str, texts: Iterable[str], width: int, style: str = "") -> list[Line]:
    """Return texts below each other, the label in front of the first."""
    lines: list[Line] = []
    for text in texts:
        for part in wrap(text, width - _INDENT):
            lines.append(line((f"{'' if lines else label:<{_INDENT}}", "bold"), (part, style)))
    return lines


def wrap(text: str, width: int) -> list[str]:
    """Return a text on lines of the width; a longer word is broken."""
    return textwrap.wrap(text, max(_INDENT, width), break_on_hyphens=False)
