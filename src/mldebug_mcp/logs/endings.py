"""How a log ends, and which of its lines read like errors.

Its last lines tell whether the last one is whole, how long it was silent, and what the program wrote last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise, takewhile

from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.text import clean, shorten
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.run import MAX_SHOWN_OF_ENDING, SCHEDULED, Ending, Message, severity_of

# Lines of a log that read like errors.

_ERROR = regex(
    r"^Traceback \(most recent|\b[\w.]{1,80}(?:Error|Exception)\b\s*:|"
    r"\b(?:Error|Exception)\s*:\s*[^\W\d]|[Oo]ut of memory|\bNCCL (?:WARN|error)|"
    r"\bSegmentation fault|\bSIG(?:KILL|TERM|SEGV|BUS|ABRT)\b|\bKilled\b|\bOVERFLOW!|device-side assert|\bXid\b|"
    r"\bAssertion [`'].{1,300}failed|"
    r"^\W{0,4}Encountered NaN\b|"
    r"[Bb]us error|\boom[-_ ]kill|\bexitcode\s*:\s*-\d|Watchdog caught|diverged with loss|\bNaN loss\b|"
    r"\b[Ll]oss is (?:nan|NaN|inf)\b|^(?:\w{1,60}\.){1,8}_?(?:exc|errors?|exceptions?)\.[A-Z]\w{0,60}(?::\s|$)|"
    r"(?:^|\[\w{1,20}\]: ?)[\w.]{1,80}(?:Error|Exception)(?:\s*$|\s{2,}(?:File|assert)\b)|\bexit code:? 137\b|"
    r"\bserver socket has failed to listen|"
    r"\[(?:WinError|Errno) -?\d+\]|Memory access fault by GPU|\(core dumped\)|\bOOMKilled\b|"
    r"\bterminate called after|(?:^|\]:)\s{0,4}what\(\): |: terminating due to|"
    r"\blow on resource: memory|^Error executing job\b|\bCANCELLED AT\b|^OMP: Error|"
    r"^(?:zsh: |\[\d{1,4}\]\s+(?:[+-]\s+)?\d{1,9}\s+)killed\b|"
    r"(?:^|\]: ?)(?:(?:pyarrow\.lib\.)?Arrow[A-Z]\w{2,30}: |(?:\w{1,40}\.){1,4}error: )|"
    r"(?:^|\]: ?)(?:LLVM ERROR: |F\d{4} .{0,120}:\d+\] )|\.(?:cc|cpp|cu|h):\d{1,6}: Check failed: |"
    r"(?:^|\s)E(?:\d{4})? .{0,120}\.(?:cc|cpp|h):\d+\] .{0,200}"
    r"(?:CUDNN_STATUS|RESOURCE_EXHAUSTED|CUDA_ERROR_(?!NO_DEVICE)|INTERNAL: |driver version is insufficient)|"
    r"\[LightGBM\] \[Fatal\]|: error: (?:argument|unrecognized|the following)|: can't open file '|^srun: error: |"
    r"^docker: Error response|^ERROR: (?:Failed|Could not|No matching)|\bCUDA Setup failed|"
    r"\bworker died or was killed\b|^KeyboardInterrupt\b|"
    r"\.(?:cc|cpp|cu|cuh|h|hpp) ?\(\d{1,6}\) ?: {0,2}(?:\w{1,20} ){0,3}(?:[Ee]rror|[Ii]nvalid|[Ff]atal|[Ff]ailed)\b",
)
_OF_METRICS = regex(r"\bLoss became infinite or NaN at iteration")
"""detectron2 ends with it: no error of its own, but the loss at a step, which is read as such."""
ERROR_HINTS = (
    "rror", "ception", "Traceback", "memory", "NCCL", "fault", "SIG", "Killed", "OVERFLOW", "assert", "Xid", "Watchdog",
    "diverged", "NaN loss", "oss is ", "oom", "exitcode", "exc.", "core dumped", "terminate called", "terminating due",
    "OOMKilled", "exit code", "failed to listen", "CANCELLED", "killed", "what():", "Assertion", "Arrow", ".cc",
    ".cpp", ".cu", ".h", "[Fatal]", "open file", "ERROR", "Setup failed", "died or was",
    "KeyboardInterrupt", "Encountered NaN",
)  # fmt: skip
"""One of these stands in every line that `_ERROR` finds: most lines are dismissed without a regular expression."""


MAX_CODE = 160
"""Characters of a line of code that are kept."""


def is_error(line: str) -> bool:
    """Say whether a line reads like an error."""
    if not any(map(line.__contains__, ERROR_HINTS)) or _ERROR.search(line) is None:
        return False
    return _OF_METRICS.search(line) is None


_FRAME = regex(r'File "[^"]{1,400}", line \d')
_OUT = "out of memory"
_OF_MEMORY = regex(r"\b[KMG]i?B\b|\bmemory\b|PyTorch|PYTORCH_|unallocated")
_OF_TRAINING = regex(r"loss|step|epoch|iter", re.IGNORECASE)
MAX_WRAPPED = 8
"""Lines below the first one of an out-of-memory message that may still hold its numbers: it is some 600 characters."""


class ErrorLines:
    """Tells the lines that read like errors, but for an exception that Python itself says it ignored.

    It also keeps the line of code that a traceback shows last, which distinguishes errors of the same words.
    """

    def __init__(self) -> None:
        self.ignoring = False
        """Whether the lines tell of an exception that was ignored."""
        self.code = ""
        """The code of the last frame of the traceback that stands above."""
        self._below_frame = False
        self._room = 0

    @property
    def open(self) -> bool:
        """Whether what the lines above tell may go on in the next one."""
        return self.ignoring or self._below_frame or self._room > 0

    def take(self, line: str) -> bool:
        """Say whether the next line reads like an error."""
        self._read_code(line)
        if line.startswith("Exception ignored in"):
            self.ignoring = True
            return False
        if not self.ignoring:
            failed = is_error(line)
            # A whole message ends with what PyTorch itself holds.
            self._room = MAX_WRAPPED if failed and _OUT in line and "PyTorch" not in line else 0
            return failed
        # The exception itself stands below its traceback, and ends what was ignored.
        self.ignoring = line.startswith(("Traceback", " "))
        return False

    def goes_on(self, line: str) -> bool:
        """Say whether the next line goes on with an out-of-memory message that was wrapped before its numbers ended."""
        if not self._room:
            return False
        goes_on = _OF_MEMORY.search(line) is not None and not _OF_TRAINING.search(line) and not is_error(line)
        self._room = self._room - 1 if goes_on else 0
        return goes_on

    def _read_code(self, line: str) -> bool:
        """Keep the line of code that a frame shows; return whether this is one."""
        if 'File "' in line and _FRAME.search(line):
            self.code, self._below_frame = "", True
        elif self._below_frame:
            code = line.rpartition("]:")[2]
            self.code, self._below_frame = code.strip()[:MAX_CODE], False
            return code[:1].isspace()
        return False


# How a log ends: what its last lines say, whether the last one is whole, and how long it was silent.

HEAD_BYTES = 8 * 1024
FIRST_LINES = 200
"""Lines above and between the first records that facts on words read. Chosen: all of a short log."""
LAST_LINES = 60
"""The same below the last records."""
TAIL_BYTES = 64 * 1024
"""Bytes at the end of a log that are looked at."""
LAST_WORDS = 40
"""Lines at the end of a log among which its last words are looked for: checkpoints and tables are printed below."""
MIN_SILENT_SECONDS, MIN_SILENT_INTERVALS = 300.0, 10.0
"""Seconds without a new record, and times the usual interval between records, after which a run is called silent.
Chosen by hand: an evaluation or a checkpoint may take minutes."""
MIN_WAIT_SECONDS, MIN_WAIT_INTERVALS, MIN_WAIT_LINES = 15.0, 100.0, 3
"""Seconds, times the usual interval, and lines behind the last record that tell of waiting sooner. Chosen by hand: a
checkpoint or an evaluation of steps so short is over by then."""
MIN_SAME_INTERVALS = 30.0
"""Times the usual interval after which lines tell of waiting that say the same each time: nothing moves. Chosen."""
MAX_SECONDS_TO_WRITE = 120.0
"""Seconds between the time in a line and the change of its file. Chosen: a buffer is written within that."""

FINISHED = regex(
    r"\b(?:train(?:ing)?|fit(?:ting)?|run|optimi[sz]ation|experiment)\b"
    r"(?: (?:is|was|has|been|process|loop|run|job|phase)){0,5}"
    r"(?: (?:now|successfully|all)){0,3} (?:complete[d]?|finished|done|ended|over)\b(?! (?:epoch|step|\d))"
    r"|\b(?:finished|completed|done)(?: with)? (?:the )?training\b(?! (?:epoch|step|\d))|\bend of training\b"
    r"|\bstopped: `max_\w+=\S+` reached|\bdone with training\b|\bearly stopping\b.{0,40}(?:stopp|trigger|at epoch)"
    r"|\bearly stopping[,.] best iteration is\b"
    r"|\bmax_steps\b.{0,20}\breached\b|\b\d+ epochs? completed in \d"
    r"|\bfor \d+ consecutive epochs\. Stopping\b",
    re.IGNORECASE,
    needs=("complete", "finished", "done", "end", "over", "stop", "reached"),
)
"""A line that says that training has ended by itself."""
INTERRUPTED = regex(
    r"^\s*(?:\S{0,40} )?KeyboardInterrupt\b|\bSIG(?:INT|TERM|USR1)\b|\bsignal (?:2|15)\b|\bCANCELLED AT\b"
    r"|\bDUE TO (?:PREEMPTION|TIME LIMIT)"
    r"|\binterrupted by (?:the )?user|\bDetected KeyboardInterrupt",
    needs=("interrupt", "sig", "cancelled", "due to"),
)
"""A line that says that somebody or a scheduler ended it."""
_RECORD = regex(
    r"(?:loss|reward|return|acc(?:uracy)?|ppl|perplexity)\w{0,80}[\"']?\s*+[:=|]?\s*[-+(]*\d|\bnan\b", re.IGNORECASE
)
_TIME = regex(
    r"(?:(?P<day>\d{4}[-/]\d\d[-/]\d\d)[T _,]+(?P<time>\d\d:\d\d:\d\d)"
    r"|(?<![\d:/<])(?P<alone>[012]\d:[0-5]\d:[0-5]\d)(?![\d:<]))(?:[.,]\d{1,9})?",
    needs=":",
)
"""A time stamp, with its fractions of a second."""
_COUNTS = regex(r"\b(?:global_?)?(?:step|iter(?:ation)?|batch|update)s?\b\W{0,3}\d", re.IGNORECASE)
_IN_FRONT = 60
"""Characters at the front of a line in which a time stamp stands."""
_EPOCH = datetime(1970, 1, 1)
_DIGITS_IN_A_ROW = regex(r"\d+")


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a text.

    Args:
        lines: Its last lines, cleaned, without empty ones.
        whole: Whether the last line has its end.
        changed: When the file was changed last, in seconds since 1970; None where that is not known.
        first: The first lines of a text that is longer than this end, likewise.
    """

    lines: tuple[str, ...] = ()
    whole: bool = True
    changed: float | None = None
    first: tuple[str, ...] = ()

    def margins(self) -> tuple[str, ...]:
        """Return the first and the last lines of the text, all of a short one."""
        if self.first or len(self.lines) > FIRST_LINES + LAST_LINES:
            return (*(self.first or self.lines)[:FIRST_LINES], *self.lines[-LAST_LINES:])
        return self.lines


