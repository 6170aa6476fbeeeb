"""Did an error end the run, and of what kind is it?"""

from __future__ import annotations

import re

from mldebug_mcp.knowledge.errors import match
from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.measure.allocation import GIB, failed_allocation
from mldebug_mcp.symptoms.messages import (
    ANY,
    EXCEPTION,
    OF_COLLECTIVE,
    OF_DEVICE,
    OF_LABEL,
    OF_MEMORY,
    matching,
    quoted,
)
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, told
from mldebug_mcp.text import figure

LEAST_SHARE = 0.07
"""Of all that is reserved. Chosen: a process that is full has a little unused as well."""


def _is_known(one: Message) -> bool:
    of_a_kind = any(pattern.search(one.text) for pattern in (OF_MEMORY, OF_DEVICE, OF_COLLECTIVE, OF_LABEL))
    return of_a_kind or bool(match(one.text, code=one.code))


def error_message(run: Run, shown: Message, kind: str, known: int) -> Evidence:
    """A known error message ended the run.

    Not this when: a line only reads like an error (a remark); training went on after it, or had ended before; it is
    a warning or a retry; the log is in a format that holds no messages (then it is unknown).
    """
    more = f" ({len(run.messages)} such lines in all)" if len(run.messages) > 1 else ""
    went_on = "" if known or shown in run.fatal else "; training went on after it"
    return Evidence(
        f"{kind} stands in {quoted(shown)}{more}{went_on}",
        values={"line": shown.line, "known": known, "messages": len(run.messages)},
        present=bool(known),
    )


def _of_kind(run: Run, pattern: re.Pattern[str], what: str) -> Evidence | None:
    found = next((one for one in run.fatal if pattern.search(one.text)), None)
    return None if found is None else Evidence(f"{what} in {quoted(found)}", values={"line": found.line})


def out_of_memory_error(run: Run) -> Evidence | None:
    """The error that ended the run is an allocation that failed for lack of memory.

    Not this when: training went on after it, or another error ended the run.
    """
    return _of_kind(run, OF_MEMORY, "an allocation failed")


def device_error(run: Run) -> Evidence | None:
    """The error that ended the run is a fault that a device, its memory or a link reported.

    Not this when: it is a device-side assertion, an illegal address or an Xid of the application's own work (13,
    31, 43, 45, 68, 69 in NVIDIA's catalogue), which are mostly errors of the program.
    """
    return _of_kind(run, OF_DEVICE, "a device or link reported a fault")


def collective_timeout(run: Run) -> Evidence | None:
    """The error that ended the run says that ranks waited for each other until a timeout.

    Not this when: a rank failed before with an error of its own: then the timeout is its echo, and the line of the
    first error is given.
    """
    seen, first = _of_kind(run, OF_COLLECTIVE, "a collective operation timed out or was aborted"), run.messages[0]
    if seen is None:
        return None
    before = f"; the first error is {quoted(first)}" if first.line < seen.values["line"] else ""
    return Evidence(seen.summary + before, values={**seen.values, "first_error_line": first.line})


def label_out_of_range_error(run: Run) -> Evidence | None:
    """The error that ended the run says that a label is outside the classes that the model has outputs for.

    Not this when: an index is too large somewhere else, as a token id in an embedding is; the message of a device
    does not say what was checked.
    """
    return _of_kind(run, OF_LABEL, "a label is outside the classes")


def memory_reserved_unused(run: Run) -> Evidence | None:
    """The message of a failed allocation counts more memory unallocated, reserved or free, than was asked for.

    Not this when: it is smaller than the request, or hardly a part of what is reserved: then memory is really full.
    """
    found = failed_allocation(run)
    if found.unused is None:
        raise CannotTell("the message of the failed allocation does not say how much is reserved but unallocated")
    if found.unused < max(found.asked, LEAST_SHARE * (found.allocated + found.unused)):
        return None
    return Evidence(
        f"an allocation of {figure(found.asked / GIB)} GiB failed while {figure(found.unused / GIB)} GiB were "
        f"reserved but unallocated, or free, in {quoted(found.message)}",
        values={"requested_bytes": found.asked, "unused_bytes": found.unused, "line": found.message.line},
    )


def ends_in_error(run: Run, last: Message) -> Evidence:
    """The last thing in the log is an exception or error that no known message explains.

    Not this when: training went on after it; a known message says more; the user interrupted the run.
    """
    values = {"line": last.line, "records_after": run.records - last.records}
    return Evidence(f"the log ends in an error, in {quoted(last)}", steps=(run.last_step,), values=values)


_KINDS = (out_of_memory_error, memory_reserved_unused, device_error, collective_timeout, label_out_of_range_error)


@question(
    outcome_of(
        error_message,
        0.006,
        "axolotl_stability",
        "nccl_troubleshooting",
        follows=("out_of_memory_error", "collective_timeout", "device_error"),
    ),
    outcome_of(out_of_memory_error, 0.001, "axolotl_stability", of="error_message"),
    outcome_of(memory_reserved_unused, 0.001, "bekman_mle", "pytorch_docs_notes", of="error_message"),
    outcome_of(device_error, 0.001, "llama3", "mai_thinking_1", of="error_message"),
    outcome_of(collective_timeout, 0.001, "axolotl_faq", "osmo_nccl", of="error_message"),
    outcome_of(
        label_out_of_range_error, 0.0005, "detectron2_issue_2365", "supergradients_issue_1307", of="error_message"
    ),
    outcome_of(ends_in_error, 0.01),
    whole_run=True,
)
def failure(run: Run) -> Answers:
    """Look for a known message among the errors that ended the run, then for any exception."""
    matching(run, ANY)
    known = [one for one in run.fatal if _is_known(one)]
    if known:
        message = error_message(run, known[0], "a known error message", len(known))
        return {"error_message": message, **told(by_outcome(_KINDS, run))}
    ended = [one for one in run.fatal if EXCEPTION.search(one.text)]
    if ended:
        return {"ends_in_error": ends_in_error(run, ended[-1])}
    if not run.messages:
        return {}
    return {"error_message": error_message(run, run.messages[0], "a line that reads like an error", 0)}
