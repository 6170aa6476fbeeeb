"""Does the training loss tell the order of the data: a period, a pattern of each pass, steps between passes?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.cycles import rate_comes_back
from mldebug_mcp.measure.pass_profile import FEW_PARTS, MANY_EPOCHS, UNKNOWN_EPOCHS, epochs_of, parts_of, profile_of
from mldebug_mcp.measure.pass_steps import pass_steps
from mldebug_mcp.measure.periods import last_records, period_of
from mldebug_mcp.measure.sawtooth import teeth_of
from mldebug_mcp.measure.statistics import last_decimal, median
from mldebug_mcp.symptoms.readings import ask_in_turn, reading
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

SAME = 0.1
"""Share of a period by which that of the learning rate may differ. Chosen: schedules are logged now and then."""
ROUNDED = 2.0
"""Units of the last digit up to which a pattern is that of rounding. Chosen: a smooth curve falls like stairs."""
ALIKE = 0.85
"""Correlation of the levels of one epoch with the next. Chosen: eight in random order have it once in a hundred."""
STARTS_OVER = 0.5
"""Of that swing: how far the step to the next epoch may be from that which starts it over. Chosen: a climb has none."""
SWING = 0.15
"""Of the level of the loss: how far the pattern goes up and down. Chosen: what batches differ in is less."""
MOST_CLEAR, SHARE, LEAST_DROP, SIGMAS = 0.6, 0.5, 0.04, 4.0
"""Share of boundaries that are clear, of the fall since the first epoch, of the level, and errors. Chosen: on synthetic
curves."""
MUCH, MUCH_OF_PAIRS = 0.125, 0.4
"""Share of the level below which a step is a remark. Chosen: healthy fine-tunes lose 5 to 10 %, DPO more."""


def loss_pattern_by_epoch(run: Run) -> Evidence | None:
    """The training loss goes through the same ups and downs in each epoch, apart from how far it has come.

    Not this when: the pattern is small beside the loss; rows of like length are put together on purpose (a remark).
    """
    loss = run["loss"].finite
    epoch = epochs_of(run, loss)
    if epoch is None:
        raise CannotTell(UNKNOWN_EPOCHS)
    found = profile_of(loss, epoch, parts_of(loss.value, epoch), STARTS_OVER)
    if found is None:
        raise CannotTell("the log does not hold two whole epochs")
    least = float(found.alike.min())
    if found.swing < SWING * found.level or not least > ALIKE or not found.begins_anew:
        return None
    by_length = run.settings.flag("group_by_length") is True
    meant = "; rows of like length are put together, as configured" if by_length else ""
    return Evidence(
        f"in each of {found.passes} epochs the loss goes the same way, up and down by {figure(found.swing)} or more "
        f"beside its trend (correlation from epoch to epoch {least:.2f}); the second begins at "
        f"{run.place(found.second)}{meant}",
        steps=(found.second,),
        values={"swing": found.swing, "correlation": least, "epochs": found.passes},
        present=not by_length,
    )


def loss_periodic(run: Run) -> Evidence | None:
    """The training loss goes up and down with a fixed period, four times or more.

    Not this when: it only steps down once a period; the learning rate has that period; records are uneven.
    """
    loss, spacing = last_records(run["loss"].finite, "a period")
    values = loss.value
    found = period_of(values)
    if found is None:
        return None
    length = found.lag * spacing
    _refuse_that_of_the_rate(run, length)
    if found.swing <= ROUNDED * last_decimal(values):
        return None
    return Evidence(
        f"loss repeats every {figure(length)} {run.step_name}s ({found.lag} records; autocorrelation "
        f"{found.correlation:.2f} over {found.times} periods)",
        steps=(float(loss.step[0]),),
        values={"period": length, "autocorrelation": found.correlation, "swing": found.swing},
    )


def loss_epoch_steps(run: Run) -> Evidence | None:
    """The training loss falls in a step at each epoch boundary and is flat in between; small steps are a remark.

    Not this when: it falls evenly; the learning rate is cut there; the records are means over whole epochs.
    """
    steps = pass_steps(run)
    least = max(SIGMAS * steps.error, LEAST_DROP / 2 * steps.level)
    typical, clear, total = median(steps.drop), steps.drop > least, float(steps.drop.sum())
    if (
        clear.mean() < MOST_CLEAR
        or typical < LEAST_DROP * steps.level
        or total < SHARE * steps.fall
        or steps.rate_is_cut
    ):
        return None
    first = int(np.argmax(clear))
    return Evidence(
        f"loss falls by {figure(typical)} (median) at {int(clear.sum())} of {len(clear)} epoch boundaries, first from "
        f"{figure(steps.before[first])} at {run.place(steps.step[first])}; that is "
        f"{min(1.0, total / steps.fall if steps.fall > 0 else 1.0):.0%} of the fall since the first epoch",
        steps=tuple(steps.step[clear].tolist()),
        values={"drop": typical, "boundaries": len(clear), "clear": int(clear.sum())},
        present=typical >= (MUCH_OF_PAIRS if run.kind == "preference" else MUCH) * steps.level,
    )


def loss_sawtooth(run: Run) -> Evidence | None:
    """The training loss jumps up and comes down bit by bit until it jumps again, three times or more.

    Not this when: it comes down as suddenly (`loss_spike`); all records go up and down alike; the learning rate has
    that period.
    """
    loss = run["loss"].finite
    teeth = teeth_of(loss.value)
    if teeth is None:
        return None
    steps = loss.step[teeth.first + 1]
    _refuse_that_of_the_rate(run, median(np.diff(steps)))
    return Evidence(
        f"loss jumps up by {figure(teeth.height)} (median) {len(steps)} times, first at {run.place(steps[0])}, and "
        f"comes down bit by bit over some {figure(teeth.length)} records each time",
        steps=tuple(steps.tolist()),
        values={"teeth": len(steps), "height": teeth.height, "records": teeth.length},
    )


def _refuse_that_of_the_rate(run: Run, period: float) -> None:
    turns = np.diff(rate_comes_back(run))
    if len(turns) and abs(median(turns) - period) <= SAME * period:
        raise CannotTell("the learning rate comes back with the same period, which the loss follows")


ask_in_turn(
    "data_order",
    reading(loss_sawtooth, needs=("loss",), points=20, background=0.003),
    reading(
        loss_pattern_by_epoch,
        needs=("loss",),
        sources=("smol_playbook",),
        points=FEW_PARTS * MANY_EPOCHS,
        background=0.004,
    ),
    reading(
        loss_periodic, needs=("loss",), points=30, background=0.01, follows=("batches_recur", "few_batches_stand_out")
    ),
    reading(loss_epoch_steps, needs=("loss",), sources=("smol_playbook",), points=24, background=0.08),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl"),
)
