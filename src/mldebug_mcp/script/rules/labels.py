"""Are labels shifted once?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call, constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles, entries_of
from mldebug_mcp.script.values import Value, facts_of


def labels_shifted(roles: Roles) -> Iterator[Fault]:
    """Labels are shifted twice, or not at all."""
    for call in roles.script.calls:
        if call.name == "dict":
            continue
        labels, ids = call.keywords.get("labels"), call.keywords.get("input_ids")
        ids = ids if ids is not None else call.node.args[0] if call.node.args else None
        if (
            labels is not None
            and ids is not None
            and _cut(roles, labels, call) == "first"
            and _cut(roles, ids, call) == "last"
        ):
            says = "labels are shifted by one here, and a model that takes `labels` shifts them again"
            yield fault("shifted_twice", call.line, "certain", says)
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2:
            continue
        outputs, targets = (roles.source_of(_base(argument), call) for argument in call.node.args[:2])
        target = _alias(roles, _base(call.node.args[1]), call)
        parts = (*call.node.args[:2], outputs, targets)
        seen = [ast.unparse(_base(part)) for part in getattr(outputs, "args", ())]
        wanted = _base(call.node.args[1])
        if (
            isinstance(wanted, ast.Subscript)
            and ast.unparse(wanted) in seen
            and re.search(r"\b1:\]", ast.unparse(wanted))
        ):
            says = f"the model is given {ast.unparse(wanted)}, and the loss asks it for the same"
            line = outputs.lineno
            yield fault("not_shifted", line, "likely", says, lines=(call.line,))
            continue
        sliced = any("[" in ast.unparse(part) for part in parts)
        if sliced or not isinstance(outputs, ast.Call) or not isinstance(target, ast.Name):
            continue
        of_features = bool(outputs.args) and isinstance(outputs.args[0], ast.Call)  # a margin head is given labels
        of_features |= _is_given_with_others(outputs, target.id) and not _is_of_tokens(roles, call)
        given = [*outputs.args, *(keyword.value for keyword in outputs.keywords)]
        inputs = {dotted(_alias(roles, expr, call)) for expr in given}
        hides = roles.uses("roll", "mask_tokens", "mlm") or any(map(_shifts_inside, roles.modules))
        if target.id in inputs and not of_features and not hides and not _has_unknown_part(roles, outputs, call):
            says = f"the model is given {target.id}, and the loss asks it for {target.id} itself: nothing is shifted"
            yield fault("not_shifted", call.line, "likely", says)


def _alias(roles: Roles, node: ast.expr, call: Call) -> ast.expr:
    """Return the first name of what a name stands for: that of `tokens` for `x` after `x, y = tokens, tokens`."""
    for _ in range(MAX_NAMES_FOLLOWED):
        source = roles.source_of(node, call)
        made = roles.script.assigned_from(source)
        if not isinstance(source, ast.Name) or made is None or made.place is not None:
            break
        node = source
    return node


def _is_given_with_others(outputs: ast.Call, target: str) -> bool:
    """Say whether a model is given the target after something else, as one with a margin head is."""
    return bool(outputs.args) and dotted(outputs.args[0]) != target and target in map(dotted, outputs.args[1:])


def _has_unknown_part(roles: Roles, outputs: ast.Call, call: Call) -> bool:
    """Say whether a model of this file is made of parts that are of neither PyTorch nor Transformers."""
    name = dotted(outputs.func)
    own = roles.definitions.get(call.function.partition(".")[0]) if name == "self" else roles.class_of(name)
    made = {dotted(node) for node in ast.walk(own) if isinstance(node, ast.Call)} if own is not None else set()
    classes = {part for part in made if part[:1].isupper() and part not in roles.definitions}
    return any(
        not roles.is_imported_from("torch", part) and not roles.is_imported_from("transformers", part)
        for part in classes
    )


def _shifts_inside(module: ast.ClassDef) -> bool:
    """Say whether a model leaves out the last place of something, as one does that shifts its own inputs."""
    ends = [constant_of(node.upper) for node in ast.walk(module) if isinstance(node, ast.Slice) and node.lower is None]
    return -1 in ends


def _base(node: ast.expr) -> ast.expr:
    """Return what is reshaped in an expression."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (
        "view", "reshape", "flatten", "contiguous", "float", "long", "to", "transpose", "permute",
    ):  # fmt: skip
        node = node.func.value
    return node


