"""A diagnosis on one screen: the sheet, what is seen, what it may be with its fix, and the next call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis, Finding, Hypothesis, State
from mldebug_mcp.models.base import NO_FAULTS, SOUND
from mldebug_mcp.report.commands import as_command
from mldebug_mcp.report.diagnosis_concise import worth_showing
from mldebug_mcp.report.diagnosis_curves import curve_lines
from mldebug_mcp.report.shown import notes_on, nothing_seen, partings, settings_apart, without_bits
from mldebug_mcp.text import figure, percent, shorten

LINES = 45
MOST_CAUSES = 5
LEAST_PROBABILITY = 0.01
MOST_LINES_EACH = 2
"""Lines that a finding may take."""
MOST_SEEN = 11
_SHARES = (("Seen in the log", MOST_SEEN + 1), ("Settings", 6), ("Logged", 9), ("Events", 6), ("Notes", 2))
"""Lines of the parts that give way, the most important first, where all are full."""


@dataclass(frozen=True, slots=True)
class Part:
    """A titled part of the screen, a text for each line."""

    title: str
    lines: Sequence[Text]


def print_screen(console: Console, diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print a diagnosis on at most `LINES` lines; `bits` tells how much each finding speaks for a cause."""
    width = console.width
    head = [Text(shorten(diagnosis.run.path, 4 * width), style="bold"), *_ran(diagnosis)]
    top = [*_cropped(head, width), *curve_lines(run, diagnosis, width)]
    end = [*_compared(diagnosis, width), *_causes(diagnosis, width, bits=bits), *_next(diagnosis, width)]
    parts = _giving_way(diagnosis, width)
    for part in _within(parts, LINES - len(top) - len(end)):
        top += [Text(part.title, style="bold"), *part.lines]
    for line in [*top, *end]:
        console.print(line, no_wrap=True, crop=True, overflow="crop")


def _ran(diagnosis: Diagnosis) -> list[Text]:
    return [Text(line) for line in diagnosis.sheet.ran]


def _giving_way(diagnosis: Diagnosis, width: int) -> list[Part]:
    sheet = diagnosis.sheet
    seen = _seen(diagnosis, width)
    marked = [Text(f"  {one}", style="yellow") for one in sheet.settings if one.usual]
    usual = "; ".join(str(one) for one in sheet.settings if not one.usual)
    events = [Text(f"  {diagnosis.run.step_name} {figure(one.step)}: {one}") for one in sheet.events]
    return [
        Part("Seen in the log", seen or _wrapped(nothing_seen(diagnosis), width)),
        Part("Settings", [*_cropped(marked, width), *_wrapped(usual, width)]),
        Part("Logged", _cropped([Text(f"  {' | '.join(one.parts)}") for one in sheet.quantities], width)),
        Part("Events", _cropped(events, width)),
        Part("Notes", _cropped([Text(f"  {note}", style="dim") for note in notes_on(diagnosis)], width)),
    ]


def _within(parts: Sequence[Part], room: int) -> list[Part]:
    """Return the parts in so many lines: each gets its share, and what others leave over."""
    wanted = {one.title: len(one.lines) + 1 if one.lines else 0 for one in parts}
    granted = {title: min(wanted[title], share) for title, share in _SHARES}
    while sum(granted.values()) > room and any(list(granted.values())[1:]):
        most = max(list(granted)[1:], key=lambda title: granted[title])
        granted[most] -= 1
    for title, _ in _SHARES:
        granted[title] += max(0, min(wanted[title] - granted[title], room - sum(granted.values())))
    return [_shortened(one, granted[one.title] - 1) for one in parts if granted[one.title] > 1]


def _shortened(part: Part, lines: int) -> Part:
    if len(part.lines) <= lines:
        return part
    left = len(part.lines) - lines + 1
    return Part(part.title, [*part.lines[: lines - 1], Text(f"  … {left} more lines with --long", style="dim")])


