"""The probe's loop against a bare one, side by side: `python -m benchmarks.probe.overhead`. The limit is 1.15."""

from __future__ import annotations

import math
import statistics
import time

import torch
from tests.probe import pipelines

from mldebug_mcp.probe.worker.subject import Subject
from mldebug_mcp.probe.worker.training import Plan, make_optimizer, train

STEPS, ROUNDS = 100, 7


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


def main() -> None:
    """Print the ratio of the medians for a small and a larger pipeline."""
    torch.set_num_threads(1)
    for name in ("healthy_classifier", "healthy_language_model"):
        given = getattr(pipelines, name)()
        subject = Subject(given.model, given.batch, given.loss)
        pairs = [(bare(subject), probed(subject)) for _ in range(ROUNDS)]
        ratio = statistics.median(ours / theirs for theirs, ours in pairs[1:])
        print(f"{name:28} {ratio:.3f} x the bare loop over {STEPS} steps")


if __name__ == "__main__":
    main()
