"""Do labels, masks and vocabularies fit the inputs: what is predicted, padded, hidden, or a target of diffusion?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Call,
    arguments_of,
    called_name,
    constant_of,
    dotted,
    is_operation,
    keywords_of,
    last_name,
    last_names,
    last_part,
    past_methods,
    walk,
)
from mldebug_mcp.script.facts import Facts, is_hiding
from mldebug_mcp.script.faults import MAX_JUDGED, Fault, fault
from mldebug_mcp.script.roles import MAX_NAMES_FOLLOWED, Roles, entries_of
from mldebug_mcp.script.rules.loss import ELEMENTWISE_LOSSES
from mldebug_mcp.script.values import Value, facts_of, plain_of

CAUSAL = re.compile(r"ForCausalLM|LMHeadModel")
"""Models of Transformers that shift `labels` themselves."""
PADS = re.compile(
    r"(?:^|\.)(?:pad_sequence|pad_packed_sequence|full_like|full)$|tokenizer\.pad$|(?:F|functional)\.pad$"
)
OTHER_FORMS = ("view", "reshape", "flatten", "contiguous", "float", "long", "to", "transpose", "permute")
"""Methods after which labels, or the outputs for them, are the same in another form."""
FLATTENS = ("view", "reshape", "flatten")
TRIANGLE = re.compile(r"\btri[ul]\(")
TRUE_HIDES = ("src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask", "memory_key_padding_mask")
"""Masks of the attention of PyTorch that are true where places are left out. Source: `torch.nn.MultiheadAttention`."""
SDPA = "scaled_dot_product_attention"
"""The attention of PyTorch whose mask is true where places take part."""
LIBRARIES = ("torch", "np", "numpy", "jnp")
MASK_TOKEN = re.compile(r"^mask$|mask_?(?:token|id|idx|index|value)", re.IGNORECASE)
FAMILIES = (
    "distilroberta", "xlm-roberta", "roberta", "deberta-v3", "deberta", "albert", "electra", "camembert", "bert",
    "gpt2", "gpt-neox", "pythia", "gpt-neo", "flan-t5", "mt5", "t5", "bart", "pegasus", "llama-3", "llama-2",
    "mistral", "qwen2", "qwen3", "gemma", "phi-2", "phi-3", "bloom", "falcon", "xlnet", "whisper", "wav2vec2",
)  # fmt: skip
"""Words in names of pretrained models; those with different words have different vocabularies, a few apart."""
SHARED_VOCABULARIES = {
    "distilroberta": "roberta", "flan-t5": "t5", "pythia": "gpt-neox", "gpt-neo": "gpt2", "electra": "bert",
    "bart": "roberta",
}  # fmt: skip
"""Families that share a vocabulary with another."""
RESIZES = ("resize_token_embeddings", "setup_chat_format", "resize", "smart_tokenizer_and_embedding_resize")


def labels_shifted(roles: Roles) -> Iterator[Fault]:
    """Labels are shifted twice, or not at all."""
    for call in roles.script.calls:
        labels, ids = call.argument("labels"), call.argument("input_ids", 0)
        if call.name == "dict" or labels is None or ids is None:
            continue
        if (_cut(roles, labels, call), _cut(roles, ids, call)) == ("first", "last"):
            says = "labels are shifted by one here, and a model that takes `labels` shifts them again"
            yield fault("shifted_twice", call.line, "certain", says)
    for call in roles.script.calls:
        if not roles.is_cross_entropy(call) or len(call.node.args) < 2:
            continue
        outputs, targets = (
            roles.source_of(past_methods(argument, OTHER_FORMS), call) for argument in call.node.args[:2]
        )
        target = _alias(roles, past_methods(call.node.args[1], OTHER_FORMS), call)
        parts = (*call.node.args[:2], outputs, targets)
        bases = [ast.unparse(past_methods(part, OTHER_FORMS)) for part in getattr(outputs, "args", ())]
        wanted = past_methods(call.node.args[1], OTHER_FORMS)
        text = ast.unparse(wanted) if isinstance(wanted, ast.Subscript) else ""
        if text in bases and re.search(r"\b1:\]", text):
            says = f"the model is given {text}, and the loss asks it for the same"
            yield fault("not_shifted", outputs.lineno, "likely", says, lines=(call.line,))
            continue
        sliced = any("[" in ast.unparse(part) for part in parts)
        if sliced or not isinstance(outputs, ast.Call) or not isinstance(target, ast.Name):
            continue
        of_features = bool(outputs.args) and isinstance(outputs.args[0], ast.Call)  # a margin head is given labels
        of_features |= _is_given_with_others(outputs, target.id) and not _is_of_tokens(roles, call)
        given = arguments_of(outputs)
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
    made = {dotted(node) for node in walk(own, ast.Call)} if own is not None else set()
    classes = {part for part in made if part[:1].isupper() and part not in roles.definitions}
    return any(
        not roles.is_imported_from("torch", part) and not roles.is_imported_from("transformers", part)
        for part in classes
    )


def _shifts_inside(module: ast.ClassDef) -> bool:
    """Say whether a model leaves out the last place of something, as one does that shifts its own inputs."""
    ends = [constant_of(node.upper) for node in walk(module, ast.Slice) if node.lower is None]
    return -1 in ends


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
    causal = any(CAUSAL.search(call.name) for call in roles.script.calls)
    if not causal or roles.uses("compute_loss") or not (roles.uses("Trainer") or _gives_labels(roles)):
        return
    for function in walk(roles.script.tree, ast.FunctionDef):
        inside = [call for call in roles.script.calls if last_part(call.function) == function.name]
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


def _filled_shifted(function: ast.FunctionDef, inputs: ast.expr, labels: ast.expr) -> ast.Assign | None:
    """Return what fills labels with a row one place early: from its second item on, or to its end."""
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
    inside = [made for made in roles.script.assignments if last_part(made.function) == function.name]
    name, order = (inside[-1].function, inside[-1].order) if inside else (function.name, 0)
    return Call("", ast.Call(ast.Name(""), [], []), function.lineno, order, (), name, (), ())


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield inputs and labels that a function gives out: as entries of a mapping, or returned as a pair."""
    entries = entries_of(node)
    if "input_ids" in entries and "labels" in entries:
        yield entries["input_ids"], entries["labels"]
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        yield node.value.elts[0], node.value.elts[1]


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
        **keywords_of(node),
    }


