"""What the scripts beside this one share: where samples are kept, what a terminal would have shown, a text to learn.

Each script runs one framework and is started at the repository's root: `python -m tests.logs.samples.make.NAME`. The
tests read what the scripts have left and need none of the frameworks.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SAMPLES = Path(__file__).parent.parent
_PLACE = re.compile(r"/(?:home|root|tmp|Users|work)[\w-]*/[^\s:'\"]*(?=/)")


def folder_of(framework: str) -> Path:
    """Return the empty folder in which a framework's samples are kept."""
    folder = SAMPLES / framework
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@contextmanager
def terminal(log: Path) -> Iterator[None]:
    """Send what the process prints to a file, as `python train.py > log 2>&1` does with an unbuffered Python.

    The names of temporary folders and of installed packages are taken out of it afterwards.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in enumerate(kept, start=1):
                os.dup2(descriptor, number)
                os.close(descriptor)
    without_places(log)


def without_places(log: Path) -> None:
    """Take the names of this machine's folders out of a text."""
    text = log.read_bytes().decode()
    text = text.replace(tempfile.gettempdir(), "").replace(str(Path.home()), "")
    log.write_text(_PLACE.sub("", text), newline="")


def tell(folder: Path) -> None:
    """Print what was made."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            print(f"{path.relative_to(SAMPLES)}: {path.stat().st_size:,} bytes")


def sentences(count: int, length: int, seed: int = 0) -> list[list[int]]:
    """Return sequences of token ids below 64 that count up by a step of their own, one token in eight at random."""
    import random

    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        at, step = draw.randrange(64), draw.choice((1, 3, 5))
        row = []
        for _ in range(length):
            row.append(draw.randrange(64) if draw.random() < 1 / 8 else at)
            at = (at + step) % 64
        rows.append(row)
    return rows
