"""Which parameters train: of one model, and of several networks, copies and averages?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Assignment,
    arguments_of,
    called_name,
    calls_in,
    constant_of,
    dotted,
    last_name,
    last_part,
    values_returned,
    walk,
)
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import HAS_PARAMETERS, OPTIMIZERS, SAME_MODEL
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace import Event, Trace
from mldebug_mcp.script.values import Object

REPLACES_PARAMETERS = re.compile(r"get_peft_model|prepare_model_for|FSDP$|FullyShardedDataParallel$")
"""What returns a model whose parameters are others than before."""
SEVERAL_TRAININGS = re.compile(
    r"fold|seed|config|stage|phase|task|grid|trial|run|client|lrs|rates|sizes|experience|round|cycle|domain|models|member",
    re.IGNORECASE,
)
"""What loops over trainings of their own go through: what they are for stands in their words alone."""
CONTAINERS = ast.List | ast.ListComp | ast.Dict | ast.DictComp | ast.Tuple
REGISTERS = re.compile(r"(?:ModuleList|ModuleDict|Sequential|ParameterList|add_module|register_module|setattr)$")
HEAD = re.compile(
    r"classifier|(?:^|[._])(?:head|fc|score|final|output_layer|out_proj_head)(?:$|[._])|^fc\b|lora_", re.IGNORECASE
)
"""Names of the part that is new in fine-tuning."""
PRETRAINED = re.compile(
    r"from_pretrained|pretrained=True|weights=(?!None)|create_model\(|hub\.load|load_state_dict|get_peft_model"
)
ADAPTED_BY = ("peft_config", "model_init")
"""What gives a trainer other parameters than those of the model that it is given."""
LEAVES_FROZEN = {*SAME_MODEL, "parameters", "named_parameters", "gradient_checkpointing_enable", "save_pretrained"}
"""Methods of a model that free no parameters and give none of its layers."""


def _replaced_in_place(roles: Roles, optimizer: str, made: Assignment, model: str) -> Iterator[Fault]:
    """Yield calls after the optimizer that give a model other parameters: `fully_shard(model)`, new embeddings."""
    for call in roles.script.named("fully_shard", "resize_token_embeddings", "add_adapter"):
        first = dotted(call.node.args[0]) if call.method == "fully_shard" and call.node.args else call.owner
        if model and first == model and call.order > made.order and call.function == made.function:
            says = f"{call.name}() gives {model} other parameters after {optimizer} was made, which has the old ones"
            yield fault("made_after_optimizer", call.line, "certain", says)


def _layers_without_optimizer(roles: Roles) -> Iterator[Fault]:
    """Yield the layers of a model that makes its own optimizers and gives them the parameters of others alone."""
    for module in walk(roles.script.tree, ast.ClassDef):
        text = ast.unparse(module)
        returned = [node for node in walk(module, ast.Call) if OPTIMIZERS.search(dotted(node))]
        given = " ".join(ast.unparse(node) for node in returned)
        own = set(re.findall(r"self\.(\w+)\.parameters\(\)", given))
        whole = re.search(r"self\.(?:named_)?parameters\(\)|self\.trainer|\*|\bparams\b|groups", given)
        if not own or whole or "requires_grad" in given:
            continue
        if len(re.findall(r"\.parameters\(\)", text)) > len(re.findall(r"\.parameters\(\)", given)):
            continue
        for node in _own_parts(module):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            name = dotted(node.targets[0])
            layers = any(HAS_PARAMETERS.search(called) for called in calls_in(node.value))
            frozen = re.search(rf"{re.escape(name)}\.(?:requires_grad_|eval|freeze)|freeze\({re.escape(name)}", text)
            used = re.search(rf"{re.escape(name)}\(", text)
            if name.startswith("self.") and name[5:] not in own and layers and used and not frozen:
                says = f"the optimizer has the parameters of {', '.join(sorted(own))} alone, and not those of {name}"
                yield fault("outside_optimizer", returned[0].lineno, "likely", says)
                break


def _own_parts(module: ast.ClassDef) -> Iterator[ast.AST]:
    """Yield the parts of a class, without those of classes inside of it."""
    stack: list[ast.AST] = [*module.body]
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.ClassDef):
            yield node
            stack += ast.iter_child_nodes(node)


def parameters_left_out(roles: Roles) -> Iterator[Fault]:
    """Parameters that the optimizer does not know, or that are frozen."""
    for name, made in roles.optimizers.items():
        model = next(iter(re.findall(r"(\w[\w.]*)\.parameters\(\)", ast.unparse(made.value))), "")
        for assignment in roles.script.assignments:
            later = assignment.order > made.order and assignment.function == made.function
            of_model = assignment.target == model or (
                isinstance(assignment.value, ast.Call) and any(dotted(arg) == model for arg in assignment.value.args)
            )
            if model and later and of_model and REPLACES_PARAMETERS.search(dotted(assignment.value) or ""):
                says = f"{assignment.target} is made after {name}, which does not know its parameters"
                yield fault("made_after_optimizer", assignment.line, "certain", says)
        yield from _replaced_in_place(roles, name, made, model)
    yield from _layers_after_the_optimizer(roles.trace)
    yield from _made_anew(roles)
    yield from _layers_in_a_list(roles)
    followed = {event.line for event in roles.trace.of("unfreeze")}
    if {line for _, is_on, line, _ in _switches(roles) if is_on} <= followed:
        yield from _frozen(roles.trace)
    yield from _layers_without_optimizer(roles)


def _layers_after_the_optimizer(trace: Trace) -> Iterator[Fault]:
    """Yield where a model gets a new layer after an optimizer was given its parameters, and none is given those."""
    named: set[int] = set()
    for place, event in enumerate(trace.events):
        layer = event.source
        if event.action != "attach" or layer is None or not layer.has_parameters() or event.line in named:
            continue
        added_later = {attach.source for attach in trace.events[place + 1 :] if attach.action == "attach"}
        if any(owner in added_later for owner in event.objects):
            continue  # it was no part of the model yet
        before = _optimizers_made(trace.events[:place], event.entry)
        knows_model = [
            optimizer
            for optimizer in before
            for trained in optimizer.holds
            for owner in event.objects
            if owner.is_part_of(trained) or _was_replaced(trained, owner, layer.name)
        ]
        later = _optimizers_made(trace.events[place:], event.entry)
        again = any(not optimizer.holds_all or optimizer.holds_some_of(layer) for optimizer in later)
        given = any(trained.is_part_of(layer) for optimizer in before for trained in optimizer.holds)
        taken = any(
            escape.action == "escape" and knows_model[:1] and knows_model[0] in escape.objects
            for escape in trace.events
        )
        if not knows_model or again or given or taken:
            continue
        named.add(event.line)
        certainty: Certainty = "likely" if event.tests else "certain"
        made = next(make for make in trace.events if make.action == "make" and knows_model[0] in make.objects)
        line = _asked_for_at(event, made)
        says = f"{layer.label} is made after {knows_model[0].label}, which does not know its parameters"
        says += "" if line == event.line else f" (line {event.line})"
        yield fault("made_after_optimizer", line, certainty, says)


def _asked_for_at(attach: Event, make: Event) -> int:
    """Return the line of a layer, or of the call of the model's own method that makes it."""
    owners = {owner.definition.name for owner in attach.objects if owner.definition is not None}
    inside = attach.function.partition(".")[0]
    is_own = inside in owners and inside != make.function.partition(".")[0] and bool(attach.through)
    return getattr(attach.through[-1], "lineno", attach.line) if is_own else attach.line