def _is_of_tokens(roles: Roles, call: Call) -> bool:
    """Say whether a loss has a target for each place of a sequence: both are made flat, or classes put second."""
    outputs, targets = (roles.source_of(arg, call) for arg in call.node.args[:2])
    flat = [called_name(node) in FLATTENS for node in (outputs, targets)]
    second = called_name(outputs) in ("transpose", "permute", "swapaxes")
    return all(flat) or second


def _is_masked(roles: Roles, call: Call) -> bool:
    """Say whether a mask picks what the loss is given: `logits[mask]`."""
    sources = [roles.source_of(past_methods(arg, OTHER_FORMS), call) for arg in call.node.args[:2]]
    picked = [node.slice for part in (*call.node.args[:2], *sources) for node in walk(part, ast.Subscript)]
    inverted = any(isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.Invert) for place in picked)
    joined = any(is_operation(place, ast.BitAnd, ast.BitOr) for place in picked)
    return inverted or joined or any(isinstance(place, ast.Name | ast.Compare) for place in picked)


def _padded_targets(roles: Roles, call: Call) -> str:
    """Return the call that pads targets; empty where inputs alone are padded."""
    pads = [pad for pad in roles.script.calls if PADS.search(pad.name) and "mask" not in ast.unparse(pad.node)]
    pads = [
        pad for pad in pads if not pad.name.endswith(("full", "full_like")) or "pad" in ast.unparse(pad.node).lower()
    ]
    pads = [pad for pad in pads if pad.method != "pad" or "tokenizer" in pad.name or "value" in pad.keywords]
    named = [ast.unparse(pad.node)[:60] for pad in pads]
    named += [ast.unparse(node)[:60] for node in ast.walk(roles.script.tree) if _repeats_padding(node)]
    target = call.node.args[1]
    cut = "1:" in ast.unparse(roles.source_of(target, call)) or any(
        _cut(roles, part, call) == "first" for part in (target, past_methods(target, OTHER_FORMS))
    )
    returned = [pair for node in ast.walk(roles.script.tree) for pair in _returned_pairs(node)]
    cut = cut or any("1:" in ast.unparse(labels) and ":-1" in ast.unparse(inputs) for inputs, labels in returned)
    return named[0] if named and (cut or len(named) > 1) else ""


def _returned_pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Return | ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) >= 2:
        yield node.value.elts[0], node.value.elts[1]


