"""A gap between evaluation and training loss that was there at the first evaluation."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.evaluation import EXPLODED
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import median

AT_ONCE, NATS, OFTEN = 1.5, 0.3, 0.8
"""Times the training loss, and nats above it, at the first and this share of all evaluations. Chosen: a model that has
just begun to generalise worse is some per cent off."""
LEAST_TO_WIDEN, LEAST = 3, 4
"""Evaluations in which a gap can be seen to widen, and those whose halves hold two. Chosen: fewer show no course."""
NATS_OF_TOKENS, STEADY = 0.5, 0.35
"""Nats per token at every evaluation of a language model, whose halves differ by no more than this share of the gap.
Chosen: held-out text of one kind differs by hundredths, and what is learnt by heart widens a gap."""
OPENED = 0.65
"""Of a gap, what was there at the first evaluation at most. Chosen: two thirds."""
NOT_IN_TOKENS = ("preference", "supervised", "diffusion", "boosting")


def far_at_first(train: Floats, evaluation: Floats) -> bool:
    """Say whether evaluation is far above training at the first evaluation and nearly all others, and always was."""
    far = (evaluation > AT_ONCE * np.abs(train)) & (evaluation - train > NATS)
    far |= (evaluation < -EXPLODED * train) & (train > NATS)  # such as the cross-entropy of targets above 1
    gap = evaluation - train
    widens = len(gap) >= LEAST_TO_WIDEN and gap[-1] > 0 and gap[0] < (1 - OPENED) * gap[-1]
    return bool(far[0] and far.mean() >= OFTEN and not widens)


def alike_in_tokens(run: Run, train: Floats, evaluation: Floats) -> bool:
    """Say whether a language model is as many nats worse at every evaluation, which is less than its training loss."""
    if len(train) < LEAST or run.kind in NOT_IN_TOKENS or not predicts_tokens(run):
        return False
    gap, half = evaluation - train, len(train) // 2
    alike = abs(median(gap[half:]) - median(gap[:half])) <= STEADY * median(gap)
    return bool(gap.min() >= NATS_OF_TOKENS) and alike and median(train[half:]) >= median(gap[half:])
