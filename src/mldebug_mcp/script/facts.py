"""What is known of the data in a tensor: what they are, which rows and places they are of, what they hide."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.script.calls import constant_of, is_operation, last_name, last_names
from mldebug_mcp.script.library import ELEMENTWISE

DataKind = Literal[
    "", "real", "padding", "ones", "zeros", "rest of ones", "rest of zeros", "padded", "places", "length",
    "mean", "std", "past", "future", "scores", "ones of a column", "number", "epochs", "rows", "batches", "updates",
    "steps", "clock",
]  # fmt: skip


Role = Literal["", "preferred", "other", "preferred less other", "other less preferred"]
Reduced = Literal["", "mean", "sum"]
Axis = Literal["", "last", "other"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the data in a tensor.

    Args:
        kind: What they are. "real" is a mask that is true at all places which hold data, "padding" one that is true at
            padding alone. "ones" and "zeros" are such alone, for as many places as hold data, "rest of ones" and
            "rest of zeros" for others. "padded" is data with zeros as padding. "past" is a mask that is true at the own
            place and those before it, "future" one that is true at those after it. "scores" are of all pairs,
            "places" numbers of places, "length" is how many there are. "mean" and "std" are statistics. Others are what
            numbers count: "number" is one that is written out, "clock" what a schedule has come to.
            "ones of a column" are a softmax along axis 1 of what has a last axis of the size 1.
            They are ones unless there is a third axis.
        hides: The kind of the mask under which they are minus infinity, or nearly so.
        axis: Whether the places of a mask, or what it hides, lie along the last axis; of "ones of a column" it is
            "other" for a product with them.
        source: What they are cut from along time; empty where that is not known.
        shifts: The lines at which one place was left out at their start.
        part: The part of all rows that they are, as it is written; empty for all of them.
        reduced: How all elements were made one number, where that is what they are.
        role: Whether they are of what is preferred or of what is not, or the first less the second.
        halves: The roles of the first and the second half of their rows.
        line: Where they are hidden, or where the mask is made.
    """

    kind: DataKind = ""
    hides: DataKind = ""
    axis: Axis = ""
    source: str = ""
    shifts: tuple[int, ...] = ()
    part: str = ""
    reduced: Reduced = ""
    role: Role = ""
    halves: tuple[Role, Role] | tuple[()] = ()
    line: int = field(default=0, compare=False)


NOTHING = Facts()
COUNTS = ("epochs", "rows", "batches", "updates", "steps")
"""What numbers count: passes over the data, rows, batches, updates of the weights, or one of the last two."""
OPPOSITE: dict[DataKind, DataKind] = {"real": "padding", "padding": "real", "past": "future", "future": "past"}
KEEPS_FACTS = {
    "to", "cuda", "cpu", "long", "int", "float", "bool", "half", "double", "type", "type_as", "clone", "contiguous",
    "detach", "view", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as", "repeat", "permute",
    "transpose", "numpy", "copy", "astype", "as_tensor", "tensor", "from_numpy", "stack", "pad_sequence", "to_numpy",
    "asarray", "array", "reset_index", "ceil", "round", "pin_memory", "tolist", "sum", "LongTensor",
    "clamp", "clamp_min",
}  # fmt: skip
"""Functions and methods after which data are the same, in another form or order of axes."""
NOT_DATA = re.compile(r"(?:^|_)(?:pad\w*|ignore\w*|unlabell?ed|void)$", re.IGNORECASE)
"""Names of the value of padding, or of labels that are left out."""
LENGTHS = re.compile(r"\blen(?:gth)?s?\b|_len(?:gth)?s?\b", re.IGNORECASE)
NEARLY_INFINITE = re.compile(
    r"['\"]-inf|(?i:neg_?inf|minus_?inf)|-(?:\w+\.)?inf\b|finfo\([^()]{0,80}\)\.min|-1e\+?\d|-\d{4,}"
)
"""How the number is written that scores get which are to be left out."""


