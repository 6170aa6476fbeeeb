"""Healthy runs as they come, the twins of those with faults."""

from __future__ import annotations

from benchmarks.loops.science.agents.designer import Designer
from benchmarks.loops.science.agents.dock import Dock
from benchmarks.loops.science.agents.maze import Maze
from benchmarks.loops.science.recipe import Recipe
from benchmarks.loops.science.run import Run
from benchmarks.loops.science.tasks.graphs import Molecule, Recommender
from benchmarks.loops.science.tasks.images import Autoencoder, Contrastive, Segmentation
from benchmarks.loops.science.tasks.physics import Diffusion, MultiTask, Physics
from benchmarks.loops.science.tasks.series import Adding, Forecast, Spiral
from benchmarks.loops.science.tasks.sound import Audio, Sleep, Speech
from benchmarks.loops.science.tasks.tables import Fraud, Tabular
from benchmarks.loops.science.trainer import Supervised


def runs() -> list[Run]:
    """Return them."""
    return [*_supervised(), *_fields(), *_agents()]


def _fine(
    experiment: Supervised, fact: str, style: str, settings: str = "", columns: tuple[str, ...] = ("lr", "grad_norm")
) -> Run:
    return Run(experiment, "healthy", fact, style, settings, columns)


def _supervised() -> list[Run]:
    done = "loss and measures get better on both splits and level off because it is done"
    a = Supervised(Tabular(), Recipe(steps=640, lr=2e-3, schedule="cosine", warmup=30))
    b = Supervised(
        Tabular(noise=0.3, depth=3),
        Recipe(steps=700, lr=1e-3, optimizer="adamw", weight_decay=0.01, log_every=1, seed=4),
    )
    c = Supervised(Fraud(pos_weight=8.0), Recipe(steps=500, lr=1e-3, schedule="cosine"))
    e = Supervised(Forecast(), Recipe(steps=500, lr=3e-3, schedule="step"))
    f = Supervised(Forecast(horizon=3, noise=0.1), Recipe(steps=400, lr=4e-3, log_every=2, clip=1.0, seed=3))
    g = Supervised(Molecule(), Recipe(steps=350, lr=2e-3, schedule="linear"))
    i = Supervised(Recommender(), Recipe(steps=800, batch_size=64, lr=3e-3, log_every=10))
    return [
        _fine(a, done, "logging", "yaml"),
        _fine(b, done, "csv_own", "json"),
        _fine(c, "recall and AUC rise; accuracy is no measure of a rare class", "keras_csv", "json"),
        _fine(
            e, "held-out loss is above training's because the trend goes on, and both fall", "epoch_prints", "printed"
        ),
        _fine(f, done, "jsonl_flat"),
        _fine(g, done, "lightning", "hparams"),
        _fine(i, "AUC and NDCG rise and level off", "csv_pair", "yaml"),
    ]


def _fields() -> list[Run]:
    done = "loss and measures get better on both splits and level off because it is done"
    two = "several terms, all of which end below their starts but KL, which must rise from zero"
    a = Supervised(Speech(), Recipe(steps=250, lr=4e-3, schedule="cosine", warmup=20))
    b = Supervised(Audio(dropout=0.3), Recipe(steps=400, batch_size=64, schedule="onecycle", lr=3e-3))
    c = Supervised(
        Audio(noise=1.5), Recipe(steps=300, lr=2e-2, optimizer="momentum", schedule="step", log_every=1, seed=5)
    )
    d = Supervised(Sleep(), Recipe(steps=220, lr=4e-3, clip=5.0))
    e = Supervised(Segmentation(), Recipe(steps=300, batch_size=16, lr=3e-3))
    f = Supervised(Autoencoder(), Recipe(steps=600, lr=1e-3, schedule="cosine"))
    g = Supervised(Contrastive(), Recipe(steps=500, batch_size=64, lr=1e-3, schedule="cosine", warmup=25))
    i = Supervised(Diffusion(), Recipe(steps=900, lr=1e-3, batch_size=64))
    j = Supervised(Physics(), Recipe(steps=800, lr=3e-3, schedule="step", batch_size=64, log_every=4))
    k = Supervised(MultiTask(), Recipe(steps=700, lr=2e-3, log_every=1))
    m = Supervised(Spiral(), Recipe(steps=300, lr=5e-3, schedule="cosine"))
    n = Supervised(Adding(length=8), Recipe(steps=500, lr=8e-3, clip=1.0, log_every=2))
    return [
        _fine(a, "CER falls from one to a few per cent after the usual flat start of CTC", "csv_own", "yaml"),
        _fine(b, done, "keras_json", "json"),
        _fine(c, done, "tensorboard"),
        _fine(d, done, "table", "args"),
        _fine(e, done, "jsonl_nested", "yaml"),
        _fine(f, two, "wandb_csv", "wandb"),
        _fine(g, "InfoNCE stays well above zero, as views of one cluster do; neighbours get better", "logging"),
        _fine(
            i, "the noise cannot be guessed in full, so the loss stops near 0.4; samples get nearer", "parquet", "json"
        ),
        _fine(j, "residual falls by orders of magnitude and the solution's error too", "prints", "printed"),
        _fine(k, "the loss falls below zero because it is a likelihood", "csv_pair", "yaml"),
        _fine(m, done, "keras_console", "json"),
        _fine(n, "flat at the guess for a while, then it is learnt", "logging", "yaml"),
    ]


def _agents() -> list[Run]:
    learns = "return and success rise, entropy falls slowly, KL stays small, in the noise of small batches"
    return [
        Run(Dock(), "healthy", learns, "boxes", "printed"),
        Run(Dock(lr=1e-3, updates=200, epochs=6, seed=3), "healthy", learns, "csv_own", "yaml"),
        Run(Dock(epochs=1, lr=4e-3, updates=220, seed=4), "healthy", learns, "logging"),
        Run(Designer(), "healthy", "reward and the task's score rise together", "jsonl_flat", "json"),
        Run(
            Designer(group_size=12, lr=4e-3, seed=2), "healthy", "reward rises with a bounded KL", "wandb_csv", "wandb"
        ),
        Run(Maze(), "healthy", "returns of zero while it explores, then the goal each time", "csv_own", "yaml"),
        Run(Maze(corridor=5, seed=9, episodes=120), "healthy", "the goal is found early and kept", "prints"),
    ]
