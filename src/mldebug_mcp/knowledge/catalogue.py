"""What the catalogue holds.

These are sources with their quotes, causes, menus, and the tables that the ranking computes with.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from mldebug_mcp.core.errors import CatalogueError
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.models import Citation, NextStep
from mldebug_mcp.models.base import Frozen

# What the catalogue holds: sources with their quotes, and causes.


class Entry(Frozen):
    """Base of the catalogue's entries."""


class Source(Entry):
    """Something that somebody published, from `evidence/<id>.md`."""

    id: str
    title: str
    authors: str
    year: str
    url: str
    licence: str
    kind: str
    regime: str = Field("", description="What was trained: kind of run, size, precision; empty where it is about all.")
    accessed: str = ""
    notes: str = ""


Grade = Literal["primary", "compared", "secondary copy", "transcribed"]
"""How sure the wording is, surest first; evidence/README.md says what each means."""


class Quote(Entry):
    """A passage of a source, verbatim."""

    id: str
    source: Source
    text: str
    locator: str = Field(min_length=1)
    topics: tuple[str, ...]
    domains: tuple[str, ...]
    situations: tuple[str, ...]
    generality: int = Field(
        ge=1, le=5, description="1 holds for almost any training run, 5 for one setting of one tool."
    )
    verified_against: str
    grade: Grade
    sha256: str

    def cite(self) -> Citation:
        """Return the quote as answers carry it."""
        return Citation.model_construct(
            id=self.id,
            text=self.text,
            source=self.source.id,
            author=self.source.authors,
            title=self.source.title,
            year=self.source.year,
            regime=self.source.regime,
            url=self.source.url,
            locator=self.locator,
        )


class Frequency(StrEnum):
    """How often a run with a cause shows a symptom, in words; `share` is the number that the ranking starts from."""

    ALWAYS = "always"
    USUALLY = "usually"
    OFTEN = "often"
    SOMETIMES = "sometimes"
    RARELY = "rarely"

    @property
    def share(self) -> float:
        """The share of runs with the cause that show the symptom."""
        return {"always": 0.95, "usually": 0.75, "often": 0.5, "sometimes": 0.25, "rarely": 0.08}[self.value]


class Effect(NamedTuple):
    """A symptom that a cause produces.

    Args:
        symptom: Its id.
        frequency: How often runs with the cause show it.
        quotes: Ids of the quotes that say so; empty where it was only counted.
    """

    symptom: str
    frequency: Frequency
    quotes: tuple[str, ...]


class Cause(Entry):
    """A section of PLAYBOOK.md."""

    id: str
    summary: str = Field(description="What goes wrong: the first paragraph, as Markdown.")
    mistaken_for: tuple[str, ...]
    effects: tuple[Effect, ...]
    shows: str = Field(description="Its strongest outcomes, in words.")
    against: str = Field(description="What rules it out.")
    next_steps: tuple[NextStep, ...]
    fix: str
    disagreement: str = ""
    on_cause: tuple[str, ...] = Field((), description="Ids of the quotes on the cause as a whole or its fix.")
    contrary: tuple[str, ...] = Field((), description="Ids of the quotes on what contradicts it.")
    disagreeing: tuple[str, ...] = Field((), description="Ids of the quotes that `Disagreement` sets side by side.")
    quotes: tuple[str, ...] = Field(description="Ids of all quotes that the section cites, in order.")
    markdown: str = Field(description="The section as it stands in the file.")


class MenuItem(Entry):
    """What is seen in a situation, and the causes to think of."""

    seen: str
    causes: tuple[str, ...]


class Menu(Entry):
    """A section of PLAYBOOK.md by situation."""

    id: str
    summary: str = Field(description="The situation, as Markdown.")
    first: str = Field(description="The first check, as Markdown.")
    items: tuple[MenuItem, ...]
    quotes: tuple[str, ...] = Field(description="Ids of all quotes that the section cites, in order.")
    markdown: str = Field(description="The section as it stands in the file.")

    @property
    def causes(self) -> tuple[str, ...]:
        """All causes that the menu leads to, in order."""
        return tuple(dict.fromkeys(cause for item in self.items for cause in item.causes))


