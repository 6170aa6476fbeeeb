"""How fast text is read, compared with a bare Python loop that finds the numbers of each line.

    python -m benchmarks.logs.text_speed [--shapes 300] [--sample N] [--lines 30000] [--seed 0]

The shapes are drawn (`tests/logs/drawn_logs.py`). Each value that is read is checked against what was written. `ratio`
is the CPU time of reading a log, divided by that of the loop, in one process that has imported everything.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.cost import seconds
from tests.logs.drawn_logs import Shape, misread, shapes

from mldebug_mcp.logs import read_run

WORST, MEDIAN = 1.0, 0.5
"""The largest ratio of any shape, and the median of all, that are asked for."""
REPEAT = 2
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def loop(path: Path) -> int:
    """Find the numbers of each line as a short script does."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return sum(len([float(number) for number in _NUMBER.findall(line)]) for line in file)


def measure(shape: Shape, path: Path, count: int) -> tuple[float, Mapping[str, str]]:
    """Write a log of a shape; return the ratio of its reading, and what was read wrong."""
    log = shape.log(count)
    path.write_text("".join(f"{line}\n" for line in log.lines), encoding="utf-8")
    wrong = misread(log, read_run(path))
    return seconds(partial(read_run, path), REPEAT) / seconds(partial(loop, path), REPEAT), wrong


def main() -> None:
    """Make the logs and print the table."""
    parser = argparse.ArgumentParser(description="Measure how fast text is read.")
    parser.add_argument("--shapes", type=int, default=300, help="shapes that are drawn")
    parser.add_argument("--sample", type=int, help="measure every so many-th shape only, so that N are measured")
    parser.add_argument("--lines", type=int, default=30_000, help="lines of each log")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    options = parser.parse_args()
    drawn = shapes(options.shapes, options.seed)
    chosen = drawn[:: max(1, len(drawn) // options.sample)][: options.sample] if options.sample else drawn
    ratios, misread = [], 0
    with tempfile.TemporaryDirectory() as temporary:
        for shape in chosen:
            ratio, wrong = measure(shape, Path(temporary) / "run.log", options.lines)
            ratios.append(ratio)
            misread += bool(wrong)
            print(f"{ratio:7.2f}  {shape.name}{f'  WRONG: {wrong}' if wrong else ''}", flush=True)
    print(f"{len(ratios)} shapes: worst ratio {max(ratios):.2f} (asked for: {WORST}),")
    print(f"median {statistics.median(ratios):.2f} (asked for: {MEDIAN}); {misread} shapes read wrong")


if __name__ == "__main__":
    main()
