"""Healthy runs of generative models, sequences, tables and systems."""

from __future__ import annotations

import torch
from torch.nn import functional

from benchmarks.loops.studio import (
    adversarial,
    contrastive,
    dynamics,
    generative,
    memory,
    ranks,
    sequence,
    systems,
    tables,
)
from benchmarks.loops.studio.catalog.tools import swap, well
from benchmarks.loops.studio.core import Plan, Record, Spec
from benchmarks.loops.studio.loop import Batch, go
from benchmarks.loops.studio.ranks import Team


def margin(s: int) -> Record:
    """A triplet loss whose margin grows by plan."""
    bench = contrastive.contrast(s, "triplet", show=False)
    clock = [0]

    def loss(model: torch.nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        clock[0] += 1
        wide = min(1.4, 0.2 + clock[0] / 80)
        a, b = contrastive.views(batch[0], 0.5)
        na = functional.normalize(model(a), dim=1)
        nb = functional.normalize(model(b), dim=1)
        gap = ((na - nb) ** 2).sum(1) - ((na - nb.roll(1, 0)) ** 2).sum(1)
        return {"loss": torch.relu(gap + wide).mean(), "margin": torch.tensor(wide)}

    return go(s, swap(bench, loss=loss), Plan(epochs=16, lr=2e-3, batch=128), margin_schedule="0.2->1.4")


def weighted(s: int) -> Record:
    """Rare positives with a weight."""

    def loss(model: torch.nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        weight = torch.tensor(12.0)
        z = model(batch[0])[:, 0]
        return {"loss": functional.binary_cross_entropy_with_logits(z, batch[1], pos_weight=weight)}

    bench = swap(tables.tabular(s, 6000, positive=0.06), loss=loss)
    return go(s, bench, Plan(epochs=8, lr=2e-3, batch=128), pos_weight=12.0)


SPECS: list[Spec] = [
    well(
        "tensorboard_csv",
        "diffusion",
        lambda s: go(s, generative.diffusion(s), Plan(epochs=50, lr=3e-3, batch=128, eval_every=10, log_every=20)),
        "noise error levels off above zero, samples get better",
    ),
    well(
        "jsonl_flat",
        "diffusion",
        lambda s: go(
            s,
            generative.diffusion(s, "v"),
            Plan(epochs=60, lr=3e-3, batch=128, eval_every=10, schedule="cosine", log_lr=True),
        ),
        "the v loss is bounded below; samples get better",
    ),
    well(
        "markdown",
        "vae",
        lambda s: go(s, generative.vae(s), Plan(epochs=20, lr=3e-3)),
        "reconstruction falls while KL settles above zero",
    ),
    well(
        "per_metric",
        "vae",
        lambda s: go(
            s,
            generative.vae(s, beta=lambda t: min(4.0, t / 100), show_beta=True),
            Plan(epochs=28, lr=3e-3),
            kl_anneal="0 to 4 in 400 steps",
        ),
        "the loss rises with the KL weight, by plan",
    ),
    well(
        "units_ini",
        "gan",
        lambda s: adversarial.gan(s, lr_g=5e-4, lr_d=5e-4, noise=0.4),
        "both losses hover near their balance",
    ),
    well(
        "mlflow",
        "gan",
        lambda s: adversarial.gan(s, lr_g=4e-4, lr_d=6e-4, noise=0.5, spectral=True, steps=700, log_every=20),
        "the discriminator stays uncertain, samples get better",
    ),
    well(
        "drawn_table",
        "ssl",
        lambda s: go(s, contrastive.contrast(s, temp=0.2), Plan(epochs=16, lr=2e-3, batch=128)),
        "loss leaves ln 128 and the probe gets better",
    ),
    well(
        "ansi",
        "ssl",
        lambda s: go(s, contrastive.contrast(s, "simsiam"), Plan(epochs=24, lr=2e-3, batch=128)),
        "negative cosine by design, embeddings stay spread",
    ),
    well("json_document", "ssl", margin, "the loss rises with the margin, by plan"),
    well(
        "espnet",
        "ctc",
        lambda s: go(s, sequence.ctc(s), Plan(epochs=16, lr=5e-3, batch=32, clip=5.0, log_gnorm=True)),
        "the blank phase at the start (CER 1) ends and the rate of errors falls",
    ),
    well(
        "csv_plain",
        "forecast",
        lambda s: go(s, sequence.forecast(s, count=700), Plan(epochs=20, lr=6e-3, clip=1.0)),
        "errors fall together",
    ),
    well(
        "hf_trainer",
        "forecast",
        lambda s: go(
            s,
            sequence.forecast(s, sequence.Attention(), count=600),
            Plan(
                epochs=12,
                lr=5e-3,
                warmup=24,
                schedule="cosine",
                optim="adamw",
                log_every=6,
                clip=1.0,
                log_lr=True,
                log_gnorm=True,
            ),
        ),
        "warm-up, then a smooth descent",
    ),
    well(
        "boosting",
        "tabular",
        lambda s: go(s, tables.tabular(s, drop=0.2), Plan(epochs=40, lr=3e-3, batch=128, patience=4)),
        "stopped early after the best epoch, as planned",
    ),
    well("split_logs", "tabular", weighted, "rare class with a weight; its recall is good"),
    well(
        "sacred",
        "recsys",
        lambda s: go(s, tables.recommend(s), Plan(epochs=12, lr=6e-3, batch=256)),
        "loss leaves ln 2, NDCG rises",
    ),
    well(
        "yaml_list",
        "graph",
        lambda s: go(
            s,
            tables.graph(s, nodes=600),
            Plan(epochs=80, lr=1e-2, eval_every=5, log_every=5, weight_decay=5e-3),
        ),
        "full-batch curves, smooth",
    ),
    well(
        "keras_csv",
        "physics",
        lambda s: go(s, dynamics.physics(s), Plan(epochs=20, lr=5e-3, schedule="cosine", log_lr=True)),
        "R2 goes to one",
    ),
    well(
        "csv_tidy",
        "physics",
        lambda s: go(
            s,
            dynamics.physics(s, net=tables.mlp([4, 12, 1], act=torch.nn.Tanh)),
            Plan(epochs=24, lr=0.05, batch=128, optim="adam"),
        ),
        "a high rate that a tiny model bears",
    ),
    well(
        "prose_toml",
        "systems",
        lambda s: systems.loading(s, lambda _number: 0.004, workers=2, first=0.3),
        "only the first batch waits",
    ),
    well(
        "ndjson_nested",
        "systems",
        lambda s: memory.growing(s, steps=200),
        "memory rises in the first steps and is flat afterwards",
    ),
    well("tqdm", "systems", lambda s: ranks.ranks(s, Team(steps=80)), "ranks keep pace"),
]