def agreed(several: Sequence[Facts]) -> Facts:
    """Return what holds for all of several."""
    first, (role, halves, line) = several[0], carried(several)
    kept = {name: getattr(first, name) for name in ("kind", "hides", "axis", "part", "reduced")}
    kept = {name: value for name, value in kept.items() if all(getattr(facts, name) == value for facts in several)}
    if all((facts.source, facts.shifts) == (first.source, first.shifts) for facts in several):
        kept |= {"source": first.source, "shifts": first.shifts}
    return Facts(**kept, role=role, halves=halves, line=first.line or line)


def flipped(facts: Facts) -> Facts:
    """Return the facts of a mask that is true where another is not."""
    return Facts(OPPOSITE.get(facts.kind, ""), axis=facts.axis, line=facts.line)


def turned_round(facts: Facts) -> Facts:
    """Return the facts of `-x`: a number still counts the same."""
    return facts if facts.kind in (*COUNTS, "number") else replace(facts, kind="", role=OPPOSED.get(facts.role, ""))


def compared(node: ast.Compare, left: Facts, right: Facts) -> Facts:
    """Return the facts of a comparison: which places it is true at."""
    operator, other = node.ops[0], node.comparators[0]
    if isinstance(operator, ast.Eq | ast.NotEq):
        return equals(left, other, is_equal=isinstance(operator, ast.Eq))
    if left.kind == "padded" and isinstance(operator, ast.Gt) and constant_of(other) == 0:
        return Facts("real", line=node.lineno)
    sides = (left.kind, "length" if LENGTHS.search(ast.unparse(other)) else right.kind)
    if sides == ("places", "length") and isinstance(operator, ast.Lt | ast.GtE):
        return Facts("real" if isinstance(operator, ast.Lt) else "padding", line=node.lineno)
    if (left.kind, right.kind) == ("length", "places") and isinstance(operator, ast.Gt | ast.LtE):
        return Facts("real" if isinstance(operator, ast.Gt) else "padding", line=node.lineno)
    return NOTHING


def equals(left: Facts, other: ast.expr, *, is_equal: bool) -> Facts:
    """Return the facts of `x == other`, or `x != other`: of padding, or of a mask against 0 or 1."""
    value = constant_of(other)
    if left.kind in OPPOSITE and value in (0, 1):
        return left if bool(value) is is_equal else flipped(left)
    if left.kind == "padded" and value == 0:
        return Facts("padding" if is_equal else "real", line=other.lineno)
    if value == IGNORED_LABEL or NOT_DATA.search(last_name(other)):
        return Facts("padding" if is_equal else "real", line=other.lineno)
    return NOTHING


def hidden_by(mask: Facts, value: ast.expr) -> Facts:
    """Return the facts of what gets a value under a mask: it is hidden if the value is minus infinity, or nearly so."""
    hides = mask.kind in OPPOSITE and is_hiding(value)
    return Facts(hides=mask.kind, axis=mask.axis, line=value.lineno) if hides else NOTHING


def is_hiding(value: ast.expr) -> bool:
    """Say whether a number is minus infinity, or so low that a softmax leaves nothing of it."""
    return bool(NEARLY_INFINITE.search(ast.unparse(value)))


PREFERRED = re.compile(r"^(?:chosen|preferred|winner|winning|win|positives?|pos|good|better)$", re.IGNORECASE)
OTHERS = re.compile(r"^(?:rejected|dispreferred|loser|losing|lose|negatives?|neg|bad|worse|unobserved)$", re.IGNORECASE)
"""Words in names of what is preferred, and of what is not."""
OPPOSED: dict[Role, Role] = {
    "preferred less other": "other less preferred", "other less preferred": "preferred less other"
}  # fmt: skip


