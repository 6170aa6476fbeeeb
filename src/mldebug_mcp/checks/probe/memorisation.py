"""Is the batch memorised, and what decides whether it is?"""

from __future__ import annotations

import math

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe.measures import low_precision_alone, steps_are_tiny, still_falling, was_cut_short
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import Curve, Measured, Operation, Reference, Seeds


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
    if measured.alike_units:
        raise CannotTell("units with the same weights give the same for all inputs")
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


# Whether the batch is memorised hangs on the seed of the initial weights.


MIN_SHARE_OF_WAY_LEFT = 0.25
"""Share of the way from the first loss to the goal that a failed run has left. Chosen: a run that needs only some steps
more does not count."""


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


@probe_symptom(
    effects={"fp16_overflow": "always"},
)
def probe_low_precision_only(measured: Measured, first_nonfinite: Operation) -> Evidence | None:
    """A non-finite value in half precision that is not there in 32 bits."""
    if not low_precision_alone(measured):
        return None
    bad = first_nonfinite
    return Evidence(
        f"{bad.op} in {bad.module or 'the loss'} gives a non-finite {bad.dtype or 'value'}; in 32 bits all is finite"
    )
