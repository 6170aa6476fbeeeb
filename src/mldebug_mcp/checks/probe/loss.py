"""Is the loss of the probed model the right function, and does it start and move as it should?"""

from __future__ import annotations

import math

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe.measures import is_far_below_zero, is_random, steps_are_tiny, still_falling, was_cut_short
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import Measured

# The first loss lies far above that of a uniform guess.


MAX_TIMES_UNIFORM_LOSS = 1.5
"""Times the loss of a uniform guess that a first loss is at most. Chosen: a healthy start is near the guess."""
MARGIN = 0.5
"""Nats more that it may have. Chosen: usual output scales add less."""


TIMES_FAR_OFF = 10.0
"""Times the loss of a uniform guess that no model in use begins with. Chosen: of 50 classes it is 39 nats."""


@probe_symptom(
    needs=("initial_loss", "reference"),
    effects={"bad_init": "usually", "exploding_gradients": "rarely", "wrong_loss": "rarely"},
    sources=("karpathy_recipe", "cs231n_nn3"),
    background=0.002,
)
def probe_initial_loss_high(measured: Measured) -> Evidence | None:
    """The first loss lies far above that of a uniform guess.

    Not this when: the loss is a sum over labels, or another quantity than the reference; it is ten times that of a
    guess of classes (`probe_initial_loss_far_off`).
    """
    uniform = _uniform(measured)
    if measured.initial_loss is None or _is_far_off(measured, uniform):
        return None
    most = 10 * uniform if measured.targets == "values" else MAX_TIMES_UNIFORM_LOSS * uniform + MARGIN
    return _above(measured.initial_loss, uniform) if measured.initial_loss > most else None


@probe_symptom(
    needs=("initial_loss", "reference"),
    effects={"bad_init": "always", "exploding_gradients": "rarely", "wrong_loss": "rarely"},
    sources=("karpathy_recipe", "cs231n_nn3"),
    background=0.0001,
)
def probe_initial_loss_far_off(measured: Measured) -> Evidence | None:
    """The first loss is more than ten times that of a uniform guess of classes: outputs begin sure of wrong answers.

    Not this when: values are predicted, whose scale is their own; the loss is a sum over labels.
    """
    uniform = _uniform(measured)
    assert measured.initial_loss is not None
    return _above(measured.initial_loss, uniform) if _is_far_off(measured, uniform) else None


def _uniform(measured: Measured) -> float:
    """Return the loss of a uniform guess. Raises CannotTell where the loss has none to compare with."""
    assert measured.initial_loss is not None
    assert measured.reference is not None
    if measured.loss_formula is None:
        raise CannotTell("the loss has no known form to compare with")
    if measured.alike_units:
        raise CannotTell("units with the same weights give the same for all classes")
    if (
        "summed" in measured.loss_formula
        or "negated" in measured.loss_formula
        or not math.isfinite(measured.initial_loss)
    ):
        raise CannotTell(f"the loss is {measured.loss_formula}, which has no uniform guess to compare with")
    return measured.reference.uniform


def _is_far_off(measured: Measured, uniform: float) -> bool:
    first = measured.initial_loss
    return first is not None and measured.targets != "values" and first > TIMES_FAR_OFF * uniform


def _above(first: float, uniform: float) -> Evidence:
    return Evidence(
        f"the first loss is {figure(first)}; a uniform guess has {figure(uniform)}",
        values={"first": first, "uniform_guess": uniform},
    )


# The targets lie far from where outputs begin.


FAR_TARGETS = 10.0
"""Size of targets, and times their deviation that their mean lies from 0. Chosen: standardised ones have 1 and 0."""


