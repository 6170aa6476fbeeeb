"""Batches of choices, triples and unpaired answers, and labels that are marks, values or always the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.batch.kit import Inspect, Maker, graver
from tests.batch.matrix import SAMPLES

from mldebug_mcp.batch.tokenizer import Tokenizer, load_tokenizer
from mldebug_mcp.judge.batch import inspect_batch

WORDS = ("river", "stone", "a friend", "the sea", "a prime number", "plants", "the soil", "a program")
BERT = {"model_type": "bert", "type_vocab_size": 2, "num_labels": 2, "vocab_size": 600}


@pytest.fixture(scope="module")
def wordpiece() -> Tokenizer:
    return load_tokenizer(SAMPLES / "wordpiece")


def rows_of(tokenizer: Tokenizer, texts: list[str], **columns: Any) -> dict[str, Any]:
    ids = [tokenizer.encode(text) for text in texts]
    width = max(map(len, ids))
    pad = tokenizer.pad
    return {
        "input_ids": [row + [pad] * (width - len(row)) for row in ids],
        "attention_mask": [[1] * len(row) + [0] * (width - len(row)) for row in ids],
        **columns,
    }


def choices(tokenizer: Tokenizer, labels: list[int]) -> dict[str, Any]:
    flat = rows_of(tokenizer, [f"what is {asked} or {said}" for asked in WORDS for said in WORDS[:4]])
    return {name: [value[at : at + 4] for at in range(0, 32, 4)] for name, value in flat.items()} | {"labels": labels}


def completions(made: Maker, *answers: str, again: bool = False) -> dict[str, Any]:
    """Return rows of prompts and answers, all first answers first, with a mask over the answers."""
    prompts = [made.tokenizer.encode(f"What is {word}?") for word in WORDS]
    rows = [
        (
            prompt,
            [
                *(prompt if again else []),
                *made.tokenizer.encode(f"{answer} {place}", special=False),
                made.hf.eos_token_id,
            ],
        )
        for answer in answers
        for place, prompt in enumerate(prompts)
    ]
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    pad = made.hf.pad_token_id
    empty = [width - len(prompt) - len(answer) for prompt, answer in rows]
    both = list(zip(rows, empty, strict=True))
    return {
        "input_ids": [[*prompt, *answer, *[pad] * left] for (prompt, answer), left in both],
        "attention_mask": [[1] * (width - left) + [0] * left for _, left in both],
        "completion_mask": [[0] * len(prompt) + [1] * len(answer) + [0] * left for (prompt, answer), left in both],
    }


def test_choices_are_judged_each_for_itself(wordpiece: Tokenizer, inspect: Inspect) -> None:
    model = {**BERT, "architectures": ["BertForMultipleChoice"]}
    assert not graver(inspect(choices(wordpiece, [0, 1, 2, 3] * 2), wordpiece, model=model))
    assert inspect(choices(wordpiece, [0, 1, 2, -1] * 2), wordpiece, model=model)["label_out_of_range"] == "error"
    assert inspect(choices(wordpiece, [0, 1, 2, 4] * 2), wordpiece, model=model)["label_out_of_range"] == "error"


def test_token_types_beyond_the_models_are_seen(wordpiece: Tokenizer, inspect: Inspect) -> None:
    batch = rows_of(wordpiece, list(WORDS), labels=[0, 1] * 4)
    right = {**batch, "token_type_ids": batch["attention_mask"]}
    assert not graver(inspect(right, wordpiece, model=BERT))
    wrong = {**batch, "token_type_ids": [[2 * mark for mark in row] for row in batch["attention_mask"]]}
    assert inspect(wrong, wordpiece, model=BERT)["token_id_out_of_range"] == "error"
    assert "token_id_out_of_range" in inspect(right, wordpiece, model={**BERT, "type_vocab_size": 1})


def test_whole_numbers_for_several_labels_are_seen(wordpiece: Tokenizer, inspect: Inspect) -> None:
    model = {**BERT, "num_labels": 3, "problem_type": "multi_label_classification"}
    marks = [[place % 2, place % 3 == 0, 0] for place in range(8)]
    whole = [list(map(int, row)) for row in marks]
    for inputs in (
        rows_of(wordpiece, list(WORDS)),
        {"pixel_values": np.random.default_rng(1).normal(size=(8, 3, 6, 6)).tolist()},
    ):
        assert inspect({**inputs, "labels": whole}, model=model)["schema_mismatch"] == "error"
        assert "schema_mismatch" not in inspect(
            {**inputs, "labels": [list(map(float, row)) for row in marks]}, model=model
        )


def test_marks_of_sounds_are_no_transcripts(tmp_path: Path, inspect: Inspect) -> None:
    sounds = np.random.default_rng(1).normal(size=(8, 300)).tolist()
    batch = {"input_values": sounds, "labels": [[place % 2, 1, 0, 1] for place in range(8)]}
    assert not graver(inspect(batch))
    assert inspect_batch(tmp_path / "batch.json").batch.purpose == "classification"


@pytest.mark.parametrize("name", ["labels", "label"])
def test_labels_with_fractions_that_never_vary_are_seen(name: str, wordpiece: Tokenizer, inspect: Inspect) -> None:
    model = {**BERT, "problem_type": "regression"}
    batch = rows_of(wordpiece, list(WORDS))
    assert inspect({**batch, name: [2.5] * 8}, wordpiece, model=model)["class_imbalance"] == "warning"
    assert "class_imbalance" not in inspect({**batch, name: [2.5] * 7 + [3.0]}, wordpiece, model=model)


def test_whole_values_of_a_regression_are_no_classes(inspect: Inspect) -> None:
    pixels = np.random.default_rng(1).normal(size=(8, 3, 6, 6)).tolist()
    model = {"model_type": "vit", "id2label": {"0": "a", "1": "b"}, "problem_type": "regression"}
    batch = {"pixel_values": pixels, "labels": [float(place) for place in range(8)]}
    assert not graver(inspect(batch, model=model))


def test_answers_that_are_all_wanted_are_seen(inspect: Inspect) -> None:
    made = Maker("llama3")
    batch = completions(made, "Some answer")
    assert "class_imbalance" in inspect({**batch, "label": [True] * 8}, made.tokenizer)
    assert not graver(inspect({**batch, "label": [True, False] * 4}, made.tokenizer))


def test_unpaired_answers_to_the_same_prompts_are_no_pairs(inspect: Inspect) -> None:
    made = Maker("llama3")
    batch = {**completions(made, "Some answer", "Another one"), "label": [True, False] * 8}
    batch["input_ids"][8] = batch["input_ids"][0]
    assert "chosen_equals_rejected" not in inspect(batch, made.tokenizer)


def test_reference_answers_behind_pairs_are_no_copies(inspect: Inspect) -> None:
    made = Maker("llama3")
    assert not graver(inspect(completions(made, "Some answer", "Another one", "Some answer"), made.tokenizer))
    found = inspect(completions(made, "Some answer", "Some answer", "Another one"), made.tokenizer)
    assert found["chosen_equals_rejected"] == "error"


@pytest.mark.parametrize("label", [True, False], ids=["unpaired", "pairs"])
def test_a_prompt_that_stands_in_the_completion_is_seen(*, label: bool, inspect: Inspect) -> None:
    made = Maker("llama3")
    answers = ("Some answer",) if label else ("Some answer", "Another one")
    more = {"label": [True, False] * 4} if label else {}
    found = inspect({**completions(made, *answers, again=True), **more}, made.tokenizer)
    assert found["prompt_repeated"] == "error"
    assert "packing_without_position_reset" not in found
    assert "prompt_repeated" not in inspect({**completions(made, *answers), **more}, made.tokenizer)


def test_rows_in_a_script_that_the_vocabulary_lacks_are_seen(wordpiece: Tokenizer, inspect: Inspect) -> None:
    strange = ["привет как дела сегодня", "где находится эта река", "растения едят почву", "назови мне большую реку"]
    found = inspect(rows_of(wordpiece, [*strange, *WORDS[:4]], labels=[0, 1] * 4), wordpiece)
    assert found["unknown_tokens"] == "warning"
    assert "empty_row" not in found
    assert "unknown_tokens" not in inspect(rows_of(wordpiece, list(WORDS), labels=[0, 1] * 4), wordpiece)


def test_text_of_another_encoding_is_seen_in_tokens(inspect: Inspect) -> None:
    made = Maker("llama3")
    text = "“déjà vu”, a naïve café".encode().decode("cp1252", "replace")
    rows = [{"input_ids": made.tokenizer.encode(f"{word} {text}")} for word in WORDS]
    assert inspect(rows, made.tokenizer)["garbled_text"] == "warning"
    right = [{"input_ids": made.tokenizer.encode(f"{word} “déjà vu”, a naïve café")} for word in WORDS]
    assert "garbled_text" not in inspect(right, made.tokenizer)


def test_documents_that_restart_at_two_are_kept_apart(inspect: Inspect) -> None:
    made = Maker("llama3")
    rows = made.rows(3)
    batch = {name: [[token for row in rows for token in row[name]]] for name in rows[0]}
    batch["position_ids"] = [[2 + place for row in rows for place in range(len(row["input_ids"]))]]
    found = inspect(batch, made.tokenizer)
    assert found["position_ids_wrong"] == "error"
    assert "packing_without_position_reset" not in found


def test_one_row_far_beyond_rows_of_two_kinds_is_seen(inspect: Inspect) -> None:
    lengths = [28, 30, 75, 74, 29, 31, 73, 76, 28, 75]
    rows = [{"input_ids": list(range(5, 5 + length))} for length in lengths]
    assert "length_outlier" not in inspect(rows)
    assert inspect([*rows, {"input_ids": list(range(5, 905))}])["length_outlier"] == "warning"
