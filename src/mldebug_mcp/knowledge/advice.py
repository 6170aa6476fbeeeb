"""What to do about a cause where the learner is not a neural network trained by backpropagation.

`learner_advice.csv` has a row for each cause and learner whose fix and check differ from those of PLAYBOOK.md: boosted
trees have no weight decay and no warm-up, but a depth and a number of trees. The settings are those that XGBoost,
LightGBM, CatBoost, scikit-learn and Stable-Baselines3 document.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mldebug_mcp.core.lazy import dataclass

TABLE = Path(__file__).with_name("learner_advice.csv")
LEARNERS = ("boosting", "linear", "clusters", "rl")
"""Boosted trees; linear models by stochastic gradient descent; k-means and its kin; agents in an environment."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a cause.

    Args:
        name: What the cause is called of this learner, in a sentence; empty where its usual name fits.
        fix: What usually helps.
        action: The check that shows whether the cause is there.
        cost: How long that takes: seconds, minutes or hours.
        confirms: What shows that it is.
        refutes: What shows that it is not.
    """

    name: str
    fix: str
    action: str
    cost: str
    confirms: str
    refutes: str


def advice_for(cause: str, learner: str) -> Advice | None:
    """Return what to do about a cause of a learner, None where PLAYBOOK.md holds for it."""
    return _table().get((cause, learner)) if learner in LEARNERS else None


@cache
def _table() -> Mapping[tuple[str, str], Advice]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {(row.pop("cause"), row.pop("learner")): Advice(**row) for row in csv.DictReader(file)}
