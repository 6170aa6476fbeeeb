"""Are the weights that are kept the best ones, and does a run that goes on take up all that it left?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import constant_of, dotted, values_returned
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.metrics import LOSS_LIKE, Better, agreed, better_by_name, better_of, with_functions
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.events import Event, Trace
from mldebug_mcp.script.values import Object, objects_in

BEST = re.compile(r"best|(?:^|_)(?:min|max|lowest|highest)_")
COUNTS_ITSELF = re.compile(r"last_epoch|load_state\b|load_checkpoint|start|resume")
"""Names by which a schedule may know its place without its state."""
FIRST_FACTORS = {"LinearLR": "start_factor", "ConstantLR": "factor"}
"""The schedules that multiply the learning rate that they find, each with the argument that says by what."""
PLACE_OF_RUN = re.compile(r"(?:\[|(?:get|pop)\()['\"](?:\w+_)?(?:epoch|step|iteration|it|round|update)s?['\"]")
"""How the place of a run is read from what was saved."""


def best_by_the_wrong_side(roles: Roles) -> Iterator[Fault]:
    """A checkpoint is kept where a loss is higher, or a score lower, than the best so far."""
    for function, node in with_functions(roles.script.tree):
        if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare) or len(node.test.ops) != 1:
            continue
        left, right, operator = node.test.left, node.test.comparators[0], node.test.ops[0]
        if not isinstance(operator, ast.Lt | ast.Gt | ast.LtE | ast.GtE):
            continue
        names = [dotted(side).rpartition(".")[2] for side in (left, right)]
        if not names[0] or not names[1] or bool(BEST.search(names[0])) == bool(BEST.search(names[1])):
            continue
        place = 1 if BEST.search(names[1]) else 0
        new, best = names[1 - place], names[place]
        kept = any(
            isinstance(part, ast.Assign)
            and dotted(part.targets[0]).rpartition(".")[2] == best
            and dotted(part.value).rpartition(".")[2] == new
            for part in node.body
        )
        grows = isinstance(operator, ast.Gt | ast.GtE) == (place == 1)
        side = _side(roles, new, (left, right)[1 - place], function)
        meant = re.search(r"max|highest" if grows else r"min|lowest", best)
        if kept and not meant and side == ("lower" if grows else "higher") and not re.search(r"neg|minus", new):
            worst = "highest" if side == "lower" else "lowest"
            says = f"{new} is better when {side}, and what is kept as the best has the {worst}"
            yield fault("best_is_worst", node.lineno, "certain", says)


def _side(roles: Roles, name: str, node: ast.expr, function: str) -> Better:
    """Return on which side what is compared with the best is better, where its name and how it is computed agree."""
    known = better_by_name(name)
    if not known and LOSS_LIKE.search(name):
        return ""
    if _adds_losses(roles, name):
        return agreed((known, "lower"))
    side = better_of(roles, node, function)
    return agreed((known, side)) if isinstance(node, ast.Subscript) else side


def _adds_losses(roles: Roles, name: str) -> bool:
    """Say whether a name is a sum of losses and nothing else."""
    added = [made.value for made in roles.script.assignments if made.target == name and made.adds]
    return bool(added) and all(LOSS_LIKE.search(ast.unparse(value)) for value in added)


def weights_kept_by_reference(roles: Roles) -> Iterator[Fault]:
    """The best weights are kept as references, which go on with the training."""
    for made in roles.script.assignments:
        kept = isinstance(made.value, ast.Call) and dotted(made.value.func).endswith(".state_dict")
        last = made.target.rpartition(".")[2]
        if not kept or not made.conditions or not re.search(r"best", last, re.IGNORECASE):
            continue
        restored = any(
            call.method == "load_state_dict" and any(dotted(arg).rpartition(".")[2] == last for arg in call.node.args)
            for call in roles.script.calls
        )
        saved_here = any(
            call.method == "save" and call.function == made.function and call.conditions == made.conditions
            for call in roles.script.calls
        )
        if restored and not saved_here and roles.trains_by_hand:
            says = f"{made.target} refers to the weights themselves: what is kept as the best changes with each step"
            yield fault("weights_kept_by_reference", made.line, "certain", says)


def state_not_loaded(roles: Roles) -> Iterator[Fault]:
    """Weights are put into the mapping that `state_dict` returns, or into a copy, and nothing loads or saves it.

    Source: `torch.nn.Module.state_dict` returns a new mapping, whose entries are the tensors of the model.
    """
    if "state_dict" in roles.definitions:
        return
    for node in ast.walk(roles.script.tree):
        at_once = _put_into(node)
        if isinstance(at_once, ast.Call) and dotted(at_once.func).endswith(".state_dict"):
            says = f"{ast.unparse(at_once)} returns a new mapping: what is put into it does not reach the model"
            yield fault("state_not_loaded", getattr(node, "lineno", 0), "certain", says)
    for made in roles.script.assignments:
        scope = roles.definitions.get(made.function.rpartition(".")[2]) if made.function else roles.script.tree
        if scope is None or not re.fullmatch(r"\w+", made.target) or not _is_state(made.value):
            continue
        if any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(scope)):
            continue
        line = _changed_alone(scope, made.target)
        if line:
            says = f"weights are put into {made.target} (line {made.line}), which nothing loads or saves"
            yield fault("state_not_loaded", line, "likely", says)


def _put_into(node: ast.AST) -> ast.expr | None:
    """Return the mapping that a statement puts entries into: `x.update(…)` or `x[key] = …`."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value
    called = node.value if isinstance(node, ast.Expr) else None
    if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute) and called.func.attr == "update":
        return called.func.value
    return None