@probe_symptom(
    needs=("reference", "memorised"),
    effects={"bad_init": "usually", "lr_too_low": "sometimes", "bad_batch": "sometimes"},
    sources=("karpathy_recipe",),
    background=0.0001,
)
def probe_targets_far(measured: Measured) -> Evidence | None:
    """Values to be predicted are on a scale that outputs do not begin at, and the batch is not memorised.

    karpathy_recipe: the last bias is to begin at the mean of the targets.

    Not this when: the batch is memorised; targets have a size near one.
    """
    known = measured.reference
    assert known is not None
    if measured.targets != "values" or known.variance is None:
        raise CannotTell("no values are to be predicted")
    if measured.memorised:
        return None
    size, deviation = math.sqrt(max(known.uniform, 0.0)), math.sqrt(max(known.variance, 0.0))
    if not math.isfinite(size) or size < FAR_TARGETS * max(1.0, deviation if deviation < FAR_TARGETS else 1.0):
        return None
    return Evidence(
        f"targets have a size of {figure(size)} and a deviation of {figure(deviation)}; outputs begin near 0",
        values={"size": size, "deviation": deviation},
    )


@probe_symptom(
    needs=("loss_formula",),
    effects={"wrong_loss": "sometimes"},
    sources=("fsdl_2021_l7",),
)
def probe_loss_broadcast(measured: Measured) -> Evidence | None:
    """The loss compares each output with every label: shapes (n, 1) and (n) were broadcast to (n, n).

    Its floor is the variance of the labels, which an output that ignores its input reaches.
    """
    assert measured.loss_formula is not None
    if "broadcast" not in measured.loss_formula:
        return None
    name = measured.loss_formula.removesuffix(" broadcast").replace("_", " ")
    return Evidence(f"the loss equals the {name} of each output against every label: two shapes were broadcast")


@probe_symptom(
    needs=("loss_formula",),
    effects={"wrong_loss": "sometimes"},
)
def probe_loss_over_another_axis(measured: Measured) -> Evidence | None:
    """The loss is a cross-entropy whose softmax runs over the rows or the positions, so that they compete."""
    assert measured.loss_formula is not None
    if " over " not in measured.loss_formula:
        return None
    axis = measured.loss_formula.partition(" over ")[2].removesuffix(" shifted")
    return Evidence(f"the loss equals the cross-entropy of a softmax over the {axis}, not over the classes")


# The loss falls below zero without end.


MIN_TIMES_FIRST_LOSS = 10.0
"""Times the size of the first loss, and at least 1, that the last one lies below zero. Chosen: likelihoods with a
learned variance go to a few nats below zero."""