def _was_replaced(part: Object, owner: Object, name: str) -> bool:
    """Say whether a part that an optimizer has was at the place of a model where another is put now."""
    return part.parent is owner and part.name == name and name not in ("", "*")


def _optimizers_made(events: Sequence[Event], entry: int) -> list[Object]:
    return [
        optimizer for event in events if event.action == "make" and event.entry == entry for optimizer in event.objects
    ]


def _made_anew(roles: Roles) -> Iterator[Fault]:
    """Yield optimizers that a loop makes anew for a model that goes on: each round loses their moments."""
    trace = roles.trace
    named: set[int] = set()
    for make in trace.of("make"):
        optimizer = next(iter(make.objects))
        if not make.loops or not optimizer.holds or make.line in named:
            continue
        line, depth = make.loop_lines[-1], len(make.loops)
        inside = [event for event in trace.events if event.entry == make.entry and event.loops[:depth] == make.loops]
        steps = [event for event in inside if event.action == "step" and optimizer in event.objects]
        fresh = any(model.loops[:depth] == make.loops for model in optimizer.holds)
        reset = any(_sets_anew(event) and event.concerns(model) for event in inside for model in optimizer.holds)
        conditional = not any(set(make.tests) <= set(step.tests) for step in steps)
        passes = max((len(step.loops) - depth for step in steps), default=0)
        through = roles.loops_by_line.get(line)
        several = through is None or SEVERAL_TRAININGS.search(through)
        if fresh or reset or conditional or passes > 1 or several:
            continue
        named.add(make.line)
        certainty: Certainty = "likely" if passes else "certain"
        says = (
            f"{optimizer.label} is made anew at each round of the loop in line {line}: its moments are lost each time"
        )
        yield fault("optimizer_made_anew", make.line, certainty, says)


