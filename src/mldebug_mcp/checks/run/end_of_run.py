"""Where and why does the log end? It may be an error, the plan, or neither."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    answers_of,
    by_outcome,
    known,
    outcome_of,
    question,
    symptom,
)
from mldebug_mcp.checks.curve import edge_width
from mldebug_mcp.checks.evaluation import evaluation_losses
from mldebug_mcp.checks.progress import has_finished
from mldebug_mcp.checks.run.resources import RATES, step_times
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, ratio, shorten
from mldebug_mcp.logs.kinds import Plan, plan_of
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Message, Run

if TYPE_CHECKING:
    from mldebug_mcp.knowledge.errors import PrintedAllocation

# What symptoms of error messages share: finding a kind of message among the lines that read like errors.


OF_MEMORY = regex(
    r"out of memory|OutOfMemoryError|ResourceExhaustedError|(?:Xla|Jax)RuntimeError: RESOURCE_EXHAUSTED|"
    r"RESOURCE_EXHAUSTED: .{0,160}(?:memory|allocat|hbm)|\bMemoryError\b|"
    r"DefaultCPUAllocator: (?:can't|not enough)|oom[-_ ]?kill",
    re.IGNORECASE,
)
"""An allocation that failed for lack of memory."""
OF_DEVICE = regex(
    r"\bXid\b(?! \([^)]{1,60}\): (?:13|31|43|45|68|69)\b)|ECC error|ECCUncorrectable|fallen off the bus|"
    r"NVLink.*(?:error|fault)|hardware error|unspecified launch failure|GPU is lost|ibv_\w+.*(?:error|fail)|row remapp|"
    r"(?:CUDA|HIP) error: (?:unknown error|hardware stack error)",
    re.IGNORECASE,
)
"""A fault that a device, its memory or a link reported; not the Xids of the application's own work."""
OF_COLLECTIVE = regex(
    r"Watchdog caught collective|\bNCCL\b.*(?:timeout|timed out|abort)|collective operation timeout|"
    r"Gloo.*(?:timeout|timed out)|DistBackendError|DistStoreError.*tim(?:eout|ed out)",
    re.IGNORECASE,
)
"""Ranks that waited for each other until a timeout."""
OF_LABEL = regex(
    r"Assertion `?(?:t >= 0 && t < n_classes|cur_target >= 0 && cur_target < n_classes)|"
    r"\bTarget -?\d+ is out of bounds|Label class -?\d+ exceeds nc=\d+|"
    r"Received a label value of -?\d+ which is outside|"
    r"Class values must be smaller than num_classes|Invalid classes inferred from unique values|"
    r"[Ll]abel must be in \[0, ?(?:\d+|num_class)\)",
)
"""A label outside of the classes that there are outputs for."""
EXCEPTION = regex(
    r"(?:Error|Exception)\b\s*(?::|$|File\b)|\b(?:Segmentation|Bus) ?(?:fault|error)|\[(?:WinError|Errno) |"
    r"^(?:\w{1,60}\.){1,8}_?(?:exc|exceptions?)\.\w|^Error executing job\b|"
    r"\bterminate called after|: terminating due to|\(core dumped\)",
    re.IGNORECASE,
)
"""Any exception or error that ends a program."""
ANY = regex("")


def matching(run: Run, pattern: re.Pattern[str]) -> list[Message]:
    """Return the error lines that match.

    Raises:
        CannotTell: the log is in a format that holds metrics only, and no messages.
    """
    if not run.messages and "text" not in run.formats:
        raise CannotTell("the log holds metrics only: error messages would stand in the program's output")
    return [message for message in run.messages if pattern.search(message.text)]


def quoted(message: Message) -> str:
    """Return a message as a sentence shows it: its line, and its text as data in quotes."""
    return f'{message.place}: "{shorten(message.text, 160)}"'


# What the message of a failed allocation counts: asked for, allocated, and reserved without an allocation.


GIB = 2.0**30
"""Bytes. Source: IEC 80000-13."""


def failed_allocation(run: Run) -> tuple[Message, PrintedAllocation]:
    """Return the allocation that ended a run with its message, the first that says what was unused.

    Raises CannotTell if no message names its size.
    """
    from mldebug_mcp.knowledge.errors import printed_allocation

    failed = [(message, counted) for message in run.fatal if (counted := printed_allocation(message.text))]
    if not failed:
        raise CannotTell("no message of a failed allocation that ended the run and names its size")
    return next((found for found in failed if found[1].unused), failed[0])


# Did an error end the run, and of what kind is it?


def _is_known_error(message: Message) -> bool:
    from mldebug_mcp.knowledge.errors import match  # few logs have an error

    of_a_kind = any(pattern.search(message.text) for pattern in (OF_MEMORY, OF_DEVICE, OF_COLLECTIVE, OF_LABEL))
    return of_a_kind or any(not row.interpreter for row in match(message.text, code=message.code))


