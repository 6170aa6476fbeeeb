"""Has what the script writes an effect: conditions that never hold, unused results, hooks that nothing calls?"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from mldebug_mcp.script.calls import constant_of, dotted, is_operation, last_name, last_part, parameters_of, walk
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace import Registered
from mldebug_mcp.script.values import Constant

IN_PLACE_BY_UNDERSCORE = frozenset({
    "clamp", "clamp_max", "clamp_min", "detach", "div", "index_add", "index_copy", "index_fill", "lerp", "masked_fill",
    "masked_scatter", "mul", "nan_to_num", "scatter", "scatter_add", "sub",
})  # fmt: skip
"""Methods of tensors that give a new one, and have a twin with `_` at its end that changes the tensor itself."""
OF_FUNCTIONAL = re.compile(r"^(?:torch\.)?nn\.functional\.[a-z]\w*[a-z0-9]$|^torch\.(?:clamp|where|lerp)$")
"""Functions that give a new tensor, where nothing says that they write into one."""
IMPORTS_FUNCTIONAL = re.compile(r"(?:import torch\.nn\.functional as|from torch\.nn import functional as) (\w{1,40})")
OF_WEIGHTS = re.compile(r"zip\(.{1,200}(?:parameters|state_dict)\(\)")
"""What a loop is over that averages the weights of two networks."""
OF_OTHERS = frozenset({"out", "inplace", "fill_value", "axis"})
"""Arguments of functions that write into what they are given, and of tables."""
SPLITS = re.compile(r"^(?:train\w*|val\w*|dev|test\w*|eval\w*|valid\w*)$", re.IGNORECASE)
OF_PARAMETERS = re.compile(r"\.(?:named_)?(?:parameters|buffers)\(|\.state_dict\(\)")
"""What a loop is over that goes through the tensors of a model."""
RATE_ATTRIBUTES = frozenset({"lr", "learning_rate"})
"""What those of other libraries call their rate, such as those of Keras."""
MIN_KEYS_FIRED = 2
"""Events whose handlers are called, from which on the others count as never fired. Chosen: a setting may choose one."""
OPEN_BASES = ("object", "ABC", "abc.ABC", "Protocol", "typing.Protocol")
"""Bases of other files that call none of the methods of a class."""


def never_holds(roles: Roles) -> Iterator[Fault]:
    """Two conditions on the same counter, one inside of the other, leave no number for which both hold."""
    for outer in walk(roles.script.tree, ast.If):
        first = [asked for asked in _remainders(roles, outer.test) if not _is_changed(asked.counter, outer.body)]
        for inner in (node for part in outer.body for node in walk(part, ast.If) if first):
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
        for node in walk(part, ast.Name, ast.Attribute)
        if isinstance(node.ctx, ast.Store)
    )


def counter_passes_by(roles: Roles) -> Iterator[Fault]:
    """A counter that grows by several at once never has the remainder that a condition asks for."""
    for node in walk(roles.script.tree, ast.If):
        for asked in _remainders(roles, node.test):
            grown = _grows_by(roles, asked.counter, node.lineno)
            if grown is not None and _exclude(asked, grown):
                says = f"{asked.counter} grows by {grown.every} at a time: `{ast.unparse(node.test)[:60]}` never holds"
                yield fault("never_holds", node.lineno, "likely", says)


def _grows_by(roles: Roles, counter: str, line: int) -> _Remainder | None:
    """Return by how much a counter grows at a time and what it begins with; None where that is not one number each."""
    made = roles.script.made(counter)
    own = counter.startswith("self.")
    owners = {assignment.function.rpartition(".")[0] if own else assignment.function for assignment in made}
    scope = roles.definitions.get(last_part(next(iter(owners)))) if len(owners) == 1 else None
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
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _remainders(roles, part)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        left, rest = test.left, _number(roles, test.comparators[0])
        if is_operation(left, ast.Mod):
            every = _number(roles, left.right)
            if every and rest is not None:
                counter, shift = _counter(left.left)
                yield _Remainder(counter, every, (rest - shift) % every)


def _counter(node: ast.expr) -> tuple[str, int]:
    """Return a counter and what is added to it: ("step", 1) of `step + 1`."""
    if is_operation(node, ast.Add):
        added = constant_of(node.right)
        if isinstance(added, int):
            return ast.unparse(node.left), added
    return ast.unparse(node), 0


def _number(roles: Roles, node: ast.expr) -> int | None:
    value = roles.number_of(node)
    return value if isinstance(value, int) else None


def result_unused(roles: Roles) -> Iterator[Fault]:
    """A new tensor is computed, and nothing takes it: what was meant to change stays as it is."""
    nodes = list(ast.walk(roles.script.tree))
    functional = dict.fromkeys(IMPORTS_FUNCTIONAL.findall(roles.source), "nn.functional")
    averaged = [node for node in nodes if isinstance(node, ast.For) and OF_WEIGHTS.search(ast.unparse(node.iter))]
    for node in nodes:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        name, method = dotted(call.func), last_name(call)
        is_plot = method == "scatter" and len(call.args) < 3  # that of a tensor has a dimension, indices and values
        if {keyword.arg for keyword in call.keywords} & OF_OTHERS or is_plot:
            continue
        is_tensors = name.partition(".")[0] not in roles.imported and name.rpartition(".")[0] not in roles.optimizers
        known = method in IN_PLACE_BY_UNDERSCORE or _adds_to_new(call, method)
        if known and isinstance(call.func, ast.Attribute) and is_tensors:
            says = f"`{ast.unparse(call)[:60]}` gives a new tensor that nothing takes: `{method}_` changes the tensor"
            if any(loop.lineno <= node.lineno <= (loop.end_lineno or 0) for loop in averaged):
                yield fault("ema_never_updated", node.lineno, "certain", says)
            else:
                yield fault("result_unused", node.lineno, "likely", says)
        elif OF_FUNCTIONAL.search(re.sub(r"^\w+", lambda first: functional.get(first[0], first[0]), name)):
            says = f"`{ast.unparse(call)[:60]}` gives a new tensor that nothing takes"
            yield fault("result_unused", node.lineno, "likely", says)


def _adds_to_new(call: ast.Call, method: str) -> bool:
    """Say whether a call adds to a new tensor, `a.mul(m).add(b)`: an `add` of its own may be that of a set."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    new = isinstance(owner, ast.Call) and last_name(owner) in IN_PLACE_BY_UNDERSCORE
    return method == "add" and new


