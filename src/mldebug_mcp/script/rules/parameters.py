"""Does the optimizer have all parameters of the model?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Assignment, calls_in, constant_of, dotted
from mldebug_mcp.script.faults import Certainty, Fault, fault
from mldebug_mcp.script.roles import MODULE, OPTIMIZERS, Roles

REPLACES_PARAMETERS = re.compile(r"get_peft_model|prepare_model_for|FSDP$|FullyShardedDataParallel$")
"""What returns a model whose parameters are others than before."""
HAS_PARAMETERS = re.compile(
    r"(?:^|\.)nn\.(?:Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|\w*Cell|Transformer\w*|MultiheadAttention|\w*Norm\w*)$"
)


def _replaced_in_place(roles: Roles, optimizer: str, made: Assignment, model: str) -> Iterator[Fault]:
    """Yield calls after the optimizer that give a model other parameters: `fully_shard(model)`, new embeddings."""
    for call in roles.script.named("fully_shard", "resize_token_embeddings", "add_adapter"):
        first = dotted(call.node.args[0]) if call.method == "fully_shard" and call.node.args else call.owner
        if model and first == model and call.order > made.order and call.function == made.function:
            says = f"{call.name}() gives {model} other parameters after {optimizer} was made, which has the old ones"
            yield fault("made_after_optimizer", call.line, "certain", says)


def _layers_without_optimizer(roles: Roles) -> Iterator[Fault]:
    """Yield the layers of a model that makes its own optimizers and gives them the parameters of others alone."""
    for module in ast.walk(roles.script.tree):
        if not isinstance(module, ast.ClassDef):
            continue
        text = ast.unparse(module)
        returned = [node for node in ast.walk(module) if isinstance(node, ast.Call) and OPTIMIZERS.search(dotted(node))]
        given = " ".join(ast.unparse(node) for node in returned)
        own = set(re.findall(r"self\.(\w+)\.parameters\(\)", given))
        whole = re.search(r"self\.(?:named_)?parameters\(\)|self\.trainer|\*|\bparams\b|groups", given)
        if not own or whole or "requires_grad" in given:
            continue
        if len(re.findall(r"\.parameters\(\)", text)) > len(re.findall(r"\.parameters\(\)", given)):
            continue
        for node in ast.walk(module):
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


def parameters_left_out(roles: Roles) -> Iterator[Fault]:
    """Parameters that the optimizer does not know, or that are frozen."""
    for name, made in roles.optimizers.items():
        text = ast.unparse(made.value)
        model = next(iter(re.findall(r"(\w[\w.]*)\.parameters\(\)", text)), "")
        for one in roles.script.assignments:
            later = one.order > made.order and one.function == made.function
            layer = MODULE.search(dotted(one.value) or "") and one.target.startswith(f"{model}.")
            wrapped = one.target == model and REPLACES_PARAMETERS.search(dotted(one.value) or "")
            if model and later and (layer or wrapped):
                says = f"{one.target} is made after {name}, which does not know its parameters"
                yield fault("made_after_optimizer", one.line, "certain", says)
        yield from _replaced_in_place(roles, name, made, model)
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
    yield from _layers_without_optimizer(roles)


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
