"""`python -m benchmarks.recorder overhead|host_bound|kills|faults`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.faults.figures import keep, table
from benchmarks.recorder.host_bound import host_bound
from benchmarks.recorder.kills import kills
from benchmarks.recorder.overhead import beside, overhead


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks.recorder", description=__doc__)
    parser.add_argument("command", choices=["overhead", "host_bound", "kills", "faults"])
    parser.add_argument("--count", type=int, default=100, help="kills: trainings")
    parser.add_argument("--against", type=Path, help="host_bound: the folder src of another build")
    parser.add_argument("--save", action="store_true", help="keep the figures for the pages")
    options = parser.parse_args()
    if options.command == "overhead":
        rows = overhead()
    elif options.command == "host_bound":
        if options.against is None:
            parser.error("host_bound compares two builds: --against FOLDER, such as src of another worktree")
        rows = host_bound(options.against)
    elif options.command == "kills":
        rows = kills(options.count)
    else:
        rows = beside()
    print(table(rows))
    if options.save:
        keep(f"recorder_{options.command}", rows)


if __name__ == "__main__":
    main()
