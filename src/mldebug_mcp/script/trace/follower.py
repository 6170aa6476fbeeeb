"""Statements and expressions: what gets a name, what is reached, and the abstract value of each expression."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from mldebug_mcp.script import library
from mldebug_mcp.script.calls import constant_of, dotted, last_part, names_in, parameters_of, walk
from mldebug_mcp.script.facts import (
    CHOSEN_BY,
    Facts,
    compared,
    cut,
    flipped,
    joined_rows,
    repeated,
    role_of_name,
    rows_cut,
    turned_round,
    with_rows,
    without_role,
)
from mldebug_mcp.script.facts import combined as combined_facts
from mldebug_mcp.script.shapes import (
    cuts_axes,
    shape_at,
    shape_of,
    shape_of_both,
    shape_of_list,
    shape_of_product,
)
from mldebug_mcp.script.trace import Trace
from mldebug_mcp.script.trace.calls import Calls
from mldebug_mcp.script.trace.names import MAX_ITEMS, MAX_STATEMENTS, ExhaustedError, Frame
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
    Tensor,
    Term,
    Terms,
    Value,
    added,
    constant_in,
    cut_from,
    either,
    end_after,
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
    terms_of,
    weighted,
    written_of,
)

LOOP_ROUNDS = 2
"""Times that a loop is gone through: what one round leaves to the next is seen in the second."""


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


class Expressions(Calls):
    """Finds the value of an expression, and whether a test holds."""

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


class Statements(Expressions):
    """Follows statements; each answers whether what comes after it is never reached."""

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
        """Follow what decorators of this file do with a definition, such as to list it under a name."""
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


def trace_of(tree: ast.Module) -> Trace:
    """Return what happens in a script."""
    follower = Follower()
    follower.follow(tree)
    return follower.trace


class Follower(Statements):
    """Follows a script from its top, then each function that it never calls."""

    def __init__(self) -> None:
        super().__init__()
        self._instances: dict[ast.ClassDef, Object] = {}

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
