"""A ranker in half precision: a loss scale that is halved at each overflow, or weights in bfloat16 themselves."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.trace import Row, Trace

_WIDTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """The settings of a run."""

    steps: int = 600
    batch: int = 64
    lr: float = 3e-3
    optimizer: str = "adam"
    dtype: str = "float16"
    scale: float = 65536.0
    growth: int = 100
    normed: bool = True
    gain: float = 1.0
    lift: float = 1.0
    every: int = 10
    eval_every: int = 50
    says: bool = True
    start: float = 1.0
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """Return the settings as a configuration would hold them."""
        shown: dict[str, object] = {name: getattr(self, name) for name in ("steps", "lr", "optimizer", "dtype", "seed")}
        if self.dtype == "float16":
            shown |= {"init_scale": self.scale, "growth_interval": self.growth}
        return shown | {"batch_size": self.batch, "model": "residual_ranker"}


class Ranker(nn.Module):
    """A residual network whose stream is kept in half precision."""

    def __init__(self, half: Half) -> None:
        super().__init__()
        self.inward, self.out = nn.Linear(_WIDTH, 48), nn.Linear(48, 6)
        self.blocks = nn.ModuleList([nn.Linear(48, 48) for _ in range(4)])
        self.plan = half

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores of the six candidates."""
        hidden = self.inward(rows) * self.plan.lift
        for block in self.blocks:
            inside = functional.layer_norm(hidden, (48,)) if self.plan.normed else hidden
            hidden = hidden + self.plan.gain * torch.relu(block(inside))
            if self.plan.dtype == "float16":
                hidden = hidden.half().float()
        last = functional.layer_norm(hidden, (48,)) if self.plan.normed else hidden / self.plan.lift
        out: Tensor = self.out(last)
        return out


def _rows(count: int, seed: int) -> tuple[Tensor, Tensor]:
    world = torch.Generator().manual_seed(15)
    first, second = torch.randn(_WIDTH, 16, generator=world), torch.randn(16, 6, generator=world)
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, _WIDTH, generator=draw)
    scores = torch.relu(rows @ first) @ second + 2 * torch.randn(count, 6, generator=draw)
    return rows, scores.argmax(1)


def ranking(half: Half) -> Trace:
    """Train a ranker."""
    torch.manual_seed(half.seed)
    trace = Trace(settings=half.shown())
    (rows, best), valid = _rows(8000, 7), _rows(1500, 86)
    model = Ranker(half)
    kind = torch.bfloat16 if half.dtype == "bfloat16" else torch.float32
    model.to(kind)
    parameters = list(model.parameters())
    kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimizer = kinds[half.optimizer](parameters, lr=half.lr)
    scale, good, skipped = half.scale, 0, 0
    for step in range(1, half.steps + 1):
        at = torch.randint(0, len(rows), (half.batch,))
        loss = functional.cross_entropy(model(rows[at].to(kind)).float(), best[at])
        optimizer.zero_grad()
        if half.dtype == "float16":
            (loss * scale).backward()  # type: ignore[no-untyped-call]
            finite = _unscale(parameters, scale)
        else:
            loss.backward()  # type: ignore[no-untyped-call]
            finite = True
        norm = float(nn.utils.clip_grad_norm_(parameters, 1e9)) if finite else float("inf")
        good = good + 1 if finite else 0
        if finite:
            optimizer.step()
        else:
            skipped += 1
            if half.says:
                trace.note(f"Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to {scale / 2}")
            scale /= 2
        if good == half.growth:
            scale, good = scale * 2, 0
        if step % half.every == 0 or step == 1:
            row: Row = {"step": step, "loss": float(loss), "gnorm": norm, "lr": half.lr}
            if half.dtype == "float16":
                row |= {"loss_scale": scale, "skipped": skipped}
            trace.log(**row, **(_evaluate(model, valid, kind) if step % half.eval_every == 0 else {}))
    return trace


def _unscale(parameters: list[nn.Parameter], scale: float) -> bool:
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad = parameter.grad.half().float() / scale
    return all(bool(p.grad.isfinite().all()) for p in parameters if p.grad is not None)


def _evaluate(model: nn.Module, valid: tuple[Tensor, Tensor], kind: torch.dtype) -> Row:
    with torch.no_grad():
        scores = model(valid[0].to(kind)).float()
    hit = float((scores.argmax(1) == valid[1]).float().mean())
    return {"val_loss": float(functional.cross_entropy(scores, valid[1])), "val_acc": hit}
