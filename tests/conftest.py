from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
PATIENCE = 300.0
"""Seconds after which what a test waits for will not come, also where sixteen others want the same core."""

# Threads of torch and numpy wait for each other by counting, on the core that another worker needs.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# The same examples at every run, however busy the machine: what fails here fails everywhere.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: tests wait a quarter of their time, for processes, time limits and pipes."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Compile the tests once, not once in each worker: each imports its share first, and finds the others' on the disk.

    Rewriting the assertions of all tests takes longer than the rest of the collection.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return
    share = int(worker["workerid"].removeprefix("gw"))
    for path in sorted(Path(__file__).parent.rglob("test_*.py"))[share :: worker["workercount"]]:
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


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
