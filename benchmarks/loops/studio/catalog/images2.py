"""Faulty image runs: evaluation, losses and metrics."""

from __future__ import annotations

from benchmarks.loops.studio import detection, vision
from benchmarks.loops.studio.catalog.images2_make import (
    base_one,
    classify_bgr,
    dice_up,
    doubled_bench,
    flat_box,
    masked,
    minus,
    mixed,
    never_eval,
    stays_eval,
    two_modes,
    xyxy,
)
from benchmarks.loops.studio.catalog.tools import swap
from benchmarks.loops.studio.core import Plan, Spec
from benchmarks.loops.studio.loop import go

SPECS = [
    Spec(
        "train_eval_mismatch",
        "fastai",
        "classify",
        lambda s: go(s, vision.classify(s, noise=1.5, view=lambda x: x * 0.2 + 2.5), Plan(epochs=10, lr=2e-3)),
        "training is fine, validation is at chance from the first epoch",
        ("eval_mode_bug",),
    ),
    Spec(
        "train_eval_mismatch",
        "csv_german",
        "classify",
        classify_bgr,
        "training is perfect, validation stands at one half from the second epoch and never moves",
        ("eval_mode_bug", "overfitting"),
    ),
    Spec(
        "eval_mode_bug",
        "boosting",
        "classify",
        two_modes,
        "validation with batch statistics is fine, with running ones at chance",
        ("train_eval_mismatch",),
    ),
    Spec(
        "eval_mode_bug",
        "yaml_list",
        "classify",
        never_eval,
        "three evaluations of one checkpoint differ, and are no better than training with dropout",
    ),
    Spec(
        "eval_mode_bug",
        "blocks",
        "classify",
        stays_eval,
        "the training loss falls in a step right after the first evaluation",
        ("overfitting",),
    ),
    Spec(
        "double_softmax",
        "keras_bar",
        "classify",
        lambda s: go(s, doubled_bench(s, False), Plan(epochs=14, lr=3e-3)),
        "accuracy near one at a loss of 1.47, its floor for 10 classes",
    ),
    Spec(
        "double_softmax",
        "sacred",
        "segment",
        lambda s: go(s, doubled_bench(s, True), Plan(epochs=14, lr=6e-3, batch=32)),
        "the loss stops at 0.55, the floor for 3 classes",
    ),
    Spec(
        "wrong_loss",
        "lightning_csv",
        "segment",
        lambda s: go(s, vision.segment(s, loss=dice_up), Plan(epochs=10, lr=3e-3, batch=32)),
        "the loss falls and the IoU falls to zero with it",
    ),
    Spec(
        "wrong_loss",
        "ansi",
        "classify",
        lambda s: go(s, vision.classify(s, loss=minus), Plan(epochs=8, lr=2e-3, log_every=10)),
        "a cross-entropy below zero without bound, accuracy zero",
    ),
    Spec(
        "all_labels_masked",
        "hf_trainer",
        "segment",
        masked,
        "NaN from the first row, since the mean is over nothing",
        ("invalid_math",),
    ),
    Spec(
        "invalid_math",
        "split_logs",
        "detect",
        flat_box,
        "NaN comes suddenly out of a sound loss, from the box term",
        ("bad_batch",),
    ),
    Spec(
        "metric_bug",
        "yolo_csv",
        "detect",
        lambda s: go(s, swap(detection.detect(s, 900), metrics=xyxy), Plan(epochs=18, lr=3e-3, batch=32)),
        "mAP is nearly zero beside a falling loss and a good recall",
    ),
    Spec(
        "metric_bug",
        "prose_toml",
        "classify",
        lambda s: go(
            s,
            swap(vision.classify(s, noise=1.5, train_metric=False), metrics=base_one),
            Plan(epochs=10, lr=2e-3),
        ),
        "validation loss near zero with an accuracy of zero",
    ),
    Spec(
        "rows_mixed",
        "csv_plain",
        "classify",
        mixed,
        "the same weights are at chance when rows are evaluated one by one",
        ("eval_mode_bug", "train_eval_mismatch"),
    ),
]
