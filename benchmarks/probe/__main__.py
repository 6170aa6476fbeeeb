"""Probe pipelines with faults and without, each with several seeds: `python -m benchmarks.probe [NAME ...]`.

Those of `faults.py` and `healthy.py` are written as users write them, in plain torch and with small random models. With
`--all` those of `tests/probe` come first, which the tests hold with one seed. What is right for each was written down
before the probe was asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping

from tests.probe import odd_pipelines, pipelines

from benchmarks.probe import faults, healthy
from benchmarks.probe.kit import CASES, Case
from mldebug_mcp import probe_overfit

MATRIX = (faults, healthy)
"""Importing them enters their pipelines."""
SEEDS = 3
TIME_LIMIT_SECONDS = 60
SOUND = ({"memorised"}, {"healthy"})


def of_the_tests() -> Iterator[Case]:
    """Yield the pipelines of the tests."""
    plain = {name: ({verdict}, {cause}) for name, (verdict, cause) in pipelines.BROKEN.items()}
    odd = {name: (verdicts, {cause}) for name, (verdicts, cause) in odd_pipelines.BROKEN.items()}
    tables: Mapping[str, Mapping[str, tuple[set[str], set[str]]]] = {
        pipelines.__file__: plain | dict.fromkeys(pipelines.HEALTHY, SOUND),
        odd_pipelines.__file__: odd | dict.fromkeys(odd_pipelines.HEALTHY, SOUND),
    }
    for file, table in tables.items():
        for name, right in table.items():
            yield Case(file, name, *right)


def main(arguments: Iterable[str] | None = None) -> None:
    """Print verdicts and leading causes of each pipeline with each seed, then how many are right."""
    parser = argparse.ArgumentParser("benchmarks.probe", description=__doc__)
    parser.add_argument("names", nargs="*", help="pipelines (default: those of the matrix)")
    parser.add_argument("--all", action="store_true", help="those of the tests, too")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds of each pipeline (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT_SECONDS, help="seconds (default %(default)s)")
    options = parser.parse_args(None if arguments is None else list(arguments))
    cases = [*(of_the_tests() if options.all or options.names else ()), *CASES.values()]
    chosen = [case for case in cases if not options.names or case.name in options.names]
    count = right_verdicts = right_causes = accused = agreeing = 0
    for case in chosen:
        given: list[tuple[str, str]] = []
        slowest = 0.0
        for seed in range(options.seeds):
            result = probe_overfit(
                entry=f"{case.file}:{case.name}", device="cpu", seed=seed, time_limit=options.time_limit
            )
            given.append((result.verdict, result.causes[0].cause if result.causes else ""))
            slowest = max(slowest, result.seconds)
        right = [(verdict in case.verdicts, cause in case.causes) for verdict, cause in given]
        count += len(given)
        right_verdicts += sum(verdict for verdict, _ in right)
        right_causes += sum(cause for _, cause in right)
        accused += sum(not cause for _, cause in right) if case.is_healthy else 0
        agreeing += len({verdict for verdict, _ in given}) == 1
        answers = ", ".join(f"{verdict} {cause or '-'}" for verdict, cause in dict.fromkeys(given))
        print(f"{'' if all(map(all, right)) else 'WRONG':5} {case.name:40} {slowest:5.1f} s  {answers}", flush=True)
    print(
        f"verdict {right_verdicts}/{count}, cause {right_causes}/{count}, healthy accused {accused}, "
        f"seeds agree on the verdict {agreeing}/{len(chosen)}"
    )


if __name__ == "__main__":
    main()
