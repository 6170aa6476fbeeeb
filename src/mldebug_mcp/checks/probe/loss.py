"""Is the loss of the probed model the right function, and does it fall until the batch is memorised?"""

from __future__ import annotations

import math

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe import (
    is_far_below_zero,
    is_random,
    low_precision_alone,
    require_unlike_units,
    steps_are_tiny,
    still_falling,
    was_cut_short,
)
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import (
    Curve,
    Gradients,
    Measured,
    Movement,
    Operation,
    Outcome,
    Reference,
    Seeds,
    Watched,
)

MAX_TIMES_UNIFORM_LOSS = 1.5
"""Times the loss of a uniform guess that a first loss is at most. Chosen: a healthy start is near the guess."""
UNIFORM_LOSS_MARGIN_NATS = 0.5
"""Nats more that it may have. Chosen: usual output scales add less."""
TIMES_FAR_OFF = 10.0
"""Times the loss of a uniform guess that no model in use begins with. Chosen: of 50 classes it is 39 nats."""


@probe_symptom(
    effects={"bad_init": "usually", "exploding_gradients": "rarely", "wrong_loss": "rarely"},
    sources=("karpathy_recipe", "cs231n_nn3"),
    background=0.002,
)
def probe_initial_loss_high(measured: Measured, initial_loss: float, reference: Reference) -> Evidence | None:
    """The first loss lies far above that of a uniform guess.

    Not this when: the loss is a sum over labels, or another quantity than the reference; it is ten times that of a
    guess of classes (`probe_initial_loss_far_off`).
    """
    uniform = _uniform(measured, initial_loss, reference)
    if _is_far_off(measured, initial_loss, uniform):
        return None
    most = 10 * uniform if measured.targets == "values" else MAX_TIMES_UNIFORM_LOSS * uniform + UNIFORM_LOSS_MARGIN_NATS
    return _above(initial_loss, uniform) if initial_loss > most else None


@probe_symptom(
    effects={"bad_init": "always", "exploding_gradients": "rarely", "wrong_loss": "rarely"},
    sources=("karpathy_recipe", "cs231n_nn3"),
    background=0.0001,
)
def probe_initial_loss_far_off(measured: Measured, initial_loss: float, reference: Reference) -> Evidence | None:
    """The first loss is more than ten times that of a uniform guess of classes: outputs begin sure of wrong answers.

    Not this when: values are predicted, whose scale is their own; the loss is a sum over labels.
    """
    uniform = _uniform(measured, initial_loss, reference)
    return _above(initial_loss, uniform) if _is_far_off(measured, initial_loss, uniform) else None


def _uniform(measured: Measured, first: float, reference: Reference) -> float:
    """Return the loss of a uniform guess. Raises CannotTell where the loss has none to compare with."""
    if measured.loss_formula is None:
        raise CannotTell("the loss has no known form to compare with")
    require_unlike_units(measured, "give the same for all classes")
    if "summed" in measured.loss_formula or "negated" in measured.loss_formula or not math.isfinite(first):
        raise CannotTell(f"the loss is {measured.loss_formula}, which has no uniform guess to compare with")
    return reference.uniform


def _is_far_off(measured: Measured, first: float, uniform: float) -> bool:
    return measured.targets != "values" and first > TIMES_FAR_OFF * uniform


def _above(first: float, uniform: float) -> Evidence:
    return Evidence(
        f"the first loss is {figure(first)}; a uniform guess has {figure(uniform)}",
        values={"first": first, "uniform_guess": uniform},
    )


# The targets lie far from where outputs begin.


FAR_TARGETS = 10.0
"""Size of targets, and times their deviation that their mean lies from 0. Chosen: standardised ones have 1 and 0."""


@probe_symptom(
    effects={"bad_init": "usually", "lr_too_low": "sometimes", "bad_batch": "sometimes"},
    sources=("karpathy_recipe",),
    background=0.0001,
)
def probe_targets_far(measured: Measured, reference: Reference, memorised: bool) -> Evidence | None:
    """Values to be predicted are on a scale that outputs do not begin at, and the batch is not memorised.

    karpathy_recipe: the last bias is to begin at the mean of the targets.

    Not this when: the batch is memorised; targets have a size near one.
    """
    if measured.targets != "values" or reference.variance is None:
        raise CannotTell("no values are to be predicted")
    if memorised:
        return None
    size, deviation = math.sqrt(max(reference.uniform, 0.0)), math.sqrt(max(reference.variance, 0.0))
    if not math.isfinite(size) or size < FAR_TARGETS * max(1.0, deviation if deviation < FAR_TARGETS else 1.0):
        return None
    return Evidence(
        f"targets have a size of {figure(size)} and a deviation of {figure(deviation)}; outputs begin near 0",
        values={"size": size, "deviation": deviation},
    )


