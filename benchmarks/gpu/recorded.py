"""Workloads recorded by torch: `python -m benchmarks.gpu.recorded FOLDER NAME [...]`, a process of its own.

Each snapshot is written as FOLDER/NAME.pickle, and what torch counted of it as FOLDER/NAME.json. With `--simulated` no
GPU is used: torch computes shapes alone, and the tests' model of its allocator gets every storage.

What autograd keeps, when a storage goes and which lines asked for it are torch's own there. Not modelled is what CUDA
kernels take for themselves (workspaces of cuBLAS, of sorts and of attention). Autograd runs the backward pass of a CPU
in the thread of the loop; a GPU's has a thread of its own, so that what the loop's stack adds there is cut off.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

import torch
from tests.memory.allocator import Allocator, Frame, OutOfMemory, snapshot
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.gpu.workloads import WORKLOADS, Workload

BEYOND = 64 << 30
"""Bytes that the device of a limited process has beside what the process may take."""
_NOT_ON_A_GPU = (
    *("/torch/_subclasses/", "/torch/_ops.py", "/torch/utils/_python_dispatch.py", "/torch/_dynamo/"),
    *("/torch/_compile.py", __file__),
)
_AUTOGRAD = "_engine_run_backward"


class Totals(NamedTuple):
    """Bytes, as `torch.cuda.memory_stats` counts them.

    Args:
        allocated: Held by tensors at the end.
        reserved: Held by the allocator at the end.
        peak: The most that tensors held.
        requested: Asked for by the tensors of the end, without rounding.
    """

    allocated: int
    reserved: int
    peak: int
    requested: int


def record(workload: Workload, path: Path) -> Totals:
    """Run a workload on the first GPU, dump its snapshot, and return what torch counted over all devices."""
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    if workload.limit:
        whole = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, workload.limit / whole), device)
    torch.cuda.memory._record_memory_history(
        "all" if workload.history else "state", stacks="python", max_entries=workload.entries
    )
    kept = workload.start(device)
    torch.cuda.synchronize(device)
    totals = counted()
    torch.cuda.memory._dump_snapshot(str(path))  # type: ignore[no-untyped-call]
    torch.cuda.memory._record_memory_history(None)
    del kept
    return totals


def counted() -> Totals:
    """Return the bytes that torch counted so far on all devices."""
    stats = [torch.cuda.memory_stats(number) for number in range(torch.cuda.device_count())]

    def of(name: str) -> int:
        return sum(int(one.get(name, 0)) for one in stats)

    return Totals(
        of("allocated_bytes.all.current"),
        of("reserved_bytes.all.current"),
        of("allocated_bytes.all.peak"),
        of("requested_bytes.all.current"),
    )


class Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells an allocator of every storage that is made, and of its end.

    Args:
        allocator: The allocator.
    """

    def __init__(self, allocator: Allocator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.allocator = allocator
        self.held, self.peak = 0, 0
        self._frames: dict[tuple[str, int, str], Frame] = {}
        self._known: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - whatever an operator gives
        """Compute, and take what is new."""
        del types
        made = func(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            if isinstance(one, FakeTensor):
                self._take(one.untyped_storage())
        return made

    def _take(self, storage: torch.UntypedStorage) -> None:
        key = id(storage)
        if key in self._known or not storage.nbytes():
            return
        try:
            address = self.allocator.malloc(storage.nbytes(), list(self._stack(sys._getframe(2))))
        except OutOfMemory:
            raise torch.OutOfMemoryError("CUDA out of memory.") from None
        size = self.allocator.size_of(address)
        self._known[key] = size
        self.held += size
        self.peak = max(self.peak, self.held)
        weakref.finalize(storage, self._free, key, address).atexit = False

    def _free(self, key: int, address: int) -> None:
        self.held -= self._known.pop(key)
        self.allocator.free(address)

    def _stack(self, frame: FrameType | None) -> Iterator[Frame]:
        """Yield the frames that a GPU's allocator would see, innermost first."""
        found = list(_frames(frame))
        inside = next((at for at, (_, _, name) in enumerate(found) if name == _AUTOGRAD), len(found))
        for place in found[:inside]:
            yield self._frames.setdefault(place, {"name": place[2], "filename": place[0], "line": place[1]})


def _frames(frame: FrameType | None) -> Iterator[tuple[str, int, str]]:
    started = False
    while frame is not None:
        file = frame.f_code.co_filename
        started = started or not any(one in file for one in _NOT_ON_A_GPU)
        if started:
            yield file, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back


def simulate(workload: Workload, path: Path) -> Totals:
    """Run a workload, write the snapshot that it would leave, and return what torch would have counted."""
    limit = {"capacity": workload.limit, "beyond": BEYOND} if workload.limit else {}
    allocator = Allocator(expandable=workload.expandable, max_entries=workload.entries, **limit)
    with FakeTensorMode(), Ledger(allocator) as ledger:
        kept = workload.start(torch.device("cpu"))
        tree = snapshot(allocator)
        totals = Totals(ledger.held, allocator.reserved, ledger.peak, allocator.requested)
        del kept
    if not workload.history:
        tree["device_traces"] = [[]]
    path.write_bytes(pickle.dumps(tree))
    return totals


def peak_of(work: Callable[[torch.device], object]) -> int:
    """Return the most bytes that tensors would hold on a GPU at a time."""
    # Transformers takes tensors without data for a trace, in which it writes out masks that a GPU's kernels do without.
    masks = "transformers.masking_utils"
    ledger = Ledger(Allocator())
    traced = mock.patch(f"{masks}.is_tracing", return_value=False)
    packed = mock.patch(f"{masks}.find_packed_sequence_indices", return_value=None)
    with traced, packed, FakeTensorMode(), ledger:
        work(torch.device("cpu"))
    return ledger.peak


def main() -> None:
    """Record some workloads one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", choices=WORKLOADS)
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args()
    run = simulate if options.simulated else record
    for name in options.names:
        totals = run(WORKLOADS[name], options.folder / f"{name}.pickle")
        (options.folder / f"{name}.json").write_text(json.dumps(totals._asdict()), encoding="utf-8")


if __name__ == "__main__":
    main()