MAX_NAMES_FOLLOWED = 4


def _cut(roles: Roles, node: ast.expr, call: Call, depth: int = MAX_NAMES_FOLLOWED) -> str:
    """Return which end a slice along time leaves out: "first", "last" or "".

    Names, padding, and what is put into a list, are followed.
    """
    source = roles.source_of(node, call)
    text = ast.unparse(source).replace(" ", "")
    if re.search(r"\[(?:[^\]]*,)?1:\]", text):
        return "first"
    if re.search(r"\[(?:[^\]]*,)?:-1\]", text):
        return "last"
    if isinstance(source, ast.Call) and source.args and depth:
        return _cut(roles, source.args[0], call, depth - 1)
    put = [other for other in roles.script.named("append") if other.owner == dotted(node) != ""] if depth else []
    cuts = {_cut(roles, other.node.args[0], other, 0) for other in put if other.function == call.function}
    return cuts.pop() if len(cuts) == 1 else ""


def shifted_in_the_data(roles: Roles) -> Iterator[Fault]:
    """A data set or collator shifts the labels by one, and a model that takes `labels` does so again."""
    if not _is_causal(roles) or roles.uses("compute_loss") or not (roles.uses("Trainer") or _gives_labels(roles)):
        return
    for function in ast.walk(roles.script.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        inside = [call for call in roles.script.calls if call.function.rpartition(".")[2] == function.name]
        within = inside[-1] if inside else _no_call(roles, function)
        for node in ast.walk(function):
            for inputs, labels in _pairs(node):
                filled = _filled_shifted(function, inputs, labels)
                if filled is not None:
                    says = "labels are filled one place early here, and a model that takes `labels` shifts them again"
                    yield fault("shifted_twice", filled.lineno, "certain", says)
                if _cut(roles, inputs, within) == "last" and _cut(roles, labels, within) == "first":
                    line = roles.source_of(labels, within).lineno
                    says = "labels are shifted by one here, and a model that takes `labels` shifts them again"
                    yield fault("shifted_twice", line, "certain", says)


def shifted_on_the_way(roles: Roles) -> Iterator[Fault]:
    """Targets leave out their first place twice on the way from the data to the loss, or once before a model does."""
    for call in roles.script.calls:
        sides: list[tuple[Value, Value]] = []
        places = 2
        if roles.is_cross_entropy(call):
            sides = roles.trace.sides.get(id(call.node), [])
        elif any(CAUSAL.search(name) for name in roles.trace.called.get(id(call.node), ())):
            settings, places = roles.trace.settings.get(id(call.node), {}), 1
            inputs = settings.get("input_ids") or roles.trace.given.get(id(call.node), [])
            sides = list(zip(inputs, settings.get("labels", []), strict=False))
        for inputs_facts, targets in ((facts_of(side[0]), facts_of(side[1])) for side in sides):
            same = bool(targets.source) and inputs_facts.source == targets.source
            if same and len(targets.shifts) - len(inputs_facts.shifts) == places:
                first = targets.shifts[len(inputs_facts.shifts)]
                again = "here" if places == 2 else "by the model that takes `labels`"
                says = f"targets are shifted by one in line {first}, and {again} once more"
                line = call.line if "labels" in call.keywords else targets.shifts[-1]
                yield fault("shifted_twice", line, "certain", says, fix="shift in one place alone")
                break


CAUSAL = re.compile(r"ForCausalLM|LMHeadModel")
"""Models of Transformers that shift `labels` themselves."""


def _is_causal(roles: Roles) -> bool:
    return any(re.search(r"ForCausalLM|LMHeadModel", call.name) for call in roles.script.calls)


def _filled_shifted(function: ast.FunctionDef, inputs: ast.expr, labels: ast.expr) -> ast.Assign | None:
    """Return what fills labels with a row one place early: from its second item on, or to its end where inputs are not.

    The inputs are filled with all of the row, or with all but its last item.
    """
    filled: dict[str, list[tuple[ast.Assign, str, str, str]]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            filled.setdefault(dotted(node.targets[0]), []).append((node, *_stretch(node.value)))
    given = {(row, first, end) for _, row, first, end in filled.get(dotted(inputs), ())}
    for node, row, first, end in filled.get(dotted(labels), ()):
        from_second = first == "1" and not end and (row, "", "") in given
        to_the_end = bool(first) and not end and (row, "", "-1") in given
        if from_second or to_the_end:
            return node
    return None


def _stretch(value: ast.expr) -> tuple[str, str, str]:
    """Return the row that a value is a stretch of, as it is written, with its first place and its end."""
    while isinstance(value, ast.Call) and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        ends = ["" if end is None else ast.unparse(end) for end in (value.slice.lower, value.slice.upper)]
        return ast.unparse(value.value), ends[0], ends[1]
    return ast.unparse(value), "", ""


def _gives_labels(roles: Roles) -> bool:
    named = any("labels" in call.keywords and "loss" not in call.name.lower() for call in roles.script.calls)
    return named or bool(re.search(r"\(\*\*\w+\)\.loss\b", roles.source))


def _no_call(roles: Roles, function: ast.FunctionDef) -> Call:
    """Return the end of a function that calls nothing."""
    inside = [made for made in roles.script.assignments if made.function.rpartition(".")[2] == function.name]
    name, order = (inside[-1].function, inside[-1].order) if inside else (function.name, 0)
    return Call("", ast.Call(ast.Name(""), [], []), function.lineno, order, (), name, (), ())


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield inputs and labels that a function gives out: as entries of a mapping, or returned as a pair."""
    entries = entries_of(node)
    if "input_ids" in entries and "labels" in entries:
        yield entries["input_ids"], entries["labels"]
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        yield node.value.elts[0], node.value.elts[1]


PADS = re.compile(
    r"(?:^|\.)(?:pad_sequence|pad_packed_sequence|full_like|full)$|tokenizer\.pad$|(?:F|functional)\.pad$"
)


def padding_in_loss(roles: Roles) -> Iterator[Fault]:
    """Targets are padded, and the loss counts their padding."""
    if "-100" in roles.source or roles.uses("masked_select", "pack_padded_sequence", "one_hot"):
        return
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2 or not _is_of_tokens(roles, call):
            continue
        made = roles.losses.get(call.name)
        settings = {**(_keywords_of(made.value) if made else {}), **call.keywords}
        if (
            {"ignore_index", "weight", "reduction"} & set(settings)
            or len(call.node.args) > 2
            or _is_masked(roles, call)
        ):
            continue
        padded = _padded_targets(roles, call)
        if padded:
            line = made.line if made is not None else call.line
            says = f"targets are padded ({padded}), and the loss counts the padding: it has no ignore_index"
            yield fault("padding_in_loss", line, "likely", says)


def padding_in_labels(roles: Roles) -> Iterator[Fault]:
    """Labels of a language model are a copy of padded inputs, whose padding counts unless it is -100."""
    if "-100" in roles.source or roles.uses("DataCollator", "SFTTrainer", "masked_fill", "where"):
        return
    causal = any(
        re.search(r"ForCausalLM|LMHeadModel|ForConditionalGeneration", call.name) for call in roles.script.calls
    )
    pads = [
        call
        for call in roles.script.calls
        if "tok" in call.name.lower() and constant_of(call.keywords.get("padding")) in (True, "max_length", "longest")
    ]
    for node in ast.walk(roles.script.tree) if causal and pads else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            continue
        key, source = constant_of(node.targets[0].slice), ast.unparse(node.value)
        if key == "labels" and re.fullmatch(r"[\w.]+(?:\['input_ids'\]|\.input_ids)(?:\.(?:copy|clone)\(\))?", source):
            says = f"labels are {source} with its padding (line {pads[0].line}), and the loss counts it"
            yield fault("padding_in_loss", node.lineno, "likely", says, fix="set labels of padding to -100")


def _keywords_of(node: ast.expr) -> dict[str, ast.expr]:
    """Return the keyword arguments of a loss, and its first argument as its weight."""
    if not isinstance(node, ast.Call):
        return {}
    return {
        **({"weight": node.args[0]} if node.args else {}),
        **{keyword.arg: keyword.value for keyword in node.keywords if keyword.arg},
    }


def _is_of_tokens(roles: Roles, call: Call) -> bool:
    """Say whether a loss has a target for each place of a sequence: both are made flat, or classes put second."""
    outputs, targets = (roles.source_of(arg, call) for arg in call.node.args[:2])
    flat = [isinstance(node, ast.Call) and dotted(node).rpartition(".")[2] in FLATTENS for node in (outputs, targets)]
    second = isinstance(outputs, ast.Call) and dotted(outputs).rpartition(".")[2] in (
        "transpose",
        "permute",
        "swapaxes",
    )
    return all(flat) or second


FLATTENS = ("view", "reshape", "flatten")


def _is_masked(roles: Roles, call: Call) -> bool:
    """Say whether a mask picks what the loss is given: `logits[mask]`."""
    sources = [roles.source_of(_base(arg), call) for arg in call.node.args[:2]]
    picked = [
        node.slice
        for part in (*call.node.args[:2], *sources)
        for node in ast.walk(part)
        if isinstance(node, ast.Subscript)
    ]
    inverted = any(isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.Invert) for place in picked)
    joined = any(isinstance(place, ast.BinOp) and isinstance(place.op, ast.BitAnd | ast.BitOr) for place in picked)
    return inverted or joined or any(isinstance(place, ast.Name | ast.Compare) for place in picked)


def _padded_targets(roles: Roles, call: Call) -> str:
    """Return the call that pads targets; empty where inputs alone are padded.

    Targets are padded where they are cut from the padded inputs, or where two or more things are padded.
    """
    pads = [pad for pad in roles.script.calls if PADS.search(pad.name) and "mask" not in ast.unparse(pad.node)]
    pads = [
        pad for pad in pads if not pad.name.endswith(("full", "full_like")) or "pad" in ast.unparse(pad.node).lower()
    ]
    pads = [pad for pad in pads if pad.method != "pad" or "tokenizer" in pad.name or "value" in pad.keywords]
    named = [ast.unparse(pad.node)[:60] for pad in pads]
    named += [ast.unparse(node)[:60] for node in ast.walk(roles.script.tree) if _repeats_padding(node)]
    target = call.node.args[1]
    cut = "1:" in ast.unparse(roles.source_of(target, call)) or any(
        _cut(roles, part, call) == "first" for part in (target, _base(target))
    )
    returned = [pair for node in ast.walk(roles.script.tree) for pair in _returned_pairs(node)]
    cut = cut or any("1:" in ast.unparse(labels) and ":-1" in ast.unparse(inputs) for inputs, labels in returned)
    return named[0] if named and (cut or len(named) > 1) else ""


def _returned_pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Return | ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) >= 2:
        yield node.value.elts[0], node.value.elts[1]


def _repeats_padding(node: ast.AST) -> bool:
    """Say whether a list of padding is repeated: `[PAD] * (longest - len(row))`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    sides = [side for side in (node.left, node.right) if isinstance(side, ast.List) and len(side.elts) == 1]
    return any("pad" in ast.unparse(side).lower() for side in sides)
