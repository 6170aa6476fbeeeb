"""What a step of Lightning gives back: a loss with its graph, divided once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mldebug_mcp.script.calls import constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import CUT
from mldebug_mcp.script.roles import Roles


def step_gives_loss(roles: Roles) -> Iterator[Fault]:
    """A training step gives back no loss, one without its graph, or one that Lightning divides once more."""
    for module in ast.walk(roles.script.tree):
        bases = [dotted(base).rpartition(".")[2] for base in module.bases] if isinstance(module, ast.ClassDef) else []
        if not isinstance(module, ast.ClassDef) or "LightningModule" not in bases:
            continue
        step = next((node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == STEP), None)
        by_hand = "automatic_optimization" in ast.unparse(module) or "manual_backward" in ast.unparse(module)
        if step is not None and not by_hand:
            yield from _of_step(roles, module, step)


STEP = "training_step"


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
