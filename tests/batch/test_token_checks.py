"""Checks of tokens, masks, padding and positions: a faulty batch and a near miss each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.batch.kit import Inspect, Maker

from mldebug_mcp.judge.batch import inspect_batch

IGNORE = -100


@pytest.mark.parametrize("family", ["llama3", "mistral", "gemma"])
def test_a_second_first_token_is_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    bos = made.hf.bos_token_id
    rows = [{"input_ids": [bos, *row["input_ids"]], "labels": [IGNORE, *row["labels"]]} for row in made.rows()]
    assert inspect(made.pad(rows), made.tokenizer)["double_bos"] == "warning"
    assert inspect(made.pad(rows, "left"), made.tokenizer)["double_bos"] == "warning"
    assert inspect(made.pad(rows), None)["double_bos"] == "warning"


def test_left_padding_with_the_first_token_is_no_second_one(inspect: Inspect) -> None:
    made = Maker("mistral")
    batch = made.pad(made.rows(), "left", pad=made.hf.bos_token_id)
    batch.pop("labels")
    made.hf.pad_token = "<s>"
    try:
        assert "double_bos" not in inspect(batch, made.tokenizer, "generation")
    finally:
        made.hf.pad_token = "<pad>"


@pytest.mark.parametrize("family", ["llama3", "mistral", "gemma"])
def test_rows_without_the_first_token_are_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    rows = [{name: column[1:] for name, column in row.items()} for row in made.rows()]
    assert inspect(made.pad(rows), made.tokenizer)["missing_bos"] == "warning"


def test_a_model_without_a_first_token_lacks_none(inspect: Inspect) -> None:
    for family in ("chatml", "own"):
        made = Maker(family)
        assert "missing_bos" not in inspect(made.batch(), made.tokenizer)
    base = Maker("base")
    rows = [base.tokenizer.encode("Seven is a prime number") for _ in range(3)]
    assert "missing_bos" not in inspect({"input_ids": rows}, base.tokenizer)


def test_a_tokenizer_without_padding_is_seen_where_rows_differ(inspect: Inspect) -> None:
    made = Maker("base")
    rows = [made.tokenizer.encode("Seven is a prime number" * count) for count in (1, 2, 3)]
    assert inspect({"input_ids": rows}, made.tokenizer, "sft")["pad_token_unset"] == "warning"
    same = [rows[0], rows[0][::-1]]
    assert "pad_token_unset" not in inspect({"input_ids": same}, made.tokenizer, "pretraining")


def test_the_padding_side_depends_on_the_purpose(inspect: Inspect) -> None:
    made = Maker("chatml")
    prompts = [{"input_ids": row["input_ids"][:-12]} for row in made.rows()]
    right, left = (made.pad(prompts, side) for side in ("right", "left"))
    right.pop("labels"), left.pop("labels")
    assert "padding_side_wrong" in inspect(right, made.tokenizer, "generation")
    assert "padding_side_wrong" not in inspect(left, made.tokenizer, "generation")
    assert "padding_side_wrong" not in inspect(left, made.tokenizer)
    rows = made.rows()
    assert "padding_side_wrong" in inspect(made.pad(rows, "left"), made.tokenizer, "sft")
    assert "padding_side_wrong" not in inspect(made.pad(rows, "right"), made.tokenizer, "sft")


def test_left_padding_with_right_positions_is_harmless_in_training(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.pad(made.rows(), "left")
    batch["position_ids"] = [
        [max(0, sum(row[: place + 1]) - 1) for place in range(len(row))] for row in batch["attention_mask"]
    ]
    found = inspect(batch, made.tokenizer, "sft")
    assert not {"padding_side_wrong", "position_ids_wrong"} & found.keys()


def test_attended_padding_is_a_mismatch(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["attention_mask"] = [[1] * len(row) for row in batch["attention_mask"]]
    for tokenizer in (made.tokenizer, None):
        assert "attention_mask_mismatch" in inspect(batch, tokenizer)


def test_hidden_text_is_a_mismatch(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["attention_mask"][0][:4] = [0, 0, 0, 0]
    found = inspect(batch, made.tokenizer)
    assert found["attention_mask_mismatch"] == "error"
    assert "attention_mask_inverted" not in found


def test_an_inverted_mask_is_no_mere_mismatch(inspect: Inspect) -> None:
    made = Maker("llama3")
    batch = made.batch()
    batch["attention_mask"] = [[1 - value for value in row] for row in batch["attention_mask"]]
    for tokenizer in (made.tokenizer, None):
        found = inspect(batch, tokenizer)
        assert found["attention_mask_inverted"] == "error"
        assert "attention_mask_mismatch" not in found


@pytest.mark.parametrize("token", [-1, 10**6, 2**40])
def test_ids_outside_the_vocabulary_are_seen(token: int, inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["input_ids"][2][3] = token
    assert inspect(batch, made.tokenizer)["token_id_out_of_range"] == "error"
    assert inspect(batch, None, model={"vocab_size": made.tokenizer.size})["token_id_out_of_range"] == "error"


def test_negative_labels_other_than_the_ignore_index_are_seen(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["labels"] = [[-1 if label == IGNORE else label for label in row] for row in batch["labels"]]
    assert inspect(batch, made.tokenizer, "sft")["token_id_out_of_range"] == "error"


def test_the_last_id_of_the_vocabulary_is_inside(inspect: Inspect) -> None:
    made = Maker("chatml")
    size = made.tokenizer.size
    batch = made.batch()
    batch["input_ids"][0][3] = size - 1
    assert "token_id_out_of_range" not in inspect(batch, made.tokenizer, model={"vocab_size": size})


def test_vocabularies_that_do_not_fit_are_seen(inspect: Inspect) -> None:
    made = Maker("chatml")
    size = made.tokenizer.size
    assert inspect(made.batch(), made.tokenizer, model={"vocab_size": size - 1})["vocab_size_mismatch"] == "error"
    assert inspect(made.batch(), made.tokenizer, model={"vocab_size": 50_000})["vocab_size_mismatch"] == "warning"
    assert "vocab_size_mismatch" not in inspect(made.batch(), made.tokenizer, model={"vocab_size": size + 100})


def test_ids_that_the_tokenizer_does_not_know_belong_to_another(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["input_ids"][0][3] = made.tokenizer.size + 10
    found = inspect(batch, made.tokenizer, model={"vocab_size": made.tokenizer.size + 64})
    assert found["vocab_size_mismatch"] == "error"


def packed(made: Maker, positions: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"input_ids": [], "labels": [], "position_ids": []}
    for one in made.rows():
        row["input_ids"] += one["input_ids"]
        row["labels"] += [IGNORE, *one["labels"][1:]]
        row["position_ids"] += range(len(one["input_ids"]))
    if not positions:
        row["position_ids"] = list(range(len(row["input_ids"])))
    return {name: [column] for name, column in row.items()}


@pytest.mark.parametrize("family", ["llama3", "mistral", "gemma", "phi3"])
def test_packing_needs_positions_that_restart(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    batch = packed(made, positions=False)
    assert inspect(batch, made.tokenizer, "sft")["packing_without_position_reset"] == "warning"
    del batch["position_ids"]
    assert inspect(batch, made.tokenizer, "sft")["packing_without_position_reset"] == "warning"
    batch["seq_lengths"] = [[len(row["input_ids"]) for row in made.rows()]]
    assert "packing_without_position_reset" not in inspect(batch, made.tokenizer, "sft")
    right = inspect(packed(made, positions=True), made.tokenizer, "sft")
    assert not {"packing_without_position_reset", "position_ids_wrong", "missing_eos"} & right.keys()


@pytest.mark.parametrize(("positions", "severity"), [(False, "warning"), (True, None)])
def test_positions_restart_where_the_bounds_of_documents_say(
    positions: bool, severity: str | None, inspect: Inspect
) -> None:
    made = Maker("chatml")
    bounds = np.cumsum([0, *(len(row["input_ids"]) for row in made.rows())])
    batch = packed(made, positions) | {"cu_seqlens": bounds.tolist()}
    assert inspect(batch, made.tokenizer, "sft").get("position_ids_wrong") == severity


@pytest.mark.parametrize("family", ["chatml", "llama3", "mistral", "gemma", "phi3", "own"])
def test_turns_of_one_conversation_are_not_packed(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    assert "packing_without_position_reset" not in inspect(made.batch(turns=3), made.tokenizer, "sft")


def test_positions_that_count_padding_are_wrong(inspect: Inspect) -> None:
    made = Maker("chatml")
    left, right = (made.pad(made.rows(), side) for side in ("left", "right"))
    for batch in (left, right):
        batch["position_ids"] = [list(range(len(row))) for row in batch["input_ids"]]
    assert inspect(left, made.tokenizer)["position_ids_wrong"] == "error"
    assert "position_ids_wrong" not in inspect(right, made.tokenizer)


def test_positions_that_leap_or_repeat_are_wrong(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["position_ids"] = [[max(0, place - 1) for place in range(len(row))] for row in batch["input_ids"]]
    batch["position_ids"] = [[place * 2 for place in range(len(row))] for row in batch["input_ids"]]
    assert inspect(batch, made.tokenizer)["position_ids_wrong"] == "error"


def test_empty_rows_are_seen(inspect: Inspect) -> None:
    made = Maker("llama3")
    batch = made.pad([*made.rows(), {"input_ids": [], "labels": []}])
    assert "empty_row" in inspect(batch, made.tokenizer)
    only = {"input_ids": [made.hf.bos_token_id, made.hf.eos_token_id], "labels": [IGNORE, IGNORE]}
    assert "empty_row" in inspect(made.pad([*made.rows(), only]), made.tokenizer)
    word = made.tokenizer.encode("yes")
    assert "empty_row" not in inspect(made.pad([*made.rows(), {"input_ids": word, "labels": word}]), made.tokenizer)


def test_repeated_rows_are_seen_but_repeated_prompts_are_not(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = made.rows()
    assert "duplicate_rows" in inspect(made.pad([*rows, rows[0]]), made.tokenizer)
    start = next(place for place, label in enumerate(rows[0]["labels"]) if label != IGNORE)
    other = {
        "input_ids": rows[0]["input_ids"][:start] + rows[1]["input_ids"][-9:],
        "labels": [IGNORE] * start + rows[1]["input_ids"][-9:],
    }
    assert "duplicate_rows" not in inspect(made.pad([*rows, other]), made.tokenizer)
    prompts = {"input_ids": [rows[0]["input_ids"][:start]] * 4}
    assert "duplicate_rows" not in inspect(prompts, made.tokenizer, "generation")
    assert "duplicate_rows" not in inspect(prompts, made.tokenizer)


def test_a_row_far_longer_than_the_rest_is_seen(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = [made.row(number, 2) for number in range(4)]
    long = made.row(0, 24)
    assert "length_outlier" in inspect([*rows, long], made.tokenizer)
    assert "length_outlier" not in inspect([*rows, made.row(0, 5)], made.tokenizer)


def test_columns_of_different_length_are_seen(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = made.rows()
    rows[1]["labels"] = rows[1]["labels"][:-1]
    found = inspect(rows, made.tokenizer)
    assert found["length_mismatch"] == "error"
    batch = made.batch()
    batch["attention_mask"] = [row[:-1] for row in batch["attention_mask"]]
    assert inspect(batch, made.tokenizer)["length_mismatch"] == "error"
    batch["attention_mask"] = batch["attention_mask"][:-1]
    assert inspect(batch, made.tokenizer)["length_mismatch"] == "error"
    del batch["attention_mask"]
    assert "length_mismatch" not in inspect(batch, made.tokenizer)


def test_left_padding_is_a_remark_where_only_distances_count(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.pad(made.rows(), "left")
    assert inspect(batch, made.tokenizer, "sft", {"rope_theta": 10000.0})["padding_side_wrong"] == "info"
    assert inspect(batch, made.tokenizer, "sft", {"model_type": "gpt2"})["padding_side_wrong"] == "warning"


def test_a_row_that_ends_in_a_repeated_sign_is_not_padded(inspect: Inspect) -> None:
    rows = [[(7 * row + 3 * place) % 50 + 10 for place in range(24)] for row in range(6)]
    for row in rows[:2]:
        row[-4:] = [11] * 4
    batch = {"input_ids": rows, "labels": rows, "attention_mask": [[1] * 24] * 6}
    assert inspect(batch) == {}
    for row in rows[:2]:
        row[-4:] = [0] * 4
    assert inspect(batch)["padding_not_masked"] == "error"


def test_the_ignore_index_among_token_ids_is_out_of_range_and_no_padding(inspect: Inspect) -> None:
    rows = [[(7 * row + 3 * place) % 50 + 10 for place in range(24)] for row in range(6)]
    labels = [list(row) for row in rows]
    rows[2][-4:] = [-100] * 4
    found = inspect({"input_ids": rows, "labels": labels}, model={"vocab_size": 100})
    assert found["token_id_out_of_range"] == "error"
    assert not {"padding_not_masked", "attention_mask_mismatch"} & found.keys()


def test_positions_that_never_rise_are_wrong(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["position_ids"] = [[0] * len(row) for row in batch["input_ids"]]
    assert inspect(batch, made.tokenizer)["position_ids_wrong"] == "error"
    batch["position_ids"] = [list(range(len(row))) for row in batch["input_ids"]]
    assert "position_ids_wrong" not in inspect(batch, made.tokenizer)


def trained(kind: str, texts: list[str]) -> Any:
    """Return a tokenizer of one kind, trained on texts."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    if kind == "wordpiece":
        fast = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        fast.normalizer, fast.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        fast.decoder = decoders.WordPiece()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=1200, special_tokens=["[UNK]"], show_progress=False)
    else:
        fast = Tokenizer(models.BPE())
        fast.pre_tokenizer, fast.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=1200, special_tokens=["[UNK]"], initial_alphabet=alphabet, show_progress=False
        )
    fast.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=fast, unk_token="[UNK]")


