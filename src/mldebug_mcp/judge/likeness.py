"""How like a run is to runs whose cause is known: by the statistics of its curves, and by its traits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.course import COMPARED, vector_of
from mldebug_mcp.checks.progress import has_finished
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.judge.ranking import CauseEvidence
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.logs.names.quantities import THROUGHPUTS, UTILISATIONS, Quantity
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.models.diagnosis import CurveFact, QuantityFact, SettingFact

# What all numbers of a run together say of causes: how like they are to those of trained runs with each of them.
#
# A multinomial logistic regression over the numbers of `checks.course`, each as a line through a few knots, so that no
# number decides by a limit. `likeness.bin` holds it; `python -m benchmarks.faults fit` fits it with the findings,
# and with it how far it is trusted:
#
#     bits(c) = trust * (log2 P(c | numbers) - CAUSE_SHARE_EXPONENT * log2 P(c))
#
# where P(c) is the share of the cause among the trained runs: how often a fault was injected does not make it suspect.


Floats = NDArray[np.float32]
LIKENESS_FILE = Path(__file__).parent / "likeness.bin"
ABOUT = "likeness"
"""What stands for this among the questions whose trust is fitted."""
CAUSE_SHARE_EXPONENT = 0.5
"""Power of the share of a cause that is taken off. Chosen: with less faults, with more healthy runs of authors whom the
fit never saw are named less often."""
RESULTS = frozenset(f"{phase}{quantity}: last / first" for quantity in COMPARED for phase in ("", "eval "))
"""A log holds at least one of these: without the course of a result there is nothing to be like."""
MIN_RECORDS = 12
"""Records of a run that is not known to be over from which its numbers count in full. Chosen: healthy runs of policies
were accused after five records, by their numbers alone, in one of ten cases; with this, in one of a hundred."""
OTHER_STATISTICS = "other statistics of the curves"
"""How this evidence is named in answers: no single number decides."""


@dataclass(frozen=True)
class Likeness:
    """The fitted model.

    Args:
        causes: The causes that runs were trained with, `healthy` among them.
        shares: Their shares among these runs, shape (causes,).
        names: The numbers that are looked at.
        knots: Values of each, ascending, shape (names, knots).
        weights: What a number at a knot adds to the logarithm of each cause, shape (names * knots, causes).
        bias: What stands there before any number, shape (causes,).
    """

    causes: tuple[str, ...]
    shares: Floats
    names: tuple[str, ...]
    knots: Floats
    weights: Floats
    bias: Floats

    @cached_property
    def _number(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def bits(self, vector: Mapping[str, float]) -> dict[str, float]:
        """Return how much the numbers of a run support each cause, with a trust of one."""
        names = [name for name in vector if name in self._number]
        number = np.array([self._number[name] for name in names], dtype=np.int64)
        values, knots = np.array([vector[name] for name in names]), self.knots[number]
        row, share = between(knots, values)
        row += (number * self.knots.shape[1])[:, None]
        adds = np.einsum("nk,nkc->nc", share, self.weights[row])
        adds -= adds.mean(axis=1, keepdims=True)
        scores = self.bias + adds.sum(axis=0)
        return dict(
            zip(self.causes, map(float, _bits(scores, CAUSE_SHARE_EXPONENT * np.log(self.shares))), strict=True)
        )


def between(knots: Floats, values: NDArray[np.float64]) -> tuple[NDArray[np.int64], Floats]:
    """Return between which two knots values lie and how near to each, both of shape (values, 2).

    The knots of each value ascend, shape (values, knots); what lies beyond them counts as at the end.
    """
    clipped = np.clip(values, knots[:, 0], knots[:, -1]).astype(np.float32)
    low = np.clip((knots <= clipped[:, None]).sum(axis=1) - 1, 0, knots.shape[1] - 2)
    rows = np.arange(len(values))
    start, width = knots[rows, low], knots[rows, low + 1] - knots[rows, low]
    part = np.divide(clipped - start, width, out=np.zeros_like(clipped), where=width > 0)
    return np.stack([low, low + 1], axis=1), np.stack([1 - part, part], axis=1)


def evidence_from_classifier(run: Run, trust: float) -> list[CauseEvidence]:
    """Return what the numbers of a run say about causes, besides its findings, where they are trusted that far."""
    return evidence_by_model(shipped(), vector_of(run), trust * _share_done(run))


def _share_done(run: Run) -> float:
    """Return how much of a run its log holds, from 0 to 1: the model was fitted on whole runs."""
    if has_finished(run):
        return 1.0
    plan = plan_of(run)
    if plan is not None:
        return 1.0 if plan.is_done else min(1.0, plan.reached / plan.planned)
    return min(1.0, max((len(series) for series in run.series.values()), default=0) / MIN_RECORDS)


def evidence_by_model(model: Likeness, vector: Mapping[str, float], trust: float) -> list[CauseEvidence]:
    """Return what numbers say of causes, in bits multiplied by `trust`; nothing where no result has a course."""
    if not trust or not has_a_course(vector):
        return []
    return [
        CauseEvidence(cause, trust * bits, OTHER_STATISTICS, "numbers", ABOUT)
        for cause, bits in model.bits(vector).items()
    ]


def has_a_course(vector: Mapping[str, float]) -> bool:
    """Say whether a result is among the numbers that has more than a few records."""
    return not RESULTS.isdisjoint(vector)


@lru_cache(maxsize=1)
def shipped() -> Likeness:
    """Return the model that ships with the package."""
    about, (shares, knots, bias), weights = _unpacked(
        LIKENESS_FILE, lambda about: (len(about["names"]), about["knots"])
    )
    return Likeness(tuple(about["causes"]), shares, tuple(about["names"]), knots, weights, bias)


def as_bytes(model: Likeness) -> bytes:
    """Return the file of a model, which loads several times as fast as compressed arrays.

    Its last line is JSON with the names of the rows and columns. Before it are the numbers, the weights behind the
    others, in 8 bits each, as steps of a 127th of the largest.
    """
    about = {"causes": model.causes, "names": model.names, "knots": model.knots.shape[1]}
    return _packed(model.shares, model.knots, model.weights, model.bias, about)


def _packed(shares: Floats, own: Floats, weights: Floats, bias: Floats, about: Mapping[str, object]) -> bytes:
    scale = float(np.abs(weights).max()) / 127 or 1.0
    numbers = [np.asarray(array, "<f4") for array in (shares, own, scale, bias)]
    steps = np.round(weights / scale).astype(np.int8)
    return b"".join([*(array.tobytes() for array in numbers), steps.tobytes(), b"\n", json.dumps(about).encode()])


def _unpacked(
    file: Path, shape: Callable[[Mapping[str, Any]], tuple[int, ...]]
) -> tuple[Mapping[str, Any], tuple[Floats, Floats, Floats], Floats]:
    """Return what a file of `_packed` holds: names, the shares with the array of this `shape` and the bias, weights."""
    numbers, _, last = file.read_bytes().rpartition(b"\n")
    about: Mapping[str, Any] = json.loads(last)
    causes = len(about["causes"])
    shapes = ((causes,), shape(about), (), (causes,))
    shares, own, scale, bias = _arrays_in(numbers, shapes)
    steps = np.frombuffer(numbers, np.int8, offset=4 * sum(map(math.prod, shapes)))
    return about, (shares, own, bias), steps.reshape(-1, causes).astype(np.float32) * scale


def _arrays_in(numbers: bytes, shapes: Iterable[tuple[int, ...]]) -> Iterator[Floats]:
    """Yield the arrays of such shapes that stand one after the other."""
    offset = 0
    for shape in shapes:
        yield np.frombuffer(numbers, "<f4", math.prod(shape), offset).reshape(shape)
        offset += 4 * math.prod(shape)


# What the traits of a run say of causes: the words of its columns, settings and lines, each with what goes with it.
#
# A trait is such as "kl rises", "kl is below 0.1", "beta = below 0.02" or "says restar". A multinomial logistic
# regression over the traits of a run weighs the causes; rare traits count more than frequent ones (inverse document
# frequency, Spaerck Jones 1972), and no trait decides alone. It is fitted on the runs of many authors, each with names
# and habits of their own: `python -m benchmarks.faults traits`.


TRAITS_FILE = Path(__file__).parent / "traits.bin"
OF_TRAITS = "traits"
"""What stands for this among the questions."""
MOST_TRAITS, MOST_DESCRIBED = 2, 3
"""Traits that are named with a cause, and causes that they are named with."""
LONGEST_NAME = 30
"""Letters of the name of a column next to its trait."""
ALIKE = "names, courses, settings and words as in labelled runs"
"""How this evidence is named in answers."""
TRAITS_WEIGHT = 1.5
"""Power of what traits say where nothing else names a fault; see `ranking.with_traits`. Chosen: runs of authors whom
nothing had seen have a right cause among three in 55 % with it, and in 44 % without it."""
MAX_BITS_APART = 8.0
"""Bits between the likeliest cause and the least likely ones. Chosen."""
MANY_TRAITS = 25.0
"""Length of the vector of traits from which they count in full: few traits say little. About the lowest quarter."""
TRAITS_SCALE = 3.0
"""Length of the vector of a run with many traits, so that smoothing costs the same for each run."""
STEM = 6
"""Letters of a word that are compared, so that `accuracy` and `accuracies` are one."""
MAX_WORDS = 6
"""Words of a setting's value that count."""
LEVELS = (1e-4, 0.02, 0.1, 0.45, 0.6, 0.95)
SIZES = (3.0, 10.0, 100.0, 1e3, 1e5)
RATIOS = (0.02, 0.1, 0.3, 0.7, 0.95, 1.05, 1.4, 3.0, 10.0, 50.0)
"""Limits between levels below and above one, and between ratios of the end to the beginning. Chosen, round."""
MIN_MOVED_SIGMAS, MIN_MOVED_LEVEL, MIN_MOVED_RANGE = 3.0, 0.05, 0.15
"""A curve rises or falls where it moves by so many times its noise, and such shares of its level and its range."""
PEAK_SHARE = 0.5
"""Share of its range by which a curve leaves both of its ends: a peak or a dip."""
NOISY_SHARE = 0.25
"""Share of its range that is noise in a noisy curve."""
_OF_THE_MACHINE = frozenset({Quantity.TEMPERATURE, Quantity.POWER, Quantity.TIME_LEFT, *UTILISATIONS})
_LOWER_CASE = regex(r"[a-z]{2,}")
_CAMEL = regex(r"([a-z])([A-Z])")


