"""Probe every pipeline of the tests in a process of its own: `python -m benchmarks.probe.suite [NAME ...]`.

Those of unusual kinds are probed with three seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.probe import odd_pipelines, pipelines

from mldebug_mcp import probe_overfit

FOLDER = Path(__file__).parents[2] / "tests" / "probe"
SEEDS = range(3)
HEALTHY = ({"memorised"}, "healthy")
EXPECTED = (
    {name: ({verdict}, cause) for name, (verdict, cause) in pipelines.BROKEN.items()}
    | dict.fromkeys(pipelines.HEALTHY, HEALTHY)
    | odd_pipelines.BROKEN
    | dict.fromkeys(odd_pipelines.HEALTHY, HEALTHY)
)
ODD = {*odd_pipelines.BROKEN, *odd_pipelines.HEALTHY}


def main(names: list[str]) -> None:
    """Print verdict, leading cause and seconds of each pipeline, and how many are right."""
    right_verdict = right_cause = 0
    slowest = 0.0
    chosen = [(name, seed) for name in names or EXPECTED for seed in (SEEDS if name in ODD else [0])]
    for name, seed in chosen:
        file = FOLDER / ("odd_pipelines.py" if name in ODD else "pipelines.py")
        result = probe_overfit(entry=f"{file}:{name}", device="cpu", seed=seed)
        cause = result.causes[0].cause if result.causes else "-"
        verdicts, expected = EXPECTED[name]
        verdict_fits, cause_fits = result.verdict in verdicts, cause == expected
        right_verdict, right_cause = right_verdict + verdict_fits, right_cause + cause_fits
        slowest = max(slowest, result.seconds)
        mark = "" if verdict_fits and cause_fits else f"  expected {' or '.join(sorted(verdicts))}, {expected}"
        print(f"{name:40} {result.verdict:13} {cause:22} {result.seconds:5.1f} s{mark}")
    print(f"verdict {right_verdict}/{len(chosen)}, leading cause {right_cause}/{len(chosen)}, slowest {slowest:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
