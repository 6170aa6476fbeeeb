"""The probe's loop against a bare one, side by side: `python -m benchmarks.probe.overhead`. The limit is 1.15."""

from __future__ import annotations

import math
import statistics
import time

import torch
from tests.probe import pipelines

from mldebug_mcp.probe.worker.subject import Subject, to_device
from mldebug_mcp.probe.worker.training import Plan, make_optimizer, train

STEPS, ROUNDS = 100, 7
SUBJECTS = ("healthy_classifier", "healthy_language_model")


def bare(subject: Subject) -> float:
    """Return the seconds of a loop without anything but training."""
    optimizer = make_optimizer(subject, "adamw", 1e-3)
    parameters = list(subject.model.parameters())
    begun = time.perf_counter()
    for _ in range(STEPS):
        loss = subject.loss(subject.model, subject.batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        loss.item()
    return time.perf_counter() - begun


def probed(subject: Subject) -> float:
    """Return the seconds of the probe's loop over as many steps."""
    begun = time.perf_counter()
    train(subject, Plan(STEPS, -math.inf, math.inf), 1e-3)
    return time.perf_counter() - begun


def ratio(name: str, device: str = "cpu", rounds: int = ROUNDS) -> float:
    """Return the median ratio of both loops on a pipeline of the tests; the first round warms up."""
    given = getattr(pipelines, name)()
    where = torch.device(device)
    subject = Subject(given.model.to(where), to_device(given.batch, where), given.loss)
    pairs = [(bare(subject), probed(subject)) for _ in range(rounds)]
    return statistics.median(ours / theirs for theirs, ours in pairs[1:])


def main() -> None:
    """Print the ratio of the medians for a small and a larger pipeline."""
    torch.set_num_threads(1)
    for name in SUBJECTS:
        print(f"{name:28} {ratio(name):.3f} x the bare loop over {STEPS} steps")


if __name__ == "__main__":
    main()
