"""Evaluation loss that stays high while the training loss is near zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import compared
from mldebug_mcp.symptoms.quality import as_share, ranking_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.eval_gap_grows import eval_gap_grows
from mldebug_mcp.symptoms.run.eval_gap_wide import LEAST_EVALUATIONS, SHARE_OF_START
from mldebug_mcp.symptoms.statistics import end_level, median
from mldebug_mcp.text import figure

GONE, LEFT = 0.05, 0.2
"""Of the training loss at first: to less than that it has come, and so far above it the evaluation loss stays. In
benchmarks/faults runs that know their rows by heart come to 0.02, and no healthy one does both. Chosen by hand."""
NEARLY, LEFT_BY_FAR = SHARE_OF_START, 0.4
"""... or to less than that, where the evaluation loss stays farther above it: up to where `eval_gap_wide` begins, whose
gap may be narrower. Chosen by hand."""

FALLS = 0.05
"""Over the later half an evaluation loss that falls by so much does not stay where it is. Chosen by hand."""
GAINS = 0.05
"""A score that gains so much, as a share, still gets better. Chosen by hand."""


@symptom(
    needs=("loss", "eval_loss"),
    sources=("goodfellow_ch11",),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
    background=0.01,
    follows=("loss_divergence", "loss_nonfinite"),
)
def eval_gap_at_zero(run: Run) -> Evidence | None:
    """The training loss is near zero, and the evaluation loss stays at a good part of what training began with.

    The training rows are memorised. Not this when: both are near zero; the training loss is still well above zero
    (`eval_gap_wide`). Where the evaluation loss rises too this is unknown, for `eval_gap_grows` says more; so it is
    where it still falls, and where a score of rankings still gets better: their loss depends on how many candidates
    there are.
    """
    both = compared(run, LEAST_EVALUATIONS)
    start, level, reached = both.start, both.train_level, both.eval_level
    if eval_gap_grows(run) is not None:
        raise CannotTell("the evaluation loss rises, which says more")
    left = LEFT if level < GONE * start else LEFT_BY_FAR
    if not 0 <= level < NEARLY * start or reached - level < left * start:
        return None
    later = both.evaluation[both.later]
    if median(later[-2:]) < (1 - FALLS) * later[0]:
        raise CannotTell(
            "the evaluation loss still falls: rows are learnt by heart, and held-out rows are served by it"
        )
    known = float(both.steps[int(np.argmax(both.train < NEARLY * start))])
    if _still_gains(run, known):
        raise CannotTell("a score of rankings still gets better: its loss may be over more candidates than a batch")
    return Evidence(
        f"loss has come from {figure(start)} to {figure(level)}, while eval_loss is {figure(reached)} (medians of the "
        f"later half of {len(both.steps)} evaluations)",
        steps=(known,),
        values={"start": start, "train": level, "eval": reached},
    )


def _still_gains(run: Run, since: float) -> bool:
    """Say whether a score of rankings, which is best at one, ends clearly above what it was at a step."""
    scores = [one.finite for one in ranking_metrics(run) if len(one.finite) >= LEAST_EVALUATIONS]
    before = [(one, one.at(since)) for one in scores]
    return any(then is not None and as_share(end_level(one.value)) - as_share(then) > GAINS for one, then in before)