def parameter_renamed(roles: Roles) -> Iterator[Fault]:
    """A loop over the tensors of a model gives its variable a new value that nothing reads: no tensor changes."""
    for loop in walk(roles.script.tree, ast.For):
        if not OF_PARAMETERS.search(ast.unparse(loop.iter)):
            continue
        names = {node.id for node in walk(loop.target, ast.Name)}
        last = loop.body[-1]
        if not isinstance(last, ast.Assign) or len(last.targets) != 1 or not isinstance(last.targets[0], ast.Name):
            continue
        name = last.targets[0].id
        if name in names and not _is_read_after(roles, loop, name):
            says = f"`{ast.unparse(last)[:60]}` gives the name {name} another value, and changes no tensor"
            yield fault("parameter_renamed", last.lineno, "certain", says)


def _is_read_after(roles: Roles, loop: ast.For, name: str) -> bool:
    """Say whether a name is read behind a loop in the function around it, or in the file where none is around."""
    functions = [*walk(roles.script.tree, ast.FunctionDef)]
    end = loop.end_lineno or loop.lineno
    around = [node.end_lineno or 0 for node in functions if node.lineno < loop.lineno <= end <= (node.end_lineno or 0)]
    until = min(around, default=None)
    return any(end < node.lineno and (until is None or node.lineno <= until) for node, _ in roles.reads.get(name, ()))


def rate_that_nobody_reads(roles: Roles) -> Iterator[Fault]:
    """A learning rate is set as an attribute of an optimizer of PyTorch, which reads `param_groups` alone."""
    made_by = {name: made.made_by.partition(".")[0] for name, made in roles.optimizers.items()}
    of_torch = {name for name, first in made_by.items() if roles.is_imported_from("torch", first)}
    named = [node for node in walk(roles.script.tree, ast.Attribute) if node.attr in RATE_ATTRIBUTES]
    read = {dotted(node) for node in named if isinstance(node.ctx, ast.Load)}
    for node in named:
        if isinstance(node.ctx, ast.Store) and dotted(node.value) in of_torch and dotted(node) not in read:
            says = f"`{dotted(node)} = ...` changes no step: the optimizer reads its rate from `param_groups`"
            yield fault("rate_that_nobody_reads", node.lineno, "certain", says)


def argument_unused(roles: Roles) -> Iterator[Fault]:
    """A function never reads an argument that its callers give different values for, such as which split to load."""
    for function in roles.functions.values():
        read = {"self", "cls", *(node.id for node in walk(function, ast.Name))}
        names = [parameter.arg for parameter in (*function.args.args, *function.args.kwonlyargs)]
        unread = [name for name in names if name not in read and not name.startswith("_")]
        for name in unread if unread and not _may_be_called_elsewhere(roles, function) else ():
            given = _values(roles, function, name)
            if len({repr(value) for value in given}) < 2:
                continue
            says = f"{function.name}() never reads {name}, for which it is given {' and '.join(map(repr, given[:3]))}"
            splits = all(isinstance(value, str) and SPLITS.search(value) for value in given)
            if splits:
                yield fault("same_data", function.lineno, "likely", f"{says}: both get the same rows")
            else:
                yield fault("argument_unused", function.lineno, "depends", says)


