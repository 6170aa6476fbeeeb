"""The work that is measured on a memory snapshot, and a snapshot of any number of events to measure it on.

The allocator's model of the tests plays a training loop once; its steps come again and again at later times, each event
with a stack of its own whose frames are shared, as torch writes them.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from tests.memory import scenarios
from tests.memory.allocator import Allocator

from benchmarks.cost import cost_of

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
    "pickle.load": ("import pickle", "with open(sys.argv[1], 'rb') as f: tree = pickle.load(f)"),
    "segsum + trace": (
        _TORCH,
        "for verb in (viz.segsum, viz.trace):\n  with open(sys.argv[1], 'rb') as f: verb(pickle.load(f))",
    ),
    "check_memory": (_OURS, "check_memory(sys.argv[1])"),
}
"""What is done before the clock starts, and what is measured. Torch's file runs without the rest of torch."""


def work(program: str, path: Path) -> tuple[float, float]:
    """Return CPU seconds and peak memory in MiB of a piece of work on a snapshot, in a fresh process."""
    cost = cost_of(*PROGRAMS[program], path)
    return cost.cpu, cost.memory


LIBRARY_FRAMES = 30
"""Frames of torch in each stack, of allocations and frees alike; Python stacks of transformers are about this deep."""


def write_snapshot(path: Path, events: int, depth: int = LIBRARY_FRAMES) -> int:
    """Write a snapshot with about this many events, with stacks of this depth; returns how many there are."""
    model = scenarios.Decoder(Allocator(), layers=8).build()
    model.train_step()
    first = len(model.gpu.events)
    model.train_step()
    start, loop = model.gpu.events[:first], model.gpu.events[first:]
    length = loop[-1]["time_us"] - loop[0]["time_us"] + 40
    below = scenarios.stack(
        *((f"{scenarios._TORCH}/nn/modules/m{number}.py", number, f"f{number}") for number in range(depth))
    )

    def played(event: dict[str, Any], later: int = 0) -> dict[str, Any]:
        return {**event, "time_us": event["time_us"] + later, "frames": [*event["frames"], *below]}

    trace = [played(event) for event in start]
    for number in range(max(1, (events - first) // len(loop))):
        trace += [played(event, number * length) for event in loop]
    tree = {"segments": scenarios.snapshot_of(model.gpu)["segments"], "device_traces": [trace]}
    with path.open("wb") as file:
        pickle.dump(tree, file)
    return len(trace)
