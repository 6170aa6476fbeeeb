"""A script → its calls and assignments in order, each with the loops, functions and conditions around it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard, TypeVar, overload

MAX_NODES = 400_000
"""Nodes of a syntax tree that are looked at. Chosen: a file of 40,000 lines."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a script.

    Args:
        name: What is called, dotted: "optimizer.step", "nn.functional.cross_entropy".
        node: The call.
        line: Its line, from 1.
        order: Its place among all calls of the file, in the order in which Python runs them.
        loops: The loops around it, the outermost first, by their lines.
        function: The function around it, dotted with its class; empty at the top.
        conditions: The tests of the `if` statements around it inside its function, as text.
        guards: What `with` statements around it call, such as "torch.no_grad".
    """

    name: str
    node: ast.Call
    line: int
    order: int
    loops: tuple[int, ...]
    function: str
    conditions: tuple[str, ...]
    guards: tuple[str, ...]

    @property
    def method(self) -> str:
        """The last part of the name."""
        return last_part(self.name)

    @property
    def owner(self) -> str:
        """What stands before the last part; empty for a bare name."""
        return self.name.rpartition(".")[0]

    @property
    def keywords(self) -> dict[str, ast.expr]:
        """The keyword arguments."""
        return keywords_of(self.node)

    @property
    def is_spread(self) -> bool:
        """Whether it is given a `**mapping`."""
        return any(keyword.arg is None for keyword in self.node.keywords)

    def is_within(self, other: Call) -> bool:
        """Say whether it stands in the function of another call, and in the loops around that."""
        return self.function == other.function and self.loops[: len(other.loops)] == other.loops

    def constant(self, name: str, place: int | None = None) -> object:
        """Return the value of an argument that is a constant; None where it is none or is not given."""
        return constant_of(self.argument(name, place))

    def argument(self, name: str, place: int | None = None) -> ast.expr | None:
        """Return what is given for a parameter, by its name or by its place; None where it is not given."""
        return argument_of(self.node, name, place)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A value that gets a name.

    Args:
        target: The name, dotted.
        value: The value.
        line: Its line.
        order: Its place among all calls of the file.
        loops: The loops around it, by their lines.
        function: The function around it.
        adds: It adds to what the name held: "total += loss".
        conditions: The tests of the `if` statements around it inside its function, as text.
        place: Which part of the value it is, where a value that is not written out is unpacked; None for all of it.
    """

    target: str
    value: ast.expr
    line: int
    order: int
    loops: tuple[int, ...]
    function: str
    adds: bool = False
    conditions: tuple[str, ...] = ()
    place: int | None = None

    @property
    def made_by(self) -> str:
        """The dotted name of what is called for the value; empty where it is something else."""
        return dotted(self.value) if isinstance(self.value, ast.Call) else ""

    @property
    def last(self) -> str:
        """The last part of the target."""
        return last_part(self.target)


@dataclass(slots=True)
class Script:
    """What a file calls and assigns.

    Args:
        path: The file, as it was named.
        tree: Its syntax tree.
        calls: In order.
        assignments: In order.
        loops: By its line, what each loop goes through, as text.
        text: The file.
    """

    path: str
    tree: ast.Module
    calls: list[Call] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    loops: dict[int, str] = field(default_factory=dict)
    text: str = ""

    def named(self, *methods: str) -> list[Call]:
        """Return the calls whose last part is one of these."""
        return [call for call in self.calls if call.method in methods]

    def assigned_from(self, node: ast.expr) -> Assignment | None:
        """Return the assignment whose value an expression is; None where it is a part of one, or of none."""
        return next((assignment for assignment in self.assignments if assignment.value is node), None)

    def made(self, name: str) -> list[Assignment]:
        """Return the assignments of a name."""
        return [assignment for assignment in self.assignments if assignment.target == name]

    def assigned(self, name: str, before: int | None = None) -> Assignment | None:
        """Return the last assignment of a name, before a place in the order where one is given."""
        found = [made for made in self.made(name) if before is None or made.order <= before]
        return found[-1] if found else None


def read_script(text: str, path: str) -> Script:
    """Return what a script calls and assigns.

    Raises:
        SyntaxError: it is not Python of this version.
        ValueError: it is too large.
    """
    tree = ast.parse(text)
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise ValueError(f"more than {MAX_NODES:,} parts")
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):  # a rule asks what stands at a place, and not whether a name may be used
            node.args, node.posonlyargs = [*node.posonlyargs, *node.args], []
    script = Script(path, tree, text=text)
    _Reader(script).body(tree.body, _Around())
    return script


@dataclass(frozen=True, slots=True)
class _Around:
    loops: tuple[int, ...] = ()
    function: str = ""
    conditions: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()

    def inside(self, *, loop: int | None = None, condition: str | None = None, guards: Sequence[str] = ()) -> _Around:
        return _Around(
            self.loops if loop is None else (*self.loops, loop),
            self.function,
            self.conditions if condition is None else (*self.conditions, condition),
            (*self.guards, *guards),
        )


