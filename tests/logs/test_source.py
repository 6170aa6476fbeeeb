"""Opening and decoding: the same lines, whatever ends them and wherever the file is cut into chunks."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from mldebug_mcp.logs import log_file
from mldebug_mcp.logs.log_file import LogFile

LINES = ["step 1: loss 2.5", "", "Schritt für Schritt: 損失", "step 2: loss 2.25", "x"]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 17, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "end"])
def test_lines_are_the_same_wherever_a_chunk_ends(tmp_path: Path, chunk: int, end: str, last: str) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(("".join(line + end for line in LINES) + last).encode())
    with patch.object(log_file, "CHUNK_BYTES", chunk):
        assert list(LogFile.open(path).lines()) == [*LINES, *([last] if last else [])]


def test_a_line_that_is_too_long_is_skipped_once_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"a\r\n" + b"x" * 50 + b"\r\n" + b"b\r\n")
    with patch.object(log_file, "CHUNK_BYTES", 10), patch.object(log_file, "MAX_LINE_CHARACTERS", 20):
        file = LogFile.open(path)
        assert list(file.lines()) == ["a", "b"]
    assert file.skipped_lines == 1
