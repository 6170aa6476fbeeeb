"""Steps get slower over the run."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import blocks, departure, end_level, median
from mldebug_mcp.symptoms.pace import LEAST_RECORDS, PACES, step_times
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

FACTOR = 1.25
"""SmolLM3's throughput kept within 4 %, and any lasting deviation was followed up; this much shows on small runs."""
SIGMAS = 6.0
FEW, FEW_FACTOR = 8, 1.5
"""So few records tell as well, where each step of the later half takes this many times as long as any of the first:
the chance of that order alone is one in 70. Chosen by hand."""
LEARNS_LATE = ("rl", "ppo", "grpo")
"""Kinds of run whose steps get slower as the agent begins to learn or writes more: few records say nothing."""


@symptom(any_of=PACES, sources=("smol_playbook",), background=0.004)
def step_time_grows(run: Run) -> Evidence | None:
    """Steps take clearly longer at the end of the log than before, for good.

    Not this when: the first steps are slow or fast (compilation, caches, an agent that does not train yet); single
    steps are slow (`step_time_spikes`); it comes back; the batch grows as much; there are fewer than 20 records, unless
    the later half all take far longer. The factor was chosen by hand.
    """
    times = step_times(run, FEW)
    if len(times) < LEAST_RECORDS:
        return _in_few(run, times)
    cut = blocks(times.value, 20)
    early = median(cut.level[: max(2, len(cut.level) // 5)])
    end = end_level(times.value)
    late = median(cut.level[-max(2, len(cut.level) // 5) :])
    slower = min(end, late)
    if slower <= early or slower < FACTOR * early or slower - early < SIGMAS * cut.wobble:
        return None
    onset = float(times.step[departure(times.value, slower)])
    return Evidence(
        f"steps take {slower / early:.2g} times as long at the end of the log as at its beginning, "
        f"from {run.step_name} {figure(onset)} on{_beside(run)}",
        steps=(onset,),
        values={"early": early, "late": slower, "factor": slower / early},
    )


def _in_few(run: Run, times: Series) -> Evidence | None:
    """Return a growth that is plain from a handful of records.

    Raises:
        CannotTell: the records are too few for anything less plain.
    """
    half = len(times) // 2
    early, late = times.value[:half], times.value[half:]
    if run.kind in LEARNS_LATE or float(late.min()) < FEW_FACTOR * float(early.max()):
        raise CannotTell(f"the time of a step has {len(times)} usable values; {LEAST_RECORDS} are needed")
    factor, onset = median(late) / median(early), float(times.step[half])
    return Evidence(
        f"steps take {factor:.2g} times as long in the last {len(late)} records as in the {len(early)} before, from "
        f"{run.step_name} {figure(onset)} on{_beside(run)}",
        steps=(onset,),
        values={"early": median(early), "late": median(late), "factor": factor},
    )


def _beside(run: Run) -> str:
    if "completion_length" not in run or len(run["completion_length"].finite) < 6:
        return ""
    level = blocks(run["completion_length"].finite.value, 20).level
    return f"; completions are {level[-1] / level[0]:.2g} times as long" if level[0] > 0 else ""