def tail_of(file: LogFile) -> Tail:
    """Return the end of a log of text; of a binary file an empty one."""
    if file.binary:
        return Tail()
    with file.stream() as stream:
        head = stream.read(HEAD_BYTES) if file.size > TAIL_BYTES else b""
        stream.seek(max(0, file.size - TAIL_BYTES))
        data = stream.read(min(TAIL_BYTES, file.size))
    encoding = "utf-16-le" if file.encoding == "utf-16" else file.encoding
    text, first = (part.decode(encoding, errors="replace") for part in (data, head))
    lines, opening = _lines_of(text), _lines_of(first)[:-1]
    whole = not text or text[-1] in "\r\n"
    return Tail(tuple(lines[file.size > TAIL_BYTES :]), whole, _changed(file), tuple(opening))


def _lines_of(text: str) -> list[str]:
    return [clean(line) for line in re.split(r"[\r\n]+", text.replace("\0", "")) if line.strip()]


def _changed(file: LogFile) -> float | None:
    try:
        return file.path.stat().st_mtime
    except OSError:
        return None


def ending_of(tail: Tail) -> Ending:
    """Return what the last lines say of how the log ends; error lines with their records say more (`attempts`)."""
    words = tail.lines[-LAST_WORDS:]
    for at, line in reversed([*enumerate(words)]):
        if FINISHED.search(line) and not is_error(line):
            return Ending("finished", shorten(line, MAX_SHOWN_OF_ENDING))
        if INTERRUPTED.search(line):
            # A scheduler that ends a run which stands still is not what stopped it.
            silence = _silence(tail.lines) if SCHEDULED.search(line) else ""
            shown = shorten(line, MAX_SHOWN_OF_ENDING)
            return Ending("silence", f"{silence}; then {shown}") if silence else Ending("interrupted", shown)
        introduced = at > 0 and words[at - 1].endswith(":")  # LightGBM prints its best record below its last words
        if _RECORD.search(line) and not introduced:
            break
    silence = _silence(tail.lines)
    if silence:
        return Ending("silence", silence)
    if not tail.whole and tail.lines and not _may_be_whole(tail.lines):
        return Ending("cut", shorten(tail.lines[-1], MAX_SHOWN_OF_ENDING))
    return Ending(written=_written(tail))


