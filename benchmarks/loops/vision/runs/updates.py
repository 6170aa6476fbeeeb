"""Runs whose gradients or updates are at fault."""

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.faults.models import scaled_weights
from benchmarks.loops.vision.faults.updates import (
    foreign_optimizer,
    frozen,
    graph_cut,
    keep_gradients,
    keep_gradients_within_epoch,
    never_step,
    summed_log,
    unscaled_accumulation,
)
from benchmarks.loops.vision.gan import Gan
from benchmarks.loops.vision.run import Run

NORM = ("loss", "lr", "grad_norm")
GAN = ("d_loss", "g_loss", "d_grad_norm", "g_grad_norm")


def generator_untrained(loop: Gan) -> None:
    """The generator's optimizer was given the discriminator's weights."""
    loop.trained_by_g = loop.discriminator


def gan_keeps_gradients(loop: Gan) -> None:
    """Neither optimizer's gradients are set to zero."""
    loop.zero_grad = lambda _optimizer: None


TRAINED = [
    Run(
        "params_not_training",
        Config("shapes", epochs=6, lr=2e-3, model={"depth": 2}),
        "metriclogger",
        "loss and val do not move though gradients are there",
        "args",
        NORM,
        (foreign_optimizer,),
    ),
    Run(
        "params_not_training",
        Config("forecast", epochs=8, lr=3e-3),
        "keras",
        "val loss is the same number each epoch",
        "json",
        NORM,
        (never_step,),
    ),
    Run(
        "params_not_training",
        Config("regression", epochs=10, lr=3e-3),
        "csv_steps",
        "gradient norm is zero, val constant",
        "yaml",
        NORM,
        (graph_cut,),
    ),
    Run(
        "params_not_training",
        Config("tagging", epochs=12, lr=5e-3),
        "loguru",
        "gradient norm grows never, val stalls: the bias alone is trained",
        "hydra",
        NORM,
        (frozen(1),),
        ("too_little_capacity", "no_signal"),
    ),
    Run(
        "params_not_training",
        Config("gan", epochs=8, batch_size=64, lr=1e-3, betas=(0.5, 0.999)),
        "tensorboard",
        "generator loss stands at ln 2, its gradient norm grows, no mode is found",
        "yaml",
        GAN,
        (generator_untrained,),
        also=("missing_zero_grad",),
    ),
    Run(
        "params_not_training",
        Config("charlm", epochs=5, lr=3e-3),
        "csv_epochs",
        "all measures of val are the same each epoch",
        "",
        NORM,
        (never_step,),
    ),
    Run(
        "missing_zero_grad",
        Config("shapes", epochs=8, optimizer="sgd", lr=0.02),
        "tensorboard",
        "gradient norm grows step by step, loss diverges",
        "yaml",
        NORM,
        (keep_gradients,),
        ("exploding_gradients",),
    ),
    Run(
        "missing_zero_grad",
        Config("regression", epochs=10, lr=2e-3),
        "csv_steps",
        "gradient norm grows to a multiple, loss swings slowly",
        "json",
        NORM,
        (keep_gradients,),
        also=("exploding_gradients",),
    ),
    Run(
        "missing_zero_grad",
        Config("boxes", epochs=8, lr=2e-3),
        "logging",
        "gradient norm grows in each epoch and falls at its start",
        "args",
        NORM,
        (keep_gradients_within_epoch,),
    ),
    Run(
        "missing_zero_grad",
        Config("gan", epochs=8, batch_size=64, lr=1e-3, betas=(0.5, 0.999)),
        "jsonl",
        "both norms grow, losses swing",
        "",
        GAN,
        (gan_keeps_gradients,),
        also=("exploding_gradients",),
    ),
    Run(
        "grad_accum_scaling",
        Config("shapes", epochs=8, optimizer="sgd", lr=0.02, batch_size=8, accumulate=8, log_every=2),
        "loguru",
        "norm eight times what the loss suggests",
        "yaml",
        NORM,
        (unscaled_accumulation,),
        weak=True,
    ),
    Run(
        "grad_accum_scaling",
        Config("shapes", epochs=8, lr=2e-3, batch_size=8, accumulate=8, log_every=2),
        "jsonl",
        "first loss is 8 ln 5 while val loss is ln 5",
        "json",
        NORM,
        (unscaled_accumulation, summed_log),
    ),
    Run(
        "grad_accum_scaling",
        Config("charlm", epochs=8, lr=1e-2, batch_size=8, accumulate=4, log_every=4),
        "logging",
        "first loss is 4 ln 20 while val loss is of ordinary size",
        "args",
        NORM,
        (unscaled_accumulation, summed_log),
    ),
]

CLIPPED = [
    Run(
        "clip_too_tight",
        Config("shapes", epochs=8, optimizer="sgd", lr=0.05, grad_clip=0.005),
        "csv_steps",
        "norm a hundred times the clip at every step, loss creeps",
        "json",
        NORM,
    ),
    Run(
        "clip_too_tight",
        Config("regression", epochs=12, optimizer="sgd", lr=0.05, grad_clip=0.002),
        "wandb",
        "norm far above the clip at every step, loss creeps",
        "yaml",
        NORM,
    ),
    Run(
        "clip_too_tight",
        Config("forecast", epochs=10, optimizer="sgd", lr=0.1, grad_clip=0.002),
        "lightning",
        "norm far above the clip at every step, loss creeps",
        "yaml",
        NORM,
    ),
    Run(
        "exploding_gradients",
        Config("forecast", epochs=5, lr=5e-4, model={"cell": "rnn", "hidden": 32}, data={"past": 60}),
        "csv_steps",
        "norm of many decades through time, no clip",
        "json",
        NORM,
        (scaled_weights(5.0),),
        ("bad_init",),
    ),
    Run(
        "exploding_gradients",
        Config("forecast", epochs=6, lr=1e-3, model={"cell": "rnn", "hidden": 32}, data={"past": 60}),
        "tensorboard",
        "norm of millions through time, no clip",
        "yaml",
        NORM,
        (scaled_weights(8.0),),
        ("bad_init",),
    ),
    Run(
        "exploding_gradients",
        Config("regression", epochs=6, optimizer="sgd", lr=1e-3, model={"depth": 16}),
        "logging",
        "norm of many decades through depth, then NaN",
        "args",
        NORM,
        (scaled_weights(3.2),),
        ("bad_init",),
    ),
    Run(
        "adam_instability",
        Config("fraud", epochs=15, lr=5e-3, betas=(0.99, 0.5), eps=1e-12, log_every=5),
        "csv_steps",
        "loss leaps to 1e22 at an ordinary rate; beta2 of 0.5 below beta1",
        "yaml",
        NORM,
        also=("lr_too_high",),
    ),
    Run(
        "adam_instability",
        Config("charlm", epochs=20, lr=1e-2, eps=1e-16, betas=(0.9, 0.9), data={"choices": 1, "n_train": 480}),
        "loguru",
        "loss near zero, then spikes; eps 1e-16",
        "args",
        NORM,
        weak=True,
    ),
]

RUNS: list[Run] = TRAINED + CLIPPED
