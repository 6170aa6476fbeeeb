"""The verb `probe_overfit`: can this batch be memorised here, and if not, why not?"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from mldebug_mcp.batch import Batch, Sequences, read_batches
from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.checks import probe_effects
from mldebug_mcp.checks.check import answer_all
from mldebug_mcp.checks.probe import (
    FEW_STEPS,
    is_random,
    lacks_time,
    learns,
    still_falling,
    takes_turns,
    was_cut_short,
    without_noise,
)
from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.judge.at_a_glance import glance_at_probe
from mldebug_mcp.judge.hypotheses import judge_causes
from mldebug_mcp.judge.next_call import after_ranking, is_sendable
from mldebug_mcp.judge.next_steps import order_next_steps
from mldebug_mcp.models import Call, Finding, Hypothesis, NextStep, State
from mldebug_mcp.models.base import NO_FAULTS, SOUND, RankedCause
from mldebug_mcp.models.data import BadOperation, CurvePoint, ProbeResult, ResistingRow, Verdict
from mldebug_mcp.probe import Job, Progress, run_probe
from mldebug_mcp.probe.host import RawProbe, check_entry, find_python, memory_limit, read_config
from mldebug_mcp.probe.measured import Failure, Measured, Operation

# The probe's verdict: a decision tree, each leaf with its evidence in words.
#
# the process did not get to a loss → failed a token id has no embedding, or no label is trained on → cannot_learn the
# loss, at the start or later, is not finite → not_finite the loss came down to the goal → memorised it was still
# falling when steps or time were up → too_slow its steps are tiny, and larger ones memorise the batch → too_slow
# time was up and nothing else was seen → too_slow otherwise → cannot_learn
#
# The leading cause agrees with it: only a batch that is memorised can be healthy.


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and why."""

    word: Verdict
    why: str


def decide(measured: Measured, failure: Failure | None, findings: Sequence[Finding]) -> Decision:
    """Return the verdict on what was measured."""
    present = {finding.symptom: finding.summary for finding in findings if finding.state is State.PRESENT}
    for blocking in ("probe_vocabulary_small", "probe_labels_masked"):
        if blocking in present:
            return Decision("cannot_learn", f"nothing can be learnt: {present[blocking]}")
    if failure is not None:
        return Decision("failed", failure.message + (f"\n{failure.where}" if failure.where else ""))
    losses = [
        loss for loss in (measured.initial_loss, *(measured.curve.losses if measured.curve else ())) if loss is not None
    ]
    bad = next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if bad is not None:
        first = present.get("probe_nonfinite_operation") or present.get("probe_low_precision_only") or ""
        return Decision(
            "not_finite", f"the loss is {figure(losses[bad])} at step {bad}" + (f"; {first}" if first else "")
        )
    if "probe_graph_detached" in present and measured.curve is None:
        return Decision("cannot_learn", f"nothing can be learnt: {present['probe_graph_detached']}")
    if measured.gradients is not None and measured.gradients.nonfinite_count and not measured.memorised:
        return Decision(
            "not_finite", f"the loss is finite, its gradient is not: {', '.join(measured.gradients.nonfinite[:3])}"
        )
    return _learning(measured, present)


def _learning(measured: Measured, present: dict[str, str]) -> Decision:
    losses = measured.curve.losses if measured.curve else []
    if not losses:
        return Decision("failed", "the probe did not get to training")
    story = f"the loss went from {figure(losses[0])} to {figure(losses[-1])} in {len(losses)} steps"
    for blocking in NOT_LEARNT:
        if blocking in present:
            return Decision("cannot_learn", f"{story}; {present[blocking]}")
    if measured.memorised or (learns(measured) and not present.keys() - OF_THE_GOAL):
        return Decision("memorised", story if measured.memorised else f"{story}; {_why_learnt(measured)}")
    if (slow := _slow(measured, present)) is not None:
        return Decision("too_slow", f"{story}{slow}; {_goal(measured)}")
    noise = "".join(f"; {observation}" for observation in _random_loss(measured))
    return Decision("cannot_learn", f"{story} and stays there; {_goal(measured)}{noise}")


