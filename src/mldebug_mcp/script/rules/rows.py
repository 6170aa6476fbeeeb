"""Are rows written and scaled alike for training and evaluation, and left as they are stored?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from mldebug_mcp.script.calls import Call, dotted, values_returned
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import HELD_OUT, TRAINS
from mldebug_mcp.script.roles import Roles


def encoder_fitted_before_split(roles: Roles) -> Iterator[Fault]:
    """An encoder learns from the rows of all, and these are split by index afterwards."""
    for call in roles.script.named("fit", "fit_transform"):
        makers = [ast.unparse(made.value) for made in roles.script.assignments if made.target == call.owner]
        makers.append(ast.unparse(call.node.func))
        if not any(ENCODES.search(maker) for maker in makers):
            continue
        given = [dotted(argument) for argument in call.node.args if isinstance(argument, ast.Name)]
        scope = roles.scope_of(call.function)
        cuts = [
            (dotted(node.value), dotted(node.slice))
            for node in ast.walk(scope)
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.lineno > call.line
        ]
        for name in given:
            places = {place for cut, place in cuts if cut == name}
            if any(map(TRAINS.search, places)) and any(map(HELD_OUT.search, places)):
                says = f"{ast.unparse(call.node)[:80]} sees all rows, and {name} is split afterwards"
                yield fault("fitted_before_split", call.line, "likely", says)
                break


ENCODES = re.compile(r"(?<!Label)(?<!Hot)(?<!Ordinal)Encoder\b|Scaler\b|PCA\b|Imputer\b|SelectKBest\b|Discretizer\b")
"""Names of classes whose statistics of rows tell something of each of them."""


def scaled_in_training_alone(roles: Roles) -> Iterator[Fault]:
    """A data set scales its rows where it is given statistics, and that of the evaluation is given none."""
    for name, dataset in roles.definitions.items():
        if not isinstance(dataset, ast.ClassDef):
            continue
        for parameter, place in _optional_statistics(dataset):
            calls = [call for call in roles.script.named(name) if isinstance(call.node.func, ast.Name)]
            given = [call for call in calls if parameter in call.keywords or len(call.node.args) > place]
            bare = [call for call in calls if call not in given and not any(map(_is_spread, call.node.args))]
            if parameter == "transform":
                given = [call for call in given if _normalizes(roles, call, place)]
            names = {id(call): _name_given(roles, call) for call in calls}
            late = [call for call in bare if HELD_OUT.search(names[id(call)])]
            if late and any(TRAINS.search(names[id(call)]) for call in given):
                says = f"rows of the training are scaled by {parameter}, and those of {names[id(late[0])]} are not"
                yield fault("scaled_in_training_alone", late[0].line, "likely", says)


def _normalizes(roles: Roles, call: Call, place: int) -> bool:
    """Say whether the transform that a data set is given scales its rows, and does not only vary them."""
    value = call.argument("transform", place)
    text = "" if value is None else f"{ast.unparse(value)} {ast.unparse(roles.source_of(value, call))}"
    return bool(re.search(r"normali[sz]|standardi[sz]", text, re.IGNORECASE))


def _is_spread(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _optional_statistics(dataset: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Yield the parameters of a data set that are None by default and scale its rows, with their places in a call."""
    begins = _method(dataset, "__init__")
    if begins is None or _method(dataset, "__getitem__") is None:
        return
    names = [parameter.arg for parameter in begins.args.args][1:]
    defaults = begins.args.defaults
    for parameter, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        scales = parameter == "transform" or re.search(
            rf"- (?:self\.)?{parameter}\b.*/ (?:self\.)?{parameter}\b", ast.unparse(dataset)
        )
        if isinstance(default, ast.Constant) and default.value is None and scales:
            yield parameter, names.index(parameter)


def _name_given(roles: Roles, call: Call) -> str:
    """Return the name of what a call is a part of."""
    holders = [
        made.target for made in roles.script.assignments if any(part is call.node for part in ast.walk(made.value))
    ]
    return holders[-1].rpartition(".")[2] if holders else ""


