"""The work that is measured on a memory snapshot, and a snapshot of any number of events to measure it on.

A snapshot is written as it is made, so that making it needs no memory. The allocator's model of the tests plays a
training loop once; its steps are then written again and again at later times, each event with a stack of its own whose
frames are shared, as torch writes them.
"""

from __future__ import annotations

import json
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tests.memory import scenarios
from tests.memory.allocator import Allocator, Frame

_LOAD = "import pickle\nwith open(path, 'rb') as f: tree = pickle.load(f)"
_TORCH = """
import importlib.util, os, pickle
where = importlib.util.find_spec('torch').submodule_search_locations[0]
spec = importlib.util.spec_from_file_location('viz', os.path.join(where, 'cuda', '_memory_viz.py'))
viz = importlib.util.module_from_spec(spec); spec.loader.exec_module(viz)
"""
_OURS = """
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.checks import symptoms
symptoms("memory"); catalogue()
"""
PROGRAMS = {
    "pickle.load": ("", _LOAD),
    "segsum + trace": (
        _TORCH,
        "for verb in (viz.segsum, viz.trace):\n  with open(path, 'rb') as f: verb(pickle.load(f))",
    ),
    "check_memory": (_OURS, "check_memory(path)"),
}
"""What is done before the clock starts, and what is measured. Torch's file runs without the rest of torch."""


def work(program: str, path: Path) -> tuple[float, float]:
    """Return CPU seconds and peak memory in MiB of a piece of work on a snapshot, in a fresh process.

    The kernel's mark of the memory is taken (Linux): what `getrusage` tells is never below that of the process that
    started this one.
    """
    before, measured = PROGRAMS[program]
    code = (
        f"import json, time\npath = {str(path)!r}\n{before}\nstart = time.process_time()\n{measured}\n"
        "most = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]\n"
        "print(json.dumps([time.process_time() - start, int(most) / 1024]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, mebibytes = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), float(mebibytes)


LIBRARY_FRAMES = 30
"""Frames of torch in each stack, of allocations and frees alike; Python stacks of transformers are about this deep."""


def write_snapshot(path: Path, events: int, depth: int = LIBRARY_FRAMES) -> int:
    """Write a snapshot with about this many events, with stacks of this depth; returns how many there are."""
    model = scenarios.Decoder(Allocator(), layers=8).build()
    model.train_step()
    first = len(model.gpu.events)
    model.train_step()
    loop = model.gpu.events[first:]
    times = max(1, (events - first) // len(loop))
    tree = scenarios.snapshot_of(model.gpu)
    with path.open("wb") as file:
        writer = _Writer(file, depth)
        file.write(b"\x80\x04}(")
        writer.text("segments")
        # A pickle of its own for the small part, without its protocol and STOP: its memo is not used outside.
        file.write(_without_memo(tree["segments"]))
        writer.text("device_traces")
        file.write(b"](](")
        for event in _played(model.gpu.events[:first], loop, times):
            writer.event(event)
        file.write(b"eeu.")
    return first + times * len(loop)


def _played(start: list[dict[str, Any]], loop: list[dict[str, Any]], times: int) -> Iterator[dict[str, Any]]:
    yield from start
    length = loop[-1]["time_us"] - loop[0]["time_us"] + 40
    for number in range(times):
        for event in loop:
            yield {**event, "time_us": event["time_us"] + number * length}


def _without_memo(tree: object) -> bytes:
    class Buffer(list[bytes]):
        write = list.append

    buffer = Buffer()
    pickler = pickle._Pickler(buffer, protocol=2)
    pickler.fast = True
    pickler.dump(tree)
    return b"".join(buffer)[2:-1]


class _Writer:
    """Writes events as `pickle` does: each text and each frame once, then by its place in the memo."""

    def __init__(self, file: BinaryIO, depth: int) -> None:
        self.file = file
        self.memo: dict[object, int] = {}
        self.stacks: dict[tuple[int, ...], bytes] = {}
        self.below = scenarios.stack(
            *((f"{scenarios._TORCH}/nn/modules/m{number}.py", number, f"f{number}") for number in range(depth))
        )

    def text(self, text: str) -> None:
        if self._known(text):
            return
        data = text.encode()
        self.file.write(b"X" + struct.pack("<I", len(data)) + data)
        self._remember(text)

    def _known(self, key: object) -> bool:
        place = self.memo.get(key)
        if place is not None:
            self.file.write(b"h" + bytes([place]) if place < 256 else b"j" + struct.pack("<I", place))
        return place is not None

    def _remember(self, key: object) -> None:
        self.memo[key] = len(self.memo)
        self.file.write(b"\x94")

    def number(self, value: int) -> None:
        if 0 <= value < 256:
            self.file.write(b"K" + bytes([value]))
        elif value < 1 << 31:
            self.file.write(b"J" + struct.pack("<i", value))
        else:
            data = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
            self.file.write(b"\x8a" + bytes([len(data)]) + data)

    def event(self, event: dict[str, Any]) -> None:
        self.file.write(b"}(")
        for key, value in event.items():
            self.text(key)
            if key == "frames":
                self.frames(value)
            elif isinstance(value, int):
                self.number(value)
            else:
                self.text(value)
        self.file.write(b"u")

    def frames(self, frames: list[Frame]) -> None:
        written = tuple(map(id, frames))
        if written in self.stacks:
            self.file.write(self.stacks[written])
            return
        whole = [*frames, *self.below]
        self.file.write(b"](")
        for frame in whole:
            key = (frame["filename"], frame["line"], frame["name"])
            if not self._known(key):
                self.file.write(b"}(")
                for name, value in frame.items():
                    self.text(name)
                    if isinstance(value, int):
                        self.number(value)
                    else:
                        self.text(value)
                self.file.write(b"u")
                self._remember(key)
        self.file.write(b"e")
        # From the second time on a stack is a list of places in the memo.
        places = [self.memo[frame["filename"], frame["line"], frame["name"]] for frame in whole]
        known = (b"h" + bytes([place]) if place < 256 else b"j" + struct.pack("<I", place) for place in places)
        self.stacks[written] = b"](" + b"".join(known) + b"e"