def _written(tail: Tail) -> float | None:
    """Return when the last line was written: when the file changed, if the line has about that time. A copy has not."""
    found = _TIME.search(tail.lines[-1][:_IN_FRONT]) if tail.lines else None
    if tail.changed is None or found is None or not found["day"]:
        return None
    try:
        stamp = datetime.fromisoformat(f"{found['day'].replace('/', '-')} {found['time']}")
        times = (stamp.timestamp(), (stamp - _EPOCH).total_seconds())  # of this place, or universal time
    except (ValueError, OverflowError, OSError):
        return None
    return tail.changed if any(abs(tail.changed - time) <= MAX_SECONDS_TO_WRITE for time in times) else None


def _may_be_whole(lines: Sequence[str]) -> bool:
    """Say whether a last line without an end of line closes a bracket or sentence, or is written as one above it is."""
    *above, last = (_DIGITS_IN_A_ROW.sub("0", line) for line in lines)
    return last.endswith(("}", "]", ")", ".")) or last in above


def _silence(lines: Sequence[str]) -> str:
    """Return how long time-stamped lines go on behind the last record, if that is far longer than usual."""
    clocks = [*_clocks(lines)]
    recorded_at = [seconds for seconds, is_record, _ in clocks if is_record]
    if len(recorded_at) < 3:
        return ""
    usual = median([max(0.0, after - before) for before, after in pairwise(recorded_at)])
    quiet = clocks[-1][0] - recorded_at[-1]
    behind = [words for _, _, words in takewhile(lambda clock: not clock[1], reversed(clocks))]
    if quiet < max(MIN_SILENT_SECONDS, MIN_SILENT_INTERVALS * usual) and not _waits(
        behind, quiet, (recorded_at[-1] - recorded_at[0]) / len(recorded_at)
    ):
        return ""
    return f"its clock runs on for {quiet:.0f} s behind the last record, where records came every {usual:.0f} s"


