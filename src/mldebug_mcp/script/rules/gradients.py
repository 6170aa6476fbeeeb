"""Does the gradient of the loss reach the weights, and which parameters train?"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
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
    is_operation,
    last_name,
    last_part,
    names_in,
    names_read,
    names_set,
    operands,
    parameters_of,
    part_of,
    values_returned,
    walk,
)
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import (
    CUT,
    HAS_PARAMETERS,
    LOADER,
    NUMBERS,
    OPTIMIZERS,
    PLAIN_ATTRIBUTES,
    SAME_MODEL,
    SAME_VALUES,
    WITHOUT_GRADIENT,
)
from mldebug_mcp.script.roles import MAX_NAMES_FOLLOWED, Roles
from mldebug_mcp.script.rules.loss import outermost_call
from mldebug_mcp.script.trace import Event, Trace
from mldebug_mcp.script.values import Object

FUNCTIONAL_LOSS = re.compile(r"(?:^|\.)(?:F|functional)\.\w*(?:loss|entropy)\w*$")
SAME_GRADIENT = ("mean", "sum", "float", "to", "cuda", "view", "reshape", "squeeze", "unsqueeze", "div", "mul", "clamp")
"""Methods of a tensor through which its gradient goes."""
NUMBERS_FROM = {*NUMBERS, "len", "int", "numel"}
"""Calls that give a number without a graph."""
SWITCHES = {"eval", "train", "requires_grad_", "state_dict"}
"""Methods of models: what they are called on is a model."""
OF_GAUSSIAN = re.compile(r"^mus?$|mean|var|std|sigma|eps|noise|^(?:torch|np|math|self)$")
"""Names in a sample of a mean and deviation; another, such as data that gets noise, means something else."""
LOSS_NAME = re.compile(r"loss|criterion|objective", re.IGNORECASE)
MAX_STEPS_FOLLOWED = 8
"""Assignments and calls that a value is followed through to a graph."""
AFTER_ALL = 1 << 60
"""A place in the order of calls that stands after all of them."""
Gradient = Literal["", "data", "cut"]
"""What is known of the gradient of a value: "data" never had one, "cut" lost it; "" may have one."""
MAX_STEPS_TO_A_CUT = 12
"""Assignments and calls that a value is followed through to where it loses its gradient."""
CUTS = ("detach", "item", "numpy", "tolist")
"""Methods of a tensor that give its values without its gradient."""
MAKES_DATA = re.compile(
    r"^torch\.(?:tensor|zeros|ones|full|rand|randn|randint|randperm|arange|linspace|eye|empty|from_numpy)(?:_like)?$"
    r"|^torch\.\w+Tensor$|^(?:np|numpy)\.[\w.]+$|^(?:len|int|float|bool|range|round|str)$"
)
"""Functions whose result has no gradient whatever they are given."""
COMPUTES = re.compile(
    r"^(?:torch\.(?!nn|autograd|func|optim|jit|compile|load)|(?:torch\.)?(?:nn\.functional|F)\.)[a-z]\w*$"
)
"""Functions of PyTorch whose result has no gradient if nothing that they are given has one."""
LISTS = ("sum", "max", "min", "abs", "zip", "enumerate", "reversed", "list", "tuple")
"""Functions whose result has a gradient if what they are given has one."""
SETTINGS = re.compile(r"(?:^|\.)(?:args?|cfg|config|conf|hp|hparams?|opts?|settings|flags|FLAGS)\.\w+$")
COEFFICIENT = re.compile(r"coef|_weight$|lambda|lmbda|(?:^|_)lam$|gamma|eps$", re.IGNORECASE)
"""How settings, and parameters of functions that weight something, are called."""
FROZEN_MODEL = re.compile(
    r"teacher|target_?net|(?:^|[_.])(?:ema|ref|reference|old|prev|slow)(?:$|[_.(])", re.IGNORECASE
)
"""Names of models that are not trained, whose outputs are detached on purpose."""
FILLS = ("append", "extend", "insert", "appendleft")


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
    training = roles.trained_in
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


def _has_graph(roles: Roles, backward: Call) -> bool:
    """Say whether a loss may have been computed outside of the block that turns gradients off."""
    computed = [event for event in roles.trace.of("backward") if event.node is backward.node]
    blocks = walk(roles.script.tree, ast.With)
    inside = [node for node in blocks if node.lineno <= backward.line <= (node.end_lineno or node.lineno)]
    names = names_in(backward.node.func)
    made_inside = any(
        made.target in names and node.lineno < made.line < backward.line
        for node in inside
        for made in roles.script.assignments
    )
    return not made_inside or any(event.objects for event in computed)


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
    terms = list(_terms_of_loss(roles, source, backward))
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
    made = re.search(r"(?:^|\.)(?:tensor|Tensor|Variable|as_tensor)$", outermost_call(node))
    first = node.args[0] if made and isinstance(node, ast.Call) and node.args else None
    return first is not None and not isinstance(first, ast.List | ast.Constant)


def _is_of_detached_outputs(roles: Roles, term: ast.expr, backward: Call) -> bool:
    """Say whether all outputs of models in a term are detached where they are computed, and nothing else is learned."""
    cut = [node for node in walk(term, ast.Call) if isinstance(node.func, ast.Attribute) and node.func.attr == "detach"]
    inside = {id(part) for node in cut for part in ast.walk(node)}
    of_model = [node for node in walk(term, ast.Call) if _is_output(roles, node)]
    local = {made.target for made in roles.script.assignments if made.loops == backward.loops}
    learned = {part.id for part in walk(term, ast.Name) if part.id in local}
    return bool(cut and of_model) and not learned and all(id(node) in inside for node in of_model)


def _is_output(roles: Roles, node: ast.Call) -> bool:
    names = dotted(node.func).split(".")
    return any(name in roles.model_names for name in names)


def _last_method(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return called_name(node)


def _terms_of_loss(roles: Roles, node: ast.expr, call: Call, depth: int = MAX_NAMES_FOLLOWED) -> Iterator[ast.expr]:
    """Yield what a loss is the sum of, following names to what they were assigned."""
    source = roles.source_of(node, call) if isinstance(node, ast.Name) and depth else node
    if is_operation(source, ast.Add, ast.Sub):
        yield from _terms_of_loss(roles, source.left, call, depth - 1)
        yield from _terms_of_loss(roles, source.right, call, depth - 1)
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
    if is_operation(node, ast.Add, ast.Sub):
        yield from _summed(roles, node.left, function, depth)
        yield from _summed(roles, node.right, function, depth)
    elif is_operation(node, ast.Div):
        yield from _summed(roles, node.left, function, depth)
    elif isinstance(node, ast.Call) and _last_method(node) == "scale" and len(node.args) == 1:
        yield from _summed(roles, node.args[0], function, depth)
    elif isinstance(node, ast.Name):
        made = roles.assignments_by_name.get((function, node.id), [])
        is_sum = any(part.adds or is_operation(part.value, ast.Add, ast.Sub, ast.Div) for part in made)
        for part in made if is_sum and depth else ():
            yield from _summed(roles, part.value, function, depth - 1)
        if not is_sum:
            yield node
    else:
        yield node


def _cut_factor(roles: Roles, gradients: Gradients, term: ast.expr, backward: Call) -> ast.expr | None:
    """Return the loss that a part of a sum weights, where its gradient was cut off on the way to it.

    What is detached as it is was meant to be shown, or balances another part. So it is not judged.
    """
    factors = operands(term, ast.Mult)
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
    called = map(last_name, walk(node, ast.Call))
    computes = any(LOSS_NAME.search(name) or name in ("pow", "square", "abs") for name in called)
    return computes or any(walk(node, ast.BinOp))


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
    training = roles.trained_in
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
            # A list that each epoch begins anew holds one epoch, whose tensors backward has freed.
            is_bounded = any(_starts_in(roles, call.owner, call.loops[:depth]) for depth in range(1, len(call.loops)))
            says = f"{call.owner} keeps {name} with its graph"
            sure: Certainty = "likely" if is_bounded else "certain"
            yield fault("losses_kept", call.line, sure, says, fix=f"{call.owner}.append({name}.item())")
    for added in roles.script.assignments:
        summed = is_running_sum(added) and added.loops and added.target not in lost
        if not summed or added.function not in training:
            continue
        names = (_names_of(added.value) & lost) - {added.target} - roles.model_names
        names = {name for name in names if not _is_number(roles, name, added)}
        cut = any(last_part(name) in CUT for name in calls_in(added.value))
        read = any(isinstance(node, ast.Attribute) and node.attr in ("data", "shape") for node in ast.walk(added.value))
        if names and not cut and not read and not _starts_in(roles, added.target, added.loops):
            says = f"{added.target} adds up {', '.join(sorted(names))} with its graph"
            yield fault("losses_kept", added.line, "certain", says, fix="add loss.item(), or loss.detach()")
    yield from _kept_in_evaluation(roles)
    yield from _kept_after_eval(roles)
    for line, *through in dict.fromkeys(roles.trace.kept):
        says = "this list keeps the loss of each round with its graph"
        yield fault("losses_kept", line, "likely", says, fix="keep loss.item(), or loss.detach()", lines=through)


def _is_number(roles: Roles, name: str, added: Assignment) -> bool:
    """Say whether a name was last assigned a plain number, such as a count that the loss is divided by."""
    made = roles.made_before(name, added)
    return bool(made) and bool({last_part(call) for call in calls_in(made[-1].value)} & NUMBERS_FROM)


def _kept_after_eval(roles: Roles) -> Iterator[Fault]:
    """Yield sums of losses that a function which trains as well adds up after `eval()`, with gradients on."""
    training = roles.trained_in
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
        names = {part.id for value in returned if value is not None for part in walk(value, ast.Name)}
        if isinstance(arg, ast.Name) and arg.id in names and call.owner.startswith("self."):
            source = roles.source_of(arg, call)
            if not isinstance(source, ast.Call) or _last_method(source) not in ("detach", "item"):
                says = f"{call.owner} keeps {arg.id} of every batch with its graph"
                # its largest part is freed by the backward pass, and the manual of Lightning keeps losses so
                yield fault("losses_kept", call.line, "depends", says, fix=f"{call.owner}.append({arg.id}.detach())")


def _kept_in_evaluation(roles: Roles) -> Iterator[Fault]:
    """Yield where evaluation with gradients on adds up or lists values with their graphs."""
    sums = [made for made in roles.script.assignments if is_running_sum(made)]
    appends = [call for call in roles.script.named("append") if call.node.args]
    kept: list[tuple[str, ast.expr, Assignment | Call]] = [
        *((made.target, made.value, made) for made in sums),
        *((call.owner, call.node.args[0], call) for call in appends),
    ]
    for target, value, at in kept:
        loops, function = at.loops, at.function
        if not loops or not roles.trains_by_hand or not roles.evaluates(function) or _starts_in(roles, target, loops):
            continue
        before = [call for call in roles.script.calls if call.function == function and call.order <= at.order]
        on = bool(before) and not roles.gradients_off(before[-1])
        of_model = SWITCHES & {last_part(name) for name in calls_in(value)}
        if on and not of_model and carries_graph(roles, value, function, at.order):
            says = f"gradients are on in this evaluation, and {target} keeps the graph of every batch"
            yield fault("losses_kept", at.line, "certain", says, fix="compute it under torch.no_grad()")


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
    attributes = {dotted(part) for part in walk(node, ast.Attribute)}
    return attributes | (names_in(node) - {"self"})


def _names_of_loss(node: ast.AST) -> set[str]:
    """Return the names of a loss in an expression, and not those of what a function makes it from."""
    if isinstance(node, ast.Call):
        given = last_name(node) in SAME_VALUES or "scale" in dotted(node.func)
        parts: list[ast.AST] = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts += node.args if given else []
    elif isinstance(node, ast.Name | ast.Attribute):
        return _names_of(node)
    else:
        parts = list(ast.iter_child_nodes(node))
    return set[str]().union(*map(_names_of_loss, parts))


def _is_detached(roles: Roles, name: str, call: Call) -> bool:
    source = roles.source_of(ast.Name(name), call)
    return any(last_part(text) in ("item", "detach") for text in calls_in(source))


def sampled_without_gradient(roles: Roles) -> Iterator[Fault]:
    """The sample of an encoder's mean and deviation is made without gradients, so the encoder learns nothing by it."""
    for function in walk(roles.script.tree, ast.FunctionDef):
        for block in ast.walk(function):
            off = isinstance(block, ast.With) and any("no_grad" in ast.unparse(item) for item in block.items)
            for made in (part for part in walk(block, ast.Assign) if off):
                text, later = ast.unparse(made.value), getattr(block, "end_lineno", 0) or 0
                name = dotted(made.targets[0])
                read_here = {part.id for part in walk(made.value, ast.Name)}
                inside = {dotted(part.targets[0]) for part in walk(block, ast.Assign)}
                inside |= names_set(block)
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


