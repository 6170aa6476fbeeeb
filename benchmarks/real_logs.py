"""Print how each log of a folder is read: `python benchmarks/real_logs.py DIR`.

DIR holds an `index.jsonl`: one object per log with its `file` (relative to DIR) and `n_records`, the records that a
person counted in it. A log that is refused is listed with the reason.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import read_run

TOLERANCE = 0.02


def main(folder: Path) -> None:
    """Print one line per log and a last line with the sums."""
    agree = differ = refused = 0
    for line in (folder / "index.jsonl").read_text().splitlines():
        entry = json.loads(line)
        start = time.perf_counter()
        name, counted = Path(entry["file"]).name, int(entry["n_records"])
        try:
            run = read_run(folder / entry["file"])
        except InputError as error:
            refused += 1
            print(f"{name[:38]:38} {counted:>6} refused: {str(error).replace(str(folder), '.')}")
            continue
        close = abs(run.records - counted) <= TOLERANCE * counted
        agree, differ = agree + close, differ + (not close)
        seconds = time.perf_counter() - start
        print(
            f"{name[:38]:38} {counted:>6} {run.records:>6} {'' if close else '*':1} {run.formats[0]:16} "
            f"{run.step_name} {run.first_step:g}..{run.last_step:g} segments {len(run.segments)} "
            f"metrics {len(run.series)} errors {len(run.messages)} {seconds:.2f} s"
        )
    print(f"{agree} agree within {TOLERANCE:.0%}, {differ} differ (*), {refused} refused")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
