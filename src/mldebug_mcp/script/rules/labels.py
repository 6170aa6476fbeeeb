"""Are labels shifted once?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles


def labels_shifted(roles: Roles) -> Iterator[Fault]:
    """Labels are shifted twice, or not at all."""
    for call in roles.script.calls:
        labels, ids = call.keywords.get("labels"), call.keywords.get("input_ids")
        ids = ids if ids is not None else call.node.args[0] if call.node.args else None
        if (
            labels is not None
            and ids is not None
            and _cut(roles, labels, call) == "first"
            and _cut(roles, ids, call) == "last"
        ):
            says = "labels are shifted by one here, and a model that takes `labels` shifts them again"
            yield fault("shifted_twice", call.line, "certain", says)
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2:
            continue
        outputs, targets = (roles.source_of(_base(one), call) for one in call.node.args[:2])
        target = _base(call.node.args[1])
        parts = (*call.node.args[:2], outputs, targets)
        sliced = any("[" in ast.unparse(part) for part in parts)
        if sliced or not isinstance(outputs, ast.Call) or not isinstance(target, ast.Name):
            continue
        inputs = {dotted(one) for one in (*outputs.args, *(keyword.value for keyword in outputs.keywords))}
        if target.id in inputs and not roles.uses("roll", "mask_tokens", "mlm"):
            says = f"the model is given {target.id}, and the loss asks it for {target.id} itself: nothing is shifted"
            yield fault("not_shifted", call.line, "likely", says)


def _base(node: ast.expr) -> ast.expr:
    """Return what is reshaped in an expression."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (
        "view", "reshape", "flatten", "contiguous", "float", "long", "to", "transpose", "permute",
    ):  # fmt: skip
        node = node.func.value
    return node


def _cut(roles: Roles, node: ast.expr, call: Call) -> str:
    """Return which end a slice along time leaves out: "first", "last" or ""."""
    text = ast.unparse(roles.source_of(node, call)).replace(" ", "")
    if re.search(r"\[(?:[^\]]*,)?1:\]", text):
        return "first"
    return "last" if re.search(r"\[(?:[^\]]*,)?:-1\]", text) else ""
