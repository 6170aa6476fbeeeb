"""Are loss and gradient finite, where did values that are not finite begin, and does half precision overflow?"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    Outcome,
    answers_of,
    ask_in_turn,
    known,
    outcome_of,
    question,
    some,
)
from mldebug_mcp.checks.curve import finite_of, row_medians
from mldebug_mcp.checks.evaluation import all_zero, evaluation_losses
from mldebug_mcp.checks.gradients import (
    CLIMB_WINDOW_RECORDS,
    LEAST_HEALTHY,
    MAX_DESCENT_RECORDS,
    Lost,
    descent_of,
    first_lost,
    gradient_norm,
    in_half_precision,
    lost,
    outlived,
    returns,
    shares,
    skips_of,
    training_losses,
)
from mldebug_mcp.checks.run.end_of_run import matching
from mldebug_mcp.core.lazy import regex, replace
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.numbers import NUMBER, parse_number
from mldebug_mcp.logs.run import Incident, Run, Series
from mldebug_mcp.logs.settings.settings import POLICIES

# Is the training loss finite, and if not, how is it lost?


LEVEL_WINDOW_RECORDS = 10
"""Values that make a level, as their median, where there are twice as many. Chosen: one lucky batch does not."""
MIN_STEEP_RISE_RATIO = 1e3
"""Times that each of fewer records stands above the one before. Chosen: no batch takes a loss up by powers of ten."""
MIN_CLIMB_RATIO = 2.0
"""The last finite losses stand this many times above the lowest level before. Chosen: noise of a mean is far less."""
MIN_WARMUP_RATE_RATIO = 1.5
"""How much higher than in the first record the rate must be. Chosen: less is hardly a warmup."""
AT_PEAK = 0.99
"""Share of its highest value at which the rate is at its peak. Chosen: by hand."""
MAX_SHARE_PAST_PEAK = 0.1
"""Share of the warmup by which the last finite loss lies behind the peak. Chosen: no record need be at the peak."""
MIN_NONFINITE_RECORDS = 3
"""Records without a finite loss, and evaluations with one. Chosen: from there on it is not a coincidence."""
MIN_LOST_STRETCHES = 5
"""Times that a loss is lost. Chosen: a bad row or two of a data set come up less often."""
OFTEN_SHARE = 0.02
"""Share of the records that are lost. Chosen: a bad row or two of a data set come up less often."""
MIN_LOST_SHARE_RISE = 0.3
"""By so much the share that is not finite is larger at the end than at first. Chosen: shares of short logs vary."""


def loss_nonfinite(run: Run, loss: Lost) -> Evidence:
    """The training loss is NaN or infinite; of a log without a total, a part of it.

    Not this when: only an evaluation is. Trainers may hide it: the one of Hugging Face prints the mean so far.
    """
    last = figure(loss.series.value[loss.at - 1]) if loss.at else ""
    before = f"; the last finite value before it is {last}" if last else ", from the first record on"
    return _evidence_of_loss(
        loss,
        f"{loss.series.name} is {loss.kind} at {run.place(loss.step)}{before}; "
        f"{loss.count} of the {len(loss.bad) - loss.at} values from there on are not finite",
        count=loss.count,
        share=loss.count / len(loss.bad),
        stays=float(loss.for_good),
        first_index=loss.at,
    )


def _evidence_of_loss(loss: Lost, summary: str, **values: float) -> Evidence:
    return Evidence(summary, steps=(loss.step,), values=values)


def loss_nonfinite_at_first(run: Run, loss: Lost) -> Evidence | None:
    """The loss of the first step is NaN or infinite: no update can have brought it about.

    Not this when: the first record is a mean over several steps. Judged only where each step is logged.
    """
    step = loss.series.step
    if run.step_name != "step" or step[0] > 1 or len(step) < 2 or step[1] - step[0] > 1:
        raise CannotTell("the first step is not logged by itself")
    summary = f"loss is {loss.kind} at {run.place(loss.step)}, the first"
    return None if loss.at else _evidence_of_loss(loss, summary, not_finite=loss.count, records=len(step))


def loss_nonfinite_in_warmup(run: Run, loss: Lost) -> Evidence | None:
    """The loss becomes NaN or infinite while the learning rate still climbs to its peak, or just as it is there.

    Not this when: the log shows no warmup, or no finite loss. By chance that is as often as warmup is long.
    """
    rate = finite_of(run, "learning_rate")
    if not len(rate) or not loss.at or len(loss.series.finite) < 2:
        raise CannotTell("the learning rate is not logged, or hardly a finite loss comes before")
    before, first, beginning = float(loss.series.step[loss.at - 1]), float(rate.step[0]), float(rate.value[0])
    highest, there = float(rate.value.max()), rate.at(loss.step)
    peak = float(rate.step[int(np.argmax(rate.value >= AT_PEAK * highest))])
    if peak <= first or there is None or highest < MIN_WARMUP_RATE_RATIO * beginning:
        raise CannotTell("no warmup is logged")
    if before > peak + MAX_SHARE_PAST_PEAK * (peak - first) or there < MIN_WARMUP_RATE_RATIO * beginning:
        return None
    return _evidence_of_loss(
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
        raise CannotTell(f"it is not known how the loss is before and {MIN_NONFINITE_RECORDS} finite records after")
    if levels[1] > levels[0]:
        raise CannotTell("the loss comes back higher: the update that was made of it took the weights with it")
    records, finite = loss.series, ~loss.bad
    before, last = float(records.value[: loss.at][finite[: loss.at]][-1]), float(records.value[finite][-1])
    return _evidence_of_loss(
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
    if len(begins) < MIN_LOST_STRETCHES or loss.count < OFTEN_SHARE * len(loss.series):
        return None
    return _evidence_of_loss(
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
    if parts[-1] - parts[0] < MIN_LOST_SHARE_RISE or min(np.diff(parts)) < -MIN_LOST_SHARE_RISE / 2:
        return None
    return _evidence_of_loss(
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
    before = loss.series.value[: loss.at]
    steep = 2 <= len(before) <= CLIMB_WINDOW_RECORDS and bool(np.all(before[1:] > MIN_STEEP_RISE_RATIO * before[:-1]))
    if len(before) <= CLIMB_WINDOW_RECORDS and not steep:
        raise CannotTell("the loss is not seen to become NaN or infinite after finite records")
    level, reach = _lowest_level(before[: max(1, len(before) - CLIMB_WINDOW_RECORDS)])
    last = float(before[-CLIMB_WINDOW_RECORDS:].max())
    ordinary = level > 0 and (last < MIN_CLIMB_RATIO * level or last <= reach)
    if ordinary and bool(np.isposinf(loss.series.value[loss.at])):
        raise CannotTell("the loss is infinite from one record to the next: whether it rose between them does not show")
    if ordinary or level <= 0:
        return None
    return Evidence(
        f"loss rises from about {figure(level)} to {figure(last)} before it is not finite at {run.place(loss.step)}",
        steps=(float(loss.series.step[max(0, loss.at - CLIMB_WINDOW_RECORDS)]),),
        values={"level": level, "last": last},
    )


def _lowest_level(values: Floats) -> tuple[float, float]:
    """Return the lowest level of finite values, and above it how far single ones go there: no more is noise.

    Of few values the lowest is the level, and nothing above it is noise.
    """
    if len(values) < 2 * LEVEL_WINDOW_RECORDS:
        return float(values.min()), -np.inf
    levels = row_medians(sliding_window_view(values, LEVEL_WINDOW_RECORDS))
    lowest = int(levels.argmin())
    level, reach = (
        float(levels[lowest]),
        float(values[max(0, lowest - LEVEL_WINDOW_RECORDS) : lowest + 2 * LEVEL_WINDOW_RECORDS].max()),
    )
    return level, reach if reach > level else -np.inf


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
    """No training loss is finite from a record on, while gradient norms or evaluation losses are: the weights go on.

    Behind finite losses the norms decide: a trainer that subtracts its running sum keeps one NaN to the end.
    Not this when: evaluation fails too; no gradient norm is logged, and the loss was finite first.
    """
    evaluation = evaluation_losses(run)[0]
    if loss.at and (outlives := outlived(run)) is not None:
        return _outlived(run, loss, outlives[1], evaluation.where(evaluation.step > loss.step))
    if loss.count < len(loss.series):
        return None
    if loss.count < MIN_NONFINITE_RECORDS or len(evaluation) < MIN_NONFINITE_RECORDS:
        raise CannotTell(
            f"{loss.count} records and {len(evaluation)} evaluations; {MIN_NONFINITE_RECORDS} of each are needed"
        )
    if not bool(np.isfinite(evaluation.value).all()):
        return None
    if all_zero(evaluation):
        raise CannotTell(f"{evaluation.name} is 0 at all evaluations, as where nothing is evaluated")
    first, last = float(evaluation.value[0]), float(evaluation.value[-1])
    before = (
        f"loss is not finite in any of {loss.count} records, while {evaluation.name} is {figure(first)} at first and "
    )
    return _evidence_of_loss(
        loss, f"{before}{figure(last)} at the end, finite in all {len(evaluation)} evaluations", first=first, last=last
    )


def _outlived(run: Run, loss: Lost, norms: Series, evaluation: Series) -> Evidence | None:
    if not bool(np.isfinite(evaluation.value).all()):
        return None
    ends = [figure(evaluation.value[at]) for at in (0, -1)] if len(evaluation) else []
    evaluated = f", and {evaluation.name} goes from {ends[0]} to {ends[1]}" if ends else ""
    return _evidence_of_loss(
        loss,
        f"loss is not finite from {run.place(loss.step)} on, while grad_norm is finite in all {len(norms)} records "
        f"there, last {figure(norms.value[-1])}{evaluated}: the weights are finite",
        norms=len(norms),
        evaluations=len(evaluation),
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
"""Reported for a loss that is a level and not a policy's."""
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
    losses = some(training_losses(run), "not logged: loss")
    loss = first_lost(losses)
    if loss is None:
        return {}
    policy = run.kind in POLICIES  # whose loss says nothing by its size
    untold = {
        detector.__name__: CannotTell(f"not judged for a run of kind {run.kind}") for detector in OF_A_LEVEL if policy
    }
    judged = ANY if policy else (*ANY, *OF_A_LEVEL)
    answers = answers_of({detector.__name__: partial(detector, run, loss) for detector in judged})
    return {LOST: loss_nonfinite(run, loss), **untold, **answers}


