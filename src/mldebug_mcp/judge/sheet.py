"""The sheet of a run, with what was observed in the order in which a reader judges. It names no cause."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell, symptoms
from mldebug_mcp.checks.course import Change, Course, Event, course_of, events_of
from mldebug_mcp.checks.curve import row_medians
from mldebug_mcp.checks.evaluation import is_running_mean
from mldebug_mcp.checks.progress import uniform_loss
from mldebug_mcp.checks.reference_settings import usual_instead, usual_rates
from mldebug_mcp.checks.results import among_siblings
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex, replace
from mldebug_mcp.core.text import counted, duration, figure, fits, percent, shorten
from mldebug_mcp.judge.columns import named
from mldebug_mcp.judge.columns.facts import not_repeated
from mldebug_mcp.judge.derived_facts import derived_facts
from mldebug_mcp.judge.what_to_log import CONFIGURATION
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.logs.names.quantities import LOSSES, THROUGHPUTS, Quantity
from mldebug_mcp.logs.names.settings import PHRASES
from mldebug_mcp.logs.run import Attempt, Ending, Sibling, TextLine
from mldebug_mcp.logs.settings.settings import Setting, Value
from mldebug_mcp.models import Finding, Hypothesis, MetricToLog, State
from mldebug_mcp.models.diagnosis import CurveFact, DerivedFact, EventFact, QuantityFact, SettingFact, Sheet

# The settings that matter, each marked with what is usual where it is not.


MOST_OTHERS = 30
"""Settings that are not known by name and are shown all the same."""
LONGEST_VALUE = 60
LONGEST_OTHER = 30
USUAL_RATE_SLACK_RATIO = 2.0
"""How far outside of a usual range a learning rate lies to be marked. Chosen: half of what makes it a symptom."""
_LAST = ("logging_steps", "eval_steps", "save_steps", "eval_strategy", "seed", "local_rank", "num_workers", "dataset",
         "per_device_eval_batch_size", "eval_rows", "framework", "tokenizer", "nnodes", "nproc_per_node")  # fmt: skip
"""Known settings that say least of how training goes."""
_TRIVIAL = ("path", "dir", "url", "host", "port", "run_id", "run_name", "tags", "notes", "date", "time", "wandb", "hub",
            "token", "version", "cache", "report_to", "user", "file", "prefix", "push", "save", "logging", "debug",
            "display", "verbose", "project", "name", "eos", "bos", "pad_", "ddp", "fsdp", "deepspeed")  # fmt: skip
"""Parts of names of settings that are not known and say nothing of how training goes."""


def setting_facts(run: Run) -> list[SettingFact]:
    """Return the settings: unusual ones first, then what follows from several, the known, and some of the others."""
    facts = [*_derived(run), *_known_settings(run), *_unknown_settings(run)]
    return sorted(facts, key=lambda fact: not fact.usual)


def _derived(run: Run) -> Iterator[SettingFact]:
    facts = run.facts
    if facts.effective_batch:
        usual = "" if run.kind == "rl" else usual_instead(run, "effective_batch", facts.effective_batch)
        yield SettingFact.model_construct(name="effective_batch", value=figure(facts.effective_batch), usual=usual)
    uniform = uniform_loss(run)
    if uniform is not None:
        yield SettingFact.model_construct(
            name="loss_of_a_uniform_guess", value=f"{figure(uniform)} = ln({figure(math.exp(uniform))})"
        )
    if facts.precision:
        yield SettingFact.model_construct(name="computes_in", value=facts.precision)
    passes = facts.passes_at(facts.plan) if facts.plan else None
    if passes is not None:
        usual = usual_instead(run, "planned_passes", passes)
        yield SettingFact.model_construct(name="planned_passes", value=figure(passes), usual=usual)


def _known_settings(run: Run) -> Iterator[SettingFact]:
    order = {name: at for at, name in enumerate(PHRASES)}
    known = [
        setting
        for setting in run.settings.known
        if not (isinstance(setting.value, str) and "/" in setting.value and len(setting.value) > LONGEST_VALUE)
    ]
    for setting in sorted(known, key=lambda setting: (setting.name in _LAST, order.get(setting.name, len(order)))):
        yield SettingFact.model_construct(
            name=setting.name, value=_value_text(setting.value), usual=_usual(run, setting)
        )


def _unknown_settings(run: Run) -> list[SettingFact]:
    """Return settings that are not known: switches and numbers before words, without what says where things are."""
    others = [
        setting
        for setting in run.settings.values()
        if not setting.known
        and setting.value is not None
        and not any(word in setting.name.lower() for word in _TRIVIAL)
    ]
    others.sort(key=lambda other: (isinstance(other.value, str), other.key.count("/")))
    return [
        SettingFact.model_construct(name=other.name, value=shorten(_value_text(other.value), LONGEST_OTHER))
        for other in others[:MOST_OTHERS]
    ]


def _usual(run: Run, setting: Setting) -> str:
    value = setting.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "true" if setting.name == "shuffle" and value is False else ""
    if setting.name == "learning_rate":
        return _usual_rate(run, float(value))
    return usual_instead(run, setting.name, float(value))


def _usual_rate(run: Run, rate: float) -> str:
    try:
        ranges = usual_rates(run)
    except CannotTell:
        return ""
    if any(
        usual_range.low / USUAL_RATE_SLACK_RATIO <= rate <= usual_range.high * USUAL_RATE_SLACK_RATIO
        for usual_range in ranges
    ):
        return ""
    return " or ".join(
        f"{figure(usual_range.low)} to {figure(usual_range.high)} for {usual_range.usual_for}" for usual_range in ranges
    )


def _value_text(value: Value) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_value_text(item) for item in value[:8]) + ("" if len(value) <= 8 else ", …") + "]"
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    return figure(value) if isinstance(value, int | float) else shorten(value, LONGEST_VALUE)


# What happened, on one time line: jumps, what the log says of resumes, and where findings begin.


MOST_EVENTS = 10
MOST_TEXT_LINES = 6
MOST_CHANGES = 4
"""Curves of an event that are shown, and events that are."""
MIN_EVENTS_TO_JOIN = 4
"""Events of one curve that share one line. Chosen: from here on that they recur says more than each."""
MOST_STEPS = 8
MAX_DISTANCE_TO_EVENT = 0.01
"""Share of the run within which a finding begins at an event."""
_WEIGHTY = LOSSES | {Quantity.GRADIENT_NORM, Quantity.REWARD, Quantity.KL, Quantity.ENTROPY, Quantity.LEARNING_RATE}


def event_facts(run: Run, findings: Sequence[Finding]) -> list[EventFact]:
    """Return what happened, in order: the largest jumps, resumes, losses of finite numbers, beginnings of findings."""
    present = [finding for finding in findings if finding.state is State.PRESENT]
    decides = [name for finding in present for name in rests_on(run, finding)]
    names = sorted(
        (name for name in run.series if not is_clock(run[name])), key=lambda name: _order(run, name, decides)
    )
    events = [_as_stated(run, event, present) for event in events_of(run, names)]
    resumes = [EventFact.model_construct(step=step, text="resumed") for step in run.restarts[:MOST_STEPS]]
    incidents = [EventFact.model_construct(step=each.step, text=each.text) for each in run.incidents[:MOST_EVENTS]]
    facts = [*_jumps(run, events), *resumes, *_not_finite_events(run, names), *incidents]
    facts = _with_findings(run, facts, present)
    return sorted([*facts, *_text_lines(run, facts)], key=lambda event_fact: event_fact.step)


def _order(run: Run, name: str, decides: Sequence[str]) -> tuple[bool, bool, bool]:
    role = run[name].role
    return role is None or role.quantity not in _WEIGHTY, name not in decides, role is None


def _as_stated(run: Run, event: Event, present: Sequence[Finding]) -> Event:
    """Return an event with the levels before it that findings state: two baselines of one jump would confuse."""
    near = MAX_DISTANCE_TO_EVENT * (run.last_step - run.first_step)
    stated = {
        name.removesuffix("_before"): value
        for finding in present
        if finding.steps and abs(finding.steps[0] - event.step) <= near
        for name, value in finding.values.items()
        if name.endswith("_before")
    }
    return Event(tuple(replace(change, before=stated.get(change.metric, change.before)) for change in event.changes))


def _jumps(run: Run, events: Sequence[Event]) -> list[EventFact]:
    """Return the jumps, the largest ones; those of one curve that recur in one line."""
    facts, left = [], list(events)
    while left:
        most, count = Counter(change.metric for event in left for change in event.changes).most_common(1)[0]
        if count < MIN_EVENTS_TO_JOIN:
            break
        again = [event for event in left if most in event.metrics]
        facts.append(_recurring(run, again))
        left = [event for event in left if most not in event.metrics]
    facts += [_jump(run, event) for event in left]
    return sorted(facts, key=lambda fact: -fact.size)[:MOST_EVENTS]


def _jump(run: Run, event: Event) -> EventFact:
    ordered = sorted(event.changes, key=lambda change: (_order(run, change.metric, ()), -change.sigmas))
    changes = [_change_line(run, change) for change in ordered[:MOST_CHANGES]]
    more = [f"{len(ordered) - len(changes)} more"] if len(ordered) > len(changes) else []
    first = event.first_mover
    mover = f"{named(run[first])} at {figure(event.step)}" if first else ""
    return EventFact.model_construct(
        step=event.step, text=", ".join([*changes, *more]), first_mover=mover, size=_size(run, event)
    )


def _size(run: Run, event: Event) -> float:
    """Return how large an event is; what weighs most counts double, so that it comes before jumps of a clock."""
    weighty = [
        change
        for change in event.changes
        if (role := run[change.metric].role) is not None and role.quantity in _WEIGHTY
    ]
    return max(event.sigmas, 2 * max((change.sigmas for change in weighty), default=0.0))


def _recurring(run: Run, events: Sequence[Event]) -> EventFact:
    largest = max(events, key=lambda event: event.sigmas)
    steps = ", ".join(figure(event.step) for event in events[:MOST_STEPS]) + (", …" if len(events) > MOST_STEPS else "")
    fact = _jump(run, largest)
    text = f"{len(events)} times, at {steps}; the largest at {figure(largest.step)}: {fact.text}"
    return fact.model_copy(update={"step": events[0].step, "text": text, "worst_at": fact.step})


def _change_line(run: Run, change: Change) -> str:
    at = f" at {figure(change.at)}" if change.at != change.step else ""
    way = "down" if change.there > change.before else "up"
    back = f"{way} to {figure(change.left)} at {figure(change.back)}" if change.back is not None else "stays"
    return f"{named(run[change.metric])} from about {figure(change.before)} to {figure(change.there)}{at} ({back})"


def _text_lines(run: Run, facts: Sequence[EventFact]) -> list[EventFact]:
    """Return what the log says in words between its records: warnings first, then what stands near an event."""
    near = MAX_DISTANCE_TO_EVENT * (run.last_step - run.first_step)

    def order(line: TextLine) -> tuple[bool, bool]:
        return not line.warns, all(abs(fact.step - line.step) > near for fact in facts)

    between = [line for line in run.text_lines if line.warns or line.step < run.last_step]
    shown = sorted(between, key=order)[:MOST_TEXT_LINES]
    return [
        EventFact.model_construct(
            step=text_line.step, text=f"line {text_line.line}: {shorten(text_line.text, LONGEST_MESSAGE)}"
        )
        for text_line in shown
    ]


def _not_finite_events(run: Run, names: Iterable[str]) -> list[EventFact]:
    """Return where values first are not finite: those of one step together."""
    first: dict[float, list[str]] = {}
    for name in names:
        series = run[name]
        if series.finite is not series:
            at = int(np.argmin(np.isfinite(series.value)))
            first.setdefault(float(series.step[at]), []).append(named(run[name]))
    return [
        EventFact.model_construct(step=step, text=f"first not finite: {', '.join(which[:MOST_CHANGES])}{more}")
        for step, which in sorted(first.items())[:MOST_CHANGES]
        for more in [f" and {len(which) - MOST_CHANGES} more" if len(which) > MOST_CHANGES else ""]
    ]


def _with_findings(run: Run, facts: Sequence[EventFact], present: Sequence[Finding]) -> list[EventFact]:
    """Return the events with the findings that begin there, and an event for each beginning without one."""
    near = MAX_DISTANCE_TO_EVENT * (run.last_step - run.first_step)
    found: list[EventFact] = list(facts)
    for finding in present:
        if not finding.steps or not run.first_step < finding.steps[0] < run.last_step:
            continue
        step = finding.steps[0]
        place = min(range(len(found)), key=lambda at: abs(found[at].step - step), default=None)
        if place is None or abs(found[place].step - step) > near:
            found.append(EventFact.model_construct(step=step, text="begins", findings=[finding.symptom]))
        else:
            known = found[place]
            found[place] = known.model_copy(update={"findings": [*known.findings, finding.symptom]})
    return found


# The sheet of a run: what was observed, in the order in which a reader judges. It names no cause.


MOST_ATTEMPTS = 4
MOST_MESSAGES = 3
MOST_SIBLINGS = 3
LONGEST_MESSAGE = 160
MOST_MISSING = 6
LONGEST_LINE = 600
LOGGED = "LOGGED, name: first, early = median of the first 5 % (3 at least), low and high at step, last, noise; course"
USUAL = ("loss", "eval_loss", "grad_norm", "learning_rate")
USUAL_IN = {
    "grpo": ("reward", "reward_std", "kl", "entropy", "completion_length"),
    "ppo": ("reward", "kl", "entropy"),
    "preference": ("rewards/chosen", "rewards/margins", "logps/chosen"),
    "rl": ("reward",),
}
"""What is missed where it is not logged, in every run and in those of a kind."""
MAX_QUIET_SECONDS = 300.0
"""Seconds without a line after which a run may stand still. Chosen: an evaluation or a checkpoint takes minutes."""
MAX_AGE_SECONDS = 7 * 86_400.0
"""Age of a log whose process nobody looks for. Chosen."""
_ENDS = {
    "finished": "the run finished",
    "error": "the log ends in an error",
    "interrupted": "the run was interrupted",
    "silence": "no more records come while the clock of the log runs on",
    "cut": "the log is cut off in the middle of a line",
    "open": "it may have finished: the log does not say",
}


def sheet_of(
    run: Run,
    findings: Sequence[Finding],
    missing: Sequence[MetricToLog],
    facts: Sequence[DerivedFact],
    *,
    settings: list[SettingFact],
    quantities: list[QuantityFact],
) -> Sheet:
    """Return the sheet of a run, its settings and quantities being known."""
    with np.errstate(all="ignore"):  # of numbers at the ends of what a float holds
        sheet = Sheet.model_construct(
            ran=_ran(run),
            settings=settings,
            quantities=quantities,
            events=event_facts(run, findings),
            facts=[*derived_facts(run), *not_repeated(facts, findings)],
            not_judged=_not_judged(run, findings, missing),
        )
    return sheet.model_copy(update={"lines": lines_of(sheet)})


def lines_of(sheet: Sheet) -> list[str]:
    """Return the sheet as lines: a heading for each part, a line for each quantity and event."""
    return [
        *_part("RAN", sheet.ran),
        *_part("SETTINGS, unusual ones marked [!]", _filled(map(str, sheet.settings), "; ")),
        *_part(LOGGED, (line for quantity in sheet.quantities for line in _filled(quantity.parts, " | "))),
        *_part("EVENTS", (f"{figure(event.step)}: {event}" for event in sheet.events)),
        *_part("FACTS", (fact.text for fact in sheet.facts)),
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
    kind = "run of a kind that is not known" if run.kind == "unknown" else f"{run.kind} run"
    lines = [f"{kind}, {counted(run.records, 'record')}, {steps} ({', '.join(run.formats)})"]
    return [*lines, *_planned(run), *_attempts(run), *_resumes(run), *_ends(run), *_messages(run), *_siblings(run)]


def _planned(run: Run) -> list[str]:
    plan = plan_of(run)
    parts = []
    if plan is not None:
        share = percent(plan.reached / plan.planned)
        parts.append(f"plan: {plan.unit} {figure(plan.reached)} of {figure(plan.planned)}, {share}")
    passes = run.facts.passes_at(run.last_step) if run.step_name == "step" else None
    if passes is not None:
        parts.append(f"{figure(passes)} passes over the data")
    rows = run.facts.steps_per_update
    parts += [f"steps of this log count rows, {figure(rows)} to an update"] if rows > 1 else []
    return ["; ".join(parts)] if parts else []


def _attempts(run: Run) -> list[str]:
    if len(run.attempts) < 2:
        return []
    last = run.attempts[-MOST_ATTEMPTS:]
    shown = last if any(attempt.judged for attempt in last) else (*(a for a in run.attempts if a.judged), *last)
    left_out = len(run.attempts) - len(shown)
    more = [f"{left_out} more, before these"] if left_out else []
    word = "folds" if run.attempts[0].is_fold else "attempts"
    return [f"{len(run.attempts)} {word} in the log: {'; '.join([*map(_attempt, shown), *more])}"]


def _attempt(attempt: Attempt) -> str:
    steps = ""
    if attempt.first_step is not None and attempt.last_step is not None:
        steps = f", steps {figure(attempt.first_step)} to {figure(attempt.last_step)}"
    judged = "this one: " if attempt.judged else ""
    return f"{judged}{counted(attempt.records, 'record')}{steps} ({attempt.ending.how}{_in_words(attempt.ending)})"


def _resumes(run: Run) -> list[str]:
    steps = run.restarts
    if not steps:
        return []
    shown = ", ".join(figure(step) for step in steps[:8]) + (", …" if len(steps) > 8 else "")
    again = [
        f"from {figure(before.last_step)} back to {figure(after.first_step)}"
        for before, after in zip(run.segments[:-1], run.segments[1:], strict=True)
        if after.first_step <= before.last_step
    ]
    return [f"resumed at {run.step_name} {shown}" + (f"; {'; '.join(again[:3])}" if again else "")]


def _ends(run: Run) -> list[str]:
    how, plan = _ENDS[run.ending.how], plan_of(run)
    if run.ending.how == "open" and plan is not None and not plan.is_done:
        how = "before its plan is done: the log does not say why"
    return [f"end: {how}{_in_words(run.ending)}{_age(run.ending)}"]


def _age(ending: Ending) -> str:
    """Say how long ago the last line of a log without an end was written, where that is known."""
    if ending.written is None:
        return ""
    ago = max(0.0, time.time() - ending.written)
    goes_on = "; the run may be going on" if ago < MAX_QUIET_SECONDS else "; see whether its process lives"
    return f"; its last line was written {duration(ago)} ago{goes_on if ago < MAX_AGE_SECONDS else ''}"


def _in_words(ending: Ending) -> str:
    of_file = f" of {ending.file}" if ending.file else ""
    where = f"line {ending.line}{of_file}: " if ending.line else ""
    return f": {where}{shorten(ending.text, LONGEST_MESSAGE)}" if ending.text else ""


def _messages(run: Run) -> list[str]:
    messages = [message for message in run.messages if message.severity != "noise"]
    shown = [
        f"{message.place} ({message.severity}, after "
        f"{counted(message.records_there if message.file else message.records, 'record')}): "
        f"{shorten(message.text, LONGEST_MESSAGE)}"
        for message in messages[:MOST_MESSAGES]
    ]
    more = [f"{len(messages) - len(shown)} more error lines"] if len(messages) > len(shown) else []
    return [*shown, *more]


def _siblings(run: Run) -> list[str]:
    if not run.siblings:
        return []
    first = sorted(run.siblings, key=lambda sibling: not sibling.settings)[:MOST_SIBLINGS]
    shown = [_sibling(sibling) for sibling in first]
    otherwise = ", otherwise set" if first[0].settings else ""
    among = among_siblings(run)
    comparison = "" if among is None else (
        f"; {among.metric} at the end {figure(among.own)}, in {among.count} of them {figure(among.usual)} "
        f"(median, spread {figure(among.spread)})"
    )  # fmt: skip
    return [f"{counted(len(run.siblings), 'sibling run')}{otherwise}: {'; '.join(shown)}{comparison}"]


def _sibling(sibling: Sibling) -> str:
    """Return the name of a sibling run, with what is set otherwise in it where that is known."""
    settings = ", ".join(f"{name}={value}" for name, value in list(sibling.settings.items())[:4])
    return f"{sibling.name} ({settings})" if settings else sibling.name


def _not_judged(run: Run, findings: Sequence[Finding], missing: Sequence[MetricToLog]) -> list[str]:
    """Return which metrics are missing, those that would help most first, then what every such run should log."""
    wanted = dict.fromkeys(metric_to_log.metric for metric_to_log in missing if metric_to_log.metric not in run)
    wanted |= dict.fromkeys(name for name in (*USUAL, *USUAL_IN.get(run.kind, ())) if name not in run)
    if not run.settings:
        wanted[CONFIGURATION] = None
    judged = sum(finding.state is not State.UNKNOWN for finding in findings)
    not_logged = ", ".join(list(wanted)[:MOST_MISSING])
    return [f"{judged} of {len(findings)} symptoms judged" + (f"; not logged: {not_logged}" if not_logged else "")]


# Which of a run's metrics a finding was made from.


# The quantities of a run, each with its course in numbers.


_SHORT = {
    "lr": ("learning_rate",), "grad": ("grad_norm",), "gradient": ("grad_norm*",), "accuracy": ("accuracy",),
    "dpo": ("logps/*", "rewards/*"), "steps": ("loss_scale", "skipped_iterations"), "overflows": ("loss_scale",),
}  # fmt: skip
"""What a symptom's first word stands for, unless that is the name of a metric."""


