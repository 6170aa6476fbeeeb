"""Do training data come in a new order, and apart from those of evaluation?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    calls_in,
    calls_within,
    constant_of,
    dotted,
    exclude,
    names_in,
    parameters_of,
    values_returned,
)
from mldebug_mcp.script.facts import CHOSEN_BY
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import EVALUATES, HELD_OUT, TRAINS
from mldebug_mcp.script.loaders import (
    DRAWS,
    RANDOM,
    Loader,
    draws_anew,
    line_of_rows,
    loaders_of,
    rows_of,
)
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.batches import rows_of as dataset_of
from mldebug_mcp.script.trace.batches import wrapped
from mldebug_mcp.script.trace.events import Event, Trace
from mldebug_mcp.script.values import Constant, Items, Object, Tensor, Value, facts_of, objects_in


def data_order(roles: Roles) -> Iterator[Fault]:
    """Training data come in a fixed order, or always the first batch comes."""
    for name, made in roles.loaders.items():
        if not isinstance(made.value, ast.Call):
            continue
        call = roles.call_of(made.value)
        given = roles.keywords(call) if call is not None else {}
        spread = sum(keyword.arg is None for keyword in made.value.keywords)
        if spread and "shuffle" not in given and not _are_written_out(roles, made.value, call):
            continue
        by_name = "train" in name.lower() and roles.trains_by_hand
        trains = _trains_over(roles, name, made) or _trains_as_argument(roles, name) or by_name
        ordered = "shuffle" not in given or constant_of(given["shuffle"]) is False
        sampled = {"sampler", "batch_sampler"} & set(given) or len(made.value.args) > 2
        streamed = re.search(
            r"make_private|PrivacyEngine|Iterable|stream|shuffle\(|WebDataset|permutation", roles.source
        )
        if trains and ordered and not sampled and not streamed and not EVALUATES.search(name):
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
        again = call.loops and any(
            backward.function == call.function and backward.loops[: len(call.loops)] == call.loops
            for backward in roles.backwards
        )
        if again and "iter" in calls_in(call.node):
            loader = next((roles.loaders.get(dotted(arg)) for arg in _arguments_of_iter(call)), None)
            given = _keywords(loader.value) if loader is not None and isinstance(loader.value, ast.Call) else {}
            shuffles = "shuffle" in given and constant_of(given["shuffle"]) is not False
            if shuffles or {"sampler", "batch_sampler"} & set(given):
                continue
            certainty: Certainty = "depends" if loader is None else "likely"
            says = "an iterator is made anew at each step: without shuffling the first batch comes every time"
            yield fault("always_first_batch", call.line, certainty, says)


def _arguments_of_iter(call: Call) -> list[ast.expr]:
    """Return what `iter` is given in `next(iter(loader))`."""
    return [arg for inner in calls_within(call.node) if dotted(inner.func) == "iter" for arg in inner.args]


def _keywords(node: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}


def _is_sampler_kept_elsewhere(roles: Roles) -> bool:
    """Say whether another file is given a sampler, or replaces it, so that it may set its epochs."""
    made = {
        assignment.target.rpartition(".")[2]
        for assignment in roles.script.assignments
        if isinstance(assignment.value, ast.Call) and "DistributedSampler" in dotted(assignment.value)
    }
    handed_on = any(roles.is_handed_on(name, except_to=READS_SAMPLER) for name in made)
    return handed_on or roles.uses("make_private", "PrivacyEngine")


READS_SAMPLER = re.compile(r"DataLoader$|BatchSampler$|(?:len|isinstance|print)$")
"""Calls that are given a sampler and leave its epoch as it is."""


def _are_written_out(roles: Roles, node: ast.Call, call: Call | None) -> bool:
    """Say whether all of `**mapping` that a call is given stands in the file."""
    spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
    return call is not None and all(isinstance(roles.source_of(expr, call), ast.Dict) for expr in spread)


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
        definition = roles.definitions.get(step.function.rpartition(".")[2])
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
    """Return the arguments of a call by the parameters of what it calls, defaults among them."""
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
        for node in ast.walk(definition)
        if isinstance(node, ast.If) and node.lineno < step.line and isinstance(node.body[-1], ast.Continue | ast.Return)
    ]
    tests = [*(ast.parse(test, mode="eval") for test in step.conditions), *skipped]
    local = {made.target: made.value for made in roles.script.assignments if made.function == step.function}
    names = set[str]().union(*map(names_in, tests))
    names |= set[str]().union(*(names_in(local[name]) for name in names if name in local))
    for switch in names & set(arguments):
        value = roles.value_of(arguments[switch])
        known = {constant_of(node) for test in tests for node in ast.walk(test) if isinstance(node, ast.Constant)}
        constant = isinstance(arguments[switch], ast.Constant)
        if constant and (value is None or value is False or (isinstance(value, str) and value not in known)):
            return True
    return False


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


def _is_cut_in_two(roles: Roles, fit: Call) -> bool:
    """Say whether what a scaler gives is cut by its rows afterwards: `values[:n]` and `values[n:]`."""
    same = [made for made in roles.script.assignments if made.function == fit.function]
    scaled = {
        made.target
        for made in same
        if made.order >= fit.order
        and any(dotted(node.func).rpartition(".")[0] == fit.owner for node in calls_within(made.value))
    }
    ends: set[str] = set()
    starts: set[str] = set()
    for made in same:
        for node in ast.walk(made.value):
            if not isinstance(node, ast.Subscript) or dotted(node.value) not in scaled or made.order < fit.order:
                continue
            if isinstance(node.slice, ast.Slice):
                ends |= (
                    names_in(node.slice.upper) if node.slice.upper is not None and node.slice.lower is None else set()
                )
                starts |= names_in(node.slice.lower) if node.slice.lower is not None else set()
    return bool(ends & starts)


def own_statistics(roles: Roles) -> Iterator[Fault]:
    """Rows of the evaluation are scaled by their own mean and deviation, and those of training by theirs."""
    for name, helper in roles.definitions.items():
        if not isinstance(helper, ast.FunctionDef) or not _scales_by_itself(helper):
            continue
        uses: dict[str, int] = {}
        for made in roles.script.assignments:
            if any(dotted(node.func).rpartition(".")[2] == name for node in calls_within(made.value)):
                last = made.target.rpartition(".")[2]
                use = "train" if TRAINS.search(last) else "evaluate" if HELD_OUT.search(last) else ""
                uses.setdefault(use, made.line)
        if {"train", "evaluate"} <= set(uses):
            says = f"{name}() scales rows by their own mean and deviation, and is called for training and evaluation"
            yield fault("own_statistics", uses["evaluate"], "likely", says)


def _scales_by_itself(helper: ast.FunctionDef) -> bool:
    """Say whether a function takes the mean off what it is given and divides by its deviation, over all rows."""
    parameters = {parameter.arg for parameter in helper.args.args}
    taken: set[str] = set()
    for node in calls_within(helper):
        method = dotted(node.func).rpartition(".")[2]
        given = node.args[0] if dotted(node.func).partition(".")[0] in ("np", "torch", "numpy") and node.args else None
        given = given or (node.func.value if isinstance(node.func, ast.Attribute) else None)
        axis = next((constant_of(keyword.value) for keyword in node.keywords if keyword.arg in ("axis", "dim")), 0)
        if method in ("mean", "std") and isinstance(given, ast.Name) and given.id in parameters and axis == 0:
            taken.add(method)
    returned = [*filter(None, values_returned(helper))]
    divides = any(isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) for value in returned)
    return taken == {"mean", "std"} and len(parameters) == 1 and divides


def statistics_of_each_part(roles: Roles) -> Iterator[Fault]:
    """A data set scales its rows by their own mean and deviation, and is made for training and for evaluation."""
    for name, dataset in roles.definitions.items():
        scaled = _scaled_by_own_rows(dataset) if isinstance(dataset, ast.ClassDef) else None
        if scaled is None or _is_set_outside(roles, name, scaled[1]):
            continue
        if _is_for_both(roles, name) or _is_for_slices(roles, name):
            says = f"{name} takes these from its own rows, and is made for training and for evaluation"
            yield fault("own_statistics", scaled[0], "likely", says)


FIRST_ROWS = re.compile(r"^(.{1,80})\[:[^\]:]{1,80}\]$")
LATER_ROWS = re.compile(r"^(.{1,80})\[[^\]:]{1,80}:[^\]:]{0,80}\]$")
CHOSEN_ROWS = re.compile(r"^(\w{1,80})\[[^\n]{1,80} == (.{1,40})\]$")
"""How the first, the later, or some chosen rows of a table are written."""


def statistics_of_each_slice(roles: Roles) -> Iterator[Fault]:
    """The same code takes off the mean of the first rows from these, and that of later rows from those."""
    for node in ast.walk(roles.script.tree):
        means = {
            mean.part: mean.line
            for rows, mean in ((facts_of(left), facts_of(right)) for left, right in roles.trace.sides.get(id(node), []))
            if mean.kind == "mean" and mean.part and mean.part == rows.part
        }
        if len(means) > 1 and _train_and_evaluate(list(means)):
            says = f"each of {' and '.join(sorted(means)[:2])} is scaled by its own mean here"
            yield fault("own_statistics", next(iter(means.values())), "likely", says)


def _train_and_evaluate(parts: list[str]) -> bool:
    """Say whether some of several parts are the first and the later rows of one table, or those of named splits."""
    parts = [part.partition(CHOSEN_BY)[0] for part in parts]
    first, later = (
        {found[1] for part in parts if (found := pattern.match(part))} for pattern in (FIRST_ROWS, LATER_ROWS)
    )
    chosen = [found[2].strip("'\"") for part in parts if (found := CHOSEN_ROWS.match(part))]
    chosen += [part for part in parts if part.isidentifier()]
    named = any(map(TRAINS.search, chosen)) and any(
        HELD_OUT.search(name) and not TRAINS.search(name) for name in chosen
    )
    return bool(first & later) or named


def _scaled_by_own_rows(dataset: ast.ClassDef) -> tuple[int, set[str]] | None:
    """Return the line and the names of the mean and deviation that a data set takes of all rows that it is given.

    Only statements that always run count: where a test decides, the statistics of training may be given.
    """
    begins = next(
        (part for part in dataset.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None
    )
    if begins is None or not any(
        part.name == "__getitem__" for part in dataset.body if isinstance(part, ast.FunctionDef)
    ):
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
    for call in calls_within(node):
        method = dotted(call.func).rpartition(".")[2]
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
        if inner is None or dotted(node.func).rpartition(".")[2] not in KEEPS_ROWS:
            return False
        node = inner
    return isinstance(node, ast.Name | ast.Attribute) and dotted(node).removesuffix(".values") in rows


KEEPS_ROWS = {"asarray", "array", "as_tensor", "tensor", "from_numpy", "to_numpy", "astype", "float", "copy", "to"}
"""Functions and methods that give the same rows in another form."""


def _takes_off_and_divides(node: ast.AST, means: set[str], deviations: set[str]) -> bool:
    """Say whether a mean is taken off and the rest divided by a deviation: `(rows - mean) / deviation`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.left, ast.BinOp)):
        return False
    if not isinstance(node.left.op, ast.Sub) or dotted(node.left.right) not in means:
        return False
    parts = [node.right.left, node.right.right] if isinstance(node.right, ast.BinOp) else [node.right]
    return any(dotted(part) in deviations for part in parts)


