"""What the name of a metric says: its canonical name, and whether it is a loss, of evaluation, of training at all.

The grammar decides what names mean in `roles`; here it is asked the way the readers and the symptoms ask. What a
record holds follows: its numbers by name, its phase, the metric of its one value.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.names import Quantity, Role, may_mean, normal, role_of
from mldebug_mcp.logs.names.grammar import factor_of
from mldebug_mcp.logs.names.lexicon import (
    GIB,
    IDIOMS,
    METHODS,
    NAMED_LOSSES,
    PARTS_OF_A_LOSS,
    PHASES,
    SECONDS,
    SHARES,
    STATISTICS,
)
from mldebug_mcp.logs.names.lexicon import THOUSANDS as SCALES_OF_COUNTS
from mldebug_mcp.logs.names.quantities import AMOUNTS, LOSSES, PLACES, THROUGHPUTS
from mldebug_mcp.logs.names.quantities import COUNTERS as _COUNTERS
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.numbers import parse_with_unit, to_number

COUNTERS = ("step", "epoch", "episode")
"""Where a run is, the finest first."""
LISTED = frozenset(
    {"seed", "fold", "config", "class", "category", "label", "layer", "head", "expert", "component", "anchor", "bin",
     "cluster", "rank", "gpu", "device", "worker", "workers", "node"}
)  # fmt: skip
"""What the rows of a list are: things next to each other, and not one after another as in a log."""
_SURELY_EVALUATION = frozenset({"eval", "val", "vali", "validation", "validate"})
"""Phases that nothing else is called by: `valid_action` is a share of valid actions."""
SCALES = {"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
"""Letters behind a number that say how many it counts in; "m" may be anything."""
_SO_FAR = regex(r"seen|consumed|processed|so[_ -]?far")
_MAX_SHORT_COUNTER_LETTERS = 3
"""Letters of a counter that is abbreviated: `ep`, `upd`."""
CLIPPED_NORM = "clipped_grad_norm"
"""What the norm of the gradient behind its clipping is called, where a log has it before that as well."""
UNNAMED = "unnamed"
"""What a number is called that stands alone behind the counter of its line: "20  3.1"."""
_MARK = regex(r"[/_.]")
_UNMARKED = str.maketrans("", "", " _-")
_IN_HUMPS = regex(r"(?:[A-Za-z][a-z0-9]+)(?:[A-Z][a-z0-9]*)+")  # "ValRecall0"
_AT_END = regex(r"(?P<rest>.+)_(?:(?P<phase>[^\W_]+)|\((?P<inside>[^\W_]+)\))")  # "loss_val", "Loss (val)"
_INSIDE = regex(
    r"(?:ray/tune/)?(?:(?:train|training)/|(?:info/)?learners?/[^/]+/(?:learner_stats/)?|env_runners/|sampler_results/)(?=.)"
)
"""Where a metric stands says nothing of what it is: RLlib's learner of a policy, and those that play."""
# Losses of pix2pix and CycleGAN, and of BasicSR.
_OF_GANS = regex(
    r"[dg]_(?:a|b|gan\w*|l1|real|fake|feat|vgg)|(?:cycle|idt)_[ab]|l_(?:[gd]_)?(?:pix|percep|fea|gan|real|fake|style)\w*",
    needs=("_a", "_b", "_gan", "_l1", "_real", "_fake", "_fea", "_vgg", "_pix", "_percep", "_style"),
)
_LOSSES_ALONE = NAMED_LOSSES | PARTS_OF_A_LOSS | METHODS
_BEGIN_OF_GANS = ("cycle_", "idt_")
"""Beginnings of such names in which no word is known."""


def canonical(name: str) -> str:
    """Return the canonical name of a metric, or its own name if its role has none.

    A name of its own says the phase in one way: `val/f1` and `validation_f1` become `eval_f1`, and so do `valid_`,
    `test_` and `dev_` before a metric that is understood; `train/x` becomes `x`.
    """
    role = role_of(name)
    if role is not None and role.name:
        return role.name
    return _own_name(name, role)


def called(names: Iterable[str], *wanted: str) -> str:
    """Return the first of some names whose canonical name is one of those that are wanted, "" if none has one."""
    return next((name for name in names if canonical(name) in wanted), "")


