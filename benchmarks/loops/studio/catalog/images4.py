"""Faulty image runs: optimisation, precision, capacity."""

from __future__ import annotations

from torch import nn

from benchmarks.loops.studio import vision
from benchmarks.loops.studio.catalog import tools
from benchmarks.loops.studio.catalog.images3_make import (
    big_head,
    changed,
    cold,
    dead,
    drifting,
    half,
    unloaded,
    zero_rows,
)
from benchmarks.loops.studio.core import Plan, Spec
from benchmarks.loops.studio.loop import Twist, go
from benchmarks.loops.studio.precision import round_weights

SPECS = [
    Spec(
        "weight_decay_too_high",
        "json_document",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, norm=False),
            Plan(epochs=10, lr=3e-3, optim="adamw", weight_decay=120.0, log_every=8),
            Twist(extras=tools.weight_norm),
        ),
        "the weight norm falls to nearly nothing and the loss goes to ln 10",
    ),
    Spec(
        "batch_too_small",
        "jsonl_flat",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, 700, noise=3.0),
            Plan(epochs=2, batch=2, lr=0.05, optim="sgd", log_every=10, momentum=0.5),
        ),
        "a batch of two with BatchNorm: a noisy loss and a poor validation",
        ("lr_too_high",),
        True,
    ),
    Spec("bad_init", "imagenet", "classify", lambda s: big_head(s, 60.0), "the first loss is far above ln 10"),
    Spec(
        "bad_init",
        "blocks",
        "finetune",
        unloaded,
        "all keys are missing, and the start is at ln 10",
        ("lr_too_low",),
    ),
    Spec(
        "vanishing_gradients",
        "csv_tidy",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, net=vision.deep(144, 32, 9, 10, nn.Sigmoid)),
            Plan(epochs=10, lr=1e-3, log_every=8),
            Twist(extras=tools.layer_norms),
        ),
        "the first layer's gradient is orders below the last one's",
    ),
    Spec(
        "dead_units",
        "ndjson_nested",
        "classify",
        lambda s: dead(s, True),
        "nearly all units are zero, the loss stays at ln 10",
    ),
    Spec(
        "dead_units",
        "one_line",
        "classify",
        lambda s: dead(s, False),
        "ln 10 with a gradient norm of almost nothing but biases",
        ("params_not_training", "vanishing_gradients", "no_signal", "lr_too_low"),
        True,
    ),
    Spec(
        "too_little_capacity",
        "markdown",
        "segment",
        lambda s: go(s, vision.segment(s, width=1), Plan(epochs=20, lr=1e-2, batch=32)),
        "training and validation level off together far above the usual",
        ("lr_too_low",),
    ),
    Spec(
        "logit_drift",
        "tensorboard_csv",
        "classify",
        drifting,
        "the largest logit grows twentyfold",
        ("overfitting",),
        True,
    ),
    Spec(
        "fp16_overflow",
        "split_logs",
        "amp",
        half,
        "the loss scale sinks and steps are skipped one after the other",
    ),
    Spec(
        "low_precision_update",
        "fastai",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, noise=1.6),
            Plan(epochs=12, lr=1e-4, optim="sgd"),
            Twist(after_step=round_weights, extras=changed()),
            param_dtype="bfloat16",
        ),
        "weights in bf16 of which few change in an epoch; the loss hardly moves",
        ("lr_too_low",),
    ),
    Spec(
        "fp8_zero_scale",
        "detectron2",
        "classify",
        zero_rows,
        "fp8 with row scales; NaN at once and for ever",
        ("invalid_math",),
    ),
    Spec(
        "overfitting",
        "keras_bar",
        "classify",
        lambda s: go(s, vision.classify(s, 150, noise=2.8, width=16), Plan(epochs=25, lr=3e-3, batch=32)),
        "validation loss rises while training loss goes to zero",
    ),
    Spec(
        "resume_state_lost",
        "ansi",
        "classify",
        lambda s: cold(s, True),
        "after the resume the rate starts over and the loss jumps",
        ("lr_schedule_bug",),
    ),
]
