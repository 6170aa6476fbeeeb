"""Does a run that goes on take up all that the run before it left?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import dotted, values_returned
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.events import Event, Trace
from mldebug_mcp.script.values import Object, objects_in


def made_anew_after_loading(roles: Roles) -> Iterator[Fault]:
    """A state is loaded into an optimizer, and the same line makes another one, which steps in its place."""
    for place, load in enumerate(roles.trace.events):
        loaded = [optimizer for optimizer in load.objects if optimizer.kind == "optimizer"]
        if load.action != "load" or not loaded:
            continue
        later = [event for event in roles.trace.events[place:] if event.entry == load.entry]
        stepped = {optimizer for event in later if event.action == "step" for optimizer in event.objects}
        for make in later if stepped.isdisjoint(loaded) else ():
            if make.action == "make" and stepped & make.objects and any(one.line == make.line for one in loaded):
                says = f"the optimizer into which line {load.line} loads its state is made anew, and starts without it"
                line = getattr(make.through[-1], "lineno", make.line) if make.through else make.line
                yield fault("made_anew_after_loading", line, "certain", says)
                return


COUNTS_ITSELF = re.compile(r"last_epoch|load_state\b|load_checkpoint|start|resume")
"""Names by which a schedule may know its place without its state."""
PLACE_OF_RUN = re.compile(r"(?:\[|(?:get|pop)\()['\"](?:\w+_)?(?:epoch|step|iteration|it|round|update)s?['\"]")
"""How the place of a run is read from what was saved."""


def schedule_starts_over(roles: Roles) -> Iterator[Fault]:
    """A run that goes on loads the state of its optimizer, and its schedule begins anew."""
    trace = roles.trace
    loads = trace.of("load")
    resumed = [load for load in loads if any(loaded.kind == "optimizer" for loaded in load.objects)]
    loaded = {other for load in loads for other in load.objects}
    if not trace.is_complete or not resumed or any(other.kind in ("unknown", "schedule") for other in loaded):
        return
    for event in trace.of("schedule"):
        schedule = next(iter(event.objects))
        if not event.loops or event.entry != resumed[0].entry or "Plateau" in schedule.made_by:
            continue
        if _counts_itself(roles, trace, schedule) or any(_may_hold(given, schedule) for given in _handed_on(trace)):
            continue
        says = f"a run that goes on loads its optimizer here, and {schedule.label} begins anew: nothing loads its state"
        yield fault("state_left_out", resumed[0].line_apart(event), "likely", says)
        return


def _counts_itself(roles: Roles, trace: Trace, schedule: Object) -> bool:
    """Say whether a schedule is brought to its place without its state: by its arguments, or by steps of its own."""
    moves = [event for event in trace.of("schedule") if schedule in event.objects]
    trains = {event.loop_lines[:1] for event in trace.of("backward", "step")}
    ahead = any(event.loop_lines[:1] not in trains for event in moves)
    told = any(isinstance(event.node, ast.Call) and event.node.args for event in moves)
    made = [ast.unparse(call.node) for call in roles.script.calls if call.line == schedule.line]
    return ahead or told or any(map(COUNTS_ITSELF.search, made)) or "last_epoch" in roles.source


def optimizer_starts_over(roles: Roles) -> Iterator[Fault]:
    """A run that goes on loads its model and its place, and its optimizer begins anew."""
    trace = roles.trace
    loads = trace.of("load")
    if not trace.is_complete or not all(part.kind == "model" for load in loads for part in load.objects):
        return
    first = next((load for load in loads if _is_trained_after(trace, load)), None)
    if first is None or not _goes_on(roles) or any(given.kind == "optimizer" for given in _handed_on(trace)):
        return
    says = "a run that goes on loads its model and its place here, and its optimizer begins anew"
    yield fault("state_left_out", first.line, "likely", says)


def _handed_on(trace: Trace) -> set[Object]:
    """Return what code of other files is given, which may load its state."""
    return {given for event in trace.of("escape") for given in event.objects}


def _may_hold(given: Object, part: Object) -> bool:
    return given is part or any(part in objects_in(value) for value in given.attributes.values())


def _is_trained_after(trace: Trace, load: Event) -> bool:
    later = trace.events[trace.events.index(load) :]
    return any(
        event.action == "step"
        and event.loops
        and (not load.loops or load.loops != event.loops[: len(load.loops)])
        and event.entry == load.entry
        and trace.steps_model(event, model)
        for event in later
        for model in load.objects
    )


def _texts(roles: Roles, value: ast.expr) -> list[str]:
    """Return how a value is written, and what a function of this file returns that gives it."""
    helper = roles.definitions.get(dotted(value).rpartition(".")[2]) if isinstance(value, ast.Call) else None
    returned = values_returned(helper)
    return [ast.unparse(part) for part in (value, *returned) if part is not None]


def _goes_on(roles: Roles) -> bool:
    """Say whether the loop of a training begins where the run before it ended: `range(start, epochs)`."""
    starts = {
        dotted(loop.iter.args[0])
        for loop in ast.walk(roles.script.tree)
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 2
        if dotted(loop.iter) == "range" and isinstance(loop.iter.args[0], ast.Name | ast.Attribute)
    }
    read = [made for made in roles.script.assignments if any(map(PLACE_OF_RUN.search, _texts(roles, made.value)))]
    lasts = {start.rpartition(".")[2] for start in starts if "." in start}
    return any(
        made.target in starts or ("." in made.target and made.target.rpartition(".")[2] in lasts) for made in read
    )