@lru_cache(maxsize=16384)
def _own_name(name: str, role: Role | None) -> str:
    spelling = normal(name)
    if spelling in IDIOMS:
        return spelling
    if role is not None and role.is_evaluation and role.quantity.is_result and _IN_HUMPS.fullmatch(name):
        spelling = "_".join(pieces_of(name))
    mark = _MARK.search(spelling)
    if mark is not None and PHASES.get(head := spelling[: mark.start()]) == "eval" and mark.end() < len(spelling):
        rest = spelling[mark.end() :]
        if mark.group() == "/" or head in _SURELY_EVALUATION or (role is not None and role.quantity.is_result):
            return rest if rest.startswith("eval_") else f"eval_{rest}"
    ending = _AT_END.fullmatch(spelling)
    if ending is not None and role is not None and role.quantity.is_result:
        word = ending["phase"] or ending["inside"]
        if PHASES.get(word) == "eval":
            return canonical(f"eval_{ending['rest']}")
        if PHASES.get(word) == "train" or (ending["inside"] and (word == "batch" or STATISTICS.get(word) == "mean")):
            return canonical(ending["rest"])
    inside = _INSIDE.match(spelling)
    if inside is None:
        return name.strip()
    rest = spelling[inside.end() :]
    return spelling if role is not None and role.quantity in _COUNTERS else rest


SET_AT = regex(r"(?:val|valid|validation|eval|test|dev)@(?P<at>\d{1,7}k?)", re.IGNORECASE, needs="@")
"""What an evaluation is called by the length or the resolution of its rows alone: `val@96`."""


def is_known(name: str) -> bool:
    """Say whether a name is one of a metric that has a canonical one."""
    role = role_of(name)
    if role is None or not role.name or role.namespace:
        return False
    return not (role.is_evaluation and role.quantity.is_counter)


def is_abbreviated(name: str) -> bool:
    """Say whether a name is so short for a counter that a line which counts otherwise need not mean one by it: `ep`."""
    return len(name.rstrip(".")) <= _MAX_SHORT_COUNTER_LETTERS and normal(name) in IDIOMS


def counts_rows(name: str) -> bool:
    """Say whether a name is one that counts the samples or tokens that training has seen."""
    role = role_of(name)
    return role is not None and role.quantity in AMOUNTS


def is_telling(name: str) -> bool:
    """Say whether a name is one that only training or evaluation prints: a loss, an accuracy, a reward."""
    role = role_of(name)
    if role is not None and role.statistic in ("max", "min"):
        return role.quantity is Quantity.REWARD  # `max_grad_norm` and `max_completion_length` are settings
    if role is not None and role.quantity is Quantity.ERROR_RATE:
        return bool(role.phase)  # alone it may be a setting, or any error
    if role is not None and role.quantity.is_result:
        return not _is_called_by_name(name, role)
    return is_loss(name) or "'s " in name or SET_AT.fullmatch(name) is not None  # LightGBM: "valid_0's l2"


def _is_called_by_name(name: str, role: Role) -> bool:
    """Say whether a name is that of a loss without the word: settings may be called so too, as `reg` and `mlm`."""
    return (
        role.quantity is Quantity.LOSS
        and not _LOSSES_ALONE.isdisjoint(role.part.split())
        and "loss" not in name.lower()
    )


def may_hold_names(line: str) -> bool:
    """Say whether a name of a metric, known or telling, may stand in a line; a negative answer is quick."""
    return (
        may_mean(line)
        or "'s " in line
        or SET_AT.search(line) is not None
        or any(map(line.lower().__contains__, _BEGIN_OF_GANS))
    )


def is_loss(name: str) -> bool:
    """Say whether a name is that of a loss or of a part of one."""
    role = role_of(name)
    return (role is not None and role.quantity in LOSSES) or _OF_GANS.fullmatch(name.lower()) is not None


def is_training_loss(name: str) -> bool:
    """Say whether a name is that of a loss of training or of a part of one."""
    return is_loss(name) and not is_evaluation(name)


def is_evaluation(name: str) -> bool:
    """Say whether a metric is one of evaluation."""
    role = role_of(name)
    return (role is not None and role.is_evaluation) or canonical(name).startswith("eval_")


def factor(name: str) -> float:
    """Return what a column's numbers are multiplied by to be the canonical metric."""
    role = role_of(name)
    return role.factor if role is not None and role.name else 1.0


def factor_in(name: str, unit: str) -> float:
    """Return what a number with a unit behind it is multiplied by, to be in the unit of its column.

    That is the unit in the name of the metric, as in "mem (MiB)"; without one seconds, GiB, shares of one and single
    things, in which metrics are read. A unit that the metric cannot have says nothing.
    """
    role = role_of(name)
    found = _factor_in(role, unit) if role is not None else None
    if found is None and not is_known(name):
        found = SECONDS.get(unit.lower(), GIB.get(unit.lower()) if len(unit) > 1 else None)
    return SCALES.get(unit, 1.0) if found is None else found


