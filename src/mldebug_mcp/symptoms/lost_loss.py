"""What is told of a training loss that is not finite, beside the fact."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.gradients import gradient_norm
from mldebug_mcp.measure.not_finite import Lost, climb, lost, returns, shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

FACTOR = 2.0
"""The last finite losses stand this many times above the lowest level before. Chosen: noise of a mean is far less."""
RISE = 1.5
"""How much higher than in the first record the rate must be. Chosen: less is hardly a warmup."""
AT_PEAK, AFTER = 0.99, 0.1
"""Share of its highest value at which the rate is at its peak, and of the warmup by which the last finite loss may lie
behind it. Chosen: records need not fall on the peak.
"""
LEAST = 3
"""Records without a finite loss, and evaluations with one. Chosen: from there on it is no chance."""
SPREADS = 0.3
"""By so much the share that is not finite is larger at the end than at first. Chosen: shares of short logs vary."""


def loss_nonfinite(run: Run, loss: Lost) -> Evidence:
    """The training loss is NaN or infinite; of a log without a total, a part of it.

    Not this when: only an evaluation is. Trainers may hide it: the one of Hugging Face prints the mean so far.
    """
    before = (
        f"; the last finite value before it is {figure(float(loss.series.value[loss.at - 1]))}"
        if loss.at
        else ", from the first record on"
    )
    return Evidence(
        f"{loss.series.name} is {loss.kind} at {run.step_name} {figure(loss.step)}{before}; "
        f"{loss.count} of the {len(loss.bad) - loss.at} values from there on are not finite",
        steps=(loss.step,),
        values={
            "count": loss.count,
            "share": loss.count / len(loss.bad),
            "stays": float(loss.for_good),
            "first_index": loss.at,
        },
    )


def nan_steps_counted(run: Run) -> Evidence | None:
    """A counter of steps with a NaN is above zero, while every loss that is logged is finite.

    Not this when: the counter stays at zero. Losses are means, of which steps with a NaN are left out.
    """
    counter = next(run.with_role(Quantity.NAN_STEPS, phase="train"), None)
    if counter is None or not len(counter.finite):
        raise CannotTell("no counter of steps with a NaN is logged")
    up = counter.finite.where(counter.finite.value > 0)
    if not len(up):
        return None
    first = float(up.step[0])
    return Evidence(
        f"{counter.name} is above zero in {len(up)} of {counted(len(counter.finite), 'record')}, the first at "
        f"{run.step_name} {figure(first)} ({figure(float(up.value[0]))}), and the loss is finite in all",
        steps=(first,),
        values={"records": len(up), "highest": float(up.value.max())},
    )


def loss_nonfinite_at_first(run: Run, loss: Lost) -> Evidence | None:
    """The loss of the first step is NaN or infinite: no update can have brought it about.

    Not this when: the first record is a mean over several steps. Judged only where each step is logged.
    """
    step = loss.series.step
    if run.step_name != "step" or step[0] > 1 or len(step) < 2 or step[1] - step[0] > 1:
        raise CannotTell("the first step is not logged by itself")
    if loss.at:
        return None
    return Evidence(
        f"loss is {loss.kind} at {run.step_name} {figure(loss.step)}, the first",
        steps=(loss.step,),
        values={"not_finite": float(loss.count), "records": float(len(step))},
    )


def loss_nonfinite_in_warmup(run: Run, loss: Lost) -> Evidence | None:
    """The loss becomes NaN or infinite while the learning rate still climbs to its peak, or just as it is there.

    Not this when: there is no warmup in the log, or no finite loss. By chance that is as often as warmup is long.
    """
    if "learning_rate" not in run or not len(run["learning_rate"].finite):
        raise CannotTell("not logged: learning_rate")
    if not loss.at or len(loss.series.finite) < 2:
        raise CannotTell("no finite loss comes before, or hardly one")
    rate = run["learning_rate"].finite
    before, first = float(loss.series.step[loss.at - 1]), float(rate.step[0])
    peak = float(rate.step[int(np.argmax(rate.value >= AT_PEAK * rate.value.max()))])
    there, beginning = rate.at(loss.step), float(rate.value[0])
    if peak <= first or there is None or rate.value.max() < RISE * beginning:
        raise CannotTell("no warmup is logged")
    if before > peak + AFTER * (peak - first) or there < RISE * beginning:
        return None
    return Evidence(
        f"loss is not finite from {run.step_name} {figure(loss.step)} on, where the learning rate had climbed from "
        f"{figure(beginning)} to {figure(there)}; its peak is {figure(float(rate.value.max()))} at {run.step_name} "
        f"{figure(peak)}",
        steps=(loss.step,),
        values={
            "first_rate": beginning,
            "rate": there,
            "peak": float(rate.value.max()),
            "share_of_warmup": min(1.0, (loss.step - first) / (peak - first)),
        },
    )


def loss_nonfinite_passes(run: Run, loss: Lost) -> Evidence | None:
    """The training loss is NaN or infinite in some records, and finite in later ones that are no worse than before.

    Not this when: it never comes back, or higher; or another loss is not finite either, as with spoilt weights.
    """
    if any(not np.isfinite(run[name].value).all() for name in run.series if name.endswith("loss") and name != "loss"):
        raise CannotTell("another loss is not finite either: it is not these batches alone")
    levels = returns(loss)
    if levels is None:
        raise CannotTell(f"it is not known how the loss is before and {LEAST} finite records after")
    if levels[1] > levels[0]:
        raise CannotTell("the loss comes back higher: the update that was made of it took the weights with it")
    records, finite = loss.series, ~loss.bad
    before, last = float(records.value[: loss.at][finite[: loss.at]][-1]), float(records.value[finite][-1])
    return Evidence(
        f"loss is not finite in {loss.count} of {len(records)} records, the first at {run.step_name} "
        f"{figure(loss.step)}, and comes back: from {figure(before)} before it to {figure(last)} in the last finite "
        "record",
        steps=(loss.step,),
        values={"lost": float(loss.count), "before": before, "last": last},
    )


def nonfinite_spreads(run: Run, loss: Lost) -> Evidence | None:
    """Ever more of the records have a loss that is NaN or infinite, and others among them are finite.

    Not this when: it is lost for good at once, or now and then, as often at the end as at first.
    """
    parts = shares(loss)
    if not parts or loss.for_good:
        raise CannotTell("the records behind the first that is not finite are too few, or none of them is")
    grown = parts[-1] - parts[0]
    if grown < SPREADS or min(np.diff(parts)) < -SPREADS / 2:
        return None
    return Evidence(
        f"{parts[0]:.0%} of the records are not finite in the first quarter from {run.step_name} {figure(loss.step)} "
        f"on, and {parts[-1]:.0%} in the last",
        steps=(loss.step,),
        values={"first": parts[0], "last": parts[-1], "count": float(loss.count)},
    )


def loss_climbs_to_nan(run: Run, loss: Lost) -> Evidence | None:
    """The loss rises to twice its lowest level and more in the records just before it becomes NaN or infinite.

    Not this when: it is NaN from one record to the next, at an ordinary level. Judged after four finite records.
    """
    found = climb(loss)
    if found is None:
        raise CannotTell("the loss is not seen to become NaN or infinite after finite records")
    if found.level > 0 and found.last < FACTOR * found.level and bool(np.isposinf(loss.series.value[loss.at])):
        raise CannotTell("the loss is infinite from one record to the next: whether it rose between them does not show")
    if found.level <= 0 or found.last < FACTOR * found.level:
        return None
    return Evidence(
        f"loss rises from {figure(found.level)} to {figure(found.last)} before it is not finite at {run.step_name} "
        f"{figure(loss.step)}",
        steps=(found.since,),
        values={"level": found.level, "last": found.last},
    )


def gradient_lost_first(run: Run, loss: Lost) -> Evidence | None:
    """The gradient norm is NaN or infinite in a record whose loss is still finite: the backward pass is lost first.

    Not this when: both are lost in the same record, or the norm stays finite.
    """
    norm = gradient_norm(run)
    if norm is None or not bool(np.any(norm.step <= loss.step)):
        raise CannotTell("the gradient norm is not logged up to there")
    if not loss.at:
        raise CannotTell("no finite loss comes before")
    gone = lost(norm)
    if gone is None or gone.step >= loss.step:
        return None
    finite_between = loss.series.between(gone.step, loss.step)
    if len(finite_between) < 2:
        raise CannotTell("the loss is not logged where the gradient norm is lost")
    return Evidence(
        f"grad_norm is {gone.kind} at {run.step_name} {figure(gone.step)}, where loss is "
        f"{figure(float(finite_between.value[0]))}; loss is {loss.kind} at {run.step_name} {figure(loss.step)}",
        steps=(gone.step,),
        values={"steps_before": loss.step - gone.step, "loss_there": float(finite_between.value[0])},
    )


def loss_nan_alone(run: Run, loss: Lost) -> Evidence | None:
    """No training loss is finite, from the first record on, while every evaluation loss is: the weights are sound.

    Not this when: the loss was finite first; evaluation fails too.
    """
    if loss.count < len(loss.series):
        return None
    evaluation = evaluation_losses(run)[0]
    if loss.count < LEAST or len(evaluation) < LEAST:
        raise CannotTell(f"{loss.count} records and {len(evaluation)} evaluations; {LEAST} of each are needed")
    if not bool(np.isfinite(evaluation.value).all()):
        return None
    first, last = float(evaluation.value[0]), float(evaluation.value[-1])
    return Evidence(
        f"loss is not finite in any of {loss.count} records, while {evaluation.name} is {figure(first)} at first and "
        f"{figure(last)} at the end, finite in all {len(evaluation)} evaluations",
        steps=(loss.step,),
        values={"first": first, "last": last},
    )