@probe_symptom(
    needs=("curve",),
    effects={"wrong_loss": "often"},
    background=0.0002,
)
def probe_loss_unbounded(measured: Measured) -> Evidence | None:
    """The loss falls below zero faster and faster, or a thousand times its size: it has no floor.

    Its sign may be wrong.

    Not this when: the fall slows down, as that of a likelihood with a learned variance.
    """
    assert measured.curve is not None
    losses = measured.curve.losses
    if is_far_below_zero(losses):
        return Evidence(f"the loss falls from {figure(losses[0])} to {figure(losses[-1])}")
    if len(losses) < MIN_LOSSES_OF_FALL or not all(map(math.isfinite, losses)):
        raise CannotTell(f"{len(losses)} finite losses; {MIN_LOSSES_OF_FALL} are needed")
    half = losses[: len(losses) // 2]
    early, late = half[0] - half[-1], half[-1] - losses[-1]
    if losses[-1] > -MIN_TIMES_FIRST_LOSS * max(1.0, abs(losses[0])) or late <= early:
        return None
    return Evidence(f"the loss falls from {figure(losses[0])} to {figure(losses[-1])}, in the second half faster")


MIN_LOSSES_OF_FALL = 20
"""Losses whose halves are compared. Chosen: fewer are too few to tell a fall that gets faster."""


@probe_symptom(
    needs=("curve",),
    effects={
        "no_preference_signal": "often",
        "all_labels_masked": "often",
        "params_not_training": "often",
        "lr_too_low": "sometimes",
        "lr_schedule_bug": "rarely",
        "vanishing_gradients": "rarely",
        "wrong_loss": "rarely",
        "dead_units": "sometimes",
    },
    background=0.001,
)
def probe_loss_constant(measured: Measured) -> Evidence | None:
    """The loss does not change at all from step to step."""
    assert measured.curve is not None
    losses = measured.curve.losses
    if (
        len(losses) < 3
        or not all(map(math.isfinite, losses))
        or max(losses) - min(losses) > 1e-6 * max(1.0, abs(losses[0]))
    ):
        return None
    return Evidence(f"the loss is {figure(losses[0])} at each of {len(losses)} steps")


@probe_symptom(
    needs=("gradients", "initial_loss"),
    effects={"wrong_loss": "sometimes"},
    background=0.0001,
)
def probe_loss_zero(measured: Measured) -> Evidence | None:
    """The loss is 0 at the first call and its gradient is 0 everywhere, though labels are there to be trained on.

    Not this when: no label is trained on (`probe_labels_masked`).
    """
    assert measured.gradients is not None
    if measured.trained_labels == 0:
        raise CannotTell("no label is trained on")
    if (
        measured.initial_loss != 0
        or measured.gradients.norm != 0
        or not measured.gradients.trainable
        or measured.gradients.none_share
    ):
        return None
    return Evidence("the loss is 0 before training, and none of its gradients is other than 0")


# Training changes the parameters, and the loss stays what it was.


LN_2 = math.log(2)
UNMOVED = 1e-5
"""Nats within which a loss is the same. Chosen: rounding of a sum in 32 bits is below."""


def _unmoved(measured: Measured) -> bool:
    """Tell whether the loss in evaluation mode is the same before and after training that changed the parameters."""
    assert measured.outcome is not None
    assert measured.repeated_losses is not None
    if measured.memorised or is_random(measured) or steps_are_tiny(measured):
        return False
    before, after = measured.repeated_losses[0], measured.outcome.evaluation.loss
    return math.isfinite(before) and abs(after - before) <= UNMOVED * max(1.0, abs(before))


@probe_symptom(
    needs=("outcome", "repeated_losses", "movement"),
    effects={"wrong_loss": "sometimes"},
    background=0.0005,
)
def probe_loss_unmoved(measured: Measured) -> Evidence | None:
    """Training changes the parameters and the loss stays the same: it depends on them in no way that counts.

    Not this when: the steps are tiny; the parameters did not move; the loss stays at ln 2, as of pairs without a
    preference.
    """
    assert measured.movement is not None
    assert measured.outcome is not None
    if measured.movement.still_share > MAX_STILL or not _unmoved(measured) or _is_at_ln_2(measured):
        return None
    return Evidence(f"training moves the parameters, and the loss stays at {figure(measured.outcome.evaluation.loss)}")


MAX_STILL = 0.5
"""Share of the trainable elements that may stand still where parameters count as moved."""


def _is_at_ln_2(measured: Measured) -> bool:
    assert measured.outcome is not None
    return abs(measured.outcome.evaluation.loss - LN_2) <= UNMOVED


@probe_symptom(
    needs=("outcome", "repeated_losses"),
    effects={"no_preference_signal": "usually", "wrong_loss": "sometimes"},
    background=0.0005,
)
def probe_preference_absent(measured: Measured) -> Evidence | None:
    """The loss stays at ln 2, the loss of a pair whose two sides are equally likely.

    Not this when: the steps are tiny; two classes are separated, whose loss leaves ln 2 as soon as weights move.
    """
    if not _unmoved(measured) or not _is_at_ln_2(measured):
        return None
    return Evidence(
        "the loss is ln 2 before and after training: chosen and rejected, or policy and reference, are the same"
    )


@probe_symptom(
    needs=("loss_formula",),
    effects={"wrong_loss": "sometimes"},
)
def probe_loss_negated(measured: Measured) -> Evidence | None:
    """The loss is a usual one with the wrong sign."""
    assert measured.loss_formula is not None
    return (
        Evidence(f"the loss equals minus {measured.loss_formula.removeprefix('negated ')}")
        if "negated" in measured.loss_formula
        else None
    )


@probe_symptom(
    needs=("initial_loss",),
    effects={
        "invalid_math": "usually",
        "fp16_overflow": "usually",
        "lr_too_high": "sometimes",
        "bad_batch": "sometimes",
        "exploding_gradients": "often",
        "bad_init": "rarely",
        "all_labels_masked": "often",
        "unknown": "rarely",
    },
    background=0.002,
)
def probe_loss_nonfinite(measured: Measured) -> Evidence | None:
    """The loss is NaN or infinite, at once or after some steps."""
    assert measured.initial_loss is not None
    losses = [measured.initial_loss, *(measured.curve.losses if measured.curve else ())]
    step = next((number for number, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if step is None:
        return None
    return Evidence(f"the loss is {figure(losses[step])} at step {step}", steps=(step,))


@probe_symptom(
    needs=("curve",),
    effects={
        "lr_too_high": "often",
        "wrong_loss": "sometimes",
        "missing_zero_grad": "sometimes",
        "exploding_gradients": "often",
    },
    background=0.005,
)
def probe_loss_rises(measured: Measured) -> Evidence | None:
    """The loss ends far above its start."""
    assert measured.curve is not None
    losses = [loss for loss in measured.curve.losses if math.isfinite(loss)]
    if len(losses) < 3 or losses[-1] <= losses[0] + 0.2 * abs(losses[0]):
        return None
    return Evidence(
        f"the loss rises from {figure(losses[0])} to {figure(losses[-1])} in {len(losses)} steps",
        steps=(len(losses),),
    )


@probe_symptom(
    needs=("curve", "memorised"),
    effects={
        "lr_too_low": "often",
        "clip_too_tight": "often",
        "too_little_capacity": "sometimes",
        "exploding_gradients": "rarely",
        "vanishing_gradients": "often",
        "bad_init": "sometimes",
        "unknown": "sometimes",
    },
    background=0.01,
)
def probe_loss_still_falling(measured: Measured) -> Evidence | None:
    """The loss was still falling when the steps were up.

    Not this when: the probe's own loop ran out of time, not of steps.
    """
    assert measured.curve is not None
    if measured.memorised or not still_falling(measured.curve.losses):
        return None
    if was_cut_short(measured):
        raise CannotTell(f"time was up after {len(measured.curve.losses)} steps")
    return Evidence(
        f"the loss is {figure(measured.curve.losses[-1])} at the last of {len(measured.curve.losses)} steps and falling"
    )


@probe_symptom(
    needs=("loss_formula",),
    effects={"double_softmax": "always"},
)
def probe_probabilities_as_logits(measured: Measured) -> Evidence | None:
    """The loss is cross-entropy of probabilities taken for logits: a softmax or sigmoid is applied twice."""
    assert measured.loss_formula is not None
    if "softmaxed" not in measured.loss_formula:
        return None
    return Evidence("the loss equals the cross-entropy of probabilities that were taken for logits")


# The user's step moves the parameters up the slope of the user's loss.


UPHILL = 0.1
"""Chosen: Adam's first step, near the sign of the slope, has a cosine of -0.3 to -0.8."""


@probe_symptom(
    needs=("watched",),
    effects={"wrong_loss": "sometimes"},
)
def probe_step_uphill(measured: Measured) -> Evidence | None:
    """The user's step moves the parameters up the slope of the user's loss."""
    assert measured.watched is not None
    if measured.watched.uphill is None:
        raise CannotTell("no step moved a parameter")
    if measured.watched.uphill < UPHILL:
        return None
    return Evidence(f"the first step goes up the loss: cosine {figure(measured.watched.uphill)} with its slope")
