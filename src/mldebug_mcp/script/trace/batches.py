"""What a loader gives: the items of its data set, put together as its `collate_fn` does, or as PyTorch does."""

from __future__ import annotations

import ast

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
    Shape,
    Tensor,
    Value,
    choices,
    either,
    facts_of,
    objects_in,
    shape_of,
)

MAX_WRAPPERS = 6
"""Subsets and other wrappers around a data set that are looked through."""
BATCHED: dict[Shape, Shape] = {"scalar": "row", "single": "column"}
"""The shape of a batch, by that of an item."""


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
            return Items(tuple(_plain(value, is_batch=True) for value in tensors))
        collate = loader.settings.get("collate_fn")
        item = self._item_of(given, node)
        if (
            item is None
            and isinstance(collate, Function | Object)
            and getattr(collate, "kind", "instance") == "instance"
        ):
            item = DATA
        if item is None:
            return DATA
        if collate is None or collate == Constant(None):
            return _plain(item, is_batch=False)
        return _plain(self.call_value(collate, [Items((item,), pattern=True)], {}, node), is_batch=True)

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


def _plain(value: Value, *, is_batch: bool) -> Value:
    """Return the tensors of a batch, without what made them; of items the batch that PyTorch makes of such."""
    match value:
        case Items():
            return Items(tuple(_plain(part, is_batch=is_batch) for part in value.values), value.keys, value.pattern)
        case Choice():
            parts = [_plain(choice, is_batch=is_batch) for choice in choices(value)]
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
    return Tensor(shape=shape if is_batch else BATCHED.get(shape, ""), facts=facts_of(value))
