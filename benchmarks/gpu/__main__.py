"""Measure what a GPU alone can show, unattended, in under nine minutes and without a network.

    python -m benchmarks.gpu [--into FOLDER] [--dry] [--only PART ...] [--seconds 520]

It needs torch for CUDA, numpy, pydantic and, for the estimates, transformers; where this package is not installed, also
PYTHONPATH=src:. from the root of the repository. bitsandbytes is measured where it is installed. A case that breaks is
recorded and stops no other. Without `--into` the figures stand in benchmarks/gpu/figures.json and docs/gpu.md; with it
the same two files, and a few of the snapshots, in that folder. `--dry` does it all on a CPU, as far as one can.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu import estimates, probes, recording, snapshots
from benchmarks.gpu.page import described, page
from benchmarks.gpu.running import Clock, Outcome

SECONDS = 520.0
PARTS = ("snapshots", "estimates", "recorder", "probes")
"""In the order in which they run, each with the share of the time left that it may take: the probes take the rest."""
SHARES = {"snapshots": 0.35, "estimates": 0.3, "recorder": 0.25, "probes": 1.0}
SAMPLES = ("leak", "pieces", "graphs")
"""Workloads whose snapshots are kept: small, and of what only a GPU records."""
FIGURES = Path(__file__).parent / "figures.json"
PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts, write what came of them, and return 0 if nothing failed."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--into", type=Path, help="folder for figures, page and snapshots")
    parser.add_argument("--dry", action="store_true", help="on a CPU, as far as one can")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args(arguments)
    if not options.dry and not torch.cuda.is_available():
        parser.error("torch sees no GPU here; run it where there is one, or with --dry")
    with tempfile.TemporaryDirectory() as folder:
        told = measured(Path(folder), options.only, options.seconds, dry=options.dry)
        _write(told, options.into, Path(folder))
    return int(any(one["state"] in ("failed", "error") for one in told["outcomes"]))


def measured(folder: Path, parts: Sequence[str], seconds: float, *, dry: bool) -> dict[str, Any]:
    """Run parts and return what the page is made of."""
    clock, begun = Clock(seconds), time.monotonic()
    outcomes: list[Outcome] = []
    for part in PARTS:
        if part in parts:
            for one in _guarded(part, partial(_start, part, clock.share(SHARES[part]), folder, dry=dry)):
                print(
                    f"{one.part:10} {one.case:34} {one.state:8} {one.seconds:7.1f} s  {one.why[:200]}", file=sys.stderr
                )
                outcomes.append(one)
            gc.collect()
            torch.cuda.empty_cache()  # processes that later parts start need the room
    return {
        "machine": described(),
        "dry": dry,
        "seconds": round(time.monotonic() - begun, 1),
        "outcomes": [one.as_dict() for one in outcomes],
    }


def _start(part: str, clock: Clock, folder: Path, *, dry: bool) -> Iterator[Outcome]:
    if part == "snapshots":
        return snapshots.run(clock, folder, dry=dry)
    if part == "estimates":
        return estimates.run(clock, folder, dry=dry)
    if part == "recorder":
        return recording.run(clock, folder, dry=dry)
    return probes.run(clock, dry=dry)


def _guarded(part: str, start: Callable[[], Iterator[Outcome]]) -> Iterator[Outcome]:
    """Yield the outcomes of a part; what breaks outside its cases is one too."""
    try:
        yield from start()
    except Exception as error:  # noqa: BLE001 - the next part is run all the same
        yield Outcome(part, "the part itself", "error", 0.0, why=f"{type(error).__name__}: {error}")


def _write(told: dict[str, Any], into: Path | None, snapshots_in: Path) -> None:
    figures, shown = (FIGURES, PAGE) if into is None else (into / "gpu.json", into / "gpu.md")
    figures.parent.mkdir(parents=True, exist_ok=True)
    figures.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    shown.write_text(page(told), encoding="utf-8")
    if into is not None:
        for name in SAMPLES:
            snapshot = snapshots_in / f"{name}.pickle"
            if snapshot.exists():
                (into / f"{name}.pickle.gz").write_bytes(gzip.compress(snapshot.read_bytes(), mtime=0))


if __name__ == "__main__":
    sys.exit(main())
