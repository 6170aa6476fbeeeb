"""Does the schedule of the learning rate go at the pace that it counts in?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Assignment, Call, constant_of, dotted, names_in
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles


def schedule_out_of_step(roles: Roles) -> Iterator[Fault]:
    """A schedule is stepped before the optimizer, at the wrong pace, or never."""
    if not roles.trains_by_hand:
        return
    for step in roles.schedule_steps:
        unit = [one for one in roles.steps if one.function == step.function and one.loops == step.loops]
        if unit and all(one.order > step.order for one in unit):
            says = "scheduler.step() stands before optimizer.step(): the first value of the schedule is skipped"
            yield fault("schedule_first", step.line, "certain", says)
    for name, made in roles.schedules.items():
        yield from _pace(roles, name, made)


def _pace(roles: Roles, name: str, made: Assignment) -> Iterator[Fault]:
    steps = [one for one in roles.schedule_steps if one.owner.rpartition(".")[2] == name.rpartition(".")[2]]
    kind, text = dotted(made.value), ast.unparse(made.value)
    handed_on = [
        one for one in roles.script.calls if name in {dotted(arg) for arg in one.node.args} and one.line != made.line
    ]
    if not steps:
        named = {dotted(value) for one in roles.script.calls for value in one.keywords.values()}
        returned = any(isinstance(node, ast.Return) and name in names_in(node) for node in ast.walk(roles.script.tree))
        if not handed_on and name not in named and not returned and not name.startswith("self."):
            says = f"{name} is made and never stepped: the learning rate stays at its first value"
            yield fault("schedule_never_stepped", made.line, "certain", says, fix=f"call {name}.step()")
        return
    depth = max(len(one.loops) for one in roles.backwards)
    inside = [one for one in steps if _is_of_batches(roles, one)]
    by_epoch = re.search(r"\b(?:n_|num_|max_)?epochs?\b", text, re.IGNORECASE) and not re.search(
        r"len\(|steps|batches|iters", text
    )
    if inside and by_epoch and "Plateau" not in kind:
        says = f"{name} counts epochs ({text[:80]}), and is stepped at every batch: it is through after as many batches"
        yield fault("schedule_per_batch", inside[0].line, "certain", says)
    per_batch = "OneCycle" in kind or re.search(
        r"len\(\s*\w*loader|total_steps|num_training_steps|steps_per_epoch", text
    )
    if per_batch and not inside and depth >= 1 and any(one.loops for one in roles.backwards):
        says = f"{name} counts batches ({text[:80]}), and is stepped once a pass"
        yield fault("schedule_per_epoch", steps[0].line, "certain", says)
    gamma = (
        next((constant_of(one.value) for one in made.value.keywords if one.arg == "gamma"), None)
        if isinstance(made.value, ast.Call)
        else None
    )
    if inside and "Exponential" in kind and isinstance(gamma, float) and gamma < 0.999:
        says = f"{name} multiplies the learning rate by {gamma} at every batch"
        yield fault("schedule_decays_per_batch", inside[0].line, "likely", says)


def _is_of_batches(roles: Roles, step: Call) -> bool:
    """Say whether a schedule is stepped in the loop in which gradients are computed."""
    return any(
        one.function == step.function and one.loops and step.loops[: len(one.loops)] == one.loops
        for one in roles.backwards
    )
