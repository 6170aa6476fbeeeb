"""Runs whose machine is at fault: time, memory, ranks."""

from __future__ import annotations

from benchmarks.loops.science.recipe import Recipe
from benchmarks.loops.science.run import Run
from benchmarks.loops.science.tasks.graphs import Molecule
from benchmarks.loops.science.tasks.images import Contrastive, Segmentation
from benchmarks.loops.science.tasks.physics import Diffusion, MultiTask
from benchmarks.loops.science.tasks.series import Forecast
from benchmarks.loops.science.tasks.sound import Audio, Sleep, Speech
from benchmarks.loops.science.tasks.tables import Fraud, Tabular
from benchmarks.loops.science.trainer import Supervised
from benchmarks.loops.science.troubles.machine import (
    BrokenRank,
    GrowingHistory,
    HugeBatch,
    Leak,
    LostWorker,
    SlowLoader,
    Straggler,
)


def runs() -> list[Run]:
    """Return them."""
    return [*_time(), *_memory(), *_ranks()]


def _time() -> list[Run]:
    waits = "waiting for data takes most of each step"
    slower = "step time grows over the run while waiting for data does not"
    stops = "the log says that it waits for a worker and stops before the planned end"
    times = ("lr", "step_time", "data_time")
    a = Supervised(Audio(), Recipe(steps=200, log_every=2), (SlowLoader(0.03),))
    b = Supervised(Molecule(), Recipe(steps=150, log_every=1, lr=2e-3), (SlowLoader(0.05),))
    d = Supervised(Tabular(), Recipe(steps=400, log_every=5, lr=2e-3), (GrowingHistory(),))
    e = Supervised(MultiTask(), Recipe(steps=350, log_every=5, lr=2e-3, seed=3), (GrowingHistory(6),))
    f = Supervised(Fraud(), Recipe(steps=350, log_every=2, lr=2e-3, seed=3), (GrowingHistory(8),))
    g = Supervised(Speech(), Recipe(steps=300, log_every=2, lr=3e-3), (LostWorker(140),))
    h = Supervised(Diffusion(), Recipe(steps=900, log_every=5, seed=4), (LostWorker(395, tries=4),))
    i = Supervised(Forecast(), Recipe(steps=500, log_every=5, lr=3e-3, seed=4), (LostWorker(212),))
    return [
        Run(a, "dataloader_bottleneck", waits, "csv_own", "json", times),
        Run(b, "dataloader_bottleneck", waits, "logging", "yaml", times),
        Run(d, "throughput_degradation", slower, "logging", "printed", times),
        Run(e, "throughput_degradation", slower, "csv_pair", "yaml", times),
        Run(f, "throughput_degradation", slower, "jsonl_flat", columns=("step_time",)),
        Run(g, "hang", stops, "logging", "printed"),
        Run(h, "hang", stops, "prints", "args"),
        Run(i, "hang", stops, "tqdm"),
    ]


def _memory() -> list[Run]:
    grows = "the process's memory rises by the same amount with every step"
    failed = "the run ends with a failed allocation of far more than any machine has"
    a = Supervised(Forecast(), Recipe(steps=300, lr=2e-3, log_every=2), (Leak(mib=1.0),))
    c = Supervised(Contrastive(), Recipe(steps=350, batch_size=64, log_every=1), (Leak(mib=1.5),))
    d = Supervised(Contrastive(loss_kind="triplet"), Recipe(steps=400, batch_size=64), (HugeBatch(170),))
    e = Supervised(Molecule(), Recipe(steps=400, lr=2e-3, log_every=2, seed=6), (HugeBatch(86, side=4_000_000),))
    f = Supervised(Segmentation(), Recipe(steps=300, batch_size=16, lr=3e-3), (HugeBatch(144),))
    return [
        Run(a, "memory_leak", grows, "csv_own", "yaml"),
        Run(c, "memory_leak", grows, "jsonl_nested"),
        Run(d, "out_of_memory", failed, "logging", "yaml"),
        Run(e, "out_of_memory", failed, "prints"),
        Run(f, "out_of_memory", failed, "csv_pair", "json"),
    ]


def _ranks() -> list[Run]:
    broken = "one rank's loss turns NaN or huge first while the others are fine"
    slow = "one rank takes many times as long as the others from a step on, and each step with it"
    a = Supervised(Audio(), Recipe(steps=250, batch_size=64, world_size=4, log_every=1), (BrokenRank(2, 130),))
    b = Supervised(
        Tabular(), Recipe(steps=300, batch_size=64, world_size=4, log_every=1, lr=2e-3), (BrokenRank(1, 201),)
    )
    c = Supervised(Sleep(), Recipe(steps=160, world_size=4, log_every=1, lr=2e-3), (Straggler(3, 60, 0.04),))
    d = Supervised(Tabular(), Recipe(steps=300, world_size=4, log_every=2, lr=2e-3, seed=2), (Straggler(0, 120, 0.03),))
    return [
        Run(a, "hardware_fault", broken, "csv_own", "yaml"),
        Run(b, "hardware_fault", broken, "logging", "printed"),
        Run(c, "hardware_fault", slow, "jsonl_flat", "json", ("lr", "step_time")),
        Run(d, "hardware_fault", slow, "logfmt", columns=("step_time",)),
    ]