def rests_on(run: Run, finding: Finding) -> list[str]:
    """Return the metrics of a run from which a finding was made."""
    symptom = symptoms().get(finding.symptom)
    patterns = (*symptom.needs, *symptom.question.any_of) if symptom is not None else ()
    if patterns:
        return _matching(run.series, patterns)
    first = finding.symptom.partition("_")[0]  # those that read settings too say it by their name
    matching = _matching(run.series, _SHORT.get(first, (first, f"{first}_*")))
    # Evaluations log how fast a run is with their results.
    named = [
        name
        for name in matching
        if (role := run[name].role) is None or not (role.quantity.is_duration or role.quantity in THROUGHPUTS)
    ]
    return _named_in(finding.summary, run, named) or [name for name in named if name in _MAIN] or named


_MAIN = ("loss", "eval_loss")
"""What a symptom of losses or evaluations is of, if its summary does not name a metric."""


def _named_in(summary: str, run: Run, names: Sequence[str]) -> list[str]:
    words = set(_PRINTED_WORDS.findall(summary))
    return [name for name in names if name in words or run[name].logged_as in words]


_PRINTED_WORDS = regex(r"[\w/.@-]*\w")


def _matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if any(fits(name, pattern) for pattern in patterns)]


def speaks_first(present: Sequence[Finding], hypothesis: Hypothesis) -> float | None:
    """Return the first step of what is seen and supports a hypothesis; None where that has no step."""
    steps = [finding.steps[0] for finding in present if finding.symptom in hypothesis.symptoms and finding.steps]
    return min(steps, default=None)


