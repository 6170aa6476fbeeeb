"""CSV files, and raw token ids as nanoGPT and llm.c write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.batch import read_batches
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch


def test_csv_with_text_and_classes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    lines = [f'"It was, said one, the {n}th\nday of {n * 7}",{n % 3}' for n in range(30)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    answer = inspect_batch(path)
    assert (answer.batch.rows, answer.batch.purpose, answer.findings) == (30, "classification", [])
    answer = inspect_batch(path, sample=10)
    assert answer.batch.sampled


def test_csv_of_numbers_shows_nan_but_not_empty_cells(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    rows = [[f"{n / 7:.3f}", str(n % 4), "" if n == 5 else f"{n / 3:.2f}"] for n in range(20)]
    path.write_text("\n".join("\t".join(row) for row in [["width", "label", "height"], *rows]))
    assert inspect_batch(path).findings == []
    rows[3][0] = "nan"
    path.write_text("\n".join("\t".join(row) for row in [["width", "label", "height"], *rows, ["1"]]))
    answer = inspect_batch(path)
    assert [one.check for one in answer.findings] == ["nonfinite_values"]
    assert any("skipped 1 line" in note for note in answer.notes)


def text_like(count: int, most: int) -> np.ndarray:
    chance = np.random.default_rng(0)
    return np.minimum(chance.zipf(1.2, count), most).astype(np.int64)


@pytest.mark.parametrize("kind", ["<u2", "<u4", "llm.c", "llm.c of Llama 3"])
def test_raw_token_ids_are_read_whatever_their_width(kind: str, tmp_path: Path) -> None:
    ids = text_like(5000, 50_000)
    path = tmp_path / "train.bin"
    if kind.startswith("llm.c"):
        header = np.zeros(256, np.int32)
        header[0] = 20240520 if kind == "llm.c" else 20240801
        path.write_bytes(header.tobytes() + ids.astype("<u2" if kind == "llm.c" else "<u4").tobytes())
    else:
        path.write_bytes(ids.astype(kind).tobytes())
    batch = next(iter(read_batches(path)))
    assert batch.purpose == "pretraining"
    assert np.array_equal(batch.sides[0].ids.flat, ids[: 4 * 1024])
    answer = inspect_batch(path)
    assert not [one for one in answer.findings if one.severity != "info"]


def test_data_of_megatron_asks_for_a_batch(tmp_path: Path) -> None:
    (tmp_path / "text_document.bin").write_bytes(text_like(5000, 30_000).astype("<u2").tobytes())
    (tmp_path / "text_document.idx").write_bytes(b"MMIDIDX\0\0")
    with pytest.raises(InputError, match="Megatron"):
        inspect_batch(tmp_path / "text_document.bin")


def test_the_first_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "one two"}\n\nno row\n{"text": "three"}\nnone\n')
    assert "skipped 2 line(s) that are not JSON objects, first line 3" in inspect_batch(path).notes
