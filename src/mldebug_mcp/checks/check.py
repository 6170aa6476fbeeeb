"""What a question is, what its outcomes are, and how questions are registered and found.

Questions are asked of four subjects: a run, a tokenized batch, an overfit probe and a memory snapshot. All of them are
registered here, and `answer` answers all of them: present, absent or unknown.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, TypeVarTuple, cast

import numpy as np

from mldebug_mcp.checks.progress import is_young
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import counted, figure, fits, shorten
from mldebug_mcp.knowledge.catalogue import Frequency
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.base import Severity

if TYPE_CHECKING:
    from mldebug_mcp.batch.batch import Batch, Purpose
    from mldebug_mcp.batch.sequences import Ints, Sequences
    from mldebug_mcp.memory.snapshot import MemorySnapshot
    from mldebug_mcp.probe.measured import Measured


class CannotTell(Exception):  # noqa: N818 - an answer, not an error
    """Raised where the metrics are there, or ought to be, but cannot be judged; it says why in a sentence."""


def too_few(name: str, count: int, needed: int) -> CannotTell:
    """Return the answer for a metric with too few finite values."""
    return CannotTell(f"{name} has {counted(count, 'finite value')} here; {needed} are needed")


def require_values(series: Series, least: int, name: str = "") -> Series:
    """Return a series of finite values; raise CannotTell, with its name or the given one, if there are too few."""
    if len(series) < least:
        raise too_few(name or series.name, len(series), least)
    return series


Known = TypeVar("Known")
Several = TypeVar("Several", bound=Sized)


def known(value: Known | None, why: str) -> Known:
    """Return what a question needs; raise CannotTell, which says why, where it is None."""
    if value is None:
        raise CannotTell(why)
    return value


def some(values: Several, why: str) -> Several:
    """Return the things that a question needs; raise CannotTell, which says why, where there are none."""
    if not len(values):
        raise CannotTell(why)
    return values


def finite_loss(run: Run) -> Series:
    """Return the finite training losses; raise CannotTell if there are none."""
    return some(run["loss"].finite, "no finite loss")


def all_known(find: Callable[[Run], list[Series]], run: Run) -> list[Series]:
    """Return the series that are found in a run, none where that is unknown."""
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
"""How often a healthy run shows a symptom. Chosen: by hand; `judge.hypotheses` moves it by what healthy runs show."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A stretch of tokens in a row of a side, by its place in the side."""

    side: Sequences
    index: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a batch that evidence is about.

    Args:
        numbers: Numbers of the rows; empty if it concerns no row in particular.
        spots: Examples.
    """

    numbers: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    spots: tuple[Spot, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """The memory that evidence is about.

    Args:
        bytes: How much.
        device: Where.
        stack: Who asked, innermost first.
    """

    bytes: int = 0
    device: int | None = None
    stack: tuple[str, ...] = ()


MAX_LISTED_STEPS = 10
"""Steps that evidence lists. Chosen: a line holds as many."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a question saw of an outcome.

    Args:
        summary: One sentence in numbers with steps. An observation: it names no cause.
        steps: Steps of note, the onset first.
        values: The numbers behind the summary.
        present: False for a remark on something harmless that a reader would otherwise ask about.
        rows: The rows of a batch that it is about.
        allocation: The memory that it is about.
        severity: Where it differs from the outcome's own.
        fix: Where it differs from the outcome's own.
    """

    summary: str
    steps: tuple[float, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    present: bool = True
    rows: Rows = field(default_factory=Rows)
    allocation: Allocation = field(default_factory=Allocation)
    severity: Severity | None = None
    fix: str | None = None


Detector = Callable[[Run], Evidence | None]
BatchDetector = Callable[["Batch"], Evidence | None]
ProbeDetector = Callable[..., Evidence | None]
MemoryDetector = Callable[["MemorySnapshot"], Evidence | None]
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
        of: The outcome that has this attribute: reported with it, and unknown without it.
        needs: Metrics without which this outcome cannot be judged, besides those of its question.
        follows: Symptoms that bring it about whatever their cause: where one of them is present this one is no
            further evidence.
        instead: Symptoms that are the same trouble in another form, which rules this one out: where one of them is
            present, the absence of this one is not evidence.
        as_chosen: `background` stands as chosen, whatever the healthy runs of the benchmark show: their settings are
            drawn from a few, and hardly any of them is regularised as real runs are.
        points: Finite values that the first of its needs must have, besides those of its question.
        settled: Whether a run that is still young (`is_young`) is too early for it.
        not_for: Kinds of run for which it makes no sense, besides those of its question.
        see: What sees it, where its question tries its outcomes in turn; then its needs are required first.
        severity: What it usually does to training.
        why: What it does to training, in a sentence.
        fix: What to change.
        fixes: The same by framework.
        quotes: Ids of quotes about it.
        effects: The causes that produce it, and how often, where no table of the catalogue says so.
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
    settled: bool = False
    not_for: tuple[str, ...] = ()
    see: Callable[..., Evidence | None] | None = None
    severity: Severity = "info"
    why: str = ""
    fix: str = ""
    fixes: Mapping[str, str] = field(default_factory=dict)
    quotes: tuple[str, ...] = ()
    effects: Mapping[str, Frequency] = field(default_factory=dict)


Subject = Literal["run", "batch", "probe", "memory"]
"""What a question is asked of. The package of its name holds the questions."""


def run_lacks(asked: Question | Outcome, run: Run) -> CannotTell | None:
    """Return why a question, or an outcome of it, cannot be judged in a run, or None if it can."""
    if run.kind in asked.not_for:
        return CannotTell(f"not judged for a run of kind {run.kind}")
    if missing := missing_metrics(asked.needs, asked.any_of if isinstance(asked, Question) else (), run):
        return not_logged(missing)
    if asked.points > 1 and (count := len(run[asked.needs[0]].finite)) < asked.points:
        return too_few(asked.needs[0], count, asked.points)
    if isinstance(asked, Outcome) and asked.settled and is_young(run):
        return CannotTell(f"the log ends at step {figure(run.last_step)}: it is too early to speak of no progress")
    return None


def missing_metrics(needs: Iterable[str], any_of: tuple[str, ...], run: Run) -> tuple[tuple[str, ...], ...]:
    """Return what a run would have to log: of each group, one metric."""
    needed = tuple((metric,) for metric in needs if metric not in run)
    if any_of and not any(_has_metric(run, pattern) for pattern in any_of):
        return (*needed, any_of)
    return needed


def _has_metric(run: Run, pattern: str) -> bool:
    """Say whether a run has a metric, a quantity or a part of one, or any metric that a pattern with `*` stands for."""
    if isinstance(pattern, Quantity) and any(run.with_role(pattern, phase="train", parts=True)):
        return True
    return any(fits(name, pattern) for name in run.series) if "*" in pattern else pattern in run


def not_logged(missing: Iterable[tuple[str, ...]]) -> CannotTell:
    """Return the answer for metrics that a run does not log."""
    return CannotTell(f"not logged: {', '.join(' or '.join(group) for group in missing)}")


@dataclass(frozen=True, slots=True)
class Question:
    """A registered question.

    Args:
        id: Its name.
        outcomes: Its answers: a subject shows one at most, with its attributes.
        ask: Returns what is seen.
        needs: Metrics without which it cannot be asked.
        any_of: Metrics; one of them suffices: a quantity, by whatever name; a name; or a name in which `*` stands for
            any text.
        points: Finite values that the first of `needs` must have in a segment.
        not_for: Kinds of run for which the question makes no sense (`catalogue.KINDS`).
        whole: Whether the run is judged as a whole, not segment by segment.
        subject: What it is asked of.
        lacks: Says why the question cannot be asked of a subject, or None if it can.
    """

    id: str
    outcomes: tuple[Outcome, ...]
    ask: Callable[[Any], Answers]
    needs: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    points: int = 1
    not_for: tuple[str, ...] = ()
    whole: bool = False
    subject: Subject = "run"
    lacks: Callable[[Question, Any], CannotTell | None] = run_lacks


class Symptom(NamedTuple):
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
        return tuple(dict.fromkeys((*self.question.needs, *self.outcome.needs)))

    @property
    def points(self) -> int:
        """Finite values that the first of its needs must have."""
        return max(self.question.points, self.outcome.points)


_REGISTERED: dict[Subject, dict[str, Symptom]] = {"run": {}, "batch": {}, "probe": {}, "memory": {}}
_FOUND: dict[Subject, Mapping[str, Symptom]] = {}


def add(asked: Question) -> None:
    """Register a question with its outcomes."""
    registered = _REGISTERED[asked.subject]
    for outcome in asked.outcomes:
        assert outcome.id not in registered, outcome.id  # noqa: S101 - a programming error
        registered[outcome.id] = Symptom(outcome, asked)


def symptoms(subject: Subject = "run") -> Mapping[str, Symptom]:
    """Return every symptom of a subject by id, sorted by id; its modules are imported on the first call."""
    if subject not in _FOUND:
        package = import_module(f"mldebug_mcp.checks.{subject}")
        for file in sorted(entry.name for entry in os.scandir(package.__path__[0])):
            if file.endswith(".py") and file != "__init__.py":
                import_module(f"{package.__name__}.{file.removesuffix('.py')}")
        _FOUND[subject] = dict(sorted(_REGISTERED[subject].items()))
    return _FOUND[subject]


def _asker(detect: Callable[[Any], Evidence | None]) -> Callable[[Any], Answers]:
    """Return how the question is asked whose one outcome a function detects."""

    def ask(subject: object) -> Answers:
        evidence = detect(subject)
        return {} if evidence is None else {detect.__name__: evidence}

    return ask


def symptom(
    *,
    needs: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    points: int = 1,
    not_for: tuple[str, ...] = (),
    whole: bool = False,
    background: float = DEFAULT_BACKGROUND,
    follows: tuple[str, ...] = (),
    as_chosen: bool = False,
) -> Callable[[Detector], Detector]:
    """Register a function as the symptom of its name: one question with one outcome, which have the fields."""

    def register(detect: Detector) -> Detector:
        outcome = outcome_of(detect, background, *sources, follows=follows, as_chosen=as_chosen)
        add(Question(outcome.id, (outcome,), _asker(detect), needs, any_of, points, not_for, whole))
        return detect

    return register


def question(
    *outcomes: Outcome,
    needs: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    points: int = 1,
    not_for: tuple[str, ...] = (),
    whole: bool = False,
) -> Callable[[Asker], Asker]:
    """Register a function as the question of its name, with the outcomes; it sees at most one of them.

    The function returns the outcome that it sees, with the attributes of it, and for outcomes that could not be judged
    why. See `Question` for the other fields.
    """

    def register(ask: Asker) -> Asker:
        add(Question(ask.__name__, outcomes, ask, needs, any_of, points, not_for, whole))
        return ask

    return register


def batch_check(
    *,
    severity: Severity,
    why: str,
    fix: str,
    fixes: Mapping[str, str] | None = None,
    quotes: tuple[str, ...] = (),
    purposes: tuple[Purpose, ...] | None = None,
    whole: bool = False,
) -> Callable[[BatchDetector], BatchDetector]:
    """Register a function as the check of a batch of its name.

    Args:
        severity: What it usually does to training: "error", "warning" or "info".
        why: What it does to training, in a sentence.
        fix: What to change, in Transformers or TRL.
        fixes: The same by framework.
        quotes: Ids of quotes about it.
        purposes: The purposes for which the question makes sense; None for all.
        whole: Judge it once all of the data has been read, not piece by piece.
    """

    def lacks(_: Question, batch: Batch) -> CannotTell | None:
        if purposes is None or batch.rows_are_for in purposes or batch.purpose in purposes:
            return None
        return CannotTell(f"not judged for data of purpose {batch.purpose}")

    def register(detect: BatchDetector) -> BatchDetector:
        name, doc = detect.__name__, detect.__doc__ or ""
        outcome = Outcome(name, doc, severity=severity, why=why, fix=fix, fixes=fixes or {}, quotes=quotes)
        add(Question(name, (outcome,), _asker(detect), whole=whole, subject="batch", lacks=lacks))
        return detect

    return register


PROBE_BACKGROUND = 0.00002
"""How often a healthy probe shows a symptom. Chosen: far lower than in logs, as most measure one fault exactly."""


def probe_symptom(
    *,
    effects: Mapping[str, str],
    needs: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    background: float = PROBE_BACKGROUND,
) -> Callable[[ProbeDetector], ProbeDetector]:
    """Register a function as the symptom of a probe of its name.

    The function takes fields of `Measured` by their names, and is asked only where all of them were measured; as
    `measured` it takes the whole. A probe measures one thing at a time. So what a measurement can mean is given with
    it, in the words of `links.csv`.

    Args:
        effects: The causes that produce it, and how often: always, usually, often, sometimes, rarely.
        needs: Further fields without which it cannot be judged.
        sources: Ids of the sources of its thresholds.
        background: How often a healthy probe shows it.
    """

    def register(detect: ProbeDetector) -> ProbeDetector:
        name, doc, taken = detect.__name__, detect.__doc__ or "", inspect.signature(detect).parameters
        needed = (*(field_name for field_name in taken if field_name != "measured"), *needs)

        def lacks(_: Question, measured: Measured) -> CannotTell | None:
            missing = [field_name for field_name in needed if getattr(measured, field_name) is None]
            return CannotTell(f"not measured: {', '.join(missing)}") if missing else None

        def ask(measured: Measured) -> Answers:
            known = {"measured": measured, **{field_name: getattr(measured, field_name) for field_name in needed}}
            evidence = detect(**{field_name: known[field_name] for field_name in taken})
            return {} if evidence is None else {name: evidence}

        words = {cause: Frequency(word) for cause, word in effects.items()}
        outcome = Outcome(name, doc, background, sources, effects=words)
        add(Question(name, (outcome,), ask, needed, subject="probe", lacks=lacks))
        return detect

    return register


def memory_symptom(
    *,
    severity: Severity,
    fix: str = "",
    quotes: tuple[str, ...] = (),
    history: bool = False,
    background: float = DEFAULT_BACKGROUND,
) -> Callable[[MemoryDetector], MemoryDetector]:
    """Register a function as the symptom of a memory snapshot of its name.

    Args:
        severity: error, warning or info.
        fix: What to do about it.
        quotes: Ids of quotes that say so.
        history: Whether it can be judged only with a recorded history.
        background: How often a healthy run shows it, between 0 and 1.
    """

    def lacks(_: Question, snapshot: MemorySnapshot) -> CannotTell | None:
        return CannotTell("no allocation history") if history and not snapshot.recorded else None

    def register(detect: MemoryDetector) -> MemoryDetector:
        name, doc = detect.__name__, detect.__doc__ or ""
        outcome = Outcome(name, doc, background, severity=severity, fix=fix, quotes=quotes)
        add(Question(name, (outcome,), _asker(detect), subject="memory", lacks=lacks))
        return detect

    return register


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
"""Not among them: a policy that stands still, groups without variance. Their absence tells why the reward is so."""


# How a question is asked of its subject, and what was seen becomes an answer: present, absent or unknown.


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question saw of one of its outcomes.

    Args:
        outcome: Which outcome.
        state: Whether it is present.
        evidence: What was seen; of an absent outcome, a remark.
        unknown: Why it could not be judged.
    """

    outcome: Outcome
    state: State
    evidence: Evidence | None = None
    unknown: CannotTell | None = None

    def finding(self) -> Finding:
        """Return the answer as a finding of a run, a probe or a snapshot."""
        if self.evidence is None:
            summary = "" if self.unknown is None else str(self.unknown)
            return Finding.model_construct(symptom=self.outcome.id, state=self.state, summary=summary)
        return Finding.model_construct(
            symptom=self.outcome.id,
            state=self.state,
            summary=self.evidence.summary,
            steps=list(self.evidence.steps),
            values={name: float(value) for name, value in self.evidence.values.items()},
        )


