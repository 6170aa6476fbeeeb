"""The verb `probe_overfit`: can this batch be memorised here, and if not, why not?"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import ValidationError

from mldebug_mcp.diagnose.hypotheses import judge_causes
from mldebug_mcp.diagnose.next_call import after_ranking, is_sendable
from mldebug_mcp.diagnose.next_steps import order_next_steps
from mldebug_mcp.diagnose.probe_batch import ProbeBatch, read_probe_batch
from mldebug_mcp.diagnose.verdict import Decision, decide
from mldebug_mcp.errors import InputError
from mldebug_mcp.models import Call, Finding, Hypothesis, NextStep
from mldebug_mcp.models.base import NO_FAULTS, SOUND
from mldebug_mcp.models.probe import BadOperation, CurvePoint, ProbeResult, RankedCause, ResistingRow
from mldebug_mcp.probe import Job, Measured, Progress, run_probe
from mldebug_mcp.probe.host import RawProbe
from mldebug_mcp.probe.job import check_entry, find_python, memory_limit, read_config
from mldebug_mcp.probe.measured import Operation
from mldebug_mcp.symptoms.probe import examine_probe, probe_effects
from mldebug_mcp.symptoms.probe.common import was_cut_short
from mldebug_mcp.text import figure, shorten

MAX_POINTS = 200
MAX_ROWS = 16
MAX_OUTPUT = 3000
MAX_ERROR = 1000
"""Characters of an error that are passed on to explain_error: the end of a traceback says what failed."""
LEADING = 3
MORE, LONGEST = 4.0, 3600.0
"""Times the time limit that a probe is suggested to take which ran out of it, and the most that the tool takes."""
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
    return answer if again is None else answer.model_copy(update={"next_step": again})


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
        batch: A batch or data set in any format of `inspect_batch`, of which the first rows are taken; a tiny model of
            our own is trained on it, or the one that `model` describes.
        model: A model's `config.json` or its folder: the model is built from it, scaled down.
        entry: `FILE.py:function` or `package.module:function`, a function without arguments that returns an object with
            `model`, `batch` and `loss`, and optionally `optimizer` and `train_step`. It runs the code that it names,
            and again for other seeds where that is cheap.
        python: The interpreter, or the folder of the environment, that has torch; this one by default.
        device: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.
        memory_gb: Memory limit in GiB; by default four fifths of the machine's.
        on_progress: Called with the progress of each step.
        settings: `steps`, `learning_rate`, `optimizer`, `dtype`, `clip`, `time_limit` (seconds), `seed`, `threads`.

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
    seen = raw.measured
    findings, problems = examine_probe(seen)
    failure = raw.failure
    if failure is not None and raw.stage == EXTRA:
        problems.append(f"other seeds were not tried to the end: {failure.message}")
        failure = None
    verdict = decide(seen, failure, findings)
    hypotheses = _hypotheses(seen, findings) if verdict.word != "failed" else []
    next_steps = order_next_steps(hypotheses) if verdict.word != "failed" else []
    losses = seen.curve.losses if seen.curve else []
    return ProbeResult(
        verdict=verdict.word,
        summary=verdict.why,
        causes=[RankedCause(cause=one.cause, probability=one.probability) for one in hypotheses],
        initial_loss=seen.initial_loss,
        expected_initial_loss=seen.reference.uniform if seen.reference else None,
        unigram_loss=seen.reference.unigram if seen.reference else None,
        least_loss=seen.reference.least if seen.reference else None,
        goal=seen.goal if seen.goal is not None and math.isfinite(seen.goal) else None,
        final_loss=losses[-1] if losses else None,
        accuracy=_accuracy(seen),
        steps=len(losses),
        learning_rate=_rate(seen),
        device=seen.device,
        seconds=raw.seconds,
        stage=raw.stage,
        findings=findings,
        hypotheses=hypotheses[:LEADING],
        next_steps=next_steps,
        next_step=_next_call(verdict, next_steps, hypotheses, raw.output),
        first_nonfinite=_bad_operation(seen.first_nonfinite),
        resisting_rows=_resisting(seen),
        curve=_curve(losses),
        output=_last_lines(raw.output) if verdict.word == "failed" else "",
        notes=[*raw.notes, *problems],
    )


def _next_call(verdict: Decision, steps: list[NextStep], hypotheses: list[Hypothesis], output: str) -> Call:
    if verdict.word != "failed":
        return after_ranking(steps, hypotheses)
    text = _last_lines(output).strip() or verdict.why
    return Call(tool="explain_error", arguments={"text": text[-MAX_ERROR:]}, why="what stopped the probe")


def _with_more_time(
    raw: RawProbe, answer: ProbeResult, given: dict[str, str | Path | None], settings: dict[str, object]
) -> Call | None:
    """Return the same call with more time, if time was all that was missing."""
    limit = min(MORE * float(str(settings["time_limit"])), LONGEST)
    paths = {name: str(value) for name, value in given.items() if value is not None}
    stopped = answer.verdict == "failed" and raw.failure is not None and raw.failure.kind == "time"
    short = stopped or (answer.verdict == "too_slow" and was_cut_short(raw.measured))
    if not short or not all(map(is_sendable, paths.values())):
        return None
    usual = Job().model_dump(include={"steps", "dtype"})
    said = {name: settings[name] for name in usual if settings.get(name, usual[name]) != usual[name]}
    return Call.model_validate(
        {
            "tool": "probe_overfit",
            "arguments": {**paths, **said, "time_limit": limit},
            "why": "time was up before the probe was done: the same with more time",
        }
    )


def _hypotheses(seen: Measured, findings: list[Finding]) -> list[Hypothesis]:
    """Rank the causes that a probe can tell apart; it says nothing about others."""
    judged = {*probe_effects(), *NO_FAULTS}
    kind = "unknown" if seen.targets == "tokens" else "supervised"
    ranked = judge_causes(findings, kind, [], "", only=judged)
    # The probe has been made: do not suggest it again.
    return [
        one.model_copy(
            update={"next_steps": [step for step in one.next_steps if "probe_overfit" not in (step.call or "")]}
        )
        for one in ranked
    ]


def _accuracy(seen: Measured) -> float | None:
    if seen.outcome is None:
        return None
    return max(
        (one for one in (seen.outcome.train.accuracy, seen.outcome.evaluation.accuracy) if one is not None),
        default=None,
    )


def _rate(seen: Measured) -> float | None:
    if seen.curve is not None and seen.curve.learning_rate is not None:
        return seen.curve.learning_rate
    rates = seen.watched.learning_rates if seen.watched else []
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


def _bad_operation(one: Operation | None) -> BadOperation | None:
    if one is None:
        return None
    before = [
        f"{frame.module or 'outside of modules'}: {frame.op}, largest {_size(frame.largest_out)}"
        for frame in one.frames
    ]
    direction = "backward" if one.direction == "backward" else "forward"
    return BadOperation(
        direction=direction, module=one.module, operation=one.op, where=one.where, dtype=one.dtype, before=before
    )


def _size(largest: float | None) -> str:
    return "nan" if largest is None else figure(largest)


def _resisting(seen: Measured) -> list[ResistingRow]:
    """Return the rows whose labels are not all right at the end, and why where that is known."""
    if seen.outcome is None or seen.reference is None:
        return []
    contradicting = set(seen.reference.contradicting_rows)
    rows = [
        ResistingRow(
            row=row, accuracy=share, why="equal input, different label elsewhere" if row in contradicting else ""
        )
        for row, share in enumerate(seen.outcome.train.rows)
        if share < 0.99
    ]
    masked = [
        ResistingRow(row=row, accuracy=math.nan, why="no label is trained on")
        for row in seen.reference.rows_without_labels
    ]
    return [*rows, *masked][:MAX_ROWS]


def _last_lines(text: str) -> str:
    """Return the last lines of an output, `MAX_OUTPUT` characters at most."""
    if len(text) <= MAX_OUTPUT:
        return text
    return "…" + text[-MAX_OUTPUT:].partition("\n")[2]


def is_sound(result: ProbeResult) -> bool:
    """Return whether nothing was found: the batch is memorised and `healthy` leads."""
    return result.verdict == "memorised" and bool(result.causes) and result.causes[0].cause == SOUND
