"""Ranks that wait for each other, as threads at a barrier."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from benchmarks.loops.studio.core import Record, Values
from benchmarks.loops.studio.dynamics import motion
from benchmarks.loops.studio.systems import base, trainer

COUNT = 4
"""Ranks of a run."""
EVERY = 4
"""Steps from one row to the next."""


@dataclass(frozen=True)
class Team:
    """How the ranks behave: who is ``slow`` and by how much, who ``leaves`` when, whose inputs ``flip`` from when."""

    steps: int = 60
    slow: dict[int, Callable[[int], float]] | None = None
    leaves: tuple[int, int] | None = None
    patience: float = 1.6
    flip: tuple[int, int] | None = None


class Gang:
    """The ranks at work, with what each of them measured."""

    def __init__(self, team: Team, seed: int) -> None:
        self.team, self.last = team, 0
        self.gate = threading.Barrier(COUNT)
        self.steppers = [trainer(seed) for _ in range(COUNT)]
        self.data = [motion(64 * team.steps, seed + 10 * r) for r in range(COUNT)]
        self.busy = [[0.0] * (team.steps + 1) for _ in range(COUNT)]
        self.losses = [[0.0] * (team.steps + 1) for _ in range(COUNT)]
        self.threads = [threading.Thread(target=self.work, args=(r,), daemon=True) for r in range(COUNT)]

    def start(self) -> None:
        """Set the ranks going."""
        for thread in self.threads:
            thread.start()

    def going(self) -> bool:
        """Whether a rank is at work and none has given up on the others."""
        return any(t.is_alive() for t in self.threads) and not self.gate.broken

    def work(self, rank: int) -> None:
        """All steps of one rank."""
        for at in range(1, self.team.steps + 1):
            if self.team.leaves == (rank, at):
                time.sleep(self.team.patience * 3)
                return
            t0 = time.perf_counter()
            self.losses[rank][at] = self.steppers[rank](*self.batch(rank, at))
            slow = (self.team.slow or {}).get(rank)
            time.sleep(0.008 + (slow(at) if slow else 0.0))
            self.busy[rank][at] = time.perf_counter() - t0
            try:
                self.gate.wait(timeout=self.team.patience)
            except threading.BrokenBarrierError:
                return
            self.last = at

    def batch(self, rank: int, at: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The batch of a rank at a step."""
        lo, flip = (at - 1) * 64, self.team.flip
        x, y = self.data[rank][0][lo : lo + 64], self.data[rank][1][lo : lo + 64]
        if flip and flip[0] == rank and at >= flip[1]:
            x = (x.view(torch.int32) ^ (1 << 25)).view(torch.float32)
        return x, y

    def values(self, window: range, show: str) -> Values:
        """Means over some steps: the loss of the first rank, and what of all ranks is shown."""
        values = {"loss": sum(self.losses[0][i] for i in window) / EVERY}
        if show == "time":
            values |= {
                f"rank{r}_step_ms": 1e3 * sum(busy[i] for i in window) / EVERY for r, busy in enumerate(self.busy)
            }
        elif show == "loss":
            values |= {f"rank{r}_loss": sum(loss[i] for i in window) / EVERY for r, loss in enumerate(self.losses)}
        elif show == "total":
            values["step_time"] = sum(max(busy[i] for busy in self.busy) for i in window) / EVERY
        return values


def ranks(seed: int, team: Team, *, speed: float = 1.0, show: str = "time", beat: float = 0.4) -> Record:
    """Threads as ranks that meet at a barrier each step; times are scaled by ``speed``."""
    rec = base(seed, team.steps, world_size=COUNT, backend="gloo")
    began, gang = time.perf_counter(), Gang(team, seed)
    gang.start()
    shown, beats = 0, began
    while gang.going():
        time.sleep(0.002)
        now = time.perf_counter()
        rec.clock = (now - began) * speed
        if gang.last >= shown + EVERY:
            shown, beats = shown + EVERY, now
            rec.log("train", shown, shown / team.steps, gang.values(range(shown - EVERY + 1, shown + 1), show))
        elif team.leaves and now - beats > beat:
            beats = now
            idle = rec.clock - rec.rows()[-1].clock if rec.rows() else rec.clock
            rec.say(f"[heartbeat] step {gang.last} alive, no progress for {idle:.0f} s")
    return rec
