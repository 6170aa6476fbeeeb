"""The command: see the package."""

from __future__ import annotations

import argparse
from pathlib import Path

import benchmarks.reading
from benchmarks.foreign.labels import labelled
from benchmarks.reading.reads import own_logs, read_all
from benchmarks.reading.tables import report


def main() -> None:
    """Read the samples and the logs of the folders named, and print how much of them is understood."""
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "benchmarks.reading", description=benchmarks.reading.__doc__, formatter_class=about
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="a folder of labelled logs")
    parser.add_argument("--closed", action="store_true", help="count the closed half too")
    parser.add_argument("--details", action="store_true", help="list what is not understood, of the open half alone")
    asked = parser.parse_args()
    ones = [*own_logs(), *(one for folder in asked.folders for one in labelled(folder, closed=asked.closed))]
    print(report(list(read_all(ones)), details=asked.details))


if __name__ == "__main__":
    main()
