"""How many labelled runs show the facts on columns: the counts of `relations.csv`."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import Pool
from pathlib import Path

from benchmarks.corpus.labels import read_labels
from mldebug_mcp import InputError
from mldebug_mcp.judge.columns.facts import column_facts
from mldebug_mcp.knowledge.catalogue import COLUMNS_OF_RELATIONS, FOLDER, RELATIONS, Relation, read_relations
from mldebug_mcp.logs import read_run

Shown = tuple[str, frozenset[str]]
"""The cause of a labelled run, and the facts that it shows."""


def show(folders: Iterable[Path], processes: int) -> list[Shown]:
    """Return what the labelled runs of some folders show; a log that is refused shows nothing."""
    runs = [(folder / name, label.cause) for folder in folders for name, label in read_labels(folder).items()]
    with Pool(processes) as pool:
        return pool.starmap(_shown, runs, chunksize=16)


def _shown(path: Path, cause: str) -> Shown:
    try:
        return cause, frozenset(fact.fact for fact in column_facts(read_run(path)))
    except InputError:
        return cause, frozenset()


def counted(relations: Sequence[Relation], shown: Sequence[Shown]) -> Iterator[Relation]:
    """Yield the relations with the runs that were counted."""
    runs = Counter(cause for cause, _ in shown)
    seen = Counter((fact, cause) for cause, facts in shown for fact in facts)
    for relation in relations:
        yield relation._replace(seen=seen[relation.fact, relation.cause], runs=runs[relation.cause])


def write(relations: Iterable[Relation], folder: Path = FOLDER) -> None:
    """Write the table."""
    with (folder / RELATIONS).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS_OF_RELATIONS)
        rows.writerows((fact, cause, f"{bits:g}", seen, runs) for fact, cause, bits, seen, runs in relations)


def table(relations: Iterable[Relation], shown: Sequence[Shown]) -> str:
    """Return each fact with the causes whose runs show it, those without a row in the table included."""
    seen: dict[str, Counter[str]] = {relation.fact: Counter() for relation in relations}
    for cause, facts in shown:
        for fact in facts:
            seen.setdefault(fact, Counter())[cause] += 1
    return "\n".join(
        f"{fact}: {', '.join(f'{cause} {runs}' for cause, runs in causes.most_common()) or 'no run'}"
        for fact, causes in seen.items()
    )


def count(folders: Iterable[Path], processes: int) -> str:
    """Count the runs of some folders into the table, and return what they show."""
    relations, shown = read_relations(), show(folders, processes)
    write(counted(relations, shown))
    return table(relations, shown)
