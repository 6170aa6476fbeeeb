"""What a loss is the sum of, each part with its sign: whether a loss makes a likelihood or a divergence larger."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from mldebug_mcp.script.calls import constant_of, dotted

Quantity = Literal["log_prob", "policy", "entropy", "kl", "similarity", "log_sigmoid", "other"]


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a sum.

    Args:
        quantity: What it is. `log_prob` is of data, `policy` of actions weighted by their advantage. `kl` is a
            divergence of Kullback and Leibler, `similarity` a cosine, `log_sigmoid` of a score.
        sign: 1 or -1.
        line: Where it is computed.
    """

    quantity: Quantity
    sign: int
    line: int


Terms = frozenset[Term]

BY_NAME: dict[str, Quantity] = {
    "log_prob": "log_prob", "entropy": "entropy", "kl_div": "kl", "kl_divergence": "kl",
    "cosine_similarity": "similarity", "logsigmoid": "log_sigmoid", "log_sigmoid": "log_sigmoid",
}  # fmt: skip
"""What functions and methods of PyTorch and JAX compute."""
KEEPS_SIGN = {
    "mean", "sum", "squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "clamp", "clip", "min", "max",
    "minimum", "maximum", "clone", "to", "cuda", "cpu", "mul", "div", "masked_mean", "nanmean", "stack", "cat",
    "gather",
    "nan_to_num", "contiguous", "type_as", "half", "double", "bfloat16", "scale",
}  # fmt: skip
"""Functions and methods after which a larger value still is larger."""
ADVANTAGE = re.compile(
    r"adv|(?<!no_)return|reward|(?:^|_)rets?(?:$|_)|(?:^|_)gaes?(?:$|_)|(?:^|_)rtg(?:$|_)", re.IGNORECASE
)
"""Names of weights of log-probabilities that are high for good actions."""
COUNTS_ROWS = re.compile(r"mask|weight|len|size|shape|num|valid|^n$|torch|dim|tokens|batch", re.IGNORECASE)
"""Names of weights that only choose or count rows."""
COST = re.compile(r"cost|loss|neg|minus|penalt|regret|baseline_only", re.IGNORECASE)
"""Names of weights that are high for bad actions."""


def computed(name: str, line: int) -> Terms:
    """Return what a function or method gives by its name; empty for one that is not known."""
    quantity = BY_NAME.get(name)
    return frozenset({Term(quantity, 1, line)}) if quantity is not None else frozenset()


def negated(terms: Terms) -> Terms:
    """Return terms with the opposite signs."""
    return frozenset(Term(term.quantity, -term.sign, term.line) for term in terms)


def added(left: Terms, right: Terms, *, subtracts: bool) -> Terms:
    """Return the terms of a sum or difference."""
    return left | (negated(right) if subtracts else right)


def exponential(terms: Terms) -> Terms:
    """Return the terms of exp(x): of a difference of log-probabilities it is a ratio, which grows with the first."""
    signs = {term.sign for term in terms if term.quantity == "log_prob"}
    first = 1 if 1 in signs else -1
    return frozenset(term for term in terms if term.quantity == "log_prob" and term.sign == first)


def weighted(terms: Terms, weight: ast.expr, sign: int) -> Terms:
    """Return the terms of what is multiplied by something without terms, of a sign that is 0 where it is not known."""
    if sign == 0:
        return frozenset(Term("other", 1, term.line) for term in terms)
    scaled = negated(terms) if sign < 0 else terms
    names = [dotted(part) for part in ast.walk(weight) if isinstance(part, ast.Name | ast.Attribute)]
    is_advantage = any(ADVANTAGE.search(name) for name in names) and not any(COST.search(name) for name in names)
    if is_advantage and any(term.quantity == "log_prob" for term in terms):
        return frozenset(Term("policy", term.sign, term.line) for term in scaled if term.quantity == "log_prob")
    if any(not COUNTS_ROWS.search(name) for name in names):
        return frozenset(
            Term("other", term.sign, term.line) if term.quantity == "log_prob" else term for term in scaled
        )
    return scaled


def sign_of(node: ast.expr) -> int:
    """Return the sign that a factor has by how it is written: -1 for `-x`, `-2`, `-x * y`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -sign_of(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return sign_of(node.left) * sign_of(node.right)
    value = constant_of(node)
    return -1 if isinstance(value, int | float) and value < 0 else 1


def gaussian_divergence(node: ast.expr) -> int:
    """Return the sign of a divergence of a Gaussian from the unit one that is written out, 0 for anything else.

    It is mu^2 + var - 1 - log(var), up to a factor; with all signs turned it is -1. Source: Kingma and Welling 2014,
    appendix B.
    """
    logs: set[int] = set()
    squares: set[int] = set()
    others: set[int] = set()
    has_square = False
    for sign, part in _summands(node, 1):
        if constant_of(part) is not None:
            others.add(sign)
        elif _is_logarithm(part):
            logs.add(sign)
        elif _is_square(part) or _is_exponential(part) or re.search(r"var|sigma|std", ast.unparse(part)):
            squares.add(sign)
            has_square = has_square or _is_square(part)
        else:
            return 0
    whole = has_square and len(squares) == 1 and len(logs) == 1 and squares != logs and others <= logs
    return next(iter(squares)) if whole else 0


def _summands(node: ast.expr, sign: int) -> Iterable[tuple[int, ast.expr]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _summands(node.left, sign)
        yield from _summands(node.right, -sign if isinstance(node.op, ast.Sub) else sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _summands(node.operand, -sign)
    else:
        constant = constant_of(node)
        negative = isinstance(constant, int | float) and constant < 0
        yield (-sign if negative else sign), node


def _last(node: ast.expr) -> str:
    return dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _is_logarithm(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and constant_of(node.left) is not None:
        return _is_logarithm(node.right)
    if isinstance(node, ast.Call):
        return _last(node) == "log"
    return isinstance(node, ast.Name | ast.Attribute) and bool(
        re.search(r"log_?(?:var|sigma|std|s)|^lv$|lnvar|ln_var", dotted(node).rpartition(".")[2], re.IGNORECASE)
    )


def _is_exponential(node: ast.expr) -> bool:
    return _last(node) == "exp"


def _is_square(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        twice = isinstance(node.op, ast.Mult) and ast.unparse(node.left) == ast.unparse(node.right)
        return twice or (isinstance(node.op, ast.Pow) and constant_of(node.right) == 2)
    return _last(node) == "square" or (_last(node) == "pow" and 2 in [constant_of(arg) for arg in _arguments(node)])


def _arguments(node: ast.expr) -> list[ast.expr]:
    return node.args if isinstance(node, ast.Call) else []
