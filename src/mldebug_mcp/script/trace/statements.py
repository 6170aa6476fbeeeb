"""Statements: what they give names, and which of those after them are reached."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mldebug_mcp.script import library
from mldebug_mcp.script.trace.state import MAX_ITEMS, MAX_STATEMENTS, ROUNDS, ExhaustedError
from mldebug_mcp.script.values import (
    Class,
    Constant,
    Function,
    Items,
    Library,
    Object,
    Value,
    either,
)

if TYPE_CHECKING:
    from mldebug_mcp.script.trace.follower import Follower


class Statements:
    """Follows statements; each answers whether what comes after it is never reached."""

    def __init__(self, run: Follower) -> None:
        self._run = run

    def body(self, statements: Sequence[ast.stmt]) -> bool:
        """Follow statements, and say whether what comes after them is never reached."""
        return any(self._statement(statement) for statement in statements)

    def _statement(self, node: ast.stmt) -> bool:
        self._run.count += 1
        if self._run.count > MAX_STATEMENTS:
            raise ExhaustedError
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._run.names.set(node.name, Function(node, self._run.frame.scope, self._path_of(node.name)))
            case ast.ClassDef():
                self._run.names.set(node.name, Class(node, self._run.frame.scope, self._path_of(node.name)))
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Assign():
                value = self._run.expressions.value(node.value)
                for target in node.targets:
                    self._run.names.assign(target, value, node)
            case ast.AnnAssign() if node.value is not None:
                self._run.names.assign(node.target, self._run.expressions.value(node.value), node)
            case ast.AugAssign():
                self._run.names.add(node)
            case ast.Expr():
                self._run.expressions.value(node.value)
            case ast.Return():
                self._run.frame.returned.append(
                    self._run.expressions.value(node.value) if node.value else Constant(None)
                )
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
                    with self._run.under(handler):
                        self.body(handler.body)
                return self.body(node.finalbody) or (left and not node.handlers)
            case ast.Match():
                self._run.expressions.value(node.subject)
                for case in node.cases:
                    with self._run.under(case):
                        self.body(case.body)
            case ast.Global():
                self._run.frame.globals_ |= set(node.names)
            case ast.Break() | ast.Continue() | ast.Raise():
                return True
            case ast.Assert():
                self._run.expressions.value(node.test)
        return False

    def _path_of(self, name: str) -> str:
        return f"{self._run.frame.path}.{name}" if self._run.frame.path else name

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self._run.names.set(
                    alias.asname or alias.name, Library(f"{node.module or ''}.{alias.name}".lstrip("."))
                )
            elif alias.asname:
                self._run.names.set(alias.asname, Library(alias.name))
            else:
                first = alias.name.partition(".")[0]
                self._run.names.set(first, Library(first))

    def _if(self, node: ast.If) -> bool:
        self._run.expressions.value(node.test)
        known = self._run.expressions.truth(node.test)
        if known is not None:
            return self.body(node.body if known else node.orelse)
        scope, before = self._run.frame.scope, dict(self._run.frame.scope.names)
        modes = {one: one.modes for one in self._run.switched}
        with self._run.under(node):
            left = self.body(node.body)
        after = scope.names
        after_modes = {one: one.modes for one in self._run.switched}
        scope.names = dict(before)
        for one, at_start in self._run.switched.items():
            one.modes = modes.get(one, at_start)
        with self._run.under(node):
            other_left = self.body(node.orelse)
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

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        through = self._run.expressions.value(node.iter)
        for place, value in enumerate(self._rounds(through)):
            with self._run.round(node.lineno, place):
                self._run.iterate(through, node)
                self._run.names.assign(node.target, value, node)
                self.body(node.body)
        self.body(node.orelse)

    def _while(self, node: ast.While) -> None:
        if self._run.expressions.truth(node.test) is False:
            return
        for place in range(ROUNDS):
            with self._run.round(node.lineno, place):
                self._run.expressions.value(node.test)
                self.body(node.body)
        self.body(node.orelse)

    def _rounds(self, through: Value) -> Sequence[Value]:
        """Return what a loop goes through, one value a round."""
        if isinstance(through, Items) and not through.pattern and len(through.values) <= MAX_ITEMS:
            return (through.keys and [Constant(key) for key in through.keys]) or through.values
        return [self._run.names.element(through)] * ROUNDS

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        managed = self._context_manager(node)
        if managed is not None:
            return self._managed(node, managed)
        before = self._run.gradients
        for item in node.items:
            context = self._run.expressions.value(item.context_expr)
            self._run.gradients = self.gradients_in(item.context_expr, self._run.gradients)
            if item.optional_vars is not None:
                self._run.names.assign(item.optional_vars, context, node)
        left = self.body(node.body)
        self._run.gradients = before
        return left

    def _context_manager(self, node: ast.With | ast.AsyncWith) -> ast.AST | None:
        """Return the function of this file that is the one context manager of a block: a generator with a decorator."""
        context = node.items[0].context_expr
        if len(node.items) != 1 or not isinstance(context, ast.Call):
            return None
        called = self._run.expressions.value(context.func)
        decorators = getattr(called.node, "decorator_list", ()) if isinstance(called, Function) else ()
        managed = any(ast.unparse(decorator).endswith("contextmanager") for decorator in decorators)
        return called.node if managed and isinstance(called, Function) else None

    def _managed(self, node: ast.With | ast.AsyncWith, manager: ast.AST) -> bool:
        """Follow a block at the `yield` of its context manager."""
        run, frame, before, left = self._run, self._run.frame, self._run.gradients, []

        def follow_block(given: Value) -> None:
            inner = run.frame
            inner.on_yield, run.frame = None, frame
            if node.items[0].optional_vars is not None:
                run.names.assign(node.items[0].optional_vars, given, node)
            left.append(self.body(node.body))
            run.frame = inner

        run.with_block = (manager, follow_block)
        run.expressions.value(node.items[0].context_expr)
        run.with_block, run.gradients = None, before
        return left[0] if left else self.body(node.body)

    def gradients_in(self, context: ast.expr, before: bool | None) -> bool | None:
        """Return whether gradients are on in a block or in a decorated function."""
        called = context.func if isinstance(context, ast.Call) else context
        value = self._run.expressions.value(called)
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
            return self._run.expressions.truth(context.args[0])
        return before if not isinstance(value, Object) else (None if before else before)
