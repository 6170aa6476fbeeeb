"""One line of text, read: its counters, its metrics, the rank that printed it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mldebug_mcp.logs.lines.counters import Counters, find_counters
from mldebug_mcp.logs.lines.pairs import is_prose, pairs_in, phase_of
from mldebug_mcp.logs.lines.prefixes import without_prefix
from mldebug_mcp.logs.names import COUNTERS, canonical, is_telling

_DARKNET = re.compile(r"^\s*(\d+): ([\d.naif-]+), ([\d.naif-]+) avg(?: loss)?, ([\d.]+) rate,", re.IGNORECASE)
_AT = re.compile(
    r"^\W*(?P<name>[a-z][\w /.-]{0,60}?)(?: \([^()\d]*\))? (?:at|after|in|for) (?:the )?"
    r"(?P<counter>(?:(?:global|training)[ -])?(?:step|iteration|epoch|episode|update|batch|round) ?#?\d[\d,]*)"
    r"(?:\s*[:=]\s*|,? (?:is|was) )(?=[-+.]?\d|nan|[-+]?inf)",
    re.IGNORECASE,
)
"""The value after the counter: "Cost after iteration 100: 0.69", "Training loss (for one batch) at step 0: 2.3"."""
_FLOWER = re.compile(r"\bfit progress: \((\d+), ([\d.e+-]+|nan|inf), ")
_ASIDE = re.compile(
    r"(?<=\w)(?: \((?![^()]{0,80}\b(?:train|val|valid|test|eval|dev))[^()=:]{0,40} [^()=:]{0,40}\)"
    r"| (?:over|of|in) (?:the )?(?:last )?\d+ (?:test |eval(?:uation)? |training )?(?:episodes|games))"
    r"(?=\s*[:=]\s*[-+.\d])",
    re.IGNORECASE,
)
"""What a metric's name says aside: "Avg Reward (last 10): 21.5"."""
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
    rank, message = without_prefix(_BLANKS.sub("  ", line[:MAX_LINE]))
    message = _DARKNET.sub(r"\1: loss=\2, average_loss=\3, rate=\4,", message)
    if "(" in message or "episodes" in message or "games" in message:
        message = _FLOWER.sub(r"round \1, eval_loss: \2, ", _ASIDE.sub("", message))
    message = _AT.sub(r"\g<counter>: \g<name>: ", message)
    counters = find_counters(message)
    named = (counters.phase or "").lower() in ("val", "test", "valid", "eval") or phase_of(message) == "eval"
    evaluation = named or (evaluation and not counters.values)
    metrics = pairs_in(counters.rest, evaluation=evaluation)
    for name in [name for name in metrics if canonical(name) in COUNTERS]:
        counters.values.setdefault(canonical(name), metrics.pop(name))
        counters.weak = bool(metrics) or len(_WORDS.findall(counters.rest)) > 5
    counters.weak = counters.weak and not any(name.lower() in ("fps", "sps") for name in metrics)
    # A step that was skipped for overflow has no loss, but it is a record of training.
    skipping = "step" in counters.values and any(canonical(name) == "skipped_iterations" for name in metrics)
    telling = (skipping or any(map(is_telling, metrics))) and not is_prose(message)
    return Parsed(counters, metrics, rank, telling, evaluation)
