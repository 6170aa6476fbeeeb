"""Do training data come in a new order, with new random numbers in each pass and worker?"""

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
    names_in,
    parameters_of,
)
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import EVALUATES, HELD_OUT
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.trace.events import Event
from mldebug_mcp.script.trace.library_calls import rows_of as dataset_of
from mldebug_mcp.script.trace.library_calls import wrapped
from mldebug_mcp.script.values import Constant

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
