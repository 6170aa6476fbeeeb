"""Runs whose model, initialisation or number format is at fault, or that memorise."""

from __future__ import annotations

from benchmarks.loops.science.recipe import Recipe
from benchmarks.loops.science.run import Run
from benchmarks.loops.science.tasks.graphs import Molecule
from benchmarks.loops.science.tasks.images import Autoencoder
from benchmarks.loops.science.tasks.physics import Diffusion, MultiTask, Physics
from benchmarks.loops.science.tasks.series import Adding, Forecast, Spiral
from benchmarks.loops.science.tasks.sound import Audio, Sleep, Speech
from benchmarks.loops.science.tasks.tables import Fraud, Tabular
from benchmarks.loops.science.trainer import Supervised
from benchmarks.loops.science.troubles.data import RawInputs
from benchmarks.loops.science.troubles.updates import DeadMeter, NegativeBiases, ScaledWeights


def runs() -> list[Run]:
    """Return them."""
    return [*_gradients(), *_starts(), *_capacity(), *_precision(), *_overfitting()]


def _gradients() -> list[Run]:
    grows = "the gradient norm leaps by orders of magnitude with no clipping, and the loss with it"
    a = Supervised(Adding(cell="rnn", length=40, gain=3.0), Recipe(steps=250, lr=0.05, optimizer="sgd", log_every=1))
    c = Supervised(
        Molecule(rounds=8, layer_norm=False),
        Recipe(steps=250, lr=1e-3, optimizer="sgd", log_every=1),
        (ScaledWeights(2.5),),
    )
    d = Supervised(
        Spiral(rate=4.0), Recipe(steps=250, lr=0.05, optimizer="sgd", log_every=1, seed=2), (ScaledWeights(3.0),)
    )
    small = "the loss stays at the guess of the mean in a net of many saturating layers, or of a short memory"
    e = Supervised(Tabular(depth=10, activation="sigmoid"), Recipe(steps=500, lr=2e-2, optimizer="sgd"))
    f = Supervised(Tabular(depth=14, activation="sigmoid"), Recipe(steps=500, lr=1e-3, seed=5))
    g = Supervised(
        Adding(cell="rnn", length=50, gain=0.2), Recipe(steps=300, lr=1e-2, optimizer="sgd", log_every=2, seed=2)
    )
    return [
        Run(a, "exploding_gradients", grows, "logging", "yaml"),
        Run(c, "exploding_gradients", grows, "wandb_jsonl", "wandb", also=("bad_init",)),
        Run(d, "exploding_gradients", grows, "prints", also=("bad_init", "invalid_math")),
        Run(e, "vanishing_gradients", small, "lightning", "hparams"),
        Run(f, "vanishing_gradients", small, "logging", "printed"),
        Run(g, "vanishing_gradients", small, "jsonl_nested", "yaml", weak=True),
    ]


def _starts() -> list[Run]:
    large = "the first loss is many times that of a guess, and comes down from there"
    dead = "dead_frac stays near 1, the gradient norm is tiny and the loss stays at the guess of the mean"
    a = Supervised(Audio(batch_norm=False), Recipe(steps=400, log_every=2), (ScaledWeights(6.0),))
    b = Supervised(Speech(), Recipe(steps=250, lr=3e-3, log_every=2), (ScaledWeights(25.0),))
    c = Supervised(Autoencoder(), Recipe(steps=400, lr=1e-3, log_every=2), (ScaledWeights(4.0),))
    e = Supervised(Tabular(), Recipe(steps=500, lr=1e-3), (NegativeBiases(-8.0), DeadMeter()))
    f = Supervised(
        MultiTask(uncertainty=False), Recipe(steps=500, lr=1e-3, seed=2), (NegativeBiases(-9.0), DeadMeter())
    )
    g = Supervised(Fraud(positive_rate=0.3), Recipe(steps=400), (NegativeBiases(-10.0), DeadMeter()))
    return [
        Run(a, "bad_init", large, "csv_own", "json"),
        Run(b, "bad_init", large, "tqdm", "args", also=("exploding_gradients",)),
        Run(c, "bad_init", large, "logging", "yaml"),
        Run(e, "dead_units", dead, "logging", "printed"),
        Run(f, "dead_units", dead, "jsonl_flat", "yaml"),
        Run(g, "dead_units", dead, "csv_pair", "json"),
    ]


