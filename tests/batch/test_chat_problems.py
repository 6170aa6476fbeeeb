"""Conversations and pairs as they are written: questions that differ, calls of tools, images."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.batch.kit import Inspect, tokenizer_of
from tests.batch.test_text_without_tokenizer import chats, sentence

SYSTEM = {"role": "system", "content": "You are a helpful assistant who answers briefly."}


def pair(number: int, *, asked_apart: bool) -> dict[str, Any]:
    def side(question: int, answer: int) -> list[dict[str, str]]:
        asked, said = sentence(question), sentence(answer)
        return [SYSTEM, {"role": "user", "content": asked}, {"role": "assistant", "content": said}]

    return {"chosen": side(number, number + 40), "rejected": side(number + 9 * asked_apart, number + 70)}


@pytest.mark.parametrize("family", [None, "chatml"])
def test_pairs_that_share_only_a_system_turn_lack_their_prompt(family: str | None, inspect: Inspect) -> None:
    tokenizer = None if family is None else tokenizer_of(family)
    assert inspect([pair(n, asked_apart=False) for n in range(20)], tokenizer) == {}
    assert "prompt_missing" in inspect([pair(n, asked_apart=True) for n in range(20)], tokenizer)


def test_pairs_of_one_text_that_share_only_a_marker_lack_their_prompt(inspect: Inspect) -> None:
    def one(number: int, question: int) -> dict[str, str]:
        texts = (f"\n\nHuman: {sentence(asked)}\n\nAssistant: " for asked in (number, question))
        chosen, rejected = (text + sentence(number + more) for text, more in zip(texts, (40, 70), strict=True))
        return {"chosen": chosen, "rejected": rejected}

    assert inspect([one(n, n) for n in range(20)]) == {}
    assert "prompt_missing" in inspect([one(n, n + 9) for n in range(20)])


def calling(number: int, arguments: object, answered: str = "call_1") -> dict[str, Any]:
    function = {"name": "forecast", "arguments": arguments}
    call = {"id": "call_1", "type": "function", "function": function}
    return {
        "messages": [
            {"role": "user", "content": sentence(number)},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": answered, "content": json.dumps({"rain": number})},
            {"role": "assistant", "content": sentence(number + 40)},
        ]
    }


def test_calls_with_broken_arguments_and_results_without_a_call_are_seen(inspect: Inspect) -> None:
    good = [calling(n, json.dumps({"city": f"Graz {n}"})) for n in range(12)]
    assert inspect(good) == {}
    assert inspect([calling(n, {"city": f"Graz {n}"}) for n in range(12)]) == {}
    assert inspect([*good[:-1], calling(11, "{'city': 'Graz'}")]) == {"tool_call_invalid": "warning"}
    assert inspect([*good[:-1], calling(11, "{}", answered="call_7")]) == {"tool_call_invalid": "warning"}


def test_images_that_the_text_does_not_place_are_seen(inspect: Inspect) -> None:
    def rows(placed: int) -> list[dict[str, Any]]:
        found = chats()
        for number, row in enumerate(found):
            row["images"] = [f"{number}.jpg"]
            if number < placed:
                row["messages"][0]["content"] = "<image>\n" + row["messages"][0]["content"]
        return found

    assert inspect(rows(12)) == {}
    assert inspect(rows(10)) == {"image_tokens_truncated": "error"}
    assert inspect(rows(0)) == {}
