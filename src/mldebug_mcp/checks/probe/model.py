"""Are parameters, gradients and updates there, finite and of usual size, and do units and modes behave?"""

from __future__ import annotations

import math

from mldebug_mcp.checks.check import CannotTell, Evidence, known, probe_symptom
from mldebug_mcp.checks.probe import is_random, listed, low_precision_alone, require_unlike_units, steps_are_tiny
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import (
    Curve,
    Dependence,
    Gradients,
    Init,
    Measured,
    Movement,
    Operation,
    Outcome,
    Parameters,
    Watched,
)


@probe_symptom(effects={"params_not_training": "sometimes"}, background=0.0005)
def probe_parameters_frozen(measured: Measured, parameters: Parameters) -> Evidence | None:
    """Most parameters do not require a gradient, and the batch is not memorised.

    Not this when: the others alone memorise the batch with the probe's own optimizer.
    """
    share = parameters.frozen_share
    if share < 0.5 or measured.memorised or (measured.contrast is not None and measured.contrast.memorised):
        return None
    return Evidence(f"{share:.0%} of the parameters do not require a gradient: {', '.join(parameters.frozen[:3])}")


@probe_symptom(effects={"bad_init": "sometimes", "hardware_fault": "rarely"})
def probe_parameters_nonfinite(parameters: Parameters) -> Evidence | None:
    """Parameters are NaN or infinite before the first step."""
    return listed("not finite before training", parameters.nonfinite_at_start)


@probe_symptom(
    effects={
        "no_preference_signal": "often",
        "all_labels_masked": "often",
        "params_not_training": "often",
        "lr_too_low": "sometimes",
        "lr_schedule_bug": "rarely",
        "dead_units": "often",
        "wrong_loss": "rarely",
        "vanishing_gradients": "rarely",
    },
    background=0.002,
)
def probe_parameters_still(measured: Measured, movement: Movement) -> Evidence | None:
    """Most trainable elements did not move at all, and the batch is not memorised."""
    require_unlike_units(measured, "cancel each other's gradients")
    if movement.still_share < 0.5 or measured.memorised:
        return None
    return Evidence(
        f"{movement.still_share:.0%} of the trainable elements did not move: {', '.join(movement.still[:3])}"
    )


@probe_symptom(effects={"params_not_training": "sometimes"})
def probe_parameters_unregistered(unregistered: list[str]) -> Evidence | None:
    """Parameters that the pass uses stand in a plain list or dict, where `parameters()` does not find them."""
    return listed("not registered with the model", unregistered, 4)


@probe_symptom(effects={"params_not_training": "rarely"}, background=0.0001)
def probe_layers_made_in_call(measured: Measured, made_in_call: list[str]) -> Evidence | None:
    """Layers are made anew in each call of the loss, so that no optimizer holds their weights.

    Not this when: the batch is memorised, as where the new layers begin as the identity.
    """
    if not made_in_call or measured.memorised:
        return None
    return Evidence(f"each call makes new layers, whose weights no optimizer holds: {', '.join(made_in_call)}")


MAX_USUAL_INIT_FACTOR = 8.0
"""Times the usual deviation of weights that is large. Chosen: usual schemes are within 3 times sqrt(2 / (5 fan_in))."""


@probe_symptom(effects={"bad_init": "sometimes"}, sources=("bekman_mle",), background=0.003)
def probe_weights_large(measured: Measured, init: Init) -> Evidence | None:
    """A weight matrix begins with a deviation far above what its width asks for."""
    require_unlike_units(measured, "have no scale")
    worst = init.largest[0] if init.largest else None
    if worst is None or worst.factor < MAX_USUAL_INIT_FACTOR:
        return None
    return Evidence(
        f"{worst.name} begins with a deviation of {figure(worst.std)}; its width asks for {figure(worst.usual_init)}",
        values={"std": worst.std, "usual": worst.usual_init, "factor": worst.factor},
    )


@probe_symptom(effects={"bad_init": "sometimes"}, background=0.0001)
def probe_units_alike(measured: Measured, alike_units: list[str]) -> Evidence | None:
    """All units of a layer have the same weights, after training too: nothing tells them apart.

    Not this when: the batch is memorised, as where a layer that begins at zero is not needed.
    """
    if measured.memorised or (measured.movement is not None and measured.movement.still_share == 1):
        return None
    return listed("all units have the same weights after training", alike_units)


