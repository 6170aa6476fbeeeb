"""Answers about data, probes and memory for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

import numpy as np
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mldebug_mcp.core.text import counted, figure, percent, quoted, shorten
from mldebug_mcp.logs import Series
from mldebug_mcp.memory.tables import size
from mldebug_mcp.models import ProbeResult, State
from mldebug_mcp.models.data import (
    BatchFinding,
    BatchInspection,
    BatchSummary,
    Beside,
    BoundaryToken,
    CallSite,
    Corpus,
    DeviceSummary,
    FedRow,
    Lever,
    MemoryComparison,
    MemoryEstimate,
    MemoryFinding,
    MemoryFit,
    MemoryReport,
    RowsAt,
    RowView,
    TemplateView,
)
from mldebug_mcp.probe import Progress
from mldebug_mcp.report.concise import quoted_once
from mldebug_mcp.report.console import bullets, plain_table, print_first, print_section
from mldebug_mcp.report.curves import BARS, sparkline

# The numbers of a batch and its rows in words, the same in the terminal and on the page.


MAX_BAR_BLOCKS = 30
"""Blocks of the longest bar of the histogram."""


def _trained(batch: BatchSummary, trained: int) -> str:
    """Return how many labels are trained on; labels at padding can make them more than there are tokens."""
    if trained > batch.tokens:
        return f"{trained:,} labels, more than the {batch.tokens:,} {batch.unit}: padding is trained on too"
    return f"{trained:,} ({float(batch.trained_share or 0):.1%})"


def inferred_purpose(batch: BatchSummary) -> str:
    """Return what stands behind a purpose: that it was inferred, and of what."""
    if not batch.purpose_inferred:
        return ""
    return f" (inferred: {batch.purpose_because})" if batch.purpose_because else " (inferred)"


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
        (f"  {span}", f"{'█' * max(1, round(MAX_BAR_BLOCKS * count / most))} {count:,}")
        for span, count in lengths.histogram.items()
        if len(lengths.histogram) > 1
    ]
    return lines


MOST_SHARDS = 12


def corpus_lines(corpus: Corpus) -> list[tuple[str, str]]:
    """Return what a corpus holds as lines of a table: what each number is, and the number."""
    unknown = "none of their ends occurs" if corpus.expected_ends else "name the tokenizer"
    documents = f"not known: {unknown}" if corpus.documents is None else f"{corpus.documents:,}"
    lines = [("documents", documents), ("tokens in all", f"{corpus.tokens:,}"), ("stored as", corpus.stored)]
    if corpus.last:
        lines.append(("documents end with", _boundaries(corpus.last)))
        lines.append(("documents begin with", _boundaries(corpus.first)))
    if corpus.expected_ends:
        lines.append(("their end should be", _boundaries(corpus.expected_ends)))
    if corpus.ids_never_used is not None:
        lines.append(("ids never used", f"{corpus.ids_never_used:,}"))
    lines.append(("ids outside", f"{corpus.ids_outside:,}"))
    if corpus.rows_are == "documents":
        window = f"in windows of {corpus.window:,} tokens"
        lines += [
            (
                window,
                f"{corpus.crossing_documents:,} documents cut by an edge, {corpus.left_over_tokens:,} tokens left",
            ),
            ("if cut there", f"{percent(float(corpus.lost_if_truncated))} of the tokens are lost"),
            ("if filled up", f"{percent(float(corpus.padding_if_alone))} is padding"),
        ]
    lines.append(("order", _order(corpus)))
    if corpus.repeated_share is not None:
        lines.append(("passages that repeat", percent(float(corpus.repeated_share))))
    return lines


def _boundaries(tokens: list[BoundaryToken]) -> str:
    return ", ".join(
        f"{token.id}{f' {quoted(token.text)}' if token.text else ''} ({token.documents:,})" for token in tokens
    )


def _order(corpus: Corpus) -> str:
    if corpus.rows_are == "windows":
        return "that of the stream"
    return corpus.length_order or ("documents of a kind together" if corpus.source_order else "mixed")


def shard_lines(corpus: Corpus) -> list[tuple[str, str]]:
    """Return the files of a corpus, first those that are copies."""
    shards = sorted(corpus.shards, key=lambda shard: not shard.copy_of)[:MOST_SHARDS]
    lines = [
        (shard.name, f"{shard.tokens:,} tokens{f', the same as {shard.copy_of}' if shard.copy_of else ''}")
        for shard in shards
    ]
    more = corpus.shard_count - len(shards)
    return [*lines, ("and", f"{more:,} more")] if more else lines


def nothing_wrong(batch: BatchSummary) -> str:
    """Return what stands in place of findings where there is none."""
    return "nothing wrong in this sample" if batch.sampled else "nothing wrong"


def found_title(batch: BatchSummary) -> str:
    """Return the title of what was found, which says so where only a sample was looked at."""
    return f"Found in a sample of {counted(batch.rows, 'row')}" if batch.sampled else "Found"


def row_heading(row: RowView, unit: str) -> tuple[str, str]:
    """Return what a row is called, and its numbers; `unit` is what it is counted in, tokens or words."""
    if row.boxes:
        return f"row {row.row}", f"{len(row.boxes)} boxes"
    trained = "" if row.trained is None else f", {row.trained} trained on"
    return f"row {row.row} {row.side}".rstrip(), f"{row.tokens} {unit}{trained}, {row.padding} padding"


# A batch's inspection as text for a person: findings, numbers, and rows with trained tokens in colour.


STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
ROLES = {"assistant": "bold green", "user": "bold cyan"}
TOKEN_STYLES = {
    "trained": "black on green",
    "special trained": "bold blue on green",
    "masked": "dim",
    "special masked": "bold blue",
    "padding": "dim italic magenta",
    "left out": "italic",
}


def print_inspection(console: Console, inspection: BatchInspection) -> None:
    """Print what was found, the numbers of the batch, and the decoded rows."""
    print_first(console, inspection.at_a_glance)
    _print_summary(console, inspection.batch)
    found = [_finding(batch_finding) for batch_finding in quoted_once(inspection.findings, most=1)]
    print_section(console, found_title(inspection.batch), found or [Text(nothing_wrong(inspection.batch))])
    if inspection.corpus is not None:
        _print_corpus(console, inspection.corpus)
    _print_rows(console, inspection.rows, inspection.batch.unit)
    if inspection.template is not None:
        print_section(console, "The chat template on two exchanges", [_template(inspection.template)])
    if inspection.leakage is not None:
        leak, here = inspection.leakage, "in the sample" if inspection.batch.sampled else "here"
        passages = f"; of {leak.passages:,} passages {leak.shared_passages:,}" if leak.passages else ""
        console.print(
            f"\nOf {leak.rows} rows of {leak.against}, {leak.exact} are {here} too, and {leak.near} more nearly so"
            f"{passages}"
        )
    for note in bullets(inspection.notes):
        console.print(note)


def _print_corpus(console: Console, corpus: Corpus) -> None:
    table = _named_numbers(corpus_lines(corpus))
    if corpus.id_bands:
        most = max(corpus.id_bands, default=0) or 1
        bars = "".join(BARS[min(8, round(8 * (count / most) ** 0.25) if count else 0)] for count in corpus.id_bands)
        table.add_row(Text(f"ids 0 to {corpus.id_limit - 1:,}", style="dim"), Text(bars, style="cyan"))
    print_section(console, "The corpus", [table])
    if len(corpus.shards) > 1:
        print_section(console, "Its files", [Text(f"{name}: {value}") for name, value in shard_lines(corpus)])


def _print_summary(console: Console, batch: BatchSummary) -> None:
    inferred = inferred_purpose(batch)
    console.print(
        Text.assemble((batch.path, "bold"), f" ({', '.join(batch.formats)}), purpose: {batch.purpose}{inferred}")
    )
    console.print(Padding(_named_numbers(numbers(batch)), (0, 0, 0, 2)))


def _named_numbers(lines: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2), pad_edge=False)
    for name, value in lines:
        table.add_row(Text(name, style="dim"), value)
    return table


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
        legend.append("  ", style="not underline").append(kind, style=f"not underline {TOKEN_STYLES[kind]}")
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
            text.append(f"‹pad×{len(list(tokens))}›", style=TOKEN_STYLES[kind])
        else:
            text.append("".join(token.text for token in tokens), style=TOKEN_STYLES[kind])
    return text


# A probe's answer as text for a person.


STYLE = {"memorised": "bold green", "failed": "bold magenta"}
SHOWN_CAUSES = 4
PROBE_TERMINAL_SHOWN_STEPS = 3


def print_probe(console: Console, result: ProbeResult) -> None:
    """Print the verdict, the curve, what was seen, what it may be and what to do next; of a failure, the failure."""
    print_first(console, result.at_a_glance)
    console.print(Text.assemble((result.verdict, STYLE.get(result.verdict, "bold red")), ": ", result.summary))
    if result.verdict == "failed":  # nothing was measured: a list of what was not seen would read as an all-clear
        _print_lines(console, "Last lines of the probed code", result.output.splitlines())
        print_section(console, "Notes", bullets(result.notes))
        return
    _print_numbers(console, result)
    present = [finding for finding in result.findings if finding.state is State.PRESENT]
    observations = [f"{finding.symptom}: {finding.summary}" for finding in present] or ["nothing unusual"]
    _print_lines(console, "Seen by the probe", observations)
    bad = result.first_nonfinite
    if bad is not None:
        _print_lines(console, "On the way to the first non-finite value", list(bad.before))
    causes = [f"{percent(cause.probability):>4}  {cause.cause}" for cause in result.causes[:SHOWN_CAUSES]]
    _print_lines(console, "What it may be (hypotheses, not verdicts)", causes)
    _print_lines(
        console,
        "Check next",
        [f"{step.action} ({step.cost})" for step in result.next_steps[:PROBE_TERMINAL_SHOWN_STEPS]],
    )
    rows = [f"row {row.row}: {figure(row.accuracy)} right {row.why}".rstrip() for row in result.resisting_rows]
    _print_lines(console, "Rows that were not memorised", rows)
    print_section(console, "Notes", bullets(result.notes))


def _print_numbers(console: Console, result: ProbeResult) -> None:
    if len(result.curve) > 1:
        steps = np.array([point.step for point in result.curve], float)
        losses = np.array([point.loss for point in result.curve], float)
        bars, _ = sparkline(Series("loss", steps, losses), console.width - 40)
        line = Text.assemble("loss ", figure(losses[0]), " ", (bars, "cyan"), " ", figure(losses[-1]))
        console.print(line, no_wrap=True)
    numbers = {
        "first loss": result.initial_loss,
        "uniform guess": result.expected_initial_loss,
        "label frequencies": result.unigram_loss,
        "memorised at": result.goal,
        "learning rate": result.learning_rate,
    }
    parts = [f"{name} {figure(value)}" for name, value in numbers.items() if value is not None]
    parts += [] if result.accuracy is None else [f"{percent(result.accuracy)} of the labels right"]
    console.print(Text(f"{', '.join(parts)}; {result.device or 'no device'}, {result.seconds:.1f} s", style="dim"))


def _print_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    print_section(console, title, [Text(line) for line in lines])


@contextmanager
def show_progress() -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows the progress on standard error; None if that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    console = Console(stderr=True)
    with console.status("starting the probe") as status:
        yield lambda progress: status.update(str(progress))


# The rows of a step for a person: who was fed what, which rows are odd, and what they hold.


MOST_BATCHES = 32
MOST_IDS = 64
MOST_ROWS = 12
LONGEST_TEXT = 400


def print_rows(console: Console, answer: RowsAt) -> None:
    """Print the rows of a step."""
    provenance = "as they were recorded" if answer.source == "recorded" else "drawn again as the sampler drew them"
    console.print(Text(f"step {answer.step}: {counted(answer.row_count, 'row')}, {provenance}", style="bold"))
    for batch in answer.batches[:MOST_BATCHES]:
        epoch = "" if batch.epoch is None else f"pass {batch.epoch}, "
        console.print(Text(f"  {epoch}rank {batch.rank}: {_listed(list(map(str, batch.rows)))}"))
    if len(answer.batches) > MOST_BATCHES:
        console.print(Text(f"  and {counted(len(answer.batches) - MOST_BATCHES, 'more micro-batch')}: --json"))
    shown = [row for row in answer.rows if row.odd or row.text][:MOST_ROWS]
    print_section(console, "Rows, odd ones first", [_row(fed_row) for fed_row in shown])
    again = [f"{row.row} (step {row.before[-1]})" for row in answer.rows if row.before and row not in shown]
    print_section(console, "Were fed before", [Text(_listed(again))] if again else [])
    if answer.here is not None and answer.around is not None:
        lines = [Text(f"this step: {_counts(answer.here)}"), Text(f"steps around: {_counts(answer.around)}")]
        print_section(console, "Next to the steps around", lines)
    found = [Text(f"{finding.severity}: {finding.check}: {finding.summary}") for finding in answer.findings]
    print_section(console, "Found in these rows alone", found)
    print_section(console, "Rests on", bullets(answer.basis))
    print_section(console, "Notes", bullets(answer.notes))


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


def _counts(batch: Beside) -> str:
    trained = "" if batch.trained_tokens is None else f", {batch.trained_tokens:,} trained"
    tokens = f", {batch.tokens:,} tokens{trained}, longest {batch.longest:,}" if batch.tokens else ""
    found = f"; found: {', '.join(batch.findings)}" if batch.findings else ""
    return f"{counted(batch.rows, 'row')}{tokens}{found}"


# A memory report for a terminal: findings, what holds the peak, who holds most, what would save most.


SHOWN_LEVERS = 6
MEMORY_TERMINAL_SHOWN_STEPS = 60
SURE = {"certain": "", "high": " (very likely)", "medium": " (likely)", "low": " (a guess)", "not": ""}
"""What is added to how a category was recognised, by how sure it is."""
_COLOUR = {"error": "bold red", "warning": "bold yellow", "info": "bold"}


def print_memory(console: Console, report: MemoryReport) -> None:
    """Print what is seen, who holds the memory, and what would save most."""
    read = report.snapshot
    print_first(console, report.at_a_glance)
    console.print(
        Text.assemble(
            (read.path, "bold"),
            f": {read.layout}, {counted(read.devices, 'device')}, {counted(read.segments, 'segment')}, "
            f"{counted(read.trace_events, 'event')}",
        )
    )
    print_section(console, "Seen", [_memory_terminal_finding(finding) for finding in report.findings])
    if len(report.devices) > 1:
        print_section(console, "Devices", [_devices(report)])
    for device in report.devices:
        _print_device(console, device)
    if report.top_allocations:
        print_section(console, "Who holds it", [_sites(report.top_allocations, len(report.devices))])
    if report.levers:
        print_section(console, "What would save how much", [_levers(report.levers)])
    if report.comparison is not None:
        print_section(console, f"Against {report.comparison.other}", [_comparison(report.comparison)])
    print_section(console, "Notes", bullets(report.notes))


def print_estimate(console: Console, estimate: MemoryEstimate) -> None:
    """Print whether it fits, where that was asked, then the estimate with its formulas."""
    if estimate.fit is not None:
        for line in _fit(estimate.fit):
            console.print(line)
        console.print()
    settings = ", ".join(f"{name} {value}" for name, value in estimate.settings.items())
    console.print(Text.assemble((estimate.model, "bold"), f": {estimate.parameters:,} parameters; {settings}"))
    table = plain_table("left", "right", "text")
    for part in estimate.parts:
        table.add_row(part.part, size(part.bytes), Text(part.formula, style="dim"))
    table.add_row(Text("total", style="bold"), Text(size(estimate.total_bytes), style="bold"), "on each device")
    if estimate.measured_peak_bytes is not None:
        table.add_row("measured peak", size(estimate.measured_peak_bytes), "of the snapshot")
    console.print(Padding(table, (1, 0, 0, 2)))
    print_section(console, "Sources", bullets(estimate.sources))
    print_section(console, "Notes", bullets(estimate.notes))


def _fit(fit: MemoryFit) -> list[RenderableType]:
    """Return the verdict, and what to change in which order."""
    summary = fit.summary if not fit.plan else fit.summary.partition(";")[0]
    lines: list[RenderableType] = [Text(summary, style="bold" if fit.verdict == "fits" else _COLOUR["warning"])]
    if not fit.plan:
        return lines
    table = plain_table("left", "right", "right", "text")
    table.add_row("", *(Text(heading, style="dim") for heading in ("saves", "then needs", "costs")))
    for fit_step in fit.plan:
        what = ", ".join(f"{name} {value}" for name, value in fit_step.settings.items())
        table.add_row(what, size(fit_step.saves_bytes), size(fit_step.needed_bytes), Text(fit_step.costs, style="dim"))
    return [*lines, table, Text(_after_plan(fit))]


def _after_plan(fit: MemoryFit) -> str:
    if fit.enough:
        return "With these it fits."
    if fit.devices_needed is not None:
        return f"Even so it does not fit; ZeRO-3 over {fit.devices_needed} such GPUs on top would."
    return "Even so it does not fit; use a smaller model."


def _memory_terminal_finding(memory_finding: MemoryFinding) -> Text:
    text = Text.assemble((f"{memory_finding.finding}: ", _COLOUR[memory_finding.severity]), memory_finding.summary)
    if memory_finding.fix:
        text.append(f"\n   {memory_finding.fix}", style="dim")
    return text


def _devices(report: MemoryReport) -> Table:
    """Return what each device holds, and all together."""
    table = plain_table("left", "right", "right", "right", "right")
    table.add_row("", *(Text(heading, style="dim") for heading in ("peak", "peak reserved", "allocated", "reserved")))
    for device in report.devices:
        amounts = (
            device.peak_allocated_bytes,
            device.peak_reserved_bytes,
            device.allocated_bytes,
            device.reserved_bytes,
        )
        table.add_row(f"device {device.device}", *map(_size_cell, amounts))
    read = report.snapshot
    sums = (read.peak_allocated_bytes, read.peak_reserved_bytes, read.allocated_bytes, read.reserved_bytes)
    table.add_row("sum", *(Text(_size_cell(number), style="bold") for number in sums))
    return table


def _print_device(console: Console, device: DeviceSummary) -> None:
    lines: list[RenderableType] = [Text(_amounts(device))]
    if device.steps:
        peaks = np.array([step.peak_bytes for step in device.steps], dtype=np.float64)
        curve, _ = sparkline(
            Series("peak", np.arange(len(peaks), dtype=np.float64), peaks), MEMORY_TERMINAL_SHOWN_STEPS
        )
        lines.append(
            Text.assemble("peak per step ", (curve, "cyan"), f" {device.steps_found} steps ({device.steps_from})")
        )
    if device.categories:
        table = plain_table("left", "right", "right", "text")
        for category in device.categories:
            table.add_row(
                category.category,
                size(category.bytes),
                percent(category.share),
                Text(category.how + SURE.get(category.sure, ""), style="dim"),
            )
        lines += [Text(device.moment, style="dim"), table]
    print_section(console, f"Device {device.device}", lines)


def _size_cell(count: int) -> str:
    return size(count) if count else "not known"


def _amounts(device: DeviceSummary) -> str:
    """Return what a device holds and held, as far as it is known."""
    peak, reserved = device.peak_allocated_bytes, device.peak_reserved_bytes
    most = f"peak {size(peak)} allocated" if peak else "peak not known, without a history"
    most += f", {size(reserved)} reserved" if reserved else ""
    now = f"now {size(device.allocated_bytes)}"
    return f"{most}; {now} of {size(device.reserved_bytes)}" if device.reserved_bytes else f"{most}; {now}"


def _sites(sites: Sequence[CallSite], devices: int) -> Table:
    """Return who holds how much; of several devices, where."""
    table = plain_table("right", "right", "text", "text")
    for site in sites:
        called = f"\nfrom {site.caller}" if site.caller else ""
        table.add_row(
            size(site.bytes),
            f"{site.count}×",
            site.category,
            Text.assemble(
                f"device {site.device}: " if devices > 1 else "", site.site, (called, "dim"), (f"  {site.id}", "dim")
            ),
        )
    return table


def _levers(levers: Sequence[Lever]) -> Table:
    table = plain_table("right", "left", "text")
    for lever in levers[:SHOWN_LEVERS]:
        enough = {True: " [enough alone]", False: " [not enough alone]", None: ""}[lever.enough]
        table.add_row(size(lever.saves_bytes), lever.lever, Text.assemble((lever.how, "dim"), enough))
    return table


def _comparison(memory_comparison: MemoryComparison) -> Text:
    lines = [
        f"allocated {_signed(memory_comparison.allocated_change_bytes)}, reserved "
        f"{_signed(memory_comparison.reserved_change_bytes)}"
        + (f", peak {_signed(memory_comparison.peak_change_bytes)}" if memory_comparison.peak_change_bytes else ""),
        ", ".join(f"{name} {_signed(change)}" for name, change in memory_comparison.categories.items()),
        *(f"{_signed(site.change_bytes):>12}  {site.category}  {site.site}" for site in memory_comparison.sites),
    ]
    return Text("\n".join(line for line in lines if line))


def _signed(count: int) -> str:
    return f"{'+' if count >= 0 else '-'}{size(abs(count))}"
