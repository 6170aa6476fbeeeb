"""Does a finite gradient of usual size reach every parameter?"""

from __future__ import annotations

import math

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe.measures import low_precision_alone
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import Gradients, Measured, Operation, Watched


@probe_symptom(
    effects={"missing_zero_grad": "always"},
)
def probe_gradient_accumulates(measured: Measured, watched: Watched) -> Evidence | None:
    """The gradient that the optimizer uses contains that of the step before."""
    left = watched.leftover_gradient
    if left is None:
        raise CannotTell("fewer than two optimizer steps were seen")
    if left < 0.5 or (measured.parameters is not None and measured.parameters.not_in_optimizer_share == 1):
        return None
    return Evidence(f"each step's gradient still holds {left:.0%} of the step before", values={"leftover": left})


@probe_symptom(
    effects={"clip_too_tight": "always"},
    background=0.002,
)
def probe_gradient_clipped(measured: Measured, watched: Watched) -> Evidence | None:
    """The optimizer sees a small part of the gradient that backward gave, and the batch is not memorised."""
    factor = watched.clip_factor
    if factor is None:
        raise CannotTell("no optimizer step with a gradient was seen")
    if measured.memorised or factor > 0.02:
        return None
    return Evidence(
        f"the gradient is scaled by {figure(factor)} before the optimizer uses it", values={"factor": factor}
    )


@probe_symptom(
    effects={"params_not_training": "rarely"},
    background=0.0001,
)
def probe_gradient_discarded(watched: Watched) -> Evidence | None:
    """The optimizer finds none of the gradient that backward gave: it was cleared in between."""
    steps = watched.steps_with_fresh_gradient
    if not steps or watched.steps_without_it < steps:
        return None
    return Evidence(f"backward gives a gradient at each of {steps} steps, and the optimizer finds none of it")


# The first gradient is thousands of times as large as usual.


PROBE_GRADIENT_EXPLODING_LARGE = 1000.0
"""Chosen: norms of 0.1 to 10 are usual at the start, whatever the width."""


@probe_symptom(
    effects={"exploding_gradients": "usually", "bad_init": "sometimes"},
    background=0.005,
)
def probe_gradient_exploding(measured: Measured, gradients: Gradients) -> Evidence | None:
    """The first gradient is thousands of times as large as usual."""
    if measured.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    if gradients.norm < PROBE_GRADIENT_EXPLODING_LARGE * max(1.0, abs(measured.initial_loss or 0.0)):
        return None
    return Evidence(f"the norm of the first gradient is {figure(gradients.norm)}", values={"norm": gradients.norm})


# A large share of the trainable parameters gets no gradient at all.


PROBE_GRADIENT_MISSING_LARGE = 0.2
"""Chosen: an unused pooler or head stays below."""


@probe_symptom(
    effects={"params_not_training": "sometimes"},
)
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


@probe_symptom(
    effects={"invalid_math": "often", "fp16_overflow": "often"},
)
def probe_gradient_nonfinite(gradients: Gradients) -> Evidence | None:
    """Gradients of the first pass are NaN or infinite though the loss is finite."""
    if not gradients.nonfinite_count:
        return None
    names = ", ".join(gradients.nonfinite[:3])
    return Evidence(f"{gradients.nonfinite_count} of {gradients.trainable} gradients are not finite: {names}")


# Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised.


LEAST_SHARE = 0.2
"""Of the trainable elements. Chosen: eight sigmoid layers, which stop learning, have it in their first three."""


@probe_symptom(
    effects={"vanishing_gradients": "often", "bad_init": "rarely"},
    background=0.002,
)
def probe_gradient_vanishing(measured: Measured, gradients: Gradients) -> Evidence | None:
    """Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised."""
    if measured.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
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
    if measured.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    after = measured.gradients_after or gradients
    share = min(gradients.zero_share, after.zero_share)
    if share < 0.5 or measured.memorised:
        return None
    return Evidence(f"{share:.0%} of the trainable elements have a gradient of zero: {', '.join(gradients.zero[:3])}")


@probe_symptom(
    effects={"params_not_training": "sometimes"},
)
def probe_graph_detached(loss_has_graph: bool) -> Evidence | None:
    """The loss does not depend on any trainable parameter: its graph is cut, or all are frozen."""
    return None if loss_has_graph else Evidence("the loss has no gradient function")


@probe_symptom(
    effects={"invalid_math": "always"},
)
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
