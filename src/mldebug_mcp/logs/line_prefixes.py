"""What stands before a message: the rank, the time, the level and the logger, put there by launchers and logging.

A prefix may also name the phase that a line is of, training or evaluation.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean
from mldebug_mcp.logs.numbers import NO_DIGITS, whole_number

# Does a line speak of training or of evaluation? By a word at its beginning, in a part of its own, or in a heading.

_TRAINING = r"train(?:ing)?"
_EVALUATION = r"valid(?:ation|ate)?|val|eval(?:uation|uate)?|test(?:ing)?|dev|cv|blind|unseen|held[- ]?out|hold[- ]?out"
_WHOLE = r"(?:set|results?|metrics?|phase)"
"""What such a word may stand before without meaning anything else."""

_PHASE_WORD = regex(
    rf"{_TRAINING}|(?P<eval>{_EVALUATION})",
    re.IGNORECASE,
    needs=("train", "val", "test", "dev", "cv", "blind", "unseen", "held", "hold"),
)
_BEGINNING = regex(
    rf"[\W\d]*(?:{_EVALUATION}|cur metric)(?:\s+{_WHOLE})?(?=[\s:|,\-()\[\]>]|$)",
    re.IGNORECASE,
    needs=("val", "test", "dev", "cv", "blind", "unseen", "held", "hold", "cur metric"),
)
_PART = regex(rf"\|\s*+(?:{_EVALUATION})(?: on [\w' ]{{1,40}}| set)?\s*+\|", re.IGNORECASE)
"""A part of the line that only names the phase: fairseq's "| epoch 001 | valid on 'valid' subset | loss 3.2"."""
_EVALUATING = regex(
    rf"\bevaluating (?:val|test|eval)\w*:|\b(?:{_EVALUATION}|(?:evaluat|validat)ing)\s+epoch\b"
    r"|^\W{3,9}evaluating\b",
    re.IGNORECASE,
)
"""... the last of them a heading in stars: DeepSpeed-Chat's "***** Evaluating perplexity, Epoch 1/16 *****"."""
_ON_DATA = regex(
    rf"[^:=]{{1,60}}\bon (?:the )?(?:held[- ]?out|unseen|{_EVALUATION}) (?:data(?:set)?|set|split|part|examples)\s?:",
    re.IGNORECASE,
)
"""A sentence that says on which data: "After epoch 1 on held-out data: swd is 0.8"."""
_STARRED = regex(r"\s*\*\s")
"""ImageNet's example closes an evaluation with " * Acc@1 ..."."""
_HEADING = regex(
    rf"[\W_]*(?:{_TRAINING}|(?P<eval>{_EVALUATION}"
    rf"|(?:evaluat|validat|test)ing(?: (?:the )?model)?(?: on (?:the )?(?:{_EVALUATION})(?: data(?:set)?)?)?))"
    rf"(?: (?:{_WHOLE}|errors?|loss(?:es)?|performance)){{0,2}}[\W_]*",
    re.IGNORECASE,
)
_TURN = regex(
    rf"(?<![\w./-])(?:{_TRAINING}|(?P<eval>{_EVALUATION}))"
    rf"(?: {_WHOLE})?(?:\s*:\s*\(?|\s*\|\s*|\s+-+\s+|\s*\(|[\])]\s*:?\s*)"
    r"(?!n/?an?\b|inf\b|none\b|[^()|]{0,40}\)\s?[:=]\s?(?:n/?a|none)\b)(?=[a-z])",
    re.IGNORECASE,
    needs=("train", "val", "test", "dev", "cv", "blind", "unseen", "held", "hold"),
)
"""Where a line turns to training or evaluation: "Train: loss 1.7, acc 0.6 | Val: loss 1.9, acc 0.5"."""


class Turn(NamedTuple):
    """A place in a line from which on it speaks of training, or of evaluation."""

    at: int
    evaluation: bool


