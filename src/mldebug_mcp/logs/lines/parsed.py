"""One line of text, read: its counters, its metrics, the rank that printed it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mldebug_mcp.logs.lines.counters import Counters, find_counters
from mldebug_mcp.logs.lines.pairs import pairs_in, phase_of, without_asides, without_prose
from mldebug_mcp.logs.lines.prefixes import without_prefix
from mldebug_mcp.logs.lines.written_out import written_out
from mldebug_mcp.logs.names import COUNTERS, canonical, is_telling
from mldebug_mcp.logs.numbers import whole_number

_VALID_SUBSET = re.compile(r"\| valid on '[^']{1,80}' subset\s+(\d+) / (\d+)")
"""fairseq, before 2019: an evaluation under way."""
# PaddleDetection up to 2.0: "iter: 20, lr: 0.01, 'loss': '1.26'"
_QUOTED = re.compile(r"""(['"])([\w./@ -]{1,80})\1\s*:\s*['"]?(?=[-+.\dnNiI])""")
# torchvision, DETR, DeiT: "Loss is nan, stopping training"; detectron2: "Loss became infinite or NaN at iteration=9!"
_FAILED = re.compile(r"\bLoss (?:is (?=-?(?:nan|inf)\b)|became infinite or (?=nan\b))", re.IGNORECASE)
_BLANKS = re.compile(r"\s{3,}")
_WORDS = re.compile(r"[A-Za-z]\w+")
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
    rank, whole = without_prefix(_BLANKS.sub("  ", line[:MAX_LINE]))
    whole = without_asides(whole)
    message = without_prose(whole)
    prose = whole[len(message) :]
    message = written_out(message)
    if "{" not in message:
        message = _QUOTED.sub(r"\2: ", message)
    message = _FAILED.sub("loss=", message)
    counters = find_counters(message)
    named = (counters.phase or "").lower() in ("val", "test", "valid", "eval") or phase_of(message) == "eval"
    evaluation = named or (evaluation and not counters.values)
    if under_way := _VALID_SUBSET.search(message):
        evaluation, counters.batch = True, (whole_number(under_way[1]), whole_number(under_way[2]))
    metrics = pairs_in(counters.rest, evaluation=evaluation)
    for name in [name for name in metrics if canonical(name) in COUNTERS]:
        counters.values.setdefault(canonical(name), metrics.pop(name))
        counters.weak = bool(metrics) or len(_WORDS.findall(counters.rest + prose)) > 5
    counters.weak = counters.weak and not any(name.lower() in ("fps", "sps") for name in metrics)
    counters.rest += prose
    # A step that was skipped for overflow has no loss, but it is a record of training.
    skipping = "step" in counters.values and any(canonical(name) == "skipped_iterations" for name in metrics)
    telling = skipping or any(map(is_telling, metrics))
    return Parsed(counters, metrics, rank, telling, evaluation)