# Where did values that are not finite begin: in the batch, the model, the loss, the backward pass or the weights?


HEALTHY_RUN_SHARE = 0.0005
"""Share of healthy runs. Chosen: a recorder looks for the origin only where a step is lost."""


def _outcome(name: str, documentation: str) -> Outcome:
    return Outcome(name, documentation, background=HEALTHY_RUN_SHARE, as_chosen=True)


PLACES = {
    "inputs": _outcome(
        "nonfinite_in_inputs",
        """The batch of the first step that is not finite holds values that are not finite.

        Not this when: no recorder looked; the batch is finite, and something that is computed of it is not.""",
    ),
    "weights": _outcome(
        "nonfinite_in_weights",
        """Weights are not finite before the first step in which anything else is not: an update broke them.

        Not this when: no recorder looked; the batch is not finite itself.""",
    ),
    "outputs": _outcome(
        "nonfinite_in_forward",
        """A module of the model first makes values that are not finite, of a batch and weights that are finite.

        Not this when: no recorder looked; what the model returns is finite and its loss is not.""",
    ),
    "loss": _outcome(
        "nonfinite_in_loss",
        """What the model returns is finite, and the loss that is computed of it is not.

        Not this when: no recorder looked; the loss is computed inside of the model.""",
    ),
    "gradients": _outcome(
        "nonfinite_in_backward",
        """The loss is finite, and gradients are first not.

        Not this when: no recorder looked; a loss scaler skips the step, which is its work.""",
    ),
}
"""The outcome by what a recording says is not finite, in the order in which a step computes it: the first began it."""
_NAMES_OF_PLACE = {"inputs": "argument", "weights": "module", "outputs": "module", "gradients": "module"}
"""What the names of a place name: arguments of the model, by their position where they have no name, and modules."""


