"""Follows a script: what names, attributes and items hold, what calls give, what is reached, and what happens."""

from __future__ import annotations

import ast
import builtins
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeGuard

from mldebug_mcp.script import library
from mldebug_mcp.script.calls import (
    constant_of,
    dotted,
    fields_in,
    is_operation,
    last_part,
    names_in,
    parameters_of,
    walk,
)
from mldebug_mcp.script.facts import (
    CHOSEN_BY,
    COUNTS,
    NOTHING,
    Facts,
    Reduced,
    after,
    axis_of,
    compared,
    counted_by_name,
    cut,
    filled,
    flipped,
    halves_of,
    is_over_another_axis,
    joined_along,
    joined_rows,
    repeated,
    role_alone,
    role_of_name,
    rows_cut,
    turned_round,
    with_rows,
    with_rows_of,
    without_role,
)
from mldebug_mcp.script.facts import combined as combined_facts
from mldebug_mcp.script.shapes import (
    BATCHED,
    MADE_BY_SIZE,
    MAKES_OF_LIST,
    cuts_axes,
    shape_after,
    shape_at,
    shape_by_size,
    shape_of,
    shape_of_both,
    shape_of_item,
    shape_of_layer,
    shape_of_list,
    shape_of_part,
    shape_of_product,
)
from mldebug_mcp.script.trace import Action, Event, Exchanged, Registered, Trace
from mldebug_mcp.script.values import (
    DATA,
    Choice,
    Class,
    Constant,
    Function,
    Items,
    Kind,
    Library,
    Loops,
    Object,
    Parameters,
    Scope,
    Shape,
    Super,
    Tensor,
    Term,
    Terms,
    Value,
    added,
    choices,
    constant_in,
    cut_from,
    either,
    end_after,
    end_line_of,
    end_of,
    facts_of,
    gaussian_divergence,
    handed_on,
    holds_layers,
    lacking,
    marked,
    merged,
    models_through,
    negated,
    objects_in,
    parameters_in,
    plain_of,
    sign_of,
    terms_after,
    terms_of,
    weighted,
    written_of,
)

MAX_STATEMENTS = 30_000
"""Statements that are followed. Chosen: two seconds."""
MAX_EVENTS = 5_000
"""Events that are kept. Chosen: rules compare each with those around it."""
MAX_CALL_DEPTH = 12
"""Calls inside of calls that are entered."""
MAX_ITEMS = 8
"""Items of a list that a loop goes through one by one."""
MAX_LISTED = 64
"""Items of a list that are kept apart."""
MAX_WRAPPERS = 6
"""Subsets and other wrappers around a data set that are looked through."""
REDUCES = re.compile(r"_loss$|cross_entropy(?:_with_logits)?$")
"""Functions of PyTorch that give the mean over all elements unless another reduction is asked for."""
READS_ARRAY = re.compile(r"^(?:load|loadtxt|genfromtxt|from\w+|memmap|array|asarray|ascontiguousarray)$")
"""Functions of NumPy that give an array of the shape that data have."""
READS_TABLE = re.compile(r"^pandas\.(?:read_(?:csv|parquet|feather|table)|DataFrame)$")
"""Functions that give a table with named columns."""
PARSES = re.compile(r"^(?:yaml\.(?:safe_load|load|full_load)|json\.loads|tomllib\.loads|OmegaConf\.create)$")
"""Functions that make a mapping of a text."""
MAPPINGS = ("EasyDict", "Box", "DotDict", "AttrDict", "ConfigDict", "OrderedDict", "create", "MappingProxyType")
"""Functions and classes that give a mapping, or one with attributes, of a mapping."""
COUNTS_ON = ("arange", "linspace", "logspace", "randperm")
"""Functions that make a tensor of one axis."""
HALVES = ("chunk", "split", "tensor_split")
"""Functions and methods that give the parts of a tensor."""
HIDDEN = (("real", True), ("real", False), ("past", True))
"""What must not be hidden from a function that compares places: data, and the past from a softmax."""
JOINS = ("cat", "concat", "concatenate", "vstack")
"""Functions that put rows behind each other."""
MARGINS = ("logsigmoid", "log_sigmoid", "softplus", "relu", "clamp", "clamp_min", "sigmoid")
"""Functions that a loss of preferences gives the difference of two scores."""
MAX_CHARACTERS = 20_000
"""Length of a configuration in a script. Chosen: five hundred lines."""
MAX_BRACKETS = 200
"""Lists and mappings in brackets in it: the parser is slow where they stand in each other. Chosen."""
MAX_NUMBER = 40
"""Characters of a plain scalar that may be a number."""
NOTHING_RETURNED = (
    "zero_grad", "backward", "manual_backward", "load_state_dict", "add_param_group", "register_buffer", "unscale_",
)  # fmt: skip
"""Methods of PyTorch that return nothing."""
GIVES_LOSS = ("training_step", "compute_loss")
"""Methods whose result a trainer of a framework makes smaller."""
LOOP_ROUNDS = 2
"""Times that a loop is gone through: what one round leaves to the next is seen in the second."""


class ExhaustedError(Exception):
    """The script has more statements than are followed."""


@dataclass(slots=True)
class Frame:
    """A function that is followed: its variables, its object and class, what it returned.

    Args:
        scope: Its variables.
        path: Its name, dotted with what is around it.
        owner: The object that it is a method of.
        owner_class: The class in which it stands.
        returned: What it returned so far.
        globals_: Names that it sets at the top of the file.
        on_yield: What happens at its `yield`, where it is a context manager: the block of `with`.
    """

    scope: Scope
    path: str = ""
    owner: Object | None = None
    owner_class: ast.ClassDef | None = None
    returned: list[Value] = field(default_factory=list)
    globals_: set[str] = field(default_factory=set)
    on_yield: Callable[[Value], None] | None = None


