"""The answer of `diagnose_run`, with the sheet of the run and the comparison with a good run."""

# Annotations are no strings here, each of which pydantic would have to compile at the start of every command.

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from mldebug_mcp.core.errors import MissingExtraError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import percent
from mldebug_mcp.models.base import Citation, Glance, Model, NextCall, Number, RankedCause, Text, empty_list

# The answer to "which checkpoint shall I keep?".


class CheckpointFact(Model):
    """A checkpoint of a run, with its value of the metric."""

    name: Text = Field(description="Its path from the folder of the run.")
    step: Number | None = Field(None, description="Where it was saved, on the axis of the log; null: not known.")
    value: Number | None = Field(None, description="The metric there; null where it was not evaluated.")
    evaluated: Literal["there", "between", "by its name", "no"] = Field(
        "no", description="there: at its step. between: the value is read off between two evaluations."
    )
    as_good: bool = Field(False, description="Whether noise alone could part it from the best evaluation.")
    note: Text = Field("", description="What is wrong with it, or how it was matched.")


class CheckpointChoice(Model):
    """Which checkpoint of a run to keep, by the metric that its author chose."""

    at_a_glance: Glance | None = Field(None, description="What to read first; null inside of a diagnosis.")
    keep: Text = Field("", description="The one to keep, from the folder of the run; empty where that is unknown.")
    verdict: Literal["clear", "within noise", "too few evaluations", "not evaluated"] = Field(
        description="clear: no other is as good. within noise: others may be as good."
    )
    summary: Text = Field(description="The answer in a few sentences.")
    metric: Text = Field("", description="The metric that decides.")
    better: Literal["higher", "lower", ""] = Field("", description="Which way it is better.")
    chosen_by: Text = Field("", description="Who chose that metric: a setting, a state, a name, or this kind of run.")
    evaluations: int = Field(0, description="Finite values of the metric.")
    value: Number | None = Field(None, description="Its value at the one to keep.")
    best: Number | None = Field(None, description="Its best value in the log.")
    best_step: Number | None = Field(None, description="Where that is.")
    best_saved: bool = Field(False, description="Whether a checkpoint of that evaluation is there.")
    noise: Number | None = Field(None, description="Standard deviation from one evaluation to the next; null: unknown.")
    band: Number | None = Field(None, description="A smaller difference may be noise.")
    as_good: list[Text] = Field(
        default_factory=empty_list, description="Others that noise alone could part from the best."
    )
    checkpoints: list[CheckpointFact] = Field(
        default_factory=empty_list, description="All of them, in order of their steps."
    )
    notes: list[Text] = Field(default_factory=empty_list, description="What was taken for granted or left out.")


# The record of what was tried on a run: hypotheses, checks and changes, what they predicted and what came.


_ID = r"^[a-z0-9_.]{0,80}$"
_TIME = r"^\d{4}-\d\d-\d\dT[0-9:.+Z-]{5,30}$"
"""What ids and times look like: whoever writes into a folder may write a record."""
MAX_CHANCE_OF_RULED_OUT = 0.1
"""Probability from which a cause that a check refutes is not called ruled out. Chosen: it may still lead."""