def names_phase(word: str) -> bool:
    """Say whether a word names a phase: "train", "val", "test"."""
    return _PHASE_WORD.fullmatch(word) is not None


def names_evaluation(word: str) -> bool:
    """Say whether a word names an evaluation: "val", "validation", "test"."""
    found = _PHASE_WORD.fullmatch(word)
    return found is not None and found["eval"] is not None


def is_of_evaluation(line: str) -> bool:
    """Say whether a line begins with the name of an evaluation or has it in a part of its own."""
    return (
        _BEGINNING.match(line) is not None
        or _STARRED.match(line) is not None
        or _is_under_way(line)
        or (" on " in line and _ON_DATA.match(line) is not None)
        or ("|" in line and _PART.search(line) is not None)
    )


def _is_under_way(line: str) -> bool:
    low = line.lower()
    return ("epoch" in low or "evaluating" in low) and _EVALUATING.search(line) is not None


def heads_evaluation(line: str) -> bool | None:
    """Say of a line that is nothing but a heading ("Test Error:", "Training:") whether an evaluation follows."""
    match = _HEADING.fullmatch(line)
    return None if match is None else match["eval"] is not None


_EVALUATES = r"(?:re-?)?(?:predict|infer|evaluat|eval|scor|test|validat)[a-z]{0,5}"
_CLOSING = regex(
    rf"\b{_EVALUATES}(?:\.py|[- ]only|_\w{{1,20}}\.py)\b"
    rf"|\b(?:closing|final) {_EVALUATES}\b"
    rf"|\b{_EVALUATES}\b.{{0,60}}\b(?:weights?|checkpoints?|ckpt|best|last|final|saved|trained|frozen)\b"
    rf"|\b(?:weights?|checkpoints?|ckpt|best|last|final|saved|trained|frozen)\b.{{0,60}}\b{_EVALUATES}\b",
    re.IGNORECASE,
    needs=("pred", "infer", "eval", "scor", "test", "valid"),
)
"""Words of a line that heads evaluations of trained weights: "predict.py --weights last", "evaluating best.pt"."""


def heads_closing(line: str) -> bool:
    """Say whether a line without metrics heads evaluations of weights that are trained."""
    return _CLOSING.search(line) is not None


_SET = regex(
    r"\W{0,9}(?:[a-z]{1,20}[ _]){0,3}(?P<set>dev|val(?:id(?:ation)?)?|test|train(?:ing)?)"
    r"(?:[ _][a-z]{1,20}){0,3}\W{0,9}",
    re.IGNORECASE,
)


def set_in(heading: str) -> str:
    """Return the set of rows that a line of few words and no number names: "***** Eval results dev *****"; else ""."""
    found = _SET.fullmatch(heading.rpartition(" - ")[2])  # behind the name of a logger
    return found["set"].lower() if found else ""


def turns_in(line: str) -> list[Turn]:
    """Return where a line turns from one phase to another, in order."""
    return [Turn(turn.end(), turn["eval"] is not None) for turn in _TURN.finditer(line)]


# What launchers write before a line to tell processes apart, for those who read records and those who read failures.
#
# Each is a pattern with the number of the rank as its group.

BRACKETED = r"\[\s*(?:default|[Rr]ank|GPU|gpu)\s*_?(?P<bracketed>\d{1,5})\s*\]"
"""torchrun's "[default3]:", torchtitan's "[rank3]:"."""
MPIRUN = r"\[\d{1,5},(?:mpirank:)?(?P<mpirun>\d{1,5})(?:,[\w.-]{1,60})?\]<std(?:out|err)>:"
"""mpirun --tag-output: "[1,3]<stderr>:"; SageMaker's names the host as well: "[1,mpirank:3,algo-1]<stdout>:"."""
NAMED = r"(?:rank|Rank|RANK)[ =:]?(?P<named>\d{1,5})\s*[:|\]-]"
"""One's own: "rank 3:", "Rank=3 |"."""
NUMBERED = r"(?P<numbered>\d{1,5}): "
"""srun --label: "3: ". So begins many another line: what follows has to tell."""


