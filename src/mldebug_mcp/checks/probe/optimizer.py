"""Does the optimizer step, on all parameters, and with updates of usual size?"""

from __future__ import annotations

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe.measures import steps_are_tiny
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import Curve, Measured, Movement, Parameters, Watched

# The learning rate is far below the range in which anything is learnt, and the batch is not memorised.


TINY = 3e-6
"""Chosen: full fine-tuning of large models goes down to 5e-6."""


@probe_symptom(
    effects={"lr_too_low": "sometimes"},
    background=0.005,
)
def probe_learning_rate_tiny(measured: Measured, parameters: Parameters) -> Evidence | None:
    """The learning rate is far below the range in which anything is learnt, and the batch is not memorised."""
    rates = _rates(measured, parameters)
    if measured.memorised or not rates or not 0 < max(rates) < TINY:
        return None
    return Evidence(f"the largest learning rate is {figure(max(rates))}")


@probe_symptom(
    effects={"lr_too_low": "sometimes", "lr_schedule_bug": "rarely"},
)
def probe_learning_rate_zero(measured: Measured, parameters: Parameters) -> Evidence | None:
    """The optimizer's learning rate is zero."""
    rates = _rates(measured, parameters)
    return Evidence("the learning rate is 0 in every group") if rates and max(rates) == 0 else None


@probe_symptom(
    effects={"lr_schedule_bug": "often"},
    background=0.0005,
)
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
    rates = watched or parameters.learning_rates
    if rates is None:
        raise CannotTell("the optimizer is the probe's own")
    return rates


# Updates are smaller than the precision of the weights.


MAX_SHARE_ROUNDED_AWAY = 0.5
"""Share of the 16-bit elements with a gradient that a step may leave as they are. Chosen: steps of 1e-3 of a weight
move most of them. bfloat16 tells numbers apart that differ by 4e-3, and rounds half of the smaller steps up."""


@probe_symptom(
    effects={"low_precision_update": "usually", "lr_too_low": "rarely"},
    background=0.001,
)
def probe_update_rounded_away(measured: Measured, watched: Watched) -> Evidence | None:
    """Weights are kept in 16 bits, and a step leaves most of those that have a gradient exactly as they were.

    Not this when: the batch is memorised; weights are kept in 32 bits.
    """
    share = watched.rounded_away
    if share is None:
        raise CannotTell("no weight of 16 bits was stepped")
    if share <= MAX_SHARE_ROUNDED_AWAY or measured.memorised:
        return None
    return Evidence(
        f"a step leaves {share:.0%} of the 16-bit weights that have a gradient exactly as they were",
        values={"share": share},
    )


@probe_symptom(
    effects={"params_not_training": "sometimes"},
)
def probe_optimizer_incomplete(measured: Measured, parameters: Parameters) -> Evidence | None:
    """Parameters that get a gradient are in no group of the optimizer.

    Not this when: the batch is memorised all the same, as where a head alone is meant to be trained.
    """
    share = parameters.not_in_optimizer_share
    if share is None:
        raise CannotTell("the optimizer is the probe's own")
    if not share or (share < 0.9 and measured.memorised):
        return None
    return Evidence(
        f"{share:.0%} of the trainable elements are in no optimizer group: {', '.join(parameters.not_in_optimizer[:3])}"
    )


@probe_symptom(
    effects={"params_not_training": "sometimes"},
    background=0.000002,
)
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


@probe_symptom(
    effects={"params_not_training": "sometimes"},
)
def probe_optimizer_never_steps(watched: Watched, movement: Movement) -> Evidence | None:
    """The user's step computes a loss but never calls the optimizer's step."""
    if watched.optimizer_steps or movement.still_share < 1:
        return None
    return Evidence(f"no optimizer step in {watched.steps} calls of train_step")


# The user's first step changes the weights by a large part of their size.


LARGE = 0.2
"""Of the weights that a step changes them by. Chosen: two hundred times the 1e-3 that cs231n_nn3 gives."""


@probe_symptom(
    needs=("watched",),
    effects={"lr_too_high": "usually", "exploding_gradients": "sometimes"},
    sources=("cs231n_nn3",),
    background=0.01,
)
def probe_update_large(measured: Measured, update_ratio: float) -> Evidence | None:
    """The user's first step changes the weights by a large part of their size."""
    if update_ratio < LARGE or measured.memorised:
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


@probe_symptom(
    effects={"weight_decay_too_high": "always"},
    background=0.002,
)
def probe_weight_decay_large(measured: Measured, parameters: Parameters) -> Evidence | None:
    """Weight decay takes a visible part of the weights at each step, and the batch is not memorised."""
    watched = measured.watched.decay_per_step if measured.watched is not None else None
    share = parameters.decay_per_step if watched is None else watched
    if share is None:
        raise CannotTell("the optimizer is the probe's own")
    if measured.memorised or share < 0.005:
        return None
    return Evidence(f"weight decay takes {share:.1%} of the weights at each step", values={"share": share})
