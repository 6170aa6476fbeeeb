"""Calls of functions and classes of other files, known by their names."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mldebug_mcp.script import library
from mldebug_mcp.script.trace.names import Names
from mldebug_mcp.script.values import (
    DATA,
    Constant,
    Function,
    Items,
    Object,
    Parameters,
    Super,
    Tensor,
    Value,
    choices,
    either,
    end_after,
    end_line_of,
    models_through,
    objects_in,
    parameters_in,
    terms_after,
)


class LibraryCalls(Names):
    """Follows the call of something that another file defines."""

    def call_library(self, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Value:
        """Follow the call of a function or class of another file."""
        last = name.rpartition(".")[2]
        given = (*args, *keywords.values())
        if name == "super":
            if self.frame.owner is not None and self.frame.owner_class is not None:
                return Super(self.frame.owner, self.frame.owner_class)
            return DATA
        if last in ("deepcopy", "copy") and len(args) >= 1:
            return either(
                *(self._copy(choice, node) if isinstance(choice, Object) else choice for choice in choices(args[0]))
            )
        if last in library.LOOKS_ONLY and not library.COMPUTES.search(name):
            sums = last in ("sum", "max", "min")
            return Tensor(models_through(*given), terms=terms_after(last, args, node)) if sums else DATA
        parameters = parameters_in(args[0]) if args else None
        parameters = parameters or (parameters_in(keywords["params"]) if "params" in keywords else None)
        if last.startswith("clip_grad") and parameters is not None:
            self.event("clip", parameters.models if parameters.known else frozenset(), node)
            return DATA
        if library.SCHEDULES.search(name) and not library.OPTIMIZERS.search(name):
            return self.new("schedule", node, made_by=name, given=given)
        if library.OPTIMIZERS.search(name) or (
            parameters is not None
            and not parameters.state
            and last[:1].isupper()
            and last != "Tensor"
            and "nn" not in name.split(".")
        ):
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
        return self._call_plain(name, last, args, keywords, parameters, node)

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
        if last == "enumerate" and args:
            inner = args[0]
            if isinstance(inner, Items) and not inner.pattern and not inner.keys:
                return Items(tuple(Items((Constant(place), one)) for place, one in enumerate(inner.values)))
            return self._paired(args, [DATA, self.element(inner)], node)
        if last in ("zip", "zip_longest") and args:
            if all(isinstance(argument, Items) and not argument.pattern and not argument.keys for argument in args):
                return Items(
                    tuple(
                        Items(tuple(parts))
                        for parts in zip(
                            *(argument.values for argument in args if isinstance(argument, Items)), strict=False
                        )
                    )
                )
            return self._paired(args, [self.element(argument) for argument in args], node)
        if last in library.PASSES_ON or last.startswith("tqdm"):
            return (
                Items(tuple(args), pattern=True)
                if last == "chain" and len(args) > 1
                else args[0]
                if args
                else Items(())
            )
        if last in ("filter", "map") and len(args) > 1:
            return (
                args[1]
                if last == "filter"
                else Items((self.call_value(args[0], [self.element(args[1])], {}, node),), pattern=True)
            )
        if last == "next" and args:
            return self.element(args[0])
        if last == "getattr" and len(args) > 1 and isinstance(args[1], Constant):
            return self.attribute(args[0], str(args[1].value))
        if last == "setattr" and len(args) > 2:
            key = str(args[1].value) if isinstance(args[1], Constant) else "*"
            self.assign_attribute(args[0], key, args[2], node)
            return Constant(None)
        if last == "partial" and args and isinstance(args[0], Function):
            names = [argument.arg for argument in args[0].node.args.args]
            bound = tuple(zip(names, args[1:], strict=False)) + tuple(keywords.items())
            return Function(args[0].node, args[0].scope, args[0].path, args[0].owner, args[0].owner_class, bound)
        if last == "dict":
            return Items(tuple(keywords.values()), tuple(keywords)) if keywords or not args else args[0]
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
        writes = last.endswith("_") or last.startswith(("_foreach", "vector_to_parameters"))
        if writes:
            models = [one for value in given for one in objects_in(value)]
            found = [parameters_in(value) for value in given]
            self.event(
                "write", {*models, *(model for part in found if part is not None for model in part.models)}, node
            )
        if library.COMPUTES.search(name) and last not in ("load", "get_model"):
            if last in library.WITHOUT_GRADIENT:
                return DATA
            parts = [Tensor(one.models) if isinstance(one, Parameters) else one for one in given]
            ends = library.RESULTS.get(last) or (
                end_after(last, args[0]) if args and last in library.SAME_VALUES else ""
            )
            known = bool(args) and isinstance(args[0], Tensor) and args[0].is_known
            through = models_through(*parts) if self.gradients else frozenset()
            line = node.lineno if last in library.RESULTS else end_line_of(args[0]) if args else 0
            return Tensor(through, ends, known, line, terms_after(last, args, node))
        self.escape(given, node)
        pretrained = last in ("from_pretrained", "create_model") or ".models." in name
        made = self.new("model" if pretrained else "unknown", node, made_by=name, given=given)
        if last == "from_pretrained":
            made.modes = frozenset({"eval"}) if "Model" in name or "For" in name else frozenset()
        elif pretrained:
            made.modes = frozenset({"train"})
        return made

    def _paired(self, through: Sequence[Value], parts: list[Value], node: ast.Call) -> Items:
        for one in through:
            self.iterate(one, node)
        return Items((Items(tuple(parts)),), pattern=True)

    def _layer(self, name: str, args: list[Value], keywords: dict[str, Value], node: ast.Call) -> Object:
        layer = self.new("loss" if name.endswith("Loss") else "model", node, made_by=name)
        layer.given, layer.modes = (*args, *keywords.values()), frozenset({"train"})
        for place, value in enumerate(layer.given):
            for one in objects_in(value):
                if one.kind == "model" and not layer.is_part_of(one):
                    one.parent = one.parent or layer
                    layer.attributes[str(place)] = (
                        one if str(place) not in layer.attributes else either(layer.attributes[str(place)], one)
                    )
        return layer

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
