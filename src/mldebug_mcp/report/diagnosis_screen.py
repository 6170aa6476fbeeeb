"""A diagnosis on one screen: the verdict block first, whole; then what was observed and the other hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis, Finding, Hypothesis, State
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.report.diagnosis_curves import curve_lines
from mldebug_mcp.report.sections import (
    Section,
    finding_line,
    hypotheses_shown,
    notes_on,
    observed,
    reasons_of,
    worth_showing,
)
from mldebug_mcp.report.shown import partings, settings_apart
from mldebug_mcp.report.verdict_terminal import print_verdict
from mldebug_mcp.text import percent, shorten

LINES = 50
MAX_LINES_OF_FINDING = 2
MAX_FINDINGS_WHOLE = 11
MAX_DETAILED = 3
"""Hypotheses whose facts are shown; the others are named."""
MIN_PROBABILITY_UNDISPUTED = 0.9
"""Probability of the first hypothesis from which nothing against it is shown. Chosen."""
MAX_NOTE_LINES = 4
_SHARES = {
    "Seen in the log": MAX_FINDINGS_WHOLE + 1,
    "Settings": 6,
    "Logged": 9,
    "Events": 6,
    "Notes": MAX_NOTE_LINES + 1,
}
"""Lines of the parts that give way, the most important first, where all are full."""
MIN_LINES_OF_PART = 4
_ALWAYS = ("Seen in the log", "Settings")


@dataclass(frozen=True, slots=True)
class Part:
    """A titled part of the screen, a text for each line."""

    title: str
    lines: Sequence[Text]


def print_screen(console: Console, diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print a diagnosis on at most `LINES` lines, or more where the verdict block and the findings need them.

    Args:
        console: Where to.
        diagnosis: In full.
        run: As it was read.
        bits: Whether to say how much each fact weighs for a cause.
    """
    width = console.width
    block = print_verdict(console, diagnosis)
    ran, *parts = _parts(diagnosis, width)
    head = [Text(), Text(shorten(diagnosis.run.path, 4 * width), style="bold"), *ran.lines]
    top = [*_cropped(head, width), *curve_lines(run, diagnosis, width)]
    compared = _compared(diagnosis, width)
    end = [*compared, *_hypotheses(diagnosis, width, bits=bits)]
    seen = next((len(one.lines) for one in parts if one.title == "Seen in the log"), 0)
    if block + len(top) + len(end) + seen > LINES - MIN_LINES_OF_PART and not bits:
        end = [*compared, *_hypotheses(diagnosis, width, bits=False, facts=False)]
    cause = diagnosis.hypotheses[0].cause
    last = [Text(f"More: --long, mldebug-mcp explain {cause}, mldebug-mcp read PATH", style="dim")]
    shown = _within(parts, LINES - block - len(top) - len(end) - len(last))
    notes = [one for one in shown if one.title == "Notes"]
    for part in (one for one in shown if one.title != "Notes"):
        top += [Text(part.title, style="bold"), *part.lines]
    for part in notes:
        end += [Text(part.title, style="bold"), *part.lines]
    for line in [*top, *end, *last]:
        console.print(line, no_wrap=True, crop=True, overflow="crop")


def _parts(diagnosis: Diagnosis, width: int) -> list[Part]:
    parts = []
    for section in observed(diagnosis):
        if section.title == "Seen in the log":
            lines = _seen(diagnosis, section, width)
        elif section.title == "Settings":
            lines = _settings(section, width)
        elif section.title == "What ran":
            lines = [line for one in section.lines for line in _wrapped(one, width, indent=0)]
        else:
            lines = [line for one in section.lines for line in _wrapped(one, width)]
        parts.append(Part(section.title, lines))
    notes = [line for note in notes_on(diagnosis) for line in _wrapped(note, width)]
    return [*parts, Part("Notes", notes)]


def _settings(section: Section, width: int) -> list[Text]:
    lines = []
    for one in section.lines:
        lines += _cropped([Text(f"  {one}", style="yellow")], width) if one in section.marked else _wrapped(one, width)
    return lines


