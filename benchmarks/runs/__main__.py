"""Measure `mldebug-mcp runs` as users start it: `python -m benchmarks.runs [RUNS ...]`.

For each number of runs of 1,000 steps it prints wall and processor seconds and the largest process of a first look, and
of a second one at a kept answer. Run it on a quiet machine: the load is printed beside the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.cost import cost_of

RATES = (1e-4, 3e-4, 1e-3, 3e-3)
BATCHES = (16, 32, 64)
FORMS = (
    ("log.jsonl", "", '{"step": %d, "loss": %.5f, "grad_norm": %.4f, "learning_rate": %.4e}\n'),
    ("metrics.csv", "step,loss,grad_norm,learning_rate\n", "%d,%.5f,%.4f,%.4e\n"),
    ("train.log", "", "step %d | loss %.5f | grad_norm %.4f | lr %.4e\n"),
)
"""Name of the log, its first line, and the form of a record."""


def make_sweep(folder: Path, runs: int, steps: int) -> Path:
    """Write runs of so many steps each, a third in each form, unless they are there."""
    for number in range(runs):
        place = folder / f"run_{number:05}"
        if not place.is_dir():
            _make_run(place, number, steps)
    return folder


def _make_run(place: Path, number: int, steps: int) -> None:
    draw = np.random.default_rng(number)
    rate, batch = float(draw.choice(RATES)), int(draw.choice(BATCHES))
    at = np.arange(1, steps + 1)
    loss = 0.5 + 2.5 * np.exp(-at / (steps / 6)) + draw.normal(0, 0.03, steps)
    if rate == RATES[-1]:
        loss += np.clip(at - steps * draw.uniform(0.3, 0.7), 0, None) * 8 / steps
    norm = np.abs(draw.normal(1, 0.15, steps))
    rates = rate * (1 - at / (steps + 1))
    place.mkdir(parents=True)
    settings = {"learning_rate": rate, "batch_size": batch, "seed": number, "weight_decay": 0.1, "max_steps": steps}
    (place / "config.json").write_text(json.dumps(settings))
    name, head, line = FORMS[number % len(FORMS)]
    rows = np.stack([at, loss, norm, rates], axis=1).tolist()
    (place / name).write_text(head + "".join(line % tuple(row) for row in rows))


STEPS = 1000
WORK = ("from mldebug_mcp.cli import main", "main(['runs', sys.argv[1], '--json'])")


def main() -> None:
    """Make the runs, look twice, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=int, default=[1000], help="numbers of runs (default: 1000)")
    parser.add_argument("--folder", type=Path, help="where the runs are kept (default: a temporary folder)")
    options = parser.parse_args()
    print("| runs | look | wall s | CPU s | largest process MiB | load |\n| ---: | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        for runs in options.runs:
            folder = make_sweep((options.folder or Path(scratch)) / str(runs), runs, STEPS)
            for which in ("first", "second"):
                cost = cost_of(*WORK, folder, variables={"XDG_CACHE_HOME": f"{scratch}/cache{runs}"})
                figures = f"{cost.seconds:.1f} | {cost.cpu:.1f} | {cost.memory:.0f} | {os.getloadavg()[0]:.1f}"
                print(f"| {runs:,} | {which} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
