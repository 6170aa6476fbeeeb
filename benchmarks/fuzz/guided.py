"""Fuzz the same parsers with atheris, which is guided by the lines that an input reaches.

    pip install atheris && python -m benchmarks.fuzz.guided [--runs 5000] [--only NAME] [--keep FOLDER]

Each parser runs in a process of its own, from the same seeds and under the same promise as in
`python -m benchmarks.fuzz`: an answer, or an error of ours, within the time limit. An input that breaks it is kept in
the folder.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.fuzz.mutate import LONGEST

if TYPE_CHECKING:
    from benchmarks.fuzz.targets import Target

LIMIT = 10
"""Seconds for one input."""
MEMORY_MIB = 4096


def main() -> int:
    """Fuzz each parser in turn, print a table, and return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5000, help="inputs for each parser")
    parser.add_argument("--only", help="one parser, by its name in the table")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz", help="where inputs are kept")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    if options.alone:
        guided(options.only, options.runs, options.keep)
        return 0
    from benchmarks.fuzz.targets import TARGETS

    names = [target.name for target in TARGETS if options.only in (None, target.name)]
    print("| parser | inputs | lines and branches reached | broken |\n| --- | ---: | ---: | ---: |")
    return max(_apart(name, options.runs, options.keep) for name in names)


def guided(name: str, runs: int, keep: Path) -> None:
    """Fuzz one parser in this process, which ends with it."""
    import atheris  # its own install: it is no part of the test environment

    with atheris.instrument_imports(include=["mldebug_mcp"]):
        from benchmarks.fuzz.targets import by_name, inside

        target = by_name(name)
        with tempfile.TemporaryDirectory() as corpus, tempfile.TemporaryDirectory() as place, inside(Path(place)):
            for number, seed in enumerate(target.seeds()):
                (Path(corpus) / str(number)).write_bytes(seed[:LONGEST])
            limits = [f"-runs={runs}", f"-max_len={LONGEST}", f"-timeout={LIMIT}", f"-rss_limit_mb={MEMORY_MIB}"]
            atheris.Setup([sys.argv[0], *limits, "-seed=1", f"-artifact_prefix={keep}/", corpus], _one(target, place))
            atheris.Fuzz()


def _one(target: Target, place: str) -> Callable[[bytes], None]:
    from mldebug_mcp.errors import MLDebugError

    parse = target.open(Path(place))

    def one(data: bytes) -> None:
        with suppress(MLDebugError):
            parse(target.wrap(data) if target.wrap is not None else data)

    return one


def _apart(name: str, runs: int, keep: Path) -> int:
    command = [sys.executable, "-m", "benchmarks.fuzz.guided", "--alone", "--only", name]
    done = subprocess.run([*command, "--runs", str(runs), "--keep", str(keep)], capture_output=True, check=False)
    said = done.stderr.decode(errors="replace")
    reached = re.findall(r"cov: (\d+) ft: \d+", said)
    inputs = re.findall(r"#(\d+)\s", said)
    broken = int(done.returncode != 0)
    print(f"| {name} | {int(inputs[-1]) if inputs else 0:,} | {reached[-1] if reached else 0} | {broken} |", flush=True)
    if broken:
        print(f"{name}: {' '.join(said.split())[-600:]}", file=sys.stderr)
    return broken


if __name__ == "__main__":
    sys.exit(main())
