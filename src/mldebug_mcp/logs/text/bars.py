"""Progress bars of tqdm, Keras, fastprogress and Rich.

Hugging Face, diffusers, kohya, Lightning, torchtune and Ultralytics draw with tqdm. A bar is redrawn many times for
one step. The last drawing for a step counts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.line_prefixes import without_prefix
from mldebug_mcp.logs.numbers import HUGE, whole_number

_TQDM = regex(
    r"(?P<percent>\d{1,3})%\s?(?:\|[^|\[]{0,400}\|)?\s*(?P<count>\d+(?:\.\d+)?[kM]?)/(?P<total>\d+(?:\.\d+)?[kM]?)\s*"
    r"\[(?P<inside>(?:[^\[\]]|\[\d{1,12}-\d{1,12}\]){0,2000})(?P<end>\]|$|(?=\[))"
)
_OVER_RANGE = regex(r"(?<=[A-Za-z]) \[\d{1,12}-\d{1,12}\](?=:)")
"""The steps that a mean is over, in its name, as NumPyro writes it: "avg. loss [381-400]: 102.5"."""
_COUNT_FIRST = regex(
    r"(?P<head>.{0,200}?)\[(?P<count>\d+)/(?P<total>\d+)\]\s{0,4}\d{1,3}%\|[^|,\[\]]{0,400}"
    r"(?:,\s?(?P<rest>[^\[\]]{0,2000}))?\[[\d:?]{1,20}<[\d:?]{1,20}\]\s*$"
)
"""tqdm as Ignite draws it: "Epoch [1/3]: [2/16]  12%|█▎        , loss=0.76 [00:00<00:00]"."""
_HEAD = 300
MAX_METRICS = 20_000
"""Characters behind a bar that are read."""
_KERAS = regex(
    r"\s*(?P<count>\d+)/(?P<total>\d+)\s*(?:(?P<drawn>\[[=>.]{5,}\]|[━─]{5,})|(?=- \d+m?s\b))\s*-?\s*(?P<rest>.*)$",
)
_ARROWS = regex(
    r"(?P<head>[A-Za-z][^\[\]{}]{0,80})?\s*\[[>=#.\- ]{5,200}\]\s*(?P<count>\d+)/(?P<total>\d+)\b,?\s*(?P<rest>.*)$"
)
_FRAMED = regex(
    r"(?P<head>[A-Za-z][^|\[\]{}]{0,80}?)\s*\|(?=[^|]{0,200}[#=█▉▊▋▌▍▎▏∙░▒▓◉◯■□▪])[#=>\-. █▉▊▋▌▍▎▏∙░▒▓◉◯■□▪]{4,200}\|"
    r"\s*\(?(?P<count>\d+)/(?P<total>\d+)\)?(?![\d/%])\s*(?P<rest>.*)$"
)
"""The bars of the package progress: "Processing |########    | (370/3700) Loss: 0.1"."""
_WITH_HEAD = (("<", _COUNT_FIRST), ("]", _ARROWS), ("|", _FRAMED))
"""What stands in each bar with a head, and its pattern; the second is "Training [>>>  ] 300/1000, loss=0.1"."""
_SIGNED = regex(r"\b((?:gen|disc)\w{0,20})\.? \(([+-]\d{1,12}\.\d{1,12}|[+-]?(?:nan|inf))\)", re.IGNORECASE)
"""The losses that CTGAN shows before its bar: "Gen. (+00.77) | Discrim. (-00.12): "."""
_FASTPROGRESS = regex(r"(?:Epoch \d+/\d+ :)?\s*\|[█-]{10,}\|\s*[\d.]+%\s*\[\d+/\d+[^\]]*\]")
_FASTPROGRESS_HEAD = regex(r"Epoch \d+/\d+ :")
_RATE = regex(
    r"^\s*\d[\d:]{0,30}(?:\s*<\s*[\d:?]{1,30}(?: day[^,]{0,30})?)?\s*,?\s*[\d.?]{1,30}\s*\w{1,30}/\w+\s*,?"
    r"|^\s*\d[\d:]*<[\d:?]+,?\s*"
)
_KERAS_TIME = regex(r"^(?:\s*-?\s*(?:ETA:\s*)?[\d:.]+(?:us|ms|s|m|h)?(?:/step|/epoch|/sample)?)+\s*-?\s*")


class Bar(NamedTuple):
    """One drawing of a progress bar.

    Args:
        head: The text before it: a description, sometimes with an epoch.
        at: How far it is.
        total: Where it ends.
        metrics: The text that reports metrics, without the times.
        around: The line without the bar.
        keras: A bar of Keras, or the line that it prints in its place (verbose=2): it belongs to the epoch whose
            heading came before.
        line: That line, which is never drawn again.
    """

    head: str
    at: int
    total: int
    metrics: str
    around: str
    keras: bool = False
    line: bool = False


def bar_in(line: str) -> Bar | None:
    """Return the last bar drawn in a line, or None."""
    if "/" not in line:
        return None
    if "%" in line:
        drawn = list(_TQDM.finditer(line))
        if drawn:
            return _tqdm(line, drawn)
    for mark, pattern in _WITH_HEAD:
        found = pattern.match(line) if mark in line else None
        if found is not None:
            at, total = whole_number(found["count"]), whole_number(found["total"])
            return Bar((found["head"] or "").strip(), at, total, (found["rest"] or "")[:MAX_METRICS], "")
    keras = _KERAS.match(line)
    if keras is None:
        return None
    at, total = whole_number(keras["count"]), whole_number(keras["total"])
    rest = _KERAS_TIME.sub("", keras["rest"][:MAX_METRICS])
    return Bar("", at, total, rest, "", keras=True, line=keras["drawn"] is None)


def is_fastprogress(line: str) -> bool:
    """Say whether a line is a drawing of fastai's bar, or blanks over one: it tells nothing that the table does not."""
    text = line.strip()
    if _FASTPROGRESS_HEAD.fullmatch(text):
        return line.endswith(" " * 20)
    return text == "█" or _FASTPROGRESS.fullmatch(text) is not None


