"""A diagnosis for a terminal, on one screen, in full, or in one line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import figure, percent, shorten
from mldebug_mcp.judge.next_call import as_command
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Comparison, Diagnosis, Finding, Hypothesis, MetricToLog, NextStep, State
from mldebug_mcp.models.base import NO_FAULTS, SOUND
from mldebug_mcp.report.console import block_lines, bullets, plain_table, print_block, print_section, wrap
from mldebug_mcp.report.curves import curve_lines
from mldebug_mcp.report.knowledge_terminal import citation_text
from mldebug_mcp.report.sections import (
    ONCE_CHECKED,
    SHOWN_STEPS,
    Section,
    also_for,
    finding_line,
    hypotheses_shown,
    leading_citations,
    notes_on,
    observed,
    other_hypotheses,
    partings,
    reasons_of,
    settings_apart,
    title_of,
    verdict_block,
    what_was_read,
    worth_showing,
)

# What stands first: the verdict block, and the opinions of a reader.


VERDICT_LINES = 9
"""Rows of the block at 80 columns, as far as fewer facts and a shorter fix can do it. Chosen: read at a glance."""


def print_verdict(console: Console, diagnosis: Diagnosis) -> int:
    """Print the block and return its rows; a command is one line to copy, however wide the terminal is."""
    return print_block(console, verdict_block(diagnosis), VERDICT_LINES)


def print_opinions(console: Console, diagnosis: Diagnosis) -> int:
    """Print the opinions of reader and own ranking, and return the lines; nothing where no reader was asked."""
    lines = [line for text in _opinions(diagnosis) for line in wrap(text, console.width)]
    for line in lines:
        console.print(Text(line), no_wrap=True, crop=False, overflow="ignore")
    return len(lines)


def _opinions(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.reader is None:
        return []
    from mldebug_mcp.judge.reader import opinion_lines

    return opinion_lines(diagnosis)


NARROW = 72
"""Columns below which hypotheses have no column for how likely they are."""


def print_diagnosis(console: Console, diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print the verdict block, what was observed, every leading hypothesis and check, and the notes."""
    read = diagnosis.run
    print_verdict(console, diagnosis)
    print_opinions(console, diagnosis)
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
    lines: Sequence[Text]


def print_screen(console: Console, diagnosis: Diagnosis, run: Run, *, bits: bool = False) -> None:
    """Print a diagnosis on at most `LINES` lines, or more where the verdict block and the findings need them."""
    width = console.width
    block = print_verdict(console, diagnosis) + print_opinions(console, diagnosis)
    ran, *parts = _parts(diagnosis, width)
    head = [Text(), Text(shorten(diagnosis.run.path, 4 * width), style="bold"), *ran.lines]
    top = [*_cropped(head, width), *curve_lines(run, diagnosis, width)]
    compared = _compared(diagnosis, width)
    end = [*compared, *_hypotheses(diagnosis, width, bits=bits)]
    finding_lines = next((len(part.lines) for part in parts if part.title == "Seen in the log"), 0)
    if block + len(top) + len(end) + finding_lines > LINES - MIN_LINES_OF_PART and not bits:
        end = [*compared, *_hypotheses(diagnosis, width, bits=False, facts=False)]
    cause = diagnosis.hypotheses[0].cause
    metric = shlex.quote(shorten(next((fact.name for fact in diagnosis.sheet.quantities), "METRIC"), width))
    last = [Text(f"More: --long, mldebug-mcp explain {cause}, mldebug-mcp read PATH {metric}", style="dim")]
    shown = _within(parts, LINES - block - len(top) - len(end) - len(last))
    notes = [part for part in shown if part.title == "Notes"]
    for part in (part for part in shown if part.title != "Notes"):
        top += [Text(part.title, style="bold"), *part.lines]
    for part in notes:
        end += [Text(part.title, style="bold"), *part.lines]
    for line in [*top, *end, *last]:
        console.print(line, no_wrap=True, crop=True, overflow="crop")


def _parts(diagnosis: Diagnosis, width: int) -> list[Part]:
    parts = []
    for section in observed(diagnosis):
        if section.title == "Seen in the log":
            lines = _finding_lines(diagnosis, section, width)
        elif section.title == "Settings":
            lines = _settings(section, width)
        elif section.title == "What ran":
            lines = [line for text in section.lines for line in _wrapped(text, width, indent=0)]
        else:
            lines = [line for text in section.lines for line in _wrapped(text, width)]
        parts.append(Part(section.title, lines))
    notes = [line for note in notes_on(diagnosis) for line in _wrapped(note, width)]
    return [*parts, Part("Notes", notes)]


