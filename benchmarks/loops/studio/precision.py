"""Half precision done by hand: a loss scaler, weights in bf16, an fp8 cast."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio.core import Values
from benchmarks.loops.studio.loop import Batch, State


class Scaler:
    """A dynamic loss scale that skips steps with infinite gradients."""

    def __init__(self, scale: float = 65536.0, grow_every: int = 60) -> None:
        self.scale, self.good, self.grow_every, self.skipped = scale, 0, grow_every, 0

    def __call__(self, state: State) -> None:
        """Unscale the gradients that :class:`HalfLoss` scaled, or skip the step."""
        grads = [p.grad for p in state.bench.model.parameters() if p.grad is not None]
        bad = any(not bool(torch.isfinite(g).all()) for g in grads)
        state.skip_update = bad
        if bad:
            self.scale, self.good = max(self.scale / 2, 1e-8), 0
            self.skipped += 1
            state.opt.zero_grad()
            return
        for g in grads:
            g.div_(self.scale)
        self.good += 1
        if self.good == self.grow_every:
            self.scale, self.good = self.scale * 2, 0

    def values(self, _model: nn.Module) -> Values:
        """What a log shows of the scaler."""
        return {"loss_scale": self.scale, "skipped_steps": float(self.skipped)}


class Half(nn.Module):
    """A residual network whose branches compute in fp16, with weights in fp32."""

    def __init__(self, scaler: Scaler, gain: float = 1.0, classes: int = 10) -> None:
        super().__init__()
        self.first = nn.Linear(144, 48)
        self.mid = nn.Linear(48, 48)
        self.head = nn.Linear(48, classes)
        self.gain, self.scaler, self.steps = gain, scaler, 0

    def forward(self, x: Tensor) -> Tensor:
        """Logits in fp32 of activations in fp16."""
        h = functional.relu(self.first(x.flatten(1))).half()
        growth = self.gain ** (self.steps / 100)
        h = h + functional.relu(self.mid(h.float())).half() * growth
        h = h * (growth**2)
        if self.training:
            self.steps += 1
        h = h / h.abs().amax(1, keepdim=True).clamp(min=1e-3)
        out: Tensor = self.head(h.float() * 4)
        return out


def scaled(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Cross-entropy whose gradient is scaled in fp16 while its value is logged plainly."""
    z = model(batch[0])
    loss = functional.cross_entropy(z, batch[1])
    scaler = model.scaler
    assert isinstance(scaler, Scaler)
    factor = scaler.scale

    def cast(g: Tensor) -> Tensor:
        return (g * factor).half().float() * 1.0

    if z.requires_grad:
        z.register_hook(cast)
    return {"loss": loss, "acc": (z.argmax(1) == batch[1]).float().mean()}


def round_weights(state: State) -> None:
    """Keep the weights on the grid of bf16, as if no float32 copy were kept."""
    with torch.no_grad():
        for p in state.bench.model.parameters():
            p.copy_(p.bfloat16().float())


class Fp8(nn.Module):
    """A classifier whose input goes through an fp8 cast with a scale for each row."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(144, 48), nn.ReLU(), nn.Linear(48, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        x = x.flatten(1)
        scale = x.abs().amax(1, keepdim=True) / 448.0
        small = (x / scale).to(torch.float8_e4m3fn).float() * scale
        out: Tensor = self.net(small)
        return out
