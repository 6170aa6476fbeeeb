"""Models from their config.json, built small by transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from mldebug_mcp.probe.worker import probe

from .here import probe_here
from .test_batches import ROWS

GPT2 = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 200, "n_embd": 768, "n_layer": 12,
    "n_head": 12, "n_positions": 1024, "bos_token_id": 1, "eos_token_id": 1,
}  # fmt: skip
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 200, "hidden_size": 2048,
    "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192,
    "head_dim": 64, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
BERT = {
    "model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 200, "hidden_size": 768,
    "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
}  # fmt: skip
MASK = 4
MASKED_ROWS = [[MASK if place % 3 == 1 else one for place, one in enumerate(row)] for row in ROWS]
MASKED_LABELS = [[one if place % 3 == 1 else -100 for place, one in enumerate(row)] for row in ROWS]


@pytest.mark.parametrize(
    ("config", "batch"),
    [
        (GPT2, {"input_ids": ROWS, "labels": ROWS}),
        (GPT2, {"input_ids": ROWS}),
        (LLAMA, {"input_ids": ROWS, "labels": ROWS}),
        (BERT, {"input_ids": MASKED_ROWS, "labels": MASKED_LABELS}),
        (BERT | {"architectures": ["BertForSequenceClassification"]}, {"input_ids": ROWS, "labels": [0, 1, 1, 0]}),
    ],
    ids=["gpt2", "gpt2 without labels", "llama", "bert", "bert for classes"],
)
def test_a_model_built_from_its_config_memorises_the_batch(
    config: dict[str, Any], batch: dict[str, Any], tmp_path: Path
) -> None:
    result = probe_here(tmp_path, config=config, batch=batch)

    assert (result.verdict, result.causes[0].cause) == ("memorised", "healthy"), result.summary
    assert any("was built small" in note for note in result.notes)


def test_a_vocabulary_that_is_too_small_is_named(tmp_path: Path) -> None:
    result = probe_here(tmp_path, config=LLAMA | {"vocab_size": 100}, batch={"input_ids": ROWS, "labels": ROWS})

    assert (result.verdict, result.causes[0].cause) == ("cannot_learn", "tokenizer_mismatch")
    assert "which has 100" in result.summary


def test_a_model_that_transformers_does_not_know_is_an_answer(tmp_path: Path) -> None:
    result = probe_here(tmp_path, config={"model_type": "no_such_model"}, batch={"input_ids": ROWS})

    assert result.verdict == "failed"
    assert "cannot build this model" in result.summary


def test_a_model_built_from_its_config_has_no_dropout_where_the_config_leaves_it_at_the_default(tmp_path: Path) -> None:
    result = probe_here(tmp_path, config=GPT2, batch={"input_ids": ROWS, "labels": ROWS})

    assert result.curve[0].loss == pytest.approx(result.initial_loss)


def test_a_lower_rate_is_tried_before_a_batch_is_called_not_memorised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "find_rate", lambda *_: (0.3, []))

    result = probe_here(tmp_path, config=GPT2, batch={"input_ids": ROWS, "labels": ROWS}, steps=100)

    assert result.verdict == "memorised", result.summary
    assert result.learning_rate == pytest.approx(0.03)
    assert "not memorised at a learning rate of 0.3; what is shown is of 0.03" in result.notes
