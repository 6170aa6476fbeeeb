"""The user's own step, watched: which gradient reaches the optimizer, and at which learning rate."""

from __future__ import annotations

from statistics import median_high
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from .parameters import Movement
from .subject import State, Subject
from .training import Plan, train_as_user

SMALLEST = 1e-12
WATCHED_STEPS = 3


class StepWatch:
    """Watches optimizer steps while it is entered.

    A gradient that was not set to zero is the fresh one plus that of the step before. Both are seen: the fresh one as
    backward delivers it, the one used as the optimizer finds it.
    """

    def __init__(self, subject: Subject) -> None:
        self._parameters = [(name, one) for name, one in subject.parameters() if one.requires_grad]
        self._fresh: dict[int, torch.Tensor] = {}
        self._used: dict[int, torch.Tensor] = {}
        self._handles: list[Any] = []
        self.optimizer_steps = 0
        self.backwards = 0
        self.rates: set[float] = set()
        self.leftovers: list[float] = []
        self.factors: list[float] = []
        self.in_training_mode: bool | None = None
        self._model = subject.model

    def __enter__(self) -> StepWatch:
        for _, one in self._parameters:
            self._handles.append(one.register_hook(self._keeper(id(one))))  # type: ignore[no-untyped-call]
        self._handles.append(register_optimizer_step_pre_hook(self._before_step))
        self._handles.append(self._model.register_forward_pre_hook(self._mode))
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _mode(self, module: torch.nn.Module, arguments: Any) -> None:
        del arguments
        self.in_training_mode = module.training

    def _keeper(self, key: int) -> Any:
        def keep(gradient: torch.Tensor) -> None:
            known = self._fresh.get(key)
            self._fresh[key] = gradient.detach().clone() if known is None else known + gradient.detach()

        return keep

    def _before_step(self, optimizer: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
        del arguments, keywords
        self.optimizer_steps += 1
        self.rates.update(float(group["lr"]) for group in optimizer.param_groups)
        used = {id(one): one.grad.detach().clone() for _, one in self._parameters if one.grad is not None}
        both = [key for key in used if key in self._fresh]
        self.backwards += bool(self._fresh)
        if both:
            self._compare(used, both)
        self._used, self._fresh = used, {}

    def _compare(self, used: dict[int, torch.Tensor], keys: list[int]) -> None:
        """Write the used gradient as a * fresh + b * last and keep b / a: about 1 where nothing was set to zero."""
        now, fresh = _flat(used, keys), _flat(self._fresh, keys)
        if not bool(torch.isfinite(now).all()) or float(now.norm()) < SMALLEST or float(fresh.norm()) < SMALLEST:
            return
        self.factors.append(float(now.norm() / fresh.norm()))
        if all(key in self._used for key in keys):
            self.leftovers.append(_leftover(now, fresh, _flat(self._used, keys)))

    def result(self, steps: int) -> dict[str, Any]:
        """Return what was seen over a number of steps."""
        return {
            "steps": steps,
            "optimizer_steps": self.optimizer_steps,
            "steps_with_fresh_gradient": self.backwards,
            "learning_rates": sorted(self.rates),
            "leftover_gradient": median_high(self.leftovers) if self.leftovers else None,
            "clip_factor": median_high(self.factors) if self.factors else None,
            "in_training_mode": self.in_training_mode,
        }


def _flat(gradients: dict[int, torch.Tensor], keys: list[int]) -> torch.Tensor:
    return torch.cat([gradients[key].double().flatten() for key in keys])


def _leftover(now: torch.Tensor, fresh: torch.Tensor, last: torch.Tensor) -> float:
    """Return b / a of the fit now = a fresh + b last, where that fit is exact; else 0. Clipping scales both alike."""
    basis = torch.stack((fresh, last), dim=1)
    gram = basis.T @ basis
    if float(torch.linalg.det(gram)) < 1e-8 * float(gram[0, 0] * gram[1, 1]):
        exact = float((now - fresh - last).norm()) < 1e-3 * float(now.norm())
        return 1.0 if exact and float(last.norm()) > SMALLEST else 0.0
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
    movement, uphill, ratio = Movement(subject), None, None
    with StepWatch(subject) as watch:
        for number in range(WATCHED_STEPS):
            losses.extend(train_as_user(subject, plan).losses)
            if number == 0:
                uphill, ratio = _cosine_of_step(slopes), movement.ratio()
    state.restore()
    return {
        "update_ratio": ratio,
        "in_training_mode": watch.in_training_mode,
        "watched": {**watch.result(len(losses)), "uphill": uphill, "losses": losses},
    }


def _slopes(subject: Subject) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Return the parameters that have a gradient, each with that gradient and its value."""
    subject.model.zero_grad(set_to_none=True)
    loss = subject.compute_loss()
    if loss.requires_grad:
        loss.backward()  # type: ignore[no-untyped-call]
    return [
        (one, one.grad.detach().clone(), one.detach().clone())
        for _, one in subject.parameters()
        if one.grad is not None
    ]


def _cosine_of_step(slopes: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> float | None:
    """Return the cosine between what a step did and the slope of the loss: above 0, the step went uphill."""
    if not slopes:
        return None
    step = torch.cat([(one.detach() - before).float().flatten() for one, _, before in slopes])
    slope = torch.cat([gradient.float().flatten() for _, gradient, _ in slopes])
    if not float(step.norm()) or not float(slope.norm()) or not bool(torch.isfinite(step).all()):
        return None
    return float(torch.nn.functional.cosine_similarity(step, slope, dim=0))