# The tables that the ranking computes with.
#
# `links.csv` has a row for each cause and outcome that belong together. It says how often runs with the cause show the
# outcome, and where that is known from:
#
# - `word`: how often, before any run is counted: always, usually, often, sometimes or rarely. Empty where the counts
#   alone link the two.
# - `quotes`: ids of the quotes that say so, separated by spaces.
# - `seen`, `runs`: labelled runs with the cause that showed the outcome, and those in which it could be judged.
#   Several logs of one trained run share its one. `python -m benchmarks.faults fit` writes these two.
#
# The rows of `healthy` count how often healthy runs show each outcome.
#
# `relations.csv` has a row for a fact on the columns of a run and a cause that it tells for or against: its `bits`,
# by hand, and how many of the labelled `runs` with the cause have `seen` it. Where none has, the bits are by the
# arithmetic of the fact. Each fact has a row of `healthy`, with 0 bits where that weighs nothing.
# `python -m benchmarks.faults relations` counts anew.
#
# `causes.csv` has a row for each cause: what it is `mistaken_for` (ids, separated by spaces), and of 1000 runs how many
# have it: `any`, and what differs for a kind of run. `boosting` is XGBoost, LightGBM and CatBoost. These are chosen.
#
# `near_causes.csv` has a row for causes that one run shows together: `causes` (ids, separated by spaces), and how to
# `choose` the one that is to be mended from those that follow.


LINKS = "links.csv"
CAUSES = "causes.csv"
NEAR_CAUSES = "near_causes.csv"
RELATIONS = "relations.csv"
FOLDER = Path(__file__).parent
"""Where the tables are."""
ANY = "any"
"""The column that holds for every kind of run without a number of its own."""
DEFAULT_PRIOR_PER_MILLE = 2.0
"""Of 1000 runs, those with a cause that has no row in `causes.csv`. Chosen: a rare one."""
KINDS = ("pretraining", "sft", "preference", "grpo", "ppo", "rl", "supervised", "diffusion", "boosting")
"""The kinds of run that `causes.csv` has priors for; `unknown` is the rest."""
COLUMNS_OF_LINKS = ("cause", "outcome", "word", "quotes", "seen", "runs")
COLUMNS_OF_RELATIONS = ("fact", "cause", "bits", "seen", "runs")

Counts = Mapping[str, Mapping[str, tuple[float, float]]]
"""By cause and outcome: runs that showed it, and runs in which it could be judged."""