class _Reader:
    """Walks statements in the order in which they run."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def body(self, statements: Sequence[ast.stmt], around: _Around) -> None:
        for statement in statements:
            self._statement(statement, around)
            if _goes_on_early(statement):
                test = self._spelled_out(statement.test, around)
                if _has_modulo(test):
                    around = around.inside(condition=negation(test))

    def _spelled_out(self, test: ast.expr, around: _Around) -> ast.expr:
        """Return a test whose names are replaced by what they stand for where that tells every n-th round."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return ast.UnaryOp(ast.Not(), self._spelled_out(test.operand, around))
        if isinstance(test, ast.BoolOp):
            return ast.BoolOp(test.op, [self._spelled_out(part, around) for part in test.values])
        if not isinstance(test, ast.Name | ast.Attribute):
            return test
        made = self._script.assigned(dotted(test))
        known = made is not None and made.function == around.function and made.place is None and not made.adds
        if made is None or not known or not _has_modulo(made.value):
            return test
        return self._spelled_out(made.value, around)

    def _statement(self, node: ast.stmt, around: _Around) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._definition(node, around)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self._loop(node, around)
        elif isinstance(node, ast.If):
            self._calls(node.test, around)
            test = self._spelled_out(node.test, around)
            self.body(node.body, around.inside(condition=ast.unparse(test)))
            self.body(node.orelse, around.inside(condition=negation(test)))
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                self._calls(item.context_expr, around)
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, item.context_expr, node.lineno, around)
            called = [dotted(withitem.context_expr) for withitem in node.items]
            self.body(node.body, around.inside(guards=called))
        elif isinstance(node, ast.Try):
            for part in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                self.body(part, around)
        else:
            self._simple(node, around)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, around: _Around) -> None:
        name = f"{around.function}.{node.name}" if around.function else node.name
        guards = [dotted(expr) for expr in node.decorator_list]
        self.body(node.body, _Around((), name, (), tuple(guards)))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, around: _Around) -> None:
        through = node.test if isinstance(node, ast.While) else node.iter
        self._calls(through, around)
        self._script.loops[node.lineno] = ast.unparse(through)
        self.body(node.body, around.inside(loop=node.lineno))
        self.body(node.orelse, around)

    def _simple(self, node: ast.stmt, around: _Around) -> None:
        self._calls(node, around)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, node.lineno, around)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value, node.lineno, around)
        elif isinstance(node, ast.AugAssign):
            adds = isinstance(node.op, ast.Add)
            value = node.value if adds else _changed_by(node)
            self._add(node.target, value, node.lineno, around, adds=adds)

    def _assign(self, target: ast.expr, value: ast.expr, line: int, around: _Around) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
            for place, expr in enumerate(target.elts):
                if values is None and not isinstance(expr, ast.Tuple | ast.List):
                    self._add(expr, value, line, around, adds=False, place=place)
                else:
                    self._assign(expr, values[place] if values else value, line, around)
        else:
            self._add(target, value, line, around, adds=False)

    def _add(
        self, target: ast.expr, value: ast.expr, line: int, around: _Around, *, adds: bool, place: int | None = None
    ) -> None:
        self._script.assignments.append(
            Assignment(
                dotted(target), value, line, len(self._script.calls), around.loops, around.function, adds,
                around.conditions, place,
            )
        )  # fmt: skip

    def _calls(self, node: ast.AST, around: _Around) -> None:
        for call in _in_order(node):
            self._script.calls.append(
                Call(
                    dotted(call.func), call, call.lineno, len(self._script.calls), around.loops, around.function,
                    around.conditions, around.guards,
                )
            )  # fmt: skip


def _changed_by(node: ast.AugAssign) -> ast.expr:
    """Return what a name holds after `x /= n`: `x / n`."""
    return ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)


def _goes_on_early(node: ast.stmt) -> TypeGuard[ast.If]:
    """Say whether a statement goes on with the next round under a test: `if step % n != 0: continue`."""
    return isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Continue)


def is_operation(node: ast.AST | None, *operators: type[ast.operator]) -> TypeGuard[ast.BinOp]:
    """Say whether an expression computes of two values by one of some operators: `a - b` by `ast.Sub`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, operators)


def _has_modulo(node: ast.expr) -> bool:
    return any(is_operation(part, ast.Mod) for part in ast.walk(node))


def negation(test: ast.expr) -> str:
    """Return the text of the opposite of a test: of `step % n != 0` it is `step % n == 0`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ast.unparse(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.NotEq):
        return ast.unparse(ast.Compare(test.left, [ast.Eq()], test.comparators))
    if is_operation(test, ast.Mod):
        return f"{ast.unparse(test)} == 0"
    return f"not ({ast.unparse(test)})"


def exclude(test: str, other: str) -> bool:
    """Say whether two conditions stand in the two branches of one `if`."""
    return test in (f"not ({other})", f"not {other}") or other in (f"not ({test})", f"not {test}")


