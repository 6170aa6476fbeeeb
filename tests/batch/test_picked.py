"""Rows picked by their numbers are the same rows in every format, in parts or not."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mldebug_mcp import inspect_batch
from mldebug_mcp.batch.columns import Part, Table
from mldebug_mcp.batch.formats import format_of
from mldebug_mcp.batch.read import count_rows, picked
from mldebug_mcp.core.errors import InputError

ROWS = 2500
WANTED = [2499, 7, 0, 1024, 7]


def ids(row: int) -> list[int]:
    return [row, row + 1, *range(2, 2 + row % 5)]


def write(folder: Path, form: str) -> Path:
    records = [{"input_ids": ids(row)} for row in range(ROWS)]
    path = folder / f"data.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps(one) + "\n\n" for one in records))
    elif form == "json":
        path.write_text(json.dumps(records))
    elif form == "npz":
        np.savez(path, input_ids=np.arange(ROWS)[:, None] + np.arange(2))
    elif form == "parquet":
        table = pytest.importorskip("pyarrow").Table.from_pylist(records)
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=100)
    else:
        pytest.importorskip("datasets").Dataset.from_list(records).save_to_disk(path)
    return path


@pytest.mark.parametrize("form", ["jsonl", "json", "npz", "parquet", "saved"])
def test_rows_are_picked_by_number(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, form)
    assert count_rows(path) == ROWS
    (table,) = picked(path, WANTED)
    assert table.numbers is not None
    assert table.numbers.tolist() == sorted(set(WANTED))
    column: Any = table.columns["input_ids"]
    found = [column.row(i).tolist() if hasattr(column, "row") else list(column[i]) for i in range(4)]
    assert found == [ids(row)[: 2 if form == "npz" else None] for row in sorted(set(WANTED))]


def test_only_the_wanted_row_groups_of_a_parquet_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mldebug_mcp.batch.formats.tables.MOST_BYTES", 2000)
    path = write(tmp_path, "parquet")
    read: list[int] = []
    parquet = format_of(path)

    def noted(part: Part) -> Iterator[Table]:
        read.append(part.first)
        assert parquet.part_tables is not None
        return parquet.part_tables(part)

    monkeypatch.setattr("mldebug_mcp.batch.formats.FORMATS", (parquet._replace(part_tables=noted),))
    (table,) = picked(path, [0, 2499])
    assert len(parquet.parts(path)) > 2
    assert len(read) == 2
    assert table.numbers is not None
    assert table.numbers.tolist() == [0, 2499]


def test_numbers_in_a_csv_file_are_picked(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("x", "y"), *((row, row * row) for row in range(50))])
    (table,) = picked(tmp_path / "t.csv", [3, 9])
    assert np.asarray(table.columns["y"]).tolist() == [9, 81]


def test_rows_that_are_not_there_are_refused_with_how_many_there_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it has 2,500 rows, numbered from 0"):
        next(picked(write(tmp_path, "jsonl"), [9999]))


def test_an_inspection_of_some_rows_looks_at_them_alone_and_keeps_their_numbers(tmp_path: Path) -> None:
    answer = inspect_batch(write(tmp_path, "jsonl"), rows=[7, 1024])
    assert answer.batch.rows == 2
    assert [one.row for one in answer.rows] == [7, 1024]