@pytest.mark.parametrize(
    ("kind", "source"),
    [("bpe", "wordpiece"), ("bpe", "shuffled"), ("bpe", "bpe"), ("wordpiece", "wordpiece")],
)
def test_ids_of_another_kind_of_tokenizer_are_seen_and_its_own_are_left_alone(
    kind: str, source: str, tmp_path: Path
) -> None:
    pages = [page.read_text(encoding="utf-8") for page in sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))]
    texts = [page[start : start + 900] for page in pages for start in range(0, min(len(page), 9000), 900)]
    mine = trained(kind, texts[::2])
    mine.save_pretrained(tmp_path / "mine")
    other = mine if source in (kind, "shuffled") else trained(source, texts[1::2])
    ids = [other(text)["input_ids"] for text in texts[1:60:3]]
    if source == "shuffled":
        order = np.random.default_rng(3).permutation(len(mine))
        ids = [order[row].tolist() for row in ids]
    ids = [[one for one in row if one < len(mine)] for row in ids]
    file = tmp_path / "batch.json"
    file.write_text(json.dumps({"input_ids": ids}), encoding="utf-8")

    found = {one.check for one in inspect_batch(file, tmp_path / "mine").findings}

    assert ("tokenizer_mismatch" in found) == (source != kind)


def test_a_label_that_copies_its_token_is_not_counted_again(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "vocab_size": 100}))
    counts = []
    for labels in ([1, 501, 500, 7], [-100, 501, 500, 7], [1, 500, 7, 600]):
        rows = {"input_ids": [[1, 2, 3, 4], [1, 501, 500, 7]], "labels": [[1, 2, 3, 4], labels]}
        (tmp_path / "batch.json").write_text(json.dumps(rows))
        answer = inspect_batch(tmp_path / "batch.json", model=tmp_path / "config.json", purpose="sft")
        counts += [one.values["count"] for one in answer.findings if one.check == "token_id_out_of_range"]
    np.save(tmp_path / "stream.npy", np.array([*range(63), 500] * 32, np.uint16))
    stream = inspect_batch(tmp_path / "stream.npy", model=tmp_path / "config.json")
    counts += [one.values["count"] for one in stream.findings if one.check == "token_id_out_of_range"]
    assert counts == [2, 2, 4, 32]


