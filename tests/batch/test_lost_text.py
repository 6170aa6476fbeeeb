"""Text that a chat template or a tokenizer leaves out is named with its row; where answers are whole it is a fact."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import CHATML, TALK, Inspect, make_hf, tokenizer_of

from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.judge import inspect_batch

CONTENT = "m['content']"
INDENTED = "    a = 1\n    return a\n"


def chat(asked: object, said: object) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]}


def parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


@cache
def templated(content: str) -> Tokenizer:
    """Make a tokenizer whose template writes the content of messages by an expression of its own."""
    hf = make_hf("chatml")
    hf.chat_template = CHATML.replace(CONTENT, content)
    return Tokenizer(hf, "chatml")


@cache
def byte_level(kind: str) -> Tokenizer:
    """Make a byte-level tokenizer of a sample without most digits."""
    from tokenizers import Tokenizer as Fast
    from tokenizers import decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    unknown = "[UNK]" if kind == "with an unknown token" else None
    alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "with all bytes" else []
    fast = Fast(models.BPE(unk_token=unknown) if unknown else models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[unknown] if unknown else [], initial_alphabet=alphabet, show_progress=False
    )
    fast.train_from_iterator(["the cost was 12 dollars in may of 2011", "a sum of 30 dollars"] * 20, trainer)
    return Tokenizer(PreTrainedTokenizerFast(tokenizer_object=fast, unk_token=unknown), kind)


def summary_of(rows: list[dict[str, Any]], tokenizer: Tokenizer, check: str, folder: Path) -> str:
    file = folder / "rows.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    return next(finding.summary for finding in inspect_batch(file, tokenizer).findings if finding.check == check)


EMPTY = f"({CONTENT} if {CONTENT} is string else '')"


@pytest.mark.parametrize(("content", "seen"), [(EMPTY, "leaves out text"), (CONTENT, "writes the list of parts out")])
def test_answers_in_parts_that_are_not_rendered_are_named(content: str, seen: str, tmp_path: Path) -> None:
    rows = [chat(asked, parts(said) if number == 2 else said) for number, (asked, said) in enumerate(TALK)]
    said = summary_of(rows, templated(content), "message_parts_lost", tmp_path)
    assert seen in said
    assert TALK[2][1] in said
    assert said.endswith("in row 2")


def test_questions_in_parts_alone_are_a_fact(inspect: Inspect) -> None:
    assert inspect([chat(parts(asked), said) for asked, said in TALK], templated(EMPTY))["message_parts_lost"] == "info"
    assert inspect([chat(parts(a), parts(b)) for a, b in TALK], templated(EMPTY))["message_parts_lost"] == "warning"


def test_parts_that_a_template_reads_are_whole(inspect: Inspect) -> None:
    reads = f"({CONTENT} if {CONTENT} is string else {CONTENT}[0]['text'])"
    found = inspect([chat(parts(asked), parts(said)) for asked, said in TALK], templated(reads))
    assert "message_parts_lost" not in found


def test_a_first_indent_that_the_template_trims_is_named(tmp_path: Path) -> None:
    rows = [chat(asked, INDENTED if number == 1 else said) for number, (asked, said) in enumerate(TALK)]
    said = summary_of(rows, templated(f"{CONTENT} | trim"), "first_indent_lost", tmp_path)
    assert "'    a = 1' becomes 'a = 1'" in said
    assert said.endswith("in row 1")


@pytest.mark.parametrize(
    ("rows", "severity"),
    [
        ([chat(asked, INDENTED) for asked, _ in TALK], "warning"),
        ([{"prompt": [chat(asked, "")["messages"][0]], "completion": [chat("", INDENTED)["messages"][1]]}
          for asked, _ in TALK], "warning"),
        ([{"instruction": asked, "output": INDENTED} for asked, _ in TALK], "warning"),
        ([chat(INDENTED, said) for _, said in TALK], "info"),
        ([chat(asked, f"  {said}\n") for asked, said in TALK], None),
        ([chat(asked, "  a = 1\nreturn a") for asked, _ in TALK], None),
        ([chat(asked, "\n\na = 1\n    return a") for asked, _ in TALK], None),
    ],
)  # fmt: skip
def test_an_indent_counts_where_lines_below_have_one(
    rows: list[dict[str, Any]], severity: str | None, inspect: Inspect
) -> None:
    assert inspect(rows, templated(f"{CONTENT} | trim")).get("first_indent_lost") == severity
    assert "first_indent_lost" not in inspect(rows, tokenizer_of("chatml"))


def test_characters_that_become_no_token_are_named(tmp_path: Path) -> None:
    rows = [{"text": text} for text in ("a sum of 30 dollars", "in may a sum of 5987 dollars", "the cost was 12")]
    said = summary_of(rows, byte_level("plain"), "characters_without_token", tmp_path)
    assert "no token for '5', '7', '8', '9'" in said
    assert "'in may a sum of 5987 dollars' becomes 'in may a sum of  dollars'" in said
    assert said.endswith("in row 1")


@pytest.mark.parametrize(
    ("row", "severity"),
    [
        (lambda text: {"text": text}, "warning"),
        (lambda text: {"prompt": "the sum", "completion": text}, "warning"),
        (lambda text: {"prompt": text, "completion": " the sum"}, "info"),
        (lambda text: {"text": "a sum", "source": text}, None),
    ],
)
def test_characters_lost_of_prompts_are_a_fact(
    row: Callable[[str], dict[str, str]], severity: str | None, inspect: Inspect
) -> None:
    rows = [row(f"cost {number} dollars") for number in range(40, 60)]
    assert inspect(rows, byte_level("plain")).get("characters_without_token") == severity


@pytest.mark.parametrize("kind", ["with all bytes", "with an unknown token"])
def test_characters_that_have_tokens_or_an_unknown_one_are_not_lost(kind: str, inspect: Inspect) -> None:
    rows = [{"text": f"cost {number} dollars, é"} for number in range(40, 60)]
    assert "characters_without_token" not in inspect(rows, byte_level(kind))


def test_a_tokenizer_that_changes_characters_loses_none(inspect: Inspect) -> None:
    from tokenizers import Tokenizer as Fast
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    fast = Fast(models.WordPiece(unk_token="[UNK]"))
    fast.normalizer = normalizers.BertNormalizer(lowercase=True)
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False)
    fast.train_from_iterator(["the cafe was open", "a naive idea"] * 20, trainer)
    tokenizer = Tokenizer(PreTrainedTokenizerFast(tokenizer_object=fast, unk_token="[UNK]"), "lower case")
    rows = [{"text": f"The Café\u200b was naïve, №{number}\u0301"} for number in range(8)]
    assert "characters_without_token" not in inspect(rows, tokenizer)
