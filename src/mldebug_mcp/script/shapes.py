"""Which shape a tensor has, as far as operations of PyTorch and NumPy tell it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from mldebug_mcp.script import library
from mldebug_mcp.script.calls import called_name, constant_of, last_part
from mldebug_mcp.script.values import Constant, Items, Object, Shape, Tensor, Value, choices, facts_of

MAKES_OF_LIST = {"stack", "tensor", "as_tensor", "array", "asarray", "FloatTensor", "LongTensor"}
"""Functions that make a tensor of a list."""
DRAWN_BY_SIZE = ("normal", "uniform", "randint", "integers", "choice")
"""Functions that make a tensor of a size behind other arguments, or of these."""
MADE_BY_SIZE = ("rand", "randn", "zeros", "ones", "empty", "full", "random", "standard_normal", *DRAWN_BY_SIZE)
"""Functions that make a tensor of a size that they are given."""
JOINS = {"cat", "concat", "concatenate"}
"""Functions that put tensors behind each other, along the first axis unless another is asked for."""
KEEPS_TABLE = {
    "sort_values", "sort_index", "dropna", "fillna", "ffill", "bfill", "interpolate", "reset_index", "drop", "astype",
    "copy", "sample", "head", "tail", "query", "assign", "rename", "drop_duplicates", "shift", "diff", "clip",
}  # fmt: skip
"""Methods after which a table of pandas still is one, and a column of it still a column."""
KEEPS_SHAPE = library.ELEMENTWISE | {
    "from_numpy", "long", "type", "type_as", "int", "bool", "half", "bfloat16", "numpy", "copy", "astype", "pin_memory",
    "sqrt", "rsqrt", "sign", "sin", "cos", "tan", "erf", "round", "floor", "ceil", "clip", "clamp_min", "clamp_max",
    "reciprocal", "log2", "log10", "logit", "nan_to_num", "masked_fill", "softmax", "log_softmax", "logsigmoid",
    "normalize", "cumsum", "cumprod", "roll", "flip", "dropout", "gelu", "silu", "elu", "leaky_relu", "bernoulli",
    "zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like", "lt", "le", "gt", "ge", "eq", "ne",
    "logical_not", "stop_gradient",
}  # fmt: skip
"""Functions and methods after which a tensor has the shape of their first argument."""
OF_TWO = {"add", "sub", "mul", "div", "maximum", "minimum", "max", "min", "multiply", "subtract", "divide"}
"""Functions and methods that compute of two tensors, element by element."""
REDUCES = {
    "sum", "mean", "prod", "std", "var", "norm", "vector_norm", "amax", "amin", "max", "min", "median", "mode",
    "logsumexp", "nansum", "nanmean", "any", "all", "argmax", "argmin", "kthvalue", "quantile", "select",
}  # fmt: skip
"""Functions and methods that leave out an axis, or all of them."""
AXIS_SECOND = ("norm", "vector_norm", "kthvalue", "quantile")
"""Those of them whose axis comes after another argument."""
GIVES_PAIR = ("max", "min", "median", "mode", "kthvalue", "topk", "sort")
"""Those of PyTorch that give values and places, where they go along an axis."""
SIZED = ("view", "reshape", "expand", "broadcast_to")
"""Functions and methods that are given the sizes of the axes."""
PRODUCTS = ("mm", "matmul", "dot")
ONE_COLUMN = re.compile(r"\(?(?::|\.\.\.), (?:None|np\.newaxis|jnp\.newaxis|\[-?\d+\]|0?:1|1:2|-1:)\)?")
"""How the last axis of a subscript is written that leaves a single column."""
ONE_PLACE = re.compile(r"\(?(?::|\.\.\.), -?\d+\)?")
"""How the last axis is written where it is left out."""
BATCHED: dict[Shape, Shape] = {"scalar": "row", "single": "column", "": ""}
"""The shape of a batch, by that of an item."""


def shape_of(value: Value) -> Shape:
    """Return the shape of a tensor, where it is known."""
    shapes = {_own_shape(choice) for choice in choices(value)}
    return shapes.pop() if len(shapes) == 1 else "other"


def _own_shape(value: Value) -> Shape:
    if isinstance(value, Tensor | Object):
        return value.shape
    return "scalar" if isinstance(value, Constant) and isinstance(value.value, int | float) else ""


def shape_of_list(value: Value) -> Shape:
    """Return the shape of a tensor that is made of a list of others, or of numbers."""
    if not isinstance(value, Items):
        return shape_of(value) if shape_of(value) != "table" else ""
    inner = {shape_of_list(part) for part in value.values}
    shape: Shape = inner.pop() if len(inner) == 1 else "other" if inner else ""
    if shape == "scalar":
        return "single" if len(value.values) == 1 and not value.pattern else "row"
    made: dict[Shape, Shape] = {"single": "column", "row": "matrix", "": ""}
    return made.get(shape, "other")


def shape_by_size(name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Shape:
    """Return the shape of a tensor that is made of a size: `torch.zeros(n)`, `torch.randint(0, 2, (n,))`."""
    args = [keywords["size"]] if "size" in keywords else args
    sizes = [arg for arg in args if isinstance(arg, Items)]
    is_open = name in DRAWN_BY_SIZE and not sizes and "size" not in keywords
    if is_open or any(arg.pattern or arg.keys for arg in sizes):
        return "other"
    size = sizes[0].values if sizes else args
    if len(size) == 1:
        counts = isinstance(size[0], Constant) or facts_of(size[0]).kind in ("length", "rows", "number")
        return "row" if counts else "other"
    return "other" if len(size) != 2 else "column" if size[1] == Constant(1) else "matrix"


def shape_of_both(left: Value, right: Value) -> Shape:
    """Return the shape of what is computed of two values, element by element."""
    shapes = {shape_of(operand) for operand in (left, right) if not isinstance(operand, Constant)}
    if "table" in shapes:
        return "table"
    shapes = shapes - {"scalar"} or shapes
    shapes = shapes - {"single"} or shapes
    if len(shapes) == 1:
        return shapes.pop()
    if "pairs" in shapes or shapes == {"row", "column"}:
        return "pairs" if shapes <= {"row", "column", "pairs"} else "other"
    return "" if shapes in ({"", "column"}, {"", "row"}) else "other"


def shape_of_product(left: Value, right: Value) -> Shape:
    """Return the shape of a product of matrices."""
    factors = (shape_of(left), shape_of(right))
    if factors[1] == "column":
        return "column"
    return "matrix" if factors == ("matrix", "matrix") else "row" if factors == ("matrix", "row") else "other"


def shape_after(name: str, value: Value, args: Sequence[Value], keywords: Mapping[str, Value] | None = None) -> Shape:
    """Return the shape of a tensor after a function, or a method of it, with the other arguments."""
    keywords = keywords or {}
    shape = shape_of(value)
    axis = _axis(name, args, keywords)
    if name in MAKES_OF_LIST and (isinstance(value, Items) or name != "stack"):
        return shape_of_list(value) if name != "stack" or axis in (None, 0) else "other"
    if name in JOINS:
        parts = {shape_of(part) for part in value.values} if isinstance(value, Items) else {shape}
        return parts.pop() if len(parts) == 1 and axis in (None, 0) else "other"
    if (name in KEEPS_TABLE and shape == "table") or (name in (*KEEPS_TABLE, "to_numpy") and shape == "row"):
        return shape
    if name in OF_TWO and args and not isinstance(args[0], Constant):
        return shape_of_both(value, args[0])
    if name in REDUCES:
        return _reduced(shape, axis, keeps=_keeps_axis(args, keywords))
    return shape if name in KEEPS_SHAPE or _changes_values_alone(name) else _moved(name, value, shape, args, axis)


def _changes_values_alone(name: str) -> bool:
    """Say whether a method changes a tensor itself, and not its shape: `uniform_`."""
    return name.endswith("_") and not re.match(r"_|un?squeeze|squeeze|t_|transpose|resize|swap", name)


def _axis(name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> object:
    """Return the axis that a function goes along; None for all of them, text where it is not known."""
    place = 1 if name in AXIS_SECOND else 0
    given = keywords.get("dim", keywords.get("axis", args[place] if place < len(args) else Constant(None)))
    return given.value if isinstance(given, Constant) else "unknown"


def _keeps_axis(args: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    asked = [keywords.get("keepdim"), keywords.get("keepdims"), *args[1:]]
    return any(isinstance(value, Constant) and value.value is True for value in asked)


def _reduced(shape: Shape, axis: object, *, keeps: bool) -> Shape:
    """Return the shape of a sum along an axis; along the second one the sum of a sequence of columns is a column."""
    if axis is None:
        return "other" if keeps else "scalar"
    if keeps:
        return "column" if axis == -1 or (axis == 1 and shape in ("matrix", "column", "")) else "other"
    if shape == "row":
        return "scalar"
    if shape == "matrix":
        return "row"
    if axis == -1:
        return "row" if shape == "column" else shape
    return "other"


def _moved(name: str, value: Value, shape: Shape, args: Sequence[Value], axis: object) -> Shape:
    """Return the shape after what gives a tensor another one."""
    if name in SIZED:
        sizes = args[0].values if len(args) == 1 and isinstance(args[0], Items) else tuple(args)
        ends_in_one = len(sizes) == 2 and sizes[1] == Constant(1)
        return "row" if sizes == (Constant(-1),) else "column" if ends_in_one else "other"
    if name in ("unsqueeze", "expand_dims"):
        return "single" if shape == "scalar" else "column" if axis in (-1, 1) else "other"
    if name == "squeeze":
        is_column = axis in (-1, 1) or (axis is None and shape == "column")
        return "row" if is_column else shape if axis is None else "other"
    if name in ("flatten", "ravel") and not args:
        return "row"
    return _shape_by_arguments(name, value, shape, args)


def _shape_by_arguments(name: str, value: Value, shape: Shape, args: Sequence[Value]) -> Shape:
    """Return the shape after a function whose other arguments decide it."""
    if name in ("view_as", "reshape_as", "expand_as", "gather") and args:
        return shape_of(args[-1]) or "other"
    if name in PRODUCTS and args:
        return shape_of_product(value, args[0])
    if name in ("t", "transpose") and shape == "row":
        return "row"
    one_of_each = name == "topk" and args and args[0] == Constant(1)
    return "scalar" if name == "item" else "column" if one_of_each else "other"


def shape_at(node: ast.Subscript, value: Tensor | Object, key: Value, *, of_item: bool) -> Shape:
    """Return the shape of what a subscript takes of a tensor: of the places that an index names, or of one of them.

    Of a cut that an item of a batch is made of, it is open how many places it has.
    """
    index, shape, place = shape_of(key), value.shape, ast.unparse(node.slice)
    taken = called_name(node.value)
    open_size = of_item and any(isinstance(part, ast.Slice) for part in ast.walk(node.slice))
    if open_size or (taken in GIVES_PAIR and constant_of(node.slice) in (0, 1)):
        return "other" if open_size else shape
    if ONE_COLUMN.fullmatch(place):
        return "column" if shape != "row" or "None" in place or "newaxis" in place else "other"
    if ONE_PLACE.fullmatch(place):
        return "row" if shape in ("column", "matrix") else shape if shape in ("", "table") else "other"
    cuts = _cut_axes(node.slice)
    if (shape == "matrix" and cuts == 2) or isinstance(node.slice, ast.Slice):
        return shape
    if shape == "":
        return "other" if cuts else ""
    known: dict[tuple[Shape, Shape], Shape] = {
        ("row", "scalar"): "scalar", ("row", "row"): "row", ("column", "scalar"): "single", ("column", "row"): "column",
        ("matrix", "scalar"): "row", ("matrix", "row"): "matrix",
    }  # fmt: skip
    return known.get((shape, index), "other")


def cuts_axes(index: ast.expr) -> bool:
    """Say whether an index of several axes cuts one of them, as it does of an array alone."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    return any(isinstance(part, ast.Slice) or constant_of(part) is Ellipsis for part in parts)