def _is_echo(message: Message) -> bool:
    from mldebug_mcp.knowledge.errors import Role, match

    rows = match(message.text, code=message.code)
    return OF_COLLECTIVE.search(message.text) is not None or (bool(rows) and rows[0].role is Role.ECHO)


def error_that_ended(run: Run) -> tuple[Message | None, int]:
    """Return the error that ended a run, and how many known ones did; None where no error did.

    Of the known ones it is the first that does not echo another rank. Else it is the last exception, of several ranks
    the last before the first echo.
    """
    errors = [(error, _is_known_error(error)) for error in run.fatal]
    if not errors:
        return None, 0
    from mldebug_mcp.logs.ranks import is_echo

    known = [error for error, is_known in errors if is_known]
    first = next((error for error in known if not _is_echo(error)), None)
    if first is not None:
        return first, len(known)
    before = takewhile(lambda pair: not pair[1], errors)
    raised = [error for error, _ in before if EXCEPTION.search(error.text)]
    if known and not (raised and (run.ranks is not None or raised[-1].code) and not is_echo(raised[-1].text)):
        return known[0], len(known)
    return (raised[-1] if raised else None), 0


def error_message(run: Run, shown: Message, kind: str, known: int) -> Evidence:
    """A known error message ended the run.

    Not this when: a line only reads like an error (a remark); training went on after it, or had ended before; it is
    a warning or a retry; the log is in a format that holds no messages (then it is unknown).
    """
    more = f" ({len(run.messages)} such lines in all)" if len(run.messages) > 1 else ""
    went_on = "" if known or shown in run.fatal else "; training went on after it"
    return Evidence(
        f"{kind} stands in {quoted(shown)}{more}{went_on}",
        values={"line": shown.line, "known": known, "messages": len(run.messages)},
        present=bool(known),
    )


def _of_kind(run: Run, pattern: re.Pattern[str], what: str) -> Evidence | None:
    found = next((message for message in run.fatal if pattern.search(message.text)), None)
    return None if found is None else Evidence(f"{what} in {quoted(found)}", values={"line": found.line})


def out_of_memory_error(run: Run) -> Evidence | None:
    """The error that ended the run is an allocation that failed for lack of memory.

    Not this when: training went on after it, or another error ended the run.
    """
    return _of_kind(run, OF_MEMORY, "an allocation failed")


def device_error(run: Run) -> Evidence | None:
    """The error that ended the run is a fault that a device, its memory or a link reported.

    Not this when: it is a device-side assertion, an illegal address or an Xid of the application's own work; those (13,
    31, 43, 45, 68, 69 in NVIDIA's catalogue) are mostly errors of the program.
    """
    return _of_kind(run, OF_DEVICE, "a device or link reported a fault")


def collective_timeout(run: Run) -> Evidence | None:
    """The error that ended the run says that ranks waited for each other until a timeout.

    Not this when: a rank failed before with an error of its own: then the timeout is its echo, and the line of the
    first error is given.
    """
    evidence, first = _of_kind(run, OF_COLLECTIVE, "a collective operation timed out or was aborted"), run.messages[0]
    if evidence is None:
        return None
    is_of_another = run.ranks is not None and not OF_COLLECTIVE.search(first.text)
    before = f"; the first error is {quoted(first)}" if is_of_another or first.line < evidence.values["line"] else ""
    return Evidence(evidence.summary + before, values={**evidence.values, "first_error_line": first.line})


def label_out_of_range_error(run: Run) -> Evidence | None:
    """The error that ended the run says that a label is outside the classes that the model has outputs for.

    Not this when: an index is too large somewhere else, as a token id in an embedding is; the message of a device
    does not say what was checked.
    """
    return _of_kind(run, OF_LABEL, "a label is outside the classes")


def memory_reserved_unused(run: Run) -> Evidence | None:
    """The message of a failed allocation counts more memory unallocated, reserved or free, than was asked for.

    Not this when: it is smaller than the request, or hardly a part of what is reserved: then memory is really full.
    """
    message, failed = failed_allocation(run)
    if failed.unused is None:
        raise CannotTell("the message of the failed allocation does not say how much is reserved but unallocated")
    if not failed.in_pieces:
        return None
    unused = max(failed.unused, failed.free)
    return Evidence(
        f"an allocation of {figure(failed.asked / GIB)} GiB failed while {figure(unused / GIB)} GiB were "
        f"reserved but unallocated, or free, in {quoted(message)}",
        values={"requested_bytes": failed.asked, "unused_bytes": unused, "line": message.line},
    )


