"""What the catalogue answers, as text for a person: a search, an error message, a check of the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mldebug_mcp.models import Citation, SearchResult
from mldebug_mcp.report.console import bullets

if TYPE_CHECKING:
    from mldebug_mcp.models import ErrorExplanation, ErrorMatch, EvidenceReport


def print_search(console: Console, result: SearchResult) -> None:
    """Print what was found."""
    for quote in result.quotes:
        console.print(citation_text(quote))
        console.print()
    for entry in result.entries:
        console.print(Text.assemble((f"{entry.kind} ", "dim"), (entry.id, "bold yellow"), f": {entry.summary}"))
    for note in result.notes:
        console.print(Text(note, style="dim"))


def citation_text(one: Citation) -> Text:
    """Return a quote with its author, title, date, what was trained, id and address."""
    said = ", ".join(filter(None, (one.year, one.regime)))
    when = f" ({said})" if said else ""
    return Text.assemble(
        (f"“{one.text}”", "italic"), f"\n— {one.author}, {one.title}{when}", (f" [{one.id}] {one.url}", "dim")
    )


def print_error(console: Console, answer: ErrorExplanation) -> None:
    """Print the first real error, what it means and what to do."""
    error = answer.error
    if error is None:
        console.print(Text("No error found.", style="bold"))
    else:
        ranks = f", rank{'s' if len(error.ranks) > 1 else ''} {', '.join(error.ranks)}" if error.ranks else ""
        console.print(Text.assemble((f"line {error.line}{ranks}: ", "dim"), (error.text, "bold red")))
        if error.user_frame:
            console.print(Text(f"your code: {error.user_frame}", style="cyan"))
    for match in answer.matches:
        console.print()
        console.print(_match(match))
    if not answer.matches:
        console.print(Text.assemble(("\nWhat it is: ", "bold"), answer.problem))
        console.print(Text.assemble(("What to try: ", "bold"), answer.advice))
    for note in bullets(answer.notes):
        console.print(Padding(note, (0, 0, 0, 2)))


def _match(match: ErrorMatch) -> Text:
    text = Text.assemble((match.id, "bold yellow"), (f" ({match.credence})", "dim"), f"\ncause: {match.cause}")
    text.append(f"\nfix:   {match.fix}")
    if match.mistaken_for:
        text.append(f"\nmistaken for: {match.mistaken_for}", style="dim")
    if match.causes:
        text.append(f"\nsee also: {', '.join(match.causes)}", style="dim")
    text.append(f"\n{match.source}" + (f", {match.locator}" if match.locator else ""), style="dim")
    return text


def print_evidence(console: Console, report: EvidenceReport) -> None:
    """Print what agrees with the originals, what differs and what could not be read."""
    compared = report.found + len(report.changed) + len(report.unreachable)
    if compared:
        console.print(
            f"{report.quotes} quotes: {report.found} found, {len(report.changed)} changed, "
            f"{len(report.unreachable)} unreachable"
        )
    else:
        console.print(f"{report.quotes} quotes, checked against each other only")
    for grade, count in report.grades.items():
        console.print(f"  {grade:<15}{count:>4}")
    for check in (*report.changed, *report.unreachable):
        style = "bold red" if check.state == "changed" else "dim"
        console.print(Text.assemble((f"{check.state} ", style), check.id, (f" {check.where}", "dim")))
    for problem in report.problems:
        console.print(Text(f"problem: {problem}", style="bold red"))
    if not report.problems:
        console.print("The records agree with each other and with every document that quotes them.")
