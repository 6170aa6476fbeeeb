"""The lines of a log → the failures in it: tracebacks put together per rank, and single lines that read like errors.

Ranks and hosts are told apart by the prefixes of their lines. Lines without a prefix are one stream, in which
interleaved tracebacks are followed as far as possible. Memory is bounded: a traceback keeps its last frames, the log
its first failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from mldebug_mcp.logs.failures import frame_lines, words
from mldebug_mcp.logs.failures.failure import Failure, FailureLog, Frame
from mldebug_mcp.logs.failures.line_prefixes import TRACEBACK, Prefixes
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
    reader.log.ranks = reader.ranks
    reader.log.cut_off = reader.cut_off()
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
    above: str = ""
    in_graph: bool = False
    begun: int = 0
    margin: int = 0
    outside: Frame | None = None


class _Reader:
    """Follows each rank's lines; most lines are passed over after a look for the signs of an error."""

    def __init__(self, known: Callable[[str], bool]) -> None:
        self.log = FailureLog()
        self._known = known
        self._prefixes = Prefixes()
        self._quiet = True
        self._streams: dict[str, _Stream] = {}
        self._shapes: set[str] = set()
        self._root_lines = 0

    @property
    def ranks(self) -> set[str]:
        """All ranks that prefixes named."""
        return self._prefixes.ranks

    def cut_off(self) -> int:
        """Return the line of the first traceback that is still open; 0 for none."""
        return min((one.begun for one in self._streams.values() if one.in_traceback and one.begun), default=0)

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
        if TRACEBACK in line and words.LINE_END.search(line):
            for piece in _unescaped(line):
                self._take(number, piece)
            return
        line = line[: 4 * MAX_SHOWN]
        key, rest = self._prefixes.split(line)
        if TRACEBACK in rest:
            key = self._prefixes.learn(rest) or key
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams.setdefault(key if len(self._streams) < MAX_STREAMS else "", _Stream())
        if self._root_lines or words.ROOT_CAUSE in line:
            self._root(line)
        self._follow(stream, key, number, rest.rstrip())
        self._quiet = not self._root_lines and not any(map(_is_waiting, self._streams.values()))

    def _root(self, line: str) -> None:
        self._root_lines = 12 if words.ROOT_CAUSE in line else self._root_lines - 1
        rank = words.ROOT_RANK.match(line)
        if rank:
            self.log.root_rank, self._root_lines = rank[1], 0

    def _follow(self, stream: _Stream, key: str, number: int, line: str) -> None:
        line = words.EDITOR.sub(r"\g<type>:", _without_margin(stream, line))
        if TRACEBACK in line:
            carrier = stream.open if line.startswith("Original") else None
            stream.outside = carrier.user_frame if carrier else None
            stream.in_traceback, stream.frames, stream.open, stream.begun = True, [], None, number
        elif self._is_of_graph(stream, line) or self._is_of_traceback(stream, line):
            pass
        elif not line.strip("\"' \t\r"):
            if stream.open is None or not words.GOES_ON.search(stream.open.text):
                stream.room = 0
        elif line.startswith(words.CHAINS):
            stream.chained_to = stream.open or stream.chained_to
            stream.open = None
        elif not self._ends_traceback(stream, key, number, line):
            self._single(stream, key, number, line)

    def _is_of_graph(self, stream: _Stream, line: str) -> bool:
        """Return whether a line belongs to TensorFlow's list of where a graph's nodes were made."""
        if line.startswith(words.GRAPH) and stream.open is not None:
            stream.in_graph = True
        elif stream.in_graph and line.startswith("Node:"):
            stream.in_graph, stream.room = False, MAX_CONTINUATION
        elif stream.in_graph and line.strip() and not line[0].isspace():
            stream.in_graph = False
        return stream.in_graph

    def _is_of_traceback(self, stream: _Stream, line: str) -> bool:
        """Return whether a line is a frame or its code, and take it."""
        frame = frame_lines.python_frame(line)
        if frame is None and line.startswith(frame_lines.BOX):
            frame = frame_lines.box_frame(line, stream.above)
            stream.above = frame_lines.box_content(line)
        elif frame is None and stream.in_traceback:
            frame = frame_lines.notebook_frame(line)
        if frame is not None:
            stream.in_traceback, stream.open = True, None
            stream.frames.append(frame)
            del stream.frames[:-MAX_FRAMES]
            return True
        is_code = line[:1].isspace() or frame_lines.is_arrow(line)
        if stream.in_traceback and line.strip() and (is_code or line.startswith(frame_lines.BOX)):
            if stream.frames:
                stream.frames[-1] = frame_lines.with_code(stream.frames[-1], line)
            return True
        return False

    def _ends_traceback(self, stream: _Stream, key: str, number: int, line: str) -> bool:
        exception = words.EXCEPTION.match(line) if stream.in_traceback else None
        if exception is None:
            return False
        failure = self._add(stream, key, number, line, exception["type"])
        failure.frames, failure.earlier = tuple(stream.frames), stream.chained_to
        failure.ignored, stream.ignored = stream.ignored, False
        failure.outside, stream.outside = stream.outside, None
        stream.in_traceback, stream.frames, stream.chained_to = False, [], None
        return True

    def _single(self, stream: _Stream, key: str, number: int, line: str) -> None:
        """Take a line outside tracebacks: an error of its own, the continuation of the last one, or neither."""
        if "Exception ignored" in line:
            stream.ignored, stream.room = True, 0
            return
        if words.RAISE.match(line):
            return
        line = words.CARRIER.sub("", line, count=1)
        bare = next((found for one in words.ERRORS if (found := one.match(line))), None)
        goes_on = bare is None and stream.room > 0 and stream.open is not None and not words.LOG_LINE.match(line)
        # Below an exception its message may go on with a line that is known; below another line that is a new error.
        below_exception = goes_on and stream.open is not None and stream.open.exception != ""
        known = bare is None and not below_exception and self._is_known_line(key, line)
        if goes_on and stream.open is not None and not known:
            stream.room -= 1
            stream.open.text += "\n" + clean(line[:MAX_SHOWN])
        elif (known or bare is not None) and not words.NOT_A_FAILURE.search(line):
            failure = self._add(stream, key, number, line, (bare["type"] or "FATAL") if bare else "")
            failure.ignored, stream.ignored = stream.ignored, False

    def _is_known_line(self, key: str, line: str) -> bool:
        """Return whether a line is an error message that is known, and not one that was seen with other numbers."""
        shape = key + line[:200].translate(words.WITHOUT_DIGITS)
        if shape in self._shapes or len(self._shapes) >= MAX_SHAPES:
            return False
        self._shapes.add(shape)
        return self._known(line[:MAX_SHOWN])

    def _add(self, stream: _Stream, key: str, number: int, line: str, exception: str) -> Failure:
        text = clean(line[:MAX_SHOWN]).strip()
        ranks = {key} if key in self._prefixes.ranks else set(words.RANK_NAMED.findall(text)[:8])
        failure = Failure(number, text, exception.rpartition(".")[2], ranks=ranks, progress=self.log.progress)
        failure.is_wrapper = bool(words.WRAPPERS.search(exception) or words.CARRIES.match(text))
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


def _without_margin(stream: _Stream, line: str) -> str:
    """Return a line without the margin of a traceback that is indented as a whole, as its frames show it."""
    indent = len(line) - len(line.lstrip(" "))
    if frame_lines.python_frame(line) is not None:
        stream.margin = max(indent - 2, 0)
    elif indent < stream.margin and line.strip():
        stream.margin = 0
    return line[stream.margin :] if indent >= stream.margin else line


def _unescaped(line: str) -> list[str]:
    """Return the lines of a traceback that a string of JSON holds: its beginning and its end, where it is very long."""
    body = line[line.index(TRACEBACK) :].replace('\\"', '"')
    pieces = [piece.removesuffix('"}').partition('", "')[0].partition('","')[0] for piece in words.LINE_END.split(body)]
    return pieces[:MAX_FRAMES] + pieces[MAX_FRAMES:][-MAX_FRAMES:]


def _has_sign(text: str) -> bool:
    return any(sign in text for sign in words.SIGNS)


def _is_waiting(stream: _Stream) -> bool:
    return stream.in_traceback or stream.room > 0 or stream.chained_to is not None