class Tried(Model):
    """A check that was made or a change that was tried, or one that is planned: an entry of the record."""

    at: str = Field(pattern=_TIME, description="When it was recorded, in UTC (ISO 8601).")
    cause: str = Field(pattern=_ID, description="The hypothesis: the id of a cause.")
    check: str = Field("", pattern=_ID, description="The id of the check, such as lr_too_high.1; empty for a change.")
    done: Text = Field(description="The check that was made, or what was changed, as it was recorded.")
    predicted: Text = Field("", description="What would show that the cause is there.")
    predicted_otherwise: Text = Field("", description="What would show that it is not.")
    outcome: Literal["open", "confirms", "refutes"] = Field("open", description="open: no verdict yet.")
    measured: dict[str, Number] = Field(default_factory=dict, description="What came, in numbers, by name.")
    compared: Text = Field("", description="What comparing runs with the change and without it gave.")
    before: Number | None = Field(None, description="Probability of the cause before this outcome.")
    after: Number | None = Field(None, description="Probability of the cause with it.")
    note: Text = Field("", description="What whoever recorded it wrote.")
    version: str = Field("", pattern=r"^[0-9A-Za-z.+-]{0,40}$", description="The version of mldebug-mcp that wrote it.")

    @property
    def rules_out(self) -> bool:
        """Whether it refutes the cause, and the cause has hardly a chance after it; unknown chances do not count."""
        return self.outcome == "refutes" and (self.after is None or self.after < MAX_CHANCE_OF_RULED_OUT)

    def verdict(self) -> str:
        """Return what it says of its cause, in words."""
        if self.outcome == "refutes":
            return "ruled out" if self.rules_out else "contradicted"
        return {"open": "open", "confirms": "confirmed"}[self.outcome]

    def by(self) -> str:
        """Return what gave the verdict, in words."""
        return f"check {self.check}" if self.check else "a change"

    def line(self) -> str:
        """Return it in a line."""
        measured = ", ".join(f"{name}={_figure(value)}" for name, value in self.measured.items())
        came = "; ".join(part for part in (measured, self.compared, self.note) if part)
        left = (
            f" ({percent(self.after)} after it)" if self.verdict() == "contradicted" and self.after is not None else ""
        )
        line = f"{self.cause}: {self.verdict()} on {self.at[:10]}{left} by {self.by()} ({self.done})"
        return line + (f": {came}" if came else "")


def _figure(value: float) -> str:
    return f"{value:.4g}"


if TYPE_CHECKING:
    import pandas as pd

# What a reader of the user's own makes of a run, and the rules that it, an agent and a client's model get alike.


JUDGING_RULES = (
    "Keep at least three hypotheses. `healthy` and `unknown` are always among them.",
    "Ask of each hypothesis which facts it does not explain. What explains the earliest fact often explains the later.",
    "Compare each number with what is expected of it: chance, a ceiling, passes over the data, the planned schedule.",
    "What was not logged is unknown, not absent.",
    "What many healthy runs show too, such as clipping, noise or one spike that recovers, accuses nobody by itself.",
    "A result that is too good is as suspicious as one that is too bad.",
    "Doubt stays in the numbers: a probability of 0.9 has to be right nine times of ten.",
)
"""How to judge a run from facts. SKILL.md and the prompts of the server hold the same lines."""


class ReaderOpinion(Model):
    """The judgement of a reader that the user named, and the one of reader and own ranking together."""

    causes: list[RankedCause] = Field(description="As the reader says, best first; the rest is for all other causes.")
    combined: list[RankedCause] = Field(description="Reader and own ranking together, best first; they sum to 1.")
    grounds: Text = Field("", description="Why, in the reader's words, with the numbers of facts.")
    facts: list[Text] = Field(default_factory=empty_list, description="The facts that the grounds cite, numbered.")
    not_explained: Text = Field("", description="What the reader's first cause does not explain.")
    check: Text = Field("", description="The check that would settle it, in the reader's words.")


# The sheet of a run: what was observed, from which a reader can judge without the log. It names no cause.


class SettingFact(Model):
    """A setting that matters, or one that follows from several."""

    name: str = Field(description="Its canonical name, or as it is called in the configuration.")
    value: Text = Field(description="As it is set.")
    usual: Text = Field("", description="What is usual, where this is not; empty for a usual value.")

    def __str__(self) -> str:
        return f"{self.name}={self.value}" + (f" [! usual: {self.usual}]" if self.usual else "")


