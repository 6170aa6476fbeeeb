"""A diagnosis on one screen of a terminal, or in one line."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import figure, percent, shorten
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Diagnosis, Finding, Hypothesis, State
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.report.curves import curve_lines
from mldebug_mcp.report.sections import (
    PLAIN_WIDTH,
    Line,
    Section,
    block_lines,
    finding_line,
    hypotheses_shown,
    is_plain,
    line,
    notes_on,
    observed,
    partings,
    print_plain,
    reasons_of,
    settings_apart,
    verdict_block,
    worth_showing,
    wrap,
)

# What stands first: the verdict block, and the opinions of a reader.


VERDICT_LINES = 9
"""Rows of the block at 80 columns, as far as fewer facts and a shorter fix can do it. Chosen: read at a glance."""


def verdict_lines(diagnosis: Diagnosis, width: int) -> list[Line]:
    """Return the block; a command is one line to copy, however wide the terminal is."""
    return block_lines(verdict_block(diagnosis), width, VERDICT_LINES)


def opinion_lines(diagnosis: Diagnosis, width: int) -> list[Line]:
    """Return the opinions of reader and own ranking; nothing where no reader was asked."""
    return [line(part) for text in _opinions(diagnosis) for part in wrap(text, width)]


def _opinions(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.reader is None:
        return []
    from mldebug_mcp.judge import reader

    return reader.opinion_lines(diagnosis)


MAX_SCREEN_LINES = 50
MAX_LINES_OF_FINDING = 2
MAX_FINDINGS_WHOLE = 11
MAX_DETAILED = 3
"""Hypotheses whose facts are shown; the others are named."""
MIN_PROBABILITY_UNDISPUTED = 0.9
"""Probability of the first hypothesis from which nothing against it is shown. Chosen."""
MAX_NOTE_LINES = 4
_SHARES = {
    "Seen in the log": MAX_FINDINGS_WHOLE + 1,
    "Facts": 9,
    "Script": 6,
    "Tried before": 5,
    "Which checkpoint to keep": 6,
    "Settings": 6,
    "Logged": 9,
    "Events": 6,
    "Notes": MAX_NOTE_LINES + 1,
}
"""Lines of the parts that give way, the most important first, where all are full."""
MIN_LINES_OF_PART = 4
NEVER_SHORTENED = 2
"""Parts, the first ones, that do not give way."""
_ALWAYS = ("Seen in the log", "Settings")


@dataclass(frozen=True, slots=True)
class Part:
    """A titled part of the screen, a text for each line."""

    title: str
    lines: Sequence[Line]


def print_screen(diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print a diagnosis on one screen of standard output, in colour where it is a terminal."""
    if is_plain():
        print_plain(screen_lines(diagnosis, run, PLAIN_WIDTH, bits=bits))
    else:
        from mldebug_mcp.report.console import console_for, print_lines

        console = console_for()
        print_lines(console, screen_lines(diagnosis, run, console.width, bits=bits))


def screen_lines(diagnosis: Diagnosis, run: Run, width: int, *, bits: bool = False) -> list[Line]:
    """Return a diagnosis on at most `MAX_SCREEN_LINES` lines, or more where its verdict and its findings need them."""
    first = [*verdict_lines(diagnosis, width), *opinion_lines(diagnosis, width)]
    block = len(first)
    ran, *parts = _parts(diagnosis, width)
    head = [line(), line((shorten(diagnosis.run.title, 4 * width), "bold")), *ran.lines]
    top = [*_cropped(head, width), *curve_lines(run, diagnosis, width)]
    compared = _compared(diagnosis, width)
    end = [*compared, *_hypotheses(diagnosis, width, bits=bits)]
    finding_lines = next((len(part.lines) for part in parts if part.title == "Seen in the log"), 0)
    if block + len(top) + len(end) + finding_lines > MAX_SCREEN_LINES - MIN_LINES_OF_PART and not bits:
        end = [*compared, *_hypotheses(diagnosis, width, bits=False, facts=False)]
    cause = diagnosis.hypotheses[0].cause
    metric = shlex.quote(shorten(next((fact.name for fact in diagnosis.sheet.quantities), "METRIC"), width))
    of_run = f" --run {shlex.quote(diagnosis.run.name)}" if diagnosis.run.name else ""
    last = [line((f"More: --long, mldebug-mcp explain {cause}, mldebug-mcp read PATH {metric}{of_run}", "dim"))]
    shown = _fitting_parts(parts, MAX_SCREEN_LINES - block - len(top) - len(end) - len(last))
    notes = [part for part in shown if part.title == "Notes"]
    for part in (part for part in shown if part.title != "Notes"):
        top += [line((part.title, "bold")), *part.lines]
    for part in notes:
        end += [line((part.title, "bold")), *part.lines]
    return [*first, *(text.cropped(width) for text in (*top, *end, *last))]


