"""Faults of the optimizer: learning rate, schedule, clipping, decay, precision, and what is lost at a resume."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.faults.experiment import Record
from benchmarks.faults.faults.fault import Fault, rate_is_logged
from benchmarks.faults.loop import Setup


def rate_times(setup: Setup, severity: float) -> None:
    """Multiply the learning rate; where it becomes very high, nothing is clipped either."""
    setup.lr *= severity
    setup.clip = 0.0 if severity > 20 else setup.clip


def sgd_rate_times(setup: Setup, severity: float) -> None:
    """Use plain SGD at a multiple of a good learning rate."""
    setup.optimizer, setup.lr, setup.clip = "sgd", 0.05 * severity, 0.0


def no_warmup(setup: Setup, severity: float) -> None:
    """Start at the peak of a high learning rate."""
    setup.warmup, setup.lr, setup.schedule = 0.0, setup.lr * severity, "linear"
    setup.onset = 1


def schedule_ends_early(setup: Setup, severity: float) -> None:
    """Let the learning rate reach zero long before the end."""
    end = int(setup.steps * severity)
    setup.onset = end
    setup.rate = lambda step, _: setup.lr * max(0.0, 1 - step / end)


def schedule_restarts(setup: Setup, severity: float) -> None:
    """Let the learning rate jump to a multiple of its peak halfway."""
    at = setup.steps // 2
    setup.onset = at + 1
    setup.rate = lambda step, rate: rate if step < at else setup.lr * severity


def frozen(setup: Setup, _: float) -> None:
    """Train no parameter."""

    def prepare(model: nn.Module) -> None:
        for parameter in model.parameters():
            parameter.requires_grad = False

    setup.prepare = prepare


def not_in_optimizer(setup: Setup, _: float) -> None:
    """Give the optimizer gradients of zero."""

    def forget(_: int, model: nn.Module) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad = parameter.grad * 0

    setup.after_backward = forget


def never_zeroed(setup: Setup, severity: float) -> None:
    """Let gradients add up from step to step."""
    setup.zero_grad, setup.clip, setup.optimizer, setup.lr = False, 0.0, "sgd", 0.02 * severity


def clipped_tight(setup: Setup, severity: float) -> None:
    """Clip the gradient norm at a small fraction of its size."""
    setup.optimizer, setup.lr, setup.clip = "sgd", 0.05, severity


def decay(setup: Setup, severity: float) -> None:
    """Decay the weights by a hundredth of the severity at each step of the peak learning rate."""
    setup.weight_decay = severity / setup.lr / 100


def tiny_batch(setup: Setup, severity: float) -> None:
    """Train on one or two samples per step at twice the learning rate."""
    setup.batch, setup.lr = int(severity), setup.lr * 2


def rounded_weights(setup: Setup, severity: float) -> None:
    """Round the weights to bfloat16 after each step, at a learning rate whose updates are lost by it."""
    setup.lr *= severity

    def round_them(_: int, model: nn.Module) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.bfloat16())

    setup.after_backward = round_them
    setup.config["bf16"] = True


def half_precision(setup: Setup, severity: float) -> None:
    """Skip every step from some step on, as a loss scaler does that meets nothing but overflows."""
    at = int(setup.steps * severity)
    setup.onset = at + 1
    scale = 65536.0

    def skip(step: int, model: nn.Module) -> None:
        if step >= at:
            for parameter in model.parameters():
                parameter.grad = None

    def edit(step: int, record: Record) -> Record:
        nonlocal scale
        if step >= at:
            scale = max(scale / 2, 1e-4)
            record["grad_norm"] = math.inf if step % 3 else math.nan
        return record | {"loss_scale": scale}

    setup.after_backward, setup.edit = skip, edit
    setup.config["fp16"] = True


def state_lost(setup: Setup, severity: float) -> None:
    """Resume at a share of the steps with a fresh optimizer and a schedule that starts over, warmup and all."""
    setup.resumes, setup.resume_loses_state = (int(setup.steps * severity),), True
    setup.onset = setup.resumes[0] + 1


FLAT = ("lr_too_low", "params_not_training", "no_signal", "low_precision_update")
"""Updates that are too small, that are lost, and data with nothing to learn from give the same flat loss."""

FAULTS = (
    Fault("rate_high", "lr_too_high", rate_times, (30, 100, 400), also=("exploding_gradients", "insufficient_warmup")),
    Fault(
        "sgd_rate_high", "lr_too_high", sgd_rate_times, (20, 100), ("tabular", "regression", "images", "diffusion"),
        ("exploding_gradients",),
    ),
    Fault("rate_low", "lr_too_low", rate_times, (0.002, 0.0005), also=FLAT),
    Fault("no_warmup", "insufficient_warmup", no_warmup, (15, 40), ("gpt", "sft"), ("lr_too_high",)),
    Fault(
        "schedule_ends_early", "lr_schedule_bug", schedule_ends_early, (0.15, 0.4),
        also=("lr_too_low",), shown=rate_is_logged,
    ),
    Fault(
        "schedule_restarts", "lr_schedule_bug", schedule_restarts, (3, 10),
        also=("lr_too_high", "resume_state_lost"), shown=rate_is_logged,
    ),
    Fault("frozen", "params_not_training", frozen, (1,), also=("no_signal",)),
    Fault("not_in_optimizer", "params_not_training", not_in_optimizer, (1,), also=FLAT),
    Fault(
        "never_zeroed", "missing_zero_grad", never_zeroed, (1, 3), ("tabular", "images", "sequences", "regression"),
        ("lr_too_high", "exploding_gradients"),
    ),
    Fault("clipped_tight", "clip_too_tight", clipped_tight, (0.001, 0.01), also=FLAT),
    Fault(
        "decay", "weight_decay_too_high", decay, (30, 100), ("tabular", "images", "sequences", "gpt"),
        (*FLAT, "too_little_capacity"),
    ),
    Fault(
        "tiny_batch", "batch_too_small", tiny_batch, (1, 2), ("tabular", "images", "gpt", "sequences"),
        ("label_noise",),
    ),
    Fault(
        "rounded_weights", "low_precision_update", rounded_weights, (0.05, 0.01),
        ("tabular", "gpt", "images", "sequences"), FLAT,
    ),
    Fault("half_precision", "fp16_overflow", half_precision, (0.0, 0.4), also=("exploding_gradients",)),
    Fault(
        "state_lost", "resume_state_lost", state_lost, (0.5, 0.75), ("gpt", "images", "tabular", "sft"),
        ("resume_data_replayed", "lr_schedule_bug"),
    ),
)  # fmt: skip
