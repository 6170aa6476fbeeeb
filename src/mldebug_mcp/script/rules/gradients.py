"""Does the gradient of the loss reach the weights, or is it cut off on the way?"""

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
from mldebug_mcp.script.library import CUT, LOADER, NUMBERS, PLAIN_ATTRIBUTES, SAME_VALUES, WITHOUT_GRADIENT
from mldebug_mcp.script.roles import MAX_NAMES_FOLLOWED, Roles
from mldebug_mcp.script.rules.loss import outermost_call

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
    """Return the loss that a part of a sum weights, where its gradient was cut off on the way to it."""
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
