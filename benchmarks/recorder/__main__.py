"""`python -m benchmarks.recorder overhead|kills`."""

from __future__ import annotations

import argparse

from benchmarks.faults.figures import table
from benchmarks.recorder.overhead import overhead


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks.recorder", description=__doc__)
    parser.add_argument("command", choices=["overhead"])
    parser.parse_args()
    print(table(overhead()))


if __name__ == "__main__":
    main()
