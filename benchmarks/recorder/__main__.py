"""`python -m benchmarks.recorder overhead|kills|faults|record`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.faults.__main__ import FOLDER
from benchmarks.faults.figures import table
from benchmarks.recorder.beside import beside, record_made
from benchmarks.recorder.kills import kills
from benchmarks.recorder.overhead import overhead


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks.recorder", description=__doc__)
    parser.add_argument("command", choices=["overhead", "kills", "faults", "record"])
    parser.add_argument(
        "--folder", type=Path, default=Path(__file__).parent / "made", help="faults, record: where runs go"
    )
    parser.add_argument(
        "--made", type=Path, default=FOLDER, help="record: a folder of benchmarks.faults train, whose runs are recorded"
    )
    parser.add_argument("--count", type=int, default=0, help="faults, record: runs, 300; kills: trainings, 100")
    options = parser.parse_args()
    if options.command == "overhead":
        print(table(overhead()))
    elif options.command == "kills":
        print(table(kills(options.count or 100)))
    elif options.command == "record":
        record_made(options.made, options.folder, options.count or 300)
    else:
        print(table(beside(options.folder, options.count or 300)))


if __name__ == "__main__":
    main()
