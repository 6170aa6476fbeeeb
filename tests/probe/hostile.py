"""Entries that do what user code does at its worst."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

print("this module prints to stdout when it is imported")


def healthy() -> SimpleNamespace:
    import torch

    print("and when it is called", flush=True)
    os.write(1, b'{"stage": "forged", "step": 1, "steps": 1, "loss": 0}\n')
    torch.manual_seed(0)
    inputs, labels = torch.randn(8, 6), torch.arange(8) % 4
    model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    return SimpleNamespace(
        model=model, batch=(inputs, labels), loss=lambda m, b: torch.nn.functional.cross_entropy(m(b[0]), b[1])
    )


def healthy_only_once() -> SimpleNamespace:
    import torch

    if torch.initial_seed() != 0:
        raise ValueError("the port is in use")
    return healthy()


def dead_with_odd_seeds() -> SimpleNamespace:
    import torch

    seed = torch.initial_seed()
    given = healthy()
    torch.nn.init.constant_(given.model[0].bias, -100.0 if seed % 2 else 0.01 * seed)
    torch.nn.init.constant_(given.model[2].bias, 0.01 * seed)
    return given


def hangs() -> Any:
    time.sleep(600)


def hangs_in_c_with_a_child() -> Any:
    """Hold the interpreter's lock in C, so that no Python thread of this process can act."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(os.environ["PROBE_TEST_CHILD"]).write_text(str(child.pid))
    ctypes.PyDLL(None).sleep(600)


def waits_with_a_child() -> Any:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(os.environ["PROBE_TEST_CHILD"]).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)


def leaves_a_process_in_a_session_of_its_own() -> Any:
    script = "import os, time; os.setsid(); os.fork() and os._exit(0); print(os.getpid(), flush=True); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    Path(os.environ["PROBE_TEST_CHILD"]).write_text(f"{os.getpid()} {child.stdout.readline().strip()}")


def leaves_a_session_and_fails() -> Any:
    leaves_a_process_in_a_session_of_its_own()
    raise ValueError("done")


def leaves_a_session_and_waits() -> Any:
    leaves_a_process_in_a_session_of_its_own()
    time.sleep(600)


def puts_a_pipe_for_the_result() -> Any:
    Path(sys.argv[2]).unlink()
    os.mkfifo(sys.argv[2])
    os._exit(0)


def puts_an_endless_file_for_the_result() -> Any:
    Path(sys.argv[2]).unlink()
    Path(sys.argv[2]).symlink_to("/dev/zero")
    os._exit(0)


def puts_a_link_for_the_result() -> Any:
    forged = Path(sys.argv[2]).with_name("forged.json")
    forged.write_text('{"measured": {}, "done": true, "stage": "forged"}')
    Path(sys.argv[2]).unlink(missing_ok=True)
    Path(sys.argv[2]).symlink_to(forged)
    os._exit(0)


def puts_a_number_for_the_result() -> Any:
    Path(sys.argv[2]).write_text("[" * 100_000)
    os._exit(0)


def shows_the_environment() -> Any:
    raise ValueError(f"given: {' '.join(sorted(os.environ))}")


def aborts() -> Any:
    os.abort()


def segfaults() -> Any:
    ctypes.string_at(0)


def exits() -> Any:
    sys.exit(3)


def leaves() -> Any:
    os._exit(0)


def raises() -> Any:
    raise ValueError("the tokenizer is missing")


def eats_memory() -> Any:
    import torch

    kept = []
    while True:
        kept.append(torch.ones(64 * 1024 * 1024))


def reads_stdin() -> Any:
    return input()


def uses_the_network() -> Any:
    import socket

    socket.create_connection(("192.0.2.1", 80), timeout=2)


def sends_a_datagram() -> Any:
    import socket

    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, ("192.0.2.1", 53))


def starts_what_uses_the_network() -> Any:
    code = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname(), timeout=2).close()
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    raise ValueError(f"ended with {done.returncode}: {done.stderr[-200:]}")


def shows_its_memory_limit() -> Any:
    import resource

    raise ValueError(f"limit: {resource.getrlimit(resource.RLIMIT_DATA)[0]} bytes")


def holds_memory() -> None:
    held = bytearray(300 * 1024 * 1024)
    time.sleep(300)
    del held


def shows_a_token() -> Any:
    raise ValueError(f"token: {os.environ.get('HF_TOKEN')}")


def returns_nothing() -> None:
    return None


def fills_stderr() -> Any:
    for _ in range(20_000):
        print("x" * 200, file=sys.stderr)
    raise ValueError("done")


def loss_is_no_scalar() -> SimpleNamespace:
    given = healthy()
    model = given.model
    return SimpleNamespace(model=model, batch=given.batch, loss=lambda m, b: m(b[0]))


def hungry(room: int, **given: Any) -> SimpleNamespace:
    """Return a healthy pipeline that runs out of memory, as CUDA does, with more rows than it has room for."""
    import torch

    pipeline = healthy()

    def loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
        if len(batch[0]) > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])

    pipeline.loss = loss
    return SimpleNamespace(**vars(pipeline), **given)


def has_room_for_half() -> SimpleNamespace:
    return hungry(4)


def has_room_for_nothing() -> SimpleNamespace:
    return hungry(0)


def has_no_room_for_the_users_loop() -> SimpleNamespace:
    def train_step(model: Any, batch: Any) -> Any:
        return pipeline.loss(model, batch)

    pipeline = hungry(4, train_step=train_step)
    return pipeline
