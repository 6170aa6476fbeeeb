"""Fuzz whole verbs and the parsers below them, and print what came of it.

    python -m benchmarks.fuzz [--inputs 1000000] [--seed 1] [--jobs 1] [--minutes N] [--only NAME] [--keep FOLDER]
                              [--served N] [--save-corpus]

Each target runs in a process of its own, forked from one that has imported the verbs (`warm.py`), on inputs that are
made from real ones (`mutate.py`) or by a grammar; an input that leads somewhere new is changed further. What is
promised of each input: an answer, or an error of ours, in at most five seconds of processor time and a gibibyte of
resident memory beyond the start (`meter.py`); all text in the answer clean and bounded, all numbers finite or tagged
(`oracle.py`). Whatever breaks the promise is printed, and the input kept in the folder. So are the results of each of
the rounds that the inputs are given in: a run that was ended, or had no `--minutes` left, goes on there.

`--served N` gives a sample of the inputs to the stdio server too, see `served.py`. `--save-corpus` keeps a few
short texts that led somewhere new and harm no outside library (`benchmarks.harmless`), see `corpus.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from benchmarks.fuzz import corpus
from benchmarks.fuzz.engine import Outcome, last_of, run_round
from benchmarks.fuzz.served import serve
from benchmarks.fuzz.targets import TARGETS, Target

ROUNDS = 2
"""Parts that the inputs of a target are given in, so that all targets have had some when the time is up."""
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["benchmarks.fuzz.warm"])


def main() -> int:
    """Fuzz, print the tables, and return 1 if a promise was broken."""
    options = _options()
    options.keep.mkdir(parents=True, exist_ok=True)
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # as helpers have it: its own claims a gigabyte
    chosen = [target for target in TARGETS if options.only in (None, target.name)]
    outcomes = _all(chosen, options)
    if options.save_corpus:
        corpus.save(chosen, options.keep)
    if options.served:
        outcomes.append(serve(chosen, options.served, options.seed, options.keep))
    _print(outcomes)
    return int(any(one.broken for one in outcomes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many over all targets")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further round after so long")
    parser.add_argument("--only", help="one target, by its name in the table, with all inputs")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "fuzz", help="where inputs are kept")
    parser.add_argument("--served", type=int, default=0, help="how many inputs to give the stdio server, too")
    parser.add_argument("--save-corpus", action="store_true", help="keep inputs that led somewhere new")
    return parser.parse_args()


def _all(chosen: Sequence[Target], options: argparse.Namespace) -> list[Outcome]:
    """Run all rounds of all targets for which there is time, and return what came of each target."""
    whole, until = sum(target.share for target in chosen), time.monotonic() + options.minutes * 60
    outcomes = {target.name: Outcome(target.name) for target in chosen}

    def one(target: Target, number: int) -> Outcome | None:
        inputs = math.ceil(options.inputs * target.share / whole / ROUNDS)
        return _apart(target, number, inputs, options, until)

    for number in range(1, ROUNDS + 1):
        with ThreadPoolExecutor(options.jobs) as pool:
            for outcome in pool.map(lambda target, number=number: one(target, number), chosen):
                if outcome is not None:
                    outcomes[outcome.name].add(outcome)
    return list(outcomes.values())


def _apart(target: Target, number: int, inputs: int, options: argparse.Namespace, until: float) -> Outcome | None:
    """Do a round in a process of its own, unless an earlier run has; that it dies breaks the promise, too."""
    kept = options.keep / f"{corpus.slug(target.name)}-{inputs}-{options.seed}-{number}.json"
    if kept.is_file():
        return Outcome(**json.loads(kept.read_text(encoding="utf-8")))
    if time.monotonic() > until:
        return None
    begun = time.monotonic()
    child = _FORKS.Process(target=run_round, args=(target.name, inputs, f"{options.seed} {number}", options.keep, kept))
    child.start()
    child.join()
    if child.exitcode:
        lost = last_of(options.keep, target).rename(options.keep / f"{corpus.slug(target.name)}_died_{number}")
        outcome = Outcome(target.name, seconds=time.monotonic() - begun, broken={f"died ({child.exitcode})": str(lost)})
        kept.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    else:
        outcome = Outcome(**json.loads(kept.read_text(encoding="utf-8")))
    print(f"{target.name} {number}: {outcome.inputs:,} inputs, {outcome.seconds:.0f} s", file=sys.stderr)
    for what, told in outcome.broken.items():
        print(f"    {what}: {told}", file=sys.stderr)
    return outcome


def _print(done: list[Outcome]) -> None:
    print("| target | inputs | answered | refused | outcomes | per CPU s | slowest (CPU ms) | largest (MiB) | broken |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for one in done:
        rate = one.inputs / max(one.seconds, 1e-9)
        print(
            f"| {one.name} | {one.inputs:,} | {one.answered:,} | {one.refused:,} | {one.paths} | {rate:,.0f} "
            f"| {one.slowest[0] * 1000:.0f} | {one.largest[0]:.0f} | {len(one.broken)} |"
        )
    inputs, answered, refused = (
        sum(values) for values in zip(*((o.inputs, o.answered, o.refused) for o in done), strict=True)
    )
    broken = sum(len(one.broken) for one in done)
    print(f"| all | {inputs:,} | {answered:,} | {refused:,} | {sum(one.paths for one in done)} | | | | {broken} |")
    print(f"\n{sum(one.seconds for one in done) / 60:.0f} minutes of one core.")


if __name__ == "__main__":
    sys.exit(main())