NOT_LEARNT = (
    "probe_loss_negated", "probe_loss_unbounded", "probe_loss_over_another_axis", "probe_rows_contradict",
    "probe_inputs_constant",
)  # fmt: skip
"""Symptoms of a loss that falls while nothing is learnt."""


def _slow(measured: Measured, present: dict[str, str]) -> str | None:
    """Return what shows that more steps, larger steps or more time may do; None where nothing does."""
    losses = measured.curve.losses if measured.curve is not None else []
    out_of_time = measured.curve is not None and measured.curve.ended == "time"
    if still_falling(losses) or (out_of_time and len(losses) < FEW_STEPS):
        return " when time was up" if out_of_time else " and was falling"
    if (tiny := _tiny_steps(measured, present)) is not None:
        return f"; {tiny}"
    return " when time was up" if lacks_time(measured) and not present.keys() - OF_THE_GOAL else None


OF_THE_GOAL = frozenset(
    {"probe_not_memorised", "probe_stuck", "probe_stuck_at_frequencies", "probe_loss_still_falling"}
)
"""Symptoms that say no more than that a goal was not reached."""


def _why_learnt(measured: Measured) -> str:
    """Say why a batch counts as learnt whose loss did not come down to the goal."""
    if takes_turns(measured) and measured.watched is not None and measured.contrast is not None:
        what = "memorises the batch" if measured.contrast.memorised else "brings it down clearly"
        return (
            f"it is of {measured.watched.optimizers} optimizers in turn and need not fall, and one alone {what} in "
            f"{len(measured.contrast.losses)} steps"
        )
    if is_random(measured) and measured.same_draws is not None:
        losses = measured.same_draws.losses
        return (
            "each call draws something anew, and with the same draws at each step the loss goes from "
            f"{figure(losses[0])} to {figure(losses[-1])} in {len(losses)} steps"
        )
    return "it has come to rest there, and its form, and with it its floor, is not known"


def _tiny_steps(measured: Measured, present: dict[str, str]) -> str | None:
    """Return what shows that only the size of the steps stands in the way, or None."""
    moves = measured.update_ratio or "probe_update_rounded_away" in present
    if not moves or measured.contrast is None or not measured.contrast.memorised:
        return None
    small = present.get("probe_update_small")
    return None if small is None else f"{small}; {present['probe_own_optimizer_learns']}"


def _goal(measured: Measured) -> str:
    return (
        f"memorised would be {figure(measured.goal)}"
        if measured.goal is not None and math.isfinite(measured.goal)
        else "it has no floor that is known"
    )


# A batch file → the columns that the probe trains on: rectangles of numbers, with the labels named `labels`.


PROBE_BATCH_MAX_ROWS = 64
MAX_NUMBERS = 4_000_000
"""Numbers in a column above which rows are left out: they are passed to the worker as text."""
TARGETS = ("labels", "label", "targets", "target", "y")

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class ProbeBatch:
    """What is probed of a file.

    Columns are nested lists: `input_ids`, `attention_mask`, `position_ids` or float inputs, and `labels`.
    """

    columns: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)