def number_in(name: str, text: str) -> float | None:
    """Return the number that a text spells, in the unit of the column of that name; None if it spells none."""
    measured = parse_with_unit(text)
    if measured is None:
        return None
    number, unit = measured
    return number * factor_in(name, unit) if unit else number


def _factor_in(role: Role, unit: str) -> float | None:
    """Return what a number of a role is multiplied by for the unit behind it, None if it cannot have that unit."""
    if unit in SHARES and role.quantity.is_memory and not role.unit:
        return 1.0  # "RAM: 61.2%" is no size
    if role.quantity.is_duration and unit == "m":
        unit = "min"
    elif role.quantity.is_memory and unit in SCALES:
        unit = f"{unit}b" if unit != "B" else unit
    own = unit.lower()
    if role.unit and not role.quantity.is_memory and (own in SCALES_OF_COUNTS) != (role.unit in SCALES_OF_COUNTS):
        return SCALES.get(unit, 1.0)  # "tok/s 12.3k", "step_time_ms 12x"
    found = factor_of(role.quantity, own)
    return found if found is None else found / role.factor if role.unit else found


def is_amount(name: str) -> bool:
    """Say whether a name is that of what a run has worked through so far: "tokens_seen", "consumed samples"."""
    role = role_of(name)
    whole = role is not None and role.is_whole and role.quantity in AMOUNTS
    return whole and _SO_FAR.search(name.lower()) is not None


def is_measured(name: str) -> bool:
    """Say whether a name is, word for word, that of something that is measured: no counter, no setting, no part."""
    role = role_of(name)
    if role is None or not role.is_whole or role.namespace:
        return False
    quantity = role.quantity
    return quantity.is_result or quantity.is_duration or quantity.is_memory or quantity in THROUGHPUTS


def is_of_record(name: str) -> bool:
    """Say whether a name below a record is one of it: that of a metric, or of the time that its epoch took."""
    role = role_of(name)
    return is_known(name) or (role is not None and role.quantity is Quantity.EPOCH_TIME and is_measured(name))


def is_pace(name: str) -> bool:
    """Say whether a name is that of how fast a run is: "fps", "steps/s"."""
    role = role_of(name)
    return role is not None and role.quantity in THROUGHPUTS and is_measured(name)


def rank(name: str) -> tuple[bool, int]:
    """Return how close a name is to the plainest of its role; the lowest is closest."""
    role = role_of(name)
    return (True, 0) if role is None else (role.namespace != "", role.extra)


def of_evaluation(name: str) -> str:
    """Return the name of a metric in a record of the Trainer's `evaluate`, where some trainers forget the prefix."""
    measured = is_telling(name) or name.startswith("completions/")
    return f"eval_{name}" if measured and not name.startswith("eval_") else name


# What a record holds: its numbers by name, the phase that it is of, the metric that its one value is of.


ENVELOPES = frozenset({"data", "values", "payload", "fields", "scalars", "record", "body"})
"""What an object is called that everything measured stands in; it says nothing of what that is."""
MAX_RECORD_DEPTH = 8
"""Levels of nesting read from a record."""
MAX_WORDS = 4
"""Words of a text that names a phase: a longer one is a message."""
_MOST_WORDS_OF_SET = 3
"""Words of a name that begins with its phase; chosen: "held out legal"."""
_NO_SET = frozenset(
    {"and", "at", "by", "every", "for", "frac", "fraction", "in", "is", "of", "on", "per", "portion",
     "ratio", "set", "share", "size", "split", "the", "time", "to", "took", "was", "wait", "with", "within"}
)  # fmt: skip
"""Words behind a phase with which a number is a setting, a time or part of a sentence."""