def role_of_name(name: str) -> Role:
    """Return the role that a name says; empty for one that says both or none."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    good, bad = any(map(PREFERRED.search, words)), any(map(OTHERS.search, words))
    return "" if good == bad else "preferred" if good else "other"


def carried(several: Sequence[Facts]) -> tuple[Role, tuple[Role, Role] | tuple[()], int]:
    """Return the role, those of the halves, and the line, of what is computed of several values.

    A role is that of all values which have one.
    """
    roles = {facts.role for facts in several} - {""}
    halves = {facts.halves for facts in several} - {()}
    line = next((facts.line for facts in several if facts.role or facts.halves), 0)
    return roles.pop() if len(roles) == 1 else "", halves.pop() if len(halves) == 1 else (), line


def role_alone(several: Sequence[Facts]) -> Facts:
    """Return the role and halves that several values carry, and nothing else that is known of them."""
    return Facts("", "", "", "", (), "", "", *carried(several))


def _carried_by(node: ast.BinOp, left: Facts, right: Facts) -> tuple[Role, tuple[Role, Role] | tuple[()], int]:
    """Return the role, that of the halves, and the line, of what an operation makes of two values.

    A product with something else still is of the same rows. What is taken off a value without a role may be anything.
    """
    same = (left.role, left.halves) == (right.role, right.halves)
    turned = any(isinstance(side, ast.UnaryOp) for side in (node.left, node.right))
    scales = isinstance(node.op, ast.Mult | ast.Div) or (
        isinstance(node.op, ast.Add) and "number" in (left.kind, right.kind)
    )
    keeps = same or (scales and not turned)
    return carried((left, right)) if keeps else ("", (), 0)


def without_role(facts: Facts) -> Facts:
    """Return the facts of what is made from a value and may be of others, as negatives are of a batch of positives."""
    return replace(facts, role="", halves=()) if facts.role or facts.halves else facts


def joined_rows(several: Sequence[Facts]) -> Facts:
    """Return the facts of parts that are put together, one behind the other."""
    roles = [facts.role for facts in several]
    together = agreed(several) if several else NOTHING
    if len({*roles}) > 1:
        together = without_role(together)
    first, second = {*roles[: len(roles) // 2]}, {*roles[len(roles) // 2 :]}
    if len(roles) % 2 == 0 and (first, second) in (({"preferred"}, {"other"}), ({"other"}, {"preferred"})):
        return replace(together, role="", halves=(roles[0], roles[-1]))
    return together


def joined_along(several: Sequence[Facts]) -> Facts:
    """Return the facts of parts of each row that are put together: a prompt and an answer have the answer's role."""
    known = [facts for facts in several if facts.role]
    return role_alone(known) if len({facts.role for facts in known}) == 1 else NOTHING


def with_rows_of(facts: Facts, given: Facts) -> Facts:
    """Return facts with the role and halves of what is put into an array, where it has none yet."""
    role, halves, line = carried((facts, given))
    return replace(facts, role=facts.role or role, halves=facts.halves or halves, line=facts.line or line)


def halves_of(facts: Facts) -> list[Facts]:
    """Return the facts of the first and of the second half."""
    return [replace(facts, role=role, halves=()) for role in facts.halves]


FILLED: dict[DataKind, DataKind] = {"ones": "real", "zeros": "padding"}
OTHER = {"ones": "zeros", "zeros": "ones"}


def repeated(value: object, times: Facts) -> Facts:
    """Return the facts of a list of one value, `[1] * len(row)`: as long as data, or as the rest of a row is."""
    if value not in (0, 1):
        return NOTHING
    kind: DataKind = "ones" if value else "zeros"
    rest: DataKind = "rest of ones" if value else "rest of zeros"
    return Facts(kind if times.kind == "length" else rest, line=times.line)


