"""Runs whose loss, labels or metric is computed wrongly."""

from __future__ import annotations

from benchmarks.loops.science.recipe import Recipe
from benchmarks.loops.science.run import Run
from benchmarks.loops.science.tasks.graphs import Recommender
from benchmarks.loops.science.tasks.images import Autoencoder, Segmentation
from benchmarks.loops.science.tasks.physics import Diffusion, MultiTask, Physics
from benchmarks.loops.science.tasks.series import Forecast
from benchmarks.loops.science.tasks.sound import Audio, Sleep, Speech
from benchmarks.loops.science.tasks.tables import Fraud, Tabular
from benchmarks.loops.science.trainer import Supervised


def runs() -> list[Run]:
    """Return them."""
    return [*_masks(), *_softmax(), *_wrong(), *_math(), *_metrics(), *_pairs()]


def _masks() -> list[Run]:
    empty = "the loss is NaN from the first step on, with no label counted"
    padded = "all windows count as labels (label_frac 1), so the loss is low and accuracy on true windows is not"
    early = "the forecast's error falls far below the noise at once: the target lies in the window"
    a = Supervised(Sleep(all_ignored=True), Recipe(steps=120, lr=3e-3, log_every=1, eval_every=30))
    c = Supervised(Sleep(all_ignored=True, windows=24), Recipe(steps=200, log_every=2, seed=8))
    d = Supervised(Sleep(padding_counts=True), Recipe(steps=300, lr=2e-3))
    e = Supervised(Sleep(padding_counts=True, noise=1.6), Recipe(steps=300, lr=1e-3, seed=2))
    f = Supervised(Forecast(copied_target=True), Recipe(steps=700, lr=5e-3))
    g = Supervised(
        Forecast(copied_target=True, horizon=1, noise=0.4), Recipe(steps=600, lr=5e-3, schedule="cosine", seed=4)
    )
    return [
        Run(a, "all_labels_masked", empty, "logging", "yaml", also=("invalid_math",)),
        Run(c, "all_labels_masked", empty, "jsonl_nested", "json", also=("invalid_math",)),
        Run(d, "prompt_not_masked", padded, "prints", "printed"),
        Run(e, "prompt_not_masked", padded, "keras_csv", "json"),
        Run(f, "label_shift_error", early, "lightning", "hparams", also=("train_eval_leakage",), weak=True),
        Run(g, "label_shift_error", early, "wandb_csv", "wandb", also=("train_eval_leakage",)),
    ]


def _softmax() -> list[Run]:
    floor = "the loss stops at the floor of probabilities given for logits (ln(1 + (K-1)/e)) though accuracy is high"
    half = (
        "the loss cannot fall below ln 2 for the negatives, since sigmoids are never below a half when squashed twice"
    )
    a = Supervised(Audio(softmax_twice=True, noise=0.5), Recipe(steps=500, lr=2e-3))
    b = Supervised(Audio(softmax_twice=True, classes=5, noise=0.7), Recipe(steps=500, lr=2e-3, seed=3))
    c = Supervised(Fraud(sigmoid_twice=True, positive_rate=0.3, separation=2.5), Recipe(steps=600, lr=2e-3))
    return [
        Run(a, "double_softmax", floor, "tqdm", "args"),
        Run(b, "double_softmax", floor, "keras_json", "yaml"),
        Run(c, "double_softmax", half, "csv_pair", "json"),
    ]


def _wrong() -> list[Run]:
    a = Supervised(Tabular(unsqueezed=True), Recipe(steps=600, lr=2e-3))
    c = Supervised(Segmentation(dice_not_inverted=True, dice_weight=3.0), Recipe(steps=300, batch_size=16, lr=3e-3))
    d = Supervised(Diffusion(sign_lost=True), Recipe(steps=400, log_every=2, lr=1e-3))
    e = Supervised(Autoencoder(kl_negated=True), Recipe(steps=400, lr=1e-3))
    f = Supervised(MultiTask(no_log_term=True), Recipe(steps=1200, lr=1e-2, log_every=10))
    g = Supervised(Physics(source_sign=-1.0), Recipe(steps=500, lr=3e-3, batch_size=64, log_every=2))
    shape = "loss and MAE stop at the spread of the target and R2 at zero: (n, 1) minus (n) is all pairs"
    return [
        Run(a, "wrong_loss", shape, "lightning", "hparams", also=("no_signal",)),
        Run(
            c,
            "wrong_loss",
            "the Dice term rests at zero because Dice itself is brought down: the metric dies",
            "logging",
            "yaml",
        ),
        Run(d, "wrong_loss", "the loss runs to minus infinity while the samples get worse", "csv_own", "json"),
        Run(
            e,
            "wrong_loss",
            "KL grows without bound and the total falls below zero: KL is rewarded",
            "jsonl_flat",
            "yaml",
        ),
        Run(
            f,
            "wrong_loss",
            "the weighted loss falls by growing sigmas, and sigma_a grows while the error of a falls",
            "wandb_jsonl",
            "wandb",
        ),
        Run(
            g,
            "wrong_loss",
            "residual and data terms pull apart; the solution's error stays near or above 1",
            "table",
            "printed",
        ),
    ]


