"""All runs by name."""

import zlib

from benchmarks.loops.vision.run import Run
from benchmarks.loops.vision.runs import (
    data,
    evaluation,
    healthy,
    labels,
    losses,
    machine,
    models,
    precision,
    rates,
    updates,
)


def named_runs() -> dict[str, Run]:
    """Every run under a name that tells the task and not the cause, and that stays when other runs come or go."""
    runs: dict[str, Run] = {}
    for module in (healthy, data, labels, evaluation, losses, rates, updates, precision, models, machine):
        for run in module.RUNS:
            key = f"{run.cause} {run.style} {run.settings} {run.columns} {run.config}"
            name = f"{run.config.task}_{zlib.crc32(key.encode()):08x}"
            assert name not in runs, f"two runs are alike: {key}"
            runs[name] = run
    return runs
