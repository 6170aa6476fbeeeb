"""Logs in archives and behind URLs are read as those of a folder, within bounds and within the roots of a server."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from mldebug_mcp import InputError, diagnose_run, diagnose_runs
from mldebug_mcp.cli import main
from mldebug_mcp.core.access import access_from, confined
from mldebug_mcp.core.errors import MissingExtraError
from mldebug_mcp.logs import remote_files
from mldebug_mcp.logs.remote_files import brought_in

LOG = "".join(json.dumps({"step": step, "loss": 2.0 - step / 100}) + "\n" for step in range(1, 60))
RUNS = {
    "sweep/a/log.jsonl": LOG,
    "sweep/a/config.json": '{"learning_rate": 0.1}',
    "sweep/b/log.jsonl": LOG,
    "sweep/b/model.safetensors": "weights",
    "other/c/log.jsonl": LOG,
    "__MACOSX/sweep/a/._log.jsonl": "x",
}


def packed(path: Path, files: Mapping[str, str | bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return packed(tmp_path / "runs.zip", RUNS)


def names(path: str | Path) -> list[str]:
    return sorted(row.name for row in diagnose_runs(path).rows)


def test_an_archive_is_read_as_the_folder_that_it_was(archive: Path) -> None:
    assert names(archive) == names(str(archive)) == ["other/c", "sweep/a", "sweep/b"]
    assert names(f"zip://::{archive.as_uri()}") == names(f"zip://::{archive}") == ["other/c", "sweep/a", "sweep/b"]
    assert names(f"zip://sweep::{archive.as_uri()}") == ["a", "b"]
    run = diagnose_run(f"zip://sweep/a::{archive.as_uri()}")
    assert run.run.path == f"zip://sweep/a::{archive.as_uri()}"
    assert run.run.last_step == 59
    assert diagnose_run(f"zip://sweep/a/log.jsonl::{archive}").run.last_step == 59


def test_of_an_archive_of_very_many_files_whole_runs_are_unpacked_and_a_note_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_files, "MAX_UNPACKED_FILES", 6)
    files = {f"r{number}/{name}": LOG for number in range(5) for name in ("log.jsonl", "logs/eval.jsonl")}
    path = packed(tmp_path / "runs.zip", {**files, "r3/log.jsonl": LOG + LOG.replace('"step": ', '"step": 1')})
    answer = diagnose_run(path)
    assert answer.run.path == str(path)
    assert any("only 6 of 10 files of the archive" in note and "5 folders" in note for note in answer.notes)
    assert any("read r3" in note for note in answer.notes)
    assert diagnose_run(path, run="r4").run.last_step == 59
    some = diagnose_runs(path, most=2)
    assert "only 6 of 10 files of the archive" in some.notes[0]
    assert len(diagnose_runs(path).rows) == 5


def test_a_file_url_of_a_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log.jsonl").write_text(LOG)
    assert names(tmp_path.as_uri()) == ["a"]


def test_nothing_is_left_behind_and_the_answer_names_the_archive_alone(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert str(scratch) not in diagnose_runs(archive).to_json()
    with pytest.raises(InputError, match=r"no such file|not a folder|no log") as problem:
        diagnose_run(f"zip://nowhere::{archive}")
    assert str(scratch) not in str(problem.value)
    assert list(scratch.iterdir()) == []


def test_the_command_line_takes_an_archive(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(archive), "--processes", "1"]) == 0
    assert "3 runs" in capsys.readouterr().out
    assert main(["diagnose", f"zip://sweep/b::{archive}", "--short"]) == 0
    assert "zip://sweep/b::" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["../evil.jsonl", "/abs/evil.jsonl", "a/../../evil.jsonl", "..\\evil.jsonl", "C:\\evil.log"]
)
def test_a_name_that_leads_out_of_the_archive_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"leads out of its archive|no log in this archive"):
        diagnose_runs(packed(tmp_path / "evil.zip", {name: LOG}))
    assert [path.name for path in tmp_path.iterdir()] == ["evil.zip"]


def test_a_bomb_is_refused_while_it_is_unpacked(tmp_path: Path) -> None:
    bomb = packed(tmp_path / "bomb.zip", {f"{number}.log": bytes(32 * 1024**2) for number in range(3)})
    with pytest.raises(InputError, match="too much comes out of this archive"):
        diagnose_runs(bomb)


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_files, "MOST_FILES", 10)
    with pytest.raises(InputError, match="12 files are too many"):
        diagnose_runs(packed(tmp_path / "many.zip", {f"{number}.log": LOG for number in range(12)}))


def test_what_is_no_archive_or_a_broken_one_or_holds_no_log_says_so(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "text.zip").write_text("no archive")
    (tmp_path / "cut.zip").write_bytes(archive.read_bytes()[:-30])
    damaged = bytearray(archive.read_bytes())
    damaged[60:90] = b"x" * 30
    (tmp_path / "damaged.zip").write_bytes(damaged)
    for name in ("text", "cut", "damaged"):
        with pytest.raises(InputError, match="an archive that cannot be read"):
            diagnose_runs(tmp_path / f"{name}.zip")
    with pytest.raises(InputError, match="no log in this archive"):
        diagnose_runs(packed(tmp_path / "weights.zip", {"model.safetensors": "x"}))
    with pytest.raises(InputError, match="no such file"):
        diagnose_runs(tmp_path / "missing.zip")
    with pytest.raises(InputError, match="chained URLs are written"):
        diagnose_runs("simplecache::zip://a::b.zip")


def test_a_server_reads_archives_inside_its_roots_alone_and_fetches_nothing(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "root").mkdir()
    inside = packed(tmp_path / "root" / "runs.zip", RUNS)
    with confined(access_from([str(tmp_path / "root")])):
        assert names(inside) == ["other/c", "sweep/a", "sweep/b"]
        for outside in (str(archive), f"zip://::{archive}", f"zip://sweep::{archive.as_uri()}"):
            with pytest.raises(InputError, match="outside the allowed roots"):
                diagnose_runs(outside)
        for url in ("s3://bucket/run", "gs://bucket/run", "memory://run", "zip://::s3://bucket/run.zip"):
            with pytest.raises(InputError, match="nothing is fetched from the network"):
                diagnose_run(url)


def test_a_link_in_an_archive_leads_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text(LOG)
    link = zipfile.ZipInfo("link.jsonl")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "links.zip", "w") as archive:
        archive.writestr(link, str(secret))
    row = diagnose_runs(tmp_path / "links.zip").rows[0]
    assert row.ending == "unread"


def test_a_member_without_a_name_is_left_out(tmp_path: Path) -> None:
    archive = packed(tmp_path / "runs.zip", {"nul.log": LOG, "a/log.jsonl": LOG})
    archive.write_bytes(archive.read_bytes().replace(b"nul.log", b"\0ul.log"))
    assert names(archive) == ["a"]


def test_what_fsspec_reaches_is_read(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name, content in RUNS.items():
        memory.pipe(f"/bucket/{name}", content.encode())
    memory.pipe("/bucket/runs.zip", packed(tmp_path / "runs.zip", RUNS).read_bytes())
    assert names("memory://bucket/sweep") == ["a", "b"]
    assert diagnose_run("memory://bucket/other/c/log.jsonl").run.last_step == 59
    assert names("zip://sweep::memory://bucket/runs.zip") == ["a", "b"]
    with pytest.raises(InputError, match=r"no log there|cannot be fetched"):
        diagnose_runs("memory://bucket/nowhere")


def test_without_its_package_a_store_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(MissingExtraError, match=r"mldebug-mcp\[s3\]"):
        diagnose_runs("s3://bucket/runs")


def test_a_path_of_this_machine_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "runs.zip"
    folder.mkdir()
    with brought_in(folder) as place, brought_in("runs") as other:
        assert (place, other) == (folder, "runs")
