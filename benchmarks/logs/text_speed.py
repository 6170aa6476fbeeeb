"""How fast text is read, compared with a bare Python loop that finds the numbers of each line.

    python -m benchmarks.logs.text_speed [--shapes 300] [--sample N] [--lines 30000] [--seed 0]

The shapes are drawn from `text_grammar`. Each value that is read is checked against what the generator wrote. `ratio`
is the CPU time of reading a log, divided by that of the loop, in one process that has imported everything.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.logs.text_grammar import Line, Shape, shapes

from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.run import Run

WORST, MEDIAN = 1.0, 0.5
"""The largest ratio of any shape, and the median of all, that are asked for."""
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def seconds(work: Callable[[], object], repeat: int = 2) -> float:
    """Return the CPU seconds of the fastest of some runs."""
    took = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


def loop(path: Path) -> int:
    """Find the numbers of each line as a short script does."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return sum(len([float(number) for number in _NUMBER.findall(line)]) for line in file)


def wrong_values(run: Run, lines: Sequence[Line]) -> list[str]:
    """Return the names of metrics whose values differ from those that were printed, at any step."""
    wrong = []
    steps = np.array([line.values["step"] for line in lines])
    for name in lines[0].values.keys() - {"step"}:
        printed = np.array([line.values[name] for line in lines])
        series = run.series.get(name)
        if series is None or len(series) != len(lines):
            wrong.append(f"{name} ({0 if series is None else len(series)} of {len(lines)})")
        elif not (np.array_equal(series.step, steps) and np.allclose(series.value, printed, rtol=1e-9, equal_nan=True)):
            wrong.append(f"{name} (values)")
    return wrong


def measure(shape: Shape, path: Path, count: int) -> tuple[float, list[str]]:
    """Write a log of a shape; return the ratio of its reading, and what was read wrong."""
    lines = list(shape.lines(count))
    path.write_text("".join(f"{line.text}\n" for line in lines), encoding="utf-8")
    wrong = wrong_values(read_run(path), lines)
    return seconds(partial(read_run, path)) / seconds(partial(loop, path)), wrong


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
            print(f"{ratio:7.2f}  {shape.name}{'  WRONG: ' + ', '.join(sorted(wrong)) if wrong else ''}", flush=True)
    print(f"{len(ratios)} shapes: worst ratio {max(ratios):.2f} (asked for: {WORST}),")
    print(f"median {statistics.median(ratios):.2f} (asked for: {MEDIAN}); {misread} shapes read wrong")


if __name__ == "__main__":
    main()