def _is_set_outside(roles: Roles, name: str, taken: set[str]) -> bool:
    """Say whether statistics of one data set are given to another afterwards: `valid.mean = train.mean`."""
    lasts = {attribute.rpartition(".")[2] for attribute in taken}
    return any(
        made.target.rpartition(".")[2] in lasts and not made.function.startswith(f"{name}.") and "." in made.target
        for made in roles.script.assignments
    )


def _is_for_both(roles: Roles, name: str) -> bool:
    """Say whether data sets of a class are kept under names of training and of evaluation."""
    uses = [
        made.target.rpartition(".")[2]
        for made in roles.script.assignments
        if isinstance(made.value, ast.Call) and dotted(made.value.func) == name
    ]
    return any(map(TRAINS.search, uses)) and any(HELD_OUT.search(use) and not TRAINS.search(use) for use in uses)


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
    trained, judged = _read_by(roles.trace, trains=True), _read_by(roles.trace, trains=False)
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


CHOOSES_ROWS = re.compile(r"hold|held|valid|test|eval|split|fold|part|last", re.IGNORECASE)
"""Names of switches that may take other rows, or other places of them."""


def _may_choose(pair: tuple[Value, Value], name: str) -> bool:
    """Say whether two arguments of a name that differ may choose rows: anything but switches that change rows alone."""
    switches = all(isinstance(part, Constant) and isinstance(part.value, bool | None) for part in pair)
    return not switches or CHOOSES_ROWS.search(name) is not None


