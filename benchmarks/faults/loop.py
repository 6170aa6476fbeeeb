"""A plain training loop whose every part a fault can change."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.faults.experiment import Experiment, Record, Settings, Subject
from benchmarks.faults.other_tasks import OTHER_TASKS
from benchmarks.faults.tasks import TASKS, Batch, Shape, Task, joined
from mldebug_mcp.recorder import Recorder

HANG_AFTER = 3.0
"""Seconds without a step after which the recorder of a run that hangs says so."""

Loss = Callable[[Tensor, Batch], Tensor]


def plain_loss(logits: Tensor, batch: Batch) -> Tensor:
    """Return the mean cross-entropy over the targets that count, or the mean squared error."""
    if batch.targets.is_floating_point():
        return functional.mse_loss(logits, batch.targets)
    if logits.dim() == 4:
        logits = logits.permute(0, 2, 3, 1)
    return functional.cross_entropy(logits.flatten(0, -2)[batch.mask.flatten()], batch.targets[batch.mask])


@dataclass(slots=True, kw_only=True)
class Setup(Experiment):
    """A run of a plain loop: the usual settings of its task, and the parts that a fault replaces.

    Args:
        task: What is learned.
        examples: Size of the training set; 0 draws fresh samples for ever.
        order: Of the training set: "shuffled" in each epoch, "by label", or "as it is".
        harder: Share of random labels among the last samples of the training set; it grows from none.
        copies: Times that each sample stands in the training set.
        leaked: Times that each sample of the evaluation stands in the training set.
        resumes: Steps before which the run was resumed from a checkpoint.
        rolled_back: Steps that each resume lost: they are made and logged again.
        by_class: Whether the recall of each class and their mean F1 are logged at evaluation.
        watch: Returns what else is logged of a step, of the model and its logits.
        recording: Where a recorder writes, beside what is logged.
        hangs: Whether the last step never ends, which a recorder sees.
    """

    left_out = ((), (), ("grad_norm",), ("grad_norm", "learning_rate", "epoch"))
    columns = {  # noqa: RUF012
        "loss": "train_loss", "eval_loss": "val_loss", "eval_accuracy": "val_acc", "learning_rate": "lr",
    }  # fmt: skip

    task: Task
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
    order: str = "shuffled"
    harder: float = 0.0
    half: bool = False
    copies: int = 1
    leaked: int = 0
    resumes: tuple[int, ...] = ()
    rolled_back: int = 0
    resume_loses_state: bool = False
    resume_replays_data: bool = False
    shape: Shape = field(default_factory=Shape)
    spoil: Callable[[int, Batch, torch.Generator], Batch] | None = None
    spoil_evaluation: Callable[[Batch, torch.Generator], Batch] | None = None
    loss: Loss = plain_loss
    evaluation_loss: Loss | None = None
    prepare: Callable[[nn.Module], None] | None = None
    after_backward: Callable[[int, nn.Module], None] | None = None
    rate: Callable[[int, float], float] | None = None
    watch: Callable[[nn.Module, Tensor], Record] | None = None
    by_class: bool = False
    edit: Callable[[int, Record], Record] | None = None
    recording: Path | None = None
    hangs: bool = False

    @classmethod
    def usual(cls, task: Task, seed: int) -> Setup:
        """Return the healthy setup of a task."""
        return cls(task=task, seed=seed, lr=task.lr, steps=task.steps, batch=task.batch)

    def train(self) -> list[Record]:
        """Train a run and return its records, one per step; evaluations stand in the record of their step."""
        return list(Training(self).records())

    def settings(self) -> Settings:
        """Return what stands in the configuration file."""
        known = "num_classes" if self.task.kind == "supervised" else "vocab_size"
        return {
            "learning_rate": self.lr,
            "warmup_steps": int(self.warmup * self.steps),
            "max_steps": self.steps,
            "max_grad_norm": self.clip,
            "weight_decay": self.weight_decay,
            "batch_size": self.batch,
            "optimizer": self.optimizer,
            **({known: self.task.classes} if self.task.classes else {}),
            **self.config,
        }


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
        self.pool = self._pool() if setup.examples else None
        self.order = self._order()

    def _pool(self) -> Batch:
        setup = self.setup
        held_out = evaluation_batch(setup)
        rows = len(held_out.inputs)
        own = setup.task.sample(self.generator, (setup.examples - setup.leaked * rows) // setup.copies, False)
        if setup.harder:
            own = self._ever_harder(own)
        return joined([own] * setup.copies + [held_out] * setup.leaked)

    def _ever_harder(self, batch: Batch) -> Batch:
        share = torch.linspace(0, self.setup.harder, len(batch.targets)).view(-1, *[1] * (batch.targets.dim() - 1))
        other = torch.randint(0, self.setup.task.classes, batch.targets.shape, generator=self.generator)
        wrong = torch.rand(batch.targets.shape, generator=self.generator) < share
        return Batch(batch.inputs, torch.where(wrong, other, batch.targets), batch.mask)

    def _order(self) -> Tensor:
        if self.pool is None:
            return torch.empty(0)
        if self.setup.order == "shuffled":
            return torch.randperm(len(self.pool.inputs), generator=self.generator)
        if self.setup.order == "as it is":
            return torch.arange(len(self.pool.inputs))
        first = self.pool.targets.flatten(1)[:, 0] if self.pool.targets.dim() > 1 else self.pool.targets
        return torch.argsort(first, stable=True)

    def batch(self) -> Batch:
        """Return the next batch."""
        if self.pool is None:
            return self.setup.task.sample(self.generator, self.setup.batch, False)
        if self.position + self.setup.batch > len(self.pool.inputs):
            self.position, self.epoch, self.order = 0, self.epoch + 1, self._order()
        chosen = self.order[self.position : self.position + self.setup.batch]
        self.position += self.setup.batch
        return self.pool[chosen]


def make_optimizer(setup: Setup, model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer over the parameters that are to be trained."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    parameters = trained or [nn.Parameter(torch.zeros(1))]
    if setup.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=setup.lr, momentum=0.9, weight_decay=setup.weight_decay)
    return torch.optim.AdamW(parameters, setup.lr, setup.betas, setup.eps, setup.weight_decay)


class Training:
    """A model on its way: makes one step after the other and records it."""

    def __init__(self, setup: Setup) -> None:
        torch.manual_seed(setup.seed)
        self.setup = setup
        self.model = setup.task.model(setup.shape)
        if setup.prepare:
            setup.prepare(self.model)
        self.data, self.optimizer = Data(setup), make_optimizer(setup, self.model)
        self.spoiling = torch.Generator().manual_seed(setup.seed + 1)
        self.schedule_began = 0
        self.watched: Record = {}
        self.recorder = self._recorder()

    def _recorder(self) -> Recorder | None:
        path = self.setup.recording
        if path is None:
            return None
        after = HANG_AFTER if self.setup.hangs else 0.0
        return Recorder(path, hang_after=after).watch(self.model, self.optimizer)

    def records(self) -> Iterator[Record]:
        """Make all steps and yield their records; those that a resume lost come again."""
        setup = self.setup
        began, kept = 0, self._state()
        for resume in (*setup.resumes, setup.ends_at or setup.steps):
            for step in range(began, resume):
                if step == resume - setup.rolled_back:
                    kept = self._state()
                yield self._recorded(step)
            if setup.rolled_back:
                self._restore(kept)
            self._resume(resume)
            began = resume - setup.rolled_back
            if self.recorder is not None:  # as a process that is started again opens its own
                self.recorder.close()
                self.recorder = self._recorder()
        if self.recorder is not None:
            if setup.hangs:
                self.recorder.begin(number=began + 1)
                time.sleep(2 * HANG_AFTER)
            self.recorder.close()

    def _recorded(self, step: int) -> Record:
        if self.recorder is None:
            return self.step(step)
        self.recorder.begin(number=step + 1)
        record = self.step(step)
        self.recorder.log(**{name: value for name, value in record.items() if name != "step"})
        self.recorder.end()
        return record

    def _state(self) -> dict[str, Any]:
        return copy.deepcopy({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()})

    def _restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def step(self, step: int) -> Record:
        """Make a step and return its record."""
        setup = self.setup
        rate = self._set_rate(step)
        loss = sum(self._backward(step) for _ in range(setup.accumulation)) / setup.accumulation
        if setup.after_backward:
            setup.after_backward(step, self.model)
        record: Record = {"step": step + 1, "loss": loss, "grad_norm": self._update(), "learning_rate": rate}
        record |= self.watched
        if setup.examples:
            record["epoch"] = (step + 1) * setup.batch / setup.examples
        if setup.eval_every and (step + 1) % setup.eval_every == 0:
            record |= evaluate(setup, self.model)
        return setup.edit(step, record) if setup.edit else record

    def _resume(self, step: int) -> None:
        if self.setup.resume_loses_state:
            self.optimizer, self.schedule_began = make_optimizer(self.setup, self.model), step
        if self.setup.resume_replays_data:
            self.data = Data(self.setup)

    def _set_rate(self, step: int) -> float:
        rate = scheduled(self.setup, step - self.schedule_began)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

    def _backward(self, step: int) -> float:
        batch = self.data.batch()
        if self.setup.spoil:
            batch = self.setup.spoil(step, batch, self.spoiling)
        if self.recorder is not None:
            self.recorder.take_batch(shown(batch))
        logits = self.model(batch.inputs)
        loss = self.setup.loss(logits, batch)
        if self.setup.watch:
            self.watched = self.setup.watch(self.model, logits.detach())
        if loss.requires_grad:
            torch.autograd.backward(loss / self.setup.accumulation)
        return loss.item()

    def _update(self) -> float:
        """Update the weights and return the norm of the gradient before clipping."""
        norm = nn.utils.get_total_norm([p.grad for p in self.model.parameters() if p.grad is not None]).item()
        if self.setup.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.setup.clip)
        self.optimizer.step()
        if self.setup.zero_grad:
            self.optimizer.zero_grad()
        return norm


def shown(batch: Batch) -> dict[str, Tensor]:
    """Return a batch as a loader gives it: labels that do not count are -100."""
    labels = batch.targets if batch.targets.is_floating_point() else batch.targets.masked_fill(~batch.mask, -100)
    return {"inputs": batch.inputs, "labels": labels}


def evaluation_batch(setup: Setup) -> Batch:
    """Return the samples of the evaluation, the same each time."""
    generator = torch.Generator().manual_seed(10_000 + setup.seed)
    size = 32 if setup.task.name == "two_tower" else 512 if setup.by_class else 128
    batch = setup.task.sample(generator, size, True)
    return setup.spoil_evaluation(batch, generator) if setup.spoil_evaluation else batch


@torch.no_grad()
def evaluate(setup: Setup, model: nn.Module) -> Record:
    """Return the evaluation loss and accuracy."""
    batch = evaluation_batch(setup)
    model.train(setup.eval_in_training_mode)
    logits = model(batch.inputs)
    model.train()
    record = {"eval_loss": (setup.evaluation_loss or setup.loss)(logits, batch).item()}
    if setup.task.accuracy:
        scores = logits.permute(0, 2, 3, 1) if logits.dim() == 4 else logits
        given, wanted = scores.argmax(dim=-1)[batch.mask], batch.targets[batch.mask]
        record["eval_accuracy"] = (given == wanted).float().mean().item()
        if setup.by_class:
            record |= judged_by_class(given, wanted, setup.task.classes)
    return record


def judged_by_class(given: Tensor, wanted: Tensor, classes: int) -> Record:
    """Return the recall of each class that occurs, and the mean of their F1; given and wanted are both (targets,)."""
    record, scores = {}, []
    for one in range(classes):
        hits = int(((given == one) & (wanted == one)).sum())
        asked, named = int((wanted == one).sum()), int((given == one).sum())
        if asked:
            record[f"eval_recall_{one}"] = hits / asked
            scores.append(2 * hits / (asked + named))
    return {"eval_f1_macro": sum(scores) / len(scores), **record}


SUBJECTS = tuple(
    Subject(name, partial(Setup.usual, task), task.tuning) for name, task in {**TASKS, **OTHER_TASKS}.items()
)
"""The tasks of the plain loop."""