def _repeats_padding(node: ast.AST) -> bool:
    """Say whether a list of padding is repeated: `[PAD] * (longest - len(row))`."""
    if not is_operation(node, ast.Mult):
        return False
    sides = [side for side in (node.left, node.right) if isinstance(side, ast.List) and len(side.elts) == 1]
    return any("pad" in ast.unparse(side).lower() for side in sides)


def ignored_index_differs(roles: Roles) -> Iterator[Fault]:
    """Labels are padded with one value, and the loss ignores another."""
    losses = [call for call in roles.script.calls if "ignore_index" in call.keywords]
    ignored = {call.constant("ignore_index"): call for call in losses}
    if len(ignored) != 1:
        return
    index, loss = next(iter(ignored.items()))
    if not isinstance(index, int):
        return
    for call in roles.script.named("pad_sequence", "full", "full_like"):
        value = call.constant("padding_value", 2) if call.method == "pad_sequence" else call.constant("fill_value", 1)
        of_labels = any(re.search(r"label|target|tag|^y", made.last) for made in roles.holders_of(call.node))
        if call.method == "pad_sequence" and value is None and len(call.node.args) < 3:
            value = 0 if "padding_value" not in call.keywords else None
        if of_labels and isinstance(value, int) and not isinstance(value, bool) and value != index:
            says = f"labels are padded with {value}, and the loss ignores {index}"
            certainty: Certainty = "certain" if value < 0 else "likely"
            yield fault("ignored_index_differs", loss.line, certainty, says, lines=(call.line,))


def mask_inverted(roles: Roles) -> Iterator[Fault]:
    """Scores of the past are hidden, and those of what comes next stay; or of what is not padding by its name."""
    for call in roles.script.named("masked_fill", "masked_fill_"):
        if len(call.node.args) != 2 or not is_hiding(call.node.args[1]):
            continue
        shown = _is_not_padding(roles, call.node.args[0])
        if shown or _is_of_the_past(roles, roles.source_of(call.node.args[0], call), call):
            says = "the scores of what may be attended to are set to minus infinity, and the rest stays"
            attends = shown or "softmax" in ast.unparse(roles.scope_of(call.function))
            cause = "no_signal" if shown else ""
            yield fault("mask_inverted", call.line, "certain" if attends else "depends", says, cause=cause)


def _is_not_padding(roles: Roles, node: ast.expr) -> bool:
    """Say whether a mask is `~pad`, with a name that is true at padding wherever the file sets it."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            break
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.Invert):
        return False
    name = last_name(node.operand)
    made = [assignment.value for assignment in roles.script.made(name)]
    equal = [isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq) for value in made]
    return bool(re.search(r"^(?:is_)?pad(?:s|ded|ding)?(?:_mask)?$", name)) and bool(made) and all(equal)


def _is_of_the_past(roles: Roles, node: ast.expr, call: Call) -> bool:
    """Say whether a mask is true at and before the own place: `tril(...) == 1`, `tril(ones).bool()`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        own = roles.source_of(node.left, call)
        value = constant_of(node.comparators[0])
        is_one = isinstance(node.ops[0], ast.Eq) and value == 1 and not isinstance(value, bool)
        is_one = is_one or (isinstance(node.ops[0], ast.NotEq) and value == 0)
        is_zero = isinstance(node.ops[0], ast.Eq) and value == 0
        text = ast.unparse(own)
        return ("tril(" in text and is_one) or ("triu(" in text and is_zero and "diagonal=1" in text)
    text = ast.unparse(node)
    return (
        bool(re.search(r"tril\(", text)) and bool(re.search(r"\.bool\(\)$|dtype=torch\.bool", text)) and "~" not in text
    )


def next_place_in_sight(roles: Roles) -> Iterator[Fault]:
    """A causal mask begins one place too late, so that each place sees the one that it predicts."""
    for call in roles.script.named("triu", "tril")[:MAX_JUDGED]:
        made_of = call.node.args[0] if call.node.args and call.owner in ("torch", "np") else None
        if not isinstance(made_of, ast.Call) or not re.search(r"ones|full$", dotted(made_of)):
            continue
        places = call.constant("diagonal" if call.owner == "torch" else "k", 1)
        first = 2 if call.method == "triu" else 1
        if places == first and not isinstance(places, bool) and _is_mask(roles, call):
            says = f"{ast.unparse(call.node)[:80]} lets each place see the next one"
            yield fault("next_place_in_sight", call.line, "likely", says)


