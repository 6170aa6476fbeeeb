"""How often do symptoms of a log raise false alarms, and how often are they missed?

Simulated healthy runs of many kinds, and the same runs with spikes, divergences and plateaus put into them. Run
`python -m benchmarks.symptoms [SEED]` at the root of the repository; it prints two tables and takes under a minute.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.healthy_runs import FAMILIES, Floats, Generator, draw_run, healthy, noise_of, with_loss
from mldebug_mcp.checks import symptoms
from mldebug_mcp.checks.check import judge
from mldebug_mcp.logs.run import Run
from mldebug_mcp.models import Finding, State

EACH = 24
"""Healthy runs per family."""
FAULTS = 150
"""Faulty runs per kind of fault."""
CLEAR = 10.0
"""Standard deviations of noise above which a jump counts as clearly visible."""


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser("benchmarks.symptoms", description="Count false alarms and misses of symptoms.")
    parser.add_argument("seed", type=int, nargs="?", default=1, help="of the simulated curves (default 1)")
    seed = parser.parse_args().seed
    false_alarms(seed)
    missed(seed)


def false_alarms(seed: int) -> None:
    """Print how often each symptom is present on healthy runs."""
    present: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    where: defaultdict[str, Counter[str]] = defaultdict(Counter)
    runs = 0
    for family, run in healthy(seed, EACH):
        runs += 1
        for name, one in symptoms().items():
            finding, broke = judge(one, run)
            assert broke is None, broke
            judged[name] += finding.state is not State.UNKNOWN
            if finding.state is State.PRESENT:
                present[name] += 1
                where[name][family] += 1
    print(f"False alarms on {runs} healthy runs (share of those on which the symptom can be judged)")
    for name in symptoms():
        if judged[name]:
            families = ", ".join(f"{family} {count}" for family, count in where[name].most_common(4))
            print(f"  {name:24} {present[name] / judged[name]:6.1%} of {judged[name]:4}  {families}")


def missed(seed: int) -> None:
    """Print how often faults that are put into healthy runs are found, and how far off the onset is."""
    print("\nFound, where clearly visible")
    for name, (symptom, inject) in FAULTS_TO_INJECT.items():
        found, off = [], []
        for run, onset in inject(np.random.default_rng([seed, len(name)])):
            finding, _ = judge(symptoms()[symptom], run)
            found.append(finding.state is State.PRESENT)
            if found[-1] and onset is not None:
                off.append(_onset_error(finding, run, onset))
        near = f", onset within 2 % of the run in {np.mean(np.array(off) <= 0.02):.0%}" if off else ""
        print(f"  {name:24} {np.mean(found):6.1%} of {len(found):4}{near}")


def _onset_error(finding: Finding, run: Run, onset: int) -> float:
    """Return by how much of the run's length the onset is off; within two records counts as nothing."""
    step = run["loss"].step
    records = int(np.argmin(np.abs(step - finding.steps[0]))) - onset
    return max(0, abs(records) - 2) / len(step)


def _long_runs(draw: Generator, least: int = 60) -> Iterator[tuple[Run, Floats, float]]:
    """Yield healthy runs with at least `least` records, their loss, and by what share of the level it jumps clearly.

    That is 10 standard deviations of the noise, or half again as far as it ever jumps by itself.
    """
    families = [one for one in FAMILIES if one.counts[0] >= least and one.kind != "diffusion"]
    for number in range(FAULTS):
        family = families[number % len(families)]
        run = draw_run(family, draw)
        loss = run["loss"].value
        excess = np.expm1(np.log(loss) - _running_median(np.log(loss)))
        yield run, loss, max(CLEAR * float(np.std(excess)), 1.5 * float(excess.max())) + 1e-6


def _spikes(draw: Generator) -> Iterator[tuple[Run, int | None]]:
    for run, loss, clear in _long_runs(draw):
        count = len(loss)
        at = int(draw.uniform(0.1, 0.85) * count)
        width = int(draw.integers(1, min(30, max(2, count // 10)) + 1))
        least = max(1.3, 1 + clear)
        factor = float(np.exp(draw.uniform(np.log(least), np.log(max(10.0, 2 * least)))))
        progress = float(loss[:3].mean() - loss.min())
        local = float(np.median(loss[max(0, at - 10) : at]))
        # Near zero loss, a large factor is nothing to see.
        if (factor - 1) * local < 0.1 * progress:
            factor = 1 + 0.1 * progress / local
        bump = np.ones(count)
        length = min(width, count - at)
        shape = np.ones(length) if draw.random() < 0.5 else np.exp(-np.arange(length) / max(width / 3, 1))
        bump[at : at + length] += (factor - 1) * shape
        yield with_loss(run, loss * bump), at


def _short_spikes(draw: Generator) -> Iterator[tuple[Run, int | None]]:
    for _ in range(FAULTS):
        count = int(draw.integers(8, 21))
        level = draw.uniform(1.5, 8) * np.exp(-0.02 * np.arange(count))
        loss = level * (1 + draw.uniform(0.002, 0.03) * noise_of("normal", count, draw))
        at = int(draw.integers(3, count - 1))
        loss[at] *= draw.uniform(1.8, 4)
        run = draw_run(next(one for one in FAMILIES if one.name == "fine-tuning, excerpt"), draw)
        yield _only_loss(run, loss), at


def _only_loss(run: Run, loss: Floats) -> Run:
    from tests.runs import run_of

    return run_of(loss=loss, kind=run.kind)


def _divergences(draw: Generator) -> Iterator[tuple[Run, int | None]]:
    for run, loss, clear in _long_runs(draw):
        count = len(loss)
        at = int(draw.uniform(0.2, 0.9) * count)
        after = np.arange(count - at)
        lasting = draw.uniform(0.02, 0.5) * count
        rise = np.minimum(after / max(lasting, 1), 1)
        base = np.concatenate([loss[:at], loss[at:] / loss[at:] * np.median(loss[max(0, at - 5) : at + 1])])
        progress = float(loss[:3].mean() - base[at]) / float(base[at])
        top = max(0.3, clear, 0.4 * progress) * draw.uniform(1, 4)
        wobble = loss / np.exp(_running_median(np.log(loss)))
        curve = base.copy()
        curve[at:] *= (1 + top * rise) * wobble[at:]
        if count - at >= 5 and rise[-3] > 0.7:
            yield with_loss(run, curve), at


def _running_median(values: Floats) -> Floats:
    return np.array([np.median(values[max(0, i - 5) : i + 6]) for i in range(len(values))])


def _plateaus(draw: Generator) -> Iterator[tuple[Run, int | None]]:
    for run, loss, clear in _long_runs(draw):
        noise = clear / CLEAR
        if noise < 0.1:
            flat: NDArray[np.float64] = float(np.median(loss[:5])) * np.exp(noise * noise_of("normal", len(loss), draw))
            yield with_loss(run, flat), None


FAULTS_TO_INJECT: dict[str, tuple[str, Callable[[Generator], Iterator[tuple[Run, int | None]]]]] = {
    "spike": ("loss_spike", _spikes),
    "spike in 8-20 records": ("loss_spike", _short_spikes),
    "divergence": ("loss_divergence", _divergences),
    "plateau": ("loss_plateau", _plateaus),
}


if __name__ == "__main__":
    main()
