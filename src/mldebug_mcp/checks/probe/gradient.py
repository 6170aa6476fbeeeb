"""Does a finite gradient of usual size reach every parameter?"""

from __future__ import annotations

import math

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe.measures import low_precision_alone
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import Measured


@probe_symptom(
    needs=("watched",),
    effects={"missing_zero_grad": "always"},
)
def probe_gradient_accumulates(measured: Measured) -> Evidence | None:
    """The gradient that the optimizer uses contains that of the step before."""
    assert measured.watched is not None
    left = measured.watched.leftover_gradient
    if left is None:
        raise CannotTell("fewer than two optimizer steps were seen")
    if left < 0.5 or (measured.parameters is not None and measured.parameters.not_in_optimizer_share == 1):
        return None
    return Evidence(f"each step's gradient still holds {left:.0%} of the step before", values={"leftover": left})


@probe_symptom(
    needs=("watched",),
    effects={"clip_too_tight": "always"},
    background=0.002,
)
def probe_gradient_clipped(measured: Measured) -> Evidence | None:
    """The optimizer sees a small part of the gradient that backward gave, and the batch is not memorised."""
    assert measured.watched is not None
    factor = measured.watched.clip_factor
    if factor is None:
        raise CannotTell("no optimizer step with a gradient was seen")
    if measured.memorised or factor > 0.02:
        return None
    return Evidence(
        f"the gradient is scaled by {figure(factor)} before the optimizer uses it", values={"factor": factor}
    )


@probe_symptom(
    needs=("watched",),
    effects={"params_not_training": "rarely"},
    background=0.0001,
)
def probe_gradient_discarded(measured: Measured) -> Evidence | None:
    """The optimizer finds none of the gradient that backward gave: it was cleared in between."""
    assert measured.watched is not None
    steps = measured.watched.steps_with_fresh_gradient
    if not steps or measured.watched.steps_without_it < steps:
        return None
    return Evidence(f"backward gives a gradient at each of {steps} steps, and the optimizer finds none of it")


# The first gradient is thousands of times as large as usual.


PROBE_GRADIENT_EXPLODING_LARGE = 1000.0
"""Chosen: norms of 0.1 to 10 are usual at the start, whatever the width."""


@probe_symptom(
    needs=("gradients",),
    effects={"exploding_gradients": "usually", "bad_init": "sometimes"},
    background=0.005,
)
def probe_gradient_exploding(measured: Measured) -> Evidence | None:
    """The first gradient is thousands of times as large as usual."""
    assert measured.gradients is not None
    if measured.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    if measured.gradients.norm < PROBE_GRADIENT_EXPLODING_LARGE * max(1.0, abs(measured.initial_loss or 0.0)):
        return None
    return Evidence(
        f"the norm of the first gradient is {figure(measured.gradients.norm)}", values={"norm": measured.gradients.norm}
    )


# A large share of the trainable parameters gets no gradient at all.


PROBE_GRADIENT_MISSING_LARGE = 0.2
"""Chosen: an unused pooler or head stays below."""


@probe_symptom(
    needs=("gradients",),
    effects={"params_not_training": "sometimes"},
)
def probe_gradient_missing(measured: Measured) -> Evidence | None:
    """A large share of the trainable parameters gets no gradient at all."""
    assert measured.gradients is not None
    # What moved in training got a gradient in another pass, as layers do that are left out at random.
    share = min(measured.gradients.none_share, measured.movement.still_share if measured.movement is not None else 1.0)
    if share < PROBE_GRADIENT_MISSING_LARGE:
        return None
    names = ", ".join(measured.gradients.none[:3])
    return Evidence(
        f"{share:.0%} of the trainable elements get no gradient: {names}",
        values={"share": share},
    )


@probe_symptom(
    needs=("gradients",),
    effects={"invalid_math": "often", "fp16_overflow": "often"},
)
def probe_gradient_nonfinite(measured: Measured) -> Evidence | None:
    """Gradients of the first pass are NaN or infinite though the loss is finite."""
    assert measured.gradients is not None
    if not measured.gradients.nonfinite_count:
        return None
    names = ", ".join(measured.gradients.nonfinite[:3])
    return Evidence(
        f"{measured.gradients.nonfinite_count} of {measured.gradients.trainable} gradients are not finite: {names}"
    )


# Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised.


LEAST_SHARE = 0.2
"""Of the trainable elements. Chosen: eight sigmoid layers, which stop learning, have it in their first three."""


@probe_symptom(
    needs=("gradients",),
    effects={"vanishing_gradients": "often", "bad_init": "rarely"},
    background=0.002,
)
def probe_gradient_vanishing(measured: Measured) -> Evidence | None:
    """Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised."""
    assert measured.gradients is not None
    if measured.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    share = measured.gradients.tiny_share + measured.gradients.zero_share * (measured.gradients.zero_share < 1)
    if measured.gradients.tiny_share == 0 or share < LEAST_SHARE or measured.memorised:
        return None
    return Evidence(
        f"{share:.0%} of the trainable elements have tiny gradients: {', '.join(measured.gradients.tiny[:3])}"
    )


@probe_symptom(
    needs=("gradients",),
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
def probe_gradient_zero(measured: Measured) -> Evidence | None:
    """Half of the trainable elements have a gradient of exactly zero, at the start and after training.

    Not this when: a layer begins at zero on purpose, and gets a gradient once its neighbour has moved.
    """
    assert measured.gradients is not None
    if measured.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    after = measured.gradients_after or measured.gradients
    share = min(measured.gradients.zero_share, after.zero_share)
    if share < 0.5 or measured.memorised:
        return None
    return Evidence(
        f"{share:.0%} of the trainable elements have a gradient of zero: {', '.join(measured.gradients.zero[:3])}"
    )


@probe_symptom(
    needs=("loss_has_graph",),
    effects={"params_not_training": "sometimes"},
)
def probe_graph_detached(measured: Measured) -> Evidence | None:
    """The loss does not depend on any trainable parameter: its graph is cut, or all are frozen."""
    return None if measured.loss_has_graph else Evidence("the loss has no gradient function")


@probe_symptom(
    needs=("first_nonfinite",),
    effects={"invalid_math": "always"},
)
def probe_nonfinite_operation(measured: Measured) -> Evidence | None:
    """An operation makes NaN or infinity out of finite values at the very first pass, in full precision.

    Not this when: the precision is low, the batch or the parameters hold it already, or no label is trained on.
    """
    assert measured.first_nonfinite is not None
    bad = measured.first_nonfinite
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
