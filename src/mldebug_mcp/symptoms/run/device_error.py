"""A device or link reported a fault."""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.messages import reported
from mldebug_mcp.symptoms.registry import Evidence, symptom

PATTERN = re.compile(
    r"\bXid\b(?! \([^)]{1,60}\): (?:13|31|43|45|68|69)\b)|ECC error|ECCUncorrectable|fallen off the bus|"
    r"NVLink.*(?:error|fault)|hardware error|unspecified launch failure|GPU is lost|ibv_\w+.*(?:error|fail)|row remapp",
    re.IGNORECASE,
)


@symptom(whole_run=True, sources=("llama3", "mai_thinking_1"), background=0.001)
def device_error(run: Run) -> Evidence | None:
    """A line of the log is a fault that a device, its memory or a link reported.

    Not this when: training went on after it (a remark); a device-side assertion, an illegal address or an Xid of the
    application's own work (13, 31, 43, 45, 68, 69 in NVIDIA's catalogue), which are mostly errors of the program; logs
    of metrics hold no messages (then it is unknown).
    """
    return reported(run, PATTERN, "a device or link reported a fault")
