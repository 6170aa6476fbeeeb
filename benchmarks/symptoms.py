"""How often do symptoms of a log raise false alarms, and how often are they missed?

Simulated healthy runs of many kinds, and the same runs with spikes, divergences and plateaus put into them. Run
`python -m benchmarks.symptoms [SEED]` at the root of the repository; it prints two tables and takes under a minute.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks import symptoms
from mldebug_mcp.checks.check import judge
from mldebug_mcp.logs.run import Run, Segment, Series
from mldebug_mcp.logs.settings import Scalar, Settings
from mldebug_mcp.models import Finding, State

Floats = NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class Shape:
    """A noiseless loss curve and the schedule that made it, each of shape (n,)."""

    loss: Floats
    rate: Floats


def warmup_cosine(count: int, peak: float, warmup: float = 0.05) -> Floats:
    """Return a learning rate that rises over a share `warmup` of the run and falls as a cosine."""
    at = (np.arange(count) + 1) / count
    return np.asarray(
        peak * np.where(at < warmup, at / warmup, 0.5 + 0.5 * np.cos(np.pi * (at - warmup) / (1 - warmup)))
    )


def pretraining(count: int, draw: Generator) -> Shape:
    """A power law from ln(vocabulary)."""
    ceiling, floor = draw.uniform(9.0, 11.8), draw.uniform(2.0, 3.2)
    offset, power = draw.uniform(0.002, 0.02), draw.uniform(0.3, 0.7)
    at = (np.arange(count) + 1) / count
    fall = (1 + at / offset) ** -power
    return Shape(floor + (ceiling - floor) * fall, warmup_cosine(count, draw.choice([1e-4, 3e-4, 6e-4, 1e-3])))


def warmup_stable_decay(count: int, draw: Generator) -> Shape:
    """A power law whose learning rate stays up and falls over the last tenth, and the loss with it."""
    shape = pretraining(count, draw)
    at = (np.arange(count) + 1) / count
    last = draw.uniform(0.8, 0.92)
    falling = np.clip((1 - at) / (1 - last), 0, 1)
    rate = float(shape.rate.max()) * np.minimum(at / 0.02, 1) * falling
    return Shape(shape.loss - draw.uniform(0.1, 0.3) * (1 - falling), rate)


def fine_tuning(count: int, draw: Generator) -> Shape:
    """An exponential fall of a fifth to two thirds from a level of 0.8 to 3."""
    start = draw.uniform(0.8, 3.0)
    end = start * draw.uniform(0.35, 0.8)
    at = np.arange(count) / count
    rate = np.linspace(draw.choice([2e-5, 1e-4, 2e-4]), 0, count)
    return Shape(end + (start - end) * np.exp(-at * draw.uniform(3, 20)), rate)


def done_fine_tuning(count: int, draw: Generator) -> Shape:
    """A fast fall by a tenth to a third, and a long stretch at the level that the data have."""
    start = draw.uniform(0.8, 2.5)
    end = start * draw.uniform(0.7, 0.9)
    at = np.arange(count) / count
    return Shape(
        end + (start - end) * np.exp(-at * draw.uniform(20, 60)), warmup_cosine(count, draw.choice([1e-5, 2e-4]))
    )


def one_cycle(count: int, draw: Generator) -> Shape:
    """Classification with one-cycle: a shallow middle while the rate is high, a fall at the end."""
    at = np.arange(count) / count
    start = float(np.log(draw.choice([10, 100, 1000])))
    rate = draw.uniform(0.01, 0.4) * np.where(
        at < 0.3, 0.04 + 0.96 * at / 0.3, 0.5 + 0.5 * np.cos(np.pi * (at - 0.3) / 0.7)
    )
    fall = 0.45 * (1 - np.exp(-at * 12)) + 0.4 * at**2 - 0.04 * np.sin(np.pi * np.clip(at / 0.5, 0, 1))
    return Shape(start * (1 - fall), rate)


def step_decay(count: int, draw: Generator) -> Shape:
    """Classification whose rate falls tenfold twice, and the loss with it."""
    at = np.arange(count) / count
    start = float(np.log(draw.choice([10, 100, 1000])))
    stage = (at > 0.5).astype(float) + (at > 0.75)
    fall = 0.5 * (1 - np.exp(-at * draw.uniform(8, 20))) + 0.15 * stage
    return Shape(start * (1 - fall), 0.1 * 0.1**stage)


def regression(count: int, draw: Generator) -> Shape:
    """A mean squared error that falls by several orders of magnitude."""
    at = np.arange(count) / count
    top, orders = 10 ** draw.uniform(-1, 3), draw.uniform(1, 4)
    return Shape(top * 10 ** (-orders * (1 - np.exp(-4 * at))), np.full(count, 1e-3))


def diffusion(count: int, draw: Generator) -> Shape:
    """A noise-prediction loss: a fast fall from 1, then hardly any."""
    at = (np.arange(count) + 1) / count
    floor = draw.uniform(0.02, 0.15)
    return Shape(floor + (1 - floor) * (1 + at * draw.uniform(100, 1000)) ** -1.0, np.full(count, 1e-4))


@dataclass(frozen=True, slots=True)
class Family:
    """How runs of one family are drawn: curve, lengths in records, kind, relative noise, and steps per record."""

    name: str
    shape: Callable[[int, Generator], Shape]
    counts: tuple[int, int]
    kind: str = "unknown"
    noise: tuple[float, float] = (0.003, 0.05)
    tails: tuple[str, ...] = ("normal", "lognormal", "t3")


FAMILIES = (
    Family("pretraining", pretraining, (100, 3000), "pretraining", (0.003, 0.03), ("normal", "t3")),
    Family("wsd", warmup_stable_decay, (100, 3000), "pretraining", (0.003, 0.03), ("normal", "t3")),
    Family("pretraining, averaged", pretraining, (200, 2000), "pretraining", (0.003, 0.02), ("ar1",)),
    Family("fine-tuning", fine_tuning, (60, 1500), "sft", (0.02, 0.15)),
    Family("fine-tuning, batch 1", fine_tuning, (200, 3000), "sft", (0.15, 0.35)),
    Family("fine-tuning, tiny log", fine_tuning, (10, 60), "sft", (0.01, 0.15)),
    Family("fine-tuning, excerpt", fine_tuning, (3, 14), "unknown", (0.01, 0.15)),
    Family("done fine-tuning", done_fine_tuning, (60, 1500), "sft", (0.02, 0.15)),
    Family("one-cycle", one_cycle, (50, 1000), "supervised", (0.01, 0.1)),
    Family("step decay", step_decay, (90, 1000), "supervised", (0.01, 0.1)),
    Family("epoch means", step_decay, (10, 100), "supervised", (0.003, 0.03)),
    Family("regression", regression, (50, 2000), "supervised", (0.02, 0.4), ("lognormal",)),
    Family("diffusion", diffusion, (100, 2000), "diffusion", (0.1, 0.4), ("lognormal",)),
)


def noise_of(tails: str, count: int, draw: Generator) -> Floats:
    """Return unit noise of shape (n,): normal, lognormal (normal, to be exponentiated), t3 or ar1."""
    if tails == "t3":
        return np.asarray(draw.standard_t(3, count) / np.sqrt(3))
    white = draw.standard_normal(count)
    if tails == "ar1":
        for index in range(1, count):
            white[index] = 0.8 * white[index - 1] + 0.6 * white[index]
    return white


def with_noise(curve: Floats, size: float, tails: str, draw: Generator) -> Floats:
    """Return the curve times noise of relative `size`."""
    unit = size * noise_of(tails, len(curve), draw)
    factor = np.exp(unit) if tails == "lognormal" else np.maximum(1 + unit, 0.05)
    return np.asarray(curve * factor)


def make_run(metrics: Mapping[str, Series], kind: str, config: Mapping[str, Scalar] | None = None) -> Run:
    """Make a run without the way over a file: this is called a thousand times."""
    last = max(float(series.step[-1]) for series in metrics.values())
    return Run(
        path="simulated",
        formats=("simulated",),
        series=metrics,
        settings=Settings.of(config or {}),
        segments=(Segment(1.0, last, metrics),),
        kind=kind,
        records=len(metrics["loss"]),
    )


def draw_run(family: Family, draw: Generator) -> Run:
    """Draw a healthy run: loss, learning rate, gradient norm, evaluation and epochs."""
    low, high = family.counts
    count = round(float(np.exp(draw.uniform(np.log(low), np.log(high + 0.5)))))
    shape = family.shape(count, draw)
    size = float(np.exp(draw.uniform(*np.log(family.noise))))
    every = float(draw.choice([1, 1, 5, 10, 50]))
    step = np.asarray(every * (np.arange(count) + 1), dtype=np.float64)
    loss = with_noise(shape.loss, size, str(draw.choice(family.tails)), draw)
    drift = np.linspace(0, draw.uniform(-1, 0.5), count)
    norm: Floats = np.exp(draw.uniform(-1.5, 1.5) + drift + draw.uniform(0.05, 0.5) * draw.standard_normal(count))
    metrics = {
        "loss": Series("loss", step, loss),
        "learning_rate": Series("learning_rate", step, shape.rate),
        "grad_norm": Series("grad_norm", step, norm),
        "epoch": Series("epoch", step, (np.arange(count) + 1) / count * draw.choice([1, 3, 5])),
    }
    evaluations = min(count, int(draw.choice([0, 3, 10, 30])))
    if evaluations and family.kind != "diffusion":
        at = np.linspace(0, count - 1, evaluations + 1).astype(int)[1:]
        gap = 1 + draw.uniform(-0.02, 0.1) * np.linspace(0.3, 1, evaluations)
        best = np.minimum.accumulate(shape.loss[at] * gap)
        value = with_noise(best, draw.uniform(0.0005, 0.004), "normal", draw)
        metrics["eval_loss"] = Series("eval_loss", step[at], value)
    return make_run(metrics, family.kind, {"max_grad_norm": 1.0} if draw.random() < 0.5 else None)


def healthy(seed: int, each: int) -> Iterator[tuple[str, Run]]:
    """Yield `each` runs of every family, with the family's name."""
    for number, family in enumerate(FAMILIES):
        draw = np.random.default_rng([seed, number])
        for _ in range(each):
            yield family.name, draw_run(family, draw)


def with_loss(run: Run, loss: Floats) -> Run:
    """Return the run with another loss curve of the same length."""
    metrics = {**run.series, "loss": Series("loss", run["loss"].step, loss)}
    return replace(run, series=metrics, segments=(replace(run.segments[0], series=metrics),))


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