class Follower:
    """Follows a script from its top, then each function that it never calls."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.top = Scope()
        self.frame = Frame(self.top)
        self.loops: Loops = ()
        self.tests: tuple[ast.AST, ...] = ()
        self.gradients: bool | None = True
        self.entry = 0
        self.count = 0
        self.stack: list[ast.AST] = []
        self.through: list[ast.AST] = []
        self.entered: set[ast.AST] = set()
        self.with_block: tuple[ast.AST, Callable[[Value], None]] | None = None
        self.switched: dict[Object, frozenset[str]] = {}
        self.batches: dict[Object, Value] = {}
        self.numbers: dict[Object, int] = {}
        self.reading = False
        """Whether the items of a data set are read."""
        self.measures: list[Facts] = []
        """What functions that schedules call measure their progress with."""
        self.lost: tuple[Value, Loops, int] | None = None
        """The last value that gradients were computed for, and the loops in which that was."""
        self.kept: list[tuple[Value, tuple[int, ...], Loops]] = []
        """What was put into lists that outlive the round, with the lines and the loops."""
        self.made_up: list[ast.AST] = []  # kept, as what happens is looked up by the identity of a part of the tree
        self.stands_for_several = False
        """Whether a comprehension is followed with one item for all: what it compares holds for some of them."""
        self._instances: dict[ast.ClassDef, Object] = {}

    def numbered(self, value: Object) -> str:
        """Return the label of an object with a number of its own, which is the same each time a script is followed."""
        return f"{value.label} ({self.numbers.setdefault(value, len(self.numbers) + 1)})"

    @contextmanager
    def under(self, test: ast.AST) -> Iterator[None]:
        """Note that what follows is under a test that the script does not decide."""
        before = self.tests
        self.tests = (*before, test)
        try:
            yield
        finally:
            self.tests = before

    @contextmanager
    def round(self, line: int, place: int) -> Iterator[None]:
        """Note that what follows is in a round of a loop."""
        before = self.loops
        self.loops = (*before, (line, place))
        try:
            yield
        finally:
            self.loops = before

    def iterate(self, through: Value, node: ast.expr | ast.stmt) -> None:
        """Note that a loop goes through loaders."""
        loaders = [loader for loader in objects_in(through) if loader.kind in ("loader", "unknown")]
        if loaders:
            self.event("iterate", loaders, node)

    def escape(self, values: Sequence[Value], node: ast.expr | ast.stmt) -> None:
        """Note what is given to code of another file, which may change it."""
        given = {
            escaped
            for value in values
            for escaped in objects_in(value)
            if escaped.kind in ("model", "optimizer", "unknown", "schedule", "instance")
        }
        for value in values:
            parameters = parameters_in(value)
            given |= parameters.models if parameters is not None else set()
        if given:
            self.event("escape", given, node)

    def note_kept(self, value: Value, made_in: Loops | None, node: ast.AST) -> None:
        """Note that a value is added to a list, or to a sum, that was made in outer loops, or in none."""
        if made_in is None or not self._outlives(value, made_in) or not isinstance(value, Tensor):
            return
        lines = self._lines_to(node)
        if self.lost is not None and self.lost[0] is value and self.lost[1:] == (self.loops, self.entry):
            self.trace.kept.append(lines)
        self.kept.append((value, lines, self.loops))

    def note_sum(self, value: Value, made_in: Loops, node: ast.AST) -> None:
        """Note that a sum which outlives the round gets the graph of the loss before it."""
        if self.lost is None or self.lost[1:] != (self.loops, self.entry) or not self._outlives(value, made_in):
            return
        if isinstance(self.lost[0], Tensor) and self.lost[0].models == models_through(value):
            self.trace.kept.append(self._lines_to(node))

    def _outlives(self, value: Value, made_in: Loops) -> bool:
        """Say whether a value with a graph is added to what was made outside of this round."""
        outside = made_in == self.loops[: len(made_in)] and len(made_in) < len(self.loops)
        return outside and bool(self.gradients) and isinstance(value, Tensor) and bool(value.models)

    def _lines_to(self, node: ast.AST) -> tuple[int, ...]:
        """Return the line of a part of the script, and those of the calls that lead to it."""
        return tuple(getattr(part, "lineno", 0) for part in (node, *self.through))

    def note_loss(self, loss: Value, node: ast.AST) -> None:
        """Note what is made smaller; of several values it is the first, or that of the key "loss"."""
        if isinstance(loss, Items) and loss.values:
            loss = loss.get("loss") or loss.values[0]
        self.event("loss", (), node, terms=terms_of(loss))

    def new(
        self, kind: Kind, node: ast.AST, *, made_by: str = "", given: Sequence[Value] = (), name: str = ""
    ) -> Object:
        """Make an object."""
        made = Object(kind, getattr(node, "lineno", 0), self.loops, made_by, given=tuple(given), name=name)
        self.trace.objects.append(made)
        return made

    def event(
        self, action: Action, objects: Sequence[Object] | set[Object] | frozenset[Object], node: ast.AST, *,
        modes: frozenset[str] = frozenset(), source: Object | None = None, terms: Terms = frozenset(),
    ) -> Event:  # fmt: skip
        """Note that something happens.

        Raises:
            ExhaustedError: too much has happened.
        """
        if len(self.trace.events) >= MAX_EVENTS:
            raise ExhaustedError
        event = Event(
            action, frozenset(objects), node, self.loops, self.tests, self.gradients, self.frame.path, self.entry,
            modes, source, terms, tuple(self.through),
        )  # fmt: skip
        self.trace.events.append(event)
        return event

    # What has a name, in a scope, an object, a class or a list: it is read and set.

    def with_role(self, name: str, value: Value, node: ast.AST | None) -> Value:
        """Return what gets a name, with the role that the name says; what has the opposite role is noted."""
        role, known = role_of_name(name), facts_of(value)
        if not role or isinstance(value, Items) or known.role in (role, "preferred less other", "other less preferred"):
            return value
        line = getattr(node, "lineno", 0)
        if known.role and not is_exchange(node):
            self.trace.exchanged.append(Exchanged(line, name, known.line, tuple(self.through)))
        known = replace(known, role=role, line=known.line or line)
        match value:
            case Tensor():
                return replace(value, facts=known)
            case Object() if value.kind == "unknown" and value.name in ("", name):
                value.facts = known
        return value

    def note_two_axes(self, facts: Facts) -> None:
        """Note that data have two axes, as what turns them or adds up over their rows says."""
        if facts.kind == "ones of a column":
            self.trace.over_one.append(facts.line)

    def note_part(self, name: str, value: Value) -> None:
        """Note that a table or array is rows of training, or held-out ones, by the first name that it gets."""
        if not (library.TRAINS.search(name) or library.HELD_OUT.search(name)):
            return
        for part in objects_in(value):
            if part.kind == "unknown" and part.definition is None and not part.facts.part:
                part.facts = replace(part.facts, part=name)

    def set_name(self, name: str, value: Value, node: ast.AST | None = None) -> None:
        """Give a name of the scope a value."""
        scope = self.top if name in self.frame.globals_ else self.frame.scope
        scope.names[name] = value = self.with_role(name, value, node)
        self.note_part(name, value)
        for choice in choices(value):
            if isinstance(choice, Object) and not choice.name:
                choice.name = name

    def assign(self, target: ast.expr, value: Value, node: ast.expr | ast.stmt) -> None:
        """Give what stands left of `=` a value."""
        match target:
            case ast.Name():
                self.set_name(target.id, value, node)
            case ast.Tuple() | ast.List():
                for place, part in enumerate(target.elts):
                    expr = part.value if isinstance(part, ast.Starred) else part
                    self.assign(expr, self.item(value, place), node)
            case ast.Attribute():
                for holder in choices(self.value(target.value)):
                    if isinstance(holder, Object) and is_sum(node, target):
                        self.note_sum(value, holder.loops, node)
                    self.assign_attribute(holder, target.attr, value, node)
            case ast.Subscript():
                owner, key = self.value(target.value), self.value(target.slice)
                plain = constant_in(key)
                if isinstance(owner, Items):
                    self.change(target.value, self.with_item(owner, plain, value), node)
                written = value.value if isinstance(value, Constant) else 1 if facts_of(value).kind == "ones" else None
                if isinstance(owner, Tensor) and isinstance(target.value, ast.Name):
                    known = with_rows_of(filled(owner.facts, target, written), facts_of(value))
                    self.change(target.value, replace(owner, facts=known), node)
                for holder in choices(owner):
                    if isinstance(holder, Parameters):
                        self.event("write", holder.models, node)
                    elif isinstance(holder, Object):
                        known = filled(holder.facts, target, written)
                        if known is not holder.facts:
                            holder.facts = known
                        elif holder.is_table() and not holder.facts.source:
                            # what is put into an array is what it holds
                            holder.facts = with_rows_of(facts_of(value), holder.facts)
                        self.assign_attribute(holder, _attribute_at(plain), value, node)

    def change(self, changed: ast.expr, value: Value, node: ast.expr | ast.stmt) -> None:
        """Give a list or mapping that is changed its new value: its name stays that of the scope which has it."""
        if isinstance(changed, ast.Name):
            self.frame.scope.holder(changed.id).names[changed.id] = value
        elif isinstance(changed, ast.Attribute | ast.Subscript):
            self.assign(changed, value, node)

    def with_item(self, owner: Items, key: object, value: Value) -> Items:
        """Return a list or mapping after one item is set; each may be the one whose key is not known.

        One whose value is not known either, as a command line sets it, leaves what the script writes out.
        """
        if not owner.keys:
            return replace(owner, values=(*owner.values, value), keys=() if owner.values else (key,))
        surely = key is not None and not self.tests
        says = key is not None or not (value == DATA or (isinstance(value, Object) and value.kind == "unknown"))
        changed = [
            (value if surely else either(item, value)) if says and key in (known, None) else item
            for known, item in zip(owner.keys, owner.values, strict=False)
        ]
        if key is not None and key in owner.keys:
            return replace(owner, values=tuple(changed))
        return replace(owner, values=(*changed, value), keys=(*owner.keys, key))

    def assign_attribute(self, owner: Value, name: str, value: Value, node: ast.expr | ast.stmt) -> None:
        """Give an attribute of something a value."""
        if isinstance(owner, Parameters | Object):
            models = owner.models if isinstance(owner, Parameters) else frozenset({owner})
            if name == "data":
                self.event("write", models, node)
            elif name == "requires_grad":
                self.event("freeze" if value == Constant(False) else "unfreeze", models, node)
            elif name == "grad" and isinstance(owner, Parameters):
                self.event("clear" if value == Constant(None) else "gradients", models, node)
        if isinstance(owner, Object):
            old_value = owner.attributes.get(name)
            self.note_part(name, value)
            uncertain = old_value is not None and self.tests and isinstance(value, Object | Constant | Choice)
            owner.attributes[name] = either(old_value, value) if uncertain and old_value is not None else value
            for part in objects_in(value):
                if not isinstance(value, Items):
                    self._attach(owner, part, name, node)
                elif owner.kind == "model" and not owner.is_part_of(part):
                    part.parent = part.parent or owner

    def _attach(self, owner: Object, part: Object, name: str, node: ast.expr | ast.stmt) -> None:
        part.name = part.name or name
        if owner.kind in ("model", "unknown") and part.kind in ("model", "unknown") and not owner.is_part_of(part):
            part.parent = part.parent or owner
            self.event("attach", [owner], node, source=part)

    def add(self, node: ast.AugAssign) -> None:
        """Follow `x += y`."""
        value = self.value(node.value)
        old_value = self.value(node.target) if not isinstance(node.target, ast.Subscript) else DATA
        parameters = parameters_in(old_value)
        if isinstance(old_value, Parameters):
            self.event("gradients" if old_value.gradients else "write", old_value.models, node)
        elif isinstance(old_value, Items) or parameters is not None or parameters_in(value) is not None:
            both = [part.values if isinstance(part, Items) else (part,) for part in (old_value, value)]
            self.assign(node.target, Items((*both[0], *both[1])[: MAX_ITEMS * 2]), node)
        elif not isinstance(old_value, Object):
            sides = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            self.assign(node.target, self.combined(sides, old_value, value), node)

    def item(self, value: Value, place: object) -> Value:
        """Return the item of something at a place; None stands for a place that is not known."""
        match value:
            case Items() if value.fills and (place not in value.keys if place is not None else not value.values):
                return Items(())
            case Items() if value.pattern:
                return either(*value.values) if value.values else DATA
            case Items() if value.keys:
                return value.get(place) or either(*value.values)
            case Items() if (
                isinstance(place, int)
                and not isinstance(place, bool)
                and -len(value.values) <= place < len(value.values)
            ):
                return value.values[place]
            case Items() if value.values:
                return either(*value.values)
            case Choice():
                return either(*(self.item(choice, place) for choice in value.values))
            case Object():
                return self.attribute(value, _attribute_at(place))
            case Parameters():
                return value
        return Tensor(models_through(value), shape=shape_of_item(value))

    def attribute(self, value: Value, name: str) -> Value:
        """Return an attribute of something."""
        match value:
            case Library():
                return Library(f"{value.name}.{name}")
            case Choice():
                parts = [self.attribute(choice, name) for choice in value.values if choice != Constant(None)]
                return either(*parts) if parts else DATA
            case Items() if name in value.keys:
                return self.item(value, name)
            case Parameters():
                if name == "grad":
                    return Parameters(value.models, known=value.known, gradients=True)
                return value if name == "data" else DATA
            case Tensor():
                if name == "T":
                    self.note_two_axes(value.facts)
                shape = shape_of_part(value, name)
                return Tensor(shape=shape) if name in library.PLAIN_ATTRIBUTES else replace(value, shape=shape)
            case Object():
                return self.attribute_of_object(value, name)
            case Class():
                method = self.method(value.node, name)
                known = method if method is not None else self._class_value(value.node, name) or DATA
                is_member = any(ast.unparse(base).endswith("Enum") for base in value.node.bases) and method is None
                return Constant(f"{value.path}.{name}") if is_member else known
            case Super():
                for base in self._bases(value.below):
                    method = self.method(base, name, value.owner)
                    if method is not None:
                        return method
                return self.new("unknown", value.below, made_by=f"super.{name}")
        return DATA

    def attribute_of_object(self, owner: Object, name: str) -> Value:
        """Return an attribute of an object; one that nothing sets is made."""
        if name in owner.attributes:
            return owner.attributes[name]
        if name == "*" and holds_layers(owner):
            return either(*owner.attributes.values())
        if name in ("module", "_orig_mod") and owner.definition is None:
            return owner
        if owner.kind == "loader" and name in ("sampler", "batch_sampler") and "sampler" in owner.settings:
            return self._sampler_of(owner, name)
        if name == "training" and owner is not self.frame.owner and len(owner.modes) == 1:
            return Constant("train" in owner.modes)
        if owner.definition is not None:
            method = self.method(owner.definition, name, owner)
            if method is not None:
                decorators = [ast.unparse(decorator) for decorator in getattr(method.node, "decorator_list", ())]
                is_property = any("property" in decorator for decorator in decorators)
                return self.enter(method, [], {}, method.node) if is_property else method
            value = self._class_value(owner.definition, name)
            if value is not None:
                owner.attributes[name] = value
                return value
        part = Object(
            loops=owner.loops,
            line=owner.line,
            parent=owner,
            name=name,
            made_by=f"{owner.made_by}.{name}" if owner.made_by else "",
        )
        part.modes, part.facts, part.shape = owner.modes, owner.facts, shape_of_part(owner, name)
        if owner.kind == "unknown":
            self.with_role(name, part, None)
        part.through = frozenset() if name in library.PLAIN_ATTRIBUTES else owner.through
        self.trace.objects.append(part)
        owner.attributes[name] = part
        return part

    def _sampler_of(self, loader: Object, name: str) -> Value:
        """Return the sampler that a loader was given, or what makes batches of its places."""
        if name == "sampler":
            return loader.settings[name]
        batches = Object(line=loader.line, name=name, made_by=library.BATCH_SAMPLER)
        batches.attributes = {"sampler": loader.settings["sampler"], "batch_size": DATA, "drop_last": DATA}
        return loader.attributes.setdefault(name, batches)

    def fields_of(self, owner: Object) -> Items:
        """Return the fields of a data class with what they hold, as a mapping."""
        classes = reversed(list(self.classes(owner.definition) if owner.definition is not None else ()))
        fields = dict.fromkeys([*(name for class_ in classes for name in fields_in(class_)), *owner.attributes])
        return Items(tuple(self.attribute_of_object(owner, name) for name in fields), tuple(fields))

    def counted(self, name: str, value: Value, node: ast.expr) -> Value:
        """Return what has a name, with its role, or what a number of such a name counts, where nothing else says it."""
        if isinstance(value, Tensor) and not value.facts.role and (role := role_of_name(name)):
            return replace(value, facts=replace(value.facts, role=role, line=value.facts.line or node.lineno))
        known = counted_by_name(name, facts_of(value).line or node.lineno) if name else NOTHING
        if not known.kind or facts_of(value).kind not in ("", "number"):
            return value
        match value:
            case Constant() if facts_of(value).kind:
                return replace(value, facts=known)
            case Tensor() if not value.models:
                return replace(value, facts=known)
            case Object() if value.kind == "unknown":
                value.facts = known
        return value

    def note_clock(self, left: Facts, right: Facts) -> None:
        """Note what a function that a schedule calls measures its progress with."""
        if "clock" in (left.kind, right.kind):
            self.measures += [facts for facts in (left, right) if facts.kind in COUNTS]

    def element(self, through: Value) -> Value:
        """Return what stands for each item of something."""
        match through:
            case Parameters():
                plain = Parameters(through.models, known=through.known)
                return Items((DATA, plain)) if through.named else plain
            case Items():
                return either(*through.values) if through.values else DATA
            case Choice():
                return either(*(self.element(value) for value in through.values))
            case Object() if through.is_of_model():
                return self.attribute(through, "*")
            case Object() if through.kind == "loader":
                return self.batch_of(through)
            case Object() if through.definition is not None and through.kind == "instance":
                iterates = self.method(through.definition, "__iter__", through)
                if iterates is not None and self.stack.count(iterates.node) == 0:
                    return self.element(self.enter(iterates, [], {}, iterates.node))
        return Tensor(models_through(through), shape=shape_of_item(through))

    def classes(self, definition: ast.ClassDef, depth: int = 0) -> Iterator[ast.ClassDef]:
        """Yield a class and its bases of this script."""
        yield definition
        for base in self._bases(definition):
            if depth < MAX_CALL_DEPTH and base is not definition:
                yield from self.classes(base, depth + 1)

    def _bases(self, definition: ast.ClassDef) -> list[ast.ClassDef]:
        found = (self.top.find(base.id) for base in definition.bases if isinstance(base, ast.Name))
        return [base.node for base in found if isinstance(base, Class)]

    def method(self, definition: ast.ClassDef, name: str, owner: Object | None = None) -> Function | None:
        """Return the method of a class, or of its bases."""
        for class_ in self.classes(definition):
            for part in class_.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name == name:
                    static = any(ast.unparse(mark) == "staticmethod" for mark in part.decorator_list)
                    return Function(part, self.top, f"{class_.name}.{name}", None if static else owner, class_)
        return None

    def _class_value(self, definition: ast.ClassDef, name: str) -> Value | None:
        for class_ in self.classes(definition):
            for part in class_.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id == name:
                    return self.value(part.value) if part.value is not None else None
                if isinstance(part, ast.Assign) and any(
                    isinstance(target, ast.Name) and target.id == name for target in part.targets
                ):
                    return self.value(part.value)
        return None

    # Loaders, and the data sets that they read.

    def batch_of(self, loader: Object) -> Value:
        """Return what stands for each batch of a loader; data without a gradient where its data set is not known."""
        if loader not in self.batches:
            self.batches[loader] = DATA  # a data set that reads its own loader ends here
            events, reading = len(self.trace.events), self.reading
            self.reading = True
            self.batches[loader] = self._read(loader)
            self.reading = reading
            del self.trace.events[events:]
        return self.batches[loader]

    def _read(self, loader: Object) -> Value:
        given = rows_of(loader)
        node = ast.Call(ast.Name("collate_fn"), [], [], lineno=loader.line, col_offset=0)
        self.made_up.append(node)
        if any(part.made_by.endswith("TensorDataset") for part in wrapped(given)):
            tensors = next(part for part in wrapped(given) if part.made_by.endswith("TensorDataset")).given
            return Items(tuple(_plain_batch(value, is_batch=True) for value in tensors))
        collate = loader.settings.get("collate_fn")
        item = self._item_of(given, node)
        if item is None and isinstance(collate, Function | Object) and getattr(collate, "kind", "") in ("", "instance"):
            item = DATA
        if item is None:
            return DATA
        if collate is None or collate == Constant(None):
            return _plain_batch(item, is_batch=False)
        return _plain_batch(self.call_value(collate, [Items((item,), pattern=True)], {}, node), is_batch=True)

    def _item_of(self, given: Value, node: ast.Call) -> Value | None:
        """Return an item of a data set of this file, or of a list; None where that is not known."""
        for dataset in wrapped(given):
            definition = dataset.definition
            read = self.method(definition, "__getitem__", dataset) if definition is not None else None
            if read is not None:
                return self.enter(read, [Tensor(shape="scalar")], {}, node)
            through = self.method(definition, "__iter__", dataset) if definition is not None else None
            if through is not None:
                return self.element(self.enter(through, [], {}, node))
        return self.element(given) if isinstance(given, Items) and given.values else None

    # Calls of something that another file defines.

    def call_library(self, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        """Follow the call of a function or class of another file."""
        last = last_part(name)
        given = (*args, *keywords.values())
        if last[:1].islower():
            self.trace.called.setdefault(id(node), set()).add(name)
        if name == "super":
            if self.frame.owner is not None and self.frame.owner_class is not None:
                return Super(self.frame.owner, self.frame.owner_class)
            return DATA
        if last in ("deepcopy", "copy") and len(args) >= 1:
            copies = (self._copy(part, node) if isinstance(part, Object) else part for part in choices(args[0]))
            return either(*copies)
        if last in ("len", "int", "float") and args:
            length = _length_of(args[0], node) if last == "len" else facts_of(args[0])
            return Tensor(
                shape="scalar", cut=models_through(*args[:1]) if last == "float" else frozenset(), facts=length
            )
        if last in library.LOOKS_ONLY and not library.COMPUTES.search(name):
            if last not in ("sum", "max", "min"):
                return DATA
            counted = {facts_of(value).kind: facts_of(value) for value in args} if last != "sum" else {}
            known = [facts for kind, facts in counted.items() if kind in COUNTS]
            facts = known[0] if len(known) == 1 and set(counted) <= {known[0].kind, "number"} else NOTHING
            shape = _shape_of_result(last, args, keywords) if name.startswith("numpy.") else ""
            return Tensor(models_through(*given), terms=terms_after(last, args, node), shape=shape, facts=facts)
        parameters = parameters_in(args[0]) if args else None
        parameters = parameters or (parameters_in(keywords["params"]) if "params" in keywords else None)
        if last.startswith("clip_grad") and parameters is not None:
            self.event("clip", parameters.models if parameters.known else frozenset(), node)
            return DATA
        if library.SCHEDULES.search(name) and not library.OPTIMIZERS.search(name):
            schedule = self.new("schedule", node, made_by=name, given=given)
            schedule.lengths = tuple(self._lengths(last, args, keywords, node))
            self.event("plan", [schedule], node)
            return schedule
        is_class = last[:1].isupper() and last != "Tensor" and "nn" not in name.split(".")
        if library.OPTIMIZERS.search(name) or (parameters is not None and not parameters.state and is_class):
            optimizer = self.new("optimizer", node, made_by=name, given=given)
            self.hold(optimizer, args, keywords)
            self.event("make", [optimizer], node)
            return optimizer
        if last in library.WRAPPERS and args:
            return args[0]
        if last in library.PREPARES and given and not name.startswith("torch.nn"):
            return Items(tuple(given)) if len(given) != 1 else given[0]
        if last in ("GradScaler", "ShardedGradScaler"):
            return self.new("unknown", node, made_by=name)
        if last == "DataLoader" or last.endswith("DataLoader"):
            loader = self.new("loader", node, made_by=name, given=given)
            spread = any(keyword.arg is None for keyword in node.keywords) and not keywords
            loader.settings = {**keywords, **({"shuffle": DATA} if spread or len(args) > 2 else {})}
            return loader
        if name.startswith("torch.utils.data"):
            return self.new("unknown", node, made_by=name, given=given)
        return self._call_plain(name, last, args, keywords, parameters, node)

    def _lengths(self, last: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Iterator[Facts]:
        """Yield what a schedule counts: its lengths, or what the function that it calls measures its progress with."""
        if "steps_per_epoch" in keywords:
            yield Facts("batches", line=node.lineno)
            return
        for name, place in library.LENGTHS.get(last, library.LENGTHS[""] if last.startswith("get_") else ()):
            value = keywords.get(name, args[place] if place < len(args) else DATA)
            if name != "lr_lambda":
                yield from (facts_of(part) for part in (value.values if isinstance(value, Items) else [value]))
                continue
            before, self.measures = self.measures, []
            self.call_value(value, [Tensor(shape="scalar", facts=Facts("clock"))], {}, node)
            yield from self.measures
            self.measures = before

    def _call_plain(
        self,
        name: str,
        last: str,
        args: list[Value],
        keywords: dict[str, Value],
        parameters: Parameters | None,
        node: ast.Call,
    ) -> Value:
        given = (*args, *keywords.values())
        value = self._call_builtin(last, args, keywords, node)
        if value is not None:
            return value
        if PARSES.search(name) and args and plain_of(args[0]):
            return _parsed(plain_of(args[0]), facts_of(args[0]).line)
        if last in ("SimpleNamespace", "Namespace") and keywords:
            made = self.new("unknown", node, made_by=name)
            made.attributes |= keywords
            return made
        if last in MAPPINGS and args and isinstance(args[0], Items) and args[0].keys:
            return args[0]
        if name in ("torch.autograd.backward", "torch.autograd.grad"):
            if last == "backward":
                self.event("backward", models_through(*args[:1]), node)
            return Tensor(models_through(*args[:1]))
        if name in ("jax.grad", "jax.value_and_grad") and args and isinstance(args[0], Function):
            self.note_loss(self.enter(args[0], [], {}, node), node)
        if ".nn." in f".{name}" and last[:1].isupper():
            return self._layer(name, args, keywords, node)
        if parameters is not None and parameters.state and last in ("save", "load"):
            return DATA
        initialises = ".init." in name  # what a model begins with is no change of it
        if (last.endswith("_") and not initialises) or last.startswith(("_foreach", "vector_to_parameters")):
            self._note_write(given, node)
        if library.COMPUTES.search(name) and last not in ("load", "get_model"):
            return self._computed(last, args, keywords, node)
        self.escape(given, node)
        made = self._unknown(name, last, given, node)
        if name.startswith("numpy.") and not READS_ARRAY.search(last):
            made.shape = _shape_of_result(last, args, keywords)
        return made

    def _call_builtin(self, last: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value | None:
        """Return what a function of Python's own makes of its arguments; None if it is none of them."""
        if last == "sorted" and args and (keys := _texts_of(args[0])):
            in_order = sorted(keys, reverse=keywords.get("reverse") == Constant(True))
            return Items(tuple(Constant(key, Facts(line=node.lineno)) for key in in_order))
        if last in library.PASSES_ON or last.startswith("tqdm"):
            if last == "chain" and len(args) > 1:
                return Items(tuple(args), pattern=True)
            return args[0] if args else Items(())
        match last, args:
            case "enumerate", [inner, *_]:
                if _is_listed(inner):
                    return Items(tuple(Items((Constant(place), item)) for place, item in enumerate(inner.values)))
                return self._paired(args, [DATA, self.element(inner)], node)
            case "zip", [Items(pattern=False) as item] if node.args and isinstance(node.args[0], ast.Starred):
                return Items(tuple(Items((part,), pattern=True) for part in item.values))
            case (("zip" | "zip_longest"), [_, *_]):
                lists = [argument.values for argument in args if _is_listed(argument)]
                if len(lists) == len(args):
                    return Items(tuple(Items(tuple(parts)) for parts in zip(*lists, strict=False)))
                return self._paired(args, [self.element(argument) for argument in args], node)
            case "filter", [_, through, *_]:
                return through
            case "map", [function, through, *_]:
                return Items((self.call_value(function, [self.element(through)], {}, node),), pattern=True)
            case "next", [through, *_]:
                return self.element(through)
            case "getattr", [owner, Constant(attribute), *_]:
                return self.attribute(owner, str(attribute))
            case "setattr", [owner, key, value, *_]:
                self.assign_attribute(owner, str(key.value) if isinstance(key, Constant) else "*", value, node)
                return Constant(None)
            case "partial", [Function() as function, *bound]:
                names = [argument.arg for argument in function.node.args.args]
                given = (*zip(names, bound, strict=False), *keywords.items())
                return Function(
                    function.node, function.scope, function.path, function.owner, function.owner_class, given
                )
            case (("asdict" | "vars"), [Object() as owner, *_]) if owner.definition is not None:
                return self.fields_of(owner)
            case (("field" | "Field"), _) if "default_factory" in keywords:
                return self.call_value(keywords["default_factory"], [], {}, node)
            case (("field" | "Field"), _) if "default" in keywords:
                return keywords["default"]
            case "defaultdict", [Library("list" | "set") | Function(), *_]:
                made = self.call_value(args[0], [], {}, node) if isinstance(args[0], Function) else Items(())
                return Items((), fills=True) if made == Items(()) else None
            case "dict", _:
                return Items(tuple(keywords.values()), tuple(keywords)) if keywords or not args else args[0]
        return None

    def _note_write(self, given: Sequence[Value], node: ast.Call) -> None:
        found = [parameters_in(value) for value in given]
        models = {model for part in found if part is not None for model in part.models}
        self.event("write", models.union(*map(objects_in, given)), node)

    def _computed(self, last: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        if last == "triplet_margin_loss" and len(args) > 2:
            self.with_role("positive", args[1], node)
            self.with_role("negative", args[2], node)
        halves = halves_of(facts_of(args[0])) if args and last in HALVES else []
        if halves:
            return Items(tuple(Tensor(models_through(args[0]), facts=half) for half in halves))
        facts = self.facts_after(last, args, node.args[1:], node)
        if REDUCES.search(last):
            facts = replace(facts, reduced=reduction_of(keywords))
        if last in library.WITHOUT_GRADIENT:
            cut = models_through(*args[:1]) if last == "float" else frozenset[Object]()
            return Tensor(shape=_shape_of_result(last, args, keywords), cut=cut, facts=facts)
        given = (*args, *keywords.values())
        parts = [Tensor(value.models) if isinstance(value, Parameters) else value for value in given]
        ends = library.RESULTS.get(last, "")
        if not ends and args and last in library.SAME_VALUES:
            ends = end_after(last, args[0])
        known = bool(args) and isinstance(args[0], Tensor) and args[0].is_known
        through = models_through(*parts) if self.gradients else frozenset()
        line = node.lineno if last in library.RESULTS else end_line_of(args[0]) if args else 0
        shape = _shape_of_result(last, args, keywords)
        return Tensor(through, ends, known, line, terms_after(last, args, node), shape, facts=facts)

    def facts_after(self, name: str, given: Sequence[Value], others: list[ast.expr], node: ast.Call) -> Facts:
        """Return what is known of the data that a function, or a method of the first value, gives."""
        facts = [facts_of(value) for value in given]
        if given and isinstance(given[0], Items) and name in (*JOINS, "stack", "pad_sequence"):
            parts = [facts_of(part) for part in given[0].values]
            axis = axis_of(others, node)
            of_item = self.reading and axis is None and {*map(shape_of, given[0].values)} == {"row"}
            along = name in JOINS and (axis in (1, -1) or of_item)
            facts[0] = joined_along(parts) if along else joined_rows(parts)
        if facts and name in MARGINS and "less" in facts[0].role:
            self.trace.margins.append((node.lineno, name, facts[0].role, facts[0].line))
        weighs = name in ("softmax", "log_softmax")
        if facts and name in library.COMPARES_PLACES and (facts[0].hides, weighs) in HIDDEN:
            self.trace.hidden.append((facts[0].line, facts[0].hides))
        if facts and weighs and facts[0].kind == "scores":
            self.trace.softmaxed.add((node.lineno, facts[0].line, axis_of(others, node)))
        of_column = weighs and bool(given) and shape_of(given[0]) == "column"
        if of_column and axis_of(others, node) == -1:
            self.trace.over_one.append(node.lineno)
        if facts and (name == "t" or (name in ("sum", "mean") and facts[0].axis and axis_of(others, node) == 0)):
            self.note_two_axes(facts[0])
        if facts and weighs and facts[0].hides and is_over_another_axis(facts[0], others, node):
            self.trace.over_another_axis.append((node.lineno, facts[0].line))
        known = after(name, facts, others, node)
        if of_column and axis_of(others, node) == 1:
            return replace(known, kind="ones of a column", line=node.lineno)
        return known

    def _unknown(self, name: str, last: str, given: Sequence[Value], node: ast.Call) -> Object:
        """Return what code of another file makes: a model where the name says so."""
        pretrained = last in ("from_pretrained", "create_model") or ".models." in name
        made = self.new("model" if pretrained else "unknown", node, made_by=name, given=given)
        made.facts = self.facts_after(last, given, node.args[1:], node)
        made.shape = shape_of_list(given[0]) if given and last in MAKES_OF_LIST else ""
        if READS_TABLE.search(name) and not {keyword.arg for keyword in node.keywords} & {"header", "chunksize"}:
            made.shape = "table"
        if last == "from_pretrained":
            made.modes = frozenset({"eval"}) if "Model" in name or "For" in name else frozenset()
        elif pretrained:
            made.modes = frozenset({"train"})
        return made

    def _paired(self, through: Sequence[Value], parts: list[Value], node: ast.Call) -> Items:
        for iterable in through:
            self.iterate(iterable, node)
        return Items((Items(tuple(parts)),), pattern=True)

    def _layer(self, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Object:
        layer = self.new("loss" if name.endswith("Loss") else "model", node, made_by=name)
        layer.modes = frozenset({"train"})
        layer.settings = keywords if layer.kind == "loss" else {}
        self.fill_layer(layer, (*args, *keywords.values()))
        return layer

    def fill_layer(self, layer: Object, given: Sequence[Value]) -> None:
        """Give a layer what it is made of, such as the layers of a `Sequential`."""
        layer.given = tuple(given)
        for place, value in enumerate(layer.given):
            for part in objects_in(value):
                if part.kind == "model" and not layer.is_part_of(part):
                    part.parent = part.parent or layer
                    before = layer.attributes.get(str(place), part)
                    layer.attributes[str(place)] = either(before, part)

    def hold(self, optimizer: Object, args: Sequence[Value], keywords: dict[str, Value]) -> None:
        """Give an optimizer the parameters in what it is given."""
        first = args[0] if args else keywords.get("params")
        found = parameters_in(first) if first is not None else None
        optimizer.holds |= found.models if found is not None else frozenset()
        optimizer.holds_all = optimizer.holds_all and found is not None and found.known

    def _copy(self, source: Object, node: ast.AST, parent: Object | None = None) -> Object:
        made = self.new(source.kind, node, made_by=source.made_by, given=source.given)
        made.copy_of, made.definition, made.modes, made.parent = source, source.definition, source.modes, parent
        self.event("copy", [made], node, source=source)
        for name, value in source.attributes.items():
            inner = isinstance(value, Object) and value.parent is source
            made.attributes[name] = self._copy(value, node, made) if inner and isinstance(value, Object) else value
        return made

    # Calls of methods.

    def call_method(
        self, owner: Value, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        """Follow the call of a method."""
        given = (*args, *keywords.values())
        match owner:
            case Library():
                return self.call_library(f"{owner.name}.{name}", args, keywords, node)
            case Class():
                return self.call_value(self.attribute(owner, name), args, keywords, node)
            case Super():
                method = self.attribute(owner, name)
                if isinstance(method, Function):
                    return self.enter(method, args, keywords, node)
                if name == "__init__":
                    if any(ast.unparse(base).endswith("Sequential") for base in owner.below.bases):
                        self.fill_layer(owner.owner, args)
                        owner.owner.made_by = "torch.nn.Sequential"
                    return Constant(None)
                return self._method_of(owner.owner, name, args, keywords, node)
            case Object():
                attribute = owner.attributes.get(name)
                if attribute is None and owner.definition is not None:
                    attribute = self.method(owner.definition, name, owner)
                if attribute is not None and not (
                    isinstance(attribute, Object) and attribute.kind == "unknown" and attribute.parent is owner
                ):
                    return self.call_value(attribute, args, keywords, node)
                return self._method_of(owner, name, args, keywords, node)
            case Parameters():
                return self._method_of_parameters(owner, name, given, node)
            case Items():
                return self._method_of_items(owner, name, args, node)
            case Tensor() if name == "backward":
                self.note_loss(owner, node)
                self.lost = (owner, self.loops, self.entry)
                self.trace.kept += [lines for kept, lines, loops in self.kept if kept is owner and loops == self.loops]
                if owner.lacks:
                    self.trace.lacking.append(owner.lacks)
                if owner.cut and not owner.models and owner.end_line:
                    self.trace.without_graph.append((node.lineno, owner.end_line))
                self.event("backward", owner.models, node)
                return Constant(None)
        if name in library.CUTTING_METHODS:
            cut = models_through(owner) if name == "item" else frozenset[Object]()
            self.trace.cut |= models_through(owner)
            facts = self.facts_after(name, [owner, *args], node.args, node)
            return Tensor(shape=shape_after(name, owner, args, keywords), cut=cut, facts=facts)
        if name == "detach_" and isinstance(node.func, ast.Attribute):
            self.assign(node.func.value, DATA, node)
        halves = halves_of(facts_of(owner)) if name in HALVES else []
        if halves:
            return Items(tuple(Tensor(models_through(owner), facts=half) for half in halves))
        ends = library.RESULTS.get(name) or (end_after(name, owner) if name in library.SAME_VALUES else "")
        known = isinstance(owner, Tensor) and owner.is_known
        line = node.lineno if name in library.RESULTS else end_line_of(owner)
        terms, shape = terms_after(name, [owner, *args], node), shape_after(name, owner, args, keywords)
        facts = self.facts_after(name, [owner, *args], node.args, node)
        return Tensor(models_through(owner, *given), ends, known, line, terms, shape, facts=facts)

    def _method_of_items(self, owner: Items, name: str, args: list[Value], node: ast.Call) -> Value:
        target = node.func.value if isinstance(node.func, ast.Attribute) else None
        inner = target.func if isinstance(target, ast.Call) else None
        if isinstance(target, ast.Call) and isinstance(inner, ast.Attribute) and inner.attr == "setdefault":
            target = ast.copy_location(ast.Subscript(inner.value, target.args[0]), target)
        if name in ("append", "add") and isinstance(target, ast.Subscript) and isinstance(args[0], Function):
            key = constant_in(self.value(target.slice))
            self.trace.registered.append(Registered(args[0].node, key, node, tuple(self.through)))
        if name == "update" and owner.keys and args and target is not None:
            if isinstance(args[0], Items) and args[0].keys:  # what is not known may change any key, or none
                self.change(target, merged(owner, args[0]), node)
            return Constant(None)
        if name in ("append", "add", "extend", "insert", "update", "appendleft") and args and target is not None:
            new = args[-1].values if name in ("extend", "update") and isinstance(args[-1], Items) else (args[-1],)
            pattern = owner.pattern or bool(self.loops)
            self.note_kept(args[-1], owner.loops, node)
            self.change(target, Items((*owner.values, *new)[:MAX_LISTED], pattern=pattern, loops=owner.loops), node)
            return Constant(None)
        if name == "setdefault" and len(args) == 2 and target is not None and isinstance(args[0], Constant):
            self.change(target, self.with_item(owner, args[0].value, args[1]), node)
            return self.item(self.value(target), args[0].value)
        if name == "items":
            return Items(
                tuple(Items((Constant(key), value)) for key, value in zip(owner.keys, owner.values, strict=False)),
                pattern=owner.pattern,
            )
        if name == "keys":
            return Items(tuple(map(Constant, owner.keys)))
        if name in ("get", "pop") and len(args) == 2 and _lacks(owner, args[0]):
            return args[1]
        if name in ("get", "pop") and args:
            return self.item(owner, constant_in(args[0]))
        if name in ("values", "copy"):
            return Items(owner.values, owner.keys if name == "copy" else (), owner.pattern)
        if name in ("to", "cuda", "cpu", "pin_memory"):
            return owner
        return Tensor(models_through(owner))

    def _method_of_parameters(self, owner: Parameters, name: str, given: Sequence[Value], node: ast.Call) -> Value:
        if name == "requires_grad_":
            self.event("freeze" if Constant(False) in given else "unfreeze", owner.models, node)
            return owner
        if name.endswith("_") and not name.endswith("__"):
            clears = owner.gradients and name in ("zero_", "detach_")
            if name != "detach_" or owner.gradients:
                self.event("clear" if clears else "gradients" if owner.gradients else "write", owner.models, node)
            return owner
        if name in ("items", "values"):
            return owner
        if name in library.WITHOUT_GRADIENT or owner.gradients or name in ("clone", "cpu"):
            return DATA
        return Tensor(owner.models)

    def _method_of(
        self, owner: Object, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        """Follow a method that PyTorch, or another file, gives an object."""
        given = (*args, *keywords.values())
        if owner.kind == "unknown" and (name in library.CUTTING_METHODS or name == "get"):
            facts = self.facts_after(name, [owner, *args], node.args, node)
            return Tensor(shape=_shape_after_method(owner, name, args, keywords), facts=facts)
        if owner.made_by.endswith(".ModuleDict") and name in ("items", "values"):
            part = self.attribute_of_object(owner, "*")
            return Items((Items((DATA, part)) if name == "items" else part,), pattern=True)
        match name:
            case "parameters" | "named_parameters":
                owner.kind = "model" if owner.kind == "unknown" else owner.kind
                return Parameters(frozenset({owner}), named=name == "named_parameters")
            case "modules" | "children" | "named_modules" | "named_children":
                part = self.attribute_of_object(owner, "*")
                return Items((Items((DATA, part)) if name.startswith("named") else part,), pattern=True)
            case "train" | "eval":
                return self._switch(owner, name, given, node)
            case "step":
                return self._step(owner, given, node)
            case "state_dict":
                return Parameters(frozenset({owner}), named=True, state=True)
            case "requires_grad_":
                self.event("freeze" if Constant(False) in given else "unfreeze", [owner], node)
                return owner
            case "add_module" | "register_module":
                for module in (module for value in given for module in objects_in(value)):
                    self.assign_attribute(owner, "*", module, node)
                return owner
            case "zero_grad":
                self.event("clear", [owner], node)
            case "backward" | "manual_backward":
                self.note_loss(given[0] if given else owner, node)
                self.event("backward", models_through(*given[:1]) if given else owner.through, node)
            case "load_state_dict":
                states = [state for value in given if (state := parameters_in(value)) is not None]
                source = next((model for state in states for model in state.models), None)
                self.event("load", [owner], node, source=source)
            case "add_param_group":
                self.hold(owner, list(given), {})
            case "register_buffer" if len(given) > 1 and plain_of(given[0]):
                self.assign_attribute(owner, plain_of(given[0]), given[1], node)
            case "unscale_":
                self.event("unscale", [optimizer for value in given for optimizer in objects_in(value)], node)
        if name in NOTHING_RETURNED:
            return Constant(None)
        if name in library.PREPARES:
            return Items(tuple(args)) if len(args) != 1 else args[0]
        if name == "forward":
            return self.forward(owner, args, keywords, node)
        if name in library.SAME_MODEL and owner.kind in ("model", "unknown", "loss"):
            if name == "apply":
                self.event("write", [owner], node)
            return owner
        if name in ("scale", "unwrap_model") and len(args) == 1:
            return args[0]
        if name in library.WRAPPERS and args:
            return args[0]
        self.escape(given, node)
        if owner.kind == "loader":
            return owner
        if owner.kind == "model" and name not in library.WITHOUT_GRADIENT and self.gradients:
            return Tensor(models_through(*given) | {owner})
        made = self.new("unknown", node, made_by=f"{owner.made_by or owner.name}.{name}", given=given)
        made.through = models_through(owner, *given) if owner.through else frozenset()
        made.shape = _shape_after_method(owner, name, args, keywords)
        made.facts = self.facts_after(name, [owner, *args], node.args, node)
        return made

    def _switch(self, owner: Object, method: str, given: Sequence[Value], node: ast.Call) -> Value:
        if given and owner.kind == "unknown" and not isinstance(given[0], Constant):
            self.escape(given, node)
            return self.new("unknown", node, made_by=method, given=tuple(given))
        mode = given[0] if given else Constant(True)
        is_train = method == "train" and mode != Constant(False)
        known = isinstance(mode, Constant)
        if owner.kind == "unknown" and owner.parent is None:
            owner.kind = "model"
        for part in owner.parts():
            self.switched.setdefault(part, part.modes)
            part.modes = frozenset({"train" if is_train else "eval"}) if known else frozenset()
        self.event("train" if is_train else "eval", [owner], node)
        return owner

    def _step(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        for value in given:
            for function in choices(value):
                if isinstance(function, Function):
                    self.enter(function, [], {}, node)
        is_scaler = "scaler" in f"{owner.made_by} {owner.name}".lower()
        stepped = [
            optimizer
            for value in given
            for optimizer in objects_in(value)
            if optimizer.kind == "optimizer" or is_scaler
        ]
        closure = any(isinstance(choice, Function) for value in given for choice in choices(value))
        if owner.kind == "schedule":
            self.event("schedule", [owner], node)
        elif stepped or owner.kind == "optimizer" or not given or closure:
            self.event("step", stepped or [owner], node)
        return self.new("unknown", node, made_by="step")

    # Calls of what stands in the script.

    def call(self, node: ast.Call) -> Value:
        """Follow a call, and return what it gives."""
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = self.value(node.func.value if isinstance(node.func, ast.Attribute) else node.func)
        args: list[Value] = []
        for arg in node.args:
            value = self.value(arg)
            spread = value if isinstance(arg, ast.Starred) and isinstance(value, Items) else None
            if spread is None:
                args.append(value)
            elif spread.pattern:
                args += [self.element(spread)] * self._left_for_spread(called, method, node)
            else:
                args += spread.values
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Items):
                keywords |= {
                    key: item for key, item in zip(value.keys, value.values, strict=False) if isinstance(key, str)
                }
        for name, value in keywords.items():
            self.with_role(name, value, node)
            self.trace.settings.setdefault(id(node), {}).setdefault(name, []).append(value)
        if args:
            self.trace.given.setdefault(id(node), []).append(args[0])
        if len(args) > 1:
            self.trace.sides.setdefault(id(node), []).append((args[0], args[1]))
        callees = [choice for choice in choices(called) if choice != Constant(None)]
        if method:
            results = [self.call_method(callee, method, args, keywords, node) for callee in callees]
        else:
            results = [self.call_value(callee, args, keywords, node) for callee in callees]
        return either(*results) if results else DATA

    def _left_for_spread(self, called: Value, method: str, node: ast.Call) -> int:
        """Return how many arguments a function of this file takes for a list that is spread; 1 for other functions."""
        function = self.attribute(called, method) if method and isinstance(called, Object | Class) else called
        if isinstance(function, Class):
            function = self.method(function.node, "__init__") or function
        if not isinstance(function, Function):
            return 1
        own = function.owner is not None or function.owner_class is not None
        return max(1, len(function.node.args.args) - own - len(node.args) + 1 - len(node.keywords))

    def call_value(self, called: Value, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        """Follow the call of a value with arguments that are known."""
        match called:
            case Choice():
                return either(*(self.call_value(value, args, keywords, node) for value in called.values))
            case Function():
                return self.enter(called, args, keywords, node)
            case Class():
                return self.make(called, args, keywords, node)
            case Library():
                return self.call_library(called.name, args, keywords, node)
            case Object():
                return self.forward(called, args, keywords, node)
        return Tensor(models_through(called, *args, *keywords.values()))

    def enter(self, function: Function, args: Sequence[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Follow a function with what it is given, and return what it returns."""
        definition = function.node
        if len(self.stack) >= MAX_CALL_DEPTH or self.stack.count(definition) > 1:
            return self.new("unknown", node)
        before = (self.frame, self.gradients)
        scope = Scope(function.scope)
        self.frame = Frame(scope, function.path, function.owner, function.owner_class)
        self._bind(function, args, keywords, node)
        if self.with_block is not None and self.with_block[0] is definition:
            self.frame.on_yield = self.with_block[1]
            self.with_block = None
        self.stack.append(definition)
        self.through.append(node)
        self.entered.add(definition)
        if node is not definition:
            self.trace.reached.add(definition)
        try:
            if isinstance(definition, ast.Lambda):
                return self.value(definition.body)
            for decorator in definition.decorator_list:
                self.gradients = self.gradients_in(decorator, self.gradients)
            self.body(definition.body)
            returned = either(*self.frame.returned) if self.frame.returned else Constant(None)
            if definition.name == "configure_optimizers":
                self.trace.intervals += _intervals(returned)
            if definition.name in GIVES_LOSS:
                self.note_loss(returned, definition)
            return returned
        finally:
            self.stack.pop()
            self.through.pop()
            self.frame, self.gradients = before

    def _bind(self, function: Function, args: Sequence[Value], keywords: dict[str, Value], node: ast.AST) -> None:
        given, names = function.node.args, self.frame.scope.names
        parameters = [*given.posonlyargs, *given.args]
        values = list(args)
        if function.owner is not None and parameters:
            own_class = function.owner_class
            decorators = map(ast.unparse, getattr(function.node, "decorator_list", ()))
            of_class = own_class is not None and any("classmethod" in decorator for decorator in decorators)
            first = Class(own_class, self.top, own_class.name) if of_class and own_class else function.owner
            values.insert(0, first)
        defaults = dict(zip([arg.arg for arg in reversed(parameters)], reversed(given.defaults), strict=False))
        defaults |= {arg.arg: value for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
        bound = dict(function.given) | keywords
        free = [arg.arg for arg in parameters if arg.arg not in dict(function.given)]
        bound |= dict(zip(free, values, strict=False))
        # callers of the function with which the script begins here may not keep its defaults
        begins_here = bool(self.entry) and function.node in self.stack[:1]
        for parameter in (*parameters, *given.kwonlyargs):
            name = parameter.arg
            if name in bound:
                names[name] = self.with_role(name, bound[name], node)
            elif name in defaults and not begins_here:
                names[name] = self.value(defaults[name])
            else:
                given_value = self.new("unknown", function.node, name=name, made_by="")
                names[name] = self.with_role(name, given_value, function.node)
        if given.vararg is not None:
            rest = values[len(free) :]
            names[given.vararg.arg] = Items(tuple(rest)) if rest else Items((DATA,), pattern=True)
        if given.kwarg is not None:
            named = {parameter.arg for parameter in (*parameters, *given.kwonlyargs)}
            rest_named = {key: value for key, value in keywords.items() if key not in named}
            names[given.kwarg.arg] = Items(tuple(rest_named.values()), tuple(rest_named))

    def make(self, called: Class, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
        """Make an instance of a class of this file."""
        names = [ast.unparse(base) for class_ in self.classes(called.node) for base in class_.bases]
        is_model = any(
            last_part(name) in ("Module", "PreTrainedModel", "GenerationMixin")
            or (name.endswith(("Model", "Module")) and "Data" not in name)
            for name in names
        )
        is_optimizer = any(name.endswith("Optimizer") or library.OPTIMIZERS.search(name) for name in names)
        made = self.new("model" if is_model else "optimizer" if is_optimizer else "instance", node, made_by=called.path)
        made.definition, made.given = called.node, (*args, *keywords.values())
        if is_optimizer:
            self.hold(made, args, keywords)
        start = self.method(called.node, "__init__", made)
        if start is not None:
            self.enter(start, args, keywords, node)
        else:
            made.attributes |= dict(zip(fields_in(called.node), args, strict=False)) | keywords
        if is_model:
            for part in made.parts():
                part.modes = part.modes or frozenset({"train"})
        return made

    def forward(self, model: Object, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        """Follow the call of an object: the forward pass of a model, a loss, an instance with `__call__`."""
        given = (*args, *keywords.values())
        self.trace.called.setdefault(id(node), set()).add(model.made_by)
        if model.kind == "loss":
            if "Triplet" in model.made_by and len(args) == 3:
                self.with_role("positive", args[1], node)
                self.with_role("negative", args[2], node)
            facts = Facts(reduced=reduction_of(model.settings) if model.made_by.startswith("torch.nn.") else "")
            return Tensor(models_through(*given), terms=self._terms_of_loss(model, args, node), facts=facts)
        event = self.event("forward", [model], node, modes=model.modes)
        inner: Value = DATA
        if model.definition is not None and model.made_by != "torch.nn.Sequential":
            method = self.method(model.definition, "forward", model) or self.method(model.definition, "__call__", model)
            if method is not None:
                inner = self.enter(method, args, keywords, node)
                if model.kind != "model":
                    return inner
        else:
            self._through_own_layers(model, args, node)
            self.escape(given, node)
        models = models_through(*given) | {model} if event.gradients else frozenset()
        if model.kind == "unknown":
            made = self.new("unknown", node, made_by=model.made_by or model.name, given=given)
            made.through = models
            made.facts = role_alone([facts_of(value) for value in given])
            made.shape = _shape_of_any(model)
            return made
        if isinstance(inner, Items):
            parts = (_with_models(value, models) if isinstance(value, Tensor) else value for value in inner.values)
            return Items(tuple(parts), inner.keys, inner.pattern)
        place = next((facts for value in args if (facts := facts_of(value)).source), NOTHING)
        if isinstance(inner, Tensor) and model.definition is not None and model.made_by != "torch.nn.Sequential":
            if not inner.facts.source:
                inner = replace(inner, facts=replace(inner.facts, source=place.source, shifts=place.shifts))
            return _with_models(inner, models)
        facts = replace(role_alone([facts_of(value) for value in given]), source=place.source, shifts=place.shifts)
        return replace(_result_of_layer(model, models), facts=facts)

    def _through_own_layers(self, model: Object, args: list[Value], node: ast.Call) -> None:
        """Follow the layers of a `Sequential` whose classes stand in the file."""
        if model.made_by.endswith("Sequential"):
            for layer in (part for value in model.given for part in objects_in(value)):
                if layer.definition is not None or layer.made_by.endswith("Sequential"):
                    self.forward(layer, args, {}, node)

    def _terms_of_loss(self, loss: Object, args: Sequence[Value], node: ast.Call) -> Terms:
        known = {"KLDivLoss": "kl_div", "CosineSimilarity": "cosine_similarity"}
        return terms_after(known.get(last_part(loss.made_by), ""), args, node)

    # Expressions.

    def value(self, node: ast.expr | None) -> Value:
        """Return the value of an expression; what stands in it happens."""
        match node:
            case None:
                return Constant(None)
            case ast.Constant():
                return _written(node)
            case ast.Name():
                return self.counted(node.id, self._named(node.id), node)
            case ast.Attribute():
                return self.counted(node.attr, self.attribute(self.value(node.value), node.attr), node)
            case ast.Call():
                return self.call(node)
            case ast.Tuple() | ast.List() | ast.Set():
                return self._listed(node.elts)
            case ast.Dict():
                return self._mapping(node)
            case ast.Subscript():
                key = self.value(node.slice)
                value = self.value(node.value)
                if isinstance(node.slice, ast.Slice) and (isinstance(value, Items | Parameters) or holds_layers(value)):
                    return replace(value) if isinstance(value, Items) else value  # other rows than those of the whole
                if isinstance(value, Items) and plain_of(key):
                    self.trace.chosen.add((plain_of(key), facts_of(key).line))
                taken = self._subscripted(node, value, key)
                taken = handed_on(taken, facts_of(key).line or node.lineno) if role_of_name(plain_of(key)) else taken
                return self.counted(plain_of(key), taken, node)
            case ast.IfExp():
                known = self.truth(node.test)
                if known is not None:
                    return self.value(node.body if known else node.orelse)
                with self.under(node):
                    return written_of(self.value(node.body), self.value(node.orelse))
            case ast.BoolOp():
                return written_of(*(self.value(expr) for expr in node.values))
            case ast.Lambda():
                return Function(node, self.frame.scope, self.frame.path)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehension(node, node.elt)
            case ast.DictComp():
                return self._comprehension(node, node.value)
            case ast.NamedExpr():
                value = self.value(node.value)
                self.assign(node.target, value, node)
                return value
            case ast.Starred() | ast.Await():
                return self.value(node.value)
            case ast.Yield() if self.frame.on_yield is not None:
                self.frame.on_yield(self.value(node.value))
                return DATA
            case ast.Yield() | ast.YieldFrom():
                value = handed_on(self.value(node.value), node.lineno)
                self.frame.returned.append(Items((value,), pattern=True))
                return DATA
            case ast.UnaryOp() if isinstance(node.op, ast.Not):
                known = self.truth(node.operand)
                return DATA if known is None else Constant(not known)
            case ast.UnaryOp():
                return self._turned(node)
            case ast.Compare():
                left, *others = [self.value(expr) for expr in (node.left, *node.comparators)]
                is_single = len(others) == 1 and not self.stands_for_several
                known = self._compared(left, node.ops[0], others[0]) if is_single else None
                if known is not None:
                    return Constant(known, Facts(line=node.lineno))
                self.note_clock(facts_of(left), facts_of(others[0]))
                return Tensor(
                    shape=shape_of_both(left, others[0]), facts=compared(node, facts_of(left), facts_of(others[0]))
                )
            case ast.BinOp():
                return self.combined(node, self.value(node.left), self.value(node.right))
            case ast.JoinedStr():
                return self._formatted(node)
        return DATA

    def _formatted(self, node: ast.JoinedStr) -> Value:
        """Return a text that is put together of parts, where all of these are known."""
        parts = [self.value(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
        filled_in = [part for part in node.values if isinstance(part, ast.FormattedValue)]
        plain = all(part.conversion == -1 and not part.format_spec for part in filled_in)
        texts = [part.value for part in parts if isinstance(part, Constant) and isinstance(part.value, str)]
        return Constant("".join(texts), Facts(line=node.lineno)) if plain and len(texts) == len(parts) else DATA

    def _turned(self, node: ast.UnaryOp) -> Value:
        """Return what `-x`, `+x` or `~x` is."""
        operand = self.value(node.operand)
        turned = isinstance(node.op, ast.USub)
        if isinstance(operand, Constant):
            known_number = turned and isinstance(operand.value, int | float)
            number = -operand.value if known_number else constant_of(node)  # type: ignore[operator]
            return Constant(number, operand.facts)
        terms, facts = terms_of(operand), facts_of(operand)
        return Tensor(
            models_through(operand),
            end_after("neg", operand),
            terms=negated(terms) if turned else terms,
            shape=shape_of(operand),
            negative=turned,
            facts=flipped(facts) if isinstance(node.op, ast.Invert) else turned_round(facts),
        )

    def _mapping(self, node: ast.Dict) -> Items:
        """Return a mapping that is written out, with those that it is spread with: a later key counts."""
        parts: list[Items] = []
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            key, value = self.value(key_node), self.value(value_node)
            if key_node is None and isinstance(value, Items):
                parts.append(value)
            else:
                value = self.with_role(plain_of(key), value, value_node)
                parts.append(Items((value,), (constant_in(key),)))
        return merged(*parts)

    def combined(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        """Return what an operation makes of two values."""
        if isinstance(node.op, ast.Add) and isinstance(left, Items) and isinstance(right, Items):
            halves = joined_rows([facts_of(left), facts_of(right)]).halves
            return Items(tuple(marked(part, halves) if halves else part for part in (*left.values, *right.values)))
        if isinstance(node.op, ast.BitOr) and isinstance(left, Items) and isinstance(right, Items):
            return merged(left, right)
        listed = isinstance(left, Items) or (isinstance(right, Items) and facts_of(left).kind == "")
        if isinstance(node.op, ast.Add) and (listed or parameters_in(left) or parameters_in(right)):
            return Items((left, right), pattern=True)
        only = left.values[0] if isinstance(left, Items) and len(left.values) == 1 else None
        if isinstance(node.op, ast.Mult) and isinstance(only, Constant):
            return Tensor(shape="row", facts=repeated(only.value, facts_of(right)))
        if isinstance(node.op, ast.Mult) and isinstance(only, Items) and shape_of_list(only):
            return Tensor(shape="column" if shape_of_list(only) == "single" else "other")
        if isinstance(node.op, ast.Sub):
            self.trace.sides.setdefault(id(node), []).append((left, right))
        parts = [Tensor(side.models) if isinstance(side, Parameters) else side for side in (left, right)]
        ends = [end_of(operand) for operand in (left, right)]
        if isinstance(node.op, ast.Mult) and "log_prob" in ends and ends[0] != ends[1]:
            weight = models_through(right if ends[0] == "log_prob" else left)
            if weight and self.gradients:
                self.event("policy", weight, node)
        known = all(
            isinstance(tensor, Constant) or (isinstance(tensor, Tensor) and tensor.is_known) for tensor in (left, right)
        )
        reached = models_through(*parts)
        models = reached if self.gradients is not False else frozenset[Object]()
        terms = self._terms(node, left, right)
        shape = (shape_of_product if isinstance(node.op, ast.MatMult) else shape_of_both)(left, right)
        lost_of, lacks = frozenset[Object]() if models else reached | cut_from(left, right), lacking(left, right)
        if isinstance(node.op, ast.Add) and models and (lost := cut_from(left, right)) and lost & models:
            lacks = node.lineno
        ends_in = "log_prob" if "log_prob" in ends else ""
        of_padding = [facts_of(side) for side in (right, left) if facts_of(side).kind == "padding"]
        counts_places = facts_of(right).kind in ("padding", "real", "length")
        if isinstance(node.op, ast.Div) and models and of_padding and counts_places:
            self.trace.padding_kept.append((of_padding[0].line, node.lineno))
        self.note_clock(facts_of(left), facts_of(right))
        facts = combined_facts(node, facts_of(left), facts_of(right))
        reduced = [facts_of(side).reduced for side in (left, right)]
        if isinstance(node.op, ast.Add) and sorted(reduced) == ["mean", "sum"]:
            if not _is_of_weights((left, right)[reduced.index("sum")]):
                self.trace.reductions.append((node.lineno, facts_of((left, right)[reduced.index("sum")]).line))
        elif isinstance(node.op, ast.Mult) and any(map(_is_near_one, (left, right))):
            facts = replace(facts, reduced=reduced[0] or reduced[1])
        made = Tensor(models, ends_in, known, terms=terms, shape=shape, cut=lost_of, lacks=lacks, facts=facts)
        return replace(made, end_line=node.lineno) if reached and not models else made

    def _chosen_by(self, node: ast.Subscript) -> str:
        """Return what a call gives a function, or an object, that chooses a part of rows by it; empty for none."""
        if not self.through:
            return ""
        given = _names_by_parameters(self.stack[-1])
        parts = [*walk(node.slice, ast.Name, ast.Attribute)]
        names = {name for part in parts if isinstance(part, ast.Name) for name in given.get(part.id, ())}
        values = [self._named(name) for name in sorted(names)]
        values += [self.value(part) for part in parts if dotted(part).startswith("self.")]
        line = getattr(self.through[-1], "lineno", 0)
        chosen = [
            repr(value.value)
            if isinstance(value, Constant)
            else self.numbered(value)
            if isinstance(value, Object)
            else f"line {line}"
            for value in values
        ]
        return f"{CHOSEN_BY}{', '.join(chosen)}" if chosen else ""

    def _subscripted(self, node: ast.Subscript, value: Value, key: Value) -> Value:
        plain = constant_in(key)
        if isinstance(value, Choice):
            return either(*(self._subscripted(node, choice, key) for choice in value.values))
        if isinstance(value, Object) and value.kind == "unknown" and value.is_table() and rows_cut(node):
            given = self._chosen_by(node)
            part = self.attribute_of_object(value, f"[{ast.unparse(node.slice)}]{given}")
            if isinstance(part, Object):
                part.facts = with_rows(value.facts, node, given)
                part.shape = value.shape or ("other" if self.reading else "")
            return part
        if self.reading and isinstance(value, Object) and value.kind == "unknown" and rows_cut(node):
            source = value.facts.source or self.numbered(value)
            facts = with_rows(cut(replace(value.facts, source=source), node), node, self._chosen_by(node))
            return Tensor(shape="other", facts=facts)
        if isinstance(value, Object) and value.kind == "unknown" and cuts_axes(node.slice):
            part = self.attribute_of_object(value, f"[{node.lineno}:{node.col_offset}]")  # its words give no role
            if isinstance(part, Object):
                part.shape = shape_at(node, value, key, of_item=self.reading)
            return part
        taken = Tensor(shape="other") if isinstance(value, Library) else self.item(value, plain)
        if shape_of(value) == "table" and isinstance(plain, str) and isinstance(taken, Tensor | Object):
            return replace(taken, shape="row") if isinstance(taken, Tensor) else _as_row(taken)
        if plain == "attention_mask" and isinstance(taken, Tensor | Object) and not facts_of(taken).kind:
            return Tensor(facts=Facts("real", line=node.lineno))
        if isinstance(value, Tensor) and isinstance(taken, Tensor):
            if self.reading and not value.facts.source and rows_cut(node):
                source = f"{node.lineno}:{node.col_offset}"
                facts = with_rows(replace(value.facts, source=source), node, self._chosen_by(node))
                return replace(taken, facts=facts, shape="other")
            facts = with_rows(cut(value.facts, node), node, self._chosen_by(node))
            chosen = not isinstance(node.slice, ast.Slice | ast.Tuple | ast.Constant)
            return replace(
                taken,
                facts=without_role(facts) if chosen else facts,
                shape=shape_at(node, value, key, of_item=self.reading),
            )
        return taken

    def _terms(self, node: ast.BinOp, left: Value, right: Value) -> Terms:
        """Return what a combination of two values is the sum of."""
        if isinstance(node.op, ast.Add | ast.Sub):
            sign = gaussian_divergence(node)
            if sign:
                return frozenset({Term("kl", sign, node.lineno)})
            return added(terms_of(left), terms_of(right), subtracts=isinstance(node.op, ast.Sub))
        of_left, of_right = terms_of(left), terms_of(right)
        if isinstance(node.op, ast.Mult | ast.Div) and not of_right:
            return weighted(of_left, node.right, self._sign(node.right, right))
        if isinstance(node.op, ast.Mult):
            known_left = all(term.quantity == "other" for term in of_left)
            if not of_left or known_left:
                return weighted(of_right, node.left, self._sign(node.left, left))
            if all(term.quantity == "other" for term in of_right):
                return weighted(of_left, node.right, self._sign(node.right, right))
        return frozenset({Term("other", 1, node.lineno)}) if of_left or of_right else frozenset()

    def _sign(self, node: ast.expr, weight: Value) -> int:
        """Return the sign of a weight: as its value has it, else as it is written; 0 where an unseen mapping has it."""
        if isinstance(weight, Constant) and isinstance(weight.value, int | float):
            return -1 if weight.value < 0 else 1
        if isinstance(weight, Tensor) and weight.negative:
            return -1
        inner = node.func if isinstance(node, ast.Call) else node
        chosen = isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant | ast.Slice | ast.Tuple)
        chosen = chosen or (isinstance(inner, ast.Attribute) and inner is not node and inner.attr == "get")
        unseen = (
            chosen and isinstance(inner, ast.Subscript | ast.Attribute) and isinstance(self.value(inner.value), Object)
        )
        return 0 if unseen and not models_through(weight) else sign_of(node)

    def _named(self, name: str) -> Value:
        value = self.frame.scope.find(name)
        if value is not None:
            return value
        if name == "__name__":
            return Constant("__main__")
        known = library.usual_name(name)
        if known or hasattr(builtins, name):
            return Library(known or name)
        given = Object(name=name, made_by=name)
        self.trace.objects.append(given)
        self.top.names[name] = given
        return given

    def _listed(self, nodes: Sequence[ast.expr]) -> Items:
        values: list[Value] = []
        pattern = False
        for node in nodes:
            value = self.value(node)
            if isinstance(node, ast.Starred):
                pattern = pattern or not isinstance(value, Items) or value.pattern
                values += value.values if isinstance(value, Items) else [value]
            else:
                values.append(value)
        return Items(tuple(values), pattern=pattern, loops=self.loops if not nodes else None)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, kept: ast.expr
    ) -> Value:
        outer, loops, alone = self.frame.scope, self.loops, self.stands_for_several
        self.frame.scope = Scope(outer)
        try:
            for place, part in enumerate(node.generators):
                through = self.value(part.iter)
                listed = isinstance(through, Items) and not through.pattern and len(through.values) <= MAX_ITEMS
                if listed and isinstance(through, Items) and len(node.generators) == 1 and not part.ifs:
                    values, keys = [], []
                    for value in map(Constant, through.keys) if through.keys else through.values:
                        self.assign(part.target, value, kept)
                        key = self.value(node.key) if isinstance(node, ast.DictComp) else DATA
                        keys += [str(key.value)] if isinstance(key, Constant) else []
                        values.append(self.value(kept))
                    return Items(tuple(values), tuple(keys) if len(keys) == len(values) else ())
                if place == 0 and (halves := self._halves(node, kept, through)):
                    return halves
                self.loops = (*self.loops, (kept.lineno, 0))
                self.stands_for_several = True
                self.iterate(through, kept)
                self.assign(part.target, self.element(through), kept)
                for test in part.ifs:
                    self.value(test)
            value = self.value(kept)
        finally:
            self.frame.scope, self.loops, self.stands_for_several = outer, loops, alone
        return value if isinstance(value, Parameters) else Items((value,), pattern=True)

    def _halves(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, kept: ast.expr, through: Value
    ) -> Value | None:
        """Return what `[f(row[key]) for key in ("chosen", "rejected") for row in rows]` gives; None for others."""
        keys = [plain_of(part) for part in through.values] if isinstance(through, Items) else []
        if len(node.generators) != 2 or {*map(role_of_name, keys)} != {"preferred", "other"} or len(keys) != 2:
            return None
        parts = []
        for key in through.values if isinstance(through, Items) else ():
            self.assign(node.generators[0].target, key, kept)
            self.assign(node.generators[1].target, self.element(self.value(node.generators[1].iter)), kept)
            parts.append(self.value(kept))
        halves = joined_rows([facts_of(part) for part in parts]).halves
        return Items((marked(parts[0], halves),), pattern=True) if halves else None

    def truth(self, test: ast.expr) -> bool | None:
        """Return whether a test holds, None where the script does not decide it."""
        match test:
            case ast.UnaryOp(op=ast.Not()):
                inner = self.truth(test.operand)
                return None if inner is None else not inner
            case ast.BoolOp():
                parts = [self.truth(part) for part in test.values]
                deciding = isinstance(test.op, ast.Or)
                if deciding in parts:
                    return deciding
                return None if None in parts else not deciding
            case ast.Compare() if len(test.ops) == 1:
                return self._compared(self.value(test.left), test.ops[0], self.value(test.comparators[0]))
            case ast.Call(func=ast.Name("isinstance"), args=[subject, kinds]):
                return self._is_instance(self.value(subject), self.value(kinds))
            case ast.Call(func=ast.Name("hasattr"), args=[subject, ast.Constant(str(name))]):
                owner = self.value(subject)
                is_known = isinstance(owner, Object) and owner.made_by == library.BATCH_SAMPLER
                return name in owner.attributes if is_known and isinstance(owner, Object) else None
        value = self.value(test)
        if isinstance(value, Constant):
            return bool(value.value)
        return True if isinstance(value, Object) and value.kind not in ("unknown", "instance") else None

    def _is_instance(self, value: Value, kinds: Value) -> bool | None:
        """Return whether a value is of a class, or of any of several, None where that is not known."""
        if isinstance(kinds, Items):
            answers = {self._is_instance(value, kind) for kind in kinds.values}
            return True if True in answers else None if None in answers else False
        if isinstance(value, Object) and value.made_by == library.BATCH_SAMPLER and isinstance(kinds, Library):
            return kinds.name.endswith(("BatchSampler", "sampler.Sampler", "data.Sampler"))
        if not isinstance(value, Object) or value.kind not in library.CLASSES_OF:
            return None
        if isinstance(kinds, Class):
            return None if value.definition is None else kinds.node in self.classes(value.definition)
        name = last_part(kinds.name) if isinstance(kinds, Library) else ""
        asked = {kind for kind, names in library.CLASSES_OF.items() if name in names}
        return value.kind in asked if asked else None

    def _compared(self, left: Value, operator: ast.cmpop, right: Value) -> bool | None:
        if isinstance(left, Constant) and isinstance(right, Constant):
            same = left.value == right.value
            return {ast.Eq: same, ast.NotEq: not same, ast.Is: same, ast.IsNot: not same}.get(type(operator))
        if isinstance(left, Constant) and isinstance(right, Items) and isinstance(operator, ast.In | ast.NotIn):
            listed = [Constant(key) for key in right.keys] if right.keys else list(right.values)
            known = not right.pattern and all(isinstance(value, Constant) for value in listed)
            return (left in listed) is isinstance(operator, ast.In) if known else None
        if isinstance(right, Constant) and right.value is None and isinstance(operator, ast.Is | ast.IsNot):
            is_unknown = isinstance(left, Object) and left.kind == "unknown"
            known = isinstance(left, Object | Items | Function | Class | Parameters) and not is_unknown
            return isinstance(operator, ast.IsNot) if known else None
        return None

    # Statements.

    def body(self, statements: Sequence[ast.stmt]) -> bool:
        """Follow statements, and say whether what comes after them is never reached."""
        return any(self._statement(statement) for statement in statements)

    def _statement(self, node: ast.stmt) -> bool:
        self.count += 1
        if self.count > MAX_STATEMENTS:
            raise ExhaustedError
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.set_name(node.name, Function(node, self.frame.scope, self._path_of(node.name)))
                self._register(node)
            case ast.ClassDef():
                self.set_name(node.name, Class(node, self.frame.scope, self._path_of(node.name)))
                self._register(node)
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.assign(target, value, node)
            case ast.AnnAssign() if node.value is not None:
                self.assign(node.target, self.value(node.value), node)
            case ast.AugAssign():
                self.add(node)
            case ast.Expr():
                self.value(node.value)
            case ast.Return():
                self.frame.returned.append(handed_on(self.value(node.value), node.lineno))
                return True
            case ast.If():
                return self._if(node)
            case ast.For() | ast.AsyncFor():
                self._for(node)
            case ast.While():
                self._while(node)
            case ast.With() | ast.AsyncWith():
                return self._with(node)
            case ast.Try():
                left = self.body([*node.body, *node.orelse])
                for handler in node.handlers:
                    with self.under(handler):
                        self.body(handler.body)
                return self.body(node.finalbody) or (left and not node.handlers)
            case ast.Match():
                self.value(node.subject)
                for case in node.cases:
                    with self.under(case):
                        self.body(case.body)
            case ast.Global():
                self.frame.globals_ |= set(node.names)
            case ast.Break() | ast.Continue() | ast.Raise():
                return True
            case ast.Assert():
                self.value(node.test)
        return False

    def _register(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Follow what decorators of this file do with a definition, such as to list it under a name.

        The name keeps what is defined, as a decorator that wraps it calls it.
        """
        for decorator in reversed(node.decorator_list):
            called = self.value(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if isinstance(called, Function):
                wraps = self.value(decorator) if isinstance(decorator, ast.Call) else called
                if isinstance(wraps, Function):
                    self.enter(wraps, [self._named(node.name)], {}, decorator)

    def _path_of(self, name: str) -> str:
        return f"{self.frame.path}.{name}" if self.frame.path else name

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self.set_name(alias.asname or alias.name, Library(f"{node.module or ''}.{alias.name}".lstrip(".")))
            elif alias.asname:
                self.set_name(alias.asname, Library(alias.name))
            else:
                first = alias.name.partition(".")[0]
                self.set_name(first, Library(first))

    def _if(self, node: ast.If) -> bool:
        self.value(node.test)
        known = self.truth(node.test)
        if known is not None:
            return self.body(node.body if known else node.orelse)
        scope, before = self.frame.scope, dict(self.frame.scope.names)
        modes = {switched_model: switched_model.modes for switched_model in self.switched}
        with self.under(node):
            left = self.body(node.body)
        after = scope.names
        after_modes = {switched_model: switched_model.modes for switched_model in self.switched}
        scope.names = dict(before)
        for model, at_start in self.switched.items():
            model.modes = modes.get(model, at_start)
        with self.under(node):
            other_left = self.body(node.orelse)
        if left and not other_left:
            return False
        if other_left and not left:
            scope.names = after
            for model, modes_after in after_modes.items():
                model.modes = modes_after
            return False
        for name, value in after.items():
            other = scope.names.get(name)
            scope.names[name] = value if other is None else either(other, value)
        for model, modes_after in after_modes.items():
            model.modes |= modes_after
        return left and other_left

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        through = self.value(node.iter)
        element = self.element(through)
        listed = isinstance(through, Items) and not through.pattern
        if not listed and any(part.kind == "model" or part.name == "*" for part in objects_in(element)):
            self.assign(node.target, element, node)  # once, as each round has another model: nothing comes again
            self.body(node.body)
            self.body(node.orelse)
            return
        for place, value in enumerate(self._rounds(through)):
            with self.round(node.lineno, place):
                self.iterate(through, node)
                self.assign(node.target, value, node)
                self.body(node.body)
        self.body(node.orelse)

    def _while(self, node: ast.While) -> None:
        if self.truth(node.test) is False:
            return
        for place in range(LOOP_ROUNDS):
            with self.round(node.lineno, place):
                self.value(node.test)
                self.body(node.body)
        self.body(node.orelse)

    def _rounds(self, through: Value) -> Sequence[Value]:
        """Return what a loop goes through, one value a round."""
        if isinstance(through, Items) and not through.pattern and len(through.values) <= MAX_ITEMS:
            return (through.keys and [Constant(key) for key in through.keys]) or through.values
        return [self.element(through)] * LOOP_ROUNDS

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        managed = self._context_manager(node)
        if managed is not None:
            return self._managed(node, managed)
        before = self.gradients
        for item in node.items:
            context = self.value(item.context_expr)
            self.gradients = self.gradients_in(item.context_expr, self.gradients)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, context, node)
        left = self.body(node.body)
        self.gradients = before
        return left

    def _context_manager(self, node: ast.With | ast.AsyncWith) -> ast.AST | None:
        """Return the function of this file that is the one context manager of a block: a generator with a decorator."""
        context = node.items[0].context_expr
        if len(node.items) != 1 or not isinstance(context, ast.Call):
            return None
        called = self.value(context.func)
        decorators = getattr(called.node, "decorator_list", ()) if isinstance(called, Function) else ()
        managed = any(ast.unparse(decorator).endswith("contextmanager") for decorator in decorators)
        return called.node if managed and isinstance(called, Function) else None

    def _managed(self, node: ast.With | ast.AsyncWith, manager: ast.AST) -> bool:
        """Follow a block at the `yield` of its context manager."""
        frame, before, left = self.frame, self.gradients, []

        def follow_block(given: Value) -> None:
            inner = self.frame
            inner.on_yield, self.frame = None, frame
            if node.items[0].optional_vars is not None:
                self.assign(node.items[0].optional_vars, given, node)
            left.append(self.body(node.body))
            self.frame = inner

        self.with_block = (manager, follow_block)
        self.value(node.items[0].context_expr)
        self.with_block, self.gradients = None, before
        return left[0] if left else self.body(node.body)

    def gradients_in(self, context: ast.expr, before: bool | None) -> bool | None:
        """Return whether gradients are on in a block or in a decorated function."""
        called = context.func if isinstance(context, ast.Call) else context
        value = self.value(called)
        if isinstance(value, Function):
            inner = [ast.unparse(node) for node in walk(value.node, ast.Attribute, ast.Name)]
            return False if any(map(library.NO_GRADIENTS.search, inner)) else before
        name = value.name if isinstance(value, Library) else ""
        if library.NO_GRADIENTS.search(name):
            return False
        last = last_part(name)
        if last == "enable_grad":
            return True
        if last == "set_grad_enabled" and isinstance(context, ast.Call) and context.args:
            return self.truth(context.args[0])
        return before if not isinstance(value, Object) else (None if before else before)

    # The whole script.

    def follow(self, tree: ast.Module) -> None:
        """Follow a file from its top, then each function that it never calls."""
        with self._guarded():
            self.body(tree.body)
        for function in self._functions(tree):
            if function.node not in self.entered:
                self._start_anew()
                with self._guarded():
                    self.enter(function, [], {}, function.node)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (ExhaustedError, RecursionError):
            self.trace.is_complete = False

    def _start_anew(self) -> None:
        self.entry += 1
        self.frame = Frame(self.top)
        self.loops, self.tests, self.gradients, self.stack = (), (), True, []

    def _functions(self, tree: ast.Module) -> Iterator[Function]:
        """Yield the functions and methods of a file, those that no other names first."""
        named = {node.id if isinstance(node, ast.Name) else node.attr for node in walk(tree, ast.Name, ast.Attribute)}
        found = []
        for statement in tree.body:
            value = self.top.names.get(statement.name) if isinstance(statement, library.DEFINITIONS) else None
            if isinstance(value, Function):
                found.append(value)
            elif isinstance(value, Class) and isinstance(statement, ast.ClassDef):
                found += [
                    Function(part, value.scope, f"{value.path}.{part.name}", owner_class=statement)
                    for part in statement.body
                    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
        found.sort(key=lambda candidate: getattr(candidate.node, "name", "") in named)
        for function in found:
            if function.owner_class is None:
                yield function
            elif function.node not in self.entered:
                with self._guarded():
                    owner = self._instance_of(function.owner_class)
                    yield Function(function.node, function.scope, function.path, owner, function.owner_class)

    def _instance_of(self, definition: ast.ClassDef) -> Object:
        """Return the instance of a class whose methods nothing calls: one that the script makes, else a new one."""
        if definition not in self._instances:
            instances = [made for made in self.trace.objects if made.definition is not None]
            own = [instance for instance in instances if instance.definition is definition]
            heirs = [part for part in instances if part.definition and definition in self.classes(part.definition)]
            made = next(iter((*own, *heirs)), None)
            if made is None:
                self._start_anew()
                value = self.top.names[definition.name]
                new = self.make(value, [], {}, definition) if isinstance(value, Class) else DATA
                made = new if isinstance(new, Object) else self.new("unknown", definition)
            self._instances[definition] = made
        return self._instances[definition]


def is_sum(node: ast.AST, target: ast.expr) -> bool:
    """Say whether a statement adds to what it changes: `x.total += y`, `x.total = x.total + y`."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add)
    value = node.value if isinstance(node, ast.Assign) else None
    added = is_operation(value, ast.Add)
    return added and isinstance(value, ast.BinOp) and ast.unparse(target) in map(ast.unparse, (value.left, value.right))


def is_exchange(node: ast.AST | None) -> bool:
    """Say whether a statement exchanges values: `a, b = b, a`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    parts = [ast.unparse(part) for part in target.elts] if isinstance(target, ast.Tuple) else []
    return sorted(parts) == sorted(map(ast.unparse, node.value.elts))


def _attribute_at(place: object) -> str:
    """Return the name of the part at a place; "*" for one that is counted from the end, or not known."""
    return "*" if place is None or (isinstance(place, int) and place < 0) else str(place)


def rows_of(loader: Object) -> Value:
    """Return the data set that a loader is given."""
    return loader.settings.get("dataset") or next(iter(loader.given), DATA)


def wrapped(given: Value) -> list[Object]:
    """Return a data set, and what it wraps: of a `Subset` or a part of `random_split` the data set that it is of."""
    found: list[Object] = []
    todo = list(objects_in(given))
    while todo and len(found) < MAX_WRAPPERS:
        part = todo.pop(0)
        found.append(part)
        owner = part.parent if part.parent is not None and part.definition is None else part
        if owner.definition is None:
            todo += [inner for value in owner.given[:1] for inner in objects_in(value)]
    return found


def _plain_batch(value: Value, *, is_batch: bool) -> Value:
    """Return the tensors of a batch, without what made them; of items the batch that PyTorch makes of such."""
    match value:
        case Items():
            return Items(
                tuple(_plain_batch(part, is_batch=is_batch) for part in value.values), value.keys, value.pattern
            )
        case Choice():
            parts = [_plain_batch(choice, is_batch=is_batch) for choice in choices(value)]
            shapes = {shape_of(part) for part in parts} - {""}
            if all(isinstance(part, Tensor) for part in parts):
                shape = shapes.pop() if len(shapes) == 1 else ""
                return Tensor(shape=shape, facts=facts_of(value))
            return either(*parts)
        case Object() if value.kind == "instance":
            return value
        case Function() | Class() | Library():
            return DATA
    shape = shape_of(value)
    return Tensor(shape=shape if is_batch else BATCHED.get(shape, "other"), facts=facts_of(value))


def reduction_of(settings: dict[str, Value]) -> Reduced:
    """Return how a loss is reduced by its settings."""
    if "size_average" in settings or "reduce" in settings:
        return ""
    asked = plain_of(settings["reduction"]) if "reduction" in settings else "mean"
    return "mean" if asked == "mean" else "sum" if asked == "sum" else ""


def _length_of(value: Value, node: ast.Call) -> Facts:
    """Return what a length counts: of a loader it is batches."""
    loads = isinstance(value, Object) and (value.kind == "loader" or bool(library.LOADER.search(value.name)))
    return Facts("batches" if loads else "length", line=node.lineno)


def _shape_of_result(last: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Shape:
    """Return the shape of what a function of PyTorch or NumPy gives."""
    if last in MADE_BY_SIZE:
        return shape_by_size(last, args, keywords)
    if last in COUNTS_ON:
        return "row"
    return shape_after(last, args[0], args[1:], keywords) if args else "other"


def _is_listed(value: Value) -> TypeGuard[Items]:
    return isinstance(value, Items) and not value.pattern and not value.keys


def _texts_of(value: Value) -> list[str]:
    if not isinstance(value, Items) or (value.pattern and not value.keys):
        return []
    texts = [key for key in value.keys or [plain_of(part) for part in value.values] if isinstance(key, str) and key]
    return texts if len(texts) == len(value.values) else []


def _parsed(text: str, line: int) -> Value:
    """Return the value of a text in YAML, JSON or TOML that begins in a line; data where it is none of them."""
    import yaml

    if len(text) > MAX_CHARACTERS or any(text.count(bracket) > MAX_BRACKETS for bracket in "[{"):
        return DATA
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):  # an alias may stand for very much
            return DATA
        return _value_of_yaml(yaml.compose(text, yaml.SafeLoader), line)
    except (yaml.YAMLError, ValueError):  # a date may have a month that there is not
        pass
    except RecursionError:
        return DATA
    try:
        return _value_of_toml(tomllib.loads(text), line)
    except (tomllib.TOMLDecodeError, RecursionError):
        return DATA


def _value_of_yaml(node: object, line: int) -> Value:
    import yaml

    match node:
        case yaml.MappingNode():
            values = tuple(_value_of_yaml(part, line) for _, part in node.value)
            keys = (key.value if isinstance(key, yaml.ScalarNode) else None for key, _ in node.value)
            return Items(values, tuple(keys))
        case yaml.SequenceNode():
            return Items(tuple(_value_of_yaml(part, line) for part in node.value))
        case yaml.ScalarNode():
            plain = yaml.safe_load(node.value) if node.style is None and len(node.value) < MAX_NUMBER else node.value
            return _constant_at(plain, line + node.start_mark.line)
    return DATA


def _value_of_toml(value: object, line: int) -> Value:
    if isinstance(value, dict):
        return Items(tuple(_value_of_toml(part, line) for part in value.values()), tuple(value))
    if isinstance(value, list):
        return Items(tuple(_value_of_toml(part, line) for part in value))
    return _constant_at(value, line)


def _constant_at(value: object, line: int) -> Constant:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Constant(value, Facts("number" if is_number else "", line=line))


def _lacks(mapping: Items, key: Value) -> bool:
    known = not mapping.pattern and None not in mapping.keys and len(mapping.keys) == len(mapping.values)
    return known and isinstance(key, Constant) and key.value not in mapping.keys


def _intervals(value: Value) -> Iterator[tuple[Object, Value]]:
    """Yield the schedules that Lightning is given, each with its interval; without one it is "epoch"."""
    if isinstance(value, Items) and "scheduler" in value.keys:
        interval = value.get("interval") or Constant("epoch")
        schedulers = objects_in(value.get("scheduler") or DATA)
        yield from ((schedule, interval) for schedule in schedulers if schedule.kind == "schedule")
    elif isinstance(value, Items | Choice):
        for part in value.values:
            yield from _intervals(part)
    elif isinstance(value, Object) and value.kind == "schedule":
        yield value, Constant("epoch")


def _with_models(value: Tensor, models: frozenset[Object]) -> Tensor:
    return replace(value, models=value.models | models if models else models)


def _result_of_layer(layer: Object, models: frozenset[Object]) -> Tensor:
    """Return what a layer of PyTorch gives; of `Sequential` it is what its last layer gives."""
    last = layer
    while last.made_by.endswith("Sequential") and last.given and isinstance(last.given[-1], Object):
        last = last.given[-1]
    is_known = last.made_by.startswith("torch.nn.") and not last.made_by.endswith("Sequential")
    ends = library.RESULTS.get(last_part(last.made_by), "")
    return Tensor(models, ends, is_known, last.line, shape=shape_of_layer(layer))


def _shape_of_any(part: Object) -> Shape:
    """Return the shape of what any layer of a list or mapping gives, which stands for all of them."""
    owner = part
    while owner.name == "*" and owner.parent is not None:
        owner = owner.parent
    layers = [layer for value in owner.given for layer in objects_in(value)] if owner is not part else []
    shapes = {shape_of_layer(layer) for layer in layers}
    return shapes.pop() if len(shapes) == 1 else "other"


def _shape_after_method(owner: Object, name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Shape:
    """Return the shape of what a method of another file gives; what gives no array has that of given data."""
    of_size = name in ("sample", "rsample") and bool(args) and isinstance(args[0], Items)
    if of_size or name in ("fit_transform", "transform", "inverse_transform"):
        return "other"
    if name in MADE_BY_SIZE and owner.made_by.startswith("numpy.random"):
        return shape_by_size(name, args, keywords)
    shape = shape_after(name, owner, args, keywords)
    return shape if shape != "other" or owner.shape or owner.made_by.startswith(("numpy.", "torch.")) else ""


@lru_cache(maxsize=256)
def _names_by_parameters(function: ast.AST) -> dict[str, set[str]]:
    """Return the names that a function sets by what it is given, each with the parameters that decide it."""
    found = {name: {name} for name in parameters_of(function)}
    for node in ast.walk(function) if found else ():
        if isinstance(node, ast.Assign):
            given = set[str]().union(*(found.get(name, ()) for name in names_in(node.value)))
            for name in set[str]().union(*map(names_in, node.targets)) if given else ():
                found[name] = found.get(name, set()) | given
    return found


def _as_row(column: Object) -> Object:
    column.shape = "row"
    return column


def _written(node: ast.Constant) -> Constant:
    is_number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return Constant(node.value, Facts("number" if is_number else "", line=node.lineno))


def _is_near_one(value: Value) -> bool:
    """Say whether a value is a number that hardly changes the size of a part of a loss."""
    return isinstance(value, Constant) and isinstance(value.value, int | float) and 0.1 < abs(value.value) <= 2


def _is_of_weights(value: Value) -> bool:
    """Say whether a value is computed of weights alone, as a penalty of their size is."""
    return all(model.made_by.endswith("nn.Parameter") for model in models_through(value))


def trace_of(tree: ast.Module) -> Trace:
    """Return what happens in a script."""
    follower = Follower()
    follower.follow(tree)
    return follower.trace
