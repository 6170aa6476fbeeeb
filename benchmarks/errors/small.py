"""A small model, tokenizer and data set, made on the spot, for code that raises an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} {% endfor %}"
WORDS = ("<pad>", "<eos>", "<unk>", "the", "a", "cat", "dog", "sat", "on", "mat", "user", "assistant", "hello", "yes")


def model(**settings: object) -> LlamaForCausalLM:
    """Return a language model of two small layers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    return LlamaForCausalLM(LlamaConfig(**sizes | {"num_attention_heads": 2, "max_position_embeddings": 32} | settings))


def tokenizer(**settings: object) -> PreTrainedTokenizerFast:
    """Return a tokenizer of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pad, eos, unknown = WORDS[:3]
    backend = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token=unknown))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": pad, "eos_token": eos, "unk_token": unknown}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **special | settings)


def rows(**columns: list[object]) -> Dataset:
    """Return a data set of these columns."""
    from datasets import Dataset

    return Dataset.from_dict(columns)


def texts() -> Dataset:
    """Return a data set of four texts."""
    return rows(text=["the cat sat", "a dog sat on the mat", "hello", "yes no"])
