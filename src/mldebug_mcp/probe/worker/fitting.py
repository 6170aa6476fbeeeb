"""Where and in which precision to compute, and what to do when memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch

from .outputs import token_ids
from .probe import Probe
from .report import KnownFailure, Report
from .subject import Subject
from .tree import leaves, mapped

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def choose_device(wanted: str) -> torch.device:
    """Return the device: the one named, or the first of CUDA, MPS and CPU that works.

    Raises:
        KnownFailure: the named one is not here.
    """
    if wanted != "auto":
        try:
            device = torch.device(wanted)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError) as error:
            first = str(error).splitlines()[0]
            raise KnownFailure("device", f"device {wanted!r} cannot be used here ({first}); try auto or cpu") from None
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory ran out, on any device."""
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and ("out of memory" in str(error) or "not enough memory" in str(error)
                                                or "can't allocate memory" in str(error))  # fmt: skip


FEWEST_POSITIONS = 8


def probe_what_fits(make: Callable[[], Probe], report: Report) -> None:
    """Run a probe; whenever memory runs out, halve the rows of its batch, then the positions, and begin again.

    The user's own loop holds its batch itself: that cannot be halved, and the error is raised.
    """
    before = dict(report.measured)
    probe = make()
    while not _ran(probe):
        # Outside the handler: its error would keep the frames, and with them the tensors, of the failed pass.
        report.measured.clear()
        report.measured.update(before)
        probe.state.restore()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        report.note(f"memory ran out: the probe began again with {_halve(probe.subject)}")
        probe = make()


def _ran(probe: Probe) -> bool:
    """Run a probe. Returns False if memory ran out and less may do."""
    try:
        probe.run()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) or not _can_be_halved(probe.subject):
            raise
        return False
    return True


def _can_be_halved(subject: Subject) -> bool:
    rows, positions = _size(subject)
    return subject.train_step is None and (rows > 1 or positions >= 2 * FEWEST_POSITIONS)


def _size(subject: Subject) -> tuple[int, int]:
    """Return the batch's rows, 0 if unknown, and its positions, 0 unless it holds token ids."""
    first = next((tensor for _, tensor in leaves(subject.batch) if tensor.ndim), None)
    ids = token_ids(subject)
    return 0 if first is None else len(first), 0 if ids is None else ids.shape[1]


def _halve(subject: Subject) -> str:
    """Halve the batch of a subject and say what is left of it."""
    rows, positions = _size(subject)
    if rows > 1:
        subject.batch = _cut(subject.batch, 0, rows, rows // 2)
        return f"{rows // 2} of {rows} rows"
    subject.batch = _cut(subject.batch, 1, positions, positions // 2)
    return f"{positions // 2} of {positions} positions"


def _cut(batch: Any, dimension: int, whole: int, kept: int) -> Any:
    def first(_: object, tensor: torch.Tensor) -> torch.Tensor:
        fits = tensor.ndim > dimension and tensor.shape[dimension] == whole
        return tensor.narrow(dimension, 0, kept) if fits else tensor

    return mapped(batch, first)