def ends_in_error(run: Run, last: Message) -> Evidence:
    """The last thing in the log is an exception or error that no known message explains.

    Not this when: training went on after it; a known message says more; the user interrupted the run.
    """
    values = {"line": last.line, "records_after": run.records - last.records}
    return Evidence(f"the log ends in an error, in {quoted(last)}", steps=(run.last_step,), values=values)


_KINDS = (out_of_memory_error, memory_reserved_unused, device_error, collective_timeout, label_out_of_range_error)


@question(
    outcome_of(
        error_message,
        0.006,
        "axolotl_stability",
        "nccl_troubleshooting",
        follows=("out_of_memory_error", "collective_timeout", "device_error"),
    ),
    outcome_of(out_of_memory_error, 0.001, "axolotl_stability", of="error_message"),
    outcome_of(memory_reserved_unused, 0.001, "bekman_mle", "pytorch_docs_notes", of="error_message"),
    outcome_of(device_error, 0.001, "llama3", "mai_thinking_1", of="error_message"),
    outcome_of(collective_timeout, 0.001, "axolotl_faq", "osmo_nccl", of="error_message"),
    outcome_of(
        label_out_of_range_error, 0.0005, "detectron2_issue_2365", "supergradients_issue_1307", of="error_message"
    ),
    outcome_of(ends_in_error, 0.01),
    whole=True,
)
def failure(run: Run) -> Answers:
    """Look for a known message among the errors that ended the run, then for any exception."""
    matching(run, ANY)
    ended, known = error_that_ended(run)
    if ended is not None and known:
        message = error_message(run, ended, "a known error message", known)
        return {"error_message": message, **answers_of(by_outcome(_KINDS, run))}
    if ended is not None:
        return {"ends_in_error": ends_in_error(run, ended)}
    if not run.messages:
        return {}
    return {"error_message": error_message(run, run.messages[0], "a line that reads like an error", 0)}


# Where the log ends, against its plan and its clock.


_HOW_IT_ENDS = {"error": "it ends in an error", "interrupted": "it was interrupted", "cut": "its last line is cut off"}
_FAILURES = ("error_message", "out_of_memory_error", "collective_timeout", "device_error")
FINAL_RECORDS = 6
"""Records that are the end of a log. Chosen: what hangs does so at once, or within a few steps."""
MIN_RECORDS_BEFORE_END = 8
"""Records before these. Chosen: among fewer there may be no evaluation and no checkpoint."""
MIN_USUAL_STEP_RATIO = 10.0
"""Times the usual step. Chosen: evaluations and checkpoints came before as well."""
MIN_SLOWEST_STEP_RATIO = 5.0
"""Times the slowest step before. Chosen: evaluations and checkpoints came before as well."""


def last_steps_slow(run: Run) -> Evidence | None:
    """Among the last steps before the log ends early are some that take far longer than any before.

    What hangs often stutters first. Not this when: steps as slow came before, as for an evaluation.
    """
    if not any(run.with_role(Quantity.STEP_TIME, *RATES, phase="train", parts=True)):
        raise CannotTell("not logged: how long a step takes")
    times = step_times(run, MIN_RECORDS_BEFORE_END + FINAL_RECORDS)
    before, last = times.value[:-FINAL_RECORDS], times.value[-FINAL_RECORDS:]
    slowest, usual = float(last.max()), median(before)
    if slowest < max(MIN_USUAL_STEP_RATIO * usual, MIN_SLOWEST_STEP_RATIO * float(before.max())):
        return None
    step = float(times.step[-FINAL_RECORDS:][int(np.argmax(last > MIN_SLOWEST_STEP_RATIO * float(before.max())))])
    return Evidence(
        f"from {run.place(step)} on, just before the log ends, steps take up to "
        f"{ratio(slowest / usual)} times as long as before",
        steps=(step,),
        values={"factor": slowest / usual},
    )


def log_falls_silent(run: Run) -> Evidence:
    """Lines of the log, or a recorder's watchdog, go on with the time, but no record comes for far longer than before.

    Not this when: the plan was reached, or the run says that it finished; a fatal error is at the end; the
    silence is less than five minutes or ten times the usual distance of records.
    """
    plan = plan_of(run)
    planned = f", at {plan.unit} {figure(plan.reached)} of {figure(plan.planned)}" if plan is not None else ""
    summary = f"the log falls silent after {run.place(run.last_step)}{planned}: {run.ending.text}"
    return Evidence(summary, steps=(run.last_step,), values=_values(plan) if plan is not None else {})


