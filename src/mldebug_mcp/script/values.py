"""What names of a script can stand for while it is followed: objects, tensors, parameters, functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal

from mldebug_mcp.script.calls import called_name, constant_of, dotted, is_operation, last_name, last_part, walk
from mldebug_mcp.script.facts import NOTHING, Facts, Role, agreed
from mldebug_mcp.script.library import HAS_PARAMETERS, RESHAPES

# What a loss is the sum of, each part with its sign: whether a loss makes a likelihood or a divergence larger.


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
    names = [dotted(part) for part in walk(weight, ast.Name, ast.Attribute)]
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
    if is_operation(node, ast.Mult, ast.Div):
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
        elif _is_square(part) or called_name(part) == "exp" or re.search(r"var|sigma|std", ast.unparse(part)):
            squares.add(sign)
            has_square = has_square or _is_square(part)
        else:
            return 0
    whole = has_square and len(squares) == 1 and len(logs) == 1 and squares != logs and others <= logs
    return next(iter(squares)) if whole else 0


def _summands(node: ast.expr, sign: int) -> Iterable[tuple[int, ast.expr]]:
    if is_operation(node, ast.Add, ast.Sub):
        yield from _summands(node.left, sign)
        yield from _summands(node.right, -sign if isinstance(node.op, ast.Sub) else sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _summands(node.operand, -sign)
    else:
        constant = constant_of(node)
        negative = isinstance(constant, int | float) and constant < 0
        yield (-sign if negative else sign), node


def _is_logarithm(node: ast.expr) -> bool:
    if is_operation(node, ast.Mult) and constant_of(node.left) is not None:
        return _is_logarithm(node.right)
    if isinstance(node, ast.Call):
        return called_name(node) == "log"
    return isinstance(node, ast.Name | ast.Attribute) and bool(
        re.search(r"log_?(?:var|sigma|std|s)|^lv$|lnvar|ln_var", last_name(node), re.IGNORECASE)
    )


def _is_square(node: ast.expr) -> bool:
    if is_operation(node, ast.Mult, ast.Pow):
        is_power = isinstance(node.op, ast.Pow)
        return constant_of(node.right) == 2 if is_power else ast.unparse(node.left) == ast.unparse(node.right)
    power = called_name(node) == "pow" and isinstance(node, ast.Call) and 2 in map(constant_of, node.args)
    return power or called_name(node) == "square"


# What names of a script can stand for while it is followed: objects, tensors, parameters, functions.


Kind = Literal["model", "loss", "optimizer", "schedule", "loader", "instance", "unknown"]
Shape = Literal["scalar", "single", "row", "column", "matrix", "pairs", "table", "other", ""]
"""The shape of a tensor: "scalar" (), "single" (1,), "row" (n,), "column" where its last axis has the size 1.

