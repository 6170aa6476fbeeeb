"""A diagnosis as text for a person: coloured where the output is a terminal, plain elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mldebug_mcp.diagnose.diagnosis import HARDLY_JUDGED
from mldebug_mcp.logs import Run
from mldebug_mcp.models import (
    Citation,
    Comparison,
    Diagnosis,
    Finding,
    Hypothesis,
    MetricToLog,
    NextStep,
    State,
)
from mldebug_mcp.report.console import bullets, plain_table, print_section
from mldebug_mcp.report.diagnosis_concise import worth_showing
from mldebug_mcp.report.knowledge_terminal import citation_text
from mldebug_mcp.report.sparkline import sparkline
from mldebug_mcp.text import figure, percent

SHOWN_HYPOTHESES = 5
SHOWN_STEPS = 3
CITED = 0.1
"""Probability below which a hypothesis other than the leader has no quote shown (chosen)."""
CURVES = ("loss", "eval_loss", "reward", "grad_norm")


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
    print_section(
        console,
        "Seen in the log",
        [_finding(finding) for finding in worth_showing(diagnosis.findings)] or [_nothing_seen(diagnosis)],
    )
    if diagnosis.comparison is not None:
        _print_comparison(console, diagnosis.comparison, read.step_name)
    _print_hypotheses(console, diagnosis)
    steps = [_step(number, step) for number, step in enumerate(diagnosis.next_steps[:SHOWN_STEPS], start=1)]
    if steps:
        steps.append(
            Text("Once a check is made, run the same command with --outcome CHECK=confirms or =refutes", style="dim")
        )
    print_section(console, "Check next", steps)
    print_section(console, "Tied", [Text(tie.summary) for tie in diagnosis.ties])
    print_section(console, "Not logged, but would have helped", [_to_log(one) for one in diagnosis.what_to_log])
    print_section(console, "Practitioners on this", [citation_text(one) for one in _citations(diagnosis.hypotheses)])
    unknown = [finding.symptom for finding in diagnosis.findings if finding.state is State.UNKNOWN]
    notes = [*diagnosis.notes]
    if unknown:
        notes.append(f"{len(unknown)} of {len(diagnosis.findings)} symptoms cannot be judged from this log")
    print_section(console, "Notes", bullets(notes))


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


def _print_comparison(console: Console, comparison: Comparison, step_name: str) -> None:
    partings = [
        Text(
            f"{one.metric} departs at {step_name} {figure(one.step)}: {figure(one.run)} here, "
            f"{figure(one.reference)} there ({figure(one.sigmas)} standard deviations of the noise); at the end "
            f"{figure(one.run_at_end)} and {figure(one.reference_at_end)}"
        )
        for one in comparison.partings
    ]
    same = [Text(f"no difference beyond the noise: {', '.join(comparison.alike)}")] if comparison.alike else []
    settings = [
        Text(f"{one.setting}: {_value(one.run)} here, {_value(one.reference)} there", style="yellow")
        for one in comparison.settings
    ]
    print_section(console, f"Compared with {comparison.reference}", [*partings, *same, *settings])


def _value(value: str | float | None) -> str:
    return "not set" if value is None else value if isinstance(value, str) else figure(value)


def _finding(finding: Finding) -> Text:
    present = finding.state is State.PRESENT
    return Text.assemble(
        (f"{finding.symptom}: ", "bold red" if present else "bold"), finding.summary, ("" if present else " (harmless)")
    )


def _print_hypotheses(console: Console, diagnosis: Diagnosis) -> None:
    console.print(Text("\nWhat it may be", style="bold underline"), Text("(hypotheses, not verdicts)", style="dim"))
    table = plain_table("right", "left", "text")
    shown = diagnosis.hypotheses[:SHOWN_HYPOTHESES]
    for one in shown:
        table.add_row(Text(percent(one.probability), style="bold"), Text(one.credence, style="dim"), _hypothesis(one))
    rest = sum(one.probability for one in diagnosis.hypotheses[SHOWN_HYPOTHESES:])
    table.add_row(
        percent(rest), "", Text(f"{len(diagnosis.hypotheses) - len(shown)} other causes together", style="dim")
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
    return Text.assemble((one.metric, "bold"), f": {one.how} ", (f"(bears on {', '.join(one.splits)})", "dim"))


def _nothing_seen(diagnosis: Diagnosis) -> Text:
    return Text("too little to judge" if HARDLY_JUDGED in diagnosis.notes else "nothing unusual")


def _citations(hypotheses: list[Hypothesis]) -> list[Citation]:
    """Return one citation for each hypothesis that something speaks for: for the leader, and for those near it."""
    leading = [
        one
        for place, one in enumerate(hypotheses[:SHOWN_HYPOTHESES])
        if one.citations and (one.because or one.cause == "healthy") and (place == 0 or one.probability >= CITED)
    ]
    return list({one.citations[0].id: one.citations[0] for one in leading}.values())[:3]