def _clocks(lines: Sequence[str]) -> Iterator[tuple[float, bool, str]]:
    """Yield the times of lines that have one, whether they are records, and what else they say.

    A line with a counter that says the same once more at another time records nothing.
    """
    known = set[str]()
    for line in lines:
        if (seconds := _clock(line)) is None:
            continue
        words = _TIME.sub("", line, count=1)
        is_known = words in known and _COUNTS.search(words) is not None
        yield seconds, _RECORD.search(words) is not None and not is_known, words
        known.add(words)


def _waits(behind: Sequence[str], quiet: float, usual: float) -> bool:
    """Say whether several lines behind the last record take far longer than records do, if not minutes."""
    times = MIN_SAME_INTERVALS if len(set(behind[:MIN_WAIT_LINES])) == 1 else MIN_WAIT_INTERVALS
    return len(behind) >= MIN_WAIT_LINES and quiet >= max(MIN_WAIT_SECONDS, times * usual)


def _clock(line: str) -> float | None:
    """Return the seconds of a line's time stamp: since the epoch, or since midnight where it has no day."""
    found = _TIME.search(line[:_IN_FRONT])
    if found is None:
        return None
    try:
        if found["day"]:
            stamp = datetime.fromisoformat(f"{found['day'].replace('/', '-')} {found['time']}")
            return (stamp - _EPOCH).total_seconds()
        hours, minutes, seconds = map(int, found["alone"].split(":"))
    except ValueError:
        return None
    return hours * 3600.0 + minutes * 60 + seconds


# Lines of a log that read like errors: which are kept, of however many.

MAX_MESSAGES = 100
"""Error lines kept per run ..."""
MAX_NOISE = 20
"""... and those among them that are retries and the like: they never take the place of an error."""
MAX_MESSAGE = 1000
"""Characters of an error line: an out-of-memory message of a GPU with several processes ends with what is unused."""


@dataclass(slots=True)
class Messages:
    """Keeps the first messages, as later ones are mostly their echo, and the last.

    Args:
        kept: The messages, as far as they are kept.
        noise: How many were retries and the like.
        failed: Whether there was an error that is more than a warning.
    """

    kept: list[Message]
    noise: int = 0
    failed: bool = False

    def take(self, line: int, text: str, records: int, code: str = "") -> None:
        """Take a line by its number and the records before it; `code` is the line of a program that it stands under."""
        severity = severity_of(text)
        self.noise += severity == "noise"
        if severity == "noise" and self.noise > MAX_NOISE:
            return
        if severity != "error" and len(self.kept) == MAX_MESSAGES and self.kept[-1].severity == "error":
            return
        self.failed = self.failed or severity == "error"
        self.kept[MAX_MESSAGES - 1 :] = [Message(line, shorten(text, MAX_MESSAGE), records, code, severity)]

    def go_on(self, text: str) -> None:
        """Add a line, without the rank before it, to the message that was kept last."""
        if self.kept:
            whole = f"{self.kept[-1].text} {text.rpartition(']:')[2].strip()}"
            self.kept[-1] = replace(self.kept[-1], text=shorten(whole, MAX_MESSAGE))