def rows_changed_in_place(roles: Roles) -> Iterator[Fault]:
    """A data set gives its stored rows to what changes them in place, so that each pass changes them further."""
    for dataset in roles.definitions.values():
        item = _method(dataset, "__getitem__")
        if item is None:
            continue
        stored = {name: rows for name, rows in _stored_rows(item).items() if not _is_read_anew(dataset, rows)}
        for node in ast.walk(item):
            if not (isinstance(node, ast.Call) and node.args and dotted(node.args[0]) in stored):
                continue
            if changes := _first_change_in_place(roles, node):
                says = f"what this calls changes the stored row itself (line {changes}), further in each pass"
                yield fault("rows_changed_in_place", node.lineno, "likely", says)
        own = _changed_in_place(item, set(stored)) or _changed_where_stored(item, _given_back(item, stored))
        if own:
            says = "the row is a part of the stored array, which this changes for good, further in each pass"
            yield fault("rows_changed_in_place", own, "likely", says)


def _is_read_anew(dataset: ast.AST, rows: str) -> bool:
    """Say whether rows are kept in a file, so that each reading gives new ones."""
    made = [node.value for node in ast.walk(dataset) if isinstance(node, ast.Assign) and _is_made(node, rows)]
    return any(re.search(r"File\(|open\w*\(|zarr|lmdb|load_dataset", ast.unparse(value)) for value in made)


def _is_made(node: ast.Assign, name: str) -> bool:
    return any(dotted(target) == name for target in node.targets)


def _given_back(item: ast.FunctionDef, stored: Mapping[str, str]) -> set[str]:
    """Return the stored arrays whose rows are what a data set gives, and not counts or priorities of them."""
    returned = [*filter(None, values_returned(item))]
    names = {dotted(part) for value in returned for part in ast.walk(value)}
    return names | {rows for name, rows in stored.items() if name in names}


def _changed_where_stored(item: ast.FunctionDef, given: set[str]) -> int:
    """Return the line of `self.rows[index] += …` where that row is given back; 0 where there is none."""
    index = {parameter.arg for parameter in item.args.args[1:]}
    lines = [
        node.lineno
        for node in ast.walk(item)
        if isinstance(node, ast.AugAssign) and _is_stored(node.target) and isinstance(node.target, ast.Subscript)
        if dotted(node.target.slice) in index and dotted(node.target) in given
    ]
    return min(lines, default=0)


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and dotted(node).startswith("self.")


def _method(owner: ast.AST, name: str) -> ast.FunctionDef | None:
    body = owner.body if isinstance(owner, ast.ClassDef) else []
    return next((part for part in body if isinstance(part, ast.FunctionDef) and part.name == name), None)


def _stored_rows(item: ast.FunctionDef) -> dict[str, str]:
    """Return the names that are rows of an array of the data set itself, and nothing else, each with its array."""
    index = {parameter.arg for parameter in item.args.args[1:]}
    made: dict[str, list[ast.expr]] = {}
    for node in ast.walk(item):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            made.setdefault(node.targets[0].id, []).append(node.value)
    return {
        name: dotted(values[0])
        for name, values in made.items()
        if isinstance(values[0], ast.Subscript)
        and dotted(values[0].value).startswith("self.")
        and dotted(values[0].slice) in index
        and re.search(
            r"(?:^|[._])(?:x|xs|data|images?|imgs?|inputs?|features?|arrays?|signals?|frames?|clips?|waves?)$",
            dotted(values[0].value),
        )
    }


def _first_change_in_place(roles: Roles, call: ast.Call) -> int:
    """Return the line at which a transform of this file first changes what it is given; 0 where none does."""
    called = dotted(call.func).rpartition(".")[2]
    helper = roles.definitions.get(called)
    bodies = [helper] if isinstance(helper, ast.FunctionDef) else []
    if not bodies and dotted(call.func).startswith("self."):
        bodies = [method for owner in roles.definitions.values() if (method := _method(owner, "__call__")) is not None]
        bodies = bodies if len(bodies) == 1 else []
    for body in bodies:
        parameters = [parameter.arg for parameter in body.args.args if parameter.arg != "self"]
        line = _changed_in_place(body, set(parameters[:1]))
        if line:
            return line
    return 0


def _changed_in_place(function: ast.FunctionDef, names: set[str]) -> int:
    """Return the line at which a function changes one of these in place before it is given another value; 0 if none."""
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.AugAssign)]
    for node in sorted(statements, key=lambda statement: statement.lineno):
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        if dotted(target) not in names:
            continue
        if isinstance(node, ast.AugAssign) or isinstance(target, ast.Subscript):
            return node.lineno
        if not _is_stored(node.value):
            return 0
    return 0