def _read_by(trace: Trace, *, trains: bool) -> list[Object]:
    """Return the loaders that loops which train go through, or loops without gradients."""
    found = []
    for event in trace.of("iterate"):
        inside = [other for other in trace.of("backward", "forward") if other.entry == event.entry]
        inside = [other for other in inside if other.loops[: len(event.loops)] == event.loops]
        learns = any(other.action == "backward" for other in inside)
        judged = not learns and any(other.gradients is False for other in inside)
        found += [loader for loader in event.objects if loader.kind == "loader" and (learns if trains else judged)]
    return list(dict.fromkeys(found))


VIEWS = re.compile(r"simclr|byol|moco|dino|contrastive|nt_?xent|info_?nce|barlow|vicreg|twocrop|two_crop|\btta\b", re.I)
"""What is evaluated on random views on purpose."""


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


SWITCHES_VIEWS = re.compile(
    r"aug|train|jitter|mirror|noise|flip|random|mask|perturb|distort|warp|cutout|mixup|crop|drop", re.IGNORECASE
)
"""Names of attributes that switch random changes of rows on."""


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
    loaders = _read_by(trace, trains=trains)
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
    last = switch.rpartition(".")[2]
    turned = [made for made in roles.script.assignments if made.target.rpartition(".")[2] == last]
    if any(not made.function.startswith(f"{definition.name}.") for made in turned if "." in made.target):
        return False
    guarded = [
        part
        for node in ast.walk(definition)
        if isinstance(node, ast.If | ast.IfExp) and dotted(node.test) == switch
        for part in (node.body if isinstance(node, ast.If) else [node.body])
    ]
    called = [dotted(node.func) for part in guarded for node in calls_within(part)]
    helpers = [roles.definitions.get(name.rpartition(".")[2]) for name in called]
    called += [dotted(node.func) for helper in helpers if helper is not None for node in calls_within(helper)]
    return any(map(DRAWS.search, called))


