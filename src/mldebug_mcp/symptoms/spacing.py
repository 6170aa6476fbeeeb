"""Jumps of the loss at even distances, and what else comes at that distance."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.forms_of_jump import LONG, Jumps
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

LEAST = 3
BESIDE, ABOVE = 2, 1.1
"""Records on either side, but for the nearest, above which a record one distance before stands, by this factor."""
EVEN = 0.1
"""Distances between jumps vary by less than this share. Chosen by hand."""


def regular(jumps: Jumps) -> Evidence | None:
    """Say whether the jumps come at even distances."""
    run, loss, found = jumps.run, jumps.loss, jumps.found
    if len(found) < LEAST or len(loss) < LONG:
        raise CannotTell(f"the loss jumps {len(found)} times; {LEAST} are needed to speak of a distance")
    steps = np.array([loss.step[spike.first] for spike in found])
    gaps = np.diff(steps)
    if float(gaps.std()) > EVEN * float(gaps.mean()):
        return None
    steps = np.concatenate([_one_before(loss, float(steps[0]), float(gaps.mean())), steps])
    return Evidence(
        f"the {len(steps)} jumps are {figure(float(gaps.mean()))} {run.step_name}s apart, the first at "
        f"{figure(float(steps[0]))}{_rhythm(run, float(gaps.mean()))}",
        steps=tuple(float(step) for step in steps[:10]),
        values={"distance": float(gaps.mean()), "count": len(steps)},
    )


def _one_before(loss: Series, first: float, distance: float) -> Floats:
    """Return the step of a record one distance before the first jump that stands above its neighbours, if there is."""
    at = int(np.searchsorted(loss.step, first - distance))
    near = slice(max(0, at - 1), at + 2)
    if first - distance < loss.step[0] or at < BESIDE + 1 or at + BESIDE + 2 > len(loss):
        return np.empty(0)
    top = near.start + int(np.argmax(loss.value[near]))
    others = np.concatenate([loss.value[top - 1 - BESIDE : top - 1], loss.value[top + 2 : top + 2 + BESIDE]])
    return loss.step[top : top + 1] if loss.value[top] > ABOVE * others.max() > 0 else np.empty(0)


def _rhythm(run: Run, distance: float) -> str:
    """Say what else happens at this distance, or a whole number of times in it: epochs, evaluations."""
    said = []
    epoch = run["epoch"].finite if "epoch" in run and run.step_name == "step" else None
    if epoch is not None and len(epoch) > 1 and epoch.value[-1] > epoch.value[0]:
        length = float((epoch.step[-1] - epoch.step[0]) / (epoch.value[-1] - epoch.value[0]))
        said.append(("an epoch is", length))
    evaluations = run["eval_loss"].step if "eval_loss" in run else np.empty(0)
    if len(evaluations) > 2:
        said.append(("evaluations come every", median(np.diff(evaluations))))
    return "".join(
        f"; {words} {figure(length)} {run.step_name}s" for words, length in said if _divides(length, distance)
    )


def _divides(length: float, distance: float) -> bool:
    times = distance / length if length > 0 else 0.0
    return times >= 1 - EVEN and abs(times - round(times)) <= EVEN / 2 * max(1.0, round(times) ** 0.5)
