"""Runs of instruction tuning, preferences, classification, embeddings and transduction."""

from typing import Any

from benchmarks.loops.language import nets
from benchmarks.loops.language.catalog import OK, Run, sup
from benchmarks.loops.language.consoles import Bar, EpochTable, NanoGpt, Plain, Titan, Tune
from benchmarks.loops.language.settings import Plant
from benchmarks.loops.language.tasks_cls import Embeddings, Recall, Topics
from benchmarks.loops.language.tasks_pref import Dpo, RewardModel
from benchmarks.loops.language.tasks_seq import Translate
from benchmarks.loops.language.tasks_sft import Sft
from benchmarks.loops.language.writers import Csv, Jsonl

PACK: dict[str, Any] = {"block_size": 96, "batch_size": 6, "log_every": 2}
CLS: dict[str, Any] = {
    "train_samples": 1024,
    "n_embd": 32,
    "n_layer": 1,
    "batch_size": 32,
    "log_every": 4,
    "eval_every": 32,
}
SEQ: dict[str, Any] = {"n_embd": 48, "batch_size": 32, "lr": 3e-3, "log_every": 4, "eval_every": 40}
RM: dict[str, Any] = {
    "n_embd": 32,
    "n_layer": 1,
    "batch_size": 32,
    "train_samples": 2048,
    "log_every": 4,
    "eval_every": 32,
    "steps": 100,
    "lr": 2e-3,
}
DPO: dict[str, Any] = {"n_embd": 48, "n_layer": 1, "batch_size": 16, "train_samples": 2048, "log_every": 2,
       "eval_every": 25,
"steps": 90, "lr": 3e-4, "weight_decay": 0.0,
       "extra": {"beta": 0.1}}  # fmt: skip
EMB: dict[str, Any] = {
    "n_embd": 48,
    "n_layer": 1,
    "batch_size": 48,
    "steps": 120,
    "log_every": 2,
    "eval_every": 30,
    "lr": 2e-3,
    "extra": {"temperature": 0.05},
}
RNN: dict[str, Any] = {"n_embd": 48, "batch_size": 32, "steps": 200, "log_every": 4, "eval_every": 50, "lr": 3e-3}

SFT: list[Run] = [
    sup(Sft, "ok/1", OK, "falls from 4.8 to 2.7, val follows", Jsonl, "omega", steps=80, **PACK),
    sup(Sft, "ok/2", OK, "two epochs with a small step between", Bar, "namespace", steps=80, train_samples=320, seed=4,
        **PACK),
    sup(Sft, "masked/1", "all_labels_masked", "num_tokens is 0 and the loss NaN from the first step", Jsonl, "omega",
        steps=40, data={"mask": "all"}, **PACK),
    sup(Sft, "masked/2", "all_labels_masked", "NaN from the first step, no trained tokens", Titan, "json", steps=40,
        data={"mask": "all"}, **PACK),
    sup(Sft, "prompt/1", "prompt_not_masked", "num_tokens is all of batch times 96: prompts are trained on", Jsonl,
        "yaml", steps=80, data={"mask": "none"},
        extra={"mask_prompt": True}, **PACK),
    sup(Sft, "shift/2", "label_shift_error", "the next character but one is the label: starts at 5.1, ends as its twin",
        Plain, "namespace", steps=80, data={"shift": 2}, **PACK, weak=True),
    sup(Sft, "vocab/1", "tokenizer_mismatch", "first loss far above ln 96 for a trained model", Tune, "yaml", steps=60,
        data={"remap": True}, **PACK,
        also=("train_eval_mismatch",)),
    sup(Sft, "template/1", "train_eval_mismatch", "val far above train: another template", Jsonl, "omega", steps=120,
        lr=3e-3, eval_every=20,
        data={"other_template": True}, **PACK, weak=True),
    sup(Sft, "sorted/1", "unshuffled_data", "the loss jumps at each change of the kind of puzzle", Jsonl, "yaml",
        steps=160, lr=2e-3, train_samples=640, eval_every=20,
        data={"sort": True}, **PACK | {"log_every": 1}),
    sup(Sft, "sorted/2", "unshuffled_data", "four blocks in each epoch", Titan, steps=160, lr=2e-3, train_samples=320,
        eval_every=20, data={"sort": True}, **PACK),
    sup(Sft, "repeat/1", "duplicated_data", "train to 0.4 on 24 rows, val turns at step 40 and rises", Bar, "namespace",
        steps=160,
        lr=3e-3, train_samples=24,
        eval_every=20, **PACK, also=("overfitting",)),
    sup(Sft, "batch/1", "bad_batch", "one step of junk", NanoGpt, "overrides", steps=90, plant=Plant(bad_steps=(60,)),
        **PACK | {"log_every": 1}),
]  # fmt: skip

