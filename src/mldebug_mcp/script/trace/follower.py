"""Where a script begins, and the state while it is followed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mldebug_mcp.script import library
from mldebug_mcp.script.terms import Terms
from mldebug_mcp.script.trace.calls import Calls
from mldebug_mcp.script.trace.events import Action, Event, Trace
from mldebug_mcp.script.trace.expressions import Expressions
from mldebug_mcp.script.trace.library_calls import LibraryCalls
from mldebug_mcp.script.trace.methods import Methods
from mldebug_mcp.script.trace.names import Names
from mldebug_mcp.script.trace.state import MAX_EVENTS, ExhaustedError, Frame
from mldebug_mcp.script.trace.statements import Statements
from mldebug_mcp.script.values import (
    DATA,
    Class,
    Function,
    Items,
    Kind,
    Loops,
    Object,
    Scope,
    Value,
    objects_in,
    parameters_in,
    terms_of,
)


def trace_of(tree: ast.Module) -> Trace:
    """Return what happens in a script."""
    follower = Follower()
    follower.follow(tree)
    return follower.trace


class Follower:
    """Follows a script: its parts know statements, expressions, names and calls, and share its state."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.statements = Statements(self)
        self.expressions = Expressions(self)
        self.names = Names(self)
        self.calls = Calls(self)
        self.methods = Methods(self)
        self.library_calls = LibraryCalls(self)
        self.top = Scope()
        self.frame = Frame(self.top)
        self.loops: Loops = ()
        self.tests: tuple[ast.AST, ...] = ()
        self.gradients: bool | None = True
        self.entry = 0
        self.count = 0
        self.stack: list[ast.AST] = []
        self.entered: set[ast.AST] = set()
        self.with_block: tuple[ast.AST, Callable[[Value], None]] | None = None
        self.switched: dict[Object, frozenset[str]] = {}
        self._instances: dict[ast.ClassDef, Object] = {}

    def follow(self, tree: ast.Module) -> None:
        """Follow a file from its top, then each function that it never calls."""
        with self._guarded():
            self.statements.body(tree.body)
        for function in self._functions(tree):
            if function.node not in self.entered:
                self._start_anew()
                with self._guarded():
                    self.calls.enter(function, [], {}, function.node)

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
        found.sort(key=lambda one: getattr(one.node, "name", "") in named)
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
            made = next((one for one in self.trace.objects if one.definition is definition), None)
            if made is None:
                self._start_anew()
                value = self.top.names[definition.name]
                known = self.calls.make(value, [], {}, definition) if isinstance(value, Class) else DATA
                made = known if isinstance(known, Object) else self.new("unknown", definition)
            self._instances[definition] = made
        return self._instances[definition]

    @contextmanager
    def under(self, test: ast.AST) -> Iterator[None]:
        """Note that what follows is under a test that the script does not decide."""
        before = self.tests
        self.tests = (*before, test)
        try:
            yield
        finally:
            self.tests = before

    @contextmanager
    def round(self, line: int, place: int) -> Iterator[None]:
        """Note that what follows is in a round of a loop."""
        before = self.loops
        self.loops = (*before, (line, place))
        try:
            yield
        finally:
            self.loops = before

    def iterate(self, through: Value, node: ast.expr | ast.stmt) -> None:
        """Note that a loop goes through loaders."""
        loaders = [one for one in objects_in(through) if one.kind in ("loader", "unknown")]
        if loaders:
            self.event("iterate", loaders, node)

    def escape(self, values: Sequence[Value], node: ast.expr | ast.stmt) -> None:
        """Note what is given to code of another file, which may change it."""
        given = {
            one
            for value in values
            for one in objects_in(value)
            if one.kind in ("model", "optimizer", "unknown", "schedule", "instance")
        }
        for value in values:
            parameters = parameters_in(value)
            given |= parameters.models if parameters is not None else set()
        if given:
            self.event("escape", given, node)

    def note_loss(self, loss: Value, node: ast.AST) -> None:
        """Note what is made smaller; of several values it is the first, or that of the key "loss"."""
        if isinstance(loss, Items) and loss.values:
            loss = loss.values[loss.keys.index("loss")] if "loss" in loss.keys else loss.values[0]
        self.event("loss", (), node, terms=terms_of(loss))

    def new(
        self, kind: Kind, node: ast.AST, *, made_by: str = "", given: Sequence[Value] = (), name: str = ""
    ) -> Object:
        """Make an object."""
        made = Object(kind, getattr(node, "lineno", 0), self.loops, made_by, given=tuple(given), name=name)
        self.trace.objects.append(made)
        return made

    def event(
        self, action: Action, objects: Sequence[Object] | set[Object] | frozenset[Object], node: ast.AST, *,
        modes: frozenset[str] = frozenset(), source: Object | None = None, terms: Terms = frozenset(),
    ) -> Event:  # fmt: skip
        """Note that something happens.

        Raises:
            ExhaustedError: too much has happened.
        """
        if len(self.trace.events) >= MAX_EVENTS:
            raise ExhaustedError
        event = Event(
            action, frozenset(objects), node, self.loops, self.tests, self.gradients, self.frame.path, self.entry,
            modes, source, terms,
        )  # fmt: skip
        self.trace.events.append(event)
        return event
