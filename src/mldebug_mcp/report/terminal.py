"""Answers as text for a person: coloured where the output is a terminal, plain elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mldebug_mcp.logs import Run
from mldebug_mcp.models import (
    Citation,
    Comparison,
    Diagnosis,
    Explanation,
    Finding,
    Hypothesis,
    MetricToLog,
    NextStep,
    SearchResult,
    State,
)
from mldebug_mcp.report.concise import worth_showing
from mldebug_mcp.report.sparkline import sparkline
from mldebug_mcp.text import figure

SHOWN_HYPOTHESES = 5
SHOWN_STEPS = 3
CURVES = ("loss", "eval_loss", "reward", "grad_norm")
PLAIN_WIDTH = 100
"""Columns where the output is no terminal, so that what a pipe receives does not depend on a window."""


def console_for(*, colour: bool | None = None) -> Console:
    """Return the console for standard output; `colour` None means: if it is a terminal and NO_COLOR is not set."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False, force_terminal=colour)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def print_diagnosis(console: Console, diagnosis: Diagnosis, run: Run) -> None:
    """Print what was read, what is seen, what it may be and what to check next."""
    read = diagnosis.run
    console.print(
        Text.assemble(
            (read.path, "bold"),
            f": {read.records} records ({', '.join(read.formats)}), {read.step_name}s {figure(run.first_step)} to "
            f"{figure(run.last_step)}, kind of run: {read.kind}",
        )
    )
    _print_curves(console, run, diagnosis)
    _section(
        console,
        "Seen in the log",
        [_finding(finding) for finding in worth_showing(diagnosis.findings)] or [Text("nothing unusual")],
    )
    if diagnosis.comparison is not None:
        _print_comparison(console, diagnosis.comparison, read.step_name)
    _print_hypotheses(console, diagnosis)
    steps = [_step(number, step) for number, step in enumerate(diagnosis.next_steps[:SHOWN_STEPS], start=1)]
    if steps:
        steps.append(Text("Once it is made: the same command with --outcome CHECK=confirms or =refutes", style="dim"))
    _section(console, "Check next", steps)
    _section(console, "Tied", [Text(tie.summary) for tie in diagnosis.ties])
    _section(console, "Not logged, and would have helped", [_to_log(one) for one in diagnosis.what_to_log])
    _section(console, "Practitioners on this", [_citation(one) for one in _citations(diagnosis.hypotheses)])
    unknown = [finding.symptom for finding in diagnosis.findings if finding.state is State.UNKNOWN]
    notes = [Text(f"• {note}", style="dim") for note in diagnosis.notes]
    if unknown:
        notes.append(
            Text(f"• {len(unknown)} of {len(diagnosis.findings)} symptoms cannot be judged from this log", style="dim")
        )
    _section(console, "Notes", notes)


def _print_curves(console: Console, run: Run, diagnosis: Diagnosis) -> None:
    for name in CURVES:
        if name not in run or len(run[name]) < 2:
            continue
        onset = next(
            (f for f in diagnosis.findings if f.state is State.PRESENT and f.steps and f.symptom.startswith(name)), None
        )
        bars, column = sparkline(run[name], console.width - 40, onset.steps[0] if onset else None)
        first, last = figure(float(run[name].value[0])), figure(float(run[name].value[-1]))
        console.print(Text.assemble(f"\n{name:>10} {first:>9} ", (bars, "cyan"), f" {last}"), no_wrap=True)
        if onset is not None and column is not None:
            mark = f"▲ {run.step_name} {figure(onset.steps[0])}"
            room = max(0, min(column, len(bars)))
            console.print(Text(" " * (21 + room) + mark, style="bold red"), no_wrap=True)


def _section(console: Console, title: str, lines: Sequence[RenderableType]) -> None:
    if lines:
        console.print(Text(f"\n{title}", style="bold underline"))
        for line in lines:
            console.print(Padding(line, (0, 0, 0, 2)))