def carries_graph(
    roles: Roles, node: ast.expr, function: str, order: int = AFTER_ALL, depth: int = MAX_STEPS_FOLLOWED
) -> bool:
    """Say whether a value of a function, at a place in the order of calls, has the graph of a model for certain."""
    if depth == 0:
        return False
    if isinstance(node, ast.Name):
        made = _last_made(roles, node.id, function, order)
        if made is not None and made.place is not None:
            return isinstance(made.value, ast.Call) and _part_carries(roles, made.value, made.place, depth - 1)
        return made is not None and carries_graph(roles, made.value, function, made.order, depth - 1)
    if isinstance(node, ast.Call):
        method = last_name(node)
        if method in WITHOUT_GRADIENT:
            return False
        if roles.calls_model(node) or isinstance(roles.definitions.get(method), ast.FunctionDef):
            return _part_carries(roles, node, None, depth)
    return any(carries_graph(roles, part, function, order, depth - 1) for part in _parts(roles, node))


def _parts(roles: Roles, node: ast.expr) -> list[ast.expr]:
    """Return the parts of an expression whose gradient goes into its value."""
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return [node.operand]
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.Attribute() | ast.Subscript() if not _is_plain(node):
            return [node.value]
        case ast.Call():
            return _operands(roles, node)
    return []


def _is_plain(node: ast.Attribute | ast.Subscript) -> bool:
    """Say whether a part has no gradient: `x.shape`, or the indices of `x.max(1)`."""
    if isinstance(node, ast.Attribute):
        return node.attr in PLAIN_ATTRIBUTES
    method = called_name(node.value)
    return method in ("max", "min", "topk", "sort") and constant_of(node.slice) == 1


def _last_made(roles: Roles, name: str, function: str, order: int) -> Assignment | None:
    made = roles.assignments_by_name.get((function, name), [])
    return next(
        (assignment for assignment in reversed(made) if assignment.order <= order and not is_running_sum(assignment)),
        None,
    )


def is_running_sum(made: Assignment) -> bool:
    """Say whether an assignment adds to what the name held: `x += y`, `x = x + y` or `x = 0.9 * x + 0.1 * y`."""
    if made.adds:
        return True
    terms = operands(made.value, ast.Add) if is_operation(made.value, ast.Add) else []
    factors = [part for term in terms for part in operands(term, ast.Mult)]
    return made.target in map(dotted, factors)


