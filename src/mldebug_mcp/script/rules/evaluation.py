"""Is what is trained judged rightly: its mode, gradients and metric; and are the kept weights the best ones?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    calls_in,
    constant_of,
    dotted,
    is_operation,
    keywords_of,
    last_name,
    last_part,
    names_in,
    values_returned,
    walk,
)
from mldebug_mcp.script.facts import axis_of
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import EVALUATES, HAS_MODES, HELD_OUT, LOADER, NO_GRADIENTS
from mldebug_mcp.script.metrics import LOSS_LIKE, Better, agreed, better_by_name, better_of, with_functions
from mldebug_mcp.script.roles import Roles, entries_of
from mldebug_mcp.script.trace import Event, Trace
from mldebug_mcp.script.values import Items, Object, objects_in

LABELS = re.compile(r"^(?:y|ys|yb|labels?|targets?|truth|gold|gt)$", re.IGNORECASE)
"""Names of labels, which predictions are compared with."""
OF_ALL_ROWS = re.compile(
    r"(?:^|\.)(?:roc_auc_score|average_precision_score|f1_score|precision_score|recall_score|matthews_corrcoef|r2_score"
    r"|cohen_kappa_score|balanced_accuracy_score|pearsonr|spearmanr)$"
)
"""Functions whose result of all rows is not the mean of their results of batches."""
LAYERS_WITH_MODES = re.compile(r"^(?:\w*Dropout\d?d?|\w*BatchNorm\d?d?|Transformer\w*Layer)$")
AUGMENTS = re.compile(r"(?:^|\.)(?:Random\w+|ColorJitter|RandAugment|TrivialAugmentWide|AutoAugment|AugMix)$")
"""Random changes of pictures in torchvision and kornia: modules whose `eval()` does not end them."""
SCORE = re.compile(r"(?:_score|_loss|accuracy|cross_entropy|criterion|loss_fn)$", re.IGNORECASE)


def modes(roles: Roles) -> Iterator[Fault]:
    """Is the model in evaluation mode where it is evaluated, and in training mode where it trains?"""
    if not roles.trains_by_hand:
        return
    evals = [call for call in roles.script.named("eval") if call.owner and not call.node.args]
    trains = [call for call in roles.script.named("train") if "trainer" not in call.owner.lower() and call.owner]
    if not evals:
        yield from _evaluates_in_training_mode(roles)
    else:
        yield from _another_is_put_into_evaluation_mode(roles, evals, trains)
    yield from _dropout_always_on(roles)
    yield from _augments_in_forward(roles)


def _dropout_always_on(roles: Roles) -> Iterator[Fault]:
    """Yield dropout of a function of PyTorch that nothing turns off in evaluation."""
    training = roles.trained_in
    models = {module.name for module in roles.modules}
    for call in roles.script.calls:
        functional = re.search(r"(?:^|\.)(?:F|functional)\.(?:alpha_|feature_alpha_)?dropout\d?d?$", call.name)
        if not functional or "training" in call.keywords or len(call.node.args) >= 3 or call.function in training:
            continue
        given = (*call.node.args[1:], *call.keywords.values())
        decided = " ".join([*call.conditions, *(ast.unparse(roles.source_of(arg, call)) for arg in given)])
        if re.search(r"train", decided) or not roles.is_imported_from("torch", call.name.partition(".")[0]):
            continue
        says = f"{call.name}() drops units in evaluation as well: its `training` is true unless it is given"
        certainty: Certainty = "certain" if models & set(call.function.split(".")) else "depends"
        fix = f"{call.name}(x, p, training=self.training)"
        yield fault("dropout_always_on", call.line, certainty, says, fix=fix)


def _augments_in_forward(roles: Roles) -> Iterator[Fault]:
    """Yield random changes of pictures within a model, whatever its mode.

    Not where they are made twice: two views of a picture are what a model of them is for, in training alone.
    """
    models = {module.name for module in roles.modules if ".training" not in ast.unparse(module)}
    made = {
        (assignment.function.partition(".")[0], assignment.target): name
        for assignment in roles.script.assignments
        for name in map(dotted, (node.func for node in walk(assignment.value, ast.Call)))
        if AUGMENTS.search(name)
        and any(roles.is_imported_from(library, name.partition(".")[0]) for library in ("torchvision", "kornia"))
    }
    for (owner, target), name in made.items() if roles.script.named("eval") else ():
        calls = [call for call in roles.script.calls if call.name == target and call.function == f"{owner}.forward"]
        if owner in models and len(calls) == 1:
            says = f"{target}() changes pictures at random in evaluation as well: eval() does not end {name}"
            yield fault("augments_in_forward", calls[0].line, "certain", says)


def _evaluates_in_training_mode(roles: Roles) -> Iterator[Fault]:
    """Yield where a model with layers of two modes is evaluated without `eval()`."""
    foreign = [call.name for call in roles.script.calls if call.method not in roles.definitions]
    if any(re.search(r"Lightning|Trainer", name) for name in foreign):
        return
    trained = {call.owner for call in roles.script.named("train") if call.owner}
    outside = [call for call in roles.script.calls if call.function not in roles.trained_in]
    evaluating = [call for call in outside if EVALUATES.search(call.function)]
    evaluations = [call for call in evaluating if re.search(r"(?:^|\.)(?:model|net|network|self)$", call.name)]
    inline = [
        call
        for call in roles.script.calls
        if any(NO_GRADIENTS.search(guard) for guard in call.guards)
        and (call.name in trained or re.search(r"^(?:self\.)?(?:model|net|network)$", call.name))
    ]
    on_purpose = [call for call in outside if call.method == "train" and call.owner]
    unused = {id(node.value) for node in walk(roles.script.tree, ast.Expr)}
    judged = (
        call
        for call in (*evaluations, *inline)
        if not _is_preceded_by(call, on_purpose)
        and id(call.node) not in unused
        and not _may_have_gradients(roles, call)
    )
    first = next(judged, None)
    if first is None:
        return
    loaded = roles.uses("from_pretrained") and bool(roles.script.named("train"))
    layers = [call for call in roles.script.calls if LAYERS_WITH_MODES.search(call.method)]
    modal = loaded or roles.uses("resnet", "torchvision.models", "create_model")
    modal = modal or any(call.constant("dropout") != 0 for call in layers)
    if not modal and _is_whole(roles):
        return
    certainty: Certainty = "certain" if modal else "depends"
    says = "the model is evaluated, and eval() is called nowhere: dropout and batch statistics stay on"
    yield fault("evaluates_in_training_mode", first.line, certainty, says)


def _may_have_gradients(roles: Roles, call: Call) -> bool:
    """Say whether a caller decides if a block turns gradients off: `context = nullcontext if grad else no_grad`."""
    return any(isinstance(roles.source_of(ast.Name(guard), call), ast.IfExp) for guard in call.guards)


def _is_preceded_by(call: Call, others: Sequence[Call]) -> bool:
    return any(other.function == call.function and other.order < call.order for other in others)


def _is_whole(roles: Roles) -> bool:
    """Say whether all layers of the models of this file are PyTorch's own or of this file, so that all are known."""
    made = [node for module in roles.modules for node in walk(module, ast.Assign)]
    names = [name for node in made for name in calls_in(node.value) if last_part(name)[:1].isupper()]
    own = all("nn." in name or name in roles.definitions for name in names)
    return own and bool(roles.modules or roles.uses("Sequential"))


