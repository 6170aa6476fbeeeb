"""The console that answers are printed on, and the titled sections that they consist of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
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


def bullets(notes: Iterable[str]) -> list[Text]:
    """Return notes as the lines of a section."""
    return [Text(f"• {note}", style="dim") for note in notes]
