"""Times and memory as a machine under the loop would show them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.loops.industry.trace import Row

Course = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine: seconds a step, those that wait for data, memory in GB; courses are factors at steps."""

    seconds: float = 0.21
    data: float = 0.012
    memory: float = 14.2
    limit: float = 24.0
    host: float = 9.5
    slower: Course = ((0, 1),)
    waits: Course = ((0, 1),)
    leak: float = 0.0
    host_leak: float = 0.0
    stall_every: int = 0
    jitter: float = 0.05
    seed: int = 3

    def at(self, step: int) -> Row:
        """Return what the machine shows at a step: the first one is slow, memory saturates after a few."""
        draw = np.random.default_rng((self.seed, step))
        factor = _along(self.slower, step) * (9.0 if step <= 1 else 1.0)
        if self.stall_every and step % self.stall_every < 10:
            factor *= 1.9
        wait = self.data * _along(self.waits, step) * float(np.exp(draw.normal(0, 3 * self.jitter)))
        compute = self.seconds * factor * float(np.exp(draw.normal(0, self.jitter)))
        memory = self.memory * (1 - 0.35 * float(np.exp(-step / 15))) + self.leak * step
        host = self.host + 0.6 * (1 - float(np.exp(-step / 60))) + self.host_leak * step
        return {
            "sec": wait + compute,
            "data_sec": wait,
            "mem": min(memory, self.limit),
            "rss": host + float(draw.normal(0, 0.02)),
            "util": 96.0 * compute / (wait + compute) + float(draw.normal(0, 0.8)),
        }


def _along(course: Course, step: int) -> float:
    return float(np.interp(step, [at for at, _ in course], [factor for _, factor in course]))
