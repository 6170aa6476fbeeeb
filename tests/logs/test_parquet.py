from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.formats import frames

histories = st.lists(
    st.fixed_dictionaries({"_step": st.integers(0, 100), "train/loss": st.none() | st.floats(), "ok": st.booleans()}),
    min_size=1,
    max_size=30,
    unique_by=lambda row: row["_step"],
)


@settings(
    deadline=None,
    max_examples=12,  # each starts a process
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(histories)
def test_what_is_written_is_read_back(tmp_path: Path, rows: list[dict[str, float | None]]) -> None:
    rows = sorted(rows, key=lambda row: row["_step"] or 0)
    schema = {"_step": pl.Int64, "train/loss": pl.Float64, "ok": pl.Boolean}
    pl.DataFrame(rows, schema=schema).write_parquet(tmp_path / "history.parquet")
    logged = [row for row in rows if row["train/loss"] is not None]
    if not logged:
        return
    run = read_run(tmp_path / "history.parquet")
    assert run["loss"].step.tolist() == [row["_step"] for row in logged]
    np.testing.assert_array_equal(run["loss"].value, [row["train/loss"] for row in logged])
    assert "ok" not in run


def test_numbers_in_text_and_nested_columns_are_read(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": f"{step}.5", "a": {"b": step}, "name": "x"} for step in range(5)]
    pl.DataFrame(rows).write_parquet(tmp_path / "x.parquet")
    run = read_run(tmp_path / "x.parquet")
    assert run["loss"].value.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert run["a/b"].value.tolist() == [0, 1, 2, 3, 4]


def test_a_table_that_is_huge_once_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pl.DataFrame({"step": range(1000), "loss": [0.0] * 1000}).write_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(frames, "_MAX_CELLS", 1999)
    with pytest.raises(InputError, match="1,000 rows of 2 columns are too many"):
        read_run(tmp_path / "x.parquet")


def test_a_file_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"step": range(10), "loss": [0.0] * 10}).write_parquet(path)
    whole = path.read_bytes()
    for size in range(4, len(whole), 150):  # each starts a process
        path.write_bytes(whole[:size])
        with pytest.raises(InputError):
            read_run(path)


def test_a_log_of_one_value_that_unfolds_beyond_the_limit_is_refused_before_it_is_unfolded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of a value that stands in every row is tiny, however many rows it has."""
    for limit in ("_MAX_CELLS", "_MANY_CELLS"):
        monkeypatch.setattr(frames, limit, 10_000)
    monkeypatch.setattr(frames, "_CELLS_PER_BYTE", 0)
    rows = {"step": list(range(20_000)), "loss": [2.0] * 20_000}
    pl.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(InputError, match="20,000 rows of 2 columns are too many"):
        read_run(tmp_path / "log.parquet")