def judge(symptom: Symptom, run: Run) -> tuple[Finding, str | None]:
    """Judge a symptom on a run. The second value is a note, if its question itself broke."""
    answers, note = answer(symptom.question, run)
    return next(given.finding() for given in answers if given.outcome.id == symptom.id), note


def answer_all(subject: Subject, asked_of: object) -> tuple[list[Answer], list[str]]:
    """Ask every question about a subject. Returns the answers by id of outcome, and notes on questions that broke."""
    answers, notes = [], []
    for asked in {symptom.question.id: symptom.question for symptom in symptoms(subject).values()}.values():
        checkpoint(f"asking about {asked.id}")
        given, note = answer(asked, asked_of)
        answers += given
        notes += [] if note is None else [note]
    return sorted(answers, key=lambda given: given.outcome.id), notes


def answer(asked: Question, subject: object) -> tuple[list[Answer], str | None]:
    """Ask a question of its subject: a run, a batch, what a probe measured, or a memory snapshot.

    Returns:
        An answer for each outcome, and a note, if the question itself broke. A run is asked segment by segment, unless
        the question is about it as a whole.
    """
    if asked.subject != "run" or asked.whole:
        return _answer_part(asked, subject)
    run = cast("Run", subject)
    parts = run.parts()
    answers: list[list[Answer]] = []
    note = None
    for part in parts:
        given, problem = _answer_part(asked, part)
        note = note or problem
        if len(parts) > 1:
            where = f"in the stretch of {run.step_name}s {figure(part.first_step)} to {figure(part.last_step)}: "
            given = [_located(outcome_answer, where) for outcome_answer in given]
        answers.append(given)
    return [_joined_answer(of_outcome) for of_outcome in zip(*answers, strict=True)], note


