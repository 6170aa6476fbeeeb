"""What a run leaves behind (`Record`) and what steers its training (`Knobs`)."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Row:
    """One entry of a log: training values, evaluation values, or a line of text."""

    step: int
    kind: str  # "train", "eval" or "event"
    values: dict[str, float] = field(default_factory=dict)
    epoch: float = 0.0
    seconds: float = 0.0
    text: str = ""


@dataclass
class Record:
    """The log of one run, before a style turns it into files."""

    config: dict[str, Any]
    total: int
    rows: list[Row] = field(default_factory=list)
    time_scale: float = 40.0
    epoch_len: int = 100
    seed: int = 0
    started: float = field(default_factory=time.perf_counter)

    def _add(self, row: Row) -> None:
        row.epoch = row.step / self.epoch_len
        row.seconds = (time.perf_counter() - self.started) * self.time_scale
        self.rows.append(row)

    def train(self, step: int, values: dict[str, float]) -> None:
        """Note the values of a training step."""
        self._add(Row(step, "train", {k: float(v) for k, v in values.items()}))

    def eval(self, step: int, values: dict[str, float]) -> None:
        """Note the values of an evaluation."""
        if values:
            self._add(Row(step, "eval", {k: float(v) for k, v in values.items()}))

    def event(self, step: int, text: str) -> None:
        """Note a line of text that the program printed."""
        self._add(Row(step, "event", text=text))

    def of(self, kind: str) -> list[Row]:
        """The rows of one kind, in order."""
        return [row for row in self.rows if row.kind == kind]

    def keys(self, kind: str) -> list[str]:
        """The names of all values of one kind, in order of appearance."""
        names: dict[str, None] = {}
        for row in self.of(kind):
            names.update(dict.fromkeys(row.values))
        return list(names)

    def keep_only(self, names: set[str]) -> None:
        """Drop all values but the named ones; no names keep all."""
        for row in self.rows:
            if names:
                row.values = {k: v for k, v in row.values.items() if k in names}
        self.rows = [r for r in self.rows if r.kind == "event" or r.values]


@dataclass
class Knobs:
    """Settings of the training loop; the second half are faults, all off by default."""

    steps: int = 240
    lr: float = 3e-3
    batch: int = 16
    warmup: int = 20
    sched: str = "cosine"  # cosine, linear, constant, step, inverse_sqrt
    opt: str = "adamw"  # adamw, adam, sgd
    momentum: float = 0.9
    wd: float = 0.01
    clip: float = 1.0  # 0 switches clipping off
    beta2: float = 0.99
    eps: float = 1e-8
    accum: int = 1
    log_every: int = 10
    eval_every: int = 60
    eval_first: bool = False
    amp: str = ""  # fp16 or bf16
    init_scale: float = 65536.0
    watch: tuple[str, ...] = ()  # further values: "upd", "wnorm", "layers", "mem", "timing"
    # ---- faults ----
    keep_grads: bool = False
    accum_sum: bool = False
    report_sum: bool = False
    freeze: tuple[str, ...] = ()
    no_step: bool = False
    sched_bug: str = ""  # micro, early_zero, restart
    pure_bf16: bool = False
    loader_ms: float = 0.0
    loader_every: int = 1
    slow_ms: float = 0.0
    leak_mb: float = 0.0
    cap_mb: float = 0.0
    hang_at: int = 0
    resume_at: int = 0
    resume: str = "full"  # full, weights, data, warmup
    eval_stays_train: bool = False
    train_stays_eval: bool = False
    eval_stale: bool = False
    bitflip: tuple[int, ...] = ()
    ranks: int = 1
    stop_at: int = 0


def lr_at(knobs: Knobs, step: int) -> float:
    """The learning rate that the schedule of `knobs` gives for update `step`."""
    total = max(knobs.steps, 1)
    if knobs.sched_bug == "micro":
        step = step * max(knobs.accum, 2)
    elif knobs.sched_bug == "early_zero":
        total = int(total * 0.3)
    elif knobs.sched_bug == "restart":
        step = step % max(total // 3, 1)
    if step < knobs.warmup:
        return knobs.lr * (step + 1) / knobs.warmup
    done = min((step - knobs.warmup) / max(total - knobs.warmup, 1), 1.0)
    if knobs.sched == "cosine":
        return knobs.lr * 0.5 * (1 + math.cos(math.pi * done))
    if knobs.sched == "linear":
        return knobs.lr * (1 - done)
    if knobs.sched == "step":
        return knobs.lr * 0.1 ** int(done * 3)
    if knobs.sched == "inverse_sqrt":
        return knobs.lr * math.sqrt(max(knobs.warmup, 1) / (step + 1))
    return knobs.lr
