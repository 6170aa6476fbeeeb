"""KL to the reference far too large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.policy import NOT_POLICY, require_policy
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import departure, highest_level, median
from mldebug_mcp.text import counted, figure

TO_REFERENCE = 2.0
"""Axolotl, for GRPO: 0 to 0.5 is healthy, above 2 the policy has gone too far. Per token."""
WHOLE_TEXT = 40.0
"""TRL's PPO sums over the tokens of a completion; its adaptive controller aims at about 6 (remote_gpu_trainer)."""
PER_UPDATE = 0.1
"""Of one update: Schulman calls 0.01 small and 10 really big; between them this was chosen by hand."""
NO_KL = 0.05
"""KL below this is not part of a rise: healthy runs reach it."""
JUMP = 0.3
JUMP_FACTOR = 5.0
"""A single update this large, and this far above the median, is one too large even if the next ones are small."""


@dataclass(frozen=True, slots=True)
class _Measure:
    name: str
    what: str
    limit: float


@symptom(
    any_of=("kl", "approx_kl", "loss_kl"),
    sources=("axolotl_stability", "remote_gpu_trainer", "schulman_nuts_talk"),
    not_for=NOT_POLICY,
    background=0.005,
)
def kl_high(run: Run) -> Evidence | None:
    """The KL divergence of the policy from its reference, or from the policy before the update, is far too large.

    Not this when: single records jump and come back (one rare token does that to an estimate of KL to the reference);
    KL is summed over the tokens of a completion, for which the limit is higher.
    """
    require_policy(run)
    judged = [evidence for measure in _measures(run) if (evidence := _judge(run, measure)) is not None]
    return max(judged, key=lambda evidence: evidence.present, default=None)


def _measures(run: Run) -> list[_Measure]:
    summed = run.kind == "ppo"
    to_reference = _Measure("kl", "to the reference", WHOLE_TEXT if summed else TO_REFERENCE)
    if run.kind == "rl":  # no reference there: `kl` is that of an update
        to_reference = _Measure("kl", "of an update", PER_UPDATE)
    of_update = [_Measure(name, "of an update", PER_UPDATE) for name in ("approx_kl", "loss_kl")]
    return [measure for measure in (to_reference, *of_update) if measure.name in run]


def _judge(run: Run, measure: _Measure) -> Evidence | None:
    series = run[measure.name].finite
    if len(series) < 5:
        raise CannotTell(f"{measure.name} has {counted(len(series), 'finite value')} here; 5 are needed")
    kept = highest_level(series.value)
    if kept.value > measure.limit:
        return _sustained(run, series, measure, kept.value)
    peak = int(np.argmax(series.value))
    top, typical = float(series.value[peak]), median(series.value)
    at = float(series.step[peak])
    values = {"peak": top, "median": typical, "limit": measure.limit}
    if measure.limit == PER_UPDATE and top > JUMP and top > JUMP_FACTOR * typical:
        return Evidence(
            f"{measure.name} ({measure.what}) is {figure(top)} at {run.step_name} {figure(at)}; its median is "
            f"{figure(typical)}",
            steps=(at,),
            values=values,
        )
    if top > measure.limit:
        return Evidence(
            f"{measure.name} ({measure.what}) reaches {figure(top)} at {run.step_name} {figure(at)} and comes back; "
            f"its median is {figure(typical)}",
            steps=(at,),
            values=values,
            present=False,
        )
    return None


def _sustained(run: Run, series: Series, measure: _Measure, level: float) -> Evidence:
    first = float(series.step[_first_stay(series.value, measure.limit)])
    # KL runs away exponentially: its departure is seen in the logarithm.
    onset = float(series.step[departure(np.log(np.maximum(series.value, NO_KL)), np.log(level))])
    return Evidence(
        f"{measure.name} ({measure.what}) exceeds {figure(measure.limit)} from {run.step_name} {figure(first)} on and "
        f"reaches a level of {figure(level)}; it begins to rise at {run.step_name} {figure(min(onset, first))}, from "
        f"{figure(float(series.value[0]))} at first, and ends at {figure(float(series.value[-1]))}",
        steps=(min(onset, first), first),
        values={
            "level": level,
            "first": float(series.value[0]),
            "end": float(series.value[-1]),
            "limit": measure.limit,
        },
    )


def _first_stay(values: Floats, limit: float) -> int:
    """Return the first index at which two values in a row exceed the limit."""
    above = values > limit
    return int(np.argmax(above & np.append(above[1:], True)))
