"""What messages say of arrays: two shapes, sizes, types of numbers or devices that do not fit."""

from __future__ import annotations

import re

from mldebug_mcp.judge.statements.form import (
    Forms,
)
from mldebug_mcp.logs.failures import Failure

FORMS = Forms()

# Shapes and sizes: both are stated.


LONGEST_RATIO = 64
"""The largest whole ratio of two sizes that reads like merged dimensions. Chosen: pixels of a patch, frames."""
_SHAPE = re.compile(
    r"(?:torch\.Size\()?(?<![\w.])[\[(]((?:\d{1,9}|None|-1)(?:, ?(?:\d{1,9}|None|-1)){1,9}|"
    r"(?:\d{1,9}|None)(?=,\)|\])),?[\])]|\b(\d{1,9}(?:x\d{1,9}){1,9})\b"
)
_OF_PRODUCT = re.compile(r"multipl|contract|matmul|\bmat1\b|\bm1\b|dot_general|not aligned|core dimension")
_COUNTERPART = (
    "Print both shapes just before this line, and find out which one is as you meant it. A batch size such as 7 makes "
    "it easy to recognise among the dimensions."
)


def _dimensions(found: re.Match[str]) -> tuple[str, ...]:
    return tuple(re.findall(r"\d+|None|-1", found[1] or found[2]))


def _shown(shape: tuple[str, ...]) -> str:
    return f"[{', '.join(shape)}]"


_NO_SHAPE = re.compile(
    r"(?:padding|strides?|kernel\w{0,8}|dilation|output_size|dims?|dimensions?|ax[ei]s|ind(?:ex|ices))[ =:]{1,3}$"
)
"""What stands before numbers that are no shape."""


def _of_product(left: tuple[str, ...], right: tuple[str, ...]) -> str:
    inner, wanted = left[-1], right[-2]
    if inner == right[-1]:
        return f"Transpose the second, whose other size is {inner}; or the first, if that one is turned."
    return (
        f"If the input is as meant, make the layer for it: its input size is {wanted} and has to be {inner}. "
        f"If the layer is as meant, find where the input became {inner} wide. {_reason(inner, wanted)}"
    ).strip()


def _reason(a: str, b: str) -> str:
    """Return what two sizes suggest by their difference or ratio; "" where nothing does."""
    if not (a.isdigit() and b.isdigit()) or "0" in (a, b):
        return ""
    low, high = sorted((int(a), int(b)))
    if low == 1:
        return "One size is 1: a channel or output that is single, or a dimension that was kept or added."
    if high - low == 1:
        return "They differ by one: a shift of labels, a special token, a class for background, or an end that counts."
    if high % low == 0 and high // low <= LONGEST_RATIO:
        return f"One is {high // low} times the other: dimensions merged or parted by a reshape, or a factor set twice."
    return ""


def _hint(a: str, b: str, *, first: bool = False) -> str:
    if first:
        return (
            "The first dimension is the batch or the number of rows: both have to come from the same rows. Look for a "
            "filter, a shift or a reshape on one side alone, or a last batch that is smaller. " + _reason(a, b)
        ).strip()
    decide = f"Decide which of {a} and {b} is meant, and change the layer or data that makes the other one. "
    return (decide + _reason(a, b)).strip()


