"""Which rows do loaders give and in which order, and are rows prepared alike for training and evaluation?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    arguments_of,
    called_name,
    calls_in,
    constant_of,
    dotted,
    exclude,
    is_operation,
    keywords_of,
    last_name,
    last_part,
    method_of,
    names_in,
    names_read,
    only_value,
    parameters_of,
    part_of,
    values_returned,
    walk,
)
from mldebug_mcp.script.facts import CHOSEN_BY
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import EVALUATES, HELD_OUT, TRAINS
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace import Event, Trace
from mldebug_mcp.script.trace.follower import rows_of as dataset_of
from mldebug_mcp.script.trace.follower import wrapped
from mldebug_mcp.script.values import Constant, Items, Object, Tensor, Value, facts_of, objects_in

CHOOSES_ROWS = re.compile(r"hold|held|valid|test|eval|split|fold|part|last", re.IGNORECASE)
"""Names of switches that may take other rows, or other places of them."""
SEEDED = re.compile(r"seed|random_state|generator|default_rng\(\d")
"""How a draw is written that gives the same numbers each time."""
PERMUTES = ("permutation", "randperm", "choice", "integers", "randint")
SIDES = (("train_dataset", "eval_dataset"), ("train_dataloaders", "val_dataloaders"))
"""The arguments for the rows of training and of evaluation: of Transformers, and of Lightning, by place as well."""
KEEP_ROWS = (
    "map", "shuffle", "with_format", "remove_columns", "rename_column", "cast_column", "batch", "cache", "prefetch",
)  # fmt: skip
"""Methods of data sets of Hugging Face and TensorFlow that return all rows."""
LEAVE_ROWS_OUT = ("select", "take", "skip", "shard")
"""Those that return a part of them."""
MAX_STEPS_FOLLOWED = 6
"""Assignments and calls that rows are followed through to their data set."""
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
        _is_same_data(*pair) or (pair not in rows and not _may_choose(pair, name))
        for pair, name in zip(pairs, names, strict=False)
    )
    return same and len(first.given) == len(second.given) > 0 and known and any(_is_same_data(*pair) for pair in pairs)


def _is_same_data(left: Value, right: Value) -> bool:
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
    lines = {line for call in roles.script.calls if call.function == function for line in call.loops}
    return {roles.script.loops[line] for line in lines if line in roles.script.loops}


def _names_held_out(through: str) -> bool:
    """Say whether a loop goes through held-out rows as well: those of training are a reference, or compared."""
    return any(HELD_OUT.search(last_part(name)) for name in re.findall(r"[\w.]++", through))


def split_of_the_configuration(roles: Roles) -> Iterator[Fault]:
    """A helper is asked for held-out rows, and reads the split of a configuration, which is that of training."""
    for function in roles.functions.values():
        for parameter in (*function.args.args, *function.args.kwonlyargs):
            default = constant_of(roles.settings.get(parameter.arg))
            if not isinstance(default, str) or not TRAINS.search(default):
                continue
            asked = _asked_for(roles, function, parameter.arg)
            held_out = sorted(name for name in asked if use_of(name) == "evaluate")
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
    compared = [node for node in walk(function, ast.Compare) if name in names_in(node)]
    inside = {id(part) for node in compared for part in ast.walk(node)}
    others = [node for node in walk(function, ast.Name) if node.id == name]
    if any(id(node) not in inside for node in others):
        return None
    given = (part for call in walk(function, ast.Call) for arg in arguments_of(call) for part in ast.walk(arg))
    settings = [part for part in given if isinstance(part, ast.Attribute) and part.attr == name]
    return settings[0] if settings and not any(id(part) in inside for part in settings) else None


def split_twice(roles: Roles) -> Iterator[Fault]:
    """Training and evaluation come from two splits of the same rows, each drawn by itself."""
    splits: dict[str, Call] = {}
    for made in roles.script.assignments:
        value = made.value.value if isinstance(made.value, ast.Subscript) else made.value
        call = roles.call_of(value)
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
        found = _drawn_from(roles, made.value) if use_of(made.last) else None
        if found is None or made.conditions or made.place is not None:
            continue
        rows, draw = found
        drawn.setdefault(f"{made.function}:{rows_of(roles, rows, made)}", []).append((made, draw))
    for same in drawn.values():
        train = [(made, draw) for made, draw in same if TRAINS.search(made.last)]
        held_out = [(made, draw) for made, draw in same if not TRAINS.search(made.last)]
        seeded = train and held_out and SEEDED.search(ast.unparse(held_out[0][1]))
        if train and held_out and not (seeded and ast.unparse(train[0][1]) == ast.unparse(held_out[0][1])):
            line, first = held_out[0][0].line, train[0][0].line
            says = f"these rows and those of line {first} are drawn from the same: many are in both"
            yield fault("split_twice", line, "likely", says, lines=(first,))


def _drawn_from(roles: Roles, node: ast.expr, depth: int = 3) -> tuple[ast.expr, ast.expr] | None:
    """Return the rows from which a value is drawn at random, and the draw: `table.sample(n=9)`, `rows[chosen]`."""
    if isinstance(node, ast.Subscript) and depth:
        draw = _draw_in(node.slice)
        return (_rows_of_cut(node), draw) if draw is not None else _drawn_from(roles, node.value, depth - 1)
    if not isinstance(node, ast.Call) or not depth:
        return None
    helper = roles.definitions.get(last_name(node))
    if helper is not None:
        return _drawn_by(roles, helper, node, depth - 1)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return _drawn_at_once(node, owner) or (_drawn_from(roles, owner, depth - 1) if owner is not None else None)


def _drawn_at_once(node: ast.Call, owner: ast.expr | None) -> tuple[ast.expr, ast.expr] | None:
    """Return the rows that a call of a library draws from, and the draw; None for another call."""
    name, given = last_name(node), {keyword.arg for keyword in node.keywords}
    if name == "sample" and owner is not None and given & {"frac", "n"}:
        return owner, node
    of_random = owner is not None and bool(re.search(r"(?:^|\.)(?:random|rng|rs|rand|gen)$", dotted(owner)))
    if of_random and name in ("choice", "sample") and len(node.args) > 1:
        return node.args[0], node
    draw = _draw_in(node.args[1]) if name == "Subset" and len(node.args) == 2 else None
    return (node.args[0], draw) if draw is not None else None


def _drawn_by(roles: Roles, helper: ast.AST, node: ast.Call, depth: int) -> tuple[ast.expr, ast.expr] | None:
    """Return the rows that a function of this file is given and draws from, and its call; None for another function."""
    value = only_value(helper)
    found = _drawn_from(roles, value, depth) if value is not None else None
    parameters = parameters_of(helper)
    place = parameters.index(dotted(found[0])) if found is not None and dotted(found[0]) in parameters else None
    return (node.args[place], node) if place is not None and place < len(node.args) else None


def _draw_in(node: ast.expr) -> ast.Call | None:
    """Return the call that draws numbers of rows: `rng.permutation(n)[:k]`, `torch.randperm(n)`; None for others."""
    while isinstance(node, ast.Subscript):
        node = node.value
    is_draw = isinstance(node, ast.Call) and last_name(node) in PERMUTES
    return node if is_draw and isinstance(node, ast.Call) else None


def whole_and_part(roles: Roles) -> Iterator[Fault]:
    """Training has all rows, and what is held out is a part of the same, through a helper as well."""
    helpers: dict[int, list[Assignment]] = {}
    for made in roles.script.assignments:
        if isinstance(made.value, ast.Call) and made.place is not None:
            helpers.setdefault(id(made.value), []).append(made)
    for parts in helpers.values():
        call = parts[0].value
        helper = roles.definitions.get(last_name(call))
        value = only_value(helper)
        if not isinstance(value, ast.Tuple) or len(value.elts) < len(parts):
            continue
        named = {part.last: value.elts[part.place or 0] for part in parts}
        train = [node for name, node in named.items() if TRAINS.search(name)]
        held_out = [node for name, node in named.items() if use_of(name) == "evaluate"]
        whole = {dotted(node) for node in train if isinstance(node, ast.Name)}
        if any(isinstance(node, ast.Subscript) and dotted(_rows_of_cut(node)) in whole for node in held_out):
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
        call = roles.call_of(made.value)
        if call is None or call.method not in ("random_split", "train_test_split") or made.place is None:
            continue
        last = made.last
        if HELD_OUT.search(last) and not roles.reads.get(last) and not re.search(r"^_|test", last):
            says = f"{made.target} is held out and never read: what is evaluated are other rows"
            yield fault("same_data", made.line, "likely", says)


def loaders_read(trace: Trace, *, trains: bool) -> list[Object]:
    """Return the loaders that loops which train go through, or loops without gradients."""
    found = []
    for event in trace.of("iterate"):
        inside = [other for other in trace.of("backward", "forward") if other.is_within(event)]
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
            near = (*_names(roles, call, parents), last_part(call.function), last_name(dataset))
            names = [name for name in near if name]
            uses = [use for use in map(use_of, names) if use]
            shuffles = call.constant("shuffle") is True
            use = uses[0] if uses else "train" if shuffles else None
            found.append(Loader(call, names[0] if names else "", use, dataset))
    return found


def use_of(name: str) -> Literal["train", "evaluate"] | None:
    """Return what rows, or a loader, are for by a name; None where it does not tell."""
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
                if made.place == place and last_part(made.made_by) == last_part(call.function) != ""
            )
        yield from (made.last for made in roles.script.assignments if made.value is node)
        node = parent


def definition_of(roles: Roles, node: ast.expr, call: Call | Assignment) -> Assignment | None:
    """Return the one assignment that made a name or attribute of `self` before a call; None where several may have."""
    name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    owner = call.function.rpartition(".")[0]
    if isinstance(node, ast.Attribute) and not (name.startswith("self.") and owner):
        return None
    made = roles.script.made(name)
    if isinstance(node, ast.Attribute):
        made = [assignment for assignment in made if assignment.function.startswith(f"{owner}.")]
    else:
        own = roles.made_before(name, call)
        shadowed = call.function and roles.is_parameter(name, call.function)
        made = own or ([] if shadowed else [assignment for assignment in made if not assignment.function])
    return made[0] if len(made) == 1 and not made[0].adds and not made[0].conditions else None


def line_of_rows(roles: Roles, node: ast.expr, call: Call | Assignment) -> int:
    """Return where the rows of a loader are chosen: in the function that gives them, else where they are named."""
    made = definition_of(roles, node, call)
    inside = _returned_by(roles, made) if made is not None else None
    if inside is not None:
        return line_of_rows(roles, *inside) or inside[0].lineno
    return made.line if made is not None else call.line


def _returned_by(roles: Roles, made: Assignment) -> tuple[ast.expr, Call] | None:
    """Return what a function of this file gives for a part of what is unpacked, and where; None where that varies."""
    helper = roles.helper(made.value)
    if made.place is None or not isinstance(helper, ast.FunctionDef):
        return None
    value = part_of(only_value(helper), made.place)
    inside = [call for call in roles.script.calls if last_part(call.function) == helper.name]
    end = replace(inside[-1], order=inside[-1].order + 1) if inside else None
    return (value, end) if value is not None and end is not None else None


def rows_of(roles: Roles, node: ast.expr, call: Call | Assignment, depth: int = MAX_STEPS_FOLLOWED) -> str:
    """Return a text that is the same for two expressions if they are the same rows, however these are transformed."""
    made = definition_of(roles, node, call) if depth else None
    if made is not None:
        inside = _returned_by(roles, made)
        if inside is not None:
            return f"{rows_of(roles, *inside, depth - 1)} of call {id(made.value)}"
        part = "" if made.place is None else f"[{made.place}]"
        return rows_of(roles, made.value, made, depth - 1) + part
    if isinstance(node, ast.Call):
        return _rows_of_call(roles, node, call, depth)
    if isinstance(node, ast.Subscript):
        return f"{rows_of(roles, node.value, call, depth)}[{rows_of(roles, node.slice, call, depth)}]"
    return _rows_as_written(roles, node, call, depth)


def _rows_as_written(roles: Roles, node: ast.expr, call: Call | Assignment, depth: int) -> str:
    """Return the text of an expression other than a call, without one definition."""
    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return ":".join(rows_of(roles, end, call, depth) if end is not None else "" for end in ends)
    if isinstance(node, ast.List | ast.Dict):
        return f"#{id(node)}"
    name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    set_at = [made.order for made in roles.script.made(name) if made.order <= call.order] if name else []
    return repr(node.value) if isinstance(node, ast.Constant) else f"{call.function}:{ast.unparse(node)}@{set_at[-1:]}"


def _rows_of_call(roles: Roles, node: ast.Call, call: Call | Assignment, depth: int) -> str:
    name = dotted(node.func)
    own = roles.definitions.get(name)
    parameters = parameters_of(own) if isinstance(own, ast.ClassDef) else []
    given = [(parameters[place] if place < len(parameters) else "", arg) for place, arg in enumerate(node.args)]
    given += [(keyword.arg or "", keyword.value) for keyword in node.keywords]
    kept = [arg for parameter, arg in given if not CHANGES_VIEW.search(parameter)]
    plain = all(isinstance(arg, ast.Constant) and not isinstance(arg.value, str) for arg in kept)
    drawn = isinstance(own, ast.FunctionDef) or (isinstance(own, ast.ClassDef) and _draws_rows(own))
    if plain or drawn or not READS.search(last_part(name)):
        return f"{name}#{id(node)}"
    if last_part(name) == "Subset" and len(kept) == 2:
        return f"{rows_of(roles, kept[0], call, depth)}[{rows_of(roles, kept[1], call, depth)}]"
    return f"{name}({', '.join(rows_of(roles, arg, call, depth) for arg in kept)})"


def _draws_rows(own: ast.ClassDef) -> bool:
    """Say whether a data set makes up its rows: it draws them where it is made, or without regard to the index."""
    for method in filter(None, (method_of(own, name) for name in ("__init__", "__getitem__", "__iter__"))):
        index = (parameters_of(method) or [""])[-1]
        reads_index = method.name != "__init__" and index in names_in(method)
        if not reads_index and any(DRAWS.search(dotted(node)) for node in walk(method, ast.Call)):
            return True
    return False


def draws_anew(roles: Roles, node: ast.expr, call: Call | Assignment, depth: int = MAX_STEPS_FOLLOWED) -> str:
    """Return the random transform that rows of a data set go through whatever they are for; empty where none is."""
    made = definition_of(roles, node, call) if depth else None
    parts: list[ast.expr] = []
    if made is not None:
        part = _returned_by(roles, made)
        if part is not None:
            return draws_anew(roles, *part, depth - 1)
        return draws_anew(roles, made.value, made, depth - 1)
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        if RANDOM.search(name):
            return name
        own = roles.definitions.get(last_part(name))
        inside = _always_draws(own) if own is not None else ""
        if inside:
            return inside
        given = arguments_of(node)
        if last_part(name) == "Subset":  # its second argument are places, whatever they were drawn from
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
    names = (dotted(node.func) for node in walk(own, ast.Call))
    return next((name for name in names if RANDOM.search(name)), "")


# Do training data come in a new order, with new random numbers in each pass and worker?


SHUFFLED_OTHERWISE = re.compile(r"make_private|PrivacyEngine|Iterable|stream|shuffle\(|WebDataset|permutation")
"""What shuffles rows without the loader, or gives them one after the other."""
SHUFFLE_ANEW = "call set_epoch(epoch) on the stream before each pass"
READS_SAMPLER = re.compile(r"DataLoader$|BatchSampler$|(?:len|isinstance|print)$")
"""Calls that are given a sampler and leave its epoch as it is."""
SEEDS = re.compile(r"(?:manual_seed|manual_seed_all|seed_everything|set_seed|(?:np|numpy)\.random\.seed|random\.seed)$")
GENERATORS = re.compile(r"(?:default_rng|RandomState|random\.Random|torch\.Generator(?:\.manual_seed)?)$")
TELLS_WORKERS_APART = re.compile(r"worker|initial_seed|getpid|urandom|token_bytes", re.IGNORECASE)
"""What stands in a data set whose copies in several processes differ."""


def data_order(roles: Roles) -> Iterator[Fault]:
    """Training data come in a fixed order, or always the first batch comes."""
    for name, made in roles.loaders.items():
        call = roles.call_of(made.value)
        given = roles.keywords(call) if call is not None else {}
        if call is None or ("shuffle" not in given and not _are_written_out(roles, call)):
            continue
        by_name = "train" in name.lower() and roles.trains_by_hand
        trains = _trains_over(roles, name, made) or _trains_as_argument(roles, name) or by_name
        ordered = "shuffle" not in given or constant_of(given["shuffle"]) is False
        sampled = {"sampler", "batch_sampler"} & set(given) or len(call.node.args) > 2
        otherwise = sampled or SHUFFLED_OTHERWISE.search(roles.source)
        if trains and ordered and not otherwise and not EVALUATES.search(name):
            says = f"{name} gives the training data in one order: shuffle is not on"
            yield fault("not_shuffled", made.line, "likely", says)
    several = any(len(run.loops) > 1 for backward in roles.backwards for run in roles.runs(backward))
    samplers = [call for call in roles.script.calls if "DistributedSampler" in call.name]
    named = roles.script.named("set_epoch")
    trace = roles.trace
    follows = trace.is_complete and any(made.made_by.endswith("DistributedSampler") for made in trace.objects)
    reached = [call for call in named if not follows or id(call.node) in {*trace.given, *trace.settings}]
    if samplers and not reached and several and not _is_sampler_kept_elsewhere(roles):
        line = samplers[0].line
        says = f"set_epoch() of the DistributedSampler in line {line} is never called: each pass has the same order"
        at = named[0].line if named else _pass_over_data(roles) or line
        passes = [around for backward in roles.backwards for run in roles.runs(backward) for around in run.loops]
        yield fault("set_epoch_missing", at, "certain", says, lines=(line, *passes))
    for call in roles.script.named("next"):
        again = call.loops and any(backward.is_within(call) for backward in roles.backwards)
        if again and "iter" in calls_in(call.node):
            loader = next((roles.loaders.get(dotted(arg)) for arg in _arguments_of_iter(call)), None)
            given = keywords_of(loader.value) if loader is not None else {}
            shuffles = "shuffle" in given and constant_of(given["shuffle"]) is not False
            if shuffles or {"sampler", "batch_sampler"} & set(given):
                continue
            certainty: Certainty = "depends" if loader is None else "likely"
            says = "an iterator is made anew at each step: without shuffling the first batch comes every time"
            yield fault("always_first_batch", call.line, certainty, says)


def streams_in_one_order(roles: Roles) -> Iterator[Fault]:
    """A stream of `datasets` that is shuffled once is gone through several times, each time in the same order.

    Source: `datasets.IterableDataset.set_epoch`; findings/datasets_repeats_one_shuffle.sh.
    """
    streams, shuffles = _shuffled_streams(roles)
    for call in roles.script.named("repeat"):
        if call.name.startswith((*streams, "load_dataset.")) and shuffles and shuffles[0].order < call.order:
            says = (
                f"the stream is shuffled (line {shuffles[0].line}) before it is repeated: each pass has the same order"
            )
            yield fault("set_epoch_missing", call.line, "certain", says, fix=SHUFFLE_ANEW, lines=(shuffles[0].line,))
            return
    if not shuffles or roles.uses("set_epoch", "prepare", "Trainer", "Accelerator", "repeat"):
        return
    for backward in roles.backwards:
        for run in roles.runs(backward):
            through = [roles.script.loops.get(line, "") for line in run.loops]
            place = next((place for place, text in enumerate(through) if _goes_through(text, streams)), 0)
            if place and "range(" in through[place - 1]:
                says = f"the stream is shuffled once (line {shuffles[0].line}), and each pass has that order"
                at = run.loops[place]
                yield fault("set_epoch_missing", at, "certain", says, fix=SHUFFLE_ANEW, lines=(shuffles[0].line,))
                return


def _shuffled_streams(roles: Roles) -> tuple[list[str], list[Call]]:
    """Return the names of streams of `datasets` and of loaders of such, and the calls that shuffle them for good."""
    opened = [call for call in roles.script.named("load_dataset") if roles.setting_of(call, "streaming") is True]
    names: list[str] = []
    for made in roles.script.assignments if opened else ():
        parts = [*ast.walk(made.value)]
        from_names = any(isinstance(part, ast.Name) and part.id in names for part in parts)
        if re.fullmatch(r"\w+", made.target) and (from_names or any(call.node in parts for call in opened)):
            names.append(made.target)
    roots = {*names, "load_dataset"}
    shuffles = [call for call in roles.script.named("shuffle") if call.name.partition(".")[0] in roots]
    return names, shuffles if not any(call.loops for call in shuffles) else []


def _goes_through(text: str, names: Sequence[str]) -> bool:
    """Say whether what a loop goes through is one of these, by itself or counted."""
    return any(re.search(rf"(?:^|\(){re.escape(name)}(?:$|[),])", text) for name in names)


def _arguments_of_iter(call: Call) -> list[ast.expr]:
    return [arg for inner in walk(call.node, ast.Call) if dotted(inner.func) == "iter" for arg in inner.args]


def _is_sampler_kept_elsewhere(roles: Roles) -> bool:
    """Say whether another file is given a sampler, or replaces it, so that it may set its epochs."""
    made = {other.last for other in roles.script.assignments if "DistributedSampler" in other.made_by}
    handed_on = any(roles.is_handed_on(name, except_to=READS_SAMPLER) for name in made)
    return handed_on or roles.uses("make_private", "PrivacyEngine")


def _are_written_out(roles: Roles, call: Call) -> bool:
    """Say whether all of `**mapping` that a call is given stands in the file."""
    spread = [keyword.value for keyword in call.node.keywords if keyword.arg is None]
    return all(isinstance(roles.source_of(expr, call), ast.Dict) for expr in spread)


def _pass_over_data(roles: Roles) -> int:
    """Return the line of the loop that goes through the training data, 0 where none is seen."""
    lines = [backward.loops[-1] for backward in roles.backwards if backward.loops]
    over_data = [line for line in lines if not re.search(r"^(?:tqdm\()?t?range\(", roles.script.loops.get(line, ""))]
    return next(iter((*over_data, *lines)), 0)


def _trains_over(roles: Roles, name: str, made: Assignment) -> bool:
    """Say whether a loop that trains goes through a loader by its own name."""
    for call in roles.steps:
        own = not roles.is_parameter(name, call.function) if not made.function else made.function == call.function
        # `loaders[phase]` is one of several, of which the others may not train
        read = re.compile(rf"\b{re.escape(name)}\b(?!\[)")
        over = any(read.search(roles.script.loops.get(line, "")) for line in call.loops)
        if over and (own or "." in name):
            return True
    return False


def _trains_as_argument(roles: Roles, name: str) -> bool:
    """Say whether a function that trains is given a loader, goes through it, and does not evaluate."""
    for step in roles.steps:
        definition = roles.definitions.get(last_part(step.function))
        if not isinstance(definition, ast.FunctionDef) or not step.loops:
            continue
        for call in roles.callers(step.function):
            arguments = _arguments(definition, call)
            given = [parameter for parameter, value in arguments.items() if dotted(value) == name]
            through = " ".join(roles.script.loops.get(line, "") for line in step.loops)
            over = any(re.search(rf"\b{parameter}\b", through) for parameter in given)
            if over and not _is_switched_off(roles, step, definition, arguments):
                return True
    return False


def _arguments(definition: ast.FunctionDef, call: Call) -> dict[str, ast.expr]:
    parameters = parameters_of(definition)
    optional = [*definition.args.args, *definition.args.kwonlyargs]
    values = [*definition.args.defaults, *(value or ast.Constant(None) for value in definition.args.kw_defaults)]
    defaults = {parameter.arg: value for parameter, value in zip(reversed(optional), reversed(values), strict=False)}
    return defaults | dict(zip(parameters, call.node.args, strict=False)) | dict(call.keywords)


def _is_switched_off(roles: Roles, step: Call, definition: ast.FunctionDef, arguments: dict[str, ast.expr]) -> bool:
    """Say whether a step hangs on a parameter that a call gives as None, False, or another text than that of training.

    A parameter whose value is not known may switch it off as well.
    """
    skipped = [
        node.test
        for node in walk(definition, ast.If)
        if node.lineno < step.line and isinstance(node.body[-1], ast.Continue | ast.Return)
    ]
    tests = [*(ast.parse(test, mode="eval") for test in step.conditions), *skipped]
    local = {made.target: made.value for made in roles.script.assignments if made.function == step.function}
    names = set[str]().union(*map(names_in, tests))
    names |= set[str]().union(*(names_in(local[name]) for name in names if name in local))
    for switch in names & set(arguments):
        value = roles.value_of(arguments[switch])
        known = {constant_of(node) for test in tests for node in walk(test, ast.Constant)}
        constant = isinstance(arguments[switch], ast.Constant)
        if constant and (value is None or value is False or (isinstance(value, str) and value not in known)):
            return True
    return False


def not_shuffled_by_a_helper(roles: Roles) -> Iterator[Fault]:
    """A function makes loaders, and the one that trains does not shuffle."""
    if SHUFFLED_OTHERWISE.search(roles.source):
        return
    trace = roles.trace
    own = {call.line for call in roles.script.named("DataLoader") if roles.script.assigned_from(call.node) is not None}
    named: set[int] = set()
    for place, step in enumerate(trace.events):
        if step.action != "step":
            continue
        for loader in (source for event in _gone_through(trace.events, place) for source in event.objects):
            if loader.kind != "loader":
                continue
            shuffle = loader.settings.get("shuffle", Constant(False))
            sampled = {"sampler", "batch_sampler"} & set(loader.settings)
            if loader.line in own | named or shuffle != Constant(False) or sampled or HELD_OUT.search(loader.name):
                continue
            named.add(loader.line)
            says = f"{loader.label} gives the training data in one order: shuffle is not on"
            yield fault("not_shuffled", loader.line, "likely", says)


def _gone_through(events: Sequence[Event], place: int) -> list[Event]:
    """Return the loops over data that a step is in: the last ones before it that are around it."""
    step, found = events[place], list[Event]()
    for event in reversed(events[:place]):
        if event.action == "iterate" and event.entry == step.entry and event.loops and event.loops == step.loops:
            found.append(event)
        elif found:
            break
    return found


def shuffled_apart(roles: Roles) -> Iterator[Fault]:
    """Inputs and targets are put into two different random orders."""
    drawn: dict[tuple[str, int], list[Assignment]] = {}
    for made in roles.script.assignments:
        value = made.value
        if not isinstance(value, ast.Subscript) or dotted(value.value) != made.target:
            continue
        if called_name(value.slice) in ("randperm", "permutation"):
            drawn.setdefault((made.function, len(made.loops)), []).append(made)
    for same in drawn.values():
        if len(same) > 1 and same[1].line - same[0].line <= 2:
            says = f"{same[0].target} and {same[1].target} are put into two different orders: targets fit no inputs"
            yield fault("shuffled_apart", same[1].line, "certain", says)


def seeds_set_again(roles: Roles) -> Iterator[Fault]:
    """The same seed is set at each step or pass, so that the same numbers are drawn each time."""
    for call in roles.script.calls:
        starts_anew = call.method == "reset" and constant_of(call.keywords.get("seed")) is not None
        if call.conditions or not (SEEDS.search(call.name) or starts_anew):
            continue
        if not call.loops:
            if _begins_each_pass(roles, call):
                says = f"{ast.unparse(call.node)[:80]} begins each pass: the same numbers are drawn in all of them"
                yield fault("seed_in_loop", call.line, "likely", says)
            continue
        given = call.keywords.get("seed", call.node.args[0] if call.node.args else None)
        inside = [backward for backward in roles.backwards if backward.is_within(call)]
        called = {other.method for other in roles.script.calls if other.loops[: len(call.loops)] == call.loops}
        trains = inside or any(last_part(backward.function) in called for backward in roles.backwards)
        if given is None or not trains or _changes(roles, given, call) or _begins_a_training(roles, call):
            continue
        often = any(backward.loops == call.loops for backward in inside)
        says = f"{ast.unparse(call.node)[:80]} stands inside the loop: the same numbers are drawn each time"
        yield fault("seed_in_loop", call.line, "certain" if often else "likely", says)


def _begins_each_pass(roles: Roles, call: Call) -> bool:
    """Say whether a function sets one seed and trains, and a loop calls it for a model that is made elsewhere."""
    given = call.node.args[0] if call.node.args else None
    function = roles.definitions.get(last_part(call.function))
    trains = any(backward.function == call.function for backward in roles.backwards)
    if given is None or not isinstance(function, ast.FunctionDef) or not trains:
        return False
    makes = any(made.function == call.function for made in roles.optimizers.values())
    stays = isinstance(given, ast.Attribute) or constant_of(given) is not None
    return stays and not makes and any(caller.loops for caller in roles.precise_callers(call.function))


def _changes(roles: Roles, given: ast.expr, call: Call) -> bool:
    """Say whether a seed is another one each time: it hangs on a name that the loop sets."""
    inside = [made for made in roles.script.assignments if made.loops[: len(call.loops)] == call.loops]
    set_by_loop = {name for loop in roles.loops_at(call.loops) for name in names_in(loop.target)}
    return isinstance(given, ast.Call) or bool(names_in(given) & (set_by_loop | {made.target for made in inside}))


def _begins_a_training(roles: Roles, call: Call) -> bool:
    """Say whether a model is made in the same loop: each round is a training of its own."""
    return any(made.loops == call.loops and made.function == call.function for made in roles.optimizers.values())


def workers_alike(roles: Roles) -> Iterator[Fault]:
    """All workers of a loader draw the same random numbers."""
    for call in roles.script.named("DataLoader"):
        given = call.keywords.get("worker_init_fn")
        start = roles.definitions.get(last_name(given)) if given is not None else None
        body: ast.AST | None = given if isinstance(given, ast.Lambda) else start
        if not isinstance(body, ast.Lambda | ast.FunctionDef) or not body.args.args:
            continue
        names = names_read(body)
        seeds = [node for node in walk(body, ast.Call) if SEEDS.search(dotted(node.func))]
        apart = body.args.args[-1].arg in names or re.search(
            r"initial_seed|get_worker_info|urandom|time", ast.unparse(body)
        )
        if seeds and not apart:
            says = f"{ast.unparse(seeds[0])} gives each worker the same seed, in each pass anew: rows are changed alike"
            yield fault("workers_alike", seeds[0].lineno, "certain", says)
    workers = [
        call
        for call in roles.script.named("DataLoader")
        if constant_of(roles.spelled_out(call.keywords.get("num_workers"))) or roles.setting_of(call, "num_workers")
    ]
    if workers and not roles.uses("get_worker_info") and not any("worker_init_fn" in call.keywords for call in workers):
        yield from _generator_in_the_data(roles)
        yield from _streams_alike(roles, {call.line for call in workers})


def _streams_alike(roles: Roles, lines: set[int]) -> Iterator[Fault]:
    """Yield data sets that begin each pass with one seed, and that a loader of some lines reads in several workers."""
    loaders = [made for made in roles.trace.objects if made.kind == "loader" and made.line in lines]
    read = [made for made in loaders if made.settings.get("num_workers", Constant(0)) != Constant(0)]
    classes = {id(part.definition): part.definition for made in read for part in wrapped(dataset_of(made))}
    for definition in classes.values():
        parts = [part for part in definition.body if isinstance(part, ast.FunctionDef)] if definition else []
        begins = method_of(definition, "__iter__")
        if definition is None or begins is None or TELLS_WORKERS_APART.search(ast.unparse(definition)):
            continue
        called = {dotted(node.func) for node in walk(begins, ast.Call)}
        inside = [begins, *(part for part in parts if f"self.{part.name}" in called)]
        seeds = (node for part in inside for node in walk(part, ast.Call) if _is_seeded_alike(node))
        seed = next(seeds, None)
        if seed is not None:
            says = f"{ast.unparse(seed)[:80]} gives each worker the same seed: all of them yield the same rows"
            fix = "choose rows, or a seed, by torch.utils.data.get_worker_info()"
            yield fault("workers_alike", seed.lineno, "likely", says, fix=fix)


def _streams(node: ast.AST) -> bool:
    """Say whether a class is a data set that gives its rows one after the other."""
    streams = isinstance(node, ast.ClassDef) and any(dotted(base).endswith("IterableDataset") for base in node.bases)
    return streams and not TELLS_WORKERS_APART.search(ast.unparse(node))


def _is_seeded_alike(node: ast.Call) -> bool:
    """Say whether a call makes or seeds a generator by what is the same in all copies of a data set."""
    name = dotted(node.func)
    given = arguments_of(node)
    drawn = [inner for arg in given for inner in calls_in(arg) if inner not in ("int", "hash", "abs")]
    return bool(given) and not drawn and bool(GENERATORS.search(name) or SEEDS.search(name))


def _generator_in_the_data(roles: Roles) -> Iterator[Fault]:
    """Yield data sets with a generator of their own: each worker gets a copy in the same state."""
    for node in walk(roles.script.tree, ast.ClassDef):
        reads, starts = method_of(node, "__getitem__", "__iter__"), method_of(node, "__init__")
        if reads is None or starts is None or (reads.name == "__iter__" and not _streams(node)):
            continue
        for made in walk(starts, ast.Assign):
            if not GENERATORS.search(dotted(made.value)):
                continue
            name = dotted(made.targets[0])
            parts = (part for part in node.body if isinstance(part, ast.FunctionDef))
            others = [ast.unparse(part) for part in parts if part is not starts]
            drawn = any(re.search(rf"{re.escape(name)}\b", other) for other in others)
            if drawn and name.startswith("self."):
                says = f"{name} is copied into each worker in the same state: all workers draw the same numbers"
                yield fault("workers_alike", made.lineno, "likely", says)


# Are rows scaled, encoded and changed alike for training and evaluation, and left as they are stored?


IS_TARGET = re.compile(r"^(?:y|ys|targets?|labels?)$")
"""Names of what is predicted: its scale tells next to nothing of a single row."""
STATISTIC = re.compile(r"^\w+\.(?:mean|std|min|max)\([^()]*\)$")
ENCODES = re.compile(r"(?<!Label)(?<!Hot)(?<!Ordinal)Encoder\b|Scaler\b|PCA\b|Imputer\b|SelectKBest\b|Discretizer\b")
"""Names of classes whose statistics of rows tell something of each of them."""
FITTED = re.compile(r"(?:Scaler|PCA|Imputer|Vectorizer|Normalizer|SelectKBest|Discretizer|Transformer)$")
FIRST_ROWS = re.compile(r"^(.{1,80})\[:[^\]:]{1,80}\]$")
LATER_ROWS = re.compile(r"^(.{1,80})\[[^\]:]{1,80}:[^\]:]{0,80}\]$")
CHOSEN_ROWS = re.compile(r"^(\w{1,80})\[[^\n]{1,80} == (.{1,40})\]$")
"""How the first, the later, or some chosen rows of a table are written."""
KEEPS_ROWS = {"asarray", "array", "as_tensor", "tensor", "from_numpy", "to_numpy", "astype", "float", "copy", "to"}
"""Functions and methods that give the same rows in another form."""
VIEWS = re.compile(r"simclr|byol|moco|dino|contrastive|nt_?xent|info_?nce|barlow|vicreg|twocrop|two_crop|\btta\b", re.I)
"""What is evaluated on random views on purpose."""
SWITCHES_VIEWS = re.compile(
    r"aug|train|jitter|mirror|noise|flip|random|mask|perturb|distort|warp|cutout|mixup|crop|drop", re.IGNORECASE
)
"""Names of attributes that switch random changes of rows on."""


def fitted_before_split(roles: Roles) -> Iterator[Fault]:
    """A scaler, a vectorizer or the like is fitted on all rows, and these are split afterwards."""
    splits = [split for split in roles.script.calls if split.method in ("train_test_split", "random_split")]
    fitted = re.compile(
        r"(?:Scaler|Vectorizer|PCA|Imputer|Encoder|SelectKBest|Normalizer|Transformer|SMOTE\w*|ADASYN|Sampler)$"
    )
    for call in roles.script.named("fit_transform", "fit", "fit_resample"):
        maker = roles.script.assigned(call.owner)
        source = dotted(maker.value) if maker is not None else call.owner
        by_call = any(call.order < split.order and call.function == split.function for split in splits)
        if isinstance(call.node.func, ast.Call):
            continue  # what `fit` returns is called
        of_part = any(isinstance(arg, ast.Subscript) and isinstance(arg.slice, ast.Slice) for arg in call.node.args)
        of_all = fitted.search(source) and "Label" not in source and not of_part
        if of_all and (by_call or _is_cut_in_two(roles, call)):
            says = (
                f"{call.owner} is fitted on all rows, and these are split afterwards: it knows those of the evaluation"
            )
            yield fault("fitted_before_split", call.line, "certain", says)


def _is_cut_in_two(roles: Roles, fit: Call) -> bool:
    """Say whether what a scaler gives is cut by its rows afterwards: `values[:n]` and `values[n:]`."""
    same = [made for made in roles.script.assignments if made.function == fit.function]
    scaled = {
        made.target
        for made in same
        if made.order >= fit.order
        and any(dotted(node.func).rpartition(".")[0] == fit.owner for node in walk(made.value, ast.Call))
    }
    ends: set[str] = set()
    starts: set[str] = set()
    for made in same:
        for node in walk(made.value, ast.Subscript):
            if dotted(node.value) not in scaled or made.order < fit.order:
                continue
            if isinstance(node.slice, ast.Slice):
                ends |= (
                    names_in(node.slice.upper) if node.slice.upper is not None and node.slice.lower is None else set()
                )
                starts |= names_in(node.slice.lower) if node.slice.lower is not None else set()
    return bool(ends & starts)


def scaled_before_split(roles: Roles) -> Iterator[Fault]:
    """Rows are scaled by the mean and deviation of all of them, and split afterwards."""
    for made in roles.script.assignments:
        if not _is_scaled_by_itself(roles, made) or IS_TARGET.search(made.last):
            continue
        scope = roles.scope_of(made.function)
        later = [node for node in ast.walk(scope) if getattr(node, "lineno", 0) > made.line]
        cuts = [node for node in later if isinstance(node, ast.Subscript) and dotted(node.value) == made.target]
        ends = [ast.unparse(node.slice) for node in cuts]
        halves = any(re.search(r"(?:^|\[):[^:,]", end) for end in ends) and any(
            re.search(r"[^:,]:(?:$|\])", end) for end in ends
        )
        split = any(
            last_name(node) in ("train_test_split", "random_split")
            and any(dotted(arg) == made.target for arg in node.args)
            for node in later
            if isinstance(node, ast.Call)
        )
        if halves or split:
            says = f"{made.target} is scaled by the mean and deviation of all rows, and these are split afterwards"
            yield fault("fitted_before_split", made.line, "likely", says)


def _with_statistics(roles: Roles, made: Assignment) -> str:
    """Return the text of a value in which the names of means and deviations are spelled out."""
    text = ast.unparse(made.value)
    same = [other for other in roles.script.assignments if other.function == made.function]
    for other in (other for other in same if other.order <= made.order):
        source = ast.unparse(other.value)
        if STATISTIC.search(source):
            text = re.sub(rf"(?<![\w.]){re.escape(other.target)}(?![\w.(])", source.replace("\\", ""), text)
    return text


def _is_scaled_by_itself(roles: Roles, made: Assignment) -> bool:
    """Say whether a value is `(x - x.mean(0)) / x.std(0)` of the name that it is given to."""
    value = made.value
    if not (is_operation(value, ast.Div) and isinstance(value.left, ast.BinOp)):
        return False
    name, text = re.escape(made.target), _with_statistics(roles, made)
    statistics = re.search(rf"\b{name}\.(?:mean|min)\(", text) and re.search(rf"\b{name}\.(?:std|max|min)\(", text)
    by_row = re.search(r"\((?:axis=|dim=)?(?:1|-1)\b", text)
    return bool(statistics) and not by_row and isinstance(value.left.op, ast.Sub)


def encoder_fitted_before_split(roles: Roles) -> Iterator[Fault]:
    """An encoder learns from the rows of all, and these are split by index afterwards."""
    for call in roles.script.named("fit", "fit_transform"):
        makers = [ast.unparse(made.value) for made in roles.script.made(call.owner)]
        makers.append(ast.unparse(call.node.func))
        if not any(ENCODES.search(maker) for maker in makers):
            continue
        given = [dotted(argument) for argument in call.node.args if isinstance(argument, ast.Name)]
        scope = roles.scope_of(call.function)
        cuts = [
            (dotted(node.value), dotted(node.slice))
            for node in walk(scope, ast.Subscript)
            if isinstance(node.slice, ast.Name) and node.lineno > call.line
        ]
        for name in given:
            places = {place for cut, place in cuts if cut == name}
            if any(map(TRAINS.search, places)) and any(map(HELD_OUT.search, places)):
                says = f"{ast.unparse(call.node)[:80]} sees all rows, and {name} is split afterwards"
                yield fault("fitted_before_split", call.line, "likely", says)
                break


def fitted_again(roles: Roles) -> Iterator[Fault]:
    """A scaler is fitted to the rows of the evaluation as well, and so scales these by statistics of their own."""
    fits: dict[tuple[str, str], list[Call]] = {}
    for call in roles.script.named("fit_transform"):
        maker = roles.script.assigned(call.owner)
        if call.node.args and maker is not None and FITTED.search(dotted(maker.value)):
            fits.setdefault((call.function, call.owner), []).append(call)
    for calls in fits.values():
        given = [last_name(call.node.args[0]) for call in calls]
        train, held_out = _halves_of_split(roles, calls[0], given)
        if train and held_out:
            again = next(call for call, name in zip(calls, given, strict=True) if name == held_out)
            says = (
                f"{again.owner} was fitted to {train}, and is fitted to {held_out} anew: "
                "both are scaled in their own way"
            )
            yield fault("own_statistics", again.line, "certain", says, fix=f"{again.owner}.transform({held_out})")


def _halves_of_split(roles: Roles, call: Call, names: Sequence[str]) -> tuple[str, str]:
    """Return which of several names is rows of training, and which held-out ones; by a split, or by their names."""
    places = {
        made.last: made.place
        for made in roles.script.assignments
        if made.function == call.function and "train_test_split" in ast.unparse(made.value) and made.place is not None
    }
    train = [name for name in names if places.get(name) == 0 or TRAINS.search(name)]
    held_out = [name for name in names if places.get(name) == 1 or use_of(name) == "evaluate"]
    return next(iter(train), ""), next(iter(held_out), "")


def own_statistics(roles: Roles) -> Iterator[Fault]:
    """Rows of the evaluation are scaled by their own mean and deviation, and those of training by theirs."""
    for name, helper in roles.functions.items():
        if not _scales_by_itself(helper):
            continue
        uses: dict[str, int] = {}
        for made in roles.script.assignments:
            if any(last_name(node) == name for node in walk(made.value, ast.Call)):
                uses.setdefault(use_of(made.last) or "", made.line)
        if {"train", "evaluate"} <= set(uses):
            says = f"{name}() scales rows by their own mean and deviation, and is called for training and evaluation"
            yield fault("own_statistics", uses["evaluate"], "likely", says)


def _scales_by_itself(helper: ast.FunctionDef) -> bool:
    """Say whether a function takes the mean off what it is given and divides by its deviation, over all rows."""
    parameters = {parameter.arg for parameter in helper.args.args}
    taken = {_statistic_over_rows(node, parameters) for node in walk(helper, ast.Call)} - {""}
    divides = any(is_operation(value, ast.Div) for value in values_returned(helper))
    return taken == {"mean", "std"} and len(parameters) == 1 and divides


def statistics_of_each_part(roles: Roles) -> Iterator[Fault]:
    """A data set scales its rows by their own mean and deviation, and is made for training and for evaluation."""
    for name, dataset in roles.definitions.items():
        scaled = _scaled_by_own_rows(dataset) if isinstance(dataset, ast.ClassDef) else None
        if scaled is None or _is_set_outside(roles, name, scaled[1]):
            continue
        if _is_for_both_phases(roles, name) or _is_for_slices(roles, name):
            says = f"{name} takes these from its own rows, and is made for training and for evaluation"
            yield fault("own_statistics", scaled[0], "likely", says)


def statistics_of_each_slice(roles: Roles) -> Iterator[Fault]:
    """The same code takes off the mean of the first rows from these, and that of later rows from those."""
    for node in ast.walk(roles.script.tree):
        means = {
            mean.part: mean.line
            for rows, mean in ((facts_of(left), facts_of(right)) for left, right in roles.trace.sides.get(id(node), []))
            if mean.kind == "mean" and mean.part and mean.part == rows.part
        }
        if len(means) > 1 and _train_and_evaluate(list(means)):
            parts = sorted({part.partition(CHOSEN_BY)[0] for part in means})
            parts = parts if len(parts) > 1 else sorted(means)
            says = f"each of {' and '.join(parts[:2])} is scaled by its own mean here"
            yield fault("own_statistics", next(iter(means.values())), "likely", says)


def _train_and_evaluate(parts: list[str]) -> bool:
    """Say whether some of several parts are the first and the later rows of one table, or those of named splits."""
    parts = [part.partition(CHOSEN_BY)[0] for part in parts]
    first, later = (
        {found[1] for part in parts if (found := pattern.match(part))} for pattern in (FIRST_ROWS, LATER_ROWS)
    )
    chosen = [found[2].strip("'\"") for part in parts if (found := CHOSEN_ROWS.match(part))]
    chosen += [part for part in parts if part.isidentifier()]
    return bool(first & later) or {"train", "evaluate"} <= set(map(use_of, chosen))


def _scaled_by_own_rows(dataset: ast.ClassDef) -> tuple[int, set[str]] | None:
    """Return the line and the names of the mean and deviation that a data set takes of all rows that it is given.

    Only statements that always run count: where a test decides, the statistics of training may be given.
    """
    begins = method_of(dataset, "__init__")
    if begins is None or method_of(dataset, "__getitem__") is None:
        return None
    rows = {parameter.arg for parameter in begins.args.args[1:]}
    taken: dict[str, str] = {}
    lines = []
    for node in begins.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        pairs = [(node.targets[0], node.value)]
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
        for target, value in pairs:
            statistic = _statistic_over_rows(value, rows)
            if statistic:
                taken[dotted(target)] = statistic
                lines.append(node.lineno)
            elif not isinstance(target, ast.Subscript) and _is_same_rows(value, rows):
                rows.add(dotted(target))
    names = {statistic: {name for name, kind in taken.items() if kind == statistic} for statistic in ("mean", "std")}
    if any(_takes_off_and_divides(node, names["mean"], names["std"]) for node in ast.walk(dataset)):
        return min(lines), set(taken)
    return None


def _statistic_over_rows(node: ast.expr, rows: set[str]) -> str:
    """Return "mean" or "std" where a value is that of rows, over all of them; a small number may be added to it."""
    for call in walk(node, ast.Call):
        method = last_name(call)
        of_library = dotted(call.func).partition(".")[0] in ("np", "numpy", "torch")
        given = call.args[0] if of_library and call.args else getattr(call.func, "value", None)
        places = [keyword.value for keyword in call.keywords if keyword.arg in ("axis", "dim")]
        places += call.args[1:2] if of_library else call.args[:1]
        over_rows = all(_begins_with_rows(place) for place in places)
        if method in ("mean", "std") and given is not None and dotted(given) in rows and over_rows:
            return method if not isinstance(given, ast.Subscript) else ""
    return ""


def _begins_with_rows(place: ast.expr) -> bool:
    first = place.elts[0] if isinstance(place, ast.Tuple) and place.elts else place
    return constant_of(first) == 0


def _is_same_rows(node: ast.expr, rows: set[str]) -> bool:
    """Say whether a value is rows in another form: `np.asarray(rows)`, `rows.to_numpy()`, `torch.from_numpy(rows)`."""
    while isinstance(node, ast.Call):
        of_library = dotted(node.func).partition(".")[0] in ("np", "numpy", "torch")
        inner = node.args[0] if of_library and node.args else getattr(node.func, "value", None)
        if inner is None or last_name(node) not in KEEPS_ROWS:
            return False
        node = inner
    return isinstance(node, ast.Name | ast.Attribute) and dotted(node).removesuffix(".values") in rows


def _takes_off_and_divides(node: ast.AST, means: set[str], deviations: set[str]) -> bool:
    """Say whether a mean is taken off and the rest divided by a deviation: `(rows - mean) / deviation`."""
    if not (is_operation(node, ast.Div) and isinstance(node.left, ast.BinOp)):
        return False
    if not isinstance(node.left.op, ast.Sub) or dotted(node.left.right) not in means:
        return False
    parts = [node.right.left, node.right.right] if isinstance(node.right, ast.BinOp) else [node.right]
    return any(dotted(part) in deviations for part in parts)


def _is_set_outside(roles: Roles, name: str, taken: set[str]) -> bool:
    """Say whether statistics of one data set are given to another afterwards: `valid.mean = train.mean`."""
    lasts = {last_part(attribute) for attribute in taken}
    return any(
        made.last in lasts and not made.function.startswith(f"{name}.") and "." in made.target
        for made in roles.script.assignments
    )


def _is_for_both_phases(roles: Roles, name: str) -> bool:
    """Say whether data sets of a class are kept under names of training and of evaluation."""
    uses = [made.last for made in roles.script.assignments if made.made_by == name]
    return {"train", "evaluate"} <= set(map(use_of, uses))


def _is_for_slices(roles: Roles, name: str) -> bool:
    """Say whether data sets of a class are made of the first part and of the last part of the same rows."""
    parts: list[ast.expr] = [call.node.args[0] for call in roles.script.named(name) if call.node.args]
    for node in ast.walk(roles.script.tree):
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and name in calls_in(node.elt):
            through = node.generators[0].iter
            parts += through.elts if isinstance(through, ast.Tuple | ast.List) else []
    cuts = [
        (ast.unparse(part.value), part.slice)
        for part in parts
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Slice)
    ]
    first = {rows for rows, cut in cuts if cut.lower is None and cut.upper is not None}
    last = {rows for rows, cut in cuts if cut.lower is not None and cut.upper is None}
    return bool(first & last)


def scaled_in_training_alone(roles: Roles) -> Iterator[Fault]:
    """A data set scales its rows where it is given statistics, and that of the evaluation is given none."""
    for name, dataset in roles.definitions.items():
        if not isinstance(dataset, ast.ClassDef):
            continue
        for parameter, place in _optional_statistics(dataset):
            calls = [call for call in roles.script.named(name) if isinstance(call.node.func, ast.Name)]
            given = [call for call in calls if parameter in call.keywords or len(call.node.args) > place]
            bare = [
                call
                for call in calls
                if call not in given and not any(isinstance(arg, ast.Starred) for arg in call.node.args)
            ]
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


def _optional_statistics(dataset: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Yield the parameters of a data set that are None by default and scale its rows, with their places in a call."""
    begins = method_of(dataset, "__init__")
    if begins is None or method_of(dataset, "__getitem__") is None:
        return
    names = parameters_of(begins)
    for parameter, default in zip(reversed(names), reversed(begins.args.defaults), strict=False):
        scales = parameter == "transform" or re.search(
            rf"- (?:self\.)?{parameter}\b.*/ (?:self\.)?{parameter}\b", ast.unparse(dataset)
        )
        if isinstance(default, ast.Constant) and default.value is None and scales:
            yield parameter, names.index(parameter)


