"""Does the schedule of the learning rate go at the pace that it counts in?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import Assignment, Call, constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.values import Object


def schedule_out_of_step(roles: Roles) -> Iterator[Fault]:
    """A schedule is stepped at the wrong pace, or never."""
    if not roles.trains_by_hand:
        return
    for name, made in roles.schedules.items():
        yield from _pace(roles, name, made)


FEWEST_BATCHES = 100
"""Steps to the first change of a schedule below which it counts passes. Chosen: tutorials use 2 to 90 epochs."""
SLOWEST_DECAY = 0.999
"""Factor a batch above which an exponential decay lasts for a run. Chosen: 0.999 halves the learning rate in 693."""


def _pace(roles: Roles, name: str, made: Assignment) -> Iterator[Fault]:
    steps = [call for call in roles.schedule_steps if _is_of(roles, call, name, made)]
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
    gamma = _argument(roles, made, "gamma", 1)
    if per_batch is not None and "Exponential" in kind and isinstance(gamma, float) and gamma < SLOWEST_DECAY:
        says = f"{name} multiplies the learning rate by {gamma} at every batch"
        yield fault("schedule_decays_per_batch", per_batch.line, "likely", says)


def _is_of(roles: Roles, step: Call, name: str, made: Assignment) -> bool:
    """Say whether a call steps this schedule, and not one of its name that another function made for itself."""
    last = name.rpartition(".")[2]
    if step.owner.rpartition(".")[2] != last:
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


ACCUMULATION = re.compile(r"//?\s*\(?[\w.]*accum|//?\s*[\w.]*grad_acc|updates", re.IGNORECASE)


def _spelled(roles: Roles, node: ast.expr, function: str, depth: int = 4) -> str:
    """Return the text of a value with what the names in it were assigned."""
    text = ast.unparse(node)
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} if depth else set()
    for name in sorted(names):
        known = roles.assignments_by_name.get((function, name), []) + roles.assignments_by_name.get(("", name), [])
        if known and known[-1].value is not node and not isinstance(known[-1].value, ast.Call | ast.Lambda):
            text += f" {_spelled(roles, known[-1].value, function, depth - 1)}"
    return text


def _is_used(roles: Roles, name: str, made: Assignment) -> bool:
    """Say whether anything may step a schedule: a call of it, another file that is given it, a list that holds it."""
    last, names = name.rpartition(".")[2], roles.also_called(name)
    for call in roles.script.calls:
        of_it = call.method in names or (call.owner.rpartition(".")[2] in names and call.method not in READS_ONLY)
        if of_it and call.line != made.line:
            return True
    if any(roles.is_handed_on(known, except_to=HANDS_BACK) for known in names) or roles.is_kept(last):
        return True
    others = [other for other in roles.script.assignments if other.target.rpartition(".")[2] != last]
    return any(dotted(other.value) == name for other in others)


HANDS_BACK = re.compile(r"(?:prepare|print|len|isinstance)$")
"""Calls that are given a schedule and do not step it."""
READS_ONLY = ("get_last_lr", "get_lr", "state_dict", "load_state_dict")


def _first_change(roles: Roles, made: Assignment) -> int:
    """Return after how many steps a schedule of epochs changes first, or is through; 0 where that is not known."""
    kind = dotted(made.value).rpartition(".")[2]
    argument = {"StepLR": "step_size", "CosineAnnealingLR": "T_max", "MultiStepLR": "milestones"}.get(kind)
    value = _argument(roles, made, argument, 1) if argument else None
    return value if isinstance(value, int) else 0


def _argument(roles: Roles, made: Assignment, name: str, place: int) -> object:
    """Return the value of an argument of a schedule; of a list its first."""
    call = made.value
    if not isinstance(call, ast.Call):
        return None
    given = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    given = call.args[place] if given is None and place < len(call.args) else given
    given = roles.spelled_out(given)
    if isinstance(given, ast.List | ast.Tuple) and given.elts:
        given = given.elts[0]
    return constant_of(given)


MAX_CALLERS = 3
"""How far up the calls of functions are followed."""


def _is_of_batches(roles: Roles, step: Call, depth: int = MAX_CALLERS) -> bool | None:
    """Say whether a schedule is stepped once a batch; None where the file does not tell."""
    updates = roles.steps or roles.backwards
    same = [update for update in updates if update.function == step.function]
    if any(update.loops and step.loops[: len(update.loops)] == update.loops for update in same):
        return True
    if any(update.loops for update in same):
        return False
    inside = {call.method for call in roles.script.calls if step.loops and call.loops[: len(step.loops)] == step.loops}
    called = [update for update in updates if update.function.rpartition(".")[2] in inside]
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


def made_for_lightning_alone(roles: Roles) -> Iterator[Fault]:
    """A schedule is made for Lightning and not returned to it."""
    for name, made in roles.schedules.items():
        if made.function.rpartition(".")[2] != "configure_optimizers":
            continue
        if "." not in name and not _is_used(roles, name, made):
            says = f"{name} is made and not returned: Lightning does not step it"
            yield fault("schedule_never_stepped", made.line, "certain", says, fix="return it with the optimizer")


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
    moved_optimizers = [
        [argument for argument in schedule.given if isinstance(argument, Object)][:1] for schedule in schedules
    ]
    owners = [owner[0] for owner in moved_optimizers if owner]
    free = [optimizer for optimizer in optimizers if optimizer not in owners]
    twice = [
        schedule
        for schedule, owner in zip(schedules, moved_optimizers, strict=True)
        if owner and owners.count(owner[0]) > 1
    ]
    if len(owners) == len(schedules) and free and twice:
        wrong = twice[-1]
        says = f"{wrong.label} moves {owners[-1].label} a second time, and {free[0].label} has no schedule"
        yield fault("schedule_of_another", wrong.line, "likely", says)
