"""Healthy runs that look odd: what such runs do in real life, and people ask about."""

from __future__ import annotations

from benchmarks.loops.science.agents.designer import Designer
from benchmarks.loops.science.agents.dock import Dock
from benchmarks.loops.science.agents.maze import Maze
from benchmarks.loops.science.recipe import Recipe
from benchmarks.loops.science.run import Run
from benchmarks.loops.science.tasks.graphs import Molecule, Recommender
from benchmarks.loops.science.tasks.images import Autoencoder, Segmentation
from benchmarks.loops.science.tasks.physics import Diffusion, MultiTask, Physics
from benchmarks.loops.science.tasks.series import Adding, Forecast, Spiral
from benchmarks.loops.science.tasks.sound import Audio, Sleep, Speech
from benchmarks.loops.science.tasks.tables import Tabular
from benchmarks.loops.science.trainer import Supervised
from benchmarks.loops.science.troubles.data import BadBatches
from benchmarks.loops.science.troubles.machine import MemoryMeter
from benchmarks.loops.science.troubles.updates import DeadMeter, Restart


def runs() -> list[Run]:
    """Return them."""
    return [*_noise(), *_shapes(), *_settings(), *_agents()]


def _fine(
    experiment: Supervised, fact: str, style: str, settings: str = "", columns: tuple[str, ...] = ("lr", "grad_norm")
) -> Run:
    return Run(experiment, "healthy", fact, style, settings, columns)


def _noise() -> list[Run]:
    tiny = "a tiny batch makes the loss scatter; its mean falls and the held-out measures get better"
    a = Supervised(Audio(), Recipe(steps=1200, batch_size=4, lr=5e-4, log_every=1, eval_every=100))
    b = Supervised(MultiTask(uncertainty=False), Recipe(steps=2400, batch_size=2, lr=5e-4, log_every=1, eval_every=200))
    d = Supervised(Diffusion(), Recipe(steps=1500, batch_size=16, lr=5e-4, log_every=1, eval_every=150, seed=2))
    e = Supervised(Tabular(), Recipe(steps=640, lr=2e-3, log_every=1, clip=1.0), (BadBatches((300,), factor=4),))
    f = Supervised(Speech(), Recipe(steps=200, lr=3e-3, log_every=1, clip=1.0), (BadBatches((120,), factor=3),))
    harmless = "one mild spike, clipped, after which the loss is back at once"
    return [
        _fine(a, tiny, "csv_own", "json"),
        _fine(b, tiny, "csv_pair", "yaml"),
        _fine(d, "the noise level of each draw differs, so the loss scatters for ever", "jsonl_flat"),
        _fine(e, harmless, "logfmt", "printed"),
        _fine(f, harmless, "wandb_jsonl", "wandb"),
    ]


def _shapes() -> list[Run]:
    a = Supervised(Autoencoder(anneal_steps=400), Recipe(steps=600, lr=1e-3, log_every=2))
    b = Supervised(Autoencoder(beta=0.3, latent=10), Recipe(steps=500, lr=2e-3, seed=5))
    c = Supervised(Adding(length=16), Recipe(steps=900, lr=6e-3, clip=1.0, log_every=3, seed=3))
    d = Supervised(Audio(dropout=0.6), Recipe(steps=400, seed=7))
    f = Supervised(
        Physics(frequency=3.0),
        Recipe(steps=1200, lr=5e-3, batch_size=32, log_every=1, schedule="cosine", eval_every=100),
    )
    g = Supervised(MultiTask(), Recipe(steps=900, lr=5e-3, schedule="step", log_every=3, seed=4))
    h = Supervised(Forecast(noise=0.5), Recipe(steps=300, lr=2e-3, schedule="cosine", warmup=40, seed=6))
    i = Supervised(Tabular(noise=12.0), Recipe(steps=250, lr=1e-3, schedule="cosine", seed=3))
    j = Supervised(Sleep(), Recipe(steps=240, lr=4e-3, schedule="cosine", log_every=1), (Restart(120),))
    m = Supervised(
        Diffusion(), Recipe(steps=3000, lr=1e-3, log_every=1, schedule="cosine", warmup=100, eval_every=300, seed=6)
    )
    n = Supervised(Segmentation(rows=64), Recipe(steps=64, batch_size=16, lr=8e-3, log_every=1, eval_every=8))
    o = Supervised(Spiral(), Recipe(steps=60, lr=8e-3, log_every=1, eval_every=10, seed=4))
    return [
        _fine(a, "KL's weight is annealed, so the total bends while reconstruction falls", "logging", "yaml"),
        _fine(b, "KL rises while reconstruction falls, as a small beta asks for", "csv_pair", "json"),
        _fine(c, "flat at 0.167 for a third of the run, then it is learnt", "wandb_csv", "wandb"),
        _fine(d, "dropout makes training look worse than evaluation", "keras_csv", "yaml", ("lr",)),
        _fine(f, "noisy residual of few points, smooth under the cosine's tail", "csv_own", "yaml"),
        _fine(g, "below zero, with steps down where the rate drops", "jsonl_flat", "json"),
        _fine(h, "noise bounds the error from below; warmup, then done", "prints", "args"),
        _fine(i, "most of the target is noise: R2 rises to its small limit and stays", "lightning", "hparams"),
        _fine(j, "a restart with all state: nothing jumps", "logging", "printed"),
        _fine(m, "three thousand records of scatter around a slow fall", "table", "json"),
        _fine(n, "a short log that is still on its way down", "tqdm"),
        _fine(o, "a short log that is still on its way down", "json_history", "json"),
    ]