SEEDS = re.compile(r"(?:manual_seed|manual_seed_all|seed_everything|set_seed|(?:np|numpy)\.random\.seed|random\.seed)$")


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
        inside = [
            backward
            for backward in roles.backwards
            if backward.function == call.function and backward.loops[: len(call.loops)] == call.loops
        ]
        called = {other.method for other in roles.script.calls if other.loops[: len(call.loops)] == call.loops}
        trains = inside or any(backward.function.rpartition(".")[2] in called for backward in roles.backwards)
        if given is None or not trains or _changes(roles, given, call) or _begins_a_training(roles, call):
            continue
        often = any(backward.loops == call.loops for backward in inside)
        says = f"{ast.unparse(call.node)[:80]} stands inside the loop: the same numbers are drawn each time"
        yield fault("seed_in_loop", call.line, "certain" if often else "likely", says)


def _begins_each_pass(roles: Roles, call: Call) -> bool:
    """Say whether a function sets one seed and trains, and a loop calls it for a model that is made elsewhere."""
    given = call.node.args[0] if call.node.args else None
    function = roles.definitions.get(call.function.rpartition(".")[2])
    trains = any(backward.function == call.function for backward in roles.backwards)
    if given is None or not isinstance(function, ast.FunctionDef) or not trains:
        return False
    makes = any(made.function == call.function for made in roles.optimizers.values())
    stays = isinstance(given, ast.Attribute) or constant_of(given) is not None
    return stays and not makes and any(caller.loops for caller in roles.precise_callers(call.function))


def _changes(roles: Roles, given: ast.expr, call: Call) -> bool:
    """Say whether a seed is another one each time: it hangs on a name that the loop sets."""
    inside = [made for made in roles.script.assignments if made.loops[: len(call.loops)] == call.loops]
    loops = [node for node in ast.walk(roles.script.tree) if isinstance(node, ast.For) and node.lineno in call.loops]
    set_by_loop = {name for loop in loops for name in names_in(loop.target)}
    if isinstance(given, ast.Call):
        return True
    return bool(names_in(given) & (set_by_loop | {made.target for made in inside}))


def _begins_a_training(roles: Roles, call: Call) -> bool:
    """Say whether a model is made in the same loop: each round is a training of its own."""
    return any(made.loops == call.loops and made.function == call.function for made in roles.optimizers.values())


