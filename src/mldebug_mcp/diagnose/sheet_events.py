"""What happened, on one time line: jumps, what the log says of resumes, and where findings begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from mldebug_mcp.diagnose.rests_on import rests_on
from mldebug_mcp.diagnose.sheet_quantities import is_clock
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.roles.quantities import LOSSES, Quantity
from mldebug_mcp.measure.timeline import Change, Event, events_of
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.sheet import EventFact
from mldebug_mcp.text import figure

MOST_EVENTS = 10
MOST_CHANGES = 4
"""Curves of an event that are told, and events that are."""
OFTEN = 4
"""Events of one curve that are told in one line. Chosen: from here on that they recur says more than each."""
MOST_STEPS = 8
NEAR = 0.01
"""Share of the run within which a finding begins at an event."""
_WEIGHTY = LOSSES | {Quantity.GRADIENT_NORM, Quantity.REWARD, Quantity.KL, Quantity.ENTROPY, Quantity.LEARNING_RATE}


def event_facts(run: Run, findings: Sequence[Finding]) -> list[EventFact]:
    """Return what happened, in order: the largest jumps, resumes, losses of finite numbers, beginnings of findings."""
    present = [one for one in findings if one.state is State.PRESENT]
    decides = [name for one in present for name in rests_on(run, one)]
    names = sorted(
        (name for name in run.series if not is_clock(run[name])), key=lambda name: _order(run, name, decides)
    )
    facts = [*_jumps(run, events_of(run, names)), *_resumes(run), *_lost(run, names), *_incidents(run)]
    return sorted(_with_findings(run, facts, present), key=lambda one: one.step)


def _order(run: Run, name: str, decides: Sequence[str]) -> tuple[bool, bool, bool]:
    role = run[name].role
    return role is None or role.quantity not in _WEIGHTY, name not in decides, role is None


def _jumps(run: Run, events: Sequence[Event]) -> list[EventFact]:
    """Return the jumps, the largest ones; those of one curve that recur in one line."""
    facts, left = [], list(events)
    while left:
        most, count = Counter(one.metric for event in left for one in event.changes).most_common(1)[0]
        if count < OFTEN:
            break
        again = [event for event in left if any(one.metric == most for one in event.changes)]
        facts.append(_recurring(run, again))
        left = [event for event in left if event not in again]
    facts += [_jump(run, event) for event in left]
    return sorted(facts, key=lambda one: -one.size)[:MOST_EVENTS]


def _jump(run: Run, event: Event) -> EventFact:
    ordered = sorted(event.changes, key=lambda one: (_order(run, one.metric, ()), -one.sigmas))
    told = [_told(run, one) for one in ordered[:MOST_CHANGES]]
    more = [f"{len(ordered) - len(told)} more"] if len(ordered) > len(told) else []
    first = event.first_mover
    mover = f"{_name(run, first)} at {figure(event.step)}" if first else ""
    return EventFact(step=event.step, text=", ".join([*told, *more]), first_mover=mover, size=_size(run, event))


def _size(run: Run, event: Event) -> float:
    """Return how large an event is; what weighs most counts double, so that it is told before jumps of a clock."""
    weighty = [one for one in event.changes if (role := run[one.metric].role) is not None and role.quantity in _WEIGHTY]
    return max(event.sigmas, 2 * max((one.sigmas for one in weighty), default=0.0))


def _recurring(run: Run, events: Sequence[Event]) -> EventFact:
    largest = max(events, key=lambda one: one.sigmas)
    steps = ", ".join(figure(one.step) for one in events[:MOST_STEPS]) + (", …" if len(events) > MOST_STEPS else "")
    fact = _jump(run, largest)
    text = f"{len(events)} times, at {steps}; the largest at {figure(largest.step)}: {fact.text}"
    return fact.model_copy(update={"step": events[0].step, "text": text, "worst_at": fact.step})


def _told(run: Run, change: Change) -> str:
    back = f" (back at {figure(change.back)})" if change.back is not None else " (stays)"
    return f"{_name(run, change.metric)} {figure(change.before)} to {figure(change.there)}{back}"


def _name(run: Run, metric: str) -> str:
    return run[metric].logged_as or metric


def _resumes(run: Run) -> list[EventFact]:
    steps = sorted({*run.resumes, *(one.first_step for one in run.segments[1:])})
    return [EventFact(step=step, text="resumed") for step in steps[:MOST_STEPS]]


def _incidents(run: Run) -> list[EventFact]:
    return [EventFact(step=one.step, text=one.text) for one in run.incidents[:MOST_EVENTS]]


def _lost(run: Run, names: Iterable[str]) -> list[EventFact]:
    """Return where values first are not finite: those of one step together."""
    first: dict[float, list[str]] = {}
    for name in names:
        series = run[name]
        if series.finite is not series:
            at = int(np.argmin(np.isfinite(series.value)))
            first.setdefault(float(series.step[at]), []).append(_name(run, name))
    return [
        EventFact(step=step, text=f"first not finite: {', '.join(which[:MOST_CHANGES])}{_and_more(which)}")
        for step, which in sorted(first.items())[:MOST_CHANGES]
    ]


def _and_more(names: Sequence[str]) -> str:
    return f" and {len(names) - MOST_CHANGES} more" if len(names) > MOST_CHANGES else ""


def _with_findings(run: Run, facts: Sequence[EventFact], present: Sequence[Finding]) -> list[EventFact]:
    """Return the events with the findings that begin there, and an event for each beginning without one."""
    near = NEAR * (run.last_step - run.first_step)
    found: list[EventFact] = list(facts)
    for finding in present:
        if not finding.steps or not run.first_step < finding.steps[0] < run.last_step:
            continue
        step = finding.steps[0]
        place = min(range(len(found)), key=lambda at: abs(found[at].step - step), default=None)
        if place is None or abs(found[place].step - step) > near:
            found.append(EventFact(step=step, text="begins", findings=[finding.symptom]))
        else:
            known = found[place]
            found[place] = known.model_copy(update={"findings": [*known.findings, finding.symptom]})
    return found
