"""Is the loss the one that is meant, and do labels, masks and vocabularies fit the inputs?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Assignment,
    Call,
    arguments_of,
    called_name,
    calls_in,
    constant_of,
    dotted,
    is_operation,
    keywords_of,
    last_name,
    last_names,
    last_part,
    method_of,
    names_in,
    only_value,
    past_methods,
    values_returned,
    walk,
)
from mldebug_mcp.script.facts import Facts, is_hiding
from mldebug_mcp.script.faults import MAX_JUDGED, Fault, fault
from mldebug_mcp.script.roles import MAX_NAMES_FOLLOWED, Roles, entries_of
from mldebug_mcp.script.shapes import shape_of
from mldebug_mcp.script.values import (
    Quantity,
    Tensor,
    Value,
    end_line_of,
    end_of,
    facts_of,
    models_through,
    plain_of,
    sign_of,
)

FORWARD = ("forward", "__call__", "call")
"""What PyTorch, Flax and Keras call the method that computes the outputs of a model."""
READY_MADE = re.compile(r"^(?:torchvision\.models\.(?!detection|segmentation|video|optical)\w+|timm\.create_model)$")
"""What makes a classifier that gives logits."""
ACTIVATIONS = {"Softmax": "softmax", "Sigmoid": "sigmoid"}
KEYS_OF_LAYERS = ("type", "kind", "name", "layer", "op")
"""Keys under which the settings of a layer name it."""
TARGET = re.compile(r"^(?:y|ys|yb|labels?|targets?|y_true|truth|gt|y_batch|batch_y|target_ids)$")
OUTPUT = re.compile(r"^(?:out|outs|outputs?|logits?|preds?|predictions?|y_?hat|y_pred|scores?|probs?)$")
OVER_CLASSES = ("argmax", "max", "sum", "mean", "gather", "topk", "sort")
"""Functions and methods that go along the axis of the classes."""
ELEMENTWISE_LOSSES = (
    "MSELoss", "mse_loss", "L1Loss", "l1_loss", "SmoothL1Loss", "smooth_l1_loss", "HuberLoss", "huber_loss",
)  # fmt: skip
"""Losses that broadcast outputs and targets of different shapes; PyTorch warns of some of them, and goes on."""
BROADCASTS = re.compile(
    r"^optax\.(?:losses\.)?(?:huber_loss|log_cosh|hinge_loss|sigmoid_binary_cross_entropy|sigmoid_focal_loss)$"
)
"""Losses of Optax that do so; its squared error stops instead."""
SAME_SHAPE = (
    "float", "double", "long", "to", "cuda", "detach", "clone", "clamp", "exp", "log", "sigmoid", "tanh", "sin", "cos",
)  # fmt: skip
SAME_OUTPUTS = ("view", "reshape", "flatten", "squeeze", "float", "contiguous", "transpose", "permute", "to")
"""Methods that leave the values of outputs as they are."""
RESHAPES = ("squeeze", "unsqueeze", "flatten", "view", "reshape", "ravel")
TALL = re.compile(r"\[:, None\]|(?:ones|zeros|full|Tensor|rand\w*)\([^\n]*, 1\)|\.to_numpy\(\)\[:, |\[\[['\"]")
"""What makes columns besides reshaping: a new axis, shapes that are written out, columns of a table by a list."""
MADE_BY_SIZE = ("rand", "randn", "zeros", "ones", "empty", "full", "uniform", "normal")
"""Functions that make an array of a size that they are given."""
MEAN_LOSSES = re.compile(r"(?:^|\.)(?:F|functional)\.(?:\w*loss|\w*cross_entropy\w*)$")
KERAS_LOSS = re.compile(r"(?:Sparse|Binary)?_?(?:Categorical)?_?Crossentropy$", re.IGNORECASE)
WEIGHT_OF_A_ROW = re.compile(
    r"mask|keep|valid|(?:^|_)(?:row|sample|example|item|instance|importance|is|class)_?w(?:eights?)?s?$|^weights$|^w[st]?$",
    re.IGNORECASE,
)
"""Names of weights that have a value for each row."""
MAX_PRODUCTS = 50
"""Products with weights of rows that are judged. Chosen: a script has a few."""
REDUCES = {"reduction", "reduce", "size_average"}
ALONE: dict[Quantity, str] = {
    "log_prob": "the loss is a log-probability without a minus: training makes the data less likely",
    "similarity": "the loss is a cosine similarity without a minus: training makes what belongs together less alike",
    "log_sigmoid": "the loss is a log-sigmoid without a minus: training makes the preferred less likely",
}
"""Quantities that a loss should make larger, where it is made of them alone."""


def activation_twice(roles: Roles) -> Iterator[Fault]:
    """A softmax or sigmoid stands before a loss that takes one itself; or none stands where one is needed."""
    for call in roles.script.calls:
        kind = _activation_taken(roles, call) if call.node.args else ""
        if not kind:
            continue
        given = roles.source_of(call.node.args[0], call)
        through = activation_of(roles, given, call)
        if kind == through:
            line = _line_of_activation(roles, call)
            here = "" if line == call.line else f" in line {call.line}"
            chosen = [at for text, at in roles.trace.chosen if kind in text.lower()]
            says = f"the loss{here} takes the {kind} itself, and is given one already"
            yield fault("activation_twice", line, "certain", says, lines=[call.line, *chosen])
        elif (kind, through) == ("log-probabilities", "softmax"):
            says = "the negative log-likelihood takes log-probabilities, and is given probabilities"
            yield fault("nll_of_probabilities", call.line, "certain", says)
        elif (kind, through) == ("log-probabilities", "logits"):
            says = "the negative log-likelihood takes log-probabilities, and is given the raw outputs of a layer"
            yield fault("nll_of_logits", call.line, "certain", says)
        elif (kind, through) == ("log-probabilities", "") and (model := _ready_made(roles, given)):
            says = f"the negative log-likelihood takes log-probabilities, and is given the raw outputs of {model}"
            yield fault("nll_of_logits", call.line, "certain", says)
        elif kind == "probabilities" and through in ("", "logits") and _gives_logits(roles, given):
            says = "binary cross-entropy takes probabilities, and nothing in the file makes any (sigmoid)"
            yield fault("bce_of_logits", call.line, "likely", says)


def _activation_taken(roles: Roles, call: Call) -> str:
    """Return the activation that a loss applies itself, or what it takes instead; empty for another call."""
    if roles.is_cross_entropy(call):
        return "softmax"
    if roles.loss_named(call, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits"):
        return "sigmoid"
    if roles.loss_named(call, "NLLLoss", "nll_loss", "CTCLoss", r"(?:F|functional)\.ctc_loss"):
        return "log-probabilities"
    return "probabilities" if roles.loss_named(call, "BCELoss", "binary_cross_entropy") else ""


def _gives_logits(roles: Roles, given: ast.expr) -> bool:
    """Say whether a model makes this value whose layers stand in the file, and no sigmoid is named anywhere."""
    if re.search("sigmoid", roles.source, re.IGNORECASE):  # a configuration may name it
        return False
    name = dotted(given.func) if isinstance(given, ast.Call) else ""
    return bool(name) and (roles.class_of(name) is not None or name in roles.sequentials)


def _ready_made(roles: Roles, given: ast.expr) -> str:
    """Return the model of a library of classifiers whose raw outputs a value is; empty for another value.

    It may have got another last layer, which alone is a linear one.
    """
    if re.search("log_?softmax", roles.source, re.IGNORECASE):
        return ""
    models = {model for event in roles.trace.of("forward") if event.node is given for model in event.objects}
    layers = [
        event.source
        for event in roles.trace.of("attach")
        if any(owner.is_related_to(model) for owner in event.objects for model in models)
    ]
    are_linear = all(layer is not None and layer.made_by == "torch.nn.Linear" for layer in layers)
    known = are_linear and all(READY_MADE.search(model.made_by) for model in models)
    return " and ".join(sorted(model.label for model in models)) if known else ""


def _line_of_activation(roles: Roles, call: Call) -> int:
    """Return where the activation stands that a loss is given; the loss itself where that is not known."""
    lines = {value.end_line for value in roles.trace.given.get(id(call.node), []) if isinstance(value, Tensor)} - {0}
    return lines.pop() if len(lines) == 1 else call.line


def activation_of(roles: Roles, given: ast.expr, call: Call) -> str:
    """Return what the first argument of a call is: "softmax", "sigmoid", "logits" of a layer, or "" if not known."""
    values = roles.trace.given.get(id(call.node), [])
    tensors = [value for value in values if isinstance(value, Tensor)]
    known = [value for value in tensors if value.is_known or value.ends in ("softmax", "sigmoid")]
    if known and len(known) == len(values):
        ends = {value.ends for value in known}
        return ends.pop() if len(ends) == 1 else ""
    outer = outermost_call(given)
    last = last_part(outer).lower()
    if last in ("softmax", "sigmoid"):
        return last
    if last in ("log_softmax", "logsoftmax") or not isinstance(given, ast.Call):
        return ""
    made_by = roles.class_of(outer)
    if made_by is not None:
        return _ends_in(made_by)
    if len(roles.modules) == 1 or re.search(r"(?:^|\.)(?:model|net|network|classifier|apply|apply_fn)$", outer):
        ends = {_ends_in(module) for module in roles.modules} - {""}
        own = _sequential_end(roles)
        return next(iter(ends), "") if len(ends) == 1 else own
    return _sequential_end(roles)


def outermost_call(node: ast.expr) -> str:
    """Return the name of the outermost call of an expression, past reshaping."""
    node = past_methods(node, SAME_OUTPUTS)
    return dotted(node) if isinstance(node, ast.Call) else ""


def _ends_in(module: ast.ClassDef) -> str:
    forward = method_of(module, *FORWARD)
    if forward is None:
        return ""
    for node in reversed(list(ast.walk(forward))):
        if isinstance(node, ast.Return) and node.value is not None:
            value = node.value
            if isinstance(value, ast.Name):
                assigned = [node.value for node in walk(forward, ast.Assign) if value.id in map(dotted, node.targets)]
                value = assigned[-1] if assigned else value
            called = outermost_call(value)
            last = last_part(called).lower()
            return last if last in ("softmax", "sigmoid") else _attribute_end(module, called)
    return ""


def _attribute_end(module: ast.ClassDef, called: str) -> str:
    """Return the activation at the end of a layer of a model, such as `self.net = nn.Sequential(..., nn.Softmax())`."""
    made = (node.value for node in walk(module, ast.Assign) if called in map(dotted, node.targets))
    return next(map(_module_end, made), "")


def _module_end(node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name = last_name(node)
    if name == "Sequential" and node.args:
        return _module_end(node.args[-1])
    return name.lower() if name in ("Softmax", "Sigmoid") else ""


def _sequential_end(roles: Roles) -> str:
    models = list(roles.sequentials.values())
    return _module_end(models[-1]) if len(models) == 1 else ""


def activation_of_a_configuration(roles: Roles) -> Iterator[Fault]:
    """A list of layers by name ends in an activation, and the loss of the script takes that itself."""
    taken = set()
    for call in roles.script.calls:
        if roles.is_cross_entropy(call):
            taken.add("softmax")
        elif roles.loss_named(call, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits"):
            taken.add("sigmoid")
    names = {name: kind for name, kind in _named_activations(roles).items() if kind in taken}
    if not names or next(activation_twice(roles), None) is not None:  # the layers were followed from their names
        return
    for node in ast.walk(roles.script.tree):
        parts = node.elts if isinstance(node, ast.List | ast.Tuple) else []
        name = _name_of_layer(parts[-1]) if len(parts) > 1 and all(map(_name_of_layer, parts)) else ""
        if name in names:
            says = f"these layers end in {name!r}, and the loss takes the {names[name]} itself"
            yield fault("activation_twice", parts[-1].lineno, "depends", says)


def _name_of_layer(part: ast.expr) -> str:
    """Return the name of a layer in a list: `"linear"`, `["linear", 10]`, `{"type": "linear"}`; empty for others."""
    if isinstance(part, ast.List | ast.Tuple) and part.elts:
        part = part.elts[0]
    elif isinstance(part, ast.Dict):
        kinds = [value for key, value in zip(part.keys, part.values, strict=True) if constant_of(key) in KEYS_OF_LAYERS]
        part = kinds[0] if kinds else part
    name = constant_of(part)
    return name if isinstance(name, str) else ""


def _named_activations(roles: Roles) -> dict[str, str]:
    """Return the names by which a script makes an activation: of a mapping, a comparison, or of `nn` itself."""
    found: dict[str, str] = {}
    for node in ast.walk(roles.script.tree):
        if isinstance(node, ast.Dict):
            pairs = [(constant_of(key), value) for key, value in zip(node.keys, node.values, strict=True)]
            found |= {
                name: kind for name, value in pairs if isinstance(name, str) and (kind := _activation_named(value))
            }
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and len(node.test.comparators) == 1:
            name = constant_of(node.test.comparators[0])
            made = [kind for statement in node.body for part in ast.walk(statement) if (kind := _activation_made(part))]
            if isinstance(node.test.ops[0], ast.Eq) and isinstance(name, str) and len(set(made)) == 1:
                found[name] = made[0]
        elif isinstance(node, ast.Call) and dotted(node.func) == "getattr" and node.args:
            found |= ACTIVATIONS if last_name(node.args[0]) == "nn" else {}
    return found


def _activation_named(node: ast.expr) -> str:
    """Return the activation that an entry of a mapping is, makes or returns; empty for another."""
    node = node.body if isinstance(node, ast.Lambda) else node
    if isinstance(node, ast.Call):
        return _activation_made(node)
    return ACTIVATIONS.get(last_name(node), "")


def _activation_made(node: ast.AST) -> str:
    """Return the activation that a call makes; empty for another part."""
    return ACTIVATIONS.get(last_name(node), "") if isinstance(node, ast.Call) else ""


def arguments_swapped(roles: Roles) -> Iterator[Fault]:
    """A loss is given the targets first and the outputs second."""
    for call in roles.script.calls:
        one_sided = roles.is_cross_entropy(call) or roles.loss_named(
            call, "NLLLoss", "nll_loss", "BCELoss", "BCEWithLogitsLoss", "binary_cross_entropy",
            "binary_cross_entropy_with_logits",
        )  # fmt: skip
        if not one_sided or len(call.node.args) < 2:
            continue
        first, second = (last_name(arg) for arg in call.node.args[:2])
        source = roles.source_of(call.node.args[0], call)
        computed = isinstance(source, ast.Call) and roles.calls_model(source)
        named = isinstance(call.node.args[0], ast.Name) and TARGET.search(first) and not computed
        outputs = OUTPUT.search(second) or (
            isinstance(call.node.args[1], ast.Call) and roles.calls_model(call.node.args[1])
        )
        if named and outputs:
            says = f"{call.name}() takes outputs first and targets second, and is given them the other way round"
            yield fault("arguments_swapped", call.line, "certain", says)


def statistics_swapped(roles: Roles) -> Iterator[Fault]:
    """A transform that takes the mean first and the deviation second is given them the other way round."""
    for call in roles.script.named("Normalize", "normalize"):
        names = [last_name(arg).lower() for arg in call.node.args[:2]]
        if len(names) == 2 and re.search(r"std|sigma|dev", names[0]) and re.search(r"mean|mu$|avg", names[1]):
            says = f"{call.name}() takes the mean first and the deviation second, and is given them the other way round"
            yield fault("arguments_swapped", call.line, "certain", says)


def divergence_of_what(roles: Roles) -> Iterator[Fault]:
    """F.kl_div is given probabilities where it takes log-probabilities, or the other way round."""
    for call in roles.script.calls:
        if not roles.loss_named(call, "KLDivLoss", "kl_div") or len(call.node.args) < 2:
            continue
        made = roles.losses.get(call.name)
        settings = (call.keywords, keywords_of(made.value) if made is not None else {})
        of_logs = any("log_target" in given and constant_of(given["log_target"]) is not False for given in settings)
        first, second = (_activation_before(roles, arg, call) for arg in call.node.args[:2])
        values = roles.trace.given.get(id(call.node), [])
        first = first or next((end for end in {end_of(value) for value in values} if len(values) > 0), "")
        if first == "softmax":
            says = f"{call.name}() takes log-probabilities first, and is given probabilities"
            yield fault("divergence_of_probabilities", call.line, "certain", says)
        elif second == "log_softmax" and not of_logs:
            says = f"{call.name}() takes probabilities second unless log_target=True, and is given log-probabilities"
            yield fault("divergence_of_probabilities", call.line, "certain", says)


def _activation_before(roles: Roles, node: ast.expr, call: Call) -> str:
    last = called_name(roles.source_of(node, call))
    return last if last in ("softmax", "log_softmax") else ""


def softmax_over_the_batch(roles: Roles) -> Iterator[Fault]:
    """Probabilities of classes are taken along the batch."""
    named = roles.script.named("softmax", "log_softmax", "Softmax", "LogSoftmax")
    for call in [call for call in named if _is_over_rows(call)][:MAX_JUDGED]:
        functional = _is_functional(call)
        node = call.node.args[0] if functional and call.node.args else ast.Name(call.owner)
        given = f"{ast.unparse(node)} {ast.unparse(roles.source_of(node, call))}"
        of_outputs = re.search(r"logit|output|\bouts?\b|pred|model\(|net\(|classifier|head\(|\bfc", given)
        one_row = re.search(r"\[[\w, -]*\w\]|squeeze|\[0\]|weight|alpha|router|gate|stack|att(?:n|ention)", given)
        last = call.method[:1].isupper() and _is_last(roles, call)
        if (of_outputs and not one_row) or last:
            of_rows = (
                roles.uses("DataLoader", "cross_entropy", "CrossEntropy", "NLLLoss") if last else _has_rows(roles, call)
            )
            says = f"{ast.unparse(call.node)[:60]} makes the rows of a batch add up to one, and not the classes"
            yield fault("softmax_over_batch", call.line, "likely" if of_rows else "depends", says)


def normalized_over_the_batch(roles: Roles) -> Iterator[Fault]:
    """Vectors that are compared with each other get the length one along the batch, and not each by itself."""
    for node in walk(roles.script.tree, ast.BinOp):
        if not isinstance(node.op, ast.MatMult):
            continue
        left = node.left
        while is_operation(left, ast.Mult):
            left = left.right  # a temperature stands before what it scales
        if isinstance(left, ast.Name):
            around = next((call for call in roles.script.calls if call.line >= node.lineno), None)
            left = roles.source_of(left, around) if around is not None else left
        call = roles.call_of(left)
        if call is None or call.method != "normalize" or not _is_of_all_pairs(node) or not _is_over_rows(call):
            continue
        says = f"{ast.unparse(call.node)[:60]} goes along the batch: what a row is like hangs on the others"
        yield fault("normalized_over_batch", call.line, "likely", says)


def _is_functional(call: Call) -> bool:
    return dotted(call.node.func).partition(".")[0] in ("F", "torch", "nn", "functional")


def _is_over_rows(call: Call) -> bool:
    """Say whether a softmax goes along the first axis."""
    place = 2 if call.method == "normalize" else 1
    axis = call.constant("dim", place if _is_functional(call) and not call.method[:1].isupper() else 0)
    return axis == 0 and not isinstance(axis, bool)


def _has_rows(roles: Roles, call: Call) -> bool:
    """Say whether the classes of what a call gives are its second axis: a loss or a choice of classes asks for that."""
    names = {assignment.target for assignment in roles.holders_of(call.node)}
    for node in ast.walk(roles.scope_of(call.function)):
        parts = list(ast.walk(node)) if isinstance(node, ast.Call | ast.Subscript) else []
        if not any(part is call.node or (isinstance(part, ast.Name) and part.id in names) for part in parts):
            continue
        if isinstance(node, ast.Subscript):
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else None
            second = isinstance(first, ast.Slice) and dotted(node.value) in names
        elif isinstance(node, ast.Call) and node is not call.node:
            axes = [constant_of(arg) for arg in arguments_of(node)]
            of_axis = any(axis in (1, -1) and not isinstance(axis, bool) for axis in axes)
            method = last_name(node)
            second = (of_axis and method in OVER_CLASSES) or bool(re.search(r"loss|entropy|kl_div|criterion", method))
        else:
            second = False
        if second:
            return True
    return False


def _is_last(roles: Roles, call: Call) -> bool:
    return any(
        isinstance(node, ast.Call) and dotted(node.func).endswith("Sequential") and node.args[-1:] == [call.node]
        for node in ast.walk(roles.script.tree)
    )


def all_rows_one_target(roles: Roles) -> Iterator[Fault]:
    """Similarities of all pairs of a batch have the same target in each row, where each row has its own partner."""
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2:
            continue
        scores, target = (roles.source_of(argument, call) for argument in call.node.args[:2])
        target = past_methods(target, ("long", "to"))
        same = last_name(target) in ("zeros", "zeros_like") and isinstance(target, ast.Call)
        if same and _is_of_all_pairs(scores):
            says = "each row of a matrix of all pairs is to be the most like row 0, and not the most like its partner"
            yield fault("all_rows_one_target", target.lineno, "likely", says)


def times_the_temperature(roles: Roles) -> Iterator[Fault]:
    """Similarities of all pairs are multiplied by a temperature below one, which they are to be divided by."""
    for node in ast.walk(roles.script.tree):
        if not is_operation(node, ast.Mult):
            continue
        for side, other in ((node.left, node.right), (node.right, node.left)):
            named = re.search(r"^(?:temp|temperature|tau)$", last_name(side), re.IGNORECASE)
            value = constant_of(roles.spelled_out(side)) if named else None
            if isinstance(value, float) and 0 < value < 1 and _is_of_all_pairs(other):
                says = f"similarities are multiplied by {ast.unparse(side)} = {value}: all rows look alike to the loss"
                yield fault("times_the_temperature", node.lineno, "likely", says)


def _is_of_all_pairs(node: ast.expr) -> bool:
    """Say whether a value is `a @ b.T`, scaled or not, to which no further columns are added."""
    if any(last_name(part) in ("cat", "concat", "hstack") for part in ast.walk(node)):
        return False
    products = [(part.right, part) for part in walk(node, ast.BinOp)]
    turned = [right for right, part in products if isinstance(part.op, ast.MatMult)]
    turned += [part.args[-1] for part in walk(node, ast.Call) if part.args and last_name(part) in ("mm", "matmul")]
    return any(re.search(r"\.(?:t\(\)|T|mT|transpose\([^()]*\))$", ast.unparse(right)) for right in turned)


def shapes_broadcast(roles: Roles) -> Iterator[Fault]:
    """Outputs of shape (n, 1) meet targets of shape (n,), which makes an n by n matrix of differences."""
    for call in roles.script.calls:
        sides = _compared(roles, call)
        if sides is None:
            continue
        shapes = [_shape(roles, arg, call) for arg in sides]
        if sorted(shapes) == ["column", "row"]:
            says = "one side of the loss has shape (n,) and the other (n, 1): the difference is a matrix of n by n"
            yield fault("shapes_broadcast", call.line, "certain", says)
    yield from _shapes_followed(roles)
    yield from _shapes_of_optax(roles)


def _shapes_followed(roles: Roles) -> Iterator[Fault]:
    """Yield differences of an output with a last axis of 1 and targets without it, through modules and helpers."""
    called = roles.trace.called.items()
    losses = {node for node, names in called if set(ELEMENTWISE_LOSSES) & set(map(last_part, names))}
    for node in ast.walk(roles.script.tree):
        parts: list[ast.expr] = []
        if is_operation(node, ast.Sub):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call) and id(node) in losses:
            parts = node.args[:2]
        sides = roles.trace.sides.get(id(node), []) if len(parts) == 2 else []
        sides = [pair for pair in sides if models_through(*pair)]
        places = {_place_of_output(pair) for pair in sides}
        output = places.pop() if len(places) == 1 else None
        if output is None:
            continue
        targets = {shape_of(pair[1 - output]) for pair in sides}
        made = [end_line_of(pair[output]) for pair in sides]
        if targets == {"pairs"}:
            says = "one side has shape (n, 1), and the other, made of (n,) and (n, 1), is a matrix of n by n"
            yield fault("shapes_broadcast", parts[0].lineno, "likely", says, lines=made)
        elif targets == {"row"}:
            says = "one side has shape (n,), and the other, of one output, (n, 1): the difference is a matrix of n by n"
            yield fault("shapes_broadcast", parts[0].lineno, "likely", says, lines=made)
        elif targets == {""} and (line := _met_as_a_row(roles, [facts_of(pair[1 - output]).source for pair in sides])):
            says = f"this side has shape (n, 1), and line {line} compares the other with outputs of shape (n,)"
            yield fault("shapes_broadcast", parts[0].lineno, "likely", says)
        elif targets == {""} and _made_a_column_in_evaluation(roles, parts[1 - output]):
            says = "one output has shape (n, 1), and evaluation gives the targets that shape, which training does not"
            yield fault("shapes_may_broadcast", parts[0].lineno, "depends", says)
        elif targets == {""} and not _brings_into_columns(roles):
            says = "the model has one output, of shape (n, 1), and nothing in the file gives the targets that shape"
            yield fault("shapes_may_broadcast", parts[0].lineno, "depends", says)


def _shapes_of_optax(roles: Roles) -> Iterator[Fault]:
    """Yield losses of Optax that compare each output with each label; its squared error refuses such shapes.

    Source: findings/optax_losses_of_a_column.sh.
    """
    for call in roles.script.calls:
        named = any(map(BROADCASTS.search, roles.trace.called.get(id(call.node), ())))
        if not named or len(call.node.args) < 2:
            continue
        pairs = roles.trace.sides.get(id(call.node), [])
        shapes = []
        for place, arg in enumerate(call.node.args[:2]):
            followed = {shape_of(pair[place]) for pair in pairs} if pairs else {""}
            shape = followed.pop() if len(followed) == 1 else ""
            shapes.append(shape if shape in ("row", "column") else _shape(roles, arg, call))
        if not shapes[0] and _ends_in_one_unit(roles, roles.source_of(call.node.args[0], call)):
            shapes[0] = "column"
        if sorted(shapes) == ["column", "row"]:
            says = "one side has shape (n,), and the other (n, 1): the loss compares each output with each label"
            yield fault("shapes_broadcast", call.line, "likely", says)


def _ends_in_one_unit(roles: Roles, node: ast.expr) -> bool:
    """Say whether a value is the output of the one model of a file, of JAX, whose last layer has one unit."""
    applied = isinstance(node, ast.Call) and last_name(node) in ("apply", "apply_fn")
    methods = [part for module in roles.modules for part in module.body if getattr(part, "name", "") == "__call__"]
    if not applied or len(roles.modules) != 1 or len(methods) != 1:
        return False
    layers = [node.func for node in values_returned(methods[0]) if isinstance(node, ast.Call)]
    return len(layers) == len(values_returned(methods[0])) and all(
        isinstance(layer, ast.Call)
        and last_name(layer) == "Dense"
        and 1 in [constant_of(arg) for arg in arguments_of(layer)]
        for layer in layers
    )


def _met_as_a_row(roles: Roles, sources: list[str]) -> int:
    """Return the line where data of the same source meet an output of shape (n,); 0 where they never do."""
    for node in ast.walk(roles.script.tree) if sources[0] and len(set(sources)) == 1 else ():
        for pair in roles.trace.sides.get(id(node), []):
            rows = [shape_of(side) == "row" for side in pair]
            if any(
                row and facts_of(other).source == sources[0] and not shape_of(other)
                for row, other in zip(rows, reversed(pair), strict=True)
            ):
                return getattr(node, "lineno", 0)
    return 0


def _place_of_output(sides: tuple[Value, Value]) -> int | None:
    """Return which of two sides is an output of one column, where the other has no gradient."""
    outputs = [shape_of(side) == "column" and bool(models_through(side)) for side in sides]
    learned = [bool(models_through(side)) for side in sides]
    return outputs.index(True) if True in outputs and learned.count(True) == 1 else None


def _made_a_column_in_evaluation(roles: Roles, target: ast.expr) -> bool:
    """Say whether a function without gradients brings targets of the same name into the shape (n, 1)."""
    made = roles.script.made(target.id) if isinstance(target, ast.Name) else []
    calls = [call for assignment in made if (call := roles.call_of(assignment.value)) is not None]
    return any(_shape_after(call.method, call.node) == "column" and roles.gradients_off(call) for call in calls)


def _compared(roles: Roles, call: Call) -> tuple[ast.expr, ast.expr] | None:
    """Return outputs and targets that a loss compares element by element, one that is written out as well."""
    if roles.loss_named(call, *ELEMENTWISE_LOSSES):
        return (call.node.args[0], call.node.args[1]) if len(call.node.args) >= 2 else None
    if call.method != "mean" or not roles.trains_by_hand or roles.gradients_off(call):
        return None
    inner = call.node.args[0] if call.node.args else call.node.func
    inner = inner.value if isinstance(inner, ast.Attribute) else inner
    if is_operation(inner, ast.Pow):
        difference = inner.left
    elif isinstance(inner, ast.Call) and last_name(inner) in ("square", "pow", "abs"):
        of_library = dotted(inner.func).partition(".")[0] in ("torch", "jnp", "F")
        difference = inner.args[0] if of_library and inner.args else getattr(inner.func, "value", inner)
    else:
        return None
    if not is_operation(difference, ast.Sub):
        return None
    names = {last_name(difference.left), last_name(difference.right)}
    compares = any(re.search(r"pred|out|y_?hat|logit|score|est", name) for name in names) and any(
        re.search(r"^y|target|label|true|truth|price", name) for name in names
    )
    return (difference.left, difference.right) if compares else None


def _shape(roles: Roles, node: ast.expr, call: Call, depth: int = MAX_NAMES_FOLLOWED) -> str:
    """Return the shape of a value as far as its outermost operation tells it: "row" (n,), "column" (n, 1) or ""."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.Name):
        source = roles.source_of(node, call)
        parts = [source] if source is not node else []
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Subscript | ast.Attribute):
        return _shape_of_part(node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in SAME_SHAPE:
            of_library = dotted(node.func.value) in ("torch", "np", "numpy") and node.args
            parts = [node.args[0]] if of_library else [node.func.value]
        elif node.func.attr == "gather" and len(node.args) == 2 and constant_of(node.args[0]) in (1, -1):
            parts = [node.args[1]]
        else:
            return _shape_after(node.func.attr, node)
    shapes = {_shape(roles, part, call, depth - 1) for part in parts} - {""} if depth else set()
    return shapes.pop() if len(shapes) == 1 else ""


def _shape_of_part(node: ast.Subscript | ast.Attribute) -> str:
    """Return the shape of a part: `x[:, 0]`, `x[:, None]`, `x.max(1)[0]`, `x.max(1).values`."""
    if isinstance(node, ast.Attribute):
        reduced = node.value if node.attr in ("values", "indices") else None
    else:
        place = ast.unparse(node.slice)
        if re.fullmatch(r"\(?(?::|\.\.\.), (?:0|-1)\)?", place):
            return "row"
        if re.fullmatch(r"\(?:, (?:0?:1|1:2|-1:)\)?", place):
            return "column"
        if re.fullmatch(r"\(?:, (?:None|\[0\]|np\.newaxis)\)?|\(?:, None\)", place):
            return "column"
        reduced = node.value if place in ("0", "1") else None
    if isinstance(reduced, ast.Call) and isinstance(reduced.func, ast.Attribute):
        return _shape_after(reduced.func.attr, reduced) if reduced.func.attr in ("max", "min") else ""
    return ""


def _shape_after(method: str, node: ast.Call) -> str:
    """Return the shape of a matrix of n rows after a method that says it."""
    keywords = {keyword.arg: constant_of(keyword.value) for keyword in node.keywords}
    places = [constant_of(arg) for arg in node.args]
    axis = keywords.get("dim", places[0] if places else None)
    if method == "squeeze":
        return "row" if axis in (None, 1, -1) else ""
    if method in ("flatten", "ravel"):
        return "" if node.args or node.keywords else "row"
    if method in ("view", "reshape"):
        return {(-1,): "row", (-1, 1): "column"}.get(tuple(places), "")  # type: ignore[arg-type]
    if method == "unsqueeze":
        return "column" if axis in (1, -1) else ""
    if method in ("max", "min", "amax", "sum", "mean", "argmax") and axis in (1, -1):
        return "column" if keywords.get("keepdim") is True or True in places[1:] else "row"
    return ""


def _is_column_by_size(call: Call) -> bool:
    """Say whether an array of the shape (n, 1) is made: `torch.rand(n, 1)` or `np.zeros((n, 1))`."""
    tuples = [arg for arg in (*call.node.args, *call.keywords.values()) if isinstance(arg, ast.Tuple | ast.List)]
    sizes = [list(tuples[-1].elts)] if tuples else [call.node.args]
    return any(len(size) >= 2 and constant_of(size[-1]) == 1 for size in sizes)


def _brings_into_columns(roles: Roles) -> bool:
    """Say whether the file brings anything into the shape (n, 1)."""
    made = any(map(_is_column_by_size, roles.script.named(*MADE_BY_SIZE)))
    reshaped = any(_shape_after(call.method, call.node) == "column" for call in roles.script.named(*RESHAPES))
    return made or reshaped or bool(TALL.search(roles.source))


def reductions_mixed(roles: Roles) -> Iterator[Fault]:
    """A mean over all elements and a sum over all elements are added without a weight."""
    for line, summed in dict.fromkeys(roles.trace.reductions):
        says = f"a mean over all elements and a sum over all of them (line {summed}) are added"
        yield fault("reductions_mixed", line, "likely", says, lines=(summed,))


def returned(roles: Roles) -> Iterator[Assignment]:
    """Yield what functions return, as assignments to no name."""
    for function in ast.walk(roles.script.tree):
        if isinstance(function, ast.FunctionDef):
            inside = [call for call in roles.script.calls if last_part(call.function) == function.name]
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None and inside:
                    order = inside[-1].order + 1
                    yield Assignment("", node.value, node.lineno, order, (), inside[-1].function)


def keras_logits(roles: Roles) -> Iterator[Fault]:
    """What the last layer of a Keras model gives out and what its loss takes differ: logits, or probabilities."""
    compiled = [call for call in roles.script.named("compile") if "loss" in call.keywords]
    if len(compiled) != 1:
        return
    compiled_call = compiled[0]
    loss = roles.source_of(compiled_call.keywords["loss"], compiled_call)
    name = constant_of(loss) if isinstance(loss, ast.Constant) else dotted(loss) if isinstance(loss, ast.Call) else ""
    layers = [call for call in roles.script.named("Dense") if call.order < compiled_call.order]
    if not isinstance(name, str) or not KERAS_LOSS.search(last_part(name)) or not layers:
        return
    logits = isinstance(loss, ast.Call) and any(
        keyword.arg == "from_logits" and constant_of(keyword.value) is True for keyword in loss.keywords
    )
    activation = roles.value_of(layers[-1].keywords.get("activation"))
    if logits and activation in ("softmax", "sigmoid"):
        says = f"the last layer has a {activation}, and the loss with from_logits=True applies it again"
        yield fault("activation_twice", loss.lineno, "certain", says)
    plain = "activation" not in layers[-1].keywords and len(layers[-1].node.args) < 2
    named = roles.script.named("Softmax", "Activation", "softmax", "sigmoid", "load_model", "from_config")
    if not logits and plain and not named:
        says = "the last layer gives logits, and the loss without from_logits=True takes probabilities"
        yield fault("logits_as_probabilities", loss.lineno, "likely", says)


def class_weights_of_single_rows(roles: Roles) -> Iterator[Fault]:
    """Classes are weighted in a mean over the weights of a batch, and each batch is one row: the weight cancels.

    Source: findings/class_weights_of_single_rows.sh.
    """
    for name, made in roles.losses.items():
        weighs = dotted(made.value).endswith(("CrossEntropyLoss", "NLLLoss"))
        given = keywords_of(made.value)
        if not weighs or "weight" not in given or "reduction" in given or "ignore_index" in given:
            continue
        for call in roles.script.calls:
            loader = _loader_around(roles, call) if call.name == name and len(call.node.args) > 1 else None
            outputs = roles.source_of(call.node.args[0], call) if loader is not None else None
            if loader is None or not isinstance(outputs, ast.Call) or not _ends_in_classes(roles, outputs):
                continue
            if isinstance(call.node.args[1], ast.Name) and _one_row(roles, loader):
                says = (
                    "the mean is divided by the weights of the labels in the batch, and a batch is one row "
                    f"(line {loader.line}): the weights of classes do nothing"
                )
                yield fault("class_weights_of_single_rows", made.line, "likely", says, lines=(loader.line, call.line))
                break


def _loader_around(roles: Roles, call: Call) -> Call | None:
    """Return what made the loader that the innermost loop around a call goes through."""
    through = roles.script.loops.get(call.loops[-1], "") if call.loops else ""
    for name, made in roles.loaders.items():
        if re.search(rf"\b{re.escape(name)}\b", through):
            return roles.call_of(made.value)
    return None


def _one_row(roles: Roles, loader: Call) -> bool:
    if "torch_geometric" in roles.source or {"batch_sampler", "collate_fn"} & set(loader.keywords):
        return False
    given = loader.argument("batch_size", 1)
    return not loader.is_spread and (given is None or constant_of(roles.spelled_out(given)) == 1)


def _ends_in_classes(roles: Roles, outputs: ast.Call) -> bool:
    """Say whether a call is of a model of this file whose last layer is linear, so that a row has one label."""
    name = dotted(outputs.func)
    model = roles.sequentials.get(name)
    if isinstance(model, ast.Call):
        return bool(model.args) and dotted(model.args[-1]).endswith("Linear")
    value = only_value(method_of(roles.class_of(name), "forward"))
    last = dotted(value) if isinstance(value, ast.Call) else ""
    layers = {made.target: dotted(made.value) for made in roles.script.made(last)}
    return bool(layers) and all(made.endswith("Linear") for made in layers.values())


def weights_on_a_mean(roles: Roles) -> Iterator[Fault]:
    """Weights or a mask of the rows meet a loss that is their mean already."""
    products = [
        node
        for node in walk(roles.script.tree, ast.BinOp)
        if isinstance(node.op, ast.Mult) and (_weighs_rows(node.left) or _weighs_rows(node.right))
    ]
    for node in products[:MAX_PRODUCTS]:
        for side, weight in ((node.left, node.right), (node.right, node.left)):
            loss = _called_loss(roles, side, node)
            if loss is None or not _weighs_rows(weight):
                continue
            if _is_reduced(roles, node):
                says = f"{ast.unparse(weight)[:40]} weights a mean: all rows count alike, as the loss has no rows left"
                yield fault("weights_on_a_mean", node.lineno, "likely", says)


def _called_loss(roles: Roles, node: ast.expr, within: ast.AST) -> Call | None:
    """Return the call of a loss that gives a mean, which a value is; by name as well."""
    around = next((call for call in roles.script.calls if call.line >= getattr(within, "lineno", 0)), None)
    source = roles.source_of(node, around) if around is not None else node
    call = roles.call_of(source)
    if call is None:
        return None
    made = roles.losses.get(call.name)
    if made is not None:
        return None if REDUCES & set(keywords_of(made.value)) else call
    return call if MEAN_LOSSES.search(call.name) and not REDUCES & set(call.keywords) else None


def _weighs_rows(node: ast.expr) -> bool:
    """Say whether a factor has a value for each row, by its name."""
    names = last_names(node)
    reduced = any(last_part(name) in ("mean", "sum", "item", "max") for name in calls_in(node))
    of_config = isinstance(node, ast.Attribute) and not dotted(node).startswith("self.")
    return not reduced and not of_config and any(WEIGHT_OF_A_ROW.search(name) for name in names)


def _is_reduced(roles: Roles, product: ast.BinOp) -> bool:
    """Say whether a product is reduced afterwards, as one of rows is: `(loss * mask).mean()`, `/ mask.sum()`."""
    for node in ast.walk(roles.script.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("mean", "sum"):
            if any(part is product for part in (node.func.value, *node.args)):
                return True
        elif is_operation(node, ast.Div):
            total = any(last_part(name) == "sum" for name in calls_in(node.right))
            inside = any(part is product for part in ast.walk(node.left))
            if total and inside:
                return True
    return any(
        made.value is product
        and any(call.owner == made.target and call.method in ("mean", "sum") for call in roles.script.calls)
        for made in roles.script.assignments
    )


def loss_has_wrong_sign(roles: Roles) -> Iterator[Fault]:
    """A part of the loss is made larger where it should be made smaller, or the other way round."""
    if "maximize=True" in roles.source:
        return
    if not roles.steps and not roles.uses("jax", "Trainer", "optax"):
        return
    for event in roles.trace.of("loss"):
        signs: dict[Quantity, dict[int, int]] = {}
        for term in event.terms:
            signs.setdefault(term.quantity, {})[term.sign] = term.line
        alone = {quantity: next(iter(by_sign.items())) for quantity, by_sign in signs.items() if len(by_sign) == 1}
        sign = {quantity: sign for quantity, (sign, _) in alone.items()}
        lines = {quantity: line for quantity, (_, line) in alone.items()}
        whole = sign.get("other") == -1 or ("log_prob" not in sign and _is_negated_sum(roles, event.node))
        ascends = whole and set(sign.values()) == {-1}  # an attack makes all of a loss larger
        if sign.get("kl") == -1 and not ascends:
            says = "the divergence has a minus in the loss: training makes it as large as it can"
            yield fault("loss_sign", lines["kl"], "likely", says)
        if sign.get("policy") == 1:
            says = "log-probabilities times advantages are made smaller: good actions become less likely"
            yield fault("loss_sign", lines["policy"], "likely", says)
        if sign.get("entropy") == 1 and "policy" in sign:
            says = "the entropy of the policy is added to the loss: training takes exploration away"
            yield fault("entropy_sign", lines["entropy"], "likely", says)
        for quantity, says in ALONE.items():
            if set(signs) == {quantity} and sign.get(quantity) == 1 and not _is_bounded(roles, lines[quantity]):
                yield fault("loss_sign", lines[quantity], "likely", says)


def _is_bounded(roles: Roles, line: int) -> bool:
    """Say whether a quantity counts above a bound alone, as that of pairs which do not belong together does."""
    statements = [node for node in walk(roles.script.tree, ast.stmt) if node.lineno == line]
    return any(re.search(r"clamp|relu|max\(|abs\(", ast.unparse(node)) for node in statements)


def _is_negated_sum(roles: Roles, node: ast.AST) -> bool:
    """Say whether gradients are computed of a sum that has a minus as a whole: `-1.0 * (a + b)`."""
    names = names_in(node)
    for made in roles.script.assignments:
        value = made.value
        parts: list[ast.expr] = []
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
            parts = [value.operand]
        elif is_operation(value, ast.Mult) and sign_of(value) < 0:
            parts = [value.left, value.right]
        if made.target in names and any(is_operation(part, ast.Add) for part in parts):
            return True
    return False


# Do labels, masks and vocabularies fit the inputs: what is predicted, padded, hidden, or a target of diffusion?


CAUSAL = re.compile(r"ForCausalLM|LMHeadModel")
"""Models of Transformers that shift `labels` themselves."""
PADS = re.compile(
    r"(?:^|\.)(?:pad_sequence|pad_packed_sequence|full_like|full)$|tokenizer\.pad$|(?:F|functional)\.pad$"
)
OTHER_FORMS = ("view", "reshape", "flatten", "contiguous", "float", "long", "to", "transpose", "permute")
"""Methods after which labels, or the outputs for them, are the same in another form."""
FLATTENS = ("view", "reshape", "flatten")
TRIANGLE = re.compile(r"\btri[ul]\(")
TRUE_HIDES = ("src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask", "memory_key_padding_mask")
"""Masks of the attention of PyTorch that are true where places are left out. Source: `torch.nn.MultiheadAttention`."""
SDPA = "scaled_dot_product_attention"
"""The attention of PyTorch whose mask is true where places take part."""
LIBRARIES = ("torch", "np", "numpy", "jnp")
MASK_TOKEN = re.compile(r"^mask$|mask_?(?:token|id|idx|index|value)", re.IGNORECASE)
FAMILIES = (
    "distilroberta", "xlm-roberta", "roberta", "deberta-v3", "deberta", "albert", "electra", "camembert", "bert",
    "gpt2", "gpt-neox", "pythia", "gpt-neo", "flan-t5", "mt5", "t5", "bart", "pegasus", "llama-3", "llama-2",
    "mistral", "qwen2", "qwen3", "gemma", "phi-2", "phi-3", "bloom", "falcon", "xlnet", "whisper", "wav2vec2",
)  # fmt: skip
"""Words in names of pretrained models; those with different words have different vocabularies, a few apart."""
SHARED_VOCABULARIES = {
    "distilroberta": "roberta", "flan-t5": "t5", "pythia": "gpt-neox", "gpt-neo": "gpt2", "electra": "bert",
    "bart": "roberta",
}  # fmt: skip
"""Families that share a vocabulary with another."""
RESIZES = ("resize_token_embeddings", "setup_chat_format", "resize", "smart_tokenizer_and_embedding_resize")


def labels_shifted(roles: Roles) -> Iterator[Fault]:
    """Labels are shifted twice, or not at all."""
    for call in roles.script.calls:
        labels, ids = call.argument("labels"), call.argument("input_ids", 0)
        if call.name == "dict" or labels is None or ids is None:
            continue
        if (_cut(roles, labels, call), _cut(roles, ids, call)) == ("first", "last"):
            says = "labels are shifted by one here, and a model that takes `labels` shifts them again"
            yield fault("shifted_twice", call.line, "certain", says)
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2:
            continue
        outputs, targets = (
            roles.source_of(past_methods(argument, OTHER_FORMS), call) for argument in call.node.args[:2]
        )
        target = _alias(roles, past_methods(call.node.args[1], OTHER_FORMS), call)
        parts = (*call.node.args[:2], outputs, targets)
        bases = [ast.unparse(past_methods(part, OTHER_FORMS)) for part in getattr(outputs, "args", ())]
        wanted = past_methods(call.node.args[1], OTHER_FORMS)
        text = ast.unparse(wanted) if isinstance(wanted, ast.Subscript) else ""
        if text in bases and re.search(r"\b1:\]", text):
            says = f"the model is given {text}, and the loss asks it for the same"
            yield fault("not_shifted", outputs.lineno, "likely", says, lines=(call.line,))
            continue
        sliced = any("[" in ast.unparse(part) for part in parts)
        if sliced or not isinstance(outputs, ast.Call) or not isinstance(target, ast.Name):
            continue
        of_features = bool(outputs.args) and isinstance(outputs.args[0], ast.Call)  # a margin head is given labels
        of_features |= _is_given_with_others(outputs, target.id) and not _is_of_tokens(roles, call)
        given = arguments_of(outputs)
        inputs = {dotted(_alias(roles, expr, call)) for expr in given}
        hides = roles.uses("roll", "mask_tokens", "mlm") or any(map(_shifts_inside, roles.modules))
        if target.id in inputs and not of_features and not hides and not _has_unknown_part(roles, outputs, call):
            says = f"the model is given {target.id}, and the loss asks it for {target.id} itself: nothing is shifted"
            yield fault("not_shifted", call.line, "likely", says)


def _alias(roles: Roles, node: ast.expr, call: Call) -> ast.expr:
    """Return the first name of what a name stands for: that of `tokens` for `x` after `x, y = tokens, tokens`."""
    for _ in range(MAX_NAMES_FOLLOWED):
        source = roles.source_of(node, call)
        made = roles.script.assigned_from(source)
        if not isinstance(source, ast.Name) or made is None or made.place is not None:
            break
        node = source
    return node


def _is_given_with_others(outputs: ast.Call, target: str) -> bool:
    """Say whether a model is given the target after something else, as one with a margin head is."""
    return bool(outputs.args) and dotted(outputs.args[0]) != target and target in map(dotted, outputs.args[1:])


def _has_unknown_part(roles: Roles, outputs: ast.Call, call: Call) -> bool:
    """Say whether a model of this file is made of parts that are of neither PyTorch nor Transformers."""
    name = dotted(outputs.func)
    own = roles.definitions.get(call.function.partition(".")[0]) if name == "self" else roles.class_of(name)
    made = {dotted(node) for node in walk(own, ast.Call)} if own is not None else set()
    classes = {part for part in made if part[:1].isupper() and part not in roles.definitions}
    return any(
        not roles.is_imported_from("torch", part) and not roles.is_imported_from("transformers", part)
        for part in classes
    )


def _shifts_inside(module: ast.ClassDef) -> bool:
    """Say whether a model leaves out the last place of something, as one does that shifts its own inputs."""
    ends = [constant_of(node.upper) for node in walk(module, ast.Slice) if node.lower is None]
    return -1 in ends


def _cut(roles: Roles, node: ast.expr, call: Call, depth: int = MAX_NAMES_FOLLOWED) -> str:
    """Return which end a slice along time leaves out: "first", "last" or "".

    Names, padding, and what is put into a list, are followed.
    """
    source = roles.source_of(node, call)
    text = ast.unparse(source).replace(" ", "")
    if re.search(r"\[(?:[^\]]*,)?1:\]", text):
        return "first"
    if re.search(r"\[(?:[^\]]*,)?:-1\]", text):
        return "last"
    if isinstance(source, ast.Call) and source.args and depth:
        return _cut(roles, source.args[0], call, depth - 1)
    put = [other for other in roles.script.named("append") if other.owner == dotted(node) != ""] if depth else []
    cuts = {_cut(roles, other.node.args[0], other, 0) for other in put if other.function == call.function}
    return cuts.pop() if len(cuts) == 1 else ""


def shifted_in_the_data(roles: Roles) -> Iterator[Fault]:
    """A data set or collator shifts the labels by one, and a model that takes `labels` does so again."""
    causal = any(CAUSAL.search(call.name) for call in roles.script.calls)
    if not causal or roles.uses("compute_loss") or not (roles.uses("Trainer") or _gives_labels(roles)):
        return
    for function in walk(roles.script.tree, ast.FunctionDef):
        inside = [call for call in roles.script.calls if last_part(call.function) == function.name]
        within = inside[-1] if inside else _no_call(roles, function)
        for node in ast.walk(function):
            for inputs, labels in _pairs(node):
                filled = _filled_shifted(function, inputs, labels)
                if filled is not None:
                    says = "labels are filled one place early here, and a model that takes `labels` shifts them again"
                    yield fault("shifted_twice", filled.lineno, "certain", says)
                if _cut(roles, inputs, within) == "last" and _cut(roles, labels, within) == "first":
                    line = roles.source_of(labels, within).lineno
                    says = "labels are shifted by one here, and a model that takes `labels` shifts them again"
                    yield fault("shifted_twice", line, "certain", says)


def shifted_on_the_way(roles: Roles) -> Iterator[Fault]:
    """Targets leave out their first place twice on the way from the data to the loss, or once before a model does."""
    for call in roles.script.calls:
        sides: list[tuple[Value, Value]] = []
        places = 2
        if roles.is_cross_entropy(call):
            sides = roles.trace.sides.get(id(call.node), [])
        elif any(CAUSAL.search(name) for name in roles.trace.called.get(id(call.node), ())):
            settings, places = roles.trace.settings.get(id(call.node), {}), 1
            inputs = settings.get("input_ids") or roles.trace.given.get(id(call.node), [])
            sides = list(zip(inputs, settings.get("labels", []), strict=False))
        for inputs_facts, targets in ((facts_of(side[0]), facts_of(side[1])) for side in sides):
            same = bool(targets.source) and inputs_facts.source == targets.source
            if same and len(targets.shifts) - len(inputs_facts.shifts) == places:
                first = targets.shifts[len(inputs_facts.shifts)]
                again = "here" if places == 2 else "by the model that takes `labels`"
                says = f"targets are shifted by one in line {first}, and {again} once more"
                line = call.line if "labels" in call.keywords else targets.shifts[-1]
                yield fault("shifted_twice", line, "certain", says, fix="shift in one place alone")
                break


def _filled_shifted(function: ast.FunctionDef, inputs: ast.expr, labels: ast.expr) -> ast.Assign | None:
    """Return what fills labels with a row one place early: from its second item on, or to its end where inputs are not.

    The inputs are filled with all of the row, or with all but its last item.
    """
    filled: dict[str, list[tuple[ast.Assign, str, str, str]]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            filled.setdefault(dotted(node.targets[0]), []).append((node, *_stretch(node.value)))
    given = {(row, first, end) for _, row, first, end in filled.get(dotted(inputs), ())}
    for node, row, first, end in filled.get(dotted(labels), ()):
        from_second = first == "1" and not end and (row, "", "") in given
        to_the_end = bool(first) and not end and (row, "", "-1") in given
        if from_second or to_the_end:
            return node
    return None


def _stretch(value: ast.expr) -> tuple[str, str, str]:
    """Return the row that a value is a stretch of, as it is written, with its first place and its end."""
    while isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        ends = ["" if end is None else ast.unparse(end) for end in (value.slice.lower, value.slice.upper)]
        return ast.unparse(value.value), ends[0], ends[1]
    return ast.unparse(value), "", ""


def _gives_labels(roles: Roles) -> bool:
    named = any("labels" in call.keywords and "loss" not in call.name.lower() for call in roles.script.calls)
    return named or bool(re.search(r"\(\*\*\w+\)\.loss\b", roles.source))


def _no_call(roles: Roles, function: ast.FunctionDef) -> Call:
    inside = [made for made in roles.script.assignments if last_part(made.function) == function.name]
    name, order = (inside[-1].function, inside[-1].order) if inside else (function.name, 0)
    return Call("", ast.Call(ast.Name(""), [], []), function.lineno, order, (), name, (), ())


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield inputs and labels that a function gives out: as entries of a mapping, or returned as a pair."""
    entries = entries_of(node)
    if "input_ids" in entries and "labels" in entries:
        yield entries["input_ids"], entries["labels"]
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        yield node.value.elts[0], node.value.elts[1]


def padding_in_loss(roles: Roles) -> Iterator[Fault]:
    """Targets are padded, and the loss counts their padding."""
    if "-100" in roles.source or roles.uses("masked_select", "pack_padded_sequence", "one_hot"):
        return
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2 or not _is_of_tokens(roles, call):
            continue
        made = roles.losses.get(call.name)
        settings = {**(_keywords_of(made.value) if made else {}), **call.keywords}
        if (
            {"ignore_index", "weight", "reduction"} & set(settings)
            or len(call.node.args) > 2
            or _is_masked(roles, call)
        ):
            continue
        padded = _padded_targets(roles, call)
        if padded:
            line = made.line if made is not None else call.line
            says = f"targets are padded ({padded}), and the loss counts the padding: it has no ignore_index"
            yield fault("padding_in_loss", line, "likely", says)


def padding_in_labels(roles: Roles) -> Iterator[Fault]:
    """Labels of a language model are a copy of padded inputs, whose padding counts unless it is -100."""
    if "-100" in roles.source or roles.uses("DataCollator", "SFTTrainer", "masked_fill", "where"):
        return
    causal = any(
        re.search(r"ForCausalLM|LMHeadModel|ForConditionalGeneration", call.name) for call in roles.script.calls
    )
    pads = [
        call
        for call in roles.script.calls
        if "tok" in call.name.lower() and constant_of(call.keywords.get("padding")) in (True, "max_length", "longest")
    ]
    for node in ast.walk(roles.script.tree) if causal and pads else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            continue
        key, source = constant_of(node.targets[0].slice), ast.unparse(node.value)
        if key == "labels" and re.fullmatch(r"[\w.]+(?:\['input_ids'\]|\.input_ids)(?:\.(?:copy|clone)\(\))?", source):
            says = f"labels are {source} with its padding (line {pads[0].line}), and the loss counts it"
            yield fault("padding_in_loss", node.lineno, "likely", says, fix="set labels of padding to -100")


def _keywords_of(node: ast.expr) -> dict[str, ast.expr]:
    """Return the keyword arguments of a loss, and its first argument as its weight."""
    if not isinstance(node, ast.Call):
        return {}
    return {
        **({"weight": node.args[0]} if node.args else {}),
        **keywords_of(node),
    }


def _is_of_tokens(roles: Roles, call: Call) -> bool:
    """Say whether a loss has a target for each place of a sequence: both are made flat, or classes put second."""
    outputs, targets = (roles.source_of(arg, call) for arg in call.node.args[:2])
    flat = [called_name(node) in FLATTENS for node in (outputs, targets)]
    second = called_name(outputs) in ("transpose", "permute", "swapaxes")
    return all(flat) or second


def _is_masked(roles: Roles, call: Call) -> bool:
    """Say whether a mask picks what the loss is given: `logits[mask]`."""
    sources = [roles.source_of(past_methods(arg, OTHER_FORMS), call) for arg in call.node.args[:2]]
    picked = [node.slice for part in (*call.node.args[:2], *sources) for node in walk(part, ast.Subscript)]
    inverted = any(isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.Invert) for place in picked)
    joined = any(is_operation(place, ast.BitAnd, ast.BitOr) for place in picked)
    return inverted or joined or any(isinstance(place, ast.Name | ast.Compare) for place in picked)


def _padded_targets(roles: Roles, call: Call) -> str:
    """Return the call that pads targets; empty where inputs alone are padded.

    Targets are padded where they are cut from the padded inputs, or where two or more things are padded.
    """
    pads = [pad for pad in roles.script.calls if PADS.search(pad.name) and "mask" not in ast.unparse(pad.node)]
    pads = [
        pad for pad in pads if not pad.name.endswith(("full", "full_like")) or "pad" in ast.unparse(pad.node).lower()
    ]
    pads = [pad for pad in pads if pad.method != "pad" or "tokenizer" in pad.name or "value" in pad.keywords]
    named = [ast.unparse(pad.node)[:60] for pad in pads]
    named += [ast.unparse(node)[:60] for node in ast.walk(roles.script.tree) if _repeats_padding(node)]
    target = call.node.args[1]
    cut = "1:" in ast.unparse(roles.source_of(target, call)) or any(
        _cut(roles, part, call) == "first" for part in (target, past_methods(target, OTHER_FORMS))
    )
    returned = [pair for node in ast.walk(roles.script.tree) for pair in _returned_pairs(node)]
    cut = cut or any("1:" in ast.unparse(labels) and ":-1" in ast.unparse(inputs) for inputs, labels in returned)
    return named[0] if named and (cut or len(named) > 1) else ""


def _returned_pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Return | ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) >= 2:
        yield node.value.elts[0], node.value.elts[1]


def _repeats_padding(node: ast.AST) -> bool:
    """Say whether a list of padding is repeated: `[PAD] * (longest - len(row))`."""
    if not is_operation(node, ast.Mult):
        return False
    sides = [side for side in (node.left, node.right) if isinstance(side, ast.List) and len(side.elts) == 1]
    return any("pad" in ast.unparse(side).lower() for side in sides)


def ignored_index_differs(roles: Roles) -> Iterator[Fault]:
    """Labels are padded with one value, and the loss ignores another."""
    losses = [call for call in roles.script.calls if "ignore_index" in call.keywords]
    ignored = {call.constant("ignore_index"): call for call in losses}
    if len(ignored) != 1:
        return
    index, loss = next(iter(ignored.items()))
    if not isinstance(index, int):
        return
    for call in roles.script.named("pad_sequence", "full", "full_like"):
        value = call.constant("padding_value", 2) if call.method == "pad_sequence" else call.constant("fill_value", 1)
        of_labels = any(re.search(r"label|target|tag|^y", made.last) for made in roles.holders_of(call.node))
        if call.method == "pad_sequence" and value is None and len(call.node.args) < 3:
            value = 0 if "padding_value" not in call.keywords else None
        if of_labels and isinstance(value, int) and not isinstance(value, bool) and value != index:
            says = f"labels are padded with {value}, and the loss ignores {index}"
            certainty: Certainty = "certain" if value < 0 else "likely"
            yield fault("ignored_index_differs", loss.line, certainty, says, lines=(call.line,))


def mask_inverted(roles: Roles) -> Iterator[Fault]:
    """Scores of the past are hidden, and those of what comes next stay; or of what is not padding by its name."""
    for call in roles.script.named("masked_fill", "masked_fill_"):
        if len(call.node.args) != 2 or not is_hiding(call.node.args[1]):
            continue
        shown = _is_not_padding(roles, call.node.args[0])
        if shown or _is_of_the_past(roles, roles.source_of(call.node.args[0], call), call):
            says = "the scores of what may be attended to are set to minus infinity, and the rest stays"
            attends = shown or "softmax" in ast.unparse(roles.scope_of(call.function))
            cause = "no_signal" if shown else ""
            yield fault("mask_inverted", call.line, "certain" if attends else "depends", says, cause=cause)


def _is_not_padding(roles: Roles, node: ast.expr) -> bool:
    """Say whether a mask is `~pad`, with a name that is true at padding wherever the file sets it."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            break
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.Invert):
        return False
    name = last_name(node.operand)
    made = [assignment.value for assignment in roles.script.made(name)]
    equal = [isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq) for value in made]
    return bool(re.search(r"^(?:is_)?pad(?:s|ded|ding)?(?:_mask)?$", name)) and bool(made) and all(equal)


def _is_of_the_past(roles: Roles, node: ast.expr, call: Call) -> bool:
    """Say whether a mask is true at and before the own place: `tril(...) == 1`, `tril(ones).bool()`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        own = roles.source_of(node.left, call)
        value = constant_of(node.comparators[0])
        is_one = isinstance(node.ops[0], ast.Eq) and value == 1 and not isinstance(value, bool)
        is_one = is_one or (isinstance(node.ops[0], ast.NotEq) and value == 0)
        is_zero = isinstance(node.ops[0], ast.Eq) and value == 0
        text = ast.unparse(own)
        return ("tril(" in text and is_one) or ("triu(" in text and is_zero and "diagonal=1" in text)
    text = ast.unparse(node)
    return (
        bool(re.search(r"tril\(", text)) and bool(re.search(r"\.bool\(\)$|dtype=torch\.bool", text)) and "~" not in text
    )


def next_place_in_sight(roles: Roles) -> Iterator[Fault]:
    """A causal mask begins one place too late, so that each place sees the one that it predicts."""
    for call in roles.script.named("triu", "tril")[:MAX_JUDGED]:
        made_of = call.node.args[0] if call.node.args and call.owner in ("torch", "np") else None
        if not isinstance(made_of, ast.Call) or not re.search(r"ones|full$", dotted(made_of)):
            continue
        places = call.constant("diagonal" if call.owner == "torch" else "k", 1)
        first = 2 if call.method == "triu" else 1
        if places == first and not isinstance(places, bool) and _is_mask(roles, call):
            says = f"{ast.unparse(call.node)[:80]} lets each place see the next one"
            yield fault("next_place_in_sight", call.line, "likely", says)


def _is_mask(roles: Roles, call: Call) -> bool:
    """Say whether one triangle alone is what a mask is made of, or what hides scores."""
    made = roles.holders_of(call.node)
    if any(len(TRIANGLE.findall(ast.unparse(assignment.value))) > 1 for assignment in made):
        return False
    names = {assignment.last for assignment in made}
    named = [*names, last_part(call.function)]
    for other in roles.script.calls:
        parts = {id(part): last_name(part) for arg in other.node.args for part in ast.walk(arg)}
        hides = other.method in ("masked_fill", "masked_fill_", "where", "register_buffer", "masked_scatter")
        if hides and (id(call.node) in parts or names & set(parts.values())):
            return True
        for keyword, value in other.keywords.items():
            inside = [*ast.walk(value)]
            if any(part is call.node or last_name(part) in names - {""} for part in inside):
                named.append(keyword)
    return any(re.search(r"mask|causal", name) for name in named)


def data_hidden(roles: Roles) -> Iterator[Fault]:
    """A mask leaves out the places that hold data, or the past, and keeps the rest."""
    trace = roles.trace
    for line, hides in dict.fromkeys(trace.hidden):
        yield _hides_data(line, hides)
    for call in roles.script.calls:
        settings = trace.settings.get(id(call.node), {})
        for name, facts in ((name, facts_of(value)) for name, values in settings.items() for value in values):
            yield from _given_mask(name, facts, call.method)
    for made, used in dict.fromkeys(trace.padding_kept):
        says = f"this mask is true at padding, and line {used} takes a mean over the places where it is true"
        yield fault("mask_inverted", made, "likely", says, cause="no_signal", lines=(used,))


def _given_mask(name: str, facts: Facts, function: str) -> Iterator[Fault]:
    """Yield what is wrong with a mask that a function or layer of PyTorch is given under a name."""
    if name in ("attn_mask", "mask", "src_mask") and facts.hides in ("real", "past"):
        yield _hides_data(facts.line, facts.hides)
    elif name in TRUE_HIDES and facts.kind == "real":
        says = f"{name} is true where places are to be left out, and here it is true where data are"
        yield fault("mask_inverted", facts.line, "certain", says, cause="no_signal")
    elif name == "attn_mask" and facts.kind == ("future" if function == SDPA else "past"):
        says = f"{name} leaves out the past here, and lets each place see those after it"
        yield fault("mask_inverted", facts.line, "certain", says)
    elif name == "attn_mask" and function == SDPA and facts.kind == "padding":
        says = f"{name} is true where places take part, and here it is true at padding alone"
        yield fault("mask_inverted", facts.line, "certain", says, cause="no_signal")


def softmax_over_another_axis(roles: Roles) -> Iterator[Fault]:
    """Weights add up to one along another axis than that of the places which they weigh."""
    trace = roles.trace
    for line in dict.fromkeys(trace.over_one):
        says = "this softmax goes along the last axis, which has the size 1: all weights are one"
        yield fault("softmax_over_another_axis", line, "certain", says)
    directions = {scores: {axis for _, at, axis in trace.softmaxed if at == scores} for _, scores, _ in trace.softmaxed}
    for line, scores, axis in sorted(trace.softmaxed, key=str):
        # attention in both directions takes both axes, and that over slots the axis of the queries
        if len(directions[scores]) == 1 and axis in (0, 1, -2, -3, -4) and "slot" not in roles.source.lower():
            says = (
                f"the scores of line {scores} are of queries by keys, and the weights of a query do not add up to one"
            )
            yield fault("softmax_over_another_axis", line, "likely", says, lines=(scores,))
    for line, hidden in dict.fromkeys(trace.over_another_axis):
        says = f"line {hidden} leaves places out, and the weights add up to one along another axis: they still count"
        yield fault("softmax_over_another_axis", line, "likely", says, lines=(hidden,))


def _hides_data(line: int, hides: str) -> Fault:
    if hides == "past":
        says = "the scores of the past are set to minus infinity here, and those of what comes next stay"
        return fault("mask_inverted", line, "likely", says)
    says = "the scores of what holds data are set to minus infinity here, and those of padding stay"
    return fault("mask_inverted", line, "likely", says, cause="no_signal")


@dataclass(frozen=True, slots=True)
class Fill:
    """Places that are set to one value.

    Args:
        mask: What is true at these places.
        is_true: Whether these are the places where the mask is true.
        value: The value.
        line: The line.
    """

    mask: ast.expr
    is_true: bool
    value: ast.expr
    line: int


def ignored_where_masked(roles: Roles) -> Iterator[Fault]:
    """Labels are ignored where the inputs are masked, so that the loss is that of places which the model sees."""
    for function in walk(roles.script.tree, ast.FunctionDef):
        fills = list(fills_in(function))
        hidden = [(fill, _conditions_of(function, fill)) for fill in fills if _is_mask_token(fill.value)]
        for fill in fills if hidden else ():
            if not _is_ignored(roles, fill.value):
                continue
            holds = _conditions_of(function, fill)
            other = next((masked for masked, conditions in hidden if holds <= conditions), None)
            if other is not None:
                says = f"labels are ignored where line {other.line} masks the inputs: the loss is that of what is shown"
                yield fault("ignored_where_masked", fill.line, "likely", says)


def fills_in(function: ast.AST) -> Iterator[Fill]:
    """Yield what a function fills under a mask: `x[mask] = v`, `x.masked_fill(mask, v)`, `where(mask, v, x)`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            place = node.targets[0].slice
            if isinstance(place, ast.Name | ast.Attribute | ast.BinOp | ast.UnaryOp | ast.Compare):
                yield Fill(place, True, node.value, node.lineno)
        elif isinstance(node, ast.Call):
            method = last_name(node)
            if method in ("masked_fill", "masked_fill_") and len(node.args) == 2:
                yield Fill(node.args[0], True, node.args[1], node.lineno)
            elif method == "where" and len(node.args) == 3 and dotted(node.func).partition(".")[0] in LIBRARIES:
                yield Fill(node.args[0], True, node.args[1], node.lineno)
                yield Fill(node.args[0], False, node.args[2], node.lineno)


def _is_mask_token(value: ast.expr) -> bool:
    """Say whether a value is the token of masked places, by its name: `MASK`, `tokenizer.mask_token_id`."""
    names = last_names(value)
    return isinstance(value, ast.Name | ast.Attribute | ast.Call) and any(map(MASK_TOKEN.search, names))


def _is_ignored(roles: Roles, value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and last_name(value) in ("tensor", "full_like"):
        value = value.args[-1] if value.args else ast.Constant(None)
    return roles.value_of(value) == IGNORED_LABEL or bool(re.search(r"(?:^|_)ignore", dotted(value), re.IGNORECASE))


def _conditions_of(function: ast.AST, fill: Fill) -> set[tuple[str, int, bool]]:
    return _mask_conditions(function, fill.mask, fill.line, is_true=fill.is_true)


def _mask_conditions(
    function: ast.AST, mask: ast.expr, line: int, *, is_true: bool, depth: int = MAX_NAMES_FOLLOWED
) -> set[tuple[str, int, bool]]:
    """Return what holds at each place of a mask: names, each with the line that set it last, and other conditions."""
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert | ast.Not):
        return _mask_conditions(function, mask.operand, line, is_true=not is_true, depth=depth)
    if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd if is_true else ast.BitOr):
        parts = (
            _mask_conditions(function, part, line, is_true=is_true, depth=depth) for part in (mask.left, mask.right)
        )
        return set[tuple[str, int, bool]]().union(*parts)
    if isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute) and mask.func.attr in ("bool", "to"):
        return _mask_conditions(function, mask.func.value, line, is_true=is_true, depth=depth)
    if not isinstance(mask, ast.Name):
        return {(ast.unparse(mask), 0, is_true)}
    made = [
        node for node in walk(function, ast.Assign, ast.AugAssign) if node.lineno < line and mask.id in _targets(node)
    ]
    last = max(made, key=lambda node: node.lineno, default=None)
    own = {(mask.id, last.lineno if last is not None else 0, is_true)}
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name) and depth:
        own |= _mask_conditions(function, last.value, last.lineno, is_true=is_true, depth=depth - 1)
    return own


