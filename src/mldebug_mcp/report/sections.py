"""An answer as its sections, in the order in which a person reads: text, short form and pages all take them from here.

First stands the verdict block: what leads and how sure that is, the facts behind it, the next check with its command,
the fix. What tells what to do is whole. Then comes what was observed, then the other hypotheses and the notes.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import clean, counted, figure, percent, shorten
from mldebug_mcp.judge.next_call import as_command, diagnose_command
from mldebug_mcp.judge.ranking import MIN_SPEAKING_BITS
from mldebug_mcp.judge.run_verdict import doubt_of, steps_asked, whole_sentences
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.run import Sibling
from mldebug_mcp.models import Citation, Comparison, Diagnosis, Finding, Hypothesis, NextStep, SharedJump, State
from mldebug_mcp.models.base import NO_FAULTS, SOUND, Glance
from mldebug_mcp.models.diagnosis import CheckpointChoice, QuantityFact

SHOWN_HYPOTHESES = 5
SHOWN_STEPS = 3
SHOWN_SETTINGS = 3
LONGEST_VALUE = 24
LONGEST_NAME = 40
MIN_QUOTED_PROBABILITY = 0.1
"""Probability below which a hypothesis other than the leader has no quote shown (chosen)."""
ONCE_CHECKED = "Once a check is made, run the same command with --outcome CHECK=confirms or =refutes"


def what_was_read(diagnosis: Diagnosis, run: Run) -> str:
    """Return how much was read, of what format and kind."""
    read = diagnosis.run
    return (
        f"{counted(read.records, 'record')} ({', '.join(read.formats)}), {read.step_name}s {figure(run.first_step)} to "
        f"{figure(run.last_step)}, kind of run: {read.kind}"
    )


def otherwise(sibling: Sibling) -> str:
    """Return what is set otherwise in another run of a sweep."""
    settings = [f"{name}={shorten(str(value), LONGEST_VALUE)}" for name, value in sibling.settings.items()]
    return ", ".join(settings[:SHOWN_SETTINGS]) + (", …" if len(settings) > SHOWN_SETTINGS else "")


def also_for(step: NextStep) -> list[str]:
    """Return the causes that a check bears on besides its own."""
    return [cause for cause in step.for_causes if not step.id.startswith(f"{cause}.")]


def leading_citations(hypotheses: list[Hypothesis]) -> list[Citation]:
    """Return one citation for each hypothesis that some fact supports: for the leader, and for those near it."""
    leading = [
        hypothesis
        for place, hypothesis in enumerate(hypotheses[:SHOWN_HYPOTHESES])
        if hypothesis.citations
        and (hypothesis.because or hypothesis.cause == SOUND)
        and (place == 0 or hypothesis.probability >= MIN_QUOTED_PROBABILITY)
    ]
    return list({hypothesis.citations[0].id: hypothesis.citations[0] for hypothesis in leading}.values())[:3]


def partings(comparison: Comparison, step_name: str) -> list[str]:
    """Return where metrics depart from those of the reference run, how they end, and which do not depart."""
    lines = [
        f"{parting.metric} parts at {step_name} {figure(parting.step)}: {figure(parting.run)}, in the good run "
        f"{figure(parting.reference)}; it ends at {figure(parting.run_at_end)}, there at "
        f"{figure(parting.reference_at_end)}" + (f": {parting.ends}" if parting.ends else "")
        for parting in comparison.partings
    ]
    lines += [_jump(jump, step_name) for jump in comparison.jumps]
    lines += [f"no lasting difference beyond the noise: {', '.join(comparison.alike)}"] if comparison.alike else []
    same = "the same losses at all common steps, as in two logs of one run: nothing was compared"
    return [same, *lines] if comparison.same_losses else lines


def _jump(jump: SharedJump, step_name: str) -> str:
    """Return a jump of the loss in words, with what the reference run does there."""
    there = f"to {figure(jump.reference)} too" if jump.both else f"it is {figure(jump.reference)} at most"
    return (
        f"{step_name} {figure(jump.step)}: loss jumps from {figure(jump.level)} to {figure(jump.run)}, in the good run "
        f"{there}"
    )


def settings_apart(comparison: Comparison) -> list[str]:
    """Return the settings that differ from those of the reference run, with how many times."""
    return [
        f"{setting.setting} {_value(setting.run)}, in the good run {_value(setting.reference)}{_times(setting.factor)}"
        for setting in comparison.settings
    ]


def _times(factor: float | None) -> str:
    if factor is None:
        return ""
    return f": {figure(factor)} times" if factor > 1 else f": 1/{figure(1 / factor)}"


def _value(value: str | float | None) -> str:
    return "not set" if value is None else value if isinstance(value, str) else figure(value)


MAX_OTHER_HYPOTHESES = 4
MIN_PROBABILITY = 0.01
"""Hypotheses below it are counted, not shown. Chosen."""
MIN_PROBABILITY_WITH_FACTS = 0.05
"""Hypotheses below it are shown without their facts. Chosen."""
MAX_REASONS = 2
"""Facts for and against a hypothesis in the short form. Chosen."""
PLACEHOLDERS = {
    "OTHER_RUN": "the run to compare with",
    "OUTCOME": "confirms or refutes",
    "BATCH": "a saved batch",
    "FILE.py:function": "your training step",
    "TRAIN.py": "your training script",
    "SNAPSHOT.pickle": "a snapshot of GPU memory",
    "MESSAGE": "the error message",
    "DATA_IN_MEMORY": "a file of the log",
    "LOG": "the log of the run",
}
"""What a command needs of the reader, by how it stands in the command."""


@dataclass(frozen=True, slots=True)
class Check:
    """The next check, and what shows that its cause is there and that it is not.

    The command makes the check or takes its outcome; `needs` says in words what the reader has to fill in there.
    """

    id: str
    cost: str
    command: str
    needs: str
    confirms: str
    refutes: str


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of an answer, one fact a line; those `marked` are unusual. What comes first has no title."""

    title: str
    lines: Sequence[str]
    marked: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Block:
    """The verdict block: what leads with probabilities and ids, what it rests on, and what usually helps.

    Its kind is "fault", "healthy", "unclear" or "not judged". `next` says in a sentence or two what to do; `check` is
    the next check whole, if any. `needs` says in words what has to be filled in in the command.
    """

    kind: str
    headline: str
    facts: Sequence[str]
    next: str
    check: Check | None
    command: str
    needs: str
    fix: str

    @property
    def why(self) -> str:
        """What the facts are: reasons of a verdict, or what else was seen where none is needed."""
        return "Seen" if self.kind == "healthy" else "Why"