# What was logged, a line per quantity: what decides first, training with evaluation, extremes of many columns.


MOST_ALIKE = 4
"""Columns of one quantity, such as those of layers, that have a line each. Chosen: more would hide the rest."""
MOST_CURVES = 4
MOST_BEFORE = 10
"""Training records before an evaluation that it is compared with."""
LEAST_GAPS = 4
"""Intervals between records of a metric after which it was logged regularly. Chosen."""
MAX_MISSING_GAP_RATIO = 3.0
"""Times the longest of them after which the metric is missed. Chosen: one record may be skipped."""
MAX_SAME_RANGE_SHARE = 0.01
"""Share of a curve's range below which two values are shown once."""
_CLOCKS = frozenset({
    Quantity.STEP, Quantity.EPOCH, Quantity.EPISODE, Quantity.TOKENS_SEEN, Quantity.SAMPLES_SEEN, Quantity.ELAPSED,
    Quantity.TIMESTAMP, Quantity.TIME_LEFT, Quantity.RUNTIME, Quantity.FLOPS,
})  # fmt: skip
"""What says where a run is rather than how it goes."""
_OF_UPDATES = frozenset({Quantity.LEARNING_RATE, Quantity.GRADIENT_NORM, Quantity.LOSS_SCALE, Quantity.SKIPPED_STEPS})
_DIGITS = regex(r"\d+")


