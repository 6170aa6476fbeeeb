"""What is kept while a script is followed, and how much of it."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mldebug_mcp.script.facts import Facts
from mldebug_mcp.script.terms import Terms
from mldebug_mcp.script.trace.events import Action, Event, Trace
from mldebug_mcp.script.values import (
    Function,
    Items,
    Kind,
    Loops,
    Object,
    Scope,
    Tensor,
    Value,
    objects_in,
    parameters_in,
    terms_of,
)

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


class State(ABC):
    """What is known while a script is followed, and what happens in it.

    The parts build on each other: names, calls of libraries, methods, calls, expressions, statements. What an earlier
    part needs of a later one is declared here.
    """

    def __init__(self) -> None:
        self.trace = Trace()
        self.top = Scope()
        self.frame = Frame(self.top)
        self.loops: Loops = ()
        self.tests: tuple[ast.AST, ...] = ()
        self.gradients: bool | None = True
        self.entry = 0
        self.count = 0
        self.stack: list[ast.AST] = []
        self.through: list[ast.AST] = []
        self.entered: set[ast.AST] = set()
        self.with_block: tuple[ast.AST, Callable[[Value], None]] | None = None
        self.switched: dict[Object, frozenset[str]] = {}
        self.batches: dict[Object, Value] = {}
        self.reading = False
        """Whether the items of a data set are read."""
        self.measures: list[Facts] = []
        """What functions that schedules call measure their progress with."""
        self.lost: tuple[Value, Loops, int] | None = None
        """The last value that gradients were computed for, and the loops in which that was."""
        self.kept: list[tuple[Value, tuple[int, ...], Loops]] = []
        """What was put into lists that outlive the round, with the lines and the loops."""
        self.made_up: list[ast.AST] = []  # kept, as what happens is looked up by the identity of a part of the tree
        self.stands_for_several = False
        """Whether a comprehension is followed with one item for all: what it compares holds for some of them."""

    @abstractmethod
    def value(self, node: ast.expr | None) -> Value:
        """Return the value of an expression; what happens in it is noted."""

    @abstractmethod
    def batch_of(self, loader: Object) -> Value:
        """Return what stands for each batch of a loader."""

    @abstractmethod
    def combined(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        """Return what an operation makes of two values."""

    @abstractmethod
    def call_value(self, called: Value, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        """Return what a call of a value returns."""

    @abstractmethod
    def enter(self, function: Function, args: Sequence[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Follow a function of the script with its arguments, and return what it returns."""

    @abstractmethod
    def forward(self, model: Object, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        """Return what a model or a loss makes of its arguments."""

    @abstractmethod
    def body(self, statements: Sequence[ast.stmt]) -> bool:
        """Follow statements, and return whether they leave the function or the round."""

    @abstractmethod
    def gradients_in(self, context: ast.expr, before: bool | None) -> bool | None:
        """Return whether gradients are on in a block or in a decorated function."""

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
        loaders = [loader for loader in objects_in(through) if loader.kind in ("loader", "unknown")]
        if loaders:
            self.event("iterate", loaders, node)

    def escape(self, values: Sequence[Value], node: ast.expr | ast.stmt) -> None:
        """Note what is given to code of another file, which may change it."""
        given = {
            escaped
            for value in values
            for escaped in objects_in(value)
            if escaped.kind in ("model", "optimizer", "unknown", "schedule", "instance")
        }
        for value in values:
            parameters = parameters_in(value)
            given |= parameters.models if parameters is not None else set()
        if given:
            self.event("escape", given, node)

    def note_kept(self, value: Value, made_in: Loops | None, node: ast.AST) -> None:
        """Note that a value is added to a list, or to a sum, that was made in outer loops, or in none."""
        outlives = made_in is not None and made_in == self.loops[: len(made_in)] and len(made_in) < len(self.loops)
        if not outlives or not self.gradients or not isinstance(value, Tensor) or not value.models:
            return
        lines = tuple(getattr(part, "lineno", 0) for part in (node, *self.through))
        if self.lost is not None and self.lost[0] is value and self.lost[1:] == (self.loops, self.entry):
            self.trace.kept.append(lines)
        self.kept.append((value, lines, self.loops))

    def note_sum(self, value: Value, made_in: Loops, node: ast.AST) -> None:
        """Note that a sum which outlives the round gets the graph of the loss before it."""
        lost = self.lost
        if lost is None or lost[1:] != (self.loops, self.entry) or not isinstance(value, Tensor):
            return
        outlives = made_in == self.loops[: len(made_in)] and len(made_in) < len(self.loops)
        if (
            outlives
            and self.gradients
            and value.models
            and isinstance(lost[0], Tensor)
            and lost[0].models == value.models
        ):
            self.trace.kept.append(tuple(getattr(part, "lineno", 0) for part in (node, *self.through)))

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
            modes, source, terms, tuple(self.through),
        )  # fmt: skip
        self.trace.events.append(event)
        return event
