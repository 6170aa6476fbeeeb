"""Hooks and small models that several runs of the catalogue use."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio.core import Plan, Record, Spec, Values
from benchmarks.loops.studio.loop import Batch, Bench, LossFn, MetricFn, State, fit
from benchmarks.loops.studio.schedule import optimizer


def once(at: int, change: Callable[[Batch], Batch]) -> Callable[[int, Batch], Batch]:
    """A batch hook that acts at one micro-step."""
    return lambda micro, batch: change(batch) if micro == at else batch


def times(factor: float) -> Callable[[Batch], Batch]:
    """Scale the inputs of a batch."""
    return lambda b: (b[0] * factor, *b[1:])


def in_order(count: int) -> Callable[[int, torch.Generator], Tensor]:
    """The file order, each epoch."""
    return lambda _epoch, _gen: torch.arange(count)


def augment(strength: float) -> Callable[[int, Batch], Batch]:
    """Noise and erasure on the training inputs."""

    def change(_micro: int, b: Batch) -> Batch:
        x = b[0] + strength * torch.randn_like(b[0])
        keep = (torch.rand(len(x), 1, x.shape[2], 1) > 0.25).float()
        return (x * keep, *b[1:])

    return change


def weight_norm(model: nn.Module) -> Values:
    """The norm of all weights."""
    return {"weight_norm": float(nn.utils.get_total_norm([p.detach() for p in model.parameters()]))}


def layer_norms(model: nn.Module) -> Values:
    """Gradient norms of the first, middle and last weight matrices."""
    grads = [p.grad for n, p in model.named_parameters() if p.grad is not None and p.dim() > 1]
    pick = {"first": grads[0], "mid": grads[len(grads) // 2], "last": grads[-1]}
    return {f"gnorm_{k}": g.norm().item() for k, g in pick.items()}


def zero_share(x: Tensor) -> Callable[[nn.Module], Values]:
    """The share of units of a sequential net that are zero on all of a probe batch."""

    def measure(model: nn.Module) -> Values:
        h, dead, total = x, 0, 0
        with torch.no_grad():
            for layer in model.children():
                h = layer(h)
                if isinstance(layer, nn.ReLU):
                    flat = h.transpose(0, 1).flatten(1)
                    dead += int((flat.amax(1) <= 0).sum())
                    total += len(flat)
        return {"zero_act_frac": dead / max(1, total)}

    return measure


def logit_size(x: Tensor) -> Callable[[nn.Module], Values]:
    """The largest logit on a probe batch."""

    def measure(model: nn.Module) -> Values:
        with torch.no_grad():
            return {"max_logit": model(x).abs().max().item()}

    return measure


def resume(
    at: int, cold: bool, schedule: bool = False, say: str = "resumed from checkpoint at epoch {at}"
) -> Callable[[int, State], None]:
    """A resume at an epoch; ``cold`` drops the optimizer's state, ``schedule`` its step."""

    def hook(epoch: int, state: State) -> None:
        if epoch != at:
            return
        state.rec.say(say.format(at=at))
        if cold:
            named = [p for p in state.bench.model.parameters() if p.requires_grad]
            state.opt = optimizer(state.plan, named)
        if schedule:
            state.offset = state.step

    return hook


def pretrained(bench: Bench, plan: Plan, seed: int) -> Bench:
    """Train a bench silently beforehand."""
    fit(Record(), bench, plan, seed=seed + 1)
    return bench


def swap(
    bench: Bench,
    *,
    loss: LossFn | None = None,
    metrics: MetricFn | None = None,
    evals: dict[str, Batch] | None = None,
    data: Batch | None = None,
    model: nn.Module | None = None,
    **config: object,
) -> Bench:
    """A bench with some parts exchanged."""
    bench.loss = loss or bench.loss
    bench.metrics = metrics or bench.metrics
    bench.evals = evals or bench.evals
    bench.data = data or bench.data
    bench.model = model or bench.model
    bench.config |= config
    return bench


def folds(
    seed: int,
    make: Callable[[int, int], Bench],
    plan: Plan,
    count: int = 5,
) -> Record:
    """Cross-validation: one training after the other, with a line before each."""
    whole = Record()
    for k in range(count):
        bench = make(seed, k)
        rec = Record()
        fit(rec, bench, plan, seed=seed + k)
        if k == 0:
            whole.config = {**bench.config, **plan.config(), "n_folds": count, "seed": seed}
            whole.epochs, whole.per_epoch = rec.epochs, rec.per_epoch
            whole.started += seed * 7919.0
        whole.say(f"--- fold {k + 1}/{count} ---")
        for e in rec.entries:
            e.clock += whole.clock
        whole.entries += rec.entries
        whole.clock += rec.clock
    return whole


def kth(x: Batch, k: int, count: int = 5) -> tuple[Batch, Batch]:
    """Training and validation part of fold ``k``."""
    size = len(x[0])
    held = torch.arange(size) % count == k
    return tuple(t[~held] for t in x), tuple(t[held] for t in x)


class Student(nn.Module):
    """A small classifier beside a fixed teacher."""

    def __init__(self, student: nn.Module, teacher: nn.Module) -> None:
        super().__init__()
        self.student, self.teacher = student, teacher
        for p in teacher.parameters():
            p.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the student."""
        z: Tensor = self.student(x)
        return z


def distil(temp: float = 2.0) -> LossFn:
    """Cross-entropy plus divergence from the teacher."""

    def loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        z = model(batch[0])
        teacher = model.get_submodule("teacher")
        teacher.eval()
        with torch.no_grad():
            t = teacher(batch[0]) / temp
        kd = (
            functional.kl_div(functional.log_softmax(z / temp, 1), functional.softmax(t, 1), reduction="batchmean")
            * temp**2
        )
        ce = functional.cross_entropy(z, batch[1])
        return {"loss": 0.5 * ce + 0.5 * kd, "loss_ce": ce, "loss_kd": kd}

    return loss


def well(style: str, task: str, make: Callable[[int], Record], fact: str) -> Spec:
    """A healthy run."""
    return Spec("healthy", style, task, make, fact)