def _located(given: Answer, where: str) -> Answer:
    if given.evidence is None or not given.evidence.summary:
        return given
    return replace(given, evidence=replace(given.evidence, summary=where + given.evidence.summary))


def _joined_answer(answers: Iterable[Answer]) -> Answer:
    """Return the answer that represents all segments.

    That is the last present one, else a remark, else an absent one, else an unknown one.
    """

    def weight(numbered: tuple[int, Answer]) -> tuple[int, bool, int]:
        position, given = numbered
        return (
            [State.UNKNOWN, State.ABSENT, State.PRESENT].index(given.state),
            given.unknown is not None or (given.evidence is not None and bool(given.evidence.summary)),
            position,
        )

    return max(enumerate(answers), key=weight)[1]


def not_logged_by(symptom: Symptom, run: Run) -> tuple[tuple[str, ...], ...]:
    """Return what a run would have to log for a symptom to be judged: of each group, one metric."""
    return missing_metrics(symptom.needs, symptom.question.any_of, run)


def _answer_part(asked: Question, subject: object) -> tuple[list[Answer], str | None]:
    note = None
    unknown = asked.lacks(asked, subject)
    if unknown is None:
        try:
            with np.errstate(all="ignore"):  # NaN and Inf are what is looked for here
                return _exclusive(asked, asked.ask(subject), subject), None
        except CannotTell as why:
            unknown = why
        except Exception as error:  # noqa: BLE001 - a broken question is a note, never a failed answer
            unknown = CannotTell("the check failed; see the notes")
            note = f"{asked.id} could not be judged: {type(error).__name__}: {shorten(str(error), 200)}"
    return [Answer(outcome, State.UNKNOWN, unknown=unknown) for outcome in asked.outcomes], note