def _another_is_put_into_evaluation_mode(
    roles: Roles, evals: Sequence[Call], trains: Sequence[Call]
) -> Iterator[Fault]:
    """Yield where a model is evaluated that `train()` is called of, and `eval()` only of another, such as a teacher."""
    known = {call.owner for call in evals if not isinstance(getattr(call.node.func, "value", None), ast.Call)}
    if any(not owner.startswith("self.") for owner in known) or any(train.node.args for train in trains):
        return
    training = roles.trained_in
    trained = {train.owner for train in trains if train.owner.startswith("self.")} - known
    for call in roles.script.calls:
        without_gradient = any(NO_GRADIENTS.search(guard) for guard in call.guards)
        if call.name in trained and without_gradient and call.loops and call.function not in training:
            says = f"{call.name} is evaluated, and eval() is called of others alone: its dropout and statistics stay on"
            yield fault("evaluates_in_training_mode", call.line, "likely", says)
            return


def modes_left(roles: Roles) -> Iterator[Fault]:
    """A model that was put into evaluation mode trains on in it; or it is evaluated in training mode."""
    trace = roles.trace
    first: dict[tuple[int, tuple[int, ...]], frozenset[str]] = {}
    for place, event in enumerate(trace.events):
        if event.action != "forward" or event.function.endswith(".forward"):
            continue
        model = next(iter(event.objects))
        begun = first.setdefault((id(event.node), event.loop_lines), event.modes)
        if (
            event.gradients
            and "eval" in event.modes
            and ("eval" not in begun or _is_evaluated_before(trace, place, model) or _was_tried(trace, place, model))
            and _is_trained(trace, event, place, model)
        ):
            evals = [earlier for earlier in trace.events[:place] if earlier.action == "eval"]
            before = [earlier for earlier in evals if model in earlier.objects]
            before = before or [earlier for earlier in evals if any(map(model.is_part_of, earlier.objects))]
            if before:
                line = _switched_once(trace.events[:place], event, model) or before[-1].line
                says = f"{model.label} is put into evaluation mode between passes, and trains on in it"
                says += "" if line == before[-1].line else f": line {before[-1].line} leaves it there in each round"
                yield fault("never_back_to_training", line, "certain", says, lines=before[-1].lines)
                return
        if (
            (event.gradients is False or _reads_other_rows(trace, event))
            and event.modes == {"train"}
            and event.loops
            and _has_modes(model)
            and _evaluates(trace, event, model)
        ):
            says = f"{model.label} is evaluated in training mode: dropout and batch statistics stay on"
            yield fault("evaluates_in_training_mode", event.line, "certain", says, lines=event.lines)
            return


def _switched_once(events: Sequence[Event], forward: Event, model: Object) -> int:
    """Return the line before the loop that sets a model to training mode once, for all rounds; 0 if there is none."""
    lines = [
        event.line
        for event in events
        if event.action == "train" and event.concerns(model)
        if forward.is_within(event) and len(event.loops) < len(forward.loops)
    ]
    return lines[-1] if lines else 0


def _reads_other_rows(trace: Trace, forward: Event) -> bool:
    """Say whether a pass is in a loop over a loader that nothing trains on, while others are trained on."""
    loops = [event for event in trace.of("iterate") if event.entry == forward.entry and event.loops]
    read = {loader for event in loops if event.loops == forward.loops for loader in event.objects}
    learns = {event.loop_lines for event in trace.of("backward") if event.entry == forward.entry}
    trained = {loader for event in loops if event.loop_lines in learns for loader in event.objects}
    known = all(loader.kind == "loader" for loader in (*read, *trained))
    return bool(read and trained) and known and read.isdisjoint(trained)