def _part_carries(roles: Roles, node: ast.Call, place: int | None, depth: int) -> bool:
    """Say whether what a model or a function of this file returns has a graph, as the part of a tuple at a place."""
    if roles.calls_model(node):
        call = roles.call_of(node)
        return place in (None, 0) and call is not None and not roles.gradients_off(call)
    helper = roles.definitions.get(last_name(node))
    return isinstance(helper, ast.FunctionDef) and _returns_graph(roles, helper, place, depth)


def _operands(roles: Roles, node: ast.Call) -> list[ast.expr]:
    """Return what a method of a tensor, a function of PyTorch or a loss is called on; nothing for other functions."""
    name = dotted(node.func)
    of_library = re.match(r"(?:torch|F|nn)\.", name) or name in roles.losses
    if of_library or LOSS_NAME.search(last_part(name)):
        listed = [arg.elts if isinstance(arg, ast.List | ast.Tuple) else [arg] for arg in node.args]
        return [part for parts in listed for part in parts]
    return [node.func.value] if isinstance(node.func, ast.Attribute) else []


def _returns_graph(roles: Roles, helper: ast.FunctionDef, place: int | None, depth: int) -> bool:
    """Say whether a function of this file returns a value with a graph, as the part of a tuple where one is asked."""
    parts = [part for value in values_returned(helper) if (part := part_of(value, place)) is not None]
    return any(carries_graph(roles, part, roles.path_of(helper.name), depth=depth - 1) for part in parts)


class Gradients:
    """Finds what is known of the gradient of values in the functions of a script.

    All that a name may hold in its function counts, as each of it may be what a later line reads.
    """

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._known: dict[tuple[str, str], Gradient] = {}

    def of(self, node: ast.expr, function: str, depth: int = MAX_STEPS_TO_A_CUT) -> Gradient:
        """Return what is known of the gradient of an expression in a function."""
        if depth == 0:
            return ""
        match node:
            case ast.Constant() | ast.Compare() | ast.JoinedStr():
                return "data"
            case ast.Name():
                return self._of_name(node.id, function, depth - 1)
            case ast.Attribute():
                return self._of_attribute(node, function, depth - 1)
            case ast.Call():
                return self._of_call(node, function, depth - 1)
        parts = _parts_of(node)
        return self._joined_gradient(parts, function, depth - 1) if parts is not None else ""

    def _joined_gradient(self, nodes: Iterable[ast.expr], function: str, depth: int) -> Gradient:
        return joined([self.of(node, function, depth) for node in nodes])

    def _of_attribute(self, node: ast.Attribute, function: str, depth: int) -> Gradient:
        if node.attr == "data":
            return "cut"
        if node.attr in PLAIN_ATTRIBUTES or SETTINGS.search(dotted(node)):
            return "data"
        if node.attr in ("T", "mT", "values"):
            return self.of(node.value, function, depth)
        name = dotted(node)
        made = [made for made in self._roles.script.assignments if name.startswith("self.") and made.target == name]
        plain = all(
            constant_of(part.value) is not None or self._is_weight(dotted(part.value), part.function) for part in made
        )
        return "data" if made and plain else ""

    def _is_weight(self, name: str, function: str) -> bool:
        """Say whether a name is a parameter that weights something: by its name, or by a number as its default."""
        definition = self._roles.definitions.get(last_part(function))
        if not isinstance(definition, ast.FunctionDef) or name not in parameters_of(definition):
            return False
        optional = zip(reversed(parameters_of(definition)), reversed(definition.args.defaults), strict=False)
        number = any(name == parameter and constant_of(value) is not None for parameter, value in optional)
        return number or bool(COEFFICIENT.search(name))

    def _of_name(self, name: str, function: str, depth: int) -> Gradient:
        if (function, name) not in self._known:
            before = len(self._known)
            self._known[function, name] = "data"  # what is computed of itself ends here
            known = self._of_all_made(name, function, depth)
            if not known:  # then what was found to be data by the line above may not be
                self._known = {
                    key: value for place, (key, value) in enumerate(self._known.items()) if place < before or not value
                }
            self._known[function, name] = known
        return self._known[function, name]

    def _of_all_made(self, name: str, function: str, depth: int) -> Gradient:
        roles = self._roles
        made = roles.assignments_by_name.get((function, name), [])
        own = [call for call in roles.script.calls if call.function == function and call.owner == name]
        if any(call.method.endswith("_") and not call.method.startswith("__") for call in own):
            return ""  # what is written into it may have one
        known = [self._of_made(part, depth) for part in made]
        known += [self._joined_gradient(call.node.args, function, depth) for call in own if call.method in FILLS]
        definition = roles.definitions.get(last_part(function))
        known += [""] if name in parameters_of(definition) and not self._is_weight(name, function) else []
        through = self._loops_over(name, function)
        known += ["data" if LOADER.search(dotted(_innermost(loop))) else "" for loop in through]
        if known:
            return joined(known)
        return "data" if self._is_constant(name) or self._is_weight(name, function) else ""

    def _of_made(self, made: Assignment, depth: int) -> Gradient:
        """Return what is known of an assigned value: in a block without gradients it has none."""
        calls = [*walk(made.value, ast.Call)]
        inside = [call for call in map(self._roles.call_of, calls) if call is not None]
        if any(self._roles.turned_off(call.guards) for call in inside):
            return "cut" if any(self._calls_trained(call) for call in inside) else "data"
        return self.of(made.value, made.function, depth)

    def _calls_trained(self, call: Call) -> bool:
        """Say whether a call is the forward pass of a model that is called with gradients elsewhere."""
        others = (other for other in self._roles.script.calls if other.name == call.name)
        trained = any(not self._roles.turned_off(other.guards) for other in others)
        return trained and self._roles.calls_model(call.node) and not FROZEN_MODEL.search(call.name)

    def _loops_over(self, name: str, function: str) -> list[ast.expr]:
        definition = self._roles.definitions.get(last_part(function), self._roles.script.tree)
        return [node.iter for node in walk(definition, ast.For, ast.comprehension) if name in names_in(node.target)]

    def _of_call(self, node: ast.Call, function: str, depth: int) -> Gradient:
        name = ast.unparse(node.func)
        given = arguments_of(node)
        asked = any(keyword.arg in ("requires_grad", None) for keyword in node.keywords)
        if asked or self._roles.calls_model(node):
            return ""
        if MAKES_DATA.search(name):
            return "data"
        helper = self._roles.definitions.get(name)
        if isinstance(helper, ast.FunctionDef):
            computes = not self._reads_others(helper)
        else:
            computes = name in LISTS or bool(COMPUTES.search(name)) or name in self._roles.losses
        if computes or not isinstance(node.func, ast.Attribute):
            return self._joined_gradient(given, function, depth) if computes and given else ""
        return self._of_method(node.func, given, function, depth)

    def _of_method(self, node: ast.Attribute, given: Sequence[ast.expr], function: str, depth: int) -> Gradient:
        owner = self.of(node.value, function, depth)
        if node.attr in CUTS:
            return owner or ("data" if self._is_of_frozen_model(node.value, function) else "cut")
        if node.attr in WITHOUT_GRADIENT - {"float"}:
            return "data"
        return joined([owner, *(self.of(arg, function, depth) for arg in given)]) if node.attr[-1:] != "_" else ""

    def _is_of_frozen_model(self, node: ast.expr, function: str) -> bool:
        """Say whether a value is the output of a model that is not trained, by its name or that of the model."""
        made = self._roles.assignments_by_name.get((function, dotted(node)), [])
        return any(FROZEN_MODEL.search(ast.unparse(part)) for part in (node, *(part.value for part in made)))

    def _reads_others(self, helper: ast.FunctionDef) -> bool:
        """Say whether a function reads anything besides what it is given, libraries and constants, such as a model."""
        read = names_read(helper) - names_set(helper) - {*parameters_of(helper)} - self._roles.imported
        unknown = {name for name in read if not hasattr(builtins, name) and not self._is_constant(name)}
        return bool(unknown) or any(last_part(name)[:1].isupper() for name in calls_in(helper))

    def _is_constant(self, name: str) -> bool:
        made = self._roles.assignments_by_name.get(("", name), [])
        return bool(made) and all(constant_of(part.value) is not None for part in made)


