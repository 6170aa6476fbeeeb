from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# The same examples at every run, however busy the machine: what fails here fails everywhere.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def may_read_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let servers read the temporary folders of tests; those about allowed roots set their own."""
    monkeypatch.setenv("MLDEBUG_MCP_ROOTS", os.sep)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples"
