"""Is the loss the one that is meant: activations, its graph, its shapes?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from mldebug_mcp.script.calls import Assignment, Call, calls_in, constant_of, dotted, names_in, values_returned
from mldebug_mcp.script.cut import Gradients
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.graph import LOSS_NAME, carries_graph, is_running_sum
from mldebug_mcp.script.library import CUT, NUMBERS, SAME_VALUES
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.values import Tensor, Value, end_line_of, facts_of, models_through, shape_of

FORWARD = ("forward", "__call__", "call")
"""What PyTorch, Flax and Keras call the method that computes the outputs of a model."""


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
            yield _twice(
                line, f"the loss{here} takes the {kind} itself, and is given one already", [call.line, *chosen]
            )
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
    if roles.loss_named(call, "NLLLoss", "nll_loss"):
        return "log-probabilities"
    return "probabilities" if roles.loss_named(call, "BCELoss", "binary_cross_entropy") else ""


def _gives_logits(roles: Roles, given: ast.expr) -> bool:
    """Say whether a model makes this value whose layers stand in the file, and no sigmoid is named anywhere."""
    if re.search("sigmoid", roles.source, re.IGNORECASE):  # a configuration may name it
        return False
    name = dotted(given.func) if isinstance(given, ast.Call) else ""
    return bool(name) and (roles.class_of(name) is not None or name in roles.sequentials)


READY_MADE = re.compile(r"^(?:torchvision\.models\.(?!detection|segmentation|video|optical)\w+|timm\.create_model)$")
"""What makes a classifier that gives logits."""


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


def _twice(line: int, says: str, lines: Iterable[int] = ()) -> Fault:
    return fault("activation_twice", line, "certain", says, lines=lines)


def activation_of(roles: Roles, given: ast.expr, call: Call) -> str:
    """Return what the first argument of a call is: "softmax", "sigmoid", "logits" of a layer, or "" if not known."""
    values = roles.trace.given.get(id(call.node), [])
    known = [
        value
        for value in values
        if isinstance(value, Tensor) and (value.is_known or value.ends in ("softmax", "sigmoid"))
    ]
    if known and len(known) == len(values):
        ends = {value.ends for value in known}
        return ends.pop() if len(ends) == 1 else ""
    outer = _outermost(given)
    last = outer.rpartition(".")[2].lower()
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


def _outermost(node: ast.expr) -> str:
    """Return the name of the outermost call of an expression, past reshaping."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in (
            "view",
            "reshape",
            "flatten",
            "squeeze",
            "float",
            "contiguous",
            "transpose",
            "permute",
            "to",
        ):
            break
        node = node.func.value
    if isinstance(node, ast.Call):
        return dotted(node.func)
    return ""


def _ends_in(module: ast.ClassDef) -> str:
    """Return which activation the forward of a model ends in."""
    forward = next(
        (
            function_def
            for function_def in module.body
            if isinstance(function_def, ast.FunctionDef) and function_def.name in FORWARD
        ),
        None,
    )
    if forward is None:
        return ""
    for node in reversed(list(ast.walk(forward))):
        if isinstance(node, ast.Return) and node.value is not None:
            value = node.value
            if isinstance(value, ast.Name):
                assigned = [
                    assign.value for assign in ast.walk(forward)
                    if isinstance(assign, ast.Assign) and any(dotted(target) == value.id for target in assign.targets)
                ]  # fmt: skip
                value = assigned[-1] if assigned else value
            last = _outermost(value).rpartition(".")[2].lower()
            if last in ("softmax", "sigmoid"):
                return last
            called = _outermost(value)
            return _attribute_end(module, called)
    return ""