def _math() -> list[Run]:
    first = "NaN from the first step on: a logarithm of values below zero"
    a = Supervised(Tabular(log_target=True), Recipe(steps=200, log_every=1))
    raw = Tabular(log_target=True, standardize_target=False, noise=3.2)
    b = Supervised(raw, Recipe(steps=500, log_every=1, lr=2e-3))
    c = Supervised(Forecast(mape_loss=True), Recipe(steps=300, lr=3e-3, log_every=1, seed=2))
    d = Supervised(Autoencoder(log_of_output=True), Recipe(steps=600, lr=8e-3, log_every=1))
    e = Supervised(Physics(root_residual=True), Recipe(steps=700, lr=3e-3, batch_size=32, log_every=1))
    late = "loss and gradient turn NaN in one step from ordinary values, with nothing growing before"
    return [
        Run(a, "invalid_math", first, "keras_console", "json", also=("all_labels_masked",)),
        Run(b, "invalid_math", late, "logging", "yaml"),
        Run(c, "invalid_math", "the relative error divides by targets of zero: Inf, then NaN", "csv_own", "json"),
        Run(d, "invalid_math", late, "prints", "printed"),
        Run(
            e,
            "invalid_math",
            "the gradient of a square root at zero: NaN gradient while the loss was finite",
            "jsonl_flat",
            "yaml",
            weak=True,
        ),
    ]


def _metrics() -> list[Run]:
    still = "the loss falls on both splits while this metric stays where it was"
    a = Supervised(Tabular(constant_r2=True), Recipe(steps=600, lr=2e-3))
    b = Supervised(Fraud(whole_scores=True, separation=2.5, positive_rate=0.2), Recipe(steps=600, lr=3e-3))
    c = Supervised(
        Recommender(wrong_index=True), Recipe(steps=900, batch_size=64, lr=1e-2, log_every=10, eval_every=90)
    )
    d = Supervised(Speech(wrong_blank=True), Recipe(steps=250, lr=5e-3, eval_every=25))
    e = Supervised(Segmentation(dice_of_logits=True), Recipe(steps=300, batch_size=16, lr=3e-3, eval_every=30))
    return [
        Run(a, "metric_bug", still, "csv_pair", "yaml"),
        Run(b, "metric_bug", still, "lightning", "hparams"),
        Run(c, "metric_bug", still, "logging", "printed"),
        Run(d, "metric_bug", "the CTC loss is small while the error rate stays near or above 1", "prints", "args"),
        Run(e, "metric_bug", still, "tensorboard", "json"),
    ]


def _pairs() -> list[Run]:
    swapped = "the pair loss falls while AUC falls below one half: clicked and not clicked are exchanged"
    same = "the pair loss stays at ln 2 and AUC at one half: both items of a pair are the same"
    a = Supervised(Recommender(swapped=True), Recipe(steps=700, batch_size=64, lr=5e-3, log_every=10))
    b = Supervised(Recommender(swapped=True, factors=8), Recipe(steps=500, lr=1e-2, seed=3))
    c = Supervised(Recommender(negative_is_positive=True), Recipe(steps=500, batch_size=64, lr=5e-3))
    d = Supervised(Recommender(negative_is_positive=True, reg=1e-5), Recipe(steps=400, lr=3e-3, seed=5, log_every=2))
    return [
        Run(a, "preference_labels_swapped", swapped, "csv_own", "yaml", also=("wrong_loss",)),
        Run(b, "preference_labels_swapped", swapped, "logging", "printed", also=("wrong_loss",)),
        Run(c, "no_preference_signal", same, "jsonl_nested", "json", also=("no_signal", "params_not_training")),
        Run(d, "no_preference_signal", same, "prints", also=("no_signal", "params_not_training")),
    ]