def traits_of(run: Run, settings: Sequence[SettingFact], quantities: Sequence[QuantityFact]) -> dict[str, str]:
    """Return the traits of a run, of its settings, curves and lines, each with the words for it in this log."""
    lines = [*(line.text for line in run.text_lines), *(message.text for message in run.messages), run.ending.text]
    return {
        f"kind {run.kind}": "",
        f"ends {run.ending.how}": "",
        **({"resumed": "it was resumed"} if run.restarts else {}),
        **{trait: str(setting) for setting in settings for trait in _of_setting(setting)},
        **{
            trait: words
            for quantity in quantities
            if _trains(run[quantity.name])
            for trait, words in _of_quantity(run[quantity.name], quantity)
        },
        **{f"says {stem}": "" for line in lines for stem in stems(line)},
    }


def _trains(series: Series) -> bool:
    """Say whether a series tells how training goes, rather than how fast it is or what memory it takes.

    These have their own questions, and are logged next to any fault.
    """
    role = series.role
    if role is None:
        return True
    quantity = role.quantity
    return not (quantity.is_memory or quantity.is_duration or quantity in THROUGHPUTS or quantity in _OF_THE_MACHINE)


def stems(text: str) -> set[str]:
    """Return the beginnings of the words of a name or a line, in lower case."""
    return {word[:STEM] for word in _LOWER_CASE.findall(_CAMEL.sub(r"\1 \2", text).lower())}


