"""A path is read as users and agents write it, and what is none says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mldebug_mcp import InputError, check_memory, diagnose_run, estimate_memory, explain_error, inspect_batch
from mldebug_mcp.core.paths import expanded

LOG = [{"step": step, "loss": 2.0 - step / 100} for step in range(1, 60)]


def test_the_home_folder_and_file_urls_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    place = tmp_path / "run äö 测试.jsonl"
    place.write_text("".join(json.dumps(row) + "\n" for row in LOG), encoding="utf-8")
    whole = diagnose_run(place).findings
    assert diagnose_run("~/run äö 测试.jsonl").findings == whole
    assert diagnose_run(place.as_uri()).findings == whole


@pytest.mark.parametrize("path", ["", "   ", "\n"])
def test_an_empty_path_is_not_the_working_directory(path: str) -> None:
    with pytest.raises(InputError, match="the path is empty"):
        diagnose_run(path)


@pytest.mark.parametrize("path", ["run\0.jsonl", "file:///run%00.jsonl"])
def test_a_path_with_a_nul_byte_is_refused_in_one_line(path: str) -> None:
    with pytest.raises(InputError, match="NUL byte"):
        diagnose_run(path)


@pytest.mark.parametrize("path", ["https://example.com/log.jsonl", "ftp://host/run", "file://host/log.jsonl"])
def test_a_url_is_named_as_it_was_written_and_not_fetched(path: str) -> None:
    with pytest.raises(InputError, match="nothing is fetched from the network") as problem:
        diagnose_run(path)
    assert path in str(problem.value)


@pytest.mark.parametrize("path", ["zip://x::file://[a/runs.zip", "https://[a/log.jsonl", "file://\u2100/a.jsonl"])
def test_a_url_that_cannot_be_taken_apart_is_refused_in_one_line(path: str) -> None:
    with pytest.raises(InputError, match="not a usable URL") as problem:
        diagnose_run(path)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("text", ["{'loss: 2.31, 'epoch': 0.1}", "step 1 loss 2.3\nstep 2 loss nan"])
def test_a_log_pasted_in_place_of_its_path_is_to_be_saved_first(text: str) -> None:
    with pytest.raises(InputError, match="that is text and no path: save it to a file first"):
        diagnose_run(text)


def test_the_name_of_nobody_stays_as_it_is() -> None:
    assert expanded("~nobody_of_this_name/x") == Path("~nobody_of_this_name/x")


@pytest.mark.parametrize("name", ["train.log", "runs/7/out.txt", "~/nowhere/err", "./slurm.out"])
def test_a_log_that_is_not_there_is_not_taken_for_a_message_without_an_error(name: str) -> None:
    with pytest.raises(InputError, match=r"no such file or folder.* reads like the path of a log"):
        explain_error(name)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("KeyError: 'x.log'", "data: a key or column is missing"),
        ("N/A", "no error found"),
        ("ModuleNotFoundError", "environment: a package is missing or does not fit"),
    ],
)
def test_a_short_message_is_no_path(text: str, problem: str) -> None:
    assert explain_error(text).problem == problem


@pytest.mark.parametrize(
    "verb", [diagnose_run, inspect_batch, check_memory, estimate_memory, explain_error], ids=lambda verb: verb.__name__
)
def test_of_a_relative_path_that_is_not_there_it_is_said_where_it_was_looked_for(
    verb: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"runs/7.json: no such file or folder in {tmp_path}"):
        verb("runs/7.json")
