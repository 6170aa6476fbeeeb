"""Reads the cases from their plans and deals styles among those that name none."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from torch import nn

from benchmarks.loops.industry.machine import Machine
from benchmarks.loops.industry.recipe import Recipe
from benchmarks.loops.industry.tasks.aligning import Align, aligning
from benchmarks.loops.industry.tasks.assistant import Choice, Group, preferences, replies
from benchmarks.loops.industry.tasks.clicks import clicks
from benchmarks.loops.industry.tasks.generative import Basket, Duel, baskets, synthesis
from benchmarks.loops.industry.tasks.images import defects, keypoints
from benchmarks.loops.industry.tasks.pairs import distillation, retrieval
from benchmarks.loops.industry.tasks.precision import Half, ranking
from benchmarks.loops.industry.tasks.pricing import Shop, pricing
from benchmarks.loops.industry.tasks.sequences import language, tagging
from benchmarks.loops.industry.tasks.speech import commands
from benchmarks.loops.industry.tasks.tabular import churn, demand
from benchmarks.loops.industry.tasks.tuning import Tune, tuning
from benchmarks.loops.industry.trace import Case, Trace

_PLANS = Path(__file__).parent / "plans"
_SUPERVISED = (clicks, churn, demand, defects, keypoints, language, tagging, commands, retrieval, distillation)
_TRAINERS: dict[str, tuple[Callable[..., Trace], Callable[..., object]]] = {
    **{train.__name__: (train, Recipe) for train in _SUPERVISED},
    "baskets": (baskets, Basket),
    "synthesis": (synthesis, Duel),
    "ranking": (ranking, Half),
    "pricing": (pricing, Shop),
    "replies": (replies, Group),
    "preferences": (preferences, Choice),
    "tuning": (tuning, Tune),
    "aligning": (aligning, Align),
}
_STYLES = (
    "pipes", "csv_wide", "jsonl_nested", "logging", "tensorboard", "kubernetes", "wandb_csv", "logfmt", "tsv", "bar",
    "mlflow", "absl", "csv_long", "spark", "lightning", "hf_dict", "yaml_records", "semicolons", "jsonl_events",
    "markdown", "wandb_json",
    "ranks", "json_columns", "hf_strings",
)  # fmt: skip
_CONFS = (
    "yaml",
    "none",
    "namespace",
    "json",
    "command",
    "none",
    "hydra",
    "toml",
    "none",
    "dataclass",
    "ini",
    "none",
    "printed",
)
_NAMES = ("plain", "ads", "slash", "dev", "objective", "short", "plain")
_DROPS = (
    ("samples",), ("epoch", "samples"), ("samples", "gnorm"), ("epoch", "step"), (),
    ("samples", "epoch", "gnorm", "lr"), ("samples", "lr"),
)  # fmt: skip
_PAIRED_NAMES = {"hf_dict": "hf", "hf_strings": "hf", "lightning": "lightning"}
_PAIRED_CONFS = {"lightning": "hparams", "mlflow": "params"}


def all_cases() -> dict[str, Case]:
    """Return the cases by name; the names tell the task and a number, in an order that tells nothing."""
    plans = [
        plan for path in sorted(_PLANS.glob("*.yaml")) for plan in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]
    count: Counter[str] = Counter()
    named: dict[str, Case] = {}
    for index, plan in enumerate(sorted(plans, key=_mixed)):
        count[plan["task"]] += 1
        named[f"{plan['task']}_{count[plan['task']]:02d}"] = _case(plan, index)
    return named


def _mixed(plan: dict[str, Any]) -> str:
    drawn = {name: plan.get(name) for name in ("train", "settings", "options")}
    return hashlib.sha256(repr(drawn).encode()).hexdigest()


def _case(plan: dict[str, Any], index: int) -> Case:
    """Return a case; what its plan leaves open goes round by the index."""
    style = plan.get("style") or _STYLES[index % len(_STYLES)]
    conf = plan.get("conf") or _CONFS[index % len(_CONFS)]
    if "conf" not in plan and conf != "none":
        conf = _PAIRED_CONFS.get(style, conf)
    train, settings = _TRAINERS[plan["train"]]
    options = {name: _value(name, value) for name, value in plan.get("options", {}).items()}
    chosen = {name: _value(name, value) for name, value in plan["settings"].items()}
    return Case(
        task=plan["task"],
        make=partial(train, settings(**chosen), **options),
        style=style,
        names=plan.get("names") or _PAIRED_NAMES.get(style, _NAMES[index % len(_NAMES)]),
        conf=conf,
        drop=tuple(plan.get("drop", _DROPS[index % len(_DROPS)])),
        cause=plan["cause"],
        also=tuple(plan.get("also", ())),
        fact=plan["fact"],
        weak=plan.get("weak", False),
    )


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - what a plan holds
    if name == "machine":
        return Machine(**{key: _value(key, one) for key, one in value.items()})
    if name == "bugs":
        return frozenset(value)
    if name == "activation":
        return getattr(nn, value)
    return tuple(_value("", one) for one in value) if isinstance(value, list) else value
