"""Runs whose learning rate, schedule, batch size or decay is at fault."""

from dataclasses import replace

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.faults.models import zero_share
from benchmarks.loops.vision.faults.updates import factor, resume, scaled_steps
from benchmarks.loops.vision.run import Run

STEP = ("loss", "lr")
NORM = ("loss", "lr", "grad_norm")

# With 60 steps of warm-up this comes to half the loss.
POST_NORM = Config(
    "charlm",
    epochs=7,
    optimizer="adamw",
    schedule="linear",
    log_every=4,
    model={"cell": "transformer", "pre_norm": False, "layers": 4, "hidden": 32},
    data={"letters": 8, "choices": 2, "n_train": 800},
)

HIGH = [
    Run(
        "lr_too_high",
        Config("shapes", epochs=6, optimizer="sgd", lr=3.0),
        "logging",
        "loss leaps up at once and stays at chance",
        "args",
        NORM,
        also=("exploding_gradients",),
    ),
    Run(
        "lr_too_high",
        Config("regression", epochs=10, optimizer="sgd", lr=0.6),
        "csv_steps",
        "loss leaps about its variance, R2 is below zero",
        "json",
        NORM,
        also=("dead_units",),
    ),
    Run(
        "lr_too_high",
        Config("regression", epochs=10, optimizer="sgd", lr=0.6, model={"depth": 3}),
        "logging",
        "units die, the loss leaps to 1e36 and is NaN from the third epoch",
        "args",
        ("loss", "lr", "grad_norm", "dead_frac"),
        (zero_share,),
        ("dead_units", "exploding_gradients"),
    ),
    Run("lr_too_high", Config("charlm", epochs=6, lr=0.3), "wandb", "loss above chance, never settles", "yaml", NORM),
    Run(
        "lr_too_high",
        Config("forecast", epochs=12, lr=0.2),
        "tensorboard",
        "loss leaps about above its level",
        "yaml",
        NORM,
    ),
    Run(
        "lr_too_high",
        Config("fraud", epochs=10, lr=0.5, data={"share": 0.45}),
        "keras",
        "loss leaps about at a rate of 0.5",
        "",
        STEP,
    ),
    Run("lr_too_low", Config("shapes", epochs=8, lr=1e-6), "metriclogger", "loss hardly moves at 1e-6", "args", NORM),
    Run(
        "lr_too_low",
        Config("regression", epochs=12, optimizer="sgd", lr=1e-5),
        "csv_steps",
        "loss hardly moves",
        "json",
        NORM,
    ),
    Run(
        "lr_too_low", Config("boxes", epochs=8, optimizer="sgd", lr=2e-5), "lightning", "loss creeps down", "yaml", NORM
    ),
    Run("lr_too_low", Config("charlm", epochs=8, lr=1e-5), "loguru", "loss hardly below ln 20", "", NORM),
]

