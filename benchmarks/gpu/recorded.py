"""Workloads on a GPU, recorded by torch: `python -m benchmarks.gpu.recorded FOLDER NAME [...]`, a process of its own.

Each snapshot is written as FOLDER/NAME.pickle, and what torch counted beside it as FOLDER/NAME.json. With `--simulated`
no GPU is used; see `simulated.py`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from benchmarks.gpu.faulty import FAULTY
from benchmarks.gpu.sound import SOUND
from benchmarks.gpu.totals import Totals
from benchmarks.gpu.workload import Workload

WORKLOADS = {one.name: one for one in (*FAULTY, *SOUND)}


def record(workload: Workload, path: Path) -> Totals:
    """Run a workload on the first GPU, dump its snapshot, and return what torch counted over all devices."""
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    if workload.limit:
        whole = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, workload.limit / whole), device)
    torch.cuda.memory._record_memory_history(
        "all" if workload.history else "state", stacks="python", max_entries=workload.entries
    )
    kept = workload.start(device)
    torch.cuda.synchronize(device)
    totals = counted()
    torch.cuda.memory._dump_snapshot(str(path))  # type: ignore[no-untyped-call]
    torch.cuda.memory._record_memory_history(None)
    del kept
    return totals


def counted() -> Totals:
    """Return the bytes that torch counted so far on all devices."""
    stats = [torch.cuda.memory_stats(number) for number in range(torch.cuda.device_count())]

    def of(name: str) -> int:
        return sum(int(one.get(name, 0)) for one in stats)

    return Totals(
        of("allocated_bytes.all.current"),
        of("reserved_bytes.all.current"),
        of("allocated_bytes.all.peak"),
        of("requested_bytes.all.current"),
    )


def main() -> None:
    """Record some workloads one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", choices=WORKLOADS)
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args()
    if options.simulated:
        from benchmarks.gpu.simulated import record as run
    else:
        run = record
    for name in options.names:
        totals = run(WORKLOADS[name], options.folder / f"{name}.pickle")
        (options.folder / f"{name}.json").write_text(json.dumps(totals._asdict()), encoding="utf-8")


if __name__ == "__main__":
    main()
