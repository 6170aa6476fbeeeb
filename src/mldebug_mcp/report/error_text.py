"""The answer of `explain_error` as text for a person."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mldebug_mcp.models import ErrorExplanation, ErrorMatch


def print_error(console: Console, answer: ErrorExplanation) -> None:
    """Print the first real error, what it means and what to do."""
    error = answer.error
    if error is None:
        console.print(Text("No error found.", style="bold"))
    else:
        ranks = f", ranks {', '.join(error.ranks)}" if error.ranks else ""
        console.print(Text.assemble((f"line {error.line}{ranks}: ", "dim"), (error.text, "bold red")))
        if error.user_frame:
            console.print(Text(f"your code: {error.user_frame}", style="cyan"))
    for match in answer.matches:
        console.print()
        console.print(_match(match))
    if not answer.matches:
        console.print(Text.assemble(("\nWhat it is: ", "bold"), answer.problem))
        console.print(Text.assemble(("What to try: ", "bold"), answer.advice))
    for note in answer.notes:
        console.print(Padding(Text(f"• {note}", style="dim"), (0, 0, 0, 2)))


def _match(match: ErrorMatch) -> Text:
    text = Text.assemble((match.id, "bold yellow"), (f" ({match.credence})", "dim"), f"\ncause: {match.cause}")
    text.append(f"\nfix:   {match.fix}")
    if match.mistaken_for:
        text.append(f"\nmistaken for: {match.mistaken_for}", style="dim")
    if match.causes:
        text.append(f"\nsee also: {', '.join(match.causes)}", style="dim")
    text.append(f"\n{match.source}" + (f", {match.locator}" if match.locator else ""), style="dim")
    return text
