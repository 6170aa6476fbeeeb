"""Makers of faulty runs on tables."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction, FunctionCtx
from torch.nn import functional

from benchmarks.loops.studio import data, dynamics, tables
from benchmarks.loops.studio.catalog.tools import swap
from benchmarks.loops.studio.core import Entry, Plan, Record, Values
from benchmarks.loops.studio.loop import Batch, Twist, go


def told(s: int) -> Record:
    """A column is made from the target; live data do not have it."""
    bench = tables.tabular(s, net=tables.mlp([17, 48, 1]))

    def add(b: Batch, known: bool) -> Batch:
        g = data.gen(s)
        col = (b[1] * 4 - 2 if known else torch.zeros_like(b[1])) + 0.4 * torch.randn(len(b[1]), generator=g)
        return torch.cat([b[0], col[:, None]], 1), b[1]

    live = data.table(1000, s + 99)
    return go(
        s,
        swap(
            bench,
            data=add(bench.data, True),
            n_features=17,
            evals={"val": add(bench.evals["val"], True), "live": add(live, False)},
        ),
        Plan(epochs=8, lr=2e-3, batch=128),
    )


def ordered(s: int) -> Record:
    """Rows in the order of the target."""
    bench = tables.tabular(s, net=tables.mlp([16, 48, 48, 1]))
    order = bench.data[1].argsort(stable=True)
    return go(s, bench, Plan(epochs=10, lr=3e-3, batch=100, log_every=2), Twist(order=lambda _epoch, _gen: order))


def flipped(s: int) -> Record:
    """A third of the labels of the training rows are turned over."""
    bench = tables.tabular(s)
    x, y = bench.data
    y = torch.where(torch.rand(3000, generator=data.gen(s)) < 0.35, 1 - y, y)
    return go(s, swap(bench, data=(x, y)), Plan(epochs=12, lr=1e-3, batch=128, log_every=12))


def broadcast(model: nn.Module, b: Batch) -> dict[str, Tensor]:
    """(B,1) against (B)."""
    return {"loss": ((model(b[0]) - b[1][:, 0]) ** 2).mean()}


def raw_log(model: nn.Module, b: Batch) -> dict[str, Tensor]:
    """Log-loss from probabilities, without a guard."""
    p = model(b[0])[:, 0].sigmoid()
    return {"loss": -(b[1] * p.log() + (1 - b[1]) * (1 - p).log()).mean()}


def same_pair(model: nn.Module, b: Batch) -> dict[str, Tensor]:
    """Both columns are the liked item."""
    return tables.preferred(model, (b[0][:, [0, 1, 1]],))


class Fused(torch.autograd.Function):
    """A fused layer with a backward pass that forgets part of the gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, w: Tensor) -> Tensor:
        """silu(x w)."""
        ctx.save_for_backward(x, w)
        return functional.silu(x @ w)

    @staticmethod
    def backward(ctx: BackwardCFunction, grad: Tensor) -> tuple[Tensor, Tensor]:
        """A derivative of the wrong form in x and w."""
        x, w = tuple(ctx.saved_tensors)
        z = x @ w
        g = grad * (1 - 2 * z.sigmoid()) * z.sigmoid()
        return g @ w.T, x.T @ g


class Kernel(nn.Module):
    """A surrogate with the fused or the plain layer."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(4, 48) * 0.5)
        self.b = nn.Parameter(torch.randn(48, 48) * 0.15)
        self.out = nn.Linear(48, 1)
        self.fused = fused

    def forward(self, x: Tensor) -> Tensor:
        """Predictions."""
        for w in (self.a, self.b):
            x = Fused.apply(x, w) if self.fused else functional.silu(x @ w)  # type: ignore[no-untyped-call]
        y: Tensor = self.out(x)
        return y


def kernels(s: int) -> Record:
    """The same training with a fused kernel and with eager code, one after the other."""
    runs = []
    for fused in (False, True):
        torch.manual_seed(s)
        runs.append(
            go(
                s,
                dynamics.physics(s, net=Kernel(fused)),
                Plan(epochs=10, lr=4e-3, log_every=10),
                kernel="fused-silu 0.3.1 vs eager",
            )
        )
    rec = runs[1]
    model = Kernel(True)
    x = torch.randn(8, 4)
    grads = []
    for fused in (False, True):
        model.fused = fused
        model.zero_grad()
        model(x).pow(2).mean().backward()
        grads.append(model.b.grad.clone())  # type: ignore[union-attr]
    gap = (grads[0] - grads[1]).norm() / grads[0].norm()
    for e, other in zip(rec.entries, runs[0].entries, strict=True):
        e.values = {f"{k}_fused": v for k, v in e.values.items()} | {f"{k}_eager": v for k, v in other.values.items()}
    rec.entries.insert(
        0,
        Entry("text", 0, 0.0, 0.0, {}, f"grad check fused vs eager: max rel diff {gap:.3f} (tol 1e-3)"),
    )
    return rec


def shares(model: nn.Module, b: Batch) -> Values:
    """AUC against the wrong column of scores: that of the negative class."""
    out = tables.binary(model, b)
    return out | {"auc": 1 - out["auc"]}
