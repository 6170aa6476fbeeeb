"""Lines of a log that read like errors."""

from __future__ import annotations

import re

_ERROR = re.compile(
    r"^Traceback \(most recent|\b[\w.]{1,80}(?:Error|Exception)\b\s*:|"
    r"\b(?:Error|Exception)\s*:\s*[^\W\d]|out of memory|\bNCCL (?:WARN|error)|"
    r"\bSegmentation fault|\bSIG(?:KILL|TERM|SEGV|BUS|ABRT)\b|\bKilled\b|\bOVERFLOW!|device-side assert|\bXid\b|"
    r"[Bb]us error|\boom[-_ ]kill|\bexitcode\s*:\s*-\d|Watchdog caught|diverged with loss|\bNaN loss\b|"
    r"\b[Ll]oss is (?:nan|NaN|inf)\b",
)
_OF_METRICS = re.compile(r"\bLoss became infinite or NaN at iteration")
"""detectron2 ends with it: no error of its own, but the loss at a step, which is read as such."""
_HINTS = (
    "rror", "ception", "Traceback", "memory", "NCCL", "fault", "SIG", "Killed", "OVERFLOW", "assert", "Xid", "Watchdog",
    "diverged", "NaN loss", "oss is ", "oom", "exitcode",
)  # fmt: skip
"""One of these stands in every line that `_ERROR` finds: most lines are dismissed without a regular expression."""


def is_error(line: str) -> bool:
    """Say whether a line reads like an error."""
    if not any(hint in line for hint in _HINTS) or _ERROR.search(line) is None:
        return False
    return _OF_METRICS.search(line) is None
