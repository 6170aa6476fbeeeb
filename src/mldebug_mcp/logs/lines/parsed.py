"""One line of text, read: its counters, its metrics, the rank that printed it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mldebug_mcp.logs.lines.counters import Counters, find_counters
from mldebug_mcp.logs.lines.pairs import pairs_in
from mldebug_mcp.logs.lines.phases import is_of_evaluation, names_evaluation
from mldebug_mcp.logs.lines.prefixes import without_prefix
from mldebug_mcp.logs.lines.written_out import written_out
from mldebug_mcp.logs.names import COUNTERS, canonical, is_abbreviated, is_amount, is_telling
from mldebug_mcp.logs.numbers import NUMBER, whole_number
from mldebug_mcp.logs.roles import role_of

_VALID_SUBSET = re.compile(r"\| valid on '[^']{1,80}' subset\s+(\d+) / (\d+)")
"""fairseq, before 2019: an evaluation under way."""
_PROSE = re.compile(
    r"\b(?:best|final|finally|lowest|highest|improved from|decreased \(|did not improve|early[ _-]?stopping|previous"
    r"|minimum)\b"
    r"(?!\s*:\s*\d)",  # CatBoost's "best: 0.6"
    re.IGNORECASE,
)
_HINTS_OF_PROSE = ("best", "final", "lowest", "highest", "improve", "decreased (", "early", "previous", "minimum")
"""One of these stands in every line that `_PROSE` finds: most lines are dismissed without a regular expression."""
_SO_FAR = re.compile(
    rf"(?<=[\d,;|] )best [\w @]{{1,40}}[:=] ?{NUMBER}\s*[,;|](?=.*\btrain\w*[ _]loss\b)", re.IGNORECASE
)
"""The best value so far, in front of those of this record: "epoch 210 best test acc: 0.91, train loss: 1.36"."""
_ASIDE = re.compile(r"\((?:best|lowest|highest|previous|minimum)\b[^()]{0,60}\)", re.IGNORECASE)
_GLUED = re.compile(r"(?<![A-Za-z])loss(?=\d+\.\d)", re.IGNORECASE)
"""LightGCN: "EPOCH[1/1000] loss0.693-|Sample:9.8|"."""
_BLANKS = re.compile(r"\s{3,}")
_WORDS = re.compile(r"[A-Za-z]\w+")
_LONG_WORDS = re.compile(r"[A-Za-z]{3,}")
_NO_MEASURE = re.compile(
    r"time|took|elapsed|seconds|size|number|num|count|total|sample|image|batch|file|seed|rank|gpu|device", re.IGNORECASE
)
"""What an evaluation is said to take, and to be made of."""
MOST_WORDS = 4
"""Words beside the names of its metrics that such a line has. Chosen: "val" and what it was on."""
MAX_LINE = 20_000
"""Characters of a line that are searched for pairs."""


@dataclass(slots=True)
class Parsed:
    """What a line says.

    Args:
        counters: Where the run is.
        metrics: Numbers by name.
        rank: The rank that printed it, None if it does not say.
        telling: It reports a metric that only training or evaluation prints.
        evaluation: It speaks of an evaluation.
    """

    counters: Counters
    metrics: dict[str, float] = field(default_factory=dict)
    rank: int | None = None
    telling: bool = False
    evaluation: bool = False


def parse_line(line: str, *, evaluation: bool = False) -> Parsed:
    """Read a line by itself; bars, boxes, dicts and tables are other modules' work.

    Args:
        line: The line.
        evaluation: A heading above it says that it speaks of an evaluation.
    """
    # Patterns for counters allow blanks in several places: thousands of them in a row would take hours.
    rank, whole, evaluates = without_prefix(_BLANKS.sub("  ", line[:MAX_LINE]))
    whole = _without_asides(whole)
    message = _without_prose(whole)
    prose = whole[len(message) :]
    message = written_out(_GLUED.sub("loss ", message))
    counters = find_counters(message)
    named = names_evaluation(counters.phase or "") or evaluates or is_of_evaluation(message)
    evaluation = named or (evaluation and not counters.values)
    if under_way := _VALID_SUBSET.search(message):
        evaluation, counters.batch = True, (whole_number(under_way[1]), whole_number(under_way[2]))
    metrics = pairs_in(counters.rest, evaluation=evaluation)
    told = bool(counters.values)
    for name in [name for name in metrics if canonical(name) in COUNTERS and not (told and is_abbreviated(name))]:
        counters.values.setdefault(canonical(name), metrics.pop(name))
        counters.weak = bool(metrics) or len(_WORDS.findall(counters.rest + prose)) > 5
    if not counters.values and counters.batch is None:
        counters.values = {name: metrics.pop(name) for name in list(metrics) if is_amount(name)}
    counters.weak = counters.weak and not any(name.lower() in ("fps", "sps") for name in metrics)
    counters.rest += prose
    # A step that was skipped for overflow has no loss, but it is a record of training.
    skipping = "step" in counters.values and any(canonical(name) == "skipped_iterations" for name in metrics)
    telling = skipping or any(map(is_telling, metrics)) or (evaluation and _measures(counters, metrics))
    return Parsed(counters, metrics, rank, telling, evaluation)


def _measures(counters: Counters, metrics: Mapping[str, float]) -> bool:
    """Say whether a line of evaluation, with a counter, tells nothing but measures: "VAL iter 200: swd=1.2"."""
    counted = bool(counters.values) and counters.batch is None and not counters.weak
    bare = len(_LONG_WORDS.findall(counters.rest)) <= MOST_WORDS + len(metrics)
    return counted and bare and bool(metrics) and all(map(_is_measure, metrics))


def _is_measure(name: str) -> bool:
    return role_of(name) is None and _NO_MEASURE.search(name) is None and " " not in name


def is_remark(parsed: Parsed) -> bool:
    """Say whether a line with a counter but no metric is a remark ("saving the model at step 10"), no heading."""
    adjacent = not parsed.counters.weak or (parsed.counters.rest.strip(" |:-") == "")
    return not adjacent or len(_LONG_WORDS.findall(parsed.counters.rest)) > 5


def _without_asides(line: str) -> str:
    """Return a line without what it says of other records in brackets: "val acc: 0.2 (best 0.3), test acc: 0.1"."""
    line = _SO_FAR.sub("", line) if "best" in line else line
    return _ASIDE.sub("", line) if "(" in line else line


def _without_prose(line: str) -> str:
    """Return a line up to where it tells of a record that stood elsewhere ("best loss so far", "improved from")."""
    prose = _PROSE.search(line) if any(map(line.lower().__contains__, _HINTS_OF_PROSE)) else None
    return line if prose is None else line[: prose.start()]
