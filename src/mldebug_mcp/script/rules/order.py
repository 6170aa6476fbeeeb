"""Do gradients, clipping, modes and schedules come in the right order, through whatever functions they go?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import HAS_MODES
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.events import Event, Trace
from mldebug_mcp.script.values import Object


def steps_without_gradient(roles: Roles) -> Iterator[Fault]:
    """Gradients are cleared between backward and step; or the step comes between clearing and backward."""
    trace = roles.trace
    found: dict[int, Event | None] = {}
    for place, step in enumerate(trace.events):
        optimizer = _optimizer_of(step)
        if optimizer is None or not step.loops:
            continue
        last = _last_for(trace, trace.events[:place], step, optimizer)
        empty = last is not None and last.action == "clear" and set(last.tests) <= set(step.tests)
        found[id(step.node)] = last if empty and found.get(id(step.node), last) is not None else None
    lines = {id(step.node): step.line for step in trace.of("step")}
    for node, clear in found.items():
        if clear is None:
            continue
        if _is_preceded_by_backward(trace, clear):
            says = "zero_grad() stands between backward() and step(): each step is made without a gradient"
            yield fault("cleared_before_step", clear.line, "certain", says)
        elif any(event.entry == clear.entry and event.loop_lines == clear.loop_lines for event in trace.of("backward")):
            says = "step() stands before backward() and after zero_grad(): it is made without a gradient"
            yield fault("step_before_backward", lines[node], "certain", says)


def _optimizer_of(step: Event) -> Object | None:
    """Return the optimizer that makes a step, where it is known with all its models."""
    stepper = next(iter(step.objects)) if step.action == "step" and len(step.objects) == 1 else None
    return (
        stepper if stepper is not None and stepper.kind == "optimizer" and stepper.holds and stepper.holds_all else None
    )


def _last_for(trace: Trace, before: Sequence[Event], step: Event, optimizer: Object) -> Event | None:
    """Return what last gave gradients to the models of an optimizer, took them away, or may have done so."""
    for event in reversed(before):
        if event.entry != step.entry:
            return None
        if event.action == "backward" or (event.action in ("escape", "gradients") and _is_about(event, optimizer)):
            return event
        if event.action == "clear" and any(trace.clears_model(event, model) for model in optimizer.holds):
            known = all(cleared.kind == "model" or cleared.holds for cleared in event.objects)
            return event if known else None  # another optimizer, of models that are not known, may have cleared others
    return None


def _is_about(event: Event, optimizer: Object) -> bool:
    return optimizer in event.objects or any(
        affected.is_related_to(model) for affected in event.objects for model in optimizer.holds
    )


def _is_preceded_by_backward(trace: Trace, clear: Event) -> bool:
    """Say whether the gradients that are cleared were computed in the same round, and no step used them."""
    place = next(place for place, event in enumerate(trace.events) if event is clear)
    for event in reversed(trace.events[:place]):
        if event.entry != clear.entry or event.action in ("step", "backward"):
            return event.action == "backward" and event.entry == clear.entry and event.loops == clear.loops
    return False


def clips_without_effect(roles: Roles) -> Iterator[Fault]:
    """Gradients are clipped where there are none, or after the step that used them."""
    trace = roles.trace
    useless: dict[int, bool] = {}
    clips: dict[int, Event] = {}
    for place, clip in enumerate(trace.events):
        if clip.action != "clip" or not clip.objects or not clip.loops:
            continue
        before = next((event for event in reversed(trace.events[:place]) if _moves_gradients(trace, event, clip)), None)
        after = next((event for event in trace.events[place + 1 :] if _moves_gradients(trace, event, clip)), None)
        if after is None:
            continue
        none_left = (before is None and bool(clip.entry == 0)) or (
            before is not None and before.action in ("step", "clear") and set(before.tests) <= set(clip.tests)
        )
        is_useless = none_left and after.action in ("backward", "clear")
        useless[id(clip.node)] = useless.get(id(clip.node), True) and is_useless
        clips[id(clip.node)] = clip
    for node, is_useless in useless.items():
        if is_useless:
            says = "gradients are clipped where none are left, or none are there yet: that has no effect"
            yield fault("clip_too_late", clips[node].line, "certain", says)


def _moves_gradients(trace: Trace, event: Event, clip: Event) -> bool:
    """Say whether something gives the clipped models gradients, uses or clears them, or may do so."""
    if event.entry != clip.entry:
        return False
    if event.action == "backward":
        return True
    if event.action in ("escape", "gradients"):
        return any(affected.is_related_to(model) for affected in event.objects for model in clip.objects)
    if event.action == "step":
        return any(trace.steps_model(event, model) for model in clip.objects) or not all(
            stepper.holds for stepper in event.objects
        )
    return event.action == "clear" and any(trace.clears_model(event, model) for model in clip.objects)


def schedules_before_optimizer(roles: Roles) -> Iterator[Fault]:
    """A schedule is stepped before its optimizer makes its first step."""
    trace = roles.trace
    judged_schedules: set[Object] = set()
    for place, event in enumerate(trace.events):
        schedule = next(iter(event.objects)) if event.action == "schedule" else None
        if schedule is None or schedule in judged_schedules:
            continue
        judged_schedules.add(schedule)
        steps = [
            (at, step)
            for at, step in enumerate(trace.events)
            if step.action == "step" and schedule.given[:1] == tuple(step.objects)[:1]
        ]
        first = steps[0] if steps else None
        if first is None or first[0] < place or first[1].entry != event.entry:
            continue
        if event.loops and first[1].loops == event.loops and set(event.tests) <= set(first[1].tests):
            says = "scheduler.step() stands before optimizer.step(): the first value of the schedule is skipped"
            yield fault("schedule_first", event.line, "certain", says)


def never_cleared(roles: Roles) -> Iterator[Fault]:
    """An optimizer makes steps in a loop, and nothing clears the gradients of its models."""
    trace = roles.trace
    clears = trace.of("clear", "gradients", "escape")
    named: set[Object] = set()
    for step in trace.events if trace.is_complete else ():
        optimizer = _optimizer_of(step)
        if optimizer is None or optimizer in named or not step.loops or optimizer.loops == step.loops:
            continue
        named.add(optimizer)
        cleared = any(
            _is_about(clear, optimizer)
            or any(other.kind != "model" and not other.holds for other in clear.objects if clear.action == "clear")
            for clear in clears
        )
        cleared = cleared or any(
            hold.is_related_to(model)
            for clear in clears
            if clear.action == "clear"
            for other in clear.objects
            for hold in other.holds
            for model in optimizer.holds
        )
        if not cleared and any(event.action == "backward" and event.entry == step.entry for event in trace.events):
            says = f"{optimizer.label}.step() changes the weights, and nothing clears the gradients of its parameters"
            rule = "one_optimizer_not_cleared" if trace.of("clear") else "gradients_never_cleared"
            yield fault(rule, step.line, "likely" if trace.of("clear") else "certain", says)


def modes_left(roles: Roles) -> Iterator[Fault]:
    """A model that was put into evaluation mode trains on in it; or it is evaluated in training mode."""
    trace = roles.trace
    first: dict[tuple[int, tuple[int, ...]], frozenset[str]] = {}
    for place, event in enumerate(trace.events):
        if event.action != "forward" or event.function.endswith(".forward"):
            continue
        model = next(iter(event.objects))
        begun = first.setdefault((id(event.node), event.loop_lines), event.modes)
        if (
            event.gradients
            and "eval" in event.modes
            and ("eval" not in begun or _is_evaluated_before(trace, place, model) or _was_tried(trace, place, model))
            and _is_trained(trace, event, place, model)
        ):
            before = [
                earlier for earlier in trace.events[:place] if earlier.action == "eval" and model in earlier.objects
            ]
            before = before or [
                earlier
                for earlier in trace.events[:place]
                if earlier.action == "eval" and any(model.is_part_of(other) for other in earlier.objects)
            ]
            if before:
                line = _switched_once(trace.events[:place], event, model) or before[-1].line
                says = f"{model.label} is put into evaluation mode between passes, and trains on in it"
                says += "" if line == before[-1].line else f": line {before[-1].line} leaves it there in each round"
                yield fault("never_back_to_training", line, "certain", says, lines=before[-1].lines)
                return
        if (
            (event.gradients is False or _reads_other_rows(trace, event))
            and event.modes == {"train"}
            and event.loops
            and _has_modes(model)
            and _evaluates(trace, event, model)
        ):
            says = f"{model.label} is evaluated in training mode: dropout and batch statistics stay on"
            yield fault("evaluates_in_training_mode", event.line, "certain", says, lines=event.lines)
            return


def _switched_once(events: Sequence[Event], forward: Event, model: Object) -> int:
    """Return the line before the loop that sets a model to training mode once, for all rounds; 0 if there is none."""
    lines = [
        event.line
        for event in events
        if event.action == "train" and event.entry == forward.entry and len(event.loops) < len(forward.loops)
        if event.loops == forward.loops[: len(event.loops)] and _concerns(event, model)
    ]
    return lines[-1] if lines else 0


def _reads_other_rows(trace: Trace, forward: Event) -> bool:
    """Say whether a pass is in a loop over a loader that nothing trains on, while others are trained on."""
    loops = [event for event in trace.of("iterate") if event.entry == forward.entry and event.loops]
    read = {loader for event in loops if event.loops == forward.loops for loader in event.objects}
    learns = {event.loop_lines for event in trace.of("backward") if event.entry == forward.entry}
    trained = {loader for event in loops if event.loop_lines in learns for loader in event.objects}
    known = all(loader.kind == "loader" for loader in (*read, *trained))
    return bool(read and trained) and known and read.isdisjoint(trained)


def _was_tried(trace: Trace, place: int, model: Object) -> bool:
    """Say whether a model was put into evaluation mode for a pass without gradients before the loops, for good."""
    before = [event for event in trace.events[:place] if event.entry == trace.events[place].entry]
    switched = [at for at, event in enumerate(before) if event.action in ("train", "eval") and _concerns(event, model)]
    if not switched or before[switched[-1]].action != "eval" or before[switched[-1]].loops or not _has_modes(model):
        return False
    passes = [event for event in before[switched[-1] :] if event.action == "forward" and _concerns(event, model)]
    return bool(passes) and passes[0].gradients is False and not passes[0].loops


def _is_evaluated_before(trace: Trace, place: int, model: Object) -> bool:
    """Say whether the round of a forward pass began with an evaluation, after which nothing sets the mode back."""
    forward = trace.events[place]
    if not forward.loops:
        return False
    round_ = [
        event
        for event in trace.events[:place]
        if event.entry == forward.entry and event.loops[: len(forward.loops)] == forward.loops
    ]
    switched = [event.action for event in round_ if event.action in ("train", "eval") and _concerns(event, model)]
    judged = any(event.action == "forward" and event.gradients is False and _concerns(event, model) for event in round_)
    return switched[-1:] == ["eval"] and judged


def _concerns(event: Event, model: Object) -> bool:
    return any(affected.is_related_to(model) for affected in event.objects)


def _is_trained(trace: Trace, forward: Event, place: int, model: Object) -> bool:
    """Say whether gradients of a forward pass go to a model that an optimizer then changes."""
    later = [event for event in trace.events[place:] if event.entry == forward.entry]
    back = next((at for at, event in enumerate(later) if event.action == "backward"), None)
    if back is None or later[back].loops[: len(forward.loops)] != forward.loops:
        return False
    if not any(affected.is_related_to(model) for affected in later[back].objects):
        return False
    step = next((event for event in later[back:] if event.action == "step"), None)
    return step is not None and any(
        stepper.holds_all and any(trained.is_related_to(model) for trained in stepper.holds) for stepper in step.objects
    )


def _has_modes(model: Object) -> bool:
    return any(HAS_MODES.search(part.made_by) or ".models." in part.made_by for part in model.parts())


def _evaluates(trace: Trace, forward: Event, model: Object) -> bool:
    """Say whether a forward pass is in a loop over data that trains nothing, of a model that is trained elsewhere."""
    depth = len(forward.loops)
    inside = [event for event in trace.events if event.entry == forward.entry and event.loops[:depth] == forward.loops]
    over_data = any(
        event.action == "iterate"
        and event.loops == forward.loops
        and any(other.kind == "loader" for other in event.objects)
        for event in inside
    )
    trains = any(event.action in ("backward", "step") for event in inside)
    on_purpose = any(event.action == "train" and event.function == forward.function for event in trace.events)
    trained = any(event.action == "step" and trace.steps_model(event, model) for event in trace.events)
    return over_data and trained and not trains and not on_purpose and model.copy_of is None
