"""Optimizer steps were skipped for overflow."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

SHARE = 0.05
"""Records with a skipped step; a scaler that tries a doubled scale every 2000 steps skips one in 2000."""
IN_A_ROW = 4
"""Skipped steps on end, after the first steps, in which a scaler halves down from its start."""
PROBING = 20


@symptom(needs=(), sources=("pytorch_docstrings", "opt_175b_logbook"), background=0.01, instead=("loss_scale_falls",))
def steps_skipped(run: Run) -> Evidence | None:
    """Optimizer steps are skipped again and again because gradients overflow.

    Not this when: single steps far apart are skipped (a dynamic loss scaler probes for its limit); the first steps
    are. The counter of the log is read, or else each halving of the loss scale counts as a skipped step. The share
    and the number in a row were chosen by hand.
    """
    series = _skipped(run)
    skipped = series.value > 0
    if not skipped.any():
        return None
    probing = min(PROBING, len(skipped) // 2)
    if series.step[0] <= PROBING:  # the descent from where the scaler began; before the first halving there is none
        descent = len(skipped) if skipped[1:].all() else 1 + int(np.argmin(skipped[1:]))
        probing = max(probing, min(descent, _above_one(run, series.step)))
    late = np.arange(len(skipped)) >= probing
    longest = _longest(skipped & late)
    often = float((skipped & late).sum()) > SHARE * len(skipped) and int((skipped & late).sum()) >= 3
    first = float(series.step[int(np.argmax(skipped & late))] if (skipped & late).any() else series.step[skipped][0])
    return Evidence(
        f"skipped steps in {int(skipped.sum())} of {len(skipped)} records, the first at {run.step_name} "
        f"{figure(float(series.step[skipped][0]))}, at most {longest} on end after the first {probing}",
        steps=(first,),
        values={"records": int(skipped.sum()), "share": float(skipped.mean()), "longest": longest},
        present=often or longest >= IN_A_ROW,
    )


def _skipped(run: Run) -> Series:
    """Return the steps skipped since the last record."""
    if "overflow" in run and set(run.series) <= {"overflow", "loss_scale", "epoch"}:
        raise CannotTell("only skipped steps are logged: how many there were between them is not known")
    if "skipped_iterations" in run and len(count := run["skipped_iterations"].finite):
        rising = len(count) > 2 and bool(np.all(np.diff(count.value) >= 0)) and count.value[-1] > 0
        return Series(count.name, count.step, _increments(count.value) if rising else count.value)
    if "overflow" in run and "loss" in run:  # messages of skipped steps, between the records of those that were not
        skipped = run["overflow"].where(run["overflow"].value > 0)
        step = np.union1d(skipped.step, run["loss"].step)
        return Series(skipped.name, step, np.isin(step, skipped.step).astype(np.float64))
    if "loss_scale" in run and len(scale := run["loss_scale"].finite) > 1:
        halved = np.concatenate([[0.0], (scale.value[1:] < 0.75 * scale.value[:-1]).astype(np.float64)])
        return Series(scale.name, scale.step, halved)
    raise CannotTell("not logged: skipped_iterations or loss_scale")


def _above_one(run: Run, step: Floats) -> int:
    """Return how many of the steps come before the loss scale is below 1: further down no scaler has to go."""
    scale = run.series.get("loss_scale")
    low = np.empty(0) if scale is None else scale.step[scale.value < 1]
    return int(np.searchsorted(step, low[0])) if len(low) else len(step)


def _increments(total: Floats) -> Floats:
    return np.diff(total, prepend=0.0)


def _longest(flags: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """Return the length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max(initial=0))
