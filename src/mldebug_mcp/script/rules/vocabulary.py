"""Do a tokenizer and a model have the same vocabulary?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import constant_of, dotted
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.values import facts_of, plain_of

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