_KIND = regex(
    r"(?:[a-z]*[_.])*"
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
    "step", "epoch", "batch", "iteration", "iter", "end", "loop", "log", "metrics", "results", "summary", "set",
    "split", "data", "phase", "mode", "loss", "stats", "subset", "context", "history", "record", "curve",
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
_OF_RANKS = frozenset(
    {"rank", "ranks", "local", "gpu", "gpus", "worker", "workers", "device", "devices", "node", "nodes", "host",
     "hosts", "replica", "replicas"}
)  # fmt: skip
"""Words of a list that has a value for each of the processes that train together."""
_SHARES = regex(r"(?:^|[/_.])(?:frac(?:tion)?|share|sparsity)s?(?:$|[/_.])", re.IGNORECASE)
"""What lists are called that have a share for each layer."""
_OF_LAYERS = frozenset(
    {"act", "acts", "activation", "activations", "nonzero", "active", "alive", "dead", "layer", "layers"}
)
_NORMS_OF_LAYERS = frozenset({Quantity.GRADIENT_NORM, Quantity.WEIGHT_NORM})
"""Words and quantities of lists that have a number for each layer: `act_mean`, `grad_norm`."""
MAX_SINGLES = 200
"""Items of a list that are looked at for a metric each. Chosen by hand."""
SUMMARY_MARKS = frozenset({"train_runtime", "total_flos"})
"""Not metrics: clocks and counters that the Trainer writes once at the end of training, with its averages."""


def numbers_in(values: Mapping[str, object], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a record by name; nested mappings become `outer/inner`."""
    of_ranks = {len(value) for key, value in values.items() if isinstance(value, list) and is_of_ranks(key)}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, float):
            yield name, value
            continue
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
            yield from _singles_in(value) or _of_ranks(name, value, of_ranks) or _scores_in(name, value)


def _singles_in(values: list[object]) -> list[tuple[str, float]]:
    """Return the metrics of a list whose items are one each, by name and value, `{"tag": "loss", "value": 2.3}`."""
    singles = [single_in(value) for value in values[:MAX_SINGLES] if isinstance(value, Mapping)]
    numbers = [(single.metric, to_number(single.value)) for single in singles if single is not None]
    return [(metric, number) for metric, number in numbers if number is not None]


def is_of_ranks(name: str) -> bool:
    """Say whether a list of this name has a value for each rank: `local_loss`, `step_ms_per_gpu`."""
    return not _OF_RANKS.isdisjoint(pieces_of(name))


def member_of_rank(name: str, rank: int) -> str:
    """Return the name of the value that one rank has in a list."""
    return f"{name}/rank{rank}"


def _of_ranks(name: str, values: list[object], counts: Container[int]) -> list[tuple[str, float]]:
    """Return the values of a list by rank, and their mean: of one that is called so, or as long as one that is."""
    numbers = [number for number in map(to_number, values) if number is not None]
    if not 1 < len(numbers) == len(values) <= MAX_CLASSES or len(values) not in counts:
        return []
    by_rank = [(member_of_rank(name, rank), number) for rank, number in enumerate(numbers)]
    return [(f"mean {name}", sum(numbers) / len(numbers)), *by_rank]


def _scores_in(name: str, values: list[object]) -> Iterator[tuple[str, float]]:
    """Yield the scores of a list: those that COCO's evaluation gives by its names, those of classes numbered from 0.

    COCO's are -1 where no object is of that size: they are left out. Shares are those of layers: `zero_fraction`.
    """
    role = role_of(name)
    members: Sequence[object] = ()
    if len(values) == len(COCO_SCORES) and "coco" in name.lower():
        members = COCO_SCORES
    elif len(values) <= MAX_CLASSES and (
        (role is not None and (role.quantity.higher_is_better or role.quantity in _NORMS_OF_LAYERS))
        or (role is None and (_SHARES.search(name) or not _OF_LAYERS.isdisjoint(pieces_of(name))))
    ):
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


def phase_alone(name: str) -> str:
    """Return the phase that is all that a name says, "train" or "eval", as `held` alone does; "" for other names."""
    word = name.lower().translate(_UNMARKED)
    return "eval" if word == "held" else PHASES.get(word, "")


def side_of(name: str) -> str:
    """Return the phase that is all a name says next to that of the other side: `fit` next to `held` is "train"."""
    return "train" if name.lower() in ("fit", "fitted", "seen") else phase_alone(name)


def is_phase_alone(name: str) -> bool:
    """Say whether a name says a phase and nothing else: "trn", "held out", "fresh"."""
    return phase_alone(name) != ""


@lru_cache(maxsize=4096)
def set_of(name: str) -> str:
    """Return the phase that is a name, or with which one of up to three words begins that measures nothing known."""
    words = name.split(" ")
    if is_phase_alone(name):
        return name
    if len(words) > 1 and is_phase_alone(" ".join(words[:2])):
        phase, rest = " ".join(words[:2]), words[2:]
    elif is_phase_alone(words[0]):
        phase, rest = words[0], words[1:]
    else:
        return ""
    is_set = len(words) <= _MOST_WORDS_OF_SET and _NO_SET.isdisjoint(map(str.lower, rest)) and role_of(name) is None
    return phase if is_set and all(role_of(word) is None for word in rest) else ""


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
        if key in ENVELOPES and isinstance(value, Mapping) and (inside := evaluated_set(value)):
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


@lru_cache(maxsize=4096)
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
    if "eval_runtime" not in numbers:
        return dict(numbers)
    return {name_in_record(name, numbers): value for name, value in numbers.items()}


def name_in_record(name: str, names: Container[str]) -> str:
    """Return the name that a metric gets in a record of all these names: those of the Trainer's evaluations."""
    return of_evaluation(name) if "eval_runtime" in names and "loss" not in names else name
