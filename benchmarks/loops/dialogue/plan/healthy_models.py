"""Runs of language models without a fault, with the traps of real life."""

from __future__ import annotations

from benchmarks.loops.dialogue.plan.spec import Spec

H = "healthy"


def runs() -> list[Spec]:
    """All of them."""
    return [
        Spec(H, "lm", "loss falls from ln V and the held-out loss follows", k={"steps": 220}),
        Spec(
            H,
            "lm",
            "recurrent model, smooth fall, held-out loss follows",
            o={"cell": "gru"},
            k={"steps": 220, "lr": 5e-3},
        ),
        Spec(
            H,
            "lm",
            "experts stay balanced and the loss falls",
            o={"shape": {"experts": 4, "depth": 1}},
            k={"steps": 160},
        ),
        Spec(
            H,
            "lm",
            "an early stage: the plan has 1200 steps and the loss falls as it should",
            k={"steps": 1200, "stop_at": 130, "warmup": 60, "eval_every": 30},
        ),
        Spec(
            H,
            "lm",
            "a bump during a short warmup that is gone at once",
            o={"show": ("ppl", "acc")},
            k={"lr": 2e-2, "warmup": 8, "steps": 200},
            fine=True,
        ),
        Spec(
            H,
            "lm",
            "the loss steps up where the curriculum brings in a new domain and falls again",
            o={
                "domains": ("text", "code"),
                "curriculum": True,
                "shuffle": False,
                "size": 110_000,
                "eval_domain": "code",
            },
            k={"steps": 200},
            cfg={"curriculum": "text -> code at 50%", "valid_set": "code"},
            fine=True,
        ),
        Spec(
            H,
            "lm",
            "a resume with full state leaves no trace in the curves",
            k={"resume_at": 100, "steps": 200, "log_every": 5},
            fine=True,
        ),
        Spec(
            H,
            "lm",
            "the scaler skips a few steps at the start until its scale fits",
            k={"amp": "fp16", "init_scale": 2.0**24, "steps": 120, "log_every": 4},
            need=("scale", "skipped"),
            fine=True,
        ),
        Spec(
            H, "lm", "rate is high for big models but right for this one", k={"lr": 1.2e-2, "steps": 200}, need=("lr",)
        ),
        Spec(
            H,
            "lm",
            "cosine to zero, flat end because the rate is gone after convergence",
            o={"unit": "word"},
            k={"steps": 260, "lr": 6e-3},
            need=("lr",),
        ),
        Spec(H, "lm", "bf16 autocast with float32 weights trains as usual", k={"amp": "bf16", "steps": 120}),
        Spec(
            H,
            "lm",
            "dropout makes the training loss higher than the held-out loss",
            o={"unit": "word", "shape": {"dropout": 0.25}},
            k={"steps": 220},
            cfg={"dropout": 0.25},
        ),
        Spec(
            H,
            "lm",
            "step decay gives steps in the curve",
            o={"unit": "word"},
            k={"sched": "step", "steps": 240},
            need=("lr",),
        ),
        Spec(
            H,
            "lm",
            "the gradient norm is clipped now and then, as planned",
            o={"shape": {"depth": 3}},
            k={"steps": 150, "clip": 0.8, "sched": "inverse_sqrt"},
            need=("gnorm",),
        ),
    ]
