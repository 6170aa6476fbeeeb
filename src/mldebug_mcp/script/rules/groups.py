"""Completions of one prompt are compared with each other: do the rows of a table of rewards hold one prompt each?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mldebug_mcp.script.calls import Assignment, constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules.loss import returned

REWARD = re.compile(r"rew|score|adv|return|baseline|(?:^|_)r(?:$|_)", re.IGNORECASE)
GROUP = re.compile(
    r"group|generations|completions|per_prompt|num_return|(?:num|n)_(?:samples|gens?|rollouts|answers|candidates)$",
    re.IGNORECASE,
)
"""Names of the number of completions that each prompt has."""
COUNTS_PROMPTS = re.compile(r"prompts|questions|queries|problems|groups$", re.IGNORECASE)
"""Names of the number of prompts, or of groups."""


@dataclass(frozen=True, slots=True)
class _Repeats:
    """How a script lays out several completions for each prompt.

    Args:
        counts: What it repeats by, as text and as the last parts of names.
        together: Whether the completions of a prompt stand next to each other.
        in_turn: Whether all prompts stand there once, then all of them again.
    """

    counts: frozenset[str]
    together: bool
    in_turn: bool


def compared_across_prompts(roles: Roles) -> Iterator[Fault]:
    """Rewards are compared along the wrong axis: completions of one prompt are set against those of others."""
    repeats = _repeats(roles)
    for made in (*roles.script.assignments, *returned(roles)):
        for node in ast.walk(made.value):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                yield from _centred(roles, node, made, repeats)


def _centred(roles: Roles, node: ast.BinOp, made: Assignment, repeats: _Repeats) -> Iterator[Fault]:
    """Yield a fault where a table has its mean over the wrong axis taken off."""
    axis = _axis_of_mean(roles, node.right, node.left, made)
    sizes = _sizes(roles, node.left, made)
    if axis is None or sizes is None or not _is_of_rewards(roles, node.left, made):
        return
    groups = [_counts_completions(size, repeats) for size in sizes]
    if groups.count(True) != 1:
        return
    within, written = groups.index(True), ast.unparse(node)[:60]
    if axis != within:
        says = f"`{written}` takes the mean over the prompts, and not over the completions of each"
        yield fault("compared_across_prompts", node.lineno, "likely", says)
    elif within == 0 and repeats.together and not repeats.in_turn:
        says = f"the completions of a prompt stand next to each other, and `{written}` takes its groups across prompts"
        yield fault("compared_across_prompts", node.lineno, "likely", says)


def _is_of_rewards(roles: Roles, table: ast.expr, made: Assignment) -> bool:
    """Say whether a table is of rewards, by its name, that of what it is a view of, or that of its function."""
    names = (dotted(table), dotted(_value_of(roles, table, made)), made.target, made.function.rpartition(".")[2])
    return any(REWARD.search(name) for name in names)


def _value_of(roles: Roles, node: ast.expr, made: Assignment) -> ast.expr:
    """Return what a name was assigned last in its function; others as they are."""
    known = roles.assignments_by_name.get((made.function, dotted(node)), []) if isinstance(node, ast.Name) else []
    before = [assignment for assignment in known if assignment.order <= made.order and assignment is not made]
    return before[-1].value if before else node


def _axis_of_mean(roles: Roles, node: ast.expr, table: ast.expr, made: Assignment) -> int | None:
    """Return the axis, 0 or 1, over which a value is the mean of a table of two axes; None where it is none."""
    value = _value_of(roles, node, made)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "mean":
        return None
    functional = dotted(value.func.value) in ("torch", "np", "numpy")
    of_what = value.args[0] if functional and value.args else value.func.value
    if ast.unparse(of_what) != ast.unparse(table):
        return None
    given = [keyword.value for keyword in value.keywords if keyword.arg in ("dim", "axis")]
    given = given or value.args[1 if functional else 0 :][:1]
    axis = constant_of(given[0]) if given else None
    return {0: 0, 1: 1, -1: 1, -2: 0}.get(axis) if isinstance(axis, int) and not isinstance(axis, bool) else None


def _sizes(roles: Roles, table: ast.expr, made: Assignment) -> list[ast.expr] | None:
    """Return the two sizes that a table was given by `view` or `reshape`; None for another value."""
    value = _value_of(roles, table, made)
    if not isinstance(value, ast.Call) or dotted(value.func).rpartition(".")[2] not in ("view", "reshape"):
        return None
    functional = dotted(value.func).partition(".")[0] in ("torch", "np", "numpy")
    sizes = value.args[1:] if functional else value.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = sizes[0].elts
    return list(sizes) if len(sizes) == 2 else None


def _counts_completions(size: ast.expr, repeats: _Repeats) -> bool:
    """Say whether a size is the number of completions of a prompt: by its name, or as prompts are repeated by it."""
    last = dotted(size).rpartition(".")[2]
    if constant_of(size) == -1:
        return False
    if ast.unparse(size) in repeats.counts or (last and last in repeats.counts):
        return True
    return bool(GROUP.search(last)) and not COUNTS_PROMPTS.search(last)


def _repeats(roles: Roles) -> _Repeats:
    """Return how prompts are repeated in a script."""
    counts: set[str] = set()
    together = in_turn = False
    for call in roles.script.calls:
        first = call.node.args[0] if call.node.args else call.keywords.get("repeats")
        if call.method in ("repeat_interleave", "repeat") and call.owner in ("torch", "np", "numpy"):
            first = call.node.args[1] if len(call.node.args) > 1 else call.keywords.get("repeats")
        if call.method == "repeat_interleave" or (call.method == "repeat" and call.owner in ("np", "numpy")):
            counts |= _called(roles, first)
            together = together or bool(REPEATED.search(ast.unparse(call.node)))
        elif call.method in ("repeat", "tile"):
            in_turn = in_turn or bool(REPEATED.search(ast.unparse(call.node)))
        elif "num_return_sequences" in call.keywords:
            counts |= _called(roles, call.keywords["num_return_sequences"])
            together = True
    for node in ast.walk(roles.script.tree):
        if isinstance(node, ast.ListComp) and len(node.generators) == 2:
            inner = node.generators[1].iter
            if isinstance(inner, ast.Call) and dotted(inner.func) == "range" and len(inner.args) == 1:
                counts |= _called(roles, inner.args[0])
                together = together or bool(REPEATED.search(ast.unparse(node)))
    return _Repeats(frozenset(counts), together, in_turn)


REPEATED = re.compile(r"prompt|question|quer|problem|context|input|ids|answer|truth|target|batch|group", re.IGNORECASE)
"""What is repeated for several completions, by its name."""


def _called(roles: Roles, count: ast.expr | None) -> set[str]:
    """Return a number as text, and the last parts of the names that it has in functions that it is given to."""
    if count is None:
        return set()
    name = dotted(count) if isinstance(count, ast.Name | ast.Attribute) else ""
    return {ast.unparse(count)} | (roles.also_called(name) if name else set())
