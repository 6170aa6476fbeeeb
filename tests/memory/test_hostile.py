"""Pickles that ask for a call, for more memory than a snapshot takes, or break the reader."""

from __future__ import annotations

import contextlib
import gzip
import io
import pickle
import struct
import tracemalloc
from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.memory import read
from mldebug_mcp.memory.read import MAX_STRING, MAX_TUPLES, SPARE_EMPTY_CONTAINERS
from tests.hostile.pickles import CALLS, NOTE
from tests.memory import scenarios
from tests.memory.allocator import MIB, Allocator
from tests.memory.conftest import Save

NAMED = b"".join(b"\x8c" + bytes([len(name)]) + name for name in NOTE.splitlines())
CALLING = {
    "REDUCE": b"c" + NOTE + b"(Vcalled\ntR.",
    "STACK_GLOBAL": b"\x80\x04" + NAMED + b"\x93\x8c\x06called\x85R.",
    "INST": b"(Vcalled\ni" + NOTE + b".",
    "OBJ": b"(c" + NOTE + b"Vcalled\no.",
    "NEWOBJ": b"\x80\x02c" + NOTE + b"Vcalled\n\x85\x81.",
    "NEWOBJ_EX": b"\x80\x04" + NAMED + b"\x93\x8c\x06called\x85}\x92.",
    "BUILD": b"\x80\x02}}b.",
    "EXT1": b"\x80\x02\x82\x01.",
    "EXT2": b"\x80\x02\x83\x01\x00.",
    "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
    "PERSID": b"Pname\n.",
    "BINPERSID": b"\x80\x02K\x01Q.",
    "GLOBAL in a snapshot": b"\x80\x02}(X\x08\x00\x00\x00segments](c" + NOTE + b"eu.",
    "after a snapshot's keys": b"\x80\x04}\x8c\x08segmentsc" + NOTE + b"s.",
}
CLAIMING = {
    "memo index": b"\x80\x02]r\x00\x00\x02\x00.",
    "memo index as text": b"(lp131072\n.",
    "string length": b"\x80\x04\x8d" + struct.pack("<Q", MAX_STRING + 1) + b"x.",
    "unicode length": b"\x80\x02X" + struct.pack("<I", MAX_STRING + 1) + b"x.",
    "bytes length": b"\x80\x04\x8e" + struct.pack("<Q", MAX_STRING + 1) + b"x.",
    "bytearray length": b"\x80\x05\x96" + struct.pack("<Q", MAX_STRING + 1) + b"x.",
    "frame length": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b"}.",
    "long length": b"\x80\x02\x8b\xff\xff\xff\x7f1.",
    "decimal number": b"L" + b"9" * 100_000 + b"L\n.",
    "nested tuples as a key": b"\x80\x02})" + b"\x85" * MAX_TUPLES + b"K\x01s.",
    "containers": b"\x80\x02](" + b"}" * 2 * SPARE_EMPTY_CONTAINERS + b"e.",
    "sets": b"\x80\x04\x8f(" + b"K\x01" * 1000 + b"\x90.",
    "out-of-band buffer": b"\x80\x05\x97.",
    "duplicates": b"\x80\x02]" + b"2" * 1000 + b".",
    "no opcode": b"\x80\x02\xff\xfe.",
    "stack underflow": b"\x80\x02u.",
    "missing memo": b"\x80\x02h\x05.",
    "pickle of protocol 9": b"\x80\x09}.",
}
"""Each claims a little more than a snapshot may; pickle alone reads it, or raises an error, at once."""


@pytest.mark.parametrize("name", CALLING)
def test_a_pickle_that_could_run_something_is_refused_by_the_name_of_its_opcode(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pickle"
    path.write_bytes(CALLING[name])

    with pytest.raises(InputError) as refused:
        check_memory(path)

    assert (
        "nothing in it was run" in str(refused.value)
        or "impossible argument" in str(refused.value)
        or "neither" in str(refused.value)
    )
    assert not CALLS


def assert_refused_in_little_memory(path: Path) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            check_memory(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 64 * MIB


@pytest.mark.parametrize("name", CLAIMING)
def test_a_pickle_that_claims_more_than_a_snapshot_holds_is_refused_in_little_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pickle"
    path.write_bytes(CLAIMING[name])
    assert_refused_in_little_memory(path)


def test_the_second_fence_refuses_globals_and_persistent_ids_too() -> None:
    unpickler = read._SafeUnpickler(io.BytesIO())
    with pytest.raises(pickle.UnpicklingError, match="refused to import"):
        unpickler.find_class("os", "system")
    with pytest.raises(pickle.UnpicklingError, match="persistent"):
        unpickler.persistent_load("x")


def _shared_bomb() -> object:
    trace = [{"action": "alloc", "addr": 1, "size": 1}] * 50_000
    return {"segments": [], "device_traces": [trace] * 900}


def test_a_history_shared_many_times_is_refused_before_it_is_walked(save: Save) -> None:
    with pytest.raises(InputError, match="not a memory snapshot"):
        check_memory(save(_shared_bomb()))


def test_lists_nested_a_thirty_thousand_deep_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.pickle"
    path.write_bytes(b"\x80\x02}X\x08\x00\x00\x00segments" + b"](" * 30_000 + b"e" * 30_000 + b"s.")

    with pytest.raises(InputError, match="neither a segment nor an event"):
        check_memory(path)


def test_a_snapshot_cut_off_anywhere_is_a_clear_error(save: Save, tmp_path: Path) -> None:
    whole = save(scenarios.snapshot_of(scenarios.training(steps=1))).read_bytes()
    path = tmp_path / "cut.pickle"
    for length in range(2, len(whole), len(whole) // 60):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut off|ends|corrupt"):
            check_memory(path)


def test_a_snapshot_with_changed_bytes_is_answered_or_refused(save: Save, tmp_path: Path) -> None:
    whole = save(scenarios.snapshot_of(scenarios.training(steps=1))).read_bytes()
    path = tmp_path / "changed.pickle"
    for place in range(0, len(whole), len(whole) // 150):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with contextlib.suppress(InputError):
            assert check_memory(path).findings


def test_a_gzip_cut_off_or_of_something_else_is_a_clear_error(save: Save, tmp_path: Path) -> None:
    packed = gzip.compress(save(scenarios.snapshot_of(scenarios.training(steps=1))).read_bytes())
    path = tmp_path / "cut.gz"
    for content in (packed[: len(packed) // 2], packed[:20], b"\x1f\x8b" + b"x" * 50, gzip.compress(b"words" * 1000)):
        path.write_bytes(content)
        with pytest.raises(InputError):
            check_memory(path)


def test_a_flood_of_containers_in_a_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flood.gz"
    path.write_bytes(gzip.compress(b"\x80\x02](" + b"}" * (5 * SPARE_EMPTY_CONTAINERS)))
    assert_refused_in_little_memory(path)


def test_text_in_a_snapshot_cannot_reach_the_terminal_as_control_sequences(save: Save) -> None:
    gpu = Allocator()
    gpu.malloc(MIB, [{"filename": "/home/\x1b[31mme\u202e.py", "line": 1, "name": "f\ud800\x07"}])

    answer = check_memory(save(scenarios.snapshot_of(gpu))).to_json()

    assert "\x1b" not in answer
    assert "\\u001b" not in answer
    assert "\u202e" not in answer