def _was_tried(trace: Trace, place: int, model: Object) -> bool:
    """Say whether a model was put into evaluation mode for a pass without gradients before the loops, for good."""
    before = [event for event in trace.events[:place] if event.entry == trace.events[place].entry]
    switched = [at for at, event in enumerate(before) if event.action in ("train", "eval") and event.concerns(model)]
    if not switched or before[switched[-1]].action != "eval" or before[switched[-1]].loops or not _has_modes(model):
        return False
    passes = [event for event in before[switched[-1] :] if event.action == "forward" and event.concerns(model)]
    return bool(passes) and passes[0].gradients is False and not passes[0].loops


def _is_evaluated_before(trace: Trace, place: int, model: Object) -> bool:
    """Say whether the round of a forward pass began with an evaluation, after which nothing sets the mode back."""
    forward = trace.events[place]
    if not forward.loops:
        return False
    round_ = [event for event in trace.events[:place] if event.is_within(forward)]
    switched = [event.action for event in round_ if event.action in ("train", "eval") and event.concerns(model)]
    judged = any(event.action == "forward" and event.gradients is False and event.concerns(model) for event in round_)
    return switched[-1:] == ["eval"] and judged


def _is_trained(trace: Trace, forward: Event, place: int, model: Object) -> bool:
    later = [event for event in trace.events[place:] if event.entry == forward.entry]
    back = next((at for at, event in enumerate(later) if event.action == "backward"), None)
    if back is None or later[back].loops[: len(forward.loops)] != forward.loops:
        return False
    if not later[back].concerns(model):
        return False
    step = next((event for event in later[back:] if event.action == "step"), None)
    return step is not None and any(stepper.holds_all and stepper.holds_some_of(model) for stepper in step.objects)


def _has_modes(model: Object) -> bool:
    return any(HAS_MODES.search(part.made_by) or ".models." in part.made_by for part in model.parts())


def _evaluates(trace: Trace, forward: Event, model: Object) -> bool:
    """Say whether a forward pass is in a loop over data that trains nothing, of a model that is trained elsewhere."""
    inside = [event for event in trace.events if event.is_within(forward)]
    over_data = any(
        event.action == "iterate"
        and event.loops == forward.loops
        and any(other.kind == "loader" for other in event.objects)
        for event in inside
    )
    trains = any(event.action in ("backward", "step") for event in inside)
    on_purpose = any(event.action == "train" and event.function == forward.function for event in trace.events)
    trained = any(event.action == "step" and trace.steps_model(event, model) for event in trace.events)
    return over_data and trained and not trains and not on_purpose and model.copy_of is None


def gradients_of_evaluation(roles: Roles) -> Iterator[Fault]:
    """Evaluation keeps the graph."""
    if not roles.trains_by_hand:
        return
    for call in roles.script.calls:
        evaluates = EVALUATES.search(call.function) and call.function not in roles.trained_in
        forward = re.search(r"(?:^|\.)(?:model|net|network)$", call.name)
        if evaluates and call.loops and forward and not roles.gradients_off(call):
            says = "the model is evaluated with gradients on: memory is held for them"
            yield fault("gradients_in_evaluation", call.line, "depends", says)
            return


def mean_of_means(roles: Roles) -> Iterator[Fault]:
    """Means of batches are added up, and divided by the number of rows."""
    for node, added in _sums_divided(roles) if "reduction='sum'" not in roles.source else ():
        texts = [ast.unparse(made.value) for made in added]
        means = all("item" in text and "*" not in text and "loss" in text for text in texts)
        if texts and means and re.fullmatch(r"len\([\w.]*\.dataset\)", ast.unparse(node.right)):
            says = f"{dotted(node.left)} adds up means of batches, and is divided by the number of rows"
            yield fault("mean_of_means", node.lineno, "certain", says)


def _sums_divided(roles: Roles) -> Iterator[tuple[ast.BinOp, list[Assignment]]]:
    """Yield the quotients of a name, each with the assignments that add to it."""
    for node in walk(roles.script.tree, ast.BinOp):
        if isinstance(node.op, ast.Div) and isinstance(node.left, ast.Name):
            name = node.left.id
            yield node, [made for made in roles.script.assignments if made.adds and made.target == name]


def argmax_over_batch(roles: Roles) -> Iterator[Fault]:
    """A class is looked for along the batch."""
    tree = roles.script.tree
    with_labels = {
        id(part)
        for node in walk(tree, ast.Compare)
        if any(LABELS.search(last_name(side)) for side in (node.left, *node.comparators))
        for part in ast.walk(node)
    }
    trains = roles.trains_by_hand or roles.trains_elsewhere
    for node in filter(None, map(_places_of_highest, ast.walk(tree))) if trains else ():
        functional = dotted(node.func) in ("torch.argmax", "np.argmax")
        text = ast.unparse(node)
        of_one_row = re.match(r"[\w.]+\[[\w, :]+\]", text)
        of_classes = id(node) in with_labels or re.search(r"logit|output|pred|model|out\b|score|\bnet\(", text)
        if axis_of(node.args[functional:], node) == 0 and of_classes and not of_one_row:
            says = f"the class is looked for along the batch: {text[:60]}"
            yield fault("argmax_over_batch", node.lineno, "likely", says)


def _places_of_highest(node: ast.AST) -> ast.Call | None:
    """Return the call that gives the places of the highest values: `argmax`, `max(1)[1]`, `topk(5).indices`."""
    if isinstance(node, ast.Call):
        return node if last_name(node) == "argmax" else None
    second = isinstance(node, ast.Subscript) and constant_of(node.slice) == 1
    second = second or (isinstance(node, ast.Attribute) and node.attr == "indices")
    inner = node.value if second and isinstance(node, ast.Subscript | ast.Attribute) else None
    of_max = isinstance(inner, ast.Call) and last_name(inner) in ("max", "topk")
    return inner if of_max and isinstance(inner, ast.Call) else None


