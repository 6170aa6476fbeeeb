"""What a GPU holds: by name, or as a number of GiB.

Capacities are what `torch.cuda.get_device_properties` counts and PyTorch's out-of-memory messages call the total
capacity. It is below what the maker prints: part of the memory holds error correction and the firmware's own data, and
makers count in GB of 10^9 bytes for some.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mldebug_mcp.errors import InputError
from mldebug_mcp.memory.sizes import GIB
from mldebug_mcp.suggest import did_you_mean, nearest
from mldebug_mcp.text import shorten

CAPACITY: Mapping[str, float] = {
    "A100-40GB": 39.4,
    "A100-80GB": 79.1,
    "A10": 22.0,
    "A30": 23.5,
    "A40": 44.4,
    "A4000": 15.6,
    "A5000": 23.5,
    "A6000": 47.4,
    "6000 Ada": 47.4,
    "B200": 178.3,
    "GH200": 94.5,
    "GTX 1080 Ti": 10.9,
    "H100": 79.1,
    "H100 NVL": 93.1,
    "H200": 139.8,
    "L4": 22.0,
    "L40": 44.3,
    "L40S": 44.3,
    "MI210": 63.9,
    "MI250X": 63.9,
    "MI300X": 191.9,
    "MI325X": 255.9,
    "P100": 15.8,
    "RTX 2080 Ti": 10.7,
    "RTX 3060": 11.6,
    "RTX 3080": 9.7,
    "RTX 3090": 23.6,
    "RTX 4060 Ti 16GB": 15.5,
    "RTX 4070": 11.6,
    "RTX 4080": 15.6,
    "RTX 4090": 23.6,
    "RTX 5080": 15.4,
    "RTX 5090": 31.3,
    "T4": 14.5,
    "V100-16GB": 15.7,
    "V100-32GB": 31.7,
}
"""GiB, approximately. Those of the RTX 4090, L40S, A30, A4000, A6000, H100 and B200 are the `total capacity` of
PyTorch's out-of-memory messages; the others are chosen a little below the nominal size. An MI250X is two devices of 64
GiB."""
SMALLEST_FIRST: Mapping[str, str] = {
    "a100": "A100-40GB",
    "v100": "V100-16GB",
    "a10g": "A10",
    "4060ti": "RTX 4060 Ti 16GB",
}
"""Names that stand for several, with the smallest of them, and other names of the same."""
LARGEST = 4096
"""GiB that no GPU has."""
_NUMBER = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?:gi?b?)?\s*", re.IGNORECASE)
_MAKER = re.compile(
    r"nvidia|geforce|quadro|tesla|rtx|gtx|amd|instinct|radeon|sxm\d?|pcie|hbm\d?e?|tensor|core|gpu|[^a-z0-9]"
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU.

    Args:
        name: What it is called here.
        capacity: Its bytes.
    """

    name: str
    capacity: int


def gpu_of(text: str | float) -> Gpu:
    """Return the GPU that a name or a number of GiB stands for, as "H100", "nvidia a100-sxm4-80gb", "24" or 24.

    Raises:
        InputError: it is neither.
    """
    number = _NUMBER.fullmatch(str(text)[:60])
    known = {_plain(name): name for name in CAPACITY}
    known |= SMALLEST_FIRST
    name = known.get(_plain(str(text)[:60]))
    if name is not None:
        return Gpu(name, int(CAPACITY[name] * GIB))
    if number and 0 < float(number["number"]) <= LARGEST:
        return Gpu(f"{float(number['number']):g} GiB", int(float(number["number"]) * GIB))
    near = [known[one] for one in nearest(_plain(str(text)[:60]), known)]
    guess = did_you_mean(list(dict.fromkeys(near)))
    raise InputError(
        f"gpu={shorten(str(text), 60)!r} is not known; {guess}give its memory in GiB (24), or one of "
        f"{', '.join(CAPACITY)}"
    )


def _plain(name: str) -> str:
    """Return a name without its maker, its form and its punctuation; "80gb" of an H100 says nothing more."""
    plain = _MAKER.sub("", name.lower())
    return re.sub(r"^(h100)80gb$|^(h200)141gb$|^(l4|a10|a10g|3090|4090|a5000)24gb$|^(t4)16gb$|^(mi300x)192gb$",
                  lambda match: next(filter(None, match.groups())), plain)  # fmt: skip
