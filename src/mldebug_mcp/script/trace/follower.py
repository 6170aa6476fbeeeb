"""Statements, and where a script begins: what gets a name, and what is reached."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mldebug_mcp.script import library
from mldebug_mcp.script.trace.events import Trace
from mldebug_mcp.script.trace.expressions import Expressions
from mldebug_mcp.script.trace.names import MAX_ITEMS, MAX_STATEMENTS, ROUNDS, ExhaustedError, Frame
from mldebug_mcp.script.values import (
    DATA,
    Class,
    Constant,
    Function,
    Items,
    Library,
    Object,
    Value,
    either,
    handed_on,
    objects_in,
)


class Statements(Expressions):
    """Follows statements; each answers whether what comes after it is never reached."""

    def body(self, statements: Sequence[ast.stmt]) -> bool:
        """Follow statements, and say whether what comes after them is never reached."""
        return any(self._statement(statement) for statement in statements)

    def _statement(self, node: ast.stmt) -> bool:
        self.count += 1
        if self.count > MAX_STATEMENTS:
            raise ExhaustedError
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.set_name(node.name, Function(node, self.frame.scope, self._path_of(node.name)))
                self._register(node)
            case ast.ClassDef():
                self.set_name(node.name, Class(node, self.frame.scope, self._path_of(node.name)))
                self._register(node)
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.assign(target, value, node)
            case ast.AnnAssign() if node.value is not None:
                self.assign(node.target, self.value(node.value), node)
            case ast.AugAssign():
                self.add(node)
            case ast.Expr():
                self.value(node.value)
            case ast.Return():
                self.frame.returned.append(handed_on(self.value(node.value), node.lineno))
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
                left = self.body([*node.body, *node.orelse])
                for handler in node.handlers:
                    with self.under(handler):
                        self.body(handler.body)
                return self.body(node.finalbody) or (left and not node.handlers)
            case ast.Match():
                self.value(node.subject)
                for case in node.cases:
                    with self.under(case):
                        self.body(case.body)
            case ast.Global():
                self.frame.globals_ |= set(node.names)
            case ast.Break() | ast.Continue() | ast.Raise():
                return True
            case ast.Assert():
                self.value(node.test)
        return False

    def _register(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Follow what decorators of this file do with a definition, such as to list it under a name.

        The name keeps what is defined, as a decorator that wraps it calls it.
        """
        for decorator in reversed(node.decorator_list):
            called = self.value(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if isinstance(called, Function):
                wraps = self.value(decorator) if isinstance(decorator, ast.Call) else called
                if isinstance(wraps, Function):
                    self.enter(wraps, [self._named(node.name)], {}, decorator)

    def _path_of(self, name: str) -> str:
        return f"{self.frame.path}.{name}" if self.frame.path else name

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self.set_name(alias.asname or alias.name, Library(f"{node.module or ''}.{alias.name}".lstrip(".")))
            elif alias.asname:
                self.set_name(alias.asname, Library(alias.name))
            else:
                first = alias.name.partition(".")[0]
                self.set_name(first, Library(first))

    def _if(self, node: ast.If) -> bool:
        self.value(node.test)
        known = self.truth(node.test)
        if known is not None:
            return self.body(node.body if known else node.orelse)
        scope, before = self.frame.scope, dict(self.frame.scope.names)
        modes = {switched_model: switched_model.modes for switched_model in self.switched}
        with self.under(node):
            left = self.body(node.body)
        after = scope.names
        after_modes = {switched_model: switched_model.modes for switched_model in self.switched}
        scope.names = dict(before)
        for model, at_start in self.switched.items():
            model.modes = modes.get(model, at_start)
        with self.under(node):
            other_left = self.body(node.orelse)
        if left and not other_left:
            return False
        if other_left and not left:
            scope.names = after
            for model, modes_after in after_modes.items():
                model.modes = modes_after
            return False
        for name, value in after.items():
            other = scope.names.get(name)
            scope.names[name] = value if other is None else either(other, value)
        for model, modes_after in after_modes.items():
            model.modes |= modes_after
        return left and other_left

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        through = self.value(node.iter)
        element = self.element(through)
        listed = isinstance(through, Items) and not through.pattern
        if not listed and any(part.kind == "model" or part.name == "*" for part in objects_in(element)):
            self._each_model(node, element)
            return
        for place, value in enumerate(self._rounds(through)):
            with self.round(node.lineno, place):
                self.iterate(through, node)
                self.assign(node.target, value, node)
                self.body(node.body)
        self.body(node.orelse)

    def _while(self, node: ast.While) -> None:
        if self.truth(node.test) is False:
            return
        for place in range(ROUNDS):
            with self.round(node.lineno, place):
                self.value(node.test)
                self.body(node.body)
        self.body(node.orelse)

    def _rounds(self, through: Value) -> Sequence[Value]:
        """Return what a loop goes through, one value a round."""
        if isinstance(through, Items) and not through.pattern and len(through.values) <= MAX_ITEMS:
            return (through.keys and [Constant(key) for key in through.keys]) or through.values
        return [self.element(through)] * ROUNDS

    def _each_model(self, node: ast.For | ast.AsyncFor, element: Value) -> None:
        """Follow a loop over the models of a container once, as each round has another one: nothing comes again."""
        self.assign(node.target, element, node)
        self.body(node.body)
        self.body(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        managed = self._context_manager(node)
        if managed is not None:
            return self._managed(node, managed)
        before = self.gradients
        for item in node.items:
            context = self.value(item.context_expr)
            self.gradients = self.gradients_in(item.context_expr, self.gradients)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, context, node)
        left = self.body(node.body)
        self.gradients = before
        return left

    def _context_manager(self, node: ast.With | ast.AsyncWith) -> ast.AST | None:
        """Return the function of this file that is the one context manager of a block: a generator with a decorator."""
        context = node.items[0].context_expr
        if len(node.items) != 1 or not isinstance(context, ast.Call):
            return None
        called = self.value(context.func)
        decorators = getattr(called.node, "decorator_list", ()) if isinstance(called, Function) else ()
        managed = any(ast.unparse(decorator).endswith("contextmanager") for decorator in decorators)
        return called.node if managed and isinstance(called, Function) else None

    def _managed(self, node: ast.With | ast.AsyncWith, manager: ast.AST) -> bool:
        """Follow a block at the `yield` of its context manager."""
        frame, before, left = self.frame, self.gradients, []

        def follow_block(given: Value) -> None:
            inner = self.frame
            inner.on_yield, self.frame = None, frame
            if node.items[0].optional_vars is not None:
                self.assign(node.items[0].optional_vars, given, node)
            left.append(self.body(node.body))
            self.frame = inner

        self.with_block = (manager, follow_block)
        self.value(node.items[0].context_expr)
        self.with_block, self.gradients = None, before
        return left[0] if left else self.body(node.body)

    def gradients_in(self, context: ast.expr, before: bool | None) -> bool | None:
        """Return whether gradients are on in a block or in a decorated function."""
        called = context.func if isinstance(context, ast.Call) else context
        value = self.value(called)
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
            return self.truth(context.args[0])
        return before if not isinstance(value, Object) else (None if before else before)


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