def _attribute_end(module: ast.ClassDef, called: str) -> str:
    """Return the activation at the end of a layer of a model, such as `self.net = nn.Sequential(..., nn.Softmax())`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and any(dotted(target) == called for target in node.targets):
            return _module_end(node.value)
    return ""


def _module_end(node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name = dotted(node.func).rpartition(".")[2]
    if name == "Sequential" and node.args:
        return _module_end(node.args[-1])
    return name.lower() if name in ("Softmax", "Sigmoid") else ""


def _sequential_end(roles: Roles) -> str:
    """Return the activation at the end of a model that is one `nn.Sequential`."""
    models = list(roles.sequentials.values())
    return _module_end(models[-1]) if len(models) == 1 else ""


def policy_moves_its_critic(roles: Roles) -> Iterator[Fault]:
    """A log-probability is weighted by a value that has a gradient of its own, as an advantage that is not detached."""
    # what calls of functions that are not in the file return need not have a gradient
    moved = [event for event in roles.trace.of("policy") if any(made.kind == "model" for made in event.objects)]
    for line in sorted({event.line for event in moved}):
        says = "the log-probability is weighted by a value with a gradient, which then moves to please the policy"
        yield fault("advantage_with_gradient", line, "likely", says)


def loss_without_graph(roles: Roles) -> Iterator[Fault]:
    """The loss, or a part of it, is cut off from the weights before backward."""
    for backward in roles.backwards:
        if roles.turned_off(backward.guards) and not _has_graph(roles, backward):
            says = "backward() is under no_grad, so it has no graph to go through"
            yield fault("backward_without_graph", backward.line, "certain", says)
        given = _loss_of(backward)
        if given is not None:
            yield from _parts_cut_off(roles, given, backward)
        yield from _numbers_among_parts(roles, backward)
    training = {backward.function for backward in roles.backwards}
    for call in roles.script.calls:
        computes = call.name in roles.losses or FUNCTIONAL_LOSS.search(call.name)
        if computes and call.node.args and call.loops and call.function in training:
            source = roles.source_of(call.node.args[0], call)
            if _last_method(source) in ("detach", "data", "argmax", "round"):
                says = f"the loss is computed on outputs that are cut off from the model: {ast.unparse(source)[:80]}"
                yield fault("loss_cut_off", call.line, "certain", says, fix="give the loss the outputs themselves")


def _numbers_among_parts(roles: Roles, backward: Call) -> Iterator[Fault]:
    """Yield a part of a loss that is a number where others of the same mapping or list are not."""
    lost = set[str]().union(*map(names_in, _given_to(backward)))
    for made in roles.script.assignments:
        if made.function != backward.function or made.order > backward.order:
            continue
        for node in ast.walk(made.value):
            parts = node.values if isinstance(node, ast.Dict) else node.elts if isinstance(node, ast.List) else []
            numbers = [part for part in parts if isinstance(part, ast.Call) and _last_method(part) == "item"]
            tensors = [part for part in parts if isinstance(part, ast.Subscript | ast.Name)]
            reported = {name for number in numbers for name in names_in(number.func)} & lost
            if numbers and tensors and not reported and roles.reaches_backward(made):
                says = f"this part of the loss is a number, and so has no gradient: {ast.unparse(numbers[0])[:80]}"
                fix = "add the loss itself, without item()"
                yield fault("loss_cut_off", numbers[0].lineno, "likely", says, fix=fix)


FUNCTIONAL_LOSS = re.compile(r"(?:^|\.)(?:F|functional)\.\w*(?:loss|entropy)\w*$")


def _has_graph(roles: Roles, backward: Call) -> bool:
    """Say whether a loss may have been computed outside of the block that turns gradients off."""
    computed = [event for event in roles.trace.of("backward") if event.node is backward.node]
    inside = [node for node in ast.walk(roles.script.tree) if isinstance(node, ast.With) and _is_around(node, backward)]
    names = names_in(backward.node.func)
    made_inside = any(
        made.target in names and node.lineno < made.line < backward.line
        for node in inside
        for made in roles.script.assignments
    )
    return not made_inside or any(event.objects for event in computed)


def _is_around(node: ast.With, call: Call) -> bool:
    return node.lineno <= call.line <= (node.end_lineno or node.lineno)


def _loss_of(backward: Call) -> ast.expr | None:
    """Return the loss that gradients are computed of: what stands before `.backward()`, or what a helper is given."""
    given = backward.node.args
    if len(given) > 1:
        return None
    if given and not re.search(r"grad|ones", ast.unparse(given[0])):
        return given[0]
    return backward.node.func.value if isinstance(backward.node.func, ast.Attribute) else None


def _parts_cut_off(roles: Roles, given: ast.expr, backward: Call) -> Iterator[Fault]:
    source = roles.source_of(given, backward)
    terms = list(_terms(roles, source, backward))
    if all(map(_is_copied, roles.values_of(given, backward))) or _is_cut(roles, given, backward, CUT):
        says = f"backward() is called on a value that is cut off from the model: {ast.unparse(source)[:80]}"
        yield fault("loss_cut_off", backward.line, "certain", says)
        return
    for term in terms if len(terms) > 1 else ():
        if _is_of_detached_outputs(roles, term, backward):
            says = f"this part of the loss is computed on outputs that are cut off: {ast.unparse(term)[:80]}"
            yield fault("loss_cut_off", term.lineno, "likely", says, fix="give the loss the outputs themselves")
    for term in terms:
        if not isinstance(term, ast.Constant) and _is_cut(roles, term, backward, NUMBERS):
            says = f"this part of the loss is a number, and so has no gradient: {ast.unparse(term)[:80]}"
            yield fault("loss_cut_off", term.lineno, "certain", says, fix="add the loss itself, without item()")


def _is_copied(node: ast.expr) -> bool:
    """Say whether a value is made anew of another, which leaves its graph behind: `torch.tensor(loss)`."""
    made = re.search(r"(?:^|\.)(?:tensor|Tensor|Variable|as_tensor)$", _outermost(node))
    first = node.args[0] if made and isinstance(node, ast.Call) and node.args else None
    return first is not None and not isinstance(first, ast.List | ast.Constant)


def _is_of_detached_outputs(roles: Roles, term: ast.expr, backward: Call) -> bool:
    """Say whether all outputs of models in a term are detached where they are computed, and nothing else is learned."""
    cut = [
        node
        for node in ast.walk(term)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach"
    ]
    inside = {id(part) for node in cut for part in ast.walk(node)}
    of_model = [node for node in ast.walk(term) if isinstance(node, ast.Call) and _is_output(roles, node)]
    local = {made.target for made in roles.script.assignments if made.loops == backward.loops}
    learned = {part.id for part in ast.walk(term) if isinstance(part, ast.Name) and part.id in local}
    return bool(cut and of_model) and not learned and all(id(node) in inside for node in of_model)


def _is_output(roles: Roles, node: ast.Call) -> bool:
    names = dotted(node.func).split(".")
    return any(name in roles.model_names for name in names)


def _last_method(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


SAME_GRADIENT = ("mean", "sum", "float", "to", "cuda", "view", "reshape", "squeeze", "unsqueeze", "div", "mul", "clamp")
"""Methods of a tensor through which its gradient goes."""
MAX_NAMES_FOLLOWED = 4


def _terms(roles: Roles, node: ast.expr, call: Call, depth: int = MAX_NAMES_FOLLOWED) -> Iterator[ast.expr]:
    """Yield what a loss is the sum of, following names to what they were assigned."""
    source = roles.source_of(node, call) if isinstance(node, ast.Name) and depth else node
    if isinstance(source, ast.BinOp) and isinstance(source.op, ast.Add | ast.Sub):
        yield from _terms(roles, source.left, call, depth - 1)
        yield from _terms(roles, source.right, call, depth - 1)
    else:
        yield source


def _is_cut(roles: Roles, node: ast.expr, call: Call, by: tuple[str, ...], depth: int = MAX_NAMES_FOLLOWED) -> bool:
    """Say whether no gradient can flow through an expression, as all of it went through one of some methods."""
    if isinstance(node, ast.Constant):
        return True
    if depth == 0:
        return False
    parts: list[ast.expr] = []
    if isinstance(node, ast.Name):
        parts = [value for value in roles.values_of(node, call) if value is not node]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in by
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in by and node.func.attr not in SAME_GRADIENT:
            return True
        parts = [node.func.value] if node.func.attr in SAME_GRADIENT else []
    return bool(parts) and all(_is_cut(roles, part, call, by, depth - 1) for part in parts)


def term_without_gradient(roles: Roles) -> Iterator[Fault]:
    """A weighted part of the loss is computed of values alone whose gradient was cut off, and so trains nothing."""
    gradients = Gradients(roles)
    for backward in roles.backwards:
        given = _loss_of(backward)
        terms = list(_summed(roles, given, backward.function)) if given is not None else []
        trains = any(not gradients.of(term, backward.function) for term in terms)
        for term in terms if trains and not roles.turned_off(backward.guards) else ():
            cut = _cut_factor(roles, gradients, term, backward)
            if cut is not None and not _is_cut(roles, term, backward, NUMBERS):
                line, text = cut.lineno, ast.unparse(cut)[:80]
                says = f"all that this part of the loss is computed of is cut off from the model: {text}"
                fix = "compute it on the outputs themselves, not on detached ones"
                yield fault("loss_cut_off", line, "likely", says, fix=fix, lines=(term.lineno, backward.line))


def _summed(roles: Roles, node: ast.expr, function: str, depth: int = MAX_NAMES_FOLLOWED) -> Iterator[ast.expr]:
    """Yield what a loss is the sum of, what is added to it later among it; names of single parts stay names."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _summed(roles, node.left, function, depth)
        yield from _summed(roles, node.right, function, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _summed(roles, node.left, function, depth)
    elif isinstance(node, ast.Call) and _last_method(node) == "scale" and len(node.args) == 1:
        yield from _summed(roles, node.args[0], function, depth)
    elif isinstance(node, ast.Name):
        made = roles.assignments_by_name.get((function, node.id), [])
        is_sum = any(part.adds or _is_sum(part.value) for part in made)
        for part in made if is_sum and depth else ():
            yield from _summed(roles, part.value, function, depth - 1)
        if not is_sum:
            yield node
    else:
        yield node


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Div)