def _sets_anew(event: Event) -> bool:
    """Say whether a model may begin anew: its weights are set, or a function of another file is called to do so."""
    if event.action == "escape" and isinstance(event.node, ast.Call):
        return bool(re.search(r"reset|init|load|restore", dotted(event.node.func), re.IGNORECASE))
    return event.action in ("load", "write", "attach")


def unfrozen_outside_optimizer(roles: Roles) -> Iterator[Fault]:
    """Layers are unfrozen after the optimizer was given those that were free, and are never given to it."""
    if roles.uses("add_param_group"):
        return
    frozen = {key for key, free, _, _ in _switches(roles) if not free}
    for name, made in roles.optimizers.items():
        source = ast.unparse(made.value)
        for part in ast.walk(made.value):
            assignment = roles.script.assigned(part.id, made.order) if isinstance(part, ast.Name) else None
            source += ast.unparse(assignment.value) if assignment is not None else ""
        again = any(other.line > made.line for other in roles.script.made(name))
        if "requires_grad" not in source or again:
            continue
        for key, free, line, order in _switches(roles):
            if (
                free
                and order >= made.order
                and line > made.line
                and any(key == other or other.startswith(f"{key}.") for other in frozen)
            ):
                says = f"{key} is unfrozen after {name} was made, which was given what was free then"
                yield fault("unfrozen_outside_optimizer", line, "likely", says)
                break


def _switches(roles: Roles) -> Iterator[tuple[str, bool, int, int]]:
    """Yield where gradients of parts of a model are turned off or on: the part, whether on, the line, the order."""
    for made in roles.script.assignments:
        through = roles.script.loops.get(made.loops[-1], "") if made.loops else ""
        model = re.fullmatch(r"([\w.]+)\.(?:named_)?parameters\(\)", through)
        if made.target.endswith(".requires_grad") and model and isinstance(constant_of(made.value), bool):
            yield model[1], bool(constant_of(made.value)), made.line, made.order
    for call in roles.script.named("requires_grad_"):
        value = call.constant("requires_grad", 0) if call.node.args or call.node.keywords else True
        if isinstance(value, bool):
            yield call.owner, value, call.line, call.order


def _layers_in_a_list(roles: Roles) -> Iterator[Fault]:
    """Yield attributes of a model that hold layers in a plain list, tuple or mapping, which the model does not see."""
    if re.search(r"^(?:from|import) flax", roles.source, re.MULTILINE):
        return  # Flax knows the layers of lists
    for module in roles.modules:
        made = [
            assignment for assignment in roles.script.assignments if module.name in assignment.function.split(".")[:-1]
        ]
        own = {
            assignment.target: assignment
            for assignment in reversed(made)
            if re.fullmatch(r"self\.\w+", assignment.target) and not assignment.adds
        }
        for assignment in own.values():
            names = {assignment.target, *([assignment.value.id] if isinstance(assignment.value, ast.Name) else [])}
            starts = [other.value for other in made if other.target in names and other.function == assignment.function]
            if not any(_is_container(value) for value in starts):
                continue
            values = [value for value in starts if _is_container(value)]
            values += [
                other.value
                for other in made
                if other.target in names and (other.adds or other.target != assignment.target)
            ]
            values += _put_into(module, names)
            layers = any(_makes_layers(roles, name) for value in values for name in calls_in(value))
            if layers and not _is_registered(roles, module, names):
                says = f"{assignment.target} keeps layers in a plain list: the model does not know them"
                yield fault("layers_in_a_list", assignment.line, "certain", says)


def _is_container(node: ast.expr) -> bool:
    """Say whether a value is a list, tuple or mapping of Python."""
    return isinstance(node, CONTAINERS) or (
        isinstance(node, ast.Call) and dotted(node.func) in ("list", "tuple", "dict", "OrderedDict", "defaultdict")
    )