def filled(facts: Facts, node: ast.Subscript, value: object) -> Facts:
    """Return the facts of an array of zeros or ones after `mask[row, :length] = value`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    last = parts[-1]
    upper = last.upper if isinstance(last, ast.Slice) and last.lower is None else None
    if upper is not None and constant_of(upper) is None and value in (0, 1):
        if facts.kind == "rest of zeros" and value:
            return Facts("real", line=node.lineno)
        if facts.kind in ("ones", "rest of ones") and not value:
            return Facts("padding", line=node.lineno)
    return facts


def combined(node: ast.BinOp, left: Facts, right: Facts) -> Facts:
    """Return the facts of what an operation makes of two tensors, lists or numbers."""
    known = _listed(node, left, right) or _calculated(node, left, right) or _of_pairs(node, left, right)
    known = known or _of_two_masks(node, left, right)
    if isinstance(node.op, ast.Mult) and "ones of a column" in (left.kind, right.kind):
        known = replace(left if left.kind == "ones of a column" else right, axis="other")
    if known is None and isinstance(node.op, ast.Sub) and {left.role, right.role} == {"preferred", "other"}:
        role: Role = "preferred less other" if left.role == "preferred" else "other less preferred"
        known = Facts(role=role, line=left.line or right.line)
    return _joined(left, right, node) if known is None else known


def _listed(node: ast.BinOp, left: Facts, right: Facts) -> Facts | None:
    """Return the facts of two lists behind each other: `[1] * n + [0] * rest` is a mask; None for others."""
    if not isinstance(node.op, ast.Add):
        return None
    if left.kind in FILLED:
        return Facts(FILLED[left.kind] if right.kind == f"rest of {OTHER[left.kind]}" else "", line=node.lineno)
    if right.kind in FILLED and left.kind == f"rest of {OTHER[right.kind]}":
        return Facts(FILLED[right.kind], line=node.lineno)
    return Facts("padded", line=node.lineno) if right.kind == "rest of zeros" else None


def _of_pairs(node: ast.BinOp, left: Facts, right: Facts) -> Facts | None:
    """Return the facts of scores of all pairs; None for others."""
    if isinstance(node.op, ast.MatMult):
        pairs = re.search(r"\.mT$|transpose\((?:-1, -2|-2, -1|2, 3|3, 2|1, 2|2, 1)\)$", ast.unparse(node.right))
        return Facts("scores", line=node.lineno) if pairs else without_role(_joined(left, right))
    if "scores" not in (left.kind, right.kind):
        return None
    joined, scores = _joined(left, right, node), left if left.kind == "scores" else right
    return replace(joined, kind="scores", line=joined.line if joined.hides else scores.line)


def _of_two_masks(node: ast.BinOp, left: Facts, right: Facts) -> Facts | None:
    """Return the facts of masks that are turned round, joined, or multiplied with what is to hide; None for others."""
    kinds, line = {left.kind, right.kind}, left.line if left.kind in OPPOSITE else right.line
    known: Facts | None = None
    if isinstance(node.op, ast.Sub) and constant_of(node.left) == 1 and right.kind in OPPOSITE:
        known = flipped(right)
    elif isinstance(node.op, ast.Mult) and kinds & {*OPPOSITE} and (is_hiding(node.left) or is_hiding(node.right)):
        hidden = hidden_by(left, node.right), hidden_by(right, node.left)
        known = next((facts for facts in hidden if facts.hides), None)
    elif isinstance(node.op, ast.BitAnd | ast.Mult) and "padding" in kinds:
        role, halves, of_role = _carried_by(node, left, right)
        known = Facts("padding", role=role, halves=halves, line=of_role or line)
    elif isinstance(node.op, ast.BitOr | ast.Add) and "real" in kinds:
        known = Facts("real", line=line)
    elif isinstance(node.op, ast.BitOr | ast.BitAnd):
        known = NOTHING
    return known


EPOCHS = re.compile(r"(?<!per_)epochs$|(?:^|_)(?:n|nb|num|max|total)_epoch$", re.IGNORECASE)
BATCHES = re.compile(
    r"(?:steps|batches|iters|updates|iterations)_per_(?:epoch|pass)$|(?:^|_)(?:n|nb|num|stepping)_(?:batches|iters)$"
    r"|(?:^|_)(?:total|max|num|n|train|training|warmup)_(?:steps|iters|iterations)$",
    re.IGNORECASE,
)
"""Names of numbers of passes, and of steps."""
FRACTIONS = re.compile(r"frac|ratio|share|pct|percent|part", re.IGNORECASE)
ACCUMULATED = re.compile(r"accum|grad_?acc|micro|sync_gradients", re.IGNORECASE)
"""Names of how many batches make an update."""
ROWS_OF_BATCH = re.compile(r"batch_?size|^batch$|per_device_batch|^bs$|^bsz$", re.IGNORECASE)
"""Names of how many rows make a batch."""


def counted_by_name(name: str, line: int) -> Facts:
    """Return what a number counts by its name."""
    kind: DataKind = "epochs" if EPOCHS.search(name) else "steps" if BATCHES.search(name) else ""
    return Facts(kind, line=line) if kind else NOTHING


def _calculated(node: ast.BinOp, left: Facts, right: Facts) -> Facts | None:
    """Return what a number counts that is calculated of others; None where neither of them counts anything."""
    kinds = (left.kind, right.kind)
    line = left.line if left.kind in COUNTS else right.line
    if "clock" in kinds:
        return Facts("clock" if isinstance(node.op, ast.Add | ast.Sub) or "number" in kinds else "")
    if not any(kind in (*COUNTS, "length") for kind in kinds):
        return Facts("number", line=line) if kinds == ("number", "number") else None
    plain = "number" in kinds or any(FRACTIONS.search(ast.unparse(side)) for side in (node.left, node.right))
    kind: DataKind = ""
    if isinstance(node.op, ast.Mult):
        steps = [other for other in kinds if other in ("rows", "batches", "updates", "steps")]
        kind = steps[0] if len(steps) == 1 else "epochs" if "epochs" in kinds and plain else ""
    elif isinstance(node.op, ast.Div | ast.FloorDiv):
        kind = divided(left.kind, node.right, plain=plain)
    elif isinstance(node.op, ast.Add | ast.Sub):
        known = {other for other in kinds if other not in ("number", "")}
        kind = next(iter(known)) if len(known) == 1 and ("" not in kinds or plain) else ""
    return Facts(kind, line=line)


def divided(kind: DataKind, by: ast.expr, *, plain: bool) -> DataKind:
    """Return what a quotient counts."""
    names = last_names(by)
    accumulated = any(map(ACCUMULATED.search, names))
    if kind in ("rows", "length") and any(map(ROWS_OF_BATCH.search, names)):
        return "updates" if accumulated else "batches"
    if kind in ("batches", "steps") and accumulated:
        return "updates"
    return kind if (plain and kind in COUNTS) or kind == "length" else ""


def _joined(left: Facts, right: Facts, node: ast.BinOp | None = None) -> Facts:
    """Return what holds for a sum or product of two tensors: where they come from, and what one of them hides."""
    sources = {(facts.source, facts.shifts) for facts in (left, right) if facts.source}
    source, shifts = sources.pop() if len(sources) == 1 else ("", ())
    hides = left.hides or right.hides
    part = next((facts.part for facts in (left, right) if facts.part and facts.kind not in ("mean", "std")), "")
    axis = left.axis if left.hides else right.axis
    role, roles_of_halves, line = carried((left, right)) if node is None else _carried_by(node, left, right)
    line = left.line if left.hides else right.line if right.hides else line
    return Facts("", hides, axis, source, shifts, part, "", role, roles_of_halves, line)


def cut(facts: Facts, node: ast.Subscript) -> Facts:
    """Return the facts of a part of a tensor."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if facts.kind == "ones of a column":
        return NOTHING
    if facts.kind in OPPOSITE and any(map(_is_new_axis, parts)):
        behind = constant_of(parts[0]) is Ellipsis or sum(isinstance(part, ast.Slice) for part in parts) > 1
        return replace(facts, axis="other" if _is_new_axis(parts[-1]) and behind else "last")
    slices = [part for part in parts if isinstance(part, ast.Slice) and (part.lower or part.upper)]
    if not slices:
        return facts
    start, places = _start_of(slices[0].lower)
    if len(slices) > 1 or not facts.source or places not in (0, 1):
        return replace(facts, source="", shifts=())
    source = f"{facts.source}@{start}" if start else facts.source
    return replace(facts, source=source, shifts=(*facts.shifts, node.lineno) if places else facts.shifts)