def _factors(node: ast.expr) -> list[ast.expr]:
    """Return what an expression is the product of."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def _cut_factor(roles: Roles, gradients: Gradients, term: ast.expr, backward: Call) -> ast.expr | None:
    """Return the loss that a part of a sum weights, where its gradient was cut off on the way to it.

    What is detached as it is was meant to be shown, or balances another part. So it is not judged.
    """
    factors = _factors(term)
    cut = [node for node in factors if gradients.of(node, backward.function) == "cut"]
    if len(cut) != 1 or gradients.of(term, backward.function) != "cut":
        return None
    name = cut[0].id if isinstance(cut[0], ast.Name) else ""
    made = roles.assignments_by_name.get((backward.function, name), [])
    if len(made) > 1 or not (len(factors) > 1 or LOSS_NAME.search(ast.unparse(term))):
        return None
    loss = made[0].value if made else cut[0]
    return loss if _is_computed(loss) else None


def _is_computed(node: ast.expr) -> bool:
    """Say whether a loss is computed of what it is made of, and is not that alone, detached."""
    return any(
        isinstance(part, ast.BinOp)
        or (isinstance(part, ast.Call) and LOSS_NAME.search(dotted(part.func).rpartition(".")[2]))
        or (isinstance(part, ast.Call) and dotted(part.func).rpartition(".")[2] in ("pow", "square", "abs"))
        for part in ast.walk(node)
    )


def part_cut_from_loss(roles: Roles) -> Iterator[Fault]:
    """A part of the loss is a plain number, taken by item() of what has a gradient."""
    for line in dict.fromkeys(roles.trace.lacking):
        says = "a part of the loss is a plain number taken by item(), through which no gradient goes"
        yield fault("loss_cut_off", line, "certain", says)
    for line, made in dict.fromkeys(roles.trace.without_graph):
        says = f"line {made} computes this loss where gradients are off, so it has no graph to go through"
        yield fault("backward_without_graph", line, "certain", says, lines=(made,))


def losses_kept(roles: Roles) -> Iterator[Fault]:
    """Losses are kept with their graphs."""
    lost = {name for backward in roles.backwards for node in _given_to(backward) for name in _names_of_loss(node)}
    training = {backward.function for backward in roles.backwards}
    yield from _kept_by_a_step(roles)
    for call in roles.script.named("append"):
        arg = call.node.args[0] if call.node.args else None
        name = dotted(arg) if isinstance(arg, ast.Name | ast.Attribute) else ""
        again = any(made.target == call.owner and made.loops == call.loops for made in roles.script.assignments)
        again = again or any(
            made.target in lost and call.owner in _names_of(made.value) for made in roles.script.assignments
        )
        evaluates = roles.evaluates(call.function) and LOSS_NAME.search(name)
        of_loop = call.function in training or "." in name or evaluates
        kept = name in lost and of_loop and call.loops and not again and not roles.gradients_off(call)
        if kept and not _is_detached(roles, name, call):
            says = f"{call.owner} keeps {name} with its graph"
            yield fault("losses_kept", call.line, "certain", says, fix=f"{call.owner}.append({name}.item())")
    for added in roles.script.assignments:
        summed = is_running_sum(added) and added.loops and added.target not in lost
        if not summed or added.function not in training:
            continue
        names = (_names_of(added.value) & lost) - {added.target} - roles.model_names
        names = {name for name in names if not _is_number(roles, name, added)}
        cut = any(name.rpartition(".")[2] in CUT for name in calls_in(added.value))
        read = any(isinstance(node, ast.Attribute) and node.attr in ("data", "shape") for node in ast.walk(added.value))
        if names and not cut and not read and not _set_anew(roles, added):
            says = f"{added.target} adds up {', '.join(sorted(names))} with its graph"
            yield fault("losses_kept", added.line, "certain", says, fix="add loss.item(), or loss.detach()")
    yield from _kept_in_evaluation(roles)
    yield from _kept_after_eval(roles)
    for line, *through in dict.fromkeys(roles.trace.kept):
        says = "this list keeps the loss of each round with its graph"
        yield fault("losses_kept", line, "likely", says, fix="keep loss.item(), or loss.detach()", lines=through)


def _is_number(roles: Roles, name: str, added: Assignment) -> bool:
    """Say whether a name was last assigned a plain number, such as a count that the loss is divided by."""
    made = [
        assignment
        for assignment in roles.assignments_by_name.get((added.function, name), [])
        if assignment.order <= added.order
    ]
    return bool(made) and bool({call.rpartition(".")[2] for call in calls_in(made[-1].value)} & NUMBERS_FROM)


NUMBERS_FROM = {*NUMBERS, "len", "int", "numel"}
"""Calls that give a number without a graph."""
SWITCHES = {"eval", "train", "requires_grad_", "state_dict"}
"""Methods of models: what they are called on is a model."""


def _kept_after_eval(roles: Roles) -> Iterator[Fault]:
    """Yield sums of losses that a function which trains as well adds up after `eval()`, with gradients on."""
    training = {backward.function for backward in roles.backwards}
    for made in roles.script.assignments:
        if not is_running_sum(made) or not made.loops or made.function not in training:
            continue
        if any(made.loops[-1] in call.loops for call in (*roles.backwards, *roles.steps)):
            continue
        before = [call for call in roles.script.calls if call.function == made.function and call.order <= made.order]
        switches = [call.method for call in before if call.method in ("eval", "train") and call.owner]
        if switches[-1:] != ["eval"] or roles.gradients_off(before[-1]) or _starts_in(roles, made.target, made.loops):
            continue
        if carries_graph(roles, made.value, made.function, made.order):
            says = f"gradients are on in this evaluation, and {made.target} keeps the graph of every batch"
            yield fault("losses_kept", made.line, "certain", says, fix="compute it under torch.no_grad()")


def _kept_by_a_step(roles: Roles) -> Iterator[Fault]:
    """Yield where a step of Lightning puts the loss that it returns into a list as well."""
    for call in roles.script.named("append"):
        step = roles.definitions.get("training_step") if call.function.endswith(".training_step") else None
        arg = call.node.args[0] if call.node.args else None
        returned = values_returned(step)
        names = {
            part.id for value in returned if value is not None for part in ast.walk(value) if isinstance(part, ast.Name)
        }
        if isinstance(arg, ast.Name) and arg.id in names and call.owner.startswith("self."):
            source = roles.source_of(arg, call)
            if not isinstance(source, ast.Call) or _last_method(source) not in ("detach", "item"):
                says = f"{call.owner} keeps {arg.id} of every batch with its graph"
                # its largest part is freed by the backward pass, and the manual of Lightning keeps losses so
                yield fault("losses_kept", call.line, "depends", says, fix=f"{call.owner}.append({arg.id}.detach())")


def _kept_in_evaluation(roles: Roles) -> Iterator[Fault]:
    """Yield where evaluation with gradients on adds up or lists values with their graphs."""
    kept = [
        (made.target, made.value, made.line, made.order, made.loops, made.function)
        for made in roles.script.assignments
        if is_running_sum(made)
    ]
    kept += [
        (call.owner, call.node.args[0], call.line, call.order, call.loops, call.function)
        for call in roles.script.named("append")
        if call.node.args
    ]
    for target, value, line, order, loops, function in kept:
        if not loops or not roles.trains_by_hand or not roles.evaluates(function) or _starts_in(roles, target, loops):
            continue
        before = [call for call in roles.script.calls if call.function == function and call.order <= order]
        on = bool(before) and not roles.gradients_off(before[-1])
        of_model = SWITCHES & {name.rpartition(".")[2] for name in calls_in(value)}
        if on and not of_model and carries_graph(roles, value, function, order):
            says = f"gradients are on in this evaluation, and {target} keeps the graph of every batch"
            yield fault("losses_kept", line, "certain", says, fix="compute it under torch.no_grad()")


def _starts_in(roles: Roles, target: str, loops: tuple[int, ...]) -> bool:
    """Say whether a sum or list begins anew in the loop in which it grows."""
    return any(
        made.target == target and made.loops == loops and not is_running_sum(made) for made in roles.script.assignments
    )


def _given_to(backward: Call) -> list[ast.expr]:
    """Return what gradients are computed of: what stands before `.backward()`, or its one argument."""
    loss = _loss_of(backward)
    return [loss] if loss is not None else []


def _names_of(node: ast.expr) -> set[str]:
    """Return the names and attributes in an expression, dotted; of `self.loss` not `self`."""
    attributes = {dotted(part) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return attributes | (names_in(node) - {"self"})


def _names_of_loss(node: ast.AST) -> set[str]:
    """Return the names of a loss in an expression, and not those of what a function makes it from."""
    if isinstance(node, ast.Call):
        given = dotted(node.func).rpartition(".")[2] in SAME_VALUES or "scale" in dotted(node.func)
        parts: list[ast.AST] = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts += node.args if given else []
    elif isinstance(node, ast.Name | ast.Attribute):
        return _names_of(node)
    else:
        parts = list(ast.iter_child_nodes(node))
    return set[str]().union(*map(_names_of_loss, parts))


def _set_anew(roles: Roles, added: Assignment) -> bool:
    """Say whether a sum begins anew in the loop in which it is added to, as that of a window of batches does."""
    return any(
        made.target == added.target and not is_running_sum(made) and made.loops == added.loops
        for made in roles.script.assignments
        if made.function == added.function
    )


def _is_detached(roles: Roles, name: str, call: Call) -> bool:
    source = roles.source_of(ast.Name(name), call)
    return any(text.rpartition(".")[2] in ("item", "detach") for text in calls_in(source))


ELEMENTWISE_LOSSES = (
    "MSELoss", "mse_loss", "L1Loss", "l1_loss", "SmoothL1Loss", "smooth_l1_loss", "HuberLoss", "huber_loss",
)  # fmt: skip
"""Losses that broadcast outputs and targets of different shapes; PyTorch warns of some of them, and goes on."""


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


def _shapes_followed(roles: Roles) -> Iterator[Fault]:
    """Yield differences of an output with a last axis of 1 and targets without it, through modules and helpers."""
    losses = {
        node
        for node, names in roles.trace.called.items()
        if {name.rpartition(".")[2] for name in names} & set(ELEMENTWISE_LOSSES)
    }
    for node in ast.walk(roles.script.tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
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
        if targets == {"row"}:
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
    return isinstance(target, ast.Name) and any(
        made.target == target.id
        and isinstance(made.value, ast.Call)
        and _shape_after(dotted(made.value.func).rpartition(".")[2], made.value) == "column"
        and (call := roles.call_of(made.value)) is not None
        and roles.gradients_off(call)
        for made in roles.script.assignments
    )


def _compared(roles: Roles, call: Call) -> tuple[ast.expr, ast.expr] | None:
    """Return outputs and targets that a loss compares element by element, one that is written out as well."""
    if roles.loss_named(call, *ELEMENTWISE_LOSSES):
        return (call.node.args[0], call.node.args[1]) if len(call.node.args) >= 2 else None
    if call.method != "mean" or not roles.trains_by_hand or roles.gradients_off(call):
        return None
    inner = call.node.args[0] if call.node.args else call.node.func
    inner = inner.value if isinstance(inner, ast.Attribute) else inner
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow):
        difference = inner.left
    elif isinstance(inner, ast.Call) and dotted(inner.func).rpartition(".")[2] in ("square", "pow", "abs"):
        of_library = dotted(inner.func).partition(".")[0] in ("torch", "jnp", "F")
        difference = inner.args[0] if of_library and inner.args else getattr(inner.func, "value", inner)
    else:
        return None
    if not isinstance(difference, ast.BinOp) or not isinstance(difference.op, ast.Sub):
        return None
    names = {dotted(difference.left).rpartition(".")[2], dotted(difference.right).rpartition(".")[2]}
    compares = any(re.search(r"pred|out|y_?hat|logit|score|est", name) for name in names) and any(
        re.search(r"^y|target|label|true|truth|price", name) for name in names
    )
    return (difference.left, difference.right) if compares else None


SAME_SHAPE = (
    "float", "double", "long", "to", "cuda", "detach", "clone", "clamp", "exp", "log", "sigmoid", "tanh", "sin", "cos",
)  # fmt: skip


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


RESHAPES = ("squeeze", "unsqueeze", "flatten", "view", "reshape", "ravel")
TALL = re.compile(r"\[:, None\]|(?:ones|zeros|full|Tensor|rand\w*)\([^\n]*, 1\)|\.to_numpy\(\)\[:, |\[\[['\"]")
"""What makes columns besides reshaping: a new axis, shapes that are written out, columns of a table by a list."""


MADE_BY_SIZE = ("rand", "randn", "zeros", "ones", "empty", "full", "uniform", "normal")
"""Functions that make an array of a size that they are given."""


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


MEAN_LOSSES = re.compile(r"(?:^|\.)(?:F|functional)\.(?:\w*loss|\w*cross_entropy\w*)$")


def reductions_mixed(roles: Roles) -> Iterator[Fault]:
    """A mean over all elements and a sum over all elements are added without a weight."""
    for line, summed in dict.fromkeys(roles.trace.reductions):
        says = f"a mean over all elements and a sum over all of them (line {summed}) are added"
        yield fault("reductions_mixed", line, "likely", says, lines=(summed,))


def returned(roles: Roles) -> Iterator[Assignment]:
    """Yield what functions return, as assignments to no name."""
    for function in ast.walk(roles.script.tree):
        if isinstance(function, ast.FunctionDef):
            inside = [call for call in roles.script.calls if call.function.rpartition(".")[2] == function.name]
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None and inside:
                    order = inside[-1].order + 1
                    yield Assignment("", node.value, node.lineno, order, (), inside[-1].function)


KERAS_LOSS = re.compile(r"(?:Sparse|Binary)?_?(?:Categorical)?_?Crossentropy$", re.IGNORECASE)


def keras_logits(roles: Roles) -> Iterator[Fault]:
    """What the last layer of a Keras model gives out and what its loss takes differ: logits, or probabilities."""
    compiled = [call for call in roles.script.named("compile") if "loss" in call.keywords]
    if len(compiled) != 1:
        return
    compiled_call = compiled[0]
    loss = roles.source_of(compiled_call.keywords["loss"], compiled_call)
    name = constant_of(loss) if isinstance(loss, ast.Constant) else dotted(loss) if isinstance(loss, ast.Call) else ""
    layers = [call for call in roles.script.named("Dense") if call.order < compiled_call.order]
    if not isinstance(name, str) or not KERAS_LOSS.search(name.rpartition(".")[2]) or not layers:
        return
    logits = isinstance(loss, ast.Call) and any(
        keyword.arg == "from_logits" and constant_of(keyword.value) is True for keyword in loss.keywords
    )
    activation = roles.value_of(layers[-1].keywords.get("activation"))
    if logits and activation in ("softmax", "sigmoid"):
        says = f"the last layer has a {activation}, and the loss with from_logits=True applies it again"
        yield _twice(loss.lineno, says)
    plain = "activation" not in layers[-1].keywords and len(layers[-1].node.args) < 2
    named = roles.script.named("Softmax", "Activation", "softmax", "sigmoid", "load_model", "from_config")
    if not logits and plain and not named:
        says = "the last layer gives logits, and the loss without from_logits=True takes probabilities"
        yield fault("logits_as_probabilities", loss.lineno, "likely", says)


WEIGHT_OF_A_ROW = re.compile(
    r"mask|keep|valid|(?:^|_)(?:row|sample|example|item|instance|importance|is|class)_?w(?:eights?)?s?$|^weights$|^w[st]?$",
    re.IGNORECASE,
)
"""Names of weights that have a value for each row."""


MAX_PRODUCTS = 50
"""Products with weights of rows that are judged. Chosen: a script has a few."""


def weights_on_a_mean(roles: Roles) -> Iterator[Fault]:
    """Weights or a mask of the rows meet a loss that is their mean already."""
    products = [
        node
        for node in ast.walk(roles.script.tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and (_weighs_rows(node.left) or _weighs_rows(node.right))
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
    call = roles.call_of(source) if isinstance(source, ast.Call) else None
    if call is None:
        return None
    made = roles.losses.get(call.name)
    if made is not None:
        given = made.value
        return (
            None if isinstance(given, ast.Call) and any(keyword.arg in REDUCES for keyword in given.keywords) else call
        )
    return call if MEAN_LOSSES.search(call.name) and not REDUCES & set(call.keywords) else None


REDUCES = {"reduction", "reduce", "size_average"}


def _weighs_rows(node: ast.expr) -> bool:
    """Say whether a factor has a value for each row, by its name."""
    names = [dotted(part).rpartition(".")[2] for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)]
    reduced = any(name.rpartition(".")[2] in ("mean", "sum", "item", "max") for name in calls_in(node))
    of_config = isinstance(node, ast.Attribute) and not dotted(node).startswith("self.")
    return not reduced and not of_config and any(WEIGHT_OF_A_ROW.search(name) for name in names)


def _is_reduced(roles: Roles, product: ast.BinOp) -> bool:
    """Say whether a product is reduced afterwards, as one of rows is: `(loss * mask).mean()`, `/ mask.sum()`."""
    for node in ast.walk(roles.script.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("mean", "sum"):
            if any(part is product for part in (node.func.value, *node.args)):
                return True
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            total = any(name.rpartition(".")[2] == "sum" for name in calls_in(node.right))
            inside = any(part is product for part in ast.walk(node.left))
            if total and inside:
                return True
    return any(
        made.value is product
        and any(call.owner == made.target and call.method in ("mean", "sum") for call in roles.script.calls)
        for made in roles.script.assignments
    )
