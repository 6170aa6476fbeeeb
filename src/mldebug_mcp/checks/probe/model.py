"""Are the parameters trained, finite and of usual size, and do units and modes behave?"""

from __future__ import annotations

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe.measures import is_random
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import Dependence, Init, Measured, Movement, Operation, Outcome, Parameters


@probe_symptom(
    effects={"params_not_training": "sometimes"},
    background=0.0005,
)
def probe_parameters_frozen(measured: Measured, parameters: Parameters) -> Evidence | None:
    """Most parameters do not require a gradient, and the batch is not memorised.

    Not this when: the others alone memorise the batch with the probe's own optimizer.
    """
    share = parameters.frozen_share
    if share < 0.5 or measured.memorised or (measured.contrast is not None and measured.contrast.memorised):
        return None
    return Evidence(f"{share:.0%} of the parameters do not require a gradient: {', '.join(parameters.frozen[:3])}")


@probe_symptom(
    effects={"bad_init": "sometimes", "hardware_fault": "rarely"},
)
def probe_parameters_nonfinite(parameters: Parameters) -> Evidence | None:
    """Parameters are NaN or infinite before the first step."""
    if not parameters.nonfinite_at_start:
        return None
    return Evidence(f"not finite before training: {', '.join(parameters.nonfinite_at_start[:3])}")


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
    if measured.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    if movement.still_share < 0.5 or measured.memorised:
        return None
    return Evidence(
        f"{movement.still_share:.0%} of the trainable elements did not move: {', '.join(movement.still[:3])}"
    )


@probe_symptom(
    effects={"params_not_training": "sometimes"},
)
def probe_parameters_unregistered(unregistered: list[str]) -> Evidence | None:
    """Parameters that the pass uses stand in a plain list or dict, where `parameters()` does not find them."""
    if not unregistered:
        return None
    return Evidence(f"not registered with the model: {', '.join(unregistered[:4])}")


@probe_symptom(
    effects={"params_not_training": "rarely"},
    background=0.0001,
)
def probe_layers_made_in_call(measured: Measured, made_in_call: list[str]) -> Evidence | None:
    """Layers are made anew in each call of the loss, so that no optimizer holds their weights.

    Not this when: the batch is memorised, as where the new layers begin as the identity.
    """
    if not made_in_call or measured.memorised:
        return None
    return Evidence(f"each call makes new layers, whose weights no optimizer holds: {', '.join(made_in_call)}")


# A weight matrix begins with a deviation far above what its width asks for.


LARGE = 8.0
"""Chosen: usual schemes lie within a factor of 3 of sqrt(2 / (5 fan_in))."""


@probe_symptom(
    effects={"bad_init": "sometimes"},
    sources=("bekman_mle",),
    background=0.003,
)
def probe_weights_large(measured: Measured, init: Init) -> Evidence | None:
    """A weight matrix begins with a deviation far above what its width asks for."""
    if measured.alike_units:
        raise CannotTell("units with the same weights have no scale")
    worst = init.largest[0] if init.largest else None
    if worst is None or worst.factor < LARGE:
        return None
    return Evidence(
        f"{worst.name} begins with a deviation of {figure(worst.std)}; its width asks for {figure(worst.usual_init)}",
        values={"std": worst.std, "usual": worst.usual_init, "factor": worst.factor},
    )


@probe_symptom(
    effects={"bad_init": "sometimes"},
    background=0.0001,
)
def probe_units_alike(measured: Measured, alike_units: list[str]) -> Evidence | None:
    """All units of a layer have the same weights, after training too: nothing tells them apart.

    Not this when: the batch is memorised, as where a layer that begins at zero is not needed.
    """
    if not alike_units or measured.memorised or (measured.movement is not None and measured.movement.still_share == 1):
        return None
    return Evidence(f"all units have the same weights after training: {', '.join(alike_units[:3])}")


# Most units of a rectifier give zero for every row.


DEAD = 0.9
"""Chosen: a small batch leaves up to half of the units of a sound layer at zero."""


@probe_symptom(
    effects={"dead_units": "usually"},
)
def probe_units_dead(measured: Measured, activations: list[Operation]) -> Evidence | None:
    """Most units of a rectifier give zero for every row."""
    dead = [
        activation for activation in activations if activation.op.startswith("relu") and (activation.share or 0) > DEAD
    ]
    if not dead or measured.memorised:
        return None
    worst = max(dead, key=lambda operation: operation.share or 0)
    return Evidence(
        f"{worst.share:.0%} of the units of {worst.op} in {worst.module or 'the model'} are zero for all rows"
    )


# Most outputs of the squashing activations lie where their slope is nearly zero.


SATURATED = 0.8
"""Chosen: a tanh of unit-variance inputs saturates on under 1 %."""


@probe_symptom(
    effects={"vanishing_gradients": "usually", "bad_init": "rarely"},
    background=0.001,
)
def probe_activations_saturated(measured: Measured, activations: list[Operation]) -> Evidence | None:
    """Most outputs of the squashing activations lie where their slope is nearly zero."""
    squashing = [
        activation
        for activation in activations
        if activation.op.startswith(("tanh", "sigmoid")) and activation.share is not None
    ]
    full = [operation for operation in squashing if (operation.share or 0) > SATURATED]
    if not full or len(full) * 2 < len(squashing) or measured.memorised:
        return None
    worst = max(full, key=lambda operation: operation.share or 0)
    return Evidence(f"{worst.share:.0%} of the outputs of {worst.op} in {worst.module or 'the model'} are saturated")


@probe_symptom(
    effects={"eval_mode_bug": "sometimes"},
)
def probe_batch_statistics(dependence: Dependence) -> Evidence | None:
    """BatchNorm uses the statistics of the batch in evaluation mode."""
    if not dependence.batch_statistics:
        return None
    return Evidence(f"batch statistics are used in evaluation mode: {', '.join(dependence.batch_statistics[:3])}")


@probe_symptom(
    effects={"eval_mode_bug": "sometimes"},
)
def probe_dropout_in_evaluation(dependence: Dependence) -> Evidence | None:
    """Dropout is active in evaluation mode."""
    if not dependence.dropout:
        return None
    return Evidence(f"dropout is active in evaluation mode: {', '.join(dependence.dropout[:3])}")


@probe_symptom(
    effects={"eval_mode_bug": "often"},
    background=0.002,
)
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


@probe_symptom(
    effects={"eval_mode_bug": "sometimes"},
)
def probe_trains_in_evaluation_mode(measured: Measured, in_training_mode: bool) -> Evidence | None:
    """The model is trained in evaluation mode though it has dropout or BatchNorm."""
    if in_training_mode or not measured.mode_modules:
        return None
    return Evidence(f"the training pass runs in evaluation mode; the model has {', '.join(measured.mode_modules[:3])}")