@question(*PLACES.values(), whole=True)
def nonfinite_origin(run: Run) -> Answers:
    """Take the first place of the step in which a recorder first saw values that are not finite."""
    first = next((incident for incident in run.incidents if incident.began), None)
    if first is None:
        raise CannotTell("no recorder looked where values that are not finite began")
    place = next((place for place in PLACES if place in first.began), None)
    return {} if place is None else {PLACES[place].id: _evidence(run, first, place)}


def _evidence(run: Run, first: Incident, place: str) -> Evidence:
    names = first.began[place]
    at = f" ({_NAMES_OF_PLACE[place]} {', '.join(names)})" if names else ""
    return Evidence(
        f"at {run.place(first.step)} the {place} are first not finite{at}"
        if place != "loss"
        else f"at {run.place(first.step)} the loss is not finite, and what the model returns is",
        steps=(first.step,),
        values={"places": len(first.began)},
    )


# Does half precision overflow: does its loss scale fall, are numbers lost, or are steps skipped again and again?


MAX_FALLING_SCALE_RECORDS = 20
"""Records within which a scale may be on its way to nothing. Chosen: a descent's length."""
STILL_FALLS = 2
"""Halvings that it is then down by. Chosen: a descent's length."""
MAX_SHARE_SKIPPED = 0.05
"""Share of the steps that are skipped. Chosen: scalers that try every 100 steps skip one in 100."""
MAX_SKIPPED_STEPS = 3
"""Number of the steps that are skipped. Chosen: by hand."""
MIN_OVERFLOWS_AT_FLOOR = 3
"""Overflows at the smallest scale that are more than probing. Chosen: one or two may come by chance."""
IN_A_ROW = 4
"""Skipped steps on end. Chosen: a scaler that probes needs one or two."""
_MESSAGE = regex(rf"loss scale: ({NUMBER}), reducing to ({NUMBER})", re.IGNORECASE)
MIN_LOST_GRADIENTS = 3
"""Records with a lost gradient behind the scaler's descent. Chosen: by hand."""
MIN_SHARE_OF_LOST_GRADIENTS = 0.02
"""Share of the records with a lost gradient. Chosen: scalers lose one in a hundred."""
LOST_BEFORE_GRADIENTS = frozenset({"inputs", "weights", "outputs", "loss"})
"""Places of a step that a recorder names in which values are lost before the scaled gradients are made."""


