"""What the collators of Transformers make, run for real: right batches are quiet, and a fault put into them is seen."""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import TEXT, Inspect, Maker, graver

from mldebug_mcp.batch.tokenizer import Tokenizer

IGNORE = -100
LINES = [line for line in TEXT[:-1] if len(line) > 20]


def listed(batch: Any) -> dict[str, Any]:
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in batch.items()}


@cache
def wordpiece(*, ends: bool) -> Tokenizer:
    """Make a tokenizer with a mask token; `ends` says whether its separator is an end token too, as RoBERTa's is."""
    from tokenizers import Tokenizer as Fast
    from tokenizers import models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    unknown = "[UNK]"
    fast = Fast(models.WordPiece(unk_token=unknown))
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    fast.train_from_iterator(TEXT * 4, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names: dict[str, str] = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    names |= {"mask_token": "[MASK]"} | ({"bos_token": "[CLS]", "eos_token": "[SEP]"} if ends else {})
    return Tokenizer(PreTrainedTokenizerFast(tokenizer_object=fast, **names), "wordpiece")


@pytest.mark.parametrize("ends", [False, True])
def test_a_masked_language_model_may_hide_no_word_of_a_short_row(ends: bool, inspect: Inspect) -> None:
    from transformers import DataCollatorForLanguageModeling, set_seed

    set_seed(3)
    made = wordpiece(ends=ends)
    rows = [made.hf(line, return_special_tokens_mask=True) for line in [*LINES, *map(" ".join, pairwise(LINES))]]
    batch = listed(DataCollatorForLanguageModeling(made.hf, mlm_probability=0.15)(rows))
    batch["labels"][1] = [IGNORE] * len(batch["labels"][1])
    assert graver(inspect(batch, made)) == {}
    assert graver(inspect(batch)) == {}


def seq2seq(made: Maker, **changes: Any) -> dict[str, Any]:
    from transformers import DataCollatorForSeq2Seq

    end = [made.hf.eos_token_id]
    rows = [
        {"input_ids": made.hf(line).input_ids + end, "labels": made.hf(LINES[-1 - number]).input_ids[1:] + end}
        for number, line in enumerate(LINES)
    ]
    return listed(DataCollatorForSeq2Seq(made.hf, **changes)(rows))


CONFIG = {"model_type": "t5", "is_encoder_decoder": True, "decoder_start_token_id": 5}


@pytest.mark.parametrize("model", [CONFIG, None])
def test_targets_of_an_encoder_decoder_are_no_cut_copy_of_the_inputs(
    model: dict[str, Any] | None, inspect: Inspect
) -> None:
    made = Maker("mistral")
    assert graver(inspect(seq2seq(made), made.tokenizer, model=model)) == {}


@pytest.mark.parametrize("model", [CONFIG, None])
def test_targets_padded_with_the_padding_token_are_trained_on(model: dict[str, Any] | None, inspect: Inspect) -> None:
    made = Maker("mistral")
    batch = seq2seq(made, label_pad_token_id=made.hf.pad_token_id)
    assert inspect(batch, made.tokenizer, model=model)["padding_not_masked"] == "error"


def test_targets_without_an_end_teach_no_end(inspect: Inspect) -> None:
    made = Maker("mistral")
    batch = seq2seq(made)
    end = made.hf.eos_token_id
    batch["labels"] = [[IGNORE if token == end else token for token in row] for row in batch["labels"]]
    assert inspect(batch, made.tokenizer, model=CONFIG)["missing_eos"] == "error"


def test_targets_without_a_label_train_on_nothing(inspect: Inspect) -> None:
    made = Maker("mistral")
    batch = seq2seq(made)
    batch["labels"] = [[IGNORE] * len(row) for row in batch["labels"]]
    assert inspect(batch, made.tokenizer, model=CONFIG)["all_labels_masked"] == "error"


def test_labels_cut_from_their_own_inputs_are_a_mismatch_of_lengths(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = made.rows()
    cut = [{"input_ids": row["input_ids"], "labels": [one for one in row["labels"] if one != IGNORE]} for row in rows]
    assert "length_mismatch" in inspect(cut, made.tokenizer)


def speech(rows: list[list[int]], ignore: int = IGNORE) -> dict[str, Any]:
    rng = random.Random(0)
    width = max(map(len, rows))
    features = [[[rng.gauss(0, 1) for _ in range(20)] for _ in range(4)] for _ in rows]
    return {"input_features": features, "labels": [row + [ignore] * (width - len(row)) for row in rows]}


def test_transcripts_that_begin_with_the_decoders_start_token_have_it_twice(inspect: Inspect) -> None:
    made = Maker("mistral")
    model = CONFIG | {"decoder_start_token_id": made.hf.bos_token_id}
    rows = [[*made.hf(line).input_ids, made.hf.eos_token_id] for line in LINES]
    assert inspect(speech(rows), made.tokenizer, model=model)["double_bos"] == "warning"
    assert graver(inspect(speech([row[1:] for row in rows]), made.tokenizer, model=model)) == {}


def test_transcripts_for_ctc_need_no_end_but_no_padding_either(inspect: Inspect) -> None:
    made = Maker("mistral")
    rows = [made.hf(line).input_ids[1:] for line in LINES]
    assert graver(inspect(speech(rows), made.tokenizer)) == {}
    assert "padding_not_masked" in inspect(speech(rows, made.hf.pad_token_id), made.tokenizer)


def flattened(made: Maker) -> dict[str, Any]:
    from transformers import DataCollatorWithFlattening

    end = [made.hf.eos_token_id]
    rows = [{"input_ids": ids, "labels": list(ids)} for ids in (made.hf(line).input_ids + end for line in LINES)]
    return listed(DataCollatorWithFlattening()(rows))


def test_rows_that_a_collator_joined_need_positions_that_restart(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = flattened(made)
    assert graver(inspect(batch, made.tokenizer)) == {}
    straight = batch | {"position_ids": [list(range(len(batch["input_ids"][0])))]}
    assert inspect(straight, made.tokenizer, "sft")["packing_without_position_reset"] == "warning"


@pytest.mark.parametrize("number", [int, float])
def test_a_zero_or_one_for_each_class_is_no_label_of_a_token(number: type, inspect: Inspect) -> None:
    made = wordpiece(ends=False)
    batch = listed(made.hf(LINES, padding=True))
    batch["labels"] = [[number(row % 2), number(0), number(1), number(row % 3 == 0)] for row in range(len(LINES))]
    assert graver(inspect(batch, made)) == {}


@pytest.mark.parametrize(("one", "two"), [("x", "y"), ("inputs", "targets")])
def test_inputs_and_their_next_tokens_are_read_by_what_they_hold(one: str, two: str, inspect: Inspect) -> None:
    rng = random.Random(1)
    rows = [[rng.randrange(400) for _ in range(33)] for _ in range(8)]
    batch = {one: [row[:-1] for row in rows], two: [row[1:] for row in rows]}
    assert graver(inspect(batch)) == {}
    assert "token_id_out_of_range" in inspect(batch, None, model={"model_type": "gpt2", "vocab_size": 100})


def test_the_columns_of_megatron_hold_next_tokens(inspect: Inspect) -> None:
    rng = random.Random(2)
    rows = [[rng.randrange(400) for _ in range(33)] for _ in range(8)]
    batch = {"tokens": [row[:-1] for row in rows], "labels": [row[1:] for row in rows], "loss_mask": [[1] * 32] * 8}
    assert "labels_shifted" not in inspect(batch, None, model={"model_type": "gpt2", "vocab_size": 400})
    same = {"input_ids": batch["tokens"], "labels": batch["labels"]}
    assert inspect(same)["labels_shifted"] == "error"


def test_a_missing_padding_token_is_a_remark_where_a_mask_hides_the_padding(inspect: Inspect) -> None:
    made = Maker("base")
    end = [made.hf.eos_token_id]
    rows = [{"input_ids": ids, "labels": ids} for ids in (made.hf(line).input_ids + end for line in LINES)]
    assert inspect(made.pad(rows, pad=0), made.tokenizer)["pad_token_unset"] == "info"
    assert inspect(rows, made.tokenizer)["pad_token_unset"] == "warning"


def test_a_transcript_without_a_token_trains_on_nothing(inspect: Inspect) -> None:
    made = Maker("mistral")
    rows = [made.hf(line).input_ids[1:] for line in LINES]
    assert inspect(speech([[], *rows]), made.tokenizer)["row_labels_masked"] == "warning"


def test_whole_numbers_in_rows_are_indices_and_not_unscaled_features(tmp_path: Path) -> None:
    import numpy as np

    from mldebug_mcp.judge import inspect_batch

    rng = np.random.default_rng(0)
    classes = np.arange(16) % 3
    found = []
    for name, x in (("ids", rng.integers(0, 400, (16, 40))), ("floats", rng.uniform(0, 400, (16, 40)))):
        np.savez(tmp_path / f"{name}.npz", x=x, y=classes)
        found.append([one.check for one in inspect_batch(tmp_path / f"{name}.npz").findings])
    assert found == [[], ["input_not_normalized"]]
