"""Does a finite gradient of usual size reach every parameter?"""

from __future__ import annotations

import math

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe.measures import low_precision_alone
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import Measured

# The gradient that the optimizer uses contains that of the step before.


@probe_symptom(
    needs=("watched",),
    effects={"missing_zero_grad": "always"},
)
def probe_gradient_accumulates(seen: Measured) -> Evidence | None:
    """The gradient that the optimizer uses contains that of the step before."""
    assert seen.watched is not None
    left = seen.watched.leftover_gradient
    if left is None:
        raise CannotTell("fewer than two optimizer steps were seen")
    if left < 0.5 or (seen.parameters is not None and seen.parameters.not_in_optimizer_share == 1):
        return None
    return Evidence(f"each step's gradient still holds {left:.0%} of the step before", values={"leftover": left})


# The optimizer sees a small part of the gradient that backward gave, and the batch is not memorised.


@probe_symptom(
    needs=("watched",),
    effects={"clip_too_tight": "always"},
    background=0.002,
)
def probe_gradient_clipped(seen: Measured) -> Evidence | None:
    """The optimizer sees a small part of the gradient that backward gave, and the batch is not memorised."""
    assert seen.watched is not None
    factor = seen.watched.clip_factor
    if factor is None:
        raise CannotTell("no optimizer step with a gradient was seen")
    if seen.memorised or factor > 0.02:
        return None
    return Evidence(
        f"the gradient is scaled by {figure(factor)} before the optimizer uses it", values={"factor": factor}
    )


# The optimizer finds none of the gradient that backward gave.


@probe_symptom(
    needs=("watched",),
    effects={"params_not_training": "rarely"},
    background=0.0001,
)
def probe_gradient_discarded(seen: Measured) -> Evidence | None:
    """The optimizer finds none of the gradient that backward gave: it was cleared in between."""
    assert seen.watched is not None
    steps = seen.watched.steps_with_fresh_gradient
    if not steps or seen.watched.steps_without_it < steps:
        return None
    return Evidence(f"backward gives a gradient at each of {steps} steps, and the optimizer finds none of it")


# The first gradient is thousands of times as large as usual.


PROBE_GRADIENT_EXPLODING_LARGE = 1000.0
"""Chosen: norms of 0.1 to 10 are usual at the start, whatever the width."""


@probe_symptom(
    needs=("gradients",),
    effects={"exploding_gradients": "usually", "bad_init": "usually"},
    background=0.005,
)
def probe_gradient_exploding(seen: Measured) -> Evidence | None:
    """The first gradient is thousands of times as large as usual."""
    assert seen.gradients is not None
    if seen.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    if seen.gradients.norm < PROBE_GRADIENT_EXPLODING_LARGE * max(1.0, abs(seen.initial_loss or 0.0)):
        return None
    return Evidence(
        f"the norm of the first gradient is {figure(seen.gradients.norm)}", values={"norm": seen.gradients.norm}
    )


# A large share of the trainable parameters gets no gradient at all.


PROBE_GRADIENT_MISSING_LARGE = 0.2
"""Chosen: an unused pooler or head stays below."""


@probe_symptom(
    needs=("gradients",),
    effects={"params_not_training": "sometimes"},
)
def probe_gradient_missing(seen: Measured) -> Evidence | None:
    """A large share of the trainable parameters gets no gradient at all."""
    assert seen.gradients is not None
    # What moved in training got a gradient in another pass, as layers do that are left out at random.
    share = min(seen.gradients.none_share, seen.movement.still_share if seen.movement is not None else 1.0)
    if share < PROBE_GRADIENT_MISSING_LARGE:
        return None
    names = ", ".join(seen.gradients.none[:3])
    return Evidence(
        f"{share:.0%} of the trainable elements get no gradient: {names}",
        values={"share": share},
    )


# Gradients of the first pass are NaN or infinite though the loss is finite.


