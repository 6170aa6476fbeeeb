"""Training on the batch, by the probe's own loop or by the user's own step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median_high
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from .parameters import Movement
from .subject import State, Subject

# The probe's own loop: find a learning rate, then train until the batch is memorised, the steps or the time are up.


RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
"""Learning rates to choose from: karpathy_recipe holds 3e-4 safe for Adam; tiny models take more."""
FIRST_RATE = 3
"""Index of the rate tried first; its neighbours follow as long as they do better."""
SHARE_FOR_TRIALS = 0.25
"""Share of the time left that the trials may take."""
TRIAL_STEPS = 6
"""Steps of a trial of a learning rate."""
WARM_UP = 5
"""Steps in which the learning rate rises."""
MIN_STEPS_BELOW_GOAL = 3
"""Steps in a row below the goal that count as memorised, so that one lucky step does not."""
STEPS_BELOW_ZERO = 25
FAR_BELOW = 1000.0
"""Steps for which a loss below zero is followed, to see whether it has a floor, and how far. Chosen: the halves of
the steps are compared; no loss with a floor has so many times its first value below zero."""
MAX_GONE_RATE_SHARE = 0.01
"""Share of the greatest learning rate that is next to nothing. Chosen: schedules end at a tenth, or at zero."""


@dataclass
class Curve:
    """Losses step by step and how the loop ended."""

    losses: list[float] = field(default_factory=list)
    ended: str = "steps"
    learning_rate: float | None = None
    seconds: float = 0.0
    rate_gone_at: int | None = None
    """Steps after which the user's learning rate is next to nothing."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as the result file carries it."""
        return {"losses": self.losses, "ended": self.ended, "learning_rate": self.learning_rate,
                "rate_gone_at": self.rate_gone_at}  # fmt: skip


@dataclass
class Plan:
    """How to train: to the loss `goal`, for so many steps and up to the deadline (monotonic) at most.

    `clip` is the largest gradient norm; `watch` is called after each step with its number and loss.
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
        rates: list[float] = []

        def note(optimizer: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
            del arguments, keywords
            rates.append(max(float(group["lr"]) for group in optimizer.param_groups))

        handle = register_optimizer_step_pre_hook(note)
        try:
            curve = _run(plan, plan.steps, subject.step)
        finally:
            handle.remove()
        curve.rate_gone_at = gone_at(rates)
        return curve
    assert subject.optimizer is not None
    return _loop(subject, subject.optimizer, plan.steps, None, plan)


def gone_at(rates: list[float]) -> int | None:
    """Return the number of steps after which a learning rate stays next to nothing; None where it does not."""
    least = MAX_GONE_RATE_SHARE * max(rates, default=0.0)
    left = next((number for number in range(len(rates), 0, -1) if rates[number - 1] > least), 0)
    return left if 0 < left < len(rates) else None


def make_optimizer(subject: Subject, name: str, rate: float) -> torch.optim.Optimizer:
    """Return an optimizer over all trainable parameters, without weight decay: the batch is to be memorised."""
    parameters = [parameter for parameter in subject.model.parameters() if parameter.requires_grad]
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=0.9)
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    return kind(parameters, lr=rate, weight_decay=0.0)


def _loop(subject: Subject, optimizer: torch.optim.Optimizer, steps: int, rate: float | None, plan: Plan) -> Curve:
    scaler = subject.scaler
    parameters = [param for group in optimizer.param_groups for param in group["params"]]
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
        first = abs(curve.losses[0])
        below_zero = -FAR_BELOW * max(1.0, first) < loss < -first and len(curve.losses) < STEPS_BELOW_ZERO
        if below >= MIN_STEPS_BELOW_GOAL and not below_zero:
            curve.ended = "goal"
            break
        if time.monotonic() > plan.deadline:
            curve.ended = "time"
            break
    curve.seconds = time.monotonic() - begun
    return curve


# The user's own step, watched: which gradient reaches the optimizer, and at which learning rate.


MIN_GRADIENT_NORM = 1e-12
"""Norm below which a gradient has no direction to compare."""
WATCHED_STEPS = 3
"""Steps of the user's own that are watched."""