def _settings() -> list[Run]:
    a = Supervised(Tabular(), Recipe(steps=500, lr=5e-4, optimizer="rmsprop", batch_size=16), (DeadMeter(),))
    b = Supervised(Tabular(), Recipe(steps=450, lr=0.05, optimizer="sgd", schedule="cosine", seed=9))
    c = Supervised(Audio(), Recipe(steps=300, lr=2e-3, optimizer="adamw", weight_decay=0.1, beta2=0.95, seed=9))
    d = Supervised(Forecast(), Recipe(steps=300, lr=4e-3, batch_size=64, accumulate=4, log_every=2), (MemoryMeter(),))
    e = Supervised(MultiTask(), Recipe(steps=500, lr=2e-3, precision="fp16", log_every=2, seed=7))
    g = Supervised(Tabular(), Recipe(steps=400, batch_size=64, world_size=4, log_every=2, lr=3e-3, seed=6))
    i = Supervised(Molecule(target_mean=20.0), Recipe(steps=700, lr=1e-2, log_every=2, seed=2, schedule="cosine"))
    j = Supervised(Recommender(), Recipe(steps=500, lr=1.0, optimizer="sgd", batch_size=64, log_every=10, seed=6))
    return [
        _fine(a, "an unusual optimizer, and it learns; a part of the ReLUs is closed as ever", "csv_own", "yaml"),
        _fine(b, "plain SGD at a rate that suits it", "keras_json", "yaml"),
        _fine(c, "a beta2 and decay from language models, and it learns", "jsonl_nested", "json"),
        _fine(d, "four micro-batches, averaged; memory settles", "logging", "yaml"),
        _fine(e, "half precision: the scale is halved once or twice as it looks for its place", "jsonl_flat", "json"),
        _fine(g, "four ranks that agree", "wandb_jsonl", "wandb"),
        _fine(i, "the target's mean is far from zero, so the first loss is; it is learnt soon", "logging", "printed"),
        _fine(j, "a learning rate of one suits SGD on small embeddings' tiny gradients", "prints", "printed"),
    ]


def _agents() -> list[Run]:
    return [
        Run(
            Dock(sparse_reward=True, seed=7, updates=200),
            "healthy",
            "sparse reward: flat at first, then found",
            "csv_own",
            "json",
        ),
        Run(
            Dock(reward_scale=3.0, max_grad_norm=20.0, seed=8),
            "healthy",
            "large rewards make a large value loss that comes down",
            "wandb_jsonl",
            "wandb",
        ),
        Run(
            Designer(kl_coef=0.2, seed=7),
            "healthy",
            "a strong KL keeps the policy near and the reward below its limit",
            "csv_own",
            "yaml",
        ),
        Run(
            Designer(group_size=4, seed=8, steps=160),
            "healthy",
            "small groups make the reward noisy",
            "logging",
            "printed",
        ),
        Run(
            Maze(corridor=9, seed=7, episodes=220, eps_decay_episodes=120),
            "healthy",
            "long exploration before the first goals",
            "logfmt",
            "args",
        ),
        Run(
            Maze(reward_goal=10.0, seed=8),
            "healthy",
            "larger rewards, larger TD loss, and the goal each time",
            "jsonl_nested",
            "json",
        ),
    ]