def _of_setting(setting: SettingFact) -> Iterator[str]:
    try:
        values = [_level(float(setting.value))]
    except ValueError:
        values = sorted(stems(setting.value))[:MAX_WORDS]
    for stem in stems(setting.name):
        yield from (f"{stem} = {value}" for value in values)
        if setting.usual:
            yield f"{stem} is unusual"


def _of_quantity(series: Series, quantity: QuantityFact) -> Iterator[tuple[str, str]]:
    role = series.role
    for curve in quantity.curves:
        words = stems(curve.name) if role is None or not role.is_whole else set()
        names = [*words, *([f"role {quantity.role}"] if quantity.role else [])]
        for trait, numbers in _of_curve(curve):
            yield from ((f"{name} {trait}", f"{shorten(curve.name, LONGEST_NAME)} {numbers}") for name in names)


def _of_curve(curve: CurveFact) -> Iterator[tuple[str, str]]:
    """Yield what a curve does, and the same in the numbers of this log."""
    last = figure(curve.last)
    yield f"is {_level(curve.last)}", f"ends at {last}"
    if curve.records < 2:
        return
    if curve.low == curve.high:
        yield "stays the same", f"is {last} in every record"
        return
    spread, moved = curve.high - curve.low, curve.last - curve.early
    level, course = max(abs(curve.last), abs(curve.early)), f"from {figure(curve.early)} to {last}"
    if abs(moved) > max(MIN_MOVED_SIGMAS * curve.noise, MIN_MOVED_LEVEL * level, MIN_MOVED_RANGE * spread):
        way = "rises" if moved > 0 else "falls"
        yield way, f"{way} {course}"
    else:
        yield "keeps its level", f"keeps its level, {course}"
    if curve.high - max(curve.early, curve.last) > PEAK_SHARE * spread:
        yield "peaks", f"peaks at {figure(curve.high)}"
    if min(curve.early, curve.last) - curve.low > PEAK_SHARE * spread:
        yield "dips", f"dips to {figure(curve.low)}"
    if curve.noise > NOISY_SHARE * spread:
        yield "is noisy", f"is noisy by {figure(curve.noise)}"
    if curve.early * curve.last > 0:
        yield f"ends at {_below(RATIOS, curve.last / curve.early)} of its beginning", f"goes {course}"


