"""A script → what happens to its models, optimizers and loaders, in order.

The script is followed over abstract values and never run. Local functions and methods are entered with their arguments.
Both branches of a test are taken unless a constant decides it. Each loop is gone through twice.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from mldebug_mcp.script import library
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
    Value,
    choices,
    either,
    end_of,
    models_through,
    objects_in,
    parameters_in,
)

MAX_STATEMENTS = 30_000
"""Statements that are followed. Chosen: two seconds."""
MAX_CALL_DEPTH = 12
"""Calls inside of calls that are entered."""
ROUNDS = 2
"""Times that a loop is gone through: what one round leaves to the next is seen in the second."""
MAX_LISTED = 64
"""Items of a list that are kept apart."""
MAX_EVENTS = 5_000
"""Events that are kept. Chosen: rules compare each with those around it."""
MAX_ITEMS = 8
"""Items of a list that a loop goes through one by one."""

Action = Literal[
    "make", "forward", "backward", "step", "schedule", "clear", "clip", "train", "eval", "write", "load", "freeze",
    "unfreeze", "attach", "escape", "iterate", "unscale", "gradients", "copy", "policy",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to objects of a script.

    Args:
        action: What happens.
        objects: What it happens to: the optimizer that steps, the models that gradients are computed for.
        node: The part of the script that does it.
        loops: The loops around it, those around callers among them.
        tests: The tests around it that the script does not decide, as parts of the syntax tree.
        gradients: Whether gradients are on; None where that is not known.
        function: The function of the file that it stands in.
        entry: The place where the script begins: 0 for its top, others for functions that it never calls.
        modes: The modes of a model in a forward pass.
        source: What is loaded or attached.
    """

    action: Action
    objects: frozenset[Object]
    node: ast.AST
    loops: Loops
    tests: tuple[ast.AST, ...]
    gradients: bool | None
    function: str
    entry: int
    modes: frozenset[str] = frozenset()
    source: Object | None = None

    @property
    def line(self) -> int:
        """The line, from 1."""
        return getattr(self.node, "lineno", 0)

    @property
    def loop_lines(self) -> tuple[int, ...]:
        """The lines of the loops around it."""
        return tuple(line for line, _ in self.loops)


@dataclass(slots=True)
class Trace:
    """What happens in a script.

    Args:
        events: In order.
        objects: All objects, in the order in which they are made or met.
        is_complete: Whether all of the script was followed.
        given: By the identity of a call in the syntax tree, what its first argument was each time.
    """

    events: list[Event] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    is_complete: bool = True
    given: dict[int, list[Value]] = field(default_factory=dict)

    def of(self, *actions: Action) -> list[Event]:
        """Return the events of some kinds."""
        return [event for event in self.events if event.action in actions]

    def steps_model(self, step: Event, model: Object) -> bool:
        """Say whether a step may change a model: its optimizer has some of its parameters, or unknown ones."""
        return any(
            one.kind == "optimizer" and (not one.holds_all or any(held.is_related_to(model) for held in one.holds))
            for one in step.objects
        )

    def clears_model(self, clear: Event, model: Object) -> bool:
        """Say whether gradients of a model may be cleared."""
        return any(one.is_related_to(model) for one in clear.objects) or any(
            one.kind != "model"
            and (not one.holds or not one.holds_all or any(held.is_related_to(model) for held in one.holds))
            for one in clear.objects
        )


def trace_of(tree: ast.Module) -> Trace:
    """Return what happens in a script."""
    follower = _Follower()
    follower.follow(tree)
    return follower.trace


class _ExhaustedError(Exception):
    """The script has more statements than are followed."""


@dataclass(slots=True)
class _Frame:
    scope: Scope
    path: str = ""
    owner: Object | None = None
    owner_class: ast.ClassDef | None = None
    returned: list[Value] = field(default_factory=list)
    globals_: set[str] = field(default_factory=set)


