"""A diagnosis for a terminal, in full."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mldebug_mcp.core.text import percent, shorten
from mldebug_mcp.judge.next_call import as_command
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Comparison, Diagnosis, Hypothesis, MetricToLog, NextStep
from mldebug_mcp.models.base import NO_FAULTS, SOUND
from mldebug_mcp.report.console import bullets, plain_table, print_lines, print_section
from mldebug_mcp.report.curves import curve_lines
from mldebug_mcp.report.diagnosis_screen import opinion_lines, verdict_lines
from mldebug_mcp.report.knowledge_terminal import citation_text
from mldebug_mcp.report.sections import (
    ONCE_CHECKED,
    SHOWN_STEPS,
    Section,
    also_for,
    hypotheses_shown,
    leading_citations,
    notes_on,
    observed,
    other_hypotheses,
    partings,
    reasons_of,
    settings_apart,
    title_of,
    what_was_read,
)

NARROW = 72
"""Columns below which hypotheses have no column for how likely they are."""


def print_diagnosis(console: Console, diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print the verdict block, what was observed, every leading hypothesis and check, and the notes."""
    read = diagnosis.run
    print_lines(console, [*verdict_lines(diagnosis, console.width), *opinion_lines(diagnosis, console.width)])
    console.print(Text.assemble("\n", (shorten(read.path, 400), "bold"), f": {what_was_read(diagnosis, run)}"))
    print_lines(console, (text.cropped(console.width) for text in curve_lines(run, diagnosis, console.width)))
    for section in observed(diagnosis, whole=True):
        print_section(console, section.title, _lines(section))
    if diagnosis.comparison is not None:
        _print_comparison(console, diagnosis.comparison, read.step_name)
    _print_hypotheses(console, diagnosis, bits=bits)
    steps = [_step(number, step) for number, step in enumerate(diagnosis.next_steps[:SHOWN_STEPS], start=1)]
    if steps:
        steps.append(Text(ONCE_CHECKED, style="dim"))
    print_section(console, "Check next", steps)
    print_section(console, "Tied", [Text(tie.summary) for tie in diagnosis.ties])
    print_section(
        console,
        "Not logged, but would have helped",
        [_to_log(metric_to_log) for metric_to_log in diagnosis.what_to_log],
    )
    print_section(
        console,
        "Practitioners on this",
        [citation_text(citation) for citation in leading_citations(diagnosis.hypotheses)],
    )
    print_section(console, "Notes", bullets(notes_on(diagnosis, whole=True)))


def _lines(section: Section) -> list[Text]:
    return [Text(line, style="yellow" if line in section.marked else "") for line in section.lines]


def _print_comparison(console: Console, comparison: Comparison, step_name: str) -> None:
    lines = [Text(line) for line in partings(comparison, step_name)]
    settings = [Text(line, style="yellow") for line in settings_apart(comparison)]
    print_section(console, f"Compared with {comparison.reference}", [*settings, *lines])


def _print_hypotheses(console: Console, diagnosis: Diagnosis, *, bits: bool) -> None:
    console.print(Text("\nWhat it may be", style="bold underline"), Text("(hypotheses, not verdicts)", style="dim"))
    wide = console.width >= NARROW
    table = plain_table("right", "left", "text") if wide else plain_table("right", "text")
    for hypothesis in hypotheses_shown(diagnosis, whole=True):
        how_likely = [Text(hypothesis.credence, style="dim")] if wide else []
        table.add_row(
            Text(percent(hypothesis.probability), style="bold"), *how_likely, _hypothesis(hypothesis, bits=bits)
        )
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print(Text(f"  {other_hypotheses(diagnosis)}", style="dim"))


def _hypothesis(hypothesis: Hypothesis, *, bits: bool) -> Text:
    text = Text.assemble((hypothesis.cause, "bold green" if hypothesis.cause == SOUND else "bold yellow"))
    if title := title_of(hypothesis):
        text.append(f": {title}")
    if hypothesis.fix and hypothesis.cause not in NO_FAULTS:
        text.append(f"\nfix: {hypothesis.fix}", style="green")
    for step in hypothesis.next_steps:
        if step.answer:
            text.append(f"\n{step.id}: {step.answer}")
    for side, sign in (("for it", +1), ("against it", -1)):
        for fact in reasons_of(hypothesis, sign, whole=True, bits=bits):
            text.append(f"\n{side}: {fact}", style="dim")
    if hypothesis.unexplained:
        text.append(f"\nnot explained by it: {', '.join(hypothesis.unexplained)}", style="dim")
    return text


def _step(number: int, step: NextStep) -> Text:
    others = also_for(step)
    also = f"; also for {', '.join(others)}" if others else ""
    text = Text.assemble(f"{number}. {step.action} ", (f"({step.id}: {step.cost}{also})", "dim"))
    text.append(f"\n   confirms: {step.confirms}\n   refutes:  {step.refutes}", style="dim")
    if step.call:
        text.append(f"\n   {as_command(step.call)}", style="cyan")
    return text


def _to_log(metric_to_log: MetricToLog) -> Text:
    return Text.assemble(
        (metric_to_log.metric, "bold"),
        f": {metric_to_log.how} ",
        (f"(bears on {', '.join(metric_to_log.splits)})", "dim"),
    )
