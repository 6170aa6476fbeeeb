"""Handlers of events: does what they do to gradients come before the step that uses these?"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mldebug_mcp.script.calls import Call, constant_of, dotted, parameters_of
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import CLIPS
from mldebug_mcp.script.roles import Roles


@dataclass(frozen=True, slots=True)
class _Handler:
    """A function that a method is given, or decorates, together with the name of an event."""

    event: str
    registered_by: str
    body: ast.AST


def clipped_by_a_late_handler(roles: Roles) -> Iterator[Fault]:
    """Gradients are clipped by the handler of an event that comes after the step of its round."""
    fires = _methods(roles, _fires)
    registers = _methods(roles, _registers)
    if not fires or not registers:
        return
    for handler in _handlers(roles, set(registers)):
        moments = [
            call
            for call in roles.script.calls
            if call.method in fires and fires[call.method] == registers[handler.registered_by]
            if call.constant(_first_parameter(roles, call.method), 0) == handler.event
        ]
        late = bool(moments) and all(_is_after_step(roles, moment) for moment in moments)
        for node in ast.walk(handler.body) if late else ():
            if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in CLIPS:
                says = f"this handles {handler.event!r}, which comes after the step: the step had all of the gradient"
                yield fault("clip_too_late", node.lineno, "likely", says)


def _methods(roles: Roles, attribute_of: Callable[[ast.FunctionDef], str]) -> dict[str, str]:
    """Return the methods that use handlers of an event, each with the attribute that holds these."""
    functions = {name: node for name, node in roles.definitions.items() if isinstance(node, ast.FunctionDef)}
    return {name: attribute for name, node in functions.items() if (attribute := attribute_of(node))}


def _first_parameter(roles: Roles, method: str) -> str:
    return next(iter(parameters_of(roles.definitions.get(method))), "")


def _by_event(node: ast.expr, event: str) -> str:
    """Return the attribute in which handlers are looked up by an event: of `self.hooks[event]` it is "hooks"."""
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and dotted(part.slice) == event:
            return dotted(part.value).rpartition(".")[2]
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.args:
            looks_up = part.func.attr in ("get", "setdefault") and dotted(part.args[0]) == event
            if looks_up:
                return dotted(part.func.value).rpartition(".")[2]
    return ""


def _fires(node: ast.FunctionDef) -> str:
    """Return the attribute whose handlers of an event, the first parameter, a method calls one by one."""
    events = parameters_of(node)[:1]
    for loop in ast.walk(node):
        if events and isinstance(loop, ast.For) and isinstance(loop.target, ast.Name):
            calls = any(isinstance(part, ast.Call) and dotted(part.func) == loop.target.id for part in ast.walk(loop))
            attribute = _by_event(loop.iter, events[0])
            if calls and attribute:
                return attribute
    return ""


def _registers(node: ast.FunctionDef) -> str:
    """Return the attribute into which a method puts a handler of an event, its first parameter."""
    events = parameters_of(node)[:1]
    for part in ast.walk(node):
        if events and isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            attribute = _by_event(part.func.value, events[0]) if part.func.attr in ("append", "add") else ""
            if attribute:
                return attribute
    return ""


def _handlers(roles: Roles, registers: set[str]) -> Iterator[_Handler]:
    """Yield the handlers of a script, those that a decorator registers and those that a method is given."""
    for node in ast.walk(roles.script.tree):
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(decorator, ast.Call):
                yield from _registered(decorator, registers, node)
        if isinstance(node, ast.Call) and len(node.args) == 2:
            given = node.args[1]
            body: ast.AST | None = given if isinstance(given, ast.Lambda) else None
            body = body or roles.definitions.get(dotted(given).rpartition(".")[2])
            if body is not None:
                yield from _registered(node, registers, body)


def _registered(call: ast.Call, registers: set[str], body: ast.AST) -> Iterator[_Handler]:
    event = constant_of(call.args[0]) if call.args else None
    method = dotted(call.func).rpartition(".")[2]
    if method in registers and isinstance(event, str):
        yield _Handler(event, method, body)


def _is_after_step(roles: Roles, moment: Call) -> bool:
    """Say whether an event comes after the step in its round, and before no other step or backward pass of it."""
    same = [call for call in (*roles.steps, *roles.backwards) if call.function == moment.function]
    same = [call for call in same if call.loops[: len(moment.loops)] == moment.loops and moment.loops]
    before = [call for call in same if call.order < moment.order]
    last = max(before, key=lambda call: call.order, default=None)
    return last in roles.steps and not any(call.order > moment.order for call in same)
