"""The log ends in an error that is not known."""

from __future__ import annotations

import re

from mldebug_mcp.knowledge.errors import match
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.messages import matching, quoted
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom

_EXCEPTION = re.compile(
    r"(?:Error|Exception)\b\s*(?::|$|File\b)|\b(?:Segmentation|Bus) ?(?:fault|error)|\[(?:WinError|Errno) |"
    r"^(?:\w{1,60}\.){1,8}_?(?:exc|exceptions?)\.\w|^Error executing job\b|"
    r"\bterminate called after|: terminating due to|\(core dumped\)",
    re.IGNORECASE,
)


@symptom(whole_run=True, background=0.01)
def ends_in_error(run: Run) -> Evidence | None:
    """The last thing in the log is an exception or error that no known message explains.

    Not this when: training went on after it (more than two records follow); a known message is there, which says more
    (`error_message`; then this is unknown); the user interrupted the run.
    """
    matching(run, _EXCEPTION)
    last = run.fatal
    if any(match(message.text, code=message.code) for message in last):
        raise CannotTell("there is a known error message at the end, which says more")
    found = [message for message in last if _EXCEPTION.search(message.text)]
    if not found:
        return None
    return Evidence(
        f"the log ends in an error, in {quoted(found[-1])}",
        steps=(run.last_step,),
        values={"line": found[-1].line, "records_after": run.records - found[-1].records},
    )
