"""What labelled runs showed, counted and written: see `mldebug_mcp.judge.hypotheses`."""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mldebug_mcp.judge.hypotheses import Counts
from mldebug_mcp.knowledge import Cause
from mldebug_mcp.knowledge.catalogue import COLUMNS_OF_LINKS, FOLDER, LINKS, Link
from mldebug_mcp.models import State
from mldebug_mcp.models.base import SOUND

MISSED = 0.15
"""See `Trust`. Chosen: 0 here and below fits the runs of one author best, which logs of other people contradict. With
these two the causes of authors whom the fit never saw come first most often."""
UNLISTED = 0.25
"""See `Trust`. Chosen, together with the above."""
AMONG_FAULTS = 1.4
"""Power to which the shares of faults among themselves are raised. Chosen: with 1.75 one in ten of those expected to
be 95 % sure was wrong in runs of authors whom the fit never saw; with 1 fewer have their cause first."""
SHARPNESSES = tuple(round(0.5 + 0.05 * step, 2) for step in range(19))


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run whose causes are known, the injected one first; a version `of` another run names it, others have ""."""

    causes: tuple[str, ...]
    states: Mapping[str, State]
    of: str = ""

    @property
    def judged(self) -> list[str]:
        """The symptoms that could be judged."""
        return [symptom for symptom, state in self.states.items() if state is not State.UNKNOWN]


def count(runs: Sequence[LabelledRun]) -> tuple[dict[str, Counts], Counts]:
    """Return the counts by injected cause, and those of the healthy runs.

    A run counts as one for each symptom that could be judged in any of its versions, be it in its recording alone.
    """
    versions = Counter((run.of, symptom) for run in runs for symptom in run.judged)
    counted: dict[str, Counts] = {}
    for run in runs:
        of_cause = counted.setdefault(run.causes[0], {})
        for symptom in run.judged:
            share = 1 / versions[run.of, symptom] if run.of else 1.0
            present, judged = of_cause.get(symptom, (0.0, 0.0))
            of_cause[symptom] = (present + share * (run.states[symptom] is State.PRESENT), judged + share)
    return counted, counted.pop(SOUND, {})


def fit_sharpness(error: Callable[[float], float]) -> float:
    """Return the sharpness with the least error: of calibration, with numbers counted on other runs than these."""
    return min(SHARPNESSES, key=error)


def fingerprint(causes: Iterable[Cause]) -> str:
    """Return what tells one table of links from another: which symptoms each cause shows, and how often by its word.

    Numbers that were counted with one table are stale for another.
    """
    links = sorted(
        f"{cause.id} {effect.symptom} {effect.frequency.value}" for cause in causes for effect in cause.effects
    )
    return hashlib.sha256("\n".join(links).encode()).hexdigest()[:16]


def with_counts(links: Sequence[Link], counted: Mapping[str, Counts]) -> Iterator[Link]:
    """Yield the links with other counts: those with a word in their order, then those that counts alone make."""
    by_cause: dict[str, list[Link]] = {cause: [] for cause in (*(link.cause for link in links), *counted)}
    for link in links:
        by_cause[link.cause].append(link)
    for cause, listed in by_cause.items():
        found = counted.get(cause, {})
        worded = [link for link in listed if link.word]
        yield from (link._replace(counted=found.get(link.outcome)) for link in worded)
        further = found.keys() - {link.outcome for link in worded}
        yield from (Link(cause, outcome, "", (), found[outcome]) for outcome in sorted(further))


def write_links(links: Iterable[Link], folder: Path = FOLDER) -> None:
    """Write the table."""
    with (folder / LINKS).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS_OF_LINKS)
        for link in links:
            pair = ("", "") if link.counted is None else map(_number, link.counted)
            writer.writerow((link.cause, link.outcome, link.word, " ".join(link.quotes), *pair))


def _number(value: float) -> str:
    return f"{round(value, 3):g}" if value != int(value) else str(int(value))
