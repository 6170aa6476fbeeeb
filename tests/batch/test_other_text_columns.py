"""Tables of text whose columns have names that no trainer knows, and classes that have names."""

from __future__ import annotations

from typing import Any

import pytest
from tests.batch.kit import Inspect, tokenizer_of
from tests.batch.test_text_without_tokenizer import sentence

from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.core.errors import InputError

COUNT = 24
ROWS: dict[str, Any] = {
    "search": lambda n: {"query": sentence(n, 5), "document": sentence(n + 50)},
    "summaries": lambda n: {"article": sentence(n, 40), "highlights": sentence(n, 6)},
    "inference": lambda n: {"premise": sentence(n), "hypothesis": sentence(n + 50), "label": n % 3},
    "reviews": lambda n: {"review": sentence(n), "sentiment": ("positive", "negative")[n % 2]},
    "speech": lambda n: {"path": f"clips/{n}.wav", "sentence": sentence(n)},
    "languages": lambda n: {"translation": {"en": sentence(n), "de": sentence(n + 50)}},
    "tagged": lambda n: {"tokens": sentence(n).split(), "ner_tags": [n % 2] * 11},
    "problems": lambda n: {"problem": sentence(n), "solution": sentence(n + 50)},
    "chinese": lambda n: {"source": f"今天天气很好{n}", "target": sentence(n)},
}


@pytest.mark.parametrize("family", [None, "chatml"])
@pytest.mark.parametrize("name", ROWS)
def test_tables_of_text_are_read_and_repeats_seen(inspect: Inspect, name: str, family: str | None) -> None:
    tokenizer: Tokenizer | None = tokenizer_of(family) if family else None
    rows = [ROWS[name](number) for number in range(COUNT)]
    assert inspect(rows, tokenizer) == {}
    assert inspect([*rows, *rows[:6]], tokenizer) == {"duplicate_rows": "warning"}


@pytest.mark.parametrize("name", ["search", "summaries", "reviews", "speech"])
def test_empty_texts_are_seen_in_any_column(inspect: Inspect, name: str) -> None:
    rows = [ROWS[name](number) for number in range(COUNT)]
    column = list(rows[0])[0 if name == "reviews" else 1]
    rows[3][column] = " "
    assert inspect(rows) == {"empty_row": "warning"}


def test_the_same_text_beside_another_file_is_no_repeat(inspect: Inspect) -> None:
    rows = [{"path": f"clips/{n}.wav", "sentence": sentence(n % 12)} for n in range(COUNT)]
    assert inspect(rows) == {}


def test_a_number_of_the_row_does_not_hide_a_repeat(inspect: Inspect) -> None:
    rows = [{"idx": n, "query": sentence(n % 12), "document": sentence(n % 12 + 50)} for n in range(COUNT)]
    assert inspect(rows) == {"duplicate_rows": "warning"}


def test_classes_by_name_are_counted(inspect: Inspect) -> None:
    rows = [{"text": sentence(n) + f" {n}", "label": "spam" if n % 20 == 0 else "ham"} for n in range(60)]
    assert inspect(rows) == {"class_imbalance": "warning"}
    even = [{"text": sentence(n) + f" {n}", "label": "spam" if n % 2 else "ham"} for n in range(60)]
    assert inspect(even, model={"num_labels": 2}) == {}


def test_names_in_a_table_of_measurements_are_no_text(inspect: Inspect) -> None:
    rows = [{"name": sentence(n, 4), "age": n * 0.1 - 1.2, "fare": 1.1 - n * 0.09} for n in range(COUNT)]
    assert inspect(rows) == {}


def test_a_table_without_text_is_still_refused(inspect: Inspect) -> None:
    with pytest.raises(InputError, match="none of its columns"):
        inspect([{"path": f"clips/{n}.wav", "split": "train"} for n in range(COUNT)])
