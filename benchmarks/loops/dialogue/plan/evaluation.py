"""Faults of evaluation, masks and tokens."""

from __future__ import annotations

from benchmarks.loops.dialogue.plan.spec import Spec

T = {"steps": 140, "batch": 32, "eval_every": 20}


def runs() -> list[Spec]:
    """All of them."""
    return [
        Spec(
            "train_eval_leakage",
            "translate",
            "validation is perfect, the fresh test at the end is bad",
            o={"leak": True, "rows": 120, "noise": 0.6},
            k={"steps": 260, "batch": 16, "eval_every": 20},
            final=True,
        ),
        Spec(
            "train_eval_leakage",
            "sft",
            "validation follows training exactly, the fresh test at the end is bad",
            o={"leak": True, "rows": 160},
            k={"steps": 90, "lr": 2e-3, "eval_every": 10, "log_every": 3},
            final=True,
        ),
        Spec(
            "train_eval_mismatch",
            "lm",
            "held-out loss is high from the first time on and never follows",
            o={"eval_domain": "code"},
            k={"steps": 180, "eval_every": 20},
            also=("overfitting",),
        ),
        Spec(
            "train_eval_mismatch",
            "translate",
            "training is perfect, evaluation at chance from the first time on",
            o={"eval_reorder": True},
            k=T,
            also=("metric_bug",),
        ),
        Spec(
            "train_eval_mismatch",
            "embed",
            "batch accuracy in training near one, recall far below from the first time on",
            o={"eval_other": True},
            k={"steps": 110, "batch": 32, "eval_every": 12, "lr": 1e-3, "log_every": 4},
        ),
        Spec(
            "eval_mode_bug",
            "lm",
            "evaluation gives the same numbers each time while training goes down",
            k={"eval_stale": True, "steps": 180, "eval_every": 20},
        ),
        Spec(
            "eval_mode_bug",
            "lm",
            "training loss falls by a step right after the first evaluation",
            o={"unit": "word", "shape": {"dropout": 0.75}},
            k={"train_stays_eval": True, "steps": 220, "eval_every": 110, "log_every": 2, "lr": 5e-3},
            cfg={"dropout": 0.75},
            fine=True,
        ),
        Spec(
            "eval_mode_bug",
            "lm",
            "held-out loss is as high and as rough as the training loss under dropout",
            o={"unit": "word", "shape": {"dropout": 0.5}},
            k={"eval_stays_train": True, "steps": 180, "eval_every": 15},
            cfg={"dropout": 0.5},
            weak=True,
        ),
        Spec(
            "all_labels_masked", "tags", "loss is NaN from the first step with zero gradient", o={"mask_all": True}, k=T
        ),
        Spec(
            "all_labels_masked",
            "lm",
            "loss is exactly zero and so is the gradient norm",
            o={"mask_all": True, "reduce_sum": True, "show": ("acc",)},
            k={"steps": 100},
            need=("gnorm",),
        ),
        Spec(
            "all_labels_masked",
            "sft",
            "NaN from the first step, number of label tokens is zero",
            o={"mask_share": 1.0, "show": ("tokens", "em")},
            k={"steps": 60, "lr": 1e-3, "eval_every": 15, "log_every": 3},
        ),
        Spec(
            "prompt_not_masked",
            "sft",
            "label tokens per batch equal all tokens of the batch, loss low, exact match near zero",
            o={"mask_prompt": False, "show": ("em", "tokens", "acc")},
            k={"steps": 70, "lr": 1e-3, "eval_every": 12, "log_every": 3},
            weak=True,
            need=("tokens",),
        ),
        Spec(
            "label_shift_error",
            "lm",
            "loss goes to zero at once, samples are no words",
            o={"shift": 0, "show": ("acc", "gen")},
            k={"steps": 120, "eval_every": 20},
            also=("causal_mask_missing", "train_eval_leakage"),
        ),
        Spec(
            "label_shift_error",
            "sft",
            "a pretrained model starts far above its own level and answers never match",
            o={"shift": 2},
            k={"steps": 70, "lr": 1e-3, "eval_every": 10, "eval_first": True, "log_every": 3},
            cfg={"init_from": "base-0.1M (eval loss 1.1)"},
            also=("tokenizer_mismatch",),
        ),
        Spec(
            "label_shift_error",
            "translate",
            "teacher-forced accuracy is perfect, free translation is zero",
            o={"shift": 0},
            k=T,
            also=("causal_mask_missing", "metric_bug", "train_eval_leakage"),
        ),
        Spec(
            "tokenizer_mismatch",
            "sft",
            "a pretrained model starts above ln V and learns as from scratch",
            o={"permute_vocab": True},
            k={"steps": 80, "lr": 1e-3, "eval_every": 10, "eval_first": True, "log_every": 3},
            cfg={"init_from": "base-0.1M"},
            also=("bad_init",),
        ),
        Spec(
            "tokenizer_mismatch",
            "sft",
            "index out of range in the embedding",
            o={"big_id": 333},
            k={"steps": 60, "lr": 1e-3, "log_every": 2, "eval_every": 12},
            fine=True,
        ),
        Spec(
            "tokenizer_mismatch",
            "sft",
            "generations always run to the limit, exact match zero though tokens are right",
            o={"no_eos": True, "show": ("acc", "em", "len")},
            k={"steps": 70, "lr": 1e-3, "eval_every": 10, "log_every": 3},
            cfg={"max_new_tokens": 8},
        ),
        Spec("metric_bug", "tags", "F1 and accuracy are exactly zero beside a small loss", o={"metric": "zero"}, k=T),
        Spec(
            "metric_bug",
            "lm",
            "perplexity is not the exponential of the loss (a base of two was used)",
            o={"metric": "base2"},
            k={"steps": 160, "eval_every": 20},
            need=("ppl",),
        ),
        Spec(
            "metric_bug",
            "translate",
            "BLEU zero beside a perfect loss and token accuracy",
            o={"bleu_bug": True},
            k=T,
            also=("train_eval_mismatch",),
        ),
        Spec(
            "metric_bug",
            "embed",
            "recall at 1 is zero while MRR is near one",
            o={"recall_bug": True},
            k={"steps": 100, "batch": 32, "eval_every": 12, "lr": 1e-3},
        ),
    ]
