"""Is the schedule of the learning rate as long as it moves, and counted in what it moves by?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    argument_of,
    called_name,
    constant_of,
    dotted,
    last_name,
    last_names,
    last_part,
    only_value,
    parameters_of,
    part_of,
    walk,
)
from mldebug_mcp.script.facts import ACCUMULATED, COUNTS, ROWS_OF_BATCH, DataKind, Facts, divided
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import LOADER
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace import Event
from mldebug_mcp.script.values import Constant, Object, facts_of, objects_in

FEWEST_BATCHES = 100
"""Steps to the first change of a schedule below which it counts passes. Chosen: tutorials use 2 to 90 epochs."""
SLOWEST_DECAY = 0.999
"""Factor a batch above which an exponential decay lasts for a run. Chosen: 0.999 halves the learning rate in 693."""
ACCUMULATION = re.compile(r"//?\s*\(?[\w.]*accum|//?\s*[\w.]*grad_acc|updates", re.IGNORECASE)
DIVIDED = re.compile(r"//?\s{0,4}\(?[\w.]{0,80}accum", re.IGNORECASE)
"""How the number of updates is written where it is computed from that of batches."""
HANDS_BACK = re.compile(r"(?:prepare|print|len|isinstance)$")
"""Calls that are given a schedule and do not step it."""
KERAS_LENGTHS = ("decay_steps", "first_decay_steps", "warmup_steps")
COUNT_BATCHES = "count the batches, not the updates"
READS_ONLY = ("get_last_lr", "get_lr", "state_dict", "load_state_dict")
MAX_CALLERS = 3
"""How far up the calls of functions are followed."""
LENGTH = re.compile(r"warm|total|t_max|training_steps|(?:max|num|n)_(?:steps|iters|updates)|horizon|decay_steps", re.I)
"""Names of the lengths of a schedule."""
DATASET = re.compile(r"data_?set|(?:^|_)ds$", re.IGNORECASE)
KEEPS_UNIT = ("int", "round", "ceil", "floor", "float", "max", "min")
SHARES = re.compile(r"world|process|gpus|devices", re.IGNORECASE)
"""Names of how many processes share the work."""
BY_PLACE = {"CosineAnnealingLR": (1,), "OneCycleLR": (2,)}
"""The places of lengths among the arguments of schedules of PyTorch."""
MAX_STEPS_FOLLOWED = 8
"""Assignments and calls that a number is followed through to what it counts."""
HANDLERS = re.compile(r"call|cbs?\b|hook|sched|handler|plugin", re.IGNORECASE)
"""What loops go through that call each handler of an event once."""


def schedule_out_of_step(roles: Roles) -> Iterator[Fault]:
    """A schedule is stepped at the wrong pace, or never."""
    if not roles.trains_by_hand:
        return
    for name, made in roles.schedules.items():
        yield from _pace(roles, name, made)


def _pace(roles: Roles, name: str, made: Assignment) -> Iterator[Fault]:
    steps = [call for call in roles.schedule_steps if _steps_schedule(roles, call, name, made)]
    if any(step.node.args for step in steps):
        return  # it is given its place
    kind = dotted(made.value)
    if not steps:
        own = name.startswith("self.")
        if (own or "." not in name) and not _is_used(roles, name, made):
            says = f"{name} is made and never stepped: the learning rate stays at its first value"
            certainty: Certainty = "likely" if own else "certain"
            yield fault("schedule_never_stepped", made.line, certainty, says, fix=f"call {name}.step()")
        return
    often = [step for step in steps if not any(re.search(r"%|len\(", test) for test in step.conditions)]
    per_batch = next((step for step in often if _is_of_batches(roles, step)), None)
    through_data = per_batch is not None and _is_over_data(roles, per_batch)
    first = _first_change(roles, made)
    around = [roles.script.loops.get(line, "") for line in (per_batch.loops[:-1] if per_batch is not None else ())]
    of_passes = 0 < first < FEWEST_BATCHES or any(f"range({first})" in through for through in around)
    if per_batch is not None and through_data and of_passes:
        says = f"{name} counts epochs ({ast.unparse(made.value)[:80]}), and is stepped at every batch"
        yield fault("schedule_per_batch", per_batch.line, "likely", says)
    yield from _accumulated(roles, name, made, steps)
    gamma = _second_argument(roles, made, "gamma")
    if per_batch is not None and "Exponential" in kind and isinstance(gamma, float) and gamma < SLOWEST_DECAY:
        says = f"{name} multiplies the learning rate by {gamma} at every batch"
        yield fault("schedule_decays_per_batch", per_batch.line, "likely", says)


def _steps_schedule(roles: Roles, step: Call, name: str, made: Assignment) -> bool:
    """Say whether a call steps this schedule, and not one of its name that another function made for itself."""
    last = last_part(name)
    if last_part(step.owner) != last:
        return False
    own = roles.assignments_by_name.get((step.function, step.owner), [])
    return step.function == made.function or not any(isinstance(other.value, ast.Call) for other in own)


def _accumulated(roles: Roles, name: str, made: Assignment, steps: Sequence[Call]) -> Iterator[Fault]:
    """Yield a schedule that counts updates of several batches, and is stepped at each batch."""
    by_engine = roles.uses("accumulate", "Accelerator", "deepspeed")
    if by_engine or not ACCUMULATION.search(_spelled(roles, made.value, made.function)):
        return
    for step in steps:
        updates = [update for update in roles.steps if update.function == step.function and update.conditions]
        seldom = [update for update in updates if any("%" in test for test in update.conditions)]
        if not seldom or not step.loops or step.loops[: len(seldom[0].loops)] != seldom[0].loops:
            continue
        if not step.conditions:
            says = f"{name} counts updates of several batches each, and is stepped at every batch"
            yield fault("schedule_per_batch", step.line, "likely", says)


def _spelled(roles: Roles, node: ast.expr, function: str, depth: int = 4) -> str:
    """Return the text of a value with what the names in it were assigned."""
    text = ast.unparse(node)
    names = {part.id for part in walk(node, ast.Name)} if depth else set()
    for name in sorted(names):
        known = roles.assignments_by_name.get((function, name), []) + roles.assignments_by_name.get(("", name), [])
        if known and known[-1].value is not node and not isinstance(known[-1].value, ast.Call | ast.Lambda):
            text += f" {_spelled(roles, known[-1].value, function, depth - 1)}"
    return text


def _is_used(roles: Roles, name: str, made: Assignment) -> bool:
    """Say whether anything may step a schedule: a call of it, another file that is given it, a list that holds it."""
    last, names = last_part(name), roles.also_called(name)
    for call in roles.script.calls:
        of_it = call.method in names or (last_part(call.owner) in names and call.method not in READS_ONLY)
        if of_it and call.line != made.line:
            return True
    if any(roles.is_handed_on(known, except_to=HANDS_BACK) for known in names) or roles.is_kept(last):
        return True
    others = [other for other in roles.script.assignments if other.last != last]
    return any(dotted(other.value) == name for other in others)


def _first_change(roles: Roles, made: Assignment) -> int:
    """Return after how many steps a schedule of epochs changes first, or is through; 0 where that is not known."""
    kind = last_name(made.value)
    argument = {"StepLR": "step_size", "CosineAnnealingLR": "T_max", "MultiStepLR": "milestones"}.get(kind)
    value = _second_argument(roles, made, argument) if argument else None
    return value if isinstance(value, int) else 0


def _second_argument(roles: Roles, made: Assignment, name: str) -> object:
    call = made.value
    if not isinstance(call, ast.Call):
        return None
    given = roles.spelled_out(argument_of(call, name, 1))
    if isinstance(given, ast.List | ast.Tuple) and given.elts:
        given = given.elts[0]
    return constant_of(given)


def _is_of_batches(roles: Roles, step: Call, depth: int = MAX_CALLERS) -> bool | None:
    """Say whether a schedule is stepped once a batch; None where the file does not tell."""
    updates = roles.steps or roles.backwards
    same = [update for update in updates if update.function == step.function]
    if any(update.loops and step.loops[: len(update.loops)] == update.loops for update in same):
        return True
    if any(update.loops for update in same):
        return False
    inside = {call.method for call in roles.script.calls if step.loops and call.loops[: len(step.loops)] == step.loops}
    called = [update for update in updates if last_part(update.function) in inside]
    if called:
        return not any(update.loops for update in called)
    callers = roles.callers(step.function) if depth and not step.loops else []
    answers = {_is_of_batches(roles, caller, depth - 1) for caller in callers}
    return answers.pop() if len(answers) == 1 else None


def _is_over_data(roles: Roles, step: Call) -> bool:
    """Say whether the innermost loop around a call goes through data, and not through numbers of epochs or steps."""
    lines = step.loops or next((caller.loops for caller in roles.callers(step.function) if caller.loops), ())
    through = roles.script.loops.get(lines[-1], "") if lines else ""
    return bool(through) and not re.search(r"^(?:tqdm\()?t?range\(|epoch", through)


def schedule_of_another_optimizer(roles: Roles) -> Iterator[Fault]:
    """Two schedules move one optimizer, and another optimizer, made for the second of them, has none."""
    trace = roles.trace
    schedules = [schedule for schedule in trace.objects if schedule.kind == "schedule"]
    optimizers = [optimizer for optimizer in trace.objects if optimizer.kind == "optimizer"]
    if (
        len(optimizers) < 2
        or len(schedules) != len(optimizers)
        or len({schedule.made_by for schedule in schedules}) > 1
    ):
        return
    moved = [next((part for part in schedule.given if isinstance(part, Object)), None) for schedule in schedules]
    owners = [owner for owner in moved if owner is not None]
    free = [optimizer for optimizer in optimizers if optimizer not in owners]
    twice = [schedule for schedule, owner in zip(schedules, owners, strict=False) if owners.count(owner) > 1]
    if len(owners) == len(schedules) and free and twice:
        wrong = twice[-1]
        says = f"{wrong.label} moves {owners[-1].label} a second time, and {free[0].label} has no schedule"
        yield fault("schedule_of_another", wrong.line, "likely", says)


def made_for_lightning_alone(roles: Roles) -> Iterator[Fault]:
    """A schedule is made for Lightning and not returned to it."""
    for name, made in roles.schedules.items():
        if last_part(made.function) != "configure_optimizers":
            continue
        if "." not in name and not _is_used(roles, name, made):
            says = f"{name} is made and not returned: Lightning does not step it"
            yield fault("schedule_never_stepped", made.line, "certain", says, fix="return it with the optimizer")


def schedule_counts_another_unit(roles: Roles) -> Iterator[Fault]:
    """A schedule is as long as there are rows or batches, and moves on once an update; or the reverse."""
    for made in roles.script.assignments:
        steps = _steps_of(roles, made)
        if not steps or not isinstance(made.value, ast.Call):
            continue
        lengths = {_unit(roles, node, made.function): node for node in _lengths(roles, made.value)}
        paces = {_unit_of_step(roles, step) for step in steps}
        name = made.target
        if "rows" in lengths and not _one_row_a_batch(roles):
            written = ast.unparse(lengths["rows"])[:60]
            says = f"`{written}` counts rows, and {name} moves on once a step: this is as many times too long"
            yield fault("schedule_units", _line_of(roles, lengths["rows"], made.function), "likely", says)
        elif "batches" in lengths and paces == {"updates"}:
            written = ast.unparse(lengths["batches"])[:60]
            says = f"`{written}` counts batches, and {name} moves on once for several of them, with the weights"
            line = _line_of(roles, lengths["batches"], made.function)
            yield fault("schedule_units", line, _certainty(roles, steps[0]), says)
        elif "updates" in lengths and paces == {"batches"}:
            says = f"{name} counts updates of several batches each, and is stepped at every batch"
            yield fault("schedule_per_batch", steps[0].line, "likely", says)


def schedule_at_another_pace(roles: Roles) -> Iterator[Fault]:
    """A schedule whose lengths count passes moves on at each step, or one that counts steps moves on once a pass."""
    trace = roles.trace
    named: set[Object] = set()
    for schedule, interval in trace.intervals if not roles.uses("lr_scheduler_step", "lr_schedulers") else ():
        pace = interval.value if isinstance(interval, Constant) else ""
        facts = _counted(schedule, "epochs" if pace == "step" else "steps" if pace == "epoch" else "")
        if facts is not None and schedule not in named:
            named.add(schedule)
            line = facts_of(interval).line or schedule.line
            yield _at_another_pace(schedule, facts, schedule.line, pace == "step", (line,))
    for event in trace.of("schedule"):
        outer = next(iter(event.objects))
        given = isinstance(event.node, ast.Call) and bool(event.node.args)  # its place
        pace = "" if given else _pace_of(roles, event, outer)
        for schedule in {outer, *_inside(outer)} - named:
            facts = _counted(schedule, "epochs" if pace == "step" else "steps" if pace == "pass" else "")
            if facts is not None:
                named.add(schedule)
                yield _at_another_pace(schedule, facts, event.line, pace == "step", event.lines)


def _inside(schedule: Object) -> Iterator[Object]:
    """Yield the schedules that one runs through, one after the other."""
    yield from (part for value in schedule.given for part in objects_in(value) if part.kind == "schedule")


def keras_counts_batches(roles: Roles) -> Iterator[Fault]:
    """A schedule of Keras counts updates of several batches, and Keras asks it by batches.

    Source: findings/keras_accumulation_hastens_the_schedule.sh.
    """
    for call in roles.script.calls:
        several = call.argument("gradient_accumulation_steps")
        rate = call.argument("learning_rate", 0) if several is not None else None
        schedule = roles.source_of(rate, call) if rate is not None else None
        given = schedule.keywords if isinstance(schedule, ast.Call) else []
        for length in (keyword.value for keyword in given if keyword.arg in KERAS_LENGTHS):
            if DIVIDED.search(_spelled(roles, length, call.function)):
                written = ast.unparse(length)[:60]
                says = (
                    f"`{written}` counts updates, and Keras moves the schedule on at each of the batches between them"
                )
                yield fault("schedule_units", length.lineno, "likely", says, fix=COUNT_BATCHES, lines=(call.line,))


def lengths_differ(roles: Roles) -> Iterator[Fault]:
    """A schedule is given one length in batches and another in updates of several batches."""
    for schedule in roles.trace.objects:
        kinds = {facts.kind: facts.line for facts in schedule.lengths}
        if {"batches", "updates"} <= set(kinds):
            says = f"one length of {schedule.label or 'this schedule'} counts batches, and another updates of several"
            yield fault("schedule_units", schedule.line, "likely", says, lines=(*kinds.values(),))


def _at_another_pace(schedule: Object, facts: Facts, line: int, is_each_step: bool, lines: Sequence[int]) -> Fault:
    counts, moves = ("epochs", "at every batch") if is_each_step else ("batches", "once a pass")
    says = f"{schedule.label} counts {counts} (line {facts.line}), and is stepped {moves}"
    rule = "schedule_per_batch" if is_each_step else "schedule_per_epoch"
    return fault(rule, line, "certain", says, lines=(*lines, facts.line, schedule.line))


def _counted(schedule: Object, what: Literal["epochs", "steps", ""]) -> Facts | None:
    """Return what a schedule counts where all that is known of it counts epochs, or steps."""
    known = [facts for facts in schedule.lengths if facts.kind in COUNTS]
    kinds = {facts.kind for facts in known}
    same = {"epochs": {"epochs"}, "steps": {"batches", "updates", "steps"}, "": set[str]()}[what]
    return known[0] if known and kinds <= same else None


def _pace_of(roles: Roles, event: Event, schedule: Object) -> Literal["step", "pass", ""]:
    moved = [part for value in schedule.given[:1] for part in objects_in(value)]
    steps = [step for step in roles.trace.of("step") if step.entry == event.entry and step.loops]
    steps = [step for step in steps if not moved or not step.objects.isdisjoint(moved)]
    if any(set(event.tests) - set(step.tests) for step in steps) or "Plateau" in schedule.made_by:
        return ""
    depths = {len(step.loops) for step in steps}
    if len(depths) != 1:
        return ""
    depth, own = depths.pop(), event.loop_lines
    shared = max(_shared(own, step.loop_lines) for step in steps)
    through = [roles.script.loops.get(line, "") for line in own]
    if not all(map(HANDLERS.search, through[shared:])):
        return ""
    if shared == depth > 1:
        return "" if re.search(r"range\(.{0,80}epoch", through[shared - 1], re.IGNORECASE) else "step"
    return "pass" if 0 < shared < depth else ""


def _shared(loops: Sequence[int], others: Sequence[int]) -> int:
    """Return how many of the outermost loops are the same."""
    pairs = zip(loops, others, strict=False)
    return next((place for place, (loop, other) in enumerate(pairs) if loop != other), min(len(loops), len(others)))


def _steps_of(roles: Roles, made: Assignment) -> list[Call]:
    if not isinstance(made.value, ast.Call) or made.place is not None:
        return []
    if made.target not in roles.schedules and "sched" not in made.target.lower():
        return []
    names = roles.also_called(made.target)
    calls = [call for call in roles.schedule_steps if last_part(call.owner) in names]
    return [call for call in calls if not call.node.args and not call.node.keywords]


def _lengths(roles: Roles, call: ast.Call) -> Iterator[ast.expr]:
    """Yield the lengths that a schedule is given, or that the function reads which it is given."""
    name = last_name(call)
    for keyword in call.keywords:
        if keyword.arg and LENGTH.search(keyword.arg):
            yield keyword.value
    places = (1, 2) if re.fullmatch(r"get_\w+_with_warmup", name) else BY_PLACE.get(name, ())
    yield from (call.args[place] for place in places if place < len(call.args))
    parameters = parameters_of(roles.definitions.get(name))
    yield from (arg for parameter, arg in zip(parameters, call.args, strict=False) if LENGTH.search(parameter))
    if name == "LambdaLR" and len(call.args) > 1:
        given = call.args[1]
        body = given if isinstance(given, ast.Lambda) else roles.definitions.get(last_name(given))
        for node in ast.walk(body) if body is not None else ():
            if isinstance(node, ast.Name | ast.Attribute) and LENGTH.search(last_name(node)):
                yield node


def _unit_of_step(roles: Roles, step: Call) -> DataKind:
    """Return what a schedule is stepped once for: an update of several batches, a batch, or what is not known."""
    if roles.uses("accumulate", "deepspeed", "Accelerator"):
        return ""
    runs = roles.runs(step)
    if all(any("%" in test and ACCUMULATED.search(test) for test in run.conditions) for run in runs):
        return "updates"
    updates = [update for update in roles.steps if update.function == step.function]
    seldom = [update for update in updates if any(map(ACCUMULATED.search, update.conditions))]
    same = any(step.loops == update.loops and step.loops and not step.conditions for update in seldom)
    return "batches" if same else ""


def _certainty(roles: Roles, step: Call) -> Certainty:
    """Return how sure it is that several batches make an update: the default of a setting may be one."""
    tests = [ast.parse(test, mode="eval") for run in roles.runs(step) for test in run.conditions]
    parts = [part for test in tests for part in walk(test, ast.Name, ast.Attribute)]
    counts = [roles.number_of(part) for part in parts if ACCUMULATED.search(last_name(part))]
    return "depends" if 1 in counts else "likely"


def _one_row_a_batch(roles: Roles) -> bool:
    """Say whether a loader is given no size, so that a batch may be one row."""
    loaders = roles.script.named("DataLoader")
    return not loaders or any(
        len(call.node.args) < 2 and not (call.is_spread or {"batch_size", "batch_sampler"} & {*call.keywords})
        for call in loaders
    )


def _unit(roles: Roles, node: ast.expr, function: str, depth: int = MAX_STEPS_FOLLOWED) -> DataKind:
    """Return what a number counts; empty where that is not known."""
    unit: DataKind = ""
    if depth == 0:
        return unit
    match node:
        case ast.Name() | ast.Attribute():
            unit = _unit_of_name(roles, node, function, depth)
        case ast.Call():
            unit = _unit_of_call(roles, node, function, depth)
        case ast.BinOp(op=ast.Div() | ast.FloorDiv()):
            names = last_names(node.right)
            plain = constant_of(node.right) is not None or any(map(SHARES.search, names))
            unit = divided(_unit(roles, node.left, function, depth - 1), node.right, plain=plain)
        case ast.BinOp(op=ast.Mult()):
            unit = _multiplied(roles, node, function, depth - 1)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            sides = {_unit(roles, side, function, depth - 1) for side in (node.left, node.right)} - {""}
            unit = sides.pop() if len(sides) == 1 else ""
        case ast.UnaryOp():  # the ceiling of a quotient is written as -(-n // k)
            unit = _unit(roles, node.operand, function, depth - 1)
    return unit


def _multiplied(roles: Roles, node: ast.BinOp, function: str, depth: int) -> DataKind:
    """Return what a product counts: that of one factor, unless the other is a number of rows or batches."""
    left, right = (_unit(roles, side, function, depth) for side in (node.left, node.right))
    if left and right:
        return ""
    other = node.right if left else node.left
    names = last_name(other)
    if ACCUMULATED.search(names) or ROWS_OF_BATCH.search(names):
        return ""
    return left or right


def _unit_of_call(roles: Roles, node: ast.Call, function: str, depth: int) -> DataKind:
    name = last_name(node)
    if name == "len" and len(node.args) == 1:
        return _unit_of_length(roles, node.args[0], function, depth)
    if name in KEEPS_UNIT:
        units = {_unit(roles, arg, function, depth - 1) for arg in node.args} - {""}
        return units.pop() if len(units) == 1 else ""
    return _unit_returned(roles, name, None, depth - 1)


def _unit_of_length(roles: Roles, node: ast.expr, function: str, depth: int) -> DataKind:
    """Return what the length of something is: the batches of a loader, the rows of a data set."""
    name = dotted(node)
    last = last_part(name)
    if name in roles.loaders or LOADER.search(last):
        return "batches"
    read = [call.node.args[0] for call in roles.script.named("DataLoader") if call.node.args]
    if last and (any(dotted(part) == name for part in read if not isinstance(part, ast.Call)) or DATASET.search(last)):
        return "rows"
    for given, caller in _arguments_for(roles, name, function):
        return _unit_of_length(roles, given, caller, depth - 1) if depth else ""
    return ""


def _unit_of_name(roles: Roles, node: ast.Name | ast.Attribute, function: str, depth: int) -> DataKind:
    """Return what the value of a name counts: as it was assigned, or as all callers give it."""
    name = dotted(node)
    made = roles.assignments_by_name.get((function, name), [])
    if not made and name.startswith("self."):
        made = roles.script.made(name)
    if not made and not (function and roles.is_parameter(name, function)):
        outer = function.rpartition(".")[0]
        made = roles.assignments_by_name.get((outer, name), []) or roles.assignments_by_name.get(("", name), [])
    if made:
        last = made[-1]
        if last.place is None:
            return _unit(roles, last.value, last.function, depth - 1) if not last.adds else ""
        return _unit_returned(roles, called_name(last.value), last.place, depth - 1)
    units = {_unit(roles, given, caller, depth - 1) for given, caller in _arguments_for(roles, name, function)}
    return units.pop() if len(units) == 1 else ""


def _unit_returned(roles: Roles, name: str, place: int | None, depth: int) -> DataKind:
    """Return what a number counts that a function of this file gives."""
    returned = _returned(roles, name, place)
    return _unit(roles, *returned, depth) if returned is not None else ""


def _returned(roles: Roles, name: str, place: int | None) -> tuple[ast.expr, str] | None:
    """Return what a function of this file gives, as the part of a tuple where a place is asked, and its full name."""
    helper = roles.definitions.get(name)
    if not isinstance(helper, ast.FunctionDef):
        return None
    value = part_of(only_value(helper), place)
    return (value, roles.path_of(name)) if value is not None else None


def _line_of(roles: Roles, node: ast.expr, function: str, depth: int = MAX_STEPS_FOLLOWED) -> int:
    """Return where a length is computed: in the helper that gives it, or where a name gets it."""
    made = roles.assignments_by_name.get((function, dotted(node)), []) if isinstance(node, ast.Name) else []
    if not made or not depth:
        return node.lineno
    called = last_name(made[-1].value.func) if isinstance(made[-1].value, ast.Call) else ""
    returned = _returned(roles, called, made[-1].place)
    if returned is not None:
        return _line_of(roles, *returned, depth - 1)
    return made[-1].line


def _arguments_for(roles: Roles, parameter: str, function: str) -> list[tuple[ast.expr, str]]:
    """Return what callers of this file give a function for a parameter, each with the function of the caller."""
    name = last_part(function)
    owner = roles.definitions.get(last_part(function.rpartition(".")[0]))
    called = owner.name if name == "__init__" and isinstance(owner, ast.ClassDef) else name
    parameters = parameters_of(owner if called != name else roles.definitions.get(name))
    if parameter not in parameters:
        return []
    given = [(call.argument(parameter, parameters.index(parameter)), call) for call in roles.script.named(called)]
    return [(value, call.function) for value, call in given if value is not None]
