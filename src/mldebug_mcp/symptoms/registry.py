"""What a symptom is, and how one is judged: present, absent or unknown.

A symptom is an answer to a question about a run. A question is one small file: a function that takes a run and returns
which of its outcomes it sees, with evidence in numbers. Outcomes exclude each other, so that one phenomenon counts
once; an attribute of an outcome (high, recurring) is told beside it and never without it. Where a question has a single
outcome, `symptom` registers both at once. What a question needs and the log lacks makes its findings unknown without a
call: what was not logged is no evidence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.unknown import CannotTell as CannotTell  # noqa: PLC0414 - questions raise it too
from mldebug_mcp.symptoms.discovery import Registry

DEFAULT_BACKGROUND = 0.02
"""How often a healthy run shows a symptom, where nothing else is said. Chosen: by hand; `diagnose.calibrate` moves it
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


SYMPTOMS: Registry[Symptom] = Registry("mldebug_mcp.symptoms.run")


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
