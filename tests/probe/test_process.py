"""The worker as a process: whatever user code does, there is an answer and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import PATIENCE

pytest.importorskip("torch")

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.probe import probe, probe_overfit
from mldebug_mcp.models import ProbeResult
from mldebug_mcp.probe import Progress, host, supervisor

HOSTILE = Path(__file__).parent / "hostile.py"


def run(name: str, time_limit: float = PATIENCE, memory_gb: float | None = None) -> ProbeResult:
    return probe_overfit(entry=f"{HOSTILE}:{name}", device="cpu", time_limit=time_limit, memory_gb=memory_gb)


def run_up_to(stage: str, name: str) -> ProbeResult:
    """Run an entry that waits until its time is up, with as much of it as the machine needs to get to a stage."""
    for time_limit in (8, 20, 60, PATIENCE):
        result = run(name, time_limit=time_limit)
        if result.stage == stage:
            break
    return result


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if true():
            return True
        select.select([], [], [], 0.02)
    return False


def test_what_user_code_prints_does_not_disturb_the_answer_and_progress_is_told() -> None:
    told: list[Progress] = []

    result = probe_overfit(entry=f"{HOSTILE}:healthy", device="cpu", on_progress=told.append)

    assert result.verdict == "memorised"
    assert {"training", "outcome"} <= {one.stage for one in told}
    assert "forged" not in {one.stage for one in told}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("aborts", "SIGABRT"),
        ("segfaults", "SIGSEGV"),
        ("exits", "SystemExit: 3"),
        ("leaves", "exit code 0"),
        ("raises", "the tokenizer is missing"),
        ("reads_stdin", "EOF"),
        ("uses_the_network", "the probe has no network"),
        ("sends_a_datagram", "the probe has no network"),
        ("returns_nothing", "it must return"),
        ("missing", "has no function 'missing'"),
        ("loss_is_no_scalar", "not a scalar tensor"),
        ("fills_stderr", "done"),
    ],
)
def test_a_failure_in_user_code_is_an_answer_that_names_it(name: str, told: str) -> None:
    result = run(name)

    assert result.verdict == "failed"
    assert told in result.summary
    assert len(result.output) < 4000


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a program that user code starts is not held")
def test_a_program_that_user_code_starts_reaches_this_machine_alone() -> None:
    if not supervisor.works(supervisor.leave_network):
        pytest.skip("this kernel gives no network of one's own")
    result = run("starts_what_uses_the_network")

    assert "ended with 1" in result.summary
    assert "Network is unreachable" in result.summary


def test_a_hang_ends_at_the_time_limit_and_says_where_it_was() -> None:
    result = run_up_to("build", "hangs")

    assert (result.verdict, result.stage) == ("failed", "build")
    assert "hangs" in result.output


def test_more_memory_than_the_limit_is_an_answer() -> None:
    result = run("eats_memory", memory_gb=2)

    assert result.verdict == "failed"
    assert "memory" in result.summary


def test_secrets_do_not_reach_user_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")

    result = run("shows_a_token")

    assert "token: None" in result.summary


SECRETS = (
    "DATABASE_URL", "GITHUB_PAT", "OPENAI_KEY", "WANDB_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN", "KUBECONFIG", "REDIS_URL", "SENTRY_DSN", "SLACK_WEBHOOK", "SSH_AUTH_SOCK", "STRIPE_SK",
    "NPM_CONFIG__AUTH", "PGPASSWORD", "MONGO_URI", "AZURE_STORAGE_CONNECTION_STRING",
    "GOOGLE_APPLICATION_CREDENTIALS", "HTTPS_PROXY", "CONDA_TOKEN", "SLURM_JWT", "MLDEBUG_MCP_TOKEN", "COOKIE",
    "MY_OWN_THING", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN", "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "COMET_API_KEY", "NEPTUNE_API_TOKEN", "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN", "CLEARML_API_SECRET_KEY", "KAGGLE_KEY", "PYPI_TOKEN", "TWINE_PASSWORD", "NPM_TOKEN",
    "DOCKER_PASSWORD", "DOCKER_AUTH_CONFIG", "AZURE_CLIENT_SECRET", "GOOGLE_API_KEY", "GEMINI_API_KEY",
    "MISTRAL_API_KEY", "COHERE_API_KEY", "TOGETHER_API_KEY", "REPLICATE_API_TOKEN", "RUNPOD_API_KEY",
    "LAMBDA_API_KEY", "VAST_API_KEY", "MYSQL_PWD", "PGPASSFILE", "MONGODB_PASSWORD", "REDIS_PASSWORD",
    "RABBITMQ_PASSWORD", "JWT_SECRET", "SECRET_KEY", "DJANGO_SECRET_KEY", "SLACK_BOT_TOKEN", "TELEGRAM_TOKEN",
    "DISCORD_TOKEN", "SMTP_PASSWORD", "VAULT_TOKEN", "GPG_PASSPHRASE", "CUDA_TOKEN", "TORCH_SECRET", "OMP_PASSWORD",
)  # fmt: skip


def test_of_the_environment_user_code_gets_what_training_needs_and_what_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*SECRETS, "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MY_DATA", "LC_ALL"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("MLDEBUG_MCP_PASS_ENV", "MY_DATA, OTHER")

    given = run("shows_the_environment").summary

    assert [name for name in SECRETS if name in given.split()] == []
    assert {"CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MY_DATA", "LC_ALL", "PATH"} <= set(given.split())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt the children of others")
@pytest.mark.parametrize("name", ["leaves_a_session_and_fails", "leaves_a_session_and_waits"])
def test_a_process_that_left_the_session_ends_with_the_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv("PROBE_TEST_CHILD", str(pids))

    result = run_up_to("build", name)

    assert result.verdict == "failed"
    assert [pid for pid in map(int, pids.read_text().split()) if alive(pid)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt the children of others")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_left_the_session_ends_with_the_host(tmp_path: Path, number: signal.Signals) -> None:
    pids, folders = tmp_path / "pids", tmp_path / "temporary"
    folders.mkdir()
    command = [sys.executable, "-m", "mldebug_mcp", "probe", "--entry", f"{HOSTILE}:leaves_a_session_and_waits"]
    environment = os.environ | {"PROBE_TEST_CHILD": str(pids), "TMPDIR": str(folders)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as host:
        assert wait_until(lambda: pids.exists() and " " in pids.read_text())
        host.send_signal(number)
        host.wait(PATIENCE)

    assert wait_until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))
    assert wait_until(lambda: not list(folders.glob("mldebug-probe-*")))


@pytest.mark.parametrize(
    "name",
    [
        "puts_a_pipe_for_the_result",
        "puts_an_endless_file_for_the_result",
        "puts_a_link_for_the_result",
        "puts_a_number_for_the_result",
    ],
)
def test_what_user_code_puts_in_the_place_of_the_result_is_an_answer(name: str) -> None:
    result = run(name)

    assert result.verdict == "failed"
    assert "did not run the probe" in result.summary or "no result" in result.summary


def test_cancelling_ends_the_worker_and_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv("PROBE_TEST_CHILD", str(pids))

    async def cancel_when_it_waits() -> None:
        running = asyncio.create_task(probe(entry=f"{HOSTILE}:waits_with_a_child", device="cpu"))
        async with asyncio.timeout(PATIENCE):
            while not (pids.exists() and pids.read_text().count(" ")):
                await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel_when_it_waits())

    assert [pid for pid in map(int, pids.read_text().split()) if alive(pid)] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_host_is_ended_by_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    pids = tmp_path / "pids"
    command = [sys.executable, "-m", "mldebug_mcp", "probe", "--entry", f"{HOSTILE}:waits_with_a_child"]
    folders = tmp_path / "temporary"
    folders.mkdir()
    environment = os.environ | {"PROBE_TEST_CHILD": str(pids), "TMPDIR": str(folders)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as host:
        assert wait_until(lambda: pids.exists() and " " in pids.read_text())
        assert len(list(folders.glob("mldebug-probe-*"))) == 1

        host.send_signal(number)
        host.wait(PATIENCE)

        assert wait_until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))
        assert wait_until(lambda: not list(folders.glob("mldebug-probe-*")))


def test_nothing_is_left_when_the_host_is_killed_while_c_code_hangs(tmp_path: Path) -> None:
    pid_file = tmp_path / "child"
    command = [sys.executable, "-m", "mldebug_mcp", "probe", "--entry", f"{HOSTILE}:hangs_in_c_with_a_child",
               "--time-limit", "30"]  # fmt: skip
    environment = os.environ | {"PROBE_TEST_CHILD": str(pid_file)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as host:
        assert wait_until(lambda: pid_file.exists() and pid_file.read_text() != "")

        host.kill()
        host.wait(PATIENCE)

        assert wait_until(lambda: not alive(int(pid_file.read_text())))


def fake_python(folder: Path, script: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("script", ["exit 0", "echo this is no Python; exit 1", "cat > /dev/null; echo '{}'"])
def test_a_program_that_is_no_python_is_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    monkeypatch.setattr(host, "START_LIMIT", 3.0)  # one of them never starts
    python = fake_python(tmp_path, script)

    result = probe_overfit(entry=f"{HOSTILE}:healthy", python=python, time_limit=2)

    assert result.verdict == "failed"
    assert "python" in result.summary.lower() or "not done" in result.summary


def test_an_interpreter_without_torch_is_named(tmp_path: Path) -> None:
    python = fake_python(tmp_path, f'exec {sys.executable} -S -E "$@"')

    result = probe_overfit(entry=f"{HOSTILE}:healthy", python=python)

    assert result.verdict == "failed"
    assert "cannot import torch" in result.summary


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "either a batch"),
        ({"entry": "pipeline.py"}, "names no function"),
        ({"entry": "a:b", "model": "config.json"}, "brings its own model"),
        ({"entry": "a:b", "python": "/nowhere/python"}, "not a program"),
        ({"batch": "/nowhere/batch.json"}, "no such file or folder"),
        ({"entry": "a:b", "steps": 0}, "steps"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused_in_one_line(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        probe_overfit(**arguments)  # type: ignore[arg-type]

    assert "\n" not in str(caught.value)
