"""Are labels shifted once?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles, entries_of


def labels_shifted(roles: Roles) -> Iterator[Fault]:
    """Labels are shifted twice, or not at all."""
    for call in roles.script.calls:
        if call.name == "dict":
            continue
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


MAX_NAMES_FOLLOWED = 4


def _cut(roles: Roles, node: ast.expr, call: Call, depth: int = MAX_NAMES_FOLLOWED) -> str:
    """Return which end a slice along time leaves out: "first", "last" or ""; names and padding are followed."""
    source = roles.source_of(node, call)
    text = ast.unparse(source).replace(" ", "")
    if re.search(r"\[(?:[^\]]*,)?1:\]", text):
        return "first"
    if re.search(r"\[(?:[^\]]*,)?:-1\]", text):
        return "last"
    if isinstance(source, ast.Call) and source.args and depth:
        return _cut(roles, source.args[0], call, depth - 1)
    return ""


def shifted_in_the_data(roles: Roles) -> Iterator[Fault]:
    """A data set or collator shifts the labels by one, and a model that takes `labels` does so again."""
    causal = [call for call in roles.script.calls if re.search(r"ForCausalLM|LMHeadModel", call.name)]
    if not causal or roles.uses("compute_loss") or not (roles.uses("Trainer") or _gives_labels(roles)):
        return
    for function in ast.walk(roles.script.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        inside = [call for call in roles.script.calls if call.function.rpartition(".")[2] == function.name]
        within = inside[-1] if inside else _no_call(function)
        for node in ast.walk(function):
            for inputs, labels in _pairs(node):
                if _cut(roles, inputs, within) == "last" and _cut(roles, labels, within) == "first":
                    line = roles.source_of(labels, within).lineno
                    says = "labels are shifted by one here, and a model that takes `labels` shifts them again"
                    yield fault("shifted_twice", line, "certain", says)


def _gives_labels(roles: Roles) -> bool:
    return any("labels" in call.keywords and "loss" not in call.name.lower() for call in roles.script.calls)


def _no_call(function: ast.FunctionDef) -> Call:
    """Return a place in a function that calls nothing."""
    return Call("", ast.Call(ast.Name(""), [], []), function.lineno, 0, (), function.name, (), ())


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield inputs and labels that a function gives out: as entries of a mapping, or returned as a pair."""
    entries = entries_of(node)
    if "input_ids" in entries and "labels" in entries:
        yield entries["input_ids"], entries["labels"]
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        yield node.value.elts[0], node.value.elts[1]
