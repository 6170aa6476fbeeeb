"""Whether a metric is better when lower or higher: by its name, or by what the script computes under it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from mldebug_mcp.script.calls import constant_of, dotted, is_operation, last_name, last_names, only_value
from mldebug_mcp.script.roles import Roles

Better = Literal["lower", "higher", ""]

ERRORS = r"wer|cer|mae|mase|n?r?mse|r?msle|r?mspe|s?mape|wm?ape|crps"
"""Names of measures of error."""
LOSS_LIKE = re.compile(rf"loss|perplexity|ppl|error|\b(?:\w*_)?(?:{ERRORS}|fid|err|nll|bpc)$", re.IGNORECASE)
SCORE_LIKE = re.compile(
    r"acc(?:uracy|uracies)?\d*$|f1|auc|auroc|bleu|rouge|precision|recall|\bmap\b|iou|dice|reward|r2$", re.I
)
"""Names of metrics that are better when lower, and when higher."""
DISTANCES = re.compile(
    rf"(?:^|_)(?:distance|dist|levenshtein|{ERRORS}|cross_entropy|kl_div|cdist|norm|entropy|nll)(?:$|_)|loss$|error$",
    re.IGNORECASE,
)
LIKENESS = re.compile(r"similarity$|(?:^|_)(?:ratio|accuracy|f1|score)$|_score$", re.IGNORECASE)
"""Functions whose result is lower, or higher, the better two things agree."""
ABOVE_ZERO = re.compile(
    r"si_?s[dn]r|(?:^|_)s[dn]r|psnr|ssim|similarity|acc(?:uracy)?$|f1|auc|dice|iou|reward|ndcg|_ll$|bleu", re.I
)
"""Names of what is above zero where a model is good, so that a loss which is its negative is below."""
KEEPS_ORDER = {
    "mean", "sum", "float", "item", "round", "sqrt", "exp", "log", "log1p", "nanmean", "average", "median", "cpu",
    "numpy",
    "detach", "tolist", "int", "min", "max", "clip", "clamp", "minimum", "maximum", "compute", "tensor",
}  # fmt: skip
"""Functions and methods after which what is better still is."""
KEEPS_SIGN = ("item", "mean", "sum", "detach", "cpu", "float", "squeeze", "numpy", "nanmean")
"""Methods and functions after which a value has the sign that it had."""
TURNED: dict[Better, Better] = {"lower": "higher", "higher": "lower", "": ""}
MAX_STEPS_FOLLOWED = 12
"""Assignments and calls that a value is followed through to what it is computed from."""


def better_by_name(name: str) -> Better:
    """Return on which side a metric is better by its name; empty where that says neither, or both."""
    lower, higher = bool(LOSS_LIKE.search(name)), bool(SCORE_LIKE.search(name))
    return "" if lower == higher else "lower" if lower else "higher"


def better(roles: Roles, name: str) -> Better:
    """Return on which side a metric is better by its name, and by what is computed under it in the script.

    Where these disagree it is not known.
    """
    plain = re.sub(r"^(?:eval|val|valid|test|dev)[_/]", "", name).rpartition("/")[2]
    computed = [better_of(roles, value, function) for value, function in _stored_under(roles, {name, plain})]
    return agreed((better_by_name(name), agreed(computed)))


def agreed(sides: Iterable[Better]) -> Better:
    """Return the side on which all that is known agrees."""
    known = {*sides} - {""}
    return known.pop() if len(known) == 1 else ""


def _stored_under(roles: Roles, keys: set[str]) -> Iterator[tuple[ast.expr, str]]:
    """Yield what a script stores or logs under keys, each with the function that does."""
    for function, node in with_functions(roles.script.tree):
        match node:
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                yield from ((value, function) for key, value in pairs if constant_of(key) in keys)
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=key))]) if key in keys:
                yield node.value, function
            case ast.Call(args=[ast.Constant(value=key), value, *_]) if key in keys:
                yield value, function
            case ast.Call(func=ast.Name(id="dict")):
                yield from ((keyword.value, function) for keyword in node.keywords if keyword.arg in keys)


def with_functions(node: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the parts of a script, each with the function around it, dotted with its class."""
    for part in ast.iter_child_nodes(node):
        inside = function
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{function}.{part.name}" if function else part.name
        yield inside, part
        yield from with_functions(part, inside)


def better_of(roles: Roles, node: ast.expr, function: str, depth: int = MAX_STEPS_FOLLOWED) -> Better:
    """Return on which side a value is better by how it is computed; empty where that is not known."""
    side: Better = ""
    if depth == 0:
        return side
    match node:
        case ast.Name():
            side = _better_of_name(roles, node.id, function, depth - 1)
        case ast.Attribute():
            side = better_by_name(node.attr)
        case ast.UnaryOp(op=ast.USub()):
            side = TURNED[better_of(roles, node.operand, function, depth - 1)]
        case ast.BinOp():
            side = _better_of_both(roles, node, function, depth - 1)
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]) if constant_of(node.comparators[0]) is None:
            side = "higher" if isinstance(node.ops[0], ast.Eq) else "lower"
        case ast.Call():
            side = _better_of_call(roles, node, function, depth - 1)
    return side


