"""What runs share in which the same cause leads: settings that go with it beyond chance.

Each setting is tried at each of its values, numbers also as "at least" and "at most" each of them, by Fisher's exact
test of the runs with the cause against the others. Holm's correction for all conditions tried bounds the chance that
any of those shown is there by accident (S. Holm, A simple sequentially rejective multiple test procedure, 1979).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mldebug_mcp.diagnose.levels import Answered, Level, levels_of
from mldebug_mcp.logs.run import Floats
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models.runs import RunRow, SharedSetting
from mldebug_mcp.text import figure

LEAST_SICK = 3
"""Runs with a cause from which it is asked what they share. Chosen: no two runs can be told from chance."""
LEVEL = 0.05
"""Corrected p below which a setting is shown. Chosen: the usual one."""
ANY = "any fault"
ROUNDING = 1e-7
"""What two equal logarithms of probabilities may differ by."""


@dataclass(frozen=True, slots=True)
class _Condition:
    setting: str
    text: str
    holds: Callable[[Scalar], bool]


def shared_settings(answers: Sequence[Answered]) -> list[SharedSetting]:
    """Return the settings that go with a cause, at most one condition for each setting, the most certain first."""
    judged = [one for one in answers if one.row.cause]
    sick = Counter(cause for one in judged for cause in _groups(one.row))
    causes = [cause for cause, runs in sick.items() if runs >= LEAST_SICK and not (cause == ANY and len(sick) == 2)]
    conditions = list(_conditions([one.settings for one in judged]))
    tried = [_tried(cause, condition, judged) for cause in causes for condition in conditions]
    found: dict[tuple[str, str], SharedSetting] = {}
    passed = True
    for rank, one in enumerate(sorted(tried, key=lambda one: (one.p, -one.sick_with))):
        corrected = one.p * (len(tried) - rank)
        passed = passed and corrected <= LEVEL
        if passed and one.sick_with * one.others > one.others_with * one.sick:
            found.setdefault((one.cause, one.setting), one.model_copy(update={"p": min(1.0, corrected)}))
    return list(found.values())


def _groups(row: RunRow) -> tuple[str, ...]:
    """Return the groups of sick runs that a run belongs to: what one fault breaks may look like several."""
    return (row.cause, ANY) if row.is_sick else ()


def _conditions(settings: Sequence[Mapping[str, Scalar]]) -> Iterator[_Condition]:
    for name, levels in levels_of(settings):
        for level in levels:
            yield _Condition(name, f"= {level.text}" if level.low == level.high else level.text, level.holds)
        bounded = [level for level in levels if level.low is not None]
        for level in bounded[1:-1]:
            low, high = level.low or 0.0, level.high or 0.0
            yield _Condition(name, f">= {figure(low)}", Level("", low, math.inf).holds)
            yield _Condition(name, f"<= {figure(high)}", Level("", -math.inf, high).holds)


def _tried(cause: str, condition: _Condition, judged: Sequence[Answered]) -> SharedSetting:
    told = [one for one in judged if one.settings.get(condition.setting) is not None]
    sick = [one for one in told if cause in _groups(one.row)]
    having = [one for one in told if condition.holds(one.settings[condition.setting])]
    sick_with = sum(cause in _groups(one.row) for one in having)
    return SharedSetting(
        cause=cause,
        setting=condition.setting,
        condition=condition.text,
        sick_with=sick_with,
        sick=len(sick),
        others_with=len(having) - sick_with,
        others=len(told) - len(sick),
        p=fisher(sick_with, len(sick), len(having), len(told)),
    )


def fisher(both: int, marked: int, drawn: int, total: int) -> float:
    """Return the two-sided p of Fisher's exact test.

    Args:
        both: Of the `drawn`, how many are marked.
        marked: How many of all are marked.
        drawn: How many of all are drawn.
        total: How many there are.
    """
    logs = _log_factorials(total)
    one = np.arange(max(0, drawn - (total - marked)), min(marked, drawn) + 1)
    ways = (
        (logs[marked] - logs[one] - logs[marked - one])
        + (logs[total - marked] - logs[drawn - one] - logs[total - marked - drawn + one])
        - (logs[total] - logs[drawn] - logs[total - drawn])
    )
    as_rare = ways <= ways[both - one[0]] + ROUNDING
    return min(1.0, float(np.exp(ways[as_rare]).sum()))


@lru_cache(maxsize=8)
def _log_factorials(most: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