@FORMS.read_by(
    "operator_shapes",
    r"size of tensor a \((?P<a>\d{1,12})\) must match the size of tensor b \((?P<b>\d{1,12})\)"
    r"(?: at non-singleton dimension (?P<dim>\d{1,3}))?",
    r"expanded size of the tensor \((?P<a>\d{1,12})\) must match the existing size \((?P<b>\d{1,12})\)"
    r"(?: at non-singleton dimension (?P<dim>\d{1,3}))?",
    r"Expected size (?P<a>\d{1,12}) but got size (?P<b>\d{1,12})",
    r"to have value (?P<a>\d{1,12}), but received input with shape \((?:\w{1,12}, ?){1,9}(?P<b>\d{1,12})\)",
    r"contracting dimensions to have the same shape, got \((?P<a>\d{1,12}),\) and \((?P<b>\d{1,12}),\)",
)
def _two_sizes(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    names = found.groupdict()
    a, b = names["a"], names["b"]
    if a == b:
        return None
    where = f" in dimension {names['dim']}" if names.get("dim") else ""
    return f"Two sizes have to be equal{where}, and are {a} and {b}.", _hint(a, b) + " " + _COUNTERPART


@FORMS.read_by(
    "sizes_disagree",
    r"X has (?P<a>\d{1,9}) features?, but \w{1,80} is expecting (?P<b>\d{1,9})",
    r"to have (?P<b>\d{1,9}) channels?, but got (?P<a>\d{1,9}) channels?",
)
def _features(found: re.Match[str], _: Failure) -> tuple[str, str]:
    got, expected = found["a"], found["b"]
    return f"The data has {got} features or channels, and the model was made for {expected}.", (
        f"Give the {expected} that were there at training, in the same order; save the list of columns with the model. "
        f"If {got} is right, build or fit the model for it. {_reason(got, expected)}"
    ).strip()


@FORMS.read_by(
    "sizes_disagree",
    r"shape '(?P<shape>\[[-\d, ]{1,100}\])' is invalid for input of size (?P<size>\d{1,15})",
)
def _reshaping(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    wanted, size = [int(digits) for digits in re.findall(r"-?\d+", found["shape"])], int(found["size"])
    product = 1
    for dimension in wanted:
        product *= dimension if dimension > 0 else 1
    says = f"{size:,} values cannot fill the shape {_shown(tuple(map(str, wanted)))}"
    if -1 in wanted:
        says += f": {product:,} does not divide {size:,}."
    else:
        says += f", which holds {product:,}."
    return says, (
        "Print the shape before it: a last batch that is smaller, images of another size, or a number that is written "
        "out. Write x.size(0) for the batch and -1 for one dimension that follows."
    )


@FORMS.read_by(
    "samples_inconsistent",
    r"inconsistent numbers? of samples: (?P<sizes>\[.{1,200}?\])",
)
@FORMS.read_by(
    "sizes_disagree",
    r"Length of values (?P<sizes>\(\d{1,12}\) does not match length of index \(\d{1,12}\))",
    r"(?P<sizes>batch_size \(\d{1,12}\) to match target batch_size \(\d{1,12}\))",
)
def _lengths(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    sizes = re.findall(r"\d{1,12}", found["sizes"])
    if len(set(sizes)) < 2:
        return None
    return f"The inputs have {' and '.join(sizes[:4])} rows.", (
        "Both have to come from the same rows: look for a filter, dropna, shift or split that was done on one side "
        f"alone, and for inputs that are turned (rows and columns). {_reason(*sizes[:2])}"
    ).strip()


_RELATION = (
    r"match|\b(?:the )?same\b|incompatible|broadcast|multipl|contract|aligned|differ|inconsistent|not equal|"
    r"(?:[Ee]xpected|expects|should be|must be|to have|to be) .{0,120}(?:got|found|received|is|has)\b|compatible with|"
    r"concatenat|no larger|but should be"
)
"""Words that put two shapes into relation."""


@FORMS.read_by("operator_shapes", context=_RELATION)
def _two_shapes(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    text = found.string
    shapes = [
        _dimensions(shape_match)
        for shape_match in _SHAPE.finditer(text)
        if not _NO_SHAPE.search(text[max(0, shape_match.start() - 24) : shape_match.start()])
    ]
    shapes = [shape for at, shape in enumerate(shapes) if shape not in shapes[:at]]
    if len(shapes) != 2:
        return None
    left, right = shapes
    says = f"The shapes are {_shown(left)} and {_shown(right)}"
    if _OF_PRODUCT.search(text) and len(right) > 1 and left[-1] != right[-2]:
        return f"{says}: the inner sizes {left[-1]} and {right[-2]} have to be equal.", _of_product(left, right)
    if len(left) != len(right):
        counts = f"{len(left)} and {len(right)} dimensions"
        return f"{says}: {counts}.", (
            "Add or take away a dimension where the smaller one is made: unsqueeze or x[None] for a missing batch or "
            f"channel, squeeze for one of size 1, flatten or a mean over what is too much. {_COUNTERPART}"
        )
    different = [(at, a, b) for at, (a, b) in enumerate(zip(left, right, strict=True)) if a != b]
    if "broadcast" in text:
        different = [dimension for dimension in different if "1" not in dimension[1:]] or different
    named = ", ".join(f"dimension {at} ({a} and {b})" for at, a, b in different[:3])
    if sorted(left) == sorted(right):
        return f"{says}: the same sizes in another order.", (
            "Transpose or permute one of the two where it is made (images as channels first or last, batch first or "
            "time first); do not reshape it, which would mix the values."
        )
    if len(different) == 1:
        return f"{says}: they differ in {named}.", _hint(
            different[0][1], different[0][2], first=different[0][0] == 0 and len(left) > 1
        )
    return f"{says}: they differ in {named}.", _COUNTERPART


# Types of numbers and devices: both are stated.


_ALIASES = {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "byte": "uint8", "char": "int8", "bfloat16": "bfloat16", "bool": "bool",
}  # fmt: skip
_DTYPE = re.compile(
    r"\b(?:torch\.|c10::|tf\.|np\.|numpy\.|jnp\.)?(?:cuda\.)?(?:"
    r"(float(?:16|32|64)|bfloat16|u?int(?:8|16|32|64)|complex(?:64|128))|"
    r"(?:c10::)?(Double|Float|Half|Long|Int|Short|Byte|Char|BFloat16|Bool)(?:Tensor)?|"
    r"(?<=\()(double|float|half|long int|long|int|unsigned char|bool|c10::BFloat16|c10::Half)(?=\)))\b"
)
_DEVICE = re.compile(r"\b(cuda(?::\d{1,3})?|cpu|mps(?::\d{1,2})?|xpu(?::\d{1,2})?)\b|\btorch\.(cuda)\.\w{1,20}Tensor")


def _dtypes_of(text: str) -> list[str]:
    """Return the types of numbers that a message names, by their names in PyTorch and NumPy."""
    names = []
    for found in _DTYPE.finditer(text):
        name = (found[1] or found[2] or found[3]).lower().replace("c10::", "").replace("long int", "long")
        names.append(_ALIASES.get(name.replace("unsigned char", "byte"), name))
    return list(dict.fromkeys(names))


_ALTERNATIVES = re.compile(r"int32 ?(?:or|/) ?int64|(?i:long or int|int or long|one of)|types are|only support")
"""Types that a message offers, not those that meet."""


@FORMS.read_by(
    "same_device",
    context=r"(?:same|expected|different) devices?\b|should be the same|device type|is on",
)
def _devices(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    names = list(dict.fromkeys(device_match[1] or device_match[2] for device_match in _DEVICE.finditer(found.string)))
    if "cuda" in names and "cpu" not in names and "FloatTensor)" in found.string:
        names.append("cpu")
    if len(names) != 2:
        return None
    return f"One tensor is on {names[0]}, another on {names[1]}.", (
        "Move both to one device just before this line, x = x.to(model.device): the batch, the labels, and tensors "
        "made in forward (device=x.device). A constant of the model belongs into register_buffer."
    )


_TYPE_WORDS = (
    r"same dtype|(?:data|scalar|d)[ _]?type|Input type|should be the same|[Ee]xpected|must have|must be|promote"
)


@FORMS.read_by("operator_types", context=_TYPE_WORDS)
def _types(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    names = _dtypes_of(found.string)
    if len(names) != 2 or _ALTERNATIVES.search(found.string):
        return None
    both, says = set(names), f"{names[0]} and {names[1]} meet."
    if both == {"float32", "float64"}:
        change = (
            "float64 comes from NumPy or pandas: make the data float32 where it is read, x.float() or "
            "array.astype('float32'). The model stays in float32."
        )
    elif both <= {"float16", "bfloat16", "float32", "float64"}:
        change = (
            "The model and what enters it are of different precision: run both under torch.autocast, or give the input "
            "as x.to(model.dtype). Look for a part that was cast, loaded or made alone."
        )
    elif names[1] in ("float32", "float64", "float16", "bfloat16") and "int64" in both:
        change = (
            "Whole numbers are asked for where fractions come, or the reverse: class labels and ids need .long(), "
            "features and regression targets .float(). A loss for classes takes labels, not one-hot."
        )
    else:
        change = "Cast at one place: .long() for labels and ids, .float() for features and targets, .bool() for masks."
    return says, change
