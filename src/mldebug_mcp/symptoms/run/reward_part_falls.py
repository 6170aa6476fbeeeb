"""Do the rewards that are added up go together?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.policy import NOT_POLICY
from mldebug_mcp.measure.rewards import components, rewards_of, trend
from mldebug_mcp.measure.statistics import end_level, start_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST_RECORDS = 20
"""Records that the total and each part must have. Chosen: fewer show no course."""
LOST = 0.5
"""The share of its level at the start that a part loses for good. Chosen: by hand."""
OF_THE_GAIN = 0.1
"""Of what the total gains that a part loses. Chosen: less is a detail."""


@symptom(any_of=("rewards/*/mean",), not_for=NOT_POLICY, background=0.01)
def reward_part_falls(run: Run) -> Evidence | None:
    """The total reward rises while a part of it falls.

    One of the rewards that are added up loses at least half of where it began, for good, while their total
    rises.
    Not this when: it dips and comes back; it was about zero or below from the start, as a price is; what it
    loses is little beside what the total gains.
    """
    parts, total = [one.finite for one in components(run)], rewards_of(run)
    if total is None or len(parts) < 2 or min(len(one) for one in (total, *parts)) < LEAST_RECORDS:
        raise CannotTell(f"fewer than two parts of the reward, or fewer than {LEAST_RECORDS} records of them")
    gained = trend(total)
    falling = [one for one in parts if gained > 0 and _falls(one, gained)]
    if not falling:
        return None
    worst = min(falling, key=lambda one: end_level(one.value) / start_level(one.value))
    begun, end = start_level(worst.value), end_level(worst.value)
    return Evidence(
        f"{worst.name} goes from {figure(begun)} to {figure(end)} while {total.name} goes from "
        f"{figure(start_level(total.value))} to {figure(end_level(total.value))}, between {run.step_name}s "
        f"{figure(float(worst.step[0]))} and {figure(float(worst.step[-1]))}",
        steps=(float(worst.step[0]),),
        values={"start": begun, "end": end, "total_gains": gained},
    )


def _falls(part: Series, gained: float) -> bool:
    begun, end = start_level(part.value), end_level(part.value)
    return trend(part) < 0 < begun and begun - end >= max(LOST * begun, OF_THE_GAIN * gained)
