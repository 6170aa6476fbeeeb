"""Answers about runs for a terminal: a diagnosis in full, many runs, the values of a metric, and news of a run."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mldebug_mcp.checks.results import MIN_SIBLINGS
from mldebug_mcp.core.text import counted, figure, percent, quoted, shorten
from mldebug_mcp.judge.at_a_glance import shared_line
from mldebug_mcp.judge.next_call import as_command
from mldebug_mcp.judge.sweep import SWEPT_LEVEL
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.models import Comparison, Diagnosis, Hypothesis, MetricToLog, NextStep
from mldebug_mcp.models.base import NO_FAULTS, SOUND
from mldebug_mcp.models.diagnosis import CheckpointChoice
from mldebug_mcp.models.runs import (
    BestSetting,
    Contest,
    Coverage,
    MetricReading,
    MetricValues,
    News,
    RunRow,
    Runs,
    Sweep,
)
from mldebug_mcp.report.console import bullets, console_for, plain_table, print_first, print_lines, print_section
from mldebug_mcp.report.curves import BARS, NOT_FINITE, Scale, curve_lines, scale_of
from mldebug_mcp.report.diagnosis_screen import opinion_lines, verdict_lines
from mldebug_mcp.report.knowledge_terminal import citation_text
from mldebug_mcp.report.sections import (
    ONCE_CHECKED,
    SHOWN_STEPS,
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


def print_contest(console: Console, answer: Contest) -> None:
    """Print which kind is better, and the result of each run."""
    print_first(console, answer.at_a_glance)
    for name, side in (("A", answer.a), ("B", answer.b)):
        console.print(Text(f"{name}: {', '.join(map(figure, side))}", style="dim"))
    for note in bullets(answer.notes):
        console.print(note)


MAX_TABLE_ROWS = 40
BY_ITS_OWN_LOG = "each run by its own log; diagnose FOLDER --run NAME compares it with the other runs too"
LONGEST_NAME = 40
LONGEST_NOTE = 60
MOST_TRIED = 20
MOST_JOBS = 12
"""Jobs whose ranks are shown."""


def print_runs(console: Console, answer: Runs, *, every_row: bool) -> None:
    """Print the runs that need attention first, the first rows of them or every one, and what they share."""
    most = len(answer.rows) if every_row else MAX_TABLE_ROWS
    print_first(console, answer.at_a_glance)
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    for title in ("run", "ends", "step", "result", "may be", "since"):
        table.add_column(title, justify="right" if title in ("step", "since") else "left", no_wrap=title != "may be")
    for row in answer.rows[:most]:
        table.add_row(*_cells(row))
    console.print(table)
    if any(row.last is not None for row in answer.rows[:most]):
        console.print(Text("result: the median of the last tenth of the values of that metric", style="dim"))
    if len(answer.rows) > MIN_SIBLINGS:
        console.print(Text(f"may be: {BY_ITS_OWN_LOG}", style="dim"))
    left = len(answer.rows) - most
    if left > 0:
        console.print(Text(f"and {counted(left, 'further run')}: --all, --csv FILE or --json", style="dim"))
    tried = [f"{run_row.name}: {line}" for run_row in answer.rows for line in run_row.tried][:MOST_TRIED]
    print_section(console, "Tried before", bullets(tried))
    print_section(console, "Ranks", bullets(rank_lines(answer)))
    print_section(console, "What they share", [Text(shared_line(shared_setting)) for shared_setting in answer.shared])
    print_section(console, "Best settings", list(map(Text, sweep_lines(answer.sweep))))
    print_section(console, "Notes", bullets(answer.notes))


def rank_lines(answer: Runs) -> list[str]:
    """Return what stands out among the ranks of runs, the first runs first."""
    return [f"{row.name}: {'; '.join(row.ranks.told)}" for row in answer.rows if row.ranks is not None][:MOST_JOBS]


def sweep_lines(sweep: Sweep | None) -> list[str]:
    """Return what a sweep says of its settings, a line for each that it says something of."""
    if sweep is None:
        return []
    lines = [f"by {sweep.metric}, {sweep.better} is better, of {counted(sweep.compared, 'run')}:"]
    lines += [line for setting in sweep.settings if (line := _setting_line(setting))]
    if len(lines) == 1:
        lines.append("no setting stands out from what the runs differ by anyway")
    if sweep.between_seeds is not None and sweep.between_settings is not None:
        apart = f"by {figure(sweep.between_settings)}" if sweep.between_settings else "by no more than chance gives"
        lines.append(
            f"between seeds of one setting the result differs by {figure(sweep.between_seeds)} (standard deviation, "
            f"{counted(sweep.seed_groups, 'group')} without a fault), between settings {apart}"
        )
    return lines + [
        f"“{citation.text}” — {citation.author}, {citation.title} [{citation.id}]" for citation in sweep.citations
    ]


def _setting_line(best_setting: BestSetting) -> str:
    """Return the line on a setting; nothing where its levels do not differ beyond chance."""
    if best_setting.p > SWEPT_LEVEL:
        return ""
    line = f"{best_setting.setting}: {best_setting.best} is best of {', '.join(best_setting.tried)}"
    if best_setting.certainty is not None:
        line += f", in {percent(best_setting.certainty)} of draws"
    if best_setting.as_good:
        line += f" ({' or '.join(best_setting.as_good)} may be as good)"
    if best_setting.edge:
        line += (
            f"; best at the edge: {best_setting.at_edge} of {best_setting.top} best runs at the "
            f"{best_setting.edge} {best_setting.setting} tried, "
            f"{'a smaller' if best_setting.edge == 'lowest' else 'a larger'} one may be better"
        )
    return line


def result_of_row(row: RunRow) -> str:
    """Return the result of a run; of one that ended in NaN also what it was before."""
    if row.last is None:
        return ""
    if row.final is not None and not math.isfinite(row.final):
        return f"{row.metric} {figure(row.final)} (before: {figure(row.last)})"
    return f"{row.metric} {figure(row.last)}"


def _cells(row: RunRow) -> tuple[Text, ...]:
    if row.ending == "unread":
        return Text(shorten(row.name, LONGEST_NAME)), Text("unread", style="dim"), *[Text("")] * 2, Text(
            shorten(row.note, LONGEST_NOTE), style="dim"
        ), Text("")  # fmt: skip
    judgement = f"{row.cause} {percent(row.probability)}" if row.cause else row.note
    judgement = shorten(row.error, LONGEST_NOTE) if row.error else judgement
    if row.reader is not None:
        read, together = row.reader.causes[0], row.reader.combined[0]
        judgement += f"; reader: {read.cause} {percent(read.probability)}"
        judgement += f"; together: {together.cause} {percent(together.probability)}"
    return (
        Text(shorten(row.name, LONGEST_NAME)),
        Text(row.ending, style="red" if row.ending == "error" else ""),
        Text("" if row.step is None else figure(row.step)),
        Text(result_of_row(row)),
        Text(judgement, style="bold red" if row.is_sick else "green" if row.leader == SOUND else "yellow"),
        Text("" if row.onset is None else figure(row.onset)),
    )


PICTURE_ROWS = 6
_LABEL_COLUMNS = 10
_MIN_BAR_ROW_SHARE = 0.125
"""Of a row: the lowest value is seen."""


def print_reading(console: Console, reading: MetricReading) -> None:
    """Print each curve as a picture and as numbers."""
    for series in reading.series:
        role = f" = {series.metric}" if series.metric != series.name else ""
        role += f" in {series.unit}" if series.unit else ""
        heading = (
            f"{series.name}{role}: {series.records} records, {reading.step_name}s {figure(series.points[0][0])} to "
        )
        console.print(Text(shorten(f"{heading}{figure(series.points[-1][0])}", 400), style="bold"))
        if series.course:
            console.print(Text(f"  {series.course}"))
        for line in picture(series, max(8, console.width - _LABEL_COLUMNS - 4)):
            console.print(Text(line, style="cyan"), no_wrap=True, crop=True)
        for line in _columns(series, console.width):
            console.print(Text(line), no_wrap=True, crop=True)
    if reading.others:
        console.print(Text(f"also logged: {', '.join(shorten(other, 40) for other in reading.others)}", style="dim"))
    for note in reading.notes:
        console.print(Text(f"note: {note}"))


MOST_KINDS = 40
"""Kinds of lines that are printed; JSON has all."""


def print_coverage(console: Console, coverage: Coverage) -> None:
    """Print the kinds of lines with numbers, those that were not read first."""
    share = percent(coverage.accounted_for)
    console.print(Text(f"{coverage.path}: {coverage.lines:,} lines with numbers, {share} accounted for", style="bold"))
    for kind in coverage.kinds[:MOST_KINDS]:
        style = "yellow" if kind.use == "not read" else ""
        where = f"line {kind.line}" if kind.line else "whole file"
        console.print(Text(f"{kind.count:>8,}  {kind.use:<8}  {kind.pattern}", style=style), no_wrap=True, crop=True)
        console.print(Text(f"{'':>8}  {where}: {kind.example}", style="dim"), no_wrap=True, crop=True)
    if len(coverage.kinds) > MOST_KINDS:
        console.print(Text(f"and {len(coverage.kinds) - MOST_KINDS} more kinds; --json lists them", style="dim"))


def picture(values: MetricValues, width: int) -> list[str]:
    """Return a curve as rows of bars, with the scale at the left; × stands where a value is not finite."""
    value = np.array([number for _, number in values.points], dtype=np.float64)
    finite = value[np.isfinite(value)]
    if len(finite) < 2:
        return []
    scale = scale_of([finite])
    count = min(width, len(value))
    groups = [value[first:last] for first, last in pairwise(np.linspace(0, len(value), count + 1).astype(int))]
    heights = [_height(group, scale) for group in groups]
    rows = []
    for row in range(PICTURE_ROWS - 1, -1, -1):
        cells = "".join(
            NOT_FINITE if height is None else BARS[int(np.clip(8 * (height - row), 0, 8))] for height in heights
        )
        label = {PICTURE_ROWS - 1: figure(float(finite.max())), 0: figure(float(finite.min()))}.get(row, "")
        rows.append(f"  {label:>{_LABEL_COLUMNS}} {cells}")
    return rows


def _height(group: Floats, scale: Scale) -> float | None:
    """Return how many rows the highest value of a group fills; None where one is not finite."""
    if not np.isfinite(group).all():
        return None
    return (
        float(np.clip(scale.share(group.max(keepdims=True))[0], 0.0, 1.0)) * (PICTURE_ROWS - _MIN_BAR_ROW_SHARE)
        + _MIN_BAR_ROW_SHARE
    )


def _columns(values: MetricValues, width: int) -> list[str]:
    cells = [f"{figure(step)}: {figure(value)}" for step, value in values.points]
    wide = max(map(len, cells)) + 2
    each = max(1, (width - 2) // wide)
    rows = -(-len(cells) // each)
    return ["  " + "".join(f"{cell:<{wide}}" for cell in cells[row::rows]).rstrip() for row in range(rows)]


_STYLES = {
    "finding": "bold red",
    "leader": "bold yellow",
    "silent": "bold yellow",
    "no_result": "bold yellow",
    "finished": "bold green",
}


def print_news(news: News) -> None:
    """Print a line with the time of day, how far the run has come, and what is new."""
    come = "" if news.step is None else f"{news.step_name} {figure(news.step)} "
    style = "bold green" if news.what == "leader" and not news.alarm else _STYLES.get(news.what, "bold")
    line = Text.assemble(
        (f"{time.strftime('%H:%M:%S')} ", "dim"), come, (f"{news.symptom or news.what}: ", style), news.text
    )
    console_for().print(line, soft_wrap=True)
    print_first(console_for(), news.at_a_glance)


def print_status(status: str) -> None:
    """Print how far the run has come, and what leads, at a look."""
    console_for().print(Text(f"{time.strftime('%H:%M:%S')} {status}", style="dim"), soft_wrap=True)


def what_now(path: str) -> str:
    """Return the command that tells more after an alarm."""
    return f"mldebug-mcp diagnose {quoted(path)} says the facts for it, and what to check next"


MAX_SHOWN_CHECKPOINTS = 40
_EVALUATED = {"between": "read off between two evaluations", "by its name": "the value in its name"}


def print_choice(console: Console, choice: CheckpointChoice) -> None:
    """Print which checkpoint to keep, and the metric at each of them."""
    print_first(console, choice.at_a_glance)
    table = plain_table("left", "right", "right", "text")
    for checkpoint in choice.checkpoints[:MAX_SHOWN_CHECKPOINTS]:
        kept = checkpoint.name == choice.keep
        style = "bold green" if kept else ""
        remarks = [
            "keep" if kept else "as good, within noise" if checkpoint.as_good else "",
            _EVALUATED.get(checkpoint.evaluated, ""),
            checkpoint.note,
        ]
        table.add_row(
            Text(checkpoint.name, style=style),
            Text("" if checkpoint.step is None else figure(checkpoint.step)),
            Text("" if checkpoint.value is None else figure(checkpoint.value), style=style),
            Text("; ".join(remark for remark in remarks if remark), style="dim"),
        )
    console.print()
    console.print(Padding(table, (0, 0, 0, 2)))
    if len(choice.checkpoints) > MAX_SHOWN_CHECKPOINTS:
        console.print(Text(f"  and {len(choice.checkpoints) - MAX_SHOWN_CHECKPOINTS} more with --json", style="dim"))
    print_section(console, "Notes", bullets(choice.notes))


# A diagnosis for a terminal, in full.


MIN_WIDE_COLUMNS = 72
"""Columns below which hypotheses have no column for how likely they are."""


def print_diagnosis(console: Console, diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print the verdict block, what was observed, every leading hypothesis and check, and the notes."""
    read = diagnosis.run
    print_lines(console, [*verdict_lines(diagnosis, console.width), *opinion_lines(diagnosis, console.width)])
    console.print(Text.assemble("\n", (shorten(read.path, 400), "bold"), f": {what_was_read(diagnosis, run)}"))
    print_lines(console, (text.cropped(console.width) for text in curve_lines(run, diagnosis, console.width)))
    for section in observed(diagnosis, whole=True):
        lines = [Text(line, style="yellow" if line in section.marked else "") for line in section.lines]
        print_section(console, section.title, lines)
    if diagnosis.comparison is not None:
        _print_comparison(console, diagnosis.comparison, read.step_name)
    _print_hypotheses(console, diagnosis, bits=bits)
    steps = [_step(number, step) for number, step in enumerate(diagnosis.next_steps[:SHOWN_STEPS], start=1)]
    if steps:
        steps.append(Text(ONCE_CHECKED, style="dim"))
    print_section(console, "Check next", steps)
    print_section(console, "Tied", [Text(tie.summary) for tie in diagnosis.ties])
    print_section(console, "Not logged, but would have helped", list(map(_to_log, diagnosis.what_to_log)))
    citations = leading_citations(diagnosis.hypotheses)
    print_section(console, "Practitioners on this", list(map(citation_text, citations)))
    print_section(console, "Notes", bullets(notes_on(diagnosis, whole=True)))


def _print_comparison(console: Console, comparison: Comparison, step_name: str) -> None:
    lines = [Text(line) for line in partings(comparison, step_name)]
    settings = [Text(line, style="yellow") for line in settings_apart(comparison)]
    print_section(console, f"Compared with {comparison.reference}", [*settings, *lines])


def _print_hypotheses(console: Console, diagnosis: Diagnosis, *, bits: bool) -> None:
    console.print(Text("\nWhat it may be", style="bold underline"), Text("(hypotheses, not verdicts)", style="dim"))
    wide = console.width >= MIN_WIDE_COLUMNS
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
