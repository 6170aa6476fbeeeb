"""What the other runs of a sweep say about a run: whether its result is normal for this recipe, and what may be why."""

from __future__ import annotations

from collections.abc import Sequence

from mldebug_mcp.diagnose.compare import WORSE, settings_with_rate
from mldebug_mcp.diagnose.ranking import Evidence
from mldebug_mcp.diagnose.setting_faults import faults_of
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.measure.among_siblings import AmongSiblings, among_siblings
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.text import figure

SPREADS = 5.0
"""Standard deviations of its siblings by which a result has to be worse. Chosen: as where two curves are compared."""
WORSE_BITS = 3.0
"""Bits against `healthy` where it is, and for the fault that a setting may be that no sibling has. Chosen: fewer than
beside a run that is known to be good, as what differs may be what the sweep is about."""


def told_by_siblings(run: Run) -> list[Evidence]:
    """Return what speaks for and against causes where a run is clearly worse than its siblings."""
    seen = among_siblings(run)
    if seen is None or not _worse(seen):
        return []
    suspects = {
        cause: f"{name} is {_shown(own)}, in {seen.count} siblings {_range(others)}"
        for name, (own, others) in _set_alone(run).items()
        for cause in faults_of(name, _direction(own, others))
    }
    ends = f"{seen.metric} ends at {figure(seen.own)}, in {seen.count} siblings at {figure(seen.usual)}"
    told = [Evidence(cause, WORSE_BITS, said, "reference") for cause, said in suspects.items()]
    return [*told, Evidence(SOUND, -WORSE_BITS, ends, "reference")]


def _worse(seen: AmongSiblings) -> bool:
    """Say whether a result is worse by more than siblings are apart, and than what is small beside what they gained."""
    return seen.worse_by > max(SPREADS * seen.spread, WORSE * max(abs(seen.usual), seen.gained))


def _set_alone(run: Run) -> dict[str, tuple[Scalar, list[Scalar]]]:
    """Return the settings in which a run differs from every sibling: its value, and theirs."""
    own, theirs = settings_with_rate(run), [settings_with_rate(one.run) for one in run.siblings]
    alone = [name for name in own if all(own[name] != other.get(name) for other in theirs)]
    return {name: (own[name], [other.get(name) for other in theirs]) for name in alone}


def _direction(own: Scalar, others: Sequence[Scalar]) -> int:
    """Return +1 where a setting is above that of every sibling, -1 where below; 0 where it is merely another."""
    numbers = _numbers((own, *others))
    if len(numbers) < len(others) + 1:
        return 0
    return (numbers[0] > max(numbers[1:])) - (numbers[0] < min(numbers[1:]))


def _numbers(values: Sequence[Scalar]) -> list[float]:
    return [float(one) for one in values if isinstance(one, int | float) and not isinstance(one, bool)]


def _range(values: Sequence[Scalar]) -> str:
    """Return the values of siblings in words: the least and the greatest, or the first few that are no numbers."""
    numbers = _numbers(values)
    if len(numbers) < len(values):
        return ", ".join(dict.fromkeys(_shown(one) for one in values[:4]))
    low, high = figure(min(numbers)), figure(max(numbers))
    return low if low == high else f"{low} to {high}"


def _shown(value: Scalar) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return figure(value)
    return "not set" if value is None else str(value).lower()
