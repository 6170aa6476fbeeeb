"""A real client process over stdio: it starts the server, lists, calls, follows the suggestion, reads and leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).parent / "stdio_client.py"


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_a_client_process_works_with_the_server_over_stdio(examples: Path, mode: str, version: str) -> None:
    done = subprocess.run(
        [sys.executable, str(CLIENT), mode, str(examples / "overfit")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["version"] == version
    assert {"diagnose_run", "explain"} <= set(answer["tools"])
    assert answer["cause"] == "overfitting"
    assert answer["followed"]["id"] == "overfitting"
    assert "overfit" in answer["prompt"]
    assert answer["skill"].startswith("---\nname: mldebug")
