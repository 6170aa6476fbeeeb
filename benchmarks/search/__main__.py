"""How well and how fast search answers: `python -m benchmarks.search` prints recall@5, MRR, load and query times.

`learn.py` fits what tells the causes apart, on the tuning halves, so that they are answered better than those held
out: look at these alone to know how good the search is.

`questions.jsonl` holds questions as users put them, each with the ids that a right answer holds. A question counts as
recalled if one of those ids is among the first five hits of all kinds, in the order of their scores. Questions on even
lines were used to tune the search, those on odd lines were held out.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cost import cost_of
from benchmarks.search import plain

from mldebug_mcp.judge.search import search_folklore

Question = dict[str, object]
TIMES = 5
"""How often each question is asked for its time."""
LOAD = ("from mldebug_mcp.knowledge import catalogue", "catalogue()")


def rank(question: Question) -> int | None:
    """Return the rank of the first right hit among the first five, from 1, or None."""
    found, right = plain.hits(str(question["question"]))[:5], question["right"]
    assert isinstance(right, list)
    return next((place for place, hit in enumerate(found, start=1) if hit.id in right), None)


def report(name: str, questions: Sequence[Question], *, show_misses: bool) -> None:
    """Print recall@5 and mean reciprocal rank of some questions."""
    ranks = [rank(question) for question in questions]
    recall = sum(place is not None for place in ranks) / len(ranks)
    reciprocal = statistics.fmean(1 / place if place else 0.0 for place in ranks)
    print(f"{name:>9}: {len(questions):3d} questions, recall@5 {recall:.3f}, MRR {reciprocal:.3f}")
    if show_misses:
        for question, place in zip(questions, ranks, strict=True):
            if place is None:
                print(f"           missed: {question['question']}")


def processor_times(question: str) -> list[float]:
    """Return how many milliseconds of processor time the answer to a question takes, several times over."""
    times = []
    for _ in range(TIMES):
        start = time.process_time()
        search_folklore(question)
        times.append((time.process_time() - start) * 1000)
    return times


def main() -> None:
    """Print the figures; with `--misses` the questions of the tuning half that were missed too."""
    lines = (Path(__file__).parent / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions: list[Question] = [json.loads(line) for line in lines]
    search_folklore("warm up")
    report("tuning", questions[::2], show_misses="--misses" in sys.argv)
    report("held out", questions[1::2], show_misses=False)
    for file in plain.FILES:
        name, asked = file.partition(".")[0], plain.plain_questions(file)
        plain.report(f"{name}, tuning", asked[::2], show_misses="--misses" in sys.argv)
        plain.report(f"{name}, held out", asked[1::2], show_misses=False)
    for half, name in ((0, "tuning"), (1, "held out")):
        every = [one for file in plain.FILES for one in plain.plain_questions(file)[half::2]]
        plain.report(f"all, {name}", every, show_misses=False)
    plain.report("askers, left out", plain.askers(left_out=True), show_misses=False)
    for file in plain.UNSEEN:
        plain.report(f"{file.partition('.')[0]}, never used", plain.plain_questions(file), show_misses=False)
    times = [statistics.median(processor_times(str(question["question"]))) for question in questions]
    print(f"    query: median {statistics.median(times):.2f} ms of processor time; slowest {max(times):.2f} ms")
    loads = [1000 * cost_of(*LOAD).cpu for _ in range(5)]
    print(f"     load: median {statistics.median(loads):.0f} ms of processor time (catalogue, in a fresh process)")


if __name__ == "__main__":
    main()
