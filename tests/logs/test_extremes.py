from __future__ import annotations

from pathlib import Path

from mldebug_mcp.logs import read_run


def test_the_largest_numbers_of_both_signs_at_one_step_are_read_without_a_complaint(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    largest = 1.7976931348623157e308
    log.write_text(
        f'{{"step": 1, "loss": 1.0}}\n{{"step": 2, "loss": {largest!r}}}\n'
        f'{{"step": 0, "loss": 2.0}}\n{{"step": 2, "loss": -{largest!r}}}\n'
    )
    assert read_run(log)["loss"].value[-1] == -largest
