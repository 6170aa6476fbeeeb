"""The rows of a step for a person: who was fed what, which rows are odd, and what they hold."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from mldebug_mcp.models.rows import Beside, FedBatch, FedRow, RowsAt
from mldebug_mcp.report.console import bullets, print_section
from mldebug_mcp.text import counted, shorten

MOST_BATCHES, MOST_IDS, MOST_ROWS = 32, 64, 12
LONGEST_TEXT = 400


def print_rows(console: Console, answer: RowsAt) -> None:
    """Print the rows of a step."""
    told = "as they were recorded" if answer.source == "recorded" else "drawn again as the sampler drew them"
    console.print(Text(f"step {answer.step}: {counted(answer.row_count, 'row')}, {told}", style="bold"))
    for one in answer.batches[:MOST_BATCHES]:
        console.print(Text(f"  {_of(one)}: {_listed([str(row) for row in one.rows])}"))
    if len(answer.batches) > MOST_BATCHES:
        console.print(Text(f"  and {counted(len(answer.batches) - MOST_BATCHES, 'more micro-batch')}: --json"))
    shown = [one for one in answer.rows if one.odd or one.text][:MOST_ROWS]
    print_section(console, "Rows, odd ones first", [_row(one) for one in shown])
    again = [f"{one.row} (step {one.before[-1]})" for one in answer.rows if one.before and one not in shown]
    print_section(console, "Were fed before", [Text(_listed(again))] if again else [])
    if answer.here is not None and answer.around is not None:
        lines = [Text(f"this step: {_beside(answer.here)}"), Text(f"steps around: {_beside(answer.around)}")]
        print_section(console, "Beside the steps around", lines)
    found = [Text(f"{one.severity}: {one.check}: {one.summary}") for one in answer.findings]
    print_section(console, "Found in these rows alone", found)
    print_section(console, "Rests on", bullets(answer.basis))
    print_section(console, "Notes", bullets(answer.notes))


def _of(batch: FedBatch) -> str:
    return f"rank {batch.rank}" if batch.epoch is None else f"pass {batch.epoch}, rank {batch.rank}"


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else ""
    return ", ".join(ids[:MOST_IDS]) + more


def _row(row: FedRow) -> Text:
    text = Text(f"row {row.row}", style="bold red" if row.odd else "bold")
    for says in row.odd:
        text.append(f"\n  {says}", style="red")
    if row.before:
        text.append(f"\n  was in step {', '.join(map(str, row.before))} before", style="dim")
    if row.text:
        text.append(f"\n  {shorten(row.text, LONGEST_TEXT)}", style="dim")
    return text


def _beside(told: Beside) -> str:
    trained = "" if told.trained_tokens is None else f", {told.trained_tokens:,} trained"
    tokens = f", {told.tokens:,} tokens{trained}, longest {told.longest:,}" if told.tokens else ""
    found = f"; found: {', '.join(told.findings)}" if told.findings else ""
    return f"{counted(told.rows, 'row')}{tokens}{found}"
