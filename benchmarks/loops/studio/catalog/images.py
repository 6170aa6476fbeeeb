"""Faulty image runs: data and labels."""

from __future__ import annotations

from benchmarks.loops.studio import vision
from benchmarks.loops.studio.catalog.images_make import (
    beyond,
    blank_input,
    copied,
    empty_boxes,
    masks_off,
    noisy,
    pocket,
    repeated,
    shuffled,
    skewed,
    sorted_classes,
    void,
)
from benchmarks.loops.studio.catalog.tools import once, times
from benchmarks.loops.studio.core import Plan, Spec
from benchmarks.loops.studio.loop import Twist, go

SPECS = [
    Spec(
        "bad_batch",
        "tqdm",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, norm=False, noise=1.6),
            Plan(epochs=10, lr=1.5e-3, log_every=3),
            Twist(batch=once(95, times(60.0))),
        ),
        "one jump of the loss near step 96, then it comes back",
    ),
    Spec(
        "bad_batch",
        "mmengine",
        "segment",
        lambda s: go(
            s,
            vision.segment(s, norm=False),
            Plan(epochs=14, lr=3e-3, batch=16, log_every=2),
            Twist(batch=once(130, times(40.0))),
        ),
        "one jump of the loss near step 131, then it comes back",
        ("healthy",),
    ),
    Spec(
        "bad_data_pocket",
        "ndjson_nested",
        "classify",
        pocket,
        "the same steps of every epoch (21-26 of 38) have a high loss",
        ("label_noise",),
    ),
    Spec(
        "bad_data_pocket",
        "csv_tidy",
        "segment",
        masks_off,
        "the same steps of every epoch (13-16 of 20) have a high loss",
    ),
    Spec(
        "label_noise",
        "keras_csv",
        "classify",
        lambda s: noisy(s, 0.55, False),
        "training accuracy stops near one half while validation with clean labels is far better",
    ),
    Spec(
        "label_noise",
        "drawn_table",
        "classify",
        lambda s: noisy(s, 0.4, True),
        "on relabelled validation data the same model is far better",
    ),
    Spec(
        "no_signal",
        "logging",
        "classify",
        shuffled,
        "validation stays at ln 10 and accuracy at a tenth",
        ("label_noise", "overfitting"),
    ),
    Spec(
        "no_signal",
        "pairs",
        "classify",
        blank_input,
        "the loss stays at ln 10 from the start",
        ("params_not_training", "lr_too_low", "dead_units"),
    ),
    Spec(
        "no_signal",
        "detectron2",
        "detect",
        empty_boxes,
        "loss_bbox is exactly zero throughout",
        ("class_imbalance",),
    ),
    Spec(
        "labels_out_of_range",
        "imagenet",
        "classify",
        lambda s: beyond(s, 44),
        "Target 10 is out of bounds with 10 classes",
    ),
    Spec("labels_out_of_range", "jsonl_flat", "segment", void, "Target 255 is out of bounds"),
    Spec(
        "class_imbalance",
        "wandb_export",
        "segment",
        lambda s: go(s, vision.segment(s, rare=0.3), Plan(epochs=8, lr=5e-4, batch=32)),
        "pixel accuracy .99 and IoU zero for both parts",
    ),
    Spec(
        "class_imbalance",
        "keras_history",
        "classify",
        skewed,
        "accuracy .95 with a balanced accuracy near a tenth",
    ),
    Spec(
        "unshuffled_data",
        "terse",
        "classify",
        lambda s: sorted_classes(s, 32),
        "the loss is a sawtooth with the period of one epoch (folder order, shuffle False)",
    ),
    Spec(
        "unshuffled_data",
        "tensorboard_csv",
        "classify",
        lambda s: sorted_classes(s, 64),
        "the loss is a sawtooth with the period of one epoch (folder order, shuffle False)",
    ),
    Spec(
        "duplicated_data",
        "per_metric",
        "classify",
        repeated,
        "the loss drops in a step every 15 steps though the epoch is one; validation is poor",
        ("overfitting",),
    ),
    Spec(
        "train_eval_leakage",
        "markdown",
        "kfold",
        copied,
        "validation is near perfect and the external set poor",
        ("duplicated_data", "train_eval_mismatch"),
    ),
]
