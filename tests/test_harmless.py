"""The check of inputs tells those that harm the library which reads them from those that it answers or refuses."""

from __future__ import annotations

import os
import signal
import sys

import pytest

if sys.platform != "linux":
    pytest.skip("the limits are those of Linux", allow_module_level=True)

from benchmarks import harmless


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.json", b"{}"), ("a.json", b"{"), ("a.yaml", b"a: [1"), ("a.bin", b"PK\x03\x04"), ("a.c", b"")],
)
def test_an_answer_and_a_raised_error_are_harmless(name: str, data: bytes) -> None:
    assert harmless.harm(name, data) == ""


def work(data: bytes) -> None:
    """Take as much as the limits of the test allow, and no more."""
    if data == b"time":
        for _ in range(10_000_000):
            os.getppid()
    elif data == b"memory":
        bytearray(1024 * 1024 * 1024)  # far more than a process may have freed since its limit was set
    elif data == b"crash":
        os.kill(os.getpid(), signal.SIGABRT)


@pytest.mark.parametrize(
    ("data", "what"),
    [(b"memory", "more than its memory"), (b"crash", "a crash (SIGABRT)"), (b"time", "more than its time")],
)
def test_a_reader_that_ends_otherwise_is_harmful(data: bytes, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harmless, "reader_of", lambda *_: work)
    monkeypatch.setattr(harmless, "CPU_SECONDS", 1)
    monkeypatch.setattr(harmless, "MEMORY_BYTES", 32 * 1024 * 1024)
    assert harmless.harm("a", data) == what
    assert harmless.harm("a", b"nothing") == ""
