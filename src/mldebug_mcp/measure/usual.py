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
        marked: The ends beyond which a value is marked as unusual; generous, as recipes that worked go beyond.
        source: Where the range is from: a source of evidence, whose default it is; "chosen" where we widened it.
        said: The range in words, where its ends do not say it.
        kinds: The kinds of run that it holds for; () for all.
    """

    low: float
    high: float
    marked: tuple[float, float]
    source: str
    said: str = ""
    kinds: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.said or f"{figure(self.low)} to {figure(self.high)}"


ADAM, AGENTS = "default of torch.optim.Adam", "default of PPO in Stable-Baselines3"
MANY = 1e9
"""As good as no upper end. Chosen: nothing that is set is larger."""
USUAL: Mapping[str, tuple[Usual, ...]] = {
    "adam_beta1": (Usual(0.9, 0.9, (0.5, 0.95), ADAM, "0.9"),),
    "adam_beta2": (Usual(0.95, 0.999, (0.9, 0.9999), f"{ADAM}; chosen"),),
    "adam_epsilon": (Usual(1e-10, 1e-6, (1e-10, 1e-4), f"small_scale_proxies; {ADAM}", "1e-10 to 1e-6"),),
    "momentum": (Usual(0.9, 0.9, (0.0, 0.99), "chosen", "0.9"),),
    "weight_decay": (Usual(0.0, 0.1, (0.0, 0.3), "axolotl_stability"),),
    "max_grad_norm": (Usual(0.5, 1.0, (0.1, 100.0), "axolotl_stability; chosen", "0.5 to 1; 0 or null for none"),),
    "warmup_ratio": (Usual(0.0, 0.1, (0.0, 0.2), "axolotl_stability"),),
    "label_smoothing_factor": (Usual(0.0, 0.1, (0.0, 0.2), "chosen"),),
    "dropout": (Usual(0.0, 0.3, (0.0, 0.5), "chosen"),),
    "init_scale": (Usual(0.005, 0.02, (1e-3, 0.1), "chosen", "about 0.02", LANGUAGE),),
    "gamma": (Usual(0.99, 0.99, (0.9, 0.9999), AGENTS, "0.99", ("rl",)),),
    "gae_lambda": (Usual(0.95, 0.95, (0.8, 1.0), AGENTS, "0.95"),),
    "ent_coef": (Usual(0.0, 0.01, (0.0, 0.05), AGENTS),),
    "vf_coef": (Usual(0.5, 0.5, (0.1, 1.0), AGENTS, "0.5"),),
    "clip_range": (Usual(0.2, 0.2, (0.05, 0.4), "trl_docs", "0.2"),),
    "temperature": (Usual(0.7, 1.0, (0.5, 1.3), "axolotl_stability; chosen", kinds=POLICIES),),
    "top_k": (Usual(20, MANY, (10, MANY), "chosen", "none, or 20 and more", POLICIES),),
    "top_p": (Usual(0.9, 1.0, (0.8, 1.0), "chosen", kinds=POLICIES),),
    "num_generations": (Usual(4, 64, (4, 1e4), "axolotl_stability; chosen", kinds=POLICIES),),
    "beta": (
        Usual(0.01, 0.5, (0.01, 1.0), "smol_playbook", kinds=("preference",)),
        Usual(0.0, 0.1, (0.0, 0.2), "trl_docs; chosen", kinds=POLICIES),
    ),
    "lora_r": (Usual(8, 128, (4, 512), "axolotl_stability; chosen"),),
    "lora_dropout": (Usual(0.0, 0.1, (0.0, 0.3), "axolotl_stability; chosen"),),
    "effective_batch": (Usual(8, MANY, (4, MANY), "chosen", "8 and more"),),
    "hidden_size": (Usual(8, MANY, (4, MANY), "chosen", "8 and more"),),
    "buffer_size": (Usual(10_000, MANY, (1000, MANY), "chosen", "10,000 and more", ("rl",)),),
}
"""What is usual, by the canonical name of a setting; learning rates stand in `usual_rates`.

Source: with each. Chosen: the ends beyond which a value is marked, by what published recipes use."""
OF_PLAN = 0.25
"""Share of the plan that a warm-up takes at most. Chosen: published ones take up to a tenth."""
WHOLE_PASS = 20.0
"""Passes over the data from which a language model is said to see it often. Chosen: fine-tuning takes up to five."""


def usual_for(run: Run, name: str) -> Usual | None:
    """Return what is usual for a setting of this run, None if nothing is known of it."""
    return next((one for one in USUAL.get(name, ()) if not one.kinds or run.kind in one.kinds), None)


def usual_instead(run: Run, name: str, value: float) -> str:
    """Return what is usual for a setting of this run, "" if its value is, or if nothing is known of it."""
    usual = usual_for(run, name)
    if usual is not None:
        off = name in {"max_grad_norm", "top_k"} and value <= 0
        return "" if off or usual.marked[0] <= value <= usual.marked[1] else str(usual)
    plan = run.facts.plan
    if name == "warmup_steps" and plan and value > OF_PLAN * plan:
        return f"up to a tenth of the plan of {figure(plan)} steps"
    if name == "planned_passes" and run.kind in LANGUAGE and value > WHOLE_PASS:
        return "1 to 5"
    return ""
