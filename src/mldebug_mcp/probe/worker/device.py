"""Where and in which precision to compute."""

from __future__ import annotations

import torch

from .failure import KnownFailure

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
