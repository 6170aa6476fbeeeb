"""Fuzz every parser, and print what came of it.

    python -m benchmarks.fuzz [--inputs 1000000] [--seed 1] [--jobs 1] [--only NAME] [--keep FOLDER]

Each parser runs in a process of its own, with a limit on memory, on inputs that are made from real ones (`mutate.py`);
an input that leads somewhere new is changed further. What is promised of each input: an answer, or an error of ours, in
at most `LIMIT` seconds; all text in the answer clean and bounded, all numbers finite or tagged (`oracle.py`). Whatever
breaks the promise is printed, and the input kept in the folder. So are the results: a run that was ended goes on there.
"""

from __future__ import annotations

import argparse
import json
import math
import mmap
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.fuzz.mutate import LONGEST, Mutator
from benchmarks.fuzz.oracle import check_error
from benchmarks.fuzz.targets import TARGETS, Target, by_name, inside
from mldebug_mcp.errors import MLDebugError

LIMIT = 10.0
"""Seconds of processor time for one input."""
MEMORY = 12 << 30
"""Bytes of address space for one process; importing torch alone maps several GiB."""


class TooSlowError(BaseException):
    """An input took too long. Not an Exception, for those may be caught on the way."""


@dataclass(slots=True)
class Outcome:
    """What came of the inputs of one parser."""

    name: str
    inputs: int = 0
    answered: int = 0
    refused: int = 0
    paths: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    peak: int = 0
    broken: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Fuzz, print the table, and return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many over all parsers")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=1, help="parsers at a time")
    parser.add_argument("--only", help="one parser, by its name in the table, with all inputs")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz", help="where inputs are kept")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    if options.alone:
        print(json.dumps(asdict(fuzz(by_name(options.only), options.inputs, options.seed, options.keep))))
        return 0
    chosen = [target for target in TARGETS if options.only in (None, target.name)]
    whole = sum(target.share for target in chosen)
    with ThreadPoolExecutor(options.jobs) as pool:
        done = list(
            pool.map(
                lambda one: _apart(one, math.ceil(options.inputs * one.share / whole), options.seed, options.keep),
                chosen,
            )
        )
    _print(done)
    return int(any(one.broken for one in done))


def fuzz(target: Target, inputs: int, seed: str, keep: Path) -> Outcome:
    """Give a parser that many inputs."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _too_slow)
    warnings.simplefilter("ignore")
    outcome, seen = Outcome(target.name), Counter[object]()
    mutator = Mutator(target.seeds(), f"{seed} {target.name}", in_place=target.in_place)
    with tempfile.TemporaryDirectory() as place, inside(Path(place)):
        parse = target.open(Path(place))
        last = _shared(_last(keep, target))
        begun = time.process_time()
        for _ in range(inputs):
            data = mutator.make()
            made = target.wrap(data) if target.wrap is not None else data
            last[:] = made.ljust(len(last), b"\0")[: len(last)]
            started = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            try:
                signature: object = parse(made)
                outcome.answered += 1
            except MLDebugError as error:
                outcome.refused += 1
                signature = re.sub(r"'[^']*'|\S*/\S*|[\d.,]+|\([^)]*\)", "", str(error))[:80]
                _try(outcome, keep, made, lambda error=error: check_error(error))
            except (Exception, TooSlowError) as error:  # noqa: BLE001 - what came out is what is looked for
                signature = _note(outcome, keep, made, error)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            outcome.slowest = max(outcome.slowest, time.process_time() - started)
            seen[signature] += 1
            if seen[signature] == 1:
                mutator.keep(data)
        outcome.seconds = time.process_time() - begun
    outcome.inputs, outcome.paths = inputs, len(seen)
    outcome.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return outcome


def _last(keep: Path, target: Target) -> Path:
    return keep / re.sub(r"\W+", "_", f"last of {target.name}")


def _shared(path: Path) -> mmap.mmap:
    """Return memory that outlives this process as a file: the input that it died of."""
    path.write_bytes(bytes(2 * LONGEST))
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


def _try(outcome: Outcome, keep: Path, data: bytes, check: object) -> None:
    try:
        check()  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001
        _note(outcome, keep, data, error)


def _too_slow(*_: object) -> None:
    raise TooSlowError(f"took more than {LIMIT:g} s")


def _note(outcome: Outcome, keep: Path, data: bytes, error: BaseException) -> str:
    """Keep an input that broke a promise, one for each place."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "mldebug_mcp" in frame.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    what = f"{type(error).__name__} {where}"
    if what not in outcome.broken:
        file = keep / re.sub(r"\W+", "_", f"{outcome.name} {what}")
        file.write_bytes(data)
        outcome.broken[what] = f"{file}: {' '.join(str(error).split())[:300]}"
    return what


def _apart(target: Target, inputs: int, seed: str, keep: Path) -> Outcome:
    """Fuzz in a process of its own, unless an earlier run has; that it dies breaks the promise, too."""
    kept = keep / f"{re.sub(r'[^A-Za-z0-9]+', '_', target.name)}-{inputs}-{seed}.json"
    if kept.is_file():
        return Outcome(**json.loads(kept.read_text(encoding="utf-8")))
    command = [sys.executable, "-m", "benchmarks.fuzz", "--alone", "--only", target.name]
    command += ["--inputs", str(inputs), "--seed", seed, "--keep", str(keep)]
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
        lost = _last(keep, target).rename(keep / re.sub(r"\W+", "_", f"{target.name} died"))
        broken = {f"died ({done.returncode})": f"{lost}: {why[0][:300]}"}
        outcome = Outcome(target.name, inputs, seconds=time.monotonic() - begun, broken=broken)
    else:
        outcome = Outcome(**json.loads(done.stdout.strip().splitlines()[-1]))
    kept.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    print(f"{target.name}: {outcome.inputs:,} inputs, {outcome.seconds:.0f} s", *outcome.broken, file=sys.stderr)
    return outcome


def _print(done: list[Outcome]) -> None:
    print("| parser | inputs | answered | refused | outcomes | per CPU s | slowest (CPU ms) | peak (MiB) | broken |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for one in done:
        rate = one.inputs / max(one.seconds, 1e-9)
        print(
            f"| {one.name} | {one.inputs:,} | {one.answered:,} | {one.refused:,} | {one.paths} | {rate:,.0f} "
            f"| {one.slowest * 1000:.0f} | {one.peak:,} | {len(one.broken)} |"
        )
    inputs, answered, refused = (
        sum(values) for values in zip(*((o.inputs, o.answered, o.refused) for o in done), strict=True)
    )
    broken = sum(len(one.broken) for one in done)
    minutes = sum(one.seconds for one in done) / 60
    print(f"| all | {inputs:,} | {answered:,} | {refused:,} | {sum(one.paths for one in done)} | | | | {broken} |")
    print(f"\n{minutes:.0f} minutes of one core.")
    for one in done:
        for what, told in one.broken.items():
            print(f"{one.name}: {what}: {told}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