def mean_of_batch_scores(roles: Roles) -> Iterator[Fault]:
    """A score that asks for all rows at once, such as an area or an F1, is computed of each batch and averaged."""
    trained = {line for backward in roles.backwards for line in backward.loops[-1:]}
    for call in roles.script.calls:
        line = call.loops[-1] if call.loops else 0
        through = roles.script.loops.get(line, "")
        if not OF_ALL_ROWS.search(call.name) or line in trained or not LOADER.search(through):
            continue
        over_batches = any(roles.calls_model(other.node) for other in roles.script.calls if line in other.loops)
        kept = [made.target for made in roles.script.assignments if made.adds and call.node in ast.walk(made.value)]
        kept += [
            other.owner
            for other in roles.script.named("append")
            if other.node.args and call.node in ast.walk(other.node.args[0])
        ]
        if over_batches and kept:
            says = f"{call.method} is computed of each batch, and the mean of batches is not that of all rows"
            yield fault("mean_of_batch_scores", call.line, "likely", says)


def loss_by_batch_size(roles: Roles) -> Iterator[Fault]:
    """A loss that compares the rows of a batch with each other is held against that of batches of another size.

    Source: findings/cox_loss_of_the_whole_validation_set.sh.
    """
    for call in roles.script.named("fit"):
        made = roles.script.assigned(call.owner, call.order)
        of_cox = made is not None and re.search(r"(?:^|\.)Cox(?:PH|CC|Time)$", dotted(made.value))
        if of_cox and "val_data" in call.keywords and "val_batch_size" not in call.keywords:
            says = (
                "the loss of a Cox model grows with its batch, and validation has 8,224 rows in one: its loss is higher"
            )
            yield fault("loss_by_batch_size", call.line, "depends", says, fix="give fit() val_batch_size as well")
    sizes = {name: _size_of_batches(roles, made) for name, made in roles.loaders.items()}
    held_out = {name: size for name, size in sizes.items() if HELD_OUT.search(name) and size}
    trained = {name: size for name, size in sizes.items() if name not in held_out and size}
    if not trained or not held_out or set(trained.values()) & set(held_out.values()):
        return
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2:
            continue
        target = roles.source_of(call.node.args[1], call)
        both = {roles.turned_off(run.guards) for run in roles.runs(call)}
        if "arange" in {last_part(name) for name in calls_in(target)} and len(both) > 1:
            (loader, size), (other, other_size) = next(iter(trained.items())), next(iter(held_out.items()))
            says = (
                f"each row is compared with the others of its batch: {loader} has {size} and {other} {other_size}, so "
                "that the two losses cannot be compared"
            )
            lines = (roles.loaders[loader].line, roles.loaders[other].line)
            yield fault("loss_by_batch_size", lines[1], "depends", says, lines=lines)
            return


def _size_of_batches(roles: Roles, made: Assignment) -> int:
    """Return the size of the batches of a loader; 0 where it is not written out."""
    call = roles.call_of(made.value)
    given = None if call is None else call.argument("batch_size", 1)
    size = None if given is None else roles.number_of(given)
    return int(size) if size is not None else 0


def last_batch_only(roles: Roles) -> Iterator[Fault]:
    """A metric is computed from the outputs of the last batch alone."""
    if not roles.trains_by_hand and not any(roles.evaluates(call.function) for call in roles.script.calls):
        return
    for line in roles.script.loops:
        inside = [call for call in roles.script.calls if call.loops and call.loops[-1] == line]
        forward = [call for call in inside if roles.calls_model(call.node)]
        if not forward or any(line in backward.loops for backward in roles.backwards):
            continue
        function = forward[0].function
        if not roles.evaluates(function) and not roles.gradients_off(forward[0]):
            continue
        yield from _read_after(roles, line, function)


def _read_after(roles: Roles, line: int, function: str) -> Iterator[Fault]:
    """Yield a metric after a loop over batches that reads what each batch sets anew."""
    loop = next((node for node in walk(roles.script.tree, ast.For) if node.lineno == line), None)
    scope = roles.scope_of(function)
    if loop is None or any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop)):
        return
    inside = [made for made in roles.script.assignments if line in made.loops]
    kept = {made.target for made in inside if made.adds or made.target in names_in(made.value) or made.conditions}
    if any(_hands_on_state(roles, made) for made in inside) or dotted(loop.iter) == "range":
        return
    kept |= {made.target for made in inside if made.loops[-1] != line}
    set_anew = {made.target: made for made in inside if made.target not in kept}
    end = loop.end_lineno or line
    for node in walk(scope, ast.Return, ast.Assign):
        if node.value is None or node.lineno <= end:
            continue
        read = names_in(node.value) & {*set_anew, *names_in(loop.target)}
        again = {assignment.target for assignment in roles.script.assignments if end < assignment.line < node.lineno}
        outputs = sorted(name for name in read - again if name in set_anew and _is_of_outputs(roles, set_anew[name]))
        scores = [name for name in outputs if _is_score(set_anew[name].value)]
        if scores or (outputs and _is_score(node.value)):
            name = (scores or outputs)[0]
            says = f"{name} is set anew in each batch of the loop, and read after it: the metric is of the last batch"
            yield fault("last_batch_only", set_anew[name].line if scores else node.lineno, "certain", says)
            return


