"""Fit what tells the cause that a question is about: `python -m benchmarks.search.learn` writes `learnt.npz`.

It learns from how people ask for each cause, from what the entries say that speak for it, from the tuning halves of the
questions and from most of `askers.jsonl`; questions on odd lines, and all of what is never used, it never sees.

`ways.jsonl` holds further ways to ask for each cause, written from what goes wrong in each field of training and
without a look at the questions held out, and under `*` ways to ask for errors that lead to none. They are only learnt
from.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.search import plain
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mldebug_mcp import knowledge
from mldebug_mcp.judge.search import indexed
from mldebug_mcp.knowledge.search_index import (
    ALONE_MARK,
    LEARNT_FILE,
    NEXT,
    NO_CAUSE,
    OTHER,
    PIECE,
    Document,
    Index,
    asked_for,
    features,
)

Floats = NDArray[np.float32]
LEAST = 2
"""Texts that a feature has to stand in."""
SMOOTHNESS = 1e-5
"""What the square of a weight costs (fitted on fifths of the tuning halves)."""
ROUNDS = 40
STEPS = 15
"""Of a weight, to either side of zero (measured: more change no answer and take more room)."""
PAIRS = 8
"""Steps that the search for the least cost remembers."""
ENOUGH = 1e-5
"""Share of the cost by which a round has to lower it (chosen: more rounds fit the lessons and no other question)."""
FIRST_STEP, SHORTER, LEAST_GAIN, TRIES = 1.0, 0.4, 1e-4, 12
"""Of the search along a line (chosen: usual ones)."""
OWN, SPEAKING, OF_TOPIC, ASKED, WRITTEN = 1.0, 0.5, 0.4, 2.0, 1.25
"""What a way to ask for a cause counts, an entry that speaks for it, a way to ask for such an entry, a question, and
a way to ask of `ways.jsonl`."""
KINDS = {PIECE: 0.3, NEXT: 0.5, ALONE_MARK: 0.5}
"""What pieces, neighbours and single words count beside stems (fitted on all files but one at a time)."""
WAYS = "ways.jsonl"
LONGEST = 300
"""Characters of an entry that are read."""
SHORTEST_SENTENCE, LONGEST_SENTENCE = 15, 220
"""In characters: what is shorter or longer is no way to ask."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text, the share of each cause in what it is about, and how much it counts."""

    text: str
    about: Mapping[str, float]
    counts: float


def ways(cause: Document) -> Iterator[str]:
    """Yield each way to ask for a cause, and its own sentences."""
    yield cause.id.replace("_", " ")
    yield from asked_for((*cause.tags, cause.id))
    yield from cause.asked
    sentences = re.split(r"(?<=[.;])\s", cause.text)
    yield from (one for one in sentences if SHORTEST_SENTENCE < len(one) <= LONGEST_SENTENCE)


def even(causes: Sequence[str]) -> dict[str, float]:
    """Return the same share for each cause."""
    return dict.fromkeys(causes, 1 / len(causes))


def of_entries(documents: Sequence[Document]) -> Iterator[Lesson]:
    """Yield what the entries teach."""
    topics: dict[str, Counter[str]] = {}
    for one in documents:
        if one.kind == "cause":
            yield from (Lesson(said, {one.id: 1.0}, OWN) for said in ways(one))
        text = one.summary if one.kind == "quote" else one.text
        led = one.leads_to or ((NO_CAUSE,) if one.kind in ("error", "symptom") else ())
        yield from (Lesson(text[:LONGEST], {cause: 1.0}, SPEAKING) for cause in led)
        for said in asked_for((*one.tags, one.id)) if one.kind in ("quote", "symptom") else ():
            topics.setdefault(said, Counter()).update(one.leads_to)
    for said, about in topics.items():
        yield from [Lesson(said, {cause: n / about.total() for cause, n in about.items()}, OF_TOPIC)] if about else []


def of_questions() -> Iterator[Lesson]:
    """Yield what the tuning halves of the questions teach, and the ways to ask."""
    files = [plain.plain_questions(file)[::2] for file in plain.FILES]
    for one in (*chain.from_iterable(files), *plain.askers(left_out=False)):
        yield Lesson(one.question, even(one.causes or (OTHER,)), ASKED)
    for one in plain.plain_questions(plain.ELSEWHERE):
        yield Lesson(one.question, {OTHER: 1.0}, ASKED)
    lines = (Path(__file__).parent / WAYS).read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        yield from (Lesson(asked, {row["cause"]: 1.0}, WRITTEN) for asked in row["asked"])


