"""Text that is wrong as it was written: garbled, cut off, with roles exchanged, or with markers inside."""

from __future__ import annotations

from typing import Any

import pytest
from tests.batch.kit import Inspect, tokenizer_of
from tests.batch.test_text_without_tokenizer import chats, pairs, sentence

REAL = (
    "Zoë said: “café — naïve”…",
    "Привет, как дела?",
    "今日は。",
    "SÃO PAULO fica no Brasil",
    "fini…”, dit-elle é…»",
)


def said(row: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = row["messages"][-1]
    return answer


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
@pytest.mark.parametrize("text", ["un café à Orléans", "it’s “fine”", "Привет, мир", "天気が良いので", "well done 🙂"])
def test_text_read_with_another_encoding_is_seen(encoding: str, text: str, inspect: Inspect) -> None:
    rows = chats()
    said(rows[3])["content"] += " " + text.encode().decode(encoding, "replace" if encoding == "cp1252" else "strict")
    assert inspect(rows) == {"garbled_text": "warning"}


@pytest.mark.parametrize("text", REAL)
def test_text_of_any_language_is_not_garbled(text: str, inspect: Inspect) -> None:
    rows = chats()
    for row in rows:
        said(row)["content"] += f" {text}"
    assert inspect(rows) == {}


def test_one_garbled_row_in_many_is_only_remarked(inspect: Inspect) -> None:
    rows = [{"text": f"{sentence(n, 40)} {n}"} for n in range(200)]
    rows[7]["text"] += " cafÃ©"
    assert inspect(rows) == {"garbled_text": "info"}


def test_reasoning_that_is_never_closed_is_a_cut_off_answer(inspect: Inspect) -> None:
    rows = chats()
    for row in rows:
        said(row)["content"] = f"<think>\n{sentence(1)}\n</think>\n{said(row)['content']}"
    assert inspect(rows) == {}
    said(rows[2])["content"] = f"<think>\n{sentence(2)}"
    assert inspect(rows) == {"truncated_completion": "warning"}
    opened = chats()
    said(opened[2])["content"] = "<think>\n"
    assert inspect(opened) == {}
    mentioned = chats()
    said(mentioned[2])["content"] += " Write <think> before you reason."
    assert inspect(mentioned) == {}


def test_a_rejected_answer_may_break_off(inspect: Inspect) -> None:
    rows = pairs()
    for row in rows:
        row["rejected"] = f"<think> {row['rejected']}"
    assert inspect(rows) == {}
    rows[4]["chosen"] = f"<think> {row['chosen']}"
    assert inspect(rows) == {"truncated_completion": "warning"}


def test_conversations_whose_roles_are_exchanged_are_seen(inspect: Inspect) -> None:
    other = {"user": "assistant", "assistant": "user"}
    exchanged = [
        {"messages": [message | {"role": other[message["role"]]} for message in row["messages"]]} for row in chats()
    ]
    assert inspect(exchanged) == {"wrong_role_in_loss": "warning"}
    greeted = [{"messages": [{"role": "assistant", "content": sentence(1)}, *row["messages"]]} for row in chats()]
    assert inspect(greeted) == {}
    assert inspect([*exchanged[:3], *chats(30)[3:]]) == {"wrong_role_in_loss": "info"}


def test_prompts_that_end_with_their_answers_are_seen(inspect: Inspect) -> None:
    rows = [{"prompt": f"{sentence(n)} Answer: {sentence(n + 50)}", "completion": sentence(n + 50)} for n in range(9)]
    assert inspect(rows) == {"target_equals_source": "warning"}
    talk = [
        {"messages": [{"role": "user", "content": row["prompt"]}, {"role": "assistant", "content": row["completion"]}]}
        for row in rows
    ]
    assert inspect(talk) == {"target_equals_source": "warning"}


def test_some_prompts_that_end_with_long_answers_are_seen_and_texts_to_correct_are_none(inspect: Inspect) -> None:
    rows = [{"instruction": sentence(n), "input": "", "output": sentence(n + 50, 12)} for n in range(40)]
    assert inspect(rows) == {}
    leaked = [row | {"input": f"Text: {row['output']}"} if n % 5 == 0 else row for n, row in enumerate(rows)]
    assert inspect(leaked) == {"target_equals_source": "warning"}
    wrong = [row | {"input": f"Text: {row['output']}" + " so" * (n % 5 > 0)} for n, row in enumerate(rows)]
    assert inspect(wrong) == {}


def test_answers_found_in_a_passage_or_among_options_are_no_leak(inspect: Inspect) -> None:
    found = [{"prompt": f"{sentence(n + 50)} {sentence(n)}", "completion": sentence(n + 50)} for n in range(9)]
    assert inspect(found) == {}
    chosen = [{"prompt": f"{sentence(n)} {n} yes or no", "completion": ["yes", "no"][n % 2]} for n in range(20)]
    assert "target_equals_source" not in inspect(chosen)


def test_a_second_message_of_the_assistant_begins_no_document(inspect: Inspect) -> None:
    rows = chats()
    for row in rows[:3]:
        row["messages"].append({"role": "assistant", "content": sentence(7)})
    assert inspect(rows) == {}
    assert "packing_without_position_reset" not in inspect(rows, tokenizer_of("phi3"))


@pytest.mark.parametrize("asked", ["[INST] {} [/INST]", "<|im_start|>user\n{}", "<start_of_turn>user\n{}"])
@pytest.mark.parametrize("family", [None, "llama3", "chatml"])
def test_turns_that_carry_markers_were_rendered_before(family: str | None, asked: str, inspect: Inspect) -> None:
    tokenizer = None if family is None else tokenizer_of(family)
    rows = chats()
    for row in rows:
        row["messages"][0]["content"] = asked.format(row["messages"][0]["content"])
    assert inspect(rows, tokenizer)["chat_template_mismatch"] == "error"
    assert "chat_template_mismatch" not in inspect([rows[0], *chats()[1:]], tokenizer)


def test_answers_that_end_at_one_number_of_characters_were_cut(inspect: Inspect) -> None:
    long = [{"instruction": sentence(n), "output": f"{n} {sentence(n, 60 + n % 7)}"} for n in range(40)]
    assert inspect(long) == {}
    assert inspect([row | {"output": row["output"][:300]} for row in long]) == {"truncated_completion": "warning"}
    assert inspect([row | {"output": row["output"][:299] + "."} for row in long]) == {}
    assert inspect([row | {"output": row["output"][:20]} for row in long]) == {}


def test_rollouts_whose_advantages_are_all_zero_are_seen(inspect: Inspect) -> None:
    def rollouts(advantage: float, reward: float = 1.0) -> list[dict[str, Any]]:
        rows = [{"prompt": sentence(n // 4), "completion": f"{n} {sentence(n + 9)}"} for n in range(16)]
        return [row | {"reward": 1.0, "advantage": 0.0} for row in rows[:-1]] + [
            rows[-1] | {"reward": reward, "advantage": advantage}
        ]

    assert inspect(rollouts(0.0)) == {"advantages_zero": "error"}
    assert inspect(rollouts(0.5)) == {}
    assert inspect(rollouts(0.5, reward=float("nan"))) == {"nonfinite_values": "error"}


@pytest.mark.parametrize(("reward", "severity"), [(0.0, "error"), (-1.0, "error"), (1.0, None)])
def test_rollouts_of_which_none_is_rewarded_are_seen(reward: float, severity: str | None, inspect: Inspect) -> None:
    rows = [{"prompt": sentence(n // 8), "completion": f"{n} {sentence(n + 9)}", "reward": reward} for n in range(64)]
    assert inspect(rows).get("advantages_zero") == severity
    assert inspect([*rows[:-1], rows[-1] | {"reward": 0.5}]).get("advantages_zero") is None
    assert inspect(rows[:8]).get("advantages_zero") is None


def test_rollouts_that_come_out_alike_are_remarked(inspect: Inspect) -> None:
    rows = [{"prompt": sentence(n // 8), "completion": sentence(n // 2 + 9)} for n in range(64)]
    assert inspect(rows)["duplicate_rows"] == "warning"
    assert inspect([row | {"reward": float(n % 2)} for n, row in enumerate(rows)])["duplicate_rows"] == "info"


@pytest.mark.parametrize(("reward", "severity"), [(0.0, "warning"), (0.5, None)])
def test_rollouts_of_a_source_of_which_none_is_rewarded_are_seen(
    reward: float, severity: str | None, inspect: Inspect
) -> None:
    rows = [
        {
            "prompt": sentence(n),
            "answer": str(n),
            "rewards": [float((n + k) % 3 == 0) for k in range(8)],
            "source": "math",
        }
        for n in range(8)
    ]
    rows += [row | {"rewards": [0.0] * 7 + [reward * (n == 0)], "source": "code"} for n, row in enumerate(rows)]
    assert inspect(rows).get("advantages_zero") == severity