def _hands_on_state(roles: Roles, made: Assignment) -> bool:
    """Say whether a model is given what it gave in the round before, as a recurrent one is."""
    calls = [node for node in walk(made.value, ast.Call) if roles.calls_model(node)]
    return any(made.target in names_in(arg) for node in calls for arg in node.args)


def _is_of_outputs(roles: Roles, made: Assignment) -> bool:
    """Say whether a value comes from the forward pass of a model."""
    values = [made.value]
    for name in names_in(made.value):
        values += [other.value for other in roles.script.made(name) if other.loops == made.loops]
    return any(roles.calls_model(node) for value in values for node in walk(value, ast.Call))


def _is_score(node: ast.expr) -> bool:
    """Say whether an expression compares outputs with targets, or computes a metric or loss of them."""
    compared = any(isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq) for part in ast.walk(node))
    return compared or any(SCORE.search(name) for name in calls_in(node))


def sum_times_rows(roles: Roles) -> Iterator[Fault]:
    """A loss that is the sum over rows already is multiplied by their number."""
    for made in roles.script.assignments:
        product = made.value
        if not made.adds or not is_operation(product, ast.Mult):
            continue
        sides = [ast.unparse(product.left), ast.unparse(product.right)]
        rows = [side for side in sides if re.search(r"len\(|\.size\(0\)|\.shape\[0\]|batch_size|^n$|^bs$", side)]
        items = [side for side in (product.left, product.right) if ".item()" in ast.unparse(side)]
        if not rows or not items or not isinstance(items[0], ast.Call) or not isinstance(items[0].func, ast.Attribute):
            continue
        before = roles.made_before(dotted(items[0].func.value), made)
        source = before[-1].value if before else items[0].func.value
        summed = _summing_loss(roles, source) if isinstance(source, ast.Call) else None
        if summed is not None:
            says = f"the loss is a sum over rows, and line {made.line} multiplies it by their number once more"
            yield fault("sum_times_rows", summed, "certain", says)


def _summing_loss(roles: Roles, node: ast.Call) -> int | None:
    """Return the line where a loss is set to sum; None where it is not known to."""
    call = roles.call_of(node)
    if call is None:
        return None
    if call.constant("reduction") == "sum":
        return call.line
    names = {call.name, f"self.{call.name}"}
    names |= {name for name in roles.losses if (last_part(call.function), call.name) in roles.parameters_for(name)}
    for made in (roles.losses[name] for name in names & set(roles.losses)):
        if constant_of(keywords_of(made.value).get("reduction")) == "sum":
            return made.line
    return None


def rows_by_batches(roles: Roles) -> Iterator[Fault]:
    """What counts rows is divided by the number of batches."""
    for node, added in _sums_divided(roles):
        if not re.fullmatch(r"len\((?:self\.)?\w*(?:loader|_dl|dl|batches)\)", ast.unparse(node.right)):
            continue
        texts = [ast.unparse(made.value) for made in added if made.loops]
        counts = [bool(re.search(r"==[^\n]*\)\.(?:float\(\)\.)?sum\(\)|\.eq\([^\n]*\.sum\(", text)) for text in texts]
        weighed = [bool(re.search(r"item\(\) \* (?:len\(|\w+\.size\(0\)|\w+\.shape\[0\])", text)) for text in texts]
        if texts and not any("/" in text for text in texts) and (all(counts) or all(weighed)):
            says = f"{dotted(node.left)} adds up rows, and is divided by the number of batches"
            yield fault("rows_by_batches", node.lineno, "certain", says)


def rows_of_another(roles: Roles) -> Iterator[Fault]:
    """What is counted over one loader is divided by the length of another, which reads other rows."""
    for function, node in with_functions(roles.script.tree):
        if not (is_operation(node, ast.Div) and "len(" in ast.unparse(node.right)):
            continue
        added = [
            made
            for made in roles.assignments_by_name.get((function, dotted(node.left)), [])
            if made.adds and made.loops and made.line < node.lineno
        ]
        own = _loaders_in(roles, roles.script.loops.get(added[-1].loops[-1], "")) if added else {}
        others = _loaders_in(roles, ast.unparse(node.right))
        if own and others and not {*others.values()} & {*own.values()}:
            says = f"{added[-1].target} is counted over {min(own)}, and divided by the length of {min(others)}"
            yield fault("rows_by_batches", node.lineno, "likely", says, fix=f"divide by the length of {min(own)}")


def _loaders_in(roles: Roles, text: str) -> dict[str, str]:
    """Return the loaders of a script that an expression names, each with the rows that it reads."""
    named = (name for name in roles.loaders if re.search(rf"(?<![\w.]){re.escape(name)}\b", text))
    makers = {name: roles.loaders[name].value for name in named}
    return {
        name: ast.unparse(maker.args[0]) if isinstance(maker, ast.Call) and maker.args else name
        for name, maker in makers.items()
    }


# Are the weights that are kept the best ones, and does a run that goes on take up all that it left?


