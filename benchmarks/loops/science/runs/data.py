"""Runs whose rows are at fault."""

from __future__ import annotations

from benchmarks.loops.science.recipe import Recipe
from benchmarks.loops.science.run import Run
from benchmarks.loops.science.tasks.graphs import Molecule, Recommender
from benchmarks.loops.science.tasks.images import Segmentation
from benchmarks.loops.science.tasks.series import Forecast
from benchmarks.loops.science.tasks.sound import Audio
from benchmarks.loops.science.tasks.tables import Fraud, Tabular
from benchmarks.loops.science.trainer import Supervised
from benchmarks.loops.science.troubles import data as rows
from benchmarks.loops.science.troubles.updates import FrozenStatistics


def runs() -> list[Run]:
    """Return them."""
    return [*_batches(), *_targets(), *_order(), *_evaluation()]


def _batches() -> list[Run]:
    once = "one record's loss and gradient norm stand far above all others, and the loss is set back"
    each = "the loss jumps at the same place of each epoch"
    a = Supervised(Tabular(noise=0.5), Recipe(log_every=1, steps=640, lr=3e-3), (rows.BadBatches((333,), factor=80),))
    quiet = Recipe(steps=500, log_every=2, lr=3e-3, optimizer="momentum")
    b = Supervised(Audio(batch_norm=False), quiet, (rows.BadBatches((410,), factor=-25),))
    c = Supervised(
        Forecast(), Recipe(log_every=1, steps=500, lr=4e-3, seed=3), (rows.BadBatches((250,), key="y", factor=40),)
    )
    e = Supervised(
        Tabular(), Recipe(log_every=1, steps=640, lr=2e-3, shuffle=False), (rows.BadPocket(0.6, 0.68, factor=8),)
    )
    f = Supervised(
        Fraud(), Recipe(log_every=2, steps=640, lr=2e-3, shuffle=False), (rows.BadPocket(0.3, 0.36, factor=25),)
    )
    g = Supervised(
        Forecast(),
        Recipe(log_every=1, steps=480, shuffle=False, lr=3e-3),
        (rows.BadPocket(0.8, 0.88, key="y", factor=6),),
    )
    return [
        Run(a, "bad_batch", once, "logging", "yaml"),
        Run(b, "bad_batch", once, "csv_own", "json"),
        Run(c, "bad_batch", once, "jsonl_flat"),
        Run(e, "bad_data_pocket", each, "wandb_jsonl", "wandb"),
        Run(f, "bad_data_pocket", each, "logfmt", "printed"),
        Run(g, "bad_data_pocket", each, "csv_pair", columns=("grad_norm",)),
    ]


def _targets() -> list[Run]:
    noisy = "training accuracy stays far below that on clean held-out rows, and the loss has a high floor"
    none = "held-out measures stay at chance whatever the training loss does"
    rare = "accuracy equals the share of the majority while recall and F1 stay at zero"
    probe = ("lr", "probe")
    a = Supervised(Audio(rows=2048), Recipe(steps=700, batch_size=64, lr=1e-3), (rows.WrongTargets(0.5),))
    c = Supervised(Segmentation(rows=384), Recipe(steps=350, lr=3e-3, batch_size=16), (rows.WrongTargets(0.6),))
    d = Supervised(Tabular(rows=4096, noise=0.3), Recipe(steps=700, batch_size=64, lr=2e-3), (rows.WrongTargets(0.5),))
    e = Supervised(Audio(rows=2048), Recipe(steps=500, seed=4), (rows.WrongTargets(1.0, held=True),))
    f = Supervised(Tabular(), Recipe(steps=800, lr=2e-3), (rows.WrongTargets(1.0, held=True),))
    g = Supervised(Molecule(wrong_column=True), Recipe(steps=400, lr=2e-3))
    j = Supervised(Fraud(positive_rate=0.02, separation=1.0, rows=4096), Recipe(steps=600))
    k = Supervised(
        Fraud(positive_rate=0.012, separation=1.2, rows=4096), Recipe(steps=500, batch_size=64, lr=5e-4, seed=7)
    )
    return [
        Run(a, "label_noise", noisy, "lightning", "hparams", probe),
        Run(c, "label_noise", noisy, "csv_own", "yaml", probe),
        Run(d, "label_noise", noisy, "jsonl_nested", columns=probe),
        Run(e, "no_signal", none, "keras_csv", "json", probe),
        Run(f, "no_signal", none, "prints", "args", also=("label_noise", "overfitting")),
        Run(g, "no_signal", none, "table", "yaml", probe, also=("label_noise",)),
        Run(j, "class_imbalance", rare, "logging", "printed"),
        Run(k, "class_imbalance", rare, "keras_json", "json", ("lr", "probe")),
    ]


