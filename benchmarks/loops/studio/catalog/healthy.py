"""Runs in which nothing is wrong, many with something that alarms: images and their kin."""

from __future__ import annotations

from benchmarks.loops.studio import detection, vision
from benchmarks.loops.studio.catalog.tools import Student, augment, distil, folds, kth, pretrained, resume, swap, well
from benchmarks.loops.studio.core import Plan, Record
from benchmarks.loops.studio.loop import Bench, Twist, go
from benchmarks.loops.studio.precision import Half, Scaler, scaled


def finetune(s: int) -> Record:
    """Weights that are nearly right from the start."""
    bench = pretrained(vision.classify(s, noise=1.8), Plan(epochs=8, lr=2e-3), s)
    return go(
        s,
        bench,
        Plan(epochs=8, lr=1e-4, optim="adamw", schedule="linear", log_lr=True),
        init_from="ckpt/base_ep8.pt",
    )


def frozen(s: int) -> Record:
    """A backbone that is frozen on purpose, with a new head."""
    bench = pretrained(vision.classify(s, noise=1.5), Plan(epochs=6, lr=2e-3), s)
    bench.model[-1].reset_parameters()  # type: ignore[index]
    return go(
        s,
        bench,
        Plan(epochs=10, lr=3e-3),
        Twist(trainable=lambda n: n.startswith("8")),
        freeze_backbone=True,
        trainable_params=1810,
    )


def taught(s: int) -> Record:
    """Distillation from a trained teacher."""
    teacher = pretrained(vision.classify(s, noise=1.8, width=16), Plan(epochs=8, lr=2e-3), s)
    bench = vision.classify(s, noise=1.8, width=4)
    bench = swap(bench, loss=distil(), model=Student(bench.model, teacher.model), teacher="cnn_w16")
    return go(s, bench, Plan(epochs=12, lr=4e-3))


def half(s: int) -> Record:
    """fp16 whose scale is too large in the first steps."""
    scaler = Scaler(2.0**24, 100)
    bench = vision.classify(s, net=Half(scaler), loss=scaled, noise=1.6)
    return go(
        s,
        bench,
        Plan(epochs=12, lr=3e-3, log_every=12, eval_every=2),
        Twist(after_backward=scaler, extras=scaler.values),
        precision="fp16",
    )


def cross(s: int) -> Record:
    """Five folds."""

    def make(seed: int, k: int) -> Bench:
        bench = vision.classify(seed, count=900, noise=1.8)
        train, val = kth(bench.data, k)
        return swap(bench, data=train, evals={"val": val})

    return folds(s, make, Plan(epochs=6, lr=3e-3))


SPECS = [
    well(
        "keras_bar",
        "classify",
        lambda s: go(s, vision.classify(s, noise=1.8), Plan(epochs=10, lr=2e-3)),
        "both losses fall together and level off",
    ),
    well(
        "timm",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, noise=1.8),
            Plan(
                epochs=12,
                lr=5e-3,
                optim="adamw",
                weight_decay=0.05,
                schedule="cosine",
                warmup=20,
                log_every=6,
                log_lr=True,
            ),
        ),
        "warm-up and cosine as planned, smooth descent",
    ),
    well(
        "fastai",
        "classify",
        lambda s: go(s, vision.classify(s, noise=2.0), Plan(epochs=12, lr=8e-3, schedule="onecycle")),
        "one-cycle: slow first, best at the end",
    ),
    well(
        "imagenet",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, noise=1.8),
            Plan(epochs=16, lr=0.1, optim="sgd", momentum=0.8, schedule="step", log_every=8, log_lr=True),
        ),
        "the loss drops at the planned drops of the rate",
    ),
    well(
        "one_line",
        "classify",
        lambda s: go(s, vision.classify(s, noise=2.2, holdout=40), Plan(epochs=14, lr=1e-3)),
        "validation wobbles since it has 40 images; the trend is sound",
    ),
    well(
        "wandb_export",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, noise=1.2, drop=0.4),
            Plan(epochs=14, lr=3e-3),
            Twist(batch=augment(1.5)),
            augment="noise+erase",
        ),
        "training loss above validation by augmentation and dropout",
    ),
    well("lightning_csv", "finetune", finetune, "starts near its optimum and moves little"),
    well("keras_history", "transfer", frozen, "the frozen part is by plan; the head learns"),
    well("hydra", "distill", taught, "both terms fall and accuracy rises"),
    well("pairs", "amp", half, "the scale halves at the start and then stays; training goes on"),
    well("terse", "kfold", cross, "each fold starts anew; all end alike"),
    well(
        "logging",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, noise=1.8),
            Plan(epochs=12, lr=2e-3, schedule="cosine", log_lr=True, log_every=10),
            Twist(
                at_epoch=resume(
                    6,
                    cold=False,
                    say="loaded model, optimizer and scheduler from last.pt, continuing at epoch {at}",
                )
            ),
        ),
        "curve and rate go on over the resume",
    ),
    well(
        "mmengine",
        "segment",
        lambda s: go(
            s,
            vision.segment(s),
            Plan(epochs=16, lr=6e-3, batch=32, log_every=4, log_lr=True, schedule="linear"),
        ),
        "IoU rises for both classes",
    ),
    well(
        "csv_german",
        "segment",
        lambda s: go(s, vision.segment(s), Plan(epochs=20, lr=3e-3, batch=32, eval_every=2)),
        "IoU rises for both classes",
    ),
    well(
        "detectron2",
        "detect",
        lambda s: go(
            s,
            detection.detect(s, 900),
            Plan(epochs=18, lr=3e-3, batch=32, log_every=20, eval_every=3, log_lr=True, schedule="step"),
        ),
        "all parts of the loss fall and mAP rises",
    ),
    well(
        "yolo_csv",
        "detect",
        lambda s: go(s, detection.detect(s, 900), Plan(epochs=20, lr=4e-3, batch=32, schedule="cosine")),
        "all parts fall and mAP rises",
    ),
    well(
        "blocks",
        "classify",
        lambda s: go(s, vision.classify(s, noise=1.0, classes=5, width=4), Plan(epochs=10, lr=0.03)),
        "a high rate that a tiny model bears",
    ),
    well(
        "tsv_odd",
        "classify",
        lambda s: go(s, vision.classify(s, noise=2.0), Plan(epochs=12, lr=3e-3, clip=1.0, log_gnorm=True, log_every=9)),
        "the clip bites in the first steps only",
    ),
]
