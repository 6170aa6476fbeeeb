"""The knowledge through the command line: error messages, search by kind, verification of the evidence."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from mldebug_mcp import explain_error, search_folklore
from mldebug_mcp.cli import main

MESSAGE = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"


def test_an_error_is_explained_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["error", MESSAGE]) == 0
    said = capsys.readouterr().out
    assert "cuda_oom" in said
    assert "\nFix   " in said


def test_the_json_of_an_error_is_what_the_library_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["error", MESSAGE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(explain_error(MESSAGE).to_json())


def test_an_error_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"loss 1\nloss 2\n{MESSAGE}\n"))
    assert main(["error", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error"]["line"] == 3


def test_an_error_is_read_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(f"loss 1\n{MESSAGE}\n", encoding="utf-8")
    assert main(["error", str(tmp_path / "run.log"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error"]["line"] == 2


def test_text_without_an_error_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["error", "all is well"]) == 0
    assert "No error found" in capsys.readouterr().out


def test_an_empty_message_is_unusable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["error", " "]) == 2
    assert "empty" in capsys.readouterr().err


def test_search_can_be_kept_to_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "loss", "spike", "--kind", "menu", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == json.loads(search_folklore("loss spike", kind="menu").to_json())
    assert answer["quotes"] == []


def test_search_prints_quotes_and_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "loss spike"]) == 0
    said = capsys.readouterr().out
    assert "— " in said
    assert "cause " in said or "menu " in said or "symptom " in said


@pytest.mark.parametrize("option", [[], ["--offline"]])
def test_the_evidence_is_checked_without_a_network_unless_one_is_asked_for(
    option: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def fetch(_: object, url: str) -> str:
        asked.append(url)
        raise OSError

    monkeypatch.setattr("mldebug_mcp.knowledge.verification._PoliteFetch.get", fetch)
    assert main(["evidence", "verify", "--check", *option]) == 0
    assert "agree with each other" in capsys.readouterr().out
    assert not asked
    assert main(["evidence", "verify", "--online"]) == 0
    assert asked


def test_a_copy_that_differs_is_reported_and_fails_the_check(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "bloom_lessons.md").write_text("other words", encoding="utf-8")
    assert main(["evidence", "verify", "--copies", str(tmp_path)]) == 0
    assert "changed bloom_patience" in capsys.readouterr().out
    assert main(["evidence", "verify", "--copies", str(tmp_path), "--check"]) == 1


def test_a_folder_of_copies_that_is_not_there_is_unusable(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["evidence", "verify", "--copies", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err