def read_probe_batch(path: str | Path) -> ProbeBatch:
    """Read the first rows of a batch or data set.

    Raises:
        InputError: it cannot be read, or its labels do not fit its inputs.
        MissingExtraError: its format needs a package that is not installed.
    """
    batch = next(iter(read_batches(path)))
    if batch.words is not None:
        raise InputError(f"{shorten(str(path), 200)}: holds text that is not tokenized; save a batch of token ids")
    notes: list[str] = []
    arrays: dict[str, Array] = {name: array for name, array in batch.floats.items() if name not in TARGETS}
    side = _side(batch, notes)
    if side is not None:
        arrays = _of_tokens(side, notes)
    target: Array | None = next((batch.floats[name] for name in TARGETS if name in batch.floats), None)
    if batch.classes is not None:  # the numbers of classes with names are arbitrary
        target = np.unique(batch.classes, return_inverse=True)[1] if batch.class_names else batch.classes
    if target is not None:
        arrays["labels"] = target
    elif side is not None and "labels" not in arrays and any(name in TARGETS for name in batch.columns):
        why = next((problem.summary for problem in batch.problems), "labels and input_ids are of different shapes")
        raise InputError(f"{shorten(str(path), 200)}: {why}; give one label for each token or for each row")
    rows = min(
        [PROBE_BATCH_MAX_ROWS, *(max(2, MAX_NUMBERS * len(array) // max(1, array.size)) for array in arrays.values())]
    )
    return ProbeBatch({name: array[:rows].tolist() for name, array in arrays.items()}, notes)


def _side(batch: Batch, notes: list[str]) -> Sequences | None:
    """Return the token rows to train on: the chosen ones of preference pairs, the completions of separate prompts."""
    if not batch.sides:
        return None
    chosen = batch.side("") or batch.side("chosen") or batch.side("completion") or batch.sides[0]
    if len(batch.sides) > 1:
        notes.append(f"only the {chosen.name} rows are probed")
    return chosen


def _of_tokens(side: Sequences, notes: list[str]) -> dict[str, Array]:
    arrays: dict[str, Array] = {"input_ids": _rectangle(side.ids, side.pad or 0)}
    uneven = len(set(side.ids.lengths.tolist())) > 1
    mask = side.attention
    if uneven:
        notes.append("rows differ in length and were padded on the right")
        mask = mask or Ragged(np.ones(len(side.ids.flat), np.int8), side.ids.offsets)
    if mask is not None:
        arrays["attention_mask"] = _rectangle(mask, 0)
    if side.positions is not None:
        arrays["position_ids"] = _rectangle(side.positions, 0)
    labels = side.labels
    if labels is None and side.loss_mask is not None:
        labels = Ragged(np.where(side.loss_mask.flat != 0, side.ids.flat, IGNORED_LABEL), side.ids.offsets)
        notes.append("the labels are the token ids where the loss mask is 1")
    if labels is not None:
        arrays["labels"] = _rectangle(labels, IGNORED_LABEL)
        if side.shifted_by_design:
            arrays["labels"] = np.insert(arrays["labels"][:, :-1], 0, IGNORED_LABEL, axis=1)
            notes.append(
                "the labels are already the next tokens; they were shifted back, because the model shifts them itself"
            )
    return arrays


def _rectangle(rows: Ragged, fill: int) -> Array:
    """Return rows as an array, the first ones only, filled on the right."""
    count = min(PROBE_BATCH_MAX_ROWS, rows.rows)
    lengths = rows.lengths[:count]
    array = np.full((count, int(lengths.max(initial=0))), fill, np.int64)
    array[np.arange(array.shape[1]) < lengths[:, None]] = rows.flat[: rows.offsets[count]]
    return array


MAX_POINTS = 200
PROBE_MAX_ROWS = 16
MAX_OUTPUT = 3000
MAX_ERROR = 1000
"""Characters of an error that are passed on to explain_error: the end of a traceback says what failed."""
MAX_HYPOTHESES_GIVEN = 3
LONGER_TIME_LIMIT_RATIO = 4.0
"""Times the time limit that a probe is suggested to take which ran out of it."""
MAX_SUGGESTED_SECONDS = 3600.0
"""The most seconds that the tool takes."""
EXTRA = "other seeds"
"""The worker's last phase, which answers a separate question: if it fails, the rest of the answer stands."""


async def probe(
    batch: str | Path | None = None,
    model: str | Path | None = None,
    entry: str | None = None,
    python: str | Path | None = None,
    device: str = "auto",
    *,
    memory_gb: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    read: Callable[[str], Awaitable[ProbeBatch]] | None = None,
    **settings: object,
) -> ProbeResult:
    """Do what `probe_overfit` does, inside an event loop; cancelling it ends the worker at once.

    `read` reads the batch, where that is not to be done in this process.
    """
    _check_combination(batch, model, entry)
    found = await (read or _read_in_thread)(str(batch)) if batch is not None else None
    job = _job(found, model, entry, {"device": device, "memory_bytes": memory_limit(memory_gb), **settings})
    raw = await run_probe(job, find_python(python), on_progress)
    raw.notes[:0] = found.notes if found is not None else []
    answer = await asyncio.to_thread(interpret, raw)
    given = {"batch": batch, "model": model, "entry": entry, "python": python}
    again = _with_more_time(raw, answer, given, {**settings, "time_limit": job.time_limit})
    if again is None:
        return answer
    answer = answer.model_copy(update={"next_step": again})
    return answer.model_copy(update={"at_a_glance": glance_at_probe(answer)})


async def _read_in_thread(batch: str) -> ProbeBatch:
    """Read in a thread, because a large file must not block the event loop."""
    return await asyncio.to_thread(read_probe_batch, batch)


def probe_overfit(
    batch: str | Path | None = None,
    model: str | Path | None = None,
    entry: str | None = None,
    python: str | Path | None = None,
    device: str = "auto",
    *,
    memory_gb: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: object,
) -> ProbeResult:
    """Try to memorise one batch and say what stands in the way.

    Args:
        batch: A batch or data set in any format of `inspect_batch`; its first rows are taken; a tiny model of
            our own is trained on it, or the one that `model` describes.
        model: A model's `config.json` or its folder: the model is built from it, scaled down.
        entry: `FILE.py:function` or `package.module:function`: a function without arguments that returns an object or
            a dict with `model`, `batch` and `loss` (or `loss_fn`), and optionally `optimizer` and `train_step`. It runs
            the code that it names, and again for other seeds where that is cheap.
        python: The interpreter, or the folder of the environment, that has torch; this one by default.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.
        memory_gb: Memory limit in GiB; by default four fifths of the machine's.
        on_progress: Called with the progress of each step.
        settings: `steps`, `learning_rate`, `optimizer`, `dtype`, `clip`, `time_limit` (seconds, from when torch
            is imported), `seed`, `threads`.

    Returns:
        The verdict with its evidence; a failed probe is an answer too.

    Raises:
        InputError: an argument cannot be used.
    """
    return asyncio.run(
        probe(batch, model, entry, python, device, memory_gb=memory_gb, on_progress=on_progress, read=None, **settings)
    )


def _check_combination(batch: object, model: object, entry: str | None) -> None:
    if (entry is None) == (batch is None):
        raise InputError("give either a batch (alone or with a model's config.json) or an entry, FILE.py:function")
    if entry is not None and model is not None:
        raise InputError("an entry brings its own model; leave out either the entry or the model")
    if entry is not None and ":" not in entry:
        raise InputError(f"{shorten(entry, 120)!r} names no function; write FILE.py:function")
    if entry is not None:
        check_entry(entry)


def _job(batch: ProbeBatch | None, model: str | Path | None, entry: str | None, settings: dict[str, object]) -> Job:
    given: dict[str, object] = {
        "batch": batch.columns if batch is not None else None,
        "config": read_config(model) if model is not None else None,
        "entry": entry,
    }
    try:
        return Job.model_validate(given | settings)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = ".".join(map(str, problem["loc"]))
        raise InputError(f"{name}: {problem['msg'].lower()}") from None


def interpret(raw: RawProbe) -> ProbeResult:
    """Return what the measurements of a probe mean."""
    measured = raw.measured
    judged = without_noise(measured)
    answers, problems = answer_all("probe", judged)
    findings = [given.finding() for given in answers]
    if (
        learns(measured)
        and not {finding.symptom for finding in findings if finding.state is State.PRESENT} - OF_THE_GOAL
    ):
        answers, problems = answer_all("probe", judged.model_copy(update={"memorised": True}))
        findings = [given.finding() for given in answers]
    failure = raw.failure
    if failure is not None and raw.stage == EXTRA:
        problems.append(f"other seeds were not tried to the end: {failure.message}")
        failure = None
    verdict = decide(measured, failure, findings)
    hypotheses = _hypotheses(measured, findings, verdict.word) if verdict.word != "failed" else []
    next_steps = order_next_steps(hypotheses) if verdict.word != "failed" else []
    losses = measured.curve.losses if measured.curve else []
    answer = ProbeResult(
        verdict=verdict.word,
        summary=verdict.why,
        causes=[RankedCause(cause=hypothesis.cause, probability=hypothesis.probability) for hypothesis in hypotheses],
        initial_loss=measured.initial_loss,
        expected_initial_loss=measured.reference.uniform if measured.reference else None,
        unigram_loss=measured.reference.unigram if measured.reference else None,
        least_loss=measured.reference.least if measured.reference else None,
        goal=measured.goal if measured.goal is not None and math.isfinite(measured.goal) else None,
        final_loss=losses[-1] if losses else None,
        accuracy=_accuracy(measured),
        steps=len(losses),
        learning_rate=_rate(measured),
        device=measured.device,
        seconds=raw.seconds,
        stage=raw.stage,
        findings=findings,
        hypotheses=hypotheses[:MAX_HYPOTHESES_GIVEN],
        next_steps=next_steps,
        next_step=_next_call(verdict, next_steps, hypotheses, raw.output),
        first_nonfinite=_bad_operation(measured.first_nonfinite),
        resisting_rows=_resisting(measured, memorised=verdict.word == "memorised"),
        curve=_curve(losses),
        output=_last_lines(raw.output) if verdict.word == "failed" else "",
        notes=[*raw.notes, *_random_loss(measured), *problems],
    )
    return answer.model_copy(update={"at_a_glance": glance_at_probe(answer)})


def _next_call(verdict: Decision, steps: list[NextStep], hypotheses: list[Hypothesis], output: str) -> Call:
    if verdict.word != "failed":
        return after_ranking(steps, hypotheses)
    text = _last_lines(output).strip() or verdict.why
    return Call(tool="explain_error", arguments={"text": text[-MAX_ERROR:]}, why="what stopped the probe")


def _with_more_time(
    raw: RawProbe, answer: ProbeResult, given: dict[str, str | Path | None], settings: dict[str, object]
) -> Call | None:
    """Return the same call with more time, if time was all that was missing."""
    limit = min(LONGER_TIME_LIMIT_RATIO * float(str(settings["time_limit"])), MAX_SUGGESTED_SECONDS)
    paths = {name: str(value) for name, value in given.items() if value is not None}
    stopped = answer.verdict == "failed" and raw.failure is not None and raw.failure.kind == "time"
    present = {finding.symptom for finding in answer.findings if finding.state is State.PRESENT}
    lacking = was_cut_short(raw.measured) or (lacks_time(raw.measured) and not present - OF_THE_GOAL)
    short = stopped or (answer.verdict == "too_slow" and lacking)
    if not short or not all(map(is_sendable, paths.values())):
        return None
    usual = Job().model_dump(include={"steps", "dtype"})
    changed = {name: settings[name] for name in usual if settings.get(name, usual[name]) != usual[name]}
    return Call.model_validate(
        {
            "tool": "probe_overfit",
            "arguments": {**paths, **changed, "time_limit": limit},
            "why": "time was up before the probe was done: the same with more time",
        }
    )


def _random_loss(measured: Measured) -> list[str]:
    """Return the observation that two calls with nothing changed gave different losses."""
    if not is_random(measured) or measured.repeated_losses is None:
        return []
    first, second = map(figure, measured.repeated_losses[:2])
    return [
        f"two calls with nothing changed, in evaluation mode, gave losses of {first} and {second}: "
        "each call draws something anew, such as noise, dropout, labels or the weights of a layer"
    ]


OF_A_STEP = frozenset(
    {"lr_too_high", "lr_too_low", "lr_schedule_bug", "missing_zero_grad", "clip_too_tight", "weight_decay_too_high"}
)
"""Causes that lie in an optimizer and its calls: the probe's own, at a learning rate that it searched, has none."""


def _hypotheses(measured: Measured, findings: list[Finding], verdict: Verdict) -> list[Hypothesis]:
    """Rank the causes that a probe can tell apart; it says nothing about others."""
    judged = {*probe_effects(), *NO_FAULTS}
    if measured.watched is None and measured.rates_tried is not None:
        judged -= OF_A_STEP
    if verdict != "memorised":
        judged.discard(SOUND)  # what was seen contradicts it, or time was up before it could be seen
    compared = not (is_random(measured) or takes_turns(measured) or lacks_time(measured))
    if verdict != "memorised" and not measured.memorised and not compared:
        shown = {finding.symptom for finding in findings if finding.state is State.PRESENT}
        judged &= {cause for cause, effects in probe_effects().items() if shown & effects.keys()} | {"unknown"}
    kind = "unknown" if measured.targets == "tokens" else "supervised"
    ranked = judge_causes(findings, kind, [], "", only=judged)
    # The probe has been made: do not suggest it again.
    return [
        hypothesis.model_copy(
            update={"next_steps": [step for step in hypothesis.next_steps if "probe_overfit" not in (step.call or "")]}
        )
        for hypothesis in ranked
    ]


def _accuracy(measured: Measured) -> float | None:
    if measured.outcome is None:
        return None
    return max(
        (
            value
            for value in (measured.outcome.train.accuracy, measured.outcome.evaluation.accuracy)
            if value is not None
        ),
        default=None,
    )


def _rate(measured: Measured) -> float | None:
    if measured.curve is not None and measured.curve.learning_rate is not None:
        return measured.curve.learning_rate
    rates = measured.watched.learning_rates if measured.watched else []
    return rates[0] if len(rates) == 1 else None


def _curve(losses: list[float]) -> list[CurvePoint]:
    """Return the losses, thinned evenly, with the first and the last."""
    count = len(losses)
    chosen = (
        range(count)
        if count <= MAX_POINTS
        else sorted({round(i * (count - 1) / (MAX_POINTS - 1)) for i in range(MAX_POINTS)})
    )
    return [CurvePoint(step=step, loss=losses[step]) for step in chosen]


def _bad_operation(operation: Operation | None) -> BadOperation | None:
    if operation is None:
        return None
    before = [
        f"{frame.module or 'outside of modules'}: {frame.op}, largest "
        f"{'nan' if frame.largest_out is None else figure(frame.largest_out)}"
        for frame in operation.frames
    ]
    direction = "backward" if operation.direction == "backward" else "forward"
    return BadOperation(
        direction=direction,
        module=operation.module,
        operation=operation.op,
        where=operation.where,
        dtype=operation.dtype,
        before=before,
    )


ROW_IS_RIGHT = 0.99
"""Share of a row's labels that are right where it is learnt. Chosen: one of a hundred may be a guess."""
ROW_OF_MEMORISED_IS_RIGHT = 0.5
"""The same in a batch that is memorised, whose loss came down to its goal with a few labels to learn. Chosen."""


def _resisting(measured: Measured, *, memorised: bool) -> list[ResistingRow]:
    """Return the rows whose labels are not right at the end, and why where that is known.

    Of a batch that is memorised as a whole these are the rows whose labels contradict others or are mostly wrong.
    """
    if measured.outcome is None or measured.reference is None:
        return []
    contradicting = set(measured.reference.contradicting_rows)
    rows = [
        ResistingRow(
            row=row, accuracy=share, why="equal input, different label elsewhere" if row in contradicting else ""
        )
        for row, share in enumerate(measured.outcome.train.rows)
        if share < (ROW_OF_MEMORISED_IS_RIGHT if memorised and row not in contradicting else ROW_IS_RIGHT)
    ]
    masked = [
        ResistingRow(row=row, accuracy=math.nan, why="no label is trained on")
        for row in measured.reference.rows_without_labels
    ]
    return [*rows, *masked][:PROBE_MAX_ROWS]


def _last_lines(text: str) -> str:
    """Return the last lines of an output, `MAX_OUTPUT` characters at most."""
    if len(text) <= MAX_OUTPUT:
        return text
    return "…" + text[-MAX_OUTPUT:].partition("\n")[2]


def is_sound(result: ProbeResult) -> bool:
    """Return whether nothing was found: the batch is memorised and `healthy` leads."""
    return result.verdict == "memorised" and bool(result.causes) and result.causes[0].cause == SOUND