def _name_given(roles: Roles, call: Call) -> str:
    """Return the name of what a call is a part of."""
    holders = roles.holders_of(call.node)
    return holders[-1].last if holders else ""


def augmented_evaluation(roles: Roles) -> Iterator[Fault]:
    """Rows of the evaluation go through random transforms."""
    if any(
        re.search(r"\w\.(?:transforms?|augment|dataset)$", made.target.removeprefix("self."))
        for made in roles.script.assignments
    ):
        return
    if VIEWS.search(roles.source):
        return
    shared = list(_augmentation_shared(roles))
    yield from shared
    for loader in loaders_of(roles) if not shared else ():
        transform = draws_anew(roles, loader.dataset, loader.call) if loader.use == "evaluate" else ""
        if transform:
            line = line_of_rows(roles, loader.dataset, loader.call)
            says = f"{loader.name} evaluates rows that {transform} changes at random"
            yield fault("augmented_evaluation", line, "likely", says)


def _augmentation_shared(roles: Roles) -> Iterator[Fault]:
    """Yield data sets whose random changes of rows are switched on, and that evaluation reads."""
    trains, evaluates = _read_datasets(roles.trace, trains=True), _read_datasets(roles.trace, trains=False)
    for dataset in evaluates if trains else ():
        changes = _changes_at_random(roles, dataset)
        if changes:
            both = "for training and for evaluation" if dataset in trains else "for evaluation"
            says = f"{dataset.label or 'this data set'} is read {both}, and {changes} changes its rows at random"
            yield fault("augmented_evaluation", dataset.line, "likely", says, lines=_asked_at(dataset))


