"""What a record holds: its numbers by name, the phase that it is of, the metric that its one value is of."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.names import Quantity, role_of
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.metrics import canonical, is_measured, number_in, of_evaluation
from mldebug_mcp.logs.names.quantities import PLACES
from mldebug_mcp.logs.numbers import to_number

ENVELOPES = frozenset({"data", "values", "payload", "fields", "scalars", "record", "body"})
"""What an object is called that everything measured stands in; it says nothing of what that is."""
MAX_RECORD_DEPTH = 8
"""Levels of nesting read from a record."""
MAX_WORDS = 4
"""Words of a text that names a phase: a longer one is a message."""
_KIND = regex(
    r"(?:[a-z]+[_.])*"
    r"(?:split|phase|mode|type|event|stage|kind|subset|set|context|section|part|dataset|tag|loop|name|msg|message)",
    re.IGNORECASE,
)
"""What a field is called that gives the kind of a record."""
_SET = regex(r"(?:[a-z]+[_.])*(?:split|subset|set|part|dataset)", re.IGNORECASE)
"""... and what one is called that names the rows."""
_NAME_OF_SET = regex(r"[a-z]\w{0,30}(?:[-_][a-z]\w{0,30}){0,2}", re.IGNORECASE)
_WORD = regex(r"[^\W\d_]+")
HUMP = regex(r"(?<=[a-z])(?=[A-Z])")
_WITH_PHASE = frozenset({
    "step", "epoch", "batch", "iteration", "end", "loop", "log", "metrics", "results", "summary", "set", "split",
    "data", "phase", "mode", "loss", "stats", "subset", "context", "history", "record", "curve",
})  # fmt: skip
"""What may stand next to the word for a phase: "train_step", "validation epoch end"."""
_METRIC = frozenset({"metric", "metricname", "name", "key", "tag", "variable", "scalarname", "quantity"})
_VALUE = frozenset({"value", "metricvalue", "scalarvalue", "scalar"})
"""What the fields of a record of one metric are called, in lower case without marks."""
COCO_SCORES = (
    "AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large",
    "AR_1", "AR_10", "AR", "AR_small", "AR_medium", "AR_large",
)  # fmt: skip
"""What pycocotools' COCOeval.stats holds for boxes and masks, in this order; DETR and RF-DETR log it as a list."""
MAX_CLASSES = 32
"""Classes whose scores in a list are kept one by one. Chosen by hand."""
MAX_SINGLES = 200
"""Items of a list that are looked at for a metric each. Chosen by hand."""
SUMMARY_MARKS = frozenset({"train_runtime", "total_flos"})
"""Not metrics: clocks and counters that the Trainer writes once at the end of training, with its averages."""


