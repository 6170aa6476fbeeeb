"""What is usual for a setting: the range that runs which went well are trained with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mldebug_mcp.logs.run import Run
from mldebug_mcp.text import figure

POLICIES = ("grpo", "ppo")
LANGUAGE = ("pretraining", "sft", "preference", "grpo", "ppo")


@dataclass(frozen=True, slots=True)
class Usual:
    """A range of a setting.

    Args:
        low, high: Its ends, included.
        said: The range in words, where its ends do not say it.
        kinds: The kinds of run that it holds for; () for all.
    """

    low: float
    high: float
    said: str = ""
    kinds: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.said or f"{figure(self.low)} to {figure(self.high)}"


USUAL: Mapping[str, tuple[Usual, ...]] = {
    "adam_beta1": (Usual(0.5, 0.95, "0.9"),),
    "adam_beta2": (Usual(0.9, 0.9999, "0.95 to 0.999"),),
    "adam_epsilon": (Usual(1e-10, 1e-4, "1e-8"),),
    "momentum": (Usual(0.0, 0.99, "0.9"),),
    "weight_decay": (Usual(0.0, 0.3, "0 to 0.1"),),
    "max_grad_norm": (Usual(0.1, 100.0, "0.5 to 1; 0 or null for none"),),
    "warmup_ratio": (Usual(0.0, 0.2, "0 to 0.1"),),
    "label_smoothing_factor": (Usual(0.0, 0.2, "0 to 0.1"),),
    "dropout": (Usual(0.0, 0.5, "0 to 0.3"),),
    "init_scale": (Usual(1e-3, 0.1, "0.02", LANGUAGE),),
    "gamma": (Usual(0.9, 0.9999, "0.99", ("rl",)),),
    "gae_lambda": (Usual(0.8, 1.0, "0.95"),),
    "ent_coef": (Usual(0.0, 0.05, "0 to 0.01"),),
    "vf_coef": (Usual(0.1, 1.0, "0.5"),),
    "clip_range": (Usual(0.05, 0.4, "0.2"),),
    "temperature": (Usual(0.5, 1.3, "0.7 to 1", POLICIES),),
    "top_k": (Usual(10, 1e9, "none, or 20 and more", POLICIES),),
    "top_p": (Usual(0.8, 1.0, "0.9 to 1", POLICIES),),
    "num_generations": (Usual(4, 1e4, "4 to 64", POLICIES),),
    "beta": (Usual(0.01, 1.0, "0.1 to 0.5", ("preference",)), Usual(0.0, 0.2, "0 to 0.1", POLICIES)),
    "lora_r": (Usual(4, 512, "8 to 128"),),
    "lora_dropout": (Usual(0.0, 0.3, "0 to 0.1"),),
    "effective_batch": (Usual(4, 1e9, "8 and more"),),
    "buffer_size": (Usual(1000, 1e9, "10,000 and more", ("rl",)),),
}
"""Usual ranges, generous on both sides.

Source: trl_docs, axolotl_stability, tuning_playbook; the ends were widened to what published recipes use.
"""
OF_PLAN = 0.25
"""Share of the plan that a warm-up takes at most. Chosen: published ones take up to a tenth."""
WHOLE_PASS = 20.0
"""Passes over the data from which a language model is said to see it often. Chosen: fine-tuning takes up to five."""


def usual_instead(run: Run, name: str, value: float) -> str:
    """Return what is usual for a setting of this run, "" if its value is, or if nothing is known of it."""
    for usual in USUAL.get(name, ()):
        if not usual.kinds or run.kind in usual.kinds:
            off = name in {"max_grad_norm", "top_k"} and value <= 0
            return "" if off or usual.low <= value <= usual.high else str(usual)
    plan = run.facts.plan
    if name == "warmup_steps" and plan and value > OF_PLAN * plan:
        return f"up to a tenth of the plan of {figure(plan)} steps"
    if name == "planned_passes" and run.kind in LANGUAGE and value > WHOLE_PASS:
        return "1 to 5"
    return ""
