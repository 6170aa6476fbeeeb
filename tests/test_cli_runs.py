from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mldebug_mcp.cli import main

PROGRAM = [sys.executable, "-m", "mldebug_mcp"]


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_quoted_pattern_is_answered_in_a_line_for_each_run(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(examples / "*" / "log.jsonl")]) == 0

    healthy, spike = lines_of(capsys)
    assert healthy.startswith(f"{examples / 'healthy' / 'log.jsonl'} (step 400): Healthy (")
    assert "Perhaps a bad batch (" in spike
    assert "]; seen: loss_spike, " in spike


def test_several_paths_are_answered_in_a_line_each_as_json_too(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(examples / name) for name in ("loss_spike", "nan_loss")]

    assert main(["diagnose", "--json", *paths]) == 0
    assert [json.loads(line)["run"]["path"] for line in lines_of(capsys)] == paths


def test_short_gives_a_line_for_one_run_too(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--short", "--check", str(examples / "overfit")]) == 1
    assert len(lines_of(capsys)) == 1


def test_a_run_that_cannot_be_read_does_not_keep_the_others_from_being_answered(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(examples / "nothing"), str(examples / "healthy")]) == 2

    told = capsys.readouterr()
    assert "nothing" in told.err
    assert "Healthy (" in told.out


def test_a_folder_named_like_a_pattern_is_that_folder(
    examples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run[1]"
    run.mkdir()
    (run / "log.jsonl").write_bytes((examples / "healthy" / "log.jsonl").read_bytes())

    assert main(["diagnose", "--short", str(run)]) == 0
    assert lines_of(capsys)[0].startswith(str(run))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing/*.jsonl"], "no file or folder matches this pattern"),
        (["examples/*", "--html", "a.html"], "--html takes one run at a time"),
        (["examples/*", "-"], "- (standard input) is read alone"),
    ],
)
def test_what_several_runs_cannot_have_is_refused(
    arguments: list[str], told: str, examples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(examples.parent)

    assert main(["diagnose", *arguments]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("option", ["", "--json", "--short"])
def test_a_reader_that_has_seen_enough_is_no_error(option: str, examples: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*PROGRAM, "diagnose", *option.split(), str(examples / "loss_spike")]
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_server_tells_a_person_in_a_terminal_what_it_waits_for() -> None:
    pty = pytest.importorskip("pty")
    ours, terminal = pty.openpty()
    with subprocess.Popen(PROGRAM, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        os.close(terminal)
        assert server.stderr is not None
        told = server.stderr.readline().decode() + server.stderr.readline().decode()
        server.terminate()
        assert server.stdout is not None
        assert server.stdout.read() == b"", "standard output belongs to the protocol"
    os.close(ours)

    assert "waits for the messages of a client on standard input" in told
    assert "mldebug-mcp diagnose PATH" in told


def test_a_client_is_told_nothing_beside_the_protocol() -> None:
    done = subprocess.run(PROGRAM, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_help_is_a_command_on_all_of_them_and_on_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    assert "diagnose" in capsys.readouterr().out
    assert main(["help", "watch"]) == 0
    assert "usage: mldebug-mcp watch" in capsys.readouterr().out
