"""What is kept while a script is followed, and what names, attributes and items hold and are set to."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mldebug_mcp.script import library
from mldebug_mcp.script.calls import fields_in, is_operation
from mldebug_mcp.script.facts import COUNTS, NOTHING, Facts, counted_by_name, filled, role_of_name, with_rows_of
from mldebug_mcp.script.shapes import shape_of_item, shape_of_part
from mldebug_mcp.script.trace import Action, Event, Exchanged, Trace
from mldebug_mcp.script.values import (
    DATA,
    Choice,
    Class,
    Constant,
    Function,
    Items,
    Kind,
    Library,
    Loops,
    Object,
    Parameters,
    Scope,
    Super,
    Tensor,
    Terms,
    Value,
    choices,
    constant_in,
    either,
    facts_of,
    holds_layers,
    models_through,
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
        self.numbers: dict[Object, int] = {}
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

    def numbered(self, value: Object) -> str:
        """Return the label of an object with a number of its own, which is the same each time a script is followed."""
        return f"{value.label} ({self.numbers.setdefault(value, len(self.numbers) + 1)})"

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
        if made_in is None or not self._outlives(value, made_in) or not isinstance(value, Tensor):
            return
        lines = self._lines_to(node)
        if self.lost is not None and self.lost[0] is value and self.lost[1:] == (self.loops, self.entry):
            self.trace.kept.append(lines)
        self.kept.append((value, lines, self.loops))

    def note_sum(self, value: Value, made_in: Loops, node: ast.AST) -> None:
        """Note that a sum which outlives the round gets the graph of the loss before it."""
        if self.lost is None or self.lost[1:] != (self.loops, self.entry) or not self._outlives(value, made_in):
            return
        if isinstance(self.lost[0], Tensor) and self.lost[0].models == models_through(value):
            self.trace.kept.append(self._lines_to(node))

    def _outlives(self, value: Value, made_in: Loops) -> bool:
        """Say whether a value with a graph is added to what was made outside of this round."""
        outside = made_in == self.loops[: len(made_in)] and len(made_in) < len(self.loops)
        return outside and bool(self.gradients) and isinstance(value, Tensor) and bool(value.models)

    def _lines_to(self, node: ast.AST) -> tuple[int, ...]:
        """Return the line of a part of the script, and those of the calls that lead to it."""
        return tuple(getattr(part, "lineno", 0) for part in (node, *self.through))

    def note_loss(self, loss: Value, node: ast.AST) -> None:
        """Note what is made smaller; of several values it is the first, or that of the key "loss"."""
        if isinstance(loss, Items) and loss.values:
            loss = loss.get("loss") or loss.values[0]
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


class Names(State):
    """Reads and sets what has a name, in a scope, an object, a class or a list."""

    def with_role(self, name: str, value: Value, node: ast.AST | None) -> Value:
        """Return what gets a name, with the role that the name says; what has the opposite role is noted."""
        role, known = role_of_name(name), facts_of(value)
        if not role or isinstance(value, Items) or known.role in (role, "preferred less other", "other less preferred"):
            return value
        line = getattr(node, "lineno", 0)
        if known.role and not is_exchange(node):
            self.trace.exchanged.append(Exchanged(line, name, known.line, tuple(self.through)))
        known = replace(known, role=role, line=known.line or line)
        match value:
            case Tensor():
                return replace(value, facts=known)
            case Object() if value.kind == "unknown" and value.name in ("", name):
                value.facts = known
        return value

    def note_two_axes(self, facts: Facts) -> None:
        """Note that data have two axes, as what turns them or adds up over their rows says."""
        if facts.kind == "ones of a column":
            self.trace.over_one.append(facts.line)

    def note_part(self, name: str, value: Value) -> None:
        """Note that a table or array is rows of training, or held-out ones, by the first name that it gets."""
        if not (library.TRAINS.search(name) or library.HELD_OUT.search(name)):
            return
        for part in objects_in(value):
            if part.kind == "unknown" and part.definition is None and not part.facts.part:
                part.facts = replace(part.facts, part=name)

    def set_name(self, name: str, value: Value, node: ast.AST | None = None) -> None:
        """Give a name of the scope a value."""
        scope = self.top if name in self.frame.globals_ else self.frame.scope
        scope.names[name] = value = self.with_role(name, value, node)
        self.note_part(name, value)
        for choice in choices(value):
            if isinstance(choice, Object) and not choice.name:
                choice.name = name

    def assign(self, target: ast.expr, value: Value, node: ast.expr | ast.stmt) -> None:
        """Give what stands left of `=` a value."""
        match target:
            case ast.Name():
                self.set_name(target.id, value, node)
            case ast.Tuple() | ast.List():
                for place, part in enumerate(target.elts):
                    expr = part.value if isinstance(part, ast.Starred) else part
                    self.assign(expr, self.item(value, place), node)
            case ast.Attribute():
                for holder in choices(self.value(target.value)):
                    if isinstance(holder, Object) and is_sum(node, target):
                        self.note_sum(value, holder.loops, node)
                    self.assign_attribute(holder, target.attr, value, node)
            case ast.Subscript():
                owner, key = self.value(target.value), self.value(target.slice)
                plain = constant_in(key)
                if isinstance(owner, Items):
                    self.change(target.value, self.with_item(owner, plain, value), node)
                written = value.value if isinstance(value, Constant) else 1 if facts_of(value).kind == "ones" else None
                if isinstance(owner, Tensor) and isinstance(target.value, ast.Name):
                    known = with_rows_of(filled(owner.facts, target, written), facts_of(value))
                    self.change(target.value, replace(owner, facts=known), node)
                for holder in choices(owner):
                    if isinstance(holder, Parameters):
                        self.event("write", holder.models, node)
                    elif isinstance(holder, Object):
                        known = filled(holder.facts, target, written)
                        if known is not holder.facts:
                            holder.facts = known
                        elif holder.is_table() and not holder.facts.source:
                            # what is put into an array is what it holds
                            holder.facts = with_rows_of(facts_of(value), holder.facts)
                        self.assign_attribute(holder, _attribute_at(plain), value, node)

    def change(self, changed: ast.expr, value: Value, node: ast.expr | ast.stmt) -> None:
        """Give a list or mapping that is changed its new value: its name stays that of the scope which has it."""
        if isinstance(changed, ast.Name):
            self.frame.scope.holder(changed.id).names[changed.id] = value
        elif isinstance(changed, ast.Attribute | ast.Subscript):
            self.assign(changed, value, node)

    def with_item(self, owner: Items, key: object, value: Value) -> Items:
        """Return a list or mapping after one item is set; each may be the one whose key is not known.

        One whose value is not known either, as a command line sets it, leaves what the script writes out.
        """
        if not owner.keys:
            return replace(owner, values=(*owner.values, value), keys=() if owner.values else (key,))
        surely = key is not None and not self.tests
        says = key is not None or not (value == DATA or (isinstance(value, Object) and value.kind == "unknown"))
        changed = [
            (value if surely else either(item, value)) if says and key in (known, None) else item
            for known, item in zip(owner.keys, owner.values, strict=False)
        ]
        if key is not None and key in owner.keys:
            return replace(owner, values=tuple(changed))
        return replace(owner, values=(*changed, value), keys=(*owner.keys, key))

    def assign_attribute(self, owner: Value, name: str, value: Value, node: ast.expr | ast.stmt) -> None:
        """Give an attribute of something a value."""
        if isinstance(owner, Parameters | Object):
            models = owner.models if isinstance(owner, Parameters) else frozenset({owner})
            if name == "data":
                self.event("write", models, node)
            elif name == "requires_grad":
                self.event("freeze" if value == Constant(False) else "unfreeze", models, node)
            elif name == "grad" and isinstance(owner, Parameters):
                self.event("clear" if value == Constant(None) else "gradients", models, node)
        if isinstance(owner, Object):
            old_value = owner.attributes.get(name)
            self.note_part(name, value)
            uncertain = old_value is not None and self.tests and isinstance(value, Object | Constant | Choice)
            owner.attributes[name] = either(old_value, value) if uncertain and old_value is not None else value
            for part in objects_in(value):
                if not isinstance(value, Items):
                    self._attach(owner, part, name, node)
                elif owner.kind == "model" and not owner.is_part_of(part):
                    part.parent = part.parent or owner

    def _attach(self, owner: Object, part: Object, name: str, node: ast.expr | ast.stmt) -> None:
        part.name = part.name or name
        if owner.kind in ("model", "unknown") and part.kind in ("model", "unknown") and not owner.is_part_of(part):
            part.parent = part.parent or owner
            self.event("attach", [owner], node, source=part)

    def add(self, node: ast.AugAssign) -> None:
        """Follow `x += y`."""
        value = self.value(node.value)
        old_value = self.value(node.target) if not isinstance(node.target, ast.Subscript) else DATA
        parameters = parameters_in(old_value)
        if isinstance(old_value, Parameters):
            self.event("gradients" if old_value.gradients else "write", old_value.models, node)
        elif isinstance(old_value, Items) or parameters is not None or parameters_in(value) is not None:
            both = [part.values if isinstance(part, Items) else (part,) for part in (old_value, value)]
            self.assign(node.target, Items((*both[0], *both[1])[: MAX_ITEMS * 2]), node)
        elif not isinstance(old_value, Object):
            sides = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            self.assign(node.target, self.combined(sides, old_value, value), node)

    def item(self, value: Value, place: object) -> Value:
        """Return the item of something at a place; None stands for a place that is not known."""
        match value:
            case Items() if value.fills and (place not in value.keys if place is not None else not value.values):
                return Items(())
            case Items() if value.pattern:
                return either(*value.values) if value.values else DATA
            case Items() if value.keys:
                return value.get(place) or either(*value.values)
            case Items() if (
                isinstance(place, int)
                and not isinstance(place, bool)
                and -len(value.values) <= place < len(value.values)
            ):
                return value.values[place]
            case Items() if value.values:
                return either(*value.values)
            case Choice():
                return either(*(self.item(choice, place) for choice in value.values))
            case Object():
                return self.attribute(value, _attribute_at(place))
            case Parameters():
                return value
        return Tensor(models_through(value), shape=shape_of_item(value))

    def attribute(self, value: Value, name: str) -> Value:
        """Return an attribute of something."""
        match value:
            case Library():
                return Library(f"{value.name}.{name}")
            case Choice():
                parts = [self.attribute(choice, name) for choice in value.values if choice != Constant(None)]
                return either(*parts) if parts else DATA
            case Items() if name in value.keys:
                return self.item(value, name)
            case Parameters():
                if name == "grad":
                    return Parameters(value.models, known=value.known, gradients=True)
                return value if name == "data" else DATA
            case Tensor():
                if name == "T":
                    self.note_two_axes(value.facts)
                shape = shape_of_part(value, name)
                return Tensor(shape=shape) if name in library.PLAIN_ATTRIBUTES else replace(value, shape=shape)
            case Object():
                return self.attribute_of_object(value, name)
            case Class():
                method = self.method(value.node, name)
                known = method if method is not None else self._class_value(value.node, name) or DATA
                is_member = any(ast.unparse(base).endswith("Enum") for base in value.node.bases) and method is None
                return Constant(f"{value.path}.{name}") if is_member else known
            case Super():
                for base in self._bases(value.below):
                    method = self.method(base, name, value.owner)
                    if method is not None:
                        return method
                return self.new("unknown", value.below, made_by=f"super.{name}")
        return DATA

    def attribute_of_object(self, owner: Object, name: str) -> Value:
        """Return an attribute of an object; one that nothing sets is made."""
        if name in owner.attributes:
            return owner.attributes[name]
        if name == "*" and holds_layers(owner):
            return either(*owner.attributes.values())
        if name in ("module", "_orig_mod") and owner.definition is None:
            return owner
        if owner.kind == "loader" and name in ("sampler", "batch_sampler") and "sampler" in owner.settings:
            return self._sampler_of(owner, name)
        if name == "training" and owner is not self.frame.owner and len(owner.modes) == 1:
            return Constant("train" in owner.modes)
        if owner.definition is not None:
            method = self.method(owner.definition, name, owner)
            if method is not None:
                decorators = [ast.unparse(decorator) for decorator in getattr(method.node, "decorator_list", ())]
                is_property = any("property" in decorator for decorator in decorators)
                return self.enter(method, [], {}, method.node) if is_property else method
            value = self._class_value(owner.definition, name)
            if value is not None:
                owner.attributes[name] = value
                return value
        part = Object(
            loops=owner.loops,
            line=owner.line,
            parent=owner,
            name=name,
            made_by=f"{owner.made_by}.{name}" if owner.made_by else "",
        )
        part.modes, part.facts, part.shape = owner.modes, owner.facts, shape_of_part(owner, name)
        if owner.kind == "unknown":
            self.with_role(name, part, None)
        part.through = frozenset() if name in library.PLAIN_ATTRIBUTES else owner.through
        self.trace.objects.append(part)
        owner.attributes[name] = part
        return part

    def _sampler_of(self, loader: Object, name: str) -> Value:
        """Return the sampler that a loader was given, or what makes batches of its places."""
        if name == "sampler":
            return loader.settings[name]
        batches = Object(line=loader.line, name=name, made_by=library.BATCH_SAMPLER)
        batches.attributes = {"sampler": loader.settings["sampler"], "batch_size": DATA, "drop_last": DATA}
        return loader.attributes.setdefault(name, batches)

    def fields_of(self, owner: Object) -> Items:
        """Return the fields of a data class with what they hold, as a mapping."""
        classes = reversed(list(self.classes(owner.definition) if owner.definition is not None else ()))
        fields = dict.fromkeys([*(name for class_ in classes for name in fields_in(class_)), *owner.attributes])
        return Items(tuple(self.attribute_of_object(owner, name) for name in fields), tuple(fields))

    def counted(self, name: str, value: Value, node: ast.expr) -> Value:
        """Return what has a name, with its role, or what a number of such a name counts, where nothing else says it."""
        if isinstance(value, Tensor) and not value.facts.role and (role := role_of_name(name)):
            return replace(value, facts=replace(value.facts, role=role, line=value.facts.line or node.lineno))
        known = counted_by_name(name, facts_of(value).line or node.lineno) if name else NOTHING
        if not known.kind or facts_of(value).kind not in ("", "number"):
            return value
        match value:
            case Constant() if facts_of(value).kind:
                return replace(value, facts=known)
            case Tensor() if not value.models:
                return replace(value, facts=known)
            case Object() if value.kind == "unknown":
                value.facts = known
        return value

    def note_clock(self, left: Facts, right: Facts) -> None:
        """Note what a function that a schedule calls measures its progress with."""
        if "clock" in (left.kind, right.kind):
            self.measures += [facts for facts in (left, right) if facts.kind in COUNTS]

    def element(self, through: Value) -> Value:
        """Return what stands for each item of something."""
        match through:
            case Parameters():
                plain = Parameters(through.models, known=through.known)
                return Items((DATA, plain)) if through.named else plain
            case Items():
                return either(*through.values) if through.values else DATA
            case Choice():
                return either(*(self.element(value) for value in through.values))
            case Object() if through.is_of_model():
                return self.attribute(through, "*")
            case Object() if through.kind == "loader":
                return self.batch_of(through)
            case Object() if through.definition is not None and through.kind == "instance":
                iterates = self.method(through.definition, "__iter__", through)
                if iterates is not None and self.stack.count(iterates.node) == 0:
                    return self.element(self.enter(iterates, [], {}, iterates.node))
        return Tensor(models_through(through), shape=shape_of_item(through))

    def classes(self, definition: ast.ClassDef, depth: int = 0) -> Iterator[ast.ClassDef]:
        """Yield a class and its bases of this script."""
        yield definition
        for base in self._bases(definition):
            if depth < MAX_CALL_DEPTH and base is not definition:
                yield from self.classes(base, depth + 1)

    def _bases(self, definition: ast.ClassDef) -> list[ast.ClassDef]:
        found = (self.top.find(base.id) for base in definition.bases if isinstance(base, ast.Name))
        return [base.node for base in found if isinstance(base, Class)]

    def method(self, definition: ast.ClassDef, name: str, owner: Object | None = None) -> Function | None:
        """Return the method of a class, or of its bases."""
        for class_ in self.classes(definition):
            for part in class_.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name == name:
                    static = any(ast.unparse(mark) == "staticmethod" for mark in part.decorator_list)
                    return Function(part, self.top, f"{class_.name}.{name}", None if static else owner, class_)
        return None

    def _class_value(self, definition: ast.ClassDef, name: str) -> Value | None:
        for class_ in self.classes(definition):
            for part in class_.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id == name:
                    return self.value(part.value) if part.value is not None else None
                if isinstance(part, ast.Assign) and any(
                    isinstance(target, ast.Name) and target.id == name for target in part.targets
                ):
                    return self.value(part.value)
        return None


def is_sum(node: ast.AST, target: ast.expr) -> bool:
    """Say whether a statement adds to what it changes: `x.total += y`, `x.total = x.total + y`."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add)
    value = node.value if isinstance(node, ast.Assign) else None
    added = is_operation(value, ast.Add)
    return added and isinstance(value, ast.BinOp) and ast.unparse(target) in map(ast.unparse, (value.left, value.right))


def is_exchange(node: ast.AST | None) -> bool:
    """Say whether a statement exchanges values: `a, b = b, a`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    parts = [ast.unparse(part) for part in target.elts] if isinstance(target, ast.Tuple) else []
    return sorted(parts) == sorted(map(ast.unparse, node.value.elts))


def _attribute_at(place: object) -> str:
    """Return the name of the part at a place; "*" for one that is counted from the end, or not known."""
    return "*" if place is None or (isinstance(place, int) and place < 0) else str(place)