class CurveFact(Model):
    """One logged quantity over the run: times are in seconds, memory in GiB, percentages of shares are shares of 1."""

    name: str = Field(description="As it was logged.")
    unit: str = Field("", description="The unit of the numbers, where the name gives another.")
    records: int = Field(description="Values that were logged.")
    first: Number = Field(description="The first value.")
    early: Number = Field(description="Median of the first twentieth of the records, of three at least.")
    low: Number = Field(description="The lowest value.")
    low_at: Number = Field(description="The step of the lowest value.")
    high: Number = Field(description="The highest value.")
    high_at: Number = Field(description="The step of the highest value.")
    last: Number = Field(description="The last value.")
    noise: Number = Field(description="Standard deviation from record to record, without the trend.")
    course: Text = Field("", description="What it does: falls, rises, jumps, rests since, frozen since, not finite.")
    text: Text = Field(description="All of that in one line.")


class QuantityFact(Model):
    """A quantity of the run: in training, in evaluation, or a group of columns that are alike."""

    name: str = Field(description="Canonical name of the series of the first curve.")
    role: str = Field("", description="What it is; empty where its name is not understood.")
    curves: list[CurveFact] = Field(description="Training first. Of a group, its extremes.")
    columns: int = Field(1, description="How many columns of the log it stands for.")
    gap: Text = Field("", description="Evaluation and training compared, in numbers.")
    decides: bool = Field(False, description="Whether a finding that is present rests on it.")
    matters: bool = Field(False, description="Whether a finding rests on it, or it is the loss or a result.")

    @property
    def parts(self) -> list[str]:
        """The line in its parts: training, evaluation, and the gap; of a group its extremes."""
        group = [f"{self.columns} columns, among them"] if self.columns > len(self.curves) else []
        return [*group, *(curve.text for curve in self.curves), *([self.gap] if self.gap else [])]


class EventFact(Model):
    """Something that happened at a step."""

    step: Number = Field(description="Where it happened, or first happened.")
    text: Text = Field(description="What moved, and by how much; or what the log says.")
    first_mover: str = Field("", description="The curve that moved before the others; empty where none did.")
    findings: list[str] = Field(default_factory=empty_list, description="The findings that begin about there.")
    worst_at: Number | None = Field(None, description="The step of the largest of jumps that recur.")
    size: Number = Field(0.0, description="In standard deviations of what is usual; 0 without a jump.")

    def __str__(self) -> str:
        findings = f" ({', '.join(self.findings)})" if self.findings else ""
        first = f"; first: {self.first_mover}" if self.first_mover else ""
        return f"{self.text}{first}{findings}"


class DerivedFact(Model):
    """What follows from several quantities together: a fact about the run, neither a symptom nor a cause."""

    fact: str = Field(description="Its id, such as rollouts_without_gradient.")
    text: Text = Field(description="In a sentence or two.")
    values: dict[str, Number] = Field(default_factory=dict, description="The numbers behind it.")
    steps: list[Number] = Field(default_factory=empty_list, description="Steps of note.")


class Sheet(Model):
    """What was observed of a run; findings, hypotheses and the next call are next to it in the diagnosis."""

    lines: list[Text] = Field(default_factory=empty_list, description="All of it as lines; in a concise answer, alone.")
    ran: list[Text] = Field(
        default_factory=empty_list, description="What ran, how much of the plan, attempts, resumes, how the log ends."
    )
    settings: list[SettingFact] = Field(
        default_factory=empty_list, description="Those that matter, the unusual ones first, each with what is usual."
    )
    quantities: list[QuantityFact] = Field(default_factory=empty_list, description="What decides or moved most first.")
    events: list[EventFact] = Field(default_factory=empty_list, description="On one time line.")
    facts: list[DerivedFact] = Field(default_factory=empty_list, description="What follows from several quantities.")
    not_judged: list[Text] = Field(
        default_factory=empty_list, description="What could not be judged, and the metric or setting that is missing."
    )


# The answer to "where does this run differ from that one?".


class SettingDifference(Model):
    """A setting that differs between the two configurations."""

    setting: Text = Field(description="Its canonical name, such as learning_rate.")
    run: Text | Number | None = Field(description="Its value in this run; null if it is not set.")
    reference: Text | Number | None = Field(description="Its value in the reference run; null if it is not set.")
    factor: Number | None = Field(None, description="How many times as large it is here, where both are above zero.")


