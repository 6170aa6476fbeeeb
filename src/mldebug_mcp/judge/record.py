"""The verbs `record_check` and `read_record`: a record of what was tried on a run, as JSON lines next to it.

An entry holds a hypothesis, the check or the change, what it predicted, and what came. A verdict without a measurement
is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from mldebug_mcp import __version__
from mldebug_mcp.checks.results import result_of
from mldebug_mcp.core.access import require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.paths import append_line
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.judge.diagnosis import gather
from mldebug_mcp.judge.hypotheses import judge_causes
from mldebug_mcp.judge.next_steps import Outcome, entries_of, evidence_from_checks, require_known, still_open, verdicts
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.read import record_file
from mldebug_mcp.models.diagnosis import Tried
from mldebug_mcp.models.runs import Record

MAX_MEASURED = 20
LONGEST_WORDS = 1000
NO_MEASUREMENT = (
    "a verdict needs a measurement: give what was measured as NAME=NUMBER (--measured loss=2.31), or the runs with the "
    "change (--against RUN); without a verdict the check is recorded as open"
)


def record_check(
    path: str | Path,
    *,
    check: str = "",
    change: str = "",
    cause: str = "",
    predicts: str = "",
    outcome: Outcome | None = None,
    measured: Mapping[str, float] | None = None,
    against: Sequence[str | Path] = (),
    baseline: Sequence[str | Path] = (),
    metric: str = "",
    note: str = "",
    config: str | Path | None = None,
    run: str = "",
) -> Record:
    """Add a check or a change to the record of a run, and return the record.

    Args:
        path: A log file or a run folder; the record is next to it.
        check: The id of a next step of a diagnosis, such as "lr_too_high.1".
        change: What was changed instead, in words, such as "learning_rate 3e-4 to 1e-4".
        cause: The hypothesis that a change is about: the id of a cause.
        predicts: What a change should show if the cause is there.
        outcome: Whether what came "confirms" or "refutes" the cause; None while that is open.
        measured: What was measured, by name. A verdict needs it, or `against`.
        against: Runs with the change, which are compared with this one.
        baseline: Further runs without the change, such as other seeds.
        metric: The metric that is compared; by default evaluation loss, reward or score.
        note: What else to keep, in words.
        config: As in `diagnose_run`.
        run: Which run, where the path holds several.

    Raises:
        InputError: a check, a cause or a run does not exist, a verdict has no measurement, a comparison cannot tell, or
            the record cannot be written.
    """
    own = read_run(path, config, run)
    file = _place(own, path)
    done, predicted, otherwise, of = _hypothesis(check, change, cause, predicts)
    numbers = _numbers(measured or {})
    compared, of_runs = (
        ("", {}) if not against else _compared(own, _Comparison(path, against, baseline, metric), outcome)
    )
    numbers |= of_runs
    if outcome is not None:
        require_known(outcome, ("confirms", "refutes"), "outcome", "use confirms or refutes")
        if not numbers:
            raise InputError(NO_MEASUREMENT)
    known = entries_of(file)[0]
    before, after = _probabilities(own, known, check, outcome, of)
    entry = Tried(
        at=datetime.now(UTC).isoformat(timespec="seconds"), cause=of, check=check, done=done, predicted=predicted,
        predicted_otherwise=otherwise, outcome=outcome or "open", measured=numbers, compared=compared, before=before,
        after=after, note=shorten(note, LONGEST_WORDS), version=__version__,
    )  # fmt: skip
    append_line(file, entry.to_json())
    return _record(path, file)


def read_record(path: str | Path, config: str | Path | None = None, run: str = "") -> Record:
    """Return the record of a run, empty where nothing was recorded; see `record_check` for the arguments.

    Raises:
        InputError: the run or the record cannot be read, or has no place for one.
    """
    own = read_run(path, config, run)
    return _record(path, _place(own, path))


def _place(run: Run, path: str | Path) -> Path:
    file = record_file(run)
    if file is None:
        raise InputError(
            f"{shorten(str(path), 200)}: a record has no place next to it; name the log file or the folder of one run"
        )
    require(file)
    return file


def _hypothesis(check: str, change: str, cause: str, predicts: str) -> tuple[str, str, str, str]:
    """Return what is done, what shows the cause and what shows that it is not there, and the cause."""
    if bool(check) == bool(change):
        raise InputError("name either a check of a diagnosis (--check lr_too_high.1) or a change (--change WORDS)")
    causes = catalogue().causes
    if check:
        steps = {step.id: (described.id, step) for described in causes.values() for step in described.next_steps}
        require_known(check, steps, "check", "find the ids of checks in next_steps, such as lr_too_high.1")
        of, step = steps[check]
        return step.action, predicts or step.confirms, step.refutes, of
    if not cause:
        raise InputError("--change needs the hypothesis that it is about: --cause ID, such as lr_too_high")
    require_known(cause, causes, "cause", "`mldebug-mcp explain menu` lists them")
    return shorten(change, LONGEST_WORDS), shorten(predicts, LONGEST_WORDS), "", cause


def _numbers(measured: Mapping[str, float]) -> dict[str, float]:
    if len(measured) > MAX_MEASURED:
        raise InputError(f"{len(measured)} measurements; at most {MAX_MEASURED} are kept of one check")
    wrong = next((name for name, value in measured.items() if isinstance(value, bool) or not _is_number(value)), None)
    if wrong is not None:
        raise InputError(f"{shorten(wrong, 60)}: a measurement is a number, such as loss=2.31")
    return {shorten(name, 80): float(value) for name, value in measured.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The run of the record and a baseline of others without a change, and those with it; "" is the usual metric."""

    path: str | Path
    against: Sequence[str | Path]
    baseline: Sequence[str | Path]
    metric: str


