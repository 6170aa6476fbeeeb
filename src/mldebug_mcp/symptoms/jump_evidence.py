"""A jump of the loss in a sentence: from where to where, for how long, and what else moved."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.beside import Moved, level_and_extreme, moved
from mldebug_mcp.measure.spikes import Spike
from mldebug_mcp.symptoms.forms_of_jump import Jumps
from mldebug_mcp.symptoms.registry import Evidence
from mldebug_mcp.text import counted, figure


def jump_evidence(jumps: Jumps) -> Evidence:
    """Return the highest jump in numbers, how many there are, and what moved with it."""
    run, found, worst = jumps.run, jumps.found, jumps.worst
    step, value = jumps.loss.step, jumps.loss.value
    at, top = float(step[worst.first]), float(value[worst.peak])
    times = top / worst.level if worst.level > 0 else float("nan")
    width = worst.last - worst.first + 1
    back = "and the log ends before it could come back"
    if worst.recovered:
        # A jump counts as over once most of its height is gone, which need not be all.
        after = float(value[worst.last + 1 : worst.last + 2].min(initial=worst.level + worst.height))
        back = f"and is down to {figure(after)} after {counted(width, 'record')}"
    spacing = _spacing(step, found)
    more = f"; {len(found)} such jumps in all" if len(found) > 1 else ""
    more += f", {figure(spacing['spacing'])} {run.step_name}s apart" if spacing else ""
    others = moved(run, at, float(step[worst.last]))
    return Evidence(
        f"loss jumps from {figure(worst.level)} to {figure(top)} at {run.step_name} {figure(at)} {back}{more}"
        f"{_beside(run, at, float(step[worst.last]), others)}",
        steps=(at, *(float(step[spike.first]) for spike in found if spike is not worst))[:10],
        values={
            "level_before": worst.level,
            "peak": top,
            "height": worst.height,
            "factor": times,
            "width_records": width,
            "width_steps": float(step[worst.last]) - at,
            "count": len(found),
            "recovered": float(bool(worst.recovered)),
            **spacing,
            **_numbers(others),
        },
    )


def _spacing(step: Floats, found: list[Spike]) -> dict[str, float]:
    """Return the distance in steps between spikes, if there are several at one distance."""
    gaps = np.diff([step[spike.first] for spike in found])
    if len(gaps) < 2 or float(gaps.std()) > 0.05 * float(gaps.mean()):
        return {}
    return {"spacing": float(gaps.mean())}


def _beside(run: Run, first: float, last: float, others: list[Moved]) -> str:
    """Say what else was logged there: the learning rate, the gradient norm, and what moved."""
    said = {one.metric: str(one) for one in others}
    rate = run["learning_rate"].at(first) if "learning_rate" in run else None
    if rate is not None:
        said.setdefault("learning_rate", f"the learning rate there is {figure(rate)}")
    norm = level_and_extreme(run["grad_norm"].finite, first, last) if "grad_norm" in run else None
    if norm is not None:
        said.setdefault("grad_norm", f"grad_norm goes from {figure(norm[0])} to {figure(norm[1])}")
    return "".join(f"; {part}" for part in said.values())


def _numbers(others: list[Moved]) -> dict[str, float]:
    numbers = {}
    for one in others:
        numbers[f"{one.metric}_before"], numbers[f"{one.metric}_there"] = one.before, one.there
        if one.since is not None:
            numbers[f"{one.metric}_moved_since"] = one.since
    return numbers