def _is_mask(roles: Roles, call: Call) -> bool:
    """Say whether one triangle alone is what a mask is made of, or what hides scores."""
    made = roles.holders_of(call.node)
    if any(len(TRIANGLE.findall(ast.unparse(assignment.value))) > 1 for assignment in made):
        return False
    names = {assignment.last for assignment in made}
    named = [*names, last_part(call.function)]
    for other in roles.script.calls:
        parts = {id(part): last_name(part) for arg in other.node.args for part in ast.walk(arg)}
        hides = other.method in ("masked_fill", "masked_fill_", "where", "register_buffer", "masked_scatter")
        if hides and (id(call.node) in parts or names & set(parts.values())):
            return True
        for keyword, value in other.keywords.items():
            inside = [*ast.walk(value)]
            if any(part is call.node or last_name(part) in names - {""} for part in inside):
                named.append(keyword)
    return any(re.search(r"mask|causal", name) for name in named)


def data_hidden(roles: Roles) -> Iterator[Fault]:
    """A mask leaves out the places that hold data, or the past, and keeps the rest."""
    trace = roles.trace
    for line, hides in dict.fromkeys(trace.hidden):
        yield _hides_data(line, hides)
    for call in roles.script.calls:
        settings = trace.settings.get(id(call.node), {})
        for name, facts in ((name, facts_of(value)) for name, values in settings.items() for value in values):
            yield from _given_mask(name, facts, call.method)
    for made, used in dict.fromkeys(trace.padding_kept):
        says = f"this mask is true at padding, and line {used} takes a mean over the places where it is true"
        yield fault("mask_inverted", made, "likely", says, cause="no_signal", lines=(used,))


def _given_mask(name: str, facts: Facts, function: str) -> Iterator[Fault]:
    """Yield what is wrong with a mask that a function or layer of PyTorch is given under a name."""
    if name in ("attn_mask", "mask", "src_mask") and facts.hides in ("real", "past"):
        yield _hides_data(facts.line, facts.hides)
    elif name in TRUE_HIDES and facts.kind == "real":
        says = f"{name} is true where places are to be left out, and here it is true where data are"
        yield fault("mask_inverted", facts.line, "certain", says, cause="no_signal")
    elif name == "attn_mask" and facts.kind == ("future" if function == SDPA else "past"):
        says = f"{name} leaves out the past here, and lets each place see those after it"
        yield fault("mask_inverted", facts.line, "certain", says)
    elif name == "attn_mask" and function == SDPA and facts.kind == "padding":
        says = f"{name} is true where places take part, and here it is true at padding alone"
        yield fault("mask_inverted", facts.line, "certain", says, cause="no_signal")


def softmax_over_another_axis(roles: Roles) -> Iterator[Fault]:
    """Weights add up to one along another axis than that of the places which they weigh."""
    trace = roles.trace
    for line in dict.fromkeys(trace.over_one):
        says = "this softmax goes along the last axis, which has the size 1: all weights are one"
        yield fault("softmax_over_another_axis", line, "certain", says)
    directions = {scores: {axis for _, at, axis in trace.softmaxed if at == scores} for _, scores, _ in trace.softmaxed}
    for line, scores, axis in sorted(trace.softmaxed, key=str):
        # attention in both directions takes both axes, and that over slots the axis of the queries
        if len(directions[scores]) == 1 and axis in (0, 1, -2, -3, -4) and "slot" not in roles.source.lower():
            says = (
                f"the scores of line {scores} are of queries by keys, and the weights of a query do not add up to one"
            )
            yield fault("softmax_over_another_axis", line, "likely", says, lines=(scores,))
    for line, hidden in dict.fromkeys(trace.over_another_axis):
        says = f"line {hidden} leaves places out, and the weights add up to one along another axis: they still count"
        yield fault("softmax_over_another_axis", line, "likely", says, lines=(hidden,))


def _hides_data(line: int, hides: str) -> Fault:
    if hides == "past":
        says = "the scores of the past are set to minus infinity here, and those of what comes next stay"
        return fault("mask_inverted", line, "likely", says)
    says = "the scores of what holds data are set to minus infinity here, and those of padding stay"
    return fault("mask_inverted", line, "likely", says, cause="no_signal")


@dataclass(frozen=True, slots=True)
class Fill:
    """Places that are set to one value.

    Args:
        mask: What is true at these places.
        is_true: Whether these are the places where the mask is true.
        value: The value.
        line: The line.
    """

    mask: ast.expr
    is_true: bool
    value: ast.expr
    line: int


