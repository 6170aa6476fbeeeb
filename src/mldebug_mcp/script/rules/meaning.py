"""Are masks, axes and arguments of losses the way round that they are meant?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import Call, constant_of, dotted
from mldebug_mcp.script.facts import is_hiding
from mldebug_mcp.script.faults import MAX_JUDGED, Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules.loss import ELEMENTWISE_LOSSES
from mldebug_mcp.script.values import end_of

TARGET = re.compile(r"^(?:y|ys|yb|labels?|targets?|y_true|truth|gt|y_batch|batch_y|target_ids)$")
OUTPUT = re.compile(r"^(?:out|outs|outputs?|logits?|preds?|predictions?|y_?hat|y_pred|scores?|probs?)$")


def arguments_swapped(roles: Roles) -> Iterator[Fault]:
    """A loss is given the targets first and the outputs second."""
    for call in roles.script.calls:
        one_sided = roles.is_cross_entropy(call) or roles.loss_named(
            call, "NLLLoss", "nll_loss", "BCELoss", "BCEWithLogitsLoss", "binary_cross_entropy",
            "binary_cross_entropy_with_logits",
        )  # fmt: skip
        if not one_sided or len(call.node.args) < 2:
            continue
        first, second = (dotted(arg).rpartition(".")[2] for arg in call.node.args[:2])
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
        names = [dotted(arg).rpartition(".")[2].lower() for arg in call.node.args[:2]]
        if len(names) == 2 and re.search(r"std|sigma|dev", names[0]) and re.search(r"mean|mu$|avg", names[1]):
            says = f"{call.name}() takes the mean first and the deviation second, and is given them the other way round"
            yield fault("arguments_swapped", call.line, "certain", says)


def divergence_of_what(roles: Roles) -> Iterator[Fault]:
    """F.kl_div is given probabilities where it takes log-probabilities, or the other way round."""
    for call in roles.script.calls:
        if not roles.loss_named(call, "KLDivLoss", "kl_div") or len(call.node.args) < 2:
            continue
        made = roles.losses.get(call.name)
        settings = [*call.node.keywords, *(made.value.keywords if made and isinstance(made.value, ast.Call) else [])]
        of_logs = any(setting.arg == "log_target" and constant_of(setting.value) is not False for setting in settings)
        first, second = (_activation(roles, arg, call) for arg in call.node.args[:2])
        values = roles.trace.given.get(id(call.node), [])
        first = first or next((end for end in {end_of(value) for value in values} if len(values) > 0), "")
        if first == "softmax":
            says = f"{call.name}() takes log-probabilities first, and is given probabilities"
            yield fault("divergence_of_probabilities", call.line, "certain", says)
        elif second == "log_softmax" and not of_logs:
            says = f"{call.name}() takes probabilities second unless log_target=True, and is given log-probabilities"
            yield fault("divergence_of_probabilities", call.line, "certain", says)


def _activation(roles: Roles, node: ast.expr, call: Call) -> str:
    source = roles.source_of(node, call)
    last = dotted(source.func).rpartition(".")[2] if isinstance(source, ast.Call) else ""
    return last if last in ("softmax", "log_softmax") else ""


def softmax_over_the_batch(roles: Roles) -> Iterator[Fault]:
    """Probabilities of classes are taken along the batch."""
    named = roles.script.named("softmax", "log_softmax", "Softmax", "LogSoftmax")
    for call in [call for call in named if _is_over_rows(call)][:MAX_JUDGED]:
        functional = _is_functional(call)
        node = call.node.args[0] if functional and call.node.args else ast.Name(call.owner)
        given = f"{ast.unparse(node)} {ast.unparse(roles.source_of(node, call))}"
        of_outputs = re.search(r"logit|output|\bouts?\b|pred|model\(|net\(|classifier|head\(|\bfc", given)
        one_row = re.search(r"\[[\w, -]*\w\]|squeeze|\[0\]|weight|alpha|router|gate|stack", given)
        last = call.method[:1].isupper() and _is_last(roles, call)
        if (of_outputs and not one_row) or last:
            of_rows = (
                roles.uses("DataLoader", "cross_entropy", "CrossEntropy", "NLLLoss") if last else _has_rows(roles, call)
            )
            says = f"{ast.unparse(call.node)[:60]} makes the rows of a batch add up to one, and not the classes"
            yield fault("softmax_over_batch", call.line, "likely" if of_rows else "depends", says)


def normalized_over_the_batch(roles: Roles) -> Iterator[Fault]:
    """Vectors that are compared with each other get the length one along the batch, and not each by itself."""
    for node in ast.walk(roles.script.tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult):
            continue
        left = node.left
        if isinstance(left, ast.Name):
            around = next((call for call in roles.script.calls if call.line >= node.lineno), None)
            left = roles.source_of(left, around) if around is not None else left
        call = roles.call_of(left) if isinstance(left, ast.Call) else None
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
    made = [
        assignment
        for assignment in roles.script.assignments
        if any(part is call.node for part in ast.walk(assignment.value))
    ]
    names = {assignment.target for assignment in made}
    for node in ast.walk(roles.scope_of(call.function)):
        parts = list(ast.walk(node)) if isinstance(node, ast.Call | ast.Subscript) else []
        if not any(part is call.node or (isinstance(part, ast.Name) and part.id in names) for part in parts):
            continue
        if isinstance(node, ast.Subscript):
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else None
            second = isinstance(first, ast.Slice) and dotted(node.value) in names
        elif isinstance(node, ast.Call) and node is not call.node:
            axes = [constant_of(arg) for arg in (*node.args, *(keyword.value for keyword in node.keywords))]
            of_axis = any(axis in (1, -1) and not isinstance(axis, bool) for axis in axes)
            method = dotted(node).rpartition(".")[2]
            second = (of_axis and method in OVER_CLASSES) or bool(re.search(r"loss|entropy|kl_div|criterion", method))
        else:
            second = False
        if second:
            return True
    return False


OVER_CLASSES = ("argmax", "max", "sum", "mean", "gather", "topk", "sort")
"""Functions and methods that go along the axis of the classes."""


def _is_last(roles: Roles, call: Call) -> bool:
    """Say whether a layer is the last of a `Sequential`."""
    return any(
        isinstance(node, ast.Call) and dotted(node.func).endswith("Sequential") and node.args[-1:] == [call.node]
        for node in ast.walk(roles.script.tree)
    )


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
    made = [
        assignment
        for assignment in roles.script.assignments
        if any(part is call.node for part in ast.walk(assignment.value))
    ]
    if any(len(TRIANGLE.findall(ast.unparse(assignment.value))) > 1 for assignment in made):
        return False
    names = {assignment.target.rpartition(".")[2] for assignment in made}
    named = [*names, call.function.rpartition(".")[2]]
    for other in roles.script.calls:
        parts = {id(part): dotted(part).rpartition(".")[2] for arg in other.node.args for part in ast.walk(arg)}
        hides = other.method in ("masked_fill", "masked_fill_", "where", "register_buffer", "masked_scatter")
        if hides and (id(call.node) in parts or names & set(parts.values())):
            return True
        for keyword, value in other.keywords.items():
            inside = [*ast.walk(value)]
            if any(part is call.node or dotted(part).rpartition(".")[2] in names - {""} for part in inside):
                named.append(keyword)
    return any(re.search(r"mask|causal", name) for name in named)


TRIANGLE = re.compile(r"\btri[ul]\(")


def all_rows_one_target(roles: Roles) -> Iterator[Fault]:
    """Similarities of all pairs of a batch have the same target in each row, where each row has its own partner."""
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2:
            continue
        scores, target = (roles.source_of(argument, call) for argument in call.node.args[:2])
        if (
            isinstance(target, ast.Call)
            and isinstance(target.func, ast.Attribute)
            and target.func.attr in ("long", "to")
        ):
            target = target.func.value
        same = dotted(target).rpartition(".")[2] in ("zeros", "zeros_like") and isinstance(target, ast.Call)
        if same and _is_of_all_pairs(scores):
            says = "each row of a matrix of all pairs is to be the most like row 0, and not the most like its partner"
            yield fault("all_rows_one_target", target.lineno, "likely", says)


def times_the_temperature(roles: Roles) -> Iterator[Fault]:
    """Similarities of all pairs are multiplied by a temperature below one, which they are to be divided by."""
    for node in ast.walk(roles.script.tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
            continue
        for side, other in ((node.left, node.right), (node.right, node.left)):
            named = re.search(r"^(?:temp|temperature|tau)$", dotted(side).rpartition(".")[2], re.IGNORECASE)
            value = constant_of(roles.spelled_out(side)) if named else None
            if isinstance(value, float) and 0 < value < 1 and _is_of_all_pairs(other):
                says = f"similarities are multiplied by {ast.unparse(side)} = {value}: all rows look alike to the loss"
                yield fault("times_the_temperature", node.lineno, "likely", says)


def sampled_without_gradient(roles: Roles) -> Iterator[Fault]:
    """The sample of an encoder's mean and deviation is made without gradients, so the encoder learns nothing by it."""
    for function in ast.walk(roles.script.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for block in ast.walk(function):
            off = isinstance(block, ast.With) and any("no_grad" in ast.unparse(item) for item in block.items)
            for made in (part for part in ast.walk(block) if isinstance(part, ast.Assign) and off):
                text, later = ast.unparse(made.value), getattr(block, "end_lineno", 0) or 0
                name = dotted(made.targets[0])
                read_here = {part.id for part in ast.walk(made.value) if isinstance(part, ast.Name)}
                inside = {dotted(part.targets[0]) for part in ast.walk(block) if isinstance(part, ast.Assign)}
                inside |= {dotted(part) for part in ast.walk(block) if isinstance(part, ast.Name) and _is_set(part)}
                of_encoder = "randn" in text and re.search(r"\bmu\b|mean", text) and re.search(r"var|std|sigma", text)
                from_outside = not read_here & inside
                others = [part for part in read_here if not OF_GAUSSIAN.search(part)]
                read = any(
                    isinstance(part, ast.Name) and part.id == name and part.lineno > later
                    for part in ast.walk(function)
                )
                if of_encoder and from_outside and read and not others:
                    says = f"{name} is sampled without gradients: the loss behind it does not reach the encoder"
                    yield fault("sampled_without_gradient", made.lineno, "likely", says)


def _is_set(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


OF_GAUSSIAN = re.compile(r"^mus?$|mean|var|std|sigma|eps|noise|^(?:torch|np|math|self)$")
"""Names in a sample of a mean and deviation; another, such as data that gets noise, means something else."""


def _is_of_all_pairs(node: ast.expr) -> bool:
    """Say whether a value is `a @ b.T`, scaled or not, to which no further columns are added."""
    if any(dotted(part).rpartition(".")[2] in ("cat", "concat", "hstack") for part in ast.walk(node)):
        return False
    products = [(part.right, part) for part in ast.walk(node) if isinstance(part, ast.BinOp)]
    turned = [right for right, part in products if isinstance(part.op, ast.MatMult)]
    turned += [
        part.args[-1]
        for part in ast.walk(node)
        if isinstance(part, ast.Call) and part.args and dotted(part).rpartition(".")[2] in ("mm", "matmul")
    ]
    return any(re.search(r"\.(?:t\(\)|T|mT|transpose\([^()]*\))$", ast.unparse(right)) for right in turned)


def target_is_random(roles: Roles) -> Iterator[Fault]:
    """The target of a loss is drawn at random, and nothing that the model sees is made with it."""
    if len(roles.script.named(*DRAWS)) < 2:
        return  # what the model is given is made with another draw
    for function in ast.walk(roles.script.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        drawn = {
            node.targets[0].id: node.value.lineno
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and dotted(node.value).rpartition(".")[2] in DRAWS
        }
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            around = roles.call_of(call)
            drawn_here = [arg for arg in call.args[:2] if dotted(arg).rpartition(".")[2] in DRAWS]
            if around is not None and drawn_here and roles.loss_named(around, *ELEMENTWISE_LOSSES):
                says = "the target is drawn here: what the model is given was made with other numbers"
                yield fault("target_is_random", drawn_here[0].lineno, "likely", says)
        for name, line in drawn.items():
            reads = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
            reads = [node for node in reads if isinstance(node.ctx, ast.Load)]
            if len(reads) == 1 and _is_target(roles, function, reads[0]):
                says = f"{name} is drawn here for the loss alone: what the model is given was made with other numbers"
                yield fault("target_is_random", line, "likely", says)


DRAWS = ("randn_like", "rand_like")


def _is_target(roles: Roles, function: ast.FunctionDef, name: ast.Name) -> bool:
    """Say whether a name stands in a difference to the output of a model, or next to it in a loss."""
    for node in ast.walk(function):
        sides: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
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
    name = dotted(node.operand).rpartition(".")[2]
    made = [assignment.value for assignment in roles.script.assignments if assignment.target == name]
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


def ignored_index_differs(roles: Roles) -> Iterator[Fault]:
    """Labels are padded with one value, and the loss ignores another."""
    ignored = {
        constant_of(call.keywords["ignore_index"]): call
        for call in roles.script.calls
        if "ignore_index" in call.keywords
    }
    if len(ignored) != 1:
        return
    index, loss = next(iter(ignored.items()))
    if not isinstance(index, int):
        return
    for call in roles.script.named("pad_sequence", "full", "full_like"):
        value = call.constant("padding_value", 2) if call.method == "pad_sequence" else call.constant("fill_value", 1)
        used = [made for made in roles.script.assignments if any(part is call.node for part in ast.walk(made.value))]
        of_labels = any(re.search(r"label|target|tag|^y", made.target.rpartition(".")[2]) for made in used)
        if call.method == "pad_sequence" and value is None and len(call.node.args) < 3:
            value = 0 if "padding_value" not in call.keywords else None
        if of_labels and isinstance(value, int) and not isinstance(value, bool) and value != index:
            says = f"labels are padded with {value}, and the loss ignores {index}"
            certainty: Certainty = "certain" if value < 0 else "likely"
            yield fault("ignored_index_differs", loss.line, certainty, says, lines=(call.line,))