def _may_be_called_elsewhere(roles: Roles, function: ast.FunctionDef) -> bool:
    """Say whether a function is a stub, is handed on as a value, or takes the place of one of another class."""
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    stub = not body or all(isinstance(node, ast.Pass | ast.Raise) for node in body)
    called = {id(call.node.func) for call in roles.script.calls}
    handed_on = any(id(node) not in called for node, _ in roles.reads.get(function.name, ()))
    inherits = any(
        isinstance(owner, ast.ClassDef) and owner.bases and function in owner.body
        for owner in ast.walk(roles.script.tree)
    )
    return stub or handed_on or inherits or bool(function.decorator_list) or "locals()" in ast.unparse(function)


def _values(roles: Roles, function: ast.FunctionDef, name: str) -> list[object]:
    """Return the constants that a function is given for a parameter; nothing if any call gives something else."""
    names = parameters_of(function)
    place = names.index(name) if name in names else None
    calls = [
        call
        for call in roles.script.named(function.name)
        if not any(isinstance(arg, ast.Starred) for arg in call.node.args)
    ]
    values = [constant_of(given) for call in calls if (given := call.argument(name, place)) is not None]
    return [] if None in values else values


def handler_never_called(roles: Roles) -> Iterator[Fault]:
    """A function handles an event that nothing fires, while handlers of others are called."""
    trace = roles.trace
    by_registry: dict[ast.AST, list[Registered]] = {}
    for registered in trace.registered if trace.is_complete else ():
        by_registry.setdefault(registered.node, []).append(registered)
    for handlers in by_registry.values():
        fired = {handler.key for handler in handlers if handler.function in trace.reached}
        for handler in handlers if len(fired) >= MIN_KEYS_FIRED else ():
            if handler.key in fired or handler.function in trace.reached or not handler.through:
                continue
            name = getattr(handler.function, "name", "this function")
            says = f"{name} handles {str(handler.key).rpartition('.')[2]}, which nothing fires: it is never called"
            yield fault("handler_never_called", getattr(handler.through[-1], "lineno", 0), "likely", says)


def hook_never_called(roles: Roles) -> Iterator[Fault]:
    """A class of hooks has one of a name that nothing calls, and its base class has others that are called."""
    trace, classes = roles.trace, {node.name: node for node in roles.script.tree.body if isinstance(node, ast.ClassDef)}
    asked = [name for call in roles.script.named("getattr") for _, name in trace.sides.get(id(call.node), ())]
    follows = trace.is_complete and all(isinstance(name, Constant) for name in asked)
    words = _words_of(roles.script.tree) if follows else set()
    called = {getattr(function, "name", "") for function in trace.reached}
    for made in {made.definition for made in trace.objects if made.definition} if words else ():
        bases = [ast.unparse(base) for base in made.bases]
        inherited = [method for base in bases for method in _methods(classes.get(base))]
        ends = [ast.unparse(base) for name in bases if name in classes for base in classes[name].bases]
        fired = [method for method in inherited if method.name in called and _is_empty(method)]
        if len({method.name for method in fired}) < MIN_KEYS_FIRED or not {*ends, *bases} <= {*classes, *OPEN_BASES}:
            continue
        for method in _methods(made):
            is_hook = any(
                _first_word(method) == _first_word(known) and len(method.args.args) == len(known.args.args)
                for known in fired
            )
            if is_hook and method.name not in words | called | {known.name for known in inherited}:
                says = (
                    f"{method.name} is a hook of {made.name} that nothing calls: {fired[0].name} and others are called"
                )
                yield fault("handler_never_called", method.lineno, "likely", says)


def _methods(definition: ast.ClassDef | None) -> list[ast.FunctionDef]:
    return [part for part in (definition.body if definition else ()) if isinstance(part, ast.FunctionDef)]


def _is_empty(method: ast.FunctionDef) -> bool:
    """Say whether a method does nothing, as those do that others are to take the place of."""
    return all(
        isinstance(part, ast.Pass) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in method.body
    )


def _first_word(method: ast.FunctionDef) -> str:
    """Return what the names of hooks begin with: "on" of `on_step_end`; the name where it has one word."""
    return method.name.partition("_")[0]


def _words_of(tree: ast.Module) -> set[str]:
    """Return the names and texts by which a script may call a method."""
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree)}
    return names | {str(node.value) for node in walk(tree, ast.Constant)}
