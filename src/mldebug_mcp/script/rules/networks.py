"""Is each of several networks updated, used, and given the gradients that are meant for it?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Assignment, Call, calls_in, dotted, names_in
from mldebug_mcp.script.faults import Certainty, Fault, fault
from mldebug_mcp.script.roles import NO_GRAD, Roles
from mldebug_mcp.script.rules.parameters import HAS_PARAMETERS

FOLLOWS = re.compile(r"target|momentum|slow|(?:^|_)ema(?:$|_)", re.IGNORECASE)
"""Names of networks that are meant to follow another."""
AVERAGES = re.compile(r"(?:^|\.)(?:ExponentialMovingAverage|\w*EMA\w*|ModelEma\w*|AveragedModel)$")
"""Classes that keep an average of the weights of a model."""
CHANGES_NOTHING = {
    "eval", "train", "to", "cuda", "cpu", "float", "half", "requires_grad_", "forward", "device", "training",
}  # fmt: skip
ONLY_UPDATES = {"update", "update_parameters", "to", "eval", "cuda", "register", "requires_grad_", "step"}


def target_never_updated(roles: Roles) -> Iterator[Fault]:
    """A network that is meant to follow another is made, used for targets, and never updated."""
    if not roles.trains_by_hand:
        return
    for made in roles.script.assignments:
        last = made.target.rpartition(".")[2]
        if not FOLLOWS.search(last) or not _is_copy(roles, made):
            continue
        uses = roles.reads.get(last, [])
        called = any(isinstance(parent, ast.Call) and parent.func is node for node, parent in uses)
        if called and all(_leaves_as_it_is(roles, node, parent, made) for node, parent in uses):
            says = f"{made.target} is copied once and never updated: it keeps the weights of the beginning"
            yield fault("target_never_updated", made.line, "likely", says)


def _is_copy(roles: Roles, made: Assignment) -> bool:
    """Say whether a network is made as a copy of another: by `deepcopy`, or by its weights being loaded."""
    if any(name.rpartition(".")[2] == "deepcopy" for name in calls_in(made.value)):
        return True
    loads = [call for call in roles.script.named("load_state_dict") if call.owner == made.target]
    return isinstance(made.value, ast.Call) and any(_is_first_copy(call, made) for call in loads)


def _is_first_copy(call: Call, made: Assignment) -> bool:
    """Say whether weights are loaded once, where a network is made."""
    from_other = call.node.args and dotted(call.node.args[0]).endswith("state_dict")
    return bool(from_other) and call.function == made.function and call.loops == made.loops


def _leaves_as_it_is(roles: Roles, node: ast.expr, parent: ast.AST, made: Assignment) -> bool:
    """Say whether a use of a network leaves its weights as they are."""
    if isinstance(parent, ast.Call):
        return parent.func is node
    if not isinstance(parent, ast.Attribute):
        return False
    if parent.attr in CHANGES_NOTHING:
        return True
    name = dotted(node)
    if parent.attr == "load_state_dict":
        loads = [call for call in roles.script.named("load_state_dict") if call.owner == name]
        return all(_is_first_copy(call, made) for call in loads)
    through = [
        loop
        for loop in ast.walk(roles.script.tree)
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and loop.iter.func is parent
    ]
    return bool(through) and all(_only_freezes(loop) for loop in through)


def _only_freezes(loop: ast.For) -> bool:
    assigned = [dotted(node.targets[0]) for node in loop.body if isinstance(node, ast.Assign)]
    called = [name for node in loop.body if isinstance(node, ast.Expr) for name in calls_in(node)]
    return all(name.endswith(("requires_grad", "requires_grad_")) for name in (*assigned, *called))


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


def _models_of(made: Assignment) -> set[str]:
    """Return the models whose parameters an optimizer is given; none where it is given others as well."""
    value = made.value
    if not isinstance(value, ast.Call):
        return set()
    given = value.args[0] if value.args else next((one.value for one in value.keywords if one.arg == "params"), None)
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters":
        return {dotted(given.func.value)}
    return set()


KEPT_FIXED = re.compile(r"teacher|ref|frozen|fixed|random|rnd|old|perceptual|vgg|lpips", re.IGNORECASE)
"""Names of networks that are left as they are on purpose."""


def network_without_optimizer(roles: Roles) -> Iterator[Fault]:
    """A network is made next to others, used in the loss, and given to no optimizer."""
    owned = [_models_of(made) for made in roles.optimizers.values()]
    given = set[str]().union(*owned)
    if not owned or not all(owned):
        return
    training = {backward.function for backward in roles.backwards}
    places = {made.function for made in roles.optimizers.values()}
    for made in roles.script.assignments:
        last = made.target.rpartition(".")[2]
        wanted = made.function in places and _has_layers(roles, made.value) and "." not in made.target
        if not wanted or made.target in given or KEPT_FIXED.search(last) or FOLLOWS.search(last):
            continue
        uses = roles.reads.get(last, [])
        called = [
            roles.call_of(parent) for node, parent in uses if isinstance(parent, ast.Call) and parent.func is node
        ]
        only_called = len(called) + sum(
            isinstance(parent, ast.Attribute) and parent.attr in ("to", "cuda", "train", "float") for _, parent in uses
        ) == len(uses)
        trained = [call for call in called if call and call.function in training and not roles.gradients_off(call)]
        if trained and only_called:
            says = f"{made.target} is used in the loss, and no optimizer is given its parameters"
            yield fault("outside_optimizer", made.line, "likely", says)


def _has_layers(roles: Roles, node: ast.expr) -> bool:
    """Say whether a value is a layer with parameters, or a model of this file."""
    names = calls_in(node) if isinstance(node, ast.Call) else []
    return any(HAS_PARAMETERS.search(name) or name in {module.name for module in roles.modules} for name in names)


def clips_another_model(roles: Roles) -> Iterator[Fault]:
    """Gradients of another model are clipped than those that the next step uses."""
    for clip in roles.script.named("clip_grad_norm_", "clip_grad_value_"):
        given = clip.node.args[0] if clip.node.args else None
        if (
            not isinstance(given, ast.Call)
            or not isinstance(given.func, ast.Attribute)
            or given.func.attr != "parameters"
        ):
            continue
        model = dotted(given.func.value)
        steps = [one for one in roles.unit(clip) if one in roles.steps and one.order > clip.order]
        stepped = [_models_of(roles.optimizers[one.owner]) if one.owner in roles.optimizers else set() for one in steps]
        known = [next(iter(models)) for models in stepped if models]
        if any("." not in one.owner and roles.is_parameter(one.owner, clip.function) for one in steps if clip.function):
            continue
        if not steps or len(known) < len(steps) or any(_may_be_same(roles, model, name, clip) for name in known):
            continue
        says = f"the gradients of {model} are clipped, and {steps[0].name}() changes {known[0]}"
        yield fault("clips_another_model", clip.line, "certain", says)


def _may_be_same(roles: Roles, model: str, other: str, call: Call) -> bool:
    """Say whether two names may be one model, or one a part of the other: by a wrapper, an alias or a parameter."""
    if model == other or model.startswith(f"{other}.") or other.startswith(f"{model}."):
        return True
    if call.function and any("." not in name and roles.is_parameter(name, call.function) for name in (model, other)):
        return True
    if model.startswith("self.") != other.startswith("self."):
        return True
    related = [
        made
        for made in roles.script.assignments
        if made.target in (model, other)
        and {model, other} & {dotted(part) for part in ast.walk(made.value)} - {made.target}
    ]
    return bool(related) or "self" in (model, other)


def generator_in_discriminator_loss(roles: Roles) -> Iterator[Fault]:
    """The loss of a discriminator goes through the graph of the generator, which then keeps these gradients."""
    owners = {name: next(iter(_models_of(made)), "") for name, made in roles.optimizers.items()}
    for backward in roles.backwards:
        unit = roles.unit(backward)
        step = next((one for one in unit if one in roles.steps and one.order > backward.order), None)
        own = owners.get(step.owner, "") if step is not None else ""
        given = backward.node.func.value if isinstance(backward.node.func, ast.Attribute) else None
        others = {name: optimizer for optimizer, name in owners.items() if name and name != own}
        if not own or given is None or not others:
            continue
        before = [one for one in unit if one.order < backward.order and roles.calls_model(one.node)]
        previous = max((one.order for one in roles.backwards if one.order < backward.order), default=-1)
        for judged in before:
            through = _generator(roles, judged, others) if judged.name == own and judged.order > previous else ""
            if through and _is_part_of(roles, judged, given, backward):
                yield _not_detached(roles, backward, judged, through, others[through])
                break


def _generator(roles: Roles, judged: Call, others: dict[str, str]) -> str:
    """Return the network whose outputs a call is given with their graph; empty where there is none."""
    source = roles.source_of(judged.node.args[0], judged) if judged.node.args else None
    if (
        not isinstance(source, ast.Call)
        or dotted(source.func) not in others
        or not isinstance(source.func, ast.Name | ast.Attribute)
    ):
        return ""
    made = roles.call_of(source)
    cut = isinstance(source.func, ast.Attribute) and isinstance(source.func.value, ast.Call)
    off = made is None or any(NO_GRAD.search(guard) for guard in made.guards) or cut
    return "" if off else dotted(source.func)


def _is_part_of(roles: Roles, judged: Call, given: ast.expr, backward: Call, depth: int = 3) -> bool:
    """Say whether a call stands in the loss that gradients are computed of, following names."""
    if any(node is judged.node for node in ast.walk(given)):
        return True
    sources = [roles.source_of(ast.Name(name), backward) for name in names_in(given)] if depth else []
    return any(
        _is_part_of(roles, judged, source, backward, depth - 1)
        for source in sources
        if not isinstance(source, ast.Name)
    )


def _not_detached(roles: Roles, backward: Call, judged: Call, generator: str, optimizer: str) -> Fault:
    """Return the fault; it is sure where the generator's gradients are not cleared before its own step."""
    unit = [one for one in roles.unit(backward) if one.order > backward.order]
    step = next((one for one in unit if one.owner == optimizer and one.method == "step"), None)
    clears = [one for one in unit if one.method == "zero_grad" and one.owner in (optimizer, generator)]
    cleared = step is None or any(one.order < step.order for one in clears)
    certainty: Certainty = "depends" if cleared else "certain"
    says = f"{ast.unparse(judged.node)[:60]} goes through {generator} as well, whose gradients are not meant here"
    return fault("generator_in_discriminator_loss", judged.line, certainty, says)
