"""Faults of rates and schedules."""

from __future__ import annotations

from benchmarks.loops.dialogue.plan.spec import Spec

W = {"unit": "word"}


def runs() -> list[Spec]:
    """All of them."""
    return [
        Spec(
            "lr_too_high",
            "lm",
            "loss jumps far above ln V during the warmup and comes back only as the rate falls",
            k={"lr": 0.5, "clip": 0, "steps": 180, "log_every": 4, "eval_every": 20},
            need=("lr",),
            fine=True,
        ),
        Spec(
            "lr_too_high",
            "lm",
            "SGD diverges to NaN",
            o=W,
            k={"opt": "sgd", "lr": 8.0, "clip": 0, "steps": 100, "log_every": 2, "eval_every": 20},
            need=("lr",),
            fine=True,
            also=("exploding_gradients",),
        ),
        Spec(
            "lr_too_high",
            "sft",
            "fine-tune jumps above its first loss and does not come back to the level of small rates",
            k={"lr": 0.08, "steps": 70, "warmup": 3, "eval_every": 10, "eval_first": True, "log_every": 2},
            need=("lr",),
            fine=True,
        ),
        Spec(
            "lr_too_high",
            "prefer",
            "reward model: loss far above ln 2 with jumps",
            o={"kind": "rm"},
            k={"lr": 0.08, "steps": 70, "eval_every": 10, "log_every": 2, "clip": 0},
            need=("lr",),
            fine=True,
        ),
        Spec(
            "lr_too_low",
            "lm",
            "smooth and far too slow",
            o=W,
            k={"lr": 1e-5, "steps": 180, "eval_every": 20},
            need=("lr",),
        ),
        Spec(
            "lr_too_low",
            "sft",
            "adapters hardly move at a rate for full fine-tuning",
            o={"rank": 8},
            k={"lr": 1e-5, "steps": 80, "eval_every": 10, "log_every": 4, "watch": ("upd",)},
            need=("lr",),
            cfg={"lora_r": 8},
            also=("params_not_training",),
        ),
        Spec(
            "insufficient_warmup",
            "lm",
            "the loss jumps in the first steps of a post-norm model without warmup",
            o={"shape": {"norm": "post", "depth": 4}},
            k={"lr": 1.5e-2, "warmup": 0, "clip": 0, "steps": 130, "log_every": 2, "eval_every": 25},
            cfg={"norm": "post"},
            need=("lr",),
            fine=True,
            also=("lr_too_high",),
        ),
        Spec(
            "insufficient_warmup",
            "lm",
            "no warmup at a high peak: from the first steps on the loss sits at letter frequencies",
            o={"shape": {"depth": 3, "norm": "post"}},
            k={"lr": 3e-2, "warmup": 0, "beta2": 0.999, "steps": 150, "log_every": 1, "eval_every": 25, "clip": 0},
            need=("lr",),
            fine=True,
            also=("lr_too_high",),
        ),
        Spec(
            "too_few_epochs",
            "lm",
            "the plan ends while the held-out loss still falls quickly",
            k={"steps": 60, "eval_every": 6, "log_every": 3, "sched": "constant"},
            cfg={"num_epochs": 1},
        ),
        Spec(
            "too_few_epochs",
            "translate",
            "the plan ends in the middle of the fall",
            k={"steps": 34, "batch": 24, "eval_every": 4, "log_every": 1, "sched": "linear", "lr": 2e-3},
            cfg={"num_epochs": 1},
            also=("lr_schedule_bug",),
        ),
        Spec(
            "lr_schedule_bug",
            "lm",
            "the rate is at zero after a quarter of the planned steps",
            o=W,
            k={"sched_bug": "micro", "accum": 4, "batch": 6, "steps": 160, "eval_every": 20},
            need=("lr",),
        ),
        Spec(
            "lr_schedule_bug",
            "lm",
            "the rate reaches zero at 30 % of the run and the loss stops there",
            k={"sched_bug": "early_zero", "steps": 200, "eval_every": 20},
            need=("lr",),
        ),
        Spec(
            "lr_schedule_bug",
            "tags",
            "the rate starts its warmup again twice",
            k={"sched_bug": "restart", "steps": 200, "batch": 24, "log_every": 4, "eval_every": 20},
            need=("lr",),
            fine=True,
        ),
    ]
