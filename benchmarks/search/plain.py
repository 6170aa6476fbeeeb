"""Questions in plain words, with the causes that the answers of real threads name.

`plain.jsonl` holds questions as they are put in issues and forums, and `titles.jsonl` titles of real issues to the
letter, with what their answers name. They were written down before anybody looked at what the search finds for them,
and shuffled; those on even lines were then used to tune it, those on odd lines are held out. An answer is right if it
is one of the causes, a known error that leads to one, or a quote that the section of one cites; where a question leaves
many causes open, also a menu that leads to half of them.

`fresh.jsonl` holds questions on every cause, written and labelled before the index was looked at. The first measurement
found .68 first and .80 among the first three; the half on odd lines was never looked at, though who wrote the questions
also wrote the phrases.

`last.jsonl` holds titles collected after all that, and measured once: .56 first and .76 among three before the phrases
were matched one by one, .69 and .90 after. Since then its even lines are used to tune as well.

`late.jsonl` holds titles that were collected last and measured once before anything was changed for them: 0.759 first,
0.897 among the first three. Since then it is like the rest.

`threads.jsonl` holds what people asked in threads, in other words, written and labelled before search was measured on
it: 0.540 first and 0.758 among the first three. `real.jsonl` holds titles to the letter, measured once before anything
was changed for them: 0.661 and 0.831; 0.627 and 0.814 before the last phrases. Who wrote the questions of the threads
also wrote those phrases, and had read most of these threads. Since then the even lines are used to tune.

`checks.jsonl` holds what people see, in their words, numbers and slips, on every cause, some of it titles of issues.
It was written before the index was looked at, ordered by hash, and measured before anything was changed for it: 0.739
first and 0.877 among the first three. Of `others.jsonl`, questions of other fields, 0.371 were answered falsely then.

`latest.jsonl` holds titles and symptoms of real threads, with what their answers name. It was measured before causes
were learnt: 0.746 and 0.866. Neither half is ever looked at or learnt from. `elsewhere.jsonl` holds further questions
of other fields, which are only learnt from.

`askers.jsonl` holds 900 questions on all causes by somebody who had not seen the index. Measured before anything was
changed for them: 0.508 first and 0.699 among the first three. They are learnt from since, but for one in eight, by the
hash of the question; misses of either were looked at, so that these say less than the halves held out.

`sealed.jsonl` holds 150 more by the same hand, kept sealed until the search was done: 0.793 and 0.913 before, 0.920 and
0.987 after. `strangers.jsonl` holds 120 by yet another hand, who had seen neither the index nor a question, measured
once with the search from before all that, 0.692 and 0.867, and once after, 0.892 and 0.983. No half of these is used.
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


def rank(one: Plain) -> int | None:
    """Return the place of the first right hit, from 1, or None."""
    answer = search_folklore(one.question, limit=5, whole=True)
    found: list[QuoteHit | EntryHit] = [*answer.quotes, *answer.entries]
    hits = sorted(found, key=lambda hit: -hit.score)
    return next((place for place, hit in enumerate(hits, start=1) if _is_right(hit.id, set(one.causes))), None)


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