"matrix" is (n, d), "pairs" (n, n), which a row and a column make. Each of the named columns of a "table" is a row.
"other" is a shape that the script makes and that is not known; empty stands for the shape of data that it is given.
"""
Loops = tuple[tuple[int, int], ...]
"""The loops around something, the outermost first: the line of each, and the round it is in, from 0."""


@dataclass(eq=False, slots=True)
class Object:
    """Something that a script makes or is given; it is the same object under whatever name.

    Args:
        kind: What it is; "unknown" where neither its making nor its use tells.
        line: Where it is made.
        loops: The loops in which it is made.
        made_by: What makes it, dotted, with imports resolved; empty for what the script is given.
        definition: Its class, where that stands in the file.
        parent: The object that it is a part of.
        copy_of: The object that it is a copy of.
        attributes: Its parts by name.
        given: What its maker was given.
        settings: The keyword arguments of its maker, where these matter: those of a loader.
        holds: The models whose parameters an optimizer has.
        holds_all: Whether `holds` is known to be all of them.
        modes: The modes that a model may be in: "train", "eval"; empty where that is not known.
        through: The models through which its gradient goes, where it may be a tensor.
        name: What it was first assigned to.
        shape: Its shape, where it may be a tensor.
        facts: What is known of its data, where it may be a tensor or table.
        lengths: What a schedule counts, as far as that is known.
    """

    kind: Kind = "unknown"
    line: int = 0
    loops: Loops = ()
    made_by: str = ""
    definition: ast.ClassDef | None = None
    parent: Object | None = None
    copy_of: Object | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    given: tuple[Value, ...] = ()
    settings: dict[str, Value] = field(default_factory=dict)
    holds: frozenset[Object] = frozenset()
    holds_all: bool = True
    modes: frozenset[str] = frozenset()
    through: frozenset[Object] = frozenset()
    name: str = ""
    shape: Shape = ""
    facts: Facts = NOTHING
    lengths: tuple[Facts, ...] = ()

    def is_table(self) -> bool:
        """Say whether it is a table or array of a library."""
        return self.made_by.partition(".")[0] in ("pandas", "numpy", "polars", "torch")

    def is_part_of(self, other: Object) -> bool:
        """Say whether it is another object or a part of that."""
        part: Object | None = self
        while part is not None:
            if part is other:
                return True
            part = part.parent
        return False

    @property
    def label(self) -> str:
        """How the script calls it: "net.classifier"."""
        if self.parent is None:
            return self.name or self.made_by
        return self.parent.label if self.name in ("", "*") else f"{self.parent.label}.{self.name}"

    def is_of_model(self) -> bool:
        """Say whether it is a model or a part of one."""
        return self.kind == "model" or (self.parent is not None and self.parent.is_of_model())

    def has_parameters(self) -> bool:
        """Say whether it is a model with parameters for certain: a layer with some, or one that holds such."""
        return self.kind == "model" and any(
            HAS_PARAMETERS.search(part.made_by)
            or (part.made_by.endswith("nn.Parameter") and Constant(False) not in part.given)
            for part in self.parts()
        )

    def is_related_to(self, other: Object) -> bool:
        """Say whether one is a part of the other."""
        return self.is_part_of(other) or other.is_part_of(self)

    def holds_some_of(self, model: Object) -> bool:
        """Say whether it holds parameters of a model, of a part of it, or of what it is a part of."""
        return any(value.is_related_to(model) for value in self.holds)

    def is_made_from(self, other: Object, depth: int = 3) -> bool:
        """Say whether what makes it was given another object, so that it may share the parameters of that."""
        given = [source for value in self.given for source in objects_in(value)] if depth else []
        return any(source.is_related_to(other) or source.is_made_from(other, depth - 1) for source in given)

    def parts(self) -> Iterator[Object]:
        """Yield it and all its parts."""
        yield self
        for value in self.attributes.values():
            for part in objects_in(value):
                if part.parent is self:
                    yield from part.parts()


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value that is computed.

    Args:
        models: The models through which its gradient goes for certain.
        ends: What it is the result of, as far as a loss asks for that: "softmax", "sigmoid", "log_prob".
        is_known: Whether all that computes it stands in the file or is PyTorch's own.
        end_line: The line of what it is the result of.
        terms: What it is the sum of.
        shape: Its shape.
        cut: The models through which it was computed, where it is a plain number that lost their gradient (`item`).
        lacks: The line of a sum that it comes from whose other part is such a number; 0 without one.
        negative: Whether a minus stands before it.
        facts: What is known of its data.
    """

    models: frozenset[Object] = frozenset()
    ends: str = ""
    is_known: bool = False
    end_line: int = field(default=0, compare=False)
    terms: Terms = frozenset()
    shape: Shape = ""
    cut: frozenset[Object] = frozenset()
    lacks: int = 0
    negative: bool = False
    facts: Facts = NOTHING


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of models: one of them, or all.

    Args:
        models: The models.
        named: Whether they come in pairs with their names.
        known: Whether there are no others.
        gradients: Whether their gradients are meant.
        state: Whether they come with buffers, as `state_dict` gives them.
    """

    models: frozenset[Object]
    named: bool = False
    known: bool = True
    gradients: bool = False
    state: bool = False


MAX_SIZE = 1_000
"""Values in a list and in its parts that are kept apart."""


def _size_of(value: Value) -> int:
    if isinstance(value, Choice):
        return sum(map(_size_of, value.values))
    return value.size if isinstance(value, Items) else 1


@dataclass(frozen=True, slots=True)
class Items:
    """A list, tuple or mapping whose parts are known.

    Args:
        values: The parts.
        keys: Their keys in a mapping.
        pattern: Whether the parts stand for any number of such.
        fills: Whether an empty list stands under each key that is missing, as in a `defaultdict`.
        loops: The loops in which an empty list was made.
        size: How many values are in it, those in its parts among them.
    """

    values: tuple[Value, ...]
    keys: tuple[object, ...] = ()
    pattern: bool = False
    fills: bool = False
    loops: Loops | None = field(default=None, compare=False)
    size: int = field(default=0, init=False, compare=False)

    def get(self, key: object, default: Value | None = None) -> Value | None:
        """Return the value under a key of a mapping, and the default without one."""
        return self.values[self.keys.index(key)] if key in self.keys else default

    def __post_init__(self) -> None:
        """Keep the size; what is too large is taken as unknown, as lists of lists grow without bound."""
        size = 1 + sum(map(_size_of, self.values))
        object.__setattr__(self, "size", 1 if size > MAX_SIZE else size)
        if size > MAX_SIZE:
            object.__setattr__(self, "values", ())
            object.__setattr__(self, "keys", ())


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, depending on what the script does not show."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant.

    Args:
        value: Its value.
        facts: What it counts, and where it is written.
    """

    value: object
    facts: Facts = field(default=NOTHING, compare=False)