def _cut_axes(index: ast.expr) -> int:
    """Return how many axes an index of several ones cuts or makes; 0 where it leaves out those behind the first."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    cuts = [isinstance(part, ast.Slice) or ast.unparse(part) in ("None", "...") for part in parts]
    return len(cuts) if any(cuts[1:]) else 0


def shape_of_part(value: Tensor | Object, name: str) -> Shape:
    """Return the shape of an attribute: the values of a column of a table are a row as well."""
    if name in ("values", "indices", "data", "real") and value.shape != "table":
        return value.shape
    if name in ("T", "mT"):
        return value.shape if value.shape == "row" else "other"
    return "" if value.shape in ("", "table") or name in library.PLAIN_ATTRIBUTES else "other"


def shape_of_item(value: Value) -> Shape:
    """Return the shape of an item of a tensor that is gone through, or unpacked."""
    items: dict[Shape, Shape] = {"row": "scalar", "column": "single", "matrix": "row", "": "", "table": ""}
    return items.get(shape_of(value), "other")


def shape_of_layer(layer: Object) -> Shape:
    """Return the shape of what a layer of PyTorch gives: a column for one output, also past activations."""
    kind = last_part(layer.made_by)
    if kind == "Sequential":
        inner = (part for part in reversed(layer.given) if not _has_no_weights(part))
        last = next(inner, None)
        return shape_of_layer(last) if isinstance(last, Object) else "other"
    return "column" if kind in ("Linear", "Embedding") and layer.given[1:2] == (Constant(1),) else "other"


def _has_no_weights(part: Value) -> bool:
    return isinstance(part, Object) and bool(library.HAS_NO_WEIGHTS.search(part.made_by))