def _parts_of(node: ast.expr) -> Sequence[ast.expr] | None:
    """Return the parts of an expression other than a call, whose gradients it has; None where these are not known."""
    match node:
        case ast.Subscript() | ast.Starred():
            return [node.value]
        case ast.UnaryOp():
            return [node.operand]
        case ast.BinOp():
            return [node.left, node.right]
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.List() | ast.Tuple():
            return node.elts
    return None


def joined(known: Sequence[Gradient]) -> Gradient:
    """Return what is known of the gradient of what is computed of several values."""
    if "" in known:
        return ""
    return "cut" if "cut" in known else "data"


def _innermost(node: ast.expr) -> ast.expr:
    """Return what a loop goes through, past `enumerate`, `tqdm` and the like."""
    while isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    return node


# Which parameters train: of one model, and of several networks, copies and averages?


REPLACES_PARAMETERS = re.compile(r"get_peft_model|prepare_model_for|FSDP$|FullyShardedDataParallel$")
"""What returns a model whose parameters are others than before."""
SEVERAL_TRAININGS = re.compile(
    r"fold|seed|config|stage|phase|task|grid|trial|run|client|lrs|rates|sizes|experience|round|cycle|domain|models|member",
    re.IGNORECASE,
)
"""What loops over trainings of their own go through: what they are for stands in their words alone."""
CONTAINERS = ast.List | ast.ListComp | ast.Dict | ast.DictComp | ast.Tuple
REGISTERS = re.compile(r"(?:ModuleList|ModuleDict|Sequential|ParameterList|add_module|register_module|setattr)$")
HEAD = re.compile(
    r"classifier|(?:^|[._])(?:head|fc|score|final|output_layer|out_proj_head)(?:$|[._])|^fc\b|lora_", re.IGNORECASE
)
"""Names of the part that is new in fine-tuning."""
PRETRAINED = re.compile(
    r"from_pretrained|pretrained=True|weights=(?!None)|create_model\(|hub\.load|load_state_dict|get_peft_model"
)
ADAPTED_BY = ("peft_config", "model_init")
"""What gives a trainer other parameters than those of the model that it is given."""
LEAVES_FROZEN = {*SAME_MODEL, "parameters", "named_parameters", "gradient_checkpointing_enable", "save_pretrained"}
"""Methods of a model that free no parameters and give none of its layers."""


def _replaced_in_place(roles: Roles, optimizer: str, made: Assignment, model: str) -> Iterator[Fault]:
    """Yield calls after the optimizer that give a model other parameters: `fully_shard(model)`, new embeddings."""
    for call in roles.script.named("fully_shard", "resize_token_embeddings", "add_adapter"):
        first = dotted(call.node.args[0]) if call.method == "fully_shard" and call.node.args else call.owner
        if model and first == model and call.order > made.order and call.function == made.function:
            says = f"{call.name}() gives {model} other parameters after {optimizer} was made, which has the old ones"
            yield fault("made_after_optimizer", call.line, "certain", says)


def _layers_without_optimizer(roles: Roles) -> Iterator[Fault]:
    """Yield the layers of a model that makes its own optimizers and gives them the parameters of others alone."""
    for module in walk(roles.script.tree, ast.ClassDef):
        text = ast.unparse(module)
        returned = [node for node in walk(module, ast.Call) if OPTIMIZERS.search(dotted(node))]
        given = " ".join(ast.unparse(node) for node in returned)
        own = set(re.findall(r"self\.(\w+)\.parameters\(\)", given))
        whole = re.search(r"self\.(?:named_)?parameters\(\)|self\.trainer|\*|\bparams\b|groups", given)
        if not own or whole or "requires_grad" in given:
            continue
        if len(re.findall(r"\.parameters\(\)", text)) > len(re.findall(r"\.parameters\(\)", given)):
            continue
        for node in _own_parts(module):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            name = dotted(node.targets[0])
            layers = any(HAS_PARAMETERS.search(called) for called in calls_in(node.value))
            frozen = re.search(rf"{re.escape(name)}\.(?:requires_grad_|eval|freeze)|freeze\({re.escape(name)}", text)
            used = re.search(rf"{re.escape(name)}\(", text)
            if name.startswith("self.") and name[5:] not in own and layers and used and not frozen:
                says = f"the optimizer has the parameters of {', '.join(sorted(own))} alone, and not those of {name}"
                yield fault("outside_optimizer", returned[0].lineno, "likely", says)
                break


def _own_parts(module: ast.ClassDef) -> Iterator[ast.AST]:
    """Yield the parts of a class, without those of classes inside of it."""
    stack: list[ast.AST] = [*module.body]
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.ClassDef):
            yield node
            stack += ast.iter_child_nodes(node)


def parameters_left_out(roles: Roles) -> Iterator[Fault]:
    """Parameters that the optimizer does not know, or that are frozen."""
    for name, made in roles.optimizers.items():
        model = next(iter(re.findall(r"(\w[\w.]*)\.parameters\(\)", ast.unparse(made.value))), "")
        for assignment in roles.script.assignments:
            later = assignment.order > made.order and assignment.function == made.function
            of_model = assignment.target == model or (
                isinstance(assignment.value, ast.Call) and any(dotted(arg) == model for arg in assignment.value.args)
            )
            if model and later and of_model and REPLACES_PARAMETERS.search(dotted(assignment.value) or ""):
                says = f"{assignment.target} is made after {name}, which does not know its parameters"
                yield fault("made_after_optimizer", assignment.line, "certain", says)
        yield from _replaced_in_place(roles, name, made, model)
    yield from _layers_after_the_optimizer(roles.trace)
    yield from _made_anew(roles)
    yield from _layers_in_a_list(roles)
    followed = {event.line for event in roles.trace.of("unfreeze")}
    if {line for _, is_on, line, _ in _switches(roles) if is_on} <= followed:
        yield from _frozen(roles.trace)
    yield from _layers_without_optimizer(roles)


def _layers_after_the_optimizer(trace: Trace) -> Iterator[Fault]:
    """Yield where a model gets a new layer after an optimizer was given its parameters, and none is given those."""
    named: set[int] = set()
    for place, event in enumerate(trace.events):
        layer = event.source
        if event.action != "attach" or layer is None or not layer.has_parameters() or event.line in named:
            continue
        added_later = {attach.source for attach in trace.events[place + 1 :] if attach.action == "attach"}
        if any(owner in added_later for owner in event.objects):
            continue  # it was no part of the model yet
        before = _optimizers_made(trace.events[:place], event.entry)
        knows_model = [
            optimizer
            for optimizer in before
            for trained in optimizer.holds
            for owner in event.objects
            if owner.is_part_of(trained) or _was_replaced(trained, owner, layer.name)
        ]
        later = _optimizers_made(trace.events[place:], event.entry)
        again = any(not optimizer.holds_all or optimizer.holds_some_of(layer) for optimizer in later)
        given = any(trained.is_part_of(layer) for optimizer in before for trained in optimizer.holds)
        taken = any(
            escape.action == "escape" and knows_model[:1] and knows_model[0] in escape.objects
            for escape in trace.events
        )
        if not knows_model or again or given or taken:
            continue
        named.add(event.line)
        certainty: Certainty = "likely" if event.tests else "certain"
        made = next(make for make in trace.events if make.action == "make" and knows_model[0] in make.objects)
        line = _asked_for_at(event, made)
        says = f"{layer.label} is made after {knows_model[0].label}, which does not know its parameters"
        says += "" if line == event.line else f" (line {event.line})"
        yield fault("made_after_optimizer", line, certainty, says)


