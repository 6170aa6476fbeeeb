"""Which rows does each loader read, and are those of the evaluation kept apart from those of the training?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    constant_of,
    dotted,
    exclude,
    names_in,
    parameters_of,
    values_returned,
)
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import EVALUATES, HELD_OUT, TRAINS
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.events import Trace
from mldebug_mcp.script.trace.library_calls import rows_of as dataset_of
from mldebug_mcp.script.trace.library_calls import wrapped
from mldebug_mcp.script.values import Constant, Items, Object, Tensor, Value, facts_of

CHOOSES_ROWS = re.compile(r"hold|held|valid|test|eval|split|fold|part|last", re.IGNORECASE)
"""Names of switches that may take other rows, or other places of them."""
SEEDED = re.compile(r"seed|random_state|generator|default_rng\(\d")
"""How a draw is written that gives the same numbers each time."""
PERMUTES = ("permutation", "randperm", "choice", "integers", "randint")
SIDES = (("train_dataset", "eval_dataset"), ("train_dataloaders", "val_dataloaders"))
"""The arguments for the rows of training and of evaluation: of Transformers, and of Lightning, by place as well."""
KEEP_ROWS = (
    "map",
    "shuffle",
    "with_format",
    "remove_columns",
    "rename_column",
    "cast_column",
    "batch",
    "cache",
    "prefetch",
)
"""Methods of data sets of Hugging Face and TensorFlow that return all rows."""
LEAVE_ROWS_OUT = ("select", "take", "skip", "shard")
"""Those that return a part of them."""
MAX_STEPS_FOLLOWED = 6
CHANGES_VIEW = re.compile(r"transform|augment|^augs?$|^tfm?s?$|^preproc\w*$|noise|jitter", re.IGNORECASE)
"""Names of arguments that change how rows look, and not which rows they are."""
READS = re.compile(r"^(?:[A-Z]\w*|load\w*|read\w*|from_\w+)$")
"""Functions that give the same rows each time for the same arguments."""
DRAWS = re.compile(r"rand|choice|sample|normal|uniform|shuffle")
RANDOM = re.compile(
    r"(?:^|\.)(?:Random(?!Sampler|State|Split|Forest|Dataset|Generator)\w+|ColorJitter|\w*(?:Rand|Auto)Augment|TrivialAugment\w*"
    r"|AugMix|HorizontalFlip|VerticalFlip|ShiftScaleRotate|CoarseDropout|GaussNoise|ElasticTransform)$"
)
"""Transforms of torchvision, Albumentations and Kornia that draw anew for each row."""


def same_rows_by_name(roles: Roles) -> Iterator[Fault]:
    """A loader of the evaluation is written to read the same rows as one of the training."""
    rows: dict[str, Loader] = {}
    loaders = loaders_of(roles)
    for loader in loaders:
        if loader.use == "train":
            rows.setdefault(_rows(roles, loader), loader)
    for loader in loaders:
        trained = rows.get(_rows(roles, loader)) if loader.use == "evaluate" else None
        if trained is not None:
            same_name = ast.unparse(loader.dataset) == ast.unparse(trained.dataset)
            line = loader.call.line if same_name else line_of_rows(roles, loader.dataset, loader.call)
            says = f"{loader.name} and {trained.name} read the same data: {ast.unparse(loader.dataset)}"
            yield fault("same_data", line, "certain", says)


def _rows(roles: Roles, loader: Loader) -> str:
    samplers = [loader.call.keywords[name] for name in ("sampler", "batch_sampler") if name in loader.call.keywords]
    return " by ".join(rows_of(roles, node, loader.call) for node in (loader.dataset, *samplers))


def same_rows_read(roles: Roles) -> Iterator[Fault]:
    """All that is evaluated are rows that are trained on, through whatever helpers and mappings they come."""
    trained, judged = loaders_read(roles.trace, trains=True), loaders_read(roles.trace, trains=False)
    if not trained or not judged or {*trained} & {*judged}:
        return  # the rows of training may be evaluated as a reference
    shared = [(loader, other) for loader in judged for other in trained if _reads_rows_of(loader, other)]
    if {loader for loader, _ in shared} == {*judged}:
        loader, other = shared[0]
        lines = [part.line for part in (loader, other, *wrapped(dataset_of(loader)), *wrapped(dataset_of(other)))]
        says = (
            f"{loader.label or 'this loader'} reads rows that {other.label or 'another'} (line {other.line}) trains on"
        )
        yield fault("same_data", loader.line, "likely", says, lines=lines)


def _reads_rows_of(loader: Object, other: Object) -> bool:
    """Say whether two loaders read the same rows, or one of them all rows and the other a part of them."""
    if not all(isinstance(dataset_of(part), Object) for part in (loader, other)):
        return False  # parts of a list are not kept apart
    own, others = wrapped(dataset_of(loader)), wrapped(dataset_of(other))
    chosen = {"sampler", "batch_sampler"} & {*loader.settings, *other.settings}
    several = any(part.name == "*" or part.loops != loader.loops[: len(part.loops)] for part in (*own, *others))
    if chosen or several:  # one may stand for several, as what a comprehension makes
        return False
    first, second = own[0], others[0]
    if first is second or second in own[1:] or first in others[1:]:
        return True
    same = first.definition is not None and first.definition is second.definition
    same = same or (first.made_by == second.made_by and first.made_by.endswith(("Subset", "TensorDataset")))
    pairs = list(zip(first.given, second.given, strict=False))
    names = parameters_of(first.definition) or [""] * len(pairs)
    rows = [pair for pair in pairs if all(isinstance(part, Object) and part.is_table() for part in pair)]
    known = all(
        _is_same(*pair) or (pair not in rows and not _may_choose(pair, name))
        for pair, name in zip(pairs, names, strict=False)
    )
    return same and len(first.given) == len(second.given) > 0 and known and any(_is_same(*pair) for pair in pairs)


def _is_same(left: Value, right: Value) -> bool:
    if isinstance(left, Object):
        return left is right and left.name != "*"
    if isinstance(left, Items):
        return left is right
    return isinstance(left, Constant | Tensor) and left == right and facts_of(left).part != ""


def _may_choose(pair: tuple[Value, Value], name: str) -> bool:
    """Say whether two arguments of a name that differ may choose rows: anything but switches that change rows alone."""
    switches = all(isinstance(part, Constant) and isinstance(part.value, bool | None) for part in pair)
    return not switches or CHOOSES_ROWS.search(name) is not None


def same_rows_given(roles: Roles) -> Iterator[Fault]:
    """A trainer evaluates the very rows that it trains on."""
    for call in roles.trainer_calls:
        keywords = roles.keywords(call)
        by_place = call.node.args[1:3] if call.method == "fit" and roles.uses("LightningModule", "Trainer") else []
        pairs = [(keywords.get(train), keywords.get(evaluation)) for train, evaluation in SIDES]
        pairs += [(by_place[0], by_place[1])] if len(by_place) == 2 else []
        if call.method == "fit" and "validation_data" in keywords:
            pairs.append((call.argument("x", 0), _inputs_of(keywords["validation_data"])))
        for train, evaluation in pairs:
            if train is not None and evaluation is not None and _holds_rows_of(train, evaluation):
                says = f"{call.method} evaluates the rows that it trains on: {ast.unparse(evaluation)}"
                yield fault("same_data", evaluation.lineno, "certain", says)


def _inputs_of(node: ast.expr) -> ast.expr:
    """Return the first part of a pair of inputs and targets, and anything else as it is."""
    return node.elts[0] if isinstance(node, ast.Tuple) and node.elts else node


def _holds_rows_of(train: ast.expr, evaluation: ast.expr) -> bool:
    """Say whether two expressions are the same rows, or the second a part of the first, which is not cut."""
    if ast.unparse(train) == ast.unparse(evaluation):
        return bool(dotted(train))
    (rows, is_cut), (others, _) = _uncut(train), _uncut(evaluation)
    return not is_cut and bool(dotted(rows)) and ast.unparse(rows) == ast.unparse(others)


def _uncut(node: ast.expr) -> tuple[ast.expr, bool]:
    """Return the rows that calls of a data set and slices begin with, and whether one of them leaves rows out."""
    is_cut = False
    while True:
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            node, is_cut = node.value, True
        elif isinstance(method, ast.Attribute) and method.attr in {*KEEP_ROWS, *LEAVE_ROWS_OUT}:
            node, is_cut = method.value, is_cut or method.attr in LEAVE_ROWS_OUT
        else:
            return node, is_cut


def evaluates_training_data(roles: Roles) -> Iterator[Fault]:
    """A function that evaluates goes through the rows of the training alone."""
    for line, through in roles.script.loops.items():
        within = [inner_call for inner_call in roles.script.calls if line in inner_call.loops]
        function = within[0].function if within else ""
        if (
            EVALUATES.search(function)
            and re.search(r"(?<![a-z])train_?(?:loader|dl|data\w*|set)\b", through)
            and not any(map(_names_held_out, _loops_of(roles, function)))
            and not any(inner_call in roles.backwards for inner_call in within)
        ):
            says = f"{function} goes through {through}"
            yield fault("evaluates_training_data", line, "likely", says)


def _loops_of(roles: Roles, function: str) -> set[str]:
    """Return what the loops of a function go through."""
    lines = {line for call in roles.script.calls if call.function == function for line in call.loops}
    return {roles.script.loops[line] for line in lines if line in roles.script.loops}


def _names_held_out(through: str) -> bool:
    """Say whether a loop goes through held-out rows as well: those of training are a reference, or compared."""
    return any(HELD_OUT.search(name.rpartition(".")[2]) for name in re.findall(r"[\w.]++", through))


def split_of_the_configuration(roles: Roles) -> Iterator[Fault]:
    """A helper is asked for held-out rows, and reads the split of a configuration, which is that of training."""
    for function in roles.definitions.values():
        if not isinstance(function, ast.FunctionDef):
            continue
        for parameter in (*function.args.args, *function.args.kwonlyargs):
            default = constant_of(roles.settings.get(parameter.arg))
            if not isinstance(default, str) or not TRAINS.search(default):
                continue
            asked = _asked_for(roles, function, parameter.arg)
            held_out = sorted(name for name in asked if HELD_OUT.search(name) and not TRAINS.search(name))
            elsewhere = [call for call in roles.script.calls if call.method != function.name]
            changed = any(isinstance(call.constant(parameter.arg), str) for call in elsewhere)
            if changed or not held_out:
                continue
            read = _read_instead(function, parameter.arg)
            if read is not None:
                says = (
                    f"{function.name}() is asked for {held_out[0]!r}, and reads {dotted(read)}, "
                    f"which is {default!r} unless it is set"
                )
                yield fault("same_data", read.lineno, "likely", says, fix=f"read {parameter.arg} instead")


def _asked_for(roles: Roles, function: ast.FunctionDef, parameter: str) -> set[str]:
    """Return the names of splits, as they are written, that a function is given for a parameter."""
    names = parameters_of(function)
    place = names.index(parameter) if parameter in names else None
    given = {call.constant(parameter, place) for call in roles.script.named(function.name)}
    return {value for value in given if isinstance(value, str)}


def _read_instead(function: ast.FunctionDef, name: str) -> ast.Attribute | None:
    """Return the setting of the name of a parameter that a call is given, where the parameter is compared alone."""
    compared = [node for node in ast.walk(function) if isinstance(node, ast.Compare) and name in names_in(node)]
    inside = {id(part) for node in compared for part in ast.walk(node)}
    others = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    if any(id(node) not in inside for node in others):
        return None
    given = (part for call in ast.walk(function) if isinstance(call, ast.Call) for part in _parts_given(call))
    settings = [part for part in given if isinstance(part, ast.Attribute) and part.attr == name]
    return settings[0] if settings and not any(id(part) in inside for part in settings) else None


def _parts_given(call: ast.Call) -> Iterator[ast.AST]:
    """Yield all parts of what a call is given."""
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from ast.walk(argument)


def split_twice(roles: Roles) -> Iterator[Fault]:
    """Training and evaluation come from two splits of the same rows, each drawn by itself."""
    splits: dict[str, Call] = {}
    for made in roles.script.assignments:
        value = made.value.value if isinstance(made.value, ast.Subscript) else made.value
        call = roles.call_of(value) if isinstance(value, ast.Call) else None
        if call is None or call.method not in ("random_split", "train_test_split") or not call.node.args:
            continue
        owner, given = call.function.rpartition(".")[0], dotted(call.node.args[0])
        own = bool(owner) and given.startswith("self.")
        first_split = splits.setdefault(f"{owner}.{given}" if own else rows_of(roles, call.node.args[0], call), call)
        apart = ast.unparse(first_split.node) != ast.unparse(call.node) or not _is_seeded(call)
        together = first_split.function == call.function or _are_methods_of_one(first_split, call)
        together = together and not any(
            exclude(condition, other) for condition in first_split.conditions for other in call.conditions
        )
        if first_split is not call and together and first_split.loops == call.loops and apart:
            says = f"the same rows are split in line {first_split.line} and here once more: training rows are evaluated"
            yield fault("split_twice", call.line, "likely", says)


def _are_methods_of_one(first: Call, other: Call) -> bool:
    """Say whether two calls stand in methods of one class, neither with a seed of its own."""
    owners = {call.function.rpartition(".")[0] for call in (first, other)}
    return len(owners) == 1 and "" not in owners and not _is_seeded(first) and not _is_seeded(other)


def _is_seeded(call: Call) -> bool:
    return any(name in call.keywords for name in ("generator", "random_state"))


def drawn_twice(roles: Roles) -> Iterator[Fault]:
    """Rows of training and of evaluation are drawn at random, each for itself, from the same rows."""
    drawn: dict[str, list[tuple[Assignment, ast.expr]]] = {}
    for made in roles.script.assignments:
        last = made.target.rpartition(".")[2]
        found = _drawn_from(roles, made.value) if TRAINS.search(last) or HELD_OUT.search(last) else None
        if found is None or made.conditions or made.place is not None:
            continue
        rows, draw = found
        within = Call("", ast.Call(rows, [], []), made.line, made.order, (), made.function, (), ())
        drawn.setdefault(f"{made.function}:{rows_of(roles, rows, within)}", []).append((made, draw))
    for same in drawn.values():
        train = [(made, draw) for made, draw in same if TRAINS.search(made.target.rpartition(".")[2])]
        held = [(made, draw) for made, draw in same if not TRAINS.search(made.target.rpartition(".")[2])]
        seeded = train and held and SEEDED.search(ast.unparse(held[0][1]))
        if train and held and not (seeded and ast.unparse(train[0][1]) == ast.unparse(held[0][1])):
            line, first = held[0][0].line, train[0][0].line
            says = f"these rows and those of line {first} are drawn from the same: many are in both"
            yield fault("split_twice", line, "likely", says, lines=(first,))


def _drawn_from(roles: Roles, node: ast.expr, depth: int = 3) -> tuple[ast.expr, ast.expr] | None:
    """Return the rows from which a value is drawn at random, and the draw: `table.sample(n=9)`, `rows[chosen]`."""
    if isinstance(node, ast.Subscript) and depth:
        draw = _draw_in(node.slice)
        return (_rows_of_cut(node), draw) if draw is not None else _drawn_from(roles, node.value, depth - 1)
    if not isinstance(node, ast.Call) or not depth:
        return None
    helper = roles.definitions.get(dotted(node.func).rpartition(".")[2])
    if helper is not None:
        return _drawn_by(roles, helper, node, depth - 1)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return _drawn_at_once(node, owner) or (_drawn_from(roles, owner, depth - 1) if owner is not None else None)


def _drawn_at_once(node: ast.Call, owner: ast.expr | None) -> tuple[ast.expr, ast.expr] | None:
    """Return the rows that a call of a library draws from, and the draw; None for another call."""
    name, given = dotted(node.func).rpartition(".")[2], {keyword.arg for keyword in node.keywords}
    if name == "sample" and owner is not None and given & {"frac", "n"}:
        return owner, node
    of_random = owner is not None and bool(re.search(r"(?:^|\.)(?:random|rng|rs|rand|gen)$", dotted(owner)))
    if of_random and name in ("choice", "sample") and len(node.args) > 1:
        return node.args[0], node
    draw = _draw_in(node.args[1]) if name == "Subset" and len(node.args) == 2 else None
    return (node.args[0], draw) if draw is not None else None


def _drawn_by(roles: Roles, helper: ast.AST, node: ast.Call, depth: int) -> tuple[ast.expr, ast.expr] | None:
    """Return the rows that a function of this file is given and draws from, and its call; None for another function."""
    returned = values_returned(helper)
    found = _drawn_from(roles, returned[0], depth) if len(returned) == 1 and returned[0] is not None else None
    parameters = parameters_of(helper)
    place = parameters.index(dotted(found[0])) if found is not None and dotted(found[0]) in parameters else None
    return (node.args[place], node) if place is not None and place < len(node.args) else None


def _draw_in(node: ast.expr) -> ast.Call | None:
    """Return the call that draws numbers of rows: `rng.permutation(n)[:k]`, `torch.randperm(n)`; None for others."""
    while isinstance(node, ast.Subscript):
        node = node.value
    is_draw = isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in PERMUTES
    return node if is_draw and isinstance(node, ast.Call) else None


def whole_and_part(roles: Roles) -> Iterator[Fault]:
    """Training has all rows, and what is held out is a part of the same, through a helper as well."""
    helpers: dict[int, list[Assignment]] = {}
    for made in roles.script.assignments:
        if isinstance(made.value, ast.Call) and made.place is not None:
            helpers.setdefault(id(made.value), []).append(made)
    for parts in helpers.values():
        call = parts[0].value
        helper = roles.definitions.get(dotted(call).rpartition(".")[2])
        returned = values_returned(helper)
        value = returned[0] if len(returned) == 1 and isinstance(returned[0], ast.Tuple) else None
        if value is None or len(value.elts) < len(parts):
            continue
        named = {part.target.rpartition(".")[2]: value.elts[part.place or 0] for part in parts}
        train = [node for name, node in named.items() if TRAINS.search(name)]
        held = [node for name, node in named.items() if HELD_OUT.search(name) and not TRAINS.search(name)]
        whole = {dotted(node) for node in train if isinstance(node, ast.Name)}
        if any(isinstance(node, ast.Subscript) and dotted(_rows_of_cut(node)) in whole for node in held):
            says = f"{next(iter(whole))} is returned whole for training, and a part of it is held out"
            yield fault("same_data", train[0].lineno, "likely", says, lines=(parts[0].line,))


def _rows_of_cut(node: ast.Subscript) -> ast.expr:
    rows = node.value
    return rows.value if isinstance(rows, ast.Attribute) and rows.attr in ("iloc", "loc") else rows


def unused_split(roles: Roles) -> Iterator[Fault]:
    """Rows are held out and never read, while something is evaluated."""
    if not any(call.owner and call.method == "eval" for call in roles.script.calls) or len(loaders_of(roles)) < 2:
        return
    for made in roles.script.assignments:
        call = roles.call_of(made.value) if isinstance(made.value, ast.Call) else None
        if call is None or call.method not in ("random_split", "train_test_split") or made.place is None:
            continue
        last = made.target.rpartition(".")[2]
        if HELD_OUT.search(last) and not roles.reads.get(last) and not re.search(r"^_|test", last):
            says = f"{made.target} is held out and never read: what is evaluated are other rows"
            yield fault("same_data", made.line, "likely", says)


def loaders_read(trace: Trace, *, trains: bool) -> list[Object]:
    """Return the loaders that loops which train go through, or loops without gradients."""
    found = []
    for event in trace.of("iterate"):
        inside = [other for other in trace.of("backward", "forward") if other.entry == event.entry]
        inside = [other for other in inside if other.loops[: len(event.loops)] == event.loops]
        learns = any(other.action == "backward" for other in inside)
        judged = not learns and any(other.gradients is False for other in inside)
        found += [loader for loader in event.objects if loader.kind == "loader" and (learns if trains else judged)]
    return list(dict.fromkeys(found))


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
