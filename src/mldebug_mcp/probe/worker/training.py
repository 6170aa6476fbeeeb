"""The probe's own loop: find a learning rate, then train until the batch is memorised, the steps or the time are up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from .subject import State, Subject

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Learning rates to choose from: karpathy_recipe holds 3e-4 safe for Adam; tiny models take more."""
FIRST_RATE = 3
"""Index of the rate tried first; its neighbours follow as long as they do better."""
SHARE_FOR_TRIALS = 0.25
"""Share of the time left that the trials may take."""
TRIAL_STEPS = 6
WARM_UP = 5
PATIENCE = 3
"""Steps in a row below the goal that count as memorised, so that one lucky step does not."""


@dataclass
class Curve:
    """Losses step by step and how the loop ended."""

    losses: list[float] = field(default_factory=list)
    ended: str = "steps"
    learning_rate: float | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return it as the result file carries it."""
        return {"losses": self.losses, "ended": self.ended, "learning_rate": self.learning_rate,
                "seconds": self.seconds}  # fmt: skip


@dataclass
class Plan:
    """How to train.

    Args:
        steps: Optimizer steps at most.
        goal: Loss at which the batch counts as memorised.
        deadline: Time (monotonic) to stop at.
        clip: Largest gradient norm, or None.
        optimizer: `adamw`, `adam` or `sgd`.
        watch: Called after each step with its number and loss.
    """

    steps: int
    goal: float
    deadline: float
    clip: float | None = 1.0
    optimizer: str = "adamw"
    watch: Callable[[int, float], None] = lambda _step, _loss: None


def find_rate(subject: Subject, plan: Plan, state: State) -> tuple[float, list[dict[str, float]]]:
    """Try rates for a few steps each, from the same start, uphill in rate and then downhill.

    Returns the best rate and what each one that was tried came to.
    """
    tried: dict[int, float] = {}
    now = time.monotonic()
    enough = now + SHARE_FOR_TRIALS * (plan.deadline - now)

    def attempt(index: int) -> float:
        state.restore()
        losses = _loop(subject, make_optimizer(subject, plan.optimizer, RATES[index]), TRIAL_STEPS, None, plan).losses
        tried[index] = losses[-1] if losses and math.isfinite(losses[-1]) else math.inf
        return tried[index]

    attempt(FIRST_RATE)
    for direction in (1, -1):
        index = FIRST_RATE + direction
        while 0 <= index < len(RATES) and time.monotonic() < enough and attempt(index) < tried[index - direction]:
            index += direction
    state.restore()
    best = min(tried, key=lambda index: tried[index])
    return RATES[best], [{"learning_rate": RATES[index], "loss": loss} for index, loss in sorted(tried.items())]


def train(subject: Subject, plan: Plan, rate: float) -> Curve:
    """Train with an optimizer of the probe's own: warm-up, a constant rate, a cosine fall in the last half."""
    curve = _loop(subject, make_optimizer(subject, plan.optimizer, rate), plan.steps, rate, plan)
    curve.learning_rate = rate
    return curve


def train_as_user(subject: Subject, plan: Plan) -> Curve:
    """Train with the user's own step, or with the user's optimizer as it is."""
    if subject.train_step is not None:
        return _run(plan, plan.steps, subject.step)
    assert subject.optimizer is not None
    return _loop(subject, subject.optimizer, plan.steps, None, plan)


def make_optimizer(subject: Subject, name: str, rate: float) -> torch.optim.Optimizer:
    """Return an optimizer over all trainable parameters, without weight decay: the batch is to be memorised."""
    parameters = [one for one in subject.model.parameters() if one.requires_grad]
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=0.9)
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    return kind(parameters, lr=rate, weight_decay=0.0)


def _loop(subject: Subject, optimizer: torch.optim.Optimizer, steps: int, rate: float | None, plan: Plan) -> Curve:
    scaler = subject.scaler
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    done = 0

    def step() -> float:
        nonlocal done
        if rate is not None:
            for group in optimizer.param_groups:
                group["lr"] = rate * _schedule(done, steps)
        done += 1
        loss = subject.compute_loss()
        optimizer.zero_grad(set_to_none=True)
        (scaler.scale(loss) if scaler else loss).backward()  # type: ignore[no-untyped-call]
        if scaler:
            scaler.unscale_(optimizer)
        if plan.clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, plan.clip)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        return float(loss.detach())

    return _run(plan, steps, step)


def _schedule(step: int, steps: int) -> float:
    warm = min(1.0, (step + 1) / WARM_UP)
    late = max(0.0, (step - steps / 2) / max(1.0, steps / 2))
    return warm * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * late)))


def _run(plan: Plan, steps: int, step: Callable[[], float]) -> Curve:
    curve, below, begun = Curve(), 0, time.monotonic()
    for number in range(steps):
        loss = step()
        curve.losses.append(loss)
        plan.watch(number, loss)
        if not math.isfinite(loss):
            curve.ended = "not_finite"
            break
        below = below + 1 if loss <= plan.goal else 0
        if below >= PATIENCE:
            curve.ended = "goal"
            break
        if time.monotonic() > plan.deadline:
            curve.ended = "time"
            break
    curve.seconds = time.monotonic() - begun
    return curve
