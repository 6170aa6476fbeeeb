"""Which values of a script carry the graph of a model, and so a gradient."""

from __future__ import annotations

import ast
import re

from mldebug_mcp.script.calls import Assignment, constant_of, dotted, values_returned
from mldebug_mcp.script.library import PLAIN_ATTRIBUTES, WITHOUT_GRADIENT
from mldebug_mcp.script.roles import Roles

LOSS_NAME = re.compile(r"loss|criterion|objective", re.IGNORECASE)
MAX_STEPS_FOLLOWED = 8
AFTER_ALL = 1 << 60
"""A place in the order of calls that stands after all of them."""


def carries_graph(
    roles: Roles, node: ast.expr, function: str, order: int = AFTER_ALL, depth: int = MAX_STEPS_FOLLOWED
) -> bool:
    """Say whether a value of a function, at a place in the order of calls, has the graph of a model for certain."""
    if depth == 0:
        return False
    if isinstance(node, ast.Name):
        made = _last_made(roles, node.id, function, order)
        if made is not None and made.place is not None:
            return isinstance(made.value, ast.Call) and _part_carries(roles, made.value, made.place, depth - 1)
        return made is not None and carries_graph(roles, made.value, function, made.order, depth - 1)
    if isinstance(node, ast.Call):
        method = dotted(node.func).rpartition(".")[2]
        if method in WITHOUT_GRADIENT:
            return False
        if roles.calls_model(node) or isinstance(roles.definitions.get(method), ast.FunctionDef):
            return _part_carries(roles, node, None, depth)
    return any(carries_graph(roles, part, function, order, depth - 1) for part in _parts(roles, node))


def _parts(roles: Roles, node: ast.expr) -> list[ast.expr]:
    """Return the parts of an expression whose gradient goes into its value."""
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return [node.operand]
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.Attribute() | ast.Subscript() if not _is_plain(node):
            return [node.value]
        case ast.Call():
            return _given(roles, node)
    return []


def _is_plain(node: ast.Attribute | ast.Subscript) -> bool:
    """Say whether a part has no gradient: `x.shape`, or the indices of `x.max(1)`."""
    if isinstance(node, ast.Attribute):
        return node.attr in PLAIN_ATTRIBUTES
    method = dotted(node.value).rpartition(".")[2] if isinstance(node.value, ast.Call) else ""
    return method in ("max", "min", "topk", "sort") and constant_of(node.slice) == 1


def _last_made(roles: Roles, name: str, function: str, order: int) -> Assignment | None:
    made = roles.assignments_by_name.get((function, name), [])
    return next(
        (assignment for assignment in reversed(made) if assignment.order <= order and not is_running_sum(assignment)),
        None,
    )


def is_running_sum(made: Assignment) -> bool:
    """Say whether an assignment adds to what the name held: `x += y`, `x = x + y` or `x = 0.9 * x + 0.1 * y`."""
    if made.adds:
        return True
    value = made.value
    terms = _terms(value) if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) else []
    factors = [part for term in terms for part in _factors(term)]
    return made.target in map(dotted, factors)


def _factors(node: ast.expr) -> list[ast.expr]:
    """Return what an expression is the product of."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def _terms(node: ast.expr) -> list[ast.expr]:
    """Return what an expression is the sum of."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _part_carries(roles: Roles, node: ast.Call, place: int | None, depth: int) -> bool:
    """Say whether what a model or a function of this file returns has a graph, as the part of a tuple at a place."""
    if roles.calls_model(node):
        call = roles.call_of(node)
        return place in (None, 0) and call is not None and not roles.gradients_off(call)
    helper = roles.definitions.get(dotted(node.func).rpartition(".")[2])
    return isinstance(helper, ast.FunctionDef) and _returns_graph(roles, helper, place, depth)


def _given(roles: Roles, node: ast.Call) -> list[ast.expr]:
    """Return what a method of a tensor, a function of PyTorch or a loss is called on; nothing for other functions."""
    name = dotted(node.func)
    of_library = re.match(r"(?:torch|F|nn)\.", name) or name in roles.losses
    if of_library or LOSS_NAME.search(name.rpartition(".")[2]):
        listed = [arg.elts if isinstance(arg, ast.List | ast.Tuple) else [arg] for arg in node.args]
        return [part for parts in listed for part in parts]
    return [node.func.value] if isinstance(node.func, ast.Attribute) else []


def _returns_graph(roles: Roles, helper: ast.FunctionDef, place: int | None, depth: int) -> bool:
    """Say whether a function of this file returns a value with a graph, as the part of a tuple where one is asked."""
    inside = next(
        (call.function for call in roles.script.calls if call.function.rpartition(".")[2] == helper.name), helper.name
    )
    returned = [*filter(None, values_returned(helper))]
    for value in returned:
        part: ast.expr | None = value
        if place is not None:
            part = value.elts[place] if isinstance(value, ast.Tuple) and place < len(value.elts) else None
        if part is not None and carries_graph(roles, part, inside, depth=depth - 1):
            return True
    return False
