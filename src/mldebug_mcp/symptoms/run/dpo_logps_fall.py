"""Do chosen and rejected answers lose their probability together?"""

from __future__ import annotations

from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.pairs import LEAST_RECORDS, changes, has_changes
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST_FALL = 10.0
"""Nats per answer by which both must fall. Chosen: batches of other lengths alone move log-probabilities by some."""
TOGETHER = 1.5
"""Times what the margin gains that the chosen answers lose. Chosen: they then fall together more than apart."""
OF_ALL = 0.75
"""... or they lose this share of the log-probability that they began with, whatever the rejected do. Chosen: by
hand."""


@symptom(background=0.03, sources=("razin_displacement", "remote_gpu_trainer"))
def dpo_logps_fall(run: Run) -> Evidence | None:
    """Log-probabilities of chosen and rejected both fall.

    They fall by far more than they move apart, or without end.
    Not this when: the margin grows as much as the chosen answers lose, which is how DPO often works (a remark),
    as long as these keep most of the probability that they had; the fall is within the noise of batches; a
    reward model is trained, which has no such probabilities. The factors were chosen by hand.
    """
    if scores_pairs(run):
        return None  # it scores answers, and gives them no probability that could fall
    moved = changes(run)
    if moved is None:
        why = f"fewer than {LEAST_RECORDS} finite values of the rewards or log-probabilities"
        lacking = "not logged: rewards that are zero at first, or logps, both of chosen and of rejected"
        raise CannotTell(why if has_changes(run) else lacking)
    chosen, rejected = moved.chosen, moved.rejected
    if chosen.by > -max(LEAST_FALL, 3 * chosen.error) or rejected.by > -max(LEAST_FALL, 3 * rejected.error):
        return None
    gain = chosen.by - rejected.by
    together = -chosen.by > TOGETHER * max(gain, 0.0)
    lost = moved.began < 0 and -chosen.by > OF_ALL * -moved.began
    remark = ""
    if lost:
        remark = f"; the chosen began at {figure(moved.began)} nats"
    elif not together:
        remark = ": they move apart more than the chosen fall"
    return Evidence(
        f"by {run.place(run.last_step)} the log-probability of the chosen answers is down by "
        f"{figure(-chosen.by)} nats and that of the rejected by {figure(-rejected.by)} ({moved.unit}){remark}",
        steps=(run.first_step,),
        values={"chosen": chosen.by, "rejected": rejected.by, "margin_gain": gain},
        present=together or lost,
    )
