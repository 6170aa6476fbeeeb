"""Measure `mldebug-mcp runs` as users start it: `python -m benchmarks.runs [RUNS ...]`.

For each number of runs of 1,000 steps it prints wall and processor seconds and the largest process of a first look, and
of a second one at a kept answer. Run it on a quiet machine: the load is printed beside the figures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.runs.make import make_sweep

STEPS = 1000
_MEASURED = """
import os, resource, sys, time
from mldebug_mcp.cli import main
start = time.perf_counter()
main(sys.argv[1:])
wall = time.perf_counter() - start
own, below = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
used = sum(one.ru_utime + one.ru_stime for one in (own, below))
print(f"{wall:.1f} {used:.1f} {max(own.ru_maxrss, below.ru_maxrss) / 1024:.0f}", file=sys.stderr)
"""


def look(folder: Path, cache: Path) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds and the MiB of the largest process of one look at a folder."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run([sys.executable, "-c", _MEASURED, "runs", str(folder), "--json"], env=environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)  # fmt: skip
    wall, used, size = done.stderr.split()[-3:]
    return float(wall), float(used), float(size)


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
                wall, used, size = look(folder, Path(scratch) / f"cache{runs}")
                print(
                    f"| {runs:,} | {which} | {wall:.1f} | {used:.1f} | {size:.0f} | {os.getloadavg()[0]:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
