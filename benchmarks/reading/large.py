"""How much memory and time large texts take, so that both are seen to grow with the size of a text and no faster.

    python -m benchmarks.reading.large [--diagnose] [--megabytes 1 10] [--folder FOLDER] [SHAPE ...]

Each text is read in a process of its own, or diagnosed by the command line. MB/s is by the CPU seconds of reading
alone, or of the whole process that diagnoses. The memory is the most that is resident, with the interpreter and what it
imports. Shapes are those of `benchmarks.logs.text_shapes`, and texts that are never alike: of ever new tables, boxes,
lines and dictionaries. A gigabyte of each of four shapes takes twenty minutes:

    python -m benchmarks.reading.large --diagnose --megabytes 1000 --folder /tmp \
        "stamped Iter [i/N]" "bars with metrics" "printed dicts" "key=value"
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cost import cost_of
from benchmarks.logs.speed import WAYS
from benchmarks.logs.text_shapes import pieces, write_text

USUAL = ("key=value", "bars with metrics", "printed dicts")


def _name(number: int) -> str:
    """Return a word that is another one for each number."""
    letters = ""
    while number:
        number, digit = divmod(number, 26)
        letters += chr(ord("a") + digit)
    return f"x{letters}"


def _tables(number: int) -> str:
    head = f"{_name(number)}  step  loss"
    return f"\n{head}\n" + "".join(f"{row}  {3 * number + row}  0.5\n" for row in range(3))


def _boxes(number: int) -> str:
    name = f"{_name(number):<12}"
    return f"-----------------\n| {name} | {number} |\n| loss | 0.5 |\n| step | {number} |\n-----------------\n"


def _lines(number: int) -> str:
    return f"step {number} loss 0.5 {_name(number)}: {number}.5\n"


def _dicts(number: int) -> str:
    return f"{{'step': {number}, 'loss': 0.5, '{_name(number)}': [1, 2, {number}]}}\n"


HOSTILE = {"ever new tables": _tables, "ever new boxes": _boxes, "ever new lines": _lines, "ever new dicts": _dicts}


def _pieces(shape: str) -> Iterator[str]:
    if shape not in HOSTILE:
        yield from pieces(shape)
    number = 0
    while True:
        number += 1
        yield HOSTILE[shape](number)


def measured(shape: str, megabytes: float, folder: Path, *, diagnosed: bool) -> tuple[str, ...]:
    """Return the row of a text: it is written, read in a process of its own or diagnosed there, and removed."""
    path = write_text(folder / "large.log", _pieces(shape), int(megabytes * 1e6))
    try:
        cost = cost_of(*WAYS["diagnose" if diagnosed else "read"], path)
        size = path.stat().st_size / 1e6
    finally:
        path.unlink()
    records, took = ("", cost.process_cpu) if diagnosed else (f"{cost.answer:,}", cost.cpu)
    return (shape, f"{size:.0f}", records, f"{size / took:.1f}", f"{cost.memory:.0f}")


def main() -> None:
    """Measure the texts and print the table."""
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("benchmarks.reading.large", description=__doc__, formatter_class=about)
    parser.add_argument("--diagnose", action="store_true", help="measure the whole command, not reading alone")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1.0, 10.0], metavar="MB")
    parser.add_argument("--folder", type=Path, help="where the texts are written (default: a temporary folder)")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", default=[*USUAL, *HOSTILE])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        print("| text | MB | records | MB/s | resident MB |\n| --- | --- | --- | --- | --- |")
        for shape in asked.shapes:
            for size in asked.megabytes:
                row = measured(shape, size, Path(folder), diagnosed=asked.diagnose)  # minutes each, if large
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