@probe_symptom(effects={"wrong_loss": "sometimes"}, sources=("fsdl_2021_l7",))
def probe_loss_broadcast(loss_formula: str) -> Evidence | None:
    """The loss compares each output with every label: shapes (n, 1) and (n) were broadcast to (n, n).

    Its floor is the variance of the labels, which an output that ignores its input reaches.
    """
    if "broadcast" not in loss_formula:
        return None
    name = loss_formula.removesuffix(" broadcast").replace("_", " ")
    return Evidence(f"the loss equals the {name} of each output against every label: two shapes were broadcast")


@probe_symptom(effects={"wrong_loss": "sometimes"})
def probe_loss_over_another_axis(loss_formula: str) -> Evidence | None:
    """The loss is a cross-entropy whose softmax runs over the rows or the positions, so that they compete."""
    if " over " not in loss_formula:
        return None
    axis = loss_formula.partition(" over ")[2].removesuffix(" shifted")
    return Evidence(f"the loss equals the cross-entropy of a softmax over the {axis}, not over the classes")


MIN_TIMES_FIRST_LOSS = 10.0
"""Times the size of the first loss, and at least 1, that the last one lies below zero. Chosen: likelihoods with a
learned variance go to a few nats below zero."""


@probe_symptom(effects={"wrong_loss": "often"}, background=0.0002)
def probe_loss_unbounded(curve: Curve) -> Evidence | None:
    """The loss falls below zero faster and faster, or a thousand times its size: it has no floor.

    Its sign may be wrong.

    Not this when: the fall slows down, as that of a likelihood with a learned variance.
    """
    losses = curve.losses
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
def probe_loss_constant(curve: Curve) -> Evidence | None:
    """The loss does not change at all from step to step."""
    losses = curve.losses
    if (
        len(losses) < 3
        or not all(map(math.isfinite, losses))
        or max(losses) - min(losses) > 1e-6 * max(1.0, abs(losses[0]))
    ):
        return None
    return Evidence(f"the loss is {figure(losses[0])} at each of {len(losses)} steps")


@probe_symptom(effects={"wrong_loss": "sometimes"}, background=0.0001)
def probe_loss_zero(measured: Measured, gradients: Gradients, initial_loss: float) -> Evidence | None:
    """The loss is 0 at the first call and its gradient is 0 everywhere, though labels are there to be trained on.

    Not this when: no label is trained on (`probe_labels_masked`).
    """
    if measured.trained_labels == 0:
        raise CannotTell("no label is trained on")
    if initial_loss != 0 or gradients.norm != 0 or not gradients.trainable or gradients.none_share:
        return None
    return Evidence("the loss is 0 before training, and none of its gradients is other than 0")


# Training changes the parameters, and the loss stays what it was.


LN_2 = math.log(2)
MAX_SAME_LOSS_NATS = 1e-5
"""Nats within which a loss is the same. Chosen: rounding of a sum in 32 bits is below."""


def _unmoved(measured: Measured, outcome: Outcome, repeated_losses: list[float]) -> bool:
    """Tell whether the loss in evaluation mode is the same before and after training that changed the parameters."""
    if measured.memorised or is_random(measured) or steps_are_tiny(measured):
        return False
    before, after = repeated_losses[0], outcome.evaluation.loss
    return math.isfinite(before) and abs(after - before) <= MAX_SAME_LOSS_NATS * max(1.0, abs(before))


@probe_symptom(effects={"wrong_loss": "sometimes"}, background=0.0005)
def probe_loss_unmoved(
    measured: Measured, outcome: Outcome, repeated_losses: list[float], movement: Movement
) -> Evidence | None:
    """Training changes the parameters and the loss stays the same: it depends on them in no way that counts.

    Not this when: the steps are tiny; the parameters did not move; the loss stays at ln 2, as of pairs without a
    preference.
    """
    if movement.still_share > MAX_STILL or not _unmoved(measured, outcome, repeated_losses) or _is_at_ln_2(outcome):
        return None
    return Evidence(f"training moves the parameters, and the loss stays at {figure(outcome.evaluation.loss)}")


MAX_STILL = 0.5
"""Share of the trainable elements that may stand still where parameters count as moved."""


def _is_at_ln_2(outcome: Outcome) -> bool:
    return abs(outcome.evaluation.loss - LN_2) <= MAX_SAME_LOSS_NATS


@probe_symptom(effects={"no_preference_signal": "usually", "wrong_loss": "sometimes"}, background=0.0005)
def probe_preference_absent(measured: Measured, outcome: Outcome, repeated_losses: list[float]) -> Evidence | None:
    """The loss stays at ln 2, the loss of a pair whose two sides are equally likely.

    Not this when: the steps are tiny; two classes are separated, whose loss leaves ln 2 as soon as weights move.
    """
    if not _unmoved(measured, outcome, repeated_losses) or not _is_at_ln_2(outcome):
        return None
    return Evidence(
        "the loss is ln 2 before and after training: chosen and rejected, or policy and reference, are the same"
    )