SCHEDULE = [
    Run(
        "insufficient_warmup",
        replace(POST_NORM, lr=2.5e-2),
        "jsonl",
        "peak rate from step one; the loss falls, though slower than with warm-up",
        "json",
        NORM,
        also=("lr_too_high",),
        weak=True,
    ),
    Run(
        "insufficient_warmup",
        replace(POST_NORM, lr=3e-2, warmup_steps=2, schedule="cosine"),
        "tensorboard",
        "two steps of warm-up; the loss hardly leaves the level of its first steps",
        "yaml",
        NORM,
        also=("lr_too_high",),
    ),
    Run(
        "lr_schedule_bug",
        Config("shapes", epochs=10, optimizer="sgd", lr=0.02, schedule="cosine"),
        "csv_steps",
        "rate is zero after a tenth of the run, loss stands still",
        "json",
        NORM,
        (scaled_steps(10.0),),
    ),
    Run(
        "lr_schedule_bug",
        Config("regression", epochs=14, lr=2e-3, schedule="exponential"),
        "logging",
        "rate decays far too fast, loss stalls high",
        "args",
        NORM,
        (scaled_steps(9.0),),
    ),
    Run(
        "lr_schedule_bug",
        Config("boxes", epochs=10, lr=4e-3, schedule="cosine"),
        "wandb",
        "rate starts anew each epoch, loss bumps with it",
        "yaml",
        NORM,
        (factor(lambda step, n: 1 - (step % n) / n),),
    ),
    Run(
        "lr_schedule_bug",
        Config("denoiser", epochs=10, lr=2e-3, schedule="step"),
        "tensorboard",
        "three drops within the first epochs",
        "",
        NORM,
        (scaled_steps(12.0),),
        also=("lr_too_low",),
    ),
    Run(
        "lr_schedule_bug",
        Config("forecast", epochs=12, lr=3e-3, warmup_steps=100, schedule="constant"),
        "lightning",
        "rate is still in warm-up at the end: stepped by epoch",
        "yaml",
        NORM,
        (factor(lambda step, n: (step // n + 1) / 100),),
        ("lr_too_low",),
    ),
    Run(
        "resume_state_lost",
        Config("shapes", epochs=10, optimizer="sgd", lr=0.05, schedule="cosine"),
        "metriclogger",
        "at the resume the rate leaps back to its start",
        "args",
        NORM,
        (resume(6, optimizer=False, schedule=False),),
        ("lr_schedule_bug",),
    ),
    Run(
        "resume_state_lost",
        Config("charlm", epochs=10, lr=2e-2, schedule="linear"),
        "logging",
        "rate and loss leap at the resume",
        "yaml",
        NORM,
        (resume(7, optimizer=False, schedule=False),),
        ("lr_schedule_bug",),
    ),
    Run(
        "resume_state_lost",
        Config("denoiser", epochs=12, lr=5e-3, schedule="exponential"),
        "loguru",
        "rate and loss leap at the resume",
        "hydra",
        NORM,
        (resume(8, optimizer=False, schedule=False),),
        ("lr_schedule_bug",),
    ),
    Run(
        "resume_state_lost",
        Config("boxes", epochs=12, lr=4e-3, betas=(0.9, 0.9999), schedule="step"),
        "prints",
        "loss bumps and the rate leaps at the resume",
        "",
        NORM,
        (resume(8, optimizer=False, schedule=False),),
        ("lr_schedule_bug",),
    ),
]

DECAY = [
    Run(
        "weight_decay_too_high",
        Config("shapes", epochs=8, optimizer="sgd", lr=0.05, weight_decay=0.5),
        "tensorboard",
        "loss goes to ln 5 and stays; decay 0.5",
        "yaml",
        NORM,
    ),
    Run(
        "weight_decay_too_high",
        Config("charlm", epochs=8, optimizer="adamw", lr=5e-3, weight_decay=20.0),
        "jsonl",
        "loss stalls high; decay 20",
        "json",
        NORM,
    ),
    Run(
        "weight_decay_too_high",
        Config("regression", epochs=12, lr=3e-3, weight_decay=0.5),
        "logging",
        "loss stays at the variance; L2 0.5 in Adam",
        "args",
        NORM,
    ),
    Run(
        "batch_too_small",
        Config("shapes", epochs=2, optimizer="sgd", lr=5e-3, batch_size=1, model={"depth": 2}, log_every=8),
        "csv_steps",
        "loss leaps between 0 and many nats at a batch of one; val hardly suffers",
        "json",
        NORM,
        also=("lr_too_high",),
        weak=True,
    ),
    Run(
        "batch_too_small",
        Config("regression", epochs=2, optimizer="sgd", lr=0.02, batch_size=1, log_every=10),
        "tqdm",
        "loss leaps over decades, R2 poor",
        "args",
        NORM,
        also=("lr_too_high",),
    ),
    Run(
        "batch_too_small",
        Config("fraud", epochs=1, lr=1e-2, batch_size=1, log_every=10, data={"share": 0.3}),
        "wandb",
        "loss leaps at a batch of one; val hardly suffers",
        "yaml",
        NORM,
        also=("lr_too_high",),
        weak=True,
    ),
]

RUNS: list[Run] = HIGH + SCHEDULE + DECAY