# What stands before a message: the rank, the time, the level and the logger, put there by launchers and logging.

_RANK = regex(
    rf"[\s`]*(?:{BRACKETED}\s*:?|{MPIRUN}|{NAMED}"
    rf"|{NUMBERED}(?=.*(?:step|iter(?:ation)?|epoch)s?\W{{0,5}}\d))",  # a number alone, beside a counter
    needs=("[", "rank", ": "),
)
_LOGGER = (
    r"(?:(?<=\])\s(?!(?:train|training|valid|validation|val|eval|evaluation|test|testing|dev|epoch|step|iter)\b)"
    r"[a-z_][\w.]{0,60}:(?=\s(?!nan\b|inf\b)[A-Za-z]))?"
)
"""The name of a logger behind a level in brackets: "[INFO] trainer: Training [8/56]"; a phase is none."""
_LOGGING = regex(
    r"(?:\s*(?:"
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [\w./-]+\]\s*\([\w./-]+\.py \d+\):"  # Swin Transformer
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[T ]?(?:\d\d:\d\d:\d\d(?:[.,:](?:\d+|%f))?)?"  # 2024-01-31 12:00:00,123
    r"(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"|\[?\d\d[/-]\d\d(?:/\d{2,4})? \d\d:\d\d:\d\d(?: [AP]M\b)?\]?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s{1,2}(?:\d{1,2} [A-Z][a-z]{2} \d{4}|[A-Z][a-z]{2}\s{1,2}\d{1,2}) "
    r"\d\d:\d\d:\d\d(?: \d{4})?"  # RecBole "Tue 05 Nov 2024 10:01:11", ctime "Tue Nov  5 10:01:11 2024"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+|-\d{6}(?=\s))?\]?"
    r"|\[\d{4} \d\d:\d\d:\d\d(?: @[\w/.-]+\.py:\d+)?\]"  # tensorpack: month and day, a clock, the place
    r"|\[\d\dd\d\dh\d\dm\d\ds\]|\[H(?:UGE)?CTR\](?=\[)|(?<=\])\[RA?N?K\d{1,5}\](?:\[\w+\])?:"  # HugeCTR
    r"|(?:[IWED]|INFO|DEBUG|WARN(?:ING)?)\s{1,4}[A-Za-z_]\w{0,40}(?:\.\w{1,40}){1,5}(?=:\s)"  # the level, the logger
    r"|I(?=\s(?:Train|Validat|Test)[a-z]{0,5}\s)"  # the level by its letter, before a sentence
    r"|[IWEDF](?:\d{4}){1,2} \d\d:\d\d:\d\d(?:\.\d+)?\s+\d+ (?:[\w.-]+ )?[\w./-]+:\d+\]"  # glog, absl, DINOv2
    r"|\d{1,9}\.\ds(?:\s\|)?\s{1,4}\d{1,9}(?:\s\|)?(?=\s)"  # Kaggle: seconds and line
    r"|\d+\|[\w-]+\s+(?=\|)"  # pm2: number and name of the process
    r"|\[?(?:INFO|DEBUG|WARNING|SUCCESS)\]?\s*\|\s*(?:\w+(?:\.\w+)+|__main__):(?:[\w<>]+:)?\d+(?=\s+-\s)"  # loguru
    r"|\([\w.:]+ (?:pid|rank)=\d+(?:, ip=[\d.]+)?\)"  # Ray
    r"|\[[\w.-]+(?::\d+/\d+)?\](?= \d{4}-\d\d-\d\d )|\(\w+:\d+\)(?= INFO\b)"  # ESPnet: host and rank, module
    r"|\[(?:INFO|WARNING)\|[\w=|.:-]{1,80}\]"  # nanotron: the place in the parallel layout; Transformers: the line
    r"|>>"  # Transformers: behind the time
    r"|[A-Z][a-z]{2}\s{1,2}\d{1,2} \d\d:\d\d:\d\d [\w.-]{1,64} [\w./-]{1,64}(?:\[\d{1,9}\])?:"  # syslog
    rf"|\[?(?:INFO|DEBUG|WARNING|WARN|ERROR|CRITICAL|SUCCESS)\]?(?::[\w.-]+:)?{_LOGGER}"
    r"|\[[\w.]+\](?=\[(?:INFO|DEBUG|WARNING|ERROR|CRITICAL)\])"  # Hydra: [time][logger][level]
    r"|\[[\w/.-]+\.(?:py|cpp|cc|cu)(?::| line:? ?)\d+(?::\w+)?\]|[\w/.-]+\.py:\d+(?:\[\d+\])?"
    r"|\[[\w.]+/\w*Process(?:-\d+)?\](?:\s+[\w.]+\s+:)?"  # logger and process, module and function
    r"|-\s*[\w.]+\s*-\s*(?=\[?(?:INFO|DEBUG|WARN))|[\w.]+\s+(?:INFO|WARNING)\b"
    r"|[\w.-]+:\d+\s+[\w.]+:\d+(?=\s+INFO)"  # OLMo: host and module
    r"|[\w.]+:[A-Za-z_<][\w.<>]*:\d+(?=\s+-\s)"  # Loguru: module, function, line
    r"|(?<=\d\])\[\d{1,9}\](?=\s(?:Fps is \(|Avg episode ))"  # Sample Factory: [time][process]
    r"|\[(?:titan|trainer|train|Trainer|train_inner)\]"
    r")\s*[|:-]?(?=\s|\[|$|(?<=:)\w))+"
)