def verdict_block(diagnosis: Diagnosis) -> Block:
    """Return what a reader needs first."""
    verdict = diagnosis.verdict
    doubted = verdict.kind == "healthy" and doubt_of(diagnosis.hypotheses) is not None
    steps = steps_asked(diagnosis.hypotheses, diagnosis.next_steps)
    unclear = verdict.kind == "unclear" and diagnosis.leader != SOUND  # a healthy one of several runs asks for nothing
    several = diagnosis.run.is_one_of_several  # the next step is to judge each of them
    of_error = verdict.kind == "fault" and not verdict.causes  # an error that ended the run, and no hypothesis, leads
    asks = steps and not of_error and not several and (doubted or verdict.kind == "fault" or unclear)
    check = _check(diagnosis, steps[0]) if asks else None
    command, needs = (check.command, check.needs) if check is not None else _to_run(diagnosis)
    if several:
        command, needs = f"mldebug-mcp runs {shlex.quote(diagnosis.run.path)}", ""
    elif of_error and diagnosis.next_step is not None:
        command, needs = as_command(diagnosis.next_step), ""
    return Block(verdict.kind, verdict.headline, verdict.facts, verdict.next, check, command, needs, verdict.fix)


def block_of(glance: Glance) -> Block:
    """Return the verdict block of an answer other than a diagnosis."""
    kind, command = glance.kind, glance.command
    return Block(kind, glance.headline, glance.facts, glance.next, None, command, _needs(command), glance.fix)


