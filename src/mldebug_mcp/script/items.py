"""What the items of the data of a script hold under which key or at which place, and where a value comes from them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mldebug_mcp.script.calls import constant_of, dotted, parameters_of
from mldebug_mcp.script.roles import Roles, entries_of

MAX_VALUES_FOLLOWED = 16
MAX_CALLERS_FOLLOWED = 2
LIBRARIES = ("torch", "np", "numpy", "F", "self")
KEEPS_VALUES = {
    "to", "cuda", "cpu", "long", "int", "float", "clone", "copy", "contiguous", "view", "reshape", "flatten", "astype",
    "transpose", "permute", "squeeze", "unsqueeze", "pin_memory",
}  # fmt: skip
"""Methods that give the same values in another form or place."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Field:
    """A part of an item.

    Args:
        key: Its key in a mapping, or its place in a tuple.
        count: How many parts the tuple has; 0 in a mapping, or where it is not known.
    """

    key: object
    count: int = 0

    def is_like(self, other: Field) -> bool:
        """Say whether two fields are the same, as far as the number of parts is known."""
        return self.key == other.key and (self.count == other.count or 0 in (self.count, other.count))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from.

    Args:
        field: The part of an item that it is; None where that is not known.
        cuts: Which ends along time are left out on the way: "first" for `[:, 1:]`, "last" for `[:, :-1]`.
    """

    field: Field | None
    cuts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShiftedPair:
    """Two parts of an item: the second is the first one place on.

    Args:
        inputs: The part that is read.
        targets: The part that is one place on.
        line: The line that gives them.
    """

    inputs: Field
    targets: Field
    line: int


def shifted_pairs(roles: Roles) -> list[ShiftedPair]:
    """Return the pairs of parts of items that data sets give shifted; none where others of the same form do not."""
    shifted: list[ShiftedPair] = []
    plain: list[Field] = []
    for function in _giving(roles):
        for fields in _given_by(function):
            pairs = [
                ShiftedPair(inputs, targets, value.lineno)
                for inputs, first in fields.items()
                for targets, value in fields.items()
                if inputs != targets and is_one_on(function, first, value)
            ]
            shifted += pairs
            plain += [] if pairs else fields
    return [pair for pair in shifted if not any(pair.targets.is_like(field) for field in plain)]


def _giving(roles: Roles) -> list[Function]:
    """Return the functions that give items or batches: those of loaders where there are any, else of data sets."""
    collators = {
        dotted(call.keywords["collate_fn"]).rpartition(".")[2]
        for call in roles.script.calls
        if "collate_fn" in call.keywords
    }
    functions = [node for node in ast.walk(roles.script.tree) if isinstance(node, Function)]
    callable_ = [
        part
        for name in collators
        if isinstance(owner := roles.definitions.get(name), ast.ClassDef)
        for part in owner.body
        if isinstance(part, ast.FunctionDef) and part.name == "__call__"
    ]
    if collators:
        return [*callable_, *(node for node in functions if node.name in collators)]
    return [node for node in functions if GIVES_ITEMS.search(node.name)]


GIVES_ITEMS = re.compile(r"^__(?:getitem|iter)__$|^(?:get|make|sample|next|draw|load)?_?(?:batch(?:es)?|windows?)$")


def _given_by(function: Function) -> Iterator[dict[Field, ast.expr]]:
    """Yield the parts of what a function gives."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return | ast.Yield) and isinstance(node.value, ast.Tuple):
            count = len(node.value.elts)
            yield {Field(place, count): value for place, value in enumerate(node.value.elts)}
        elif entries := entries_of(node):
            yield {Field(key): value for key, value in entries.items()}


def is_one_on(function: Function, first: ast.expr, second: ast.expr) -> bool:
    """Say whether the second of two values in a function is the first one place on: `x[:-1]` and `x[1:]`."""
    cuts = [_cut_from(function, value) for value in (first, second)]
    if cuts[0] is None or cuts[1] is None or cuts[0][0] != cuts[1][0]:
        return False
    (_, low, high), (_, later, _) = cuts[0], cuts[1]
    return high != "" and (later in (f"{low} + 1", f"1 + {low}") or (low in ("", "0") and later == "1"))


def _cut_from(function: Function, node: ast.expr) -> tuple[str, str, str] | None:
    """Return what a value is cut from, and the ends of the cut as text; None where it is not cut along time."""
    line = node.lineno + 1
    for _ in range(MAX_VALUES_FOLLOWED):
        if isinstance(node, ast.Name):
            stored = _stored(function, node.id, line)
            if stored is None or stored[1] is None:
                return None
            line, node = stored[0], stored[1]
        elif isinstance(node, ast.Call):
            inner = _inner(node)
            if inner is None:
                return None
            node = inner
        elif isinstance(node, ast.Subscript):
            place = _time_slice(node)
            if place is None:
                return None
            low, high = (ast.unparse(end) if end is not None else "" for end in (place.lower, place.upper))
            return ast.unparse(node.value), low, high
        else:
            return None
    return None


