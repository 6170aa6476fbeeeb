"""The numbers of a batch and its rows in words, the same in the terminal and on the page."""

from __future__ import annotations

from mldebug_mcp.models.batch import BatchSummary, RowView
from mldebug_mcp.text import counted, figure

BAR = 30
"""Blocks of the longest bar of the histogram."""


def _trained(batch: BatchSummary, trained: int) -> str:
    """Return how many labels are trained on; labels at padding can make them more than there are tokens."""
    if trained > batch.tokens:
        return f"{trained:,} labels, more than the {batch.tokens:,} {batch.unit}: padding is trained on too"
    return f"{trained:,} ({float(batch.trained_share or 0):.1%})"


def numbers(batch: BatchSummary) -> list[tuple[str, str]]:
    """Return the table's lines: what each number is, and the number."""
    lengths = batch.lengths
    lines = [("rows of the sample" if batch.sampled else "rows", f"{batch.rows:,}"), (batch.unit, f"{batch.tokens:,}")]
    if batch.trained_tokens is not None:
        lines.append(("trained on", _trained(batch, batch.trained_tokens)))
    lines.append(("padding", f"{batch.padding_tokens:,} ({float(batch.padding_share):.1%} of all positions)"))
    lines.append(
        (
            "length",
            f"{lengths.least} to {lengths.greatest}, median {figure(lengths.median)}, mean {figure(lengths.mean)}",
        )
    )
    lines.append(("truncated", f"{batch.truncated_rows:,}"))
    if batch.turns is not None:
        turns = batch.turns
        lines.append(
            (
                "turns",
                f"{turns.assistant_turns} of the assistant, {turns.ended} ended, {turns.end_trained} ends trained",
            )
        )
    if batch.vocabulary_used is not None and batch.vocabulary_size:
        lines.append(("vocabulary", f"{batch.vocabulary_used:,} of {batch.vocabulary_size:,} ids occur"))
    most = max(lengths.histogram.values(), default=0)
    lines += [
        (f"  {span}", f"{'█' * max(1, round(BAR * count / most))} {count:,}")
        for span, count in lengths.histogram.items()
        if len(lengths.histogram) > 1
    ]
    return lines


def nothing_wrong(batch: BatchSummary) -> str:
    """Return what stands in place of findings where there is none."""
    return "nothing wrong in this sample" if batch.sampled else "nothing wrong"


def in_sample(title: str, batch: BatchSummary) -> str:
    """Return the title of what was found, which says so where only a sample was looked at."""
    return f"{title} in a sample of {counted(batch.rows, 'row')}" if batch.sampled else title


def row_heading(row: RowView, unit: str) -> tuple[str, str]:
    """Return what a row is called, and its numbers; `unit` is what it is counted in, tokens or words."""
    trained = "" if row.trained is None else f", {row.trained} trained on"
    return f"row {row.row} {row.side}".rstrip(), f"{row.tokens} {unit}{trained}, {row.padding} padding"
