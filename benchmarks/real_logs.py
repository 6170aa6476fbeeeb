"""Print how each log of a folder is read: `python benchmarks/real_logs.py DIR`.

DIR holds an `index.jsonl`: one object per log with its `file` (relative to DIR) and `n_records`, the records that a
person counted in it. A log that is refused is listed with the reason. Where our records are others than the index's,
the line says what in the file there are as many of: what the index may have counted.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.decoding.tfrecord import Records
from mldebug_mcp.logs.lines.counters import find_counters
from mldebug_mcp.logs.source import LogFile

TOLERANCE = 0.02

_LOSS = re.compile(r"(?:loss|reward)[a-z_]*[ :=|]+(?:nan|inf|[-+.\d]+)", re.IGNORECASE)
_ERROR = re.compile(r"error|traceback|out of memory", re.IGNORECASE)
_ALONE = re.compile(r"error", re.IGNORECASE)


def _lines(run: Run, file: LogFile) -> int:
    del run
    return sum(bool(line.strip()) for line in file.lines())


def _found(pattern: re.Pattern[str]) -> Callable[[Run, LogFile], int]:
    return lambda _, file: sum(len(pattern.findall(line)) for line in file.lines())


def _headings(run: Run, file: LogFile) -> int:
    del run
    return sum(bool(find_counters(line).values) for line in file.lines())


def _events(run: Run, file: LogFile) -> int:
    del run
    records = Records()
    records.find(file.path.read_bytes())
    return records.count


def _skipped_steps(run: Run, file: LogFile) -> int:
    del file
    return run.records + len(run.messages)


TEXT: tuple[tuple[str, Callable[[Run, LogFile], int]], ...] = (
    ("lines", _lines),
    ("records and lines that read like errors", _skipped_steps),
    ("losses and rewards with a number, several in a record", _found(_LOSS)),
    ("lines that name a step, the last without a metric", _headings),
    ("words for errors, in a log that is a crash", _found(_ERROR)),
    ("times the word error, in a log that is a crash", _found(_ALONE)),
)
BINARY = (("events, of which several tell one step", _events),)
MANY = range(2, 6)


def why(run: Run, file: LogFile, counted: int) -> str:
    """Return what there are as many of in a log as the index has records."""
    for what, count in BINARY if file.binary else TEXT:
        if close(count(run, file), counted):
            return f"{counted} {what}"
    several = next((k for k in MANY if close(k * run.records, counted)), None)
    if several:
        return f"{several} for each of the records"
    return "no record of training in it, only a crash" if not run.records else "nothing that we count"


def close(ours: int, counted: int) -> bool:
    """Say whether a count agrees with the index."""
    return abs(ours - counted) <= TOLERANCE * counted


def main(folder: Path) -> None:
    """Print one line per log and a last line with the sums."""
    agree = differ = refused = 0
    for line in (folder / "index.jsonl").read_text().splitlines():
        entry = json.loads(line)
        start = time.perf_counter()
        path, counted = folder / entry["file"], int(entry["n_records"])
        try:
            run = read_run(path)
        except InputError as error:
            refused += 1
            print(f"{path.name[:38]:38} {counted:>6} refused: {str(error).replace(str(folder), '.')}")
            continue
        seconds = time.perf_counter() - start
        agrees = close(run.records, counted)
        agree, differ = agree + agrees, differ + (not agrees)
        reason = "" if agrees else f" | the index counts {why(run, LogFile.open(path), counted)}"
        print(
            f"{path.name[:38]:38} {counted:>6} {run.records:>6} {'' if agrees else '*':1} {run.formats[0]:16} "
            f"{run.step_name} {run.first_step:g}..{run.last_step:g} segments {len(run.segments)} "
            f"metrics {len(run.series)} errors {len(run.messages)} {seconds:.2f} s{reason}"
        )
    print(f"{agree} agree within {TOLERANCE:.0%}, {differ} differ (*), {refused} refused")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
