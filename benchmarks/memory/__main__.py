"""Measure `check_memory` beside torch's `_memory_viz` and a plain `pickle.load`, each in a process of its own.

    python -m benchmarks.memory [--events 200000] [--linear] [--only-ours]

Two comparisons on one file. The commands as users run them: `mldebug-mcp memory` against `python -m
torch.cuda._memory_viz stats` plus `trace` (target: half of the time). And the work alone, without imports and with the
catalogue of causes read, as in a running server: against `segsum` plus `trace` of the same file, and its peak memory
against that of a `pickle.load` (target: one and a half times).

Times are CPU seconds, because wall time says more about what else runs. `--linear` prints the cost from 100,000 to
800,000 events; `--only-ours` leaves out the others, which need more memory.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.cost import cost_of
from benchmarks.memory.measured import LIBRARY_FRAMES, PROGRAMS, work, write_snapshot

REPEAT = 3

_TORCH = (
    "import runpy\nsys.argv = ['', {!r}, sys.argv[1]]\nrunpy.run_module('torch.cuda._memory_viz', run_name='__main__')"
)
_COMMANDS = {
    "_memory_viz stats": _TORCH.format("stats"),
    "_memory_viz trace": _TORCH.format("trace"),
    "mldebug-mcp memory": "from mldebug_mcp.cli import main\nmain(['memory', sys.argv[1]])",
}


def compare(path: Path) -> None:
    """Measure everything on one file in turn, keep the best of three, and print the ratios."""
    commands = {
        name: min(cost_of("", code, path).process_cpu for _ in range(REPEAT)) for name, code in _COMMANDS.items()
    }
    for name, seconds in commands.items():
        print(f"  {name:20} {seconds:6.2f} s")
    torch = commands["_memory_viz stats"] + commands["_memory_viz trace"]
    print(f"  the command takes {commands['mldebug-mcp memory'] / torch:.2f} of the time of stats + trace")
    best: dict[str, tuple[float, float]] = {}
    for _ in range(REPEAT):
        for program in PROGRAMS:
            known, new = best.get(program, (float("inf"), float("inf"))), work(program, path)
            best[program] = (min(known[0], new[0]), min(known[1], new[1]))
    for program, (seconds, mebibytes) in best.items():
        print(f"  {program:20} {seconds:6.2f} s {mebibytes:6.0f} MiB")
    ours = best["check_memory"]
    print(f"  the work takes {ours[0] / best['segsum + trace'][0]:.2f} of the time of segsum + trace,")
    print(f"  and {ours[1] / best['pickle.load'][1]:.2f} of the memory of the load")


def main() -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--depth", type=int, default=LIBRARY_FRAMES, help="frames in each stack")
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--only-ours", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        for events in (100_000, 200_000, 400_000, 800_000) if options.linear else (options.events,):
            count = write_snapshot(path, events, options.depth)
            print(f"{count:,} events, {path.stat().st_size / 2**20:,.0f} MiB")
            if options.linear or options.only_ours:
                seconds, mebibytes = work("check_memory", path)
                print(f"  {seconds:.2f} s, {seconds / count * 1e6:.2f} µs per event, {mebibytes:,.0f} MiB")
            else:
                compare(path)


if __name__ == "__main__":
    main()
