"""How fast text is read, shape by shape, beside Python's own loop over the lines of the same file.

    python -m benchmarks.logs.text_speed [--megabytes 20] [--folder FOLDER] [SHAPE ...]

MB per CPU second of one process that has imported everything; `times` is how many times as long reading takes as
`for line in file`. A machine that is busy slows both alike.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.logs.text_shapes import SHAPES, make_text

from mldebug_mcp.logs import read_run


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the faster one of two runs."""
    took = []
    for _ in range(2):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


def loop(path: Path) -> int:
    """Read the lines as Python does."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return sum(1 for _ in file)


def main() -> None:
    """Make the logs and print the table."""
    parser = argparse.ArgumentParser(description="Measure how fast text is read.")
    parser.add_argument("--megabytes", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, help="where the logs are kept (default: a temporary folder)")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"some of: {', '.join(SHAPES)}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{'shape':<20}{'MB/s':>8}{'loop MB/s':>12}{'times':>8}{'records':>12}")
        for number, shape in enumerate(SHAPES):
            if options.shapes and shape not in options.shapes:
                continue
            path = make_text(folder / f"{number}-{options.megabytes:g}.log", shape, int(options.megabytes * 1e6))
            size = path.stat().st_size / 1e6
            records = read_run(path).records
            took, beside = seconds(partial(read_run, path)), seconds(partial(loop, path))
            print(f"{shape:<20}{size / took:8.1f}{size / beside:12.1f}{took / beside:8.1f}{records:12,}", flush=True)


if __name__ == "__main__":
    main()