class Parting(Model):
    """Where a metric of this run departs from that of the reference run, beyond the noise of both."""

    metric: Text = Field(description="Its canonical name, such as loss.")
    step: Number = Field(description="The step from which they differ.")
    run: Number = Field(description="The level of this run just after that step.")
    reference: Number = Field(description="The level of the reference run there.")
    sigmas: Number = Field(
        description="How far apart they are there, in standard deviations of the noise of both, 1000 at most."
    )
    run_at_end: Number = Field(description="The level of this run over the last tenth of the steps that both have.")
    reference_at_end: Number = Field(description="The level of the reference run there.")
    ends: Literal["worse", "better", "alike", ""] = Field(
        "", description="How this run ends compared with the reference, by the last levels; empty for other metrics."
    )
    worse: bool = Field(description="Whether it is a result of training and ends clearly worse than the reference.")


class SharedJump(Model):
    """A jump of the loss, and what the reference run does at the same steps."""

    step: Number = Field(description="Where it begins.")
    level: Number = Field(description="The level of the loss before it.")
    run: Number = Field(description="Its highest loss.")
    reference: Number = Field(description="The highest loss of the reference run over the same steps.")
    both: bool = Field(description="Whether the loss of the reference run jumps there, too.")


class Comparison(Model):
    """A run compared with one that went well."""

    reference: Text = Field(description="The run that it was compared with.")
    settings: list[SettingDifference] = Field(description="What differs, what is known to matter first.")
    partings: list[Parting] = Field(description="The metric that departs first comes first.")
    alike: list[Text] = Field(description="Metrics that do not depart for good over the steps that both runs have.")
    jumps: list[SharedJump] = Field(default_factory=empty_list, description="Jumps of the loss, the highest first.")
    same_order: bool = Field(False, description="The settings of both runs name the same seed of their data.")
    same_losses: bool = Field(False, description="Both logs hold the same losses, as two logs of one run do.")


# The answer of `diagnose_run`.


_MAX_CAUSES_SHOWN = 3
"""Hypotheses in the line that stands for a diagnosis in a notebook."""


_PLACEHOLDER = regex(r"[A-Z_]+")


def _in_words(path: str) -> str:
    """Return a path; what stands for data that have none, such as DATA_IN_MEMORY, in words."""
    return path.lower().replace("_", " ") if _PLACEHOLDER.fullmatch(path) else path


