"""No verb opens a socket: neither this process nor the worker of the probe, and no dependency either."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mldebug_mcp.probe.host import clean_environment

from .stdio_process import started

WATCH = """
import os, socket, sys

def watch(event, arguments):
    if event in PROGRAMS:
        with open(os.environ["WATCHED"] + ".programs", "a") as file:
            file.write(f"{os.path.basename(os.fsdecode(arguments[0] or arguments[1][0]))}\\n")
        return
    if event not in EVENTS:
        return
    about = arguments[0]
    if isinstance(about, socket.socket) and about.family == socket.AF_UNIX:
        return  # an event loop wakes itself through a pair of these
    with open(os.environ["SOCKETS_TRIED"], "a") as file:
        file.write(f"{event} {arguments}\\n")
    raise PermissionError(f"{event} is not allowed here")

EVENTS = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
          "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
PROGRAMS = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"}
sys.addaudithook(watch)
with open(os.environ["WATCHED"], "a") as file:
    file.write(" ".join(sys.orig_argv) + "\\n")
"""
TRACKERS = ("wandb", "trackio", "mlflow", "tensorboard", "comet_ml", "neptune", "ray")
VERBS = """
import sys
from mldebug_mcp.cli import main

for line in sys.stdin.read().splitlines():
    arguments = line.split("\\t")
    print(arguments[0], main(arguments), [name for name in TRACKERS if name in sys.modules], file=sys.stderr)
from huggingface_hub import constants
print(constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_TELEMETRY, file=sys.stderr)
""".replace("TRACKERS", repr(TRACKERS))


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Let no Python process that is started open a socket; return where attempts and processes are written down."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WATCH)
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    files = {name: tmp_path / name for name in ("SOCKETS_TRIED", "WATCHED")}
    for name, file in files.items():
        monkeypatch.setenv(name, str(file))
    return files


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request; urllib.request.urlopen('http://localhost:9')",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('127.0.0.1', 9))",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', "
        "'import socket; socket.create_connection((\"127.0.0.1\", 9))'], check=True)",
    ],
    ids=["http", "udp", "udp message", "child"],
)
def test_the_watch_sees_and_stops_a_socket(watched: dict[str, Path], code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "is not allowed here" in done.stderr
    assert "socket." in watched["SOCKETS_TRIED"].read_text()


def test_the_watch_sees_a_program_that_is_no_python(watched: dict[str, Path]) -> None:
    subprocess.run([sys.executable, "-c", "import subprocess; subprocess.run(['true'])"], check=True)
    assert programs(watched) == {"true"}


def programs(watched: dict[str, Path]) -> set[str]:
    """Return the programs that were started, in which the watch is not if they are no Python."""
    told = watched["WATCHED"].with_name("WATCHED.programs")
    return set(told.read_text().split()) if told.exists() else set()


def tokenizer(folder: Path) -> Path:
    """Write a tokenizer of a few words."""
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({"<pad>": 0, "</s>": 1, "a": 2, "b": 3}, unk_token="<pad>")
    folder.mkdir()
    tokenizers.Tokenizer(words).save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "pad_token": "<pad>"})
    )
    return folder


def inputs(folder: Path) -> dict[str, Path]:
    """Write small inputs of the verbs."""
    files = {name: folder / name for name in ("batch.jsonl", "config.json", "oom.txt")}
    row = {"input_ids": [2, 3, 2, 1], "labels": [2, 3, 2, 1]}
    files["batch.jsonl"].write_text("".join(json.dumps(row) + "\n" for _ in range(4)))
    files["config.json"].write_text(
        json.dumps(
            {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
             "num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 64,
             "architectures": ["LlamaForCausalLM"]}
        )
    )  # fmt: skip
    files["oom.txt"].write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.")
    return files


def test_no_verb_opens_a_socket_or_loads_a_tracker(watched: dict[str, Path], tmp_path: Path, examples: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    files = {name: str(path) for name, path in inputs(tmp_path).items()}
    verbs = [
        ["diagnose", str(examples / "loss_spike"), "--json"],
        ["diagnose", str(examples / "nan_loss"), "--reference", str(examples / "healthy")],
        ["batch", files["batch.jsonl"], "--tokenizer", str(tokenizer(tmp_path / "tokenizer"))],
        ["memory", files["oom.txt"]],
        ["estimate", files["config.json"]],
        ["search", "why did my loss spike"],
        ["explain", "lr_too_high"],
        ["error", files["oom.txt"]],
        ["evidence", "verify", "--offline"],
        ["probe", files["batch.jsonl"], "--model", files["config.json"], "--device", "cpu", "--steps", "30"],
    ]
    told = "\n".join("\t".join(verb) for verb in verbs)
    done = subprocess.run([sys.executable, "-c", VERBS], input=told, capture_output=True, text=True, check=True)

    assert [line for line in done.stderr.splitlines() if line.endswith("[]")] == [f"{verb[0]} 0 []" for verb in verbs]
    assert done.stderr.endswith("True True\n")
    started = watched["WATCHED"].read_text()
    assert "worker/__main__.py" in started
    # Each of these is in the watch, but the supervisor, which imports no module that has sockets.
    assert all(name.startswith("python") for name in programs(watched)), programs(watched)
    assert not watched["SOCKETS_TRIED"].exists(), watched["SOCKETS_TRIED"].read_text()


def test_the_server_over_stdio_opens_no_socket(watched: dict[str, Path]) -> None:
    with started() as server:
        answer = server.ask("tools/call", name="explain", arguments={"id": "loss_spike"})

    assert not answer["result"]["isError"]
    assert "mldebug_mcp" in watched["WATCHED"].read_text()
    assert not watched["SOCKETS_TRIED"].exists()


def test_the_worker_is_told_to_stay_offline_and_to_report_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("WANDB_MODE", "online")
    environment = clean_environment()

    assert {environment[name] for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "DO_NOT_TRACK")} == {"1"}
    assert environment["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert environment["WANDB_MODE"] == "disabled"