def _is_state(node: ast.expr) -> bool:
    """Say whether a value is the state of a model or a copy of it: `deepcopy(net.state_dict())`, `{k: v …}`."""
    if isinstance(node, ast.DictComp):
        node = node.generators[0].iter
    while isinstance(node, ast.Call):
        name = dotted(node.func).rpartition(".")[2]
        if name == "state_dict":
            return isinstance(node.func, ast.Attribute)
        if name in ("deepcopy", "dict", "OrderedDict") and node.args:
            node = node.args[0]
        elif name in ("copy", "items") and isinstance(node.func, ast.Attribute):
            node = node.args[0] if node.args else node.func.value
        else:
            return False
    return False


def _changed_alone(scope: ast.AST, name: str) -> int:
    """Return the line that puts entries into a mapping which is read for that alone; 0 where it is used otherwise."""
    lines = []
    allowed: set[int] = set()
    for node in ast.walk(scope):
        mapping = _put_into(node)
        if mapping is not None and dotted(mapping) == name and isinstance(mapping, ast.Name):
            lines.append(getattr(node, "lineno", 0))
            allowed |= {id(part) for part in ast.walk(node) if dotted(part) == name}
        elif isinstance(node, ast.For | ast.comprehension):
            through = node.iter
            if isinstance(through, ast.Call) and dotted(through.func) == f"{name}.keys":
                through = getattr(through.func, "value", through)
            allowed |= {id(through)} if isinstance(through, ast.Name) else set()
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            allowed |= {id(part) for part in node.comparators}
    reads = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    return lines[0] if lines and all(id(node) in allowed for node in reads) else 0


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


def scheduled_after_loading(roles: Roles) -> Iterator[Fault]:
    """A schedule with a warm-up is made for an optimizer whose state was loaded before, and its own state is loaded.

    Source: making it scales the learning rate for step 0, and loading its state does not set that again
    (findings/schedulers_made_after_the_optimizer_was_loaded.sh).
    """
    events = roles.trace.events
    for place, load in enumerate(events):
        later = [event for event in events[place + 1 :] if event.entry == load.entry]
        if (
            load.action != "load"
            or load.loops
            or any(event.action == "load" and event.objects & load.objects for event in later)
        ):
            continue
        restored = {part for event in later if event.action == "load" for part in event.objects}
        for plan in (event for event in later if event.action == "plan"):
            schedule = next(iter(plan.objects))
            moved = {part for value in schedule.given[:1] for part in objects_in(value)}
            if (
                _scales_at_first(plan)
                and moved & load.objects
                and any(_runs_through(each, schedule) for each in restored)
            ):
                says = (
                    f"{schedule.label or schedule.made_by} is made after line {load.line} loaded the optimizer: it "
                    "scales the learning rate down as at step 0, and loading its own state does not undo that"
                )
                yield fault("scheduled_after_loading", plan.line, "certain", says, lines=(load.line,))
                return


def _scales_at_first(plan: Event) -> bool:
    """Say whether a schedule is one that multiplies the learning rate at step 0, and by another number than 1."""
    node = plan.node
    if not isinstance(node, ast.Call) or dotted(node.func).rpartition(".")[2] not in FIRST_FACTORS:
        return False
    name = FIRST_FACTORS[dotted(node.func).rpartition(".")[2]]
    given = next((keyword.value for keyword in node.keywords if keyword.arg == name), None)
    given = node.args[1] if given is None and len(node.args) > 1 else given
    return given is None or constant_of(given) not in (1, None)


def _runs_through(outer: Object, schedule: Object) -> bool:
    """Say whether a schedule is another one, or one of those that it goes through."""
    return outer is schedule or any(schedule in objects_in(value) for value in outer.given)


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
    followed = next((load for load in loads if _is_trained_after(trace, load)), None)
    line = followed.line if followed is not None else 0 if loads else _line_of_models_alone(roles)
    if not line or not _goes_on(roles) or any(given.kind == "optimizer" for given in _handed_on(trace)):
        return
    says = "a run that goes on loads its model and its place here, and its optimizer begins anew"
    yield fault("state_left_out", line, "likely", says)


def _line_of_models_alone(roles: Roles) -> int:
    """Return the line where a function that trains loads its model, in a branch that a default leaves out.

    0 where anything else is loaded, or where the branch gives the optimizer or its schedule to a function.
    """
    loads = roles.script.named("load_state_dict")
    steps = [step for step in roles.steps if any(step.function == load.function for load in loads)]
    moved = {call.owner for call in (*steps, *roles.schedule_steps)}
    branches = {(load.function, load.conditions) for load in loads}
    given = {
        name
        for call in roles.script.calls
        if (call.function, call.conditions) in branches and call.conditions
        for argument in (*call.node.args, *call.keywords.values())
        for name in map(dotted, ast.walk(argument))
    }
    models = all(load.owner.rpartition(".")[2] in roles.model_names for load in loads)
    early = [load for load in loads if load.conditions and all(load.order < step.order for step in steps)]
    return early[0].line if early and steps and models and moved.isdisjoint(given) else 0


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
