"""Is the loss the one that is meant: its activations, arguments, axes, shapes, weights and signs?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

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
from mldebug_mcp.script.faults import MAX_JUDGED, Fault, fault
from mldebug_mcp.script.roles import MAX_NAMES_FOLLOWED, Roles
from mldebug_mcp.script.shapes import shape_of
from mldebug_mcp.script.values import (
    Quantity,
    Tensor,
    Value,
    end_line_of,
    end_of,
    facts_of,
    models_through,
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
    """Return the model of a library of classifiers whose raw outputs a value is; empty for another value."""
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
