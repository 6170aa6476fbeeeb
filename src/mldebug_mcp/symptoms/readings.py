"""How a question finds the one outcome that it sees: readings are tried in order, and the first that sees ends it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.beginning import is_young
from mldebug_mcp.symptoms.registry import (
    DEFAULT_BACKGROUND,
    Answers,
    CannotTell,
    Detector,
    Evidence,
    Outcome,
    Question,
    add,
)
from mldebug_mcp.text import counted, figure


@dataclass(frozen=True, slots=True)
class Reading:
    """How an outcome is seen, and of which runs it can be judged; see `symptom` for the fields.

    Args:
        outcome: What is seen; its needs are required first.
        read: What sees it.
        settled: Whether a young run is too early for it.
        not_for: Kinds of run for which it makes no sense, beside those of its question.
    """

    outcome: Outcome
    read: Detector
    settled: bool
    not_for: tuple[str, ...]


def outcome_of(
    see: Callable[..., object],
    background: float = DEFAULT_BACKGROUND,
    *sources: str,
    needs: tuple[str, ...] = (),
    of: str = "",
    follows: tuple[str, ...] = (),
    instead: tuple[str, ...] = (),
    as_chosen: bool = False,
    points: int = 1,
) -> Outcome:
    """Return the outcome that a function sees: of its name, with its documentation; see `Outcome` for the fields."""
    doc = inspect.getdoc(see) or ""
    return Outcome(see.__name__, doc, background, sources, of, needs, follows, instead, as_chosen, points)


def reading(
    read: Detector,
    *,
    needs: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    points: int = 1,
    settled: bool = False,
    not_for: tuple[str, ...] = (),
    background: float = DEFAULT_BACKGROUND,
    follows: tuple[str, ...] = (),
    instead: tuple[str, ...] = (),
    as_chosen: bool = False,
) -> Reading:
    """Return how a function sees the outcome of its name, whose documentation is its own; see `symptom`."""
    outcome = outcome_of(
        read, background, *sources, needs=needs, follows=follows, instead=instead, as_chosen=as_chosen, points=points
    )
    return Reading(outcome, read, settled, not_for)


def ask_in_turn(
    name: str,
    *readings: Reading,
    needs: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    not_for: tuple[str, ...] = (),
    whole_run: bool = False,
) -> None:
    """Register the question of a name that tries its readings in their order; see `symptom` for the other fields.

    What a healthy run shows of each is chosen, and counted anew by the fit, but for readings that are `as_chosen`.
    """

    def ask(run: Run) -> Answers:
        return first_of(run, readings)

    add(Question(name, tuple(one.outcome for one in readings), needs, any_of, 1, False, not_for, whole_run, ask))


def first_of(run: Run, readings: Sequence[Reading]) -> Answers:
    """Return the first outcome that is present, the remarks before it, and why others cannot be judged."""
    answers: dict[str, Evidence | CannotTell] = {}
    for one in readings:
        reason = _why_not(one, run)
        try:
            seen: Evidence | CannotTell | None = one.read(run) if reason is None else CannotTell(reason)
        except CannotTell as why:
            seen = why
        if seen is None:
            continue
        answers[one.outcome.id] = seen
        if isinstance(seen, Evidence) and seen.present:
            break
    return answers


def _why_not(one: Reading, run: Run) -> str | None:
    if run.kind in one.not_for:
        return f"not judged for a run of kind {run.kind}"
    if missing := [name for name in one.outcome.needs if name not in run]:
        return f"not logged: {', '.join(missing)}"
    if one.outcome.points > 1 and (count := len(run[one.outcome.needs[0]].finite)) < one.outcome.points:
        return f"{one.outcome.needs[0]} has {counted(count, 'finite value')} here; {one.outcome.points} are needed"
    if one.settled and is_young(run):
        return f"the log ends at step {figure(run.last_step)}: it is too early to speak of no progress"
    return None
