"""What the name of a metric says: its canonical name, and whether it is a loss, of evaluation, of training at all.

The grammar decides what names mean in `roles`; here it is asked the way the readers and the symptoms ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

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
from mldebug_mcp.logs.names.quantities import AMOUNTS, LOSSES, THROUGHPUTS
from mldebug_mcp.logs.names.quantities import COUNTERS as _COUNTERS
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.numbers import parse_with_unit

COUNTERS = ("step", "epoch", "episode")
"""Where a run is, the finest first."""
_SURELY_EVALUATION = frozenset({"eval", "val", "vali", "validation", "validate"})
"""Phases that nothing else is called by: `valid_action` is a share of valid actions."""
SCALES = {"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
"""Letters behind a number that say how many it counts in; "m" may be anything."""
_SO_FAR = regex(r"seen|consumed|processed|so[_ -]?far")
_SHORT = 3
"""Letters of a counter that is abbreviated: `ep`, `upd`."""
_MARK = regex(r"[/_.]")
_IN_HUMPS = regex(r"(?:[A-Za-z][a-z0-9]+)(?:[A-Z][a-z0-9]*)+")  # "ValRecall0"
_AT_END = regex(r"(?P<rest>.+)_(?:(?P<phase>[^\W_]+)|\((?P<inside>[^\W_]+)\))")  # "loss_val", "Loss (val)"
_INSIDE = regex(
    r"(?:ray/tune/)?(?:(?:train|training)/|(?:info/)?learners?/[^/]+/(?:learner_stats/)?|env_runners/|sampler_results/)(?=.)"
)
"""Where a metric stands says nothing of what it is: RLlib's learner of a policy, and those that play."""
# Losses of pix2pix and CycleGAN, and of BasicSR.
_OF_GANS = regex(
    r"[dg]_(?:a|b|gan\w*|l1|real|fake|feat|vgg)|(?:cycle|idt)_[ab]|l_(?:[gd]_)?(?:pix|percep|fea|gan|real|fake|style)\w*"
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


def is_known(name: str) -> bool:
    """Say whether a name is one of a metric that has a canonical one."""
    role = role_of(name)
    if role is None or not role.name or role.namespace:
        return False
    return not (role.is_evaluation and role.quantity.is_counter)


def is_abbreviated(name: str) -> bool:
    """Say whether a name is so short for a counter that a line which counts otherwise need not mean one by it: `ep`."""
    return len(name.rstrip(".")) <= _SHORT and normal(name) in IDIOMS


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
    return is_loss(name) or "'s " in name  # LightGBM: "valid_0's l2"


def _is_called_by_name(name: str, role: Role) -> bool:
    """Say whether a name is that of a loss without the word: settings may be called so too, as `reg` and `mlm`."""
    return (
        role.quantity is Quantity.LOSS
        and not _LOSSES_ALONE.isdisjoint(role.part.split())
        and "loss" not in name.lower()
    )


def may_hold_names(line: str) -> bool:
    """Say whether a name of a metric, known or telling, may stand in a line; a negative answer is quick."""
    return may_mean(line) or "'s " in line or any(map(line.lower().__contains__, _BEGIN_OF_GANS))


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
