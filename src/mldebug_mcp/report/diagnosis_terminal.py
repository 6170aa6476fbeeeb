"""All of a diagnosis as text for a person: coloured where the output is a terminal, plain elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mldebug_mcp.logs import Run
from mldebug_mcp.models import (
    Comparison,
    Diagnosis,
    Finding,
    Hypothesis,
    MetricToLog,
    NextStep,
    State,
)
from mldebug_mcp.models.base import NO_FAULTS, SOUND
from mldebug_mcp.report.commands import as_command
from mldebug_mcp.report.console import bullets, plain_table, print_section
from mldebug_mcp.report.diagnosis_concise import worth_showing
from mldebug_mcp.report.diagnosis_curves import curve_lines
from mldebug_mcp.report.knowledge_terminal import citation_text
from mldebug_mcp.report.shown import (
    ONCE_CHECKED,
    SHOWN_HYPOTHESES,
    SHOWN_STEPS,
    also_for,
    in_a_sentence,
    leading_citations,
    notes_on,
    nothing_seen,
    others_together,
    partings,
    settings_apart,
    what_was_read,
    without_bits,
)
from mldebug_mcp.text import figure, percent, shorten

NARROW = 72
"""Columns below which hypotheses have no column for how likely they are."""


def print_diagnosis(console: Console, diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print the sheet, what is seen, what it may be and what to check next; `bits` tells what each finding weighs."""
    read = diagnosis.run
    console.print(
        Text.assemble(
            (shorten(read.path, 400), "bold"),
            f": {what_was_read(diagnosis, run)}",
        )
    )
    for line in curve_lines(run, diagnosis, console.width):
        console.print(line, no_wrap=True)
    _print_sheet(console, diagnosis)
    print_section(
        console,
        "Seen in the log",
        [_finding(finding) for finding in worth_showing(diagnosis.findings)] or [Text(nothing_seen(diagnosis))],
    )
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
    print_section(console, "Notes", bullets(notes_on(diagnosis)))


def _print_sheet(console: Console, diagnosis: Diagnosis) -> None:
    sheet, unit = diagnosis.sheet, diagnosis.run.step_name
    print_section(console, "What ran", [Text(line) for line in sheet.ran])
    marked = [Text(str(one), style="yellow") for one in sheet.settings if one.usual]
    usual = [Text("; ".join(str(one) for one in sheet.settings if not one.usual))]
    print_section(console, "Settings", [*marked, *usual] if sheet.settings else [])
    print_section(console, "Logged", [Text(" | ".join(one.parts)) for one in sheet.quantities])
    print_section(console, "Events", [Text(f"{unit} {figure(one.step)}: {one}") for one in sheet.events])
    print_section(console, "Not judged", [Text(line) for line in sheet.not_judged])


def _print_comparison(console: Console, comparison: Comparison, step_name: str) -> None:
    lines = [Text(line) for line in partings(comparison, step_name)]
    settings = [Text(line, style="yellow") for line in settings_apart(comparison)]
    print_section(console, f"Compared with {comparison.reference}", [*settings, *lines])


def _finding(finding: Finding) -> Text:
    present = finding.state is State.PRESENT
    return Text.assemble(
        (f"{finding.symptom}: ", "bold red" if present else "bold"), finding.summary, ("" if present else " (harmless)")
    )


def _print_hypotheses(console: Console, diagnosis: Diagnosis, *, bits: bool) -> None:
    console.print(Text("\nWhat it may be", style="bold underline"), Text("(hypotheses, not verdicts)", style="dim"))
    wide = console.width >= NARROW
    table = plain_table("right", "left", "text") if wide else plain_table("right", "text")
    shown = diagnosis.hypotheses[:SHOWN_HYPOTHESES]
    for one in shown:
        how_likely = [Text(one.credence, style="dim")] if wide else []
        table.add_row(Text(percent(one.probability), style="bold"), *how_likely, _hypothesis(one, bits=bits))
    rest, words = others_together(diagnosis)
    table.add_row(percent(rest), *([""] if wide else []), Text(words, style="dim"))
    console.print(Padding(table, (0, 0, 0, 2)))


def _hypothesis(one: Hypothesis, *, bits: bool) -> Text:
    told = (lambda said: said) if bits else without_bits
    text = Text.assemble((one.cause, "bold green" if one.cause == SOUND else "bold yellow"))
    if one.summary:
        text.append(f": {in_a_sentence(one)}")
    if one.fix and one.cause not in NO_FAULTS:
        text.append(f"\nfix: {one.fix.split('. ')[0].rstrip('.')}.", style="green")
    for step in one.next_steps:
        if step.answer:
            text.append(f"\n{step.id}: {step.answer}")
    if one.because:
        text.append(f"\nfor it: {', '.join(map(told, one.because))}", style="dim")
    if one.against:
        text.append(f"\nagainst it: {', '.join(map(told, one.against[:3]))}", style="dim")
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
