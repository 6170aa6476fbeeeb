"""Tables of measurements: one number or one word for each row and column."""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch
from mldebug_mcp.models import BatchInspection


def table(rows: int = 200) -> dict[str, list[object]]:
    drawn = random.Random(3)
    return {
        "age": [drawn.randint(18, 80) for _ in range(rows)],
        "region": [drawn.choice("NESW") for _ in range(rows)],
        "clicks": [drawn.randint(0, 50) for _ in range(rows)],
        "churn": [int(drawn.random() < 0.3) for _ in range(rows)],
    }


def checked(columns: Mapping[str, Sequence[object]], folder: Path) -> BatchInspection:
    path = folder / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return inspect_batch(path)


def findings(columns: Mapping[str, Sequence[object]], folder: Path) -> dict[str, str]:
    return {one.check: one.severity for one in checked(columns, folder).findings}


def test_a_table_of_whole_numbers_and_words_is_read_and_quiet(tmp_path: Path) -> None:
    assert findings(table(), tmp_path) == {}
    with pytest.raises(InputError, match="none of its columns"):
        findings(table(5), tmp_path)


def test_a_measured_column_that_never_varies_is_seen_and_a_version_is_only_remarked(tmp_path: Path) -> None:
    assert findings(table() | {"sensor": [21.5] * 200}, tmp_path) == {"constant_column": "warning"}
    assert findings(table() | {"version": [3] * 200}, tmp_path) == {"constant_column": "info"}
    assert findings(table() | {"country": ["AT"] * 200}, tmp_path) == {"constant_column": "info"}
    assert findings(table() | {"sensor": [21.5] * 199 + [21.75]}, tmp_path) == {}


def test_a_copy_of_another_column_is_seen_whatever_it_is_called(tmp_path: Path) -> None:
    columns = table()
    assert findings(columns | {"left_us": columns["churn"]}, tmp_path) == {"equal_columns": "warning"}
    assert findings(columns | {"place": columns["region"]}, tmp_path) == {"equal_columns": "warning"}
    moved = columns["churn"][1:] + columns["churn"][:1]
    assert findings(columns | {"left_us": moved}, tmp_path) == {}


def test_a_column_that_is_filled_for_most_of_a_class_alone_is_seen_and_one_of_some_is_not(
    tmp_path: Path,
) -> None:
    columns = table(400)
    churned = [row for row, left in enumerate(columns["churn"]) if left]
    for missed, seen in ((8, {"equal_columns": "warning"}), (2, {})):
        reasons: list[object] = [
            "price" if row in churned and churned.index(row) % missed else "" for row in range(400)
        ]
        assert findings({"reason": reasons} | columns, tmp_path) == seen
    mixed: list[object] = ["price" if left or row % 40 == 0 else "" for row, left in enumerate(columns["churn"])]
    assert findings({"reason": mixed} | columns, tmp_path) == {}


@pytest.mark.parametrize("empty", [0, ""])
def test_a_column_that_is_filled_in_after_the_target_is_seen(empty: object, tmp_path: Path) -> None:
    columns = table()
    days = [3 + row % 9 if left else empty for row, left in enumerate(columns["churn"])]
    assert findings({"offer_days": days} | columns, tmp_path) == {"equal_columns": "warning"}
    others: dict[str, list[object]] = {
        "has_offer": [int(bool(day)) for day in days],
        "price": [row * 1.5 for row in range(200)],
    }
    assert findings({"offer_days": days} | others, tmp_path) == {}
    days[columns["churn"].index(0)] = 5
    assert findings({"offer_days": days} | columns, tmp_path) == {}


def test_rows_whose_time_goes_back_within_a_series_are_seen(tmp_path: Path) -> None:
    days = [f"2024-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(100)]
    load = [row * 0.5 % 17.25 + row % 3 for row in range(1000)]

    def series(*moved: int) -> dict[str, Sequence[object]]:
        orders = [[*days[40:60], *days[:40], *days[60:]] if meter in moved else days for meter in range(10)]
        meters = [f"m{row // 100}" for row in range(1000)]
        return {"meter": meters, "date": [day for order in orders for day in order], "load": load}

    assert findings(series(), tmp_path) == {}
    assert findings(series(7), tmp_path) == {"time_out_of_order": "warning"}
    assert findings({name: column for name, column in series(7).items() if name != "meter"}, tmp_path) == {}
    alone: dict[str, Sequence[object]] = {
        "date": [*days[40:60], *days[:40], *days[60:]],
        "load": load[:100],
        "wind": load[200:300],
    }
    assert findings(alone, tmp_path) == {"time_out_of_order": "info"}
    assert findings(alone | {"date": random.Random(0).sample(days, 100)}, tmp_path) == {}


def test_training_rows_later_than_held_out_ones_are_seen_in_a_series_alone(tmp_path: Path) -> None:
    days = [f"2024-{1 + day // 28:02}-{1 + day % 28:02} 00:00" for day in range(100)]
    hours = [f"2024-01-{1 + hour // 24:02} {hour % 24:02}:00" for hour in range(100)]
    load = [row * 0.5 % 17.25 + row % 3 for row in range(100)]

    def split(times: Sequence[object], *held: int) -> dict[str, Sequence[object]]:
        return {"ts": times, "load": load, "split": ["test" if row in held else "train" for row in range(100)]}

    assert findings(split(hours, *range(80, 100)), tmp_path) == {}
    assert findings(split(hours, *range(0, 100, 5)), tmp_path) == {"time_out_of_order": "warning"}
    assert findings(split(hours, *range(40, 60)), tmp_path) == {"time_out_of_order": "warning"}
    assert findings(split(random.Random(1).choices(days, k=100), *range(0, 100, 5)), tmp_path) == {}
    no_date = split([*hours[:5], "2024-13-10 05:00", *hours[6:]], *range(0, 100, 5))
    assert "time_out_of_order could not be judged" not in " ".join(checked(no_date, tmp_path).notes)


def test_columns_are_judged_over_all_pieces_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mldebug_mcp.batch.formats.tables.CSV_CHARACTERS", 300)
    columns = table()
    sorted_by: dict[str, list[object]] = {"day": [number // 100 for number in range(200)]}
    assert findings(columns | sorted_by, tmp_path) == {}
    assert findings(columns | {"left_us": columns["churn"]}, tmp_path) == {"equal_columns": "warning"}
    assert findings(columns | {"sensor": [21.5] * 200}, tmp_path) == {"constant_column": "warning"}
