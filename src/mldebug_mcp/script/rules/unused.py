"""Is what a script makes used? A result that nothing takes, or an argument that nothing reads, is work that is lost."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call, constant_of, dotted, parameters_of
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles

IN_PLACE_BY_UNDERSCORE = frozenset({
    "clamp", "clamp_max", "clamp_min", "detach", "div", "index_add", "index_copy", "index_fill", "lerp", "masked_fill",
    "masked_scatter", "mul", "nan_to_num", "scatter", "scatter_add", "sub",
})  # fmt: skip
"""Methods of tensors that give a new one, and have a twin with `_` at its end that changes the tensor itself."""
OF_FUNCTIONAL = re.compile(r"^(?:torch\.)?nn\.functional\.[a-z]\w*[a-z0-9]$|^torch\.(?:clamp|where|lerp)$")
"""Functions that give a new tensor, where nothing says that they write into one."""
IMPORTS_FUNCTIONAL = re.compile(r"(?:import torch\.nn\.functional as|from torch\.nn import functional as) (\w{1,40})")
OF_WEIGHTS = re.compile(r"zip\(.{1,200}(?:parameters|state_dict)\(\)")
"""What a loop is over that averages the weights of two networks."""
OF_OTHERS = frozenset({"out", "inplace", "fill_value", "axis"})
"""Arguments of functions that write into what they are given, and of tables."""
SPLITS = re.compile(r"^(?:train\w*|val\w*|dev|test\w*|eval\w*|valid\w*)$", re.IGNORECASE)


def result_unused(roles: Roles) -> Iterator[Fault]:
    """A new tensor is computed, and nothing takes it: what was meant to change stays as it is."""
    nodes = list(ast.walk(roles.script.tree))
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    functional = dict.fromkeys(IMPORTS_FUNCTIONAL.findall(roles.source), "nn.functional")
    averaged = [node for node in nodes if isinstance(node, ast.For) and OF_WEIGHTS.search(ast.unparse(node.iter))]
    for node in nodes:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        name, method = dotted(call.func), dotted(call.func).rpartition(".")[2]
        if {keyword.arg for keyword in call.keywords} & OF_OTHERS or _draws(call, method):
            continue
        is_tensors = name.partition(".")[0] not in imported and name.rpartition(".")[0] not in roles.optimizers
        known = method in IN_PLACE_BY_UNDERSCORE or _adds_to_new(call, method)
        if known and isinstance(call.func, ast.Attribute) and is_tensors:
            says = f"`{ast.unparse(call)[:60]}` gives a new tensor that nothing takes: `{method}_` changes the tensor"
            if any(loop.lineno <= node.lineno <= (loop.end_lineno or 0) for loop in averaged):
                yield fault("ema_never_updated", node.lineno, "certain", says)
            else:
                yield fault("result_unused", node.lineno, "likely", says)
        elif OF_FUNCTIONAL.search(re.sub(r"^\w+", lambda first: functional.get(first[0], first[0]), name)):
            says = f"`{ast.unparse(call)[:60]}` gives a new tensor that nothing takes"
            yield fault("result_unused", node.lineno, "likely", says)


def _adds_to_new(call: ast.Call, method: str) -> bool:
    """Say whether a call adds to a new tensor, `a.mul(m).add(b)`: an `add` of its own may be that of a set."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    new = isinstance(owner, ast.Call) and dotted(owner.func).rpartition(".")[2] in IN_PLACE_BY_UNDERSCORE
    return method == "add" and new


def _draws(call: ast.Call, method: str) -> bool:
    """Say whether a call is matplotlib's `scatter(x, y)`: that of a tensor has a dimension, indices and values."""
    return method == "scatter" and len(call.args) < 3


OF_PARAMETERS = re.compile(r"\.(?:named_)?(?:parameters|buffers)\(|\.state_dict\(\)")
"""What a loop is over that goes through the tensors of a model."""


def parameter_renamed(roles: Roles) -> Iterator[Fault]:
    """A loop over the tensors of a model gives its variable a new value that nothing reads: no tensor changes."""
    for loop in ast.walk(roles.script.tree):
        if not isinstance(loop, ast.For) or not OF_PARAMETERS.search(ast.unparse(loop.iter)):
            continue
        names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        last = loop.body[-1]
        if not isinstance(last, ast.Assign) or len(last.targets) != 1 or not isinstance(last.targets[0], ast.Name):
            continue
        name = last.targets[0].id
        if name in names and not _is_read_after(roles, loop, name):
            says = f"`{ast.unparse(last)[:60]}` gives the name {name} another value, and changes no tensor"
            yield fault("parameter_renamed", last.lineno, "certain", says)


def _is_read_after(roles: Roles, loop: ast.For, name: str) -> bool:
    """Say whether a name is read behind a loop in the function around it, or in the file where none is around."""
    functions = [node for node in ast.walk(roles.script.tree) if isinstance(node, ast.FunctionDef)]
    end = loop.end_lineno or loop.lineno
    around = [node.end_lineno or 0 for node in functions if node.lineno < loop.lineno <= end <= (node.end_lineno or 0)]
    until = min(around, default=None)
    return any(end < node.lineno and (until is None or node.lineno <= until) for node, _ in roles.reads.get(name, ()))


def argument_unused(roles: Roles) -> Iterator[Fault]:
    """A function never reads an argument that its callers give different values for, such as which split to load."""
    for function in roles.definitions.values():
        if not isinstance(function, ast.FunctionDef):
            continue
        read = {"self", "cls", *(node.id for node in ast.walk(function) if isinstance(node, ast.Name))}
        names = [parameter.arg for parameter in (*function.args.args, *function.args.kwonlyargs)]
        unread = [name for name in names if name not in read and not name.startswith("_")]
        for name in unread if unread and not _may_be_called_elsewhere(roles, function) else ():
            given = _values(roles, function, name)
            if len({repr(value) for value in given}) < 2:
                continue
            says = f"{function.name}() never reads {name}, for which it is given {' and '.join(map(repr, given[:3]))}"
            splits = all(isinstance(value, str) and SPLITS.search(value) for value in given)
            if splits:
                yield fault("same_data", function.lineno, "likely", f"{says}: both get the same rows")
            else:
                yield fault("argument_unused", function.lineno, "depends", says)


def _may_be_called_elsewhere(roles: Roles, function: ast.FunctionDef) -> bool:
    """Say whether a function is a stub, is handed on as a value, or takes the place of one of another class."""
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    stub = not body or all(isinstance(node, ast.Pass | ast.Raise) for node in body)
    called = {id(call.node.func) for call in roles.script.calls}
    handed_on = any(id(node) not in called for node, _ in roles.reads.get(function.name, ()))
    inherits = any(
        isinstance(owner, ast.ClassDef) and owner.bases and function in owner.body
        for owner in ast.walk(roles.script.tree)
    )
    return stub or handed_on or inherits or bool(function.decorator_list) or "locals()" in ast.unparse(function)


def _values(roles: Roles, function: ast.FunctionDef, name: str) -> list[object]:
    """Return the constants that a function is given for a parameter; nothing if any call gives something else."""
    names = parameters_of(function)
    place = names.index(name) if name in names else None
    calls = [call for call in roles.script.named(function.name) if not _is_starred(call)]
    values = [constant_of(given) for call in calls if (given := call.argument(name, place)) is not None]
    return [] if None in values else values


def _is_starred(call: Call) -> bool:
    return any(isinstance(arg, ast.Starred) for arg in call.node.args)