def _print_comparison(console: Console, comparison: Comparison, step_name: str) -> None:
    partings = [
        Text(
            f"{one.metric} parts at {step_name} {figure(one.step)}: {figure(one.run)} here, "
            f"{figure(one.reference)} there ({figure(one.sigmas)} standard deviations of the noise)"
        )
        for one in comparison.partings
    ]
    same = [Text(f"no difference beyond the noise: {', '.join(comparison.alike)}")] if comparison.alike else []
    settings = [
        Text(f"{one.setting}: {_value(one.run)} here, {_value(one.reference)} there", style="yellow")
        for one in comparison.settings
    ]
    _section(console, f"Beside {comparison.reference}", [*partings, *same, *settings])


def _value(value: str | float | None) -> str:
    return "not set" if value is None else value if isinstance(value, str) else figure(value)


def _finding(finding: Finding) -> Text:
    present = finding.state is State.PRESENT
    return Text.assemble(
        (f"{finding.symptom}: ", "bold red" if present else "bold"), finding.summary, ("" if present else " (harmless)")
    )


def _print_hypotheses(console: Console, diagnosis: Diagnosis) -> None:
    console.print(Text("\nWhat it may be", style="bold underline"), Text("(hypotheses, not verdicts)", style="dim"))
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    shown = diagnosis.hypotheses[:SHOWN_HYPOTHESES]
    for one in shown:
        table.add_row(
            Text(f"{one.probability:.0%}", style="bold"), Text(f"{one.credence}", style="dim"), _hypothesis(one)
        )
    rest = sum(one.probability for one in diagnosis.hypotheses[SHOWN_HYPOTHESES:])
    table.add_row(
        f"{rest:.0%}", "", Text(f"{len(diagnosis.hypotheses) - len(shown)} other causes together", style="dim")
    )
    console.print(Padding(table, (0, 0, 0, 2)))


def _hypothesis(one: Hypothesis) -> Text:
    text = Text.assemble((one.cause, "bold green" if one.cause == "healthy" else "bold yellow"))
    if one.summary:
        text.append(f": {one.summary.split('. ')[0].rstrip('.')}.")
    if one.because:
        text.append(f"\nfor it: {', '.join(one.because)}", style="dim")
    if one.against:
        text.append(f"\nagainst it: {', '.join(one.against[:3])}", style="dim")
    return text


def _step(number: int, step: NextStep) -> Text:
    others = [cause for cause in step.for_causes if not step.id.startswith(f"{cause}.")]
    also = f"; also for {', '.join(others)}" if others else ""
    text = Text.assemble(f"{number}. {step.action} ", (f"({step.id}: {step.cost}{also})", "dim"))
    text.append(f"\n   confirms: {step.confirms}\n   refutes:  {step.refutes}", style="dim")
    if step.call:
        text.append(f"\n   {step.call}", style="cyan")
    return text


def _to_log(one: MetricToLog) -> Text:
    return Text.assemble(
        (one.metric, "bold"), f": {one.how} ", (f"({figure(one.bits)} bits on {', '.join(one.splits)})", "dim")
    )


def _citations(hypotheses: list[Hypothesis]) -> list[Citation]:
    """Return one citation for each of the leading hypotheses that something speaks for."""
    leading = [
        one for one in hypotheses[:SHOWN_HYPOTHESES] if one.citations and (one.because or one.cause == "healthy")
    ]
    return list({one.citations[0].id: one.citations[0] for one in leading}.values())[:3]


def _citation(one: Citation) -> Text:
    return Text.assemble(
        (f"“{one.text}”", "italic"), f"\n— {one.author}, {one.title} ", (f"[{one.id}] {one.url}", "dim")
    )


def print_search(console: Console, result: SearchResult) -> None:
    """Print what was found."""
    for quote in result.quotes:
        console.print(_citation(quote))
        console.print()
    for entry in result.entries:
        console.print(Text.assemble((f"{entry.kind} ", "dim"), (entry.id, "bold yellow"), f": {entry.summary}"))
    for note in result.notes:
        console.print(Text(note, style="dim"))


def print_explanation(console: Console, explanation: Explanation) -> None:
    """Print an entry of the catalogue."""
    from rich.markdown import Markdown

    console.print(Text(f"{explanation.kind} {explanation.id}", style="bold"))
    console.print(Markdown(explanation.text) if console.is_terminal else Text(explanation.text))
    if explanation.kind in ("symptom", "source"):
        for citation in explanation.citations:
            console.print()
            console.print(_citation(citation))
    if explanation.related:
        console.print(Text(f"\nSee also: {', '.join(explanation.related)}", style="dim"))
