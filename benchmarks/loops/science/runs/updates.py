"""Runs whose optimizer, schedule, clipping, accumulation or restart is at fault."""

from __future__ import annotations

from benchmarks.loops.science.recipe import Recipe
from benchmarks.loops.science.run import Run
from benchmarks.loops.science.tasks.graphs import Molecule, Recommender
from benchmarks.loops.science.tasks.images import Segmentation
from benchmarks.loops.science.tasks.physics import Diffusion, MultiTask, Physics
from benchmarks.loops.science.tasks.series import Forecast, Spiral
from benchmarks.loops.science.tasks.sound import Audio, Speech
from benchmarks.loops.science.tasks.tables import Fraud, Tabular
from benchmarks.loops.science.trainer import Supervised
from benchmarks.loops.science.troubles.updates import (
    KeptGradients,
    NotGiven,
    OtherModel,
    Restart,
    SummedShards,
    WrongSchedule,
)


def runs() -> list[Run]:
    """Return them."""
    return [*_rates(), *_schedules(), *_parameters(), *_sums(), *_clips(), *_restarts()]


def _rates() -> list[Run]:
    high = "the loss jumps about, or rises, from the first steps at a rate far above the usual"
    low = "the loss falls steadily and slowly to the end, at a rate far below the usual"
    a = Supervised(Tabular(), Recipe(steps=600, lr=0.4))
    b = Supervised(Audio(), Recipe(steps=400, lr=3.0, optimizer="sgd"))
    c = Supervised(Speech(), Recipe(steps=200, lr=0.15, log_every=2))
    d = Supervised(Diffusion(), Recipe(steps=500, lr=0.1, log_every=2, seed=3))
    g = Supervised(Tabular(), Recipe(steps=900, lr=2e-6, log_every=10))
    h = Supervised(Audio(), Recipe(steps=400, lr=4e-6))
    i = Supervised(Forecast(), Recipe(steps=400, lr=1e-5, seed=2))
    return [
        Run(a, "lr_too_high", high, "logging", "yaml"),
        Run(b, "lr_too_high", high, "csv_own", "json"),
        Run(c, "lr_too_high", high, "prints", "args"),
        Run(d, "lr_too_high", high, "wandb_jsonl", "wandb"),
        Run(g, "lr_too_low", low, "lightning", "hparams"),
        Run(h, "lr_too_low", low, "epoch_prints", "printed"),
        Run(i, "lr_too_low", low, "csv_pair", "json"),
    ]


def _schedules() -> list[Run]:
    a = Supervised(
        Tabular(), Recipe(steps=900, schedule="linear", warmup=30, log_every=3), (WrongSchedule(share=0.25),)
    )
    b = Supervised(
        Audio(noise=1.5), Recipe(steps=480, schedule="cosine", log_every=2, lr=2e-3), (WrongSchedule(share=0.25),)
    )
    four = Recipe(steps=400, batch_size=64, accumulate=8, schedule="linear", lr=3e-4, log_every=2)
    c = Supervised(Molecule(), four, (WrongSchedule(ticks=8),))
    d = Supervised(Forecast(), Recipe(steps=500, lr=2e-3, schedule="step", log_every=2), (WrongSchedule(share=0.12),))
    hot = Recipe(steps=500, lr=6e-2, optimizer="adamw", log_every=1, schedule="cosine")
    f = Supervised(Tabular(depth=5, hidden=96), hot)
    g = Supervised(Molecule(rounds=5), Recipe(steps=300, lr=4e-2, log_every=1, schedule="linear", seed=2))
    h = Supervised(Speech(hidden=48), Recipe(steps=250, lr=4e-2, log_every=1, schedule="cosine", seed=2))
    ends = "the learning rate is at zero long before the planned end and the loss stands still from there"
    peak = "the loss leaps in the first steps, at the schedule's peak with no warmup, and is late for the rest"
    return [
        Run(a, "lr_schedule_bug", ends, "csv_own", "yaml"),
        Run(
            b,
            "lr_schedule_bug",
            "the cosine runs past its end and the rate rises again and again",
            "jsonl_nested",
            "json",
        ),
        Run(
            c,
            "lr_schedule_bug",
            "the linear schedule ticks with each of eight micro-batches: zero after an eighth",
            "logging",
            "printed",
        ),
        Run(d, "lr_schedule_bug", "all three tenfold drops come within the first eighth", "prints", "args"),
        Run(f, "insufficient_warmup", peak, "jsonl_flat", "json", also=("lr_too_high",)),
        Run(g, "insufficient_warmup", peak, "logfmt", "printed", also=("lr_too_high",)),
        Run(h, "insufficient_warmup", peak, "wandb_jsonl", "wandb", also=("lr_too_high",), weak=True),
    ]


