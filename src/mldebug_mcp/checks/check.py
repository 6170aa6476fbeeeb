"""What a question is, what its outcomes are, and how questions are registered and found."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, Protocol, TypeVar

from mldebug_mcp.core.text import counted
from mldebug_mcp.logs.run import Run, Series

# How symptoms and checks are found and documented: a module for each, a docstring for each.


class Documented:
    """Something that the docstring of its function documents."""

    __slots__ = ()
    id: str
    detect: Callable[..., object]

    @property
    def doc(self) -> str:
        """The documentation: the docstring of the function."""
        return inspect.getdoc(self.detect) or ""

    @property
    def title(self) -> str:
        """The first line of the documentation."""
        return self.doc.partition("\n")[0]


class Named(Protocol):
    """Something that has an id."""

    @property
    def id(self) -> str:
        """The id."""


Entry = TypeVar("Entry", bound=Named)


class Registry(Generic[Entry]):
    """The symptoms or checks of a package: each of its modules registers its own when it is imported.

    Args:
        package: The package, by its full name.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._registered: dict[str, Entry] = {}
        self._found: Mapping[str, Entry] | None = None

    def add(self, one: Entry) -> None:
        """Register one."""
        assert one.id not in self._registered, one.id  # noqa: S101 - a programming error
        self._registered[one.id] = one

    def all(self) -> Mapping[str, Entry]:
        """Return all of them by id, in the order of their ids; the modules are found and imported once."""
        if self._found is None:
            for module in iter_modules(import_module(self._package).__path__):
                import_module(f"{self._package}.{module.name}")
            self._found = dict(sorted(self._registered.items()))
        return self._found


# What a measurement raises that cannot be made.


class CannotTell(Exception):  # noqa: N818 - an answer, not an error
    """Raised where the metrics are there, or ought to be, but cannot be judged. The message says why."""


def require_values(series: Series, least: int, name: str = "") -> Series:
    """Return a series of finite values; raise CannotTell, with its name or the given one, if there are too few."""
    if len(series) < least:
        raise CannotTell(f"{name or series.name} has {counted(len(series), 'finite value')} here; {least} are needed")
    return series


def all_known(find: Callable[[Run], list[Series]], run: Run) -> list[Series]:
    """Return the series that are found in a run, none where that cannot be told."""
    try:
        return find(run)
    except CannotTell:
        return []


# What a symptom is, and how one is judged: present, absent or unknown.
#
# A symptom is an answer to a question about a run. A question is one small file: a function that takes a run and
# returns which of its outcomes it sees, with evidence in numbers. Outcomes exclude each other, so that one phenomenon
# counts once; an attribute of an outcome (high, recurring) is told beside it and never without it. Where a question has
# a single outcome, `symptom` registers both at once. What a question needs and the log lacks makes its findings unknown
# without a call: what was not logged is no evidence.


