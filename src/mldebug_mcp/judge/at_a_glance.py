"""What to read first of an answer: what is wrong, what that rests on, what to run next, and the fix.

A diagnosis has its own (`run_verdict`); here are those of all other answers. Terminal, pages and MCP show the same.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import capitalised, counted, figure, percent, plain, shorten
from mldebug_mcp.judge.next_call import as_command
from mldebug_mcp.judge.run_verdict import headline_of, name_of, whole_clauses, whole_sentences
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import advice_for
from mldebug_mcp.knowledge.errors import known_errors
from mldebug_mcp.models import Call, RunVerdict, State
from mldebug_mcp.models.base import NO_FAULTS, SOUND, Glance

if TYPE_CHECKING:
    from mldebug_mcp.models.data import BatchInspection, MemoryReport, ProbeResult
    from mldebug_mcp.models.diagnosis import CheckpointChoice
    from mldebug_mcp.models.knowledge import ErrorExplanation
    from mldebug_mcp.models.runs import Contest, RunRow, Runs, SharedSetting
    from mldebug_mcp.models.script import RuledOut, ScriptFinding, ScriptReport

MAX_FACTS = 2
MAX_NAME_CHARACTERS = 60
MAX_ERROR_CHARACTERS = 200
AGAIN = "Repair it, then run this command again"


def _glance(**fields: object) -> Glance:
    """Return what is read first with every field set, so that all answers have the same ones."""
    return Glance.model_validate({"facts": [], "next": "", "command": "", "fix": "", **fields})


def _sentence(text: str) -> str:
    return f"{capitalised(text).rstrip('.')}." if text else ""


def _command(call: Call | None) -> str:
    return "" if call is None else as_command(call)


def _going_on(call: Call | None) -> str:
    """Return what the call to make next shows, as something to do."""
    if call is None:
        return ""
    return f"{'Read' if call.tool == 'explain' else 'Look at'} {call.why}."


def _further_findings(counts: Counter[str]) -> str:
    """Return how many further findings there are of each severity."""
    words = [counted(counts[severity], severity) for severity in ("error", "warning") if counts[severity]]
    return f" (and {' and '.join(words)} more)" if words else ""


def glance_at_batch(answer: BatchInspection) -> Glance:
    """Return what is wrong in a batch first: the gravest finding, why it harms, its fix."""
    batch, bad = answer.batch, [finding for finding in answer.findings if finding.severity != "info"]
    remarks = [f"{finding.summary} [{finding.check}]" for finding in answer.findings if finding.severity == "info"]
    if not bad:
        return _glance(
            kind="healthy",
            headline=f"Nothing wrong in {_looked_at(answer)}.",
            facts=remarks[:MAX_FACTS],
            next=_after_healthy_batch(answer),
            command=_command(answer.next_step),
        )
    first, *others = bad
    word = "Wrong" if first.severity == "error" else "Harmful"
    sample = f" in a sample of {counted(batch.rows, 'row')}" if batch.sampled else ""
    more = _further_findings(Counter(other.severity for other in others))
    return _glance(
        kind="fault",
        headline=f"{word}{sample}: {first.summary} [{first.check}]{more}",
        facts=[_sentence(first.why), *(f"{other.severity}: {other.summary} [{other.check}]" for other in others)][
            :MAX_FACTS
        ],
        next=f"{AGAIN}; how this is judged:",
        command=_command(answer.next_step),
        fix=_sentence(first.fix),
    )


def _looked_at(answer: BatchInspection) -> str:
    batch = answer.batch
    rows = f"a sample of {counted(batch.rows, 'row')}" if batch.sampled else counted(batch.rows, "row")
    trained = "" if batch.trained_tokens is None else f", {batch.trained_tokens:,} of them trained on"
    return f"{rows} with {batch.tokens:,} {batch.unit}{trained} (purpose: {batch.purpose})"


def _after_healthy_batch(answer: BatchInspection) -> str:
    if answer.next_step is not None and answer.next_step.tool == "probe_overfit":
        return "Try whether a tiny model can memorise it."
    return "Read what else keeps a model from learning."


NO_HISTORY = "history_missing"
"""The finding that too little was recorded to judge by."""
RAN_OUT = "oom"
"""The finding that a request failed."""
OUT_OF_MEMORY = "out_of_memory"
"""The cause that the training needs more than there is, without another fault."""


def glance_at_memory(answer: MemoryReport) -> Glance:
    """Return what filled the memory first: the leading cause, or the gravest finding where no cause can be ranked."""
    found = [finding for finding in answer.findings if finding.finding != SOUND]
    leading = answer.hypotheses[0] if answer.hypotheses else None
    order = {name: place for place, name in enumerate(leading.symptoms if leading is not None else ())}
    if leading is not None and leading.cause != OUT_OF_MEMORY:
        order[RAN_OUT] = len(order)  # that it ran out is what the leading cause explains
    bad = sorted(
        (memory_finding for memory_finding in found if memory_finding.severity != "info"),
        key=lambda memory_finding: order.get(memory_finding.finding, len(order)),
    )
    facts = [whole_clauses(memory_finding.summary) for memory_finding in (bad or found)]
    ranked = leading is not None and leading.cause != SOUND
    if bad:
        unjudged = not ranked and bad[0].finding == NO_HISTORY
        headline = f"{'Cannot be judged: ' if unjudged else ''}{bad[0].summary} [{bad[0].finding}]"
        return _glance(
            kind="not judged" if unjudged else "fault",
            headline=headline_of(answer.hypotheses) if ranked else headline,
            facts=facts[0 if ranked else 1 :][:MAX_FACTS],
            next=_going_on(answer.next_step),
            command=_command(answer.next_step),
            fix=_sentence(next((memory_finding.fix for memory_finding in bad if memory_finding.fix), "")),
        )
    from mldebug_mcp.memory.tables import size  # here, as it loads numpy

    peak = answer.snapshot.peak_allocated_bytes or answer.snapshot.allocated_bytes
    if not any(finding.finding == SOUND for finding in answer.findings):
        return _glance(
            kind="not judged",
            headline="Cannot be judged: nothing in it is evidence for or against a fault.",
            facts=facts[:MAX_FACTS],
            next=_going_on(answer.next_step),
            command=_command(answer.next_step),
        )
    healthy = next((hypothesis for hypothesis in answer.hypotheses if hypothesis.cause == SOUND), None)
    share = f" ({percent(healthy.probability)})" if healthy is not None else ""
    sound = next(finding.summary for finding in answer.findings if finding.finding == SOUND)
    return _glance(
        kind="healthy",
        headline=f"Healthy{share} over {answer.snapshot.trace_events:,} events up to {size(peak)}: {sound}.",
        facts=facts[:MAX_FACTS],
        next=_going_on(answer.next_step),
        command=_command(answer.next_step),
    )


_RESULTS = {
    "memorised": "The batch can be memorised",
    "too_slow": "The batch is not memorised in time",
    "cannot_learn": "The batch cannot be memorised",
    "not_finite": "The loss or its gradient is not finite",
    "failed": "The probe failed",
}


def glance_at_probe(answer: ProbeResult) -> Glance:
    """Return whether the batch is memorised, and what stands in the way."""
    result = _RESULTS[answer.verdict]
    call = answer.next_step
    out_of_time = call is not None and call.tool == "probe_overfit"
    if answer.verdict == "failed":
        head, *rest = answer.summary.splitlines() or [""]
        message = next(iter(reversed(answer.output.split("\n"))), "") or head
        return _glance(
            kind="not judged",
            headline=f"{result}, so nothing was measured: {head}",
            facts=rest[:MAX_FACTS],
            next="Give it more time." if out_of_time else "Repair what the error names; what such an error means:",
            command=_command(call) if out_of_time else shlex.join(["mldebug-mcp", "error", message]),
        )
    leader = answer.hypotheses[0]
    present = [finding.summary for finding in answer.findings if finding.state is State.PRESENT]
    facts = [answer.summary, *(text for text in present if text not in answer.summary)][:MAX_FACTS]
    steps = answer.next_steps
    if answer.verdict == "memorised" and leader.cause == SOUND:
        return _glance(
            kind="healthy",
            headline=f"Healthy ({percent(leader.probability)}): {result[:1].lower()}{result[1:]}: {answer.summary}.",
            facts=present[:MAX_FACTS],
            next="Data, loss and gradient work on this batch: look for the fault in the log of the run.",
            command="mldebug-mcp diagnose LOG",
        )
    return _glance(
        kind="fault" if leader.cause not in NO_FAULTS else "unclear",
        headline=f"{result}. {headline_of(answer.hypotheses)}"
        if leader.cause != SOUND
        else f"{result}, and no listed fault explains it.",
        facts=facts,
        next="Give it more time." if out_of_time else steps[0].action if steps else "",
        command=_command(call) if out_of_time or not steps else as_command(steps[0].call or ""),
        fix=_sentence(leader.fix) if leader.cause != SOUND else "",
    )


def glance_at_script(answer: ScriptReport) -> Glance:
    """Return the surest fault of a script, its line and its fix."""
    from mldebug_mcp.models.script import SUREST_FIRST  # few answers are of scripts

    findings = sorted(answer.findings, key=lambda finding: SUREST_FIRST.index(finding.certainty))
    sure = [finding for finding in findings if finding.certainty != "depends"]
    files = shorten(Path(answer.path).absolute().name or answer.path, MAX_NAME_CHARACTERS) + (
        f" ({answer.files} files)" if answer.files > 1 else ""
    )
    diagnosed_with = shlex.join(["mldebug-mcp", "diagnose", "LOG", "--script", answer.path])
    if findings:
        first, others = findings[0], findings[1:]
        word = {"certain": "Certainly wrong", "likely": "Probably wrong", "depends": "Perhaps wrong"}[first.certainty]
        return _glance(
            kind="fault" if sure else "unclear",
            headline=f"{word} in {files}, {_place(answer, first)}: {first.summary} [{first.cause}]",
            facts=[f"{_place(answer, other)}: {other.summary} [{other.cause}]" for other in others][:MAX_FACTS]
            or [f"in a log: {first.shows}"],
            next="Read how to confirm it and what else shows it."
            if answer.next_step is not None
            else "Repair this line; where the run still goes wrong, diagnose its log together with the script.",
            command=_command(answer.next_step) or diagnosed_with,
            fix=_sentence(first.fix),
        )
    right = [f"{ruled_out.summary} ({_place(answer, ruled_out)})" for ruled_out in answer.ruled_out]
    unread = f"{counted(answer.unread, 'other file')} could not be read" if answer.unread else ""
    but = "; ".join(text for text in (unread, answer.not_judged) if text)
    return _glance(
        kind="unclear" if but else "healthy",
        headline=f"Nothing wrong found in {files}"
        + (f", but {but}" if but else f", its training loop included: {counted(len(right), 'thing')} done right"),
        facts=right[:MAX_FACTS],
        next="Rules prove little: answer the questions of a review (--places). Where a run goes wrong, diagnose its "
        "log together with the script.",
        command=diagnosed_with,
    )


def _place(answer: ScriptReport, found: ScriptFinding | RuledOut) -> str:
    """Return where something stands: the line, of several files with the file below the folder."""
    if answer.files == 1:
        return f"line {found.line}"
    file = Path(found.file)
    named = file.relative_to(answer.path) if file.is_relative_to(answer.path) else file
    return f"{named}:{found.line}"


def glance_at_choice(answer: CheckpointChoice, path: str, to_name: Sequence[str] = ()) -> Glance:
    """Return which checkpoint to keep, or why none can be named; `to_name` are the metrics that may decide then."""
    headline = whole_sentences(answer.summary, 0)
    rest = answer.summary[len(headline) :].strip()
    facts = [text for text in (rest, *answer.notes) if text][:MAX_FACTS]
    metric = answer.metric
    read = shlex.join(["mldebug-mcp", "read", path, *([metric] if metric else [])])
    if not answer.keep:
        asked = not metric and bool(to_name)
        name = shlex.join(["mldebug-mcp", "checkpoint", path, "--metric", *to_name[:1]])
        return _glance(
            kind="not judged",
            headline=headline,
            facts=facts,
            next="Name the metric that decides." if asked else "Read what was logged.",
            command=name if asked else read if metric else shlex.join(["mldebug-mcp", "read", path, "loss"]),
            fix="" if asked else "Evaluate whenever a checkpoint is saved.",
        )
    return _glance(
        kind="healthy" if answer.verdict == "clear" else "unclear",
        headline=headline,
        facts=facts,
        next="See the curve that decides.",
        command=read,
    )


ROUNDING_OF_P = 1e-9
"""Share by which a p that was worked out may differ from the exact one."""


def least_p(a: int, b: int, *, paired: bool) -> float:
    """Return the smallest two-sided p that a permutation test of so many runs can give: two of all the ways to deal."""
    return min(1.0, 2 / (2**a if paired else math.comb(a + b, a)))


def glance_at_contest(answer: Contest, left_out: str = "") -> Glance:
    """Return which kind of runs is better, or how many runs would tell; what was left out comes with it."""
    also = f" {capitalised(left_out)}." if left_out else ""
    means = [sum(side) / len(side) for side in (answer.a, answer.b)]
    levels = f"{answer.metric} is {figure(means[0])} in A and {figure(means[1])} in B ({answer.better} is better)"
    interval = f"A - B is {figure(answer.difference)}, 95 % interval {figure(answer.low)} to {figure(answer.high)}"
    how = "runs compared seed by seed" if answer.paired else "runs not paired by seed"
    least = least_p(len(answer.a), len(answer.b), paired=answer.paired)
    runs = f"{len(answer.a)} pairs" if answer.paired else f"{len(answer.a)} and {len(answer.b)} runs"
    floor = f", and {runs} can give no smaller one" if answer.p <= least * (1 + ROUNDING_OF_P) else ""
    facts = [f"{interval} by Student's t, which decides; {how}", f"permutation p {figure(answer.p)}{floor}"]
    look = {} if answer.next_step is None else {"next": "Look at the worst run.", "command": _command(answer.next_step)}
    if answer.verdict != "cannot tell":
        headline = f"{capitalised(answer.verdict)}: {levels}, more than chance does.{also}"
        return _glance(kind="unclear" if left_out else "healthy", headline=headline, facts=facts, **look)
    runs = counted(min(len(answer.a), len(answer.b)), "seed" if answer.paired else "run")
    needed = f"Train about {answer.runs_needed} runs of each to tell" if answer.runs_needed else "More runs hardly help"
    return _glance(
        kind="unclear",
        headline=f"Cannot tell A from B: {levels}; with {runs} of each chance alone does as much.{also}",
        facts=facts,
        fix=f"{needed}. So few runs show a difference of {figure(answer.detectable)} or more.",
        **look,
    )


def glance_at_error(answer: ErrorExplanation) -> Glance:
    """Return what an error means, where it stands, and what to do."""
    error, match = answer.error, next(iter(answer.matches), None)
    place = [] if error is None else [f"line {error.line}: {shorten(error.text, MAX_ERROR_CHARACTERS)}"]
    place += [f"your code: {error.user_frame}"] if error is not None and error.user_frame else []
    if match is not None:
        facts = place + ([f"mistaken for: {match.mistaken_for}"] if match.mistaken_for else [])
        row = known_errors().get(match.id)
        says = whole_sentences(match.cause, MAX_ERROR_CHARACTERS)
        if error is not None and row is not None and row.general and match.cause == row.cause:
            # Such an entry knows the kind of the message alone: the cause stands in the message.
            says = f"The message says it itself: {_deciding(error.text, row.pattern)}"
        return _glance(
            kind="fault",
            headline=f"{says} ({match.credence}) [{match.id}]",
            facts=facts[:MAX_FACTS],
            next="Read what else is known of this message.",
            command=_command(answer.next_step),
            fix=match.fix,
        )
    if error is None:
        return _glance(
            kind="not judged",
            headline=_sentence(f"no error found: {answer.notes[0]}" if answer.notes else "no error found"),
            next=answer.advice,
            command=_command(answer.next_step),
        )
    what = (
        "Not a known message" if answer.problem == "unknown" else f"Not a known message; a problem of {answer.problem}"
    )
    return _glance(
        kind="unclear",
        headline=f"{what}: {whole_clauses(shorten(error.text.splitlines()[0], MAX_ERROR_CHARACTERS))}",
        facts=[f"it stands in line {error.line}", *place[1:]],
        next=_going_on(answer.next_step) or _NO_CALL_HELPS[bool(error.user_frame)],
        command=_command(answer.next_step),
        fix=answer.advice,
    )


_NO_CALL_HELPS = {
    True: "Nothing is known of this message: look at the line of your code, and print the values in it.",
    False: "Nothing is known of this message: give the whole log, with the lines around the first traceback.",
}
"""What to do where no call tells more of an error, with a line of the user's own code and without."""
_SENTENCE_END = regex(r"(?<=[.!?])\s+(?=[A-Z`'\"\[])|\n")


