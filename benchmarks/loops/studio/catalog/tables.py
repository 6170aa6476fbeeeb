"""Faulty runs on tables: data, losses, metrics."""

from __future__ import annotations

from benchmarks.loops.studio import dynamics, tables
from benchmarks.loops.studio.catalog.tables_make import (
    broadcast,
    flipped,
    kernels,
    ordered,
    raw_log,
    same_pair,
    shares,
    told,
)
from benchmarks.loops.studio.catalog.tools import swap
from benchmarks.loops.studio.core import Plan, Spec
from benchmarks.loops.studio.loop import go

SPECS = [
    Spec(
        "train_eval_leakage",
        "sacred",
        "tabular",
        told,
        "AUC of one from the first epoch, and poor on live data",
        ("train_eval_mismatch",),
    ),
    Spec(
        "class_imbalance",
        "csv_german",
        "tabular",
        lambda s: go(s, tables.tabular(s, 4000, positive=0.008), Plan(epochs=12, lr=1e-3, batch=256)),
        "a tiny loss with a recall of zero",
    ),
    Spec("unshuffled_data", "jsonl_flat", "tabular", ordered, "the loss swings with the order in each epoch"),
    Spec(
        "wrong_loss",
        "boosting",
        "physics",
        lambda s: go(s, dynamics.physics(s, loss=broadcast), Plan(epochs=14, lr=4e-3)),
        "R2 stays at zero: the loss stops at the variance of the target",
        ("no_signal", "too_little_capacity"),
    ),
    Spec(
        "invalid_math",
        "timm",
        "tabular",
        lambda s: go(
            s,
            tables.tabular(s, loss=raw_log),
            Plan(epochs=40, lr=0.02, batch=128, log_every=40, eval_every=4),
        ),
        "NaN suddenly, out of a good run, without a rise",
    ),
    Spec(
        "metric_bug",
        "keras_csv",
        "tabular",
        lambda s: go(s, swap(tables.tabular(s), metrics=shares), Plan(epochs=10, lr=3e-3, batch=128)),
        "AUC far below one half while loss and recall get better",
        ("wrong_loss",),
    ),
    Spec(
        "wrong_loss",
        "wandb_export",
        "recsys",
        lambda s: go(s, swap(tables.recommend(s, loss=tables.swapped)), Plan(epochs=10, lr=6e-3, batch=256)),
        "training loss falls while validation loss rises and the ranking is worse than by chance",
        ("preference_labels_swapped", "metric_bug", "train_eval_mismatch"),
    ),
    Spec(
        "no_signal",
        "per_metric",
        "recsys",
        lambda s: go(s, tables.recommend(s, loss=same_pair), Plan(epochs=8, lr=6e-3, batch=256, log_every=10)),
        "the loss is ln 2 to the last digit",
        ("no_preference_signal", "params_not_training", "wrong_loss"),
    ),
    Spec(
        "library_defect",
        "pairs",
        "physics",
        kernels,
        "the same training differs between fused kernel and eager code",
    ),
    Spec(
        "no_signal",
        "yaml_list",
        "graph",
        lambda s: go(
            s,
            tables.graph(s, shuffle=True),
            Plan(epochs=60, lr=5e-3, eval_every=5, log_every=5, weight_decay=1e-2),
        ),
        "accuracy of other nodes stays at chance",
        ("overfitting", "label_noise"),
    ),
    Spec(
        "label_noise",
        "tqdm",
        "tabular",
        flipped,
        "training loss stops near .66 while clean validation is better",
        (),
        True,
    ),
]