def _level(value: float) -> str:
    """Return a value as the step of a scale: its sign and the limit that it stays below."""
    size = abs(value)
    if size in (0.0, 1.0) or not math.isfinite(value):
        return f"{value:g}"
    return f"{'-' if value < 0 else ''}{_below((*LEVELS, 1.0, *SIZES), size)}"


def _below(limits: Sequence[float], value: float) -> str:
    return next((f"below {limit:g}" for limit in limits if value < limit), "above all")


@dataclass(frozen=True)
class TraitModel:
    """The fitted model.

    Args:
        causes: The causes of the runs that it was fitted on, `healthy` among them.
        shares: Their shares among these runs, shape (causes,).
        traits: The traits that are known.
        rarity: The inverse document frequency of each, shape (traits,).
        weights: What a trait adds to the logarithm of each cause, shape (traits, causes).
        bias: What stands there without any trait, shape (causes,).
    """

    causes: tuple[str, ...]
    shares: Floats
    traits: tuple[str, ...]
    rarity: Floats
    weights: Floats
    bias: Floats

    @cached_property
    def _number(self) -> Mapping[str, int]:
        return {trait: number for number, trait in enumerate(self.traits)}

    def bits(self, traits: Collection[str]) -> dict[str, float]:
        """Return how much the traits of a run support each cause."""
        known = np.array(sorted(self._number[trait] for trait in traits if trait in self._number), dtype=np.int64)
        scores = self.bias + row_of(self.rarity[known]) @ self.weights[known]
        bits = _bits(scores, np.log(self.shares))
        return dict(zip(self.causes, map(float, np.maximum(bits, bits.max() - MAX_BITS_APART)), strict=True))

    def telling(self, cause: str, traits: Collection[str]) -> list[str]:
        """Return the traits that support a cause rather than `healthy`, the strongest first."""
        adds = self.rarity * (self.weights[:, self.causes.index(cause)] - self.weights[:, self.causes.index(SOUND)])
        weighed = {trait: float(adds[self._number[trait]]) for trait in traits if trait in self._number}
        return sorted((trait for trait in weighed if weighed[trait] > 0), key=lambda trait: (-weighed[trait], trait))


def row_of(rarity: Floats) -> Floats:
    """Return how much each trait of a run counts, by their rarity; all together count alike in runs with many."""
    length = max(MANY_TRAITS, math.sqrt(float((rarity**2).sum())))
    return np.asarray(TRAITS_SCALE * rarity / length, dtype=np.float32)


def _bits(scores: Floats, prior: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return the logarithms of probabilities in bits, less those that the causes had before."""
    highest = float(scores.max())
    logs = scores - highest - math.log(float(np.exp(scores - highest).sum()))
    return np.asarray((logs - prior) / math.log(2), dtype=np.float64)


def evidence_from_traits(
    run: Run, settings: Sequence[SettingFact], quantities: Sequence[QuantityFact]
) -> list[CauseEvidence]:
    """Return what the traits of a run say about causes: nothing about those that no labelled run had."""
    model, traits = shipped_traits(), traits_of(run, settings, quantities)
    weight, bits = TRAITS_WEIGHT * _share_done(run), model.bits(traits)
    average = sum(bits.values()) / len(bits)
    likeliest = sorted(bits.keys() - {SOUND}, key=lambda cause: (-bits[cause], cause))[:MOST_DESCRIBED]
    return [
        CauseEvidence(
            cause,
            weight * (each - average),
            ALIKE,
            "numbers",
            OF_TRAITS,
            _telling(model, cause, traits) if cause in likeliest else "",
        )
        for cause, each in bits.items()
    ]


def _telling(model: TraitModel, cause: str, traits: Mapping[str, str]) -> str:
    """Return the traits that support a fault most, in the numbers of this log."""
    shown = list(dict.fromkeys(traits[trait] for trait in model.telling(cause, traits) if traits[trait]))
    return f"as in labelled runs with it: {', '.join(shown[:MOST_TRAITS])}" if shown else ""


@lru_cache(maxsize=1)
def shipped_traits() -> TraitModel:
    """Return the model of traits that ships with the package."""
    about, (shares, rarity, bias), weights = _unpacked(TRAITS_FILE, lambda about: (len(about["traits"]),))
    return TraitModel(tuple(about["causes"]), shares, tuple(about["traits"]), rarity, weights, bias)


def traits_as_bytes(model: TraitModel) -> bytes:
    """Return the file of a model of traits; see `as_bytes`."""
    about = {"causes": model.causes, "traits": model.traits}
    return _packed(model.shares, model.rarity, model.weights, model.bias, about)
