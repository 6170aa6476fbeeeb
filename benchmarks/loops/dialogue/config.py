"""The configuration that a run writes beside its log."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from benchmarks.loops.dialogue.core import Knobs
from benchmarks.loops.dialogue.plan.spec import Spec

NAMES = {
    "lr": ("lr", "learning_rate", "LR", "base_lr"),
    "steps": ("max_steps", "total_steps", "n_steps", "train_iters"),
    "batch": ("batch_size", "bs", "per_device_train_batch_size", "micro_batch"),
    "warmup": ("warmup_steps", "warmup", "num_warmup_steps"),
    "sched": ("lr_scheduler", "schedule", "lr_decay_style"),
    "opt": ("optimizer", "optim"),
    "wd": ("weight_decay", "wd"),
    "clip": ("max_grad_norm", "clip_grad_norm", "grad_clip"),
    "accum": ("gradient_accumulation_steps", "accum_steps", "grad_accum"),
}
SHOWN = "steps iters lr gamma lam clip prompts group kl temperature epochs envs horizon batch limit algo"


def of_loop(spec: Spec, rng: random.Random) -> dict[str, Any]:
    """What a run of the shared loop says of its settings, under names that people use."""
    k = dataclasses.asdict(Knobs(**spec.k))
    config = {rng.choice(NAMES[n]): k[n] for n in NAMES if n != "accum" or k["accum"] > 1}
    config["eval_every"] = k["eval_every"]
    if k["amp"]:
        config["precision"] = k["amp"]
    return {**config, "seed": rng.randint(0, 99), **spec.cfg}


def of_policy(spec: Spec, options: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """What a run of reinforcement learning says of its settings."""
    names = {
        "kl": "kl_coef",
        "limit": "max_completion_length" if spec.task == "tokens" else "time_limit",
        "group": "num_generations",
        "prompts": "prompts_per_step",
        "lam": "gae_lambda",
    }
    config = {names.get(k, k): v for k, v in options.items() if k in SHOWN.split()}
    return {**config, "seed": rng.randint(0, 99), **spec.cfg}
