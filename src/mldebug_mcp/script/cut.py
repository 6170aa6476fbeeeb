"""Which values of a script have no gradient for certain, and which of these had one that was cut off."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from mldebug_mcp.script.calls import Assignment, Call, calls_in, constant_of, dotted, parameters_of
from mldebug_mcp.script.library import LOADER, PLAIN_ATTRIBUTES, WITHOUT_GRADIENT
from mldebug_mcp.script.roles import Roles

Gradient = Literal["", "data", "cut"]
"""What is known of the gradient of a value: "data" never had one, "cut" lost it; "" may have one."""
MAX_STEPS_FOLLOWED = 12
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
OF_ANOTHER = re.compile(r"teacher|target_?net|(?:^|[_.])(?:ema|ref|reference|old|prev|slow)(?:$|[_.(])", re.IGNORECASE)
"""Names of models that are not trained, whose outputs are detached on purpose."""
FILLS = ("append", "extend", "insert", "appendleft")


class Gradients:
    """Finds what is known of the gradient of values in the functions of a script.

    All that a name may hold in its function counts, as each of it may be what a later line reads.
    """

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._known: dict[tuple[str, str], Gradient] = {}
        aliases = (node for node in ast.walk(roles.script.tree) if isinstance(node, ast.alias))
        self._imported = {(alias.asname or alias.name).partition(".")[0] for alias in aliases}

    def of(self, node: ast.expr, function: str, depth: int = MAX_STEPS_FOLLOWED) -> Gradient:
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
        return self._of_all(parts, function, depth - 1) if parts is not None else ""

    def _of_all(self, nodes: Iterable[ast.expr], function: str, depth: int) -> Gradient:
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
        definition = self._roles.definitions.get(function.rpartition(".")[2])
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
        known += [self._of_all(call.node.args, function, depth) for call in own if call.method in FILLS]
        definition = roles.definitions.get(function.rpartition(".")[2])
        known += [""] if name in parameters_of(definition) and not self._is_weight(name, function) else []
        through = self._loops_over(name, function)
        known += ["data" if LOADER.search(dotted(_innermost(loop))) else "" for loop in through]
        if known:
            return joined(known)
        return "data" if self._is_constant(name) or self._is_weight(name, function) else ""

    def _of_made(self, made: Assignment, depth: int) -> Gradient:
        """Return what is known of an assigned value: in a block without gradients it has none."""
        calls = [node for node in ast.walk(made.value) if isinstance(node, ast.Call)]
        inside = [call for call in map(self._roles.call_of, calls) if call is not None]
        if any(self._roles.turned_off(call.guards) for call in inside):
            return "cut" if any(self._calls_trained(call) for call in inside) else "data"
        return self.of(made.value, made.function, depth)

    def _calls_trained(self, call: Call) -> bool:
        """Say whether a call is the forward pass of a model that is called with gradients elsewhere."""
        others = (other for other in self._roles.script.calls if other.name == call.name)
        trained = any(not self._roles.turned_off(other.guards) for other in others)
        return trained and self._roles.calls_model(call.node) and not OF_ANOTHER.search(call.name)

    def _loops_over(self, name: str, function: str) -> list[ast.expr]:
        """Return what the loops of a function go through that set a name."""
        definition = self._roles.definitions.get(function.rpartition(".")[2], self._roles.script.tree)
        return [
            node.iter
            for node in ast.walk(definition)
            if isinstance(node, ast.For | ast.comprehension)
            and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.target))
        ]

    def _of_call(self, node: ast.Call, function: str, depth: int) -> Gradient:
        name = ast.unparse(node.func)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
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
            return self._of_all(given, function, depth) if computes and given else ""
        return self._of_method(node.func, given, function, depth)

    def _of_method(self, node: ast.Attribute, given: Sequence[ast.expr], function: str, depth: int) -> Gradient:
        owner = self.of(node.value, function, depth)
        if node.attr in CUTS:
            return owner or ("data" if self._is_of_another(node.value, function) else "cut")
        if node.attr in WITHOUT_GRADIENT - {"float"}:
            return "data"
        return joined([owner, *(self.of(arg, function, depth) for arg in given)]) if node.attr[-1:] != "_" else ""

    def _is_of_another(self, node: ast.expr, function: str) -> bool:
        """Say whether a value is the output of a model that is not trained, by its name or that of the model."""
        made = self._roles.assignments_by_name.get((function, dotted(node)), [])
        return any(OF_ANOTHER.search(ast.unparse(part)) for part in (node, *(part.value for part in made)))

    def _reads_others(self, helper: ast.FunctionDef) -> bool:
        """Say whether a function reads anything besides what it is given, libraries and constants, such as a model."""
        names = [node for node in ast.walk(helper) if isinstance(node, ast.Name)]
        own = {name.id for name in names if isinstance(name.ctx, ast.Store)} | {*parameters_of(helper)}
        read = {name.id for name in names if isinstance(name.ctx, ast.Load)} - own - self._imported
        unknown = {name for name in read if not hasattr(builtins, name) and not self._is_constant(name)}
        return bool(unknown) or any(name.rpartition(".")[2][:1].isupper() for name in calls_in(helper))

    def _is_constant(self, name: str) -> bool:
        """Say whether a name of the file stands for constants alone."""
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