def _exclusive(asked: Question, answers: Answers, subject: object) -> list[Answer]:
    """Return an answer for each outcome: where one is seen, the others are unknown, for they exclude each other."""
    present = {name for name, evidence in answers.items() if isinstance(evidence, Evidence) and evidence.present}
    leading = [outcome.id for outcome in asked.outcomes if outcome.id in present and not outcome.of]
    if len(leading) > 1:
        raise ValueError(f"outcomes exclude each other, and here are {', '.join(leading)}")
    return [_answer_of(outcome, answers.get(outcome.id), present, leading, subject) for outcome in asked.outcomes]


def _answer_of(
    outcome: Outcome,
    result: Evidence | CannotTell | None,
    present: Collection[str],
    leading: Sequence[str],
    subject: object,
) -> Answer:
    unknown: CannotTell | None = None
    if outcome.of and outcome.of not in present:
        unknown = CannotTell(f"reported only with {outcome.of}")
    elif isinstance(result, CannotTell):
        unknown = result
    elif isinstance(result, Evidence):
        return Answer(outcome, State.PRESENT if result.present else State.ABSENT, result)
    elif leading and not outcome.of:
        unknown = CannotTell(f"{leading[0]} is seen instead")
    elif outcome.needs and (missing := missing_metrics(outcome.needs, (), cast("Run", subject))):
        unknown = not_logged(missing)
    return Answer(outcome, State.ABSENT if unknown is None else State.UNKNOWN, unknown=unknown)


