"""Loaders made by helpers: do they read the split that they are asked for?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mldebug_mcp.script.calls import constant_of, dotted, names_in, parameters_of
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import HELD_OUT, TRAINS
from mldebug_mcp.script.roles import Roles


def split_of_the_configuration(roles: Roles) -> Iterator[Fault]:
    """A helper is asked for held-out rows, and reads the split of a configuration, which is that of training."""
    for function in roles.definitions.values():
        if not isinstance(function, ast.FunctionDef):
            continue
        for parameter in (*function.args.args, *function.args.kwonlyargs):
            default = constant_of(roles.settings.get(parameter.arg))
            if not isinstance(default, str) or not TRAINS.search(default):
                continue
            asked = _asked_for(roles, function, parameter.arg)
            held_out = sorted(name for name in asked if HELD_OUT.search(name) and not TRAINS.search(name))
            elsewhere = [call for call in roles.script.calls if call.method != function.name]
            changed = any(isinstance(call.constant(parameter.arg), str) for call in elsewhere)
            if changed or not held_out:
                continue
            read = _read_instead(function, parameter.arg)
            if read is not None:
                says = (
                    f"{function.name}() is asked for {held_out[0]!r}, and reads {dotted(read)}, "
                    f"which is {default!r} unless it is set"
                )
                yield fault("same_data", read.lineno, "likely", says, fix=f"read {parameter.arg} instead")


def _asked_for(roles: Roles, function: ast.FunctionDef, parameter: str) -> set[str]:
    """Return the names of splits, as they are written, that a function is given for a parameter."""
    names = parameters_of(function)
    place = names.index(parameter) if parameter in names else None
    given = {call.constant(parameter, place) for call in roles.script.named(function.name)}
    return {value for value in given if isinstance(value, str)}


def _read_instead(function: ast.FunctionDef, name: str) -> ast.Attribute | None:
    """Return the setting of the name of a parameter that a call is given, where the parameter is compared alone."""
    compared = [node for node in ast.walk(function) if isinstance(node, ast.Compare) and name in names_in(node)]
    inside = {id(part) for node in compared for part in ast.walk(node)}
    others = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    if any(id(node) not in inside for node in others):
        return None
    given = (part for call in ast.walk(function) if isinstance(call, ast.Call) for part in _arguments(call))
    settings = [part for part in given if isinstance(part, ast.Attribute) and part.attr == name]
    return settings[0] if settings and not any(id(part) in inside for part in settings) else None


def _arguments(call: ast.Call) -> Iterator[ast.AST]:
    """Yield all parts of what a call is given."""
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from ast.walk(argument)
