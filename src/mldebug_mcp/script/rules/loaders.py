"""What do loaders give: which rows, apart from those of the evaluation, and in a new order?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
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
    keywords_of,
    last_name,
    last_part,
    method_of,
    names_in,
    names_read,
    only_value,
    parameters_of,
    part_of,
    walk,
)
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import EVALUATES, HELD_OUT, TRAINS
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace import Event, Trace
from mldebug_mcp.script.trace.follower import rows_of as dataset_of
from mldebug_mcp.script.trace.follower import wrapped
from mldebug_mcp.script.values import Constant, Items, Object, Tensor, Value, facts_of

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
    """Say whether a step hangs on a parameter that a call gives as None, False, or another text."""
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
