"""Workloads without a GPU: torch computes shapes alone, and the tests' model of its allocator gets every storage.

What autograd keeps, when a storage goes and which lines asked for it are torch's own. Not modelled is what CUDA kernels
take for themselves (workspaces of cuBLAS, of sorts and of attention). Autograd runs the backward pass of a CPU in the
thread of the loop; a GPU's has a thread of its own, so that what the loop's stack adds there is cut off.
"""

from __future__ import annotations

import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import torch
from tests.memory.allocator import Allocator, Frame, OutOfMemory, snapshot
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.gpu.totals import Totals
from benchmarks.gpu.workload import Workload

BEYOND = 64 << 30
"""Bytes that the device of a limited process has beside what the process may take."""
_NOT_ON_A_GPU = (
    *("/torch/_subclasses/", "/torch/_ops.py", "/torch/utils/_python_dispatch.py", "/torch/_dynamo/"),
    *("/torch/_compile.py", __file__),
)
_AUTOGRAD = "_engine_run_backward"


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


def record(workload: Workload, path: Path) -> Totals:
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
