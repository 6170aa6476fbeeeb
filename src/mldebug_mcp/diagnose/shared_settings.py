"""What runs share in which the same cause leads: settings that go with it beyond chance.

Each setting is tried at each of its values, numbers also as "at least" and "at most" each of them, by Fisher's exact
test of the runs with the cause against the others. Holm's correction for all conditions tried bounds the chance that
any of those shown is there by accident (S. Holm, A simple sequentially rejective multiple test procedure, 1979).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models.runs import RunRow, SharedSetting
from mldebug_mcp.text import figure

if TYPE_CHECKING:
    from mldebug_mcp.diagnose.runs import Answered

LEAST_SICK = 3
"""Runs with a cause from which it is asked what they share. Chosen: no two runs can be told from chance."""
LEVEL = 0.05
"""Corrected p below which a setting is shown. Chosen: the usual one."""
MOST_VALUES = 12
"""Different values of a setting that are tried; a path or a seed has one per run and tells nothing. Chosen."""
ANY = "any fault"
NOT_ASKED = ("seed", "path", "dir", "name", "run_id", "output", "date", "time")
"""Words in settings that differ in every run by design."""


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
    for name in sorted({name for one in settings for name in one}):
        values = {one[name] for one in settings if one.get(name) is not None}
        if 1 < len(values) <= MOST_VALUES and not any(word in name.lower() for word in NOT_ASKED):
            yield from _of(name, values)


def _of(name: str, values: set[Scalar]) -> Iterator[_Condition]:
    numbers = sorted(one for one in values if isinstance(one, int | float) and not isinstance(one, bool))
    for value in sorted(values, key=str):
        yield _Condition(name, f"= {_shown(value)}", lambda other, value=value: other == value)  # type: ignore[misc]
    for bound in numbers[1:-1]:
        yield _Condition(name, f">= {figure(bound)}", lambda other, bound=bound: _number(other) >= bound)  # type: ignore[misc]
        yield _Condition(name, f"<= {figure(bound)}", lambda other, bound=bound: _number(other) <= bound)  # type: ignore[misc]


def _number(value: Scalar) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _shown(value: Scalar) -> str:
    return figure(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value).lower()


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
    ways = [
        comb(marked, one) * comb(total - marked, drawn - one) if 0 <= drawn - one <= total - marked else 0
        for one in range(min(marked, drawn) + 1)
    ]
    return sum(one for one in ways if one <= ways[both]) / comb(total, drawn)