TOPICS: list[Run] = [
    sup(Topics, "ok/1", OK, "accuracy climbs, val follows", EpochTable, "namespace", steps=192, **CLS),
    sup(Topics, "ok/2", OK, "hard words: near chance for a while, then falls", Jsonl, "omega", steps=256,
        data={"overlap": 0.9}, lr=1e-3, **CLS),
    sup(Topics, "ok/3", OK, "plateau because it is done", Csv, "yaml", steps=256, data={"overlap": 0.4}, **CLS),
    sup(Topics, "noise/1", "label_noise", "train settles high, clean val far below", Jsonl, "yaml", steps=256,
        data={"noise": 0.5, "overlap": 0.6}, lr=2e-3, **CLS),
    sup(Topics, "signal/1", "no_signal",
        "train creeps below ln 4 = 1.386 as val rises above it, val accuracy a quarter", Plain, "namespace", steps=192,
        data={"permuted": True}, **CLS, also=("label_noise", "overfitting")),
    sup(Topics, "imbalance/1", "class_imbalance", "accuracy 0.94 and f1_macro 0.24 from start to end", Jsonl, "omega",
        steps=128, lr=5e-4,
        data={"shares": [0.94, 0.02, 0.02, 0.02], "overlap": 0.92}, **CLS),
    sup(Topics, "imbalance/2", "class_imbalance", "accuracy 0.97 with macro F1 a quarter", EpochTable, "yaml",
        steps=128, lr=5e-4,
        data={"shares": [0.97, 0.01, 0.01, 0.01], "overlap": 0.93}, **CLS),
    sup(Topics, "sorted/1", "unshuffled_data", "loss falls to zero within a class and jumps at the next", Plain,
        "namespace", steps=192, lr=3e-3, data={"sort": True}, **CLS | {"log_every": 1}),
    sup(Topics, "softmax/1", "double_softmax", "settles at 0.744 = ln(1 + 3/e) though the accuracy is 1", EpochTable,
        "namespace", steps=256, lr=4e-3,
        data={"double_softmax": True, "overlap": 0.5}, **CLS),
    sup(Topics, "softmax/2", "double_softmax", "0.744 at an accuracy of 1", Jsonl, "yaml", steps=256, lr=4e-3,
        data={"double_softmax": True, "overlap": 0.4}, **CLS),
    sup(Topics, "log0/1", "invalid_math", "NaN as soon as a probability rounds to 1", Jsonl, "omega", steps=192,
        lr=1e-2, schedule="constant", weight_decay=0.0, data={"log0": True, "overlap": 0.3},
        **CLS | {"log_every": 1}),
    sup(Topics, "metric/1", "metric_bug", "accuracy is one number for good while the loss falls", EpochTable, "yaml",
        steps=192, data={"metric": "constant"}, **CLS),
    sup(Topics, "metric/2", "metric_bug", "val accuracy at chance while val loss is near 0", Jsonl, "yaml",
        steps=192, data={"metric": "index", "overlap": 0.5}, **CLS | {"lr": 3e-3}),
    sup(Topics, "evaldata/1", "train_eval_mismatch", "val loss rises from the start: other word ids", EpochTable,
        "namespace", steps=192, lr=2e-3,
        data={"remap_eval": True, "overlap": 0.6}, **CLS),
    sup(Topics, "mode/1", "eval_mode_bug", "val jumps at random: dropout 0.6 stays on", Csv, "yaml", steps=192,
        lr=2e-3, dropout=0.7, plant=Plant(eval_in_train_mode=True),
        data={"overlap": 0.5}, **CLS | {"eval_every": 8}, weak=True),
    sup(Topics, "overfit/1", "overfitting", "train to 0, val turns at 0.54 and rises to 0.73", EpochTable, "namespace",
        lr=3e-3, steps=384, data={"overlap": 0.9},
        **CLS | {"train_samples": 256, "eval_every": 16, "weight_decay": 0.0, "n_embd": 64}),
    sup(Topics, "dead/1", "dead_units", "dead_fraction is 1 and the loss at ln 4", Jsonl, "yaml", steps=128, lr=1e-3,
        data={"net": nets.Bag(48, 4, bias=-4.0), "hooks": True}, **CLS),
    sup(Topics, "dead/2", "dead_units", "dead_fraction climbs to 0.77 as the loss jumps to 433", Plain, "namespace",
        steps=160, optimizer="sgd", lr=3.0,
        weight_decay=0.0, clip=0.0, warmup=0, data={"net": nets.Bag(48, 4), "hooks": True, "overlap": 0.5}, **CLS,
        also=("lr_too_high",)),
    sup(Topics, "frozen/1", "params_not_training", "loss does not move", EpochTable, "yaml", steps=128,
        plant=Plant(frozen="all"), **CLS),
]  # fmt: skip

