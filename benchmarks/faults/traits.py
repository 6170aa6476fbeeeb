"""Fit what the traits of a run say of causes: see `mldebug_mcp.judge.likeness`."""

from __future__ import annotations

import math
import multiprocessing
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from benchmarks.corpus.archive import HABITS, LATER
from benchmarks.corpus.labels import Label, read_labels
from benchmarks.faults.figures import Rows, share
from benchmarks.faults.likeness import known, regression, right
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.likeness import TRAITS_FILE, TraitModel, row_of, traits_as_bytes, traits_of
from mldebug_mcp.judge.sheet import quantity_facts, setting_facts
from mldebug_mcp.logs import read_run
from mldebug_mcp.models.base import SOUND

LEAST_RUNS = 4
"""That have a trait."""
OF_EARLIER_AUTHORS = 0.5
"""What a run counts whose author logged as public frameworks do. Chosen: with 0.25 to 1 authors whom the fit never saw
are served as well."""
SMOOTH = 0.3
"""What the sum of squares of the weights costs, as runs. Chosen: with less, more healthy runs of authors whom the fit
never saw are accused; with more, fewer of their causes come first."""
ROUNDS = 60
"""Of L-BFGS. Chosen: more fit the runs at hand and no other."""


@dataclass(frozen=True, slots=True)
class Described:
    """The traits of a run, its label, its author, and what it counts."""

    traits: frozenset[str]
    label: Label
    author: str
    weight: float

    @property
    def causes(self) -> list[str]:
        """The causes that are right, the injected one first."""
        return list(dict.fromkeys((self.label.cause, *self.label.also)))


def describe(folder: Path, name: str, processes: int) -> list[Described]:
    """Return the traits of the runs of a set whose log shows their fault.

    A set of many authors has one for each first letter of its runs.
    """
    weight = 1.0 if name == HABITS else OF_EARLIER_AUTHORS
    runs = [
        (folder / run, label, f"{name}-{run[0]}" if name in (LATER, HABITS) else name, weight)
        for run, label in read_labels(folder).items()
        if label.shows
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return [one for one in pool.starmap(_described, runs, chunksize=16) if one is not None]


def _described(path: Path, label: Label, author: str, weight: float) -> Described | None:
    try:
        run = read_run(path)
    except InputError:
        return None
    return Described(frozenset(traits_of(run, setting_facts(run), quantity_facts(run, []))), label, author, weight)


def fit_traits(runs: Sequence[Described]) -> TraitModel:
    """Return the model under which the causes of the runs are most probable, weights held small."""
    causes = sorted({cause for run in runs for cause in run.causes})
    traits = known([(run.traits, run.author) for run in runs], LEAST_RUNS)
    held = Counter(trait for run in runs for trait in run.traits)
    rarity = np.array([math.log(len(runs) / held[trait]) for trait in traits], dtype=np.float32)
    counts = np.array([run.weight for run in runs])
    shares, weights, bias = regression(
        _design(runs, traits, rarity), right([run.causes for run in runs], causes), counts, smooth=SMOOTH, rounds=ROUNDS
    )
    return TraitModel(tuple(causes), shares, tuple(traits), rarity, weights, bias)


def _design(runs: Sequence[Described], traits: Sequence[str], rarity: NDArray[np.float32]) -> csr_matrix:
    number = {trait: place for place, trait in enumerate(traits)}
    held = [np.array(sorted(number[trait] for trait in run.traits if trait in number), dtype=int) for run in runs]
    values = [row_of(rarity[places]) for places in held]
    ends = np.cumsum([0, *map(len, held)])
    return csr_matrix((np.concatenate(values), np.concatenate(held), ends), shape=(len(runs), len(traits)))


def left_out(runs: Sequence[Described], authors: Sequence[str], processes: int = 1) -> Rows:
    """Return how often traits alone are right on the runs of each of these authors, fitted on those of all others."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        answers = [one for ones in pool.map(partial(_ranked_without, runs), authors, chunksize=1) for one in ones]
    faulty = [one for one in answers if one[0].label.cause != SOUND]
    healthy = [one for one in answers if one[0].label.cause == SOUND]
    return [
        {
            "authors": f"{len(authors)}",
            "right cause first": share([_is_right(*one, 1) for one in faulty]),
            "among three": share([_is_right(*one, 3) for one in faulty]),
            "healthy runs called healthy": share([_is_right(*one, 1) for one in healthy]),
        }
    ]


def _ranked_without(runs: Sequence[Described], author: str) -> list[tuple[Described, list[str]]]:
    model = fit_traits([run for run in runs if run.author != author])
    prior = dict(zip(model.causes, np.log2(model.shares).tolist(), strict=True))
    own = [run for run in runs if run.author == author]
    return [
        (run, _ranked({cause: bits + prior[cause] for cause, bits in model.bits(run.traits).items()})) for run in own
    ]


def _ranked(bits: Mapping[str, float]) -> list[str]:
    return sorted(bits, key=lambda cause: -bits[cause])


def _is_right(run: Described, causes: Sequence[str], places: int) -> bool:
    return bool(set(run.causes) & set(causes[:places]))


def write(model: TraitModel, folder: Path | None = None) -> None:
    """Write the model into a folder; where the package reads it without one."""
    path = folder / TRAITS_FILE.name if folder else TRAITS_FILE
    path.write_bytes(traits_as_bytes(model))
