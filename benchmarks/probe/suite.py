"""Probe every pipeline of the tests in a process of its own: `python -m benchmarks.probe.suite [NAME ...]`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.probe.pipelines import BROKEN, HEALTHY

from mldebug_mcp import probe_overfit

PIPELINES = Path(__file__).parents[2] / "tests" / "probe" / "pipelines.py"


def main(names: list[str]) -> None:
    """Print verdict, leading cause and seconds of each pipeline, and how many are right."""
    expected = BROKEN | dict.fromkeys(HEALTHY, ("memorised", "healthy"))
    right_verdict = right_cause = 0
    slowest = 0.0
    chosen = names or list(expected)
    for name in chosen:
        result = probe_overfit(entry=f"{PIPELINES}:{name}", device="cpu")
        cause = result.causes[0].cause if result.causes else "-"
        verdict_fits, cause_fits = result.verdict == expected[name][0], cause == expected[name][1]
        right_verdict, right_cause = right_verdict + verdict_fits, right_cause + cause_fits
        slowest = max(slowest, result.seconds)
        mark = "" if verdict_fits and cause_fits else f"  expected {expected[name]}"
        print(f"{name:40} {result.verdict:13} {cause:22} {result.seconds:5.1f} s{mark}")
    print(f"verdict {right_verdict}/{len(chosen)}, leading cause {right_cause}/{len(chosen)}, slowest {slowest:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
