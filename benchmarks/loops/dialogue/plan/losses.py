"""Faults of masks, losses and starts."""

from __future__ import annotations

from benchmarks.loops.dialogue.plan.spec import Spec

E = {"steps": 160, "eval_every": 20}


def runs() -> list[Spec]:
    """All of them."""
    return [
        Spec(
            "causal_mask_missing",
            "lm",
            "loss falls far below what the text allows, samples are no words",
            o={"shape": {"causal": False}, "show": ("acc", "gen")},
            k={"steps": 240, "lr": 5e-3, "eval_every": 30},
            also=("label_shift_error", "train_eval_leakage"),
        ),
        Spec(
            "causal_mask_missing",
            "translate",
            "teacher-forced accuracy is perfect, free translation bad",
            o={"causal": False, "rows": 400, "noise": 0.7},
            k={"steps": 160, "batch": 32, "eval_every": 20},
            also=("label_shift_error", "train_eval_leakage"),
        ),
        Spec(
            "rows_mixed",
            "lm",
            "the same held-out rows give another loss one by one than in a batch",
            o={"shape": {"mix_rows": True}, "show": ("bs1",)},
            k=E,
            weak=True,
        ),
        Spec(
            "rows_mixed",
            "tags",
            "a probability over the rows: loss stays near ln 5 though the task is easy",
            o={"rows_softmax": True},
            k={"steps": 140, "batch": 32, "eval_every": 20},
            also=("double_softmax",),
        ),
        Spec(
            "double_softmax",
            "tags",
            "loss stops at 0.905 although accuracy is perfect",
            o={"probs": True},
            k={"steps": 160, "batch": 32, "eval_every": 20},
        ),
        Spec(
            "double_softmax",
            "lm",
            "loss creeps from ln V and cannot pass 2.97",
            o={"probs": True, "show": ("acc",)},
            k=E,
        ),
        Spec(
            "wrong_loss",
            "lm",
            "loss is negative and runs away downwards, accuracy zero",
            o={"sign": -1.0, "show": ("acc",)},
            k=E,
        ),
        Spec(
            "wrong_loss",
            "multi",
            "total falls below zero because one part is subtracted; that part grows without end",
            o={"sign": -1.0},
            k={"steps": 120, "batch": 24, "eval_every": 15},
        ),
        Spec(
            "wrong_loss",
            "sft",
            "the distillation term is negative",
            o={"teacher": True, "teacher_bug": "probs", "rows": 1200},
            k={"steps": 120, "lr": 5e-3, "eval_every": 20},
            cfg={"kd_temperature": 2.0},
        ),
        Spec(
            "wrong_loss",
            "prefer",
            "margin and accuracy fall while the loss falls",
            o={"sign": -1.0},
            k={"steps": 60, "lr": 3e-4, "eval_every": 12, "log_every": 3},
            cfg={"beta": 0.1},
            also=("preference_labels_swapped",),
        ),
        Spec(
            "invalid_math",
            "embed",
            "NaN at one batch, the run was fine before",
            o={"empty_row": 1500},
            k={"steps": 140, "batch": 32, "eval_every": 20, "log_every": 2},
            fine=True,
        ),
        Spec(
            "invalid_math",
            "prefer",
            "infinite loss, then NaN, at a batch with a very wrong pair",
            o={"naive": True, "beta": 30.0},
            k={"steps": 60, "lr": 3e-3, "eval_every": 10, "log_every": 2},
            cfg={"beta": 30.0},
            fine=True,
            also=("lr_too_high",),
        ),
        Spec(
            "bad_init",
            "lm",
            "first loss far above ln V",
            o={"shape": {"head_init": 60.0}},
            k={"steps": 180, "eval_every": 20, "log_every": 4, "warmup": 40},
            cfg={"vocab_size": 50},
            fine=True,
        ),
        Spec(
            "bad_init",
            "sft",
            "a fine-tune that starts at ln V: the pretrained weights are not there",
            o={"random_base": True},
            k={"steps": 80, "lr": 1e-3, "eval_every": 10, "eval_first": True, "log_every": 3},
            cfg={"init_from": "ckpt/base-0.1M", "vocab_size": 92},
            also=("tokenizer_mismatch",),
        ),
    ]