def _inner(node: ast.Call) -> ast.expr | None:
    """Return what a call is made on, or its first argument where it is a plain function."""
    on = node.func.value if isinstance(node.func, ast.Attribute) else None
    of_library = isinstance(on, ast.Name | ast.Attribute) and dotted(on).partition(".")[0] in LIBRARIES
    if on is not None and not of_library:
        return on
    return node.args[0] if node.args else None


def _time_slice(node: ast.Subscript) -> ast.Slice | None:
    """Return the slice along time of `x[a:b]` or `x[:, a:b]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    slices = [part for part in parts if isinstance(part, ast.Slice) and (part.lower or part.upper)]
    return slices[0] if len(slices) == 1 else None


def origin_of(
    roles: Roles,
    node: ast.expr,
    function: Function | None,
    *,
    through_calls: bool = False,
    callers: int = MAX_CALLERS_FOLLOWED,
) -> Origin:
    """Return where a value in a function comes from; calls of models are followed to their inputs where asked."""
    value: ast.expr | None = node
    line = node.lineno + 1
    cuts: tuple[str, ...] = ()
    field: Field | None = None
    for _ in range(MAX_VALUES_FOLLOWED):
        if isinstance(value, ast.Subscript):
            key = constant_of(value.slice)
            field = Field(key) if isinstance(key, str | int) and not isinstance(key, bool) else None
            cuts += _cut_of(value)
            value = value.value
        elif isinstance(value, ast.Call):
            value = _kept_by(value, through_calls=through_calls)
        elif isinstance(value, ast.Name):
            stored = _stored(function if function is not None else roles.script.tree, value.id, line)
            if stored is None and function is not None and callers:
                return _from_callers(roles, function, value.id, cuts, callers - 1)
            line, value, field = stored if stored is not None else (line, None, None)
        if field is not None or value is None:
            break
    return Origin(field, cuts)


def _kept_by(node: ast.Call, *, through_calls: bool) -> ast.expr | None:
    """Return what a method gives in another form, or what a model is given where calls are to be followed."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in KEEPS_VALUES:
        return node.func.value
    return node.args[0] if through_calls and node.args else None


def _from_callers(roles: Roles, function: Function, name: str, cuts: tuple[str, ...], callers: int) -> Origin:
    """Return where the callers of a function take what they give one of its parameters from."""
    for caller, given in _given_for(roles, function, name):
        origin = origin_of(roles, given, caller, callers=callers)
        if origin.field is not None:
            return Origin(origin.field, cuts + origin.cuts)
    return Origin(None, cuts)


def _cut_of(node: ast.Subscript) -> tuple[str, ...]:
    place = _time_slice(node)
    if place is None:
        return ()
    first = constant_of(place.lower) == 1 and place.upper is None
    last = place.lower is None and constant_of(place.upper) == -1
    return ("first",) if first else ("last",) if last else ("other",)


def _stored(scope: ast.AST, name: str, line: int) -> tuple[int, ast.expr | None, Field | None] | None:
    """Return where a name was last set before a line: the line, and the value or the part of what is unpacked."""
    found: list[tuple[int, ast.expr | None, Field | None]] = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and node.lineno < line:
            for target in node.targets:
                found += _set_by(target, node.value, name, node.lineno)
        elif isinstance(node, ast.For | ast.AsyncFor) and node.lineno < line:
            found += _set_by(node.target, None, name, node.lineno)
        elif isinstance(node, ast.AugAssign) and node.lineno < line and dotted(node.target) == name:
            found.append((node.lineno, None, None))
    return max(found, key=lambda assignment: assignment[0], default=None)


def _set_by(
    target: ast.expr, value: ast.expr | None, name: str, line: int
) -> Iterator[tuple[int, ast.expr | None, Field | None]]:
    """Yield what a target gives a name; the parts of nested tuples are those of the inner one."""
    if isinstance(target, ast.Name) and target.id == name:
        yield line, value, None
    if not isinstance(target, ast.Tuple | ast.List):
        return
    written = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
    for place, part in enumerate(target.elts):
        if written is None and isinstance(part, ast.Name) and part.id == name:
            yield line, None, Field(place, len(target.elts))
        else:
            yield from _set_by(part, written[place] if written else None, name, line)


def _given_for(roles: Roles, function: Function, parameter: str) -> Iterator[tuple[Function | None, ast.expr]]:
    """Yield what callers in this file give a parameter of a function, or of the forward pass of a model."""
    names = parameters_of(function)
    if parameter not in names:
        return
    owner = next((module for module in roles.modules if function in module.body), None)
    for call in roles.script.calls:
        if function.name == "forward" and owner is not None:
            calls = bool(call.owner or call.name in roles.model_names) and roles.class_of(call.name) is owner
        else:
            calls = call.method == function.name
        given = call.argument(parameter, names.index(parameter))
        if calls and given is not None:
            yield function_around(roles, call.node), given


def function_around(roles: Roles, node: ast.AST) -> Function | None:
    """Return the innermost function that a part of a script stands in; None at the top."""
    line = getattr(node, "lineno", 0)
    around = [
        function
        for function in ast.walk(roles.script.tree)
        if isinstance(function, Function) and function.lineno <= line <= (function.end_lineno or 0)
    ]
    return max(around, key=lambda function: function.lineno, default=None)
