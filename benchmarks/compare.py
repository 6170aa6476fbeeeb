"""Is `compare` honest? `python -m benchmarks.compare [--trials 200]` simulates pairs of groups of runs.

In each trial two recipes are trained with the same seeds; a result is the recipe's level, what the seed does to either
recipe, and what it does to one of them. It is printed how often a difference is told apart beside the t-test that a
statistician would have run, and how often the interval holds the true difference. Over no difference (effect 0) the
share told apart is the type-I error. Results are normal, or skewed as losses are.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mldebug_mcp.judge.group_comparison import SIGNIFICANCE_LEVEL, contest
from mldebug_mcp.logs.columns import Floats

EFFECTS = (0.0, 0.5, 1.0, 2.0)
"""True differences, in standard deviations of what they are held against."""
SEEDS = (3, 5, 10)
SHARED = 1.0
"""Standard deviation of what a seed does to both recipes; what it does to one of them has 1 / sqrt(2)."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Shares of the trials: told apart, told apart by the t-test, and with the true difference in the interval."""

    told: float
    by_t_test: float
    covered: float


def trials(effect: float, seeds: int, *, paired: bool, skewed: bool, count: int) -> Counted:
    """Simulate pairs of groups and count."""
    draw = np.random.default_rng([int(10 * effect), seeds, paired, skewed])
    found = np.array([_trial(draw, effect, seeds, paired=paired, skewed=skewed) for _ in range(count)], float)
    return Counted(*found.mean(axis=0).tolist())


def _trial(draw: np.random.Generator, effect: float, seeds: int, *, paired: bool, skewed: bool) -> tuple[bool, ...]:
    own = [_noise(draw, seeds, skewed=skewed) / np.sqrt(2) for _ in "ab"]
    common = draw.normal(0, SHARED, seeds)
    spread = 1.0 if paired else float(np.sqrt(SHARED**2 + 0.5))
    others = common if paired else draw.normal(0, SHARED, seeds)
    a, b = common + own[0] + effect * spread, others + own[1]
    answer = contest(a.tolist(), b.tolist(), "loss", higher=False, paired=paired)
    usual = stats.ttest_rel(a, b) if paired else stats.ttest_ind(a, b, equal_var=False)
    covered = answer.low <= effect * spread <= answer.high
    return answer.verdict != "cannot tell", bool(usual.pvalue < SIGNIFICANCE_LEVEL), covered


def _noise(draw: np.random.Generator, count: int, *, skewed: bool) -> Floats:
    """Return noise of standard deviation 1: normal, or of a gamma distribution with skewness 1."""
    return (draw.gamma(4.0, 1.0, count) - 4.0) / 2.0 if skewed else draw.normal(0, 1, count)


def table(count: int) -> Iterator[str]:
    """Yield the lines of the table, and the totals that the promises are about."""
    yield "| results | seeds | effect (sd) | told apart | by the t-test | interval holds the difference |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    zero, covered, gaps = [], [], []
    for paired in (True, False):
        for skewed in (False, True):
            for seeds in SEEDS:
                for effect in EFFECTS:
                    one = trials(effect, seeds, paired=paired, skewed=skewed, count=count)
                    covered.append(one.covered)
                    gaps.append(one.by_t_test - one.told)
                    zero += [] if effect else [one.told]
                    kind = f"{'paired' if paired else 'not paired'}, {'skewed' if skewed else 'normal'}"
                    shares = f"{one.told:.3f} | {one.by_t_test:.3f} | {one.covered:.3f}"
                    yield f"| {kind} | {seeds} | {effect:g} | {shares} |"
    yield (
        f"\ntype-I error {np.mean(zero):.3f} ({len(zero) * count:,} trials), power below that of the t-test by at most "
        f"{max(gaps):.3f}, coverage {np.mean(covered):.3f} ({len(covered) * count:,} trials)"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200, help="pairs of groups for each line (default: 200)")
    for line in table(parser.parse_args().trials):
        print(line, flush=True)


if __name__ == "__main__":
    main()