def ignored_where_masked(roles: Roles) -> Iterator[Fault]:
    """Labels are ignored where the inputs are masked, so that the loss is that of places which the model sees."""
    for function in walk(roles.script.tree, ast.FunctionDef):
        fills = list(fills_in(function))
        hidden = [(fill, _conditions_of(function, fill)) for fill in fills if _is_mask_token(fill.value)]
        for fill in fills if hidden else ():
            if not _is_ignored(roles, fill.value):
                continue
            holds = _conditions_of(function, fill)
            other = next((masked for masked, conditions in hidden if holds <= conditions), None)
            if other is not None:
                says = f"labels are ignored where line {other.line} masks the inputs: the loss is that of what is shown"
                yield fault("ignored_where_masked", fill.line, "likely", says)


def fills_in(function: ast.AST) -> Iterator[Fill]:
    """Yield what a function fills under a mask: `x[mask] = v`, `x.masked_fill(mask, v)`, `where(mask, v, x)`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            place = node.targets[0].slice
            if isinstance(place, ast.Name | ast.Attribute | ast.BinOp | ast.UnaryOp | ast.Compare):
                yield Fill(place, True, node.value, node.lineno)
        elif isinstance(node, ast.Call):
            method = last_name(node)
            if method in ("masked_fill", "masked_fill_") and len(node.args) == 2:
                yield Fill(node.args[0], True, node.args[1], node.lineno)
            elif method == "where" and len(node.args) == 3 and dotted(node.func).partition(".")[0] in LIBRARIES:
                yield Fill(node.args[0], True, node.args[1], node.lineno)
                yield Fill(node.args[0], False, node.args[2], node.lineno)


def _is_mask_token(value: ast.expr) -> bool:
    names = last_names(value)
    return isinstance(value, ast.Name | ast.Attribute | ast.Call) and any(map(MASK_TOKEN.search, names))


def _is_ignored(roles: Roles, value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and last_name(value) in ("tensor", "full_like"):
        value = value.args[-1] if value.args else ast.Constant(None)
    return roles.value_of(value) == IGNORED_LABEL or bool(re.search(r"(?:^|_)ignore", dotted(value), re.IGNORECASE))


def _conditions_of(function: ast.AST, fill: Fill) -> set[tuple[str, int, bool]]:
    return _mask_conditions(function, fill.mask, fill.line, is_true=fill.is_true)


def _mask_conditions(
    function: ast.AST, mask: ast.expr, line: int, *, is_true: bool, depth: int = MAX_NAMES_FOLLOWED
) -> set[tuple[str, int, bool]]:
    """Return what holds at each place of a mask: names, each with the line that set it last, and other conditions."""
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert | ast.Not):
        return _mask_conditions(function, mask.operand, line, is_true=not is_true, depth=depth)
    if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd if is_true else ast.BitOr):
        parts = (
            _mask_conditions(function, part, line, is_true=is_true, depth=depth) for part in (mask.left, mask.right)
        )
        return set[tuple[str, int, bool]]().union(*parts)
    if isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute) and mask.func.attr in ("bool", "to"):
        return _mask_conditions(function, mask.func.value, line, is_true=is_true, depth=depth)
    if not isinstance(mask, ast.Name):
        return {(ast.unparse(mask), 0, is_true)}
    made = [
        node for node in walk(function, ast.Assign, ast.AugAssign) if node.lineno < line and mask.id in _targets(node)
    ]
    last = max(made, key=lambda node: node.lineno, default=None)
    own = {(mask.id, last.lineno if last is not None else 0, is_true)}
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name) and depth:
        own |= _mask_conditions(function, last.value, last.lineno, is_true=is_true, depth=depth - 1)
    return own


def _targets(node: ast.Assign | ast.AugAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [target.elts if isinstance(target, ast.Tuple | ast.List) else [target] for target in targets]
    return {dotted(part) for some in parts for part in some}


def vocabularies_differ(roles: Roles) -> Iterator[Fault]:
    """The tokenizer is of another family of pretrained models than the model."""
    loaded: dict[bool, dict[str, tuple[int, int]]] = {True: {}, False: {}}
    for call in roles.script.named("from_pretrained"):
        names = {plain_of(value): facts_of(value).line for value in roles.trace.given.get(id(call.node), [])}
        is_tokenizer = "Tokenizer" in call.name or "Processor" in call.name
        if is_tokenizer or re.search(r"Model|For[A-Z]", call.name):
            loaded[is_tokenizer] |= {name: (call.line, line) for name, line in names.items()}
    if any(len(names) != 1 for names in loaded.values()):
        return
    (of_tokenizer, case), (of_model, other_case) = (_family(next(iter(loaded[key]))) for key in (True, False))
    differ = of_tokenizer != of_model and bool(of_tokenizer and of_model)
    if not differ and not (of_tokenizer == of_model and case != other_case and case and other_case):
        return
    tokenizer, model = (next(iter(loaded[key])) for key in (True, False))
    line, written = loaded[True][tokenizer]
    says = f"the tokenizer is that of {tokenizer!r}, and the model is {model!r}: their numbers mean other tokens"
    yield fault("vocabularies_differ", line, "likely", says, lines=(written, *loaded[False][model]))


def _family(name: str) -> tuple[str, str]:
    """Return the family of a pretrained model, and whether it keeps capitals, as far as its name says it."""
    lowered = name.lower()
    family = next((word for word in FAMILIES if word in lowered), "")
    case = "uncased" if "uncased" in lowered else "cased" if "cased" in lowered else ""
    return SHARED_VOCABULARIES.get(family, family), case


def tokens_without_embedding(roles: Roles) -> Iterator[Fault]:
    """Tokens are added to a tokenizer, and the embedding of the model that is loaded is never made larger."""
    loads = [call for call in roles.script.named("from_pretrained") if re.search(r"Model|For[A-Z]", call.name)]
    if not loads or any(call.method in RESIZES for call in roles.script.calls) or "vocab_size" in roles.source:
        return
    if roles.uses("SFTTrainer", "GRPOTrainer", "DPOTrainer"):
        return
    for call in roles.script.named("add_special_tokens", "add_tokens"):
        given = roles.source_of(call.node.args[0], call) if call.node.args else None
        parts = given.values if isinstance(given, ast.Dict) else [given] if isinstance(given, ast.List) else []
        new = [part for value in parts for part in (value.elts if isinstance(value, ast.List) else [value])]
        names = [constant_of(part) for part in new]
        if names and all(isinstance(name, str) for name in names) and "tok" in dotted(call.node.func).lower():
            says = f"{names[0]!r} gets a number behind the vocabulary, for which the model has no embedding"
            yield fault(
                "vocabularies_differ", call.line, "likely", says, fix="model.resize_token_embeddings(len(tokenizer))"
            )
            return


# Diffusion: does the target of the loss fit what the model is given, and what its scheduler expects?


Prediction = Literal["noise", "sample", "velocity", "flow", "reversed flow", "difference"]
_OF_SETTING: dict[str, Prediction] = {"epsilon": "noise", "v_prediction": "velocity", "sample": "sample"}
"""What diffusers' schedulers take the output for, by `prediction_type`."""
_NAMES: dict[Prediction, str] = {
    "noise": "the noise", "sample": "the sample without noise", "velocity": "the velocity of get_velocity",
    "flow": "noise - sample", "reversed flow": "sample - noise", "difference": "the difference of both ends",
}  # fmt: skip
SCHEDULER = re.compile(
    r"(?:^|\.)((?:DDPM|DDIM|PNDM|Euler|DPM|UniPC|LMS|Heun|KDPM|FlowMatch)\w{0,40}Scheduler)(\.from_\w{1,20})?$"
)
MAX_NAMES = 3
"""Names that stand for another which are followed."""
DRAWN = re.compile(r"(?:^|\.)(?:randn|randn_like|randn_tensor|normal)$")
_SAME_VALUES = ("float", "to", "detach", "type", "contiguous", "clone")
_Names = Mapping[str, set[str]]
"""By functions: names in them."""
DRAWS_NOISE = ("randn_like", "rand_like")


