"""Handlers of events: is each of them ever called?"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.events import Registered

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