def _deciding(text: str, pattern: str) -> str:
    """Return the sentences of a message from the one on in which a pattern is found, bounded; else from its first."""
    found = re.search(pattern, " ".join(text.split()))
    words = found[0] if found else ""
    sentences = [" ".join(sentence.split()) for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    start = next((at for at, sentence in enumerate(sentences) if words in sentence), 0)
    return shorten(whole_sentences(" ".join(sentences[start:]), MAX_ERROR_CHARACTERS), MAX_ERROR_CHARACTERS)


def glance_at_runs(answer: Runs) -> Glance:
    """Return how many runs have a fault, the worst of them, what they share, and the fix of the commonest fault."""
    sick = [row for row in answer.rows if row.is_sick]
    judged = any(row.leader for row in answer.rows)
    failed = [row for row in answer.rows if row.ending == "error"]
    done = "Nothing has to be done. " if judged else ""
    shared = [shared_line(shared_setting) for shared_setting in answer.shared]
    first = answer.rows[0]
    common = Counter(row.leader for row in sick).most_common(1)
    look = f"Look at {shorten(first.name, MAX_NAME_CHARACTERS)}, which needs attention first." if sick or failed else ""
    return _glance(
        kind="fault" if sick or failed else "healthy" if judged else "not judged",
        headline=runs_headline(answer),
        facts=[*map(_row_line, sick[:2]), *map(_failed_line, failed), *shared][:MAX_FACTS],
        next=look or f"{done}To see the curves of {shorten(first.name, MAX_NAME_CHARACTERS)}:",
        command=_command(answer.next_step),
        fix=_fix_of(common[0][0], common[0][1], sick) if common else "",
    )


def runs_headline(answer: Runs) -> str:
    """Return how many runs there are, and in how many a fault leads."""
    unread = sum(row.ending == "unread" for row in answer.rows)
    sick = sum(row.is_sick for row in answer.rows)
    sound = sum(row.leader == SOUND for row in answer.rows)
    little = sum(not row.leader and row.ending not in ("unread", "error") for row in answer.rows)
    unexplained = sum(bool(row.error) and row.leader != SOUND for row in answer.rows)
    rest = len(answer.rows) - unread - sick - sound - unexplained
    parts = [f"a fault leads in {sick}" if sick else "no fault leads", f"{sound} healthy"]
    parts += [f"{rest - little} unclear"] if rest > little else []
    failed = sum(row.ending == "error" for row in answer.rows)
    parts += [f"{failed} ended in an error"] if failed else []
    parts += [f"{little} logged too little to judge"] if little else []
    parts += [f"{unread} could not be read"] if unread else []
    return f"{counted(len(answer.rows), 'run')}: {', '.join(parts)}"


def shared_line(shared_setting: SharedSetting) -> str:
    """Return a setting that goes with a cause, in counts."""
    return (
        f"{shared_setting.cause}: {shared_setting.sick_with} of {shared_setting.sick} such runs "
        f"have {shared_setting.setting} {shared_setting.condition}, "
        f"{shared_setting.others_with} of {shared_setting.others} others (p {figure(shared_setting.p)})"
    )


def _failed_line(row: RunRow) -> str:
    """Return that a run ended in an error, of several ranks with that of the first to fail."""
    first = row.ranks if row.ranks is not None and row.ranks.error else None
    error = f": {row.error}" if row.error else ""
    error = error if first is None else f" of rank {first.first_failed}: {first.error}"
    step = "" if row.step is None else f" at {row.step_name} {figure(row.step)}"
    return f"{shorten(row.name, MAX_NAME_CHARACTERS)} ended in an error{step}{error}"


def _row_line(row: RunRow) -> str:
    since = "" if row.onset is None else f" since {row.step_name} {figure(row.onset)}"
    return (
        f"{shorten(row.name, MAX_NAME_CHARACTERS)}: {name_of(row.leader, row.kind)} ({percent(row.probability)}){since}"
    )


def _fix_of(cause: str, count: int, sick: Sequence[RunRow]) -> str:
    """Return the usual fix of the commonest cause, for the kind of run that has it."""
    kind = next(row.kind for row in sick if row.leader == cause)
    known, advice = catalogue().causes.get(cause), advice_for(cause, kind)
    where = f"For {name_of(cause, kind)} ({count} of {len(sick)}): " if len(sick) > 1 else ""
    fix = advice.fix if advice is not None else "" if known is None else plain(known.fix)
    return f"{where}{fix if advice is not None else whole_sentences(fix, 0)}" if fix else ""


def glance_at_verdict(verdict: RunVerdict, command: str) -> Glance:
    """Return a verdict on a run with the command that comes next."""
    return _glance(
        kind=verdict.kind, headline=verdict.headline, facts=verdict.facts, next=verdict.next, command=command,
        fix=verdict.fix,
    )  # fmt: skip