@dataclass(frozen=True, slots=True)
class Library:
    """A name of another file, dotted, with imports resolved: "torch.nn.Linear"."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function or lambda of this file.

    Args:
        node: Its definition.
        scope: The variables around it.
        path: Its name, dotted with what is around it.
        owner: The object that it is a method of.
        owner_class: The class in which it stands.
        given: Arguments that are bound already.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    path: str
    owner: Object | None = None
    owner_class: ast.ClassDef | None = None
    given: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class of this file."""

    node: ast.ClassDef
    scope: Scope
    path: str


@dataclass(frozen=True, slots=True)
class Super:
    """What `super()` gives in a method: the bases of a class, for an object."""

    owner: Object
    below: ast.ClassDef


Value = Object | Tensor | Parameters | Items | Choice | Constant | Library | Function | Class | Super

DATA = Tensor()
"""A value without a gradient."""


@dataclass(eq=False, slots=True)
class Scope:
    """Variables, with those of the scope around it."""

    around: Scope | None = None
    names: dict[str, Value] = field(default_factory=dict)

    def find(self, name: str) -> Value | None:
        """Return the value of a name, None where it has none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return None

    def holder(self, name: str) -> Scope:
        """Return the scope that has a name, or this one where none has it."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.around
        return scope or self


def merged(*parts: Items) -> Items:
    """Return mappings as one: a later value of a key counts, and all values are kept whose keys are not known."""
    known: dict[object, Value] = {}
    others: list[Value] = []
    for part in parts:
        for key, value in zip_longest(part.keys, part.values):
            if key is None:
                others.append(value)
            else:
                known[key] = value
    keys = (*known, *(None for _ in others))
    return Items((*known.values(), *others), keys, pattern=any(part.pattern for part in parts))


def either(*values: Value) -> Value:
    """Return one of several values; where they are equal, that value."""
    flat: list[Value] = []
    for value in values:
        flat += [choice for choice in (value.values if isinstance(value, Choice) else (value,)) if choice not in flat]
    return flat[0] if len(flat) == 1 else Choice(tuple(flat[:MAX_CHOICES]))


def written_of(*values: Value) -> Value:
    """Return one of several values: a mapping that the script writes out rather than one that it reads of a file."""
    mappings = [value for value in values if isinstance(value, Items) and value.keys]
    others = [value for value in values if value not in mappings]
    read = all(isinstance(value, Object) and value.kind == "unknown" for value in others)
    return mappings[0] if len(mappings) == 1 and read else either(*values)


MAX_CHOICES = 8
"""Values that a name may have at a place; more are left out."""


def choices(value: Value) -> Sequence[Value]:
    """Return what a value may be."""
    return value.values if isinstance(value, Choice) else (value,)


def objects_in(value: Value) -> Iterator[Object]:
    """Yield the objects in a value."""
    if isinstance(value, Object):
        yield value
    elif isinstance(value, Items | Choice):
        for item in value.values:
            yield from objects_in(item)


def holds_layers(value: Value) -> bool:
    """Say whether a value is a list or mapping of layers of PyTorch, and some of these are known."""
    named = isinstance(value, Object) and value.made_by.endswith(("ModuleList", "ModuleDict"))
    return named and isinstance(value, Object) and bool(value.attributes)


def models_through(*values: Value) -> frozenset[Object]:
    """Return the models through which the gradient of what is computed from values goes."""
    found: set[Object] = set()
    for value in values:
        if isinstance(value, Tensor):
            found |= value.models
        elif isinstance(value, Object):
            found |= value.through
        elif isinstance(value, Items):
            found |= models_through(*value.values)
        elif isinstance(value, Choice):
            found |= frozenset.intersection(*(models_through(choice) for choice in value.values))
    return frozenset(found)


