"""The machine that the figures were taken on."""

from __future__ import annotations

import importlib.metadata
import platform
import time

import torch

PACKAGES = ("torch", "transformers", "bitsandbytes", "numpy")


def described() -> dict[str, str]:
    """Return the date, the device, the driver's CUDA and the versions, as far as they are there."""
    found = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "device": "none: a dry run on the CPU"}
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        found["device"] = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
        found["devices"] = str(torch.cuda.device_count())
        found["cuda"] = str(torch.version.cuda)
    found["python"] = platform.python_version()
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
