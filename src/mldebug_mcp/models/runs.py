"""The answers about many runs, about the news of a run, and about the values of a metric."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from mldebug_mcp.models.base import NO_FAULTS, AtAGlance, Citation, Glance, Model, NextCall, Number, Text, empty_list
from mldebug_mcp.models.diagnosis import Hypothesis, NextStep, ReaderOpinion, Tried

# The answers about many runs: which of them is sick, what the sick ones share, and whether one kind is better.


class Ranks(Model):
    """The ranks of a run whose processes each wrote files of their own."""

    count: int = Field(description="Ranks that wrote files.")
    failed: int = Field(description="Ranks whose files end in an error.")
    first_failed: Text = Field("", description="The rank that failed first; empty where none did.")
    error: Text = Field("", description="Its message.")
    straggler: Text = Field("", description="The rank that is behind the others or slower; empty for none.")
    told: list[Text] = Field(default_factory=empty_list, description="What stands out, in words.")


class RunRow(Model):
    """A run among many, in a line."""

    name: Text = Field(description="The run, relative to the folder; `diagnose_run` takes it as `run`.")
    path: Text = Field(description="Where it lies.")
    kind: str = Field("unknown", description="Kind of run, inferred from what is logged and configured.")
    ending: str = Field("open", description="finished, error, interrupted, silence, cut, open; unread: see `note`.")
    step: Number | None = Field(None, description="The last step logged.")
    step_name: str = Field("step", description="What a step is here: step, epoch or record.")
    metric: Text = Field("", description="The result that `last` and `best` are of.")
    better: Literal["higher", "lower", ""] = Field("", description="Which way that result is better.")
    last: Number | None = Field(None, description="The median of the last tenth of its values.")
    final: Number | None = Field(None, description="Its last value as logged: NaN where the run ended so.")
    best: Number | None = Field(None, description="Its best single value.")
    best_step: Number | None = Field(None, description="The step of that value.")
    cause: str = Field(
        "", description="The leading hypothesis by the log alone; empty where nothing was judged: see `note`."
    )
    error: Text = Field("", description="The error that ended it, where no fault explains it.")
    probability: Number = Field(0.0, description="Of the leading hypothesis, from 0 to 1.")
    onset: Number | None = Field(None, description="The first step of what supports a fault that leads.")
    seen: list[str] = Field(default_factory=empty_list, description="The symptoms that are present.")
    settings: dict[str, Text | Number | bool | None] = Field(
        default_factory=dict, description="Its values of the settings in which the runs differ."
    )
    ranks: Ranks | None = Field(None, description="Where each rank wrote files of its own.")
    tried: list[Text] = Field(
        default_factory=empty_list, description="What was ruled out, confirmed and is open, by the record next to it."
    )
    note: Text = Field("", description="Why it could not be read or judged.")
    reader: ReaderOpinion | None = Field(None, description="What a reader that the user named makes of it.")
    curve: SkipJsonSchema[tuple[tuple[float, float], ...]] = Field(
        (), exclude=True, repr=False, description="Steps and values of what is drawn, thinned."
    )
    curve_metric: SkipJsonSchema[str] = Field(
        "", exclude=True, repr=False, description="What is drawn: the result, or the curve that a fault shows in."
    )

    @property
    def is_sick(self) -> bool:
        """Whether a fault leads."""
        return self.leader not in ("", *NO_FAULTS)

    @property
    def leader(self) -> str:
        """The cause that leads: of reader and own ranking together, where a reader was asked."""
        return self.cause if self.reader is None else self.reader.combined[0].cause


class SharedSetting(Model):
    """A setting that goes with a cause, beyond what chance does among so many settings."""

    cause: str = Field(description="Id of the cause.")
    setting: Text = Field(description="Its canonical name.")
    condition: Text = Field(description="Which values, such as '= 0.003' or '>= 0.003'.")
    sick_with: int = Field(description="Runs that the cause leads in, with such a value.")
    sick: int = Field(description="Runs that the cause leads in and that tell the setting.")
    others_with: int = Field(description="Other runs with such a value.")
    others: int = Field(description="Other runs that tell the setting.")
    p: Number = Field(description="Fisher's exact test, two-sided, times the number of conditions tried (Holm).")


class BestSetting(Model):
    """A setting that was varied, and the level of it with the best results."""

    setting: Text = Field(description="Its canonical name.")
    tried: list[Text] = Field(description="Its levels in order: values, or ranges of very many.")
    best: Text = Field(description="The level whose runs rank best on average.")
    p: Number = Field(description="How often chance parts the levels as far, times the settings tried (Bonferroni).")
    certainty: Number | None = Field(
        description="How often it stays the best in draws of those averages; null where no level has two runs."
    )
    as_good: list[Text] = Field(
        default_factory=empty_list, description="Levels that come first in 5 % of draws or more."
    )
    edge: Literal["lowest", "highest", ""] = Field(
        "", description="At which edge of what was tried the best runs lie, beyond chance."
    )
    at_edge: int = Field(0, description="How many of the best runs lie there.")
    top: int = Field(0, description="How many best runs were looked at.")


class Sweep(Model):
    """What the runs of a sweep say of the settings that were varied, by their last results."""

    metric: Text = Field(description="The result that they are compared by.")
    better: Literal["higher", "lower"] = Field(description="Which way that is better.")
    compared: int = Field(description="Runs with that result and at least half as many steps as the longest.")
    best_runs: list[Text] = Field(description="The best first.")
    settings: list[BestSetting] = Field(description="Those at an edge first, then the clearest.")
    seed_groups: int = Field(0, description="Groups of runs without a fault that differ in their seed alone.")
    between_seeds: Number | None = Field(None, description="Standard deviation of the result within such groups.")
    between_settings: Number | None = Field(None, description="Standard deviation between them, without that of seeds.")
    citations: list[Citation] = Field(default_factory=empty_list, description="What practitioners wrote about it.")


class Runs(Model):
    """The answer to "which of my runs is sick?": those that need attention first."""

    at_a_glance: AtAGlance = Field(default_factory=Glance)
    path: Text = Field(description="The folder, as it was named.")
    rows: list[RunRow] = Field(description="A line for each run, those that need attention first.")
    shared: list[SharedSetting] = Field(default_factory=empty_list, description="The most certain first.")
    sweep: Sweep | None = Field(None, description="The best settings, where five runs or more can be compared.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was skipped, guessed or left out.")


class Contest(Model):
    """The answer to "is A better than B?": the difference of their means, next to what chance gives."""

    at_a_glance: AtAGlance = Field(default_factory=Glance)
    metric: Text = Field(description="The result that they are compared by.")
    better: Literal["higher", "lower"] = Field(description="Which way that is better.")
    a: list[Number] = Field(description="The result of each run of A.")
    b: list[Number] = Field(description="The result of each run of B.")
    paired: bool = Field(description="Whether runs were compared seed by seed.")
    difference: Number = Field(description="Mean of A minus mean of B.")
    low: Number = Field(description="The 95 % interval of the difference.")
    high: Number = Field(description="The upper end of that interval.")
    p: Number = Field(description="Of a permutation test, two-sided: how often chance alone parts them as far.")
    verdict: Literal["a is better", "b is better", "cannot tell"] = Field(description="At 95 %.")
    detectable: Number = Field(description="The difference that so many runs would show in four cases of five.")
    runs_needed: int | None = Field(
        description="Runs of each that would show the difference seen in four cases of five; null beyond 10,000."
    )
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was skipped, guessed or left out.")


# What `watch_run` tells.


class News(Model):
    """Something new in a run that is watched."""

    what: Literal["waiting", "reading", "finding", "leader", "fact", "no_result", "silent", "finished"] = Field(
        description="waiting: no log can be read yet. reading: what the log holds at first. finding: a symptom "
        "is present that was not, or begins anew. fact: what follows from several quantities, such as what rollouts "
        "without a gradient took, once and when it has changed. leader: another hypothesis leads, at two looks in a "
        "row. no_result: no loss, score or reward is among what is logged, at two looks in a row. silent: "
        "nothing was written for long. finished: the log says that training ended."
    )
    text: Text = Field(description="In one sentence.")
    at_a_glance: Glance | None = Field(None, description="The verdict on the run so far, where it is new.")
    step: Number | None = Field(None, description="How far the run had come.")
    step_name: str = Field("step", description="What a step is here: step, epoch or record.")
    symptom: str | None = Field(None, description="The symptom of a finding.")
    causes: dict[str, float] = Field(
        default_factory=dict, description="The leading hypotheses and their probabilities, best first."
    )
    alarm: bool = Field(
        False,
        description="Whether a cause leads that is neither `healthy` nor `unknown`, or no result can be judged.",
    )


# The answer of `read_metric`: values of curves, as they were logged.


class MetricValues(Model):
    """Values of one curve."""

    name: str = Field(description="As it was logged.")
    unit: str = Field("", description="The unit of the values, where the name gives another.")
    metric: str = Field(description="Its canonical name, such as loss.")
    role: str = Field("", description="What it is; empty where its name is not understood.")
    records: int = Field(description="How many values were logged in this stretch.")
    course: Text = Field("", description="What it does there, in words.")
    points: list[tuple[Number, Number]] = Field(
        description="Steps and values: times in seconds, memory in GiB, shares of 1; of many the extremes survive."
    )


class MetricReading(Model):
    """Values of one or several curves of a run."""

    path: Text = Field(description="The file or folder, as it was named.")
    step_name: str = Field("step", description="What a step is here: step, epoch or record.")
    series: list[MetricValues] = Field(description="The curves that were asked for.")
    others: list[str] = Field(default_factory=empty_list, description="Other curves in the log.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was skipped, guessed or left out.")


# The answer of `read_coverage`: the kinds of lines with numbers of a log.


LineUse = Literal["records", "settings", "progress", "event", "end", "error", "setup", "prose", "not read"]
"""What was made of a line: values of the run or of one of its ranks; settings; where the run is, without values; a
resume or a skipped step; the end of the run; an error; what a program prints of its environment, data and model; a
sentence that holds a number; nothing."""


class LineKind(Model):
    """Lines of a log that are alike but for their numbers."""

    pattern: Text = Field(description="The line without its prefix, # for each number.")
    count: int = Field(description="How many such lines there are.")
    use: LineUse = Field(description="What was made of them.")
    line: int = Field(description="Number of the first of them; 0 where a file is read as a whole.")
    example: Text = Field(description="The first of them.")


class Coverage(Model):
    """The kinds of lines with numbers of a log, those that were not read first."""

    path: Text = Field(description="The file or folder, as it was named.")
    lines: int = Field(description="Lines with numbers.")
    accounted_for: Number = Field(
        description="Share of them, 0 to 1, from which something was made, or which are prose."
    )
    kinds: list[LineKind] = Field(description="What is not read first, then the most frequent.")
    notes: list[Text] = Field(default_factory=empty_list, description="What was skipped, guessed or left out.")


# The answers about one run that follow its diagnosis: what was tried on it, and its hypotheses after checks.


class Record(Model):
    """What was tried on a run, the oldest first."""

    path: Text = Field(description="The run, as it was named.")
    file: Text = Field(description="Where the record stands.")
    tried: list[Tried] = Field(default_factory=empty_list, description="All entries.")
    ruled_out: list[str] = Field(
        default_factory=empty_list,
        description="Causes whose last verdict refutes them and leaves them hardly a chance.",
    )
    contradicted: list[str] = Field(
        default_factory=empty_list, description="Causes whose last verdict refutes them, and that may be all the same."
    )
    confirmed: list[str] = Field(default_factory=empty_list, description="Causes whose last verdict confirms them.")
    open: list[Text] = Field(default_factory=empty_list, description="Checks and changes without a verdict yet.")
    notes: list[Text] = Field(default_factory=empty_list, description="What could not be read.")


class Update(Model):
    """The hypotheses after the outcomes of checks."""

    at_a_glance: AtAGlance = Field(default_factory=Glance)
    hypotheses: list[Hypothesis] = Field(description="Best first; probabilities sum to 1.")
    next_steps: list[NextStep] = Field(description="The checks that remain, what tells most for its cost first.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was taken for granted or left out.")