MIN_DEAD_UNIT_SHARE = 0.9
"""Share of a rectifier's units that are zero. Chosen: a small batch leaves half of a healthy layer at zero."""


@probe_symptom(effects={"dead_units": "usually"})
def probe_units_dead(measured: Measured, activations: list[Operation]) -> Evidence | None:
    """Most units of a rectifier give zero for every row."""
    dead = [
        activation
        for activation in activations
        if activation.op.startswith("relu") and (activation.share or 0) > MIN_DEAD_UNIT_SHARE
    ]
    if not dead or measured.memorised:
        return None
    worst = max(dead, key=lambda operation: operation.share or 0)
    return Evidence(
        f"{worst.share:.0%} of the units of {worst.op} in {worst.module or 'the model'} are zero for all rows"
    )


MIN_SATURATED_SHARE = 0.8
"""Share of the outputs where a squashing activation is flat. Chosen: tanh of unit variance saturates on under 1 %."""


@probe_symptom(effects={"vanishing_gradients": "usually", "bad_init": "rarely"}, background=0.001)
def probe_activations_saturated(measured: Measured, activations: list[Operation]) -> Evidence | None:
    """Most outputs of the squashing activations lie where their slope is nearly zero."""
    squashing = [
        activation
        for activation in activations
        if activation.op.startswith(("tanh", "sigmoid")) and activation.share is not None
    ]
    full = [operation for operation in squashing if (operation.share or 0) > MIN_SATURATED_SHARE]
    if not full or len(full) * 2 < len(squashing) or measured.memorised:
        return None
    worst = max(full, key=lambda operation: operation.share or 0)
    return Evidence(f"{worst.share:.0%} of the outputs of {worst.op} in {worst.module or 'the model'} are saturated")


@probe_symptom(effects={"eval_mode_bug": "sometimes"})
def probe_batch_statistics(dependence: Dependence) -> Evidence | None:
    """BatchNorm uses the statistics of the batch in evaluation mode."""
    return listed("batch statistics are used in evaluation mode", dependence.batch_statistics)


@probe_symptom(effects={"eval_mode_bug": "sometimes"})
def probe_dropout_in_evaluation(dependence: Dependence) -> Evidence | None:
    """Dropout is active in evaluation mode."""
    return listed("dropout is active in evaluation mode", dependence.dropout)


@probe_symptom(effects={"eval_mode_bug": "often"}, background=0.002)
def probe_evaluation_differs(measured: Measured, outcome: Outcome) -> Evidence | None:
    """The batch is memorised in training mode and lost in evaluation mode.

    Not this when: BatchNorm's running statistics only lag; they are given time to settle before this is judged.
    """
    train, evaluation = outcome.train, outcome.evaluation
    if not measured.memorised:
        raise CannotTell("the batch was not memorised in training mode")
    if is_random(measured):
        raise CannotTell("each call draws its loss anew, in both modes")
    lost = evaluation.loss > 5 * max(train.loss, measured.goal or 0.0, 1e-3)
    if not lost or (train.accuracy is not None and (evaluation.accuracy or 0.0) > train.accuracy - 0.2):
        return None
    return Evidence(
        f"the loss is {figure(train.loss)} in training mode and {figure(evaluation.loss)} in evaluation mode"
    )


@probe_symptom(effects={"eval_mode_bug": "sometimes"})
def probe_trains_in_evaluation_mode(measured: Measured, in_training_mode: bool) -> Evidence | None:
    """The model is trained in evaluation mode though it has dropout or BatchNorm."""
    if in_training_mode or not measured.mode_modules:
        return None
    return Evidence(f"the training pass runs in evaluation mode; the model has {', '.join(measured.mode_modules[:3])}")


# Does a finite gradient of usual size reach every parameter?


@probe_symptom(effects={"missing_zero_grad": "always"})
def probe_gradient_accumulates(measured: Measured, watched: Watched) -> Evidence | None:
    """The gradient that the optimizer uses contains that of the step before."""
    left = known(watched.leftover_gradient, "fewer than two optimizer steps were seen")
    if left < 0.5 or (measured.parameters is not None and measured.parameters.not_in_optimizer_share == 1):
        return None
    return Evidence(f"each step's gradient still holds {left:.0%} of the step before", values={"leftover": left})