def _seen(diagnosis: Diagnosis, width: int) -> list[Text]:
    """Return the findings on two lines each, or on one where they are many; the last ones may be named alone."""
    findings = worth_showing(diagnosis.findings)
    whole = [line for one in findings for line in _finding(one, width)[:MOST_LINES_EACH]]
    if len(whole) < MOST_SEEN:
        return whole
    short = [_cropped([_in_one_line(one)], width)[0] for one in findings[: MOST_SEEN - 3]]
    others = ", ".join(one.symptom for one in findings[len(short) :])
    return [*short, *(_wrapped(f"also: {others}", width)[:MOST_LINES_EACH] if others else [])]


def _finding(one: Finding, width: int) -> list[Text]:
    present = one.state is State.PRESENT
    lines = _wrapped(_said(one), width)
    lines[0].stylize("bold red" if present else "bold", 2, min(len(lines[0]), 2 + len(one.symptom) + 1))
    return lines


def _in_one_line(one: Finding) -> Text:
    return Text.assemble((f"  {one.symptom}:", "bold red"), _said(one).removeprefix(f"{one.symptom}:"))


def _said(one: Finding) -> str:
    return f"{one.symptom}: {one.summary}" + ("" if one.state is State.PRESENT else " (harmless)")


def _compared(diagnosis: Diagnosis, width: int) -> list[Text]:
    comparison = diagnosis.comparison
    if comparison is None:
        return []
    title = Text(shorten(f"Compared with {comparison.reference}", 4 * width), style="bold")
    lines = [*settings_apart(comparison)[:4], *partings(comparison, diagnosis.run.step_name)[:4]]
    return _cropped([title, *(Text(f"  {line}", style="yellow") for line in lines)], width)


def _causes(diagnosis: Diagnosis, width: int, *, bits: bool) -> list[Text]:
    shown = [one for one in diagnosis.hypotheses[:MOST_CAUSES] if one.probability >= LEAST_PROBABILITY]
    lines = [Text("What it may be (hypotheses, not verdicts)", style="bold")]
    for place, one in enumerate(shown or diagnosis.hypotheses[:1]):
        lines.append(_cause(one, bits=bits))
        if place == 0 and one.fix and one.cause not in NO_FAULTS:
            lines.append(Text(f"        fix: {shorten(one.fix, 4 * width)}", style="green"))
    return _cropped(lines, width)


def _cause(one: Hypothesis, *, bits: bool) -> Text:
    told = (lambda said: said) if bits else without_bits
    text = Text(f"  {percent(one.probability):>4}  ", style="bold")
    text.append(one.cause, style="bold green" if one.cause == SOUND else "bold yellow")
    if one.because:
        text.append(f"  for: {', '.join(map(told, one.because[:2]))}", style="not bold")
    if one.against:
        text.append(f"  against: {told(one.against[0])}", style="dim not bold")
    return text


def _next(diagnosis: Diagnosis, width: int) -> list[Text]:
    lines = []
    for step in diagnosis.next_steps[:1]:
        lines += [Text("Check next", style="bold"), Text(f"  {step.id} ({step.cost}): {step.action}")]
        lines.append(Text(f"  confirms: {step.confirms}", style="dim"))
    if diagnosis.next_step is not None:
        lines.append(Text(f"  {as_command(str(diagnosis.next_step))}", style="cyan"))
    more = f"All of it: --long; a cause: mldebug-mcp explain {diagnosis.hypotheses[0].cause}; values: mldebug-mcp read"
    return _cropped([*lines, Text(more, style="dim")], width)


def _cropped(lines: Sequence[Text], width: int) -> list[Text]:
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return list(lines)


def _wrapped(text: str, width: int) -> list[Text]:
    """Return a text on lines of the width, indented; a word that is longer is cut."""
    room = max(8, width - 2)
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return _cropped([Text(f"  {line}") for line in lines], width)
