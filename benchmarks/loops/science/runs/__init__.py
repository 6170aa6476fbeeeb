"""The catalogue: what is run, with which fault, and what in its log decides it."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.loops.science.run import Run
from benchmarks.loops.science.runs import agents, data, healthy, losses, machine, models, traps, updates

PARTS = (healthy, traps, data, losses, updates, models, machine, agents)


def named_runs() -> dict[str, Run]:
    """Return all runs by name: the task and a number, so that a name does not tell the fault."""
    named: dict[str, Run] = {}
    counts: dict[str, int] = {}
    for run in (run for part in PARTS for run in part.runs()):
        task = run.experiment.name
        counts[task] = counts.get(task, 0) + 1
        # Steps of 7 modulo 97 keep faults of a kind from standing side by side.
        number = counts[task] * 7 % 97
        # Every fourth log lies alone, as a third do with those whose authors keep no settings.
        named[f"{task}_{number:02d}"] = run if number % 4 else replace(run, settings="")
    return dict(sorted(named.items()))
