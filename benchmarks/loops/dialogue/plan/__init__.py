"""What is trained, and what is wrong with it."""

from __future__ import annotations

from benchmarks.loops.dialogue.plan import (
    data,
    evaluation,
    healthy,
    healthy_models,
    losses,
    machine,
    model,
    optim,
    rates,
    rewards,
    values,
)
from benchmarks.loops.dialogue.plan.spec import Spec

PARTS = (healthy_models, healthy, data, evaluation, losses, model, rates, optim, machine, rewards, values)


def runs() -> list[Spec]:
    """All runs, part by part."""
    return [spec for part in PARTS for spec in part.runs()]
