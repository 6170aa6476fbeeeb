"""Which tool to call next after an answer: a call that can be made as it stands.

A next step may need what only the user has (another run, a batch), so its call may have a placeholder. The first check
is called where it has none; otherwise a call explains the hypothesis that it is about.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean, shorten
from mldebug_mcp.models import Call
from mldebug_mcp.models.base import OTHER, SOUND

if TYPE_CHECKING:
    from mldebug_mcp.logs import Run
    from mldebug_mcp.models import (
        BatchFinding,
        EntryHit,
        ErrorMatch,
        Explanation,
        FirstError,
        Hypothesis,
        NextStep,
        QuoteHit,
        RunSummary,
    )
    from mldebug_mcp.models.data import CallSite, MemoryFinding

_ON_LEADER = {SOUND: "what to check before it is believed", OTHER: "how to narrow it down"}
"""What there is to read on the two hypotheses that have nothing to fix."""
_PLACEHOLDER = regex(r"[A-Z_]{4,}(?:$|\.)")
"""A placeholder for something of the user's: BATCH, OTHER_RUN, FILE.py:function, SNAPSHOT.pickle."""


def ready(call: str | None, why: str = "") -> Call | None:
    """Return a call of a next step, or None if it has a placeholder or there is none."""
    if call is None or not is_sendable(call):
        return None
    parsed = ast.parse(call, mode="eval").body
    if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name):
        return None
    given = {word.arg: ast.literal_eval(word.value) for word in parsed.keywords if word.arg}
    if any(isinstance(value, str) and _PLACEHOLDER.match(value) for value in given.values()):
        return None
    return Call(tool=parsed.func.id, arguments=given, why=shorten(why, 160))


def is_sendable(text: str) -> bool:
    """Return whether a name from outside survives the way to a client and back."""
    return clean(text) == text


# The call of a tool as the command line takes it: who reads an answer in a terminal has no tools to call.


_COMMANDS = {
    "diagnose_run": ("diagnose", "path"),
    "diagnose_runs": ("runs", "path"),
    "read_metric": ("read", "path"),
    "inspect_batch": ("batch", "path"),
    "inspect_script": ("script", "path"),
    "rows_at": ("rows", "path"),
    "probe_overfit": ("probe", "batch"),
    "check_memory": ("memory", "path"),
    "estimate_memory": ("estimate", "config"),
    "explain_error": ("error", "text"),
    "search_folklore": ("search", "query"),
    "explain": ("explain", "id"),
}
"""The command of each tool, and which of its arguments stands without a name."""


def as_command(call: str | Call) -> str:
    """Return a call such as `check_memory(path="a", against="b")` as a command; another call as it is."""
    if isinstance(call, Call):
        name, given = call.tool, {word: str(value) for word, value in call.arguments.items()}
    else:
        parsed = ast.parse(call or "''", mode="eval").body
        if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name):
            return call
        name = parsed.func.id
        given = {word.arg: str(ast.literal_eval(word.value)) for word in parsed.keywords if word.arg}
    if name not in _COMMANDS:
        return str(call)
    command, bare = _COMMANDS[name]
    words = [given.pop(bare)] if bare in given else []
    for option, value in given.items():
        words += [f"--{option.replace('_', '-')}", value]
    return shlex.join(["mldebug-mcp", command, *words])


def read_as(run: Run | RunSummary) -> dict[str, str]:
    """Return the options besides its path with which a run was read: without them another run is judged."""
    return {name: value for name, value in (("run", run.name), ("config", run.config_file)) if value}


def diagnose_command(run: Run | RunSummary, *options: str) -> str:
    """Return the command that diagnoses the same run again."""
    named = [word for name, value in read_as(run).items() for word in (f"--{name}", value)]
    return shlex.join(["mldebug-mcp", "diagnose", run.path, *named, *options])


def diagnose_call(why: str, path: str, run: str = "") -> Call | None:
    """Return the call that diagnoses a run; None where its name does not survive the way to a client and back."""
    arguments = {"path": path, "run": run} if run else {"path": path}
    return (
        Call(tool="diagnose_run", arguments=arguments, why=why) if all(map(is_sendable, arguments.values())) else None
    )


def after_one_of_several(path: str) -> Call | None:
    """Return the call that judges each run of a folder; None where its name does not survive the way and back."""
    if not is_sendable(path):
        return None
    return Call(tool="diagnose_runs", arguments={"path": path}, why="one run of this folder was judged: judge each")


