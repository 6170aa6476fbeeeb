"""Is each of several networks, copies and averages updated, used, and given the gradients that are meant for it?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.events import Event, Trace
from mldebug_mcp.script.values import Object

FOLLOWS = re.compile(r"target|momentum|slow|(?:^|_)ema(?:$|_)", re.IGNORECASE)
"""Names of networks that are meant to follow another; a copy of another name may be kept as it is on purpose."""
AVERAGES = re.compile(r"(?:^|\.)(?:ExponentialMovingAverage|\w*EMA\w*|ModelEma\w*|AveragedModel)$")
"""Classes that keep an average of the weights of a model."""
ONLY_UPDATES = {"update", "update_parameters", "to", "eval", "cuda", "register", "requires_grad_", "step"}
MAY_BE_AVERAGES = re.compile(rf"{AVERAGES.pattern}|^(?:Model)?E(?:MA|ma)$")
LEAST_KEPT = 0.3
"""Share of itself that an average keeps at an update, below which it averages next to nothing. Chosen: fast target
networks keep 0.9, and averages of weights 0.99 or more."""
HANDS_BACK = re.compile(r"save$|print$|len$")
KEPT_FIXED = re.compile(r"teacher|ref|frozen|fixed|random|rnd|old|perceptual|vgg|lpips", re.IGNORECASE)
"""Names of networks that are left as they are on purpose."""
COPIED_LATER = re.compile(r"copy|state_dict|clone|zip\(")


def target_never_updated(roles: Roles) -> Iterator[Fault]:
    """A network that is meant to follow another is made, used for targets, and never updated."""
    trace = roles.trace
    if not trace.is_complete:
        return
    choices = [node for node in ast.walk(roles.script.tree) if isinstance(node, ast.IfExp)]
    optional = {id(part) for choice in choices for part in ast.walk(choice)}  # a setting may ask for no copy
    for place, event in enumerate(trace.events):
        copied = _copied(event)
        if (
            copied is None
            or event.loops
            or not FOLLOWS.search(copied.name)
            or (copied.parent is not None and copied.parent.copy_of is not None)
        ):
            continue
        dead = roles.dead_functions
        others = [
            other
            for other in trace.events
            if other.node is not event.node and not (other.entry and other.function.rpartition(".")[2] in dead)
        ]
        if id(event.node) in optional or _is_given_source(roles, copied) or _copied_again(others, copied):
            continue
        touched = any(
            (other.action in ("write", "load", "escape", "copy") and other.concerns(copied))
            or (
                other.action == "attach"
                and other.source is not None
                and other.source.copy_of is None
                and any(owner.is_part_of(copied) for owner in other.objects)
            )
            for other in others
        )
        trained = any(other.action == "step" and trace.steps_model(other, copied) for other in others)
        begun = any(
            earlier.action == "step" and event.source and trace.steps_model(earlier, event.source)
            for earlier in trace.events[:place]
        )
        used = any(
            other.action == "forward" and (other.loops or other.entry) and other.concerns(copied) for other in others
        )
        learns = any(other.action == "step" and (other.loops or other.entry) for other in others)
        if used and learns and not (touched or trained or begun):
            says = f"{copied.name} is copied once and never updated: it keeps the weights of the beginning"
            uses = [other.line for other in others if other.action in ("forward", "step") and other.loops]
            yield fault("target_never_updated", event.line, "likely", says, lines=[*event.lines, *uses])


def _copied(event: Event) -> Object | None:
    """Return the network that is made as a copy of another: by `deepcopy`, or by its weights being loaded."""
    is_copy = event.action in ("copy", "load") and event.source is not None and event.source not in event.objects
    return next(iter(event.objects)) if is_copy else None


def _is_given_source(roles: Roles, copied: Object) -> bool:
    """Say whether a method of a copy is given what it is a copy of: `target.load_state(net)`."""
    source = copied.copy_of.name if copied.copy_of is not None else ""
    return any(
        call.owner.rpartition(".")[2] == copied.name
        and source in {dotted(arg).rpartition(".")[2] for arg in call.node.args}
        for call in roles.script.calls
        if source and call.owner
    )


def _copied_again(events: Sequence[Event], copied: Object) -> bool:
    """Say whether another copy gets the same name."""
    others = [_copied(event) for event in events]
    return any(other is not None and other is not copied and other.name == copied.name for other in others)


def ema_never_applied(roles: Roles) -> Iterator[Fault]:
    """An average of the weights is updated, and neither evaluated nor saved."""
    for made in roles.script.assignments:
        if not isinstance(made.value, ast.Call) or not AVERAGES.search(dotted(made.value.func)):
            continue
        last = made.target.rpartition(".")[2]
        uses = roles.reads.get(last, [])
        updated = any(isinstance(parent, ast.Attribute) and parent.attr.startswith("update") for _, parent in uses)
        if updated and all(isinstance(parent, ast.Attribute) and parent.attr in ONLY_UPDATES for _, parent in uses):
            says = f"{made.target} averages the weights, and nothing evaluates or saves the average"
            yield fault("ema_never_applied", made.line, "likely", says)


def ema_never_updated(roles: Roles) -> Iterator[Fault]:
    """An average of the weights is evaluated or saved, and never updated."""
    for made in roles.script.assignments if roles.steps else ():
        if not isinstance(made.value, ast.Call) or not MAY_BE_AVERAGES.search(dotted(made.value.func)):
            continue
        last = made.target.rpartition(".")[2]
        uses = roles.reads.get(last, [])
        called = {parent.attr for _, parent in uses if isinstance(parent, ast.Attribute)}
        helper = roles.definitions.get(dotted(made.value.func).rpartition(".")[2])
        own = {node.name for node in ast.walk(helper) if isinstance(node, ast.FunctionDef)} if helper else {"update"}
        updates = any(re.search(r"update|step|average|accumulate", name) for name in called)
        given = roles.is_handed_on(last, except_to=HANDS_BACK) or bool(roles.parameters_for(made.target))
        has_method = any(name.startswith("update") for name in own)
        if uses and has_method and not updates and not given and not roles.is_kept(last):
            says = f"{made.target} is used and never updated: it keeps the weights of the beginning"
            yield fault("ema_never_updated", made.line, "likely", says)


def average_forgets(roles: Roles) -> Iterator[Fault]:
    """An average of the weights keeps a small share of itself, and takes nearly all from the model of the moment."""
    for call in roles.script.calls:
        through = roles.loops_by_line.get(call.loops[-1], "") if call.loops else ""
        pair = re.search(r"^\(?(\w+), \w+\)? in zip\([\w.]+\.(?:parameters|state_dict)", through)
        if pair is None or not call.node.args or call.owner.partition(".")[0] != pair[1]:
            continue
        share = roles.number_of(call.node.args[-1])
        kept = {"mul_": share, "lerp_": None if share is None else 1 - share}.get(call.method)
        if kept is not None and 0 < kept < LEAST_KEPT:
            says = f"the average keeps {kept:.3g} of itself at each update, and so is the model of the last few steps"
            yield fault("average_forgets", call.line, "likely", says)


def average_without_buffers(roles: Roles) -> Iterator[Fault]:
    """An average of the weights is used in evaluation mode with the running statistics that it was copied with."""
    if "BatchNorm" not in roles.source or re.search(
        r"buffers\(\)|update_bn|state_dict\(\)\.(?:items|values)", roles.source
    ):
        return
    copies = {made.target for made in roles.script.assignments if "deepcopy(" in ast.unparse(made.value)}
    evaluated = {made.target for made in roles.script.assignments if _ends_in_eval(made.value)}
    evaluated |= {call.owner for call in roles.script.named("eval")}
    trained = {call.owner for call in roles.script.named("train")}
    for call in roles.script.calls:
        if call.method not in ("mul_", "lerp_", "copy_") or not call.loops:
            continue
        through = roles.script.loops.get(call.loops[-1], "")
        averaged = re.search(r"zip\(([\w.]+)\.parameters\(\)", through)
        if averaged and averaged[1] in copies & evaluated and averaged[1] not in trained:
            says = f"{averaged[1]} follows the weights alone: its BatchNorm keeps the statistics of the beginning"
            yield fault("average_without_buffers", call.line, "likely", says)


def _ends_in_eval(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "eval"


def network_without_optimizer(roles: Roles) -> Iterator[Fault]:
    """A network is made, gradients of the loss go to it, and no optimizer has its parameters."""
    trace = roles.trace
    optimizers = [optimizer for optimizer in trace.objects if optimizer.kind == "optimizer"]
    steps = trace.of("step")
    if (
        not trace.is_complete
        or not optimizers
        or not all(optimizer.holds and optimizer.holds_all for optimizer in optimizers)
    ):
        return
    cleared = {cleared_model for clear in trace.of("clear") for cleared_model in clear.objects}
    if any(stepper.kind != "optimizer" and stepper in cleared for step in steps for stepper in step.objects):
        return
    named: set[Object] = set()
    for place, event in enumerate(trace.events):
        if event.action != "backward" or not any(
            step.entry == event.entry for step in trace.events[place:] if step.action == "step"
        ):
            continue
        for model in sorted(event.objects - named, key=lambda network: network.line):
            kept = model.copy_of is not None or KEPT_FIXED.search(model.name) or FOLLOWS.search(model.name)
            is_optimized = any(optimizer.holds_some_of(model) for optimizer in optimizers)
            inner = model.parent in event.objects and not any(
                hold.is_related_to(model.parent) for optimizer in optimizers for hold in optimizer.holds if model.parent
            )
            if kept or is_optimized or inner or not model.has_parameters():
                continue
            left = any(
                other.action in ("freeze", "load", "escape", "write", "gradients") and other.concerns(model)
                for other in trace.events
            )
            if not left:
                named.add(model)
                says = f"{model.name} is used in the loss, and no optimizer is given its parameters"
                lines = [optimizer.line for optimizer in optimizers]
                yield fault(
                    "outside_optimizer", model.line, "likely", says, lines=[*lines, *_named_at(roles, optimizers)]
                )


def _named_at(roles: Roles, optimizers: Sequence[Object]) -> list[int]:
    """Return the lines at which the parts that optimizers have are named in texts, such as the keys of a table."""
    names = {model.name for optimizer in optimizers for model in optimizer.holds}
    return [
        node.lineno
        for node in ast.walk(roles.script.tree)
        if isinstance(node, ast.Constant) and node.value in names - {""}
    ]


def clips_another_model(roles: Roles) -> Iterator[Fault]:
    """Gradients of another model are clipped than those that the next step uses."""
    named: set[int] = set()
    for place, clip in enumerate(roles.trace.events):
        if clip.action != "clip" or not clip.objects or clip.line in named:
            continue
        steps = _steps_before_the_next_backward(roles.trace.events[place:], clip.entry)
        stepped = [stepper for step in steps for stepper in step.objects]
        stepped_models = [model for stepper in stepped for model in stepper.holds]
        known = bool(stepped_models) and all(stepper.kind == "optimizer" and stepper.holds_all for stepper in stepped)
        known = known and all(_is_known(model) for model in (*clip.objects, *stepped_models))
        same_round = all(step.loop_lines == clip.loop_lines for step in steps)
        if (
            known
            and same_round
            and not any(_may_share(clipped_model, other) for clipped_model in clip.objects for other in stepped_models)
        ):
            named.add(clip.line)
            clipped, changed = (
                " and ".join(sorted({model.label for model in some})) for some in (clip.objects, stepped_models)
            )
            says = f"the gradients of {clipped} are clipped, and {stepped[0].label}.step() changes {changed}"
            yield fault("clips_another_model", clip.line, "certain", says)


def _may_share(model: Object, other: Object) -> bool:
    return model.is_related_to(other) or model.is_made_from(other) or other.is_made_from(model)


def _is_known(model: Object) -> bool:
    """Say whether a model is made in the file, so that another one is another for certain."""
    return bool(model.made_by) or (model.parent is not None and _is_known(model.parent))


def generator_in_discriminator_loss(roles: Roles) -> Iterator[Fault]:
    """The loss of one network goes through the graph of another, which then keeps gradients that are not meant."""
    trace = roles.trace
    named: set[tuple[int, str]] = set()
    for place, backward in enumerate(trace.events):
        if backward.action != "backward" or len(backward.objects) < 2:
            continue
        later = [event for event in trace.events[place + 1 :] if event.entry == backward.entry]
        steps = _steps_before_the_next_backward(later, backward.entry)
        if not steps or any(
            stepper.kind != "optimizer" or not stepper.holds_all for step in steps for stepper in step.objects
        ):
            continue
        for model in sorted(backward.objects, key=lambda network: network.line):
            if any(trace.steps_model(step, model) for step in steps):
                continue
            own = next((event for event in later if event.action == "step" and trace.steps_model(event, model)), None)
            key = (backward.line, model.name)
            if own is None or own.loop_lines != steps[0].loop_lines or key in named:
                continue
            between = later[: later.index(own)]
            next_round = any(event.action == "backward" and event.loops != backward.loops for event in between)
            if next_round or any(event.action == "clear" and trace.clears_model(event, model) for event in between):
                continue
            named.add(key)
            certainty: Certainty = "likely" if own.tests != backward.tests else "certain"
            others = " and ".join(sorted(stepper.name for step in steps for stepper in step.objects))
            says = f"the loss before {others}.step() goes through {model.name} as well, whose next step uses them"
            yield fault("generator_in_discriminator_loss", backward.line, certainty, says)


def _steps_before_the_next_backward(later: Sequence[Event], entry: int) -> list[Event]:
    found = []
    for event in later:
        if event.action == "backward" or event.entry != entry:
            break
        if event.action == "step":
            found.append(event)
    return found


def target_is_the_same(roles: Roles) -> Iterator[Fault]:
    """A network that should follow another is that network itself, under a second name."""
    if roles.uses("disable_adapter"):
        return
    followers = re.compile(
        rf"{FOLLOWS.pattern}|old_(?:net|policy|actor|model)|(?:net|policy|actor)_old|^ref(?:_|$|erence)", re.IGNORECASE
    )
    for made in roles.script.assignments:
        last = made.target.rpartition(".")[2]
        given = dotted(made.value) if isinstance(made.value, ast.Name | ast.Attribute) else ""
        of_model = given.rpartition(".")[2] in roles.model_names
        if not followers.search(last) or not of_model or followers.search(given) or made.adds or made.conditions:
            continue
        again = [
            assignment
            for assignment in roles.script.assignments
            if assignment.target == made.target and assignment is not made
        ]
        used = any(
            call.name == made.target or (call.owner == made.target and call.method != "state_dict")
            for call in roles.script.calls
        )
        if used and not any(COPIED_LATER.search(ast.unparse(assignment.value)) for assignment in again):
            says = f"{made.target} is {given} itself, and no copy of it: both change with every step"
            yield fault("target_is_the_same", made.line, "certain", says, fix=f"copy.deepcopy({given})")


def without_gradient_of_its_own(roles: Roles) -> Iterator[Fault]:
    """An optimizer has the parameters of a network that runs without gradients alone."""
    trace = roles.trace
    if not trace.is_complete or not trace.of("backward"):
        return
    steps = trace.of("step")
    named: set[Object] = set()
    for optimizer in (
        stepper for step in steps for stepper in step.objects if stepper.kind == "optimizer" and stepper.holds_all
    ):
        for model in sorted(optimizer.holds - named, key=lambda network: network.line):
            passes = [event for event in trace.of("forward") if event.concerns(model)]
            left = any(
                event.action in ("gradients", "write") and event.loops and event.concerns(model)
                for event in trace.events
            )
            without = [pass_ for pass_ in passes if pass_.gradients is False and pass_.loops]
            trained = any(event.action == "backward" and model in event.objects for event in trace.events)
            cut_off = [pass_ for pass_ in passes if pass_.gradients and pass_.loops and model in trace.cut]
            unknown = any(event.action == "escape" and event.concerns(model) for event in trace.events)
            known = bool(trace.of("backward")) and all(event.objects for event in trace.of("backward")) and not unknown
            if cut_off and known and not (left or trained):
                without = cut_off
            elif not without or left or trained or not all(pass_.gradients is False for pass_ in passes):
                continue
            is_known = model.has_parameters() or model.definition is not None
            if is_known and _in_a_training(trace, without[0]):
                named.add(model)
                how = "is cut off from the loss" if without is cut_off else "runs without gradients"
                says = f"{model.label} {how} wherever it is used: {optimizer.label} cannot train it"
                yield fault("runs_without_gradient", without[0].line, "certain", says, lines=without[0].lines)


def _in_a_training(trace: Trace, forward: Event) -> bool:
    """Say whether a forward pass is in the round of a loop that computes gradients."""
    return any(
        event.action == "backward"
        and event.entry == forward.entry
        and event.loops == forward.loops[: len(event.loops)] != ()
        for event in trace.events
    )