def _needs(command: str) -> str:
    """Return what has to be filled in in a command, in words."""
    words = set(re.findall(r"[^\s'\"=,()]+", command))
    return ", ".join(f"{name}: {what}" for name, what in PLACEHOLDERS.items() if name in words)


def _to_run(diagnosis: Diagnosis) -> tuple[str, str]:
    """Return what to run after an answer that asks for no check, and what has to be filled in."""
    if diagnosis.verdict.kind != "healthy" or diagnosis.comparison is not None:
        return "", ""
    command = diagnose_command(diagnosis.run, "--reference", "OTHER_RUN")
    return command, _needs(command)


def _check(diagnosis: Diagnosis, step: NextStep) -> Check:
    """Return a check with the command that makes it; where none of ours does, the one that takes its outcome."""
    outcome = f"{step.id}=OUTCOME"
    command = as_command(step.call) if step.call else diagnose_command(diagnosis.run, "--outcome", outcome)
    return Check(
        id=step.id,
        cost=step.cost,
        command=command,
        needs=_needs(command),
        confirms=step.confirms,
        refutes=step.refutes,
    )


def observed(diagnosis: Diagnosis, *, whole: bool = False) -> Iterator[Section]:
    """Yield what was observed: what ran, what is seen, events, quantities, unusual settings and those used."""
    sheet, unit = diagnosis.sheet, diagnosis.run.step_name
    yield Section("What ran", sheet.ran)
    lines = [finding_line(finding) for finding in worth_showing(diagnosis.findings)]
    yield Section("Seen in the log", lines or ["nothing unusual"] if diagnosis.verdict.kind != "not judged" else lines)
    yield Section("Tried before", [tried.line() for tried in diagnosis.tried])
    yield Section("Facts", [fact.text for fact in sheet.facts])
    yield Section("Script", list(diagnosis.script))
    yield Section("Which checkpoint to keep", checkpoint_lines(diagnosis.checkpoint))
    yield Section("Events", [f"{unit} {figure(event.step)}: {event}" for event in sheet.events])
    shown = sheet.quantities if whole else [quantity for quantity in sheet.quantities if quantity.matters]
    others = [quantity for quantity in sheet.quantities if not whole and not quantity.matters]
    in_brief = [f"also {', '.join(map(_ends, others))}"] if others else []
    yield Section("Logged", [*(" | ".join(quantity.parts) for quantity in shown), *in_brief])
    yield settings_section(diagnosis, whole=whole)
    if whole:
        yield Section("Not judged", sheet.not_judged)


def _ends(quantity: QuantityFact) -> str:
    curve = quantity.curves[0]
    others = f" and {counted(quantity.columns - 1, 'column')} like it" if quantity.columns > 1 else ""
    course = figure(curve.last) if curve.first == curve.last else f"{figure(curve.first)} to {figure(curve.last)}"
    unit = f" in {curve.unit}" if curve.unit else ""
    return f"{shorten(curve.name, LONGEST_NAME)}{unit} {course}{others}"


def checkpoint_lines(choice: CheckpointChoice | None) -> list[str]:
    """Return which checkpoint to keep and what was taken for granted; nothing where there is none."""
    return [] if choice is None else [choice.summary, *choice.notes]


def settings_section(diagnosis: Diagnosis, *, whole: bool = False) -> Section:
    """Return the settings: the unusual ones, and those that a finding or a reason names; with `whole` all of them."""
    settings = diagnosis.sheet.settings
    marked = [str(setting) for setting in settings if setting.usual]
    used = [str(setting) for setting in settings if not setting.usual and (whole or setting.name in _named(diagnosis))]
    return Section("Settings", [*marked, *(["; ".join(used)] if used else [])], frozenset(marked))