def _asked_at(dataset: Object) -> list[int]:
    """Return the lines of what a data set is given, and of what that was made of."""
    parts = [part for given in dataset.given for part in _made_of(given)]
    switches = [facts_of(given).line for given in dataset.given]
    return [*switches, *(part.line for part in parts)]


def _read_datasets(trace: Trace, *, trains: bool) -> list[Object]:
    """Return the data sets that loops which train go through, or loops without gradients."""
    loaders = loaders_read(trace, trains=trains)
    return list(dict.fromkeys(dataset for loader in loaders for dataset in wrapped(dataset_of(loader))))


def _changes_at_random(roles: Roles, dataset: Object) -> str:
    """Return what changes rows of a data set at random: a transform, or a switch that is on; empty without one."""
    for name, value in [*dataset.attributes.items(), *(("", given) for given in dataset.given)]:
        if any(RANDOM.search(part.made_by) for part in _made_of(value)):
            return next(part.made_by for part in _made_of(value) if RANDOM.search(part.made_by))
        is_on = isinstance(value, Constant) and value.value is True and SWITCHES_VIEWS.search(name)
        if is_on and dataset.definition is not None and _draws_under(roles, dataset.definition, f"self.{name}"):
            return f"self.{name}"
    return ""


def _made_of(value: Value, depth: int = 3) -> Iterator[Object]:
    """Yield the objects in a value, and those that they were made of."""
    for part in objects_in(value):
        yield part
        for given in part.given if depth else ():
            yield from _made_of(given, depth - 1)


