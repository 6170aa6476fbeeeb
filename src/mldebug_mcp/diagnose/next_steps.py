"""Which check first? The one that splits the leading hypotheses best for what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mldebug_mcp.models import Hypothesis, NextStep

MAX_STEPS = 5
COST = {"seconds": 1.0, "minutes": 2.0, "hours": 6.0}
"""What a check costs, relative to one that takes seconds. Chosen by hand: far flatter than time itself, because
a decisive check that takes minutes beats a weak one that takes seconds."""


def order_next_steps(hypotheses: Sequence[Hypothesis]) -> list[NextStep]:
    """Return the most useful checks over all hypotheses, best first.

    A check is worth the entropy, in bits, of the answer to "is it one of the causes that this check is about?",
    divided by its cost. Checks that make the same call are one check about several causes.
    """
    merged: dict[str, NextStep] = {}
    mass: dict[str, float] = {}
    for hypothesis in hypotheses:
        for step in hypothesis.next_steps:
            key = step.call or step.action
            if key not in merged:
                merged[key] = step
            elif hypothesis.cause not in merged[key].for_causes:
                merged[key] = merged[key].model_copy(update={"for_causes": [*merged[key].for_causes, hypothesis.cause]})
            else:
                continue
            mass[key] = mass.get(key, 0.0) + hypothesis.probability
    worth = {key: _entropy(mass[key]) / COST[step.cost] for key, step in merged.items()}
    return [merged[key] for key in sorted(merged, key=lambda key: -worth[key])][:MAX_STEPS]


def _entropy(share: float) -> float:
    share = min(max(share, 1e-9), 1 - 1e-9)
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)
