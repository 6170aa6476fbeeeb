"""What a server may read: only regular files inside its allowed roots, whatever the path, the links and the moment."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from mldebug_mcp.cli import main
from mldebug_mcp.core import access
from mldebug_mcp.core.access import Access, OutsideError, access_from, confined, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run
from mldebug_mcp.probe.host import check_entry, check_interpreter
from mldebug_mcp.server import make_server
from tests.conftest import PATIENCE
from tests.stdio_process import started

pytestmark = pytest.mark.anyio
SOURCE = Path(access.__file__).parent.parent
RECORDS = "".join(f'{{"step": {step}, "loss": {4 - step / 50}}}\n' for step in range(1, 40))
SECRET = "hunter2 is the loss: 1.5"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an allowed root beside which a secret stands."""
    root = tmp_path / "allowed"
    root.mkdir()
    (root / "train.jsonl").write_text(RECORDS)
    (root / "batch.json").write_text('{"input_ids": [[1, 2, 3]], "labels": [[-100, 2, 3]]}')
    (root / "oom.txt").write_text("CUDA out of memory. Tried to allocate 2.00 GiB")
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 9,
    }
    (root / "config.json").write_text(json.dumps(config))
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("secret.jsonl", "config.json", "tokenizer.json", "secret.py", "secret.txt"):
        (outside / name).write_text(f"{SECRET}\n{RECORDS}" if name != "config.json" else json.dumps({"secret": SECRET}))
    return root


@pytest.fixture
def only(root: Path) -> Iterator[None]:
    with confined(Access((str(root),))):
        yield


async def ask(root: Path, tool: str, **arguments: Any) -> tuple[bool, str]:
    async with Client(make_server(Access((str(root),)))) as client:
        answer = await client.call_tool(tool, arguments)
    return bool(answer.is_error), "".join(part.text for part in answer.content if part.type == "text")


ARGUMENTS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("diagnose_run", "path", {}),
    ("diagnose_run", "config", {"path": "train.jsonl"}),
    ("read_metric", "path", {}),
    ("diagnose_runs", "path", {}),
    ("compare_runs", "a", {}),
    ("compare_runs", "b", {}),
    ("diagnose_run", "reference", {"path": "train.jsonl"}),
    ("diagnose_run", "script", {"path": "train.jsonl"}),
    ("update_diagnosis", "path", {}),
    ("update_diagnosis", "config", {"path": "train.jsonl"}),
    ("update_diagnosis", "reference", {"path": "train.jsonl"}),
    ("inspect_batch", "path", {}),
    ("inspect_batch", "tokenizer", {"path": "batch.json"}),
    ("inspect_batch", "model", {"path": "batch.json"}),
    ("inspect_batch", "against", {"path": "batch.json"}),
    ("inspect_script", "path", {}),
    ("rows_at", "path", {}),
    ("rows_at", "data", {"path": "train.jsonl"}),
    ("rows_at", "tokenizer", {"path": "train.jsonl", "data": "batch.json"}),
    ("check_memory", "path", {}),
    ("check_memory", "against", {"path": "oom.txt"}),
    ("estimate_memory", "config", {}),
    ("estimate_memory", "snapshot", {"config": "config.json"}),
    ("explain_error", "text", {}),
    ("probe_overfit", "batch", {}),
    ("probe_overfit", "model", {"batch": "batch.json"}),
    ("probe_overfit", "python", {"batch": "batch.json"}),
)