def table(known: Sequence[Sequence[str]], names: Sequence[str], rarity: Floats) -> csr_matrix:
    """Return a row of length 1 for each text, with how rare each of its features is."""
    place = {name: column for column, name in enumerate(names)}
    held = [sorted({place[one] for one in each if one in place}) for each in known]
    ends = np.cumsum([0, *map(len, held)])
    values = np.concatenate([rarity[each] / max(float(np.linalg.norm(rarity[each])), 1e-9) for each in held])
    return csr_matrix((values, np.concatenate(held).astype(int), ends), shape=(len(held), len(names)))


def fit(rows: csr_matrix, about: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return the weights of each feature for each class, and of each class, by logistic regression."""
    width, classes = rows.shape[1], about.shape[1]
    share = (counts / counts.sum())[:, None]
    turned = rows.T.tocsr()

    def cost(point: Floats) -> tuple[float, Floats]:
        weights, bias = point[: width * classes].reshape(width, classes), point[width * classes :]
        scores = rows @ weights + bias
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        slope = share * (np.exp(logs) - about)
        steep = np.concatenate([(turned @ slope + 2 * SMOOTHNESS * weights).ravel(), slope.sum(axis=0)])
        return float(-(share * about * logs).sum() + SMOOTHNESS * (weights**2).sum()), steep.astype(np.float32)

    found = least(cost, np.zeros(width * classes + classes, dtype=np.float32))
    return found[: width * classes].reshape(width, classes), found[width * classes :]


def least(cost: Callable[[Floats], tuple[float, Floats]], point: Floats) -> Floats:
    """Return where a cost is least, by L-BFGS in single precision: SciPy's takes ten times as long on so many weights.

    Args:
        cost: Gives the cost at a point, and its slope.
        point: Where to start.
    """
    height, slope = cost(point)
    steps: list[tuple[Floats, Floats, float]] = []
    for _ in range(ROUNDS):
        way = -_turned(slope, steps)
        length, steep = FIRST_STEP, float(slope @ way)
        for _ in range(TRIES):
            reached = point + np.float32(length) * way
            low, other = cost(reached)
            if low <= height + LEAST_GAIN * length * steep:
                break
            length *= SHORTER
        gained, step, bend = height - low, reached - point, other - slope
        point, height, slope = reached, low, other
        if float(step @ bend) > 0:
            steps = [*steps, (step, bend, 1 / float(step @ bend))][-PAIRS:]
        if abs(gained) < ENOUGH * height:
            break
    return point


def _turned(slope: Floats, steps: Sequence[tuple[Floats, Floats, float]]) -> Floats:
    """Return a slope as the bends of the last steps turn it: the loop of L-BFGS over them, back and forth."""
    way = slope.copy()
    shares = []
    for step, bend, inverse in reversed(steps):
        shares.append(inverse * float(step @ way))
        way -= np.float32(shares[-1]) * bend
    last = float(steps[-1][0] @ steps[-1][1]) / float(steps[-1][1] @ steps[-1][1]) if steps else 0.0
    way *= np.float32(last or 1 / max(float(np.linalg.norm(slope)), 1e-9))
    for (step, bend, inverse), share in zip(steps, reversed(shares), strict=True):
        way += np.float32(share - inverse * float(bend @ way)) * step
    return way


def learn(lessons: Sequence[Lesson], index: Index) -> dict[str, NDArray[Any]]:
    """Return the arrays of the model."""
    known = [list(features(*index.known_by(one.text))) for one in lessons]
    often = Counter(name for each in known for name in set(each))
    names = sorted(name for name, times in often.items() if times >= LEAST)
    causes = sorted({cause for one in lessons for cause in one.about})
    about = np.array([[one.about.get(cause, 0.0) for cause in causes] for one in lessons], dtype=np.float32)
    counts = np.array([one.counts for one in lessons], dtype=np.float32)
    kinds = [KINDS.get(name[0], 1.0) if len(name) > 1 else 1.0 for name in names]
    rarity = np.log(len(known) / np.array([often[name] for name in names], dtype=np.float32))
    rarity *= np.array(kinds, dtype=np.float32)
    weights, bias = fit(table(known, names, rarity), about, counts)
    scale = np.abs(weights).max(axis=1, keepdims=True) / STEPS
    return {
        "features": np.frombuffer("\n".join(names).encode(), dtype=np.uint8),
        "causes": np.frombuffer("\n".join(causes).encode(), dtype=np.uint8),
        "weights": np.round(weights / np.maximum(scale, 1e-9)).astype(np.int8),
        "scale": scale[:, 0].astype(np.float32),
        "rarity": rarity,
        "bias": bias,
    }


def main() -> None:
    """Fit the model and write it."""
    documents = list(indexed())
    model = learn([*of_entries(documents), *of_questions()], Index(documents))
    file = Path(knowledge.__file__).parent / LEARNT_FILE
    np.savez_compressed(file, allow_pickle=False, **model)
    print(f"{LEARNT_FILE}: {model['weights'].shape[0]} features, {file.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
