"""Checks of what the loss is taken on: a faulty batch, a near miss; the healthy ones stand in test_healthy."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import Inspect, Maker, talk

from mldebug_mcp.judge.batch import inspect_batch

CHAT = ["chatml", "llama3", "mistral", "gemma", "own"]
IGNORE = -100


def masked_ends(batch: dict[str, Any], ends: Collection[int]) -> dict[str, Any]:
    for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        for place, token in enumerate(ids):
            if token in ends:
                labels[place] = IGNORE
    return batch


def test_a_batch_without_any_label_trains_on_nothing(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["labels"] = [[IGNORE] * len(row) for row in batch["labels"]]
    found = inspect(batch, made.tokenizer)
    assert found["all_labels_masked"] == "error"
    assert "row_labels_masked" not in found
    assert inspect(batch)["all_labels_masked"] == "error"


def test_one_row_without_labels_is_a_row(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["labels"][1] = [IGNORE] * len(batch["labels"][1])
    found = inspect(batch, made.tokenizer)
    assert "row_labels_masked" in found
    assert "all_labels_masked" not in found
    assert "no_completion_left" not in found


@pytest.mark.parametrize(
    ("masked", "said"), [([1], "row 1 trains on no token"), ([1, 2], "rows 1, 2 (2 of 4) train on")]
)
def test_the_verb_fits_the_number_of_rows(masked: list[int], said: str, tmp_path: Path) -> None:
    rows = [[7, 8, 9, 5]] * 4
    labels = [[IGNORE] * 4 if at in masked else row for at, row in enumerate(rows)]
    path = tmp_path / "batch.json"
    path.write_text(json.dumps({"input_ids": rows, "labels": labels}))
    summaries = {one.check: one.summary for one in inspect_batch(path, purpose="sft").findings}
    assert summaries["row_labels_masked"].startswith(said)


@pytest.mark.parametrize("family", CHAT)
def test_prompts_with_labels_are_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    rows = [{"input_ids": row["input_ids"], "labels": row["input_ids"]} for row in made.rows(turns=2)]
    for purpose in ("sft", "auto"):
        found = inspect(made.pad(rows), made.tokenizer, purpose)
        assert found["prompt_not_masked"] == "warning"
        assert "wrong_role_in_loss" not in found
    assert "prompt_not_masked" not in inspect(made.pad(rows), made.tokenizer, "pretraining")


@pytest.mark.parametrize("family", CHAT)
def test_a_mask_off_by_the_header_is_no_prompt_in_the_loss(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    batch = made.batch()
    for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        first = next(place for place, label in enumerate(labels) if label != IGNORE)
        labels[first - 1] = ids[first - 1]
    assert "prompt_not_masked" not in inspect(batch, made.tokenizer)


@pytest.mark.parametrize("family", CHAT)
def test_the_loss_on_the_users_turns_is_the_wrong_role(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    rows = [
        {
            "input_ids": row["input_ids"],
            "labels": [
                token if label == IGNORE else IGNORE
                for token, label in zip(row["input_ids"], row["labels"], strict=True)
            ],
        }
        for row in made.rows(turns=2)
    ]
    found = inspect(made.pad(rows), made.tokenizer, "sft")
    assert found["wrong_role_in_loss"] == "error"
    assert not {"missing_eos", "eos_masked"} & found.keys()
    assert "prompt_not_masked" not in found


def test_labelled_padding_is_seen_with_and_without_a_tokenizer(inspect: Inspect) -> None:
    made = Maker("llama3")
    batch = made.batch()
    for ids, labels, mask in zip(batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True):
        for place, seen in enumerate(mask):
            if not seen:
                labels[place] = ids[place]
    assert inspect(batch, made.tokenizer)["padding_not_masked"] == "error"
    assert inspect(batch)["padding_not_masked"] == "error"
    del batch["attention_mask"]
    assert inspect(batch, made.tokenizer)["padding_not_masked"] == "error"


@pytest.mark.parametrize("family", CHAT)
def test_a_masked_end_is_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    found = inspect(masked_ends(made.batch(turns=2), made.tokenizer.ends), made.tokenizer)
    assert found["eos_masked"] == "error"
    assert "missing_eos" not in found
    assert "pad_is_eos" not in found


def test_one_trained_end_in_a_row_is_enough(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch(turns=2)
    for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        first = next(p for p, label in enumerate(labels) if label in made.tokenizer.ends)
        assert ids[first] == labels[first]
        labels[first] = IGNORE
    assert "eos_masked" not in inspect(batch, made.tokenizer)


@pytest.mark.parametrize("with_mask", [True, False])
def test_ends_masked_because_they_are_padding_are_seen(with_mask: bool, inspect: Inspect) -> None:
    made = Maker("mistral")
    eos = made.hf.eos_token_id
    batch = masked_ends(made.pad(made.rows(), pad=eos), {eos})
    if not with_mask:
        del batch["attention_mask"]
    made.hf.pad_token = made.hf.eos_token
    try:
        found = inspect(batch, made.tokenizer, "sft")
    finally:
        made.hf.pad_token = "<pad>"
    assert found["pad_is_eos"] == "error"
    assert found["eos_masked"] == "error"


@pytest.mark.parametrize("family", CHAT)
def test_completions_without_an_end_are_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    rows = []
    for row in made.rows():
        last = max(place for place, label in enumerate(row["labels"]) if label in made.tokenizer.ends)
        rows.append({name: column[:last] for name, column in row.items()})
    for batch in (made.pad(rows), rows):
        found = inspect(batch, made.tokenizer, "sft")
        assert found["missing_eos"] == "error"
        assert "eos_masked" not in found
        assert "truncated_completion" not in found


def test_rows_cut_at_a_limit_are_truncated(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = made.rows(turns=2)
    limit = min(len(row["input_ids"]) for row in rows) - 4
    cut = [{name: column[:limit] for name, column in row.items()} for row in rows[:2]]
    short = made.rows(count=2)
    batch = made.pad([*cut, *short])
    batch = {name: [row[:-2] for row in column] for name, column in batch.items()}
    found = inspect(batch, made.tokenizer, "sft")
    assert "truncated_completion" in found
    assert "missing_eos" not in found


def test_a_prompt_that_fills_the_limit_leaves_no_completion(inspect: Inspect) -> None:
    made = Maker("llama3")
    rows = made.rows()
    longest = max(len(row["input_ids"]) for row in rows)
    prompt = {"input_ids": (made.row()["input_ids"] * 3)[:longest], "labels": [IGNORE] * longest}
    batch = made.pad([*rows, prompt])
    batch = {name: [row[:-2] for row in column] for name, column in batch.items()}
    assert inspect(batch, made.tokenizer, "sft")["no_completion_left"] == "error"


@pytest.mark.parametrize("step", [1, -1])
def test_shifted_labels_are_seen(step: int, inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["labels"] = [[*row[1:], IGNORE] if step > 0 else [IGNORE, *row[:-1]] for row in batch["labels"]]
    for tokenizer in (made.tokenizer, None):
        found = inspect(batch, tokenizer, "sft")
        assert found["labels_shifted"] == "error"
        assert not {"missing_eos", "eos_masked"} & found.keys()
        assert "labels_mismatch" not in found


def test_targets_are_shifted_by_design(inspect: Inspect) -> None:
    made = Maker("base")
    ids = [made.tokenizer.encode("Hamlet was written by William Shakespeare") for _ in range(1)]
    batch = {"input_ids": [row[:-1] for row in ids], "targets": [row[1:] for row in ids]}
    found = inspect(batch, made.tokenizer, "pretraining")
    assert not {"labels_shifted", "labels_mismatch"} & found.keys()


def test_labels_of_another_row_are_a_mismatch(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["labels"] = [[IGNORE if label == IGNORE else (label + 7) % 300 for label in row] for row in batch["labels"]]
    found = inspect(batch, made.tokenizer, "sft")
    assert found["labels_mismatch"] == "error"
    assert "labels_shifted" not in found


def test_masked_language_modelling_is_no_mismatch(inspect: Inspect) -> None:
    rows = [[101, *range(200 + row, 230 + row), 102] for row in range(4)]
    labels = [[IGNORE] * 32 for _ in rows]
    for row, target in zip(rows, labels, strict=True):
        for place in (3, 9, 15, 21):
            target[place], row[place] = row[place], 103
    found = inspect({"input_ids": rows, "labels": labels})
    assert not {"labels_mismatch", "labels_shifted"} & found.keys()


def test_rows_with_answers_but_no_labels_yet_are_training_data(inspect: Inspect) -> None:
    made = Maker("llama3")
    rows = [{"input_ids": row["input_ids"]} for row in made.rows()]
    assert inspect(rows, made.tokenizer) == {}
    open_ended = [{"input_ids": row["input_ids"][:-1]} for row in rows]
    assert inspect(open_ended, made.tokenizer) == {"missing_eos": "error"}


def answers(*ends: int) -> list[dict[str, list[int]]]:
    lengths = [20 + 7 * row % 11 for row in range(16)]
    rows = [[*range(300 + 90 * row, 300 + 90 * row + length), *ends] for row, length in enumerate(lengths)]
    return [{"input_ids": row, "labels": [*[IGNORE] * 12, *row[12:]]} for row in rows]


def test_answers_whose_last_tokens_all_differ_lack_an_end_though_no_tokenizer_names_it(inspect: Inspect) -> None:
    assert inspect(answers())["missing_eos"] == "warning"
    assert not {"missing_eos"} & (inspect(answers(2)).keys() | inspect(answers(2, 13)).keys())


def test_prompts_that_wait_for_an_answer_lack_no_end(inspect: Inspect) -> None:
    made = Maker("chatml")
    texts = [made.tokenizer.render([{"role": "user", "content": word}], add_generation_prompt=True) for word in "abcd"]
    rows = [{"input_ids": made.tokenizer.encode(text, special=False)} for text in texts]
    assert inspect(rows, made.tokenizer) == {}


def test_two_equally_long_rows_without_ends_are_not_cut_if_shorter_ones_lack_theirs(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = [{name: column[:-2] for name, column in row.items()} for row in [*made.rows(), made.row(3)]]
    found = inspect(rows, made.tokenizer, "sft")
    assert found["missing_eos"] == "error"
    assert "truncated_completion" not in found


def test_labelled_padding_takes_no_end_from_a_completion(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["labels"] = [
        [label if seen else token for token, label, seen in zip(*columns, strict=True)]
        for columns in zip(batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True)
    ]
    found = inspect(batch, made.tokenizer)
    assert found["padding_not_masked"] == "error"
    assert "missing_eos" not in found


def test_labels_of_padded_tags_are_seen(inspect: Inspect) -> None:
    batch = {
        "input_ids": [[101, 5000 + row, 6000, 102] + [0] * row for row in range(4)],
        "attention_mask": [[1] * 4 + [0] * row for row in range(4)],
        "labels": [[-100, 3, 0, -100] + [0] * row for row in range(4)],
    }
    for column in batch.values():
        for row in column:
            row.extend([0] * (8 - len(row)))
    assert inspect(batch, purpose="classification")["padding_not_masked"] == "error"
    batch["labels"] = [
        [label if seen else IGNORE for label, seen in zip(*row, strict=True)]
        for row in zip(batch["labels"], batch["attention_mask"], strict=True)
    ]
    assert "padding_not_masked" not in inspect(batch, purpose="classification")


def test_answers_of_nothing_but_their_end_are_empty(inspect: Inspect) -> None:
    made = Maker("chatml")
    talks = [[*talk(first=row)[:1], {"role": "assistant", "content": "" if row == 2 else "Yes."}] for row in range(4)]
    assert inspect([{"messages": one} for one in talks], made.tokenizer)["empty_row"] == "warning"
    talks[2][1]["content"] = "No."
    assert inspect([{"messages": one} for one in talks], made.tokenizer) == {}


def test_rows_cut_before_and_within_the_answer_are_cut_and_not_endless(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = made.rows()
    limit = sorted(next(place for place, label in enumerate(row["labels"]) if label != IGNORE) for row in rows)[1]
    found = inspect([{name: column[:limit] for name, column in row.items()} for row in rows], made.tokenizer, "sft")
    assert "truncated_completion" in found
    assert "missing_eos" not in found


def test_a_decoder_that_is_shown_the_labels_themselves_is_seen(inspect: Inspect) -> None:
    labels = [[10 + row, 20, 30 + row, 1] for row in range(4)]
    batch = {"input_ids": [[5, 6, 7 + row] for row in range(4)], "labels": labels}
    shifted = [[0, *row[:-1]] for row in labels]
    assert inspect({**batch, "decoder_input_ids": labels})["labels_shifted"] == "error"
    assert "labels_shifted" not in inspect({**batch, "decoder_input_ids": shifted})


def test_the_label_of_a_completion_makes_no_classification_of_it(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.pad([{name: column[:-2] for name, column in row.items()} for row in made.rows()])
    batch["completion_mask"] = [[int(label != IGNORE) for label in row] for row in batch.pop("labels")]
    batch["label"] = [True, False, True, True]
    assert inspect(batch, made.tokenizer)["missing_eos"] == "error"


def test_conversations_without_an_assistant_name_the_roles_that_they_have(tmp_path: Path) -> None:
    rows = [{"messages": [{"role": "user", "content": word}, {"role": "asistant", "content": word}]} for word in "abcd"]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    answer = inspect_batch(tmp_path / "rows.json", Maker("chatml").tokenizer)
    assert answer.findings[0].check == "all_labels_masked"
    assert any("asistant" in note for note in answer.notes)


def test_labels_one_longer_than_their_inputs_are_no_texts_of_their_own(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = [{"input_ids": row["input_ids"], "labels": [*row["labels"], made.hf.eos_token_id]} for row in made.rows()]
    assert inspect(rows, made.tokenizer)["length_mismatch"] == "error"


def test_tags_whose_padding_is_labelled_are_no_copy_of_the_input(inspect: Inspect) -> None:
    tags = {
        "input_ids": [[101, 5000 + row, 6000, 102] + [0] * 8 for row in range(4)],
        "labels": [[0, 3, 1, 0] + [0] * 8] * 4,
    }
    tags["attention_mask"] = [[1] * 4 + [0] * 8] * 4
    found = inspect(tags)
    assert found["padding_not_masked"] == "error"
    assert "labels_mismatch" not in found


def test_completions_with_a_label_of_their_own_before_collation_are_no_classification(tmp_path: Path) -> None:
    rows = [
        {"prompt_input_ids": [5, 6, row], "completion_input_ids": [7, row], "label": row % 2 == 0} for row in range(8)
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert inspect_batch(tmp_path / "rows.json").batch.purpose != "classification"


def test_completions_that_begin_alike_are_no_prompt(inspect: Inspect) -> None:
    made = Maker("chatml")
    prompt = made.hf.encode("Who?", add_special_tokens=False)
    alike = made.hf.encode("Seven is a prime number, and so is", add_special_tokens=False)
    rows = []
    for number in range(4):
        row: dict[str, list[int]] = {}
        for side, last in (("chosen", "eleven"), ("rejected", "twelve")):
            said = [*alike, *made.hf.encode(f" {last} {number}", add_special_tokens=False), made.hf.eos_token_id]
            row |= {f"{side}_input_ids": prompt + said, f"{side}_labels": [IGNORE] * len(prompt) + said}
        rows.append(row)
    assert "prompt_not_masked" not in inspect(rows, made.tokenizer)
    for row in rows:
        row |= {f"{side}_labels": row[f"{side}_input_ids"] for side in ("chosen", "rejected")}
    assert inspect(rows, made.tokenizer)["prompt_not_masked"] == "warning"


def test_labels_that_are_shifted_in_a_few_rows_alone_are_seen(tmp_path: Path) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["labels"][1] = [*batch["labels"][1][1:], IGNORE]
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(batch))
    answer = inspect_batch(path, made.tokenizer, purpose="sft")
    assert [(finding.check, finding.rows) for finding in answer.findings] == [("labels_shifted", [1])]


def test_one_input_with_two_targets_is_no_repeated_row(inspect: Inspect) -> None:
    rows = [
        {"input_ids": [*range(10 + row // 2, 30 + row // 2), 1], "labels": [*range(50 + row, 60 + row), 1]}
        for row in range(40)
    ]
    assert "duplicate_rows" not in inspect(rows)
    assert inspect([*rows, rows[0]])["duplicate_rows"] == "warning"