class StepWatch:
    """Watches optimizer steps while it is entered.

    A gradient that was not set to zero is the fresh one plus that of the step before. Both are seen: the fresh one as
    backward delivers it, the one used as the optimizer finds it.
    """

    def __init__(self, subject: Subject) -> None:
        self._parameters = [(name, parameter) for name, parameter in subject.parameters() if parameter.requires_grad]
        self._fresh: dict[int, torch.Tensor] = {}
        self.used: dict[int, torch.Tensor] = {}
        self._handles: list[Any] = []
        self.optimizer_steps = 0
        self.backwards = 0
        self.without_gradient = 0
        self.optimizers: set[int] = set()
        self.rates: set[float] = set()
        self.decays: list[float] = []
        self.leftovers: list[float] = []
        self.factors: list[float] = []
        self.in_training_mode: bool | None = None
        self._model = subject.model
        self._own_step = subject.train_step is not None

    def __enter__(self) -> StepWatch:
        for _, parameter in self._parameters:
            self._handles.append(parameter.register_hook(self._keeper(parameter)))  # type: ignore[no-untyped-call]
        self._handles.append(register_optimizer_step_pre_hook(self._before_step))
        self._handles.append(self._model.register_forward_pre_hook(self._mode))
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _mode(self, module: torch.nn.Module, arguments: Any) -> None:
        del arguments
        self.in_training_mode = module.training

    def _keeper(self, parameter: torch.nn.Parameter) -> Any:
        key = id(parameter)

        def keep(gradient: torch.Tensor) -> None:
            # What was cleared since, as between the two passes of a step, does not reach the optimizer.
            cleared = parameter.grad is None or not bool(parameter.grad.any())
            known = None if cleared else self._fresh.get(key)
            self._fresh[key] = gradient.detach().clone() if known is None else known + gradient.detach()

        return keep

    def _before_step(self, optimizer: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
        del arguments, keywords
        self.optimizer_steps += 1
        self.optimizers.add(id(optimizer))
        self.rates.update(float(group["lr"]) for group in optimizer.param_groups)
        self.decays += [float(group["lr"]) * float(group.get("weight_decay", 0.0)) for group in optimizer.param_groups]
        used = {
            id(parameter): parameter.grad.detach().clone()
            for _, parameter in self._parameters
            if parameter.grad is not None
        }
        both = [key for key in used if key in self._fresh]
        self.backwards += bool(self._fresh)
        self.without_gradient += bool(self._fresh) and not any(
            bool(used[key].any()) for key in self._fresh if key in used
        )
        if both:
            self._compare(used, both)
        self.used, self._fresh = used, {}

    def _compare(self, used: dict[int, torch.Tensor], keys: list[int]) -> None:
        """Write the used gradient as a * fresh + b * last and keep b / a: about 1 where nothing was set to zero."""
        now, fresh = _flat(used, keys), _flat(self._fresh, keys)
        if (
            not bool(torch.isfinite(now).all())
            or float(now.norm()) < MIN_GRADIENT_NORM
            or float(fresh.norm()) < MIN_GRADIENT_NORM
        ):
            return
        self.factors.append(float(now.norm() / fresh.norm()))
        if all(key in self.used for key in keys):
            self.leftovers.append(_leftover(now, fresh, _flat(self.used, keys)))

    def result(self, steps: int) -> dict[str, Any]:
        """Return what was seen over a number of steps."""
        return {
            "steps": steps,
            "optimizer_steps": self.optimizer_steps,
            "steps_with_fresh_gradient": self.backwards,
            "steps_without_it": self.without_gradient,
            "optimizers": len(self.optimizers),
            "learning_rates": sorted(self.rates),
            "leftover_gradient": median_high(self.leftovers) if self.leftovers else None,
            "clip_factor": median_high(self.factors) if self.factors and self._own_step else None,
            "decay_per_step": max(self.decays, default=None),
        }


def _flat(gradients: dict[int, torch.Tensor], keys: list[int]) -> torch.Tensor:
    return torch.cat([gradients[key].double().flatten() for key in keys])


def _leftover(now: torch.Tensor, fresh: torch.Tensor, last: torch.Tensor) -> float:
    """Return b / a of the fit now = a fresh + b last, where that fit is exact; else 0. Clipping scales both alike."""
    basis = torch.stack((fresh, last), dim=1)
    gram = basis.T @ basis
    if float(torch.linalg.det(gram)) < 1e-8 * float(gram[0, 0] * gram[1, 1]):
        exact = float((now - fresh - last).norm()) < 1e-3 * float(now.norm())
        return 1.0 if exact and float(last.norm()) > MIN_GRADIENT_NORM else 0.0
    a, b = torch.linalg.solve(gram, basis.T @ now).tolist()
    residual = float((now - basis @ torch.tensor([a, b], dtype=basis.dtype, device=basis.device)).norm())
    return b / a if a > 0 and residual < 1e-3 * float(now.norm()) else 0.0


def watch_steps(subject: Subject, state: State, plan: Plan) -> dict[str, Any]:
    """Watch a few of the user's steps, and compare the first with the slope of the user's own loss.

    Returns what was measured: `watched`, `update_ratio`, `in_training_mode`.
    """
    slopes = _slopes(subject)
    state.restore()
    losses: list[float] = []
    movement, uphill, ratio, rounded = Movement(subject), None, None, None
    with StepWatch(subject) as watch:
        for number in range(WATCHED_STEPS):
            losses.extend(train_as_user(subject, plan).losses)
            if number == 0:
                uphill, ratio = _cosine_of_step(slopes), movement.ratio()
                rounded = movement.rounded_away(watch.used)
    state.restore()
    return {
        "update_ratio": ratio,
        "in_training_mode": watch.in_training_mode,
        "watched": {**watch.result(len(losses)), "uphill": uphill, "rounded_away": rounded, "losses": losses},
    }


def _slopes(subject: Subject) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Return the parameters that have a gradient, each with that gradient and its value."""
    subject.backward()
    return [
        (parameter, parameter.grad.detach().clone(), parameter.detach().clone())
        for _, parameter in subject.parameters()
        if parameter.grad is not None
    ]


def _cosine_of_step(slopes: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> float | None:
    """Return the cosine between what a step did and the slope of the loss: above 0, the step went uphill.

    Only parameters that moved count: of two networks in turn the other one has a slope too.
    """
    slopes = [(tensor, gradient, before) for tensor, gradient, before in slopes if not torch.equal(tensor, before)]
    if not slopes:
        return None
    step = torch.cat([(tensor.detach() - before).float().flatten() for tensor, _, before in slopes])
    slope = torch.cat([gradient.float().flatten() for _, gradient, _ in slopes])
    if not float(step.norm()) or not float(slope.norm()) or not bool(torch.isfinite(step).all()):
        return None
    return float(torch.nn.functional.cosine_similarity(step, slope, dim=0))
