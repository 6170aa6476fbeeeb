"""Making any answer fit a number of characters: long texts and lists are cut, evenly, until it does.

Two things are whole or not there: a quote, which is verbatim or none, and what other calls take, such as an id.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

from mldebug_mcp.models import Call, Citation, Hypothesis, Model, RankedCause, RunVerdict

_ROOM = (
    (4000, 200), (2000, 80), (1200, 50), (800, 30), (500, 24), (350, 18), (250, 14), (180, 11), (120, 9), (80, 8),
    (60, 7), (48, 6),
)  # fmt: skip
"""Characters of a text and entries of a list or mapping that are kept, in the order in which they are tried. Inside
a list, texts get half of the characters and lists a third of the entries: that they are there counts more."""
LEAST_CHARACTERS = 24
PASSED_ON = frozenset({"id", "cause", "symptom", "check", "call"})
"""Fields that an agent passes on as they stand: ids, and calls to make."""
LONGEST_PASSED_ON = 300
"""In characters: no id is so long, and a call only where a path is."""
_WHOLE = (Call, Hypothesis, RankedCause)
"""Lists of these are never cut: a call must stay complete, and probabilities sum to 1."""

DIGITS = 4
"""Of a probability: more would say more than anybody knows."""

Answer = TypeVar("Answer", bound=Model)
Judged = TypeVar("Judged", Hypothesis, RankedCause)


def rounded(causes: Sequence[Judged]) -> list[Judged]:
    """Return causes with as many digits of their probabilities as mean something."""
    return [one.model_copy(update={"probability": round(one.probability, DIGITS)}) for one in causes]


def fitted(answer: Answer, limit: int) -> Answer:
    """Return the answer, cut as little as makes its JSON at most `limit` characters long."""
    for characters, entries in _ROOM:
        if length(answer) <= limit:
            return answer
        answer = _cut_model(answer, characters, entries)
    return answer


def length(answer: Model) -> int:
    """Return the characters of the answer in the longest of the usual forms of JSON: spaced, and ASCII only."""
    return len(json.dumps(as_json(answer)))


def as_json(answer: Model) -> dict[str, object]:
    """Return the answer as it is sent; what a short form did not set is left out."""
    return answer.model_dump(mode="json", exclude_unset=True)


def _cut_model(answer: Answer, characters: int, entries: int) -> Answer:
    cut = {
        name: _cut_field(name, value, characters, entries) for name, value in answer if name in answer.model_fields_set
    }
    return answer.model_copy(update=cut)


def _cut_field(name: str, value: object, characters: int, entries: int) -> object:
    """Return a field, cut; what is passed on to other calls is of no use in parts."""
    if name not in PASSED_ON or not isinstance(value, str):
        return _cut(value, characters, entries)
    if len(value) <= LONGEST_PASSED_ON:
        return value
    return None if name == "call" else _cut(value, characters, entries)


def _cut(value: object, characters: int, entries: int) -> object:
    if isinstance(value, str):
        return value if len(value) <= characters else value[: characters - 1] + "…"
    if isinstance(value, Call | RunVerdict):  # what tells what to do is whole; a verdict bounds itself
        return value
    if isinstance(value, Model):
        return _cut_model(value, characters, entries)
    if isinstance(value, list):
        return _cut_list(value, characters, entries)
    if isinstance(value, dict):
        return {
            _cut(key, characters, entries): _cut(one, characters, entries) for key, one in list(value.items())[:entries]
        }
    return value


def _cut_list(values: list[object], characters: int, entries: int) -> list[object]:
    if values and isinstance(values[0], Citation):
        return [one for one in values[:entries] if isinstance(one, Citation) and len(one.text) <= characters]
    kept = values if values and isinstance(values[0], _WHOLE) else values[:entries]
    return [_cut(one, max(LEAST_CHARACTERS, characters // 2), entries // 3) for one in kept]
