"""Count how often readers are right, beside the tool's own ranking of the same runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults.figures import side_by_side, table
from benchmarks.foreign.answers import Judged
from benchmarks.foreign.labels import Truth
from benchmarks.foreign.tables import called_healthy, right_causes
from benchmarks.readers.draw import HIDDEN, KEY, SHOWN
from mldebug_mcp.knowledge import catalogue

ANSWERS = "answers*.jsonl"
PLACES = ("first", "second", "third")
TOOL = "the tool's ranking"


@dataclass(frozen=True)
class _Reader:
    """What somebody named for each run.

    Args:
        name: The form of the answers that they read, and of several readers of one form which one.
        named: Causes by run, best first.
        not_listed: How many words they named that are no cause of the list.
    """

    name: str
    named: Mapping[str, Sequence[str]]
    not_listed: int = 0


def score(folder: Path) -> str:
    """Return the figures as a table in Markdown, a column for each reader and one for the tool.

    Raises:
        SystemExit: there is no key, no answer, or a line that cannot be read; the message says where.
    """
    key = {entry["run"]: entry for entry in map(json.loads, _lines(folder / KEY))}
    readers = [
        _reader(path, form, set(key)) for form in (HIDDEN, SHOWN) for path in sorted((folder / form).glob(ANSWERS))
    ]
    if not readers:
        raise SystemExit(
            f"{folder}: no {HIDDEN}/{ANSWERS} and no {SHOWN}/{ANSWERS} yet; questions.md says how to answer"
        )
    tool = _Reader(TOOL, {run: entry["ranking"] for run, entry in key.items()})
    return table(side_by_side({one.name: _measures(one, key) for one in (*readers, tool)}))


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}; name a folder that `draw` wrote") from None


def _reader(path: Path, form: str, runs: set[str]) -> _Reader:
    causes = catalogue().causes.keys()
    named: dict[str, list[str]] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            answer = json.loads(line)
            run, said = answer["run"], [str(answer[place]) for place in PLACES if answer.get(place)]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SystemExit(f"{path}, line {number}: not an object with `run` and `first` ({error})") from None
        if run not in runs or run in named:
            raise SystemExit(
                f"{path}, line {number}: {run!r} {'is answered twice' if run in named else 'was not asked'}"
            )
        named[run] = said
    which = path.stem.removeprefix("answers").strip("-_. ")
    unlisted = sum(cause not in causes for said in named.values() for cause in said)
    return _Reader(f"{form} {which}".strip(), named, unlisted)


def _measures(reader: _Reader, key: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    ones = [Judged(_truth(entry), reader.named.get(run, ())) for run, entry in key.items()]
    return {
        "runs answered": f"{sum(bool(one.causes) for one in ones)} of {len(ones)}",
        **right_causes(ones),
        **called_healthy(ones),
        "words that are no cause of the list": f"{reader.not_listed}",
    }


def _truth(entry: Mapping[str, Any]) -> Truth:
    return Truth(frozenset(entry["right"]), frozenset(entry["near"]), healthy=entry["healthy"])