def _within(parts: Sequence[Part], room: int) -> list[Part]:
    """Return the parts in so many lines: each gets its share, and what others leave over.

    Where there is too little room all but the findings give way, the longest first; then the last parts go.
    """
    wanted = {one.title: len(one.lines) + 1 if one.lines else 0 for one in parts}
    granted = {title: min(wanted.get(title, 0), share) for title, share in _SHARES.items()}
    while sum(granted.values()) > room:
        longest = max(list(granted)[1:], key=lambda title: granted[title])
        if granted[longest] <= MIN_LINES_OF_PART:
            break
        granted[longest] -= 1
    for title in reversed(_SHARES):
        if sum(granted.values()) > room and title not in _ALWAYS:
            granted[title] = 0
    for title in _SHARES:
        granted[title] += max(0, min(wanted.get(title, 0) - granted[title], room - sum(granted.values())))
    # A part of which only the remark on what is left out would stand is not worth its title.
    kept = [one for one in parts if granted[one.title] >= min(wanted[one.title], 3) > 0]
    return [_shortened(one, granted[one.title] - 1) for one in kept]


def _shortened(part: Part, lines: int) -> Part:
    if len(part.lines) <= lines:
        return part
    left = len(part.lines) - lines + 1
    return Part(part.title, [*part.lines[: lines - 1], Text(f"  … {left} more lines with --long", style="dim")])


def _seen(diagnosis: Diagnosis, section: Section, width: int) -> list[Text]:
    """Return the findings on two lines each, or on one where they are many; the last ones may be named alone."""
    findings = worth_showing(diagnosis.findings)
    if not findings:
        return [line for one in section.lines for line in _wrapped(one, width)]
    whole = [line for one in findings for line in _finding(one, width)[:MAX_LINES_OF_FINDING]]
    if len(whole) < MAX_FINDINGS_WHOLE:
        return whole
    short = [_cropped([_in_one_line(one)], width)[0] for one in findings[: MAX_FINDINGS_WHOLE - 3]]
    others = ", ".join(one.symptom for one in findings[len(short) :])
    return [*short, *(_wrapped(f"also: {others}", width)[:MAX_LINES_OF_FINDING] if others else [])]


def _finding(one: Finding, width: int) -> list[Text]:
    present = one.state is State.PRESENT
    lines = _wrapped(finding_line(one), width)
    lines[0].stylize("bold red" if present else "bold", 2, min(len(lines[0]), 2 + len(one.symptom) + 1))
    return lines


def _in_one_line(one: Finding) -> Text:
    return Text.assemble((f"  {one.symptom}:", "bold red"), finding_line(one).removeprefix(f"{one.symptom}:"))


def _compared(diagnosis: Diagnosis, width: int) -> list[Text]:
    comparison = diagnosis.comparison
    if comparison is None:
        return []
    title = Text(shorten(f"Compared with {comparison.reference}", 4 * width), style="bold")
    lines = [*settings_apart(comparison)[:4], *partings(comparison, diagnosis.run.step_name)[:4]]
    return _cropped([title, *(Text(f"  {line}", style="yellow") for line in lines)], width)


def _hypotheses(diagnosis: Diagnosis, width: int, *, bits: bool, facts: bool = True) -> list[Text]:
    """Return the hypotheses: the facts for the first stand above, in the verdict block, unless bits are asked for."""
    lines = [Text("What it may be (hypotheses, not verdicts)", style="bold")]
    for place, one in enumerate(hypotheses_shown(diagnosis)):
        lines.append(_share_line(one))
        sides = {"for": +1, "against": -1} if place or bits else {"against": -1}
        if not place and one.probability >= MIN_PROBABILITY_UNDISPUTED and not bits:
            sides = {}
        for side, sign in sides.items() if facts and place < MAX_DETAILED else ():
            for fact in reasons_of(one, sign, bits=bits)[: 2 if bits else 1]:
                lines += _wrapped(f"{side}: {fact}", width, indent=8)
    return lines


def _share_line(one: Hypothesis) -> Text:
    text = Text(f"  {percent(one.probability):>4}  ", style="bold")
    text.append(one.cause, style="bold green" if one.cause == SOUND else "bold yellow")
    return text


def _cropped(lines: Sequence[Text], width: int) -> list[Text]:
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return list(lines)


def _wrapped(text: str, width: int, indent: int = 2) -> list[Text]:
    """Return a text on lines of the width, indented; a word that is longer is cut."""
    room = max(8, width - indent)
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return _cropped([Text(f"{' ' * indent}{line}") for line in lines], width)
