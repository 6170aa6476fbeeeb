"""Which runs a reader gets: drawn by chance among the labelled, and copied under names that tell nothing."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.foreign.labels import Truth, truth
from benchmarks.labelled import Labelled


@dataclass(frozen=True)
class Drawn:
    """A labelled run under the name by which a reader knows it."""

    name: str
    one: Labelled
    truth: Truth


def draw(ones: Sequence[Labelled], count: int, seed: int) -> list[Drawn]:
    """Return so many of the runs whose label says what is right, all of them where there are fewer, in any order."""
    known = [(one, right) for one in sorted(ones, key=lambda one: str(one.path)) if (right := truth(one)) is not None]
    taken = random.Random(seed).sample(known, min(count, len(known)))  # noqa: S311 - a draw that can be repeated
    return [Drawn(f"run-{at:02}", one, right) for at, (one, right) in enumerate(taken, 1)]


def copied(drawn: Drawn, into: Path) -> Path:
    """Copy a run into a folder under its neutral name; of the name of a file the last suffix stays, as it may matter.

    Raises:
        SystemExit: the run is not there.
    """
    source = drawn.one.path
    if source.is_dir():
        return Path(shutil.copytree(source, into / drawn.name))
    if not source.is_file():
        raise SystemExit(f"{source}: no such log, though the index of its folder names it")
    return Path(shutil.copy(source, into / f"{drawn.name}{source.suffix}"))
