"""The prompts of `--reader` on labelled runs, the replies to them, and what both opinions are worth together."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.faults.figures import calibration_error, side_by_side, table
from benchmarks.foreign.answers import Judged
from benchmarks.foreign.labels import Truth, labelled, truth
from benchmarks.foreign.tables import called_healthy, right_causes
from benchmarks.readers.draw import Drawn, copied
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.diagnosis import diagnose_run
from mldebug_mcp.judge.reader import (
    OWN_WEIGHT,
    READER_WEIGHT,
    Fact,
    RefusedReplyError,
    facts_of,
    pooled,
    prompt_for,
    read_reply,
)

PROMPTS, REPLIES = "prompts", "replies"
KEY = "key.jsonl"
KEPT = Path(__file__).parent / "replies.jsonl"
"""Own probabilities and replies by run, without labels: what the weights of the pool were fitted on."""
OWN_WEIGHTS = tuple(round(0.05 * step, 2) for step in range(7))
READER_WEIGHTS = tuple(round(0.8 + 0.05 * step, 2) for step in range(17))
FOLDS, DRAWS = 5, 1000
"""Parts of the runs that are left out in turn, and draws of answers that are right as often as they say."""


def write(drawn: Sequence[Drawn], folder: Path) -> None:
    """Write a prompt for each run, and which run it is; one that is refused has no prompt and counts as missed."""
    (folder / PROMPTS).mkdir(parents=True)
    (folder / REPLIES).mkdir()
    with (folder / KEY).open("w", encoding="utf-8") as key:
        for number, run in enumerate(drawn, start=1):
            one = replace(run, name=f"run-{number:03}")
            entry: dict[str, Any] = {"run": one.name, "log": f"{one.one.folder}/{one.one.name}"}
            with tempfile.TemporaryDirectory() as copies:
                try:
                    diagnosis = diagnose_run(copied(one, Path(copies)))
                except InputError:
                    key.write(json.dumps(entry | {"own": {}, "copied": []}) + "\n")
                    continue
                facts = facts_of(diagnosis)
                prompt = prompt_for(diagnosis, facts)
                entry["own"] = {cause.cause: round(cause.probability, 5) for cause in diagnosis.hypotheses}
                entry["copied"] = [fact.copied for fact in facts]
                entry["characters"] = len(prompt)
                (folder / PROMPTS / f"{one.name}.txt").write_text(prompt, encoding="utf-8")
            key.write(json.dumps(entry) + "\n")


@dataclass(frozen=True)
class Read:
    """A run with both opinions.

    Args:
        truth: What is right.
        own: The own probabilities.
        reader: The reader's; empty where no reply can be used.
        entry: The line of the key.
        reply: As it came back.
    """

    truth: Truth
    own: Mapping[str, float]
    reader: Mapping[str, float]
    entry: Mapping[str, Any]
    reply: str

    def combined(self, own_weight: float = OWN_WEIGHT, reader_weight: float = READER_WEIGHT) -> Mapping[str, float]:
        """Return both together; the own alone where no reply can be used."""
        return pooled(self.own, self.reader, own_weight, reader_weight) if self.reader else self.own


@dataclass(frozen=True)
class Opinion(Judged):
    """A ranking with the probability of its first cause."""

    probability: float = 0.0


def replies_of(folder: Path, labels: Mapping[str, Truth]) -> list[Read]:
    """Return the runs of a folder that `write` made and readers replied to."""
    lines = (folder / KEY).read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return [_read(entry, _text(folder / REPLIES / f"{entry['run']}.json"), labels) for entry in entries]


def kept_replies(labels: Mapping[str, Truth], file: Path = KEPT) -> list[Read]:
    """Return the runs whose replies are kept, and whose labels are at hand."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [_read(row["run"], row["reply"], labels) for row in rows if row["run"]["log"] in labels]


def keep(ones: Sequence[Read], file: Path = KEPT) -> None:
    """Add the replies as they came, each with the own probabilities; no label. A run may be read several times."""
    kept = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    rows = [json.dumps({"run": one.entry, "reply": one.reply}) for one in ones]
    file.write_text("".join(f"{row}\n" for row in dict.fromkeys([*kept, *rows])), encoding="utf-8")


