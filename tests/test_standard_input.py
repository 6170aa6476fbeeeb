"""`mldebug-mcp diagnose -`: what is piped in is diagnosed as a file would be, and called what it is."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from mldebug_mcp.cli import main, runs

EXAMPLES = Path(__file__).parent.parent / "examples"
TEXT = "".join(f"step {step}: loss {4 - step / 50:.3f}\n" for step in range(1, 100))
JSONL = "".join(json.dumps({"step": step, "loss": 4 - step / 50}) + "\n" for step in range(1, 100))


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("content", [TEXT.encode(), JSONL.encode(), gzip.compress(JSONL.encode())])
def test_text_json_lines_and_compressed_logs_are_read_from_standard_input(
    content: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, content)
    assert main(["diagnose", "-", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["run"]["path"] == "standard input"
    assert answer["run"]["records"] == 99


def test_a_line_is_printed_for_what_is_piped_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(monkeypatch, TEXT.encode())
    assert main(["diagnose", "-", "--short"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("standard input (step 99): ")


def test_what_is_refused_is_called_standard_input_and_no_folder_of_ours_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for content, why in ((b"", "the file is empty"), (b"\0\1\2" * 99, "a binary file"), (b"hello\n", "no metrics")):
        pipe(monkeypatch, content)
        assert main(["diagnose", "-"]) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"mldebug-mcp: standard input: {why}")


def test_more_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(runs, "MAX_BYTES", 1000)
    pipe(monkeypatch, TEXT.encode())
    assert main(["diagnose", "-"]) == 2
    assert "more than 1,000 bytes; save it to a file" in capsys.readouterr().err


def test_no_configuration_is_found_beside_it_but_one_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text('{"learning_rate": 0.125}')
    monkeypatch.chdir(tmp_path)
    for arguments, known in (([], False), (["--config", "config.json"], True)):
        pipe(monkeypatch, JSONL.encode())
        main(["diagnose", "-", "--json", *arguments])
        assert ("configuration read from config.json" in capsys.readouterr().out) is known
