"""A plain training loop whose every part a fault can change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.faults.tasks import Batch, Shape, Task

Record = dict[str, float]
Loss = Callable[[Tensor, Batch], Tensor]


def plain_loss(logits: Tensor, batch: Batch) -> Tensor:
    """Return the mean cross-entropy over the targets that count, or the mean squared error."""
    if batch.targets.is_floating_point():
        return functional.mse_loss(logits, batch.targets)
    if logits.dim() == 4:
        logits = logits.permute(0, 2, 3, 1)
    return functional.cross_entropy(logits.flatten(0, -2)[batch.mask.flatten()], batch.targets[batch.mask])


@dataclass(slots=True)
class Setup:
    """A run before it is trained: the usual settings of its task, and the parts that a fault replaces.

    Args:
        task: What is learned.
        seed: Of the weights, the data order and the noise.
        examples: Size of the training set; 0 draws fresh samples for ever.
        onset: The step at which the fault begins to show, if it has one.
    """

    task: Task
    seed: int
    lr: float = 0.0
    steps: int = 0
    batch: int = 0
    examples: int = 0
    warmup: float = 0.1
    schedule: str = "cosine"
    clip: float = 1.0
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    optimizer: str = "adamw"
    accumulation: int = 1
    eval_every: int = 25
    eval_in_training_mode: bool = False
    zero_grad: bool = True
    shuffle: bool = True
    half: bool = False
    resume_at: int = 0
    resume_loses_state: bool = False
    resume_replays_data: bool = False
    onset: float | None = None
    shape: Shape = field(default_factory=Shape)
    spoil: Callable[[int, Batch, torch.Generator], Batch] | None = None
    spoil_evaluation: Callable[[Batch, torch.Generator], Batch] | None = None
    loss: Loss = plain_loss
    prepare: Callable[[nn.Module], None] | None = None
    after_backward: Callable[[int, nn.Module], None] | None = None
    rate: Callable[[int, float], float] | None = None
    edit: Callable[[int, Record], Record] | None = None
    config: dict[str, float | bool | str] = field(default_factory=dict)

    @classmethod
    def usual(cls, task: Task, seed: int) -> Setup:
        """Return the healthy setup of a task."""
        return cls(task, seed, lr=task.lr, steps=task.steps, batch=task.batch)


def scheduled(setup: Setup, step: int) -> float:
    """Return the learning rate of a step."""
    warmup = max(1, int(setup.warmup * setup.steps))
    if setup.warmup and step < warmup:
        rate = setup.lr * (step + 1) / warmup
    else:
        done = (step - warmup) / max(1, setup.steps - warmup)
        rate = (
            setup.lr
            * {
                "cosine": 0.05 + 0.475 * (1 + math.cos(math.pi * min(1.0, done))),
                "linear": max(0.0, 1 - done),
                "constant": 1.0,
                "wsd": 1.0 if done < 0.8 else max(0.02, (1 - done) / 0.2),
            }[setup.schedule]
        )
    return setup.rate(step, rate) if setup.rate else rate


class Data:
    """Draws the batches: from a fixed training set epoch by epoch, or fresh ones for ever."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.generator = torch.Generator().manual_seed(setup.seed)
        self.position = 0
        self.epoch = 0
        self.pool = setup.task.sample(self.generator, setup.examples, False) if setup.examples else None
        self.order = self._order()

    def _order(self) -> Tensor:
        if self.pool is None:
            return torch.empty(0)
        if self.setup.shuffle:
            return torch.randperm(self.setup.examples, generator=self.generator)
        first = self.pool.targets.flatten(1)[:, 0] if self.pool.targets.dim() > 1 else self.pool.targets
        return torch.argsort(first, stable=True)

    def batch(self) -> Batch:
        """Return the next batch."""
        if self.pool is None:
            return self.setup.task.sample(self.generator, self.setup.batch, False)
        if self.position + self.setup.batch > self.setup.examples:
            self.position, self.epoch, self.order = 0, self.epoch + 1, self._order()
        chosen = self.order[self.position : self.position + self.setup.batch]
        self.position += self.setup.batch
        return Batch(self.pool.inputs[chosen], self.pool.targets[chosen], self.pool.mask[chosen])


def make_optimizer(setup: Setup, model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer over the parameters that are to be trained."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad] or [
        nn.Parameter(torch.zeros(1))
    ]
    if setup.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=setup.lr, momentum=0.9, weight_decay=setup.weight_decay)
    return torch.optim.AdamW(parameters, setup.lr, setup.betas, setup.eps, setup.weight_decay)


def train(setup: Setup) -> list[Record]:
    """Train a run and return its records, one per step; evaluations stand in the record of their step."""
    torch.manual_seed(setup.seed)
    model = setup.task.model(setup.shape)
    if setup.prepare:
        setup.prepare(model)
    data, optimizer = Data(setup), make_optimizer(setup, model)
    spoiling = torch.Generator().manual_seed(setup.seed + 1)
    records: list[Record] = []
    for step in range(setup.steps):
        if setup.resume_at and step == setup.resume_at:
            if setup.resume_loses_state:
                optimizer = make_optimizer(setup, model)
            if setup.resume_replays_data:
                data = Data(setup)
        rate = scheduled(
            setup, step - setup.resume_at if setup.resume_loses_state and step >= setup.resume_at > 0 else step
        )
        for group in optimizer.param_groups:
            group["lr"] = rate
        losses = 0.0
        for _ in range(setup.accumulation):
            batch = data.batch()
            if setup.spoil:
                batch = setup.spoil(step, batch, spoiling)
            loss = setup.loss(model(batch.inputs), batch)
            if loss.requires_grad:
                torch.autograd.backward(loss / setup.accumulation)
            losses += loss.item() / setup.accumulation
        if setup.after_backward:
            setup.after_backward(step, model)
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients])).item() if gradients else 0.0
        if setup.clip:
            nn.utils.clip_grad_norm_(model.parameters(), setup.clip)
        optimizer.step()
        if setup.zero_grad:
            optimizer.zero_grad()
        record: Record = {"step": step + 1, "loss": losses, "grad_norm": norm, "learning_rate": rate}
        if setup.examples:
            record["epoch"] = (step + 1) * setup.batch / setup.examples
        if setup.eval_every and (step + 1) % setup.eval_every == 0:
            record |= evaluate(setup, model)
        records.append(setup.edit(step, record) if setup.edit else record)
    return records


@torch.no_grad()
def evaluate(setup: Setup, model: nn.Module) -> Record:
    """Return the evaluation loss and accuracy over the same samples each time."""
    generator = torch.Generator().manual_seed(10_000 + setup.seed)
    batch = setup.task.sample(generator, 32 if setup.task.name == "two_tower" else 128, True)
    if setup.spoil_evaluation:
        batch = setup.spoil_evaluation(batch, generator)
    model.train(setup.eval_in_training_mode)
    logits = model(batch.inputs)
    model.train()
    record = {"eval_loss": plain_loss(logits, batch).item()}
    if setup.task.accuracy:
        scores = logits.permute(0, 2, 3, 1) if logits.dim() == 4 else logits
        right = (scores.argmax(dim=-1) == batch.targets)[batch.mask]
        record["eval_accuracy"] = right.float().mean().item()
    return record
