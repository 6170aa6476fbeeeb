"""A known error message stands in the log."""

from __future__ import annotations

import re

from mldebug_mcp.knowledge.errors import match
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.messages import matching, quoted
from mldebug_mcp.symptoms.registry import Evidence, symptom

_ANY = re.compile("")


@symptom(
    whole_run=True,
    sources=("axolotl_stability", "nccl_troubleshooting"),
    background=0.006,
    follows=("out_of_memory_error", "collective_timeout", "device_error"),
)
def error_message(run: Run) -> Evidence | None:
    """A known error message ended the run.

    Not this when: a line only reads like an error (a remark: an exception that was caught, or one of the user's own
    code); training went on after it, or had ended before; it is a warning or a retry; the log is in a format that
    holds no messages (then it is unknown).
    """
    matching(run, _ANY)
    if not run.messages:
        return None
    known = [message for message in run.fatal if match(message.text, code=message.code)]
    kind = "a known error message" if known else "a line that reads like an error"
    more = f" ({len(run.messages)} such lines in all)" if len(run.messages) > 1 else ""
    shown = (known or run.messages)[0]
    return Evidence(
        f"{kind} stands in {quoted(shown)}{more}",
        values={"line": shown.line, "known": len(known), "messages": len(run.messages)},
        present=bool(known),
    )