@pytest.mark.parametrize(("tool", "argument", "others"), ARGUMENTS, ids=lambda value: str(value)[:20])
async def test_no_argument_of_any_tool_reads_outside_the_roots_or_tells_what_is_there(
    root: Path, tool: str, argument: str, others: dict[str, str]
) -> None:
    inside: dict[str, object] = {name: str(root / value) for name, value in others.items()}
    if tool == "update_diagnosis":
        inside["outcomes"] = {}
    if tool == "read_metric":
        inside["names"] = ["loss"]
    if tool == "rows_at":
        inside["step"] = 3
    if tool == "compare_runs":
        inside |= {"a": [str(root / "train.jsonl")] * 2, "b": [str(root / "train.jsonl")] * 2}
    told = []
    for name in ("secret.jsonl", "nothing_there.jsonl"):
        path = str(root.parent / "outside" / name)
        failed, text = await ask(root, tool, **{**inside, argument: [path] * 2 if tool == "compare_runs" else path})
        assert failed
        assert "allowed roots" in text
        assert "--root" in text or "--python" in text
        assert "hunter2" not in text
        told.append(text.replace(name, "NAME"))
    assert told[0] == told[1], "whether a file exists outside must not be told"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices")
@pytest.mark.parametrize(("tool", "argument", "others"), ARGUMENTS, ids=lambda value: str(value)[:20])
async def test_a_pipe_or_a_device_in_any_argument_is_refused_and_not_waited_for(
    root: Path, tool: str, argument: str, others: dict[str, str]
) -> None:
    given: dict[str, object] = {name: str(root / value) for name, value in others.items()}
    if tool == "update_diagnosis":
        given["outcomes"] = {}
    if tool == "rows_at":
        given["step"] = 3
    if tool == "compare_runs":
        given |= {"a": [str(root / "train.jsonl")] * 2, "b": [str(root / "train.jsonl")] * 2}
    os.mkfifo(root / "pipe")
    async with Client(make_server(Access((str(root), "/dev")))) as client:
        for path in (str(root / "pipe"), "/dev/zero"):
            with anyio.fail_after(PATIENCE):
                value = [path] * 2 if tool == "compare_runs" else path
                answer = await client.call_tool(tool, {**given, argument: value})
            assert answer.is_error, (path, answer.content)