class _Scheduler(NamedTuple):
    """What the output of the model is taken for, and where that is written; `written` is how."""

    takes: tuple[Prediction, ...]
    line: int
    written: str


def target_of_another_prediction(roles: Roles) -> Iterator[Fault]:
    """The loss compares the output with something else than what the scheduler takes it for when it samples."""
    mixed = _mixed(roles)
    scheduler = _scheduler(roles) or (_integrated(roles) if mixed else None)
    if scheduler is None:
        return
    samples = _noised(roles, mixed)
    for call in roles.script.calls:
        sides = _sides(roles, call)
        targets = [_kind(roles, side, call, samples) for side in sides]
        outputs = [_is_output(roles, side, call, samples) for side in sides]
        for target, is_output in zip(targets, reversed(outputs), strict=True):
            if target is not None and is_output and target not in scheduler.takes:
                says = (
                    f"the target is {_NAMES[target]}, and {scheduler.written} takes the output for "
                    f"{_NAMES[scheduler.takes[0]]}"
                )
                yield fault("target_of_another_prediction", call.line, "likely", says, lines=(scheduler.line,))


def _scheduler(roles: Roles) -> _Scheduler | None:
    """Return what the only scheduler of noise that is made here wants; None where several are, or nothing tells."""
    found: dict[tuple[Prediction, ...], _Scheduler] = {}
    for call in roles.script.calls:
        named = SCHEDULER.search(call.name)
        wanted = None if named is None else _wanted(roles, call, named[1], loaded=bool(named[2]))
        found |= {wanted.takes: wanted} if wanted is not None else {}
    tests = (node for node in walk(roles.script.tree, ast.Compare))
    compared = any("prediction_type" in ast.unparse(node) for node in tests) or roles.uses("register_to_config")
    compared = compared or any(
        isinstance(arg, ast.UnaryOp) for call in roles.script.named("step") for arg in call.node.args
    )
    return next(iter(found.values())) if len(found) == 1 and not compared else None


