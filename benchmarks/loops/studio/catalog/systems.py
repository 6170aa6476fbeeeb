"""Faulty runs of systems, with times and memory that were measured."""

from __future__ import annotations

from benchmarks.loops.studio import memory, ranks, systems
from benchmarks.loops.studio.core import Spec
from benchmarks.loops.studio.ranks import Team

SPECS = [
    Spec(
        "dataloader_bottleneck",
        "mmengine",
        "systems",
        lambda s: systems.loading(s, lambda _number: 0.03, steps=90),
        "waiting for data is over half of the step and utilisation is low",
    ),
    Spec(
        "dataloader_bottleneck",
        "ndjson_nested",
        "systems",
        lambda s: systems.loading(s, lambda n: 0.004 + 0.0006 * n, steps=90, busy=False),
        "data_time grows with the step and sets the pace",
        ("throughput_degradation",),
    ),
    Spec(
        "dataloader_bottleneck",
        "terse",
        "systems",
        lambda s: systems.loading(s, lambda n: 0.1 if n % 8 == 0 else 0.025, steps=100, workers=1, busy=True),
        "about half of the step is waiting for data",
    ),
    Spec(
        "throughput_degradation",
        "units_ini",
        "systems",
        lambda s: systems.slower(s, systems.rewrite_all, steps=100),
        "the step gets slower while data_time is constant",
    ),
    Spec(
        "throughput_degradation",
        "keras_history",
        "systems",
        lambda s: ranks.ranks(s, Team(steps=80, slow={2: lambda at: 0.05 if at > 36 else 0.0}), show="total"),
        "the step is several times slower from the middle on",
        ("hardware_fault",),
    ),
    Spec(
        "memory_leak",
        "tqdm",
        "systems",
        lambda s: memory.growing(s, "graph", steps=140),
        "memory rises with every step to the end",
    ),
    Spec(
        "memory_leak",
        "tensorboard_csv",
        "systems",
        lambda s: memory.growing(s, "cache", steps=400, limit=420),
        "memory rises until an allocation fails",
        ("out_of_memory",),
    ),
    Spec(
        "out_of_memory",
        "logging",
        "systems",
        lambda s: memory.growing(s, steps=120, limit=400, wide=lambda t: 64 if t != 75 else 900000),
        "an allocation fails at once after flat memory",
    ),
    Spec(
        "out_of_memory",
        "ansi",
        "systems",
        lambda s: memory.growing(s, steps=120, limit=300, every=1, wide=lambda t: 256 if t < 4 else 700000),
        "an allocation fails in the first steps",
    ),
    Spec(
        "fragmentation",
        "csv_german",
        "systems",
        lambda s: memory.arena(s, 1600),
        "enough is free, but the largest free block is smaller than the request",
        ("out_of_memory",),
    ),
    Spec(
        "hang",
        "pairs",
        "systems",
        lambda s: ranks.ranks(s, Team(steps=70, leaves=(2, 43), patience=2.4), speed=600.0),
        "no progress after step 42 while heartbeats go on, no error",
    ),
    Spec(
        "hang",
        "split_logs",
        "systems",
        lambda s: ranks.ranks(s, Team(steps=70, leaves=(0, 29), patience=1.5), speed=900.0, show="none", beat=0.3),
        "no progress after step 28, no error",
    ),
    Spec(
        "hardware_fault",
        "lightning_csv",
        "systems",
        lambda s: ranks.ranks(s, Team(steps=80, slow={3: lambda _at: 0.04})),
        "one rank is several times slower than the rest throughout",
        ("throughput_degradation",),
    ),
    Spec(
        "hardware_fault",
        "yolo_csv",
        "systems",
        lambda s: ranks.ranks(s, Team(steps=80, flip=(1, 40)), show="loss"),
        "one rank's loss goes astray from step 40 on, the others do not",
        ("bad_batch", "invalid_math"),
    ),
]
