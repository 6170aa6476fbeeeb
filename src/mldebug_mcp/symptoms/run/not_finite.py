"""Is the training loss finite, and if not, how is it lost?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings.facts import POLICIES
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.gradients import gradient_norm
from mldebug_mcp.measure.not_finite import Lost, climb, first_lost, lost, returns, shares, training_losses
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import told
from mldebug_mcp.text import figure

FACTOR = 2.0
"""The last finite losses stand this many times above the lowest level before. Chosen: noise of a mean is far less."""
RISE = 1.5
"""How much higher than in the first record the rate must be. Chosen: less is hardly a warmup."""
AT_PEAK, AFTER = 0.99, 0.1
"""Share of its highest value at which the rate is at its peak, and of the warmup by which the last finite loss may lie
behind it. Chosen: records need not fall on the peak."""
LEAST = 3
"""Records without a finite loss, and evaluations with one. Chosen: from there on it is no chance."""
OFTEN, OFTEN_SHARE = 5, 0.02
"""Times that it is lost, and share of the records. Chosen: a bad row or two of a data set come up less often."""
SPREADS = 0.3
"""By so much the share that is not finite is larger at the end than at first. Chosen: shares of short logs vary."""


def loss_nonfinite(run: Run, loss: Lost) -> Evidence:
    """The training loss is NaN or infinite; of a log without a total, a part of it.

    Not this when: only an evaluation is. Trainers may hide it: the one of Hugging Face prints the mean so far.
    """
    last = figure(loss.series.value[loss.at - 1]) if loss.at else ""
    before = f"; the last finite value before it is {last}" if last else ", from the first record on"
    return _lost(
        loss,
        f"{loss.series.name} is {loss.kind} at {run.place(loss.step)}{before}; "
        f"{loss.count} of the {len(loss.bad) - loss.at} values from there on are not finite",
        count=loss.count,
        share=loss.count / len(loss.bad),
        stays=float(loss.for_good),
        first_index=loss.at,
    )


def _lost(loss: Lost, summary: str, **values: float) -> Evidence:
    return Evidence(summary, steps=(loss.step,), values=values)


def loss_nonfinite_at_first(run: Run, loss: Lost) -> Evidence | None:
    """The loss of the first step is NaN or infinite: no update can have brought it about.

    Not this when: the first record is a mean over several steps. Judged only where each step is logged.
    """
    step = loss.series.step
    if run.step_name != "step" or step[0] > 1 or len(step) < 2 or step[1] - step[0] > 1:
        raise CannotTell("the first step is not logged by itself")
    said = f"loss is {loss.kind} at {run.place(loss.step)}, the first"
    return None if loss.at else _lost(loss, said, not_finite=loss.count, records=len(step))


def loss_nonfinite_in_warmup(run: Run, loss: Lost) -> Evidence | None:
    """The loss becomes NaN or infinite while the learning rate still climbs to its peak, or just as it is there.

    Not this when: there is no warmup in the log, or no finite loss. By chance that is as often as warmup is long.
    """
    rate = run["learning_rate"].finite if "learning_rate" in run else None
    if rate is None or not len(rate) or not loss.at or len(loss.series.finite) < 2:
        raise CannotTell("the learning rate is not logged, or hardly a finite loss comes before")
    before, first, beginning = float(loss.series.step[loss.at - 1]), float(rate.step[0]), float(rate.value[0])
    highest, there = float(rate.value.max()), rate.at(loss.step)
    peak = float(rate.step[int(np.argmax(rate.value >= AT_PEAK * highest))])
    if peak <= first or there is None or highest < RISE * beginning:
        raise CannotTell("no warmup is logged")
    if before > peak + AFTER * (peak - first) or there < RISE * beginning:
        return None
    return _lost(
        loss,
        f"loss is not finite from {run.place(loss.step)} on, where the learning rate had climbed from "
        f"{figure(beginning)} to {figure(there)}; its peak is {figure(highest)} at {run.place(peak)}",
        first_rate=beginning,
        rate=there,
        peak=highest,
        share_of_warmup=min(1.0, (loss.step - first) / (peak - first)),
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
    return _lost(
        loss,
        f"loss is not finite in {loss.count} of {len(records)} records, the first at {run.place(loss.step)}, and comes "
        f"back: from {figure(before)} before it to {figure(last)} in the last finite record",
        lost=loss.count,
        before=before,
        last=last,
    )


def nonfinite_recurs(run: Run, loss: Lost) -> Evidence | None:
    """Records whose loss is NaN or infinite come up again and again, each time with sound ones between.

    Not this when: it is a batch or two in the whole run, or the same one of each pass; it is lost for good.
    """
    if loss.for_good:
        raise CannotTell("no finite record follows")
    begins = np.flatnonzero(np.diff(loss.bad.astype(int), prepend=0) == 1)
    if len(begins) < OFTEN or loss.count < OFTEN_SHARE * len(loss.series):
        return None
    return _lost(
        loss,
        f"loss is not finite {len(begins)} times from {run.place(loss.step)} to "
        f"{figure(loss.series.step[begins[-1]])}, in {loss.count} of {len(loss.series)} records, and finite between",
        times=len(begins),
        share=loss.count / len(loss.series),
    )


def nonfinite_spreads(run: Run, loss: Lost) -> Evidence | None:
    """Ever more of the records have a loss that is NaN or infinite, and others among them are finite.

    Not this when: it is lost for good at once, or now and then, as often at the end as at first.
    """
    parts = shares(loss)
    if not parts or loss.for_good:
        raise CannotTell("the records behind the first that is not finite are too few, or none of them is")
    if parts[-1] - parts[0] < SPREADS or min(np.diff(parts)) < -SPREADS / 2:
        return None
    return _lost(
        loss,
        f"{parts[0]:.0%} of the records are not finite in the first quarter from {run.place(loss.step)} "
        f"on, and {parts[-1]:.0%} in the last",
        first=parts[0],
        last=parts[-1],
        count=loss.count,
    )


def loss_climbs_to_nan(run: Run, loss: Lost) -> Evidence | None:
    """The loss rises to twice its lowest level and more in the records just before it becomes NaN or infinite.

    Not this when: it is NaN from one record to the next, at an ordinary level. Judged after four finite records.
    """
    found = climb(loss)
    if found is None:
        raise CannotTell("the loss is not seen to become NaN or infinite after finite records")
    ordinary = found.level > 0 and found.last < FACTOR * found.level
    if ordinary and bool(np.isposinf(loss.series.value[loss.at])):
        raise CannotTell("the loss is infinite from one record to the next: whether it rose between them does not show")
    if ordinary or found.level <= 0:
        return None
    return Evidence(
        f"loss rises from {figure(found.level)} to {figure(found.last)} before it is not finite at "
        f"{run.place(loss.step)}",
        steps=(found.since,),
        values={"level": found.level, "last": found.last},
    )


def gradient_lost_first(run: Run, loss: Lost) -> Evidence | None:
    """The gradient norm is NaN or infinite in a record whose loss is still finite: the backward pass is lost first.

    Not this when: both are lost in the same record, or the norm stays finite.
    """
    norm = gradient_norm(run)
    if norm is None or not bool(np.any(norm.step <= loss.step)) or not loss.at:
        raise CannotTell("the gradient norm is not logged up to there, or no finite loss comes before")
    gone = lost(norm)
    if gone is None or gone.step >= loss.step:
        return None
    finite_between = loss.series.between(gone.step, loss.step)
    if len(finite_between) < 2:
        raise CannotTell("the loss is not logged where the gradient norm is lost")
    there = float(finite_between.value[0])
    return Evidence(
        f"grad_norm is {gone.kind} at {run.place(gone.step)}, where loss is {figure(there)}; loss is "
        f"{loss.kind} at {run.place(loss.step)}",
        steps=(gone.step,),
        values={"steps_before": loss.step - gone.step, "loss_there": there},
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
    said = (
        f"loss is not finite in any of {loss.count} records, while {evaluation.name} is {figure(first)} at first and "
    )
    return _lost(
        loss, f"{said}{figure(last)} at the end, finite in all {len(evaluation)} evaluations", first=first, last=last
    )


Way = Callable[[Run, Lost], Evidence | None]
ANY: tuple[Way, ...] = (loss_climbs_to_nan, gradient_lost_first)
OF_A_LEVEL: tuple[Way, ...] = (
    loss_nonfinite_at_first,
    loss_nonfinite_in_warmup,
    loss_nonfinite_passes,
    nonfinite_recurs,
    nonfinite_spreads,
    loss_nan_alone,
)
"""What is told of a loss that is a level, and of no policy's."""
LOST = loss_nonfinite.__name__