def quantity_facts(run: Run, findings: Sequence[Finding]) -> list[QuantityFact]:
    """Return a line for each quantity that was logged, counters left out, what decides first."""
    decides = frozenset(
        name for finding in findings if finding.state is State.PRESENT for name in rests_on(run, finding)
    )
    shown = [name for name in run.series if not is_clock(run[name])]
    facts = []
    for group in _groups(run, shown):
        curves = {name: course for name in group if (course := course_of(run[name])) is not None}
        is_of_parts = len(group) > MOST_ALIKE or len({_kind_of_part(run[name]) for name in group}) < len(group)
        if curves:
            facts.append(_summary_of_columns(run, curves, decides) if is_of_parts else _line(run, curves, decides))
    return sorted(facts, key=lambda fact: _place(run[fact.name], fact, run.last_step))


def is_clock(series: Series) -> bool:
    """Say whether a series counts or tells the time, rather than how training goes."""
    role = series.role
    return series.name.startswith("summary/") or (role is not None and role.quantity in _CLOCKS)


def _groups(run: Run, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the columns of each line: training with evaluation, and many parts of one quantity together."""
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(_kind_of_part(run[name]), []).append(name)
    alike = {name: tuple(group) for group in parts.values() if len(group) > MOST_ALIKE for name in group}
    groups: dict[str, tuple[str, ...]] = {}
    for name in names:
        if name in alike:
            groups[alike[name][0]] = alike[name]
        else:
            plain = name.removeprefix("eval_")
            groups.setdefault(
                plain, tuple(text for text in (plain, f"eval_{plain}") if text in names and text not in alike)
            )
    return list(groups.values())


def _kind_of_part(series: Series) -> str:
    """Return what is the same in the names of columns that are alike: those of layers, of reward functions."""
    role = series.role
    if role is not None and role.part and role.quantity not in LOSSES:
        return f"{role.quantity} {role.phase} {role.statistic}"
    bare = _DIGITS.sub("#", series.logged_as or series.name)
    return bare if bare != (series.logged_as or series.name) else f"={series.name}"


def _place(series: Series, fact: QuantityFact, last: float) -> tuple[int, float]:
    """Return how early a line stands: the loss, what a finding rests on, results, updates, what moved most."""
    role = series.role
    if series.name.removeprefix("eval_") in ("loss", "reward"):
        return 0, 0.0
    moved = -max(_moved(curve) for curve in fact.curves)
    if max(curve.records for curve in fact.curves) == 1 and series.step[-1] == last:
        return 6, moved  # of a closing record
    if fact.decides:
        return 1, 0.0
    if role is not None and role.quantity.is_result:
        return 2, 0.0
    if role is not None and role.quantity in _OF_UPDATES:
        return 3, 0.0
    return (4 if role is None else 5), moved


def _moved(curve: CurveFact) -> float:
    level = max(abs(curve.early), abs(curve.last))
    return abs(curve.last - curve.early) / level if level > 0 and np.isfinite(level) else 0.0


def _line(run: Run, courses: Mapping[str, Course], decides: frozenset[str]) -> QuantityFact:
    """Return the line of one quantity, in training and in evaluation."""
    first = next(iter(courses))
    role = run[first].role
    result = role is not None and role.is_whole and (role.quantity.is_result or role.quantity in _OF_UPDATES)
    curves = [_curve(run, name, course) for name, course in list(courses.items())[:MOST_CURVES]]
    return QuantityFact.model_construct(
        name=first,
        role=_role_words(run[first]),
        curves=curves,
        columns=len(courses),
        gap=_gap(run, first) if len(courses) > 1 else "",
        decides=not decides.isdisjoint(courses),
        matters=result or not decides.isdisjoint(courses),
    )


def _role_words(series: Series) -> str:
    role = series.role
    return "" if role is None else " ".join(part for part in (role.phase, str(role.quantity), role.part) if part)


def _summary_of_columns(run: Run, courses: Mapping[str, Course], decides: frozenset[str]) -> QuantityFact:
    """Return one line for many columns: the highest, the lowest and what moved most."""
    order = sorted(courses, key=lambda name: courses[name].last)
    facts = {name: _curve(run, name, courses[name]) for name in courses}
    most = max(courses, key=lambda name: _moved(facts[name]))
    lost = [name for name in courses if courses[name].lost]
    shown = list(dict.fromkeys([*lost[:1], order[-1], order[len(order) // 2], order[0], most]))[:MOST_CURVES]
    return QuantityFact.model_construct(
        name=shown[0],
        role=_role_words(run[shown[0]]),
        curves=[facts[name] for name in shown],
        columns=len(courses),
        decides=not decides.isdisjoint(courses),
        matters=not decides.isdisjoint(courses),
    )


def _curve(run: Run, metric: str, course: Course) -> CurveFact:
    series = run[metric]
    name = series.logged_as or series.name
    meaning = f" (= {series.name})" if series.logged_as and _differs(series.logged_as, series.name) else ""
    meaning += f" in {series.unit}" if series.unit else ""
    return CurveFact.model_construct(
        name=name,
        unit=series.unit,
        records=course.records,
        first=course.first,
        early=course.early,
        low=course.low,
        low_at=course.low_at,
        high=course.high,
        high_at=course.high_at,
        last=course.last,
        noise=course.noise,
        course=str(course),
        text=f"{shorten(name, 60)}{meaning}: {_numbers(course)}{_stops(run, series)}",
    )


def _stops(run: Run, series: Series) -> str:
    """Say since when a metric stops being logged while the others go on, where it was logged regularly before."""
    gaps = np.diff(series.step)
    missing = run.last_step - float(series.step[-1])
    if len(gaps) < LEAST_GAPS or missing <= MAX_MISSING_GAP_RATIO * float(gaps.max()):
        return ""
    return f"; not logged after {figure(series.step[-1])}, while the log goes on to {figure(run.last_step)}"


def _differs(logged: str, name: str) -> bool:
    bare = {text.lower().replace("train/", "").replace("eval/", "eval_").replace("-", "_") for text in (logged, name)}
    return len(bare) > 1


def _numbers(course: Course) -> str:
    """Return a course in numbers and words, nothing twice."""
    shape = str(course)
    words = f"; {shape}" if shape else ""
    if course.is_constant:
        return f"{figure(course.last)}{words}" + (f" ({course.records})" if course.records > 1 else "")
    if course.points:
        return ", ".join(f"{figure(value)} at {figure(step)}" for step, value in course.points) + words
    same = MAX_SAME_RANGE_SHARE * (course.high - course.low)
    parts = [figure(course.first)]
    if abs(course.early - course.first) > same:
        parts.append(f"early {figure(course.early)}")
    if course.last - course.low > same and course.first - course.low > same:
        parts.append(f"low {figure(course.low)} at {figure(course.low_at)}")
    if course.high - course.last > same and course.high - course.first > same:
        parts.append(f"high {figure(course.high)} at {figure(course.high_at)}")
    parts.append(f"last {figure(course.last)}")
    if course.noise > same:
        parts.append(f"noise {course.noise:.2g}")
    return ", ".join(parts) + words


def _gap(run: Run, name: str) -> str:
    """Return evaluation less training, where both are logged: at first, where least and at the end.

    The training value is that of the last record, or the median of the records since the evaluation before.
    """
    role = run[name].role
    if f"eval_{name}" not in run or role is None or not (role.quantity.is_result or role.quantity in LOSSES):
        return ""
    train, evaluation = run[name].finite, run[f"eval_{name}"].finite
    ends = np.searchsorted(train.step, evaluation.step, side="right")
    follows = ends > 0
    if not follows.any():
        return ""
    records = int(min(MOST_BEFORE, max(1, median(np.diff(np.concatenate([[0], ends]))))))
    step, ends = evaluation.step[follows], ends[follows]
    gaps = evaluation.value[follows] - _medians_before(train.value, ends, records)
    telling = dict.fromkeys((float(step[at]), float(gaps[at])) for at in (0, gaps.argmin(), gaps.argmax(), -1))
    less = "training" if records == 1 else f"median of {records} training records"
    lags = "; training is a running mean, which lags behind" if name == "loss" and is_running_mean(run) else ""
    shown = ", ".join(f"{gap:+.3g} at {figure(step)}" for step, gap in sorted(telling))
    return f"evaluation - {less}: {shown}{lags}"


def _medians_before(values: Floats, ends: NDArray[np.int64], records: int) -> Floats:
    """Return the median of so many values before each of the ends, of fewer where there are no more, shape (ends,)."""
    medians, is_early = np.empty(len(ends)), ends < records
    medians[is_early] = [median(values[:end]) for end in ends[is_early].tolist()]
    if not is_early.all():
        medians[~is_early] = row_medians(sliding_window_view(values, records)[ends[~is_early] - records])
    return medians