def _asked_for_at(attach: Event, make: Event) -> int:
    """Return the line of a layer, or of the call of the model's own method that makes it.

    The model cannot know when it is given to an optimizer, unless its own methods make that.
    """
    owners = {owner.definition.name for owner in attach.objects if owner.definition is not None}
    inside = attach.function.partition(".")[0]
    is_own = inside in owners and inside != make.function.partition(".")[0] and bool(attach.through)
    return getattr(attach.through[-1], "lineno", attach.line) if is_own else attach.line


def _was_replaced(part: Object, owner: Object, name: str) -> bool:
    """Say whether a part that an optimizer has was at the place of a model where another is put now."""
    return part.parent is owner and part.name == name and name not in ("", "*")


def _optimizers_made(events: Sequence[Event], entry: int) -> list[Object]:
    return [
        optimizer for event in events if event.action == "make" and event.entry == entry for optimizer in event.objects
    ]


def _made_anew(roles: Roles) -> Iterator[Fault]:
    """Yield optimizers that a loop makes anew for a model that goes on: each round loses their moments."""
    trace = roles.trace
    named: set[int] = set()
    for make in trace.of("make"):
        optimizer = next(iter(make.objects))
        if not make.loops or not optimizer.holds or make.line in named:
            continue
        line, depth = make.loop_lines[-1], len(make.loops)
        inside = [event for event in trace.events if event.entry == make.entry and event.loops[:depth] == make.loops]
        steps = [event for event in inside if event.action == "step" and optimizer in event.objects]
        fresh = any(model.loops[:depth] == make.loops for model in optimizer.holds)
        reset = any(_sets_anew(event) and event.concerns(model) for event in inside for model in optimizer.holds)
        conditional = not any(set(make.tests) <= set(step.tests) for step in steps)
        passes = max((len(step.loops) - depth for step in steps), default=0)
        through = roles.loops_by_line.get(line)
        several = through is None or SEVERAL_TRAININGS.search(through)
        if fresh or reset or conditional or passes > 1 or several:
            continue
        named.add(make.line)
        certainty: Certainty = "likely" if passes else "certain"
        says = (
            f"{optimizer.label} is made anew at each round of the loop in line {line}: its moments are lost each time"
        )
        yield fault("optimizer_made_anew", make.line, certainty, says)


def _sets_anew(event: Event) -> bool:
    """Say whether a model may begin anew: its weights are set, or a function of another file is called to do so."""
    if event.action == "escape" and isinstance(event.node, ast.Call):
        return bool(re.search(r"reset|init|load|restore", dotted(event.node.func), re.IGNORECASE))
    return event.action in ("load", "write", "attach")


def unfrozen_outside_optimizer(roles: Roles) -> Iterator[Fault]:
    """Layers are unfrozen after the optimizer was given those that were free, and are never given to it."""
    if roles.uses("add_param_group"):
        return
    frozen = {key for key, free, _, _ in _switches(roles) if not free}
    for name, made in roles.optimizers.items():
        source = ast.unparse(made.value)
        for part in ast.walk(made.value):
            assignment = roles.script.assigned(part.id, made.order) if isinstance(part, ast.Name) else None
            source += ast.unparse(assignment.value) if assignment is not None else ""
        again = any(other.line > made.line for other in roles.script.made(name))
        if "requires_grad" not in source or again:
            continue
        for key, free, line, order in _switches(roles):
            if (
                free
                and order >= made.order
                and line > made.line
                and any(key == other or other.startswith(f"{key}.") for other in frozen)
            ):
                says = f"{key} is unfrozen after {name} was made, which was given what was free then"
                yield fault("unfrozen_outside_optimizer", line, "likely", says)
                break


def _switches(roles: Roles) -> Iterator[tuple[str, bool, int, int]]:
    """Yield where gradients of parts of a model are turned off or on: the part, whether on, the line, the order."""
    for made in roles.script.assignments:
        through = roles.script.loops.get(made.loops[-1], "") if made.loops else ""
        model = re.fullmatch(r"([\w.]+)\.(?:named_)?parameters\(\)", through)
        if made.target.endswith(".requires_grad") and model and isinstance(constant_of(made.value), bool):
            yield model[1], bool(constant_of(made.value)), made.line, made.order
    for call in roles.script.named("requires_grad_"):
        value = call.constant("requires_grad", 0) if call.node.args or call.node.keywords else True
        if isinstance(value, bool):
            yield call.owner, value, call.line, call.order


def _layers_in_a_list(roles: Roles) -> Iterator[Fault]:
    """Yield attributes of a model that hold layers in a plain list, tuple or mapping, which the model does not see."""
    if re.search(r"^(?:from|import) flax", roles.source, re.MULTILINE):
        return  # Flax knows the layers of lists
    for module in roles.modules:
        made = [
            assignment for assignment in roles.script.assignments if module.name in assignment.function.split(".")[:-1]
        ]
        own = {
            assignment.target: assignment
            for assignment in reversed(made)
            if re.fullmatch(r"self\.\w+", assignment.target) and not assignment.adds
        }
        for assignment in own.values():
            names = {assignment.target, *([assignment.value.id] if isinstance(assignment.value, ast.Name) else [])}
            starts = [other.value for other in made if other.target in names and other.function == assignment.function]
            if not any(_is_container(value) for value in starts):
                continue
            values = [value for value in starts if _is_container(value)]
            values += [
                other.value
                for other in made
                if other.target in names and (other.adds or other.target != assignment.target)
            ]
            values += _put_into(module, names)
            layers = any(_makes_layers(roles, name) for value in values for name in calls_in(value))
            if layers and not _is_registered(roles, module, names):
                says = f"{assignment.target} keeps layers in a plain list: the model does not know them"
                yield fault("layers_in_a_list", assignment.line, "certain", says)


def _is_container(node: ast.expr) -> bool:
    """Say whether a value is a list, tuple or mapping of Python."""
    return isinstance(node, CONTAINERS) or (
        isinstance(node, ast.Call) and dotted(node.func) in ("list", "tuple", "dict", "OrderedDict", "defaultdict")
    )


def _put_into(module: ast.ClassDef, names: set[str]) -> list[ast.expr]:
    """Return what is put into lists and mappings of some names: `x.append(value)` or `x[key] = value`."""
    found: list[ast.expr] = []
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            grows = node.func.attr in ("append", "extend", "insert", "update")
            found += node.args if grows and dotted(node.func.value) in names else []
        elif isinstance(node, ast.Assign):
            into = any(isinstance(target, ast.Subscript) and dotted(target) in names for target in node.targets)
            found += [node.value] if into else []
    return found


def _makes_layers(roles: Roles, name: str) -> bool:
    """Say whether a call makes something with parameters: a layer of PyTorch, or a model of this file."""
    if HAS_PARAMETERS.search(name) or name in {module.name for module in roles.modules}:
        return True
    helper = roles.definitions.get(last_part(name))
    returned = values_returned(helper)
    return any(HAS_PARAMETERS.search(called) for value in returned if value is not None for called in calls_in(value))


def _is_registered(roles: Roles, module: ast.ClassDef, names: set[str]) -> bool:
    """Say whether layers of a list become known after all: they are wrapped, or their parameters are asked for."""
    calls = [node for node in walk(module, ast.Call) if REGISTERS.search(dotted(node.func))]
    if any(dotted(part) in names for call in calls for arg in call.args for part in ast.walk(arg)):
        return True
    if any(re.search(r"add_module|register_module|setattr", dotted(call.func)) for call in calls):
        return True
    if _is_given_to_another(roles, module, names):
        return True
    last = {last_part(name) for name in names}
    through = [*walk(roles.script.tree, ast.For, ast.comprehension)]
    walks = [ast.unparse(node.iter) for node in through if any(last_name(part) in last for part in ast.walk(node.iter))]
    walked = {dotted(node.target) for node in through if ast.unparse(node.iter) in walks}
    return any(call.owner in walked for call in roles.script.named("parameters"))


