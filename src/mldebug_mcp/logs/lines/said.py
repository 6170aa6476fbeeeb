"""What a line says by itself, whatever came before it: a drawing of a bar, a printed dict, counters and metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mldebug_mcp.logs.lines.bars import Bar, bar_in
from mldebug_mcp.logs.lines.counters import find_counters
from mldebug_mcp.logs.lines.dicts import dict_in, opens_dict
from mldebug_mcp.logs.lines.histories import History, begins_history, history_in, opens_history
from mldebug_mcp.logs.lines.pairs import pairs_in
from mldebug_mcp.logs.lines.parsed import Parsed, parse_line
from mldebug_mcp.logs.lines.phases import is_of_evaluation
from mldebug_mcp.logs.lines.prefixes import without_prefix
from mldebug_mcp.logs.names import canonical, is_telling
from mldebug_mcp.logs.numbers import to_number

_STRAIGHT = str.maketrans("‘’“”", "''\"\"")
"""Quotation marks as word processors and forums set them, in dicts that were copied from there."""
_SKIPPED = re.compile(
    r"Skipping step.{0,200}?loss scale: [\d.e+]{1,40}(?:.{0,200}?reducing to (?P<scale>[\d.e+]{1,40}))?"
    r"|overflow detected.{0,200}?setting loss scale to: (?P<set>[\d.e+]{1,40})"  # fairseq
    r"|Skipping step.{0,200}?reducing loss scale to (?P<apex>\d{1,40}(?:\.\d{1,40})?(?:e[+-]?\d{1,4})?)",
    re.IGNORECASE,
)
_WORTH = re.compile(r"\d|nan|inf", re.IGNORECASE)
_IN_HEAD = re.compile(r"(?<![\w.])[-+]?\.?\d[\d.]*(?:e[-+]?\d+)?", re.IGNORECASE)


@dataclass(slots=True)
class Drawing:
    """One drawing of a progress bar.

    Args:
        bar: The bar; its texts are read.
        words: Its head without the numbers in it, which are `head`: both together tell bars apart.
        head: Those numbers.
        counters: Counters that stand in its head.
        metrics: What it reports.
        evaluation: It is drawn by an evaluation.
        from_zero: Its epochs count from 0 (Lightning).
        telling: It reports a metric that only training or evaluation has.
    """

    bar: Bar
    words: str
    head: tuple[float, ...]
    counters: dict[str, float]
    metrics: dict[str, float]
    evaluation: bool
    from_zero: bool
    telling: bool


@dataclass(slots=True)
class Said:
    """What a line says; of several things that stand in one line, a bar comes first.

    Args:
        drawing: A progress bar.
        record: The dict that stands in it, if it is one of metrics.
        opens: A dict begins in it, and goes on below.
        history: The lists of values that stand in it, by the names of their metrics.
        skipped: A step was skipped for overflow: what that says, mostly the new loss scale.
        plain: Its counters and metrics.
        text: What `plain` was read from, or words without a number.
    """

    drawing: Drawing | None = None
    record: dict[str, object] | None = None
    opens: str = ""
    history: History = field(default_factory=dict)
    skipped: dict[str, float] | None = None
    plain: Parsed | None = None
    text: str = ""

    @property
    def is_nothing(self) -> bool:
        """Whether the line says nothing."""
        told = self.drawing is not None or self.record is not None or self.skipped is not None or self.plain is not None
        return not told and not self.opens and not self.history


def straightened(line: str) -> str:
    """Return a line with straight quotation marks around the keys of a dict."""
    return line.translate(_STRAIGHT) if "{" in line and not line.isascii() else line


def said_in(line: str, *, evaluation: bool = False) -> Said:
    """Read a line that is no part of a box or a table.

    Args:
        line: The line, without colours.
        evaluation: A heading above it says that it speaks of an evaluation.
    """
    bar = bar_in(line)
    message = without_prefix(line).message if bar is None else bar.around
    said = Said(drawing=None if bar is None else drawing_of(bar), text=line if bar is None else message)
    if "{" in message:
        _read_dict(said, message)
    elif "[" in message and opens_history(message):
        said.opens = message
    if "[" in message and said.record is None and not said.opens:
        said.history = history_in(message)
    if said.record is not None or said.opens or said.history:
        return said
    skipped = _SKIPPED.search(message) if "kipping" in message or "overflow" in message else None
    if skipped is not None:
        told = skipped["scale"] or skipped["set"] or skipped["apex"]
        said.skipped = {"overflow": 1.0, **({"loss_scale": float(told)} if told else {})}
    elif (bar is None or message.strip()) and _WORTH.search(said.text):
        said.plain = parse_line(said.text, evaluation=evaluation)
    return said


def drawing_of(bar: Bar) -> Drawing:
    """Read the texts of a bar."""
    counters = find_counters(bar.head)
    evaluation = is_of_evaluation(bar.head)
    metrics = {
        name: value
        for name, value in pairs_in(f"{counters.rest} | {bar.metrics}", evaluation=evaluation).items()
        if canonical(name) not in ("step", "epoch")
    }
    words = _IN_HEAD.sub("0", bar.head)
    head = tuple(_number(text) for text in _IN_HEAD.findall(bar.head))
    telling = any(map(is_telling, metrics))
    return Drawing(bar, words, head, counters.values, metrics, evaluation, "v_num" in bar.metrics, telling)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # "1.2.3"
        return 0.0


def _read_dict(said: Said, message: str) -> None:
    """Read the dict in a line, if one of metrics stands or begins in it."""
    record = dict_in(message)
    begun = bool(record) or message.strip() == "{"  # JSON that was printed over several lines opens with it
    if opens_dict(message) and (begun or begins_history(message)):
        said.opens = message
        return
    if not record:
        return
    before = parse_line(message.partition("{")[0])
    told = {name: value for name, value in before.metrics.items() if is_telling(name)}
    values: dict[str, object] = {**before.counters.values, **told, **record}
    if is_record(values):
        said.record = values


def is_record(record: Mapping[str, object]) -> bool:
    """Say whether a dict is a record of metrics, in dicts of its own too, or the Trainer's last one."""
    return any(map(is_telling, record)) or "train_runtime" in record or any(map(_measures, record.values()))


def _measures(value: object, depth: int = 3) -> bool:
    """Say whether a value is a dict that holds a number of a metric that only training or evaluation has."""
    return isinstance(value, Mapping) and any(
        (is_telling(name) and to_number(one) is not None) or (depth > 0 and _measures(one, depth - 1))
        for name, one in value.items()
    )
