"""Calls of functions and classes of other files, known by their names, and what loaders and texts of settings give."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from mldebug_mcp.script import library
from mldebug_mcp.script.calls import last_part
from mldebug_mcp.script.facts import (
    COUNTS,
    NOTHING,
    Facts,
    Reduced,
    after,
    axis_of,
    halves_of,
    is_over_another_axis,
    joined_along,
    joined_rows,
)
from mldebug_mcp.script.shapes import (
    BATCHED,
    MADE_BY_SIZE,
    MAKES_OF_LIST,
    shape_after,
    shape_by_size,
    shape_of,
    shape_of_list,
)
from mldebug_mcp.script.trace.names import Names
from mldebug_mcp.script.values import (
    DATA,
    Choice,
    Class,
    Constant,
    Function,
    Items,
    Library,
    Object,
    Parameters,
    Shape,
    Super,
    Tensor,
    Value,
    choices,
    either,
    end_after,
    end_line_of,
    facts_of,
    models_through,
    objects_in,
    parameters_in,
    plain_of,
    terms_after,
)

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


class Batches(Names):
    """Follows loaders to the data sets that they read."""

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


class LibraryCalls(Batches):
    """Follows the call of something that another file defines."""

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