_FUNCTION = regex(r":(?P<function>[A-Za-z_]\w{0,60}):\d+\s+-$")
"""Loguru names the function that logs: "src.loop:validate:88 -"."""
_EVALUATING_LOGGER = regex(
    r"^(?:INFO|DEBUG|WARNING):(?:[\w.]{1,60}\.)?(?:val(?:id(?:ation|ator)?)?|eval(?:uation|uator)?):$"
)
"""What a logger that is called by the evaluation writes before a message, in Python's own layout: "INFO:val:"."""
_MODULE = regex(
    r"\[(?:[A-Za-z_][\w-]{0,30}\.){0,5}[A-Za-z_][\w-]{0,30}(?:\.py)?:(?P<function>[A-Za-z_]\w{0,60})(?::\d{1,6})?\]\s"
)
"""The module and the function that print a line, in brackets: "[chat.sft:evaluate] step=50"."""
_RANK_AT_END = regex(r"(?<!\s)\s+rank[ :=](\d{1,5})\s*$")
"""WeNet: "TRAIN Batch 0/100 loss 94.5 lr 0.0001 rank 1"."""


_RANK_BEHIND = regex(r"\s*\((?P<rank>\d{1,5})/(?P<world>\d{1,5})\)(?=\s[A-Z][a-z]+ \d)")
"""icefall, behind the place in the code: "[train.py:908] (1/4) Epoch 1, batch 50"."""
_STAMPED = regex(r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?=(.{20}))")


class Line(NamedTuple):
    """A line without what stood before its message.

    Args:
        rank: None where no rank was named.
        message: The rest.
        evaluation: It was logged by a function that evaluates, as its name says.
    """

    rank: int | None
    message: str
    evaluation: bool = False


def records_in(line: str) -> list[str]:
    """Return the records of a line in which the line breaks were lost, as where a log is pasted into a thread.

    A new one begins with each time that is followed by the same words as another.
    """
    stamps = [(match.start(), match[1].translate(NO_DIGITS)) for match in _STAMPED.finditer(line)]
    times = Counter(after for _, after in stamps)
    starts = [start for start, after in stamps if times[after] > 1]
    if len(starts) < 2:
        return [line]
    edges = [0, *(start for start in starts if start), len(line)]
    return [line[first:last] for first, last in pairwise(edges)]


