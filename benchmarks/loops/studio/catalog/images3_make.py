"""Makers of faulty image runs: optimisation and precision."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from benchmarks.loops.studio import vision
from benchmarks.loops.studio.catalog import tools
from benchmarks.loops.studio.core import Plan, Record, Values
from benchmarks.loops.studio.loop import Batch, State, Twist, go
from benchmarks.loops.studio.precision import Fp8, Half, Scaler, scaled


def cold(s: int, rate: bool) -> Record:
    """A resume without the optimizer's state (and, with ``rate``, the schedule starts again)."""
    plan = Plan(
        epochs=14,
        lr=8e-3 if rate else 4e-3,
        schedule="cosine" if rate else "constant",
        log_lr=rate,
        log_every=4,
        optim="adam",
        warmup=0 if not rate else 10,
        betas=(0.9, 0.999),
    )
    return go(
        s,
        vision.classify(s, noise=2.0, norm=False),
        plan,
        Twist(at_epoch=tools.resume(8, cold=True, schedule=rate)),
    )


def unloaded(s: int) -> Record:
    """A checkpoint whose keys have a prefix, loaded without strictness."""
    base = tools.pretrained(vision.classify(s, noise=2.0), Plan(epochs=8, lr=2e-3), s)
    state = {f"module.{k}": v for k, v in base.model.state_dict().items()}
    bench = vision.classify(s + 1, noise=2.0)
    result = bench.model.load_state_dict(state, strict=False)
    first = [True]

    def hook(_epoch: int, state: State) -> None:
        if first[0]:
            state.rec.say(f"load_state_dict: {result}")
            first[0] = False

    return go(s, bench, Plan(epochs=6, lr=1e-4), Twist(at_epoch=hook), finetune_from="base.pt")


def big_head(s: int, factor: float) -> Record:
    """An output layer of too large a scale."""
    bench = vision.classify(s, noise=1.6)
    with torch.no_grad():
        bench.model[-1].weight.mul_(factor)  # type: ignore[index]
    return go(s, bench, Plan(epochs=8, lr=1e-3, log_every=5))


def dead(s: int, show: bool) -> Record:
    """Biases far below zero."""
    net = vision.deep(144, 48, 3, 10, nn.ReLU)
    bench = vision.classify(s, net=net, noise=1.2)
    with torch.no_grad():
        for layer in list(net.children())[1:4:2]:
            if isinstance(layer, nn.Linear):
                layer.bias.sub_(4.5 if show else 6.0)
    twist = Twist(extras=tools.zero_share(bench.data[0][:256])) if show else Twist()
    return go(s, bench, Plan(epochs=8, lr=5e-4, log_every=6, log_gnorm=True, eval_every=2), twist)


def half(s: int) -> Record:
    """Activations that grow until fp16 cannot hold them."""
    scaler = Scaler(65536.0, 60)
    bench = vision.classify(s, net=Half(scaler, gain=60.0), loss=scaled, noise=1.6)
    return go(
        s,
        bench,
        Plan(epochs=12, lr=2e-3, log_every=8, eval_every=3),
        Twist(after_backward=scaler, extras=scaler.values),
        precision="fp16",
    )


def zero_rows(s: int) -> Record:
    """A batch with an empty row meets an fp8 cast."""

    def change(b: Batch) -> Batch:
        x = b[0].clone()
        x[-1] = 0
        return x, b[1]

    return go(
        s,
        vision.classify(s, net=Fp8(), noise=1.6),
        Plan(epochs=6, lr=2e-3, log_every=3),
        Twist(batch=tools.once(58, change)),
        precision="fp8_e4m3 (row-wise amax)",
    )


def changed() -> Callable[[nn.Module], Values]:
    """The share of weights that differ from those at the last call."""
    last: list[torch.Tensor] = []

    def measure(model: nn.Module) -> Values:
        now = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
        share = float((now != last[0]).float().mean()) if last else 1.0
        last[:] = [now]
        return {"params_changed_frac": share}

    return measure


def drifting(s: int) -> Record:
    """Training long after all is learned."""
    bench = vision.classify(s, noise=2.6, norm=False, count=900)
    plan = Plan(epochs=40, lr=0.02, log_every=10, eval_every=4)
    return go(s, bench, plan, Twist(extras=tools.logit_size(bench.data[0][:200])))


def restart(step: int, _total: int) -> float:
    """A warm-up that begins again in the middle."""
    at = step if step < 120 else step - 120
    return min(1.0, (at + 1) / 20) * max(0.02, 1 - at / 130)
