"""Values of actions far above anything that was ever earned."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

LEAST = 8
TIMES = 10.0
"""Times the largest return, over the later half. Values of steps that count on beyond a time limit, scaled rewards and
a bonus for entropy make several times of it. Chosen by hand."""
_VALUES = re.compile(
    r"(?:.*/)?(?:average|mean|avg)?_?(?:q|qf)_?\d?_?(?:vals?|values?|mean)|(?:.*/)?mean_q|(?:.*/)?avg_q", re.IGNORECASE
)


@symptom(any_of=("reward",), not_for=("grpo", "ppo"), background=0.004)
def q_values_beyond_returns(run: Run) -> Evidence | None:
    """The mean value that the critic gives to actions is far larger than any return of an episode.

    A value is a discounted return, so that it is about as large at most. Not this when: it comes back in the later
    half; rewards are scaled for the critic, which makes some times as much of it.
    """
    values = [run[name].finite for name in run.series if _VALUES.fullmatch(name)]
    values = [one for one in values if len(one) >= LEAST]
    returns = run["reward"].finite.value
    if not values or len(returns) < LEAST:
        raise CannotTell(f"values of actions and returns are not logged {LEAST} times each")
    largest = max(1.0, float(np.abs(returns).max()))
    one = max(values, key=lambda series: median(np.abs(series.value[len(series) // 2 :])))
    size = np.abs(one.value)
    reached = median(size[len(size) // 2 :])
    if reached <= TIMES * largest:
        return None
    at = float(one.step[int(np.argmax(size > TIMES * largest))])
    return Evidence(
        f"{one.name} is {figure(reached)} in size (median of the later half), beyond {figure(TIMES * largest)} from "
        f"{run.step_name} {figure(at)} on; the largest return on record is {figure(largest)}",
        steps=(at,),
        values={"values": reached, "largest_return": largest},
    )
