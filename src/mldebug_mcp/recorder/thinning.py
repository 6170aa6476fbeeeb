"""Half of the lines of a recording: of each two records the one that says more."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable

_LOSS = re.compile(rb'"(?:train/)?loss": ?(-?[\d.eE+-]+|NaN|-?Infinity)')
_ROWS = re.compile(rb', "rows": \[[^\]]*\]')
_DEEP = re.compile(rb'"(?:grad_norm|update_ratio)/')


def thinned(lines: Iterable[bytes], times: int) -> list[bytes]:
    """Return the head, every event, and of each two records of a kind the one whose loss lies farther from the last.

    So a spike and a value that is not finite stay, however often a recording is thinned. The rows of batches go: they
    are looked for where something happened, near the end.

    Args:
        lines: Lines of a recording, in order.
        times: How often what comes out was thinned; its head says so.
    """
    heads: dict[str, object] = {}
    kept: list[tuple[int, bytes]] = []
    waiting: dict[bool, tuple[int, bytes]] = {}
    level = math.nan
    for number, line in enumerate(lines):
        if line.startswith(b'{"recorder"'):
            heads |= _parsed(line)
        elif b'"event"' in line or not line.startswith(b"{"):
            kept.append((number, line))
        else:
            bare, deep = _ROWS.sub(b"", line), _DEEP.search(line) is not None
            before = waiting.pop(deep, None)
            if before is None:
                waiting[deep] = (number, bare)
                continue
            chosen = max(before, (number, bare), key=lambda one: _distance(one[1], level))
            kept.append(chosen)
            level = _loss(chosen[1], level)
    kept += waiting.values()
    head = json.dumps({**heads, "continued": True, "thinned": times}).encode() + b"\n"
    return [head, *(line for _, line in sorted(kept))]


def _parsed(line: bytes) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _loss(line: bytes, other: float) -> float:
    found = _LOSS.search(line)
    value = float(found[1]) if found else math.nan
    return value if math.isfinite(value) else other


def _distance(line: bytes, level: float) -> float:
    found = _LOSS.search(line)
    if found is None:
        return 0.0
    value = float(found[1])
    return math.inf if not math.isfinite(value) else 0.0 if math.isnan(level) else abs(value - level)