@probe_symptom(effects={"clip_too_tight": "always"}, background=0.002)
def probe_gradient_clipped(measured: Measured, watched: Watched) -> Evidence | None:
    """The optimizer sees a small part of the gradient that backward gave, and the batch is not memorised."""
    factor = known(watched.clip_factor, "no optimizer step with a gradient was seen")
    if measured.memorised or factor > 0.02:
        return None
    return Evidence(
        f"the gradient is scaled by {figure(factor)} before the optimizer uses it", values={"factor": factor}
    )


@probe_symptom(effects={"params_not_training": "rarely"}, background=0.0001)
def probe_gradient_discarded(watched: Watched) -> Evidence | None:
    """The optimizer finds none of the gradient that backward gave: it was cleared in between."""
    steps = watched.steps_with_fresh_gradient
    if not steps or watched.steps_without_it < steps:
        return None
    return Evidence(f"backward gives a gradient at each of {steps} steps, and the optimizer finds none of it")


PROBE_GRADIENT_EXPLODING_LARGE = 1000.0
"""Norm of the first gradient, in units of a loss above 1, that is far too large. Chosen: norms of 0.1 to 10 are usual
at the start, whatever the width."""


@probe_symptom(effects={"exploding_gradients": "usually", "bad_init": "sometimes"}, background=0.005)
def probe_gradient_exploding(measured: Measured, gradients: Gradients) -> Evidence | None:
    """The first gradient is thousands of times as large as usual."""
    require_unlike_units(measured, "cancel each other's gradients")
    if gradients.norm < PROBE_GRADIENT_EXPLODING_LARGE * max(1.0, abs(measured.initial_loss or 0.0)):
        return None
    return Evidence(f"the norm of the first gradient is {figure(gradients.norm)}", values={"norm": gradients.norm})


PROBE_GRADIENT_MISSING_LARGE = 0.2
"""Share of the trainable elements without a gradient. Chosen: an unused pooler or head stays below."""


@probe_symptom(effects={"params_not_training": "sometimes"})
def probe_gradient_missing(measured: Measured, gradients: Gradients) -> Evidence | None:
    """A large share of the trainable parameters gets no gradient at all."""
    # What moved in training got a gradient in another pass, as layers do that are left out at random.
    share = min(gradients.none_share, measured.movement.still_share if measured.movement is not None else 1.0)
    if share < PROBE_GRADIENT_MISSING_LARGE:
        return None
    names = ", ".join(gradients.none[:3])
    return Evidence(
        f"{share:.0%} of the trainable elements get no gradient: {names}",
        values={"share": share},
    )


@probe_symptom(effects={"invalid_math": "often", "fp16_overflow": "often"})
def probe_gradient_nonfinite(gradients: Gradients) -> Evidence | None:
    """Gradients of the first pass are NaN or infinite though the loss is finite."""
    if not gradients.nonfinite_count:
        return None
    names = ", ".join(gradients.nonfinite[:3])
    return Evidence(f"{gradients.nonfinite_count} of {gradients.trainable} gradients are not finite: {names}")


LEAST_SHARE = 0.2
"""Of the trainable elements. Chosen: eight sigmoid layers, which stop learning, have it in their first three."""


@probe_symptom(effects={"vanishing_gradients": "often", "bad_init": "rarely"}, background=0.002)
def probe_gradient_vanishing(measured: Measured, gradients: Gradients) -> Evidence | None:
    """Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised."""
    require_unlike_units(measured, "cancel each other's gradients")
    share = gradients.tiny_share + gradients.zero_share * (gradients.zero_share < 1)
    if gradients.tiny_share == 0 or share < LEAST_SHARE or measured.memorised:
        return None
    return Evidence(f"{share:.0%} of the trainable elements have tiny gradients: {', '.join(gradients.tiny[:3])}")


