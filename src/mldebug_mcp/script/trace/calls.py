"""Calls of methods, and of functions, classes and models that stand in the script."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mldebug_mcp.script import library
from mldebug_mcp.script.calls import fields_in, last_part
from mldebug_mcp.script.facts import NOTHING, Facts, halves_of, role_alone
from mldebug_mcp.script.shapes import MADE_BY_SIZE, shape_after, shape_by_size, shape_of_layer
from mldebug_mcp.script.trace import Registered
from mldebug_mcp.script.trace.library_calls import HALVES, LibraryCalls, reduction_of
from mldebug_mcp.script.trace.names import MAX_CALL_DEPTH, MAX_LISTED, Frame
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
    Scope,
    Shape,
    Super,
    Tensor,
    Terms,
    Value,
    choices,
    constant_in,
    either,
    end_after,
    end_line_of,
    facts_of,
    merged,
    models_through,
    objects_in,
    parameters_in,
    plain_of,
    terms_after,
)

GIVES_LOSS = ("training_step", "compute_loss")
"""Methods whose result a trainer of a framework makes smaller."""


class Methods(LibraryCalls):
    """Follows the call of a method."""

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
        known = _METHODS.get(name)
        if known is not None:
            return known(self, owner, given, node)
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

    def _parameters(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        if owner.kind == "unknown":
            owner.kind = "model"
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return Parameters(frozenset({owner}), named=name == "named_parameters")

    def _parts_of(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        part = self.attribute_of_object(owner, "*")
        named = isinstance(node.func, ast.Attribute) and node.func.attr.startswith("named")
        return Items((Items((DATA, part)) if named else part,), pattern=True)

    def _switch(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
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

    def _clear(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self.event("clear", [owner], node)
        return Constant(None)

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

    def _backward(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self.note_loss(given[0] if given else owner, node)
        self.event("backward", models_through(*given[:1]) if given else owner.through, node)
        return Constant(None)

    def _state_dict(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        return Parameters(frozenset({owner}), named=True, state=True)

    def _load_state_dict(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        states = [part for value in given if (part := parameters_in(value)) is not None]
        source = next((model for state in states for model in state.models), None)
        self.event("load", [owner], node, source=source)
        return Constant(None)

    def _requires_gradients(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self.event("freeze" if Constant(False) in given else "unfreeze", [owner], node)
        return owner

    def _add_group(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self.hold(owner, list(given), {})
        return Constant(None)

    def _add_module(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        for value in given:
            for module in objects_in(value):
                self.assign_attribute(owner, "*", module, node)
        return owner

    def _register_buffer(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        if len(given) > 1 and plain_of(given[0]):
            self.assign_attribute(owner, plain_of(given[0]), given[1], node)
        return Constant(None)

    def _unscale(self, owner: Object, given: Sequence[Value], node: ast.Call) -> Value:
        self.event("unscale", [optimizer for value in given for optimizer in objects_in(value)], node)
        return Constant(None)


def _lacks(mapping: Items, key: Value) -> bool:
    known = not mapping.pattern and None not in mapping.keys and len(mapping.keys) == len(mapping.values)
    return known and isinstance(key, Constant) and key.value not in mapping.keys


_METHODS = {
    "parameters": Methods._parameters,
    "named_parameters": Methods._parameters,
    "modules": Methods._parts_of,
    "children": Methods._parts_of,
    "named_modules": Methods._parts_of,
    "named_children": Methods._parts_of,
    "train": Methods._switch,
    "eval": Methods._switch,
    "zero_grad": Methods._clear,
    "step": Methods._step,
    "backward": Methods._backward,
    "manual_backward": Methods._backward,
    "state_dict": Methods._state_dict,
    "load_state_dict": Methods._load_state_dict,
    "requires_grad_": Methods._requires_gradients,
    "add_param_group": Methods._add_group,
    "add_module": Methods._add_module,
    "register_buffer": Methods._register_buffer,
    "register_module": Methods._add_module,
    "unscale_": Methods._unscale,
}
"""What methods of PyTorch do."""


class Calls(Methods):
    """Follows a call into what it calls."""

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
