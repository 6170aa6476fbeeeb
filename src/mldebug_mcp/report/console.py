"""The console that answers are printed on, and the titled sections that they consist of."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import clean
from mldebug_mcp.judge.run_verdict import whole_sentences
from mldebug_mcp.models.base import Glance
from mldebug_mcp.report.sections import Block, block_of

if TYPE_CHECKING:
    from rich.table import Table

PLAIN_WIDTH = 100
"""Columns where the output is not a terminal, so that what a pipe receives does not depend on a window."""
WIDEST = 120
"""Columns that are used of a wider terminal: longer lines of prose are hard to read."""


def console_for(*, colour: bool | None = None) -> Console:
    """Return the console for standard output; `colour` None means: if it is a terminal and NO_COLOR is not set."""
    console = _Console(highlight=False, markup=False, emoji=False, soft_wrap=False, force_terminal=colour)
    console.width = min(console.width, WIDEST) if console.is_terminal else PLAIN_WIDTH
    console.push_render_hook(_Unpadded())
    return console


class _Console(Console):
    """A console that reports a closed pipe as any other: rich by itself ends the process with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class _Unpadded(RenderHook):
    """Ends each line where its text ends: rich fills lines with spaces, which files and diffs would keep.

    Text is cleaned once more on its way, for what a report takes from elsewhere than an answer.
    """

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Trimmed(renderable) for renderable in renderables]


@dataclass(frozen=True, slots=True)
class _Trimmed:
    whole: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = (
            segment if segment.control else segment._replace(text=clean(segment.text))
            for segment in console.render(self.whole, options)
        )
        for line in Segment.split_lines(shown):
            yield from _without_trailing_spaces(line)
            yield Segment.line()


def _without_trailing_spaces(line: list[Segment]) -> list[Segment]:
    *before, last = line or [Segment("")]
    if last.style is not None and last.style.bgcolor is not None:
        return line
    kept = Segment(last.text.rstrip(" "), last.style)
    return [*before, kept] if kept.text or not before else _without_trailing_spaces(before)


def print_section(console: Console, title: str, lines: Sequence[RenderableType]) -> None:
    """Print a title and the lines below it, indented; nothing if there are no lines."""
    if lines:
        console.print(Text(f"\n{title}", style="bold underline"))
        for line in lines:
            console.print(Padding(line, (0, 0, 0, 2)))


def plain_table(*columns: Literal["left", "right", "text"]) -> Table:
    """Return a table without lines and headings: cells of a "left" or "right" column stay on one line, "text" wraps."""
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    for column in columns:
        table.add_column(justify="right" if column == "right" else "left", no_wrap=column != "text")
    return table


def bullets(notes: Iterable[str]) -> list[Text]:
    """Return notes as the lines of a section."""
    return [Text(f"• {note}", style="dim") for note in notes]


# The verdict block, first in every answer that judges: verdict, why, next command, fix; each wraps, none is cut.


MIN_FACTS = 1
FILLED = 0.9
"""Share of the rows that text fills where words are kept whole. Chosen."""
_STYLES = {"fault": "bold red", "healthy": "bold green", "unclear": "bold yellow", "not judged": "bold yellow"}
_INDENT = 6


def print_first(console: Console, glance: Glance | None) -> None:
    """Print what is to be read first, and an empty line below it; nothing where an answer has none."""
    if glance is not None and glance.headline:
        print_block(console, block_of(glance))
        console.print()


def print_block(console: Console, block: Block, most: int | None = None) -> int:
    """Print the block and return its rows; a command is one line to copy, however wide the terminal is."""
    lines = block_lines(block, console.width, most)
    for line in lines:
        console.print(line, no_wrap=True, crop=False, overflow="ignore")
    return len(lines)


def block_lines(block: Block, width: int, most: int | None = None) -> list[Text]:
    """Return the block on lines of the width; a command keeps to one line, which a terminal may wrap.

    Fewer facts and sentences of the fix are kept to `most` rows, where the fix stands whole further below.
    """
    head = [Text(line, style=_STYLES[block.kind]) for line in wrap(block.headline, width)]
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


def _next_lines(block: Block, width: int) -> list[Text]:
    needs = f" ({block.needs})" if block.needs else ""
    action = _labelled("Next", [f"{block.next}{needs}"], width) if block.next else []
    command = [Text.assemble(" " * _INDENT, (block.command, "cyan"))] if block.command else []
    return [*action, *command]


def _labelled(label: str, texts: Iterable[str], width: int, style: str = "") -> list[Text]:
    """Return texts below each other, the label in front of the first."""
    lines: list[Text] = []
    for text in texts:
        for line in wrap(text, width - _INDENT):
            lines.append(Text.assemble((f"{'' if lines else label:<{_INDENT}}", "bold"), (line, style)))
    return lines


def wrap(text: str, width: int) -> list[str]:
    """Return a text on lines of the width; a longer word is broken."""
    return textwrap.wrap(text, max(_INDENT, width), break_on_hyphens=False)