@probe_symptom(
    effects={
        "no_preference_signal": "often",
        "dead_units": "usually",
        "vanishing_gradients": "rarely",
        "all_labels_masked": "often",
        "params_not_training": "sometimes",
        "wrong_loss": "rarely",
        "double_softmax": "rarely",
    },
    background=0.002,
)
def probe_gradient_zero(measured: Measured, gradients: Gradients) -> Evidence | None:
    """Half of the trainable elements have a gradient of exactly zero, at the start and after training.

    Not this when: a layer begins at zero on purpose, and gets a gradient once its neighbour has moved.
    """
    require_unlike_units(measured, "cancel each other's gradients")
    after = measured.gradients_after or gradients
    share = min(gradients.zero_share, after.zero_share)
    if share < 0.5 or measured.memorised:
        return None
    return Evidence(f"{share:.0%} of the trainable elements have a gradient of zero: {', '.join(gradients.zero[:3])}")


@probe_symptom(effects={"params_not_training": "sometimes"})
def probe_graph_detached(loss_has_graph: bool) -> Evidence | None:
    """The loss does not depend on any trainable parameter: its graph is cut, or all are frozen."""
    return None if loss_has_graph else Evidence("the loss has no gradient function")


@probe_symptom(effects={"invalid_math": "always"})
def probe_nonfinite_operation(measured: Measured, first_nonfinite: Operation) -> Evidence | None:
    """An operation makes NaN or infinity out of finite values at the very first pass, in full precision.

    Not this when: the precision is low, the batch or the parameters hold it already, or no label is trained on.
    """
    bad = first_nonfinite
    if (
        measured.trained_labels == 0
        or not measured.inputs_finite
        or (measured.parameters and measured.parameters.nonfinite_at_start)
    ):
        raise CannotTell("the inputs, parameters or labels leave no finite result")
    if low_precision_alone(measured) or (
        measured.curve is not None and math.isfinite(measured.initial_loss or 0.0) and bad.direction == "forward"
    ):
        return None
    where = " ".join(
        filter(None, (bad.op, f"in {bad.module}" if bad.module else "", f"({bad.where})" if bad.where else ""))
    )
    return Evidence(f"{bad.direction}: {where} gives a non-finite value from finite ones")


# Does the optimizer step, on all parameters, and with updates of usual size?


MIN_USUAL_LEARNING_RATE = 3e-6
"""Learning rate below which nothing is learnt in a probe. Chosen: full fine-tuning goes down to 5e-6."""


@probe_symptom(effects={"lr_too_low": "sometimes"}, background=0.005)
def probe_learning_rate_tiny(measured: Measured, parameters: Parameters) -> Evidence | None:
    """The learning rate is far below the range in which anything is learnt, and the batch is not memorised."""
    rates = _rates(measured, parameters)
    if measured.memorised or not rates or not 0 < max(rates) < MIN_USUAL_LEARNING_RATE:
        return None
    return Evidence(f"the largest learning rate is {figure(max(rates))}")


@probe_symptom(effects={"lr_too_low": "sometimes", "lr_schedule_bug": "rarely"})
def probe_learning_rate_zero(measured: Measured, parameters: Parameters) -> Evidence | None:
    """The optimizer's learning rate is zero."""
    rates = _rates(measured, parameters)
    return Evidence("the learning rate is 0 in every group") if rates and max(rates) == 0 else None


@probe_symptom(effects={"lr_schedule_bug": "often"}, background=0.0005)
def probe_learning_rate_ends(measured: Measured, curve: Curve) -> Evidence | None:
    """A step of the user's brings the learning rate to next to nothing while steps are left, and the loss stays high.

    Not this when: the batch is memorised; the rate rises again; it is 0 from the first step on.
    """
    if measured.watched is None:
        raise CannotTell("the optimizer is the probe's own")
    if curve.rate_gone_at is None or measured.memorised:
        return None
    return Evidence(
        f"the learning rate is next to nothing after {curve.rate_gone_at} optimizer steps, of {len(curve.losses)} steps"
    )


def _rates(measured: Measured, parameters: Parameters) -> list[float]:
    """Return the learning rates of the user's optimizer, as stepped or as set; CannotTell if it is the probe's own."""
    watched = measured.watched.learning_rates if measured.watched else []
    return known(watched or parameters.learning_rates, "the optimizer is the probe's own")


# Updates are smaller than the precision of the weights.


MAX_SHARE_ROUNDED_AWAY = 0.5
"""Share of the 16-bit elements with a gradient that a step may leave as they are. Chosen: steps of 1e-3 of a weight
move most of them. bfloat16 tells numbers apart that differ by 4e-3, and rounds half of the smaller steps up."""