def log_stops(run: Run) -> Evidence | None:
    """The log ends before the number of steps or epochs that was planned.

    A run that is still going looks the same. Not this when: the next record would lie beyond the plan; the run says
    that it finished, or was set to stop early (remarks); the log is the state saved with a checkpoint.
    """
    plan = known(plan_of(run), "the planned number of steps or epochs is not known, or is counted in another unit")
    if plan.is_done:
        return None
    if "hf_trainer_state" in run.formats and not has_finished(run):
        raise CannotTell(
            f"the state ends at {plan.unit} {figure(plan.reached)} of {figure(plan.planned)}, but it is written with "
            "each checkpoint: where the run ended is not seen"
        )
    harmless = _harmless(run)
    text = f": {run.ending.text}" if run.ending.text else ""
    last = f"; {_HOW_IT_ENDS[run.ending.how]}{text}" if run.ending.how in _HOW_IT_ENDS else ""
    return Evidence(
        f"the log stops at {plan.reached / plan.planned:.0%} of the plan, {plan.unit} {figure(plan.reached)} of "
        f"{figure(plan.planned)}{harmless or last}",
        steps=(run.last_step,),
        values=_values(plan),
        present=not harmless,
    )


def _values(plan: Plan) -> dict[str, float]:
    return {"reached": plan.reached, "planned": plan.planned, "share": plan.reached / plan.planned}


def _harmless(run: Run) -> str:
    if has_finished(run):
        return f", and it says that it finished: {run.ending.text}"
    if any("early_stop" in name.lower() or name.lower() == "patience" for name in run.config):
        return "; the configuration asks for early stopping"
    return ""


@question(
    # Half of the healthy runs that people ask about are still going: the trained ones all came to their end.
    outcome_of(log_stops, 0.5, as_chosen=True, follows=_FAILURES),
    outcome_of(last_steps_slow, 0.003, of="log_stops", as_chosen=True),
    outcome_of(log_falls_silent, 0.005, "bloom_176b_chronicles", as_chosen=True, follows=_FAILURES),
    whole=True,
)
def end_of_log(run: Run) -> Answers:
    """Say whether the log falls silent, or ends before its plan."""
    if run.ending.how == "silence":
        return {"log_falls_silent": log_falls_silent(run)}
    stops = answers_of(by_outcome((log_stops,), run))
    slow = isinstance(stops.get("log_stops"), Evidence)
    return {**stops, **answers_of(by_outcome((last_steps_slow,), run))} if slow else stops


# Does the run end as planned while its evaluation still gets better?


MIN_EVALUATIONS_OF_FALL = 8
"""Evaluations. Chosen: fewer do not tell a straight fall from one that flattens."""
RUN_SHARE_BEFORE_END = 0.75
"""Of the run. Chosen: what is after it would be a quarter of a straight fall."""
MIN_SHARE_OF_FALL_AT_END = 0.15
"""Of the whole fall that comes in the last quarter. Chosen: a fall as the inverse root of the steps has 0.07."""
MIN_TOTAL_FALL_SHARE = 0.1
"""Share of its start by which the loss falls at all. Chosen: of less, noise makes up too much."""


@symptom(
    any_of=("eval_loss", "eval_*_loss", "val_loss"),
    not_for=("pretraining", "preference", "grpo", "ppo", "rl", "boosting"),
    whole=True,
    background=0.05,
    as_chosen=True,
)
def ends_while_improving(run: Run) -> Evidence | None:
    """The plan is done, and a seventh or more of all that the evaluation loss has fallen came in its last quarter.

    Not this when: the last evaluation is not the best; there are fewer than eight; the loss falls by less than a tenth;
    it is a pretraining, which is stopped by its budget.
    """
    plan = plan_of(run)
    if plan is None or not plan.is_done:
        raise CannotTell("the plan is not known, or not done yet")
    loss = evaluation_losses(run)[0].finite
    if len(loss) < MIN_EVALUATIONS_OF_FALL:
        raise CannotTell(f"the log holds fewer than {MIN_EVALUATIONS_OF_FALL} evaluations")
    width = max(1, min(edge_width(len(loss)), len(loss) // MIN_EVALUATIONS_OF_FALL))
    first, last = median(loss.value[:width]), median(loss.value[-width:])
    late = loss.value[loss.step <= loss.step[0] + RUN_SHARE_BEFORE_END * (loss.step[-1] - loss.step[0])]
    before = median(late[-width:])
    fall = first - last
    if (
        fall < MIN_TOTAL_FALL_SHARE * abs(first)
        or loss.value[-1] > loss.value.min()
        or before - last < MIN_SHARE_OF_FALL_AT_END * fall
    ):
        return None
    return Evidence(
        f"the evaluation loss falls to its end, at {run.place(loss.step[-1])}: "
        f"{(before - last) / fall:.0%} of its fall from {figure(first)} to {figure(last)} came in the last quarter",
        steps=(float(loss.step[-1]),),
        values={"share_in_last_quarter": (before - last) / fall, "first": first, "last": last},
    )