class Link(NamedTuple):
    """A row of `links.csv`.

    Args:
        cause: Id of the cause.
        outcome: Id of the symptom.
        word: How often, in a word, before any run is counted; empty where counts alone link the two.
        quotes: Ids of the quotes that say so.
        counted: Labelled runs that showed it, and those in which it could be judged; None where none was counted.
    """

    cause: str
    outcome: str
    word: str
    quotes: tuple[str, ...]
    counted: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A row of `causes.csv`.

    Args:
        name: What it is called in a sentence: a noun phrase.
        mistaken_for: Ids of the causes that it is often confused with.
        prior: Of 1000 runs, those that have it, by kind of run.
    """

    name: str = ""
    mistaken_for: tuple[str, ...] = ()
    prior: Mapping[str, float] = field(default_factory=lambda: {ANY: DEFAULT_PRIOR_PER_MILLE})


def read_cause_rows(folder: Path = FOLDER) -> dict[str, CauseRow]:
    """Return the rows of `causes.csv` by cause.

    Raises:
        CatalogueError: a row breaks the form of the table; the message names its line.
    """
    found: dict[str, CauseRow] = {}
    columns = ("cause", "name", "mistaken_for", ANY, *KINDS)
    for line, (cause, name, mistaken_for, *numbers) in _rows(folder / CAUSES, columns):
        try:
            prior = {kind: float(number) for kind, number in zip((ANY, *KINDS), numbers, strict=True) if number}
        except ValueError:
            raise CatalogueError(CAUSES, line, f"{cause}: runs of 1000 are numbers, or nothing") from None
        if not cause or cause in found:
            raise CatalogueError(CAUSES, line, f"the cause {cause!r} is missing or there twice")
        if not name:
            raise CatalogueError(CAUSES, line, f"{cause}: say in `name` what it is called in a sentence")
        if ANY not in prior or min(prior.values()) <= 0:
            raise CatalogueError(CAUSES, line, f"{cause}: `{ANY}` is needed, and all numbers are above 0")
        found[cause] = CauseRow(name, tuple(mistaken_for.split()), prior)
    return found


@cache
def near_causes() -> Mapping[tuple[str, ...], str]:
    """Return how to choose between causes that one run shows together, from `near_causes.csv`, read once."""
    return {tuple(causes.split()): choose for _, (causes, choose) in _rows(FOLDER / NEAR_CAUSES, ("causes", "choose"))}


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table with their lines."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if next(rows, []) != [*columns]:
            raise CatalogueError(path.name, 1, f"the columns are {','.join(columns)}")
        for row in rows:
            if len(row) != len(columns):
                raise CatalogueError(path.name, rows.line_num, f"a row has {len(columns)} cells, not {len(row)}")
            yield rows.line_num, row


class Relation(NamedTuple):
    """A row of `relations.csv`.

    Args:
        fact: Name of the fact.
        cause: Id of the cause, or `healthy`.
        bits: What the fact weighs for the cause; below 0 against it.
        seen: Labelled runs with the cause that show the fact.
        runs: Labelled runs with the cause.
    """

    fact: str
    cause: str
    bits: float
    seen: int
    runs: int


def read_relations(folder: Path = FOLDER) -> list[Relation]:
    """Return what facts on columns tell of causes, in file order.

    Raises:
        CatalogueError: a row breaks the form of the table; the message names its line.
    """
    found: dict[tuple[str, str], Relation] = {}
    for line, (fact, cause, *numbers) in _rows(folder / RELATIONS, COLUMNS_OF_RELATIONS):
        if not fact or not cause or (fact, cause) in found:
            raise CatalogueError(RELATIONS, line, f"{fact!r} and {cause!r}: one is missing, or both are there twice")
        try:
            bits, seen, runs = float(numbers[0]), *map(int, numbers[1:])
        except ValueError:
            raise CatalogueError(RELATIONS, line, f"{fact} and {cause}: bits, seen and runs are numbers") from None
        found[fact, cause] = Relation(fact, cause, bits, seen, runs)
    return list(found.values())


def relation_weights(folder: Path = FOLDER) -> dict[str, dict[str, float]]:
    """Return the bits by fact and cause, from `relations.csv`; what weighs nothing is left out."""
    weights: dict[str, dict[str, float]] = {}
    for relation in read_relations(folder):
        if relation.bits:
            weights.setdefault(relation.fact, {})[relation.cause] = relation.bits
    return weights


def read_links(folder: Path = FOLDER) -> list[Link]:
    """Return the links in file order.

    Raises:
        CatalogueError: a row breaks the form of the table; the message names its line.
    """
    links: dict[tuple[str, str], Link] = {}
    for line, row in _rows(folder / LINKS, COLUMNS_OF_LINKS):
        link = _link(row, line)
        if (link.cause, link.outcome) in links:
            raise CatalogueError(LINKS, line, f"{link.cause} and {link.outcome} are linked twice")
        links[link.cause, link.outcome] = link
    return list(links.values())


def _link(row: Sequence[str], line: int) -> Link:
    cause, outcome, word, quotes, present, runs = row
    if not cause or not outcome:
        raise CatalogueError(LINKS, line, "the cause or the outcome is missing")
    if word and word not in map(str, Frequency):
        raise CatalogueError(LINKS, line, f"{word!r} does not say how often; use {', '.join(Frequency)}, or nothing")
    if not word and not runs:
        raise CatalogueError(LINKS, line, f"{cause} and {outcome}: give a word for how often, or counts")
    try:
        counted = (float(present), float(runs)) if present or runs else None
    except ValueError:
        raise CatalogueError(LINKS, line, f"seen and runs are numbers, not {present!r} and {runs!r}") from None
    return Link(cause, outcome, word, tuple(quotes.split()), counted)


def counts(links: Iterable[Link]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the counts by cause and outcome, in the order of their ids."""
    counted: dict[str, dict[str, tuple[float, float]]] = {}
    for link in sorted(links):  # no two are of one cause and outcome
        if link.counted is not None:
            counted.setdefault(link.cause, {})[link.outcome] = link.counted
    return counted


