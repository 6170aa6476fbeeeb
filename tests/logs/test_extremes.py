from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs import read_run

MILLION = 1_000_000


def test_the_largest_numbers_of_both_signs_at_one_step_are_read_without_a_complaint(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    largest = 1.7976931348623157e308
    log.write_text(
        f'{{"step": 1, "loss": 1.0}}\n{{"step": 2, "loss": {largest!r}}}\n'
        f'{{"step": 0, "loss": 2.0}}\n{{"step": 2, "loss": -{largest!r}}}\n'
    )
    assert read_run(log)["loss"].value[-1] == -largest


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("log.jsonl", '{{"step": {0}, "loss": {1}}}\n'),
        ("train.log", "step={0} loss={1}\n"),
        ("log.csv", "{0},{1}\n"),
    ],
)
def test_every_one_of_a_million_records_is_read_and_one_that_failed_among_them(
    name: str, line: str, tmp_path: Path
) -> None:
    losses = [f"{2 + 1 / step:.4f}" for step in range(1, MILLION + 1)]
    losses[777_777] = "NaN"
    head = "step,loss\n" if name.endswith("csv") else ""
    (tmp_path / name).write_text(head + "".join(line.format(step, loss) for step, loss in enumerate(losses, 1)))
    run = read_run(tmp_path / name)
    assert run.records == MILLION
    np.testing.assert_array_equal(run["loss"].step, np.arange(1, MILLION + 1))
    np.testing.assert_array_equal(run["loss"].value, np.array(losses, dtype=np.float64))


def test_a_loss_whose_powers_are_no_numbers_is_diagnosed(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": {25.0**step!r}}}\n' for step in range(60)))
    assert diagnose_run(log).hypotheses[0].cause in {"lr_too_high", "exploding_gradients"}
