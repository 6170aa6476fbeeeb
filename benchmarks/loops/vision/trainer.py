"""One training loop for all supervised tasks; what a fault may replace is an attribute."""

import math
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import psutil  # type: ignore[import-untyped]
import torch
from torch import nn

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.loggers.base import Logger, Row
from benchmarks.loops.vision.task import Batch, Task


def schedule_factor(config: Config, step: int, total: int) -> float:
    """The learning rate's factor at an optimizer step (from 0) of `total`: linear warm-up, then the schedule."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, total - config.warmup_steps)
    factors: dict[str, float] = {
        "constant": 1.0,
        "cosine": 0.5 * (1 + math.cos(math.pi * min(1.0, done))),
        "linear": max(0.0, 1 - done),
        "step": 0.1 ** int(3 * done),
        "exponential": 0.05**done,
    }
    return factors[config.schedule]


class Trainer:
    """Trains a task as the configuration says and tells the logger each step and epoch."""

    def __init__(self, task: Task, config: Config, log: Logger) -> None:
        self.config, self.log, self.model = config, log, task.model
        self.train, self.evals = task.train, {"val": task.val}
        self.forward, self.criterion, self.score = task.forward, task.criterion, task.score
        self.draw: Callable[[int], torch.Tensor] = self.order
        self.fetch: Callable[[torch.Tensor], Batch] = lambda rows: [part[rows] for part in self.train]
        self.make_optimizer: Callable[[], torch.optim.Optimizer] = self.build_optimizer
        self.factor: Callable[[int], float] = lambda step: schedule_factor(config, step, self.total_steps)
        self.zero_grad: Callable[[], None] = self.clear_gradients
        self.update: Callable[[], None] = self.optimizer_step
        self.backward: Callable[[torch.Tensor], None] = self.divided_backward
        self.eval_mode: Callable[[], object] = self.model.eval
        self.train_mode: Callable[[], object] = self.model.train
        self.eval_batch = 256
        self.extras: dict[str, Callable[[], float]] = {}
        self.at_epoch: list[Callable[[int], None]] = []
        self.after_step: list[Callable[[], None]] = []
        self.first_epoch = self.steps = self.micro_steps = 0
        self.scaler = torch.amp.GradScaler(
            "cpu", init_scale=2.0**16, growth_interval=100, enabled=config.precision == "fp16"
        )

    @property
    def batches_per_epoch(self) -> int:
        """Micro-batches of one pass over the data."""
        return max(1, len(self.train[0]) // self.config.batch_size)

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole run."""
        return max(1, self.config.epochs * self.batches_per_epoch // self.config.accumulate)

    def build_optimizer(self) -> torch.optim.Optimizer:
        """The configured optimizer over the model's trainable weights."""
        config = self.config
        weights = [p for p in self.model.parameters() if p.requires_grad]
        if config.optimizer == "sgd":
            return torch.optim.SGD(weights, config.lr, momentum=config.momentum, weight_decay=config.weight_decay)
        kind: type[torch.optim.Adam] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.optimizer]
        return kind(weights, config.lr, betas=config.betas, eps=config.eps, weight_decay=config.weight_decay)

    def order(self, epoch: int) -> torch.Tensor:
        """The order of the samples in an epoch: shuffled anew for each, or as they lie."""
        count = len(self.train[0])
        if not self.config.shuffle:
            return torch.arange(count)
        return torch.randperm(count, generator=torch.Generator().manual_seed(1000 * self.config.seed + epoch))

    def clear_gradients(self) -> None:
        """Sets all gradients to none."""
        self.optimizer.zero_grad()

    def optimizer_step(self) -> None:
        """One update through the loss scaler (which passes through unless the run is in fp16)."""
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def divided_backward(self, loss: torch.Tensor) -> None:
        """Gradients of the loss as one of the accumulated micro-batches."""
        torch.autograd.backward(loss / self.config.accumulate)

    def fit(self) -> None:
        """Trains from the first epoch to the last, evaluating after each."""
        self.prepare_precision()
        self.optimizer = self.make_optimizer()
        for epoch in range(self.first_epoch, self.config.epochs):
            for hook in self.at_epoch:
                hook(epoch)
            started = time.perf_counter()
            losses = [self.step(epoch, batch, *fetched) for batch, fetched in enumerate(self.fetched(epoch))]
            row: Row = {"epoch": epoch, "step": self.steps, "train_loss": sum(losses) / max(1, len(losses))}
            row |= self.evaluate()
            row |= {"lr": self.rate(), "epoch_time": time.perf_counter() - started}
            self.log.epoch(row)

    def prepare_precision(self) -> None:
        """Casts the model to bf16 where that is configured."""
        if self.config.precision == "bf16":
            self.model = self.model.to(torch.bfloat16)

    def fetched(self, epoch: int) -> Iterator[tuple[Batch, float]]:
        """The micro-batches of an epoch, each with the seconds it took to fetch."""
        rows = self.draw(epoch)
        size = self.config.batch_size
        for start in range(0, max(1, len(rows) - size + 1), size):
            began = time.perf_counter()
            yield self.fetch(rows[start : start + size]), time.perf_counter() - began

    def rate(self) -> float:
        """The learning rate the optimizer holds."""
        return float(self.optimizer.param_groups[0]["lr"])

    def output(self, batch: Batch) -> Any:  # noqa: ANN401 - each task has outputs of its own
        """The model's output under the configured precision."""
        if self.config.precision == "fp16":
            with torch.autocast("cpu", dtype=torch.float16):
                return self.forward(self.model, batch)
        if self.config.precision == "bf16":
            return self.forward(self.model, [p.bfloat16() if p.is_floating_point() else p for p in batch])
        return self.forward(self.model, batch)

    def step(self, epoch: int, index: int, batch: Batch, waited: float) -> float:
        """One micro-batch: forward, backward, and an update when enough are gathered. Returns the loss."""
        config, began = self.config, time.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = config.lr * self.factor(self.steps)
        self.train_mode()
        output = self.output(batch)
        loss = self.criterion(output, batch)
        self.backward(self.scaler.scale(loss))
        self.micro_steps += 1
        if self.micro_steps % config.accumulate == 0:
            self.scaler.unscale_(self.optimizer)
            norm = self.clip()
            self.update()
            self.zero_grad()
            self.steps += 1
            took = time.perf_counter() - began
            if (self.steps - 1) % config.log_every == 0:
                place: Row = {"epoch": epoch, "batch": index, "step": self.steps}
                times: Row = {"time": waited + took, "data": waited}
                self.log.step(
                    place | {"loss": loss.item(), "lr": self.rate(), "grad_norm": norm} | times | self.measured()
                )
        for hook in self.after_step:
            hook()
        return loss.item()

    def measured(self) -> Row:
        """Resident memory (MB), the loss scale in fp16, and what the run measures beside."""
        row: Row = {"mem": psutil.Process().memory_info().rss / 2**20}
        if self.scaler.is_enabled():
            row["loss_scale"] = self.scaler.get_scale()
        return row | {name: measure() for name, measure in self.extras.items()}

    def clip(self) -> float:
        """The gradient norm before clipping; clips if configured."""
        weights = [p for p in self.model.parameters() if p.grad is not None]
        limit = self.config.grad_clip if self.config.grad_clip is not None else math.inf
        return float(nn.utils.clip_grad_norm_(weights, limit))

    @torch.no_grad()
    def evaluate(self) -> Row:
        """Loss and metrics on each evaluation set, means over its batches."""
        self.eval_mode()
        row: Row = {}
        for name, data in self.evals.items():
            sums: Row = {}
            count = len(data[0])
            for start in range(0, count, self.eval_batch):
                batch = [part[start : start + self.eval_batch] for part in data]
                output = self.output(batch)
                values = {"loss": self.criterion(output, batch).item()} | self.score(output, batch)
                for key, value in values.items():
                    sums[key] = sums.get(key, 0.0) + value * len(batch[0]) / count
            row |= {f"{name}_{key}": value for key, value in sums.items()}
        return row

    def checkpoint(self) -> dict[str, Any]:
        """Weights and optimizer state, copied."""
        return {"model": deepcopy(self.model.state_dict()), "optimizer": deepcopy(self.optimizer.state_dict())}