def scale_falls_with_loss(run: Run) -> Evidence | None:
    """The loss scale of half-precision training falls while the loss itself is not finite.

    The scaler halves its scale for any value that is not finite: a loss may be lost by an overflow of the forward pass,
    or by a logarithm of zero. Not this when: the loss is finite in some step of the fall; it was never finite, as where
    half precision is too narrow for the model from its first step on.
    """
    fall = _fall_of_scale(run)
    lost = first_lost(training_losses(run)) if fall and fall.steps and "loss_scale" in run else None
    if fall is None or lost is None or fall.steps is None or not lost.series.step[0] < lost.step <= fall.steps[0]:
        return None
    within = (lost.series.step >= fall.steps[0]) & (lost.series.step <= fall.steps[1])
    if not within.any() or not lost.bad[within].all():
        return None
    return replace(fall, summary=f"{fall.summary}, while {lost.series.name} is not finite")


def loss_scale_falls(run: Run) -> Evidence | None:
    """The loss scale of half-precision training falls by many halvings, or below 1.

    Not this when: it halves down from a high start in the first steps; it goes up and down by a halving or two; a
    loss that was finite is lost as well; a recorder saw values lost before the backward pass, which lower it as well.
    Without the scale as a metric, messages of the scaler that it is down to 1 count.
    """
    fall = _fall_of_scale(run)
    before = next((incident for incident in run.incidents if incident.began.keys() & LOST_BEFORE_GRADIENTS), None)
    if fall is not None and fall.steps and before is not None and before.step <= fall.steps[0]:
        raise CannotTell(
            f"values were lost at {run.place(before.step)} before any gradient was: the scale falls for them"
        )
    return fall


def _fall_of_scale(run: Run) -> Evidence | None:
    """Return where the loss scale falls, for whatever reason."""
    if "loss_scale" not in run:
        return _in_messages(run)
    scale = run["loss_scale"].finite
    scale = scale.where(scale.value > 0)
    if not len(scale):
        return None
    if float(np.ptp(scale.value)) == 0:
        return _at_the_floor(run, scale)
    skipped = run["overflow"].at(float(scale.step[-1])) if "overflow" in run else None
    fall = descent_of(scale, skips_at_end=bool(skipped))
    if fall is None:
        if (
            len(scale) <= MAX_FALLING_SCALE_RECORDS
            and scale.value[-1] == scale.value.min() <= scale.value[0] / 2**STILL_FALLS
        ):
            raise CannotTell(f"the scale still falls where the log ends, at {figure(scale.value[-1])}")
        return None
    top, low = fall
    first, last = float(scale.step[min(top + 1, low)]), float(scale.step[low])
    high, end = float(scale.value[top]), float(scale.value[low])
    return Evidence(
        f"loss_scale falls from {figure(high)} at {run.place(scale.step[top])} to {figure(end)} at {figure(last)}",
        steps=(first, last),
        values={"from": high, "to": end, "halvings": float(np.log2(high) - np.log2(end))},
    )