def after_ranking(steps: Sequence[NextStep], hypotheses: Sequence[Hypothesis]) -> Call:
    """Return the first check, where it can be made at once, else a call that explains the cause it is about."""
    leader = hypotheses[0].cause if hypotheses else OTHER
    for step in steps[:1]:
        call = ready(step.call, step.action)
        if call is not None:
            return call
        if leader not in (cause := step.id.partition(".")[0], *step.for_causes):
            return _read(cause, shorten(f"how to make the first check: {step.action}", 160))
    return _read(leader, f"the leading hypothesis: {_ON_LEADER.get(leader, 'how to confirm and fix it')}")


def after_a_crash(text: str) -> Call:
    """Return a call that explains the error that ended a run: its message, or the log that holds it."""
    return Call(tool="explain_error", arguments={"text": text}, why="the error that ended it, with your line of code")


def after_inspection(path: str, findings: Sequence[BatchFinding], trained: int | None) -> Call:
    """Return a call that explains the most severe finding; without one, a probe of the batch."""
    if findings:
        return _read(findings[0].check, "how the most severe finding is judged, and its fix")
    if trained and is_sendable(path):
        return Call(tool="probe_overfit", arguments={"batch": path}, why="can a tiny model memorise it?")
    return _read("menu_not_learning", "what else keeps a model from learning")


def after_memory(
    path: str, sites: Sequence[CallSite], findings: Sequence[MemoryFinding], *, leader: str, focused: bool
) -> Call:
    """Return a closer look at the call site of the gravest finding, or the largest.

    Without call sites, a call that explains the leading fault (`leader`, "" for none), else the gravest finding.
    """
    if sites and not focused and is_sendable(path):
        blamed = [finding for finding in findings if finding.severity != "info" and finding.stack]
        named = [site for memory_finding in blamed for site in sites if site.site == memory_finding.stack[0]]
        why = "the whole stack of " + ("the call site in question" if named else "the largest call site")
        return Call(tool="check_memory", arguments={"path": path, "focus": (named or sites)[0].id}, why=why)
    if leader:
        return _read(leader, "how to confirm this cause and what else shows it")
    found = next((finding.finding for finding in findings if finding.finding != "healthy"), "menu_out_of_memory")
    return _read(found, "how to save memory")


def after_search(quotes: Sequence[QuoteHit], entries: Sequence[EntryHit], *, of_practice: bool) -> Call:
    """Return a call that explains the best entry, or for a question `of_practice` the source of the best quote."""
    if entries and not (of_practice and quotes):
        return _read(entries[0].id, "the best entry, in full")
    if quotes:
        return _read(quotes[0].source, "all quotes of this source")
    return _read("menu_not_learning", "causes by situation")


def after_explanation(entry: Explanation) -> Call:
    """Return a call that explains the first related entry, else a search for more on the subject."""
    if entry.related:
        return _read(entry.related[0], "related")
    return Call(
        tool="search_folklore", arguments={"query": shorten(entry.title, 200)}, why="what practitioners say about it"
    )


def after_error(error: FirstError, matches: Sequence[ErrorMatch], finds: Callable[[str], bool]) -> Call | None:
    """Return a call that explains the matching message, else a search for its words, if that finds anything.

    None where nothing is known of the message: then the line of code that raised it tells more than any call.
    """
    if matches:
        return _read(matches[0].id, "this message: cause, fix, and what it is mistaken for")
    words = " ".join(re.findall(r"[A-Za-z_]{3,}", error.text)[:20])
    if not words:
        return without_error()
    if not finds(words):
        return None
    return Call(tool="search_folklore", arguments={"query": words, "kind": "any"}, why="what is known about its words")


def without_error() -> Call:
    """Return a call that explains what to look for after a run that stopped without a message."""
    return _read("menu_it_hangs", "a run that stopped without a message")


def after_a_sound_log(path: str) -> Call:
    """Return a diagnosis of a log in which no line reads like an error."""
    if not is_sendable(path):
        return without_error()
    return Call(tool="diagnose_run", arguments={"path": path}, why="no line is an error: what do its metrics show?")


def after_words(text: str) -> Call:
    """Return a search for words that are no error message."""
    query = shorten(text, 200)
    return Call(tool="search_folklore", arguments={"query": query}, why="no error message: what is known about this")


def _read(name: str, why: str) -> Call:
    return Call.model_construct(tool="explain", arguments={"id": name}, why=why)