@pytest.mark.parametrize(("tool", "argument", "others"), ARGUMENTS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("path", ["x" * 1_000_000, "~nobody_of_that_name/a.log"], ids=["a megabyte", "nobody"])
async def test_a_path_that_no_file_can_have_is_a_short_refusal(
    root: Path, tool: str, argument: str, others: dict[str, str], path: str
) -> None:
    given: dict[str, object] = {name: str(root / value) for name, value in others.items()}
    if tool == "update_diagnosis":
        given["outcomes"] = {}
    if tool == "rows_at":
        given["step"] = 3
    failed, text = await ask(root, tool, **given, **{argument: path})
    assert failed or tool == "explain_error"  # which may take it for a message
    assert len(text) <= 5000
    assert "Traceback" not in text


@pytest.mark.parametrize("name", ["config.json", "config.yaml", "args.toml", "args.ini", "args.txt"])
async def test_a_binary_file_in_the_place_of_a_configuration_is_a_line(root: Path, name: str) -> None:
    (root / name).write_bytes(bytes(range(256)) * 20)
    failed, text = await ask(root, "diagnose_run", path=str(root / "train.jsonl"), config=str(root / name))
    assert failed
    assert name in text
    assert "\n" not in text
    assert "Traceback" not in text


async def test_a_diagnosis_goes_on_from_its_findings_where_the_run_may_not_be_read(root: Path) -> None:
    path = str(root.parent / "outside" / "secret.jsonl")
    failed, text = await ask(root, "update_diagnosis", findings={"loss_spike": "present"}, outcomes={}, path=path)
    assert not failed
    assert "only the findings passed in" in text
    assert "allowed roots" in text
    assert "hunter2" not in text


async def test_code_outside_the_roots_is_not_run(root: Path) -> None:
    failed, text = await ask(root, "probe_overfit", entry=f"{root.parent}/outside/secret.py:make")
    assert failed
    assert "allowed roots" in text


async def test_every_argument_that_is_a_path_is_tested_above(root: Path) -> None:
    async with Client(make_server(Access((str(root),)))) as client:
        tools = (await client.list_tools()).tools
    no_paths = {
        "run",
        "detail",
        "purpose",
        "sample",
        "focus",
        "query",
        "domain",
        "topic",
        "kind",
        "limit",
        "id",
        "device",
    }
    no_paths |= {"steps", "time_limit", "dtype", "findings", "outcomes", "entry", "error", "names", "metric"}
    no_paths |= {"sampler", "past_end", "format"}
    tested = {(tool, argument) for tool, argument, _ in ARGUMENTS}
    for tool in tools:
        texts = {name for name, schema in tool.input_schema["properties"].items() if '"string"' in json.dumps(schema)}
        if tool.name == "estimate_memory":
            texts &= {"config", "snapshot"}
        assert {(tool.name, name) for name in texts - no_paths} <= tested, tool.name


@pytest.mark.usefixtures("only")
@pytest.mark.parametrize("path", ["../outside/secret.jsonl", "link.jsonl", "folder/secret.jsonl", "folder", ".."])
def test_dots_and_links_do_not_lead_out(root: Path, path: str) -> None:
    (root / "link.jsonl").symlink_to(root.parent / "outside" / "secret.jsonl")
    (root / "folder").symlink_to(root.parent / "outside")
    with pytest.raises(OutsideError, match="allowed roots"):
        read_run(root / path)


@pytest.mark.usefixtures("only")
def test_a_link_to_another_place_inside_is_followed(root: Path) -> None:
    (root / "latest.jsonl").symlink_to(root / "train.jsonl")
    assert read_run(root / "latest.jsonl").records == 39


@pytest.mark.usefixtures("only")
def test_links_in_a_run_folder_that_lead_out_are_left_out_with_a_note(root: Path) -> None:
    (root / "more.jsonl").symlink_to(root.parent / "outside" / "secret.jsonl")
    (root / "config.json").unlink()
    (root / "config.json").symlink_to(root.parent / "outside" / "config.json")
    run = read_run(root)
    assert run.records == 39
    assert not run.config
    assert any("more.jsonl" in note and "config.json" in note and "lead out" in note for note in run.notes)


@pytest.mark.usefixtures("only")
def test_the_command_line_is_free_and_confinement_ends_with_the_call(root: Path) -> None:
    with confined(Access()):
        assert read_run(root.parent / "outside" / "secret.jsonl").records == 39
    with pytest.raises(OutsideError):
        read_run(root.parent / "outside" / "secret.jsonl")


@pytest.mark.skipif(sys.platform != "linux", reason="places are held on Linux only")
@pytest.mark.usefixtures("only")
def test_a_file_swapped_for_a_link_after_it_was_checked_is_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "train.jsonl"
    realpath = os.path.realpath

    def then_swap(checked: Path) -> str:
        found = realpath(checked)
        if checked == path and not path.is_symlink():
            path.unlink()
            path.symlink_to(root.parent / "outside" / "secret.jsonl")
        return found

    monkeypatch.setattr(os.path, "realpath", then_swap)
    with pytest.raises(OutsideError):
        open_input(path)


@pytest.mark.usefixtures("only")
def test_where_places_cannot_be_held_what_was_opened_is_compared(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_BY_PLACE", False)
    assert read_run(root / "train.jsonl").records == 39
    assert read_run(root).records == 39
    (root / "link.jsonl").symlink_to(root.parent / "outside" / "secret.jsonl")
    with pytest.raises(OutsideError):
        open_input(root / "link.jsonl")


@pytest.mark.usefixtures("only")
def test_the_journal_of_a_database_that_leads_out_is_not_read(root: Path, samples: Path) -> None:
    (root / "mlflow.db").write_bytes((samples / "mlflow.db").read_bytes())
    assert read_run(root / "mlflow.db").records
    (root / "mlflow.db-wal").symlink_to(root.parent / "outside" / "secret.jsonl")
    with pytest.raises(OutsideError):
        read_run(root / "mlflow.db")


@pytest.fixture
def samples() -> Path:
    return Path(__file__).parent / "logs" / "samples"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and devices")
@pytest.mark.usefixtures("only")
def test_pipes_devices_sockets_and_proc_are_refused_at_once(root: Path) -> None:
    os.mkfifo(root / "pipe.log")
    with pytest.raises(InputError, match="not a regular file"):
        read_run(root / "pipe.log")
    assert read_run(root).records == 39
    for place in ("/dev/zero", "/proc/self/environ", "/sys/kernel/notes"):
        with confined(Access(("/",))), pytest.raises(InputError):
            open_input(Path(place))


@pytest.mark.usefixtures("only")
def test_a_folder_that_holds_itself_and_one_of_many_entries_are_bounded(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "again").symlink_to(root)
    (root / "round").symlink_to(root / "round")
    assert read_run(root).records == 39
    monkeypatch.setattr("mldebug_mcp.core.access.MAX_ENTRIES", 3)
    for number in range(5):
        (root / f"a{number}.jsonl").write_text(RECORDS)
    assert any("only 3 entries of the folder" in note for note in read_run(root).notes)


def test_the_roots_are_those_given_else_of_the_environment_else_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    monkeypatch.setenv("MLDEBUG_MCP_ROOTS", f"{one}{os.pathsep}{two}")
    assert access_from().roots == (str(one), str(two))
    assert access_from([str(two)]).roots == (str(two),)
    monkeypatch.delenv("MLDEBUG_MCP_ROOTS")
    monkeypatch.chdir(one)
    assert access_from().roots == (str(one),)
    with pytest.raises(InputError, match="no such folder; --root"):
        access_from([str(tmp_path / "three")])


async def test_a_server_started_in_the_root_of_the_file_system_reads_nothing_unasked(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLDEBUG_MCP_ROOTS")
    monkeypatch.chdir("/")
    async with Client(make_server()) as client:
        answer = await client.call_tool("diagnose_run", {"path": str(root / "train.jsonl")})
    assert answer.is_error
    assert "start it with --root DIR" in str(answer.content)


def test_the_command_takes_roots_with_and_without_serve_and_only_for_the_server(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    call = {"name": "diagnose_run", "arguments": {"path": str(root.parent / "outside" / "secret.jsonl")}}
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {**asked, "params": call},
    ]
    command = [sys.executable, "-m", "mldebug_mcp", "--root", str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.writelines(json.dumps(line) + "\n" for line in lines)
        server.stdin.flush()
        answers = [server.stdout.readline() for _ in range(2)]
        server.kill()
    assert f"may read only in {root}" in answers[1]
    assert main(["serve", "--root", str(root / "nothing")]) == 2
    assert "no such folder" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--root", str(root), "explain", "loss_spike"])


def told_by_a_probe(root: Path, *options: str, **variables: str) -> str:
    with started(root, *options, **variables) as server:
        answer = server.ask("tools/call", name="probe_overfit", arguments={"batch": str(root / "batch.json")})
    return json.dumps(answer)


@pytest.mark.parametrize("named", ["by its path", "auto"])
def test_a_probe_runs_in_the_environment_that_the_server_was_started_with_though_it_lies_outside(
    tmp_path: Path, named: str
) -> None:
    root, training = tmp_path / "root", tmp_path / "training"
    (training / "bin").mkdir(parents=True)
    (training / "bin" / "python").write_text("#!/bin/sh\nexit 9\n")
    (training / "bin" / "python").chmod(0o755)
    (training / "lib" / "python3.12" / "site-packages" / "torch").mkdir(parents=True)
    (training / "lib" / "python3.12" / "site-packages" / "torch" / "__init__.py").touch()
    root.mkdir()
    (root / "batch.json").write_text(json.dumps({"input_ids": [[1, 2, 3]], "labels": [[1, 2, 3]]}))
    if named == "auto":
        told = told_by_a_probe(root, "--python", "auto", VIRTUAL_ENV=str(training))
    else:
        told = told_by_a_probe(root, "--python", str(training))
    assert f"{training}/bin/python did not run the probe (exit code 9)" in told


@pytest.mark.usefixtures("only")
def test_only_interpreters_inside_the_roots_or_named_at_the_start_are_run(root: Path) -> None:
    inside = root / "venv" / "bin"
    inside.mkdir(parents=True)
    (inside / "python").symlink_to(Path(sys.executable).resolve())
    (inside / "python3").symlink_to("/bin/sh")
    check_interpreter(inside / "python")
    check_interpreter(root / "venv")
    for refused in (inside / "python3", Path(sys.executable), Path("python3"), Path("/bin/sh")):
        with pytest.raises(OutsideError, match="--python"):
            check_interpreter(refused)
    with confined(Access((str(root),), pythons=(sys.executable,))):
        check_interpreter(Path(sys.executable))


@pytest.mark.usefixtures("only")
@pytest.mark.parametrize("entry", ["os:getcwd", "../outside/secret.py:make", "link.py:make"])
def test_an_entry_is_a_file_inside_the_roots(root: Path, entry: str) -> None:
    (root / "link.py").symlink_to(root.parent / "outside" / "secret.py")
    with pytest.raises(InputError, match="allowed roots"):
        check_entry(str(root / entry) if entry.endswith("py:make") else entry)
    (root / "train.py").write_text("")
    check_entry(f"{root / 'train.py'}:make")


OPENERS = {
    "open",
    "read_text",
    "read_bytes",
    "iterdir",
    "glob",
    "rglob",
    "is_file",
    "is_dir",
    "exists",
    "scandir",
    "listdir",
}
OWN_FILES = (
    "core/access.py", "core/paths.py", "core/preferences.py",
    "capture.py", "clients/", "cli/", "knowledge/", "server/", "report/",
    "recorder/", "probe/worker/", "probe/host.py",
    "probe/supervisor.py", "judge/hypotheses.py", "judge/likeness.py", "core/limits.py", "core/sandbox/",
)  # fmt: skip
"""They open files of the package, of the user's own writing, of the system, or made by themselves."""
KNOWN = {
    ("batch/tokenizer.py", "is_file"), ("batch/tokenizer.py", "read_text"),  # of the copy that the library reads
    ("batch/tokenizer.py", "glob"),
    ("logs/log_file.py", "open"),  # of what is unpacked; the packed file is opened by `open_input`
    ("logs/formats/trackers.py", "open"),  # of a copy; what is copied is opened by `open_input`
    ("logs/settings/files.py", "open"),  # of an entry in an archive
    ("logs/remote_files.py", "open"),  # of a member of an archive, and of the copy that is made of it
    ("logs/remote_files.py", "is_file"), ("logs/remote_files.py", "is_dir"),  # of that copy, and of a member
    ("probe/host.py", "is_dir"), ("probe/host.py", "is_file"),  # of interpreters, which may lie outside
    ("logs/names/lexicon.py", "read_text"),  # our own file
    ("checks/check.py", "scandir"),  # the package's own modules
    ("judge/runs.py", "scandir"), ("judge/runs.py", "is_dir"),  # of our own code, to know when it changes
    ("judge/reader.py", "read_text"), ("judge/reader.py", "glob"),  # replies that it kept itself
    ("judge/columns/evaluation.py", "read_text"),  # our own page, for how English goes
    ("batch/formats/sample_shards.py", "open"),  # of an archive that `open_input` opened
    ("script/faults.py", "open"),  # our own file
    ("core/paths.py", "open"),  # of the record that a command of the user's writes
    ("judge/runs.py", "is_file"), ("judge/runs.py", "read_bytes"),  # our own file; no tool names one
}  # fmt: skip


def test_no_reader_opens_a_file_past_the_one_door() -> None:
    found = set()
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        if where.startswith(OWN_FILES):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                on = (
                    node.func.value.id
                    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
                    else ""
                )
                imported = isinstance(node.func, ast.Name) and name != "open"
                if name in OPENERS and not imported and on not in ("LogFile", "gzip"):
                    found.add((where, name))
    assert found <= KNOWN
