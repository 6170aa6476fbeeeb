"""A run as plain numbers: the same for the same run logged otherwise."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.checks.course import vector_of
from mldebug_mcp.logs import read_run

Record = Mapping[str, float]
CHANCE = np.random.default_rng(5)
NOISE = CHANCE.normal(size=200)


def records(count: int = 200) -> list[dict[str, float]]:
    return [
        {"step": at + 1, "loss": 2.3 * math.exp(-at / 60) + 0.4 + 0.05 * NOISE[at], "grad_norm": 1.5 + 0.1 * NOISE[-at]}
        | ({"eval_loss": 2.3 * math.exp(-at / 60) + 0.6} if at % 20 == 19 else {})
        for at in range(count)
    ]


def vector(folder: Path, rows: Iterable[Record]) -> dict[str, float]:
    file = folder / "metrics.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return vector_of(read_run(file))


def test_another_step_axis_and_other_columns_leave_the_numbers_as_they_are(tmp_path: Path) -> None:
    plain = vector(tmp_path, records())
    assert vector(tmp_path, [row | {"step": 10 * row["step"]} for row in records()]) == plain
    assert vector(tmp_path, [row | {"zx_q": 3.0 * row["step"]} for row in records()]) == plain


def test_four_digits_and_every_other_record_leave_levels_and_places_nearly_as_they_are(tmp_path: Path) -> None:
    plain = vector(tmp_path, records())
    rounded = vector(tmp_path, [{name: float(f"{one:.4g}") for name, one in row.items()} for row in records()])
    assert rounded == pytest.approx(plain, rel=0.02, abs=0.01)
    halved = vector(tmp_path, [row for row in records() if row["step"] % 2 == 0])
    levels = [name for name in plain if name.endswith(("last / first", "noise / level", "records that rise"))]
    assert len(levels) >= 6
    assert {name: halved[name] for name in levels} == pytest.approx({name: plain[name] for name in levels}, abs=0.2)


def test_evaluation_stands_beside_training_at_its_own_steps(tmp_path: Path) -> None:
    found = vector(tmp_path, records())
    assert found["loss, eval against train: last gap"] == pytest.approx(0.2 / 2.7, abs=0.05)
    assert not [
        name for name in vector(tmp_path, [{"step": at, "loss": 2.0 / at} for at in range(1, 9)]) if "eval" in name
    ]


def test_heights_are_told_of_what_has_a_scale_of_its_own_alone(tmp_path: Path) -> None:
    found = vector(tmp_path, [row | {"step_time": 0.2, "accuracy": 0.5} for row in records()])
    assert {name for name in found if name.endswith(": last")} == {"loss: last", "eval loss: last", "accuracy: last"}
    assert found["grad_norm: last / first"] > 0


def test_a_few_records_are_no_course(tmp_path: Path) -> None:
    assert "loss: last / first" not in vector(tmp_path, records()[:3])


def test_the_loss_of_a_guess_is_told_where_the_number_of_classes_is_known(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"num_classes": 10}))
    found = vector(tmp_path, [{"step": at, "loss": math.log(10)} for at in range(5)])
    assert found["loss: first / a guess"] == pytest.approx(1.0)
    assert found["loss: records that stand still"] == 1.0


UNUSUAL = {
    "one": [1.0],
    "zeros": [0.0] * 20,
    "nan": [math.nan] * 5,
    "huge": [1e308, -1e308] * 10,
    "infinite": [math.inf, 1.0, 2.0],
    "tiny": [1e-300, 0.0, 1e-300],
    "one finite": [5.0, math.nan],
}


@pytest.mark.parametrize("values", UNUSUAL.values(), ids=UNUSUAL)
def test_every_number_is_finite_whatever_was_logged(tmp_path: Path, values: list[float]) -> None:
    found = vector(tmp_path, [{"step": at, "loss": value} for at, value in enumerate(values)])
    assert all(map(math.isfinite, found.values()))
    assert found["loss: share not finite"] == pytest.approx(np.mean([not math.isfinite(value) for value in values]))