def workers_alike(roles: Roles) -> Iterator[Fault]:
    """All workers of a loader draw the same random numbers."""
    for call in roles.script.named("DataLoader"):
        given = call.keywords.get("worker_init_fn")
        start = roles.definitions.get(dotted(given).rpartition(".")[2]) if given is not None else None
        body: ast.AST | None = given if isinstance(given, ast.Lambda) else start
        if not isinstance(body, ast.Lambda | ast.FunctionDef) or not body.args.args:
            continue
        names = {node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        seeds = [node for node in calls_within(body) if SEEDS.search(dotted(node.func))]
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


GENERATORS = re.compile(r"(?:default_rng|RandomState|random\.Random|torch\.Generator(?:\.manual_seed)?)$")
TELLS_WORKERS_APART = re.compile(r"worker|initial_seed|getpid|urandom|token_bytes", re.IGNORECASE)
"""What stands in a data set whose copies in several processes differ."""


def _streams_alike(roles: Roles, lines: set[int]) -> Iterator[Fault]:
    """Yield data sets that begin each pass with one seed, and that a loader of some lines reads in several workers."""
    loaders = [made for made in roles.trace.objects if made.kind == "loader" and made.line in lines]
    read = [made for made in loaders if made.settings.get("num_workers", Constant(0)) != Constant(0)]
    classes = {id(part.definition): part.definition for made in read for part in wrapped(dataset_of(made))}
    for definition in classes.values():
        parts = [part for part in definition.body if isinstance(part, ast.FunctionDef)] if definition else []
        begins = next((part for part in parts if part.name == "__iter__"), None)
        if definition is None or begins is None or TELLS_WORKERS_APART.search(ast.unparse(definition)):
            continue
        called = {dotted(node.func) for node in calls_within(begins)}
        inside = [begins, *(part for part in parts if f"self.{part.name}" in called)]
        seeds = (node for part in inside for node in calls_within(part) if _is_seeded_alike(node))
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
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    drawn = [inner for arg in given for inner in calls_in(arg) if inner not in ("int", "hash", "abs")]
    return bool(given) and not drawn and bool(GENERATORS.search(name) or SEEDS.search(name))


def _generator_in_the_data(roles: Roles) -> Iterator[Fault]:
    """Yield data sets with a generator of their own: each worker gets a copy in the same state."""
    for node in ast.walk(roles.script.tree):
        parts = (
            [part for part in node.body if isinstance(part, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else []
        )
        reads = next((part for part in parts if part.name in ("__getitem__", "__iter__")), None)
        starts = next((part for part in parts if part.name == "__init__"), None)
        if reads is None or starts is None or (reads.name == "__iter__" and not _streams(node)):
            continue
        for made in ast.walk(starts):
            if not isinstance(made, ast.Assign) or not GENERATORS.search(dotted(made.value)):
                continue
            name = dotted(made.targets[0])
            others = [ast.unparse(part) for part in parts if part is not starts]
            drawn = any(re.search(rf"{re.escape(name)}\b", other) for other in others)
            if drawn and name.startswith("self."):
                says = f"{name} is copied into each worker in the same state: all workers draw the same numbers"
                yield fault("workers_alike", made.lineno, "likely", says)


def shuffled_apart(roles: Roles) -> Iterator[Fault]:
    """Inputs and targets are put into two different random orders."""
    drawn: dict[tuple[str, int], list[Assignment]] = {}
    for made in roles.script.assignments:
        value = made.value
        if not isinstance(value, ast.Subscript) or dotted(value.value) != made.target:
            continue
        if isinstance(value.slice, ast.Call) and dotted(value.slice.func).rpartition(".")[2] in (
            "randperm",
            "permutation",
        ):
            drawn.setdefault((made.function, len(made.loops)), []).append(made)
    for same in drawn.values():
        if len(same) > 1 and same[1].line - same[0].line <= 2:
            says = f"{same[0].target} and {same[1].target} are put into two different orders: targets fit no inputs"
            yield fault("shuffled_apart", same[1].line, "certain", says)


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


def fitted_again(roles: Roles) -> Iterator[Fault]:
    """A scaler is fitted to the rows of the evaluation as well, and so scales these by statistics of their own."""
    fits: dict[tuple[str, str], list[Call]] = {}
    for call in roles.script.named("fit_transform"):
        maker = roles.script.assigned(call.owner)
        if call.node.args and maker is not None and FITTED.search(dotted(maker.value)):
            fits.setdefault((call.function, call.owner), []).append(call)
    for calls in fits.values():
        given = [dotted(call.node.args[0]).rpartition(".")[2] for call in calls]
        train, held = _halves_of_split(roles, calls[0], given)
        if train and held:
            again = next(call for call, name in zip(calls, given, strict=True) if name == held)
            says = (
                f"{again.owner} was fitted to {train}, and is fitted to {held} anew: both are scaled in their own way"
            )
            yield fault("own_statistics", again.line, "certain", says, fix=f"{again.owner}.transform({held})")


FITTED = re.compile(r"(?:Scaler|PCA|Imputer|Vectorizer|Normalizer|SelectKBest|Discretizer|Transformer)$")


def _halves_of_split(roles: Roles, call: Call, names: Sequence[str]) -> tuple[str, str]:
    """Return which of several names is rows of training, and which held-out ones; by a split, or by their names."""
    places = {
        made.target.rpartition(".")[2]: made.place
        for made in roles.script.assignments
        if made.function == call.function and "train_test_split" in ast.unparse(made.value) and made.place is not None
    }
    train = [name for name in names if places.get(name) == 0 or TRAINS.search(name)]
    held = [name for name in names if places.get(name) == 1 or (HELD_OUT.search(name) and not TRAINS.search(name))]
    return next(iter(train), ""), next(iter(held), "")


SEEDED = re.compile(r"seed|random_state|generator|default_rng\(\d")
"""How a draw is written that gives the same numbers each time."""
PERMUTES = ("permutation", "randperm", "choice", "integers", "randint")


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


def _are_methods_of_one(first: Call, other: Call) -> bool:
    """Say whether two calls stand in methods of one class, neither with a seed of its own."""
    owners = {call.function.rpartition(".")[0] for call in (first, other)}
    return len(owners) == 1 and "" not in owners and not _is_seeded(first) and not _is_seeded(other)


def _is_seeded(call: Call) -> bool:
    return any(name in call.keywords for name in ("generator", "random_state"))


def not_shuffled_by_a_helper(roles: Roles) -> Iterator[Fault]:
    """A function makes loaders, and the one that trains does not shuffle."""
    if re.search(r"make_private|PrivacyEngine|Iterable|stream|shuffle\(|WebDataset|permutation", roles.source):
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


def scaled_before_split(roles: Roles) -> Iterator[Fault]:
    """Rows are scaled by the mean and deviation of all of them, and split afterwards."""
    for made in roles.script.assignments:
        if not _is_scaled_by_itself(roles, made) or IS_TARGET.search(made.target.rpartition(".")[2]):
            continue
        scope = roles.scope_of(made.function)
        later = [node for node in ast.walk(scope) if getattr(node, "lineno", 0) > made.line]
        cuts = [node for node in later if isinstance(node, ast.Subscript) and dotted(node.value) == made.target]
        ends = [ast.unparse(node.slice) for node in cuts]
        halves = any(re.search(r"(?:^|\[):[^:,]", end) for end in ends) and any(
            re.search(r"[^:,]:(?:$|\])", end) for end in ends
        )
        split = any(
            dotted(node.func).rpartition(".")[2] in ("train_test_split", "random_split")
            and any(dotted(arg) == made.target for arg in node.args)
            for node in later
            if isinstance(node, ast.Call)
        )
        if halves or split:
            says = f"{made.target} is scaled by the mean and deviation of all rows, and these are split afterwards"
            yield fault("fitted_before_split", made.line, "likely", says)


IS_TARGET = re.compile(r"^(?:y|ys|targets?|labels?)$")
"""Names of what is predicted: its scale tells next to nothing of a single row."""


def _with_statistics(roles: Roles, made: Assignment) -> str:
    """Return the text of a value in which the names of means and deviations are spelled out."""
    text = ast.unparse(made.value)
    before = [
        assignment
        for assignment in roles.script.assignments
        if assignment.function == made.function and assignment.order <= made.order
    ]
    for other in before:
        source = ast.unparse(other.value)
        if STATISTIC.search(source):
            text = re.sub(rf"(?<![\w.]){re.escape(other.target)}(?![\w.(])", source.replace("\\", ""), text)
    return text


STATISTIC = re.compile(r"^\w+\.(?:mean|std|min|max)\([^()]*\)$")


def _is_scaled_by_itself(roles: Roles, made: Assignment) -> bool:
    """Say whether a value is `(x - x.mean(0)) / x.std(0)` of the name that it is given to."""
    value = made.value
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) and isinstance(value.left, ast.BinOp)):
        return False
    name, text = re.escape(made.target), _with_statistics(roles, made)
    statistics = re.search(rf"\b{name}\.(?:mean|min)\(", text) and re.search(rf"\b{name}\.(?:std|max|min)\(", text)
    by_row = re.search(r"\((?:axis=|dim=)?(?:1|-1)\b", text)
    return bool(statistics) and not by_row and isinstance(value.left.op, ast.Sub)
