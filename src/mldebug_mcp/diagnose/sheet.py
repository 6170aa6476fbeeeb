"""The sheet of a run: what was observed, in the order in which a reader judges. It names no cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mldebug_mcp.diagnose.how_to_log import CONFIGURATION
from mldebug_mcp.diagnose.sheet_events import event_facts
from mldebug_mcp.diagnose.sheet_quantities import quantity_facts
from mldebug_mcp.diagnose.sheet_settings import setting_facts
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.attempt import Attempt, Ending
from mldebug_mcp.logs.plan import plan_of
from mldebug_mcp.measure.among_siblings import among_siblings
from mldebug_mcp.models import Finding, MetricToLog, State
from mldebug_mcp.models.sheet import Sheet
from mldebug_mcp.text import counted, figure, percent, shorten

MOST_ATTEMPTS, MOST_MESSAGES, MOST_SIBLINGS = 4, 3, 3
LONGEST_MESSAGE = 160
MOST_MISSING = 6
LONGEST_LINE = 600
LOGGED = "LOGGED, name: first, early = median of the first 5 %, low and high at step, last, noise; course"
USUAL = ("loss", "eval_loss", "grad_norm", "learning_rate")
USUAL_IN = {
    "grpo": ("reward", "reward_std", "kl", "entropy", "completion_length"),
    "ppo": ("reward", "kl", "entropy"),
    "preference": ("rewards/chosen", "rewards/margins", "logps/chosen"),
    "rl": ("reward",),
}
"""What is missed where it is not logged, in every run and in those of a kind."""
_ENDS = {
    "finished": "the run finished",
    "error": "the log ends in an error",
    "interrupted": "the run was interrupted",
    "silence": "no more records come while the clock of the log runs on",
    "cut": "the log is cut off in the middle of a line",
    "open": "the log ends without a closing record: the run goes on or was killed",
}


def sheet_of(run: Run, findings: Sequence[Finding], missing: Sequence[MetricToLog] = ()) -> Sheet:
    """Return the sheet of a run.

    Args:
        run: As it was read.
        findings: Every symptom with its state.
        missing: The metrics that would have helped, best first.
    """
    with np.errstate(all="ignore"):  # of numbers at the ends of what a float holds
        sheet = Sheet(
            ran=_ran(run),
            settings=setting_facts(run),
            quantities=quantity_facts(run, findings),
            events=event_facts(run, findings),
            not_judged=_not_judged(run, findings, missing),
        )
    return sheet.model_copy(update={"lines": lines_of(sheet)})


def lines_of(sheet: Sheet) -> list[str]:
    """Return the sheet as lines: a heading for each part, a line for each quantity and event."""
    return [
        *_part("RAN", sheet.ran),
        *_part("SETTINGS, unusual ones marked [!]", _filled(map(str, sheet.settings), "; ")),
        *_part(LOGGED, (line for one in sheet.quantities for line in _filled(one.parts, " | "))),
        *_part("EVENTS", (f"{figure(one.step)}: {one}" for one in sheet.events)),
        *_part("NOT JUDGED", sheet.not_judged),
    ]


def _part(title: str, lines: Iterable[str]) -> list[str]:
    shown = list(lines)
    return [title, *shown] if shown else []


def _filled(pieces: Iterable[str], between: str) -> list[str]:
    """Return pieces on as few lines as hold them."""
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + len(between) + len(piece) <= LONGEST_LINE:
            lines[-1] += between + piece
        else:
            lines.append(piece)
    return lines


def _ran(run: Run) -> list[str]:
    steps = f"{run.step_name}s {figure(run.first_step)} to {figure(run.last_step)}"
    lines = [f"{run.kind} run, {counted(run.records, 'record')}, {steps} ({', '.join(run.formats)})"]
    return [*lines, *_planned(run), *_attempts(run), *_resumes(run), *_ends(run), *_messages(run), *_siblings(run)]


def _planned(run: Run) -> list[str]:
    plan = plan_of(run)
    told = []
    if plan is not None:
        share = percent(plan.reached / plan.planned)
        told.append(f"plan: {plan.unit} {figure(plan.reached)} of {figure(plan.planned)}, {share}")
    passes = run.facts.passes_at(run.last_step) if run.step_name == "step" else None
    if passes is not None:
        told.append(f"{figure(passes)} passes over the data")
    return ["; ".join(told)] if told else []


def _attempts(run: Run) -> list[str]:
    if len(run.attempts) < 2:
        return []
    shown = "; ".join(_attempt(one) for one in run.attempts[-MOST_ATTEMPTS:])
    return [f"{len(run.attempts)} attempts in the log: {shown}"]


def _attempt(one: Attempt) -> str:
    steps = ""
    if one.first_step is not None and one.last_step is not None:
        steps = f", steps {figure(one.first_step)} to {figure(one.last_step)}"
    judged = "this one: " if one.judged else ""
    return f"{judged}{counted(one.records, 'record')}{steps} ({one.ending.how}{_in_words(one.ending)})"


def _resumes(run: Run) -> list[str]:
    steps = sorted({*run.resumes, *(one.first_step for one in run.segments[1:])})
    if not steps:
        return []
    shown = ", ".join(figure(one) for one in steps[:8]) + (", …" if len(steps) > 8 else "")
    again = [
        f"steps {figure(after.first_step)} to {figure(before.last_step)} are logged twice"
        for before, after in zip(run.segments[:-1], run.segments[1:], strict=True)
        if after.first_step <= before.last_step
    ]
    return [f"resumed at {run.step_name} {shown}" + (f"; {'; '.join(again[:3])}" if again else "")]


def _ends(run: Run) -> list[str]:
    return [f"end: {_ENDS[run.ending.how]}{_in_words(run.ending)}"]


def _in_words(ending: Ending) -> str:
    where = f"line {ending.line}: " if ending.line else ""
    return f": {where}{shorten(ending.text, LONGEST_MESSAGE)}" if ending.text else ""


def _messages(run: Run) -> list[str]:
    told = [one for one in run.messages if one.severity != "noise"]
    shown = [
        f"line {one.line} ({one.severity}, after {counted(one.records, 'record')}): "
        f"{shorten(one.text, LONGEST_MESSAGE)}"
        for one in told[:MOST_MESSAGES]
    ]
    more = [f"{len(told) - len(shown)} more error lines"] if len(told) > len(shown) else []
    return [*shown, *more]


def _siblings(run: Run) -> list[str]:
    shown = [
        f"{one.name} ({', '.join(f'{name}={value}' for name, value in list(one.settings.items())[:4])})"
        for one in run.siblings[:MOST_SIBLINGS]
    ]
    if not shown:
        return []
    among = among_siblings(run)
    beside = "" if among is None else (
        f"; {among.metric} at the end {figure(among.own)}, in {among.count} of them {figure(among.usual)} "
        f"(median, spread {figure(among.spread)})"
    )  # fmt: skip
    return [f"{counted(len(run.siblings), 'sibling run')}, otherwise set: {'; '.join(shown)}{beside}"]


def _not_judged(run: Run, findings: Sequence[Finding], missing: Sequence[MetricToLog]) -> list[str]:
    """Return which metrics are missing, those that would help most first, then what every such run should log."""
    wanted = dict.fromkeys([one.metric for one in missing])
    wanted |= dict.fromkeys(name for name in (*USUAL, *USUAL_IN.get(run.kind, ())) if name not in run)
    if not run.settings:
        wanted[CONFIGURATION] = None
    judged = sum(one.state is not State.UNKNOWN for one in findings)
    told = ", ".join(list(wanted)[:MOST_MISSING])
    return [f"{judged} of {len(findings)} symptoms judged" + (f"; not logged: {told}" if told else "")]
