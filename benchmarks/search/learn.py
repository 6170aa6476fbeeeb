"""Fit what tells the cause that a question is about: `python -m benchmarks.search.learn` writes `learnt.npz`.

It learns from how people ask for each cause, from what the entries say that speak for it, and from the tuning halves of
the questions; those on odd lines, and all of `latest.jsonl`, it never sees.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.search import plain
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from mldebug_mcp import knowledge
from mldebug_mcp.diagnose.search import indexed
from mldebug_mcp.knowledge.asked import asked_for
from mldebug_mcp.knowledge.documents import Document
from mldebug_mcp.knowledge.learnt import FILE, NO_CAUSE, OTHER, features
from mldebug_mcp.knowledge.search_index import Index

Floats = NDArray[np.float32]
LEAST = 2
"""Texts that a feature has to stand in."""
SMOOTHNESS = 1e-5
"""What the square of a weight costs (fitted on fifths of the tuning halves)."""
ROUNDS = 50
OWN, SPEAKING, OF_TOPIC, ASKED = 1.0, 0.5, 0.4, 1.5
"""What a way to ask for a cause counts, an entry that speaks for it, a way to ask for such an entry, and a question."""
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
    yield cause.title.replace("_", " ")
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
    """Yield what the tuning halves of the questions teach."""
    for file in plain.FILES:
        for one in plain.plain_questions(file)[::2]:
            yield Lesson(one.question, even(one.causes or (OTHER,)), ASKED)
    for one in plain.plain_questions(plain.ELSEWHERE):
        yield Lesson(one.question, {OTHER: 1.0}, ASKED)


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

    def cost(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights, bias = np.split(point.astype(np.float32), [width * classes])
        weights = weights.reshape(width, classes)
        scores = rows @ weights + bias
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        slope = share * (np.exp(logs) - about)
        steep = np.concatenate([(turned @ slope + 2 * SMOOTHNESS * weights).ravel(), slope.sum(axis=0)])
        return float(-(share * about * logs).sum() + SMOOTHNESS * (weights**2).sum()), steep.astype(np.float64)

    start = np.zeros(width * classes + classes)
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS, "maxcor": 6}).x
    weights, bias = np.split(found.astype(np.float32), [width * classes])
    return weights.reshape(width, classes), bias


def learn(lessons: Sequence[Lesson], index: Index) -> dict[str, NDArray[Any]]:
    """Return the arrays of the model."""
    known = [list(features(*index.known_by(one.text))) for one in lessons]
    often = Counter(name for each in known for name in set(each))
    names = sorted(name for name, times in often.items() if times >= LEAST)
    causes = sorted({cause for one in lessons for cause in one.about})
    about = np.array([[one.about.get(cause, 0.0) for cause in causes] for one in lessons], dtype=np.float32)
    counts = np.array([one.counts for one in lessons], dtype=np.float32)
    rarity = np.log(len(known) / np.array([often[name] for name in names], dtype=np.float32))
    weights, bias = fit(table(known, names, rarity), about, counts)
    scale = np.abs(weights).max(axis=1, keepdims=True) / 127
    return {
        "features": np.frombuffer("\n".join(names).encode(), dtype=np.uint8),
        "causes": np.frombuffer("\n".join(causes).encode(), dtype=np.uint8),
        "weights": np.round(weights / np.maximum(scale, 1e-9)).astype(np.int8),
        "scale": scale.astype(np.float32),
        "rarity": rarity,
        "bias": bias,
    }


def main() -> None:
    """Fit the model and write it."""
    documents = list(indexed())
    model = learn([*of_entries(documents), *of_questions()], Index(documents))
    file = Path(knowledge.__file__).parent / FILE
    np.savez_compressed(file, allow_pickle=False, **model)
    print(f"{FILE}: {model['weights'].shape[0]} features, {file.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