BEST = re.compile(r"best|(?:^|_)(?:min|max|lowest|highest)_")
INFINITE = re.compile(r"float\(['\"]\+?(?:inf|infinity)['\"]\)|(?:math|np|numpy|torch)\.inf", re.IGNORECASE)
MINUS_INFINITE = re.compile(rf"-(?:{INFINITE.pattern})|float\(['\"]-(?:inf|infinity)['\"]\)", re.IGNORECASE)
COUNTS_ITSELF = re.compile(r"last_epoch|load_state\b|load_checkpoint|start|resume")
"""Names by which a schedule may know its place without its state."""
LOADS_IN_PLACE = re.compile(r"^torch\.distributed\.checkpoint\.(?:\w+\.)?load(?:_state_dict)?$")
"""Functions that load a checkpoint into the tensors that they are given."""
FIRST_FACTORS = {"LinearLR": "start_factor", "ConstantLR": "factor"}
"""The schedules that multiply the learning rate that they find, each with the argument that says by what."""
PLACE_OF_RUN = re.compile(r"(?:\[|(?:get|pop)\()['\"](?:\w+_)?(?:epoch|step|iteration|it|round|update)s?['\"]")
"""How the place of a run is read from what was saved."""


def best_by_the_wrong_side(roles: Roles) -> Iterator[Fault]:
    """A checkpoint is kept where a loss is higher, or a score lower, than the best so far."""
    for node, function, value, kept_value, grows in _compared_with_the_best(roles):
        new, best = last_name(value), last_name(kept_value)
        kept = any(
            isinstance(part, ast.Assign) and (last_name(part.targets[0]), last_name(part.value)) == (best, new)
            for part in node.body
        )
        side = _side(roles, new, value, function)
        meant = re.search(r"max|highest" if grows else r"min|lowest", best)
        is_worst = side == ("lower" if grows else "higher") and not re.search(r"neg|minus", new)
        if new and kept and not meant and is_worst:
            worst = "highest" if side == "lower" else "lowest"
            says = f"{new} is better when {side}, and what is kept as the best has the {worst}"
            yield fault("best_is_worst", node.lineno, "certain", says)


def _compared_with_the_best(roles: Roles) -> Iterator[tuple[ast.If, str, ast.expr, ast.expr, bool]]:
    """Yield the tests against the best so far: with the function, the value, the best, and whether the best grows."""
    for function, node in with_functions(roles.script.tree):
        test = node.test if isinstance(node, ast.If) else None
        if not isinstance(node, ast.If) or not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        sides, operator = (test.left, test.comparators[0]), test.ops[0]
        bests = [bool(BEST.search(last_name(side))) for side in sides]
        if bests.count(True) == 1 and isinstance(operator, ast.Lt | ast.Gt | ast.LtE | ast.GtE):
            grows = isinstance(operator, ast.Gt | ast.GtE) == bests[1]
            yield node, function, sides[bests.index(False)], sides[bests.index(True)], grows


def never_better(roles: Roles) -> Iterator[Fault]:
    """The best so far begins at infinity, and is to be replaced by what is higher; or the other way round."""
    for node, _, _, kept_value, grows in _compared_with_the_best(roles):
        made = [made for made in roles.script.assignments if made.last == last_name(kept_value)]
        body = range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1)
        first = [other.value for other in made if other.line not in body]
        or_equal = isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.LtE | ast.GtE)
        if or_equal or len(first) != 1 or len(made) == 1:
            continue
        if (INFINITE if grows else MINUS_INFINITE).fullmatch(ast.unparse(first[0])):
            begin = "infinity, and nothing is higher" if grows else "minus infinity, and nothing is lower"
            says = f"{dotted(kept_value)} begins at {begin}: nothing is ever kept"
            yield fault("best_is_worst", node.lineno, "certain", says, lines=(first[0].lineno,))


def _side(roles: Roles, name: str, node: ast.expr, function: str) -> Better:
    """Return on which side what is compared with the best is better, where its name and how it is computed agree."""
    known = better_by_name(name)
    if not known and LOSS_LIKE.search(name):
        return ""
    if _adds_losses(roles, name):
        return agreed((known, "lower"))
    side = better_of(roles, node, function)
    return agreed((known, side)) if isinstance(node, ast.Subscript) else side


def _adds_losses(roles: Roles, name: str) -> bool:
    added = [made.value for made in roles.script.made(name) if made.adds]
    return bool(added) and all(LOSS_LIKE.search(ast.unparse(value)) for value in added)


def weights_kept_by_reference(roles: Roles) -> Iterator[Fault]:
    """The best weights are kept as references, which go on with the training."""
    for made in roles.script.assignments:
        kept = made.made_by.endswith(".state_dict")
        last = made.last
        if not kept or not made.conditions or not re.search(r"best", last, re.IGNORECASE):
            continue
        restored = any(
            call.method == "load_state_dict" and any(last_name(arg) == last for arg in call.node.args)
            for call in roles.script.calls
        )
        saved_here = any(
            call.method == "save" and call.function == made.function and call.conditions == made.conditions
            for call in roles.script.calls
        )
        if restored and not saved_here and roles.trains_by_hand:
            says = f"{made.target} refers to the weights themselves: what is kept as the best changes with each step"
            yield fault("weights_kept_by_reference", made.line, "certain", says)


def state_not_loaded(roles: Roles) -> Iterator[Fault]:
    """Weights are put into the mapping that `state_dict` returns, or into a copy, and nothing loads or saves it.

    Source: `torch.nn.Module.state_dict` returns a new mapping, whose entries are the tensors of the model.
    """
    if "state_dict" in roles.definitions:
        return
    for node in ast.walk(roles.script.tree):
        at_once = _put_into(node)
        if isinstance(at_once, ast.Call) and dotted(at_once.func).endswith(".state_dict"):
            says = f"{ast.unparse(at_once)} returns a new mapping: what is put into it does not reach the model"
            yield fault("state_not_loaded", getattr(node, "lineno", 0), "certain", says)
    for made in roles.script.assignments:
        scope = roles.definitions.get(last_part(made.function)) if made.function else roles.script.tree
        if scope is None or not re.fullmatch(r"\w+", made.target) or not _is_state(made.value):
            continue
        if any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(scope)):
            continue
        line = _changed_alone(scope, made.target)
        if line:
            says = f"weights are put into {made.target} (line {made.line}), which nothing loads or saves"
            yield fault("state_not_loaded", line, "likely", says)


