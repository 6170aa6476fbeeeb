"""Text that a training script printed.

Records are the dict lines of the Trainer and step lines of `key: value`, `key=value` or `key value`. A line is a
record if it holds a metric that only training prints (a loss, an accuracy, a reward ...): a learning rate alone may be
a configuration dump. What is not a record is passed over, and lines that read like errors are kept as messages.
"""

from __future__ import annotations

import re

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.names import SPELLINGS, canonical
from mldebug_mcp.logs.numbers import NUMBER, parse_number
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import clean

NAME = "text"

_DICT = re.compile(r"\{[^{}]*\}")
_DICT_PAIR = re.compile(
    rf"""['"]([^'"\n]{{1,120}})['"]\s*:\s*(?:np\.float\d+\(|tensor\()?['"]?({NUMBER})(?![\w.])""",
    re.IGNORECASE,
)
_WORD = r"[A-Za-z_][\w./@()%#-]*"
_PAIR = re.compile(
    rf"(?<![\w.])(?P<name>{_WORD}(?: {_WORD}){{0,5}})(?P<sep>\s*[:=]\s*|\s+)(?P<number>{NUMBER})"
    r"(?P<unit>%|ms|us|s|x|[KMGT]i?B?)?(?![\w.]|[:-]\d|\s?[:=]\s*\w+=)",
    re.IGNORECASE,
)
_NOISE_WORDS = frozenset(
    {"info", "debug", "warning", "train", "training", "rank0", "root", "main", "log", "at", "in", "on"}
)
_COUNTERS = frozenset({"step", "epoch"})
_NOT_TELLING = _COUNTERS | {"learning_rate", "step_time", "data_time", "memory", "num_tokens", "loss_scale"}
_TELLING_WORDS = re.compile(r"loss|acc|reward|perplexity|\bppl\b|bpb|return|\bnll\b|\bkl\b", re.IGNORECASE)
_ERROR = re.compile(
    r"^Traceback \(most recent|\b\w*(?:Error|Exception)\b\s*:|out of memory|\bNCCL (?:WARN|error)|\bSegmentation fault|"
    r"\bSIG(?:KILL|TERM|SEGV|BUS|ABRT)\b|\bKilled\b|\bOVERFLOW!|device-side assert|\bXid\b",
)


def matches(file: LogFile) -> bool:
    """Any text: this reader comes last."""
    return bool(file.head)


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the lines that are records and keep those that read like errors."""
    for number, line in enumerate(file.lines(), start=1):
        if len(line) < 3:
            continue
        if _ERROR.search(line):
            builder.message(number, line)
        record = parse_line(line)
        if record:
            builder.record(record)


def parse_line(line: str) -> dict[str, float]:
    """Return the metrics that a line of text reports, empty if it is no record of training."""
    if "\x1b" in line:
        line = clean(line)
    line = line[:20_000]
    record = _dict_metrics(line) if "{" in line else {}
    if not record:
        record = _pairs(line)
    return record if any(map(_is_telling, record)) else {}


def _dict_metrics(line: str) -> dict[str, float]:
    record: dict[str, float] = {}
    for braces in _DICT.findall(line):
        for name, text in _DICT_PAIR.findall(braces):
            number = parse_number(text)
            if number is not None:
                record[name] = number
    return record


def _pairs(line: str) -> dict[str, float]:
    record: dict[str, float] = {}
    for match in _PAIR.finditer(line):
        name = _metric_name(match["name"], explicit=match["sep"].strip() != "")
        number = parse_number(match["number"])
        if name is not None and number is not None:
            record.setdefault(name, number)
    return record


def _metric_name(phrase: str, *, explicit: bool) -> str | None:
    """Return the metric that a phrase before a number names, or None if it is prose.

    `explicit` says that a colon or an equals sign stands between them. Without one, a phrase counts only if the table
    of names knows it, or if it is a single word; of a longer phrase the counter at its end counts ("finished step
    100").
    """
    words = phrase.split(" ")
    if canonical(phrase) in SPELLINGS:
        return phrase
    while len(words) > 1 and words[0].lower().strip("[]()") in _NOISE_WORDS:
        words = words[1:]
        if canonical(" ".join(words)) in SPELLINGS:
            return " ".join(words)
    if canonical(words[-1]) in _COUNTERS:
        return words[-1]
    return " ".join(words) if explicit or len(words) == 1 else None


def _is_telling(name: str) -> bool:
    known = canonical(name)
    return known not in _NOT_TELLING and (known in SPELLINGS or _TELLING_WORDS.search(known) is not None)