@probe_symptom(
    needs=("gradients",),
    effects={"invalid_math": "often", "fp16_overflow": "often"},
)
def probe_gradient_nonfinite(seen: Measured) -> Evidence | None:
    """Gradients of the first pass are NaN or infinite though the loss is finite."""
    assert seen.gradients is not None
    if not seen.gradients.nonfinite_count:
        return None
    names = ", ".join(seen.gradients.nonfinite[:3])
    return Evidence(f"{seen.gradients.nonfinite_count} of {seen.gradients.trainable} gradients are not finite: {names}")


# Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised.


LEAST_SHARE = 0.2
"""Of the trainable elements. Chosen: eight sigmoid layers, which stop learning, have it in their first three."""


@probe_symptom(
    needs=("gradients",),
    effects={"vanishing_gradients": "often", "bad_init": "rarely"},
    background=0.002,
)
def probe_gradient_vanishing(seen: Measured) -> Evidence | None:
    """Gradients of many parameters lie six orders of magnitude below the largest, and the batch is not memorised."""
    assert seen.gradients is not None
    if seen.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    share = seen.gradients.tiny_share + seen.gradients.zero_share * (seen.gradients.zero_share < 1)
    if seen.gradients.tiny_share == 0 or share < LEAST_SHARE or seen.memorised:
        return None
    return Evidence(f"{share:.0%} of the trainable elements have tiny gradients: {', '.join(seen.gradients.tiny[:3])}")


# Half of the trainable elements have a gradient of exactly zero, at the start and after training.


@probe_symptom(
    needs=("gradients",),
    effects={
        "dead_units": "usually",
        "vanishing_gradients": "rarely",
        "all_labels_masked": "often",
        "params_not_training": "sometimes",
        "wrong_loss": "rarely",
        "double_softmax": "rarely",
    },
    background=0.002,
)
def probe_gradient_zero(seen: Measured) -> Evidence | None:
    """Half of the trainable elements have a gradient of exactly zero, at the start and after training.

    Not this when: a layer begins at zero on purpose, and gets a gradient once its neighbour has moved.
    """
    assert seen.gradients is not None
    if seen.alike_units:
        raise CannotTell("units with the same weights cancel each other's gradients")
    after = seen.gradients_after or seen.gradients
    share = min(seen.gradients.zero_share, after.zero_share)
    if share < 0.5 or seen.memorised:
        return None
    return Evidence(
        f"{share:.0%} of the trainable elements have a gradient of zero: {', '.join(seen.gradients.zero[:3])}"
    )


# The loss does not depend on any trainable parameter: its graph is cut, or all are frozen.


@probe_symptom(
    needs=("loss_has_graph",),
    effects={"params_not_training": "sometimes"},
)
def probe_graph_detached(seen: Measured) -> Evidence | None:
    """The loss does not depend on any trainable parameter: its graph is cut, or all are frozen."""
    return None if seen.loss_has_graph else Evidence("the loss has no gradient function")


# An operation makes NaN or infinity out of finite values at the very first pass, in full precision.


@probe_symptom(
    needs=("first_nonfinite",),
    effects={"invalid_math": "always"},
)
def probe_nonfinite_operation(seen: Measured) -> Evidence | None:
    """An operation makes NaN or infinity out of finite values at the very first pass, in full precision.

    Not this when: the precision is low, the batch or the parameters hold it already, or no label is trained on.
    """
    assert seen.first_nonfinite is not None
    bad = seen.first_nonfinite
    if seen.trained_labels == 0 or not seen.inputs_finite or (seen.parameters and seen.parameters.nonfinite_at_start):
        raise CannotTell("the inputs, parameters or labels leave no finite result")
    if low_precision_alone(seen) or (
        seen.curve is not None and math.isfinite(seen.initial_loss or 0.0) and bad.direction == "forward"
    ):
        return None
    where = " ".join(
        filter(None, (bad.op, f"in {bad.module}" if bad.module else "", f"({bad.where})" if bad.where else ""))
    )
    return Evidence(f"{bad.direction}: {where} gives a non-finite value from finite ones")
