"""A diagnosis as text for a person: coloured where the output is a terminal, plain elsewhere."""

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
from mldebug_mcp.report.commands import as_command
from mldebug_mcp.report.console import bullets, plain_table, print_section
from mldebug_mcp.report.diagnosis_concise import worth_showing
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
)
from mldebug_mcp.report.sparkline import sparkline
from mldebug_mcp.text import figure, percent, shorten

CURVES = ("loss", "eval_loss", "reward", "grad_norm")
NARROW = 72
"""Columns below which curves have lines of their own, and hypotheses no column for how likely they are."""


def print_diagnosis(console: Console, diagnosis: Diagnosis, run: Run) -> None:
    """Print what was read, what is seen, what it may be and what to check next."""
    read = diagnosis.run
    console.print(
        Text.assemble(
            (shorten(read.path, 400), "bold"),
            f": {what_was_read(diagnosis, run)}",
        )
    )
    _print_curves(console, run, diagnosis)
    print_section(
        console,
        "Seen in the log",
        [_finding(finding) for finding in worth_showing(diagnosis.findings)] or [Text(nothing_seen(diagnosis))],
    )
    if diagnosis.comparison is not None:
        _print_comparison(console, diagnosis.comparison, read.step_name)
    _print_hypotheses(console, diagnosis)
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


def _print_curves(console: Console, run: Run, diagnosis: Diagnosis) -> None:
    for name in CURVES:
        if name not in run or len(run[name]) < 2:
            continue
        onset = next(
            (f for f in diagnosis.findings if f.state is State.PRESENT and f.steps and f.symptom.startswith(name)), None
        )
        wide = console.width >= NARROW
        bars, column = sparkline(run[name], console.width - (40 if wide else 4), onset.steps[0] if onset else None)
        first, last = figure(float(run[name].value[0])), figure(float(run[name].value[-1]))
        if wide:
            console.print(Text.assemble(f"\n{name:>10} {first:>9} ", (bars, "cyan"), f" {last}"), no_wrap=True)
        else:
            console.print(Text.assemble(f"\n{name} from {first} to {last}\n  ", (bars, "cyan")), no_wrap=True)
        if onset is not None and column is not None:
            mark, indent = f"{run.step_name} {figure(onset.steps[0])}", (21 if wide else 2) + column
            fits = indent + len(mark) + 2 <= console.width
            # Where there is no room on the right, the words stand on the left of the arrow.
            line = " " * indent + f"▲ {mark}" if fits else f"{mark} ▲".rjust(indent + 1)
            console.print(Text(line, style="bold red"), no_wrap=True)


def _print_comparison(console: Console, comparison: Comparison, step_name: str) -> None:
    lines = [Text(line) for line in partings(comparison, step_name)]
    settings = [Text(line, style="yellow") for line in settings_apart(comparison)]
    print_section(console, f"Compared with {comparison.reference}", [*lines, *settings])


def _finding(finding: Finding) -> Text:
    present = finding.state is State.PRESENT
    return Text.assemble(
        (f"{finding.symptom}: ", "bold red" if present else "bold"), finding.summary, ("" if present else " (harmless)")
    )


def _print_hypotheses(console: Console, diagnosis: Diagnosis) -> None:
    console.print(Text("\nWhat it may be", style="bold underline"), Text("(hypotheses, not verdicts)", style="dim"))
    wide = console.width >= NARROW
    table = plain_table("right", "left", "text") if wide else plain_table("right", "text")
    shown = diagnosis.hypotheses[:SHOWN_HYPOTHESES]
    for one in shown:
        how_likely = [Text(one.credence, style="dim")] if wide else []
        table.add_row(Text(percent(one.probability), style="bold"), *how_likely, _hypothesis(one))
    rest, words = others_together(diagnosis)
    table.add_row(percent(rest), *([""] if wide else []), Text(words, style="dim"))
    console.print(Padding(table, (0, 0, 0, 2)))


def _hypothesis(one: Hypothesis) -> Text:
    text = Text.assemble((one.cause, "bold green" if one.cause == "healthy" else "bold yellow"))
    if one.summary:
        text.append(f": {in_a_sentence(one)}")
    if one.because:
        text.append(f"\nfor it: {', '.join(one.because)}", style="dim")
    if one.against:
        text.append(f"\nagainst it: {', '.join(one.against[:3])}", style="dim")
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
