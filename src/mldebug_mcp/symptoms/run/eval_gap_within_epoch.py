"""Evaluation loss rises before the training data were seen once."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.eval_gap_grows import eval_gap_grows
from mldebug_mcp.text import figure

EARLY = 0.7
"""Of an epoch. A minimum later than this may be the end of the first epoch, after which a small set is often memorised.
Chosen by hand."""


@symptom(
    needs=("loss",),
    sources=("bekman_mle",),
    whole_run=True,
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.01,
)
def eval_gap_within_epoch(run: Run) -> Evidence | None:
    """The evaluation loss turns upward, while training goes on falling, before the first epoch is over.

    Not this when: it turns at the end of the first epoch or later. Needs the epoch or the steps per epoch.
    """
    rise = eval_gap_grows(run)
    if rise is None:
        return None
    onset = rise.steps[0]
    epoch = _epoch(run, onset)
    if epoch > EARLY:
        return None
    return Evidence(
        f"at epoch {figure(epoch)}: {rise.summary}", steps=rise.steps, values={**rise.values, "epoch": epoch}
    )


def _epoch(run: Run, step: float) -> float:
    """Return how many times the data had been seen at a step."""
    logged = run["epoch"].finite.at(step) if "epoch" in run else None
    # A counter of whole epochs says 0, or 1, throughout the first.
    if logged is not None and float(run["epoch"].finite.value[0]) % 1:
        return logged
    per_epoch = run.setting("steps_per_epoch")
    if per_epoch is None or per_epoch < 1:
        raise CannotTell("neither fractions of an epoch nor the steps per epoch are known")
    return step / per_epoch
