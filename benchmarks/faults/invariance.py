"""The same run, written in another way: does it keep its first cause?

Only ways that tell the same are compared: a style that has no place for what the log tells, or whose digits lose a
hundredth, is left out of the pairs of that run. A longer interval is tried on runs whose fault shows for long.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

from tests.restyle.style import Style, random_style
from tests.restyle.styles import STYLES
from tests.restyle.templates import TEMPLATES
from tests.restyle.variants import with_scaled_steps, with_weight_norm

from benchmarks.corpus.labels import Label, read_labels
from benchmarks.faults.deciding import BRIEF, columns
from benchmarks.faults.figures import Rows, share
from benchmarks.faults.recorded import recorded
from benchmarks.faults.restyle import LEAST_RECORDS, Content, content, faithful, suited, version_of, with_interval
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.models import State

PLAIN = STYLES["jsonl_plain"]
"""The style in which a change of the run itself is compared with the run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The first cause, and the symptoms that were found present."""

    cause: str
    present: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pair:
    """A run and the same run written in another way.

    Args:
        run: Its name.
        change: What was changed: "style", or what of the run itself.
        style: The style of the second log.
        before: What is said of the first.
        after: What is said of the second.
    """

    run: str
    change: str
    style: str
    before: Answer
    after: Answer

    @property
    def kept(self) -> bool:
        """Whether the first cause is the same."""
        return self.before.cause == self.after.cause


def sampled(made: Path, count: int, seed: int) -> list[tuple[str, Label]]:
    """Return so many runs of a folder, drawn at random, that can be written anew."""
    every = [*read_labels(made).items()]
    drawn = Random(seed).sample(every, len(every))  # noqa: S311 - repeatable
    return [(name, label) for name, label in drawn if _content(made, name) is not None][:count]


def styles_of(count: int, seed: int) -> list[Style]:
    """Return so many styles: the named ones whose names are free, in an order drawn at random, then random ones."""
    draw = Random(seed)  # noqa: S311 - repeatable
    named = [style for style in STYLES.values() if style.form not in TEMPLATES]
    half = draw.sample(named, min(len(named), (count + 1) // 2))
    return half + [random_style(draw.randrange(10**6)) for _ in range(count - len(half))]


def measure(made: Path, runs: int, styles: int, *, seed: int, processes: int) -> list[Pair]:
    """Diagnose runs of a folder in all ways, and return the pairs."""
    ask = partial(pairs, made=made, styles=styles_of(styles, seed))
    with get_context("spawn").Pool(processes) as pool:
        return [pair for some in pool.imap(ask, sampled(made, runs, seed)) for pair in some]


def pairs(case: tuple[str, Label], made: Path, styles: Sequence[Style]) -> list[Pair]:
    """Return the pairs of a run: in each style, and with each change of its own."""
    name, label = case
    whole = _content(made, name)
    assert whole is not None
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return [*_in_styles(name, whole, made, styles, place), *_changed(name, whole, label, place)]


def _content(made: Path, name: str) -> Content | None:
    try:
        return content(recorded(made / name), name)
    except ValueError:
        return None


def _in_styles(name: str, whole: Content, made: Path, styles: Iterable[Style], place: Path) -> Iterator[Pair]:
    before = answer(made / name)
    wanted = columns(whole.story.curves, settings=whole.told, passes=whole.passes)
    for style in styles:
        fitted = suited(style, whole, Random(f"{name} {style.name}"))  # noqa: S311 - repeatable
        if fitted is None:
            continue
        version = version_of(whole, fitted, place / "run")
        if wanted <= version.columns and faithful(whole.story, version.written):
            yield Pair(name, "style", style.name, before, answer(place / "run"))


def _changed(name: str, whole: Content, label: Label, place: Path) -> Iterator[Pair]:
    def told(changed: Content) -> Answer:
        fitted = suited(PLAIN, changed, Random(name))  # noqa: S311 - repeatable
        assert fitted is not None
        version_of(changed, fitted, place / "run")
        return answer(place / "run")

    before = told(whole)
    for change, make in CHANGES.items():
        if change != EVERY_OTHER or _may_thin(whole, label):
            yield Pair(name, change, PLAIN.name, before, told(make(whole)))


def _may_thin(whole: Content, label: Label) -> bool:
    enough = len(whole.story.curves["train", "loss"]) >= 2 * LEAST_RECORDS
    return enough and label.cause not in BRIEF and whole.story.resume is None


EVERY_OTHER = "every other record"
CHANGES: dict[str, Callable[[Content], Content]] = {
    "an irrelevant column": lambda one: replace(one, story=with_weight_norm(one.story)),
    "step axis times ten": lambda one: replace(one, story=with_scaled_steps(one.story, 10)),
    EVERY_OTHER: lambda one: replace(one, story=with_interval(one.story, 2)),
    "four digits": lambda one: replace(one, digits=".4g"),
}


def answer(folder: Path) -> Answer:
    """Diagnose a log; one that is refused has no cause."""
    try:
        said = diagnose_run(folder)
    except InputError:
        return Answer("refused", frozenset())
    present = frozenset(finding.symptom for finding in said.findings if finding.state is State.PRESENT)
    return Answer(said.hypotheses[0].cause, present)


def by_change(ones: Sequence[Pair]) -> Rows:
    """Return how many pairs keep their first cause: one row per change."""
    return [
        {
            "changed": change,
            "pairs": f"{len(found)}",
            "same first cause": share([one.kept for one in found]),
            "same findings": share([one.before.present == one.after.present for one in found]),
        }
        for change, found in _grouped(ones, lambda one: one.change).items()
    ]


def worst_styles(ones: Sequence[Pair], count: int = 15) -> Rows:
    """Return the styles in which most answers change, and the findings that change with them."""
    grouped = _grouped([one for one in ones if one.change == "style"], lambda one: one.style)
    changed = {style: [one for one in found if not one.kept] for style, found in grouped.items()}
    order = sorted(grouped, key=lambda style: -len(changed[style]) / len(grouped[style]))
    return [
        {
            "style": style,
            "pairs": f"{len(grouped[style])}",
            "another first cause": f"{len(changed[style])}",
            "findings that changed": _findings(changed[style], 3),
        }
        for style in order[:count]
        if changed[style]
    ]


def by_finding(ones: Sequence[Pair], count: int = 25) -> Rows:
    """Return the findings that come or go most often where the first cause changes, with a run for each."""
    changed = [one for one in ones if not one.kept]
    often = Counter(symptom for one in changed for symptom in one.before.present ^ one.after.present)
    rows = []
    for symptom, times in often.most_common(count):
        one = next(one for one in changed if symptom in one.before.present ^ one.after.present)
        example = f"{one.run}, {one.change}, {one.style}: {one.before.cause} → {one.after.cause}"
        rows.append({"finding": symptom, "pairs": f"{times}", "for example": example})
    return rows


def _findings(ones: Iterable[Pair], count: int) -> str:
    often = Counter(symptom for one in ones for symptom in one.before.present ^ one.after.present)
    return ", ".join(f"{symptom} ({times})" for symptom, times in often.most_common(count)) or "none"


def _grouped(ones: Iterable[Pair], key: Callable[[Pair], str]) -> dict[str, list[Pair]]:
    groups: dict[str, list[Pair]] = defaultdict(list)
    for one in ones:
        groups[key(one)].append(one)
    return groups
