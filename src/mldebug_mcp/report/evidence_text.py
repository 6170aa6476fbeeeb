"""The answer of `evidence verify` as text for a person."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from mldebug_mcp.models import EvidenceReport


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
    for check in (*report.changed, *report.unreachable):
        style = "bold red" if check.state == "changed" else "dim"
        console.print(Text.assemble((f"{check.state} ", style), check.id, (f" {check.where}", "dim")))
    for problem in report.problems:
        console.print(Text(f"problem: {problem}", style="bold red"))
    if not report.problems:
        console.print("The records agree with each other and with every document that quotes them.")