def _tqdm(line: str, drawn: list[re.Match[str]]) -> Bar:
    match = drawn[-1]
    before = drawn[-2].end() if len(drawn) > 1 else 0
    head = line[max(before, match.start() - _HEAD) : match.start()]
    tail, brace, rest = line[match.end() :].partition("{")
    if "[" in tail or without_prefix(tail).message != tail:  # a message of another logger on the same line
        tail, rest = "", line[match.end() :]
        brace = ""
    whole = match["inside"] if match["end"] else match["inside"].rpartition(",")[0]  # cut where the terminal ended
    inside = _OVER_RANGE.sub("", _RATE.sub("", whole))
    if "(+" in head or "(-" in head:
        inside = ", ".join([f"{name}_loss={value}" for name, value in _SIGNED.findall(head)] + [inside])
        head = _SIGNED.sub(r"\1", head)
    return Bar(head.strip(), _count(match["count"]), _count(match["total"]), f"{inside} | {tail}", f"{brace}{rest}")


def _count(text: str) -> int:
    unit = {"k": 1000, "M": 1_000_000}.get(text[-1])
    return int(min(HUGE, float(text[:-1]) * unit if unit else float(text)))


# Lightning's bar as Rich draws it: the metrics behind it are wrapped over the lines below, in their own column.

_BAR = regex(
    r"Epoch (?P<epoch>\d+)/(?:\d+|-\d+)\s+(?:[━╸╺─]+\s+)?(?P<at>\d+)/(?P<total>\d+)\s+\d+:\d\d:\d\d\s+•\s+[-:\d]+"
    r"\s+[\d.]+(?:it|s)/(?:s|it)\s*(?P<metrics>.*)"
)
_COLUMN = " " * 20
MAX_LINES = 100
"""Lines over which the metrics of one bar may be wrapped."""


class RichBar:
    """Gathers a bar and the lines of its metrics. `take` a line; when the bar has ended, `done` holds it."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._metrics: list[str] = []
        self.done: Bar | None = None

    @property
    def open(self) -> bool:
        """Whether metrics of a bar may follow."""
        return self._bar is not None

    def take(self, line: str) -> bool:
        """Take a line if it belongs to a bar."""
        if self._bar is not None and line.startswith(_COLUMN) and len(self._metrics) < MAX_LINES:
            self._metrics.append(line.strip())
            return True
        self.end()
        match = _BAR.match(line) if line.startswith("Epoch ") else None
        if match is None:
            return False
        self._bar = Bar(f"Epoch {match['epoch']}:", int(match["at"]), int(match["total"]), "", "")
        self._metrics = [match["metrics"]]
        return True

    def end(self) -> None:
        """End the bar that is open, if one is."""
        if self._bar is not None:
            self.done = self._bar._replace(metrics=" ".join(self._metrics)[:MAX_METRICS])
        self._bar, self._metrics = None, []