DEFAULT_BACKGROUND = 0.02
"""How often a healthy run shows a symptom, where nothing else is said. Chosen: by hand; `judge.calibration` moves it
by what healthy runs show."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a symptom saw.

    Args:
        summary: One sentence in numbers with steps. An observation: it names no cause.
        steps: Steps of note, the onset first.
        values: The numbers behind the summary.
        present: False for a remark on something harmless that a reader would otherwise ask about.
    """

    summary: str
    steps: tuple[float, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    present: bool = True


Detector = Callable[[Run], Evidence | None]
Answers = Mapping[str, Evidence | CannotTell]
"""What is seen, by outcome. An outcome that is left out is absent; one that could not be judged says why."""
Asker = Callable[[Run], Answers]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer to a question.

    Args:
        id: The symptom that it is.
        doc: Its documentation: a line, an empty line, when it is not that.
        background: How often a healthy run shows it, between 0 and 1.
        sources: Ids of the sources of its thresholds; empty where they were fitted or chosen.
        of: The outcome of which this is an attribute: told beside it, and unknown without it.
        needs: Metrics without which this outcome cannot be judged, beside those of its question.
        follows: See `symptom`.
        instead: See `symptom`.
        as_chosen: See `symptom`.
        points: Finite values that the first of its needs must have, beside those of its question.
    """

    id: str
    doc: str
    background: float = DEFAULT_BACKGROUND
    sources: tuple[str, ...] = ()
    of: str = ""
    needs: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    as_chosen: bool = False
    points: int = 1


@dataclass(frozen=True, slots=True)
class Question:
    """A registered question; see `question` for the fields."""

    id: str
    outcomes: tuple[Outcome, ...]
    needs: tuple[str, ...]
    any_of: tuple[str, ...]
    points: int
    settled: bool
    not_for: tuple[str, ...]
    whole_run: bool
    ask: Asker


@dataclass(frozen=True, slots=True)
class Symptom:
    """An outcome together with the question that it answers."""

    outcome: Outcome
    question: Question

    @property
    def id(self) -> str:
        """The id, that of the outcome."""
        return self.outcome.id

    @property
    def doc(self) -> str:
        """The documentation, its paragraphs apart by empty lines."""
        return inspect.cleandoc(self.outcome.doc)

    @property
    def title(self) -> str:
        """The first line of the documentation."""
        return self.doc.partition("\n")[0]

    @property
    def needs(self) -> tuple[str, ...]:
        """Metrics without which it cannot be judged."""
        return (*self.question.needs, *self.outcome.needs)

    @property
    def points(self) -> int:
        """Finite values that the first of its needs must have."""
        return max(self.question.points, self.outcome.points)


SYMPTOMS: Registry[Symptom] = Registry("mldebug_mcp.checks.run")


def symptom(
    *,
    needs: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    points: int = 1,
    settled: bool = False,
    not_for: tuple[str, ...] = (),
    whole_run: bool = False,
    background: float = DEFAULT_BACKGROUND,
    follows: tuple[str, ...] = (),
    instead: tuple[str, ...] = (),
    as_chosen: bool = False,
) -> Callable[[Detector], Detector]:
    """Register a function as the symptom of its name.

    Args:
        needs: Metrics without which it cannot be judged.
        any_of: Metrics of which one suffices: a quantity, by whatever name; a name; or a name in which `*` stands for
            any text.
        sources: Ids of the sources of its thresholds; empty where they were fitted, which its docstring then says.
        points: Finite values that the first of `needs` must have in a segment.
        settled: It cannot be judged of a run that is still young (`is_young`).
        not_for: Kinds of run for which the question makes no sense (`kinds.KINDS`).
        whole_run: Judge the run as a whole, not segment by segment.
        background: How often a healthy run shows it, between 0 and 1.
        follows: Symptoms that bring it about whatever their cause: where one of them is present this one is no
            further evidence.
        instead: Symptoms that are the same trouble in another form, which rules this one out: where one of them is
            present, the absence of this one is not evidence.
        as_chosen: `background` stands as chosen, whatever the healthy runs of the benchmark show: their settings are
            drawn from a few, and hardly any of them is regularised as real runs are.
    """

    def register(detect: Detector) -> Detector:
        name = detect.__name__

        def ask(run: Run) -> Answers:
            evidence = detect(run)
            return {} if evidence is None else {name: evidence}

        doc = inspect.getdoc(detect) or ""
        outcome = Outcome(name, doc, background, sources, follows=follows, instead=instead, as_chosen=as_chosen)
        add(Question(name, (outcome,), needs, any_of, points, settled, not_for, whole_run, ask))
        return detect

    return register


def question(
    *outcomes: Outcome,
    needs: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    points: int = 1,
    settled: bool = False,
    not_for: tuple[str, ...] = (),
    whole_run: bool = False,
) -> Callable[[Asker], Asker]:
    """Register a function as the question of its name, with the outcomes of which it sees at most one.

    The function returns the outcome that it sees, with the attributes of it, and for outcomes that could not be judged
    why. See `symptom` for the other fields.
    """

    def register(ask: Asker) -> Asker:
        add(Question(ask.__name__, outcomes, needs, any_of, points, settled, not_for, whole_run, ask))
        return ask

    return register


def add(one: Question) -> None:
    """Register a question with its outcomes."""
    for outcome in one.outcomes:
        SYMPTOMS.add(Symptom(outcome, one))


# Symptoms that are forms of one trouble: a run that shows one of them lacks the others for that very reason.


NO_PROGRESS = (
    "eval_learns_nothing",
    "loss_at_chance",
    "loss_constant",
    "loss_plateau",
    "loss_slow",
    "loss_stall",
)
NO_REWARD = ("reward_constant", "reward_flat", "reward_zero")
"""Not among them: a policy that stands still, groups without variance. Where these are logged and not the case, that
tells why the reward is what it is."""
