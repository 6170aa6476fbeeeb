"""Layers that a configuration chooses: does it end a network in an activation that the loss takes itself?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mldebug_mcp.script.calls import constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules.loss import activation_twice

ACTIVATIONS = {"Softmax": "softmax", "Sigmoid": "sigmoid"}


def activation_of_a_configuration(roles: Roles) -> Iterator[Fault]:
    """A list of layers by name ends in an activation, and the loss of the script takes that itself."""
    taken = set()
    for call in roles.script.calls:
        if roles.is_cross_entropy(call):
            taken.add("softmax")
        elif roles.loss_named(call, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits"):
            taken.add("sigmoid")
    names = {name: kind for name, kind in _named_activations(roles).items() if kind in taken}
    if not names or next(activation_twice(roles), None) is not None:  # the layers were followed from their names
        return
    for node in ast.walk(roles.script.tree):
        parts = node.elts if isinstance(node, ast.List | ast.Tuple) else []
        name = _name_of(parts[-1]) if len(parts) > 1 and all(map(_name_of, parts)) else ""
        if name in names:
            says = f"these layers end in {name!r}, and the loss takes the {names[name]} itself"
            yield fault("activation_twice", parts[-1].lineno, "depends", says)


def _name_of(part: ast.expr) -> str:
    """Return the name of a layer in a list: `"linear"`, `["linear", 10]`, `{"type": "linear"}`; empty for others."""
    if isinstance(part, ast.List | ast.Tuple) and part.elts:
        part = part.elts[0]
    elif isinstance(part, ast.Dict):
        kinds = [value for key, value in zip(part.keys, part.values, strict=True) if constant_of(key) in KINDS]
        part = kinds[0] if kinds else part
    name = constant_of(part)
    return name if isinstance(name, str) else ""


KINDS = ("type", "kind", "name", "layer", "op")
"""Keys under which the settings of a layer name it."""


def _named_activations(roles: Roles) -> dict[str, str]:
    """Return the names by which a script makes an activation: of a mapping, a comparison, or of `nn` itself."""
    found: dict[str, str] = {}
    for node in ast.walk(roles.script.tree):
        if isinstance(node, ast.Dict):
            pairs = [(constant_of(key), value) for key, value in zip(node.keys, node.values, strict=True)]
            found |= {name: kind for name, value in pairs if isinstance(name, str) and (kind := _activation(value))}
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and len(node.test.comparators) == 1:
            name = constant_of(node.test.comparators[0])
            made = [kind for statement in node.body for part in ast.walk(statement) if (kind := _made(part))]
            if isinstance(node.test.ops[0], ast.Eq) and isinstance(name, str) and len(set(made)) == 1:
                found[name] = made[0]
        elif isinstance(node, ast.Call) and dotted(node.func) == "getattr" and node.args:
            found |= ACTIVATIONS if dotted(node.args[0]).rpartition(".")[2] == "nn" else {}
    return found


def _activation(node: ast.expr) -> str:
    """Return the activation that an entry of a mapping is, makes or returns; empty for another."""
    node = node.body if isinstance(node, ast.Lambda) else node
    if isinstance(node, ast.Call):
        return _made(node)
    return ACTIVATIONS.get(dotted(node).rpartition(".")[2], "")


def _made(node: ast.AST) -> str:
    """Return the activation that a call makes; empty for another part."""
    return ACTIVATIONS.get(dotted(node.func).rpartition(".")[2], "") if isinstance(node, ast.Call) else ""
