"""An allocation failed for lack of memory."""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.messages import reported
from mldebug_mcp.symptoms.registry import Evidence, symptom

PATTERN = re.compile(
    r"out of memory|OutOfMemoryError|ResourceExhaustedError|(?:Xla|Jax)RuntimeError: RESOURCE_EXHAUSTED|"
    r"RESOURCE_EXHAUSTED: .{0,160}(?:memory|allocat|hbm)|DefaultCPUAllocator: (?:can't|not enough)|oom[-_ ]?kill",
    re.IGNORECASE,
)


@symptom(whole_run=True, sources=("axolotl_stability",), background=0.001)
def out_of_memory_error(run: Run) -> Evidence | None:
    """A line of the log says that an allocation failed for lack of memory.

    Not this when: training went on after it (a remark); the log is in a format that holds no messages (then it is
    unknown).
    """
    return reported(run, PATTERN, "an allocation failed")
