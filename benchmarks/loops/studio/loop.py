"""The one training loop of most runs, with the places where a fault can be put in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.loops.studio.core import Plan, Record, Values, guard
from benchmarks.loops.studio.schedule import Meter, factor, optimizer

Batch = tuple[Tensor, ...]
LossFn = Callable[[nn.Module, Batch], dict[str, Tensor]]
MetricFn = Callable[[nn.Module, Batch], Values]


@dataclass
class Bench:
    """A task made ready: model, data, loss and metrics."""

    model: nn.Module
    data: Batch
    evals: dict[str, Batch]
    loss: LossFn
    metrics: MetricFn
    config: dict[str, Any] = field(default_factory=dict)


@dataclass
class State:
    """What the hooks of a run may change while it goes."""

    rec: Record
    bench: Bench
    opt: torch.optim.Optimizer
    plan: Plan
    step: int = 0
    offset: int = 0
    skip_update: bool = False


@dataclass
class Twist:
    """Departures from the plain loop; the default departs nowhere."""

    batch: Callable[[int, Batch], Batch] | None = None
    order: Callable[[int, torch.Generator], Tensor] | None = None
    factor: Callable[[int, int], float] | None = None
    trainable: Callable[[str], bool] | None = None
    at_epoch: Callable[[int, State], None] | None = None
    after_backward: Callable[[State], None] | None = None
    after_step: Callable[[State], None] | None = None
    extras: Callable[[nn.Module], Values] | None = None
    zero_grad: bool = True
    eval_mode: bool = True
    back_to_train: bool = True


class Fitting:
    """A training under way."""

    def __init__(self, rec: Record, bench: Bench, plan: Plan, twist: Twist, seed: int) -> None:
        self.rec = rec
        self.bench = bench
        self.plan = plan
        self.twist = twist
        self.gen = torch.Generator().manual_seed(seed + 17)
        named = [(n, p) for n, p in bench.model.named_parameters() if p.requires_grad]
        self.params = [p for n, p in named if twist.trainable is None or twist.trainable(n)]
        self.state = State(rec, bench, optimizer(plan, self.params), plan)
        self.count = len(bench.data[0])
        rec.epochs = max(rec.epochs, plan.epochs)
        rec.per_epoch = max(1, math.ceil(self.count / plan.batch) // plan.accum)
        self.micro, self.meter, self.rate = 0, Meter(), plan.lr
        self.best, self.worse = math.inf, 0

    def run(self) -> None:
        """All epochs, or as many as the patience allows."""
        self.bench.model.train()
        with guard(self.rec):
            for epoch in range(self.plan.epochs):
                self.train(epoch)
                if (epoch + 1) % self.plan.eval_every == 0:
                    self.judge(epoch + 1)
                    if self.plan.patience and self.worse >= self.plan.patience:
                        self.rec.say(f"early stopping: no improvement for {self.worse} epochs")
                        break

    def train(self, epoch: int) -> None:
        """One pass over the data."""
        plan, twist, state = self.plan, self.twist, self.state
        if twist.at_epoch:
            twist.at_epoch(epoch, state)
        order = twist.order(epoch, self.gen) if twist.order else torch.randperm(self.count, generator=self.gen)
        for ids in order.split(plan.batch):  # type: ignore[no-untyped-call]
            self.learn(tuple(t[ids] for t in self.bench.data))
            if self.micro % plan.accum == 0:
                self.update()
        if not plan.log_every:
            extra = self.shown_rate() | (twist.extras(self.bench.model) if twist.extras else {})
            self.rec.log("train", state.step, epoch + 1, self.meter.take() | extra)

    def learn(self, batch: Batch) -> None:
        """Add the gradient of a micro-batch, and its values to the means."""
        bench, plan, model = self.bench, self.plan, self.bench.model
        if self.twist.batch:
            batch = self.twist.batch(self.micro, batch)
        self.set_rate()
        losses = bench.loss(model, batch)
        if losses["loss"].requires_grad:
            (losses["loss"] / plan.accum).backward()  # type: ignore[no-untyped-call]
        self.micro += 1
        values = {k: float(v.detach()) for k, v in losses.items()}
        if plan.log_gnorm and self.micro % plan.accum == 0:
            grads = [p.grad for p in self.params if p.grad is not None]
            values["grad_norm"] = float(nn.utils.get_total_norm(grads or [torch.zeros(1)]))
        self.meter.add(values)

    def update(self) -> None:
        """One step of the optimizer, and a row if one is due."""
        plan, twist, state = self.plan, self.twist, self.state
        if twist.after_backward:
            twist.after_backward(state)
        if plan.clip is not None:
            nn.utils.clip_grad_norm_(self.params, plan.clip)
        due = plan.log_every and (state.step + 1) % plan.log_every == 0
        extra = self.shown_rate() | (twist.extras(self.bench.model) if twist.extras and due else {})
        if not state.skip_update:
            state.opt.step()
        state.step += 1
        self.rec.clock += plan.pace * (0.9 + 0.2 * float(torch.rand((), generator=self.gen)))
        if twist.after_step:
            twist.after_step(state)
        if due:
            self.rec.log("train", state.step, state.step / self.rec.per_epoch, self.meter.take() | extra)
        if twist.zero_grad:
            state.opt.zero_grad()

    def set_rate(self) -> None:
        """Give the optimizer the rate of the present step."""
        plan, at = self.plan, self.state.step - self.state.offset
        total = plan.epochs * self.rec.per_epoch
        self.rate = plan.lr * (self.twist.factor(at, total) if self.twist.factor else factor(plan, at, total))
        for group in self.state.opt.param_groups:
            group["lr"] = self.rate

    def shown_rate(self) -> Values:
        """The rate, if it is to be logged."""
        return {"lr": self.rate} if self.plan.log_lr else {}

    def judge(self, epoch: int) -> None:
        """Log every evaluation split, and keep count of how long the loss of the first has not improved."""
        self.rec.clock += self.plan.pace * 3
        model, first = self.bench.model, math.nan
        model.train(not self.twist.eval_mode)
        for name, data in self.bench.evals.items():
            with torch.no_grad():
                values = self.bench.metrics(model, data)
            self.rec.log(name, self.state.step, epoch, values)
            if math.isnan(first):
                first = values.get("loss", math.nan)
        if self.twist.back_to_train:
            model.train()
        self.best, self.worse = (first, 0) if first < self.best else (self.best, self.worse + 1)


def fit(rec: Record, bench: Bench, plan: Plan, twist: Twist | None = None, seed: int = 0) -> None:
    """Train, and log into the record what the plan asks for."""
    Fitting(rec, bench, plan, twist or Twist(), seed).run()


def go(seed: int, bench: Bench, plan: Plan, twist: Twist | None = None, **config: object) -> Record:
    """One run from beginning to end."""
    rec = Record(config={**bench.config, **plan.config(), "seed": seed, **config})
    rec.started += seed * 7919.0
    fit(rec, bench, plan, twist, seed)
    return rec
