"""The console that answers are printed on, and the titled sections that they consist of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import clean
from mldebug_mcp.models.base import Glance
from mldebug_mcp.report.sections import PLAIN_WIDTH, Line, block_lines, block_of

if TYPE_CHECKING:
    from rich.table import Table

MAX_CONSOLE_COLUMNS = 120
"""Columns that are used of a wider terminal: longer lines of prose are hard to read."""


def console_for(*, colour: bool | None = None) -> Console:
    """Return the console for standard output; `colour` None means: if it is a terminal and NO_COLOR is not set."""
    console = _Console(highlight=False, markup=False, emoji=False, soft_wrap=False, force_terminal=colour)
    console.width = min(console.width, MAX_CONSOLE_COLUMNS) if console.is_terminal else PLAIN_WIDTH
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


def print_first(console: Console, glance: Glance | None) -> None:
    """Print what is to be read first, and an empty line below it; nothing where an answer has none."""
    if glance is not None and glance.headline:
        print_lines(console, block_lines(block_of(glance), console.width))
        console.print()


def print_lines(console: Console, lines: Iterable[Line]) -> None:
    """Print lines as they are: what is too long for the terminal is broken by it."""
    for line in lines:
        console.print(Text.assemble(*line.pieces), no_wrap=True, crop=False, overflow="ignore")