def _settings(section: Section, width: int) -> list[Text]:
    lines = []
    for line in section.lines:
        lines += (
            _cropped([Text(f"  {line}", style="yellow")], width) if line in section.marked else _wrapped(line, width)
        )
    return lines


def _within(parts: Sequence[Part], room: int) -> list[Part]:
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
    return Part(part.title, [*part.lines[: lines - 1], Text(f"  … {left} more lines with --long", style="dim")])


def _finding_lines(diagnosis: Diagnosis, section: Section, width: int) -> list[Text]:
    """Return the findings on two lines each, or on one where they are many; the last ones may be named alone."""
    findings = worth_showing(diagnosis.findings)
    if not findings:
        return [line for text in section.lines for line in _wrapped(text, width)]
    whole = [line for finding in findings for line in _finding(finding, width)[:MAX_LINES_OF_FINDING]]
    if len(whole) < MAX_FINDINGS_WHOLE:
        return whole
    short = [_cropped([_in_one_line(finding)], width)[0] for finding in findings[: MAX_FINDINGS_WHOLE - 3]]
    others = ", ".join(finding.symptom for finding in findings[len(short) :])
    return [*short, *(_wrapped(f"also: {others}", width)[:MAX_LINES_OF_FINDING] if others else [])]


def _finding(finding: Finding, width: int) -> list[Text]:
    present = finding.state is State.PRESENT
    lines = _wrapped(finding_line(finding), width)
    lines[0].stylize("bold red" if present else "bold", 2, min(len(lines[0]), 2 + len(finding.symptom) + 1))
    return lines


def _in_one_line(finding: Finding) -> Text:
    return Text.assemble(
        (f"  {finding.symptom}:", "bold red"), finding_line(finding).removeprefix(f"{finding.symptom}:")
    )


def _compared(diagnosis: Diagnosis, width: int) -> list[Text]:
    comparison = diagnosis.comparison
    if comparison is None:
        return []
    title = Text(shorten(f"Compared with {comparison.reference}", 4 * width), style="bold")
    lines = [*settings_apart(comparison)[:4], *partings(comparison, diagnosis.run.step_name)[:4]]
    return _cropped([title, *(Text(f"  {line}", style="yellow") for line in lines)], width)


def _hypotheses(diagnosis: Diagnosis, width: int, *, bits: bool, facts: bool = True) -> list[Text]:
    """Return the hypotheses: the facts for the first stand above, in the verdict block, unless bits are asked for."""
    lines = [*_check_in_full(diagnosis, width), Text("What it may be (hypotheses, not verdicts)", style="bold")]
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


def _check_in_full(diagnosis: Diagnosis, width: int) -> list[Text]:
    """Return what the check of the verdict block shows, and its fix in full where the block has no room for it."""
    block = verdict_block(diagnosis)
    if block.check is None:
        return []
    check = block.check
    lines = [Text(f"Check {check.id} ({check.cost})", style="bold")]
    if check.confirms:
        lines += [*_wrapped(f"confirms: {check.confirms}", width), *_wrapped(f"refutes: {check.refutes}", width)]
    if block.fix and not " ".join(map(str.strip, map(str, block_lines(block, width, VERDICT_LINES)))).endswith(
        block.fix
    ):
        lines += _wrapped(f"fix: {block.fix}", width)
    return lines


def _share_line(hypothesis: Hypothesis) -> Text:
    text = Text(f"  {percent(hypothesis.probability):>4}  ", style="bold")
    text.append(hypothesis.cause, style="bold green" if hypothesis.cause == SOUND else "bold yellow")
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


SHOWN = 4
LONGEST = 300


def short_line(diagnosis: Diagnosis) -> str:
    """Return the run, how far it came, what leads, and what is seen."""
    run = diagnosis.run
    come = "" if run.last_step is None else f" ({run.step_name} {figure(run.last_step)})"
    symptoms = [finding.symptom for finding in diagnosis.present]
    more = f" and {len(symptoms) - SHOWN} more" if len(symptoms) > SHOWN else ""
    listed = f"; seen: {', '.join(symptoms[:SHOWN])}{more}" if symptoms else ""
    opinions = "".join(f"; {line}" for line in _opinions(diagnosis)[:2])
    return shorten(f"{run.path}{come}: {diagnosis.verdict.headline}{opinions}{listed}", LONGEST)
