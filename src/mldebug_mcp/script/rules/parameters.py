"""Does the optimizer have all parameters of the model?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from mldebug_mcp.script.calls import Assignment, Call, calls_in, constant_of, dotted
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
    names = {module.name for module in roles.modules}
    added = roles.uses("add_param_group")
    for name, made in roles.optimizers.items():
        text = ast.unparse(made.value)
        model = next(iter(re.findall(r"(\w[\w.]*)\.parameters\(\)", text)), "")
        for one in roles.script.assignments:
            later = one.order > made.order and one.function == made.function
            new = MODULE.search(dotted(one.value) or "") or (
                isinstance(one.value, ast.Call) and dotted(one.value) in names
            )
            layer = new and one.target.startswith(f"{model}.") and not added
            wrapped = one.target == model and REPLACES_PARAMETERS.search(dotted(one.value) or "")
            if model and later and (layer or wrapped):
                says = f"{one.target} is made after {name}, which does not know its parameters"
                yield fault("made_after_optimizer", one.line, "certain", says)
        yield from _replaced_in_place(roles, name, made, model)
        again = made.loops and any(
            one.function == made.function and one.loops[: len(made.loops)] == made.loops for one in roles.backwards
        )
        nested = made.loops and any(len(one.loops) > len(made.loops) for one in roles.backwards)
        if again and not made.conditions and not _is_sweep(roles, made, model):
            certainty: Certainty = "likely" if nested else "certain"
            says = f"{name} is made anew inside the loop: its moments are lost each time"
            yield fault("optimizer_made_anew", made.line, certainty, says)
        yield from _made_anew_by_callers(roles, name, made)
    yield from _layers_in_a_list(roles)
    yield from _frozen(roles)
    yield from _layers_without_optimizer(roles)


ONE_TRAINING = re.compile(r"epoch|step|iter|loader|batch|range\(", re.IGNORECASE)
SEVERAL_TRAININGS = re.compile(
    r"fold|seed|config|stage|phase|task|grid|trial|run|client|lrs|rates|sizes|experience|round|cycle|domain|models|member",
    re.IGNORECASE,
)
"""What loops over parts of one training go through, and what loops over trainings of their own."""


def _made_anew_by_callers(roles: Roles, name: str, made: Assignment) -> Iterator[Fault]:
    """Yield where a function that trains makes its optimizer, and a loop over passes or batches calls it."""
    call = roles.call_of(made.value) if isinstance(made.value, ast.Call) else None
    trains = [backward for backward in roles.backwards if backward.function == made.function]
    models = set(re.findall(r"(\w[\w.]*)\.(?:named_)?parameters\(\)", ast.unparse(made.value)))
    local = any(one.target in models and one.function == made.function for one in roles.script.assignments)
    own_epochs = any(len(backward.loops) > 1 for backward in trains)
    if call is None or made.loops or made.conditions or not trains or not models or local or own_epochs:
        return
    for caller in roles.precise_callers(made.function):
        loop = next((node for node in ast.walk(roles.script.tree) if _is_loop_of(node, caller)), None)
        through = f"{ast.unparse(loop.target)} in {ast.unparse(loop.iter)}" if loop is not None else ""
        definition = roles.definitions.get(made.function.rpartition(".")[2])
        parameters = [one.arg for one in definition.args.args] if isinstance(definition, ast.FunctionDef) else []
        given = {*map(dotted, caller.node.args), *map(dotted, caller.keywords.values()), *models}
        anew = any(
            one.target in given and one.loops and one.function == caller.function for one in roles.script.assignments
        )
        own = models & set(parameters) or all(model.startswith("self.") for model in models) or not parameters
        if own and ONE_TRAINING.search(through) and not SEVERAL_TRAININGS.search(through) and not anew:
            certainty: Certainty = "likely" if trains[0].loops else "certain"
            says = (
                f"{name} is made anew at each call from line {caller.line}, in a loop: its moments are lost each time"
            )
            yield fault("optimizer_made_anew", made.line, certainty, says)
            return


def _is_loop_of(node: ast.AST, call: Call) -> TypeGuard[ast.For]:
    """Say whether a part of the syntax tree is the innermost loop around a call."""
    return isinstance(node, ast.For) and node.lineno in call.loops[-1:]


def unfrozen_outside_optimizer(roles: Roles) -> Iterator[Fault]:
    """Layers are unfrozen after the optimizer was given those that were free, and are never given to it."""
    if roles.uses("add_param_group"):
        return
    frozen = {key for key, free, _, _ in _switches(roles) if not free}
    for name, made in roles.optimizers.items():
        source = ast.unparse(made.value)
        for part in ast.walk(made.value):
            one = roles.script.assigned(part.id, made.order) if isinstance(part, ast.Name) else None
            source += ast.unparse(one.value) if one is not None else ""
        again = [one for one in roles.script.assignments if one.target == name and one.line > made.line]
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


def _is_sweep(roles: Roles, made: Assignment, model: str) -> bool:
    """Say whether a model is made in the same loop: each round is a training of its own."""
    return any(
        one.loops == made.loops
        and one.function == made.function
        and (one.target == model or re.search(r"model|net", one.target))
        and isinstance(one.value, ast.Call)
        and not re.search(r"\.to$|\.cuda$|\.train$", dotted(one.value))
        for one in roles.script.assignments
    )


def _layers_in_a_list(roles: Roles) -> Iterator[Fault]:
    """Yield attributes of a model that hold layers in a plain list, tuple or mapping, which the model does not see."""
    for module in roles.modules:
        made = [one for one in roles.script.assignments if module.name in one.function.split(".")[:-1]]
        own = {one.target: one for one in reversed(made) if re.fullmatch(r"self\.\w+", one.target) and not one.adds}
        for one in own.values():
            names = {one.target, *([one.value.id] if isinstance(one.value, ast.Name) else [])}
            starts = [other.value for other in made if other.target in names and other.function == one.function]
            if not any(_is_container(value) for value in starts):
                continue
            held = [value for value in starts if _is_container(value)]
            held += [
                other.value for other in made if other.target in names and (other.adds or other.target != one.target)
            ]
            held += _put_into(module, names)
            layers = any(_makes_layers(roles, name) for value in held for name in calls_in(value))
            if layers and not _is_registered(roles, module, names):
                says = f"{one.target} keeps layers in a plain list: the model does not know them"
                yield fault("layers_in_a_list", one.line, "certain", says)


CONTAINERS = ast.List | ast.ListComp | ast.Dict | ast.DictComp | ast.Tuple


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
    helper = roles.definitions.get(name.rpartition(".")[2])
    returned = [node.value for node in ast.walk(helper) if isinstance(node, ast.Return)] if helper is not None else []
    return any(HAS_PARAMETERS.search(called) for value in returned if value is not None for called in calls_in(value))


REGISTERS = re.compile(r"(?:ModuleList|ModuleDict|Sequential|ParameterList|add_module|register_module|setattr)$")


def _is_registered(roles: Roles, module: ast.ClassDef, names: set[str]) -> bool:
    """Say whether layers of a list become known after all: they are wrapped, or their parameters are asked for."""
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and REGISTERS.search(dotted(node.func))]
    if any(dotted(part) in names for call in calls for arg in call.args for part in ast.walk(arg)):
        return True
    if any(re.search(r"add_module|register_module|setattr", dotted(call.func)) for call in calls):
        return True
    last = {name.rpartition(".")[2] for name in names}
    through = [node for node in ast.walk(roles.script.tree) if isinstance(node, ast.For | ast.comprehension)]
    walks = [
        ast.unparse(node.iter)
        for node in through
        if any(dotted(part).rpartition(".")[2] in last for part in ast.walk(node.iter))
    ]
    walked = {dotted(node.target) for node in through if ast.unparse(node.iter) in walks}
    return any(call.owner in walked for call in roles.script.named("parameters"))


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