def _put_into(module: ast.ClassDef, names: set[str]) -> list[ast.expr]:
    """Return what is put into lists and mappings of some names: `x.append(value)` or `x[key] = value`."""
    found: list[ast.expr] = []
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            grows = node.func.attr in ("append", "extend", "insert", "update")
            found += node.args if grows and dotted(node.func.value) in names else []
        elif isinstance(node, ast.Assign):
            into = any(isinstance(target, ast.Subscript) and dotted(target) in names for target in node.targets)
            found += [node.value] if into else []
    return found


def _makes_layers(roles: Roles, name: str) -> bool:
    """Say whether a call makes something with parameters: a layer of PyTorch, or a model of this file."""
    if HAS_PARAMETERS.search(name) or name in {module.name for module in roles.modules}:
        return True
    helper = roles.definitions.get(last_part(name))
    returned = values_returned(helper)
    return any(HAS_PARAMETERS.search(called) for value in returned if value is not None for called in calls_in(value))


def _is_registered(roles: Roles, module: ast.ClassDef, names: set[str]) -> bool:
    """Say whether layers of a list become known after all: they are wrapped, or their parameters are asked for."""
    calls = [node for node in walk(module, ast.Call) if REGISTERS.search(dotted(node.func))]
    if any(dotted(part) in names for call in calls for arg in call.args for part in ast.walk(arg)):
        return True
    if any(re.search(r"add_module|register_module|setattr", dotted(call.func)) for call in calls):
        return True
    if _is_given_to_another(roles, module, names):
        return True
    last = {last_part(name) for name in names}
    through = [*walk(roles.script.tree, ast.For, ast.comprehension)]
    walks = [ast.unparse(node.iter) for node in through if any(last_name(part) in last for part in ast.walk(node.iter))]
    walked = {dotted(node.target) for node in through if ast.unparse(node.iter) in walks}
    return any(call.owner in walked for call in roles.script.named("parameters"))


def _is_given_to_another(roles: Roles, module: ast.ClassDef, names: set[str]) -> bool:
    """Say whether a class of another file is given the layers, which may register them."""
    made = [*walk(module, ast.Call)]
    foreign = [
        node for node in made if (last := last_name(node)).lstrip("_")[:1].isupper() and last not in roles.definitions
    ]
    given = [part for node in foreign for part in arguments_of(node)]
    return any(dotted(part) in names for part in given)


def _frozen(trace: Trace) -> Iterator[Fault]:
    """Yield where an optimizer is given the parameters of models alone that are frozen as a whole, and stay so."""
    for make in trace.of("make"):
        optimizer = next(iter(make.objects))
        steps = [
            place for place, event in enumerate(trace.events) if event.action == "step" and optimizer in event.objects
        ]
        until = steps[-1] if steps else len(trace.events)
        models = optimizer.holds if optimizer.holds_all else ()
        free = {unfrozen for event in trace.of("unfreeze") for unfrozen in event.objects}
        if any(unfrozen.is_related_to(model) for unfrozen in free for model in models):
            continue
        freezes = [freeze_of(trace.events[:until], model, make) for model in models]
        known = [freeze for freeze in freezes if freeze is not None]
        known = [freeze for freeze in known if not freeze.entry or freeze.function == make.function]
        if known and len(known) == len(freezes):
            names = " and ".join(sorted(model.label for model in optimizer.holds))
            says = f"all parameters of {names} are frozen, and the optimizer is given those alone"
            yield fault("all_frozen", known[0].line, "certain", says)


def freeze_of(events: Sequence[Event], model: Object, make: Event) -> Event | None:
    """Return what freezes all of a model for good, None where nothing does, or new layers are free."""
    found = None
    for event in events:
        if event.entry != make.entry or not event.concerns(model):
            continue
        if (
            event.action == "freeze"
            and any(model.is_part_of(frozen) for frozen in event.objects)
            and set(event.tests) <= set(make.tests)
        ):
            found = event
        elif event.action in ("unfreeze", "attach", "escape"):
            found = None
            if event.action == "unfreeze":
                return None
    return found