def marked(value: Value, halves: tuple[Role, Role] | tuple[()]) -> Value:
    """Return a value, or each in a list, as rows whose halves have roles."""
    match value:
        case Tensor() | Object():
            return replace(value, facts=replace(value.facts, role="", halves=halves))
        case Items():
            return replace(value, values=tuple(marked(part, halves) for part in value.values))
    return value


def handed_on(value: Value, line: int) -> Value:
    """Return the values of a list that a line hands on: what has a role is known to be in this order from there."""
    if not isinstance(value, Items) or value.keys:
        return value
    parts = [
        replace(part, facts=replace(part.facts, line=line))
        if isinstance(part, Tensor | Object) and part.facts.role and part.facts.role in ("preferred", "other")
        else handed_on(part, line)
        for part in value.values
    ]
    return replace(value, values=tuple(parts))


def constant_in(value: Value) -> object:
    """Return the constant that a value is; None for any other value."""
    return value.value if isinstance(value, Constant) else None


def plain_of(value: Value) -> str:
    """Return a constant text; empty for any other value."""
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else ""


def facts_of(value: Value) -> Facts:
    """Return what is known of the data in a value; of a list what is known of all that it holds."""
    match value:
        case Tensor() | Object() | Constant():
            return value.facts
        case Items() | Choice() if value.values:
            return agreed([facts_of(part) for part in value.values])
    return NOTHING


def end_of(value: Value) -> str:
    """Return what a value is the result of; empty where that differs or is not known."""
    if isinstance(value, Tensor):
        return value.ends
    if isinstance(value, Object):
        return "log_prob" if value.made_by.endswith(".log_prob") else ""
    if isinstance(value, Items | Choice) and value.values:
        ends = {end_of(item) for item in value.values}
        return ends.pop() if len(ends) == 1 else ""
    return ""


def end_after(name: str, value: Value) -> str:
    """Return what a value is the result of after a function: outputs of a layer are so while they are only moved."""
    end = end_of(value)
    return "" if end == "logits" and name not in RESHAPES else end


def end_line_of(value: Value) -> int:
    """Return the line of what a value is the result of, 0 where it is not known."""
    return value.end_line if isinstance(value, Tensor) else 0


def cut_from(*values: Value) -> frozenset[Object]:
    """Return the models whose gradient numbers have lost."""
    return frozenset[Object]().union(*(value.cut for value in values if isinstance(value, Tensor)))


def lacking(*values: Value) -> int:
    """Return the line of a sum that lost the gradient of a part, 0 where none of the values comes from such a one."""
    return max((value.lacks for value in values if isinstance(value, Tensor)), default=0)


def terms_of(value: Value) -> Terms:
    """Return what a value is the sum of; what has a gradient and is not known is one term."""
    if isinstance(value, Tensor) and value.terms:
        return value.terms
    if isinstance(value, Object):
        known = computed(last_part(value.made_by), value.line)
        return known or (frozenset({Term("other", 1, value.line)}) if value.through else known)
    if isinstance(value, Items | Choice):
        return frozenset[Term]().union(*(terms_of(part) for part in value.values))
    return frozenset({Term("other", 1, 0)}) if models_through(value) else frozenset()


def terms_after(name: str, given: Sequence[Value], node: ast.Call) -> Terms:
    """Return what a function, or a method of the first value that it is given, returns the sum of."""
    known = computed(name, node.lineno)
    if known or not given:
        return known
    if name in KEEPS_SIGN:
        return frozenset[Term]().union(*map(terms_of, given))
    if name == "neg":
        return negated(terms_of(given[0]))
    if name == "exp":
        return exponential(terms_of(given[0]))
    return frozenset({Term("other", 1, node.lineno)}) if models_through(*given) else frozenset()


def _is_empty(value: Value) -> bool:
    return isinstance(value, Items) and not value.values


def parameters_in(value: Value) -> Parameters | None:
    """Return the parameters in a value, in whatever lists and mappings; None where there are none."""
    if isinstance(value, Parameters):
        return value
    if isinstance(value, Object) and value.made_by.endswith("nn.Parameter"):
        return Parameters(frozenset({value}))
    if isinstance(value, Items) and (held := value.get("params")) is not None:
        return parameters_in(held)
    if isinstance(value, Items | Choice):
        items = [item for item in value.values if not isinstance(item, Constant) and not _is_empty(item)]
        found = [parameters_in(item) for item in items]
        known = [parameters for parameters in found if parameters is not None]
        if not known:
            return None
        models = frozenset[Object]().union(*(parameters.models for parameters in known))
        return Parameters(models, known=all(parameters.known for parameters in known) and len(known) == len(found))
    return None