def labels_of(folders: Sequence[Path]) -> dict[str, Truth]:
    """Return what is right for each run of some labelled folders."""
    ones = [one for folder in folders for one in labelled(folder, closed=True)]
    return {f"{one.folder}/{one.name}": right for one in ones if (right := truth(one)) is not None}


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _read(entry: Mapping[str, Any], reply: str, labels: Mapping[str, Truth]) -> Read:
    facts = [Fact("", copied=copied) for copied in entry["copied"]]
    try:
        named = {one.cause: one.probability for one in read_reply(reply, facts).causes} if entry["own"] else {}
    except RefusedReplyError:
        named = {}
    return Read(labels[entry["log"]], entry["own"], named, entry, reply)


def measured(ones: Sequence[Read]) -> str:
    """Return how often each opinion is right, as a table."""
    folds = list(_left_out(ones))
    opinions = {
        "own ranking": [_opinion(one, one.own) for one in ones],
        "reader": [_opinion(one, one.reader or one.own) for one in ones],
        "together": [_opinion(one, one.combined()) for one in ones],
        "together, weights of the other runs": [_opinion(one, both) for one, both in folds],
    }
    rows = side_by_side({name: _figures(judged) for name, judged in opinions.items()})
    refused = sum(not one.reader for one in ones)
    characters = [one.entry["characters"] for one in ones if "characters" in one.entry]
    own_weight, reader_weight = fitted_weights(ones)
    runs = len({one.entry["log"] for one in ones})
    return "\n\n".join(
        [
            table(rows),
            f"{len(ones)} readings of {runs} runs; {refused} without a reply that can be used; characters of a prompt: "
            f"median {median(characters):.0f}, most {max(characters)}; best weights: own {own_weight}, reader "
            f"{reader_weight}",
            f"calibration error that chance leaves so few opinions that are as sure as they are right: "
            f"{_error_by_chance(opinions['together']):.3f}",
        ]
    )


def _figures(judged: Sequence[Opinion]) -> dict[str, str]:
    return {
        **right_causes(judged),
        **called_healthy(judged),
        "expected calibration error": f"{calibration_error(judged):.3f}",
    }


def _opinion(one: Read, shares: Mapping[str, float]) -> Opinion:
    ranked = sorted(shares, key=lambda cause: -shares[cause])
    return Opinion(one.truth, ranked, shares[ranked[0]] if ranked else 0.0)


def fitted_weights(ones: Sequence[Read]) -> tuple[float, float]:
    """Return the weights of the pool whose leading cause is as sure as it is right: the least squared error."""
    both = [one for one in ones if one.reader]
    pairs = ((own, reader) for own in OWN_WEIGHTS for reader in READER_WEIGHTS)
    return min(pairs, key=lambda pair: sum(_squared_error(one, one.combined(*pair)) for one in both))


def _squared_error(one: Read, shares: Mapping[str, float]) -> float:
    first = max(shares, key=lambda cause: shares[cause])
    return (shares[first] - (first in one.truth.right)) ** 2


def _left_out(ones: Sequence[Read]) -> Iterator[tuple[Read, Mapping[str, float]]]:
    """Yield each reading with both opinions pooled by weights that were fitted on other runs."""
    places = {log: place for place, log in enumerate(sorted({one.entry["log"] for one in ones}))}
    folds = [places[one.entry["log"]] % FOLDS for one in ones]
    for fold in range(FOLDS):
        weights = fitted_weights([one for one, other in zip(ones, folds, strict=True) if other != fold])
        yield from ((one, one.combined(*weights)) for one, other in zip(ones, folds, strict=True) if other == fold)


def _error_by_chance(opinions: Sequence[Opinion]) -> float:
    """Return the median calibration error of answers that are right as often as they say, so few as there are."""
    rng = np.random.default_rng(0)
    shares = [one.probability for one in opinions]
    drawn = (calibration_error([_Drawn(share, bool(rng.random() < share)) for share in shares]) for _ in range(DRAWS))
    return median(drawn)


@dataclass(frozen=True)
class _Drawn:
    """An answer that is right by chance."""

    probability: float
    is_right: bool

    def right(self, places: int) -> bool:
        return self.is_right and places > 0
