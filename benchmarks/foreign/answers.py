"""Rankings of causes beside what is right, whoever made them, and those of the diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.foreign.labels import HEALTHY, UNKNOWN, Labelled, Truth, truth
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.models import Diagnosis, State

PLACES = 3


@dataclass(frozen=True)
class Judged:
    """What is right for a run, and the causes that somebody names for it, best first; none if nothing was said."""

    truth: Truth
    causes: Sequence[str]

    @property
    def says_healthy(self) -> bool:
        """Whether the run is called healthy."""
        return list(self.causes[:1]) == [HEALTHY]

    @property
    def accuses(self) -> bool:
        """Whether a fault is put first."""
        return bool(self.causes) and self.causes[0] not in (HEALTHY, UNKNOWN)

    def right(self, places: int) -> bool:
        """Whether a right cause stands among the first places."""
        return bool(self.truth.right & set(self.causes[:places]))

    def right_or_near(self, places: int) -> bool:
        """Whether a cause that is right, or that a reader would not blame, stands among the first places."""
        return bool((self.truth.right | self.truth.near) & set(self.causes[:places]))


FEW = 3
"""A course needs more records than this; a log with fewer counts among those that show one if it holds an error."""


@dataclass(frozen=True)
class Answer(Judged):
    """A labelled log and what is said of it: a diagnosis, or why it was refused."""

    one: Labelled
    diagnosis: Diagnosis | None
    refused: str = ""

    @property
    def probability(self) -> float:
        """The probability of the first cause."""
        return 0.0 if self.diagnosis is None else self.diagnosis.hypotheses[0].probability

    @property
    def right_for_a_reason(self) -> bool:
        """Whether a right cause stands among the first three and a finding speaks for it."""
        first = [] if self.diagnosis is None else self.diagnosis.hypotheses[:PLACES]
        return any(
            one.cause in self.truth.right and (bool(one.because) or one.cause in (HEALTHY, UNKNOWN)) for one in first
        )

    @property
    def has_course(self) -> bool:
        """Whether the log is more than an excerpt of a few numbers: it has a course, or an error message."""
        if self.diagnosis is None:
            return False
        messages = ("error_message", "ends_in_error")
        return self.diagnosis.run.records > FEW or any(
            one.state is State.PRESENT for one in self.diagnosis.findings if one.symptom in messages
        )


def answers(ones: Sequence[Labelled]) -> list[Answer]:
    """Diagnose the logs whose label says what is right."""
    known = ((one, truth(one)) for one in ones)
    return [_answer(one, right) for one, right in known if right is not None]


def _answer(one: Labelled, right: Truth) -> Answer:
    try:
        diagnosis = diagnose_run(one.path)
    except InputError as error:
        folder = str(one.path).removesuffix(one.name)
        return Answer(right, (), one, None, str(error).replace(folder, ""))
    return Answer(right, [hypothesis.cause for hypothesis in diagnosis.hypotheses], one, diagnosis)