def _draws_under(roles: Roles, definition: ast.ClassDef, switch: str) -> bool:
    """Say whether a class draws random numbers where a switch is on, which nothing outside of it turns."""
    last = last_part(switch)
    turned = [made for made in roles.script.assignments if made.last == last]
    if any(not made.function.startswith(f"{definition.name}.") for made in turned if "." in made.target):
        return False
    guarded = [
        part
        for node in walk(definition, ast.If, ast.IfExp)
        if dotted(node.test) == switch
        for part in (node.body if isinstance(node, ast.If) else [node.body])
    ]
    called = [dotted(node.func) for part in guarded for node in walk(part, ast.Call)]
    helpers = [roles.definitions.get(last_part(name)) for name in called]
    called += [dotted(node.func) for helper in helpers if helper is not None for node in walk(helper, ast.Call)]
    return any(map(DRAWS.search, called))


def rows_changed_in_place(roles: Roles) -> Iterator[Fault]:
    """A data set gives its stored rows to what changes them in place, so that each pass changes them further."""
    for dataset in roles.definitions.values():
        item = method_of(dataset, "__getitem__")
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
    made = [node.value for node in walk(dataset, ast.Assign) if rows in map(dotted, node.targets)]
    return any(re.search(r"File\(|open\w*\(|zarr|lmdb|load_dataset", ast.unparse(value)) for value in made)


