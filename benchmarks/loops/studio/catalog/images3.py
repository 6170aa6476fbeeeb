"""Faulty image runs: optimisation, precision, capacity."""

from __future__ import annotations

import math

from benchmarks.loops.studio import detection, vision
from benchmarks.loops.studio.catalog import tools
from benchmarks.loops.studio.catalog.images3_make import restart
from benchmarks.loops.studio.core import Plan, Spec
from benchmarks.loops.studio.loop import Twist, go

SPECS = [
    Spec(
        "lr_too_high",
        "tqdm",
        "classify",
        lambda s: go(s, vision.classify(s, norm=False), Plan(epochs=8, lr=2.0, optim="sgd", log_every=4)),
        "the loss jumps up at once and ends at NaN or chance",
        ("exploding_gradients", "dead_units"),
    ),
    Spec(
        "lr_too_high",
        "timm",
        "segment",
        lambda s: go(s, vision.segment(s), Plan(epochs=14, lr=2.5, batch=32, log_every=2)),
        "a rough loss far above what is possible",
    ),
    Spec(
        "lr_too_low",
        "pairs",
        "classify",
        lambda s: go(
            s,
            vision.classify(s),
            Plan(epochs=10, lr=1e-4, optim="sgd", momentum=0.0, log_every=8, log_gnorm=True),
        ),
        "smooth and hardly moving from ln 10",
    ),
    Spec(
        "lr_too_low",
        "detectron2",
        "detect",
        lambda s: go(
            s,
            detection.detect(s),
            Plan(epochs=15, lr=1.5e-5, batch=32, log_every=10, eval_every=5, log_lr=True),
        ),
        "smooth and far too slow",
        ("too_few_epochs",),
    ),
    Spec(
        "too_few_epochs",
        "mmengine",
        "segment",
        lambda s: go(s, vision.segment(s), Plan(epochs=4, lr=1e-3, batch=32, log_every=2)),
        "IoU is still rising steeply at the end",
    ),
    Spec(
        "lr_schedule_bug",
        "logging",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, noise=2.0),
            Plan(epochs=14, lr=1e-3, schedule="cosine", log_lr=True, log_every=6),
            Twist(factor=lambda t, n: max(1e-6, 0.5 + 0.5 * math.cos(math.pi * min(1.0, 9 * t / n)))),
        ),
        "the rate is zero after a ninth of the run and the loss stands",
    ),
    Spec(
        "lr_schedule_bug",
        "wandb_export",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, noise=2.0),
            Plan(epochs=14, lr=4e-3, schedule="exponential", log_lr=True),
            Twist(factor=lambda t, _total: 0.9**t),
            gamma=0.9,
        ),
        "the rate falls by 0.9 a step, not an epoch, and the loss stands",
    ),
    Spec(
        "lr_schedule_bug",
        "csv_plain",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, noise=2.0),
            Plan(epochs=13, lr=0.02, schedule="warmup_linear", warmup=20, log_lr=True, log_every=5),
            Twist(factor=restart),
        ),
        "the rate climbs through its warm-up again in the middle",
        ("resume_state_lost",),
    ),
    Spec(
        "params_not_training",
        "keras_history",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, norm=False),
            Plan(epochs=8, lr=2e-3),
            Twist(trainable=lambda n: n == "0.bias"),
        ),
        "validation hardly moves from ln 10 though the rate is ordinary",
        ("lr_too_low",),
    ),
    Spec(
        "params_not_training",
        "hydra",
        "transfer",
        lambda s: go(
            s,
            vision.classify(s, norm=False),
            Plan(epochs=8, lr=1e-3, log_gnorm=True),
            Twist(after_backward=lambda st: setattr(st, "skip_update", True)),
        ),
        "validation is the same to the last digit after every epoch",
    ),
    Spec(
        "missing_zero_grad",
        "terse",
        "classify",
        lambda s: go(
            s,
            vision.classify(s),
            Plan(epochs=8, lr=0.02, optim="sgd", momentum=0.0, log_every=4, log_gnorm=True),
            Twist(zero_grad=False),
        ),
        "the gradient norm grows and stays at 16 while the loss goes to zero",
        ("exploding_gradients", "lr_too_high"),
    ),
    Spec(
        "grad_accum_scaling",
        "lightning_csv",
        "classify",
        lambda s: go(
            s,
            tools.swap(
                vision.classify(s, 1280, noise=1.8),
                loss=lambda m, b: {"loss": 8 * vision.cross_entropy(m, b)["loss"]},
            ),
            Plan(epochs=14, batch=16, lr=0.02, optim="sgd", accum=8),
        ),
        "the first loss is eight times ln 10 with 8 micro-batches, validation is ordinary",
        ("wrong_loss",),
    ),
    Spec(
        "clip_too_tight",
        "tsv_odd",
        "classify",
        lambda s: go(
            s,
            vision.classify(s),
            Plan(epochs=10, lr=0.05, optim="sgd", clip=0.002, log_gnorm=True, log_every=6),
        ),
        "norms near one against a clip of 0.002, slow descent",
    ),
]
