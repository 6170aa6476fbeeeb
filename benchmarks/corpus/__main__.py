"""`python -m benchmarks.corpus`: what the sets hold; `pack FOLDER` makes or replaces the set of that name."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.corpus.archive import SETS, archive_of, folder_of, pack
from benchmarks.corpus.labels import read_labels
from benchmarks.faults.figures import Rows, table


def contents() -> Rows:
    """Return how many runs of which causes each set has, and how large it is."""
    rows = []
    for name in SETS:
        labels = read_labels(folder_of(name))
        healthy = sum(label.cause == "healthy" for label in labels.values())
        rows.append(
            {
                "set": name,
                "runs": f"{len(labels)}",
                "healthy": f"{healthy}",
                "causes": f"{len({label.cause for label in labels.values()} - {'healthy'})}",
                "KB": f"{archive_of(name).stat().st_size / 1000:,.0f}",
            }
        )
    return rows


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks.corpus", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["list", "pack"], default="list")
    parser.add_argument("folder", nargs="?", type=Path, help="pack: a folder of runs with a labels.jsonl")
    options = parser.parse_args()
    if options.command == "list":
        print(table(contents()))
        return
    if options.folder is None:
        parser.error("pack needs a folder of runs")
    archive = archive_of(options.folder.resolve().name)
    pack(options.folder, archive)
    print(f"{archive}: {archive.stat().st_size / 1000:,.0f} KB")


if __name__ == "__main__":
    main()