# The catalogue: everything the knowledge files hold, by id.


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Causes, quotes, sources and menus by id, and the tables that the ranking computes with.

    Args:
        names: What a cause is called in a sentence, by its id.
        priors: Of 1000 runs, those that have a cause: by its id and the kind of run; `any` is the default.
        relations: What a fact on columns weighs for a cause, in bits, by both.
    """

    causes: Mapping[str, Cause]
    quotes: Mapping[str, Quote]
    sources: Mapping[str, Source]
    menus: Mapping[str, Menu]
    links: Sequence[Link]
    names: Mapping[str, str]
    priors: Mapping[str, Mapping[str, float]]
    relations: Mapping[str, Mapping[str, float]]

    def prior(self, cause: str, kind: str) -> float:
        """Return the prior weight of a cause for a kind of run."""
        return self.priors[cause].get(kind, self.priors[cause][ANY])

    def cite(self, ids: Iterator[str] | tuple[str, ...]) -> list[Citation]:
        """Return the quotes with these ids as answers carry them."""
        return [self.quotes[quote].cite() for quote in ids]

    def sides(self, cause: Cause) -> list[Quote]:
        """Return the quotes of the sources that disagree about a cause, oldest first."""
        return sorted((self.quotes[quote] for quote in cause.disagreeing), key=lambda quote: quote.source.year)

    def quotes_of(self, source: str) -> list[Quote]:
        """Return the quotes of a source in file order."""
        return [quote for quote in self.quotes.values() if quote.source.id == source]


# What to do about a cause where the learner is not a neural network trained by backpropagation.
#
# `learner_advice.csv` has a row for each cause and learner whose fix and check differ from those of PLAYBOOK.md.
# Boosted trees have no weight decay and no warm-up, but a depth and a number of trees. The settings are those that
# XGBoost, LightGBM, CatBoost, scikit-learn and Stable-Baselines3 document.


TABLE = Path(__file__).with_name("learner_advice.csv")
LEARNERS = ("boosting", "linear", "clusters", "rl")
"""Boosted trees; linear models by stochastic gradient descent; k-means and its kin; agents in an environment."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a cause.

    Args:
        name: What the cause is called of this learner, in a sentence; empty where its usual name fits.
        fix: What usually helps.
        action: The check that shows whether the cause is there.
        cost: How long that takes: seconds, minutes or hours.
        confirms: What shows that it is.
        refutes: What shows that it is not.
    """

    name: str
    fix: str
    action: str
    cost: str
    confirms: str
    refutes: str


def advice_for(cause: str, learner: str) -> Advice | None:
    """Return what to do about a cause of a learner, None where PLAYBOOK.md holds for it."""
    return _table().get((cause, learner)) if learner in LEARNERS else None


@cache
def _table() -> Mapping[tuple[str, str], Advice]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {(row.pop("cause"), row.pop("learner")): Advice(**row) for row in csv.DictReader(file)}
