"""TRL's own pipelines, run for real: what they make is healthy, and a fault put into their input is seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import Maker, graver

from mldebug_mcp.capture import save_batch
from mldebug_mcp.judge import inspect_batch

CHAT = ["chatml", "llama3", "mistral", "gemma"]


def found_in(batch: Any, path: Path, made: Maker, purpose: str = "auto") -> dict[str, str]:
    save_batch(batch, path)
    return {one.check: one.severity for one in inspect_batch(path, made.tokenizer, None, purpose).findings}


@pytest.mark.parametrize("family", CHAT)
@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".npz", ".json"])
def test_what_the_sft_collator_makes_is_right(family: str, suffix: str, tmp_path: Path) -> None:
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    made = Maker(family)
    batch = DataCollatorForLanguageModeling(pad_token_id=made.hf.pad_token_id)(made.rows())
    assert graver(found_in(batch, tmp_path / f"batch{suffix}", made)) == {}
    assert graver(found_in(batch, tmp_path / f"batch{suffix}", made, "sft")) == {}


@pytest.mark.parametrize("family", CHAT)
def test_what_the_padding_free_collator_makes_is_right(family: str, tmp_path: Path) -> None:
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    made = Maker(family)
    collator = DataCollatorForLanguageModeling(
        pad_token_id=made.hf.pad_token_id, padding_free=True, pad_to_multiple_of=8
    )
    assert graver(found_in(collator(made.rows()), tmp_path / "batch.safetensors", made, "sft")) == {}


@pytest.mark.parametrize("family", CHAT)
@pytest.mark.parametrize("strategy", ["bfd", "wrapped"])
def test_rows_packed_by_trl_are_right_unless_it_wraps_them(family: str, strategy: str, tmp_path: Path) -> None:
    from datasets import Dataset
    from trl import pack_dataset
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    made = Maker(family)
    packed = pack_dataset(Dataset.from_list(made.rows(4) * 1), seq_length=128, strategy=strategy)
    packed.save_to_disk(str(tmp_path / "packed"))
    found = {
        one.check: one.severity for one in inspect_batch(tmp_path / "packed", made.tokenizer, None, "sft").findings
    }
    if strategy == "bfd":
        assert graver(found) == {}
        batch = DataCollatorForLanguageModeling(pad_token_id=made.hf.pad_token_id, padding_free=True)(list(packed))
        assert graver(found_in(batch, tmp_path / "batch.pt", made, "sft")) == {}
    else:
        # TRL's own page says that wrapping mixes unrelated examples; that much may be said.
        assert graver(found).keys() <= {"packing_without_position_reset", "truncated_completion"}


@pytest.mark.parametrize("family", CHAT)
@pytest.mark.parametrize("purpose", ["auto", "dpo"])
def test_what_the_preference_collator_makes_is_right(family: str, purpose: str, tmp_path: Path) -> None:
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    made = Maker(family)
    examples = []
    for number, row in enumerate(made.rows()):
        start = next(place for place, label in enumerate(row["labels"]) if label != -100)
        other = made.row(number + 1)
        answer = [token for token, label in zip(other["input_ids"], other["labels"], strict=True) if label != -100]
        examples.append(
            {"prompt_ids": row["input_ids"][:start], "chosen_ids": row["input_ids"][start:], "rejected_ids": answer}
        )
    (tmp_path / "rows.json").write_text(json.dumps(examples))
    rows = inspect_batch(tmp_path / "rows.json", made.tokenizer, None, purpose)
    assert graver({one.check: one.severity for one in rows.findings}) == {}
    collator = DataCollatorForPreference(pad_token_id=made.hf.pad_token_id)
    assert graver(found_in(collator(examples), tmp_path / "batch.pt", made, purpose)) == {}
    for one in examples:
        one["rejected_ids"] = one["chosen_ids"]
    assert found_in(collator(examples), tmp_path / "batch.pt", made, purpose)["chosen_equals_rejected"] == "error"


def trained(made: Maker, rows: list[dict[str, Any]], folder: Path, **settings: Any) -> Any:
    """Let SFTTrainer prepare a data set and hand out its first batch."""
    import torch
    from datasets import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import SFTConfig, SFTTrainer

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=256,
    )
    arguments = SFTConfig(
        output_dir=str(folder), report_to=[], use_cpu=True, per_device_train_batch_size=4, bf16=False, **settings
    )
    trainer = SFTTrainer(
        LlamaForCausalLM(config), args=arguments, train_dataset=Dataset.from_list(rows), processing_class=made.hf
    )
    return next(iter(trainer.get_train_dataloader()))


TALK = [
    ("What is two and two?", "Four."),
    ("Name a colour.", "Blue is one."),
    ("Say yes.", "Yes."),
    ("Count to three.", "One, two, three."),
]


@pytest.mark.filterwarnings("ignore")
def test_the_sft_trainer_is_right_and_its_unmasked_prompts_are_told(tmp_path: Path) -> None:
    made = Maker("chatml")
    completions = [{"prompt": asked + "\n", "completion": said} for asked, said in TALK]
    assert graver(found_in(trained(made, completions, tmp_path / "a"), tmp_path / "a.pt", made)) == {}
    talks = [
        {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]}
        for asked, said in TALK
    ]
    masked = trained(made, talks, tmp_path / "b", assistant_only_loss=True)
    assert graver(found_in(masked, tmp_path / "b.pt", made)) == {}
    whole = trained(made, talks, tmp_path / "c")
    assert graver(found_in(whole, tmp_path / "c.pt", made)) == {"prompt_not_masked": "warning"}
