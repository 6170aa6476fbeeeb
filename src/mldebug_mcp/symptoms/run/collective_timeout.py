"""A collective operation timed out or was aborted."""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.messages import matching, quoted
from mldebug_mcp.symptoms.registry import Evidence, symptom

PATTERN = re.compile(
    r"Watchdog caught collective|\bNCCL\b.*(?:timeout|timed out|abort)|collective operation timeout|"
    r"Gloo.*(?:timeout|timed out)|DistBackendError|DistStoreError.*tim(?:eout|ed out)",
    re.IGNORECASE,
)


@symptom(whole_run=True, sources=("axolotl_faq", "coreweave_nccl"), background=0.001)
def collective_timeout(run: Run) -> Evidence | None:
    """A line of the log says that ranks waited for each other until a timeout.

    Not this when: a rank failed before with an error of its own: then the timeout is its echo (the line of the
    first error is given); training went on after it (a remark). Logs of metrics hold no messages (then it is unknown).
    """
    found = matching(run, PATTERN)
    if not found:
        return None
    first = run.messages[0]
    before = f"; the first error is {quoted(first)}" if first.line < found[0].line else ""
    survived = "" if any(one in run.fatal for one in found) else "; training went on after it"
    return Evidence(
        f"a collective operation timed out or was aborted in {quoted(found[0])}{before}{survived}",
        values={"line": found[0].line, "count": len(found), "first_error_line": first.line},
        present=not survived,
    )