def _is_given_to_another(roles: Roles, module: ast.ClassDef, names: set[str]) -> bool:
    """Say whether a class of another file is given the layers, which may register them."""
    made = [*walk(module, ast.Call)]
    foreign = [
        node for node in made if (last := last_name(node)).lstrip("_")[:1].isupper() and last not in roles.definitions
    ]
    given = [part for node in foreign for part in arguments_of(node)]
    return any(dotted(part) in names for part in given)


def _frozen(trace: Trace) -> Iterator[Fault]:
    """Yield where an optimizer is given the parameters of models alone that are frozen as a whole, and stay so."""
    for make in trace.of("make"):
        optimizer = next(iter(make.objects))
        steps = [
            place for place, event in enumerate(trace.events) if event.action == "step" and optimizer in event.objects
        ]
        until = steps[-1] if steps else len(trace.events)
        models = optimizer.holds if optimizer.holds_all else ()
        free = {unfrozen for event in trace.of("unfreeze") for unfrozen in event.objects}
        if any(unfrozen.is_related_to(model) for unfrozen in free for model in models):
            continue
        freezes = [freeze_of(trace.events[:until], model, make) for model in models]
        known = [freeze for freeze in freezes if freeze is not None]
        known = [freeze for freeze in known if not freeze.entry or freeze.function == make.function]
        if known and len(known) == len(freezes):
            names = " and ".join(sorted(model.label for model in optimizer.holds))
            says = f"all parameters of {names} are frozen, and the optimizer is given those alone"
            yield fault("all_frozen", known[0].line, "certain", says)


def freeze_of(events: Sequence[Event], model: Object, make: Event) -> Event | None:
    """Return what freezes all of a model for good, None where nothing does, or new layers are free."""
    found = None
    for event in events:
        if event.entry != make.entry or not event.concerns(model):
            continue
        if (
            event.action == "freeze"
            and any(model.is_part_of(frozen) for frozen in event.objects)
            and set(event.tests) <= set(make.tests)
        ):
            found = event
        elif event.action in ("unfreeze", "attach", "escape"):
            found = None
            if event.action == "unfreeze":
                return None
    return found


def head_frozen(roles: Roles) -> Iterator[Fault]:
    """The new head is frozen, and the pretrained rest is trained."""
    if not PRETRAINED.search(roles.source):
        return
    for loop in ast.walk(roles.script.tree):
        named = isinstance(loop, ast.For) and "named_parameters()" in ast.unparse(loop.iter)
        if not isinstance(loop, ast.For) or not named or not isinstance(loop.target, ast.Tuple):
            continue
        name = dotted(loop.target.elts[0])
        for value, tests, line in _switched_by_name(loop.body, ()):
            on_for_head, on_for_body = (_set_to(value, tests, name, is_head=is_head) for is_head in (True, False))
            by_name = tests or not isinstance(constant_of(value), bool)
            if by_name and on_for_head is False and on_for_body is not False and not _turns_all_off(loop):
                says = (
                    "the gradients of the new head are turned off by its name, and those of the pretrained part stay on"
                )
                yield fault("head_frozen", line, "likely", says)


def _switched_by_name(
    body: Sequence[ast.stmt], tests: tuple[tuple[ast.expr, bool], ...]
) -> Iterator[tuple[ast.expr, tuple[tuple[ast.expr, bool], ...], int]]:
    """Yield where gradients of a parameter are set in a loop: the value, the tests around it, the line."""
    for node in body:
        if isinstance(node, ast.Assign) and dotted(node.targets[0]).endswith(".requires_grad"):
            yield node.value, tests, node.lineno
        elif isinstance(node, ast.Expr) and dotted(node.value).endswith(".requires_grad_"):
            given = node.value.args if isinstance(node.value, ast.Call) else []
            yield (given[0] if given else ast.Constant(True)), tests, node.lineno
        elif isinstance(node, ast.If):
            yield from _switched_by_name(node.body, (*tests, (node.test, True)))
            yield from _switched_by_name(node.orelse, (*tests, (node.test, False)))


def _set_to(value: ast.expr, tests: Sequence[tuple[ast.expr, bool]], name: str, *, is_head: bool) -> bool | None:
    """Return what gradients are set to for a parameter of the head, or for another; None where that is not known."""
    if any(_is_true(test, name, is_head=is_head) is not wanted for test, wanted in tests):
        return None
    constant = constant_of(value)
    return constant if isinstance(constant, bool) else _is_true(value, name, is_head=is_head)