def _better_of_name(roles: Roles, name: str, function: str, depth: int) -> Better:
    """Return the side by what is computed under a name, and by the name itself; empty where these disagree."""
    if (function, name) not in roles.sides:
        roles.sides[function, name] = ""  # what is computed of itself ends here
        made = [made for made in roles.assignments_by_name.get((function, name), []) if made.place is None]
        computed = agreed(better_of(roles, assignment.value, function, depth) for assignment in made)
        adds_up = name == "acc" and any(assignment.adds for assignment in made)  # it accumulates, or is an accuracy
        roles.sides[function, name] = agreed(("" if adds_up else better_by_name(name), computed))
    return roles.sides[function, name]


def _better_of_both(roles: Roles, node: ast.BinOp, function: str, depth: int) -> Better:
    if isinstance(node.op, ast.Pow):
        return "lower" if _is_difference(node.left) else better_of(roles, node.left, function, depth)
    left, right = (better_of(roles, side, function, depth) for side in (node.left, node.right))
    if isinstance(node.op, ast.Sub | ast.Div):
        of_constant = constant_of(node.left) is not None
        return TURNED[right] if of_constant else left if not right or isinstance(node.op, ast.Div) else ""
    return (left or right) if not (left and right) or left == right else ""


def _is_difference(node: ast.expr) -> bool:
    """Say whether a value is a difference of two, or one in relation to something: `(x - y) / y`."""
    if is_operation(node, ast.Div):
        return _is_difference(node.left)
    return is_operation(node, ast.Sub) and constant_of(node.left) is None


def _better_of_call(roles: Roles, node: ast.Call, function: str, depth: int) -> Better:
    name = last_name(node)
    given = node.args[0] if node.args else None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name in ("abs", "square", "absolute", "fabs"):
        return "lower" if any(part is not None and _is_difference(part) for part in (given, owner)) else ""
    if name in KEEPS_ORDER:
        parts = [*node.args, *([owner] if owner is not None else [])]
        return agreed(better_of(roles, part, function, depth) for part in parts)
    helper = roles.definitions.get(name)
    value = only_value(helper)
    known: Better = better_by_name(name) or ("lower" if DISTANCES.search(name) else "")
    if value is not None:
        computed = better_of(roles, value, name, depth)
        if known and computed and known != computed:
            return ""
        known = known or computed
    return "higher" if not known and LIKENESS.search(name) else known


def is_below_zero(roles: Roles, node: ast.expr, function: str, depth: int = MAX_STEPS_FOLLOWED) -> bool:
    """Say whether a value is the negative of what is above zero: of a loss, or of a score, or the mean of such."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _is_above_zero(roles, node.operand, function)
    parts = _with_its_sign(roles, node, function) if depth else []
    return bool(parts) and all(is_below_zero(roles, part, where, depth - 1) for part, where in parts)


def _with_its_sign(roles: Roles, node: ast.expr, function: str) -> list[tuple[ast.expr, str]]:
    """Return what has the sign of a value if all of it has one, each with its function; none where that is unknown."""
    match node:
        case ast.BinOp(op=ast.Div()):
            return [(node.left, function)]
        case ast.BinOp(op=ast.Add()):
            return [(node.left, function), (node.right, function)]
        case ast.Name():
            made = roles.assignments_by_name.get((function, node.id), [])
            values = [each.value for each in made if constant_of(each.value) != 0 and ast.unparse(each.value) != "[]"]
            kept = [call for call in roles.script.named("append") if call.function == function]
            values += [call.node.args[0] for call in kept if call.owner == node.id and call.node.args]
            return [(value, function) for value in values] if all(each.place is None for each in made) else []
        case ast.Call():
            name = last_name(node)
            if name in KEEPS_SIGN:
                return [(part, function) for part in (*node.args[:1], _owner_of(node)) if part is not None][:1]
            value = only_value(roles.definitions.get(name))
            return [(value, name)] if value is not None else []
    return []


def _owner_of(node: ast.Call) -> ast.expr | None:
    """Return what a method is called of; None for a function of a library."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return None if owner is not None and dotted(owner) in ("torch", "np", "numpy", "jnp") else owner


def _is_above_zero(roles: Roles, node: ast.expr, function: str) -> bool:
    """Say whether a value is a loss or a score by what computes it, and not a logarithm of a probability."""
    names = last_names(node)
    if isinstance(node, ast.Name):
        made = roles.assignments_by_name.get((function, node.id), [])
        names += [last_name(part) for each in made for part in ast.walk(each.value)]
    if any(re.search(r"log_?p|log_?prob|likelihood|elbo", name) for name in names):
        return False
    return any(ABOVE_ZERO.search(name) for name in names) or better_of(roles, node, function) == "lower"
