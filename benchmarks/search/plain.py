"""Questions in plain words, with the causes that the answers of real threads name.

An answer is right if it is one of the causes, a known error that leads to one, or a quote that the section of one
cites; where a question leaves many causes open, also a menu that leads to half of them.

Questions on even lines of `FILES` are used to tune the search, those on odd lines are held out. Most were measured
before anything was changed for them; behind each stands how many were answered right first and among three:

- `plain.jsonl` and `titles.jsonl`: as they are put in issues and forums, and titles of real issues to the letter
- `fresh.jsonl`: on every cause, written before the index was looked at, by who also wrote its phrases: .68 and .80
- `last.jsonl` and `late.jsonl`: titles that were collected later: .56 and .76, .759 and .897
- `threads.jsonl`: what people asked in threads, in other words: .540 and .758
- `real.jsonl`: further titles to the letter: .661 and .831
- `symptoms.jsonl`: what people see, in their words, numbers and slips, on every cause: .739 and .877
- `others.jsonl`: questions of other fields, of which .371 were answered falsely

Of the files of `UNSEEN` no half is used, nor looked at: `latest.jsonl` (.746 and .866 before causes were learnt),
`sealed.jsonl` (.793 and .913; .920 and .987 after) and `strangers.jsonl` (.692 and .867; .892 and .983 after), by a
hand who had seen neither the index nor a question.

`askers.jsonl` holds 900 questions on all causes by somebody who had not seen the index (.508 and .699). They are learnt
from since, but for one in eight, by the hash of the question; misses of either were looked at. `elsewhere.jsonl` holds
questions of other fields, which are only learnt from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mldebug_mcp.judge.search import search_folklore
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.errors import known_errors
from mldebug_mcp.models import EntryHit, QuoteHit

FILES = (
    "plain.jsonl", "titles.jsonl", "late.jsonl", "fresh.jsonl", "last.jsonl", "threads.jsonl", "real.jsonl",
    "symptoms.jsonl", "others.jsonl",
)  # fmt: skip
UNSEEN = ("latest.jsonl", "sealed.jsonl", "strangers.jsonl")
"""Questions of which no half is ever used."""
ELSEWHERE = "elsewhere.jsonl"
"""Questions of other fields that are only learnt from."""
ASKERS = "askers.jsonl"
"""Questions that are learnt from, but for one in so many."""
ONE_IN = 8
VAGUE = 4
"""Causes that are right, from which on a menu answers as well: such a question leaves them open."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A question and the causes that a right answer leads to; none where an honest answer is empty."""

    question: str
    causes: tuple[str, ...]


def plain_questions(file: str) -> list[Plain]:
    """Return the questions of a file in its order."""
    lines = (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines()
    return [Plain(row["question"], tuple(row["causes"])) for row in map(json.loads, lines)]


def askers(*, left_out: bool) -> list[Plain]:
    """Return the questions of `askers.jsonl` that are not learnt from, or those that are."""
    hashes = {one: int(hashlib.sha256(one.question.encode()).hexdigest(), 16) for one in plain_questions(ASKERS)}
    return [one for one, number in hashes.items() if (number % ONE_IN == 0) == left_out]


def hits(question: str, *, whole: bool = False) -> list[QuoteHit | EntryHit]:
    """Return what the search finds of all kinds, the best first."""
    answer = search_folklore(question, limit=5, whole=whole)
    return sorted([*answer.quotes, *answer.entries], key=lambda hit: -hit.score)


def rank(one: Plain) -> int | None:
    """Return the place of the first right hit, from 1, or None."""
    found = enumerate(hits(one.question, whole=True), start=1)
    return next((place for place, hit in found if _is_right(hit.id, set(one.causes))), None)


def _is_right(name: str, causes: set[str]) -> bool:
    known, error = catalogue(), known_errors().get(name)
    if name in known.menus:
        return 2 * len(causes.intersection(known.menus[name].causes)) >= len(causes) >= VAGUE
    if error:
        return not causes.isdisjoint(error.causes)
    return name in causes or any(name in known.causes[cause].quotes for cause in causes)


def report(name: str, questions: Sequence[Plain], *, show_misses: bool) -> None:
    """Print how many questions are answered right, first and among the first three, and how many rightly by nothing."""
    asked = [one for one in questions if one.causes]
    ranks = [rank(one) for one in asked]
    told = [
        f"{sum(place is not None and place <= most for place in ranks) / len(ranks):.3f} {place_name}"
        for most, place_name in ((1, "first"), (3, "among the first three"))
        if ranks
    ]
    others = [one for one in questions if not one.causes]
    silent = sum(not (answer.quotes or answer.entries) for answer in (search_folklore(one.question) for one in others))
    told += [f"{silent} of {len(others)} of other fields answered with nothing"] if others else []
    print(f"{name:>18}: {len(questions):3d} questions, {', '.join(told)}")
    for one, place in zip(asked, ranks, strict=True):
        if show_misses and (place is None or place > 1):
            print(f"           {place}: {one.question} ({', '.join(one.causes)})")
