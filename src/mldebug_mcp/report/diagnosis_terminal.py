"""All of a diagnosis as text for a person: coloured where the output is a terminal, plain elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Comparison, Diagnosis, Hypothesis, MetricToLog, NextStep
from mldebug_mcp.models.base import NO_FAULTS, SOUND
from mldebug_mcp.report.commands import as_command
from mldebug_mcp.report.console import bullets, plain_table, print_section
from mldebug_mcp.report.diagnosis_curves import curve_lines
from mldebug_mcp.report.knowledge_terminal import citation_text
from mldebug_mcp.report.sections import (
    Section,
    hypotheses_shown,
    notes_on,
    observed,
    other_hypotheses,
    reasons_of,
    title_of,
)
from mldebug_mcp.report.shown import (
    ONCE_CHECKED,
    SHOWN_STEPS,
    also_for,
    leading_citations,
    partings,
    settings_apart,
    what_was_read,
)
from mldebug_mcp.report.verdict_terminal import print_verdict
from mldebug_mcp.text import percent, shorten

NARROW = 72
"""Columns below which hypotheses have no column for how likely they are."""


def print_diagnosis(console: Console, diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print the verdict block, what was observed, every leading hypothesis and check, and the notes.

    Args:
        console: Where to.
        diagnosis: In full.
        run: As it was read.
        bits: Whether to say how much each fact weighs for a cause.
    """
    read = diagnosis.run
    print_verdict(console, diagnosis)
    console.print(Text.assemble("\n", (shorten(read.path, 400), "bold"), f": {what_was_read(diagnosis, run)}"))
    for line in curve_lines(run, diagnosis, console.width):
        console.print(line, no_wrap=True)
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
    print_section(console, "Not logged, but would have helped", [_to_log(one) for one in diagnosis.what_to_log])
    print_section(
        console, "Practitioners on this", [citation_text(one) for one in leading_citations(diagnosis.hypotheses)]
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
    for one in hypotheses_shown(diagnosis, whole=True):
        how_likely = [Text(one.credence, style="dim")] if wide else []
        table.add_row(Text(percent(one.probability), style="bold"), *how_likely, _hypothesis(one, bits=bits))
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print(Text(f"  {other_hypotheses(diagnosis)}", style="dim"))


def _hypothesis(one: Hypothesis, *, bits: bool) -> Text:
    text = Text.assemble((one.cause, "bold green" if one.cause == SOUND else "bold yellow"))
    if title := title_of(one):
        text.append(f": {title}")
    if one.fix and one.cause not in NO_FAULTS:
        text.append(f"\nfix: {one.fix}", style="green")
    for step in one.next_steps:
        if step.answer:
            text.append(f"\n{step.id}: {step.answer}")
    for side, sign in (("for it", +1), ("against it", -1)):
        for fact in reasons_of(one, sign, whole=True, bits=bits):
            text.append(f"\n{side}: {fact}", style="dim")
    return text


def _step(number: int, step: NextStep) -> Text:
    others = also_for(step)
    also = f"; also for {', '.join(others)}" if others else ""
    text = Text.assemble(f"{number}. {step.action} ", (f"({step.id}: {step.cost}{also})", "dim"))
    text.append(f"\n   confirms: {step.confirms}\n   refutes:  {step.refutes}", style="dim")
    if step.call:
        text.append(f"\n   {as_command(step.call)}", style="cyan")
    return text


def _to_log(one: MetricToLog) -> Text:
    return Text.assemble((one.metric, "bold"), f": {one.how} ", (f"(bears on {', '.join(one.splits)})", "dim"))
