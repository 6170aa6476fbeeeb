"""Do masks choose the places that are meant: those that hold data, or those that a masked model is to fill in?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mldebug_mcp.script.calls import dotted
from mldebug_mcp.script.facts import Facts
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.values import facts_of

IGNORED = -100
"""Target that the cross-entropy of PyTorch leaves out. Source: `torch.nn.functional.cross_entropy`, `ignore_index`."""
MAX_NAMES_FOLLOWED = 4


TRUE_HIDES = ("src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask", "memory_key_padding_mask")
"""Masks of the attention of PyTorch that are true where places are left out. Source: `torch.nn.MultiheadAttention`."""


def data_hidden(roles: Roles) -> Iterator[Fault]:
    """A mask leaves out the places that hold data, or the past, and keeps the rest."""
    trace = roles.trace
    for line, hides in dict.fromkeys(trace.hidden):
        yield _hides_data(line, hides)
    for call in roles.script.calls:
        settings = trace.settings.get(id(call.node), {})
        for name, facts in ((name, facts_of(value)) for name, values in settings.items() for value in values):
            yield from _given_mask(name, facts, call.method)
    for made, used in dict.fromkeys(trace.padding_kept):
        says = f"this mask is true at padding, and line {used} takes a mean over the places where it is true"
        yield fault("mask_inverted", made, "likely", says, cause="no_signal", lines=(used,))


def _given_mask(name: str, facts: Facts, function: str) -> Iterator[Fault]:
    """Yield what is wrong with a mask that a function or layer of PyTorch is given under a name."""
    if name in ("attn_mask", "mask", "src_mask") and facts.hides in ("real", "past"):
        yield _hides_data(facts.line, facts.hides)
    elif name in TRUE_HIDES and facts.kind == "real":
        says = f"{name} is true where places are to be left out, and here it is true where data are"
        yield fault("mask_inverted", facts.line, "certain", says, cause="no_signal")
    elif name == "attn_mask" and facts.kind == ("future" if function == SDPA else "past"):
        says = f"{name} leaves out the past here, and lets each place see those after it"
        yield fault("mask_inverted", facts.line, "certain", says)
    elif name == "attn_mask" and function == SDPA and facts.kind == "padding":
        says = f"{name} is true where places take part, and here it is true at padding alone"
        yield fault("mask_inverted", facts.line, "certain", says, cause="no_signal")


def softmax_over_another_axis(roles: Roles) -> Iterator[Fault]:
    """Weights add up to one along another axis than that of the places which they weigh."""
    trace = roles.trace
    for line in dict.fromkeys(trace.over_one):
        says = "this softmax goes along the last axis, which has the size 1: all weights are one"
        yield fault("softmax_over_another_axis", line, "certain", says)
    directions = {scores: {axis for _, at, axis in trace.softmaxed if at == scores} for _, scores, _ in trace.softmaxed}
    for line, scores, axis in sorted(trace.softmaxed, key=str):
        # attention in both directions takes both axes, and that over slots the axis of the queries
        if len(directions[scores]) == 1 and axis in (0, 1, -2, -3, -4) and "slot" not in roles.source.lower():
            says = (
                f"the scores of line {scores} are of queries by keys, and the weights of a query do not add up to one"
            )
            yield fault("softmax_over_another_axis", line, "likely", says, lines=(scores,))
    for line, hidden in dict.fromkeys(trace.over_another_axis):
        says = f"line {hidden} leaves places out, and the weights add up to one along another axis: they still count"
        yield fault("softmax_over_another_axis", line, "likely", says, lines=(hidden,))


SDPA = "scaled_dot_product_attention"
"""The attention of PyTorch whose mask is true where places take part."""


def _hides_data(line: int, hides: str) -> Fault:
    if hides == "past":
        says = "the scores of the past are set to minus infinity here, and those of what comes next stay"
        return fault("mask_inverted", line, "likely", says)
    says = "the scores of what holds data are set to minus infinity here, and those of padding stay"
    return fault("mask_inverted", line, "likely", says, cause="no_signal")


@dataclass(frozen=True, slots=True)
class Fill:
    """Places that are set to one value.

    Args:
        mask: What is true at these places.
        is_true: Whether these are the places where the mask is true.
        value: The value.
        line: The line.
    """

    mask: ast.expr
    is_true: bool
    value: ast.expr
    line: int


def ignored_where_masked(roles: Roles) -> Iterator[Fault]:
    """Labels are ignored where the inputs are masked, so that the loss is that of places which the model sees."""
    for function in ast.walk(roles.script.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        fills = list(fills_in(function))
        hidden = [fill for fill in fills if _is_mask_token(fill.value)]
        for fill in fills if hidden else ():
            if not _is_ignored(roles, fill.value):
                continue
            holds = _all_of(function, fill.mask, fill.line, is_true=fill.is_true)
            other = next(
                (
                    hidden_fill
                    for hidden_fill in hidden
                    if holds <= _all_of(function, hidden_fill.mask, hidden_fill.line, is_true=hidden_fill.is_true)
                ),
                None,
            )
            if other is not None:
                says = f"labels are ignored where line {other.line} masks the inputs: the loss is that of what is shown"
                yield fault("ignored_where_masked", fill.line, "likely", says)


def fills_in(function: ast.AST) -> Iterator[Fill]:
    """Yield what a function fills under a mask: `x[mask] = v`, `x.masked_fill(mask, v)`, `where(mask, v, x)`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            place = node.targets[0].slice
            if isinstance(place, ast.Name | ast.Attribute | ast.BinOp | ast.UnaryOp | ast.Compare):
                yield Fill(place, True, node.value, node.lineno)
        elif isinstance(node, ast.Call):
            method = dotted(node.func).rpartition(".")[2]
            if method in ("masked_fill", "masked_fill_") and len(node.args) == 2:
                yield Fill(node.args[0], True, node.args[1], node.lineno)
            elif method == "where" and len(node.args) == 3 and dotted(node.func).partition(".")[0] in LIBRARIES:
                yield Fill(node.args[0], True, node.args[1], node.lineno)
                yield Fill(node.args[0], False, node.args[2], node.lineno)


