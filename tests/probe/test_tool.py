"""The probe as a tool of the server, through an in-memory client."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from mcp import Client
from tests.conftest import PATIENCE

pytest.importorskip("torch")

from mldebug_mcp.models import ProbeResult
from mldebug_mcp.models.data import CurvePoint
from mldebug_mcp.probe import host
from mldebug_mcp.server import make_server
from mldebug_mcp.server.tools import picture_of

from .test_process import HOSTILE, alive

pytestmark = pytest.mark.anyio

CURVE = ProbeResult(
    verdict="memorised", summary="", causes=[], goal=0.1, curve=[CurvePoint(step=i, loss=2 / (i + 1)) for i in range(9)]
)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(make_server(), raise_exceptions=True) as connected:
        yield connected


async def test_a_probe_over_the_wire_answers_and_tells_its_progress(client: Client) -> None:
    told: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        told.append(message or "")

    result = await client.call_tool(
        "probe_overfit", {"entry": f"{HOSTILE}:healthy", "device": "cpu"}, progress_callback=note
    )

    assert not result.is_error, result.content
    assert result.structured_content is not None
    assert result.structured_content["verdict"] == "memorised"
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
    follow = result.structured_content["next_step"]
    assert not (await client.call_tool(follow["tool"], follow["arguments"])).is_error
    assert "training" in " ".join(told)
    assert "outcome" in " ".join(told)


def test_a_loss_curve_is_shown_as_a_png() -> None:
    pytest.importorskip("matplotlib")

    assert [base64.b64decode(one.data)[:4] for one in picture_of(CURVE)] == [b"\x89PNG"]


def test_without_matplotlib_or_without_a_curve_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    assert picture_of(ProbeResult(verdict="failed", summary="", causes=[])) == []
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert picture_of(CURVE) == []


async def test_a_probe_that_fails_suggests_to_explain_what_it_wrote(client: Client) -> None:
    result = await client.call_tool("probe_overfit", {"entry": f"{HOSTILE}:exits", "device": "cpu"})

    assert result.structured_content is not None
    assert result.structured_content["verdict"] == "failed"
    follow = result.structured_content["next_step"]
    assert follow["tool"] == "explain_error"
    assert not (await client.call_tool(follow["tool"], follow["arguments"])).is_error


async def test_an_argument_that_cannot_be_used_is_refused_in_one_line(client: Client) -> None:
    result = await client.call_tool("probe_overfit", {"entry": "pipeline.py"})

    assert result.is_error
    assert "names no function" in result.content[0].text  # type: ignore[union-attr]


async def test_cancelling_the_call_leaves_no_process_and_the_server_lives_on(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv("PROBE_TEST_CHILD", str(pids))
    call = asyncio.create_task(
        client.call_tool("probe_overfit", {"entry": f"{HOSTILE}:waits_with_a_child", "device": "cpu"})
    )
    async with asyncio.timeout(PATIENCE):
        while not (pids.exists() and pids.read_text().count(" ")):
            await asyncio.sleep(0.02)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert await gone(pids)
    assert (await client.list_tools()).tools


async def gone(pids: Path) -> bool:
    """Tell whether the processes end far sooner than the probe's time limit of a minute."""
    async with asyncio.timeout(PATIENCE):
        while any(alive(int(pid)) for pid in pids.read_text().split()):
            await asyncio.sleep(0.02)
    return True


IMPORTED = """
import asyncio, sys, threading
from importlib.machinery import PathFinder
from mcp import Client
from mldebug_mcp.server import make_server

class Watch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ("numpy", "mldebug_mcp.judge.probe", "mldebug_mcp.report.concise"):
            print(name, threading.current_thread() is threading.main_thread())
        return None

async def main():
    async with Client(make_server()) as client:
        sys.meta_path.insert(0, Watch)
        await client.call_tool("probe_overfit", {})

asyncio.run(main())
"""


async def test_the_first_probe_imports_in_a_thread_so_that_others_are_answered() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", IMPORTED, stdout=asyncio.subprocess.PIPE)
    output = (await process.communicate())[0].decode().split()
    assert "mldebug_mcp.judge.probe" in output
    assert "True" not in output


async def test_a_third_probe_waits_for_one_of_two_and_says_so(client: Client, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(
        "import os, pathlib, time\n"
        "here = pathlib.Path(__file__).parent\n"
        "def waits():\n"
        "    (here / f'{os.getpid()}.pid').touch()\n"
        "    while not (here / 'go').exists():\n"
        "        time.sleep(0.02)\n"
        "    raise ValueError('went on')\n"
    )
    arguments = {"entry": f"{tmp_path / 'pipeline.py'}:waits", "device": "cpu"}
    waiting = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        if "waiting for another probe" in str(message):
            waiting.set()

    async with asyncio.timeout(3 * PATIENCE):
        calls = [asyncio.create_task(client.call_tool("probe_overfit", arguments)) for _ in range(2)]
        while len(list(tmp_path.glob("*.pid"))) < 2:
            await asyncio.sleep(0.02)
        calls.append(asyncio.create_task(client.call_tool("probe_overfit", arguments, progress_callback=note)))
        await waiting.wait()
        assert len(list(tmp_path.glob("*.pid"))) == 2
        (tmp_path / "go").touch()
        results = await asyncio.gather(*calls)
    assert all("went on" in str(result.structured_content) for result in results)
    assert len(list(tmp_path.glob("*.pid"))) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is the kernel's")
async def test_a_probe_may_take_four_fifths_of_the_memory(client: Client) -> None:
    result = await client.call_tool("probe_overfit", {"entry": f"{HOSTILE}:shows_its_memory_limit", "device": "cpu"})

    found = re.search(r"limit: (\d+) bytes", json.dumps(result.structured_content))
    assert found
    limit = int(found[1])
    assert 0.75 < limit / (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) <= 0.8


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of other processes is read from /proc")
async def test_of_two_probes_that_need_more_than_one_may_take_the_second_gives_way(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "memory_limit", lambda _: 400 * 1024 * 1024)
    holding = {"entry": f"{HOSTILE}:holds_memory", "device": "cpu", "time_limit": 300}
    first = asyncio.create_task(client.call_tool("probe_overfit", holding))
    async with asyncio.timeout(PATIENCE):
        while not host._RUNNING:
            await asyncio.sleep(0.02)

    second = await client.call_tool("probe_overfit", holding)

    assert second.structured_content is not None
    assert "another that began before it needed more than 0.4 GiB together" in json.dumps(second.structured_content)
    assert not first.done()
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    async with asyncio.timeout(PATIENCE):
        while host._RUNNING:
            await asyncio.sleep(0.02)
