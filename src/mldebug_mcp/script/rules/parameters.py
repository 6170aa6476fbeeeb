"""Does the optimizer have all parameters of the model?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Assignment, calls_in, constant_of, dotted
from mldebug_mcp.script.faults import Certainty, Fault, fault
from mldebug_mcp.script.roles import MODULE, Roles


def parameters_left_out(roles: Roles) -> Iterator[Fault]:
    """Parameters that the optimizer does not know, or that are frozen."""
    for name, made in roles.optimizers.items():
        text = ast.unparse(made.value)
        model = next(iter(re.findall(r"(\w[\w.]*)\.parameters\(\)", text)), "")
        for one in roles.script.assignments:
            later = one.order > made.order and one.function == made.function
            layer = MODULE.search(dotted(one.value) or "") and one.target.startswith(f"{model}.")
            wrapped = one.target == model and re.search(r"get_peft_model|prepare_model_for", dotted(one.value) or "")
            if model and later and (layer or wrapped):
                says = f"{one.target} is made after {name}, which does not know its parameters"
                yield fault("made_after_optimizer", one.line, "certain", says)
        again = made.loops and any(
            one.function == made.function and one.loops[: len(made.loops)] == made.loops for one in roles.backwards
        )
        nested = made.loops and any(len(one.loops) > len(made.loops) for one in roles.backwards)
        if again and not _is_sweep(roles, made):
            certainty: Certainty = "likely" if nested else "certain"
            says = f"{name} is made anew inside the loop: its moments are lost each time"
            yield fault("optimizer_made_anew", made.line, certainty, says)
    for module in roles.modules:
        for node in ast.walk(module):
            if not isinstance(node, ast.Assign) or not any(
                dotted(target).startswith("self.") for target in node.targets
            ):
                continue
            listed = isinstance(node.value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)
            if (
                listed
                and any(MODULE.search(name) for name in calls_in(node.value))
                and not _wrapped_later(module, dotted(node.targets[0]))
            ):
                says = f"{dotted(node.targets[0])} keeps layers in a plain list: the model does not know them"
                yield fault("layers_in_a_list", node.lineno, "certain", says)
    yield from _frozen(roles)


def _is_sweep(roles: Roles, made: Assignment) -> bool:
    """Say whether a model is made in the same loop: each round is a training of its own."""
    return any(
        one.loops == made.loops and one.function == made.function and re.search(r"model|net", one.target)
        and isinstance(one.value, ast.Call) and not re.search(r"\.to$|\.cuda$|\.train$", dotted(one.value))
        for one in roles.script.assignments
    )  # fmt: skip


def _wrapped_later(module: ast.ClassDef, name: str) -> bool:
    text = ast.unparse(module)
    return bool(
        re.search(rf"(?:ModuleList|ModuleDict|Sequential)\(\*?{re.escape(name)}\)|add_module|register_module", text)
    )


def _frozen(roles: Roles) -> Iterator[Fault]:
    frozen = [
        one
        for one in roles.script.assignments
        if one.target.endswith(".requires_grad") and constant_of(one.value) is False
    ]
    freed = any(
        one.target.endswith(".requires_grad") and constant_of(one.value) is True for one in roles.script.assignments
    )
    calls = [one for one in roles.script.named("requires_grad_") if one.constant("requires_grad", 0) is False]
    freed = freed or any(one.constant("requires_grad", 0) is not False for one in roles.script.named("requires_grad_"))
    for one in frozen:
        through = roles.script.loops.get(one.loops[-1], "") if one.loops else ""
        model = re.fullmatch(r"(\w+)\.(?:named_)?parameters\(\)", through)
        replaced = model and any(
            other.order > one.order
            and other.target.startswith(f"{model[1]}.")
            and MODULE.search(dotted(other.value) or "")
            for other in roles.script.assignments
        )
        used = model and any(
            f"{model[1]}.parameters()" in ast.unparse(made.value) for made in roles.optimizers.values()
        )
        if model and used and not replaced and not freed and not roles.uses("get_peft_model"):
            says = f"all parameters of {model[1]} are frozen, and the optimizer is given those alone"
            yield fault("all_frozen", one.line, "certain", says)
    for call in calls:
        used = any(f"{call.owner}.parameters()" in ast.unparse(made.value) for made in roles.optimizers.values())
        replaced = any(
            one.order > call.order and one.target.startswith(f"{call.owner}.") for one in roles.script.assignments
        )
        if used and not replaced and not freed:
            says = f"all parameters of {call.owner} are frozen, and the optimizer is given those alone"
            yield fault("all_frozen", call.line, "certain", says)