def _parts(diagnosis: Diagnosis, width: int) -> list[Part]:
    parts = []
    for section in observed(diagnosis):
        if section.title == "Seen in the log":
            lines = _finding_lines(diagnosis, section, width)
        elif section.title == "Settings":
            lines = _settings(section, width)
        elif section.title == "What ran":
            lines = [part for text in section.lines for part in _wrapped(text, width, indent=0)]
        else:
            lines = [part for text in section.lines for part in _wrapped(text, width)]
        parts.append(Part(section.title, lines))
    notes = [part for note in notes_on(diagnosis) for part in _wrapped(note, width)]
    return [*parts, Part("Notes", notes)]


def _settings(section: Section, width: int) -> list[Line]:
    lines = []
    for text in section.lines:
        lines += _cropped([line((f"  {text}", "yellow"))], width) if text in section.marked else _wrapped(text, width)
    return lines


def _fitting_parts(parts: Sequence[Part], room: int) -> list[Part]:
    """Return the parts in so many lines: each gets its share, and what others leave over.

    Where there is too little room all but the findings give way, the longest first; then the last parts go.
    """
    wanted = {part.title: len(part.lines) + 1 if part.lines else 0 for part in parts}
    granted = {title: min(wanted.get(title, 0), share) for title, share in _SHARES.items()}
    while sum(granted.values()) > room:
        longest = max(list(granted)[NEVER_SHORTENED:], key=lambda title: granted[title])
        if granted[longest] <= MIN_LINES_OF_PART:
            break
        granted[longest] -= 1
    for title in reversed(_SHARES):
        if sum(granted.values()) > room and title not in _ALWAYS:
            granted[title] = 0
    for title in _SHARES:
        granted[title] += max(0, min(wanted.get(title, 0) - granted[title], room - sum(granted.values())))
    # A part of which only the remark on what is left out would stand is not worth its title.
    kept = [part for part in parts if granted[part.title] >= min(wanted[part.title], 3) > 0]
    return [_shortened(part, granted[part.title] - 1) for part in kept]


def _shortened(part: Part, lines: int) -> Part:
    if len(part.lines) <= lines:
        return part
    left = len(part.lines) - lines + 1
    return Part(part.title, [*part.lines[: lines - 1], line((f"  … {left} more lines with --long", "dim"))])


def _finding_lines(diagnosis: Diagnosis, section: Section, width: int) -> list[Line]:
    """Return the findings on two lines each, or on one where they are many; the last ones may be named alone."""
    findings = worth_showing(diagnosis.findings)
    if not findings:
        return [part for text in section.lines for part in _wrapped(text, width)]
    whole = [text for finding in findings for text in _first_lines(_finding(finding, width), width)]
    if len(whole) < MAX_FINDINGS_WHOLE:
        return whole
    shown = findings[: MAX_FINDINGS_WHOLE - 3]
    short = _cropped(
        [
            line((f"  {finding.symptom}:", "bold red"), finding_line(finding).removeprefix(f"{finding.symptom}:"))
            for finding in shown
        ],
        width,
    )
    others = ", ".join(finding.symptom for finding in findings[len(shown) :])
    return [*short, *(_first_lines(_wrapped(f"also: {others}", width), width) if others else [])]


def _finding(finding: Finding, width: int) -> list[Line]:
    present = finding.state is State.PRESENT
    first, *others = _wrapped(finding_line(finding), width)
    text, end = str(first), 2 + len(finding.symptom) + 1
    return [line("  ", (text[2:end], "bold red" if present else "bold"), text[end:]), *others]


def _first_lines(lines: list[Line], width: int) -> list[Line]:
    """Return the first lines of a finding; where more were left out, the last of them ends with a mark."""
    if len(lines) <= MAX_LINES_OF_FINDING:
        return lines
    *shown, last = lines[:MAX_LINES_OF_FINDING]
    return [*shown, Line((*last.pieces, (" …", ""))).cropped(width, "…")]


