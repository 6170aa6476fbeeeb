"""The loaders of a script: which of them train and which evaluate, and what data each reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mldebug_mcp.script.calls import Assignment, Call, dotted, values_returned
from mldebug_mcp.script.library import HELD_OUT, TRAINS
from mldebug_mcp.script.roles import Roles

MAX_STEPS_FOLLOWED = 6


@dataclass(frozen=True, slots=True)
class Loader:
    """A loader of data.

    Args:
        call: What makes it.
        name: What it is called; empty where no name is known.
        use: Whether its data train or evaluate; None where the file does not tell.
        dataset: What it reads.
    """

    call: Call
    name: str
    use: Literal["train", "evaluate"] | None
    dataset: ast.expr


def loaders_of(roles: Roles) -> list[Loader]:
    """Return all loaders of a script."""
    parents = {id(child): node for node in ast.walk(roles.script.tree) for child in ast.iter_child_nodes(node)}
    found = []
    for call in roles.script.named("DataLoader"):
        dataset = call.node.args[0] if call.node.args else call.keywords.get("dataset")
        if dataset is not None:
            names = [
                *_names(roles, call, parents),
                call.function.rpartition(".")[2],
                dotted(dataset).rpartition(".")[2],
            ]
            names = [name for name in names if name]
            uses = [use for use in map(_use, names) if use]
            shuffles = call.constant("shuffle") is True
            use = uses[0] if uses else "train" if shuffles else None
            found.append(Loader(call, names[0] if names else "", use, dataset))
    return found


def _use(name: str) -> Literal["train", "evaluate"] | None:
    if TRAINS.search(name):
        return "train"
    return "evaluate" if HELD_OUT.search(name) else None


def _names(roles: Roles, call: Call, parents: dict[int, ast.AST]) -> Iterator[str]:
    """Yield what a loader is assigned to, given as, or stored under, the nearest first."""
    node: ast.AST = call.node
    while id(node) in parents and not isinstance(node, ast.stmt):
        parent = parents[id(node)]
        if isinstance(parent, ast.keyword) and parent.arg:
            yield parent.arg
        elif isinstance(parent, ast.Dict) and isinstance(node, ast.expr) and node in parent.values:
            key = parent.keys[parent.values.index(node)]
            yield str(key.value) if isinstance(key, ast.Constant) else ""
        elif isinstance(parent, ast.Tuple) and isinstance(parents.get(id(parent)), ast.Return):
            place = [id(part) for part in parent.elts].index(id(node))
            yield from (
                made.target
                for made in roles.script.assignments
                if made.place == place
                and isinstance(made.value, ast.Call)
                and dotted(made.value).rpartition(".")[2] == call.function.rpartition(".")[2]
            )
        yield from (made.target.rpartition(".")[2] for made in roles.script.assignments if made.value is node)
        node = parent


def definition_of(roles: Roles, node: ast.expr, call: Call) -> Assignment | None:
    """Return the one assignment that made a name or attribute of `self` before a call; None where several may have."""
    name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    owner = call.function.rpartition(".")[0]
    if isinstance(node, ast.Attribute) and not (name.startswith("self.") and owner):
        return None
    made = [assignment for assignment in roles.script.assignments if assignment.target == name]
    if isinstance(node, ast.Attribute):
        made = [assignment for assignment in made if assignment.function.startswith(f"{owner}.")]
    else:
        own = [
            assignment for assignment in made if assignment.function == call.function and assignment.order <= call.order
        ]
        shadowed = call.function and roles.is_parameter(name, call.function)
        made = own or ([] if shadowed else [assignment for assignment in made if not assignment.function])
    return made[0] if len(made) == 1 and not made[0].adds and not made[0].conditions else None


def line_of_rows(roles: Roles, node: ast.expr, call: Call) -> int:
    """Return where the rows of a loader are chosen: in the function that gives them, else where they are named."""
    made = definition_of(roles, node, call)
    inside = _returned_by(roles, made) if made is not None else None
    if inside is not None:
        return line_of_rows(roles, *inside) or inside[0].lineno
    return made.line if made is not None else call.line


def _returned_by(roles: Roles, made: Assignment) -> tuple[ast.expr, Call] | None:
    """Return what a function of this file gives for a part of what is unpacked, and where; None where that varies."""
    helper = roles.definitions.get(dotted(made.value).rpartition(".")[2]) if isinstance(made.value, ast.Call) else None
    if made.place is None or not isinstance(helper, ast.FunctionDef):
        return None
    returned = values_returned(helper)
    value = returned[0] if len(returned) == 1 else None
    if not isinstance(value, ast.Tuple) or made.place >= len(value.elts):
        return None
    inside = [call for call in roles.script.calls if call.function.rpartition(".")[2] == helper.name]
    end = replace(inside[-1], order=inside[-1].order + 1) if inside else None
    return (value.elts[made.place], end) if end is not None else None


CHANGES_VIEW = re.compile(r"transform|augment|^augs?$|^tfm?s?$|^preproc\w*$|noise|jitter", re.IGNORECASE)
"""Names of arguments that change how rows look, and not which rows they are."""
READS = re.compile(r"^(?:[A-Z]\w*|load\w*|read\w*|from_\w+)$")
"""Functions that give the same rows each time for the same arguments."""


def rows_of(roles: Roles, node: ast.expr, call: Call, depth: int = MAX_STEPS_FOLLOWED) -> str:
    """Return a text that is the same for two expressions if they are the same rows, however these are transformed."""
    made = definition_of(roles, node, call) if depth else None
    if made is not None:
        inside = _returned_by(roles, made)
        if inside is not None:
            return f"{rows_of(roles, *inside, depth - 1)} of call {id(made.value)}"
        part = "" if made.place is None else f"[{made.place}]"
        within = Call("", call.node, made.line, made.order, (), made.function, (), ())
        return rows_of(roles, made.value, within, depth - 1) + part
    if isinstance(node, ast.Call):
        return _rows_of_call(roles, node, call, depth)
    if isinstance(node, ast.Subscript):
        return f"{rows_of(roles, node.value, call, depth)}[{rows_of(roles, node.slice, call, depth)}]"
    return _rows_as_written(roles, node, call, depth)


def _rows_as_written(roles: Roles, node: ast.expr, call: Call, depth: int) -> str:
    """Return the text of an expression other than a call, without one definition."""
    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return ":".join(rows_of(roles, end, call, depth) if end is not None else "" for end in ends)
    if isinstance(node, ast.List | ast.Dict):
        return f"#{id(node)}"
    name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    set_at = [
        assignment.order
        for assignment in roles.script.assignments
        if name and assignment.target == name and assignment.order <= call.order
    ]
    return repr(node.value) if isinstance(node, ast.Constant) else f"{call.function}:{ast.unparse(node)}@{set_at[-1:]}"


def _rows_of_call(roles: Roles, node: ast.Call, call: Call, depth: int) -> str:
    name = dotted(node.func)
    own = roles.definitions.get(name)
    parameters = []
    if isinstance(own, ast.ClassDef):
        start = next((part for part in own.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)
        parameters = [parameter.arg for parameter in start.args.args[1:]] if start else []
    given = [(parameters[place] if place < len(parameters) else "", arg) for place, arg in enumerate(node.args)]
    given += [(keyword.arg or "", keyword.value) for keyword in node.keywords]
    kept = [arg for parameter, arg in given if not CHANGES_VIEW.search(parameter)]
    plain = all(isinstance(arg, ast.Constant) and not isinstance(arg.value, str) for arg in kept)
    drawn = isinstance(own, ast.FunctionDef) or (isinstance(own, ast.ClassDef) and _draws_rows(own))
    if plain or drawn or not READS.search(name.rpartition(".")[2]):
        return f"{name}#{id(node)}"
    if name.rpartition(".")[2] == "Subset" and len(kept) == 2:
        return f"{rows_of(roles, kept[0], call, depth)}[{rows_of(roles, kept[1], call, depth)}]"
    return f"{name}({', '.join(rows_of(roles, arg, call, depth) for arg in kept)})"


DRAWS = re.compile(r"rand|choice|sample|normal|uniform|shuffle")


def _draws_rows(own: ast.ClassDef) -> bool:
    """Say whether a data set makes up its rows: it draws them where it is made, or without regard to the index."""
    for part in own.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            if any(DRAWS.search(dotted(node.func)) for node in ast.walk(part) if isinstance(node, ast.Call)):
                return True
        elif isinstance(part, ast.FunctionDef) and part.name in ("__getitem__", "__iter__"):
            index = part.args.args[-1].arg
            read = any(isinstance(node, ast.Name) and node.id == index for node in ast.walk(part))
            drawn = any(DRAWS.search(dotted(node.func)) for node in ast.walk(part) if isinstance(node, ast.Call))
            if drawn and not read:
                return True
    return False


RANDOM = re.compile(
    r"(?:^|\.)(?:Random(?!Sampler|State|Split|Forest|Dataset|Generator)\w+|ColorJitter|\w*(?:Rand|Auto)Augment|TrivialAugment\w*"
    r"|AugMix|HorizontalFlip|VerticalFlip|ShiftScaleRotate|CoarseDropout|GaussNoise|ElasticTransform)$"
)
"""Transforms of torchvision, Albumentations and Kornia that draw anew for each row."""


def draws_anew(roles: Roles, node: ast.expr, call: Call, depth: int = MAX_STEPS_FOLLOWED) -> str:
    """Return the random transform that rows of a data set go through whatever they are for; empty where none is."""
    made = definition_of(roles, node, call) if depth else None
    parts: list[ast.expr] = []
    if made is not None:
        part = _returned_by(roles, made)
        if part is not None:
            return draws_anew(roles, *part, depth - 1)
        within = Call("", call.node, made.line, made.order, (), made.function, (), ())
        return draws_anew(roles, made.value, within, depth - 1)
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        if RANDOM.search(name):
            return name
        own = roles.definitions.get(name.rpartition(".")[2])
        inside = _always_draws(own) if own is not None else ""
        if inside:
            return inside
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name.rpartition(".")[2] == "Subset":  # its second argument are places, whatever they were drawn from
            given = given[:1]
        parts = given if not isinstance(own, ast.FunctionDef) else []
    elif isinstance(node, ast.List | ast.Tuple):
        parts = node.elts
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    return next(filter(None, (draws_anew(roles, part, call, depth) for part in parts)), "")


def _always_draws(own: ast.AST) -> str:
    """Return the random transform in a function or class of this file that has no condition, and so is always used."""
    if any(isinstance(node, ast.If | ast.IfExp | ast.Match) for node in ast.walk(own)):
        return ""
    names = (dotted(node.func) for node in ast.walk(own) if isinstance(node, ast.Call))
    return next((name for name in names if RANDOM.search(name)), "")
