"""Text inside lists and objects as columns of text: words with a tag each, as of CoNLL; translations by language."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mldebug_mcp.batch.table import Column, Table
from mldebug_mcp.text import shorten

LOOKED_AT = 100


def with_plain_texts(table: Table) -> Table:
    """Return the table with lists of words joined, and objects of texts as one column for each of their names."""
    columns: dict[str, Column] = {}
    notes: list[str] = []
    for name, column in table.columns.items():
        values = [value for value in column[:LOOKED_AT] if value] if isinstance(column, list) else []
        if _all_words(values):
            columns[name if name != "tokens" else "words"] = [_joined(value) for value in cast("list[object]", column)]
            notes.append(f"joined the texts in each list of {shorten(name, 40)}; tags beside them were not checked")
        elif languages := _shared_names(values):
            for language in languages:
                columns[f"{name}.{language}"] = [_text(value, language) for value in cast("list[object]", column)]
        else:
            columns[name] = column
    return replace(table, columns=columns, notes=[*table.notes, *notes])


def _all_words(values: list[object]) -> bool:
    return bool(values) and all(
        isinstance(value, list) and all(isinstance(word, str) for word in value) for value in values
    )


def _shared_names(values: list[object]) -> tuple[str, ...]:
    """Return the names under which every one of these objects holds a text, if they hold nothing else."""
    first = values[0] if values else None
    if not isinstance(first, dict) or not all(
        isinstance(value, dict) and value.keys() == first.keys() and all(isinstance(one, str) for one in value.values())
        for value in values
    ):
        return ()
    return tuple(map(str, first))


def _joined(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else ""


def _text(value: object, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