def _parameters() -> list[Run]:
    flat = "loss and measures stay at their first values though the gradient norm is not zero"
    a = Supervised(Tabular(), Recipe(steps=500, lr=2e-3), (OtherModel(),))
    b = Supervised(Audio(), Recipe(steps=400), (OtherModel(),))
    d = Supervised(Recommender(), Recipe(steps=400, batch_size=64, lr=5e-3), (OtherModel(),))
    e = Supervised(
        Segmentation(batch_norm=False), Recipe(steps=250, batch_size=16, lr=3e-3), (NotGiven("0.bias", frozen=True),)
    )
    f = Supervised(Tabular(depth=4), Recipe(steps=500, lr=1e-3, seed=4), (KeptGradients(),))
    g = Supervised(Audio(), Recipe(steps=400, lr=2e-2, optimizer="sgd"), (KeptGradients(),))
    i = Supervised(
        Fraud(positive_rate=0.3), Recipe(steps=600, lr=1e-2, optimizer="momentum", seed=5), (KeptGradients(),)
    )
    sums = "the gradient norm climbs to many times its start, as a sum over all steps so far does"
    return [
        Run(a, "params_not_training", flat, "logging", "yaml"),
        Run(b, "params_not_training", flat, "keras_csv", "json"),
        Run(d, "params_not_training", flat, "prints"),
        Run(
            e,
            "params_not_training",
            "the gradient norm is a tiny part of usual and the loss barely moves",
            "lightning",
            "hparams",
            also=("vanishing_gradients",),
        ),
        Run(f, "missing_zero_grad", sums, "csv_own", "yaml"),
        Run(g, "missing_zero_grad", sums, "logging", "printed"),
        Run(i, "missing_zero_grad", sums, "wandb_csv", "wandb"),
    ]


def _sums() -> list[Run]:
    times = "training loss is as many times the held-out loss as there are micro-batches"
    a = Supervised(Tabular(noise=2.0), Recipe(steps=400, batch_size=64, accumulate=8, lr=1e-3), (SummedShards(),))
    b = Supervised(
        Audio(noise=2.0), Recipe(steps=250, batch_size=64, accumulate=16, optimizer="momentum"), (SummedShards(),)
    )
    c = Supervised(Forecast(), Recipe(steps=300, batch_size=64, accumulate=4, lr=2e-3), (SummedShards(),))
    e = Supervised(Fraud(positive_rate=0.2, summed=True), Recipe(steps=500, batch_size=64))
    return [
        Run(a, "grad_accum_scaling", times, "epoch_prints", "printed"),
        Run(b, "grad_accum_scaling", times, "logging", "yaml", also=("lr_too_high",)),
        Run(c, "grad_accum_scaling", times, "csv_pair", "json"),
        Run(
            e, "wrong_loss", "cross-entropy is 64 times that of a guess: summed over the batch", "jsonl_nested", "json"
        ),
    ]


