"""What symptoms of error messages share: finding a kind of message among the lines that read like errors."""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.symptoms.registry import CannotTell
from mldebug_mcp.text import shorten

OF_MEMORY = re.compile(
    r"out of memory|OutOfMemoryError|ResourceExhaustedError|(?:Xla|Jax)RuntimeError: RESOURCE_EXHAUSTED|"
    r"RESOURCE_EXHAUSTED: .{0,160}(?:memory|allocat|hbm)|DefaultCPUAllocator: (?:can't|not enough)|oom[-_ ]?kill",
    re.IGNORECASE,
)
"""An allocation that failed for lack of memory."""
OF_DEVICE = re.compile(
    r"\bXid\b(?! \([^)]{1,60}\): (?:13|31|43|45|68|69)\b)|ECC error|ECCUncorrectable|fallen off the bus|"
    r"NVLink.*(?:error|fault)|hardware error|unspecified launch failure|GPU is lost|ibv_\w+.*(?:error|fail)|row remapp|"
    r"(?:CUDA|HIP) error: (?:unknown error|hardware stack error)",
    re.IGNORECASE,
)
"""A fault that a device, its memory or a link reported; not the Xids of the application's own work."""
OF_COLLECTIVE = re.compile(
    r"Watchdog caught collective|\bNCCL\b.*(?:timeout|timed out|abort)|collective operation timeout|"
    r"Gloo.*(?:timeout|timed out)|DistBackendError|DistStoreError.*tim(?:eout|ed out)",
    re.IGNORECASE,
)
"""Ranks that waited for each other until a timeout."""
OF_LABEL = re.compile(
    r"Assertion `?(?:t >= 0 && t < n_classes|cur_target >= 0 && cur_target < n_classes)|"
    r"\bTarget -?\d+ is out of bounds|Label class -?\d+ exceeds nc=\d+|"
    r"Received a label value of -?\d+ which is outside|"
    r"Class values must be smaller than num_classes|Invalid classes inferred from unique values|"
    r"[Ll]abel must be in \[0, ?(?:\d+|num_class)\)",
)
"""A label outside of the classes that there are outputs for."""
EXCEPTION = re.compile(
    r"(?:Error|Exception)\b\s*(?::|$|File\b)|\b(?:Segmentation|Bus) ?(?:fault|error)|\[(?:WinError|Errno) |"
    r"^(?:\w{1,60}\.){1,8}_?(?:exc|exceptions?)\.\w|^Error executing job\b|"
    r"\bterminate called after|: terminating due to|\(core dumped\)",
    re.IGNORECASE,
)
"""Any exception or error that ends a program."""
ANY = re.compile("")


def matching(run: Run, pattern: re.Pattern[str]) -> list[Message]:
    """Return the error lines that match.

    Raises:
        CannotTell: the log is in a format that holds metrics only, and no messages.
    """
    if not run.messages and "text" not in run.formats:
        raise CannotTell("the log holds metrics only: error messages would stand in the program's output")
    return [message for message in run.messages if pattern.search(message.text)]


def quoted(message: Message) -> str:
    """Return a message as a sentence shows it: its line, and its text as data in quotes."""
    return f'line {message.line}: "{shorten(message.text, 160)}"'