def numbers_in(values: Mapping[str, object], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a record by name; nested mappings become `outer/inner`."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if depth < MAX_RECORD_DEPTH:
                yield from numbers_in(value, prefix if key in ENVELOPES else f"{name}/", depth + 1)
            continue
        if isinstance(value, str) and "/" in value and canonical(name) == "step":
            value = value.partition("/")[0]  # noqa: PLW2901 - ms-swift: "5/100"
        number = to_number(value)
        if number is None and isinstance(value, str) and is_measured(name):
            number = number_in(name, value)
        if number is not None:
            yield name, number
        elif isinstance(value, list):
            yield from _singles_in(value) or _scores_in(name, value)


def _singles_in(values: list[object]) -> list[tuple[str, float]]:
    """Return the metrics of a list whose items are one each, by name and value, `{"tag": "loss", "value": 2.3}`."""
    singles = [single_in(value) for value in values[:MAX_SINGLES] if isinstance(value, Mapping)]
    numbers = [(single.metric, to_number(single.value)) for single in singles if single is not None]
    return [(metric, number) for metric, number in numbers if number is not None]


def _scores_in(name: str, values: list[object]) -> Iterator[tuple[str, float]]:
    """Yield the scores of a list: those that COCO's evaluation gives by its names, those of classes numbered from 0.

    COCO's are -1 where no object is of that size: they are left out.
    """
    role = role_of(name)
    members: Sequence[object] = ()
    if len(values) == len(COCO_SCORES) and "coco" in name.lower():
        members = COCO_SCORES
    elif role is not None and role.quantity.higher_is_better and len(values) <= MAX_CLASSES:
        members = range(len(values))
    numbers = list(map(to_number, values)) if members else []
    if all(number is not None for number in numbers):
        scores = zip(members, numbers, strict=False)
        yield from ((f"{name}/{member}", score) for member, score in scores if score is not None and score != -1)


def nulls_in(values: Mapping[str, object], prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the names of a record that are next to a null, by `numbers_in`'s names."""
    for key, value in values.items():
        if value is None:
            yield f"{prefix}{key}"
        elif isinstance(value, Mapping) and depth < MAX_RECORD_DEPTH:
            yield from nulls_in(value, prefix if key in ENVELOPES else f"{prefix}{key}/", depth + 1)


def tells_kind(field: str) -> bool:
    """Say whether a field of text may give the phase of a record: "split", "event", "log_type"."""
    return _KIND.fullmatch(field) is not None


@lru_cache(maxsize=4096)
def phase_in(text: str) -> str:
    """Return the phase that a short text names and nothing else, "train" or "eval"; "" if it names none."""
    phase, rest = _parted(text[:80])
    return phase if len(rest) < MAX_WORDS and _WITH_PHASE.issuperset(rest) else ""


def _parted(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the phase that a short text names, "" if none, and its other words."""
    words = [word.lower() for word in _WORD.findall(HUMP.sub(" ", name))]
    phases = {PHASES[word] for word in words if word in PHASES}
    return phases.pop() if len(phases) == 1 else "", tuple(word for word in words if word not in PHASES)


def evaluated_set(values: Mapping[str, object]) -> str:
    """Return the set that a record is an evaluation of, by a field: "eval", or "verified_dev"; "" if by none."""
    for key, value in values.items():
        if isinstance(value, str) and tells_kind(key):
            phase, rest = _parted(value[:80])
            if phase == "eval" and len(rest) < MAX_WORDS and _WITH_PHASE.issuperset(rest):
                return phase
            if phase == "eval" and _NAME_OF_SET.fullmatch(value) and _SET.fullmatch(key):
                return value
        if isinstance(value, Mapping) and key in ENVELOPES and (inside := evaluated_set(value)):
            return inside
    return ""


def named_of_evaluation(name: str, of: str = "eval") -> str:
    """Return the name of a metric in a record of evaluation, of some set, that does not say so in its names."""
    role = role_of(name)
    is_of_run = role is not None and (role.quantity in PLACES or role.quantity is Quantity.LEARNING_RATE)
    return name if is_of_run or (role is not None and role.phase) else f"{of}/{name}"


class Single(NamedTuple):
    """A record of one metric: its name and value, and what else the record holds."""

    metric: str
    value: object
    rest: dict[str, object]


def settled(values: Mapping[str, object]) -> dict[str, float]:
    """Return the numbers of a record under names that say what its fields of text do: its phase, its one metric."""
    single = single_in(values)
    rest = values if single is None else single.rest
    of = evaluated_set(rest)
    numbers = {named_of_evaluation(name, of) if of else name: value for name, value in numbers_in(rest)}
    if single is not None and (value := to_number(single.value)) is not None:
        numbers[named_of_evaluation(single.metric, of) if of else single.metric] = value
    return numbers


def is_long(fields: Iterable[str]) -> bool:
    """Say whether records of these fields hold one metric each, by name and value."""
    names = {_bare(field) for field in fields}
    return not names.isdisjoint(_METRIC) and not names.isdisjoint(_VALUE)


def _bare(field: str) -> str:
    return field.lower().replace("_", "").replace(".", "")


def single_in(values: Mapping[str, object]) -> Single | None:
    """Return the one metric that a record holds by name and value, None for other records."""
    if len(values) < 2 or not is_long(values):
        return None
    named = next((key for key, value in values.items() if _bare(key) in _METRIC and isinstance(value, str)), None)
    valued = next((key for key in values if _bare(key) in _VALUE), None)
    metric = str(values[named]).strip() if named else ""
    if not metric or valued is None or to_number(metric) is not None:
        return None
    rest = {key: value for key, value in values.items() if key not in (named, valued)}
    if any((role := role_of(key)) is not None and role.quantity.is_result for key in rest):
        return None  # the name of a run, and the value of a critic
    return Single(metric, values[valued], rest)


def as_the_trainer_means(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers of a record under the names that they would have if the Trainer did not leave words out.

    The train_loss of its closing record is the mean over the run, not the loss of a step.
    """
    if not SUMMARY_MARKS.isdisjoint(numbers) and "loss" not in numbers:
        return {f"summary/{name}": value for name, value in numbers.items() if name not in ("step", "epoch")}
    return {name_in_record(name, numbers): value for name, value in numbers.items()}


def name_in_record(name: str, names: Container[str]) -> str:
    """Return the name that a metric gets in a record of all these names: those of the Trainer's evaluations."""
    return of_evaluation(name) if "eval_runtime" in names and "loss" not in names else name