def _targets(node: ast.Assign | ast.AugAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [target.elts if isinstance(target, ast.Tuple | ast.List) else [target] for target in targets]
    return {dotted(part) for some in parts for part in some}


def vocabularies_differ(roles: Roles) -> Iterator[Fault]:
    """The tokenizer is of another family of pretrained models than the model."""
    loaded: dict[bool, dict[str, tuple[int, int]]] = {True: {}, False: {}}
    for call in roles.script.named("from_pretrained"):
        names = {plain_of(value): facts_of(value).line for value in roles.trace.given.get(id(call.node), [])}
        is_tokenizer = "Tokenizer" in call.name or "Processor" in call.name
        if is_tokenizer or re.search(r"Model|For[A-Z]", call.name):
            loaded[is_tokenizer] |= {name: (call.line, line) for name, line in names.items()}
    if any(len(names) != 1 for names in loaded.values()):
        return
    (of_tokenizer, case), (of_model, other_case) = (_family(next(iter(loaded[key]))) for key in (True, False))
    differ = of_tokenizer != of_model and bool(of_tokenizer and of_model)
    if not differ and not (of_tokenizer == of_model and case != other_case and case and other_case):
        return
    tokenizer, model = (next(iter(loaded[key])) for key in (True, False))
    line, written = loaded[True][tokenizer]
    says = f"the tokenizer is that of {tokenizer!r}, and the model is {model!r}: their numbers mean other tokens"
    yield fault("vocabularies_differ", line, "likely", says, lines=(written, *loaded[False][model]))


def _family(name: str) -> tuple[str, str]:
    """Return the family of a pretrained model, and whether it keeps capitals, as far as its name says it."""
    lowered = name.lower()
    family = next((word for word in FAMILIES if word in lowered), "")
    case = "uncased" if "uncased" in lowered else "cased" if "cased" in lowered else ""
    return SHARED_VOCABULARIES.get(family, family), case


def tokens_without_embedding(roles: Roles) -> Iterator[Fault]:
    """Tokens are added to a tokenizer, and the embedding of the model that is loaded is never made larger."""
    loads = [call for call in roles.script.named("from_pretrained") if re.search(r"Model|For[A-Z]", call.name)]
    if not loads or any(call.method in RESIZES for call in roles.script.calls) or "vocab_size" in roles.source:
        return
    if roles.uses("SFTTrainer", "GRPOTrainer", "DPOTrainer"):
        return
    for call in roles.script.named("add_special_tokens", "add_tokens"):
        given = roles.source_of(call.node.args[0], call) if call.node.args else None
        parts = given.values if isinstance(given, ast.Dict) else [given] if isinstance(given, ast.List) else []
        new = [part for value in parts for part in (value.elts if isinstance(value, ast.List) else [value])]
        names = [constant_of(part) for part in new]
        if names and all(isinstance(name, str) for name in names) and "tok" in dotted(call.node.func).lower():
            says = f"{names[0]!r} gets a number behind the vocabulary, for which the model has no embedding"
            yield fault(
                "vocabularies_differ", call.line, "likely", says, fix="model.resize_token_embeddings(len(tokenizer))"
            )
            return


# Diffusion: does the target of the loss fit what the model is given, and what its scheduler expects?


Prediction = Literal["noise", "sample", "velocity", "flow", "reversed flow", "difference"]
_OF_SETTING: dict[str, Prediction] = {"epsilon": "noise", "v_prediction": "velocity", "sample": "sample"}
"""What diffusers' schedulers take the output for, by `prediction_type`."""
_NAMES: dict[Prediction, str] = {
    "noise": "the noise", "sample": "the sample without noise", "velocity": "the velocity of get_velocity",
    "flow": "noise - sample", "reversed flow": "sample - noise", "difference": "the difference of both ends",
}  # fmt: skip
SCHEDULER = re.compile(
    r"(?:^|\.)((?:DDPM|DDIM|PNDM|Euler|DPM|UniPC|LMS|Heun|KDPM|FlowMatch)\w{0,40}Scheduler)(\.from_\w{1,20})?$"
)
MAX_NAMES = 3
"""Names that stand for another which are followed."""
DRAWN = re.compile(r"(?:^|\.)(?:randn|randn_like|randn_tensor|normal)$")
_SAME_VALUES = ("float", "to", "detach", "type", "contiguous", "clone")
_Names = Mapping[str, set[str]]
"""By functions: names in them."""
DRAWS_NOISE = ("randn_like", "rand_like")


class _Scheduler(NamedTuple):
    """What the output of the model is taken for, and where that is written; `written` is how."""

    takes: tuple[Prediction, ...]
    line: int
    written: str


def target_of_another_prediction(roles: Roles) -> Iterator[Fault]:
    """The loss compares the output with something else than what the scheduler takes it for when it samples."""
    mixed = _mixed(roles)
    scheduler = _scheduler(roles) or (_integrated(roles) if mixed else None)
    if scheduler is None:
        return
    samples = _noised(roles, mixed)
    for call in roles.script.calls:
        sides = _sides(roles, call)
        targets = [_kind(roles, side, call, samples) for side in sides]
        outputs = [_is_output(roles, side, call, samples) for side in sides]
        for target, is_output in zip(targets, reversed(outputs), strict=True):
            if target is not None and is_output and target not in scheduler.takes:
                says = (
                    f"the target is {_NAMES[target]}, and {scheduler.written} takes the output for "
                    f"{_NAMES[scheduler.takes[0]]}"
                )
                yield fault("target_of_another_prediction", call.line, "likely", says, lines=(scheduler.line,))


def _scheduler(roles: Roles) -> _Scheduler | None:
    """Return what the only scheduler of noise that is made here wants; None where several are, or nothing tells."""
    found: dict[tuple[Prediction, ...], _Scheduler] = {}
    for call in roles.script.calls:
        named = SCHEDULER.search(call.name)
        wanted = None if named is None else _wanted(roles, call, named[1], loaded=bool(named[2]))
        found |= {wanted.takes: wanted} if wanted is not None else {}
    tests = (node for node in walk(roles.script.tree, ast.Compare))
    compared = any("prediction_type" in ast.unparse(node) for node in tests) or roles.uses("register_to_config")
    compared = compared or any(
        isinstance(arg, ast.UnaryOp) for call in roles.script.named("step") for arg in call.node.args
    )
    return next(iter(found.values())) if len(found) == 1 and not compared else None


def _wanted(roles: Roles, call: Call, name: str, *, loaded: bool) -> _Scheduler | None:
    """Return what a scheduler wants by its name, its setting or its default; None where a file that it loads says."""
    if name.startswith("FlowMatch"):
        return _Scheduler(("flow",), call.line, name)
    given = roles.keywords(call).get("prediction_type")
    setting = constant_of(roles.spelled_out(given))
    if isinstance(setting, str) and setting in _OF_SETTING:
        return _Scheduler((_OF_SETTING[setting],), call.line, f'prediction_type="{setting}"')
    owners = {made.target for made in roles.script.assignments if made.value is call.node}
    samples = any(other.owner in owners for other in roles.script.named("step"))
    known = given is None and not loaded and samples
    return _Scheduler(("noise",), call.line, f"{name}, by default,") if known else None


def _sides(roles: Roles, call: Call) -> tuple[ast.expr, ...]:
    """Return the two sides of a loss of differences, none for other calls."""
    if not roles.loss_named(call, *ELEMENTWISE_LOSSES):
        return squared_sides(call.node) or ()
    given = [call.argument(name, place) for place, name in enumerate(("input", "target"))]
    return tuple(side for side in given if side is not None) if None not in given else ()


def squared_sides(node: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """Return the sides of `((a - b) ** 2).mean()` and of `(a - b).pow(2).mean()`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "mean" else None
    inner = node.args[0] if inner is not None and dotted(inner) == "torch" and node.args else inner
    if is_operation(inner, ast.Pow):
        inner = inner.left
    elif called_name(inner) in ("pow", "square"):
        inner = getattr(getattr(inner, "func", None), "value", None)
    else:
        return None
    return (inner.left, inner.right) if is_operation(inner, ast.Sub) else None


def _kind(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> Prediction | None:
    """Return what a side of a loss holds, None where it does not say."""
    source = _source(roles, node, call, samples)
    if not is_operation(source, ast.Sub):
        return _plain_kind(source)
    left, right = (_plain_kind(_source(roles, end, call, samples)) or "sample" for end in (source.left, source.right))
    if {left, right} != {"noise", "sample"}:
        return None
    return "flow" if left == "noise" else "reversed flow"


def _plain_kind(source: ast.expr | None) -> Prediction | None:
    if isinstance(source, ast.Name):
        return "sample"
    if not isinstance(source, ast.Call):
        return None
    is_velocity = last_name(source) == "get_velocity"
    return "velocity" if is_velocity else "noise" if DRAWN.search(dotted(source)) else None


def _source(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> ast.expr | None:
    """Return what a side of a loss was made by; the name of a sample that noise is added to; None if several things."""
    node = past_methods(node, _SAME_VALUES)
    for _ in range(MAX_NAMES):
        if (
            isinstance(node, ast.Name)
            and node.id in samples.get(call.function, ())
            and not _is_drawn(roles, node, call)
        ):
            return node
        values = roles.values_of(node, call)
        if len(values) > 1:
            return None
        node = past_methods(values[0], _SAME_VALUES)
    return None if isinstance(node, ast.Name) else node


def _is_drawn(roles: Roles, node: ast.expr, call: Call) -> bool:
    return DRAWN.search(dotted(roles.source_of(node, call))) is not None


def _factors(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    return (node.left, node.right) if is_operation(node, ast.Mult) else None


def _noised(roles: Roles, mixed: _Names) -> _Names:
    """Return the names that noise is added to, by a scheduler or on a straight path."""
    found = {function: set(names) for function, names in mixed.items()}
    for call in roles.script.named("add_noise", "scale_noise"):
        found.setdefault(call.function, set()).update(map(dotted, call.node.args[:1]))
    return found


def _mixed(roles: Roles) -> _Names:
    """Return the names that are mixed as `(1 - t) * a + t * b`: the two ends of a straight path."""
    found: dict[str, set[str]] = {}
    for made in roles.script.assignments:
        value = made.value
        if not is_operation(value, ast.Add):
            continue
        terms = [_factors(value.left), _factors(value.right)]
        weights = [ast.unparse(term[0]) for term in terms if term is not None]
        ends = [term[1].id for term in terms if term is not None and isinstance(term[1], ast.Name)]
        if len(weights) == len(ends) == 2 and (f"1 - {weights[0]}" == weights[1] or f"1 - {weights[1]}" == weights[0]):
            found.setdefault(made.function, set()).update(ends)
    return found


def _integrated(roles: Roles) -> _Scheduler | None:
    """Return that samples are made by steps `x = x + model(x, t) * dt`, which take the output for a velocity.

    Only where the path of training is a straight one, whose velocity is the difference of its ends.
    """
    for made in roles.script.assignments:
        value = made.value
        added = value if made.adds else None
        if is_operation(value, ast.Add, ast.Sub):
            added = value.right if dotted(value.left) == made.target else added
        factors = _factors(added) if added is not None and made.loops else None
        sources = [*(factors or ())]
        for factor in factors or ():
            sources += [other.value for other in roles.assignments_by_name.get((made.function, dotted(factor)), [])]
        if any(isinstance(source, ast.Call) and made.target in map(dotted, source.args) for source in sources):
            return _Scheduler(
                ("difference", "flow", "reversed flow"), made.line, f"the step of {made.target} in a loop"
            )
    return None


def _is_output(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> bool:
    for _ in range(MAX_NAMES):
        node = past_methods(roles.source_of(node, call), _SAME_VALUES)
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = past_methods(node.value, _SAME_VALUES)
    if not isinstance(node, ast.Call) or not node.args:
        return False
    of_library = dotted(node).partition(".")[0] in ("torch", "F", "np", "nn", "einops")
    return _kind(roles, node, call, samples) is None and not of_library


def target_is_random(roles: Roles) -> Iterator[Fault]:
    """The target of a loss is drawn at random, and nothing that the model sees is made with it."""
    if len(roles.script.named(*DRAWS_NOISE)) < 2:
        return  # what the model is given is made with another draw
    for call in roles.script.calls:
        drawn_here = [arg for arg in call.node.args[:2] if last_name(arg) in DRAWS_NOISE]
        if drawn_here and roles.loss_named(call, *ELEMENTWISE_LOSSES):
            says = "the target is drawn here: what the model is given was made with other numbers"
            yield fault("target_is_random", drawn_here[0].lineno, "likely", says)
    for function in walk(roles.script.tree, ast.FunctionDef):
        drawn = {
            node.targets[0].id: node.value.lineno
            for node in walk(function, ast.Assign)
            if isinstance(node.targets[0], ast.Name) and last_name(node.value) in DRAWS_NOISE
        }
        for name, line in drawn.items():
            reads = [node for node in walk(function, ast.Name) if node.id == name]
            reads = [node for node in reads if isinstance(node.ctx, ast.Load)]
            if len(reads) == 1 and _is_target(roles, function, reads[0]):
                says = f"{name} is drawn here for the loss alone: what the model is given was made with other numbers"
                yield fault("target_is_random", line, "likely", says)


def _is_target(roles: Roles, function: ast.FunctionDef, name: ast.Name) -> bool:
    """Say whether a name stands in a difference to the output of a model, or next to it in a loss."""
    for node in ast.walk(function):
        sides: list[ast.expr] = []
        if is_operation(node, ast.Sub):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call):
            call = roles.call_of(node)
            differs = re.search(r"mse|l1|huber", dotted(node), re.IGNORECASE)
            sides = node.args[:2] if differs or (call and roles.loss_named(call, *ELEMENTWISE_LOSSES)) else []
        if len(sides) == 2 and any(side is name for side in sides):
            other = next(side for side in sides if side is not name)
            made = roles.script.assigned(other.id) if isinstance(other, ast.Name) else None
            return isinstance(other if made is None else made.value, ast.Call)
    return False