@probe_symptom(effects={"wrong_loss": "sometimes"})
def probe_loss_negated(loss_formula: str) -> Evidence | None:
    """The loss is a usual one with the wrong sign."""
    return (
        Evidence(f"the loss equals minus {loss_formula.removeprefix('negated ')}")
        if "negated" in loss_formula
        else None
    )


@probe_symptom(
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
def probe_loss_nonfinite(measured: Measured, initial_loss: float) -> Evidence | None:
    """The loss is NaN or infinite, at once or after some steps."""
    losses = [initial_loss, *(measured.curve.losses if measured.curve else ())]
    step = next((number for number, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if step is None:
        return None
    return Evidence(f"the loss is {figure(losses[step])} at step {step}", steps=(step,))


@probe_symptom(
    effects={
        "lr_too_high": "often",
        "wrong_loss": "sometimes",
        "missing_zero_grad": "sometimes",
        "exploding_gradients": "often",
    },
    background=0.005,
)
def probe_loss_rises(curve: Curve) -> Evidence | None:
    """The loss ends far above its start."""
    losses = [loss for loss in curve.losses if math.isfinite(loss)]
    if len(losses) < 3 or losses[-1] <= losses[0] + 0.2 * abs(losses[0]):
        return None
    return Evidence(
        f"the loss rises from {figure(losses[0])} to {figure(losses[-1])} in {len(losses)} steps",
        steps=(len(losses),),
    )


@probe_symptom(
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
def probe_loss_still_falling(measured: Measured, curve: Curve, memorised: bool) -> Evidence | None:
    """The loss was still falling when the steps were up.

    Not this when: the probe's own loop ran out of time, not of steps.
    """
    if memorised or not still_falling(curve.losses):
        return None
    if was_cut_short(measured):
        raise CannotTell(f"time was up after {len(curve.losses)} steps")
    return Evidence(f"the loss is {figure(curve.losses[-1])} at the last of {len(curve.losses)} steps and falling")


@probe_symptom(effects={"double_softmax": "always"})
def probe_probabilities_as_logits(loss_formula: str) -> Evidence | None:
    """The loss is cross-entropy of probabilities taken for logits: a softmax or sigmoid is applied twice."""
    if "softmaxed" not in loss_formula:
        return None
    return Evidence("the loss equals the cross-entropy of probabilities that were taken for logits")


MIN_UPHILL_COSINE = 0.1
"""Cosine of a step with the slope of the loss that goes up it. Chosen: Adam's first step has one of -0.3 to -0.8."""


@probe_symptom(effects={"wrong_loss": "sometimes"})
def probe_step_uphill(watched: Watched) -> Evidence | None:
    """The user's step moves the parameters up the slope of the user's loss."""
    if watched.uphill is None:
        raise CannotTell("no step moved a parameter")
    if watched.uphill < MIN_UPHILL_COSINE:
        return None
    return Evidence(f"the first step goes up the loss: cosine {figure(watched.uphill)} with its slope")


# Is the batch memorised, and what decides whether it is?


@probe_symptom(
    effects={
        "no_preference_signal": "usually",
        "params_not_training": "usually",
        "lr_too_low": "usually",
        "lr_too_high": "often",
        "wrong_loss": "often",
        "double_softmax": "usually",
        "label_noise": "sometimes",
        "no_signal": "often",
        "missing_zero_grad": "sometimes",
        "all_labels_masked": "usually",
        "vanishing_gradients": "usually",
        "dead_units": "usually",
        "too_little_capacity": "always",
        "clip_too_tight": "usually",
        "weight_decay_too_high": "usually",
        "lr_schedule_bug": "usually",
        "bad_init": "sometimes",
        "exploding_gradients": "often",
        "low_precision_update": "often",
        "rows_mixed": "sometimes",
        "eval_mode_bug": "rarely",
        "unknown": "usually",
    },
    sources=("karpathy_recipe", "cs231n_nn3"),
    background=0.01,
)
def probe_not_memorised(measured: Measured, memorised: bool) -> Evidence | None:
    """The batch was not memorised within the steps.

    Not this when: the probe's own loop ran out of time, not of steps.
    """
    if memorised or measured.curve is None or not measured.curve.losses:
        return None
    if was_cut_short(measured):
        raise CannotTell(f"time was up after {len(measured.curve.losses)} steps")
    last, steps = measured.curve.losses[-1], len(measured.curve.losses)
    return Evidence(
        f"after {steps} steps the loss is {figure(last)}, from {figure(measured.curve.losses[0])}",
        values={"first": measured.curve.losses[0], "last": last, "steps": steps},
    )


@probe_symptom(
    effects={
        "too_little_capacity": "usually",
        "label_noise": "sometimes",
        "wrong_loss": "sometimes",
        "unknown": "often",
        "double_softmax": "usually",
        "rows_mixed": "rarely",
        "weight_decay_too_high": "usually",
        "no_signal": "often",
        "params_not_training": "sometimes",
        "vanishing_gradients": "sometimes",
        "clip_too_tight": "sometimes",
    },
    background=0.01,
)
def probe_stuck(measured: Measured, curve: Curve, memorised: bool) -> Evidence | None:
    """The loss fell at first and then stopped well above the goal.

    Not this when: the steps are so small that its fall has hardly begun (`probe_update_small`).
    """
    losses = curve.losses
    if memorised or len(losses) < 20 or not losses[-1] < losses[0]:
        return None
    if still_falling(losses) or steps_are_tiny(measured):
        return None
    return Evidence(f"the loss stops at {figure(losses[-1])}, from {figure(losses[0])}")


@probe_symptom(
    effects={
        "no_signal": "often",
        "params_not_training": "sometimes",
        "rows_mixed": "rarely",
        "dead_units": "often",
        "vanishing_gradients": "often",
        "too_little_capacity": "sometimes",
    },
    background=0.005,
)
def probe_stuck_at_frequencies(
    measured: Measured, curve: Curve, reference: Reference, memorised: bool
) -> Evidence | None:
    """The loss comes to rest where a guess that knows only how often each label occurs would be."""
    require_unlike_units(measured, "give the same for all inputs")
    unigram = reference.unigram
    if unigram is None or memorised or not curve.losses or unigram < 0.1:
        return None
    last = curve.losses[-1]
    if abs(last - unigram) > 0.05 * unigram or curve.losses[0] < last:
        return None
    return Evidence(f"the loss ends at {figure(last)}; label frequencies alone give {figure(unigram)}")


@probe_symptom(
    effects={
        "lr_too_high": "usually",
        "lr_too_low": "usually",
        "missing_zero_grad": "sometimes",
        "params_not_training": "sometimes",
        "clip_too_tight": "usually",
        "weight_decay_too_high": "usually",
        "lr_schedule_bug": "usually",
        "wrong_loss": "sometimes",
        "eval_mode_bug": "rarely",
        "low_precision_update": "sometimes",
        "unknown": "rarely",
    },
    background=0.002,
)
def probe_own_optimizer_learns(contrast: Curve) -> Evidence | None:
    """The same model and loss memorise the batch with the probe's own optimizer: the fault is in the user's step."""
    if not contrast.memorised:
        return None
    rate = f" at a learning rate of {figure(contrast.learning_rate)}" if contrast.learning_rate else ""
    return Evidence(f"the probe's own AdamW memorises the batch in {len(contrast.losses)} steps{rate}")


MIN_SHARE_OF_WAY_LEFT = 0.25
"""Share of the way to the goal that a failed run has left. Chosen: a run that needs some steps more does not count."""


@probe_symptom(
    effects={
        "bad_init": "sometimes",
        "dead_units": "often",
        "vanishing_gradients": "sometimes",
        "too_little_capacity": "sometimes",
    },
    sources=("dodge_2020",),
    background=0.002,
)
def probe_seed_decides(seeds: Seeds, initial_loss: float, goal: float) -> Evidence | None:
    """Whether the batch is memorised hangs on the seed of the initial weights."""
    if seeds.fixed:
        raise CannotTell("the probed code sets its seed itself")
    runs = [run for run in seeds.runs if run.ended != "time"]
    if len(runs) < 2:
        raise CannotTell("there was no time for other seeds")
    far = goal + MIN_SHARE_OF_WAY_LEFT * (initial_loss - goal)
    done = [run for run in runs if run.ended == "goal"]
    failed = [run for run in runs if run.final_loss is None or not run.final_loss <= far]
    if not done or not failed or not math.isfinite(far):
        return None
    ends = ", ".join(f"seed {run.seed} ends at {figure(run.final_loss or math.nan)}" for run in runs)
    return Evidence(
        f"{len(done)} of {len(runs)} seeds memorise the batch: {ends}",
        values={"memorised": len(done), "seeds": len(runs)},
    )


@probe_symptom(effects={"fp16_overflow": "always"})
def probe_low_precision_only(measured: Measured, first_nonfinite: Operation) -> Evidence | None:
    """A non-finite value in half precision that is not there in 32 bits."""
    if not low_precision_alone(measured):
        return None
    bad = first_nonfinite
    return Evidence(
        f"{bad.op} in {bad.module or 'the loss'} gives a non-finite {bad.dtype or 'value'}; in 32 bits all is finite"
    )
