"""Lines of a log that read like errors."""

from __future__ import annotations

import re

_ERROR = re.compile(
    r"^Traceback \(most recent|\b[\w.]{1,80}(?:Error|Exception)\b\s*:|"
    r"\b(?:Error|Exception)\s*:\s*[^\W\d]|[Oo]ut of memory|\bNCCL (?:WARN|error)|"
    r"\bSegmentation fault|\bSIG(?:KILL|TERM|SEGV|BUS|ABRT)\b|\bKilled\b|\bOVERFLOW!|device-side assert|\bXid\b|"
    r"\bAssertion [`'].{1,300}failed|"
    r"[Bb]us error|\boom[-_ ]kill|\bexitcode\s*:\s*-\d|Watchdog caught|diverged with loss|\bNaN loss\b|"
    r"\b[Ll]oss is (?:nan|NaN|inf)\b|^(?:\w{1,60}\.){1,8}_?(?:exc|errors?|exceptions?)\.[A-Z]\w{0,60}(?::\s|$)|"
    r"(?:^|\[\w{1,20}\]: ?)[\w.]{1,80}(?:Error|Exception)(?:\s*$|\s{2,}(?:File|assert)\b)|\bexit code:? 137\b|"
    r"\bserver socket has failed to listen|"
    r"\[(?:WinError|Errno) -?\d+\]|Memory access fault by GPU|\(core dumped\)|\bOOMKilled\b|"
    r"\bterminate called after|(?:^|\]:)\s{0,4}what\(\): |: terminating due to|"
    r"\blow on resource: memory|^Error executing job\b|\bCANCELLED AT\b|^OMP: Error|"
    r"^(?:zsh: |\[\d{1,4}\]\s+(?:[+-]\s+)?\d{1,9}\s+)killed\b|"
    r"(?:^|\]: ?)(?:(?:pyarrow\.lib\.)?Arrow[A-Z]\w{2,30}: |(?:\w{1,40}\.){1,4}error: )|"
    r"(?:^|\]: ?)(?:LLVM ERROR: |F\d{4} .{0,120}:\d+\] )|"
    r"(?:^|\s)E(?:\d{4})? .{0,120}\.(?:cc|cpp|h):\d+\] .{0,200}"
    r"(?:CUDNN_STATUS|RESOURCE_EXHAUSTED|CUDA_ERROR_(?!NO_DEVICE)|INTERNAL: |driver version is insufficient)|"
    r"\[LightGBM\] \[Fatal\]|: error: (?:argument|unrecognized|the following)|: can't open file '|^srun: error: |"
    r"^docker: Error response|^ERROR: (?:Failed|Could not|No matching)|\bCUDA Setup failed|"
    r"\bworker died or was killed\b|^KeyboardInterrupt\b",
)
_OF_METRICS = re.compile(r"\bLoss became infinite or NaN at iteration")
"""detectron2 ends with it: no error of its own, but the loss at a step, which is read as such."""
_HINTS = (
    "rror", "ception", "Traceback", "memory", "NCCL", "fault", "SIG", "Killed", "OVERFLOW", "assert", "Xid", "Watchdog",
    "diverged", "NaN loss", "oss is ", "oom", "exitcode", "exc.", "core dumped", "terminate called", "terminating due",
    "OOMKilled", "exit code", "failed to listen", "CANCELLED", "killed", "what():", "Assertion", "Arrow", ".cc:",
    ".cpp:", "[Fatal]", "open file", "ERROR", "Setup failed", "died or was",
    "KeyboardInterrupt",
)  # fmt: skip
"""One of these stands in every line that `_ERROR` finds: most lines are dismissed without a regular expression."""


MAX_CODE = 160
"""Characters of a line of code that are kept."""


def is_error(line: str) -> bool:
    """Say whether a line reads like an error."""
    if not any(map(line.__contains__, _HINTS)) or _ERROR.search(line) is None:
        return False
    return _OF_METRICS.search(line) is None


_FRAME = re.compile(r'File "[^"]{1,400}", line \d')
_OUT = "out of memory"
_OF_MEMORY = re.compile(r"\b[KMG]i?B\b|\bmemory\b|PyTorch|PYTORCH_|unallocated")
_OF_TRAINING = re.compile(r"loss|step|epoch|iter", re.IGNORECASE)
MAX_WRAPPED = 8
"""Lines below the first one of an out-of-memory message that may still hold its numbers: it is some 600 characters."""


class ErrorLines:
    """Tells the lines that read like errors, but for an exception that Python itself says it ignored.

    Beside them it keeps the line of code that a traceback shows last, which tells apart errors of the same words.
    """

    def __init__(self) -> None:
        self.ignoring = False
        """Whether the lines tell of an exception that was ignored."""
        self.code = ""
        """The code of the last frame of the traceback that stands above."""
        self._below_frame = False
        self._room = 0

    @property
    def open(self) -> bool:
        """Whether what the lines above tell may go on in the next one."""
        return self.ignoring or self._below_frame or self._room > 0

    def take(self, line: str) -> bool:
        """Say whether the next line reads like an error."""
        self._read_code(line)
        if line.startswith("Exception ignored in"):
            self.ignoring = True
            return False
        if not self.ignoring:
            failed = is_error(line)
            # A whole message ends with what PyTorch itself holds.
            self._room = MAX_WRAPPED if failed and _OUT in line and "PyTorch" not in line else 0
            return failed
        # The exception itself stands below its traceback, and ends what was ignored.
        self.ignoring = line.startswith(("Traceback", " "))
        return False

    def goes_on(self, line: str) -> bool:
        """Say whether the next line goes on with an out-of-memory message that was wrapped before its numbers ended."""
        if not self._room:
            return False
        goes_on = _OF_MEMORY.search(line) is not None and not _OF_TRAINING.search(line) and not is_error(line)
        self._room = self._room - 1 if goes_on else 0
        return goes_on

    def _read_code(self, line: str) -> bool:
        """Keep the line of code that a frame shows; return whether this is one."""
        if 'File "' in line and _FRAME.search(line):
            self.code, self._below_frame = "", True
        elif self._below_frame:
            code = line.rpartition("]:")[2]
            self.code, self._below_frame = code.strip()[:MAX_CODE], False
            return code[:1].isspace()
        return False