@question(
    outcome_of(loss_nonfinite, 0.001, "axolotl_stability", instead=("logits_grow",)),
    outcome_of(loss_nonfinite_at_first, 0.03, of=LOST, as_chosen=True),
    outcome_of(loss_nonfinite_in_warmup, 0.1, "bekman_mle", of=LOST, as_chosen=True),
    outcome_of(loss_nonfinite_passes, 0.001, of=LOST),
    outcome_of(nonfinite_recurs, 0.02, of=LOST),
    outcome_of(nonfinite_spreads, 0.02, of=LOST),
    outcome_of(loss_climbs_to_nan, 0.25, "axolotl_stability", of=LOST, instead=("grad_norm_growing",)),
    outcome_of(gradient_lost_first, 0.2, "axolotl_stability", of=LOST),
    outcome_of(loss_nan_alone, 0.0005, of=LOST),
)
def not_finite(run: Run) -> Answers:
    """Say whether the training loss is finite, and if not, how it is lost."""
    losses = training_losses(run)
    if not losses:
        raise CannotTell("not logged: loss")
    loss = first_lost(losses)
    if loss is None:
        return {}
    policy = run.kind in POLICIES  # whose loss says nothing by its size
    untold = {one.__name__: CannotTell(f"not judged for a run of kind {run.kind}") for one in OF_A_LEVEL if policy}
    judged = ANY if policy else (*ANY, *OF_A_LEVEL)
    said = told({one.__name__: partial(one, run, loss) for one in judged})
    return {LOST: loss_nonfinite(run, loss), **untold, **said}
