"""What a chat template or a pair of texts loses, and what a collator of the purpose does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import Inspect, Maker, tokenizer_of
from tests.batch.test_text_without_tokenizer import sentence

from mldebug_mcp.judge import inspect_batch


def calling(number: int) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": "get_weather", "arguments": {"city": f"Graz {number}"}}}
    return {
        "messages": [
            {"role": "user", "content": sentence(number)},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": f"sunny {number}"},
            {"role": "assistant", "content": sentence(number + 40)},
        ]
    }


def chat(number: int, answer: str) -> dict[str, Any]:
    turns = [(sentence(number), answer), (sentence(number + 20), sentence(number + 60))]
    return {
        "messages": [
            message
            for asked, said in turns
            for message in ({"role": "user", "content": asked}, {"role": "assistant", "content": said})
        ]
    }


def test_tool_calls_that_the_template_leaves_out_are_seen(inspect: Inspect) -> None:
    found = inspect([calling(n) for n in range(12)], tokenizer_of("chatml"))
    assert found["tool_calls_dropped"] == "error"
    assert "tool_calls_dropped" not in inspect([chat(n, sentence(n + 40)) for n in range(12)], tokenizer_of("chatml"))


def test_calls_in_the_older_form_and_in_a_column_of_completions_are_seen(inspect: Inspect) -> None:
    def older(row: dict[str, Any]) -> dict[str, Any]:
        asked, call, *rest = row["messages"]
        function = call["tool_calls"][0]["function"]
        return {"messages": [asked, {"role": "assistant", "content": "", "function_call": function}, *rest]}

    rows = [calling(n) for n in range(12)]
    parted = [{"prompt": row["messages"][:1], "completion": row["messages"][1:]} for row in rows]

    assert "tool_calls_dropped" in inspect([older(row) for row in rows], tokenizer_of("chatml"))
    assert "tool_calls_dropped" in inspect(parted, tokenizer_of("chatml"))


@pytest.mark.parametrize("family", [None, "chatml"])
def test_an_empty_turn_of_the_assistant_is_seen_with_and_without_a_tokenizer(
    family: str | None, inspect: Inspect
) -> None:
    tokenizer = None if family is None else tokenizer_of(family)
    rows = [chat(n, "" if n == 3 else sentence(n + 40)) for n in range(12)]
    assert "empty_row" in inspect(rows, tokenizer)


@pytest.mark.parametrize("family", [None, "chatml"])
def test_empty_blocks_of_reasoning_are_seen(family: str | None, inspect: Inspect) -> None:
    tokenizer = None if family is None else tokenizer_of(family)

    def thinking(number: int, thought: str) -> dict[str, Any]:
        answer = f"<think>{thought}</think>{sentence(number + 40)}"
        return {"messages": [*chat(number, "x")["messages"][:1], {"role": "assistant", "content": answer}]}

    assert inspect([thinking(n, "\n\n") for n in range(12)], tokenizer)["empty_thinking"] == "warning"
    assert "empty_thinking" not in inspect([thinking(n, sentence(n + 20)) for n in range(12)], tokenizer)


def test_an_empty_turn_in_parts_is_seen(inspect: Inspect) -> None:
    rows = [chat(n, sentence(n + 40)) for n in range(12)]
    rows[3]["messages"][1]["content"] = [{"type": "text", "text": ""}]

    assert "empty_row" in inspect(rows, tokenizer_of("chatml"))


@pytest.mark.parametrize(("share", "found"), [(0.0, True), (0.3, False)])
def test_empty_blocks_of_reasoning_are_seen_in_tokens_and_in_completions(
    share: float, found: bool, inspect: Inspect
) -> None:
    tokenizer = tokenizer_of("chatml")
    answers = [f"<think>{sentence(n) if n < 12 * share else ''}</think>{sentence(n + 40)}" for n in range(12)]
    ids = [tokenizer.encode(answer, special=False) for answer in answers]

    written = inspect([{"prompt": sentence(n), "completion": answer} for n, answer in enumerate(answers)])
    made = inspect([{"input_ids": row, "labels": row} for row in ids], tokenizer, "sft")

    assert ("empty_thinking" in written, "empty_thinking" in made) == (found, found)


def test_a_template_without_generation_marks_is_named_where_nothing_is_trained_on(tmp_path: Path) -> None:
    said = []
    for family in ("chatml", "llama3"):
        maker = Maker(family)
        batch = maker.batch()
        path = tmp_path / f"{family}.json"
        path.write_text(json.dumps({**batch, "labels": [[-100] * len(row) for row in batch["labels"]]}))
        said += [one.summary for one in inspect_batch(path, maker.tokenizer).findings]

    assert ["{% generation %}" in summary for summary in said] == [False, True]


def pairs(*, positive: str = "", same: int = 0) -> list[dict[str, str]]:
    rows = [{"anchor": sentence(n), "positive": positive or sentence(n + 100)} for n in range(40)]
    return [row | {"positive": row["anchor"]} if place < same else row for place, row in enumerate(rows)]


def test_pairs_that_share_one_positive_are_seen(inspect: Inspect) -> None:
    assert inspect(pairs(positive="the one document"))["positives_shared"] == "warning"
    assert inspect(pairs()) == {}


def test_anchors_that_are_their_own_positive_are_seen(inspect: Inspect) -> None:
    assert inspect(pairs(same=5))["anchor_equals_positive"] == "warning"


def test_equal_pairs_throughout_are_as_in_simcse(inspect: Inspect) -> None:
    assert inspect(pairs(same=40)) == {}


def test_corner_boxes_where_centre_and_size_are_wanted_are_seen(inspect: Inspect) -> None:
    centre = [[0.2 + n / 12, 0.3 + n / 20, 0.2, 0.3] for n in range(8)]
    corners = [[x - w / 2, y - h / 2, x + w / 2, y + h / 2] for x, y, w, h in centre]

    def batch(boxes: list[list[float]]) -> dict[str, Any]:
        labels = [{"boxes": [box], "class_labels": [place % 3]} for place, box in enumerate(boxes)]
        return {"pixel_values": [[[[0.1 * n, 0.5]]] for n in range(8)], "labels": labels}

    assert "box_out_of_range" not in inspect(batch(centre))
    assert "box_out_of_range" in inspect(batch(corners))
