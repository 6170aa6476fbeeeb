"""`python -m benchmarks.recorder overhead|kills|faults|record`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.faults.__main__ import FOLDER
from benchmarks.faults.figures import keep, table
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
    parser.add_argument("--save", action="store_true", help="keep the figures for the pages; not for record")
    options = parser.parse_args()
    if options.command == "record":
        record_made(options.made, options.folder, options.count or 300)
        return
    if options.command == "overhead":
        rows = overhead()
    elif options.command == "kills":
        rows = kills(options.count or 100)
    else:
        rows = beside(options.folder, options.count or 300)
    print(table(rows))
    if options.save:
        keep(f"recorder_{options.command}", rows)


if __name__ == "__main__":
    main()