def _compared(diagnosis: Diagnosis, width: int) -> list[Line]:
    comparison = diagnosis.comparison
    if comparison is None:
        return []
    title = line((shorten(f"Compared with {comparison.reference}", 4 * width), "bold"))
    facts = [*settings_apart(comparison)[:4], *partings(comparison, diagnosis.run.step_name)[:4]]
    return _cropped([title, *(line((f"  {fact}", "yellow")) for fact in facts)], width)


def _hypotheses(diagnosis: Diagnosis, width: int, *, bits: bool, facts: bool = True) -> list[Line]:
    """Return the hypotheses: the facts for the first stand above, in the verdict block, unless bits are asked for."""
    lines = [*_check_in_full(diagnosis, width), line(("What it may be (hypotheses, not verdicts)", "bold"))]
    for place, hypothesis in enumerate(hypotheses_shown(diagnosis)):
        lines.append(_share_line(hypothesis))
        sides = {"for": +1, "against": -1} if place or bits else {"against": -1}
        if not place and hypothesis.probability >= MIN_PROBABILITY_UNDISPUTED and not bits:
            sides = {}
        for side, sign in sides.items() if facts and place < MAX_DETAILED else ():
            for fact in reasons_of(hypothesis, sign, bits=bits)[: 2 if bits else 1]:
                lines += _wrapped(f"{side}: {fact}", width, indent=8)
        if not place and hypothesis.unexplained and facts:
            lines += _wrapped(f"not explained by it: {', '.join(hypothesis.unexplained)}", width, indent=8)
    return lines


def _check_in_full(diagnosis: Diagnosis, width: int) -> list[Line]:
    """Return what the check of the verdict block shows, and what the block has no room for of the fix."""
    block = verdict_block(diagnosis)
    lines: list[Line] = []
    if block.check is not None:
        check = block.check
        lines.append(line((f"Check {check.id} ({check.cost})", "bold")))
        lines += _wrapped(f"confirms: {check.confirms}", width) if check.confirms else []
        lines += _wrapped(f"refutes: {check.refutes}", width) if check.refutes else []
    shown = " ".join(str(text).strip() for text in block_lines(block, width, VERDICT_LINES))
    rest = _not_shown(block.fix, shown)
    return [*lines, *([line(("More of the fix", "bold")), *_wrapped(rest, width)] if rest else [])]


def _not_shown(fix: str, shown: str) -> str:
    """Return the sentences of a fix behind those with which a text ends."""
    words = fix.split()
    ends = (count for count in range(len(words), 0, -1) if shown.endswith(" ".join(words[:count])))
    return " ".join(words[next(ends, 0) :])


def _share_line(hypothesis: Hypothesis) -> Line:
    style = "bold green" if hypothesis.cause == SOUND else "bold yellow"
    return line((f"  {percent(hypothesis.probability):>4}  ", "bold"), (hypothesis.cause, style))


def _cropped(lines: Sequence[Line], width: int) -> list[Line]:
    return [text.cropped(width, "…") for text in lines]


def _wrapped(text: str, width: int, indent: int = 2) -> list[Line]:
    """Return a text on lines of the width, indented; a word that is longer is cut."""
    room = max(8, width - indent)
    lines = textwrap.wrap(" ".join(text.split()), room, break_long_words=False, break_on_hyphens=False)
    return _cropped([line(f"{' ' * indent}{part}") for part in lines], width)


MAX_SYMPTOMS_SHOWN = 4
MAX_RUN_LINE_CHARACTERS = 300


def short_line(diagnosis: Diagnosis) -> str:
    """Return the run, how far it came, what leads, and what is seen."""
    run = diagnosis.run
    come = "" if run.last_step is None else f" ({run.step_name} {figure(run.last_step)})"
    symptoms = [finding.symptom for finding in diagnosis.present]
    more = f" and {len(symptoms) - MAX_SYMPTOMS_SHOWN} more" if len(symptoms) > MAX_SYMPTOMS_SHOWN else ""
    listed = f"; seen: {', '.join(symptoms[:MAX_SYMPTOMS_SHOWN])}{more}" if symptoms else ""
    opinions = "".join(f"; {line}" for line in _opinions(diagnosis)[:2])
    return shorten(f"{run.title}{come}: {diagnosis.verdict.headline}{opinions}{listed}", MAX_RUN_LINE_CHARACTERS)
