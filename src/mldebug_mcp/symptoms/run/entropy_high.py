"""Policy entropy stays high or grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import ENTROPIES, EXPLORATION, NOT_POLICY, TEXT_POLICIES, entropy, seems_to_learn
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import Blocks, blocks, departure, end_level, start_level
from mldebug_mcp.text import counted, figure

NOT_CONVERGING = 1.0
"""Axolotl, for GRPO: above 1 nat per token the policy does not converge."""
GROWTH = 2.0
"""Entropy of a language model at this multiple of its lowest level has turned round; chosen by hand."""
AS_AT_START = 0.98
LEAST_RECORDS = 20
ENOUGH_RECORDS = 60
"""In classic RL an entropy that has not moved at all says something only after a while. By hand."""
STAYS, GROWS = "stays high", "grows"
RANDOM = 0.5
"""Where at least this share of the actions is random, and stays it, an agent is not about to act on what it learns."""


@symptom(
    any_of=(*ENTROPIES, *EXPLORATION),
    sources=("axolotl_stability", "rahtz_reproducing"),
    not_for=NOT_POLICY,
    background=0.012,
)
def entropy_high(run: Run) -> Evidence | None:
    """The entropy of the policy is high and does not come down, or grows; or actions are taken at random for ever.

    Not this when: it is high at first and falls; it rises a little from a low level; a classic agent has hardly begun;
    it stays high while the reward rises. Entropies summed over the tokens of a completion (TRL's PPO) are judged
    by growth alone.
    """
    if not any(name in run for name in ENTROPIES):
        return _random_for_ever(run)
    seen = course(run)
    return None if seen is None or (seen.what == STAYS and seems_to_learn(run)) else seen.evidence


@dataclass(frozen=True, slots=True)
class Course:
    """How an entropy that does not come down behaves, `STAYS` or `GROWS`, and what is seen of that."""

    what: str
    evidence: Evidence


def course(run: Run) -> Course | None:
    """Return how the entropy behaves, None if it comes down.

    Raises:
        CannotTell: there are too few records.
    """
    series = entropy(run)
    value = series.value
    if len(value) < LEAST_RECORDS:
        raise CannotTell(f"entropy has {counted(len(value), 'finite value')} here; {LEAST_RECORDS} are needed")
    cut, start, end = blocks(value, 20), start_level(value), end_level(value)
    what = _of_text(run, cut, start, end) if run.kind in TEXT_POLICIES else _of_agent(cut, start, end, len(value))
    if what is None:
        return None
    lowest = int(np.argmin(cut.level))
    onset = float(series.step[departure(value, end)]) if what == GROWS else float(series.step[0])
    evidence = Evidence(
        f"entropy {what} from {run.step_name} {figure(onset)} on: {figure(start)} at the start, lowest level "
        f"{figure(float(cut.level[lowest]))}, {figure(end)} at the end",
        steps=(onset,),
        values={"start": start, "lowest": float(cut.level[lowest]), "end": end},
    )
    return Course(what, evidence)


def _of_text(run: Run, cut: Blocks, start: float, end: float) -> str | None:
    lowest = float(cut.level.min())
    if end > max(GROWTH * lowest, 0.5) and end - lowest > 6 * cut.wobble:
        return GROWS
    falling = end < 0.8 * start and end - lowest < 4 * cut.wobble
    return STAYS if run.kind == "grpo" and lowest > NOT_CONVERGING and not falling else None


def _of_agent(cut: Blocks, start: float, end: float, count: int) -> str | None:
    lowest = float(cut.level.min())
    if end - lowest > max(0.25 * abs(start), 10 * cut.wobble, 0.1) and end > start + 4 * cut.wobble:
        return GROWS
    stays = count >= ENOUGH_RECORDS and lowest > AS_AT_START * start > 0
    return STAYS if stays else None


def _random_for_ever(run: Run) -> Evidence | None:
    """Return what is seen of a share of random actions that never comes down."""
    if run.kind != "rl":
        raise CannotTell("it is not known whether this run trains an agent")
    share = run[next(name for name in EXPLORATION if name in run)].finite
    if len(share) < LEAST_RECORDS:
        raise CannotTell(f"{share.name} has {counted(len(share), 'finite value')} here; {LEAST_RECORDS} are needed")
    if float(share.value.min()) < RANDOM or float(np.ptp(share.value)) > 0:
        return None
    return Evidence(
        f"{share.name} is {figure(float(share.value[0]))} in all {len(share)} records, up to {run.step_name} "
        f"{figure(float(share.step[-1]))}",
        steps=(float(share.step[0]),),
        values={"share": float(share.value[0]), "records": float(len(share))},
    )