def _in_order(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls in a piece of a script, those inside of others first, as Python runs them."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda):
            yield from _in_order(child)
    if isinstance(node, ast.Call):
        yield node


def dotted(node: ast.AST) -> str:
    """Return the name of what is called or assigned, such as "self.optimizer.step", without arguments."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    return ""


def constant_of(node: ast.expr | None) -> object:
    """Return the value of a constant, a negative one too; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, int | float) else None
    return None


def parameters_of(node: ast.AST | None) -> list[str]:
    """Return the names of what a function, or a class by its `__init__`, is given by place, without `self`."""
    if isinstance(node, ast.ClassDef):
        node = method_of(node, "__init__")
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    return [parameter.arg for parameter in node.args.args if parameter.arg not in ("self", "cls")]


def last_name(node: ast.AST) -> str:
    """Return the last part of the name of what is called or assigned: "step" of `self.optimizer.step()`."""
    return last_part(dotted(node))


def last_part(name: str) -> str:
    """Return the last part of a dotted name."""
    return name.rpartition(".")[2]


def called_name(node: ast.AST | None) -> str:
    """Return the last part of the name of what an expression calls; empty for any other expression."""
    return last_name(node) if isinstance(node, ast.Call) else ""


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """Return all that a call is given, by place and by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def argument_of(node: ast.AST, name: str, place: int | None = None) -> ast.expr | None:
    """Return what a call is given for a parameter, by its name or by its place; None where it is not given."""
    given = keywords_of(node).get(name)
    if given is None and place is not None and isinstance(node, ast.Call) and place < len(node.args):
        return node.args[place]
    return given


def keywords_of(node: ast.AST) -> dict[str, ast.expr]:
    """Return the keyword arguments of a call; none for anything else."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return {keyword.arg: keyword.value for keyword in keywords if keyword.arg}


_Kind = TypeVar("_Kind", bound=ast.AST)
_OtherKind = TypeVar("_OtherKind", bound=ast.AST)


@overload
def walk(node: ast.AST, kind: type[_Kind], /) -> Iterator[_Kind]: ...
@overload
def walk(node: ast.AST, kind: type[_Kind], other: type[_OtherKind], /) -> Iterator[_Kind | _OtherKind]: ...
def walk(node: ast.AST, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """Yield the parts of a piece of code that are of some kinds."""
    return (part for part in ast.walk(node) if isinstance(part, kinds))


def operands(node: ast.expr, operator: type[ast.operator]) -> list[ast.expr]:
    """Return what an expression is the sum of, by `ast.Add`, or the product of, by `ast.Mult`."""
    if is_operation(node, operator):
        return [*operands(node.left, operator), *operands(node.right, operator)]
    return [node]


def fields_in(definition: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the annotated fields of a class by name, each with its default; None without one."""
    fields = (part for part in definition.body if isinstance(part, ast.AnnAssign))
    return {part.target.id: part.value for part in fields if isinstance(part.target, ast.Name)}


def method_of(definition: ast.AST | None, *names: str) -> ast.FunctionDef | None:
    """Return the first method of a class that has one of some names; None without one, and for other parts of code."""
    parts = definition.body if isinstance(definition, ast.ClassDef) else []
    return next((part for part in parts if isinstance(part, ast.FunctionDef) and part.name in names), None)


def calls_in(node: ast.AST) -> list[str]:
    """Return the names of the calls in a piece of a script, the innermost first."""
    return [dotted(call.func) for call in _in_order(node)]


def names_in(node: ast.AST) -> set[str]:
    """Return the plain names in a piece of a script."""
    return {name.id for name in walk(node, ast.Name)}


def names_read(node: ast.AST) -> set[str]:
    """Return the plain names that a piece of a script reads."""
    return {name.id for name in walk(node, ast.Name) if isinstance(name.ctx, ast.Load)}


def names_set(node: ast.AST) -> set[str]:
    """Return the plain names that a piece of a script gives a value."""
    return {name.id for name in walk(node, ast.Name) if isinstance(name.ctx, ast.Store)}


def last_names(node: ast.AST) -> list[str]:
    """Return the last parts of the names and attributes in a piece of a script."""
    return [last_name(part) for part in walk(node, ast.Name, ast.Attribute)]


def past_methods(node: ast.expr, names: Collection[str]) -> ast.expr:
    """Return what stands before calls of methods of some names: `x` of `x.view(-1).float()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
        node = node.func.value
    return node


def values_returned(function: ast.AST | None) -> list[ast.expr | None]:
    """Return what each `return` of a function gives, None where it gives nothing; empty without a function."""
    nodes = ast.walk(function) if function is not None else ()
    return [node.value for node in nodes if isinstance(node, ast.Return)]


def only_value(function: ast.AST | None) -> ast.expr | None:
    """Return what a function gives where it has one `return`; None where it has several, or gives nothing."""
    values = values_returned(function)
    return values[0] if len(values) == 1 else None


def part_of(value: ast.expr | None, place: int | None) -> ast.expr | None:
    """Return the part of a tuple that is written out at a place; without a place the value itself."""
    if place is None:
        return value
    return value.elts[place] if isinstance(value, ast.Tuple) and place < len(value.elts) else None
