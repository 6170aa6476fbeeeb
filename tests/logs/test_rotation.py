"""Rotated parts of a log in a run folder are one log, oldest first; what only looks like them is not."""

from __future__ import annotations

import gzip
import logging
import logging.handlers
from pathlib import Path

from tests.logs.reading import points

from mldebug_mcp.logs import read_run


def records(first: int, last: int) -> str:
    return "".join(f"step {step}: loss {4 - step / 100:.2f}\n" for step in range(first, last))


def test_what_a_rotating_handler_wrote_is_one_log(tmp_path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(tmp_path / "train.log", maxBytes=800, backupCount=20)
    logger = logging.Logger("train")
    logger.addHandler(handler)
    for step in range(1, 301):
        logger.info("step %d: loss %.2f", step, 4 - step / 100)
    handler.close()
    assert len(list(tmp_path.iterdir())) > 3
    run = read_run(tmp_path)
    assert points(run, "loss") == {float(step): round(4 - step / 100, 2) for step in range(1, 301)}
    assert len(run.segments) == 1


def test_compressed_and_dated_parts_come_in_the_order_of_their_numbers_and_dates(tmp_path: Path) -> None:
    for name, first in (("train.log.10.gz", 0), ("train.log.9.gz", 20), ("train.log.1", 40), ("train.log", 60)):
        text = records(first, first + 20).encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    dated = tmp_path / "dated"
    dated.mkdir()
    for name, first in (("run.out-20240229.gz", 0), ("run.out-20240301.gz", 20), ("run.out", 40)):
        text = records(first, first + 20).encode()
        (dated / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    for folder, count in ((tmp_path, 80), (dated, 60)):
        run = read_run(folder)
        assert (run.records, len(run.segments)) == (count, 1)
        assert run["loss"].step.tolist() == list(range(count))


def test_a_part_that_cannot_be_unpacked_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "train.log.1.gz").write_bytes(b"\x1f\x8b\x08broken")
    (tmp_path / "train.log").write_text(records(20, 60))
    run = read_run(tmp_path)
    assert run.records == 40
    assert any("train.log.1.gz: this rotated part is left out" in note for note in run.notes)


def test_logs_of_several_ranks_are_not_joined(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"train.log.{rank}").write_text(records(0, 30))
    run = read_run(tmp_path)
    assert run.records == 30


def test_a_log_named_outright_is_read_alone(tmp_path: Path) -> None:
    (tmp_path / "train.log.1").write_text(records(0, 20))
    (tmp_path / "train.log").write_text(records(20, 60))
    assert read_run(tmp_path / "train.log").records == 40
