"""An allocation failed although more than it asked for was reserved and unused."""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.symptoms.messages import matching, quoted
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

_SIZE = r"([\d.]+) ?([KMGT])i?B"
REQUEST = re.compile(rf"Tried to allocate {_SIZE}", re.IGNORECASE)
UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated", re.IGNORECASE)
ALLOCATED = re.compile(rf"{_SIZE} (?:already allocated|is allocated by PyTorch)", re.IGNORECASE)
RESERVED = re.compile(rf"{_SIZE} reserved in total", re.IGNORECASE)
_BYTES = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
LEAST_SHARE = 0.07
"""Of all that is reserved; a process that is full has a little unused as well. As in snapshots: chosen."""


@symptom(whole_run=True, sources=("bekman_mle", "pytorch_docs_notes"), background=0.001)
def memory_reserved_unused(run: Run) -> Evidence | None:
    """The message of a failed allocation counts more memory reserved but unallocated than was asked for.

    Not this when: what is reserved but unallocated is smaller than the request, or hardly a part of what is reserved:
    then memory is really full. The message is read in PyTorch's wordings, old and new.
    """
    requests = [message for message in matching(run, REQUEST) if message in run.fatal]
    if not requests:
        raise CannotTell("no message of a failed allocation that ended the run and names its size")
    sized = [(message, _bytes(REQUEST, message), unused) for message in requests if (unused := _unused(message))]
    if not sized:
        raise CannotTell("the message of the failed allocation does not say how much is reserved but unallocated")
    message, asked, unused = sized[0]
    allocated = _bytes(ALLOCATED, message) or 0.0
    if asked is None or unused < max(asked, LEAST_SHARE * (allocated + unused)):
        return None
    return Evidence(
        f"an allocation of {figure(asked / _BYTES['G'])} GiB failed while {figure(unused / _BYTES['G'])} GiB were "
        f"reserved but unallocated, in {quoted(message)}",
        values={"requested_bytes": asked, "unused_bytes": unused, "line": message.line},
    )


def _bytes(pattern: re.Pattern[str], message: Message) -> float | None:
    found = pattern.search(message.text)
    try:
        return float(found[1]) * _BYTES[found[2].upper()] if found else None
    except ValueError:
        return None


def _unused(message: Message) -> float | None:
    stated = _bytes(UNUSED, message)
    if stated is not None:
        return stated
    reserved, allocated = _bytes(RESERVED, message), _bytes(ALLOCATED, message)
    return reserved - allocated if reserved is not None and allocated is not None else None