def _compared(own: Run, of: _Comparison, outcome: Outcome | None) -> tuple[str, dict[str, float]]:
    """Return what comparing the runs with the change and those without it gives, in words and numbers."""
    metric, against = of.metric, of.against
    without = [of.path, *of.baseline]
    if len(against) > 1 and len(without) > 1:
        from mldebug_mcp.judge.group_comparison import compare_runs

        answer = compare_runs([str(place) for place in against], [str(place) for place in without], metric)
        if answer.verdict == "cannot tell" and outcome is not None:
            unclear = answer.at_a_glance.headline
            raise InputError(f"the comparison cannot tell, so it does not support a verdict: {unclear}")
        words = f"{answer.metric}, {answer.better} is better: {'; '.join(answer.at_a_glance.facts)}: {answer.verdict}"
        words = words.replace("A - B", "with the change less without it")
        verdict = {"a is better": "better with the change", "b is better": "worse with the change"}
        words = words.replace(answer.verdict, verdict.get(answer.verdict, answer.verdict))
        return words, {f"{answer.metric} difference": answer.difference, "low": answer.low, "high": answer.high}
    result, other = result_of(own, metric), None
    with_change = read_run(against[0])
    other = None if result is None else result_of(with_change, result.metric)
    if result is None or other is None:
        raise InputError(f"{metric or 'a result'} is not logged by both runs; name one that is with --metric")
    better = (other.last > result.last) is result.higher_is_better
    way = "better" if better else "worse" if other.last != result.last else "the same"
    words = (
        f"{result.metric} ends at {figure(other.last)} with the change and at {figure(result.last)} without it: {way}; "
        "one run of each does not show what seeds do"
    )
    if not all(map(math.isfinite, (result.last, other.last))):
        raise InputError(f"{result.metric} does not end in a number in both runs; name another with --metric")
    return words, {f"{result.metric} with": other.last, f"{result.metric} without": result.last}


def _probabilities(
    own: Run, known: Sequence[Tried], check: str, outcome: Outcome | None, cause: str
) -> tuple[float, float | None]:
    """Return the probability of the cause with the checks so far, and with this outcome too, as `update_diagnosis`."""
    found = gather(own)
    steps = {step.id for described in catalogue().causes.values() for step in described.next_steps}
    made: dict[str, Outcome] = {
        tried.check: tried.outcome for tried in known if tried.outcome != "open" and tried.check in steps
    }

    def probability(outcomes: Mapping[str, Outcome]) -> float:
        evidence = [*found.evidence, *evidence_from_checks(outcomes)]
        ranked = judge_causes(found.findings, found.kind, evidence, own.path)
        return next((hypothesis.probability for hypothesis in ranked if hypothesis.cause == cause), 0.0)

    before = probability({name: each for name, each in made.items() if name != check})
    return before, probability({**made, check: outcome}) if check and outcome is not None else None


def _record(path: str | Path, file: Path) -> Record:
    tried, notes = entries_of(file)
    last = verdicts(tried)
    return Record(
        path=str(path),
        file=str(file),
        tried=tried,
        ruled_out=[cause for cause, entry in last.items() if entry.rules_out],
        contradicted=[cause for cause, entry in last.items() if entry.outcome == "refutes" and not entry.rules_out],
        confirmed=[cause for cause, entry in last.items() if entry.outcome == "confirms"],
        open=[entry.check or entry.done for entry in still_open(tried)],
        notes=notes,
    )
