"""The lines of a log → the failures in it: tracebacks put together per rank, and single lines that read like errors.

Ranks are told apart by the prefixes that launchers write (`[rank3]:`, `[default3]:`, `3:`, `[1,3]<stderr>:`, `(Worker
pid=42)`). Lines without a prefix are one stream, in which interleaved tracebacks are followed as far as possible.
Memory is bounded: a traceback keeps its last frames, the log its first failures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from mldebug_mcp.logs.failures import Failure, FailureLog, Frame
from mldebug_mcp.logs.numbers import whole_number
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import clean

MAX_FAILURES = 500
MAX_STREAMS = 2_000
MAX_FRAMES = 40
MAX_CONTINUATION = 6
"""Lines after the first one of a message that still belong to it."""
MAX_SHOWN = 600
"""Characters of a line that are kept."""
BLOCK = 256
"""Lines that are looked through at once for the signs of an error."""
MAX_SHAPES = 5_000
"""Different lines that are looked at closely; lines that differ in their numbers only count once."""

_PREFIX = re.compile(
    r"\[(?:rank|default|Rank )(?P<a>\d+)\]: ?|\[\d+,(?P<b>\d+)\]<std\w{3}>: ?|(?P<c>\d{1,5}): (?=[ \w])|"
    r"rank ?(?P<d>\d+)[:\]] ?|\((?:[\w:.]+ )?pid=(?P<e>\d+)[^)]{0,80}\) ?|"
    r"(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./ ]{1,60}:\d+\] ?"
)
_FRAME = re.compile(r'\s+File "(?P<file>[^"]{1,400})", line (?P<line>\d+)(?:, in (?P<function>.{1,120}))?')
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,150})(?::(?: |$)|$)")
_BARE_EXCEPTION = re.compile(
    r"(?P<type>(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception|Interrupt|ArrowInvalid|OutOfResources|BackendCompilerFailed|Unsupported))"
    r"(?::(?: |$)|$)"
)
_WRAPPERS = re.compile(r"RemoteTraceback|RayTaskError|ProcessRaisedException|ChildFailedError")
_SIGNS = (
    "Traceback", '  File "',
    "rror", "xception", "emory", "NCCL", "CUD", "CUBLAS", "illed", "ignal", "SIG", "Segmentation", "atchdog", "Xid",
    "ECC", "oom", "OOM", "ailed", "Warning", "etected", "minimum", "padding", "Token indices", "Some weights", "DUE TO",
    "incompatible", "forked", "ran out of", "hit config", "untagged", "undefined symbol", "fatbin", "No space", "quota",
    "nable", "annot", "upported", "not found", "bbox", "assistant_", "xitcode", "exit status", "unallocated",
    "compiled using", "fallen off", "clients joined", "no chat", "is null", "uncorrectable", "already", "onnection",
    "Broken pipe", "Invalid", "ambiguous", "RESOURCE", "not compiled", "EOS token", "EOT token", "does not", "must be",
)  # fmt: skip
_NOT_A_FAILURE = re.compile(r"[Rr]etrying|[Rr]etry in|Exception ignored")
_RANK_NAMED = re.compile(r"\b[Rr]ank[ =:]{0,2}(\d{1,6})\b")
_ROOT_CAUSE = "Root Cause (first observed failure)"
_ROOT_RANK = re.compile(r"\s*rank\s{0,10}:\s{0,4}(\d{1,6})")
_CHAINS = ("During handling of the above exception", "The above exception was the direct cause")
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789.")


def read_failures(lines: Iterable[str], known: Callable[[str], bool]) -> FailureLog:
    """Read the failures of a log, line by line, in bounded memory.

    Args:
        lines: The lines, without their ends.
        known: Whether a line that is no exception is an error message; others are passed over.
    """
    reader = _Reader(known)
    remaining = iter(lines)
    while block := list(islice(remaining, BLOCK)):
        reader.take_block(block)
        checkpoint(f"{reader.log.lines:,} lines read")
    reader.log.failures.sort(key=lambda failure: failure.line)
    return reader.log


@dataclass(slots=True)
class _Stream:
    """The lines of one rank: the traceback that is open and the failure that the next lines may continue."""

    in_traceback: bool = False
    ignored: bool = False
    frames: list[Frame] = field(default_factory=list)
    open: Failure | None = None
    room: int = 0
    chained_to: Failure | None = None


class _Reader:
    """Follows each rank's lines; most lines are passed over after a look for the signs of an error."""

    def __init__(self, known: Callable[[str], bool]) -> None:
        self.log = FailureLog()
        self._known = known
        self._quiet = True
        self._streams: dict[str, _Stream] = {}
        self._shapes: set[str] = set()
        self._root_lines = 0

    def take_block(self, block: list[str]) -> None:
        """Take the next lines; a block without the signs of an error costs next to nothing."""
        text = "\n".join(block)
        if self._quiet and not _has_sign(text):
            self.log.lines += len(block)
            self.log.progress += text.count("loss")
            return
        for line in block:
            self.log.lines += 1
            self.log.progress += "loss" in line
            if not self._quiet or _has_sign(line):
                self._take(self.log.lines, line)

    def _take(self, number: int, line: str) -> None:
        line = line[: 4 * MAX_SHOWN]
        key, rest = self._split(line)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams.setdefault(key if len(self._streams) < MAX_STREAMS else "", _Stream())
        if self._root_lines or _ROOT_CAUSE in line:
            self._root(line)
        self._follow(stream, key, number, rest)
        self._quiet = not self._root_lines and not any(map(_is_waiting, self._streams.values()))

    def _split(self, line: str) -> tuple[str, str]:
        """Return the rank that a line's prefixes name ("" for none) and the line without them."""
        if "\x1b" in line:
            line = clean(line)
        if not line or line[0] not in "[(0123456789rEC":
            return "", line
        rank, start = "", 0
        for _ in range(3):
            prefix = _PREFIX.match(line, start)
            if prefix is None or prefix.end() == start:
                break
            found = next((value for value in prefix.groupdict().values() if value is not None), None)
            rank, start = (found or rank), prefix.end()
        # The number of a process tells streams apart, but it is no rank.
        if rank and not line.startswith("("):
            self.log.ranks.add(rank)
        return rank, line[start:]

    def _root(self, line: str) -> None:
        self._root_lines = 12 if _ROOT_CAUSE in line else self._root_lines - 1
        rank = _ROOT_RANK.match(line)
        if rank:
            self.log.root_rank, self._root_lines = rank[1], 0

    def _follow(self, stream: _Stream, key: str, number: int, line: str) -> None:
        if "Traceback (most recent call last)" in line:
            stream.in_traceback, stream.frames, stream.open = True, [], None
            return
        frame = _FRAME.match(line)
        if frame:
            self._frame(stream, frame)
        elif stream.in_traceback and line[:1].isspace():
            _add_code(stream, line)
        elif not line.strip():
            stream.room = 0
        elif line.startswith(_CHAINS):
            stream.chained_to = stream.open or stream.chained_to
            stream.open = None
        elif not self._ends_traceback(stream, key, number, line):
            self._single(stream, key, number, line)

    def _frame(self, stream: _Stream, frame: re.Match[str]) -> None:
        stream.in_traceback, stream.open = True, None
        stream.frames.append(Frame(clean(frame["file"]), whole_number(frame["line"]), clean(frame["function"] or "")))
        if len(stream.frames) > MAX_FRAMES:
            del stream.frames[0]

    def _ends_traceback(self, stream: _Stream, key: str, number: int, line: str) -> bool:
        exception = _EXCEPTION.match(line) if stream.in_traceback else None
        if exception is None:
            return False
        failure = self._add(stream, key, number, line, exception["type"])
        failure.frames, failure.earlier = tuple(stream.frames), stream.chained_to
        failure.ignored, stream.ignored = stream.ignored, False
        stream.in_traceback, stream.frames, stream.chained_to = False, [], None
        return True

    def _single(self, stream: _Stream, key: str, number: int, line: str) -> None:
        """Take a line outside tracebacks: an error of its own, the continuation of the last one, or neither."""
        bare = _BARE_EXCEPTION.match(line)
        if bare is None and stream.room > 0 and stream.open is not None:
            stream.room -= 1
            stream.open.text += "\n" + clean(line[:MAX_SHOWN])
            return
        if _NOT_A_FAILURE.search(line):
            stream.ignored = "ignored" in line
            return
        if bare is not None:
            self._add(stream, key, number, line, bare["type"])
        elif self._is_known_line(key, line):
            self._add(stream, key, number, line, "")

    def _is_known_line(self, key: str, line: str) -> bool:
        """Return whether a line is an error message that is known, and not one that was seen with other numbers."""
        shape = key + line[:200].translate(_WITHOUT_DIGITS)
        if shape in self._shapes or len(self._shapes) >= MAX_SHAPES:
            return False
        self._shapes.add(shape)
        return self._known(line[:MAX_SHOWN])

    def _add(self, stream: _Stream, key: str, number: int, line: str, exception: str) -> Failure:
        text = clean(line[:MAX_SHOWN]).strip()
        ranks = {key} if key in self.log.ranks else set(_RANK_NAMED.findall(text)[:8])
        failure = Failure(number, text, exception.rpartition(".")[2], ranks=ranks, progress=self.log.progress)
        failure.is_wrapper = _WRAPPERS.search(exception) is not None
        stream.open, stream.room = failure, MAX_CONTINUATION
        if len(self.log.failures) < MAX_FAILURES or exception:
            self.log.failures.append(failure)
            if len(self.log.failures) > 2 * MAX_FAILURES:
                self._drop_one()
        else:
            self.log.left_out += 1
        return failure

    def _drop_one(self) -> None:
        """Keep the first failures, and of the later ones those with the newest lines."""
        del self.log.failures[MAX_FAILURES]
        self.log.left_out += 1


def _has_sign(text: str) -> bool:
    return any(sign in text for sign in _SIGNS)


def _is_waiting(stream: _Stream) -> bool:
    return stream.in_traceback or stream.room > 0 or stream.chained_to is not None


def _add_code(stream: _Stream, line: str) -> None:
    code = line.strip()
    if stream.frames and not stream.frames[-1].code and code.strip("^~ "):
        last = stream.frames[-1]
        stream.frames[-1] = Frame(last.file, last.line, last.function, clean(code[:160]))
