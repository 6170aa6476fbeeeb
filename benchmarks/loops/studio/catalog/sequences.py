"""Faulty runs on time series and speech-like sequences."""

from __future__ import annotations

from benchmarks.loops.studio import sequence
from benchmarks.loops.studio.catalog.sequences_make import bucketed, growing, replayed
from benchmarks.loops.studio.catalog.tools import once, resume, swap, times
from benchmarks.loops.studio.core import Plan, Spec
from benchmarks.loops.studio.loop import Twist, go
from benchmarks.loops.studio.sequence import Attention, Recurrent

SPECS = [
    Spec(
        "length_grouped_batches",
        "espnet",
        "ctc",
        bucketed,
        "the loss is a sawtooth with the length of utterances; the mean over a cycle falls",
        ("healthy", "unshuffled_data"),
    ),
    Spec(
        "bad_batch",
        "split_logs",
        "forecast",
        lambda s: go(
            s,
            sequence.forecast(s),
            Plan(epochs=20, lr=5e-3, log_every=2, eval_every=2),
            Twist(batch=once(81, times(25.0))),
        ),
        "one batch in raw units: a jump, then back",
    ),
    Spec(
        "lr_too_high",
        "markdown",
        "forecast",
        lambda s: go(s, sequence.forecast(s), Plan(epochs=14, lr=3.0)),
        "a rough loss at or above the variance",
    ),
    Spec(
        "lr_too_low",
        "csv_tidy",
        "forecast",
        lambda s: go(s, sequence.forecast(s), Plan(epochs=14, lr=1e-5)),
        "smooth and hardly moving",
    ),
    Spec(
        "insufficient_warmup",
        "hf_trainer",
        "forecast",
        lambda s: go(
            s,
            sequence.forecast(s, Attention(24, 4, post=True), horizon=False),
            Plan(epochs=9, lr=0.02, schedule="cosine", optim="adam", log_every=3, log_lr=True, log_gnorm=True),
        ),
        "full rate from the first step, a high loss and norm there, a somewhat worse end",
        ("lr_too_high",),
        True,
    ),
    Spec(
        "insufficient_warmup",
        "logging",
        "forecast",
        lambda s: go(
            s,
            sequence.forecast(s, Attention(24, 5, post=True), horizon=False),
            Plan(epochs=7, lr=0.03, schedule="linear", optim="adamw", log_every=2, log_lr=True),
            warmup_steps=0,
        ),
        "warmup_steps 0, spike in the first steps and a long plateau",
        ("lr_too_high",),
    ),
    Spec(
        "exploding_gradients",
        "ndjson_nested",
        "forecast",
        lambda s: growing(1.46, s, 0.006),
        "the gradient norm is orders above one, then the loss goes to NaN",
        ("lr_too_high", "bad_init"),
    ),
    Spec(
        "exploding_gradients",
        "tsv_odd",
        "forecast",
        lambda s: growing(1.4, s, 0.003),
        "a gradient norm in the thousands at the start, then NaN",
        ("lr_too_high", "bad_init"),
    ),
    Spec(
        "missing_zero_grad",
        "imagenet",
        "forecast",
        lambda s: go(
            s,
            sequence.forecast(s),
            Plan(epochs=12, lr=0.02, optim="sgd", momentum=0.0, log_every=4, log_gnorm=True),
            Twist(zero_grad=False),
        ),
        "the gradient norm grows with the steps",
        ("exploding_gradients", "lr_too_high"),
    ),
    Spec(
        "clip_too_tight",
        "espnet",
        "ctc",
        lambda s: go(
            s,
            sequence.ctc(s),
            Plan(
                epochs=12,
                lr=0.02,
                batch=32,
                optim="sgd",
                clip=0.01,
                log_gnorm=True,
                log_every=4,
                eval_every=3,
            ),
        ),
        "norms of several against a clip of 0.01; slow descent",
    ),
    Spec(
        "label_shift_error",
        "keras_csv",
        "forecast",
        lambda s: go(s, sequence.forecast(s, loss=sequence.same_value), Plan(epochs=14, lr=8e-3)),
        "a squared error below the noise, with a forecast that stays bad",
        ("train_eval_leakage", "causal_mask_missing", "wrong_loss", "metric_bug"),
    ),
    Spec(
        "causal_mask_missing",
        "mlflow",
        "forecast",
        lambda s: go(s, sequence.forecast(s, Recurrent(24, both=True)), Plan(epochs=16, lr=8e-3)),
        "one-step error below the noise of the data, with a forecast that stays bad",
        ("train_eval_leakage", "label_shift_error"),
    ),
    Spec(
        "too_few_epochs",
        "blocks",
        "ctc",
        lambda s: go(s, sequence.ctc(s), Plan(epochs=6, lr=4e-3, batch=32)),
        "CER is still falling steeply at the end",
        (),
    ),
    Spec(
        "metric_bug",
        "hydra",
        "ctc",
        lambda s: go(s, sequence.ctc(s, blank=6), Plan(epochs=15, lr=6e-3, batch=32)),
        "CTC loss falls to a good value while CER is far above it",
        ("tokenizer_mismatch",),
    ),
    Spec(
        "no_signal",
        "pairs",
        "ctc",
        lambda s: go(s, sequence.ctc(s, 300, shuffle=True, low=4, high=4), Plan(epochs=12, lr=4e-3, batch=32)),
        "training stops at the entropy of the text and CER near one",
        ("label_noise",),
    ),
    Spec(
        "overfitting",
        "terse",
        "forecast",
        lambda s: go(
            s,
            swap(sequence.forecast(s, count=24, noise=0.4), model=Recurrent(64)),
            Plan(epochs=120, lr=1e-2, batch=24, eval_every=5, log_every=5),
        ),
        "validation rises while training falls",
    ),
    Spec(
        "resume_data_replayed",
        "logging",
        "forecast",
        replayed,
        "after the resume at epoch 18 no rise at a change of shard, then a jump with the first new one",
        ("duplicated_data",),
        True,
    ),
    Spec(
        "resume_state_lost",
        "yolo_csv",
        "ctc",
        lambda s: go(
            s,
            sequence.ctc(s),
            Plan(epochs=14, lr=0.02, batch=32, schedule="cosine", log_lr=True, clip=5.0),
            Twist(at_epoch=resume(8, cold=True, schedule=True, say="Resuming from epoch {at} (model.pt)")),
        ),
        "the rate starts over after the resume and the loss jumps",
        ("lr_schedule_bug",),
    ),
]