def head_frozen(roles: Roles) -> Iterator[Fault]:
    """The new head is frozen, and the pretrained rest is trained."""
    if not PRETRAINED.search(roles.source):
        return
    for loop in ast.walk(roles.script.tree):
        named = isinstance(loop, ast.For) and "named_parameters()" in ast.unparse(loop.iter)
        if not isinstance(loop, ast.For) or not named or not isinstance(loop.target, ast.Tuple):
            continue
        name = dotted(loop.target.elts[0])
        for value, tests, line in _switched_by_name(loop.body, ()):
            on_for_head, on_for_body = (_set_to(value, tests, name, is_head=is_head) for is_head in (True, False))
            by_name = tests or not isinstance(constant_of(value), bool)
            if by_name and on_for_head is False and on_for_body is not False and not _turns_all_off(loop):
                says = (
                    "the gradients of the new head are turned off by its name, and those of the pretrained part stay on"
                )
                yield fault("head_frozen", line, "likely", says)


def _switched_by_name(
    body: Sequence[ast.stmt], tests: tuple[tuple[ast.expr, bool], ...]
) -> Iterator[tuple[ast.expr, tuple[tuple[ast.expr, bool], ...], int]]:
    """Yield where gradients of a parameter are set in a loop: the value, the tests around it, the line."""
    for node in body:
        if isinstance(node, ast.Assign) and dotted(node.targets[0]).endswith(".requires_grad"):
            yield node.value, tests, node.lineno
        elif isinstance(node, ast.Expr) and dotted(node.value).endswith(".requires_grad_"):
            given = node.value.args if isinstance(node.value, ast.Call) else []
            yield (given[0] if given else ast.Constant(True)), tests, node.lineno
        elif isinstance(node, ast.If):
            yield from _switched_by_name(node.body, (*tests, (node.test, True)))
            yield from _switched_by_name(node.orelse, (*tests, (node.test, False)))


def _set_to(value: ast.expr, tests: Sequence[tuple[ast.expr, bool]], name: str, *, is_head: bool) -> bool | None:
    """Return what gradients are set to for a parameter of the head, or for another; None where that is not known."""
    if any(_is_true(test, name, is_head=is_head) is not wanted for test, wanted in tests):
        return None
    constant = constant_of(value)
    return constant if isinstance(constant, bool) else _is_true(value, name, is_head=is_head)


def _is_true(node: ast.expr, name: str, *, is_head: bool) -> bool | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _is_true(node.operand, name, is_head=is_head)
        return None if inner is None else not inner
    word, holds = None, is_head
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and dotted(node.comparators[0]) == name:
        word = constant_of(node.left) if isinstance(node.ops[0], ast.In | ast.NotIn) else None
        holds = is_head is isinstance(node.ops[0], ast.In)
    elif isinstance(node, ast.Call) and dotted(node) == f"{name}.startswith" and node.args:
        word = constant_of(node.args[0])
    return holds if isinstance(word, str) and HEAD.search(word) else None


def _turns_all_off(loop: ast.For) -> bool:
    """Say whether a loop turns the gradients of all parameters off, whatever their names."""
    return any(
        isinstance(node, ast.Assign)
        and dotted(node.targets[0]).endswith(".requires_grad")
        and constant_of(node.value) is False
        for node in loop.body
    )


def trains_frozen_model(roles: Roles) -> Iterator[Fault]:
    """All parameters of a model are frozen when a trainer gets it."""
    events = roles.trace.events
    for call in roles.trainer_calls:
        given = roles.trace.settings.get(id(call.node), {}).get("model", [])
        place = next((at for at, event in enumerate(events) if event.node is call.node), None)
        model = given[0] if len(given) == 1 else None
        if not isinstance(model, Object) or place is None or set(ADAPTED_BY) & {*roles.keywords(call)}:
            continue
        if {other.method for other in roles.script.calls if other.owner == model.name} - LEAVES_FROZEN:
            continue  # it may add an adapter, or give a layer that is unfrozen
        freeze = freeze_of(events[:place], model, events[place])
        if freeze is not None:
            says = f"all parameters of {model.label} are frozen, and {call.method} trains it (line {call.line})"
            yield fault("all_frozen", freeze.line, "certain", says, lines=(call.line,))


# Several networks, copies and averages: is each updated, used, and given the gradients that are meant for it?


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
    choices = [*walk(roles.script.tree, ast.IfExp)]
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
            if other.node is not event.node and not (other.entry and last_part(other.function) in dead)
        ]
        if id(event.node) in optional or _is_given_source(roles, copied) or _copied_again(others, copied):
            continue
        made_here = [made for other in trace.events if other.node is event.node and (made := _copied(other))]
        touched = any(_is_touched(other, made) for other in others for made in made_here)
        steps = [other for other in others if other.action == "step"]
        trained = any(trace.steps_model(step, made) for step in steps for made in made_here)
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


