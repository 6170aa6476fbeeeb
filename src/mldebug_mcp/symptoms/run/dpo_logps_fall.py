"""Log-probabilities of chosen and rejected both fall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import edge_width, median, noise
from mldebug_mcp.text import figure

LEAST_FALL = 10.0
"""Nats per answer by which both must fall; batches of other lengths alone move log-probabilities by some."""
OUTRUN = 1.5
"""The chosen answers lose this many times what the margin gains: they fall together more than apart."""
DEFAULT_BETA = 0.1
LEAST_RECORDS, EARLY = 8, 0.05
REFERENCE_FREE = 0.7
"""The implicit rewards of a policy that is its own reference begin at zero. Where the first one is this share of the
largest, and far beyond the noise, they are no log-ratios (SimPO, ORPO). Chosen by hand."""
OF_ALL = 0.75
"""... or they lose this share of the log-probability that they began with, whatever the rejected do. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class Change:
    """How far one curve moved over the run, in nats, and the error of that."""

    by: float
    error: float


@symptom(needs=(), sources=("razin_displacement", "remote_gpu_trainer"), background=0.03)
def dpo_logps_fall(run: Run) -> Evidence | None:
    """The log-probabilities of chosen and rejected answers both fall, by far more than they move apart, or without end.

    Not this when: the margin grows as much as the chosen answers lose, which is how DPO often works (a remark), as long
    as these keep most of the probability that they had; the fall is within the noise of batches; a reward model is
    trained, which has no such probabilities. The factors were chosen by hand.
    """
    if scores_pairs(run):
        return None  # it scores answers, and gives them no probability that could fall
    unit, chosen, rejected = _changes(run)
    if chosen.by > -max(LEAST_FALL, 3 * chosen.error) or rejected.by > -max(LEAST_FALL, 3 * rejected.error):
        return None
    gain = chosen.by - rejected.by
    together = -chosen.by > OUTRUN * max(gain, 0.0)
    began = _began(run)
    lost = began < 0 and -chosen.by > OF_ALL * -began
    remark = ""
    if lost:
        remark = f"; the chosen began at {figure(began)} nats"
    elif not together:
        remark = ": they move apart more than the chosen fall"
    first = run.first_step
    return Evidence(
        f"by {run.step_name} {figure(run.last_step)} the log-probability of the chosen answers is down by "
        f"{figure(-chosen.by)} nats and that of the rejected by {figure(-rejected.by)} ({unit}){remark}",
        steps=(first,),
        values={"chosen": chosen.by, "rejected": rejected.by, "margin_gain": gain},
        present=together or lost,
    )


def _changes(run: Run) -> tuple[str, Change, Change]:
    """Return where the figures are from and the changes of chosen and rejected log-probabilities.

    The implicit rewards are preferred: they are log-ratios to the reference, free of the length of the answers.
    """
    if "rewards/chosen" in run and "rewards/rejected" in run and not _are_free_of_reference(run):
        beta = run.setting("beta") or DEFAULT_BETA
        origin = f"from the rewards over beta = {figure(beta)}"
        pair = [_change(run, name, beta, origin_is_zero=True) for name in ("rewards/chosen", "rewards/rejected")]
    elif "logps/chosen" in run and "logps/rejected" in run:
        origin = "from logps"
        pair = [_change(run, name, 1.0, origin_is_zero=False) for name in ("logps/chosen", "logps/rejected")]
    else:
        raise CannotTell("not logged: rewards that are zero at first, or logps, both of chosen and of rejected")
    if pair[0] is None or pair[1] is None:
        raise CannotTell(f"fewer than {LEAST_RECORDS} finite values of the rewards or log-probabilities")
    return origin, pair[0], pair[1]


def _are_free_of_reference(run: Run) -> bool:
    """Say whether the rewards begin far from zero: then they are no log-ratios to what training begins with."""
    values = run["rewards/chosen"].finite.value
    if len(values) < LEAST_RECORDS or run.first_step > EARLY * run.last_step:
        return False
    begun = abs(float(values[0]))
    return begun > max(REFERENCE_FREE * float(np.abs(values).max()), 3 * noise(values))


def _began(run: Run) -> float:
    """Return the log-probability of the chosen answers at the start, or 0 if it is not logged."""
    values = run["logps/chosen"].finite.value if "logps/chosen" in run else np.empty(0)
    return median(values[: edge_width(len(values))]) if len(values) else 0.0


def _change(run: Run, name: str, unit: float, *, origin_is_zero: bool) -> Change | None:
    values = run[name].finite.value / unit
    if len(values) < LEAST_RECORDS:
        return None
    edge = max(edge_width(len(values)), len(values) // 8)
    start = 0.0 if origin_is_zero else median(values[:edge])
    return Change(median(values[-edge:]) - start, 1.25 * noise(values) * float(np.sqrt(2 / edge)))
