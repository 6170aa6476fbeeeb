"""Handlers of events: is each of them ever called?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.events import Registered
from mldebug_mcp.script.values import Constant

MIN_KEYS_FIRED = 2
"""Events whose handlers are called, from which on the others count as never fired. Chosen: a setting may choose one."""


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


OPEN_BASES = ("object", "ABC", "abc.ABC", "Protocol", "typing.Protocol")
"""Bases of other files that call none of the methods of a class."""


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
    return names | {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