def _capacity() -> list[Run]:
    plateau = "training and held-out loss stop together well above what the data allow, for a tiny net"
    probe = ("lr", "grad_norm", "probe")
    a = Supervised(Tabular(depth=0, noise=0.1), Recipe(steps=900, lr=5e-3, schedule="cosine"))
    b = Supervised(Spiral(hidden=1), Recipe(steps=400, lr=1e-2, schedule="cosine", log_every=2))
    c = Supervised(Physics(hidden=2, depth=1, frequency=3.0), Recipe(steps=800, lr=1e-2, batch_size=64, log_every=4))
    e = Supervised(Autoencoder(latent=1, hidden=4), Recipe(steps=700, lr=5e-3, schedule="cosine"))
    return [
        Run(a, "too_little_capacity", plateau, "wandb_csv", "wandb", probe),
        Run(b, "too_little_capacity", plateau, "csv_pair", "yaml", probe),
        Run(c, "too_little_capacity", plateau, "table", "printed"),
        Run(e, "too_little_capacity", plateau, "jsonl_nested", "json", probe, weak=True),
    ]


def _precision() -> list[Run]:
    half = "the loss scale halves step by step and no update is made: half precision overflows on raw inputs"
    lost = (
        "the loss stands still above the held-out loss of the same run in full precision: pure bf16 drops small updates"
    )
    a = Supervised(Tabular(), Recipe(steps=150, lr=1e-3, precision="fp16", log_every=1), (RawInputs(2e5),))
    b = Supervised(MultiTask(), Recipe(steps=200, lr=1e-3, precision="fp16", log_every=1, seed=2), (RawInputs(5e4),))
    c = Supervised(Fraud(positive_rate=0.3), Recipe(steps=120, precision="fp16", log_every=1), (RawInputs(1e5),))
    d = Supervised(Tabular(), Recipe(steps=900, lr=2e-5, precision="bf16", log_every=3))
    e = Supervised(Diffusion(), Recipe(steps=700, lr=3e-5, precision="bf16", log_every=3, batch_size=128))
    return [
        Run(a, "fp16_overflow", half, "logging", "yaml"),
        Run(b, "fp16_overflow", half, "jsonl_flat", "json"),
        Run(c, "fp16_overflow", half, "csv_own"),
        Run(d, "low_precision_update", lost, "csv_pair", "yaml", also=("lr_too_low",)),
        Run(e, "low_precision_update", lost, "wandb_jsonl", "wandb", also=("lr_too_low",)),
    ]


def _overfitting() -> list[Run]:
    apart = "held-out loss turns and rises while training loss goes on to fall"
    a = Supervised(Audio(rows=96, noise=2.0), Recipe(steps=400))
    b = Supervised(Tabular(rows=64, noise=4.0, hidden=128), Recipe(steps=900, lr=2e-3, log_every=3))
    c = Supervised(Forecast(rows=128, noise=0.4, hidden=48), Recipe(steps=600, lr=8e-3, log_every=3))
    d = Supervised(Sleep(rows=24, noise=1.6, hidden=48), Recipe(steps=250, batch_size=8, lr=5e-3, eval_every=10))
    e = Supervised(Fraud(rows=256, positive_rate=0.3, separation=0.6, hidden=96), Recipe(steps=800, lr=3e-3))
    return [
        Run(a, "overfitting", apart, "epoch_prints", "printed"),
        Run(b, "overfitting", apart, "keras_csv", "yaml"),
        Run(c, "overfitting", apart, "logging", "yaml"),
        Run(d, "overfitting", apart, "lightning", "hparams"),
        Run(e, "overfitting", apart, "jsonl_nested"),
    ]