def _given_back(item: ast.FunctionDef, stored: Mapping[str, str]) -> set[str]:
    """Return the stored arrays whose rows are what a data set gives, and not counts or priorities of them."""
    names = {dotted(part) for value in filter(None, values_returned(item)) for part in ast.walk(value)}
    return names | {rows for name, rows in stored.items() if name in names}


def _changed_where_stored(item: ast.FunctionDef, given: set[str]) -> int:
    """Return the line of `self.rows[index] += …` where that row is given back; 0 where there is none."""
    index = {parameter.arg for parameter in item.args.args[1:]}
    lines = [
        node.lineno
        for node in walk(item, ast.AugAssign)
        if _is_stored(node.target) and isinstance(node.target, ast.Subscript)
        if dotted(node.target.slice) in index and dotted(node.target) in given
    ]
    return min(lines, default=0)


def _is_stored(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and dotted(node).startswith("self.")


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
    called = last_name(call)
    helper = roles.definitions.get(called)
    bodies = [helper] if isinstance(helper, ast.FunctionDef) else []
    if not bodies and dotted(call.func).startswith("self."):
        bodies = [
            method for owner in roles.definitions.values() if (method := method_of(owner, "__call__")) is not None
        ]
        bodies = bodies if len(bodies) == 1 else []
    for body in bodies:
        parameters = [parameter.arg for parameter in body.args.args if parameter.arg != "self"]
        line = _changed_in_place(body, set(parameters[:1]))
        if line:
            return line
    return 0


def _changed_in_place(function: ast.FunctionDef, names: set[str]) -> int:
    """Return the line at which a function changes one of these in place before it is given another value; 0 if none."""
    statements = [*walk(function, ast.Assign, ast.AugAssign)]
    for node in sorted(statements, key=lambda statement: statement.lineno):
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        if dotted(target) not in names:
            continue
        if isinstance(node, ast.AugAssign) or isinstance(target, ast.Subscript):
            return node.lineno
        if not _is_stored(node.value):
            return 0
    return 0
