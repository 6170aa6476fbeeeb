"""One line of text, read: its counters, its metrics, the rank that printed it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mldebug_mcp.logs.lines.counters import Counters, find_counters
from mldebug_mcp.logs.lines.pairs import is_prose, pairs_in, phase_of
from mldebug_mcp.logs.lines.prefixes import without_prefix
from mldebug_mcp.logs.names import canonical, is_telling

_DARKNET = re.compile(r"^\s*(\d+): ([\d.naif-]+), ([\d.naif-]+) avg(?: loss)?, ([\d.]+) rate,", re.IGNORECASE)
_BLANKS = re.compile(r"\s{3,}")
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


def parse_line(line: str) -> Parsed:
    """Read a line by itself; bars, boxes, dicts and tables are other modules' work."""
    # Patterns for counters allow blanks in several places: thousands of them in a row would take hours.
    rank, message = without_prefix(_BLANKS.sub("  ", line[:MAX_LINE]))
    message = _DARKNET.sub(r"\1: loss=\2, average_loss=\3, rate=\4,", message)
    counters = find_counters(message)
    evaluation = (counters.phase or "").lower() in ("val", "test", "valid", "eval") or phase_of(message) == "eval"
    metrics = pairs_in(counters.rest, evaluation=evaluation)
    for name in [name for name in metrics if canonical(name) in ("step", "epoch")]:
        counters.values.setdefault(canonical(name), metrics.pop(name))
        counters.weak = bool(metrics) or len(message.split()) > 4
    # A step that was skipped for overflow has no loss, but it is a record of training.
    skipping = "step" in counters.values and any(canonical(name) == "skipped_iterations" for name in metrics)
    telling = (skipping or any(map(is_telling, metrics))) and not is_prose(message)
    return Parsed(counters, metrics, rank, telling, evaluation)
