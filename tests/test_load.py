"""Many mixed calls to one server; `benchmarks/load.py` makes more of them and measures."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.load import kinds_of_calls, mixed, over_http, over_stdio


def test_the_mix_holds_every_kind_of_call(tmp_path: Path) -> None:
    kinds = {call.kind for calls in kinds_of_calls(tmp_path) for call in calls}
    assert {call.kind for call in mixed(tmp_path, 150)} == kinds


def test_mixed_calls_through_one_session_all_end_as_they_should(tmp_path: Path) -> None:
    found = over_stdio(mixed(tmp_path, 150), 150, tmp_path)
    assert found.failures == []
    assert sum(map(len, found.milliseconds.values())) == 150


def test_mixed_calls_of_many_sessions_at_once_all_end_as_they_should(tmp_path: Path) -> None:
    found = asyncio.run(over_http(mixed(tmp_path, 120), 120, 40, tmp_path))
    assert found.failures == []
    assert sum(map(len, found.milliseconds.values())) == 120
