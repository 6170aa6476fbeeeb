"""Are rows scaled, encoded and changed alike for training and evaluation, and left as they are stored?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    calls_in,
    constant_of,
    dotted,
    is_operation,
    last_name,
    last_part,
    method_of,
    names_in,
    parameters_of,
    values_returned,
    walk,
)
from mldebug_mcp.script.facts import CHOSEN_BY
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import HELD_OUT, TRAINS
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules.loaders import DRAWS, RANDOM, draws_anew, line_of_rows, loaders_of, loaders_read, use_of
from mldebug_mcp.script.trace import Trace
from mldebug_mcp.script.trace.follower import rows_of as dataset_of
from mldebug_mcp.script.trace.follower import wrapped
from mldebug_mcp.script.values import Constant, Object, Value, facts_of, objects_in

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
    """Return the line and the names of the mean and deviation that a data set takes of all rows that it is given."""
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
