"""Methods that PyTorch, or Python, gives to objects, parameters and lists."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mldebug_mcp.script import library
from mldebug_mcp.script.facts import halves_of
from mldebug_mcp.script.trace.events import Registered
from mldebug_mcp.script.trace.library_calls import HALVES, LibraryCalls
from mldebug_mcp.script.trace.state import MAX_LISTED
from mldebug_mcp.script.values import (
    DATA,
    Class,
    Constant,
    Function,
    Items,
    Library,
    Object,
    Parameters,
    Super,
    Tensor,
    Value,
    choices,
    end_after,
    end_line_of,
    facts_of,
    merged,
    models_through,
    objects_in,
    parameters_in,
    plain_of,
    shape_after,
    terms_after,
)


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
            return Tensor(shape=shape_after(name, owner, args), cut=cut, facts=facts)
        if name == "detach_" and isinstance(node.func, ast.Attribute):
            self.assign(node.func.value, DATA, node)
        halves = halves_of(facts_of(owner)) if name in HALVES else []
        if halves:
            return Items(tuple(Tensor(models_through(owner), facts=half) for half in halves))
        ends = library.RESULTS.get(name) or (end_after(name, owner) if name in library.SAME_VALUES else "")
        known = isinstance(owner, Tensor) and owner.is_known
        line = node.lineno if name in library.RESULTS else end_line_of(owner)
        terms, shape = terms_after(name, [owner, *args], node), shape_after(name, owner, args)
        facts = self.facts_after(name, [owner, *args], node.args, node)
        return Tensor(models_through(owner, *given), ends, known, line, terms, shape, facts=facts)

    def _method_of_items(self, owner: Items, name: str, args: list[Value], node: ast.Call) -> Value:
        target = node.func.value if isinstance(node.func, ast.Attribute) else None
        inner = target.func if isinstance(target, ast.Call) else None
        if isinstance(target, ast.Call) and isinstance(inner, ast.Attribute) and inner.attr == "setdefault":
            target = ast.copy_location(ast.Subscript(inner.value, target.args[0]), target)
        if name in ("append", "add") and isinstance(target, ast.Subscript) and isinstance(args[0], Function):
            key = self.value(target.slice)
            plain = key.value if isinstance(key, Constant) else None
            self.trace.registered.append(Registered(args[0].node, plain, node, tuple(self.through)))
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
            return self.item(owner, args[0].value if isinstance(args[0], Constant) else None)
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
            return Tensor(shape=shape_after(name, owner, args), facts=facts)
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
        made.shape = shape_after(name, owner, args)
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
    """Say whether a mapping has no value under a key, as all of its keys are known."""
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
