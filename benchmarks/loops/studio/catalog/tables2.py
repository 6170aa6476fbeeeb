"""Faulty runs on tables: optimisation."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.loops.studio import dynamics, tables, vision
from benchmarks.loops.studio.catalog.tools import swap, weight_norm
from benchmarks.loops.studio.core import Plan, Record, Spec, Values
from benchmarks.loops.studio.loop import State, Twist, go


def spiky(s: int) -> Record:
    """Full batches to a tiny loss at a high rate: Adam's second moment is out of date."""
    seen: Values = {}

    def watch(state: State) -> None:
        v, u = 0.0, 0.0
        for st in state.opt.state.values():
            v += st["exp_avg_sq"].sum().item()
            t = st["step"].item()
            hat = (st["exp_avg_sq"] / (1 - state.plan.betas[1] ** t)).sqrt() + state.plan.eps
            u += ((st["exp_avg"] / (1 - state.plan.betas[0] ** t) / hat) ** 2).sum().item()
        count = sum(p.numel() for p in state.bench.model.parameters())
        seen["adam_v"], seen["update_rms"] = math.sqrt(v / count), math.sqrt(u / count)

    return go(
        s,
        dynamics.physics(s, 512),
        Plan(
            epochs=900,
            batch=512,
            lr=1e-2,
            eps=1e-15,
            betas=(0.9, 0.9999),
            log_every=5,
            log_gnorm=True,
            eval_every=100,
        ),
        Twist(after_step=watch, extras=lambda _model: dict(seen)),
    )


def deep_graph(s: int) -> Record:
    """So many layers of averaging that all nodes look alike."""
    bench = tables.graph(s, depth=24)
    model = bench.model

    def spread(m: nn.Module) -> Values:
        with torch.no_grad():
            z = m(bench.evals["val"][0])
        return {"emb_std": z.std(0).mean().item()}

    return go(
        s,
        swap(bench, model=model),
        Plan(epochs=80, lr=5e-3, eval_every=10, log_every=5),
        Twist(extras=spread),
    )


def hold(state: State) -> None:
    """No update is made."""
    state.skip_update = True


def wide(s: int) -> Record:
    """All weights are too large by far."""
    bench = dynamics.physics(s)
    with torch.no_grad():
        for p in bench.model.parameters():
            p.mul_(12)
    return go(s, bench, Plan(epochs=14, lr=2e-3))


SPECS = [
    Spec(
        "lr_too_high",
        "prose_toml",
        "physics",
        lambda s: go(s, dynamics.physics(s), Plan(epochs=14, lr=0.5)),
        "a loss far above the variance, jumping",
        (),
    ),
    Spec(
        "lr_too_low",
        "mlflow",
        "recsys",
        lambda s: go(s, tables.recommend(s), Plan(epochs=10, lr=1e-5, batch=256)),
        "the loss hardly leaves ln 2",
    ),
    Spec(
        "adam_instability",
        "csv_plain",
        "physics",
        spiky,
        "updates jump while adam_v lags; spikes out of a tiny loss",
        ("lr_too_high",),
    ),
    Spec(
        "weight_decay_too_high",
        "hydra",
        "tabular",
        lambda s: go(
            s,
            tables.tabular(s),
            Plan(epochs=12, lr=2e-3, batch=128, optim="adamw", weight_decay=60.0),
            Twist(extras=weight_norm),
        ),
        "the weight norm falls to nearly zero, the loss goes to ln 2",
    ),
    Spec(
        "params_not_training",
        "csv_tidy",
        "recsys",
        lambda s: go(
            s,
            tables.recommend(s),
            Plan(epochs=8, lr=1e-2, batch=256),
            Twist(trainable=lambda n: n == "user.weight", after_backward=hold),
        ),
        "loss and metrics are the same at every epoch",
    ),
    Spec(
        "too_little_capacity",
        "fastai",
        "physics",
        lambda s: go(
            s,
            dynamics.physics(s, net=nn.Sequential(nn.Linear(4, 1))),
            Plan(epochs=16, lr=1e-2),
            model="linear",
        ),
        "training and validation level off together at a low R2",
    ),
    Spec(
        "too_little_capacity",
        "detectron2",
        "tabular",
        lambda s: go(s, tables.tabular(s, net=tables.mlp([16, 1, 1])), Plan(epochs=14, lr=1e-2, batch=128), hidden=1),
        "training and validation level off together",
    ),
    Spec(
        "overfitting",
        "split_logs",
        "tabular",
        lambda s: go(s, tables.tabular(s, 250, width=128), Plan(epochs=40, lr=3e-3, batch=32, eval_every=2)),
        "validation loss rises, training loss goes to zero",
    ),
    Spec(
        "overfitting",
        "json_document",
        "recsys",
        lambda s: go(s, tables.recommend(s, 1500, size=32), Plan(epochs=40, lr=1e-2, batch=128, eval_every=2)),
        "validation loss rises, training loss goes to zero",
    ),
    Spec(
        "vanishing_gradients",
        "boosting",
        "graph",
        deep_graph,
        "two dozen layers: embeddings without spread, loss at ln 4",
        ("representation_collapse", "bad_init", "too_little_capacity"),
    ),
    Spec(
        "grad_accum_scaling",
        "mmengine",
        "physics",
        lambda s: go(
            s,
            dynamics.physics(s, 2048, loss=lambda m, b: {"loss": 16 * dynamics.squared(m, b)["loss"]}),
            Plan(epochs=12, batch=16, lr=0.02, optim="sgd", accum=16, log_every=2, log_gnorm=True),
        ),
        "training loss sixteen times that of validation with 16 micro-batches",
        ("wrong_loss",),
    ),
    Spec(
        "batch_too_small",
        "logging",
        "classify",
        lambda s: go(
            s,
            vision.classify(s, 500, noise=2.0, norm=False),
            Plan(epochs=2, batch=1, lr=0.03, optim="sgd", momentum=0.6, log_every=10),
        ),
        "batches of one, noise without trend",
        ("lr_too_high",),
    ),
    Spec("bad_init", "markdown", "physics", wide, "the first loss is thousands of times the variance"),
]