def _at_the_floor(run: Run, scale: Series) -> Evidence | None:
    """Tell of a scale that no scaler begins with and at which steps are skipped: it came down unseen."""
    value, first, last = float(scale.value[0]), float(scale.step[0]), float(scale.step[-1])
    skipped = run["overflow"].where(run["overflow"].value > 0) if "overflow" in run else None
    times = 0 if skipped is None else len(skipped.between(first, last))
    if (
        skipped is None
        or not len(skipped)
        or value > LEAST_HEALTHY
        or (value == LEAST_HEALTHY and times < MIN_OVERFLOWS_AT_FLOOR)
    ):
        return None
    return Evidence(
        f"loss_scale is down to {figure(value)} at {run.place(first)}, and steps are skipped for overflow "
        f"{max(times, 1)} times even so",
        steps=(first, last),
        values={"from": LEAST_HEALTHY, "to": value, "halvings": float(-np.log2(value))},
    )


def _in_messages(run: Run) -> Evidence | None:
    cuts = [match for message in matching(run, _MESSAGE) if (match := _MESSAGE.search(message.text))]
    if not cuts:
        raise CannotTell("not logged: loss_scale")
    first, last = (parse_number(text) or 0.0 for text in (cuts[0][1], cuts[-1][2]))
    if last > LEAST_HEALTHY or first <= last:
        raise CannotTell(f"the scaler says that it goes down to {figure(last)}; the loss scale itself is not logged")
    return Evidence(
        f"the loss scaler says {len(cuts)} times that it reduces the scale, from {figure(first)} to {figure(last)}",
        steps=(run.first_step,),
        values={"from": first, "to": last, "messages": len(cuts)},
    )


def overflows_in_fp16(run: Run) -> Evidence | None:
    """The loss, or the gradient norm again and again, is NaN or infinite, and the run computes in half precision.

    Fp16 holds no number above 65504. Not this when: the precision is another one, which rules overflow of fp16 out; a
    loss scaler loses single steps. Unknown where all is finite, or where nothing tells the precision.
    """
    gone = (_lost_again_and_again(gradient_norm(run)), first_lost(training_losses(run)))
    lost_first = min((found for found in gone if found is not None), key=lambda found: found.step, default=None)
    if lost_first is None:
        raise CannotTell("the loss and the gradient norm are finite, or not logged")
    first = next((incident.began.keys() for incident in run.incidents if incident.began), None)
    if first is not None and "loss" in first and not first & {"inputs", "weights", "outputs"}:
        raise CannotTell("what the model returns is finite: the loss function, which has 32 bits in autocast, lost it")
    half = known(in_half_precision(run), "neither the settings nor a loss scale tell the precision")
    if not half:
        return None
    return Evidence(
        f"{lost_first.series.name} is not finite in {lost_first.count} of {len(lost_first.bad)} records, from "
        f"{run.place(lost_first.step)} on, and the run computes in fp16",
        steps=(lost_first.step,),
        values={"lost": float(lost_first.count), "share": lost_first.count / len(lost_first.bad)},
    )


def _lost_again_and_again(norm: Series | None) -> Lost | None:
    """Return where gradients are lost beyond a scaler's search for its scale."""
    gone = None if norm is None else lost(norm)
    if gone is None:
        return None
    later = gone.count - min(MAX_DESCENT_RECORDS, int(gone.bad[:MAX_DESCENT_RECORDS].sum()))
    return None if later < max(MIN_LOST_GRADIENTS, MIN_SHARE_OF_LOST_GRADIENTS * len(gone.bad)) else gone


