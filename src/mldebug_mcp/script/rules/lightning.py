"""What a module of Lightning does: its step gives a loss with its graph back, and what is monitored is logged."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import Call, constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import CUT
from mldebug_mcp.script.roles import Roles


def step_gives_loss(roles: Roles) -> Iterator[Fault]:
    """A training step gives back no loss, one without its graph, or one that Lightning divides once more."""
    for module, step in _modules(roles):
        by_hand = "automatic_optimization" in ast.unparse(module) or "manual_backward" in ast.unparse(module)
        if not by_hand:
            yield from _of_step(roles, module, step)


STEP = "training_step"


def _modules(roles: Roles) -> Iterator[tuple[ast.ClassDef, ast.FunctionDef]]:
    """Yield the modules of Lightning that stand in the file, each with its training step."""
    for module in ast.walk(roles.script.tree):
        bases = [dotted(base).rpartition(".")[2] for base in module.bases] if isinstance(module, ast.ClassDef) else []
        if not isinstance(module, ast.ClassDef) or "LightningModule" not in bases:
            continue
        step = next((node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == STEP), None)
        if step is not None:
            yield module, step


def _of_step(roles: Roles, module: ast.ClassDef, step: ast.FunctionDef) -> Iterator[Fault]:
    returned = [node for node in ast.walk(step) if isinstance(node, ast.Return) and node.value is not None]
    yields = any(isinstance(node, ast.Raise | ast.Yield) for node in ast.walk(step))
    if not returned and not yields and len(step.body) > 1:
        says = f"training_step of {module.name} returns no loss: Lightning makes no step"
        yield fault("no_backward", step.lineno, "certain", says, fix="return the loss")
    for node in returned:
        value = _of_key(node.value)
        source = _last_value(step, value) if isinstance(value, ast.Name) else value
        method = dotted(source.func).rpartition(".")[2] if isinstance(source, ast.Call) else ""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and method in CUT:
            says = f"the loss that training_step returns is cut off from the model by {method}()"
            yield fault("loss_cut_off", node.lineno, "certain", says)
        if isinstance(source, ast.BinOp) and isinstance(source.op, ast.Div):
            yield from _divided(roles, source)


def _divided(roles: Roles, loss: ast.BinOp) -> Iterator[Fault]:
    for call in roles.script.named("Trainer"):
        given = call.keywords.get("accumulate_grad_batches")
        if given is None or constant_of(given) in (None, 1):
            same = given is not None and dotted(given) and dotted(given) == dotted(loss.right)
        else:
            same = constant_of(given) == constant_of(loss.right) or "accum" in ast.unparse(loss.right)
        if same:
            says = f"the loss is divided by {ast.unparse(loss.right)}, and the Trainer divides it once more"
            yield fault("divided_twice", loss.lineno, "certain", says)


def _of_key(node: ast.expr | None) -> ast.expr | None:
    """Return what a mapping has under "loss"; another value as it is."""
    if isinstance(node, ast.Dict):
        return next(
            (value for key, value in zip(node.keys, node.values, strict=True) if constant_of(key) == "loss"), node
        )
    return node


def _last_value(step: ast.FunctionDef, name: ast.Name) -> ast.expr:
    made = [
        node.value
        for node in ast.walk(step)
        if isinstance(node, ast.Assign) and any(dotted(target) == name.id for target in node.targets)
    ]
    return made[-1] if made else name


def never_stepped_by_hand(roles: Roles) -> Iterator[Fault]:
    """A module turns automatic optimization off, and nothing in the file makes a step in its place."""
    for module, step in _modules(roles):
        off = next((node for node in ast.walk(module) if isinstance(node, ast.Assign) and _turns_off(node)), None)
        if off is None or "step" in {call.method for call in roles.script.calls}:
            continue
        certainty: Certainty = "likely" if roles.uses("optimizers") else "certain"
        says = f"automatic_optimization is off (line {off.lineno}), and training_step of {module.name} makes no step"
        fix = "call manual_backward(loss), step() and zero_grad() there, or leave automatic_optimization on"
        yield fault("no_step", step.lineno, certainty, says, fix=fix, lines=(off.lineno,))


def monitored_never_logged(roles: Roles) -> Iterator[Fault]:
    """A callback waits for a metric that the module never logs."""
    modules = [module for module, _ in _modules(roles)]
    logged = [name for call in roles.script.named("log", "log_dict") for name in _names_logged(roles, call)]
    if len(modules) != 1 or len(modules[0].bases) != 1 or not logged or "" in logged:
        return
    for call in roles.script.named("ModelCheckpoint", "EarlyStopping"):
        monitor = roles.value_of(call.keywords.get("monitor"))
        if isinstance(monitor, str) and _OF_A_LOADER.sub("", monitor) not in logged:
            says = f"{call.method} monitors {monitor}, and the module logs {', '.join(dict.fromkeys(logged))} alone"
            yield fault("monitored_never_logged", call.line, "certain", says)


_OF_A_LOADER = re.compile(r"(?:_epoch|_step)?(?:/dataloader_idx_\d+)?$")
"""What Lightning adds to a name that was logged of steps and of passes, or of several loaders."""


def _turns_off(node: ast.Assign) -> bool:
    """Say whether a statement turns automatic optimization off, under whatever name the module has there."""
    if constant_of(node.value) is not False:
        return False
    return any(dotted(target).endswith(".automatic_optimization") for target in node.targets)


def _names_logged(roles: Roles, call: Call) -> list[str]:
    """Return the names under which a call logs metrics; an empty one among them where they are not written out."""
    if not call.owner or "." in call.owner:
        return []  # of a logger, which no callback reads
    first = call.node.args[0] if call.node.args else call.keywords.get("name") or call.keywords.get("dictionary")
    if call.method == "log_dict":
        names = first.keys if isinstance(first, ast.Dict) else [None]
        return [name if isinstance(name := roles.value_of(key), str) else "" for key in names]
    name = roles.value_of(first)
    return [name if isinstance(name, str) else ""]
