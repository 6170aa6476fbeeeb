"""Does each part of the loss have the sign that makes it better when smaller?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import names_in
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.terms import Quantity, sign_of

ALONE: dict[Quantity, str] = {
    "log_prob": "the loss is a log-probability without a minus: training makes the data less likely",
    "similarity": "the loss is a cosine similarity without a minus: training makes what belongs together less alike",
    "log_sigmoid": "the loss is a log-sigmoid without a minus: training makes the preferred less likely",
}
"""Quantities that a loss should make larger, where it is made of them alone."""


def loss_has_wrong_sign(roles: Roles) -> Iterator[Fault]:
    """A part of the loss is made larger where it should be made smaller, or the other way round."""
    if "maximize=True" in roles.source:
        return
    if not roles.steps and not roles.uses("jax", "Trainer", "optax"):
        return
    for event in roles.trace.of("loss"):
        signs: dict[Quantity, dict[int, int]] = {}
        for term in event.terms:
            signs.setdefault(term.quantity, {})[term.sign] = term.line
        lines = {
            quantity: next(iter(line_by_sign.values()))
            for quantity, line_by_sign in signs.items()
            if len(line_by_sign) == 1
        }
        sign = {
            quantity: next(iter(line_by_sign)) for quantity, line_by_sign in signs.items() if len(line_by_sign) == 1
        }
        whole = sign.get("other") == -1 or ("log_prob" not in sign and _is_negated_sum(roles, event.node))
        ascends = whole and set(sign.values()) == {-1}  # an attack makes all of a loss larger
        if sign.get("kl") == -1 and not ascends:
            says = "the divergence has a minus in the loss: training makes it as large as it can"
            yield fault("loss_sign", lines["kl"], "likely", says)
        if sign.get("policy") == 1:
            says = "log-probabilities times advantages are made smaller: good actions become less likely"
            yield fault("loss_sign", lines["policy"], "likely", says)
        if sign.get("entropy") == 1 and "policy" in sign:
            says = "the entropy of the policy is added to the loss: training takes exploration away"
            yield fault("entropy_sign", lines["entropy"], "likely", says)
        for quantity, says in ALONE.items():
            if set(signs) == {quantity} and sign.get(quantity) == 1 and not _is_bounded(roles, lines[quantity]):
                yield fault("loss_sign", lines[quantity], "likely", says)


def _is_bounded(roles: Roles, line: int) -> bool:
    """Say whether a quantity counts above a bound alone, as that of pairs which do not belong together does."""
    statements = [node for node in ast.walk(roles.script.tree) if isinstance(node, ast.stmt) and node.lineno == line]
    return any(re.search(r"clamp|relu|max\(|abs\(", ast.unparse(node)) for node in statements)


def _is_negated_sum(roles: Roles, node: ast.AST) -> bool:
    """Say whether gradients are computed of a sum that has a minus as a whole: `-1.0 * (a + b)`."""
    names = names_in(node)
    for made in roles.script.assignments:
        value = made.value
        parts: list[ast.expr] = []
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
            parts = [value.operand]
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and sign_of(value) < 0:
            parts = [value.left, value.right]
        if made.target in names and any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add) for part in parts):
            return True
    return False