def _put_into(node: ast.AST) -> ast.expr | None:
    """Return the mapping that a statement puts entries into: `x.update(…)` or `x[key] = …`."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value
    called = node.value if isinstance(node, ast.Expr) else None
    if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute) and called.func.attr == "update":
        return called.func.value
    return None


def _is_state(node: ast.expr) -> bool:
    """Say whether a value is the state of a model or a copy of it: `deepcopy(net.state_dict())`, `{k: v …}`."""
    if isinstance(node, ast.DictComp):
        node = node.generators[0].iter
    while isinstance(node, ast.Call):
        name = last_name(node)
        if name == "state_dict":
            return isinstance(node.func, ast.Attribute)
        if name in ("deepcopy", "dict", "OrderedDict") and node.args:
            node = node.args[0]
        elif name in ("copy", "items") and isinstance(node.func, ast.Attribute):
            node = node.args[0] if node.args else node.func.value
        else:
            return False
    return False


def _changed_alone(scope: ast.AST, name: str) -> int:
    """Return the line that puts entries into a mapping which is read for that alone; 0 where it is used otherwise."""
    lines = []
    allowed: set[int] = set()
    for node in ast.walk(scope):
        mapping = _put_into(node)
        if mapping is not None and dotted(mapping) == name and isinstance(mapping, ast.Name):
            lines.append(getattr(node, "lineno", 0))
            allowed |= {id(part) for part in ast.walk(node) if dotted(part) == name}
        elif isinstance(node, ast.For | ast.comprehension):
            through = node.iter
            if isinstance(through, ast.Call) and dotted(through.func) == f"{name}.keys":
                through = getattr(through.func, "value", through)
            allowed |= {id(through)} if isinstance(through, ast.Name) else set()
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            allowed |= {id(part) for part in node.comparators}
    reads = [node for node in walk(scope, ast.Name) if node.id == name and isinstance(node.ctx, ast.Load)]
    return lines[0] if lines and all(id(node) in allowed for node in reads) else 0


def made_anew_after_loading(roles: Roles) -> Iterator[Fault]:
    """A state is loaded into an optimizer, and the same line makes another one, which steps in its place."""
    for place, load in enumerate(roles.trace.events):
        loaded = [optimizer for optimizer in load.objects if optimizer.kind == "optimizer"]
        if load.action != "load" or not loaded:
            continue
        later = [event for event in roles.trace.events[place:] if event.entry == load.entry]
        stepped = {optimizer for event in later if event.action == "step" for optimizer in event.objects}
        for make in later if stepped.isdisjoint(loaded) else ():
            is_same_line = any(loading.line == make.line for loading in loaded)
            if make.action == "make" and stepped & make.objects and is_same_line:
                says = f"the optimizer into which line {load.line} loads its state is made anew, and starts without it"
                line = getattr(make.through[-1], "lineno", make.line) if make.through else make.line
                yield fault("made_anew_after_loading", line, "certain", says)
                return


def schedule_starts_over(roles: Roles) -> Iterator[Fault]:
    """A run that goes on loads the state of its optimizer, and its schedule begins anew."""
    trace = roles.trace
    loads = trace.of("load")
    resumed = [load for load in loads if any(loaded.kind == "optimizer" for loaded in load.objects)]
    loaded = {other for load in loads for other in load.objects}
    if not trace.is_complete or not resumed or any(other.kind in ("unknown", "schedule") for other in loaded):
        return
    for event in trace.of("schedule"):
        schedule = next(iter(event.objects))
        if not event.loops or event.entry != resumed[0].entry or "Plateau" in schedule.made_by:
            continue
        held = {
            part for given in _handed_on(trace) for part in (given, *objects_in(Items((*given.attributes.values(),))))
        }
        if _counts_itself(roles, trace, schedule) or schedule in held:
            continue
        says = f"a run that goes on loads its optimizer here, and {schedule.label} begins anew: nothing loads its state"
        yield fault("state_left_out", resumed[0].line_apart(event), "likely", says)
        return


def scheduled_after_loading(roles: Roles) -> Iterator[Fault]:
    """A schedule with a warm-up is made for an optimizer whose state was loaded before, and its own state is loaded.

    Source: making it scales the learning rate for step 0, and loading its state does not set that again
    (findings/schedulers_made_after_the_optimizer_was_loaded.sh).
    """
    events = roles.trace.events
    for place, load in enumerate(events):
        later = [event for event in events[place + 1 :] if event.entry == load.entry]
        restored = {part for event in later if event.action == "load" for part in event.objects}
        if load.action != "load" or load.loops or restored & load.objects:
            continue
        for plan in (event for event in later if event.action == "plan"):
            schedule = next(iter(plan.objects))
            moved = {part for value in schedule.given[:1] for part in objects_in(value)}
            if (
                _scales_at_first(plan)
                and moved & load.objects
                and any(each is schedule or schedule in objects_in(Items(each.given)) for each in restored)
            ):
                says = (
                    f"{schedule.label or schedule.made_by} is made after line {load.line} loaded the optimizer: it "
                    "scales the learning rate down as at step 0, and loading its own state does not undo that"
                )
                yield fault("scheduled_after_loading", plan.line, "certain", says, lines=(load.line,))
                return


def _scales_at_first(plan: Event) -> bool:
    """Say whether a schedule is one that multiplies the learning rate at step 0, and by another number than 1."""
    node = plan.node
    if not isinstance(node, ast.Call) or last_name(node) not in FIRST_FACTORS:
        return False
    name = FIRST_FACTORS[last_name(node)]
    given = keywords_of(node).get(name)
    given = node.args[1] if given is None and len(node.args) > 1 else given
    return given is None or constant_of(given) not in (1, None)


def _counts_itself(roles: Roles, trace: Trace, schedule: Object) -> bool:
    """Say whether a schedule is brought to its place without its state: by its arguments, or by steps of its own."""
    moves = [event for event in trace.of("schedule") if schedule in event.objects]
    trains = {event.loop_lines[:1] for event in trace.of("backward", "step")}
    ahead = any(event.loop_lines[:1] not in trains for event in moves)
    is_target_named = any(isinstance(event.node, ast.Call) and event.node.args for event in moves)
    made = [ast.unparse(call.node) for call in roles.script.calls if call.line == schedule.line]
    return ahead or is_target_named or any(map(COUNTS_ITSELF.search, made)) or "last_epoch" in roles.source


def optimizer_starts_over(roles: Roles) -> Iterator[Fault]:
    """A run that goes on loads its model and its place, and its optimizer begins anew."""
    trace = roles.trace
    loads = trace.of("load")
    if not trace.is_complete or not all(part.kind in ("model", "schedule") for load in loads for part in load.objects):
        return
    followed = next((load for load in loads if _is_trained_after(trace, load)), None)
    line = followed.line if followed is not None else 0 if loads else _line_of_models_alone(roles)
    if not line or not _goes_on(roles) or any(given.kind == "optimizer" for given in _handed_on(trace)):
        return
    says = "a run that goes on loads its model and its place here, and its optimizer begins anew"
    yield fault("state_left_out", line, "likely", says)


def moments_not_loaded(roles: Roles) -> Iterator[Fault]:
    """A distributed checkpoint is loaded into the state of a new optimizer, which has no place for moments yet.

    Source: findings/distributed_checkpoint_leaves_the_moments.sh.
    """
    if re.search(r"get_(?:optimizer_)?state_dict|init_optim_state|\.state\[", roles.source):
        return
    for call in roles.script.calls:
        if not any(map(LOADS_IN_PLACE.search, roles.trace.called.get(id(call.node), ()))):
            continue
        given = call.argument("state_dict", 0)
        state = entries_of(roles.source_of(given, call)) if given is not None else {}
        for value in state.values():
            saved = value.func if isinstance(value, ast.Call) and dotted(value.func).endswith(".state_dict") else None
            owner = dotted(saved.value if isinstance(saved, ast.Attribute) else value)
            stepped = any(step.owner == owner and step.order < call.order for step in roles.steps)
            if owner in roles.optimizers and not stepped and not any(run.loops for run in roles.runs(call)):
                says = f"{call.name}() fills what {owner} has, and a new optimizer has no moments: these are not loaded"
                fix = "get_state_dict() of torch.distributed.checkpoint.state_dict before, set_state_dict() after it"
                yield fault("state_left_out", call.line, "likely", says, fix=fix)


def _line_of_models_alone(roles: Roles) -> int:
    """Return the line where a function that trains loads its model, in a branch that a default leaves out.

    0 where anything else is loaded, or where the branch gives the optimizer or its schedule to a function.
    """
    loads = roles.script.named("load_state_dict")
    steps = [step for step in roles.steps if any(step.function == load.function for load in loads)]
    moved = {call.owner for call in (*steps, *roles.schedule_steps)}
    branches = {(load.function, load.conditions) for load in loads}
    given = {
        name
        for call in roles.script.calls
        if (call.function, call.conditions) in branches and call.conditions
        for argument in (*call.node.args, *call.keywords.values())
        for name in map(dotted, ast.walk(argument))
    }
    models = all(last_part(load.owner) in roles.model_names for load in loads)
    early = [load for load in loads if load.conditions and all(load.order < step.order for step in steps)]
    return early[0].line if early and steps and models and moved.isdisjoint(given) else 0


def _handed_on(trace: Trace) -> set[Object]:
    """Return what code of other files is given, which may load its state."""
    return {given for event in trace.of("escape") for given in event.objects}


def _is_trained_after(trace: Trace, load: Event) -> bool:
    later = trace.events[trace.events.index(load) :]
    return any(
        event.action == "step"
        and event.loops
        and (not load.loops or load.loops != event.loops[: len(load.loops)])
        and event.entry == load.entry
        and trace.steps_model(event, model)
        for event in later
        for model in load.objects
    )


def _texts(roles: Roles, value: ast.expr) -> list[str]:
    """Return how a value is written, and what a function of this file returns that gives it."""
    return [ast.unparse(part) for part in (value, *values_returned(roles.helper(value))) if part is not None]


def _goes_on(roles: Roles) -> bool:
    """Say whether the loop of a training begins where the run before it ended: `range(start, epochs)`."""
    starts = {
        dotted(loop.iter.args[0])
        for loop in walk(roles.script.tree, ast.For)
        if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 2
        if dotted(loop.iter) == "range" and isinstance(loop.iter.args[0], ast.Name | ast.Attribute)
    }
    read = [made for made in roles.script.assignments if any(map(PLACE_OF_RUN.search, _texts(roles, made.value)))]
    lasts = {last_part(start) for start in starts if "." in start}
    return any(made.target in starts or ("." in made.target and made.last in lasts) for made in read)
