"""Sizes in words."""

from __future__ import annotations

MIB = 1024**2
"""Bytes in a mebibyte. Source: IEC 80000-13."""
GIB = 1024**3
"""Bytes in a gibibyte. Source: IEC 80000-13."""


def size(count: float) -> str:
    """Return bytes for a sentence, in the binary units that torch uses."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if abs(count) >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count:.0f} B"


def percent(part: float, whole: float) -> str:
    """Return a share in percent."""
    return f"{part / whole:.0%}" if whole else "0%"