# How a question finds the one outcome that it sees: outcomes are tried in order, and the first that is seen ends it.


def outcome_of(
    see: Callable[..., Evidence | None],
    background: float = DEFAULT_BACKGROUND,
    *sources: str,
    needs: tuple[str, ...] = (),
    of: str = "",
    follows: tuple[str, ...] = (),
    instead: tuple[str, ...] = (),
    as_chosen: bool = False,
    points: int = 1,
    settled: bool = False,
    not_for: tuple[str, ...] = (),
) -> Outcome:
    """Return the outcome that a function sees: of its name, with its documentation; see `Outcome` for the fields."""
    name, doc = see.__name__, see.__doc__ or ""
    given = (background, sources, of, needs, follows, instead, as_chosen, points, settled, not_for)
    return Outcome(name, doc, *given, see=see)


def ask_in_turn(
    name: str,
    *outcomes: Outcome,
    needs: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    points: int = 1,
    not_for: tuple[str, ...] = (),
    whole: bool = False,
) -> None:
    """Register the question of a name that tries its outcomes in their order; see `Question` for the other fields.

    What a healthy run shows of each is chosen, and counted anew by the fit, but for outcomes that are `as_chosen`. An
    attribute is asked of what was seen of its outcome, and of the run.
    """

    def ask(run: Run) -> Answers:
        answers = first_of(run, (outcome for outcome in outcomes if not outcome.of))
        for outcome in outcomes:
            if outcome.of and outcome.see is not None:
                answers = with_attribute(answers, outcome.of, outcome.see, run)
        return answers

    add(Question(name, outcomes, ask, needs, any_of, points, not_for, whole))


