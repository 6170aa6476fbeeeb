"""The tables that the ranking computes with.

`links.csv` has a row for each cause and outcome that belong together. It says how often runs with the cause show the
outcome, and where that is known from:

- `word`: how often, before any run is counted: always, usually, often, sometimes or rarely. Empty where the counts
  alone link the two.
- `quotes`: ids of the quotes that say so, separated by spaces.
- `seen`, `runs`: labelled runs with the cause that showed the outcome, and those in which it could be judged.
  Several logs of one trained run share its one. `python -m benchmarks.faults fit` writes these two.

The rows of `healthy` count how often healthy runs show each outcome.

`causes.csv` has a row for each cause: what it is `mistaken_for` (ids, separated by spaces), and of 1000 runs how many
have it: `any`, and what differs for a kind of run. `boosting` is XGBoost, LightGBM and CatBoost. These are chosen.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mldebug_mcp.errors import CatalogueError
from mldebug_mcp.knowledge.entries import Frequency

LINKS, CAUSES = "links.csv", "causes.csv"
FOLDER = Path(__file__).parent
"""Where the tables are."""
ANY = "any"
"""The column that holds for every kind of run without a number of its own."""
PRIOR = 2.0
"""Of 1000 runs, those with a cause that has no row in `causes.csv`. Chosen: a rare one."""
KINDS = (ANY, "pretraining", "sft", "preference", "grpo", "ppo", "rl", "supervised", "diffusion", "boosting")
_COLUMNS = ("cause", "outcome", "word", "quotes", "seen", "runs")

Counts = Mapping[str, Mapping[str, tuple[float, float]]]
"""By cause and outcome: runs that showed it, and runs in which it could be judged."""


@dataclass(frozen=True, slots=True)
class Link:
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
        mistaken_for: Ids of the causes that it is often confused with.
        prior: Of 1000 runs, those that have it, by kind of run.
    """

    mistaken_for: tuple[str, ...] = ()
    prior: Mapping[str, float] = field(default_factory=lambda: {ANY: PRIOR})


def read_cause_rows(folder: Path = FOLDER) -> dict[str, CauseRow]:
    """Return the rows of `causes.csv` by cause.

    Raises:
        CatalogueError: a row breaks the form of the table; the message names its line.
    """
    found: dict[str, CauseRow] = {}
    for line, (cause, mistaken_for, *numbers) in _rows(folder / CAUSES, ("cause", "mistaken_for", *KINDS)):
        try:
            prior = {kind: float(number) for kind, number in zip(KINDS, numbers, strict=True) if number}
        except ValueError:
            raise CatalogueError(CAUSES, line, f"{cause}: runs of 1000 are numbers, or nothing") from None
        if not cause or cause in found:
            raise CatalogueError(CAUSES, line, f"the cause {cause!r} is missing or there twice")
        if ANY not in prior or min(prior.values()) <= 0:
            raise CatalogueError(CAUSES, line, f"{cause}: `{ANY}` is needed, and all numbers are above 0")
        found[cause] = CauseRow(tuple(mistaken_for.split()), prior)
    return found


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


def read_links(folder: Path = FOLDER) -> list[Link]:
    """Return the links in file order.

    Raises:
        CatalogueError: a row breaks the form of the table; the message names its line.
    """
    links: dict[tuple[str, str], Link] = {}
    for line, row in _rows(folder / LINKS, _COLUMNS):
        link = _link(row, line)
        if (link.cause, link.outcome) in links:
            raise CatalogueError(LINKS, line, f"{link.cause} and {link.outcome} are linked twice")
        links[link.cause, link.outcome] = link
    return list(links.values())


def _link(row: Sequence[str], line: int) -> Link:
    cause, outcome, word, quotes, seen, runs = row
    if not cause or not outcome:
        raise CatalogueError(LINKS, line, "the cause or the outcome is missing")
    if word and word not in map(str, Frequency):
        raise CatalogueError(LINKS, line, f"{word!r} does not say how often; use {', '.join(Frequency)}, or nothing")
    if not word and not runs:
        raise CatalogueError(LINKS, line, f"{cause} and {outcome}: give a word for how often, or counts")
    try:
        counted = (float(seen), float(runs)) if seen or runs else None
    except ValueError:
        raise CatalogueError(LINKS, line, f"seen and runs are numbers, not {seen!r} and {runs!r}") from None
    return Link(cause, outcome, word, tuple(quotes.split()), counted)


def counts(links: Iterable[Link]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the counts by cause and outcome, in the order of their ids."""
    counted: dict[str, dict[str, tuple[float, float]]] = {}
    for link in sorted(links, key=lambda link: (link.cause, link.outcome)):
        if link.counted is not None:
            counted.setdefault(link.cause, {})[link.outcome] = link.counted
    return counted


def with_counts(links: Sequence[Link], counted: Counts) -> Iterator[Link]:
    """Yield the links with other counts: those with a word in their order, then those that counts alone make."""
    by_cause: dict[str, list[Link]] = {cause: [] for cause in (*(link.cause for link in links), *counted)}
    for link in links:
        by_cause[link.cause].append(link)
    for cause, listed in by_cause.items():
        found = counted.get(cause, {})
        worded = [link for link in listed if link.word]
        yield from (replace(link, counted=found.get(link.outcome)) for link in worded)
        further = found.keys() - {link.outcome for link in worded}
        yield from (Link(cause, outcome, "", (), found[outcome]) for outcome in sorted(further))


def write_links(links: Iterable[Link], folder: Path = FOLDER) -> None:
    """Write the table."""
    with (folder / LINKS).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for link in links:
            pair = ("", "") if link.counted is None else map(_number, link.counted)
            writer.writerow((link.cause, link.outcome, link.word, " ".join(link.quotes), *pair))


def _number(value: float) -> str:
    return f"{round(value, 3):g}" if value != int(value) else str(int(value))
