"""Runs whose loss, or what leads to it, is at fault."""

import torch

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.faults.losses import (
    broadcast_mse,
    distance_loss,
    empty_masks,
    log_of_probability,
    loss_changed,
    other_criterion,
    overflowing_exp,
    own_pair_included,
    relative_error,
    softmax_twice,
    unguarded_dice,
    wrong_partner,
)
from benchmarks.loops.vision.faults.models import drifting_head, logit_size
from benchmarks.loops.vision.gan import Gan
from benchmarks.loops.vision.run import Run

NORM = ("loss", "lr", "grad_norm")
GAN = ("d_loss", "g_loss", "d_grad_norm", "g_grad_norm")
LOGITS = ("loss", "lr", "logit_max", "logz")


def fooled_by_zero(loop: Gan) -> None:
    """The generator is asked to be found out: its target is that of fakes."""
    loop.wanted = 0.0


WRONG = [
    Run(
        "double_softmax",
        Config("shapes", epochs=10, lr=2e-3),
        "metriclogger",
        "accuracy high while loss stays near its floor of 0.9",
        "args",
        NORM,
        (softmax_twice,),
    ),
    Run(
        "double_softmax",
        Config("shapes", epochs=12, lr=4e-3, data={"classes": 10, "noise": 0.15}),
        "keras",
        "accuracy high while loss stays above its floor of 1.46",
        "json",
        NORM,
        (softmax_twice,),
    ),
    Run(
        "double_softmax",
        Config("tagging", epochs=14, lr=8e-3),
        "tensorboard",
        "accuracy high while loss stays near 1.04",
        "yaml",
        NORM,
        (softmax_twice,),
    ),
    Run(
        "double_softmax",
        Config("graph", epochs=150, batch_size=1, lr=1e-2, log_every=1),
        "csv_epochs",
        "accuracy high while loss stays above 0.74",
        "",
        NORM,
        (softmax_twice,),
    ),
    Run(
        "wrong_loss",
        Config("shapes", epochs=5, lr=1e-3),
        "logging",
        "loss is negative and falls without bound, accuracy below chance",
        "args",
        NORM,
        (loss_changed(torch.neg),),
    ),
    Run(
        "wrong_loss",
        Config("regression", epochs=14, lr=3e-3),
        "csv_steps",
        "loss stays at the variance, R2 near zero: the mean is predicted",
        "json",
        NORM,
        (broadcast_mse,),
        ("no_signal",),
    ),
    Run(
        "wrong_loss",
        Config("regression", epochs=12, lr=2e-3, data={"noise": 0.3}),
        "tensorboard",
        "loss stays at the variance, R2 near zero",
        "",
        NORM,
        (broadcast_mse,),
        ("no_signal",),
    ),
    Run(
        "wrong_loss",
        Config("contrastive", epochs=6, lr=2e-3, batch_size=64),
        "loguru",
        "loss stays high, top1 at chance",
        "yaml",
        NORM,
        (other_criterion(wrong_partner),),
        ("no_signal",),
    ),
    Run(
        "wrong_loss",
        Config("contrastive", epochs=6, lr=2e-3, batch_size=48),
        "jsonl",
        "loss falls to its floor while top1 never gets good",
        "json",
        NORM,
        (other_criterion(own_pair_included),),
    ),
    Run(
        "wrong_loss",
        Config("gan", epochs=10, batch_size=64, lr=1e-3, betas=(0.5, 0.999)),
        "csv_steps",
        "generator loss falls to zero, no mode is found",
        "yaml",
        GAN,
        (fooled_by_zero,),
    ),
    Run(
        "wrong_loss",
        Config("vae", epochs=8, lr=1e-3, model={"beta": 40.0}),
        "mlflow",
        "KL is zero, reconstruction stays: the KL term outweighs",
        "yaml",
        ("loss",),
    ),
]

MATHS = [
    Run(
        "invalid_math",
        Config("shapes", epochs=8, lr=3e-2, data={"classes": 2, "noise": 0.1}),
        "logging",
        "NaN from one step on at a low loss and small norm",
        "args",
        NORM,
        (other_criterion(log_of_probability),),
        also=("lr_too_high",),
    ),
    Run(
        "invalid_math",
        Config("segmentation", epochs=6, lr=1e-2),
        "jsonl",
        "NaN from one step on while the loss falls",
        "json",
        NORM,
        (empty_masks(24), other_criterion(unguarded_dice)),
    ),
    Run(
        "invalid_math",
        Config("regression", epochs=8, lr=2e-3, log_every=3),
        "csv_steps",
        "NaN gradient while the loss is finite, then NaN",
        "yaml",
        NORM,
        (other_criterion(distance_loss),),
    ),
    Run(
        "invalid_math",
        Config("forecast", epochs=8, lr=1e-3),
        "lightning",
        "NaN at once at an ordinary rate",
        "",
        NORM,
        (other_criterion(relative_error),),
    ),
    Run(
        "invalid_math",
        Config("vae", epochs=6, lr=2e-3),
        "prints",
        "Inf and NaN: exp of a scaled log variance",
        "args",
        ("loss",),
        (overflowing_exp(400.0),),
    ),
]

DRIFT = [
    Run(
        "logit_drift",
        Config("shapes", epochs=12, lr=2e-3),
        "csv_steps",
        "logz grows on and on while the loss falls on",
        "json",
        LOGITS,
        (logit_size, drifting_head(0.02)),
        ("wrong_loss",),
    ),
    Run(
        "logit_drift",
        Config("charlm", epochs=8, lr=1e-2),
        "tensorboard",
        "logz grows on and on",
        "yaml",
        LOGITS,
        (logit_size, drifting_head(0.015)),
        ("wrong_loss",),
    ),
]

RUNS: list[Run] = WRONG + MATHS + DRIFT