ROW_MARK = "\x05"
"""Stands before each row of a box that is written in one line."""

_COUNTS_ANEW = regex(r"(?<=\d)(?=(?:Step|Epoch|Iter|Iteration): {0,2}\d)")
_LAST_PAIR = regex(r"[\s,;|.]{0,4}[A-Za-z][\w ]{0,40}[:=] ?[-+\d.e]{1,24}$")


def records_drawn_in(line: str) -> list[str]:
    """Return the records of a line that a program drew one over another, each without its last number.

    The end of the terminal may have cut that off: "loss: 0.25. Total: 0.2Step: 8. loss: 0.5. Total: 0.5".
    """
    edges = [0, *(found.start() for found in _COUNTS_ANEW.finditer(line)), len(line)]
    parts = [line[first:last] for first, last in pairwise(edges)]
    return [line] if len(parts) < 2 else [*(_LAST_PAIR.sub("", part) for part in parts[:-1]), parts[-1]]


_RETURN = regex(r"(?<![A-Za-z] )(?<![\[(])#015")
"""A carriage return in octal, and not a number: "Epoch #015", "[#015]"."""


def drawings_in(line: str) -> list[str]:
    """Return what was drawn in turn in a line whose control characters a collector of logs wrote in octal.

    "#015" is the carriage return before each drawing of a bar, or behind each line; "#033" begins an escape sequence
    (rsyslog, CloudWatch). Each drawing comes with the prefix of the line.
    """
    before, *drawn = _RETURN.split(clean(line.replace("#033[", "\x1b[")))
    if without_prefix(before).message.strip():
        return [before, *(text for text in drawn if text.strip())]
    return [f"{before}{text}" for text in drawn if text.strip()]


_LEVELS = ("INFO", "DEBUG", "WARN", "ERROR", "CRITICAL", "SUCCESS")


def _may_be_logged(line: str) -> bool:
    """Say whether a line may begin as a logger writes it: without a colon or a level, such a line begins in no letter.

    Patterns of loggers take long to compile, and scripts that print need none.
    """
    return not line.lstrip()[:1].isalpha() or ":" in line or any(level in line for level in _LEVELS)


@lru_cache(maxsize=8)
def without_prefix(line: str) -> Line:
    """Take the rank, the time, the level and the logger off a line."""
    rank: int | None = None
    evaluation = False
    for _ in range(3):
        found = _RANK.match(line)
        if found:
            rank = next(whole_number(number) for number in found.groups() if number is not None)
            line = line[found.end() :]
        logging = _LOGGING.match(line) if _may_be_logged(line) else None
        if logging:
            evaluation = evaluation or _evaluates(logging[0])
            line = line[logging.end() :]
            behind = _RANK_BEHIND.match(line) if rank is None and logging[0].rstrip().endswith("]") else None
            if behind is not None and whole_number(behind["rank"]) < whole_number(behind["world"]):
                rank, line = whole_number(behind["rank"]), line[behind.end() :]
        if not (found or logging):
            break
    if line.startswith("[") and (place := _MODULE.match(line)) is not None:
        evaluation = evaluation or any(map(names_evaluation, place["function"].split("_")))
        line = line[place.end() :]
    behind = _RANK_AT_END.search(line) if rank is None and "rank" in line else None
    return Line(rank, line, evaluation) if behind is None else Line(whole_number(behind[1]), line[: behind.start()])


def _evaluates(prefix: str) -> bool:
    if _EVALUATING_LOGGER.search(prefix) is not None:
        return True
    found = _FUNCTION.search(prefix) if prefix.endswith("-") else None
    return found is not None and any(map(names_evaluation, found["function"].split("_")))
