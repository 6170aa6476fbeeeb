"""Runs whose number format or resumed data is at fault."""

import torch

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.faults.data import other_evaluation, other_training
from benchmarks.loops.vision.faults.models import scaled_weights
from benchmarks.loops.vision.faults.updates import interrupted
from benchmarks.loops.vision.run import Run

NORM = ("loss", "lr", "grad_norm")
SCALE = ("loss", "lr", "grad_norm", "loss_scale")


def raw_counts(x: torch.Tensor) -> torch.Tensor:
    """The counts of a 24-bit sensor, not brought to units of one."""
    return 2e5 * x


RUNS: list[Run] = [
    Run(
        "fp16_overflow",
        Config("shapes", epochs=5, lr=2e-3, precision="fp16", log_every=4),
        "jsonl",
        "loss scale halves at every step, loss is not a number",
        "json",
        SCALE,
        (other_training(raw_counts), other_evaluation(raw_counts)),
        ("invalid_math",),
    ),
    Run(
        "fp16_overflow",
        Config("regression", epochs=5, lr=2e-3, precision="fp16", model={"depth": 6}, log_every=4),
        "logging",
        "loss scale halves at every step, loss is not a number",
        "args",
        SCALE,
        (scaled_weights(14.0),),
        ("bad_init", "invalid_math"),
    ),
    Run(
        "low_precision_update",
        Config("regression", epochs=18, lr=1e-4, precision="bf16"),
        "csv_steps",
        "bf16 weights and a small rate: progress, then none",
        "json",
        NORM,
        also=("lr_too_low",),
    ),
    Run(
        "low_precision_update",
        Config("shapes", epochs=8, optimizer="sgd", lr=1e-3, precision="bf16", model={"depth": 2}),
        "wandb",
        "bf16 weights: the loss stalls far above",
        "yaml",
        NORM,
        also=("lr_too_low",),
    ),
    Run(
        "resume_data_replayed",
        Config("memory", epochs=4, lr=5e-4, batch_size=16, data={"n_train": 2400}, log_every=3),
        "csv_steps",
        "after the resume loss falls to that of seen rows, then returns",
        "json",
        NORM,
        (interrupted(110, replay=True),),
        ("duplicated_data",),
    ),
    Run(
        "resume_data_replayed",
        Config("memory", epochs=3, lr=1e-3, batch_size=16, data={"n_train": 3200}, log_every=4),
        "logging",
        "after the resume loss falls to that of seen rows, then returns",
        "args",
        NORM,
        (interrupted(140, replay=True),),
        ("duplicated_data",),
    ),
]