def _is_true(node: ast.expr, name: str, *, is_head: bool) -> bool | None:
    """Return whether a test of a name holds for a parameter of the head, or of the rest."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _is_true(node.operand, name, is_head=is_head)
        return None if inner is None else not inner
    word, holds = None, is_head
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and dotted(node.comparators[0]) == name:
        word = constant_of(node.left) if isinstance(node.ops[0], ast.In | ast.NotIn) else None
        holds = is_head is isinstance(node.ops[0], ast.In)
    elif isinstance(node, ast.Call) and dotted(node) == f"{name}.startswith" and node.args:
        word = constant_of(node.args[0])
    return holds if isinstance(word, str) and HEAD.search(word) else None


def _turns_all_off(loop: ast.For) -> bool:
    """Say whether a loop turns the gradients of all parameters off, whatever their names."""
    return any(
        isinstance(node, ast.Assign)
        and dotted(node.targets[0]).endswith(".requires_grad")
        and constant_of(node.value) is False
        for node in loop.body
    )


def trains_frozen_model(roles: Roles) -> Iterator[Fault]:
    """All parameters of a model are frozen when a trainer gets it."""
    events = roles.trace.events
    for call in roles.trainer_calls:
        given = roles.trace.settings.get(id(call.node), {}).get("model", [])
        place = next((at for at, event in enumerate(events) if event.node is call.node), None)
        model = given[0] if len(given) == 1 else None
        if not isinstance(model, Object) or place is None or set(ADAPTED_BY) & {*roles.keywords(call)}:
            continue
        if {other.method for other in roles.script.calls if other.owner == model.name} - LEAVES_FROZEN:
            continue  # it may add an adapter, or give a layer that is unfrozen
        freeze = freeze_of(events[:place], model, events[place])
        if freeze is not None:
            says = f"all parameters of {model.label} are frozen, and {call.method} trains it (line {call.line})"
            yield fault("all_frozen", freeze.line, "certain", says, lines=(call.line,))


# Several networks, copies and averages: is each updated, used, and given the gradients that are meant for it?


FOLLOWS = re.compile(r"target|momentum|slow|(?:^|_)ema(?:$|_)", re.IGNORECASE)
"""Names of networks that are meant to follow another; a copy of another name may be kept as it is on purpose."""
AVERAGES = re.compile(r"(?:^|\.)(?:ExponentialMovingAverage|\w*EMA\w*|ModelEma\w*|AveragedModel)$")
"""Classes that keep an average of the weights of a model."""
ONLY_UPDATES = {"update", "update_parameters", "to", "eval", "cuda", "register", "requires_grad_", "step"}
MAY_BE_AVERAGES = re.compile(rf"{AVERAGES.pattern}|^(?:Model)?E(?:MA|ma)$")
LEAST_KEPT = 0.3
"""Share of itself that an average keeps at an update, below which it averages next to nothing. Chosen: fast target
networks keep 0.9, and averages of weights 0.99 or more."""
HANDS_BACK = re.compile(r"save$|print$|len$")
KEPT_FIXED = re.compile(r"teacher|ref|frozen|fixed|random|rnd|old|perceptual|vgg|lpips", re.IGNORECASE)
"""Names of networks that are left as they are on purpose."""
COPIED_LATER = re.compile(r"copy|state_dict|clone|zip\(")


def target_never_updated(roles: Roles) -> Iterator[Fault]:
    """A network that is meant to follow another is made, used for targets, and never updated."""
    trace = roles.trace
    if not trace.is_complete:
        return
    choices = [*walk(roles.script.tree, ast.IfExp)]
    optional = {id(part) for choice in choices for part in ast.walk(choice)}  # a setting may ask for no copy
    for place, event in enumerate(trace.events):
        copied = _copied(event)
        if (
            copied is None
            or event.loops
            or not FOLLOWS.search(copied.name)
            or (copied.parent is not None and copied.parent.copy_of is not None)
        ):
            continue
        dead = roles.dead_functions
        others = [
            other
            for other in trace.events
            if other.node is not event.node and not (other.entry and last_part(other.function) in dead)
        ]
        if id(event.node) in optional or _is_given_source(roles, copied) or _copied_again(others, copied):
            continue
        made_here = [made for other in trace.events if other.node is event.node and (made := _copied(other))]
        touched = any(_is_touched(other, made) for other in others for made in made_here)
        steps = [other for other in others if other.action == "step"]
        trained = any(trace.steps_model(step, made) for step in steps for made in made_here)
        begun = any(
            earlier.action == "step" and event.source and trace.steps_model(earlier, event.source)
            for earlier in trace.events[:place]
        )
        used = any(
            other.action == "forward" and (other.loops or other.entry) and other.concerns(copied) for other in others
        )
        learns = any(other.action == "step" and (other.loops or other.entry) for other in others)
        if used and learns and not (touched or trained or begun):
            says = f"{copied.name} is copied once and never updated: it keeps the weights of the beginning"
            uses = [other.line for other in others if other.action in ("forward", "step") and other.loops]
            yield fault("target_never_updated", event.line, "likely", says, lines=[*event.lines, *uses])


def _is_touched(event: Event, copied: Object) -> bool:
    """Say whether something happens to a copy that may change its weights."""
    if event.action == "attach":
        from_elsewhere = event.source is not None and event.source.copy_of is None
        return from_elsewhere and any(owner.is_part_of(copied) for owner in event.objects)
    return event.action in ("write", "load", "escape", "copy") and event.concerns(copied)


def _copied(event: Event) -> Object | None:
    """Return the network that is made as a copy of another: by `deepcopy`, or by its weights being loaded."""
    is_copy = event.action in ("copy", "load") and event.source is not None and event.source not in event.objects
    return next(iter(event.objects)) if is_copy else None


def _is_given_source(roles: Roles, copied: Object) -> bool:
    """Say whether a method of a copy is given what it is a copy of: `target.load_state(net)`."""
    source = copied.copy_of.name if copied.copy_of is not None else ""
    return any(
        last_part(call.owner) == copied.name and source in {last_name(arg) for arg in call.node.args}
        for call in roles.script.calls
        if source and call.owner
    )


def _copied_again(events: Sequence[Event], copied: Object) -> bool:
    others = [_copied(event) for event in events]
    return any(other is not None and other is not copied and other.name == copied.name for other in others)


def ema_never_applied(roles: Roles) -> Iterator[Fault]:
    """An average of the weights is updated, and neither evaluated nor saved."""
    for made in roles.script.assignments:
        if not isinstance(made.value, ast.Call) or not AVERAGES.search(dotted(made.value)):
            continue
        uses = roles.reads.get(made.last, [])
        updated = any(isinstance(parent, ast.Attribute) and parent.attr.startswith("update") for _, parent in uses)
        if updated and all(isinstance(parent, ast.Attribute) and parent.attr in ONLY_UPDATES for _, parent in uses):
            says = f"{made.target} averages the weights, and nothing evaluates or saves the average"
            yield fault("ema_never_applied", made.line, "likely", says)


def ema_never_updated(roles: Roles) -> Iterator[Fault]:
    """An average of the weights is evaluated or saved, and never updated."""
    for made in roles.script.assignments if roles.steps else ():
        if not isinstance(made.value, ast.Call) or not MAY_BE_AVERAGES.search(dotted(made.value.func)):
            continue
        last = made.last
        uses = roles.reads.get(last, [])
        called = {parent.attr for _, parent in uses if isinstance(parent, ast.Attribute)}
        helper = roles.definitions.get(last_name(made.value))
        own = {node.name for node in walk(helper, ast.FunctionDef)} if helper else {"update"}
        updates = any(re.search(r"update|step|average|accumulate", name) for name in called)
        given = roles.is_handed_on(last, except_to=HANDS_BACK) or bool(roles.parameters_for(made.target))
        has_method = any(name.startswith("update") for name in own)
        if uses and has_method and not updates and not given and not roles.is_kept(last):
            says = f"{made.target} is used and never updated: it keeps the weights of the beginning"
            yield fault("ema_never_updated", made.line, "likely", says)


def average_forgets(roles: Roles) -> Iterator[Fault]:
    """An average of the weights keeps a small share of itself, and takes nearly all from the model of the moment."""
    for call in roles.script.calls:
        through = roles.loops_by_line.get(call.loops[-1], "") if call.loops else ""
        pair = re.search(r"^\(?(\w+), \w+\)? in zip\([\w.]+\.(?:parameters|state_dict)", through)
        if pair is None or not call.node.args or call.owner.partition(".")[0] != pair[1]:
            continue
        share = roles.number_of(call.node.args[-1])
        kept = {"mul_": share, "lerp_": None if share is None else 1 - share}.get(call.method)
        if kept is not None and 0 < kept < LEAST_KEPT:
            says = f"the average keeps {kept:.3g} of itself at each update, and so is the model of the last few steps"
            yield fault("average_forgets", call.line, "likely", says)


def average_without_buffers(roles: Roles) -> Iterator[Fault]:
    """An average of the weights is used in evaluation mode with the running statistics that it was copied with."""
    if "BatchNorm" not in roles.source or re.search(
        r"buffers\(\)|update_bn|state_dict\(\)\.(?:items|values)", roles.source
    ):
        return
    copies = {made.target for made in roles.script.assignments if "deepcopy(" in ast.unparse(made.value)}
    evaluated = {made.target for made in roles.script.assignments if called_name(made.value) == "eval"}
    evaluated |= {call.owner for call in roles.script.named("eval")}
    trained = {call.owner for call in roles.script.named("train")}
    for call in roles.script.calls:
        if call.method not in ("mul_", "lerp_", "copy_") or not call.loops:
            continue
        through = roles.script.loops.get(call.loops[-1], "")
        averaged = re.search(r"zip\(([\w.]+)\.parameters\(\)", through)
        if averaged and averaged[1] in copies & evaluated and averaged[1] not in trained:
            says = f"{averaged[1]} follows the weights alone: its BatchNorm keeps the statistics of the beginning"
            yield fault("average_without_buffers", call.line, "likely", says)


def network_without_optimizer(roles: Roles) -> Iterator[Fault]:
    """A network is made, gradients of the loss go to it, and no optimizer has its parameters."""
    trace = roles.trace
    optimizers = [optimizer for optimizer in trace.objects if optimizer.kind == "optimizer"]
    steps = trace.of("step")
    if (
        not trace.is_complete
        or not optimizers
        or not all(optimizer.holds and optimizer.holds_all for optimizer in optimizers)
    ):
        return
    cleared = {cleared_model for clear in trace.of("clear") for cleared_model in clear.objects}
    if any(stepper.kind != "optimizer" and stepper in cleared for step in steps for stepper in step.objects):
        return
    named: set[Object] = set()
    for place, event in enumerate(trace.events):
        later = [step for step in trace.events[place:] if step.action == "step"] if event.action == "backward" else []
        if not any(step.entry == event.entry for step in later):
            continue
        for model in sorted(event.objects - named, key=lambda network: network.line):
            kept = model.copy_of is not None or KEPT_FIXED.search(model.name) or FOLLOWS.search(model.name)
            is_optimized = any(optimizer.holds_some_of(model) for optimizer in optimizers)
            inner = model.parent in event.objects and not any(
                hold.is_related_to(model.parent) for optimizer in optimizers for hold in optimizer.holds if model.parent
            )
            if kept or is_optimized or inner or not model.has_parameters():
                continue
            left = any(
                other.action in ("freeze", "load", "escape", "write", "gradients") and other.concerns(model)
                for other in trace.events
            )
            if not left:
                named.add(model)
                says = f"{model.name} is used in the loss, and no optimizer is given its parameters"
                lines = [optimizer.line for optimizer in optimizers]
                yield fault(
                    "outside_optimizer", model.line, "likely", says, lines=[*lines, *_named_at(roles, optimizers)]
                )


def _named_at(roles: Roles, optimizers: Sequence[Object]) -> list[int]:
    """Return the lines at which the parts that optimizers have are named in texts, such as the keys of a table."""
    names = {model.name for optimizer in optimizers for model in optimizer.holds}
    return [node.lineno for node in walk(roles.script.tree, ast.Constant) if node.value in names - {""}]


def clips_another_model(roles: Roles) -> Iterator[Fault]:
    """Gradients of another model are clipped than those that the next step uses."""
    named: set[int] = set()
    for place, clip in enumerate(roles.trace.events):
        if clip.action != "clip" or not clip.objects or clip.line in named:
            continue
        steps = _steps_before_the_next_backward(roles.trace.events[place:], clip.entry)
        stepped = [stepper for step in steps for stepper in step.objects]
        stepped_models = [model for stepper in stepped for model in stepper.holds]
        known = bool(stepped_models) and all(stepper.kind == "optimizer" and stepper.holds_all for stepper in stepped)
        known = known and all(_is_made_in_file(model) for model in (*clip.objects, *stepped_models))
        same_round = all(step.loop_lines == clip.loop_lines for step in steps)
        shared = any(_may_share(clipped_model, other) for clipped_model in clip.objects for other in stepped_models)
        if known and same_round and not shared:
            named.add(clip.line)
            clipped, changed = (
                " and ".join(sorted({model.label for model in some})) for some in (clip.objects, stepped_models)
            )
            says = f"the gradients of {clipped} are clipped, and {stepped[0].label}.step() changes {changed}"
            yield fault("clips_another_model", clip.line, "certain", says)


def _may_share(model: Object, other: Object) -> bool:
    return model.is_related_to(other) or model.is_made_from(other) or other.is_made_from(model)


def _is_made_in_file(model: Object) -> bool:
    """Say whether a model is made in the file, so that another one is another for certain."""
    return bool(model.made_by) or (model.parent is not None and _is_made_in_file(model.parent))


def generator_in_discriminator_loss(roles: Roles) -> Iterator[Fault]:
    """The loss of one network goes through the graph of another, which then keeps gradients that are not meant."""
    trace = roles.trace
    named: set[tuple[int, str]] = set()
    for place, backward in enumerate(trace.events):
        if backward.action != "backward" or len(backward.objects) < 2:
            continue
        later = [event for event in trace.events[place + 1 :] if event.entry == backward.entry]
        steps = _steps_before_the_next_backward(later, backward.entry)
        steppers = [stepper for step in steps for stepper in step.objects]
        if not steps or any(stepper.kind != "optimizer" or not stepper.holds_all for stepper in steppers):
            continue
        for model in sorted(backward.objects, key=lambda network: network.line):
            if any(trace.steps_model(step, model) for step in steps):
                continue
            own = next((event for event in later if event.action == "step" and trace.steps_model(event, model)), None)
            key = (backward.line, model.name)
            if own is None or own.loop_lines != steps[0].loop_lines or key in named:
                continue
            between = later[: later.index(own)]
            next_round = any(event.action == "backward" and event.loops != backward.loops for event in between)
            if next_round or any(event.action == "clear" and trace.clears_model(event, model) for event in between):
                continue
            named.add(key)
            certainty: Certainty = "likely" if own.tests != backward.tests else "certain"
            others = " and ".join(sorted(stepper.name for step in steps for stepper in step.objects))
            says = f"the loss before {others}.step() goes through {model.name} as well, whose next step uses them"
            yield fault("generator_in_discriminator_loss", backward.line, certainty, says)


def _steps_before_the_next_backward(later: Sequence[Event], entry: int) -> list[Event]:
    found = []
    for event in later:
        if event.action == "backward" or event.entry != entry:
            break
        if event.action == "step":
            found.append(event)
    return found


def target_is_the_same(roles: Roles) -> Iterator[Fault]:
    """A network that should follow another is that network itself, under a second name."""
    if roles.uses("disable_adapter"):
        return
    followers = re.compile(
        rf"{FOLLOWS.pattern}|old_(?:net|policy|actor|model)|(?:net|policy|actor)_old|^ref(?:_|$|erence)", re.IGNORECASE
    )
    for made in roles.script.assignments:
        last = made.last
        given = dotted(made.value) if isinstance(made.value, ast.Name | ast.Attribute) else ""
        of_model = last_part(given) in roles.model_names
        if not followers.search(last) or not of_model or followers.search(given) or made.adds or made.conditions:
            continue
        again = [other for other in roles.script.made(made.target) if other is not made]
        used = any(
            call.name == made.target or (call.owner == made.target and call.method != "state_dict")
            for call in roles.script.calls
        )
        if used and not any(COPIED_LATER.search(ast.unparse(assignment.value)) for assignment in again):
            says = f"{made.target} is {given} itself, and no copy of it: both change with every step"
            yield fault("target_is_the_same", made.line, "certain", says, fix=f"copy.deepcopy({given})")


def without_gradient_of_its_own(roles: Roles) -> Iterator[Fault]:
    """An optimizer has the parameters of a network that runs without gradients alone."""
    trace = roles.trace
    if not trace.is_complete or not trace.of("backward"):
        return
    steps = trace.of("step")
    named: set[Object] = set()
    for optimizer in (
        stepper for step in steps for stepper in step.objects if stepper.kind == "optimizer" and stepper.holds_all
    ):
        for model in sorted(optimizer.holds - named, key=lambda network: network.line):
            passes = [event for event in trace.of("forward") if event.concerns(model)]
            left = any(
                event.action in ("gradients", "write") and event.loops and event.concerns(model)
                for event in trace.events
            )
            without = [pass_ for pass_ in passes if pass_.gradients is False and pass_.loops]
            trained = any(event.action == "backward" and model in event.objects for event in trace.events)
            cut_off = [pass_ for pass_ in passes if pass_.gradients and pass_.loops and model in trace.cut]
            unknown = any(event.action == "escape" and event.concerns(model) for event in trace.events)
            known = bool(trace.of("backward")) and all(event.objects for event in trace.of("backward")) and not unknown
            if cut_off and known and not (left or trained):
                without = cut_off
            elif not without or left or trained or not all(pass_.gradients is False for pass_ in passes):
                continue
            is_known = model.has_parameters() or model.definition is not None
            if is_known and _in_a_training(trace, without[0]):
                named.add(model)
                how = "is cut off from the loss" if without is cut_off else "runs without gradients"
                says = f"{model.label} {how} wherever it is used: {optimizer.label} cannot train it"
                yield fault("runs_without_gradient", without[0].line, "certain", says, lines=without[0].lines)


def _in_a_training(trace: Trace, forward: Event) -> bool:
    return any(
        event.action == "backward"
        and event.entry == forward.entry
        and event.loops == forward.loops[: len(event.loops)] != ()
        for event in trace.events
    )