PAIRS: list[Run] = [
    sup(RewardModel, "swap/1", "preference_labels_swapped", "accuracy and gold accuracy both stay near a half", Jsonl,
        "yaml", data={"swapped": 1.0, "gold": True}, **RM | {"steps": 100},
        weak=True),
    sup(RewardModel, "swap/2", "preference_labels_swapped",
        "train and val stay near a half: two fifths of the pairs are swapped", Plain, "namespace",
        data={"swapped": 0.4, "overlap": 0.3}, **RM, also=("label_noise", "no_preference_signal"), weak=True),
    sup(RewardModel, "same/1", "no_preference_signal", "loss is 0.6931 in all steps, margin 0", Jsonl, "omega",
        data={"same": True}, **RM),
    sup(RewardModel, "overfit/1", "overfitting", "val loss rises above ln 2", Bar, "namespace", data={"overlap": 0.85},
        **RM | {"train_samples": 128, "steps": 240, "n_embd": 64, "eval_every": 20, "weight_decay": 0.0}),
    sup(Dpo, "ok/1", OK, "margin and accuracy grow", Jsonl, "omega", **DPO),
    sup(Dpo, "collapse/1", "dpo_collapse", "logps of both fall by tens of nats", Jsonl, "omega", **DPO | {"lr": 2e-2,
        "clip": 0.0, "extra": {"beta": 0.02}},
        also=("lr_too_high",)),
    sup(Dpo, "drift/1", "wrong_loss",
        "loss stays at ln 2 with margin 0 though gradients flow: the reference is the policy", Jsonl, "yaml",
        data={"drift": True}, **DPO,
        also=("params_not_training", "no_preference_signal", "dpo_collapse")),
    sup(Dpo, "swap/1", "preference_labels_swapped", "accuracy of val falls below a half as that of train climbs",
        Plain, "namespace", data={"swapped": 0.9}, **DPO,
        also=("train_eval_mismatch",)),
    sup(Dpo, "sign/1", "wrong_loss", "margin and accuracy fall while the loss falls", Titan, "json",
        data={"sign": -1.0}, **DPO, also=("preference_labels_swapped",)),
]  # fmt: skip

OTHERS: list[Run] = [
    sup(Embeddings, "ok/1", OK, "recall climbs", Jsonl, "omega", **EMB),
    sup(Embeddings, "pairs/1", "no_signal", "loss at ln 48: the views do not belong together", Plain, "namespace",
        data={"unpaired": True}, **EMB),
    sup(Embeddings, "metric/1", "metric_bug", "recall is 0 at each evaluation as the loss falls", Jsonl, "yaml",
        data={"metric": "argmin"}, **EMB),
    sup(Embeddings, "sign/1", "wrong_loss", "the loss is -ln 48 and all vectors become one", Titan, data={"sign": -1.0},
        **EMB),
    sup(Embeddings, "lr/1", "lr_too_high", "all vectors become one: loss ln 48", Plain, "namespace",
        **EMB | {"lr": 0.3, "clip": 0.0}),
    sup(Translate, "ok/1", OK, "token accuracy climbs", NanoGpt, "overrides", steps=240, **SEQ),
    sup(Translate, "unshifted/1", "label_shift_error", "teacher-forced accuracy 1 and exact_match 0", Jsonl, "omega",
        steps=160, data={"unshifted": True}, **SEQ,
        also=("train_eval_leakage",)),
    sup(Translate, "dict/1", "train_eval_mismatch", "val loss rises, accuracy 0: another dictionary", Tune, "yaml",
        steps=240, data={"other_words": True}, **SEQ),
    sup(Recall, "explode/1", "exploding_gradients", "gradient norm 8e3 and loss 534 at first, then chance",
        Jsonl, "yaml",
        data={"act": "relu", "scale": 2.0}, **RNN | {"clip": 0.0},
        also=("bad_init",)),
    sup(Recall, "explode/2", "exploding_gradients", "gradient norm 300 at first, then chance", Plain, "namespace",
        data={"act": "relu", "scale": 1.5, "length": 40},
        **RNN | {"clip": 0.0, "optimizer": "sgd", "lr": 0.01}, also=("bad_init",), weak=True),
    sup(Recall, "vanish/1", "vanishing_gradients", "loss at ln 8, nothing learned over 60 steps", Titan, "json",
        data={"scale": 0.5, "length": 60}, **RNN, also=("bad_init",), weak=True),
]  # fmt: skip

RUNS = SFT + TOPICS + PAIRS + OTHERS
