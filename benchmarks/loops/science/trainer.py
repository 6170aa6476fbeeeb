"""The loop that trains a task: epochs, accumulation or ranks, clipping, a schedule, evaluation now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from benchmarks.loops.science.journal import Journal
from benchmarks.loops.science.recipe import Recipe
from benchmarks.loops.science.task import Rows, Setting, Task, settings_of


class Trouble:
    """A fault of the loop, its data or its machine: overrides the moments at which it acts."""

    def start(self, trainer: Trainer) -> None:
        """Act once, before the first step."""

    def batch(self, _trainer: Trainer, rows: Rows) -> Rows:
        """Return what is trained on in place of these rows."""
        return rows

    def shard(self, _trainer: Trainer, _index: int, rows: Rows) -> Rows:
        """Return what one micro-batch, or one rank, trains on in place of these rows."""
        return rows

    def gradients(self, trainer: Trainer) -> None:
        """Act between the backward pass and the optimizer."""

    def stepped(self, trainer: Trainer) -> None:
        """Act after a step."""


@dataclass
class Trainer:
    """A task in training; the fields below `extra` are what faults change."""

    task: Task
    recipe: Recipe
    troubles: Sequence[Trouble]
    journal: Journal
    step: int = 0
    epoch: int = 0
    extra: dict[str, float] = field(default_factory=dict)
    parameters: list[nn.Parameter] = field(default_factory=list)
    zero_grad: bool = True
    normalise: bool = True
    evaluates: bool = True
    ticks: float = 0.0
    ticks_per_step: float = 1.0
    schedule_steps: int = 0
    window: list[dict[str, float]] = field(default_factory=list)

    def run(self) -> None:
        """Train for as many steps as the recipe says, or until a fault ends the run."""
        recipe = self.recipe
        self.task.setup(recipe.seed)
        torch.manual_seed(recipe.seed + 1)
        self.parameters = list(self.task.model.parameters())
        self.schedule_steps = recipe.steps
        self.reshuffle(recipe.seed)
        for trouble in self.troubles:
            trouble.start(self)
        if recipe.precision == "bf16":
            self.task.model.bfloat16()
        self.optimizer = recipe.make_optimizer(self.parameters)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=200)
        try:
            while self.step < recipe.steps:
                self._epoch()
        except (RuntimeError, TimeoutError) as error:
            self.journal.note(self.step, self.epoch, f"{type(error).__name__}: {error}")

    def reshuffle(self, seed: int) -> None:
        """Start the order of the rows anew."""
        self.order = torch.Generator().manual_seed(seed)
        self.batches: Iterator[Rows] = iter(())

    def evaluate(self) -> None:
        """Measure the held-out rows and record it."""
        self.task.model.train(not self.evaluates)
        with torch.no_grad(), self._precision():
            values = self.task.measure(self.task.held)
            probe = torch.arange(min(self.task.size(self.task.data), self.task.size(self.task.held)))
            tested = self.task.measure(self.task.test) if self.task.test else {}
            seen = self.task.measure(self.task.take(self.task.data, probe))
        self.task.model.train()
        values |= {f"train_{name}": value for name, value in seen.items() if name != "loss"}
        values |= {f"test_{name}": value for name, value in tested.items()}
        self.journal.evaluate(self.step, self.epoch, values)

    def _epoch(self) -> None:
        self.batches = self._batches()
        while self.step < self.recipe.steps:
            began = time.perf_counter()
            rows = next(self.batches, None)
            if rows is None:
                break
            for trouble in self.troubles:
                rows = trouble.batch(self, rows)
            self._step(rows, began, time.perf_counter() - began)
        self.epoch += 1

    def _batches(self) -> Iterator[Rows]:
        size = self.task.size(self.task.data)
        order = torch.randperm(size, generator=self.order) if self.recipe.shuffle else torch.arange(size)
        for first in range(0, size - self.recipe.batch_size + 1, self.recipe.batch_size):
            yield self.task.take(self.task.data, order[first : first + self.recipe.batch_size])

    def _step(self, rows: Rows, began: float, waited: float) -> None:
        lr = self.recipe.rate(int(self.ticks), self.schedule_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        values = self._backward(rows)
        for trouble in self.troubles:
            trouble.gradients(self)
        values["grad_norm"] = self._update()
        self.step += 1
        self.ticks += self.ticks_per_step
        for trouble in self.troubles:
            trouble.stepped(self)
        self.window.append(values | {"lr": lr, "data_time": waited, "step_time": time.perf_counter() - began})
        if self.step % self.recipe.log_every == 0:
            self._record()
        if self.step % self.recipe.eval_every == 0:
            self.evaluate()

    def _backward(self, rows: Rows) -> dict[str, float]:
        shards = max(self.recipe.accumulate, self.recipe.world_size)
        pieces = torch.arange(self.task.size(rows)).chunk(shards)
        sums: dict[str, float] = {}
        for index, piece in enumerate(pieces):
            part = self.task.take(rows, piece)
            for trouble in self.troubles:
                part = trouble.shard(self, index, part)
            loss, terms = self._forward(part)
            share = loss / len(pieces) if self.normalise else loss
            if share.requires_grad:
                scaled = self.scaler.scale(share) if self.recipe.precision == "fp16" else share
                scaled.backward()  # type: ignore[no-untyped-call]
            if self.recipe.world_size > 1:
                self.extra[f"loss_rank{index}"] = loss.item()
            for name, term in ({"loss": share.detach()} | terms).items():
                weight = 1.0 if name == "loss" else 1 / len(pieces)
                sums[name] = sums.get(name, 0.0) + float(term.detach()) * weight
        return sums

    def _forward(self, rows: Rows) -> tuple[Tensor, dict[str, Tensor]]:
        with self._precision():
            return self.task.loss(rows)

    def _precision(self) -> torch.autocast:
        half = torch.float16 if self.recipe.precision == "fp16" else torch.bfloat16
        return torch.autocast("cpu", dtype=half, enabled=self.recipe.precision != "fp32")

    def _update(self) -> float:
        if self.recipe.precision == "fp16":
            self.scaler.unscale_(self.optimizer)
        limit = self.recipe.clip or float("inf")
        norm = nn.utils.clip_grad_norm_([p for p in self.task.model.parameters() if p.grad is not None], limit)
        if self.recipe.precision == "fp16":
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.extra["loss_scale"] = self.scaler.get_scale()
        else:
            self.optimizer.step()
        if self.zero_grad:
            self.task.model.zero_grad()
        return float(norm)

    def _record(self) -> None:
        last = self.window[-1]
        means = {name: sum(step[name] for step in self.window) / len(self.window) for name in last}
        kept = {name: last[name] if name == "lr" else value for name, value in means.items()}
        self.journal.train(self.step, self.epoch, kept | self.extra)
        self.window.clear()


@dataclass
class Supervised:
    """An experiment: a task, how it is trained, and what is wrong with the loop."""

    task: Task
    recipe: Recipe
    troubles: tuple[Trouble, ...] = ()

    @property
    def name(self) -> str:
        """The task's name."""
        return self.task.name

    def settings(self) -> dict[str, Setting]:
        """Return what its author would save of it."""
        return settings_of(self.recipe) | settings_of(self.task)

    def run(self, journal: Journal) -> None:
        """Train it."""
        Trainer(self.task, self.recipe, self.troubles, journal).run()