@pytest.mark.parametrize(("ids", "words"), [([1, 2, 500], "1 id or label in"), ([1, 501, 500], "2 ids or labels in")])
def test_ids_outside_the_vocabulary_are_counted_in_whole_words(ids: list[int], words: str, tmp_path: Path) -> None:
    (tmp_path / "batch.json").write_text(json.dumps({"input_ids": [[1, 2, 3], ids]}))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "vocab_size": 100}))
    answer = inspect_batch(tmp_path / "batch.json", model=tmp_path / "config.json")
    (found,) = [finding for finding in answer.findings if finding.check == "token_id_out_of_range"]
    assert words in found.summary
    assert (" is outside " if words.startswith("1 ") else " are outside ") in found.summary


@pytest.mark.parametrize(("positions", "severity"), [(False, "warning"), (True, None)])
def test_positions_restart_where_the_numbers_of_documents_change(
    positions: bool, severity: str | None, inspect: Inspect
) -> None:
    made = Maker("chatml")
    lengths = [len(row["input_ids"]) for row in made.rows()]
    numbers = np.repeat(np.arange(len(lengths)) + 1, lengths).tolist()
    batch = packed(made, positions) | {"segment_ids": [numbers]}
    assert inspect(batch, made.tokenizer, "sft").get("position_ids_wrong") == severity


def test_positions_run_on_over_the_two_segments_of_a_pair(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = packed(made, positions=False)
    length = len(batch["input_ids"][0])
    batch["segment_ids"] = [[0] * 9 + [1] * (length - 9)]
    assert "position_ids_wrong" not in inspect(batch, made.tokenizer, "sft")
