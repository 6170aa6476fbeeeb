"""Inject faults round real processes of ours and print the table of docs/trust.md.

    python -m benchmarks.chaos [--trials 20] [--only NAME]

Each trial has to end in an answer or in one line that says what is wrong, and must leave nothing behind. Exits with 1
if one does not. Linux only.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.chaos.faults import FAULTS, HEADING


def main() -> int:
    """Print a row for each fault, then what broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20, help="trials of each fault")
    parser.add_argument("--only", default="", help="only faults whose function is named so")
    options = parser.parse_args()
    print(HEADING)
    broken = []
    for fault in FAULTS:
        if options.only in fault.__name__:
            for row in fault(options.trials):
                print(row, flush=True)
                broken += [f"{row.fault}: {one}" for one in row.broken]
    print(*broken[:20], sep="\n", file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
