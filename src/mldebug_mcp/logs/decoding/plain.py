"""Values of a Python program as a JSON document would hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast


def plain_record(record: Mapping[Any, object]) -> dict[str, object]:
    """Return a record with plain values under names that are text."""
    return {str(key): plain_value(value) for key, value in record.items()}


def plain_value(value: object) -> object:
    """Return a number of numpy, torch or decimal as that number; None for whole arrays and objects."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return plain_record(value)
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return cast("Any", value).tolist() if math.prod(value.shape) == 1 else None
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value] if len(value) == 1 else None
    try:
        return float(cast("Any", value))  # Decimal, Fraction
    except (TypeError, ValueError):
        return None