def _is_new_axis(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is None


def _start_of(low: ast.expr | None) -> tuple[str, int]:
    """Return where a slice begins: an expression, and how many places after it; -1 for any other number."""
    if low is None:
        return "", 0
    value = constant_of(low)
    if value is not None:
        return "", value if value in (0, 1) else -1
    if is_operation(low, ast.Add) and constant_of(low.right) == 1:
        return ast.unparse(low.left), 1
    return ast.unparse(low), 0


def axis_of(others: list[ast.expr], node: ast.Call) -> int | None:
    """Return the axis along which a function goes; None where none is written out."""
    given = [keyword.value for keyword in node.keywords if keyword.arg in ("dim", "axis")] + others[:1]
    axis = constant_of(given[0]) if given else None
    return axis if isinstance(axis, int) and not isinstance(axis, bool) else None


def is_over_another_axis(facts: Facts, others: list[ast.expr], node: ast.Call) -> bool:
    """Say whether a softmax goes along another axis than that along which places are hidden."""
    axis = axis_of(others, node)
    is_last = axis == -1 if axis in (-1, -2, -3, 0) else None
    return (facts.axis, is_last) in (("last", False), ("other", True))


CHOSEN_BY = " chosen by "
"""Stands between a part of rows and the values that a call gives to choose them."""


def with_rows(facts: Facts, node: ast.Subscript, chosen: str = "") -> Facts:
    """Return the facts of a part of all rows: the first cut counts, with the values that choose it and those after."""
    if facts.halves and isinstance(node.slice, ast.Slice) and (node.slice.lower is None) != (node.slice.upper is None):
        facts = halves_of(facts)[node.slice.lower is not None]
    part = facts.part or rows_cut(node)
    return replace(facts, part=f"{part}{chosen}" if part else "")


def rows_cut(node: ast.Subscript) -> str:
    """Return the part of all rows that a subscript takes, as it is written; empty where it takes no rows."""
    by_place = isinstance(node.slice, ast.Slice) and (node.slice.lower or node.slice.upper)
    return ast.unparse(node) if by_place or isinstance(node.slice, ast.Compare) else ""


def _is_over_rows(others: list[ast.expr], node: ast.Call) -> bool:
    """Say whether a statistic is taken over the first axis, or over all of them."""
    axes = [keyword.value for keyword in node.keywords if keyword.arg in ("axis", "dim")] or others[:1]
    first = axes[0].elts[0] if axes and isinstance(axes[0], ast.Tuple | ast.List) and axes[0].elts else None
    return not axes or constant_of(first or axes[0]) in (0, None)


BEGINS_SOURCE = {"stack", "tensor", "as_tensor", "from_numpy", "LongTensor", "pad_sequence", "array", "asarray"}
"""Functions whose result is data, which may be cut along time."""
KEEPS_PLACES = {
    "relu", "gelu", "silu", "tanh", "sigmoid", "softmax", "log_softmax", "exp", "log", "log1p", "dropout",
    "layer_norm", "sqrt", "abs", "square", "pow", "gather",
}  # fmt: skip
"""Functions and methods after which each place is still that of what they are given."""


KEEPS_ROLE = {
    "cat", "concat", "concatenate", "vstack", "logsumexp", "mean", "nanmean", "amax", "norm", "diff", "squeeze_",
    "logits", "normalize",
}  # fmt: skip
"""Further functions after which values are still of the same rows."""
OF_ROWS = re.compile(r"encod|token|embed|score|log_?p|forward|template|reward|project", re.IGNORECASE)
"""Names of methods of other files that compute something of each row that they are given."""


def after(name: str, given: list[Facts], others: list[ast.expr], node: ast.Call) -> Facts:
    """Return the facts of what a function gives, or a method of the first of what is given.

    Args:
        name: The last part of its name.
        given: The facts of what it is given, for a method those of its owner first.
        others: What it is given after the first.
        node: The call.
    """
    first = given[0] if given else NOTHING
    if name == "sum" and len(given) == 1 and not others and not node.keywords and isinstance(node.func, ast.Attribute):
        facts = _unreduced(name, given, others, node)
        reduced: Reduced = "" if first.reduced or _joins(node.func.value) else "sum"
        return replace(facts, reduced=reduced, line=facts.line if facts.kind or facts.role else node.lineno)
    return _unreduced(name, given, others, node)


def _joins(node: ast.expr) -> bool:
    """Say whether a value is made of several, such as the terms of a loss."""
    return isinstance(node, ast.Call) and last_name(node) in ("stack", "cat", "tensor")


def _unreduced(name: str, given: list[Facts], others: list[ast.expr], node: ast.Call) -> Facts:
    """Return the facts of what a function gives, apart from whether it is one number."""
    first = given[0] if given else NOTHING
    if first.kind == "ones of a column" and name not in ELEMENTWISE:  # without the last axis they are weights
        first = replace(first, kind="")
    known = (
        _of_mask(name, given, others)
        or _facts_of_filled(name, first, others, node)
        or _counted(name, first, others, node)
    )
    if known is not None:
        return known
    if name == "unsqueeze" and first.kind in OPPOSITE and others:
        place = constant_of(others[0])
        return replace(first, axis="other" if place == -1 else "last" if place == 1 else "")
    if name in KEEPS_FACTS:
        begins = name in BEGINS_SOURCE and not first.source
        kept = without_role(first) if name in ("clone", "copy") else first  # a copy is often to become another
        return replace(kept, source=_place_of(node), shifts=()) if begins else kept
    if name in KEEPS_PLACES:
        return replace(first, kind="")
    roles = role_alone([first] if name in KEEPS_ROLE else given if OF_ROWS.search(name) else [])
    return replace(roles, part=first.part)


def _place_of(node: ast.Call) -> str:
    return f"{node.lineno}:{node.col_offset}"


def _of_mask(name: str, given: list[Facts], others: list[ast.expr]) -> Facts | None:
    """Return the facts of a mask, or of what is filled under one; None for another function."""
    first = given[0] if given else NOTHING
    if name in ("eq", "ne") and len(others) == 1:
        return equals(first, others[0], is_equal=name == "eq")
    if name in ("logical_not", "bitwise_not"):
        return flipped(first)
    if name in ("masked_fill", "masked_fill_") and len(others) == 2 and len(given) == 3:
        return replace(_joined(first, hidden_by(given[1], others[1])), kind="scores" if first.kind == "scores" else "")
    if name == "where" and len(others) == 2:
        return hidden_by(first, others[0]) if is_hiding(others[0]) else hidden_by(flipped(first), others[1])
    return None


def _facts_of_filled(name: str, first: Facts, others: list[ast.expr], node: ast.Call) -> Facts | None:
    """Return the facts of an array of ones or zeros, and of its triangles; None for another function."""
    if name in ("arange", "ones"):
        return Facts("places" if name == "arange" else "ones")
    if name in ("zeros", "zeros_like", "ones_like"):
        return Facts("rest of zeros" if name.startswith("zeros") else "rest of ones")
    if name == "full" and others and constant_of(others[0]) in (0, 1):
        return Facts("rest of ones" if constant_of(others[0]) else "rest of zeros")
    if name in ("tril", "triu") and first.kind in ("ones", "rest of ones"):
        places = next((keyword.value for keyword in node.keywords if keyword.arg in ("diagonal", "k")), None)
        place = constant_of(places or (others[0] if others else ast.Constant(0)))
        by_place: dict[object, DataKind] = {("tril", 0): "past", ("triu", 1): "future"}
        return Facts(by_place.get((name, place), ""), line=node.lineno)
    return None


def _counted(name: str, first: Facts, others: list[ast.expr], node: ast.Call) -> Facts | None:
    """Return the facts of padded rows and of statistics; None for another function."""
    if name == "pad_sequence":
        value = next((keyword.value for keyword in node.keywords if keyword.arg == "padding_value"), ast.Constant(0))
        kinds = (first.kind, constant_of(value))
        by_kinds: dict[object, DataKind] = {("ones", 0): "real", ("zeros", 1): "padding", ("", 0): "padded"}
        return replace(first, kind=by_kinds.get(kinds, first.kind), source=first.source or _place_of(node))
    if name in ("mean", "std", "nanmean") and _is_over_rows(others, node):
        return Facts("std" if name == "std" else "mean", part=first.part, line=node.lineno)
    return None
