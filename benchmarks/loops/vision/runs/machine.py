"""Runs where memory or time is at fault."""

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.faults.machine import growing_work, kept_graphs, kept_tensors, pairwise_matrix
from benchmarks.loops.vision.run import Run

MEMORY = ("loss", "lr", "mem")
TIMES = ("loss", "time", "data")

RUNS: list[Run] = [
    Run(
        "memory_leak",
        Config("shapes", epochs=6, lr=2e-3),
        "metriclogger",
        "memory grows at every step",
        "args",
        MEMORY,
        (kept_tensors(1.5),),
    ),
    Run(
        "memory_leak",
        Config("regression", epochs=8, lr=2e-3),
        "csv_steps",
        "memory grows at every step",
        "json",
        MEMORY,
        (kept_graphs(1000),),
    ),
    Run(
        "memory_leak",
        Config("vae", epochs=8, lr=1e-3),
        "tensorboard",
        "memory grows at every step",
        "",
        MEMORY,
        (kept_tensors(4.0),),
    ),
    Run(
        "throughput_degradation",
        Config("regression", epochs=8, lr=2e-3, log_every=5),
        "csv_steps",
        "steps take ever longer, data time stays",
        "yaml",
        TIMES,
        (growing_work(400),),
    ),
    Run(
        "throughput_degradation",
        Config("boxes", epochs=8, lr=2e-3, log_every=4),
        "jsonl",
        "steps take ever longer, data time stays",
        "json",
        TIMES,
        (growing_work(400),),
    ),
    Run(
        "throughput_degradation",
        Config("denoiser", epochs=6, lr=2e-3),
        "metriclogger",
        "steps take ever longer",
        "",
        TIMES,
        (growing_work(200),),
    ),
    Run(
        "out_of_memory",
        Config("shapes", epochs=8, lr=2e-3),
        "logging",
        "the log ends with an allocator's error",
        "args",
        MEMORY,
        (pairwise_matrix(110, 2_000_000),),
    ),
    Run(
        "out_of_memory",
        Config("contrastive", epochs=8, lr=2e-3, batch_size=48),
        "prints",
        "the log ends with an allocator's error",
        "",
        MEMORY,
        (pairwise_matrix(60, 3_000_000),),
    ),
]