def _clips() -> list[Run]:
    tight = "the gradient norm is a hundred times the clip at every step and the loss creeps"
    a = Supervised(Tabular(), Recipe(steps=700, lr=0.05, optimizer="sgd", clip=0.01))
    b = Supervised(Audio(), Recipe(steps=400, lr=0.05, optimizer="momentum", clip=0.002))
    c = Supervised(Segmentation(), Recipe(steps=300, batch_size=16, lr=0.05, optimizer="sgd", clip=0.005))
    heavy = "training loss comes back up, or never leaves the loss of a guess, under a large decay"
    e = Supervised(Tabular(), Recipe(steps=600, lr=2e-3, weight_decay=0.5))
    f = Supervised(Audio(), Recipe(steps=400, lr=2e-3, optimizer="adamw", weight_decay=30.0))
    g = Supervised(Speech(), Recipe(steps=200, lr=3e-3, weight_decay=0.05))
    stale = "late spikes out of a tiny loss, again and again, with a tiny eps or a beta2 far from usual"
    i = Supervised(
        Physics(frequency=1.0), Recipe(steps=900, lr=4e-3, beta2=0.9, eps=1e-16, batch_size=256, log_every=1)
    )
    j = Supervised(Spiral(), Recipe(steps=500, lr=1e-2, beta2=0.8, eps=1e-15, batch_size=128, log_every=1))
    noiseless = Tabular(rows=128, noise=0.0)
    k = Supervised(
        noiseless, Recipe(steps=2500, lr=3e-3, beta2=0.9, eps=1e-18, batch_size=128, log_every=1, eval_every=250)
    )
    small = "steps are a noise of their own: the loss scatters over a wide range at a batch of one or two"
    m = Supervised(
        Audio(noise=1.5, batch_norm=False), Recipe(steps=1500, batch_size=1, lr=1.2e-2, log_every=1, eval_every=100)
    )
    n = Supervised(Molecule(), Recipe(steps=1500, batch_size=1, lr=8e-3, log_every=1, eval_every=100))
    o = Supervised(MultiTask(uncertainty=False), Recipe(steps=2000, batch_size=1, lr=1e-2, log_every=1, eval_every=200))
    return [
        Run(a, "clip_too_tight", tight, "logging", "yaml"),
        Run(b, "clip_too_tight", tight, "csv_own", "json"),
        Run(c, "clip_too_tight", tight, "prints", "args"),
        Run(e, "weight_decay_too_high", heavy, "lightning", "hparams"),
        Run(f, "weight_decay_too_high", heavy, "logging", "printed"),
        Run(g, "weight_decay_too_high", heavy, "jsonl_flat", "json", weak=True),
        Run(i, "adam_instability", stale, "csv_own", "yaml", weak=True),
        Run(j, "adam_instability", stale, "wandb_jsonl", "wandb", weak=True),
        Run(k, "adam_instability", stale, "logfmt", "printed", weak=True),
        Run(m, "batch_too_small", small, "logging", "printed", also=("lr_too_high",)),
        Run(n, "batch_too_small", small, "csv_pair", "yaml", also=("lr_too_high",)),
        Run(o, "batch_too_small", small, "jsonl_flat", "json", also=("lr_too_high",)),
    ]


def _restarts() -> list[Run]:
    lost = ("optimizer", "schedule")
    a = Supervised(
        Tabular(noise=0.3), Recipe(steps=700, lr=2e-2, schedule="cosine", log_every=2), (Restart(500, lost),)
    )
    b = Supervised(Speech(), Recipe(steps=300, lr=1e-2, schedule="linear", log_every=1), (Restart(220, lost),))
    c = Supervised(
        Physics(), Recipe(steps=700, lr=1e-2, schedule="cosine", batch_size=64, log_every=1), (Restart(480, lost),)
    )
    sparse = Recommender(random_clicks=True, factors=96, reg=0.0, users=400)
    again = Recipe(steps=170, lr=1.5e-2, batch_size=32, log_every=1, eval_every=25)
    e = Supervised(sparse, again, (Restart(100, ("data",)),))
    wide = Recommender(random_clicks=True, factors=128, reg=0.0, users=800)
    f = Supervised(wide, Recipe(steps=300, lr=1.5e-2, batch_size=32, log_every=1, seed=3), (Restart(180, ("data",)),))
    jump = "at the resume the rate goes back to its peak and the loss jumps above where it was"
    replay = (
        "after the resume the epoch starts over and the loss falls at once on rows seen before, held-out loss does not"
    )
    return [
        Run(a, "resume_state_lost", jump, "logging", "yaml"),
        Run(b, "resume_state_lost", jump, "csv_own", "json", also=("lr_schedule_bug",), weak=True),
        Run(c, "resume_state_lost", jump, "prints", "args", ("lr",)),
        Run(e, "resume_data_replayed", replay, "logging", "printed", also=("duplicated_data", "overfitting")),
        Run(f, "resume_data_replayed", replay, "jsonl_flat", "json", also=("duplicated_data", "overfitting")),
    ]
