"""What is kept while a script is followed, and how much of it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from mldebug_mcp.script.values import Object, Scope, Value

MAX_STATEMENTS = 30_000
"""Statements that are followed. Chosen: two seconds."""
MAX_EVENTS = 5_000
"""Events that are kept. Chosen: rules compare each with those around it."""
MAX_CALL_DEPTH = 12
"""Calls inside of calls that are entered."""
MAX_ITEMS = 8
"""Items of a list that a loop goes through one by one."""
MAX_LISTED = 64
"""Items of a list that are kept apart."""
ROUNDS = 2
"""Times that a loop is gone through: what one round leaves to the next is seen in the second."""


class ExhaustedError(Exception):
    """The script has more statements than are followed."""


@dataclass(slots=True)
class Frame:
    """A function that is followed: its variables, its object and class, what it returned.

    Args:
        scope: Its variables.
        path: Its name, dotted with what is around it.
        owner: The object that it is a method of.
        owner_class: The class in which it stands.
        returned: What it returned so far.
        globals_: Names that it sets at the top of the file.
        on_yield: What happens at its `yield`, where it is a context manager: the block of `with`.
    """

    scope: Scope
    path: str = ""
    owner: Object | None = None
    owner_class: ast.ClassDef | None = None
    returned: list[Value] = field(default_factory=list)
    globals_: set[str] = field(default_factory=set)
    on_yield: Callable[[Value], None] | None = None
