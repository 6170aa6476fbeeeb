"""Is the loss the one that is meant: activations, its graph, its shapes?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call, calls_in, dotted, names_in
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import NO_GRAD, Roles


def activation_twice(roles: Roles) -> Iterator[Fault]:
    """A softmax or sigmoid stands before a loss that takes one itself; or none stands where one is needed."""
    for call in roles.script.calls:
        if not call.node.args:
            continue
        given = roles.source_of(call.node.args[0], call)
        through = activation_of(roles, given)
        if roles.is_cross_entropy(call) and through == "softmax":
            yield _twice(call.line, "cross-entropy takes the softmax itself, and is given one already")
        elif roles.loss_named(call, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits") and through == "sigmoid":
            yield _twice(call.line, "this loss takes the sigmoid itself, and is given one already")
        elif roles.loss_named(call, "NLLLoss", "nll_loss") and through == "softmax":
            says = "the negative log-likelihood takes log-probabilities, and is given probabilities"
            yield fault("nll_of_probabilities", call.line, "certain", says)
        elif (
            roles.loss_named(call, "BCELoss", "binary_cross_entropy")
            and not through
            and not roles.uses("sigmoid", "Sigmoid")
        ):
            says = "binary cross-entropy takes probabilities, and nothing in the file makes any (sigmoid)"
            yield fault("bce_of_logits", call.line, "likely", says)


def _twice(line: int, says: str) -> Fault:
    return fault("activation_twice", line, "certain", says)


def activation_of(roles: Roles, given: ast.expr) -> str:
    """Return which activation an expression ends in: "softmax", "sigmoid" or ""; that of a model by its class."""
    outer = _outermost(given)
    last = outer.rpartition(".")[2].lower()
    if last in ("softmax", "sigmoid"):
        return last
    if last in ("log_softmax", "logsoftmax") or not isinstance(given, ast.Call):
        return ""
    if len(roles.modules) == 1 or re.search(r"(?:^|\.)(?:model|net|network|classifier)$", outer):
        ends = {_ends_in(one) for one in roles.modules} - {""}
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
    forward = next((one for one in module.body if isinstance(one, ast.FunctionDef) and one.name == "forward"), None)
    if forward is None:
        return ""
    for node in reversed(list(ast.walk(forward))):
        if isinstance(node, ast.Return) and node.value is not None:
            value = node.value
            if isinstance(value, ast.Name):
                assigned = [
                    one.value for one in ast.walk(forward)
                    if isinstance(one, ast.Assign) and any(dotted(target) == value.id for target in one.targets)
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
    models = [
        one for one in roles.script.assignments if dotted(one.value).endswith("Sequential") and "." not in one.target
    ]
    return _module_end(models[-1].value) if len(models) == 1 else ""


def loss_without_graph(roles: Roles) -> Iterator[Fault]:
    """The loss is cut off from the weights before backward."""
    for backward in roles.backwards:
        if any(NO_GRAD.search(guard) for guard in backward.guards):
            says = "backward() stands under no_grad: there is no graph to go through"
            yield fault("backward_without_graph", backward.line, "certain", says)
        given = (
            backward.node.args[0]
            if backward.node.args
            and "." in backward.name
            and backward.owner in ("accelerator", "self", "fabric", "scaler")
            else None
        )
        if isinstance(backward.node.func, ast.Attribute):
            given = given or backward.node.func.value
        if given is None:
            continue
        source = roles.source_of(given, backward)
        cut = [name for name in calls_in(source) if name.rpartition(".")[2] in ("item", "detach", "numpy", "tolist")]
        made = re.search(r"(?:^|\.)(?:tensor|Tensor|Variable|as_tensor)$", _outermost(source) or "")
        if (cut and not made) or (
            made and isinstance(source, ast.Call) and source.args and not isinstance(source.args[0], ast.List)
        ):
            says = f"backward() is called on a value that is cut off from the model: {ast.unparse(source)[:80]}"
            yield fault("loss_cut_off", backward.line, "certain", says)
    for call in roles.script.calls:
        computes = call.name in roles.losses or re.search(
            r"(?:^|\.)(?:F|functional)\.\w*(?:loss|entropy)\w*$", call.name
        )
        if computes and call.node.args and call.function in {one.function for one in roles.backwards}:
            source = roles.source_of(call.node.args[0], call)
            if _last_method(source) in ("detach", "data", "argmax", "round") and call.loops:
                says = f"the loss is computed on outputs that are cut off from the model: {ast.unparse(source)[:80]}"
                yield fault("loss_cut_off", call.line, "certain", says, fix="give the loss the outputs themselves")


def _last_method(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def losses_kept(roles: Roles) -> Iterator[Fault]:
    """Losses are kept with their graphs."""
    lost = {name for one in roles.backwards for name in names_in(one.node.func)} | {
        name for one in roles.backwards for arg in one.node.args for name in names_in(arg)
    }
    for call in roles.script.named("append"):
        arg = call.node.args[0] if call.node.args else None
        if isinstance(arg, ast.Name) and arg.id in lost and call.loops and not _is_detached(roles, arg.id, call):
            says = f"{call.owner} keeps {arg.id} with its graph"
            yield fault("losses_kept", call.line, "certain", says, fix=f"{call.owner}.append({arg.id}.item())")
    for one in roles.script.assignments:
        if not one.adds or not one.loops or one.target in lost:
            continue
        names = names_in(one.value) & lost
        cut = any(
            name.rpartition(".")[2] in ("item", "detach", "float", "numpy", "tolist") for name in calls_in(one.value)
        )
        attribute = any(
            isinstance(node, ast.Attribute) and node.attr in ("data", "shape") for node in ast.walk(one.value)
        )
        if names and not cut and not attribute and any(back.function == one.function for back in roles.backwards):
            says = f"{one.target} adds up {', '.join(sorted(names))} with its graph"
            yield fault("losses_kept", one.line, "certain", says, fix="add loss.item(), or loss.detach()")


def _is_detached(roles: Roles, name: str, call: Call) -> bool:
    source = roles.source_of(ast.Name(name), call)
    return any(one.rpartition(".")[2] in ("item", "detach") for one in calls_in(source))


def shapes_broadcast(roles: Roles) -> Iterator[Fault]:
    """Outputs of shape (n, 1) meet targets of shape (n,), which makes an n by n matrix of differences."""
    for call in roles.script.calls:
        regression = roles.loss_named(
            call, "MSELoss", "mse_loss", "L1Loss", "l1_loss", "SmoothL1Loss", "smooth_l1_loss", "HuberLoss"
        )
        if not regression or len(call.node.args) < 2:
            continue
        one, other = (ast.unparse(roles.source_of(arg, call)) + ast.unparse(arg) for arg in call.node.args[:2])
        flat = re.compile(r"squeeze\((?:-1|1|dim=-1)?\)|flatten\(\)|view\(-1\)|reshape\(-1\)|\[:, 0\]|\[\.\.\., 0\]")
        tall = re.compile(r"unsqueeze\((?:-1|1|dim=1|dim=-1)\)|view\(-1, 1\)|reshape\(-1, 1\)|\[:, None\]")
        if (flat.search(one) and tall.search(other)) or (tall.search(one) and flat.search(other)):
            says = "one side of the loss has shape (n,) and the other (n, 1): the difference is a matrix of n by n"
            yield fault("shapes_broadcast", call.line, "certain", says)
        elif (
            _one_output(roles)
            and not flat.search(one)
            and not tall.search(other)
            and not tall.search(ast.unparse(roles.script.tree))
            and not flat.search(ast.unparse(roles.script.tree))
        ):
            says = "the model has one output, of shape (n, 1), and nothing in the file gives the targets that shape"
            yield fault("shapes_may_broadcast", call.line, "depends", says)


def _one_output(roles: Roles) -> bool:
    linear = [one for one in roles.script.named("Linear") if one.constant("out_features", 1) is not None]
    return bool(linear) and linear[-1].constant("out_features", 1) == 1
