"""The command: see the package."""

from __future__ import annotations

import argparse
from pathlib import Path

import benchmarks.foreign
from benchmarks.foreign.answers import answers
from benchmarks.foreign.labels import labelled
from benchmarks.foreign.tables import report


def main() -> None:
    """Diagnose the labelled logs of the folders named and print the figures."""
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "benchmarks.foreign", description=benchmarks.foreign.__doc__, formatter_class=about
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a folder of labelled logs")
    parser.add_argument("--closed", action="store_true", help="score the closed half too")
    parser.add_argument("--misses", action="store_true", help="list what is not right first, of the open half alone")
    asked = parser.parse_args()
    ones = [one for folder in asked.folders for one in labelled(folder, closed=asked.closed)]
    print(report(answers(ones), misses=asked.misses))


if __name__ == "__main__":
    main()