def _named(diagnosis: Diagnosis) -> set[str]:
    """Return the words of what the answer says: a setting among them is one that it uses."""
    verdict = diagnosis.verdict
    texts = [verdict.headline, *verdict.facts, verdict.fix, *(finding.summary for finding in diagnosis.present)]
    texts += [
        reason.fact for hypothesis in diagnosis.hypotheses[:2] for reason in hypothesis.reasons if reason.kind == "log"
    ]
    words = {word.strip(",.;:`()=") for text in texts for word in text.split()}
    return words | USUALLY_USED


USUALLY_USED = {"learning_rate", "effective_batch", "optim", "computes_in", "max_steps", "num_train_epochs"}
"""Settings that are shown of every run: nobody judges a run without them."""


def finding_line(finding: Finding) -> str:
    """Return a finding in a line."""
    return f"{finding.symptom}: {finding.summary}" + ("" if finding.state is State.PRESENT else " (harmless)")


def worth_showing(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that are present, then the remarks on harmless things."""
    present = [finding for finding in findings if finding.state is State.PRESENT]
    return present + [finding for finding in findings if finding.state is State.ABSENT and finding.summary]


def hypotheses_shown(diagnosis: Diagnosis, *, whole: bool = False) -> list[Hypothesis]:
    """Return the hypotheses worth a line: the leader, and those behind it."""
    most = 1 + MAX_OTHER_HYPOTHESES
    likely = [
        hypothesis for hypothesis in diagnosis.hypotheses[:most] if whole or hypothesis.probability >= MIN_PROBABILITY
    ]
    return likely or diagnosis.hypotheses[:1]


def reasons_of(hypothesis: Hypothesis, sign: int, *, whole: bool = False, bits: bool = False) -> list[str]:
    """Return the facts for (+1) or against (-1) a hypothesis, strongest first.

    Only the `whole` of them holds what all curves together weigh; `bits` says how much each weighs.
    """
    if not whole and hypothesis.probability < MIN_PROBABILITY_WITH_FACTS:
        return []
    reasons = [
        reason
        for reason in hypothesis.reasons
        if reason.bits * sign > 0
        and (whole or (reason.kind != "numbers" and (bits or abs(reason.bits) >= MIN_SPEAKING_BITS)))
    ]
    shown = reasons if whole else reasons[:MAX_REASONS]
    # The first clause of a fact: the whole of it stands under what is seen.
    clauses = [reason.fact.partition("; ")[0] for reason in shown]
    return [
        f"{clause} ({reason.bits:+.1f} bits)" if bits else clause for clause, reason in zip(clauses, shown, strict=True)
    ]


def other_hypotheses(diagnosis: Diagnosis) -> str:
    """Return how many hypotheses are not shown, and their probability together."""
    rest = diagnosis.hypotheses[1 + MAX_OTHER_HYPOTHESES :]
    return f"{percent(sum(hypothesis.probability for hypothesis in rest))} for {len(rest)} other causes together"


def title_of(hypothesis: Hypothesis) -> str:
    """Return what a hypothesis says goes wrong, in its first sentence."""
    if hypothesis.cause in NO_FAULTS or not hypothesis.summary:
        return ""
    return f"{hypothesis.summary.split('. ')[0].rstrip('.')}."


def notes_on(diagnosis: Diagnosis, *, whole: bool = False) -> list[str]:
    """Return the notes; with `whole` also how many symptoms cannot be judged."""
    unknown = sum(finding.state is State.UNKNOWN for finding in diagnosis.findings)
    count = f"{unknown} of {len(diagnosis.findings)} symptoms cannot be judged from this log"
    return [*diagnosis.notes, *([count] if whole and unknown else [])]


# Lines of a screen in pieces, each with a style, and the verdict block on such lines.
#
# Where the output is not a terminal they are printed as they are: rich, which colours them, takes long to load.


PLAIN_WIDTH = 100
"""Columns where the output is not a terminal, so that what a pipe receives does not depend on a window."""
TAB_COLUMNS = 8
"""Columns from one tab stop to the next, as in rich and in terminals."""


_NARROW = frozenset(map(chr, range(32, 127))) | frozenset("▁▂▃▄▅▆▇█▲→·…")
"""Characters that take one column of a terminal, as most lines hold no others: the table of all takes long to load."""


@dataclass(frozen=True)
class Line:
    """A line of text in pieces, each with its style as rich names it, "" for none."""

    pieces: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "".join(text for text, _ in self.pieces)

    def cropped(self, width: int, mark: str = "") -> Line:
        """Return the line in at most so many columns of a terminal; one that is cut ends with the mark."""
        whole = str(self)
        if len(whole) <= width and _NARROW.issuperset(whole):
            return self
        from rich.cells import cell_len, set_cell_size

        if cell_len(whole) <= width:
            return self
        kept, at, pieces = set_cell_size(whole, width - len(mark)) + mark, 0, []
        for text, style in self.pieces:
            pieces.append((kept[at : at + len(text)], style))
            at += len(text)
        return Line(tuple(pieces))


def line(*pieces: str | tuple[str, str]) -> Line:
    """Return a line of pieces, those with a style in a pair with it."""
    return Line(tuple((piece, "") if isinstance(piece, str) else piece for piece in pieces))


def is_plain() -> bool:
    """Say whether standard output goes elsewhere than to a terminal, and no variable asks rich for its styles."""
    return not sys.stdout.isatty() and not os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}


def print_plain(lines: Iterable[Line]) -> None:
    """Print lines without styles, each ended where its text ends."""
    parts = (part for text in lines for part in clean(str(text)).split("\n"))
    sys.stdout.writelines(f"{part.expandtabs(TAB_COLUMNS).rstrip(' ')}\n" for part in parts)


# The verdict block, first in every answer that judges: verdict, why, next command, fix; each wraps, none is cut.


MIN_FACTS = 1
"""Facts of a cause that are kept however little room there is."""
FILLED_ROOM_SHARE = 0.9
"""Share of the rows that text fills where words are kept whole. Chosen."""
_STYLES = {"fault": "bold red", "healthy": "bold green", "unclear": "bold yellow", "not judged": "bold yellow"}
_INDENT_COLUMNS = 6


def block_lines(block: Block, width: int, most: int | None = None) -> list[Line]:
    """Return the block on lines of the width; a command keeps to one line, which a terminal may wrap.

    Fewer facts and sentences of the fix are kept to `most` rows, where the fix stands whole further below.
    """
    head = [line((text, _STYLES[block.kind])) for text in wrap(block.headline, width)]
    check = _next_lines(block, width)
    facts = list(block.facts)
    why = _labelled(block.why, facts, width)
    if most is None or not block.fix:
        return [*head, *why, *check, *_labelled("Fix", [block.fix] if block.fix else [], width, "green")]
    fix = _labelled("Fix", [whole_sentences(block.fix, 0)], width, "green")
    while len(facts) > MIN_FACTS and len(head) + len(why) + len(check) + len(fix) > most:
        facts.pop()
        why = _labelled(block.why, facts, width)
    room = (most - len(head) - len(why) - len(check)) * (width - _INDENT_COLUMNS)
    fix = _labelled("Fix", [whole_sentences(block.fix, int(FILLED_ROOM_SHARE * room))], width, "green")
    return [*head, *why, *check, *fix]


def _next_lines(block: Block, width: int) -> list[Line]:
    needs = f" ({block.needs})" if block.needs else ""
    action = _labelled("Next", [f"{block.next}{needs}"], width) if block.next else []
    command = [line(" " * _INDENT_COLUMNS, (block.command, "cyan"))] if block.command else []
    return [*action, *command]


def _labelled(label: str, texts: Iterable[str], width: int, style: str = "") -> list[Line]:
    """Return texts below each other, the label in front of the first."""
    lines: list[Line] = []
    for text in texts:
        for part in wrap(text, width - _INDENT_COLUMNS):
            lines.append(line((f"{'' if lines else label:<{_INDENT_COLUMNS}}", "bold"), (part, style)))
    return lines


def wrap(text: str, width: int) -> list[str]:
    """Return a text on lines of the width; a longer word is broken."""
    return textwrap.wrap(text, max(_INDENT_COLUMNS, width), break_on_hyphens=False)
