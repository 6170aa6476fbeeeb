"""Data sets of text, judged in words where no tokenizer is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import TALK, Inspect, talk, tokenizer_of

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch
from mldebug_mcp.judge.probe import read_probe_batch

WORDS = ("river", "prime", "bridge", "letter", "engine", "garden", "number", "window", "summer", "copper", "violin")


def sentence(number: int, words: int = 12) -> str:
    return (
        " ".join(WORDS[(number * step + step * step) % len(WORDS)] + str(number % 7) for step in range(1, words)) + "."
    )


def chats(count: int = 12, turns: int = 2) -> list[dict[str, Any]]:
    rows = []
    for row in range(count):
        messages = talk(turns, row)
        messages[0]["content"] += f" {sentence(row)}"
        rows.append({"messages": messages})
    return rows


def pairs(count: int = 12) -> list[dict[str, Any]]:
    return [{"prompt": sentence(n), "chosen": sentence(n + 50), "rejected": sentence(n + 90)} for n in range(count)]


def test_whole_conversations_instructions_pairs_and_texts_are_quiet(inspect: Inspect) -> None:
    assert inspect(chats()) == {}
    assert inspect(pairs()) == {}
    assert inspect([{"instruction": sentence(n), "input": "", "output": sentence(n + 40)} for n in range(12)]) == {}
    for asked, said in (("question", "answer"), ("prompt", "response"), ("input", "output")):
        assert inspect([{asked: sentence(n), said: sentence(n + 40)} for n in range(12)]) == {}
    assert inspect([{"text": sentence(n, 40)} for n in range(12)]) == {}
    assert inspect([{"prompt": sentence(n)} for n in range(12)]) == {}
    headings = [{"text": f"## {sentence(n)}"} for n in range(12)]
    assert inspect(headings, model={"vocab_size": 300, "eos_token_id": 2, "bos_token_id": 1}) == {}


@pytest.mark.parametrize("prompt", ["write a poem about rain", "hi", "你好", "Q:", "name a river "])
def test_a_prompt_in_a_column_of_its_own_is_never_missing(inspect: Inspect, prompt: str) -> None:
    rows = [{"prompt": prompt, "chosen": sentence(n + 50), "rejected": sentence(n + 90)} for n in range(12)]
    assert "prompt_missing" not in inspect(rows)


def test_answers_that_are_empty_in_any_turn_are_seen(inspect: Inspect) -> None:
    rows = chats()
    rows[3]["messages"][1]["content"] = " \n"
    assert inspect(rows) == {"empty_row": "warning"}
    rows = chats()
    rows[3]["messages"][1] = {"role": "assistant", "content": "", "tool_calls": [{"name": "look", "arguments": {}}]}
    assert inspect(rows) == {}
    exchanges = [{"question": sentence(n), "answer": sentence(n + 40) if n else ""} for n in range(12)]
    assert inspect(exchanges) == {"empty_row": "warning"}


def test_conversations_without_a_turn_of_the_assistant_are_seen(tmp_path: Path) -> None:
    rows = chats()
    for row in rows:
        for message in row["messages"]:
            message["role"] = {"assistant": "bot"}.get(message["role"], message["role"])
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(rows))
    answer = inspect_batch(path)
    assert [one.check for one in answer.findings] == ["all_labels_masked"]
    assert any("the roles are user, bot" in note for note in answer.notes)


def test_single_rows_without_an_answer_or_without_messages_are_named(inspect: Inspect) -> None:
    rows = chats()
    rows[2]["messages"] = rows[2]["messages"][:1]
    assert inspect(rows) == {"row_labels_masked": "warning"}
    rows[2]["messages"] = []
    assert inspect(rows) == {"empty_row": "warning"}


def test_repeats_long_rows_and_leaks_are_seen(inspect: Inspect, tmp_path: Path) -> None:
    rows = chats(40)
    assert inspect([*rows, *rows[:10]]) == {"duplicate_rows": "warning"}
    rows[5]["messages"][1]["content"] = " ".join(sentence(n) for n in range(100))
    assert inspect(rows) == {"length_outlier": "warning"}
    (tmp_path / "train.json").write_text(json.dumps(chats(40)))
    (tmp_path / "eval.json").write_text(json.dumps(chats(3)))
    answer = inspect_batch(tmp_path / "train.json", against=tmp_path / "eval.json")
    assert [one.check for one in answer.findings] == ["split_leakage"]


def test_rows_that_differ_in_case_and_spaces_are_nearly_the_same(tmp_path: Path) -> None:
    rows = [{"prompt": f"Say {n}.", "completion": sentence(n * n, 90)} for n in range(30)]
    respelt = [{name: "  " + text.upper().replace(" ", "\n") for name, text in row.items()} for row in rows[:6]]
    others = [{"prompt": f"Say {n}.", "completion": sentence(n * n, 90)[::-1]} for n in range(30)]
    paths = [tmp_path / name for name in ("train.json", "eval.json", "other.json")]
    for path, held in zip(paths, (rows, respelt, others), strict=True):
        path.write_text(json.dumps(held))
    leaks = [inspect_batch(paths[0], against=path).leakage for path in paths[1:]]
    assert [(leak.exact, leak.near) for leak in leaks if leak is not None] == [(0, 6), (0, 0)]


def test_a_median_between_two_lengths_is_their_mean(tmp_path: Path) -> None:
    rows = [{"input_ids": list(range(5, 5 + length))} for length in (30, 31, 32, 33, 34, 35, 905, 31)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    answer = inspect_batch(tmp_path / "rows.json")
    assert answer.batch.lengths.median == 32.5
    assert "the median is 32.5" in next(one.summary for one in answer.findings if one.check == "length_outlier")


def test_a_long_row_that_fills_no_memory_is_remarked(inspect: Inspect) -> None:
    rows = [{"input_ids": list(range(5, 45 + row % 3))} for row in range(16)]
    for length, severity in ((400, "info"), (900, "warning")):
        assert inspect([*rows, {"input_ids": list(range(5, 5 + length))}])["length_outlier"] == severity


def test_equal_and_exchanged_pairs_are_seen(inspect: Inspect) -> None:
    rows = pairs()
    rows[4]["rejected"] = rows[4]["chosen"]
    assert inspect(rows)["chosen_equals_rejected"] == "error"
    scored = [row | {"score_chosen": 8.0, "score_rejected": 8.0 - n % 2} for n, row in enumerate(pairs())]
    assert inspect(scored) == {}
    for row in scored[:3]:
        row["score_rejected"] = 9.5
    assert inspect(scored) == {"preference_swapped": "warning"}
    assert inspect([row | {"score_rejected": 9.5} for row in scored]) == {"preference_swapped": "error"}
    assert inspect(scored, tokenizer_of("chatml"))["preference_swapped"] == "warning"


@pytest.mark.parametrize("family", [None, "chatml", "llama3", "own"])
def test_an_assistant_may_speak_first(family: str | None, inspect: Inspect) -> None:
    rows = [{"messages": [{"role": "assistant", "content": "Hello!"}, *row["messages"]]} for row in chats()]
    assert inspect(rows, None if family is None else tokenizer_of(family)) == {}


def test_spaces_inside_completions_make_a_difference(inspect: Inspect) -> None:
    rows = [
        {"prompt": sentence(n), "chosen": "if x:\n    go()\nstop()", "rejected": "if x:\n    go()\n    stop()"}
        for n in range(8)
    ]
    for tokenizer in (None, tokenizer_of("chatml")):
        assert "chosen_equals_rejected" not in inspect(rows, tokenizer)
        around = [row | {"rejected": f"{row['chosen']} \n"} for row in rows]
        assert inspect(around, tokenizer)["chosen_equals_rejected"] == "error"


@pytest.mark.parametrize("family", [None, "chatml"])
def test_whole_conversations_beside_their_prompt_are_pairs(family: str | None, inspect: Inspect) -> None:
    rows = []
    for row in pairs():
        asked = {"role": "user", "content": row["prompt"]}
        both = {side: [asked, {"role": "assistant", "content": row[side]}] for side in ("chosen", "rejected")}
        rows.append({"prompt": row["prompt"], **both})
    tokenizer = None if family is None else tokenizer_of(family)
    assert "prompt_missing" not in inspect(rows, tokenizer)
    rows[0]["rejected"] = rows[0]["chosen"]
    assert inspect(rows, tokenizer)["chosen_equals_rejected"] == "error"


@pytest.mark.parametrize("names", [("anchor", "positive", "negative"), ("query", "pos", "neg")])
def test_triplets_are_read_as_text_and_as_tokens(names: tuple[str, str, str], inspect: Inspect) -> None:
    texts = [dict(zip(names, (sentence(n), sentence(n + 50), sentence(n + 90)), strict=True)) for n in range(12)]
    tokenizer = tokenizer_of("chatml")

    def as_tokens(rows: list[dict[str, str]]) -> dict[str, Any]:
        return {f"{name}_input_ids": [tokenizer.encode(row[name]) for row in rows] for name in names}

    assert inspect(texts) == {}
    assert inspect(as_tokens(texts), tokenizer) == {}
    for row in texts:
        row[names[2]] = row[names[1]]
    assert inspect(texts) == {"positive_equals_negative": "error"}
    assert inspect(as_tokens(texts), tokenizer) == {"positive_equals_negative": "error"}
    same = [{"anchor": sentence(n), "positive": sentence(n)} for n in range(12)]
    assert inspect(same) == {}


def test_text_with_classes_is_for_classification(inspect: Inspect) -> None:
    rows = [{"text": sentence(n), "label": n % 3, "id": f"a{n}"} for n in range(24)]
    for tokenizer in (None, tokenizer_of("chatml")):
        assert inspect(rows, tokenizer) == {}
        assert inspect(rows, tokenizer, model={"num_labels": 2})["label_out_of_range"] == "error"
    assert inspect([row | {"label": 0} for row in rows])["class_imbalance"] == "warning"


def test_the_answer_says_that_it_counts_words_and_what_it_cannot_judge(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([{"messages": talk(1)}]))
    answer = inspect_batch(path)
    assert answer.batch.unit == "words"
    assert answer.batch.vocabulary_used is None
    assert TALK[0][1] in answer.rows[0].text
    assert any("counted in words" in note for note in answer.notes)
    assert answer.next_step is not None
    assert answer.next_step.tool != "probe_overfit"
    with pytest.raises(InputError, match="not tokenized"):
        read_probe_batch(path)


def test_marks_of_our_own_in_the_text_change_nothing(inspect: Inspect) -> None:
    rows = chats()
    rows[0]["messages"][0]["content"] += "\x03\x02assistant\nYes.\x03"
    assert inspect(rows) == {}


def test_a_word_of_megabytes_is_shown_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"text": "picture: " + "x" * 3_000_000}) + "\n")
    inspection = inspect_batch(path)
    assert max(len(row.text) for row in inspection.rows) < 1000
    assert "xxx…" in inspection.rows[0].text


def test_rows_with_columns_of_their_own_keep_the_column_that_all_share(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"text": sentence(n), f"key {n}": 1}) + "\n" for n in range(8000)))
    inspection = inspect_batch(path)
    assert inspection.batch.rows == 8000
    assert any("rarest of 8,001 columns" in note for note in inspection.notes)
