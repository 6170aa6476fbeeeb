"""Real tokenizers, small ones: byte-level BPE with the chat templates of the families that people fine-tune."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from mldebug_mcp.batch.tokenizer import Tokenizer


def graver(found: Mapping[str, str]) -> dict[str, str]:
    """Return the checks whose findings are more than a remark."""
    return {check: severity for check, severity in found.items() if severity != "info"}


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m['content'] }}<|im_end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]"
    "{% else %} {{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>"
    "{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n{{ m['content'] }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
PHI3 = (
    "{% for m in messages %}<|{{ m['role'] }}|>\n"
    "{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}<|end|>\n{% endgeneration %}"
    "{% else %}{{ m['content'] }}<|end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% else %}{{ eos_token }}{% endif %}"
)
OWN = (
    "{% for m in messages %}{% if m['role'] == 'user' %}<ask>{{ m['content'] }}</ask>"
    "{% else %}<say>{{ m['content'] }}</say>{% endif %}{% endfor %}{% if add_generation_prompt %}<say>{% endif %}"
)
FAMILIES: dict[str, dict[str, Any]] = {
    "chatml": {
        "special": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        "template": CHATML,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
    },
    "llama3": {
        "special": [
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eot_id|>",
            "<|pad|>",
        ],
        "template": LLAMA3,
        "bos_token": "<|begin_of_text|>",
        "eos_token": "<|eot_id|>",
        "pad_token": "<|pad|>",
        "adds_bos": True,
    },
    "mistral": {
        "special": ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<pad>"],
        "template": MISTRAL,
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "adds_bos": True,
    },
    "gemma": {
        "special": ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"],
        "template": GEMMA,
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "pad_token": "<pad>",
        "adds_bos": True,
    },
    "phi3": {
        "special": ["<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"],
        "template": PHI3,
        "eos_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
    },
    "own": {
        "special": ["<|endoftext|>", "<ask>", "</ask>", "<say>", "</say>", "<pad>"],
        "template": OWN,
        "eos_token": "</say>",
        "pad_token": "<pad>",
    },
    "base": {"special": ["<|endoftext|>"], "eos_token": "<|endoftext|>", "bos_token": "<|endoftext|>"},
}
TALK = [
    ("What is the capital of France?", "The capital of France is Paris."),
    ("Name a prime number.", "Seven is a prime number, and so is eleven."),
    ("Write one line of Python.", "print('hello world')"),
    ("Who wrote Hamlet?", "Hamlet was written by William Shakespeare around the year 1600."),
]
TEXT = [*(line for pair in TALK for line in pair), "system user assistant model instruction response"]


def make_hf(family: str, **changes: Any) -> Any:
    """Make the tokenizer of a family; `changes` override its special tokens (None takes one away)."""
    from tokenizers import Tokenizer as Fast
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    about = FAMILIES[family]
    fast = Fast(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=about["special"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    fast.train_from_iterator(TEXT * 4, trainer)
    if about.get("adds_bos"):
        bos = about["bos_token"]
        fast.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, fast.token_to_id(bos))]
        )
    tokens = {name: about[name] for name in ("bos_token", "eos_token", "pad_token") if name in about} | changes
    tokens = {name: token for name, token in tokens.items() if token is not None}
    rest = [token for token in about["special"] if token not in tokens.values()]
    hf = PreTrainedTokenizerFast(tokenizer_object=fast, additional_special_tokens=rest, **tokens)
    hf.chat_template = about.get("template")
    return hf


@cache
def tokenizer_of(family: str) -> Tokenizer:
    return Tokenizer(make_hf(family), family)


def talk(turns: int = 1, first: int = 0) -> list[dict[str, str]]:
    messages = []
    for number in range(turns):
        asked, said = TALK[(first + number) % len(TALK)]
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]
    return messages


class Maker:
    """Makes rows as a right pipeline does; a test then breaks what it is about."""

    def __init__(self, family: str) -> None:
        self.tokenizer = tokenizer_of(family)
        self.hf = self.tokenizer.hf

    def row(self, first: int = 0, turns: int = 1) -> dict[str, list[int]]:
        from mldebug_mcp.batch.conversations import conversation_row

        row = conversation_row(talk(turns, first), self.tokenizer)
        return {"input_ids": row.ids, "labels": row.labels}

    def rows(self, count: int = 4, turns: int = 1) -> list[dict[str, list[int]]]:
        return [self.row(number, turns) for number in range(count)]

    def pad(self, rows: list[dict[str, list[int]]], side: str = "right", pad: int | None = None) -> dict[str, Any]:
        width = max(len(row["input_ids"]) for row in rows) + 2
        fill = self.hf.pad_token_id if pad is None else pad
        batch: dict[str, Any] = {"input_ids": [], "labels": [], "attention_mask": []}
        for row in rows:
            empty = width - len(row["input_ids"])
            columns = {"input_ids": fill, "labels": -100, "attention_mask": 0}
            for name, value in columns.items():
                values = row.get(name, [1] * len(row["input_ids"]))
                batch[name].append([value] * empty + values if side == "left" else values + [value] * empty)
        return batch

    def batch(self, count: int = 4, turns: int = 1) -> dict[str, Any]:
        return self.pad(self.rows(count, turns))


class Inspect(Protocol):
    """Writes a batch as JSON and inspects it; returns the severity of each finding by check."""

    def __call__(
        self, batch: object, tokenizer: Tokenizer | None = None, purpose: str = "auto", model: object = None
    ) -> dict[str, str]: ...
