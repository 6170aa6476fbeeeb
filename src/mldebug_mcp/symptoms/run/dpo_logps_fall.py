"""Log-probabilities of chosen and rejected both fall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import edge_width, median, noise
from mldebug_mcp.text import figure

LEAST_FALL = 10.0
"""Nats per answer by which both must fall; batches of other lengths alone move log-probabilities by some."""
OUTRUN = 1.5
"""The chosen answers lose this many times what the margin gains: they fall together more than apart."""
DEFAULT_BETA = 0.1


@dataclass(frozen=True, slots=True)
class Change:
    """How far one curve moved over the run, in nats, and the error of that."""

    by: float
    error: float


@symptom(needs=(), sources=("razin_displacement", "remote_gpu_trainer"), background=0.03)
def dpo_logps_fall(run: Run) -> Evidence | None:
    """The log-probabilities of chosen and rejected answers both fall, by far more than they move apart.

    Not this when: the margin grows as much as the chosen answers lose, which is how DPO often works (a remark); the
    fall is within the noise of batches. The factor was chosen by hand.
    """
    unit, chosen, rejected = _changes(run)
    if chosen.by > -max(LEAST_FALL, 3 * chosen.error) or rejected.by > -max(LEAST_FALL, 3 * rejected.error):
        return None
    gain = chosen.by - rejected.by
    together = -chosen.by > OUTRUN * max(gain, 0.0)
    remark = "" if together else ": they move apart more than the chosen fall"
    first = run.first_step
    return Evidence(
        f"by {run.step_name} {figure(run.last_step)} the log-probability of the chosen answers is down by "
        f"{figure(-chosen.by)} nats and that of the rejected by {figure(-rejected.by)} ({unit}){remark}",
        steps=(first,),
        values={"chosen": chosen.by, "rejected": rejected.by, "margin_gain": gain},
        present=together,
    )


def _changes(run: Run) -> tuple[str, Change, Change]:
    """Return where the figures are from and the changes of chosen and rejected log-probabilities.

    The implicit rewards are preferred: they are log-ratios to the reference, free of the length of the answers.
    """
    if "rewards/chosen" in run and "rewards/rejected" in run:
        beta = run.setting("beta") or DEFAULT_BETA
        origin = f"from the rewards over beta = {figure(beta)}"
        pair = [_change(run, name, beta, origin_is_zero=True) for name in ("rewards/chosen", "rewards/rejected")]
    elif "logps/chosen" in run and "logps/rejected" in run:
        origin = "from logps"
        pair = [_change(run, name, 1.0, origin_is_zero=False) for name in ("logps/chosen", "logps/rejected")]
    else:
        raise CannotTell("not logged: rewards/chosen and rewards/rejected, or logps/chosen and logps/rejected")
    if pair[0] is None or pair[1] is None:
        raise CannotTell("fewer than 8 finite values of the rewards or log-probabilities")
    return origin, pair[0], pair[1]


def _change(run: Run, name: str, unit: float, *, origin_is_zero: bool) -> Change | None:
    values = run[name].finite.value / unit
    if len(values) < 8:
        return None
    edge = max(edge_width(len(values)), len(values) // 8)
    start = 0.0 if origin_is_zero else median(values[:edge])
    return Change(median(values[-edge:]) - start, 1.25 * noise(values) * float(np.sqrt(2 / edge)))