def _is_touched(event: Event, copied: Object) -> bool:
    """Say whether something happens to a copy that may change its weights."""
    if event.action == "attach":
        from_elsewhere = event.source is not None and event.source.copy_of is None
        return from_elsewhere and any(owner.is_part_of(copied) for owner in event.objects)
    return event.action in ("write", "load", "escape", "copy") and event.concerns(copied)


def _copied(event: Event) -> Object | None:
    """Return the network that is made as a copy of another: by `deepcopy`, or by its weights being loaded."""
    is_copy = event.action in ("copy", "load") and event.source is not None and event.source not in event.objects
    return next(iter(event.objects)) if is_copy else None


def _is_given_source(roles: Roles, copied: Object) -> bool:
    """Say whether a method of a copy is given what it is a copy of: `target.load_state(net)`."""
    source = copied.copy_of.name if copied.copy_of is not None else ""
    return any(
        last_part(call.owner) == copied.name and source in {last_name(arg) for arg in call.node.args}
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
        if not isinstance(made.value, ast.Call) or not AVERAGES.search(dotted(made.value)):
            continue
        uses = roles.reads.get(made.last, [])
        updated = any(isinstance(parent, ast.Attribute) and parent.attr.startswith("update") for _, parent in uses)
        if updated and all(isinstance(parent, ast.Attribute) and parent.attr in ONLY_UPDATES for _, parent in uses):
            says = f"{made.target} averages the weights, and nothing evaluates or saves the average"
            yield fault("ema_never_applied", made.line, "likely", says)


def ema_never_updated(roles: Roles) -> Iterator[Fault]:
    """An average of the weights is evaluated or saved, and never updated."""
    for made in roles.script.assignments if roles.steps else ():
        if not isinstance(made.value, ast.Call) or not MAY_BE_AVERAGES.search(dotted(made.value.func)):
            continue
        last = made.last
        uses = roles.reads.get(last, [])
        called = {parent.attr for _, parent in uses if isinstance(parent, ast.Attribute)}
        helper = roles.definitions.get(last_name(made.value))
        own = {node.name for node in walk(helper, ast.FunctionDef)} if helper else {"update"}
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
    evaluated = {made.target for made in roles.script.assignments if called_name(made.value) == "eval"}
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
        later = [step for step in trace.events[place:] if step.action == "step"] if event.action == "backward" else []
        if not any(step.entry == event.entry for step in later):
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
    return [node.lineno for node in walk(roles.script.tree, ast.Constant) if node.value in names - {""}]


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
        known = known and all(_is_made_in_file(model) for model in (*clip.objects, *stepped_models))
        same_round = all(step.loop_lines == clip.loop_lines for step in steps)
        shared = any(_may_share(clipped_model, other) for clipped_model in clip.objects for other in stepped_models)
        if known and same_round and not shared:
            named.add(clip.line)
            clipped, changed = (
                " and ".join(sorted({model.label for model in some})) for some in (clip.objects, stepped_models)
            )
            says = f"the gradients of {clipped} are clipped, and {stepped[0].label}.step() changes {changed}"
            yield fault("clips_another_model", clip.line, "certain", says)


def _may_share(model: Object, other: Object) -> bool:
    return model.is_related_to(other) or model.is_made_from(other) or other.is_made_from(model)


def _is_made_in_file(model: Object) -> bool:
    return bool(model.made_by) or (model.parent is not None and _is_made_in_file(model.parent))


def generator_in_discriminator_loss(roles: Roles) -> Iterator[Fault]:
    """The loss of one network goes through the graph of another, which then keeps gradients that are not meant."""
    trace = roles.trace
    named: set[tuple[int, str]] = set()
    for place, backward in enumerate(trace.events):
        if backward.action != "backward" or len(backward.objects) < 2:
            continue
        later = [event for event in trace.events[place + 1 :] if event.entry == backward.entry]
        steps = _steps_before_the_next_backward(later, backward.entry)
        steppers = [stepper for step in steps for stepper in step.objects]
        if not steps or any(stepper.kind != "optimizer" or not stepper.holds_all for stepper in steppers):
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
        last = made.last
        given = dotted(made.value) if isinstance(made.value, ast.Name | ast.Attribute) else ""
        of_model = last_part(given) in roles.model_names
        if not followers.search(last) or not of_model or followers.search(given) or made.adds or made.conditions:
            continue
        again = [other for other in roles.script.made(made.target) if other is not made]
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
