from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
PATIENCE = 300.0
"""Seconds after which what a test waits for will not come, also where sixteen others want the same core."""

# The same examples at every run, however busy the machine: what fails here fails everywhere.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: tests wait a quarter of their time, for processes, time limits and pipes."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True, scope="session")
def may_read_everything() -> Iterator[None]:
    """Let servers read the temporary folders of tests; those about allowed roots set their own."""
    with pytest.MonkeyPatch.context() as session:
        session.setenv("MLDEBUG_MCP_ROOTS", os.sep)
        # What entries of tests read, and the watch on sockets: probes pass on what they are told to.
        session.setenv("MLDEBUG_MCP_PASS_ENV", "PROBE_TEST_CHILD,SOCKETS_TRIED,WATCHED")
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples"
