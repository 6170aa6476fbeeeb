"""Cheap sweeps of runs that never were: a loss that falls with noise, and blows up at the highest rate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

RATES = (1e-4, 3e-4, 1e-3, 3e-3)
BATCHES = (16, 32, 64)
FORMS = (
    ("log.jsonl", "", '{"step": %d, "loss": %.5f, "grad_norm": %.4f, "learning_rate": %.4e}\n'),
    ("metrics.csv", "step,loss,grad_norm,learning_rate\n", "%d,%.5f,%.4f,%.4e\n"),
    ("train.log", "", "step %d | loss %.5f | grad_norm %.4f | lr %.4e\n"),
)
"""Name of the log, its first line, and the form of a record."""


def make_sweep(folder: Path, runs: int, steps: int) -> Path:
    """Write runs of so many steps each, a third in each form, unless they are there."""
    for number in range(runs):
        place = folder / f"run_{number:05}"
        if not place.is_dir():
            _make_run(place, number, steps)
    return folder


def _make_run(place: Path, number: int, steps: int) -> None:
    draw = np.random.default_rng(number)
    rate, batch = float(draw.choice(RATES)), int(draw.choice(BATCHES))
    at = np.arange(1, steps + 1)
    loss = 0.5 + 2.5 * np.exp(-at / (steps / 6)) + draw.normal(0, 0.03, steps)
    if rate == RATES[-1]:
        loss += np.clip(at - steps * draw.uniform(0.3, 0.7), 0, None) * 8 / steps
    norm = np.abs(draw.normal(1, 0.15, steps))
    rates = rate * (1 - at / (steps + 1))
    place.mkdir(parents=True)
    settings = {"learning_rate": rate, "batch_size": batch, "seed": number, "weight_decay": 0.1, "max_steps": steps}
    (place / "config.json").write_text(json.dumps(settings))
    name, head, line = FORMS[number % len(FORMS)]
    rows = np.stack([at, loss, norm, rates], axis=1).tolist()
    (place / name).write_text(head + "".join(line % tuple(row) for row in rows))
