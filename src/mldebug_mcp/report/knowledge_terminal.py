"""Search results, explanations and explained errors for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import plain
from mldebug_mcp.knowledge import Cause, catalogue
from mldebug_mcp.models import Citation, NextStep
from mldebug_mcp.report.console import bullets, print_first, print_section

if TYPE_CHECKING:
    from mldebug_mcp.models import ErrorExplanation, ErrorMatch, EvidenceReport, Explanation, SearchResult


def print_search(console: Console, result: SearchResult) -> None:
    """Print what was found."""
    for quote in result.quotes:
        console.print(citation_text(quote))
        console.print()
    for entry in result.entries:
        console.print(Text.assemble((f"{entry.kind} ", "dim"), (entry.id, "bold yellow"), f": {entry.summary}"))
    for note in result.notes:
        console.print(Text(note, style="dim"))


def citation_text(citation: Citation) -> Text:
    """Return a quote with its author, title, date, what was trained, id and address."""
    circumstances = ", ".join(filter(None, (citation.year, citation.regime)))
    when = f" ({circumstances})" if circumstances else ""
    return Text.assemble(
        (f"“{citation.text}”", "italic"),
        f"\n— {citation.author}, {citation.title}{when}",
        (f" [{citation.id}] {citation.url}", "dim"),
    )


def print_error(console: Console, answer: ErrorExplanation) -> None:
    """Print what the first real error means and what to do, then where that is documented and what else it may be."""
    print_first(console, answer.at_a_glance)
    if answer.error is not None and answer.error.ranks:
        ranks = answer.error.ranks
        console.print(Text(f"printed by rank{'s' if len(ranks) > 1 else ''} {', '.join(ranks)}", style="dim"))
    for place, match in enumerate(answer.matches):
        if place:
            console.print()
        console.print(_match(match, whole=place > 0))
    for note in bullets(answer.notes[0 if answer.error else 1 :]):
        console.print(Padding(note, (0, 0, 0, 2)))


def _match(match: ErrorMatch, *, whole: bool) -> Text:
    text = Text.assemble((match.id, "bold yellow"), (f" ({match.credence})", "dim"))
    if whole:
        text.append(f"\ncause: {match.cause}\nfix:   {match.fix}")
    if whole and match.mistaken_for:
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


# An entry of the catalogue as text for a person: wrapped, without the addresses of links, the fix of a cause first.


MAX_SYMPTOMS_LISTED = 10
"""Symptoms of a cause that are listed; the others are named."""
MAX_CITATIONS_QUOTED = 3
_LINK = regex(r"\[([^\]]*)\]\([^)]*\)")
_MARKS = regex(r"\*\*|__|^#+ |^> ?")


def print_explanation(console: Console, explanation: Explanation) -> None:
    """Print an entry of the catalogue."""
    console.print(Text(f"{explanation.kind} {explanation.id}", style="bold"))
    cause = catalogue().causes.get(explanation.id) if explanation.kind == "cause" else None
    if cause is not None:
        _print_cause(console, cause)
    else:
        for paragraph in _paragraphs(explanation.text):
            console.print(Text(paragraph))
    if explanation.kind in ("symptom", "source", "cause"):
        for citation in explanation.citations[:MAX_CITATIONS_QUOTED] if cause else explanation.citations:
            console.print()
            console.print(citation_text(citation))
    others = [text for text in explanation.related if cause is None or text in cause.mistaken_for]
    if others:
        console.print(Text(f"\nSee also: {', '.join(others)}", style="dim"))


def _print_cause(console: Console, cause: Cause) -> None:
    console.print(Text(plain(cause.summary)))
    print_section(console, "Fix", [Text(plain(cause.fix))])
    effects = sorted(cause.effects, key=lambda effect: -effect.frequency.share)
    lines = [
        Text(f"{effect.frequency:<10} {effect.symptom}{_authors_clause(effect.quotes)}")
        for effect in effects[:MAX_SYMPTOMS_LISTED]
    ]
    if effects[MAX_SYMPTOMS_LISTED:]:
        lines.append(Text(f"and {', '.join(effect.symptom for effect in effects[MAX_SYMPTOMS_LISTED:])}", style="dim"))
    print_section(console, "Shows", lines)
    print_section(console, "Against it", [Text(plain(cause.against))] if cause.against else [])
    print_section(console, "Checks", [line for step in cause.next_steps for line in _check(step)])
    print_section(console, "Disagreement", [Text(plain(cause.disagreement))] if cause.disagreement else [])
    for side in catalogue().sides(cause):
        console.print(Padding(citation_text(side.cite()), (1, 0, 0, 2)))


def _authors_clause(quotes: Iterable[str]) -> str:
    """Return whose words say so, or nothing where it is a guess of this project."""
    known = catalogue().quotes
    named = dict.fromkeys(known[quote].source.title for quote in quotes if quote in known)
    return f" ({'; '.join(named)})" if named else ""


def _check(step: NextStep) -> Iterator[Text | Padding]:
    yield Text(f"{step.id} ({step.cost}): {step.action}")
    yield Padding(Text(f"confirms: {step.confirms}\nrefutes: {step.refutes}", style="dim"), (0, 0, 0, 2))


def _paragraphs(markdown: str) -> Iterator[str]:
    """Yield the paragraphs, items and rows of a text: what was wrapped in its file is one line again."""
    together: list[str] = []
    for line in [*markdown.splitlines(), ""]:
        starts = not line.strip() or line.lstrip().startswith(("-", "|", "#", ">")) or re.match(r"\s*\d+\. ", line)
        if together and starts:
            yield _plain_line(" ".join(together))
            together = []
        if line.strip() and not re.fullmatch(r"[|\s:-]+", line):
            together.append(line.rstrip() if not together else line.strip())
        elif not line.strip():
            yield ""


def _plain_line(line: str) -> str:
    """Return a line without marks and addresses; the cells of a row stand apart."""
    text = _MARKS.sub("", _LINK.sub(r"\1", line))
    return "  ".join(cell.strip() for cell in text.strip("| ").split("|")) if text.startswith("|") else text
