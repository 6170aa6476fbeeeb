"""Where a script begins, and the state while it is followed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from mldebug_mcp.script import library
from mldebug_mcp.script.trace.events import Trace
from mldebug_mcp.script.trace.state import ExhaustedError, Frame
from mldebug_mcp.script.trace.statements import Statements
from mldebug_mcp.script.values import (
    DATA,
    Class,
    Function,
    Object,
)


def trace_of(tree: ast.Module) -> Trace:
    """Return what happens in a script."""
    follower = Follower()
    follower.follow(tree)
    return follower.trace


class Follower(Statements):
    """Follows a script from its top, then each function that it never calls."""

    def __init__(self) -> None:
        super().__init__()
        self._instances: dict[ast.ClassDef, Object] = {}

    def follow(self, tree: ast.Module) -> None:
        """Follow a file from its top, then each function that it never calls."""
        with self._guarded():
            self.body(tree.body)
        for function in self._functions(tree):
            if function.node not in self.entered:
                self._start_anew()
                with self._guarded():
                    self.enter(function, [], {}, function.node)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (ExhaustedError, RecursionError):
            self.trace.is_complete = False

    def _start_anew(self) -> None:
        self.entry += 1
        self.frame = Frame(self.top)
        self.loops, self.tests, self.gradients, self.stack = (), (), True, []

    def _functions(self, tree: ast.Module) -> Iterator[Function]:
        """Yield the functions and methods of a file, those that no other names first."""
        named = {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        }
        found = []
        for statement in tree.body:
            value = self.top.names.get(statement.name) if isinstance(statement, library.DEFINITIONS) else None
            if isinstance(value, Function):
                found.append(value)
            elif isinstance(value, Class) and isinstance(statement, ast.ClassDef):
                found += [
                    Function(part, value.scope, f"{value.path}.{part.name}", owner_class=statement)
                    for part in statement.body
                    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
        found.sort(key=lambda candidate: getattr(candidate.node, "name", "") in named)
        for function in found:
            if function.owner_class is None:
                yield function
            elif function.node not in self.entered:
                with self._guarded():
                    owner = self._instance_of(function.owner_class)
                    yield Function(function.node, function.scope, function.path, owner, function.owner_class)

    def _instance_of(self, definition: ast.ClassDef) -> Object:
        """Return the instance of a class whose methods nothing calls: one that the script makes, else a new one."""
        if definition not in self._instances:
            instances = [made for made in self.trace.objects if made.definition is not None]
            own = [instance for instance in instances if instance.definition is definition]
            heirs = [part for part in instances if part.definition and definition in self.classes(part.definition)]
            made = next(iter((*own, *heirs)), None)
            if made is None:
                self._start_anew()
                value = self.top.names[definition.name]
                new = self.make(value, [], {}, definition) if isinstance(value, Class) else DATA
                made = new if isinstance(new, Object) else self.new("unknown", definition)
            self._instances[definition] = made
        return self._instances[definition]
