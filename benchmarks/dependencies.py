"""What the base install weighs, package by package, and what polars, the largest of them, buys.

    python -m benchmarks.dependencies [--records 1000000]

Sizes are those of the files that each package brought, without bytecode, in the environment that runs this: make one
with the base install alone. Logs are read by the block with polars, and line by line without it, as they would be if
the package were not there; each in a process of its own, in CPU seconds.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

from benchmarks.cost import cost_of
from benchmarks.logs.speed import READ, make_jsonl, make_megatron

SMALLEST = 2.0
"""MB: what weighs less is counted together."""
LINES = """
from mldebug_mcp.logs.formats import json_records, table
json_records.is_fast = table.is_fast = lambda file: False
"""
"""Lets logs be read line by line."""


def weight(package: Distribution) -> float:
    """Return the size of a package's files in MB."""
    files = [Path(str(file.locate())) for file in package.files or () if file.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Measure what the base install weighs, and what polars buys.")
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    weights = {one.name: weight(one) for one in distributions()}
    for name, size in sorted(weights.items(), key=lambda pair: -pair[1]):
        if size >= SMALLEST:
            print(f"{name:<24}{size:8.1f} MB")
    print(f"{'the others':<24}{sum(size for size in weights.values() if size < SMALLEST):8.1f} MB")
    print(f"{'all':<24}{sum(weights.values()):8.1f} MB\n")
    with tempfile.TemporaryDirectory() as folder:
        logs = (
            make_jsonl(Path(folder) / "log.jsonl", options.records),
            make_megatron(Path(folder) / "megatron.log", options.records // 3),
        )
        for path in logs:
            fast, slow = (cost_of(f"{READ[0]}{setup}", READ[1], path) for setup in ("", LINES))
            assert fast.answer == slow.answer, "the two ways read the same"
            print(
                f"{path.name}: {fast.answer:,} records, {fast.cpu:.2f} CPU s with polars, {slow.cpu:.2f} without: "
                f"{slow.cpu / fast.cpu:.1f}"
            )


if __name__ == "__main__":
    main()