def _wanted(roles: Roles, call: Call, name: str, *, loaded: bool) -> _Scheduler | None:
    """Return what a scheduler wants by its name, its setting or its default; None where a file that it loads says."""
    if name.startswith("FlowMatch"):
        return _Scheduler(("flow",), call.line, name)
    given = roles.keywords(call).get("prediction_type")
    setting = constant_of(roles.spelled_out(given))
    if isinstance(setting, str) and setting in _OF_SETTING:
        return _Scheduler((_OF_SETTING[setting],), call.line, f'prediction_type="{setting}"')
    owners = {made.target for made in roles.script.assignments if made.value is call.node}
    samples = any(other.owner in owners for other in roles.script.named("step"))
    known = given is None and not loaded and samples
    return _Scheduler(("noise",), call.line, f"{name}, by default,") if known else None


def _sides(roles: Roles, call: Call) -> tuple[ast.expr, ...]:
    """Return the two sides of a loss of differences, none for other calls."""
    if not roles.loss_named(call, *ELEMENTWISE_LOSSES):
        return squared_sides(call.node) or ()
    given = [call.argument(name, place) for place, name in enumerate(("input", "target"))]
    return tuple(side for side in given if side is not None) if None not in given else ()


def squared_sides(node: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """Return the sides of `((a - b) ** 2).mean()` and of `(a - b).pow(2).mean()`."""
    inner = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "mean" else None
    inner = node.args[0] if inner is not None and dotted(inner) == "torch" and node.args else inner
    if is_operation(inner, ast.Pow):
        inner = inner.left
    elif called_name(inner) in ("pow", "square"):
        inner = getattr(getattr(inner, "func", None), "value", None)
    else:
        return None
    return (inner.left, inner.right) if is_operation(inner, ast.Sub) else None


def _kind(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> Prediction | None:
    """Return what a side of a loss holds, None where it does not say."""
    source = _source(roles, node, call, samples)
    if not is_operation(source, ast.Sub):
        return _plain_kind(source)
    left, right = (_plain_kind(_source(roles, end, call, samples)) or "sample" for end in (source.left, source.right))
    if {left, right} != {"noise", "sample"}:
        return None
    return "flow" if left == "noise" else "reversed flow"


def _plain_kind(source: ast.expr | None) -> Prediction | None:
    if isinstance(source, ast.Name):
        return "sample"
    if not isinstance(source, ast.Call):
        return None
    is_velocity = last_name(source) == "get_velocity"
    return "velocity" if is_velocity else "noise" if DRAWN.search(dotted(source)) else None


def _source(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> ast.expr | None:
    """Return what a side of a loss was made by; the name of a sample that noise is added to; None if several things."""
    node = past_methods(node, _SAME_VALUES)
    for _ in range(MAX_NAMES):
        if (
            isinstance(node, ast.Name)
            and node.id in samples.get(call.function, ())
            and not _is_drawn(roles, node, call)
        ):
            return node
        values = roles.values_of(node, call)
        if len(values) > 1:
            return None
        node = past_methods(values[0], _SAME_VALUES)
    return None if isinstance(node, ast.Name) else node


def _is_drawn(roles: Roles, node: ast.expr, call: Call) -> bool:
    return DRAWN.search(dotted(roles.source_of(node, call))) is not None


def _factors(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    return (node.left, node.right) if is_operation(node, ast.Mult) else None


def _noised(roles: Roles, mixed: _Names) -> _Names:
    """Return the names that noise is added to, by a scheduler or on a straight path."""
    found = {function: set(names) for function, names in mixed.items()}
    for call in roles.script.named("add_noise", "scale_noise"):
        found.setdefault(call.function, set()).update(map(dotted, call.node.args[:1]))
    return found


def _mixed(roles: Roles) -> _Names:
    """Return the names that are mixed as `(1 - t) * a + t * b`: the two ends of a straight path."""
    found: dict[str, set[str]] = {}
    for made in roles.script.assignments:
        value = made.value
        if not is_operation(value, ast.Add):
            continue
        terms = [_factors(value.left), _factors(value.right)]
        weights = [ast.unparse(term[0]) for term in terms if term is not None]
        ends = [term[1].id for term in terms if term is not None and isinstance(term[1], ast.Name)]
        if len(weights) == len(ends) == 2 and (f"1 - {weights[0]}" == weights[1] or f"1 - {weights[1]}" == weights[0]):
            found.setdefault(made.function, set()).update(ends)
    return found


def _integrated(roles: Roles) -> _Scheduler | None:
    """Return that samples are made by steps `x = x + model(x, t) * dt`, which take the output for a velocity."""
    for made in roles.script.assignments:
        value = made.value
        added = value if made.adds else None
        if is_operation(value, ast.Add, ast.Sub):
            added = value.right if dotted(value.left) == made.target else added
        factors = _factors(added) if added is not None and made.loops else None
        sources = [*(factors or ())]
        for factor in factors or ():
            sources += [other.value for other in roles.assignments_by_name.get((made.function, dotted(factor)), [])]
        if any(isinstance(source, ast.Call) and made.target in map(dotted, source.args) for source in sources):
            return _Scheduler(
                ("difference", "flow", "reversed flow"), made.line, f"the step of {made.target} in a loop"
            )
    return None


def _is_output(roles: Roles, node: ast.expr, call: Call, samples: _Names) -> bool:
    """Say whether a side of a loss is what a model gives, as it is."""
    for _ in range(MAX_NAMES):
        node = past_methods(roles.source_of(node, call), _SAME_VALUES)
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = past_methods(node.value, _SAME_VALUES)
    if not isinstance(node, ast.Call) or not node.args:
        return False
    of_library = dotted(node).partition(".")[0] in ("torch", "F", "np", "nn", "einops")
    return _kind(roles, node, call, samples) is None and not of_library


def target_is_random(roles: Roles) -> Iterator[Fault]:
    """The target of a loss is drawn at random, and nothing that the model sees is made with it."""
    if len(roles.script.named(*DRAWS_NOISE)) < 2:
        return  # what the model is given is made with another draw
    for call in roles.script.calls:
        drawn_here = [arg for arg in call.node.args[:2] if last_name(arg) in DRAWS_NOISE]
        if drawn_here and roles.loss_named(call, *ELEMENTWISE_LOSSES):
            says = "the target is drawn here: what the model is given was made with other numbers"
            yield fault("target_is_random", drawn_here[0].lineno, "likely", says)
    for function in walk(roles.script.tree, ast.FunctionDef):
        drawn = {
            node.targets[0].id: node.value.lineno
            for node in walk(function, ast.Assign)
            if isinstance(node.targets[0], ast.Name) and last_name(node.value) in DRAWS_NOISE
        }
        for name, line in drawn.items():
            reads = [node for node in walk(function, ast.Name) if node.id == name]
            reads = [node for node in reads if isinstance(node.ctx, ast.Load)]
            if len(reads) == 1 and _is_target(roles, function, reads[0]):
                says = f"{name} is drawn here for the loss alone: what the model is given was made with other numbers"
                yield fault("target_is_random", line, "likely", says)


def _is_target(roles: Roles, function: ast.FunctionDef, name: ast.Name) -> bool:
    """Say whether a name stands in a difference to the output of a model, or next to it in a loss."""
    for node in ast.walk(function):
        sides: list[ast.expr] = []
        if is_operation(node, ast.Sub):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call):
            call = roles.call_of(node)
            differs = re.search(r"mse|l1|huber", dotted(node), re.IGNORECASE)
            sides = node.args[:2] if differs or (call and roles.loss_named(call, *ELEMENTWISE_LOSSES)) else []
        if len(sides) == 2 and any(side is name for side in sides):
            other = next(side for side in sides if side is not name)
            made = roles.script.assigned(other.id) if isinstance(other, ast.Name) else None
            return isinstance(other if made is None else made.value, ast.Call)
    return False
