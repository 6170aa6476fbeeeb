"""Inputs that led somewhere new: those of a run in a folder of its own, and in the repository a few short texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.fuzz.targets import Target

KEPT = Path(__file__).parent / "corpus.json"
"""Texts by the name of their target, which the tests replay. Binary inputs are made anew from seeds."""
LONGEST_INPUT = 200
MOST_INPUTS = 3
"""Of one target."""
_READABLE = re.compile(rb"[\n -~]*[!-~][\n -~]*")


def slug(name: str) -> str:
    """Return the name of a target as part of a file's."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name)


def found_file(name: str, folder: Path) -> Path:
    """Return the file in which the runs of a folder pass on what they found for a target."""
    return folder / f"{slug(name)}.json"


def read(path: Path) -> list[bytes]:
    """Return the inputs in a file; none if there is no such file."""
    if not path.is_file():
        return []
    return [text.encode(errors="surrogateescape") for text in json.loads(path.read_text(encoding="utf-8"))]


def write(path: Path, inputs: Iterable[bytes]) -> None:
    """Write inputs into a file."""
    path.write_text(json.dumps([data.decode(errors="surrogateescape") for data in inputs]), encoding="utf-8")


def kept(name: str) -> list[bytes]:
    """Return the inputs that the repository keeps of a target."""
    return [text.encode() for text in json.loads(KEPT.read_text(encoding="utf-8")).get(name, ())]


def save(targets: Sequence[Target], folder: Path) -> None:
    """Keep in the repository the shortest readable inputs that a run found and that harm no outside library."""
    from benchmarks.harmless import harm

    chosen: dict[str, list[str]] = json.loads(KEPT.read_text(encoding="utf-8"))
    for target in targets:
        inputs = sorted(filter(_is_readable, read(found_file(target.name, folder))), key=lambda data: (len(data), data))
        harmless = [data.decode() for data in inputs if not harm(target.file, target.made(data))]
        if harmless:
            chosen[target.name] = harmless[:MOST_INPUTS]
    KEPT.write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")


def _is_readable(data: bytes) -> bool:
    return len(data) <= LONGEST_INPUT and _READABLE.fullmatch(data) is not None
