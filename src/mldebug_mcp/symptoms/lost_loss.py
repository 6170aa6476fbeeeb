"""What is told of a training loss that is not finite, beside the fact."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.gradient_lead import gradient_norm
from mldebug_mcp.measure.not_finite import Lost, beside, climb, lost, returns, shares
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.gradient_first import gradient_left_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure, shorten

FACTOR = 2.0
"""The last finite losses stand this many times above the lowest level before. Chosen by hand."""
RISE = 1.5
"""How much higher the rate must be where the loss is lost than in the first record."""
AT_PEAK = 0.99
"""Share of its highest value at which the rate counts as being at its peak."""
AFTER = 0.1
"""If the last finite loss stands no farther behind the peak, as a share of the warmup, the loss is lost at its end."""
LEAST = 3
"""Records without a finite loss, and evaluations with one, from which on that is no chance. Chosen by hand."""
FINITE = 2
"""Finite losses without which it is not known at what rate the run was sound."""
SPREADS = 0.3
"""By so much the share of records that are not finite is larger at the end than at first, never falling by as much on
the way. Chosen by hand."""
SAID = 3


def at_first(run: Run, loss: Lost) -> Evidence | None:
    """Say whether the loss of the very first step is lost."""
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


def in_warmup(run: Run, loss: Lost) -> Evidence | None:
    """Say whether the loss is lost while the rate climbs, or just as it is at its peak."""
    if "learning_rate" not in run or not len(run["learning_rate"].finite):
        raise CannotTell("not logged: learning_rate")
    if not loss.at or len(loss.series.finite) < FINITE:
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


def passes(run: Run, loss: Lost) -> Evidence | None:
    """Say whether the loss is lost now and then, and is as good as before in between."""
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


def spreads(run: Run, loss: Lost) -> Evidence | None:
    """Say whether more and more of the records are lost, with finite ones among them."""
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


def climbs(run: Run, loss: Lost) -> Evidence | None:
    """Say whether the loss rises to many times its level in the records before."""
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


def gradient_climbs(run: Run, loss: Lost) -> Evidence | None:
    """Say whether the gradient norm leaves its level in the last records before."""
    return gradient_left_level(run, loss.step, f"loss is not finite at {run.step_name} {figure(loss.step)}")


def gradient_zero(run: Run, loss: Lost) -> Evidence | None:
    """Say whether the last gradient norm before is exactly zero, after others that are not."""
    norm = gradient_norm(run)
    before = norm.finite.where(norm.finite.step < loss.step) if norm is not None else None
    if before is None or len(before) < LEAST:
        raise CannotTell(f"fewer than {LEAST} gradient norms are logged before")
    if before.value[-1] != 0 or not before.value.any():
        return None
    at = float(before.step[int(np.flatnonzero(before.value)[-1]) + 1])
    return Evidence(
        f"grad_norm is exactly 0 at {run.step_name} {figure(at)}; loss is not finite at {run.step_name} "
        f"{figure(loss.step)}",
        steps=(at,),
        values={"level": float(np.median(before.value))},
    )


def gradient_first(run: Run, loss: Lost) -> Evidence | None:
    """Say whether the gradient norm is lost in a record whose loss, and that of all before, is finite."""
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


def parts_finite(run: Run, loss: Lost) -> Evidence | None:
    """Say which parts of the loss are finite where the whole is not."""
    parts = beside(run, loss)
    if not parts.finite and not parts.gone:
        raise CannotTell("no part of the loss is logged where it is not finite")
    if not parts.finite:
        return None
    if loss.count == 1:
        raise CannotTell("only one record shows the loss not finite: whether the weights are lost shows in the next")
    others = f"; {_names(parts.gone)} {'are' if len(parts.gone) > 1 else 'is'} not" if parts.gone else ""
    stay = "are" if len(parts.finite) > 1 else "is"
    return Evidence(
        f"from {run.step_name} {figure(loss.step)} on the loss is not finite, yet {_names(parts.finite)} {stay}"
        f"{others}",
        steps=(loss.step,),
        values={"finite_parts": float(len(parts.finite)), "lost_parts": float(len(parts.gone))},
    )


def nan_alone(run: Run, loss: Lost) -> Evidence | None:
    """Say whether no training loss is finite while every evaluation loss is."""
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


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(shorten(name, 40) for name in names[:SAID])