class _Follower:
    def __init__(self) -> None:
        self.trace = Trace()
        self._top = Scope()
        self._frame = _Frame(self._top)
        self._loops: Loops = ()
        self._tests: tuple[ast.AST, ...] = ()
        self._gradients: bool | None = True
        self._entry = 0
        self._count = 0
        self._stack: list[ast.AST] = []
        self._entered: set[ast.AST] = set()
        self._switched: dict[Object, frozenset[str]] = {}
        self._instances: dict[ast.ClassDef, Object] = {}

    # Where the script begins.

    def follow(self, tree: ast.Module) -> None:
        with self._guarded():
            self._body(tree.body)
        for function in self._functions(tree):
            if function.node not in self._entered:
                self._start_anew()
                with self._guarded():
                    self._enter(function, [], {}, function.node)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (_ExhaustedError, RecursionError):
            self.trace.is_complete = False

    def _start_anew(self) -> None:
        self._entry += 1
        self._frame = _Frame(self._top)
        self._loops, self._tests, self._gradients, self._stack = (), (), True, []

    def _functions(self, tree: ast.Module) -> Iterator[Function]:
        """Yield the functions and methods of a file, those that no other names first."""
        named = {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        }
        found = []
        for statement in tree.body:
            value = self._top.names.get(statement.name) if isinstance(statement, library.DEFINITIONS) else None
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
            elif function.node not in self._entered:
                with self._guarded():
                    owner = self._instance_of(function.owner_class)
                    yield Function(function.node, function.scope, function.path, owner, function.owner_class)

    def _instance_of(self, definition: ast.ClassDef) -> Object:
        """Return the instance of a class whose methods nothing calls: one that the script makes, else a new one."""
        if definition not in self._instances:
            made = next((one for one in self.trace.objects if one.definition is definition), None)
            if made is None:
                self._start_anew()
                value = self._top.names[definition.name]
                known = self._make(value, [], {}, definition) if isinstance(value, Class) else DATA
                made = known if isinstance(known, Object) else self._new("unknown", definition)
            self._instances[definition] = made
        return self._instances[definition]

    # Statements. Each returns whether what follows it is never reached.

    def _body(self, statements: Sequence[ast.stmt]) -> bool:
        return any(self._statement(statement) for statement in statements)

    def _statement(self, node: ast.stmt) -> bool:
        self._count += 1
        if self._count > MAX_STATEMENTS:
            raise _ExhaustedError
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._set(node.name, Function(node, self._frame.scope, self._path_of(node.name)))
            case ast.ClassDef():
                self._set(node.name, Class(node, self._frame.scope, self._path_of(node.name)))
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Assign():
                value = self._value(node.value)
                for target in node.targets:
                    self._assign(target, value, node)
            case ast.AnnAssign() if node.value is not None:
                self._assign(node.target, self._value(node.value), node)
            case ast.AugAssign():
                self._add(node)
            case ast.Expr():
                self._value(node.value)
            case ast.Return():
                self._frame.returned.append(self._value(node.value) if node.value else Constant(None))
                return True
            case ast.If():
                return self._if(node)
            case ast.For() | ast.AsyncFor():
                self._for(node)
            case ast.While():
                self._while(node)
            case ast.With() | ast.AsyncWith():
                return self._with(node)
            case ast.Try():
                left = self._body([*node.body, *node.orelse])
                for handler in node.handlers:
                    with self._under(handler):
                        self._body(handler.body)
                return self._body(node.finalbody) or (left and not node.handlers)
            case ast.Match():
                self._value(node.subject)
                for case in node.cases:
                    with self._under(case):
                        self._body(case.body)
            case ast.Global():
                self._frame.globals_ |= set(node.names)
            case ast.Break() | ast.Continue() | ast.Raise():
                return True
            case ast.Assert():
                self._value(node.test)
        return False

    def _path_of(self, name: str) -> str:
        return f"{self._frame.path}.{name}" if self._frame.path else name

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self._set(alias.asname or alias.name, Library(f"{node.module or ''}.{alias.name}".lstrip(".")))
            elif alias.asname:
                self._set(alias.asname, Library(alias.name))
            else:
                first = alias.name.partition(".")[0]
                self._set(first, Library(first))

    @contextmanager
    def _under(self, test: ast.AST) -> Iterator[None]:
        before = self._tests
        self._tests = (*before, test)
        try:
            yield
        finally:
            self._tests = before

    def _if(self, node: ast.If) -> bool:
        self._value(node.test)
        known = self._truth(node.test)
        if known is not None:
            return self._body(node.body if known else node.orelse)
        scope, before = self._frame.scope, dict(self._frame.scope.names)
        modes = {one: one.modes for one in self._switched}
        with self._under(node):
            left = self._body(node.body)
        after = scope.names
        after_modes = {one: one.modes for one in self._switched}
        scope.names = dict(before)
        for one, at_start in self._switched.items():
            one.modes = modes.get(one, at_start)
        with self._under(node):
            other_left = self._body(node.orelse)
        if left and not other_left:
            return False
        if other_left and not left:
            scope.names = after
            for one, held in after_modes.items():
                one.modes = held
            return False
        for name, value in after.items():
            other = scope.names.get(name)
            scope.names[name] = value if other is None else either(other, value)
        for one, held in after_modes.items():
            one.modes |= held
        return left and other_left

    def _truth(self, test: ast.expr) -> bool | None:
        """Return whether a test holds, None where the script does not decide it."""
        match test:
            case ast.UnaryOp(op=ast.Not()):
                inner = self._truth(test.operand)
                return None if inner is None else not inner
            case ast.BoolOp():
                parts = [self._truth(part) for part in test.values]
                deciding = isinstance(test.op, ast.Or)
                if deciding in parts:
                    return deciding
                return None if None in parts else not deciding
            case ast.Compare() if len(test.ops) == 1:
                return self._compared(self._value(test.left), test.ops[0], self._value(test.comparators[0]))
        value = self._value(test)
        if isinstance(value, Constant):
            return bool(value.value)
        return True if isinstance(value, Object) and value.kind not in ("unknown", "instance") else None

    def _compared(self, left: Value, operator: ast.cmpop, right: Value) -> bool | None:
        if isinstance(left, Constant) and isinstance(right, Constant):
            same = left.value == right.value
            return {ast.Eq: same, ast.NotEq: not same, ast.Is: same, ast.IsNot: not same}.get(type(operator))
        if isinstance(right, Constant) and right.value is None and isinstance(operator, ast.Is | ast.IsNot):
            is_unknown = isinstance(left, Object) and left.kind == "unknown"
            known = isinstance(left, Object | Items | Function | Class | Parameters) and not is_unknown
            return isinstance(operator, ast.IsNot) if known else None
        return None

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        through = self._value(node.iter)
        for place, value in enumerate(self._rounds(through)):
            with self._round(node.lineno, place):
                self._iterate(through, node)
                self._assign(node.target, value, node)
                self._body(node.body)
        self._body(node.orelse)

    def _while(self, node: ast.While) -> None:
        if self._truth(node.test) is False:
            return
        for place in range(ROUNDS):
            with self._round(node.lineno, place):
                self._value(node.test)
                self._body(node.body)
        self._body(node.orelse)

    def _rounds(self, through: Value) -> Sequence[Value]:
        """Return what a loop goes through, one value a round."""
        if isinstance(through, Items) and not through.pattern and len(through.values) <= MAX_ITEMS:
            return (through.keys and [Constant(key) for key in through.keys]) or through.values
        return [self._element(through)] * ROUNDS

    @contextmanager
    def _round(self, line: int, place: int) -> Iterator[None]:
        before = self._loops
        self._loops = (*before, (line, place))
        try:
            yield
        finally:
            self._loops = before

    def _iterate(self, through: Value, node: ast.expr | ast.stmt) -> None:
        loaders = [one for one in objects_in(through) if one.kind in ("loader", "unknown")]
        if loaders:
            self._event("iterate", loaders, node)

    def _element(self, through: Value) -> Value:
        """Return what stands for each item of something."""
        match through:
            case Parameters():
                plain = Parameters(through.models, known=through.known)
                return Items((DATA, plain)) if through.named else plain
            case Items():
                return either(*through.values) if through.values else DATA
            case Choice():
                return either(*(self._element(one) for one in through.values))
            case Object() if through.is_of_model():
                return self._attribute(through, "*")
        return Tensor(models_through(through))

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        before = self._gradients
        for item in node.items:
            context = self._value(item.context_expr)
            self._gradients = self._gradients_in(item.context_expr, self._gradients)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, context, node)
        left = self._body(node.body)
        self._gradients = before
        return left

    def _gradients_in(self, context: ast.expr, before: bool | None) -> bool | None:
        """Return whether gradients are on in a block or in a decorated function."""
        called = context.func if isinstance(context, ast.Call) else context
        value = self._value(called)
        if isinstance(value, Function):
            inner = [ast.unparse(node) for node in ast.walk(value.node) if isinstance(node, ast.Attribute | ast.Name)]
            return False if any(map(library.NO_GRADIENTS.search, inner)) else before
        name = value.name if isinstance(value, Library) else ""
        if library.NO_GRADIENTS.search(name):
            return False
        last = name.rpartition(".")[2]
        if last == "enable_grad":
            return True
        if last == "set_grad_enabled" and isinstance(context, ast.Call) and context.args:
            return self._truth(context.args[0])
        return before if not isinstance(value, Object) else (None if before else before)

    # Names, attributes, items.

    def _set(self, name: str, value: Value) -> None:
        scope = self._top if name in self._frame.globals_ else self._frame.scope
        scope.names[name] = value
        for one in choices(value):
            if isinstance(one, Object) and not one.name:
                one.name = name

    def _assign(self, target: ast.expr, value: Value, node: ast.expr | ast.stmt) -> None:
        match target:
            case ast.Name():
                self._set(target.id, value)
            case ast.Tuple() | ast.List():
                for place, part in enumerate(target.elts):
                    one = part.value if isinstance(part, ast.Starred) else part
                    self._assign(one, self._item(value, place), node)
            case ast.Attribute():
                for holder in choices(self._value(target.value)):
                    self._assign_attribute(holder, target.attr, value, node)
            case ast.Subscript():
                owner, key = self._value(target.value), self._value(target.slice)
                plain = key.value if isinstance(key, Constant) else None
                if isinstance(owner, Items):
                    self._assign(
                        target.value,
                        Items((*owner.values, value), (*owner.keys, plain) if owner.keys or not owner.values else ()),
                        node,
                    )
                for holder in choices(owner):
                    if isinstance(holder, Parameters):
                        self._event("write", holder.models, node)
                    elif isinstance(holder, Object):
                        self._assign_attribute(holder, str(plain) if plain is not None else "*", value, node)

    def _assign_attribute(self, owner: Value, name: str, value: Value, node: ast.expr | ast.stmt) -> None:
        if isinstance(owner, Parameters):
            if name == "grad":
                self._event("clear" if value == Constant(None) else "gradients", owner.models, node)
            elif name == "requires_grad":
                self._event("freeze" if value == Constant(False) else "unfreeze", owner.models, node)
            elif name == "data":
                self._event("write", owner.models, node)
        elif isinstance(owner, Object):
            if name == "data":
                self._event("write", [owner], node)
            if name == "requires_grad":
                self._event("freeze" if value == Constant(False) else "unfreeze", [owner], node)
            held = owner.attributes.get(name)
            uncertain = held is not None and self._tests and isinstance(value, Object | Constant | Choice)
            owner.attributes[name] = either(held, value) if uncertain and held is not None else value
            for one in objects_in(value):
                if isinstance(value, Items):
                    one.parent = one.parent or (owner if owner.kind == "model" and not owner.is_part_of(one) else None)
                else:
                    self._attach(owner, one, name, node)

    def _attach(self, owner: Object, part: Object, name: str, node: ast.expr | ast.stmt) -> None:
        part.name = part.name or name
        if owner.kind in ("model", "unknown") and part.kind in ("model", "unknown") and not owner.is_part_of(part):
            part.parent = part.parent or owner
            self._event("attach", [owner], node, source=part)

    def _add(self, node: ast.AugAssign) -> None:
        value = self._value(node.value)
        held = self._value(node.target) if not isinstance(node.target, ast.Subscript) else DATA
        parameters = parameters_in(held)
        if isinstance(held, Parameters):
            self._event("gradients" if held.gradients else "write", held.models, node)
        elif isinstance(held, Items) or parameters is not None or parameters_in(value) is not None:
            both = [
                *(held.values if isinstance(held, Items) else [held]),
                *(value.values if isinstance(value, Items) else [value]),
            ]
            self._assign(node.target, Items(tuple(both[: MAX_ITEMS * 2])), node)
        elif not isinstance(held, Object):
            self._assign(node.target, Tensor(models_through(held, value)), node)

    def _item(self, value: Value, place: object) -> Value:
        match value:
            case Items() if value.pattern:
                return either(*value.values) if value.values else DATA
            case Items() if value.keys:
                return value.values[value.keys.index(place)] if place in value.keys else either(*value.values)
            case Items() if (
                isinstance(place, int)
                and not isinstance(place, bool)
                and -len(value.values) <= place < len(value.values)
            ):
                return value.values[place]
            case Items() if value.values:
                return either(*value.values)
            case Choice():
                return either(*(self._item(one, place) for one in value.values))
            case Object():
                return self._attribute(value, str(place) if place is not None else "*")
            case Parameters():
                return value
        return Tensor(models_through(value))

    def _attribute(self, value: Value, name: str) -> Value:
        match value:
            case Library():
                return Library(f"{value.name}.{name}")
            case Choice():
                parts = [self._attribute(one, name) for one in value.values if one != Constant(None)]
                return either(*parts) if parts else DATA
            case Parameters():
                if name == "grad":
                    return Parameters(value.models, known=value.known, gradients=True)
                return value if name == "data" else DATA
            case Tensor():
                return DATA if name in library.PLAIN_ATTRIBUTES else value
            case Object():
                return self._attribute_of_object(value, name)
            case Class():
                method = self._method(value.node, name)
                return method if method is not None else self._class_value(value.node, name) or DATA
            case Super():
                for base in self._bases(value.below):
                    method = self._method(base, name, value.owner)
                    if method is not None:
                        return method
                return self._new("unknown", value.below, made_by=f"super.{name}")
        return DATA

    def _attribute_of_object(self, owner: Object, name: str) -> Value:
        if name in owner.attributes:
            return owner.attributes[name]
        if name in ("module", "_orig_mod") and owner.definition is None:
            return owner
        if owner.definition is not None:
            method = self._method(owner.definition, name, owner)
            if method is not None:
                decorators = [ast.unparse(one) for one in getattr(method.node, "decorator_list", ())]
                return (
                    self._enter(method, [], {}, method.node) if any("property" in one for one in decorators) else method
                )
            value = self._class_value(owner.definition, name)
            if value is not None:
                return value
        part = Object(
            loops=owner.loops,
            line=owner.line,
            parent=owner,
            name=name,
            made_by=f"{owner.made_by}.{name}" if owner.made_by else "",
        )
        part.modes = owner.modes
        part.through = frozenset() if name in library.PLAIN_ATTRIBUTES else owner.through
        self.trace.objects.append(part)
        owner.attributes[name] = part
        return part

    def _classes(self, definition: ast.ClassDef, depth: int = 0) -> Iterator[ast.ClassDef]:
        yield definition
        for base in self._bases(definition):
            if depth < MAX_CALL_DEPTH and base is not definition:
                yield from self._classes(base, depth + 1)

    def _bases(self, definition: ast.ClassDef) -> list[ast.ClassDef]:
        found = (self._top.find(base.id) for base in definition.bases if isinstance(base, ast.Name))
        return [one.node for one in found if isinstance(one, Class)]

    def _method(self, definition: ast.ClassDef, name: str, owner: Object | None = None) -> Function | None:
        for one in self._classes(definition):
            for part in one.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name == name:
                    static = any(ast.unparse(mark) == "staticmethod" for mark in part.decorator_list)
                    return Function(part, self._top, f"{one.name}.{name}", None if static else owner, one)
        return None

    def _class_value(self, definition: ast.ClassDef, name: str) -> Value | None:
        for one in self._classes(definition):
            for part in one.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id == name:
                    return self._value(part.value) if part.value is not None else None
                if isinstance(part, ast.Assign) and any(
                    isinstance(target, ast.Name) and target.id == name for target in part.targets
                ):
                    return self._value(part.value)
        return None

    # Expressions.

    def _value(self, node: ast.expr | None) -> Value:
        match node:
            case None:
                return Constant(None)
            case ast.Constant():
                return Constant(node.value)
            case ast.Name():
                return self._named(node.id)
            case ast.Attribute():
                return self._attribute(self._value(node.value), node.attr)
            case ast.Call():
                return self._call(node)
            case ast.Tuple() | ast.List() | ast.Set():
                return self._listed(node.elts)
            case ast.Dict():
                keys = [self._value(key) for key in node.keys]
                plain = tuple(key.value if isinstance(key, Constant) else None for key in keys)
                return Items(tuple(self._value(value) for value in node.values), plain)
            case ast.Subscript():
                key = self._value(node.slice)
                value = self._value(node.value)
                if isinstance(node.slice, ast.Slice) and isinstance(value, Items | Parameters):
                    return value
                return self._item(value, key.value if isinstance(key, Constant) else None)
            case ast.IfExp():
                known = self._truth(node.test)
                if known is not None:
                    return self._value(node.body if known else node.orelse)
                with self._under(node):
                    return either(self._value(node.body), self._value(node.orelse))
            case ast.BoolOp():
                return either(*(self._value(one) for one in node.values))
            case ast.Lambda():
                return Function(node, self._frame.scope, self._frame.path, self._frame.owner, self._frame.owner_class)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehension(node, node.elt)
            case ast.DictComp():
                return self._comprehension(node, node.value)
            case ast.NamedExpr():
                value = self._value(node.value)
                self._assign(node.target, value, node)
                return value
            case ast.Starred() | ast.Await():
                return self._value(node.value)
            case ast.Yield() | ast.YieldFrom():
                self._frame.returned.append(Items((self._value(node.value),), pattern=True))
                return DATA
            case ast.UnaryOp() if isinstance(node.op, ast.Not):
                known = self._truth(node.operand)
                return DATA if known is None else Constant(not known)
            case ast.UnaryOp():
                operand = self._value(node.operand)
                return Tensor(models_through(operand), end_of(operand))
            case ast.Compare():
                for one in (node.left, *node.comparators):
                    self._value(one)
                return DATA
            case ast.BinOp():
                return self._combined(node)
            case ast.JoinedStr():
                for part in node.values:
                    if isinstance(part, ast.FormattedValue):
                        self._value(part.value)
        return DATA

    def _combined(self, node: ast.BinOp) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.Add) and isinstance(left, Items) and isinstance(right, Items):
            return Items((*left.values, *right.values))
        if isinstance(node.op, ast.Add) and (isinstance(left, Items) or parameters_in(left) or parameters_in(right)):
            return Items((left, right), pattern=True)
        parts = [Tensor(one.models) if isinstance(one, Parameters) else one for one in (left, right)]
        ends = [end_of(one) for one in (left, right)]
        if isinstance(node.op, ast.Mult) and "log_prob" in ends and ends[0] != ends[1]:
            weight = models_through(right if ends[0] == "log_prob" else left)
            if weight and self._gradients:
                self._event("policy", weight, node)
        known = all(isinstance(one, Constant) or (isinstance(one, Tensor) and one.is_known) for one in (left, right))
        return Tensor(models_through(*parts), "log_prob" if "log_prob" in ends else "", known)

    def _named(self, name: str) -> Value:
        value = self._frame.scope.find(name)
        if value is not None:
            return value
        if name == "__name__":
            return Constant("__main__")
        known = library.usual_name(name)
        if known or hasattr(builtins, name):
            return Library(known or name)
        given = Object(name=name, made_by=name)
        self.trace.objects.append(given)
        self._top.names[name] = given
        return given

    def _listed(self, nodes: Sequence[ast.expr]) -> Items:
        values: list[Value] = []
        pattern = False
        for node in nodes:
            value = self._value(node)
            if isinstance(node, ast.Starred):
                pattern = pattern or not isinstance(value, Items) or value.pattern
                values += value.values if isinstance(value, Items) else [value]
            else:
                values.append(value)
        return Items(tuple(values), pattern=pattern)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, kept: ast.expr
    ) -> Value:
        outer, loops = self._frame.scope, self._loops
        self._frame.scope = Scope(outer)
        try:
            for place, part in enumerate(node.generators):
                through = self._value(part.iter)
                if (
                    place == 0
                    and len(node.generators) == 1
                    and isinstance(through, Items)
                    and not through.pattern
                    and not part.ifs
                    and not through.keys
                    and len(through.values) <= MAX_ITEMS
                ):
                    values = []
                    for value in through.values:
                        self._assign(part.target, value, kept)
                        values.append(self._value(kept))
                    return Items(tuple(values))
                self._loops = (*self._loops, (kept.lineno, 0))
                self._iterate(through, kept)
                self._assign(part.target, self._element(through), kept)
                for test in part.ifs:
                    self._value(test)
            value = self._value(kept)
        finally:
            self._frame.scope, self._loops = outer, loops
        return value if isinstance(value, Parameters) else Items((value,), pattern=True)

    # Calls.

    def _call(self, node: ast.Call) -> Value:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = self._value(node.func.value if isinstance(node.func, ast.Attribute) else node.func)
        args: list[Value] = []
        for arg in node.args:
            value = self._value(arg)
            spread = isinstance(arg, ast.Starred) and isinstance(value, Items) and not value.pattern
            args += value.values if spread and isinstance(value, Items) else [value]
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self._value(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Items):
                keywords |= {
                    key: one for key, one in zip(value.keys, value.values, strict=False) if isinstance(key, str)
                }
        if args:
            self.trace.given.setdefault(id(node), []).append(args[0])
        callees = [one for one in choices(called) if one != Constant(None)]
        if method:
            results = [self._call_method(one, method, args, keywords, node) for one in callees]
        else:
            results = [self._call_value(one, args, keywords, node) for one in callees]
        return either(*results) if results else DATA

    def _call_value(self, called: Value, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        match called:
            case Choice():
                return either(*(self._call_value(one, args, keywords, node) for one in called.values))
            case Function():
                return self._enter(called, args, keywords, node)
            case Class():
                return self._make(called, args, keywords, node)
            case Library():
                return self._call_library(called.name, args, keywords, node)
            case Object():
                return self._forward(called, args, keywords, node)
        return Tensor(models_through(called, *args, *keywords.values()))

    def _enter(self, function: Function, args: Sequence[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Follow a function with what it is given, and return what it returns."""
        definition = function.node
        if len(self._stack) >= MAX_CALL_DEPTH or self._stack.count(definition) > 1:
            return self._new("unknown", node)
        before = (self._frame, self._gradients)
        scope = Scope(function.scope)
        self._frame = _Frame(scope, function.path, function.owner, function.owner_class)
        self._bind(function, args, keywords)
        self._stack.append(definition)
        self._entered.add(definition)
        try:
            if isinstance(definition, ast.Lambda):
                return self._value(definition.body)
            for decorator in definition.decorator_list:
                self._gradients = self._gradients_in(decorator, self._gradients)
            self._body(definition.body)
            return either(*self._frame.returned) if self._frame.returned else Constant(None)
        finally:
            self._stack.pop()
            self._frame, self._gradients = before

    def _bind(self, function: Function, args: Sequence[Value], keywords: dict[str, Value]) -> None:
        given, names = function.node.args, self._frame.scope.names
        parameters = [*given.posonlyargs, *given.args]
        values = list(args)
        if function.owner is not None and parameters:
            class_method = any(
                "classmethod" in ast.unparse(one) for one in getattr(function.node, "decorator_list", ())
            )
            own = function.owner
            values.insert(
                0,
                Class(function.owner_class, self._top, function.owner_class.name)
                if class_method and function.owner_class
                else own,
            )
        defaults = dict(zip([one.arg for one in reversed(parameters)], reversed(given.defaults), strict=False))
        defaults |= {one.arg: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
        bound = dict(function.given) | keywords
        free = [one.arg for one in parameters if one.arg not in dict(function.given)]
        bound |= dict(zip(free, values, strict=False))
        for parameter in (*parameters, *given.kwonlyargs):
            name = parameter.arg
            if name in bound:
                names[name] = bound[name]
            elif name in defaults and function.node is not self._entry_of():
                names[name] = self._value(defaults[name])
            else:
                names[name] = self._new("unknown", function.node, name=name, made_by="")
        if given.vararg is not None:
            rest = values[len(free) :]
            names[given.vararg.arg] = Items(tuple(rest)) if rest else Items((DATA,), pattern=True)
        if given.kwarg is not None:
            named = {parameter.arg for parameter in (*parameters, *given.kwonlyargs)}
            rest_named = {key: value for key, value in keywords.items() if key not in named}
            names[given.kwarg.arg] = Items(tuple(rest_named.values()), tuple(rest_named))

    def _entry_of(self) -> ast.AST | None:
        """Return the function with which the script begins here, whose defaults its callers may not keep."""
        return self._stack[0] if self._stack and self._entry else None

    def _make(self, called: Class, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Make an instance of a class of this file."""
        names = [ast.unparse(base) for one in self._classes(called.node) for base in one.bases]
        is_model = any(
            name.rpartition(".")[2] in ("Module", "PreTrainedModel", "GenerationMixin")
            or (name.endswith(("Model", "Module")) and "Data" not in name)
            for name in names
        )
        is_optimizer = any(name.endswith("Optimizer") or library.OPTIMIZERS.search(name) for name in names)
        made = self._new(
            "model" if is_model else "optimizer" if is_optimizer else "instance", node, made_by=called.path
        )
        made.definition, made.given = called.node, (*args, *keywords.values())
        if is_optimizer:
            self._hold(made, args, keywords)
        start = self._method(called.node, "__init__", made)
        if start is not None:
            self._enter(start, args, keywords, node)
        else:
            fields = [
                part.target.id
                for part in called.node.body
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
            made.attributes |= dict(zip(fields, args, strict=False)) | keywords
        if is_model:
            for part in made.parts():
                part.modes = part.modes or frozenset({"train"})
        return made

    def _forward(self, model: Object, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        """Follow the call of an object: the forward pass of a model, a loss, an instance with `__call__`."""
        given = (*args, *keywords.values())
        if model.kind == "loss":
            return Tensor(models_through(*given))
        event = self._event("forward", [model], node, modes=model.modes)
        inner: Value = DATA
        if model.definition is not None:
            method = self._method(model.definition, "forward", model) or self._method(
                model.definition, "__call__", model
            )
            if method is not None:
                inner = self._enter(method, args, keywords, node)
                if model.kind != "model":
                    return inner
        else:
            self._escape(given, node)
        if model.kind == "unknown":
            made = self._new("unknown", node, made_by=model.made_by or model.name, given=given)
            made.through = models_through(*given) | {model} if event.gradients else frozenset()
            return made
        models = models_through(*given) | {model} if event.gradients else frozenset()
        if isinstance(inner, Items):
            parts = (_with_models(one, models) if isinstance(one, Tensor) else one for one in inner.values)
            return Items(tuple(parts), inner.keys, inner.pattern)
        if isinstance(inner, Tensor) and model.definition is not None:
            return _with_models(inner, models)
        return _result_of_layer(model, models)

    def _call_method(
        self, owner: Value, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        given = (*args, *keywords.values())
        match owner:
            case Library():
                return self._call_library(f"{owner.name}.{name}", args, keywords, node)
            case Class():
                return self._call_value(self._attribute(owner, name), args, keywords, node)
            case Super():
                method = self._attribute(owner, name)
                if isinstance(method, Function):
                    return self._enter(method, args, keywords, node)
                return (
                    Constant(None) if name == "__init__" else self._method_of(owner.owner, name, args, keywords, node)
                )
            case Object():
                held = owner.attributes.get(name)
                if held is None and owner.definition is not None:
                    held = self._method(owner.definition, name, owner)
                if held is not None and not (
                    isinstance(held, Object) and held.kind == "unknown" and held.parent is owner
                ):
                    return self._call_value(held, args, keywords, node)
                return self._method_of(owner, name, args, keywords, node)
            case Parameters():
                return self._method_of_parameters(owner, name, given, node)
            case Items():
                return self._method_of_items(owner, name, args, node)
            case Tensor() if name == "backward":
                self._event("backward", owner.models, node)
                return Constant(None)
        if name in library.CUTTING_METHODS:
            return DATA
        if name == "detach_" and isinstance(node.func, ast.Attribute):
            self._assign(node.func.value, DATA, node)
        ends = library.RESULTS.get(name) or (end_of(owner) if name in library.SAME_VALUES else "")
        return Tensor(models_through(owner, *given), ends, isinstance(owner, Tensor) and owner.is_known)

    def _method_of_items(self, owner: Items, name: str, args: list[Value], node: ast.Call) -> Value:
        target = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name in ("append", "add", "extend", "insert", "update", "appendleft") and args and target is not None:
            new = args[-1].values if name in ("extend", "update") and isinstance(args[-1], Items) else (args[-1],)
            pattern = owner.pattern or bool(self._loops)
            if isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
                self._assign(target, Items((*owner.values, *new)[:MAX_LISTED], pattern=pattern), node)
            return Constant(None)
        if name == "items":
            return Items(
                tuple(Items((Constant(key), value)) for key, value in zip(owner.keys, owner.values, strict=False)),
                pattern=owner.pattern,
            )
        if name == "keys":
            return Items(tuple(map(Constant, owner.keys)))
        if name in ("get", "pop") and args:
            return self._item(owner, args[0].value if isinstance(args[0], Constant) else None)
        if name in ("values", "copy"):
            return Items(owner.values, pattern=owner.pattern)
        return Tensor(models_through(owner))

    def _method_of_parameters(self, owner: Parameters, name: str, given: Sequence[Value], node: ast.Call) -> Value:
        if name == "requires_grad_":
            self._event("freeze" if Constant(False) in given else "unfreeze", owner.models, node)
            return owner
        if name.endswith("_") and not name.endswith("__"):
            clears = owner.gradients and name in ("zero_", "detach_")
            if name != "detach_" or owner.gradients:
                self._event("clear" if clears else "gradients" if owner.gradients else "write", owner.models, node)
            return owner
        if name in ("items", "values"):
            return owner
        if name in library.WITHOUT_GRADIENT or owner.gradients or name in ("clone", "cpu"):
            return DATA
        return Tensor(owner.models)

    def _method_of(
        self, owner: Object, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        """Follow a method that PyTorch, or another file, gives an object."""
        given = (*args, *keywords.values())
        if owner.kind == "unknown" and name in library.CUTTING_METHODS:
            return DATA
        known = _METHODS.get(name)
        if known is not None:
            return known(self, owner, given, node)
        if name in library.PREPARES:
            return Items(tuple(args)) if len(args) != 1 else args[0]
        if name == "forward":
            return self._forward(owner, args, keywords, node)
        if name in library.SAME_MODEL and owner.kind in ("model", "unknown", "loss"):
            if name == "apply":
                self._event("write", [owner], node)
            return owner
        if name in ("scale", "unwrap_model") and len(args) == 1:
            return args[0]
        if name in library.WRAPPERS and args:
            return args[0]
        self._escape(given, node)
        if owner.kind == "loader":
            return owner
        if owner.kind == "model" and name not in library.WITHOUT_GRADIENT and self._gradients:
            return Tensor(models_through(*given) | {owner})
        made = self._new("unknown", node, made_by=f"{owner.made_by or owner.name}.{name}", given=given)
        made.through = models_through(owner, *given) if owner.through else frozenset()
        return made

    def _parameters(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        if owner.kind == "unknown":
            owner.kind = "model"
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return Parameters(frozenset({owner}), named=name == "named_parameters")

    def _parts_of(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        part = self._attribute_of_object(owner, "*")
        named = isinstance(node.func, ast.Attribute) and node.func.attr.startswith("named")
        return Items((Items((DATA, part)) if named else part,), pattern=True)

    def _switch(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if given and owner.kind == "unknown" and not isinstance(given[0], Constant):
            self._escape(given, node)
            return self._new("unknown", node, made_by=method, given=tuple(given))
        mode = given[0] if given else Constant(True)
        is_train = method == "train" and mode != Constant(False)
        known = isinstance(mode, Constant)
        if owner.kind == "unknown" and owner.parent is None:
            owner.kind = "model"
        for part in owner.parts():
            self._switched.setdefault(part, part.modes)
            part.modes = frozenset({"train" if is_train else "eval"}) if known else frozenset()
        self._event("train" if is_train else "eval", [owner], node)
        return owner

    def _clear(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self._event("clear", [owner], node)
        return Constant(None)

    def _step(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        for value in given:
            for function in choices(value):
                if isinstance(function, Function):
                    self._enter(function, [], {}, node)
        is_scaler = "scaler" in f"{owner.made_by} {owner.name}".lower()
        stepped = [one for value in given for one in objects_in(value) if one.kind == "optimizer" or is_scaler]
        closure = any(isinstance(one, Function) for value in given for one in choices(value))
        if owner.kind == "schedule":
            self._event("schedule", [owner], node)
        elif stepped or owner.kind == "optimizer" or not given or closure:
            self._event("step", stepped or [owner], node)
        return self._new("unknown", node, made_by="step")

    def _backward(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self._event("backward", models_through(*given[:1]) if given else owner.through, node)
        return Constant(None)

    def _state_dict(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        return Parameters(frozenset({owner}), named=True, state=True)

    def _load_state_dict(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        states = [part for value in given if (part := parameters_in(value)) is not None]
        source = next((one for state in states for one in state.models), None)
        self._event("load", [owner], node, source=source)
        return Constant(None)

    def _requires_gradients(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self._event("freeze" if Constant(False) in given else "unfreeze", [owner], node)
        return owner

    def _add_group(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self._hold(owner, list(given), {})
        return Constant(None)

    def _add_module(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        for value in given:
            for one in objects_in(value):
                self._assign_attribute(owner, "*", one, node)
        return owner

    def _unscale(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self._event("unscale", [one for value in given for one in objects_in(value)], node)
        return Constant(None)

    def _call_library(self, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        """Follow the call of a function or class of another file."""
        last = name.rpartition(".")[2]
        given = (*args, *keywords.values())
        if name == "super":
            if self._frame.owner is not None and self._frame.owner_class is not None:
                return Super(self._frame.owner, self._frame.owner_class)
            return DATA
        if last in ("deepcopy", "copy") and len(args) >= 1:
            return either(*(self._copy(one, node) if isinstance(one, Object) else one for one in choices(args[0])))
        if last in library.LOOKS_ONLY:
            return Tensor(models_through(*given)) if last in ("sum", "max", "min") else DATA
        parameters = parameters_in(args[0]) if args else None
        parameters = parameters or (parameters_in(keywords["params"]) if "params" in keywords else None)
        if last.startswith("clip_grad") and parameters is not None:
            self._event("clip", parameters.models if parameters.known else frozenset(), node)
            return DATA
        if library.SCHEDULES.search(name) and not library.OPTIMIZERS.search(name):
            return self._new("schedule", node, made_by=name, given=given)
        if library.OPTIMIZERS.search(name) or (
            parameters is not None
            and not parameters.state
            and last[:1].isupper()
            and last != "Tensor"
            and "nn" not in name.split(".")
        ):
            optimizer = self._new("optimizer", node, made_by=name, given=given)
            self._hold(optimizer, args, keywords)
            self._event("make", [optimizer], node)
            return optimizer
        if last in library.WRAPPERS and args:
            return args[0]
        if last in library.PREPARES and given and not name.startswith("torch.nn"):
            return Items(tuple(given)) if len(given) != 1 else given[0]
        if last == "DataLoader" or last.endswith("DataLoader"):
            return self._new("loader", node, made_by=name, given=given)
        return self._call_plain(name, last, args, keywords, parameters, node)

    def _call_plain(
        self,
        name: str,
        last: str,
        args: list[Value],
        keywords: dict[str, Value],
        parameters: Parameters | None,
        node: ast.Call,
    ) -> Value:
        given = (*args, *keywords.values())
        if last == "enumerate" and args:
            inner = args[0]
            if isinstance(inner, Items) and not inner.pattern and not inner.keys:
                return Items(tuple(Items((Constant(place), one)) for place, one in enumerate(inner.values)))
            return self._paired(args, [DATA, self._element(inner)], node)
        if last in ("zip", "zip_longest") and args:
            if all(isinstance(one, Items) and not one.pattern and not one.keys for one in args):
                return Items(
                    tuple(
                        Items(tuple(parts))
                        for parts in zip(*(one.values for one in args if isinstance(one, Items)), strict=False)
                    )
                )
            return self._paired(args, [self._element(one) for one in args], node)
        if last in library.PASSES_ON or last.startswith("tqdm"):
            return (
                Items(tuple(args), pattern=True)
                if last == "chain" and len(args) > 1
                else args[0]
                if args
                else Items(())
            )
        if last in ("filter", "map") and len(args) > 1:
            return (
                args[1]
                if last == "filter"
                else Items((self._call_value(args[0], [self._element(args[1])], {}, node),), pattern=True)
            )
        if last == "next" and args:
            return self._element(args[0])
        if last == "getattr" and len(args) > 1 and isinstance(args[1], Constant):
            return self._attribute(args[0], str(args[1].value))
        if last == "setattr" and len(args) > 2:
            key = str(args[1].value) if isinstance(args[1], Constant) else "*"
            self._assign_attribute(args[0], key, args[2], node)
            return Constant(None)
        if last == "partial" and args and isinstance(args[0], Function):
            names = [one.arg for one in args[0].node.args.args]
            bound = tuple(zip(names, args[1:], strict=False)) + tuple(keywords.items())
            return Function(args[0].node, args[0].scope, args[0].path, args[0].owner, args[0].owner_class, bound)
        if last == "dict":
            return Items(tuple(keywords.values()), tuple(keywords)) if keywords or not args else args[0]
        if name in ("torch.autograd.backward", "torch.autograd.grad"):
            if last == "backward":
                self._event("backward", models_through(*args[:1]), node)
            return Tensor(models_through(*args[:1]))
        if ".nn." in f".{name}" and last[:1].isupper():
            return self._layer(name, args, keywords, node)
        if parameters is not None and parameters.state and last in ("save", "load"):
            return DATA
        writes = last.endswith("_") or last.startswith(("_foreach", "vector_to_parameters"))
        if writes:
            models = [one for value in given for one in objects_in(value)]
            found = [parameters_in(value) for value in given]
            self._event("write", {*models, *(one for part in found if part is not None for one in part.models)}, node)
        if library.COMPUTES.search(name) and last not in ("load", "get_model"):
            if last in library.WITHOUT_GRADIENT:
                return DATA
            parts = [Tensor(one.models) if isinstance(one, Parameters) else one for one in given]
            ends = library.RESULTS.get(last) or (end_of(args[0]) if args and last in library.SAME_VALUES else "")
            known = bool(args) and isinstance(args[0], Tensor) and args[0].is_known
            return Tensor(models_through(*parts) if self._gradients else frozenset(), ends, known)
        self._escape(given, node)
        pretrained = last in ("from_pretrained", "create_model") or ".models." in name
        made = self._new("model" if pretrained else "unknown", node, made_by=name, given=given)
        if last == "from_pretrained":
            made.modes = frozenset({"eval"}) if "Model" in name or "For" in name else frozenset()
        elif pretrained:
            made.modes = frozenset({"train"})
        return made

    def _paired(self, through: Sequence[Value], parts: list[Value], node: ast.Call) -> Items:
        for one in through:
            self._iterate(one, node)
        return Items((Items(tuple(parts)),), pattern=True)

    def _layer(self, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Object:
        layer = self._new("loss" if name.endswith("Loss") else "model", node, made_by=name)
        layer.given, layer.modes = (*args, *keywords.values()), frozenset({"train"})
        for place, value in enumerate(layer.given):
            for one in objects_in(value):
                if one.kind == "model" and not layer.is_part_of(one):
                    one.parent = one.parent or layer
                    layer.attributes[str(place)] = (
                        one if str(place) not in layer.attributes else either(layer.attributes[str(place)], one)
                    )
        return layer

    def _hold(self, optimizer: Object, args: Sequence[Value], keywords: dict[str, Value]) -> None:
        """Give an optimizer the parameters in what it is given."""
        first = args[0] if args else keywords.get("params")
        found = parameters_in(first) if first is not None else None
        optimizer.holds |= found.models if found is not None else frozenset()
        optimizer.holds_all = optimizer.holds_all and found is not None and found.known

    def _copy(self, source: Object, node: ast.AST, parent: Object | None = None) -> Object:
        made = self._new(source.kind, node, made_by=source.made_by, given=source.given)
        made.copy_of, made.definition, made.modes, made.parent = source, source.definition, source.modes, parent
        self._event("copy", [made], node, source=source)
        for name, value in source.attributes.items():
            inner = isinstance(value, Object) and value.parent is source
            made.attributes[name] = self._copy(value, node, made) if inner and isinstance(value, Object) else value
        return made

    def _escape(self, values: Sequence[Value], node: ast.expr | ast.stmt) -> None:
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
            self._event("escape", given, node)

    def _new(
        self, kind: Kind, node: ast.AST, *, made_by: str = "", given: Sequence[Value] = (), name: str = ""
    ) -> Object:
        made = Object(kind, getattr(node, "lineno", 0), self._loops, made_by, given=tuple(given), name=name)
        self.trace.objects.append(made)
        return made

    def _event(
        self, action: Action, objects: Sequence[Object] | set[Object] | frozenset[Object], node: ast.AST, *,
        modes: frozenset[str] = frozenset(), source: Object | None = None,
    ) -> Event:  # fmt: skip
        if len(self.trace.events) >= MAX_EVENTS:
            raise _ExhaustedError
        event = Event(
            action, frozenset(objects), node, self._loops, self._tests, self._gradients, self._frame.path, self._entry,
            modes, source,
        )  # fmt: skip
        self.trace.events.append(event)
        return event


def _with_models(value: Tensor, models: frozenset[Object]) -> Tensor:
    return (
        Tensor(value.models | models, value.ends, value.is_known)
        if models
        else Tensor(ends=value.ends, is_known=value.is_known)
    )


def _result_of_layer(layer: Object, models: frozenset[Object]) -> Tensor:
    """Return what a layer of PyTorch gives; of `Sequential` it is what its last layer gives."""
    last = layer
    while last.made_by.endswith("Sequential") and last.given and isinstance(last.given[-1], Object):
        last = last.given[-1]
    is_known = last.made_by.startswith("torch.nn.") and not last.made_by.endswith("Sequential")
    return Tensor(models, library.RESULTS.get(last.made_by.rpartition(".")[2], ""), is_known)


_METHODS = {
    "parameters": _Follower._parameters,
    "named_parameters": _Follower._parameters,
    "modules": _Follower._parts_of,
    "children": _Follower._parts_of,
    "named_modules": _Follower._parts_of,
    "named_children": _Follower._parts_of,
    "train": _Follower._switch,
    "eval": _Follower._switch,
    "zero_grad": _Follower._clear,
    "step": _Follower._step,
    "backward": _Follower._backward,
    "manual_backward": _Follower._backward,
    "state_dict": _Follower._state_dict,
    "load_state_dict": _Follower._load_state_dict,
    "requires_grad_": _Follower._requires_gradients,
    "add_param_group": _Follower._add_group,
    "add_module": _Follower._add_module,
    "register_module": _Follower._add_module,
    "unscale_": _Follower._unscale,
}
"""What methods of PyTorch do."""
