"""How a log ends: what its last lines say, whether the last one is whole, and how long it was silent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from mldebug_mcp.logs.attempt import Ending
from mldebug_mcp.logs.error_lines import is_error
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import clean, shorten

TAIL_BYTES = 64 * 1024
"""Bytes at the end of a log that are looked at."""
LAST_WORDS = 40
"""Lines at the end of a log among which its last words are looked for: checkpoints and tables are printed below."""
SILENT, TIMES = 300.0, 10.0
"""Seconds without a new record, and times the usual interval between records, after which a run is called silent.
Chosen by hand: an evaluation or a checkpoint may take minutes."""
NOTICED, MANY_TIMES, SEVERAL = 15.0, 100.0, 3
"""Seconds, times the usual interval, and lines behind the last record that tell of waiting sooner. Chosen by hand: a
checkpoint or an evaluation of steps so short is over by then."""
SHOWN = 160

FINISHED = re.compile(
    r"\b(?:train(?:ing)?|fit(?:ting)?|run|optimi[sz]ation|experiment)\b"
    r"(?: (?:is|was|has|been|process|loop|run|job|phase)){0,5}"
    r"(?: (?:now|successfully|all)){0,3} (?:complete[d]?|finished|done|ended|over)\b(?! (?:epoch|step|\d))"
    r"|\b(?:finished|completed|done)(?: with)? (?:the )?training\b(?! (?:epoch|step|\d))|\bend of training\b"
    r"|\bstopped: `max_\w+=\S+` reached|\bdone with training\b|\bearly stopping\b.{0,40}(?:stopp|trigger|at epoch)"
    r"|\bmax_steps\b.{0,20}\breached\b|\b\d+ epochs? completed in \d",
    re.IGNORECASE,
)
"""A line that says that training has ended by itself."""
INTERRUPTED = re.compile(
    r"^\s*(?:\S{0,40} )?KeyboardInterrupt\b|\bSIG(?:INT|TERM|USR1)\b|\bsignal (?:2|15)\b|\bCANCELLED AT\b"
    r"|\bDUE TO (?:PREEMPTION|TIME LIMIT)"
    r"|\binterrupted by (?:the )?user|\bDetected KeyboardInterrupt",
)
"""A line that says that somebody or a scheduler ended it."""
_RECORD = re.compile(
    r"(?:loss|reward|return|acc(?:uracy)?|ppl|perplexity)\w{0,80}[\"']?\s*+[:=|]?\s*[-+(]*\d|\bnan\b", re.IGNORECASE
)
_TIME = re.compile(
    r"(?P<day>\d{4}[-/]\d\d[-/]\d\d)[T _,]+(?P<time>\d\d:\d\d:\d\d)"
    r"|(?<![\d:/<])(?P<alone>[012]\d:[0-5]\d:[0-5]\d)(?![\d:<])"
)
_IN_FRONT = 60


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a text.

    Args:
        lines: Its last lines, cleaned, without empty ones.
        whole: Whether the last line has its end.
    """

    lines: tuple[str, ...] = ()
    whole: bool = True


def tail_of(file: LogFile) -> Tail:
    """Return the end of a log of text; of a binary file an empty one."""
    if file.binary:
        return Tail()
    with file.stream() as stream:
        stream.seek(max(0, file.size - TAIL_BYTES))
        data = stream.read(min(TAIL_BYTES, file.size))
    text = data.decode("utf-16-le" if file.encoding == "utf-16" else file.encoding, errors="replace")
    lines = [clean(line) for line in re.split(r"[\r\n]+", text.replace("\0", "")) if line.strip()]
    return Tail(tuple(lines[file.size > TAIL_BYTES :]), not text or text[-1] in "\r\n")


def ending_of(tail: Tail) -> Ending:
    """Return what the last lines say of how the log ends; error lines with their records say more (`attempts`)."""
    words = tail.lines[-LAST_WORDS:]
    for line in reversed(words):
        if FINISHED.search(line) and not is_error(line):
            return Ending("finished", shorten(line, SHOWN))
        if INTERRUPTED.search(line):
            return Ending("interrupted", shorten(line, SHOWN))
        if _RECORD.search(line):
            break
    silence = _silence(tail.lines)
    if silence:
        return Ending("silence", silence)
    if not tail.whole and tail.lines and not tail.lines[-1].endswith(("}", "]", ")", ".")):
        return Ending("cut", shorten(tail.lines[-1], SHOWN))
    return Ending()


def _silence(lines: Sequence[str]) -> str:
    """Return how long time-stamped lines go on behind the last record, if that is far longer than usual."""
    clocks = [(seconds, _RECORD.search(line) is not None) for line in lines if (seconds := _clock(line)) is not None]
    told = [seconds for seconds, is_record in clocks if is_record]
    if len(told) < 3:
        return ""
    usual = median(max(0.0, after - before) for before, after in pairwise(told))
    quiet = clocks[-1][0] - told[-1]
    if quiet < max(SILENT, TIMES * usual) and not _waits(clocks, quiet, (told[-1] - told[0]) / len(told)):
        return ""
    return f"its clock runs on for {quiet:.0f} s behind the last record, where records came every {usual:.0f} s"


def _waits(clocks: Sequence[tuple[float, bool]], quiet: float, usual: float) -> bool:
    """Say whether several lines behind the last record take far longer than records do, if not minutes."""
    behind = next(at for at, (_, is_record) in enumerate(reversed(clocks)) if is_record)
    return behind >= SEVERAL and quiet >= max(NOTICED, MANY_TIMES * usual)


def _clock(line: str) -> float | None:
    """Return the seconds of a line's time stamp: since the epoch, or since midnight where it has no day."""
    found = _TIME.search(line[:_IN_FRONT])
    if found is None:
        return None
    try:
        if found["day"]:
            stamp = datetime.strptime(f"{found['day'].replace('/', '-')} {found['time']}", "%Y-%m-%d %H:%M:%S")
            return (stamp - datetime(1970, 1, 1)).total_seconds()
        hours, minutes, seconds = map(int, found["alone"].split(":"))
    except ValueError:
        return None
    return hours * 3600.0 + minutes * 60 + seconds
