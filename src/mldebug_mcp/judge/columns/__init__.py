"""How the columns of a run stand to one another, to guesses, to events and to settings: facts with what is expected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import TypeVar

from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.quantities import LOSSES as EVERY_LOSS
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.models.diagnosis import DerivedFact

# The columns of a run as facts look at them: by their quantity, finite, and by the name in the log.


MIN_RECORDS_FOR_LEVEL = 8
"""Records that tell of a level or a line. Chosen: a half of them is then a level."""
LOSSES = tuple(sorted(EVERY_LOSS))
POLICIES = ("grpo", "ppo", "rl")
"""Kinds of runs whose losses are no measure of what was learnt, and whose models come trained."""
NOT_BY_LOSS = (*POLICIES, "preference")
"""Kinds of runs whose training loss is not the cross-entropy of answers."""
LEAST_PAIRS = 3
"""Evaluations, records or values that agree at least. Chosen: two may do so by chance."""
MIN_LEARNING_FALL_SHARE = 0.3
"""Share by which what learns falls at least. Chosen."""
HALVED = 0.5
"""Share of its first level to which comes down what is learnt well, or is lost. Chosen: a half of it is gone."""
GRADIENT_WORDS = frozenset({"g", "gnorm", "grad", "grads", "gradient", "gradients", "slope", "∇"})
"""Words of a gradient, or of its norm."""


def derived_fact(
    fact: str,
    text: str,
    values: Mapping[str, float] | None = None,
    *,
    at: float | None = None,
    steps: Iterable[float] = (),
) -> DerivedFact:
    """Return a fact of some id in a sentence or two, with the numbers behind it and the step, or the steps, of note."""
    return DerivedFact.model_construct(
        fact=fact,
        text=text,
        values={name: float(value) for name, value in (values or {}).items()},
        steps=[float(step) for step in (steps if at is None else (at,))],
    )


def named(series: Series) -> str:
    """Return the name that the log has for a column, with the unit of its values where the name gives another."""
    return f"{series.logged_as or series.name}{f' in {series.unit}' if series.unit else ''}"


def columns_of(run: Run, *quantities: Quantity, phase: str = "", least: int = 1) -> list[Series]:
    """Return the finite values of columns of some quantities, in the unit of the quantity: of so many records."""
    found = run.with_role(*quantities, phase=phase, parts=True)
    return [series.finite for series in found if series is run[series.name] and len(series.finite) >= least]


def whole_columns(run: Run, *quantities: Quantity, phase: str = "", least: int = 1) -> list[Series]:
    """Return such columns that are of no part of the rows, the layers or the terms."""
    found = columns_of(run, *quantities, phase=phase, least=least)
    return [series for series in found if series.role is not None and series.role.is_whole]


def whole_column(run: Run, *quantities: Quantity, phase: str = "", least: int = 1) -> Series | None:
    """Return the plainest of such columns; None where there is none."""
    return next(iter(whole_columns(run, *quantities, phase=phase, least=least)), None)


def logged(run: Run, name: str, least: int = 1) -> Series | None:
    """Return the finite values of a metric; None where they are fewer than so many."""
    series = run[name].finite if name in run else None
    return series if series is not None and len(series) >= least else None


def set_scores(run: Run) -> list[Series]:
    """Return the finite values of columns that are called by their set alone: `Val` is a score."""
    unread = [(name, series) for name, series in run.series.items() if series.role is None]
    return [series.finite for name, series in unread if all(piece in PHASES for piece in pieces_of(name))]


def training_loss(run: Run, least: int = 1, *, not_of: Collection[str] = ()) -> Series | None:
    """Return the finite training losses; None where they are fewer, or the run is of one of some kinds."""
    return None if run.kind in not_of else logged(run, "loss", least)


def both_losses(run: Run, least: int = 1, *, not_of: Collection[str] = ()) -> Losses | None:
    """Return the finite losses of training, so many at least, and of evaluation; None where either is too short."""
    loss, evaluation = training_loss(run, least, not_of=not_of), logged(run, "eval_loss", LEAST_PAIRS)
    return None if loss is None or evaluation is None else (loss, evaluation)


Facts = Iterator[DerivedFact]
Kind = Callable[[Run], Facts]
"""What yields facts of one kind on a run: the sharpest first, as often that one alone counts."""
Losses = tuple[Series, Series]
"""The finite losses of training and of evaluation."""
Given = TypeVar("Given")


def _given(
    find: Callable[..., Given | None], least: int, not_of: Collection[str]
) -> Callable[[Callable[[Run, Given], Facts]], Kind]:
    def decorated(kind: Callable[[Run, Given], Facts]) -> Kind:
        @wraps(kind)
        def on_run(run: Run) -> Facts:
            found = find(run, least, not_of=not_of)
            return iter(()) if found is None else kind(run, found)

        return on_run

    return decorated


def given_loss(least: int = 1, *, not_of: Collection[str] = ()) -> Callable[[Callable[[Run, Series], Facts]], Kind]:
    """Return the decorator of a kind of facts on runs that have a `training_loss`, which it is given."""
    return _given(training_loss, least, not_of)


def given_losses(least: int = 1, *, not_of: Collection[str] = ()) -> Callable[[Callable[[Run, Losses], Facts]], Kind]:
    """Return the decorator of a kind of facts on runs that have `both_losses`, which it is given."""
    return _given(both_losses, least, not_of)


def last_third(values: Floats) -> Floats:
    """Return the last third of some values, one at least."""
    return values[-max(1, len(values) // 3) :]


def tail(series: Series) -> Floats:
    """Return the values of the last third."""
    return last_third(series.value)


def last_level(series: Series) -> float:
    """Return the median of the last third."""
    return median(tail(series))


def learns(series: Series) -> bool:
    """Say whether a loss falls by what is learnt at least."""
    return last_level(series) < (1 - MIN_LEARNING_FALL_SHARE) * float(series.value[0])


def ends_of(series: Series) -> tuple[float, float]:
    """Return the first level and the last: the medians of the first tenth and of the last."""
    return median(series.value[: tenth_of(series)]), median(series.value[-tenth_of(series) :])


def tenth_of(series: Series) -> int:
    """Return how many records are a tenth of a column, three at least."""
    return max(LEAST_PAIRS, len(series) // 10)


Key = TypeVar("Key")
Item = TypeVar("Item")


def by_key(items: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return together what has the same key, in the order in which the keys first come."""
    lists: dict[Key, list[Item]] = {}
    for key, item in items:
        lists.setdefault(key, []).append(item)
    return lists


@lru_cache(4096)
def _words_of(name: str) -> frozenset[str]:
    return frozenset(pieces_of(name))


def called(
    run: Run, *words: Collection[str], but: Collection[str] = (), least: int = 1, any_quantity: bool = False
) -> Iterator[Series]:
    """Yield the finite values of columns whose name has a word of each set and none of others.

    They are of no known quantity, unless any is asked for.
    """
    for series in run.series.values():
        own = _words_of(series.logged_as or series.name)
        is_called = own.isdisjoint(but) and not any(map(own.isdisjoint, words))
        if is_called and (any_quantity or series.role is None) and len(series.finite) >= least:
            yield series.finite


def are_shares(values: Floats) -> bool:
    """Say whether all values lie between 0 and 1."""
    return bool(values.min() >= 0 and values.max() <= 1)


def from_to(values: Floats) -> str:
    """Return the range of values, or the one value that all are."""
    low, high = figure(values.min()), figure(values.max())
    return low if low == high else f"{low} to {high}"
