"""Can the conditions hold under which something is done?"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import NamedTuple

from mldebug_mcp.script.calls import constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles


def never_holds(roles: Roles) -> Iterator[Fault]:
    """Two conditions on the same counter, one inside of the other, leave no number for which both hold."""
    for outer in ast.walk(roles.script.tree):
        if not isinstance(outer, ast.If):
            continue
        first = [asked for asked in _remainders(roles, outer.test) if not _is_changed(asked.counter, outer.body)]
        for inner in (node for part in outer.body for node in ast.walk(part) if isinstance(node, ast.If) and first):
            for second in _remainders(roles, inner.test):
                if any(_exclude(remainder, second) for remainder in first):
                    says = f"`{ast.unparse(inner.test)[:60]}` never holds where `{ast.unparse(outer.test)[:60]}` does"
                    yield fault("never_holds", inner.lineno, "likely", says)


def _is_changed(counter: str, body: list[ast.stmt]) -> bool:
    """Say whether statements give a counter, or a part of what it is counted by, another value."""
    named = {dotted(part) for part in ast.walk(ast.parse(counter, mode="eval"))} - {"", "self"}
    return any(
        dotted(node) in named
        for part in body
        for node in ast.walk(part)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
    )


def counter_passes_by(roles: Roles) -> Iterator[Fault]:
    """A counter that grows by several at once never has the remainder that a condition asks for."""
    for node in ast.walk(roles.script.tree):
        if not isinstance(node, ast.If):
            continue
        for asked in _remainders(roles, node.test):
            grown = _grows_by(roles, asked.counter, node.lineno)
            if grown is not None and _exclude(asked, grown):
                says = f"{asked.counter} grows by {grown.every} at a time: `{ast.unparse(node.test)[:60]}` never holds"
                yield fault("never_holds", node.lineno, "likely", says)


def _grows_by(roles: Roles, counter: str, line: int) -> _Remainder | None:
    """Return by how much a counter grows at a time and what it begins with; None where that is not one number each.

    One of another function or class has the name alone in common.
    """
    made = [assignment for assignment in roles.script.assignments if assignment.target == counter]
    own = counter.startswith("self.")
    owners = {assignment.function.rpartition(".")[0] if own else assignment.function for assignment in made}
    scope = roles.definitions.get(next(iter(owners)).rpartition(".")[2]) if len(owners) == 1 else None
    if owners != {""} and (scope is None or not scope.lineno <= line <= (scope.end_lineno or line)):
        return None
    if counter in roles.loop_names:
        return None
    steps = {_number(roles, assignment.value) for assignment in made if assignment.adds}
    first = {_number(roles, assignment.value) for assignment in made if not assignment.adds}
    if len(steps) != 1 or len(first) != 1:
        return None
    step, begin = steps.pop(), first.pop()
    return _Remainder(counter, step, begin % step) if step and step > 1 and begin is not None else None


class _Remainder(NamedTuple):
    """A test `counter % every == rest`."""

    counter: str
    every: int
    rest: int


def _exclude(remainder: _Remainder, other: _Remainder) -> bool:
    """Say whether no number has both remainders: they differ by what their common divisor does not divide."""
    return (
        remainder.counter == other.counter
        and (remainder.rest - other.rest) % math.gcd(remainder.every, other.every) != 0
    )


def _remainders(roles: Roles, test: ast.expr) -> Iterator[_Remainder]:
    """Yield the remainders that all hold where a test does."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _remainders(roles, part)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        left, rest = test.left, _number(roles, test.comparators[0])
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
            every = _number(roles, left.right)
            if every and rest is not None:
                counter, shift = _counter(left.left)
                yield _Remainder(counter, every, (rest - shift) % every)


def _counter(node: ast.expr) -> tuple[str, int]:
    """Return a counter and what is added to it: ("step", 1) of `step + 1`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        added = constant_of(node.right)
        if isinstance(added, int):
            return ast.unparse(node.left), added
    return ast.unparse(node), 0


def _number(roles: Roles, node: ast.expr) -> int | None:
    value = roles.number_of(node)
    return value if isinstance(value, int) else None