@probe_symptom(effects={"low_precision_update": "usually", "lr_too_low": "rarely"}, background=0.001)
def probe_update_rounded_away(measured: Measured, watched: Watched) -> Evidence | None:
    """Weights are kept in 16 bits, and a step leaves most of those that have a gradient exactly as they were.

    Not this when: the batch is memorised; weights are kept in 32 bits.
    """
    share = known(watched.rounded_away, "no weight of 16 bits was stepped")
    if share <= MAX_SHARE_ROUNDED_AWAY or measured.memorised:
        return None
    return Evidence(
        f"a step leaves {share:.0%} of the 16-bit weights that have a gradient exactly as they were",
        values={"share": share},
    )


@probe_symptom(effects={"params_not_training": "sometimes"})
def probe_optimizer_incomplete(measured: Measured, parameters: Parameters) -> Evidence | None:
    """Parameters that get a gradient are in no group of the optimizer.

    Not this when: the batch is memorised all the same, as where a head alone is meant to be trained.
    """
    share = known(parameters.not_in_optimizer_share, "the optimizer is the probe's own")
    if not share or (share < 0.9 and measured.memorised):
        return None
    return Evidence(
        f"{share:.0%} of the trainable elements are in no optimizer group: {', '.join(parameters.not_in_optimizer[:3])}"
    )


@probe_symptom(effects={"params_not_training": "sometimes"}, background=0.000002)
def probe_optimizer_stale(parameters: Parameters) -> Evidence | None:
    """The optimizer holds tensors that are no parameters of the model, and lacks some that are: it is older than they.

    Not this when: those tensors get a gradient, as the parameters of a loss do.
    """
    if parameters.not_in_optimizer_share is None:
        raise CannotTell("the optimizer is the probe's own")
    if not parameters.stale_in_optimizer or not parameters.not_in_optimizer:
        return None
    return Evidence(
        f"the optimizer holds {parameters.stale_in_optimizer} tensors that the model no longer has, and lacks "
        f"{', '.join(parameters.not_in_optimizer)}"
    )


@probe_symptom(effects={"params_not_training": "sometimes"})
def probe_optimizer_never_steps(watched: Watched, movement: Movement) -> Evidence | None:
    """The user's step computes a loss but never calls the optimizer's step."""
    if watched.optimizer_steps or movement.still_share < 1:
        return None
    return Evidence(f"no optimizer step in {watched.steps} calls of train_step")


LARGE_UPDATE = 0.2
"""Of the weights that a step changes them by. Chosen: two hundred times the 1e-3 that cs231n_nn3 gives."""


@probe_symptom(
    needs=("watched",),
    effects={"lr_too_high": "usually", "exploding_gradients": "sometimes"},
    sources=("cs231n_nn3",),
    background=0.01,
)
def probe_update_large(measured: Measured, update_ratio: float) -> Evidence | None:
    """The user's first step changes the weights by a large part of their size."""
    if update_ratio < LARGE_UPDATE or measured.memorised:
        return None
    return Evidence(f"a step changes the weights by {figure(update_ratio)} of their size; about 0.001 is usual")


@probe_symptom(
    needs=("watched",),
    effects={
        "lr_too_low": "usually",
        "lr_schedule_bug": "rarely",
        "all_labels_masked": "sometimes",
        "params_not_training": "sometimes",
        "clip_too_tight": "sometimes",
    },
    sources=("cs231n_nn3",),
    background=0.005,
)
def probe_update_small(measured: Measured, update_ratio: float) -> Evidence | None:
    """The user's first step changes the weights by less than a hundred-thousandth of their size."""
    if not steps_are_tiny(measured) or measured.memorised:
        return None
    return Evidence(f"a step changes the weights by {figure(update_ratio)} of their size; about 0.001 is usual")


@probe_symptom(effects={"weight_decay_too_high": "always"}, background=0.002)
def probe_weight_decay_large(measured: Measured, parameters: Parameters) -> Evidence | None:
    """Weight decay takes a visible part of the weights at each step, and the batch is not memorised."""
    watched = measured.watched.decay_per_step if measured.watched is not None else None
    share = known(parameters.decay_per_step if watched is None else watched, "the optimizer is the probe's own")
    if measured.memorised or share < 0.005:
        return None
    return Evidence(f"weight decay takes {share:.1%} of the weights at each step", values={"share": share})
