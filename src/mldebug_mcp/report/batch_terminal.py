"""A batch's inspection as text for a person: findings, numbers, and rows with trained tokens in colour."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mldebug_mcp.models.batch import BatchFinding, BatchInspection, BatchSummary, RowView, TemplateView
from mldebug_mcp.report.batch_numbers import in_sample, nothing_wrong, numbers, row_heading
from mldebug_mcp.report.console import bullets, print_section
from mldebug_mcp.report.quotes import quoted_once

STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
ROLES = {"assistant": "bold green", "user": "bold cyan"}
KINDS = {
    "trained": "black on green",
    "special trained": "bold blue on green",
    "masked": "dim",
    "special masked": "bold blue",
    "padding": "dim italic magenta",
    "left out": "italic",
}


def print_inspection(console: Console, inspection: BatchInspection) -> None:
    """Print what was found, the numbers of the batch, and the decoded rows."""
    _print_summary(console, inspection.batch)
    found = [_finding(one) for one in quoted_once(inspection.findings, most=1)]
    print_section(console, in_sample("Found", inspection.batch), found or [Text(nothing_wrong(inspection.batch))])
    _print_rows(console, inspection.rows, inspection.batch.unit)
    if inspection.template is not None:
        print_section(console, "The chat template on two exchanges", [_template(inspection.template)])
    if inspection.leakage is not None:
        leak, here = inspection.leakage, "in the sample" if inspection.batch.sampled else "here"
        console.print(
            f"\nOf {leak.rows} rows of {leak.against}, {leak.exact} are {here} too, and {leak.near} more nearly so"
        )
    for note in bullets(inspection.notes):
        console.print(note)


def _print_summary(console: Console, batch: BatchSummary) -> None:
    inferred = " (inferred)" if batch.purpose_inferred else ""
    console.print(
        Text.assemble((batch.path, "bold"), f" ({', '.join(batch.formats)}), purpose: {batch.purpose}{inferred}")
    )
    table = Table(box=None, show_header=False, padding=(0, 2), pad_edge=False)
    for name, value in numbers(batch):
        table.add_row(Text(name, style="dim"), value)
    console.print(Padding(table, (0, 0, 0, 2)))


def _finding(finding: BatchFinding) -> Text:
    text = Text.assemble((f"{finding.severity}: {finding.check}: ", STYLES[finding.severity]), finding.summary)
    text.append(f"\n  {finding.why}", style="dim")
    text.append(f"\n  fix: {finding.fix}")
    for framework, fix in finding.fixes.items():
        text.append(f"\n  {framework}: {fix}", style="dim")
    for citation in finding.citations:
        text.append(f"\n  “{citation.text}”", style="italic")
        text.append(f" — {citation.author}, {citation.title} [{citation.id}]", style="dim")
    return text


def _print_rows(console: Console, rows: list[RowView], unit: str) -> None:
    if not rows:
        return
    plain = not console.is_terminal or console.no_color  # only colours tell what is trained on from what is not
    legend = Text("\nRows", style="bold underline")
    for kind in ("trained", "masked", "special trained", "special masked", "padding"):
        legend.append("  ", style="not underline").append(kind, style=f"not underline {KINDS[kind]}")
    console.print(Text("\nRows: ⟦trained on⟧, masked, ‹padding›") if plain else legend)
    for row in rows:
        console.print(Text(": ".join(row_heading(row, unit)), style="bold"))
        console.print(Padding(coloured(row, plain=plain), (0, 0, 0, 2)))


def _template(template: TemplateView) -> Text:
    text = Text(template.text, style="dim")
    for span in template.spans:
        text.stylize(ROLES.get(span.role, "yellow"), span.start, span.stop)
    return text


def coloured(row: RowView, *, plain: bool = False) -> Text:
    """Return a row token by token in colour; `plain` gives its marked text, for outputs without colour."""
    if plain or not row.pieces:
        return Text(row.text)
    text = Text()
    for kind, tokens in groupby(row.pieces, key=lambda token: token.kind):
        if kind == "padding":
            text.append(f"‹pad×{len(list(tokens))}›", style=KINDS[kind])
        else:
            text.append("".join(token.text for token in tokens), style=KINDS[kind])
    return text