class State(StrEnum):
    """The three answers of a symptom."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Finding(Model):
    """A symptom judged on one run: an observation, never a diagnosis."""

    symptom: str = Field(description="Its id; `explain` tells how it is judged.")
    state: State = Field(description="unknown: what it needs was not logged, or cannot be judged.")
    summary: Text = Field("", description="What is seen, in numbers with steps; or why it is unknown.")
    steps: list[Number] = Field(default_factory=empty_list, description="The onset first, then other notable steps.")
    values: dict[str, Number] = Field(default_factory=dict, description="The numbers behind the summary.")


class NextStep(Model):
    """A cheap check that tells hypotheses apart."""

    id: str = Field("", description="Names the check for update_diagnosis: its cause and a number.")
    action: Text = Field(description="What to do.")
    cost: Literal["seconds", "minutes", "hours"] = Field(description="How long it takes.")
    confirms: Text = Field("", description="What you would see if the cause is there.")
    refutes: Text = Field("", description="What you would see if it is not.")
    call: Text | None = Field(None, description="The tool call that does it, if one of our tools can.")
    for_causes: list[str] = Field(default_factory=empty_list, description="The hypotheses that it bears on.")
    answer: Text = Field("", description="What the log says to it by itself; such a check is not asked for.")


class Reason(Model):
    """One thing that makes a cause more or less likely, as a fact about the run."""

    fact: Text = Field(description="What is seen, set or printed, in words and numbers.")
    bits: Number = Field(description="How much it weighs: positive for the cause, negative against it.")
    kind: str = Field(description="finding, numbers (all curves together), log, error, reference or check.")
    symptom: str = Field("", description="Id of the finding, where it is one.")


class Hypothesis(Model):
    """A cause judged on one run."""

    cause: str = Field(description="Its id; `explain` gives it whole.")
    probability: float = Field(description="From 0 to 1, of what was looked at; no verdict.")
    credence: str = Field(description="The probability in words.")
    summary: Text = Field("", description="What goes wrong.")
    because: list[Text] = Field(default_factory=empty_list, description="Findings that support it, in bits.")
    against: list[Text] = Field(default_factory=empty_list, description="Findings that contradict it, in bits.")
    symptoms: list[str] = Field(
        default_factory=empty_list,
        description="Ids of the findings that are present and support it, strongest first: by a bit or more, if any.",
    )
    reasons: list[Reason] = Field(
        default_factory=empty_list, description="The same as facts, strongest first; of hypotheses from 2 % on."
    )
    unexplained: list[str] = Field(
        default_factory=empty_list,
        description="Ids of findings that few healthy runs show and that it does not explain.",
    )
    separates: Text = Field("", description="The check, by its id, that would tell it from the next hypothesis.")
    fix: Text = Field("", description="What usually helps once the cause is confirmed.")
    next_steps: list[NextStep] = Field(
        default_factory=empty_list,
        description="Checks that confirm or refute it; a concise answer has the best of them next to it.",
    )
    citations: list[Citation] = Field(default_factory=empty_list, description="What practitioners wrote about it.")
    tied_with: list[str] = Field(
        default_factory=empty_list, description="Hypotheses that the log cannot tell from this one: see ties."
    )


class MetricToLog(Model):
    """A metric that was not logged but would have helped to tell the leading hypotheses apart."""

    metric: str = Field(
        description="Its name in the logs of the Transformers Trainer and TRL; or a setting that is not known."
    )
    splits: list[str] = Field(description="The hypotheses whose probability it would move most.")
    bits: Number = Field(description="How much it is expected to lower the entropy of the leading hypotheses.")
    how: Text = Field(description="How to log it, in the framework that wrote this log if that is known.")


class Tie(Model):
    """Hypotheses that this log cannot tell apart: its evidence for and against them is the same."""

    causes: list[str] = Field(description="Their ids.")
    summary: Text = Field(description="Names them, and the one thing to log or run that would tell them apart.")


class RunSummary(Model):
    """What was read."""

    path: Text = Field(description="The file or folder, as it was named.")
    name: Text = Field("", description="The run that was asked for, of several in the path.")
    config_file: Text = Field("", description="The configuration that was named.")
    formats: list[str] = Field(description="The log formats found.")
    kind: str = Field("unknown", description="Kind of run, inferred from what is logged and configured.")
    records: int = Field(0, description="Log records read.")
    steps: int = Field(description="Distinct steps that hold a record; the run may have made more, see last_step.")
    first_step: Number | None = Field(None, description="The first step logged; null without a step.")
    last_step: Number | None = Field(None, description="The last step logged; null without a step.")
    step_name: str = Field("step", description="What a step is here: step, epoch or record.")
    runs_in_folder: int = Field(1, description="Runs found in the folder or the file.")
    segments: int = Field(1, description="Number of stretches between restarts and resumes.")
    metrics: list[Text] = Field(
        default_factory=empty_list, description="Canonical names of what was logged; in a concise answer the main ones."
    )
    last: dict[str, Number] = Field(default_factory=dict, description="Last values of the main metrics.")

    @property
    def title(self) -> str:
        """The path, and the run in it that was asked for."""
        if not self.name:
            return self.path
        return (
            f"{self.path}, {self.name}"
            if self.name.startswith(("attempt ", "fold "))
            else f"{self.path}, run {self.name}"
        )

    @property
    def is_one_of_several(self) -> bool:
        """Whether the path holds several runs, and none of them was asked for."""
        return self.runs_in_folder > 1 and not self.name


class RunVerdict(Model):
    """What a reader needs first: the leading hypotheses in plain words, the facts behind them, and the fix."""

    kind: Literal["fault", "healthy", "unclear", "not judged"] = Field(
        "unclear", description="What leads: a fault, `healthy`, none of both; not judged: too little was logged."
    )
    headline: Text = Field("", description="The leading hypotheses with their probabilities; they are not a verdict.")
    causes: list[str] = Field(default_factory=empty_list, description="Ids of the hypotheses that the headline names.")
    facts: list[Text] = Field(default_factory=empty_list, description="Two or three facts that the first one rests on.")
    next: Text = Field("", description="What to do next.")
    fix: Text = Field("", description="What usually helps, once the first cause is confirmed.")


DiagnosisStatus = Literal["judged", "no_result_logged", "too_little_seen"]


class Diagnosis(Model):
    """The answer to "what is wrong with this run?": observations, then hypotheses, then next steps."""

    verdict: RunVerdict = Field(default_factory=RunVerdict, description="What to read first.")
    status: DiagnosisStatus = Field(
        "judged",
        description="no_result_logged: no loss, score or reward; too_little_seen: hardly a symptom was judged.",
    )
    next_steps: list[NextStep] = Field(
        description="Checks that tell the leading hypotheses apart, what tells most for its cost first."
    )
    next_step: NextCall = None
    run: RunSummary = Field(description="What was read.")
    sheet: Sheet = Field(default_factory=Sheet, description="What was observed, to judge from without the log.")
    findings: list[Finding] = Field(
        description="Every symptom with its state; in a concise answer those that are present."
    )
    hypotheses: list[Hypothesis] = Field(description="Best first; probabilities sum to 1.")
    reader: ReaderOpinion | None = Field(
        None, description="What a reader that the user named makes of it; the verdict is then of both together."
    )
    ties: list[Tie] = Field(
        default_factory=empty_list, description="Leading hypotheses that the log cannot tell apart."
    )
    what_to_log: list[MetricToLog] = Field(
        default_factory=empty_list,
        description="Missing metrics that would have decided it, best first; empty without doubt.",
    )
    comparison: Comparison | None = Field(
        None, description="This run compared with the reference run, if one was given."
    )
    checkpoint: CheckpointChoice | None = Field(
        None, description="Which checkpoint to keep, where the folder of the run holds some."
    )
    script: list[Text] = Field(
        default_factory=empty_list,
        description="What the training script does wrong or right, with lines.",
    )
    tried: list[Tried] = Field(
        default_factory=empty_list,
        description="The last verdict on each cause and what is open, from the record next to the run.",
    )
    notes: list[Text] = Field(default_factory=empty_list, description="What was skipped, guessed and merged.")

    @property
    def present(self) -> list[Finding]:
        """What is seen in the log: the findings whose state is present."""
        return [finding for finding in self.findings if finding.state is State.PRESENT]

    @property
    def leader(self) -> str:
        """The id of the cause that leads: of reader and own ranking together, where a reader was asked."""
        return self.hypotheses[0].cause if self.reader is None else self.reader.combined[0].cause

    def to_frame(self) -> "pd.DataFrame":
        """Return the hypotheses as a DataFrame of pandas, best first, a row each.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None

        rows = [
            {
                "cause": hypothesis.cause,
                "probability": hypothesis.probability,
                "credence": hypothesis.credence,
                "because": "; ".join(hypothesis.because),
                "against": "; ".join(hypothesis.against),
                "summary": hypothesis.summary,
                "fix": hypothesis.fix,
            }
            for hypothesis in self.hypotheses
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        """Return a line, as a notebook shows a value: whole, there would be a hundred findings in it."""
        causes = ", ".join(
            f"{hypothesis.cause} {percent(hypothesis.probability)}"
            for hypothesis in self.hypotheses[:_MAX_CAUSES_SHOWN]
        )
        symptoms = ", ".join(finding.symptom for finding in self.present) or "nothing unusual"
        return f"<Diagnosis of {_in_words(self.run.path)}: {causes}; seen: {symptoms}>"

    __str__ = __repr__
