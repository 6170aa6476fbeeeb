"""Runs of other tasks without a fault, with the traps of real life."""

from __future__ import annotations

from benchmarks.loops.dialogue.plan.spec import Spec

H = "healthy"


def runs() -> list[Spec]:
    """All of them."""
    return [
        Spec(
            H,
            "translate",
            "translation is learned, score of free translations follows",
            k={"steps": 150, "batch": 32, "eval_every": 25},
        ),
        Spec(
            H,
            "translate",
            "label smoothing keeps the training loss above the held-out loss",
            o={"smooth": 0.1},
            k={"steps": 150, "batch": 32, "eval_every": 25},
            cfg={"label_smoothing": 0.1},
        ),
        Spec(
            H,
            "tags",
            "tagger learns, scores of rare classes as well",
            k={"steps": 140, "batch": 32, "eval_every": 20, "lr": 1e-3},
        ),
        Spec(
            H,
            "tags",
            "tagger learns with dropout and a linear schedule",
            o={"dropout": 0.2, "hard": 0.6},
            k={"steps": 180, "batch": 24, "sched": "linear", "lr": 1e-3},
            cfg={"dropout": 0.2},
        ),
        Spec(
            H,
            "sft",
            "fine-tune of a pretrained model: fast fall, answers get better",
            k={"steps": 70, "lr": 1e-3, "eval_every": 10, "eval_first": True, "log_every": 2, "warmup": 5},
            o={"rows": 1200, "same_things": True},
        ),
        Spec(
            H,
            "sft",
            "adapters at a rate that is high for full fine-tuning but usual here",
            o={"rank": 8, "rows": 1200, "same_things": True},
            k={"steps": 110, "lr": 4e-3, "eval_every": 20, "log_every": 5},
            cfg={"lora_r": 8, "lora_alpha": 16},
        ),
        Spec(
            H,
            "sft",
            "adapters with dropout of the base; the first loss is that of the base",
            o={"rank": 4, "dropout": 0.1, "rows": 1200, "same_things": True},
            k={"steps": 100, "lr": 6e-3, "eval_every": 20, "eval_first": True, "sched": "linear"},
            cfg={"lora_r": 4, "lora_alpha": 16},
        ),
        Spec(
            H,
            "sft",
            "distillation: both parts fall",
            o={"teacher": True, "rows": 1200, "same_things": True},
            k={"steps": 160, "lr": 6e-3, "eval_every": 25, "batch": 24},
            cfg={"kd_alpha": 0.5, "kd_temperature": 2.0},
        ),
        Spec(
            H,
            "prefer",
            "margin grows, accuracy goes up, chosen stays",
            k={"steps": 60, "lr": 3e-4, "eval_every": 12, "batch": 12, "log_every": 3},
            cfg={"beta": 0.1},
        ),
        Spec(
            H,
            "prefer",
            "chosen log-probability sinks a little as usual while the margin grows",
            o={"beta": 0.3},
            k={"steps": 60, "lr": 4e-4, "eval_every": 12, "batch": 12, "log_every": 3},
            cfg={"beta": 0.3},
        ),
        Spec(
            H,
            "prefer",
            "reward model learns; held-out accuracy follows",
            o={"kind": "rm", "rows": 800},
            k={"steps": 70, "lr": 1.5e-3, "eval_every": 10, "log_every": 3},
        ),
        Spec(
            H,
            "embed",
            "contrastive loss falls, negatives apart, recall rises",
            k={"steps": 90, "batch": 32, "lr": 1e-3, "eval_every": 12, "log_every": 3},
        ),
        Spec(
            H,
            "embed",
            "triplet loss falls below its margin and goes to zero, recall rises",
            o={"kind": "triplet"},
            k={"steps": 100, "batch": 24, "lr": 1e-3, "eval_every": 12, "log_every": 4},
            cfg={"margin": 0.2},
        ),
        Spec(H, "multi", "both tasks fall", k={"steps": 150, "batch": 24, "eval_every": 20}, cfg={"cls_weight": 1.0}),
        Spec(
            H,
            "multi",
            "small evaluation set makes the evaluation noisy, no trend upwards",
            o={"eval_noise": 8},
            k={"steps": 150, "batch": 24, "eval_every": 10, "lr": 1.5e-3},
        ),
        Spec(
            H,
            "tokens",
            "noisy reward that rises; KL rises slowly as the policy learns",
            o={"steps": 140},
            cfg={"beta": 0.02},
        ),
        Spec(
            H,
            "tokens",
            "few prompts per step: very noisy reward, yet it rises",
            o={"steps": 150, "prompts": 5, "group": 6, "log_every": 1, "lr": 3e-3},
        ),
        Spec(
            H,
            "tokens",
            "plain policy gradient: loss without meaning, reward rises",
            o={"algo": "reinforce", "entropy": 0.01, "lr": 3e-3},
        ),
        Spec(
            H,
            "tokens",
            "PPO with critic: reward rises, value loss falls",
            o={"algo": "ppo", "epochs": 2, "lr": 3e-3},
            need=("reward",),
        ),
        Spec(
            H,
            "dqn",
            "returns rise while epsilon falls; the temporal-difference loss rises first, as usual",
            o={},
            need=("eps",),
        ),
        Spec(
            H,
            "dqn",
            "larger grid, slower, success arrives",
            o={"side": 6, "steps": 1000, "limit": 40, "watch": ("q", "eps", "success", "buffer")},
        ),
        Spec(H, "control", "return rises, entropy falls slowly", o={"iters": 80}),
        Spec(
            H,
            "control",
            "rate annealed to zero, return rises",
            o={"iters": 80, "anneal": True, "lr": 3e-3},
            need=("lr",),
        ),
        Spec(
            H,
            "control",
            "entropy bonus keeps exploration; noisy environment",
            o={"iters": 70, "noise": 0.6, "entropy": 0.003, "obs_norm": True},
        ),
    ]