def _order() -> list[Run]:
    wave = "the loss repeats a wave with the period of an epoch, and held-out measures swing"
    steps = "the loss falls in steps at the starts of epochs while held-out measures get worse"
    a = Supervised(Audio(), Recipe(log_every=1, steps=480, shuffle=False), (rows.SortedBy(),))
    b = Supervised(Tabular(), Recipe(log_every=1, steps=640, shuffle=False, lr=2e-3, eval_every=40), (rows.SortedBy(),))
    c = Supervised(Fraud(positive_rate=0.3), Recipe(log_every=1, steps=640, shuffle=False), (rows.SortedBy(),))
    taste = Recommender(random_clicks=True, factors=64, reg=1e-6)
    e = Supervised(taste, Recipe(log_every=1, steps=450, lr=2e-2, eval_every=75))
    wide = Recommender(users=100, factors=96, reg=0.0)
    f = Supervised(wide, Recipe(log_every=1, steps=500, batch_size=16, lr=1.5e-2, seed=3, eval_every=100))
    return [
        Run(a, "unshuffled_data", wave, "jsonl_flat", "json"),
        Run(b, "unshuffled_data", wave, "csv_own", "yaml"),
        Run(c, "unshuffled_data", wave, "logfmt", "args"),
        Run(e, "duplicated_data", steps, "jsonl_nested", "yaml", also=("overfitting",)),
        Run(f, "duplicated_data", steps, "logging", "printed", also=("overfitting",)),
    ]


def _evaluation() -> list[Run]:
    copied = "validation follows training down while the test, drawn alike, gets worse"
    apart = "held-out loss is many times training's from the first evaluation on, while training is fine"
    a = Supervised(Tabular(rows=64, noise=4.0, hidden=96), Recipe(steps=900, lr=2e-3), (rows.HeldInTraining(),))
    b = Supervised(Audio(rows=128, noise=2.6), Recipe(steps=450), (rows.HeldInTraining(),))
    d = Supervised(Tabular(), Recipe(steps=600, lr=2e-3), (rows.ScaledHeld(factor=0.29, shift=2.5),))
    e = Supervised(Audio(), Recipe(steps=400), (rows.ScaledHeld(factor=20.0),))
    f = Supervised(Forecast(raw_held=True), Recipe(steps=500, lr=3e-3))
    g = Supervised(
        Segmentation(batch_norm=False), Recipe(steps=300, batch_size=16, lr=3e-3), (rows.ScaledHeld(factor=255.0),)
    )
    i = Supervised(Audio(channels=16), Recipe(steps=400, seed=2), (FrozenStatistics(), rows.RawInputs(2.0, shift=8.0)))
    j = Supervised(Segmentation(), Recipe(steps=350, batch_size=16, lr=3e-3), (FrozenStatistics(), rows.RawInputs(6.0)))
    return [
        Run(a, "train_eval_leakage", copied, "csv_pair", "yaml", ("lr", "probe")),
        Run(b, "train_eval_leakage", copied, "logging", "printed"),
        Run(d, "train_eval_mismatch", apart, "prints", "printed"),
        Run(e, "train_eval_mismatch", apart, "keras_console", "json", also=("eval_mode_bug",)),
        Run(f, "train_eval_mismatch", apart, "lightning", "hparams"),
        Run(g, "train_eval_mismatch", apart, "tensorboard", "yaml", also=("eval_mode_bug",)),
        Run(i, "eval_mode_bug", apart, "logging", "yaml", ("probe",), also=("train_eval_mismatch",)),
        Run(j, "eval_mode_bug", apart, "csv_own", "json", ("lr", "probe"), also=("train_eval_mismatch",)),
    ]
