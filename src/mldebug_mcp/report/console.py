"""The console that answers are printed on, and the titled sections that they consist of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 100
"""Columns where the output is not a terminal, so that what a pipe receives does not depend on a window."""


def console_for(*, colour: bool | None = None) -> Console:
    """Return the console for standard output; `colour` None means: if it is a terminal and NO_COLOR is not set."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False, force_terminal=colour)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def print_section(console: Console, title: str, lines: Sequence[RenderableType]) -> None:
    """Print a title and the lines below it, indented; nothing if there are no lines."""
    if lines:
        console.print(Text(f"\n{title}", style="bold underline"))
        for line in lines:
            console.print(Padding(line, (0, 0, 0, 2)))


def plain_table(*columns: Literal["left", "right", "text"]) -> Table:
    """Return a table without lines and headings: cells of a "left" or "right" column stay on one line, "text" wraps."""
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    for column in columns:
        table.add_column(justify="right" if column == "right" else "left", no_wrap=column != "text")
    return table


def bullets(notes: Iterable[str]) -> list[Text]:
    """Return notes as the lines of a section."""
    return [Text(f"• {note}", style="dim") for note in notes]