def first_of(run: Run, outcomes: Iterable[Outcome]) -> Answers:
    """Return the first outcome that is present, the remarks before it, and why others cannot be judged."""
    answers: dict[str, Evidence | CannotTell] = {}
    for outcome in outcomes:
        assert outcome.see is not None  # noqa: S101 - `outcome_of` gives it
        result = run_lacks(outcome, run) or answer_of(partial(outcome.see, run))
        if result is not None:
            answers[outcome.id] = result
        if isinstance(result, Evidence) and result.present:
            break
    return answers


# How a question hears several judges: each says what it sees, or that it cannot tell.


BoundJudge = Callable[[], Evidence | None]
Given = TypeVarTuple("Given")


def by_outcome(judges: Iterable[Callable[[*Given], Evidence | None]], *given: *Given) -> dict[str, BoundJudge]:
    """Return what each judge says of the same things, by the outcome that it is named after."""
    return {judge.__name__: partial(judge, *given) for judge in judges}


def answer_of(judge: BoundJudge) -> Evidence | CannotTell | None:
    """Return what one says; that it cannot tell is an answer."""
    try:
        return judge()
    except CannotTell as why:
        return why


def answers_of(judges: Mapping[str, BoundJudge]) -> dict[str, Evidence | CannotTell]:
    """Return what each says, by outcome; those that see nothing are left out."""
    answers = {outcome: answer_of(judge) for outcome, judge in judges.items()}
    return {outcome: answer for outcome, answer in answers.items() if answer is not None}


def first_seen(judges: Mapping[str, BoundJudge]) -> dict[str, Evidence | CannotTell]:
    """Return what the first sees that sees anything, by its outcome; else what they remark or cannot tell."""
    answers: dict[str, Evidence | CannotTell] = {}
    for outcome, judge in judges.items():
        answer = answer_of(judge)
        if isinstance(answer, Evidence) and answer.present:
            return {outcome: answer}
        if answer is not None:
            answers[outcome] = answer
    return answers


def with_attribute(
    answers: Answers, leading: str, judge: Callable[[Evidence, *Given], Evidence | None], *given: *Given
) -> Answers:
    """Return the answers and, where the leading outcome is among them, what a judge says of an attribute of it."""
    evidence = answers.get(leading)
    if not isinstance(evidence, Evidence):
        return answers
    return {**answers, **answers_of({judge.__name__: partial(judge, evidence, *given)})}
