"""Small training loops of torch that a recorder watches."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mldebug_mcp.recorder import Recorder

Record = dict[str, Any]
ROWS, BATCH = 320, 32


def classifier(*, depth: int = 2, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    torch.manual_seed(0)
    hidden = [layer for _ in range(depth) for layer in (nn.Linear(16, 16), activation())]
    return nn.Sequential(*hidden, nn.Linear(16, 4))


def loader(*, workers: int = 0) -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(ROWS, 16, generator=generator), torch.randint(0, 4, (ROWS,), generator=generator))
    return DataLoader(data, batch_size=BATCH, shuffle=True, generator=generator, num_workers=workers)


def train(
    recorder: Recorder,
    model: nn.Module,
    *,
    epochs: int = 3,
    clip: float = 1.0,
    spoil: Callable[[int, Any], Any] = lambda _step, inputs: inputs,
) -> list[float]:
    """Train a classifier with a recorder and return its losses."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    recorder.watch(model, optimizer)
    losses: list[float] = []
    batches = loader()
    for _ in range(epochs):
        for inputs, labels in recorder.steps(batches):
            loss = nn.functional.cross_entropy(model(spoil(len(losses) + 1, inputs)), labels)
            torch.autograd.backward(loss)
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()
            recorder.log(loss=loss)
            losses.append(loss.item())
    return losses


def lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def steps(path: Path) -> list[Record]:
    """Return the records of steps in a recording."""
    return [one for one in lines(path) if "step" in one and "event" not in one]


def events(path: Path) -> dict[str, Record]:
    return {one["event"]: one for one in lines(path) if "event" in one}


def head(path: Path) -> Record:
    """Return what the heads of a recording tell, together."""
    found: Record = {"settings": {}}
    for one in lines(path):
        if "recorder" in one:
            settings = {**found["settings"], **one.get("settings", {})}
            found |= one | {"settings": settings}
    return found