def steps_skipped(run: Run) -> Evidence | None:
    """Optimizer steps are skipped again and again because gradients overflow.

    Not this when: single steps far apart are skipped (a dynamic scaler probes for its limit), or the first steps.
    The counter of the log is read, or its messages, or else each halving of the loss scale counts.
    """
    if "overflow" in run and set(run.series) <= {"overflow", "loss_scale", "epoch"}:
        raise CannotTell("only skipped steps are logged: how many there were between them is not known")
    skips = known(skips_of(run), "not logged: skipped_iterations or loss_scale")
    count, late = skips.count, skips.late
    if not (count.value > 0).any():
        return None
    records, first = int((count.value > 0).sum()), float(count.step[int(np.argmax(count.value > 0))])
    onset = float(count.step[int(np.argmax(late > 0))]) if late.any() else first
    return Evidence(
        f"skipped steps in {records} of {len(count)} records, the first at {run.place(first)}, at most "
        f"{skips.longest} on end after the first {skips.probing}",
        steps=(onset,),
        values={"records": records, "share": skips.share, "longest": skips.longest},
        present=skips.longest >= IN_A_ROW
        or (skips.share > MAX_SHARE_SKIPPED and float(late.sum()) >= MAX_SKIPPED_STEPS),
    )


ask_in_turn(
    "overflow",
    outcome_of(scale_falls_with_loss, 0.004, "opt_175b", "opt_175b_logbook", "pytorch_docstrings"),
    outcome_of(loss_scale_falls, 0.004, "opt_175b", "opt_175b_logbook", "pytorch_docstrings"),
    outcome_of(overflows_in_fp16, 0.1, "bekman_mle", "opt_175b_logbook", as_chosen=True),
    outcome_of(
        steps_skipped,
        0.01,
        "pytorch_docstrings",
        "opt_175b_logbook",
        instead=("scale_falls_with_loss", "loss_scale_falls"),
    ),
)


# In which format of numbers does training compute, as far as its range matters?


FP8_KEYS = ("fp8_format", "fp8_recipe", "recipe")
FP8_NAMES = ("fp8", "float8", "e4m3")
"""Settings that only 8-bit training has, and names of its formats."""
FP8_METRICS = ("fp8", "float8", "amax")
"""Parts of the names of metrics that only 8-bit training has: largest values and the scales made from them."""


@question(
    Outcome(
        "trains_in_fp16",
        """Training runs in half precision (fp16), which holds no number above 65504.

        By itself no fault, but overflow needs it. Not this when: it runs in another precision, or fp16 is off.
        """,
        background=0.15,
        sources=("bekman_mle",),
        follows=("scale_falls_with_loss",),  # without it there is no scale that falls
        as_chosen=True,
    ),
    Outcome(
        "trains_in_fp8",
        """Training computes in 8-bit floats (fp8), whose scales are made from the data.

        By itself no fault, but a scale of zero needs it. Not this when: it runs in another precision.
        """,
        background=0.03,
        sources=("axolotl_stability",),
        as_chosen=True,
    ),
    whole=True,
)
def number_format(run: Run) -> Answers:
    """Look for 8-bit floats in settings and metrics, then at the precision."""
    precision = run.facts.precision
    unnamed = CannotTell("the configuration does not name the precision")
    if (fp8 := _fp8(run, precision)) is not None:
        other = unnamed if precision is None else Evidence(f"the precision is {precision}", present=False)
        return {"trains_in_fp8": fp8, "trains_in_fp16": other}
    if precision == "fp16":
        half = Evidence("the configuration asks for half precision", values={"fp16": 1})
        return {"trains_in_fp16": half}
    is_named = precision not in (None, "not fp16") or run.settings.flag("fp8") is False
    return {
        **({"trains_in_fp16": unnamed} if precision is None else {}),
        **({} if is_named else {"trains_in_fp8": unnamed}),
    }


def _fp8(run: Run, precision: str | None) -> Evidence | None:
    named = next((key for key in FP8_KEYS if any(name in run.settings.text(key) for name in FP8_NAMES)), None)
    if precision == "fp8" or named is not None:
        return Evidence(f"the configuration asks for {named or 'fp8'}", values={"fp8": 1})
    logged = next((name for name in sorted(run.series) if any(part in name.lower() for part in FP8_METRICS)), None)
    return None if logged is None else Evidence(f"the log holds {logged}", values={"fp8": 1})