LIBRARIES = ("torch", "np", "numpy", "jnp")


def _is_mask_token(value: ast.expr) -> bool:
    """Say whether a value is the token of masked places, by its name: `MASK`, `tokenizer.mask_token_id`."""
    names = [dotted(node).rpartition(".")[2] for node in ast.walk(value) if isinstance(node, ast.Name | ast.Attribute)]
    return isinstance(value, ast.Name | ast.Attribute | ast.Call) and any(map(MASK_TOKEN.search, names))


MASK_TOKEN = re.compile(r"^mask$|mask_?(?:token|id|idx|index|value)", re.IGNORECASE)


def _is_ignored(roles: Roles, value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in ("tensor", "full_like"):
        value = value.args[-1] if value.args else ast.Constant(None)
    return roles.value_of(value) == IGNORED or bool(re.search(r"(?:^|_)ignore", dotted(value), re.IGNORECASE))


def _all_of(
    function: ast.AST, mask: ast.expr, line: int, *, is_true: bool, depth: int = MAX_NAMES_FOLLOWED
) -> set[tuple[str, int, bool]]:
    """Return what holds at each place of a mask: names, each with the line that set it last, and other conditions."""
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert | ast.Not):
        return _all_of(function, mask.operand, line, is_true=not is_true, depth=depth)
    if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd if is_true else ast.BitOr):
        parts = (_all_of(function, part, line, is_true=is_true, depth=depth) for part in (mask.left, mask.right))
        return set[tuple[str, int, bool]]().union(*parts)
    if isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute) and mask.func.attr in ("bool", "to"):
        return _all_of(function, mask.func.value, line, is_true=is_true, depth=depth)
    if not isinstance(mask, ast.Name):
        return {(ast.unparse(mask), 0, is_true)}
    made = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AugAssign) and node.lineno < line and mask.id in _targets(node)
    ]
    last = max(made, key=lambda node: node.lineno, default=None)
    own = {(mask.id, last.lineno if last is not None else 0, is_true)}
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name) and depth:
        own |= _all_of(function, last.value, last.lineno, is_true=is_true, depth=depth - 1)
    return own


def _targets(node: ast.Assign | ast.AugAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [target.elts if isinstance(target, ast.Tuple | ast.List) else [target] for target in targets]
    return {dotted(part) for some in parts for part in some}
