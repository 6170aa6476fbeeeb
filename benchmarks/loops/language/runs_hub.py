"""Runs of the Hugging Face Trainer and of TRL's trainers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.loops.language import hub
from benchmarks.loops.language.catalog import OK, Run
from benchmarks.loops.language.hub import Row
from benchmarks.loops.language.task import Record
from benchmarks.loops.language.tasks_sft import example
from benchmarks.loops.language.text import topic_sentences

Also = tuple[str, ...]
LONG = 10**6


def trl(  # noqa: PLR0917 - a row of a table
    kind: str, key: str, cause: str, fact: str, leave: str, plan: Row, *, also: Also = (), weak: bool = False
) -> Run:
    """A run of a trainer; the plan is the rest of Hub."""

    def make(folder: Path) -> list[Record]:
        return hub.run(hub.Hub(kind=kind, leave=leave, **plan), folder)

    task = {"trainer": "hf_classification"}.get(kind, f"trl_{kind.lower()}")
    return Run(f"{task}/{key}", cause, task, f"hf:{leave}", fact, make, also, weak)


def puzzles(count: int, start: int = 0, **change: str) -> list[Row]:
    """Prompts and completions."""
    rows = [example(start + i) for i in range(count)]
    return [{"prompt": p if "blank" not in change else "#" * len(p), "completion": c} for p, c in rows]


def sft(key: str, cause: str, fact: str, leave: str = "state", *, rows: int = 480, repeat: bool = False,
    held_out: bool = True,
        fresh: bool = False, template: bool = False, also: Also = (), weak: bool = False, init: float = 0.02,
        remap: bool = False, **args: Any) -> Run:  # fmt: skip  # noqa: ANN401
    """Instruction tuning of the warm decoder with TRL."""

    def train() -> list[Row]:
        data = puzzles(rows) * (4 if repeat else 1)
        return [{k: v.swapcase()[::-1] for k, v in row.items()} for row in data] if remap else data

    def test() -> list[Row]:
        data = puzzles(64, LONG)
        if template:
            data = [{"prompt": f"### {row['prompt'].upper()} ###", "completion": row["completion"]} for row in data]
        return data

    usual: Row = {
        "max_steps": 80,
        "learning_rate": 1e-3,
        "completion_only_loss": True,
        "warmup_steps": 5,
        "max_length": 96,
    }
    plan = {"args": usual | args, "model": (lambda: hub.decoder(init=init)) if fresh else hub.warm_decoder,
    "train": train,
            "held_out": test if held_out else None}  # fmt: skip
    return trl("SFT", key, cause, fact, leave, plan, also=also, weak=weak)


def pairs(count: int, start: int = 0, *, swapped: float = 0.0, same: bool = False) -> list[Row]:
    """Preference pairs of right and wrong answers; a share is swapped."""
    rows: list[Row] = []
    for i in range(count):
        prompt, right = example(start + i)
        chosen, rejected = right, right if same else hub.wrong(right)
        if (i * 7919 % 100) < swapped * 100:
            chosen, rejected = rejected, chosen
        rows.append({"prompt": prompt, "chosen": chosen, "rejected": rejected})
    return rows


def dpo(key: str, cause: str, fact: str, leave: str = "state", *, data: Row | None = None, held_out: bool = True,
    also: Also = (),
        weak: bool = False, **args: Any) -> Run:  # fmt: skip  # noqa: ANN401
    """DPO with TRL against a copy of the warm decoder."""
    usual: Row = {
        "max_steps": 40,
        "learning_rate": 2e-4,
        "beta": 0.1,
        "logging_steps": 2,
        "warmup_steps": 4,
        "max_length": 96,
    }
    plan = {"args": usual | args, "model": hub.warm_decoder, "train": lambda: pairs(320, **data or {}),
            "held_out": (lambda: pairs(48, LONG, same=bool((data or {}).get("same")))) if held_out else None,
            "more": lambda: {"ref_model": hub.warm_decoder()}}  # fmt: skip
    return trl("DPO", key, cause, fact, leave, plan, also=also, weak=weak)


def scorer() -> Any:  # noqa: ANN401
    """A tiny Llama with one score."""
    from transformers import LlamaForSequenceClassification

    config = hub.decoder().config
    config.num_labels = 1
    torch.manual_seed(0)
    return LlamaForSequenceClassification(config)


def reward(key: str, cause: str, fact: str, leave: str = "state", *, data: Row | None = None, held_out: bool = True,
    also: Also = (),
           weak: bool = False, **args: Any) -> Run:  # fmt: skip  # noqa: ANN401
    """A reward model with TRL."""
    usual: Row = {"max_steps": 50, "learning_rate": 1e-3, "logging_steps": 2, "max_length": 96}
    plan = {"args": usual | args, "model": scorer, "train": lambda: pairs(400, **data or {}),
            "held_out": (lambda: pairs(48, LONG)) if held_out else None}  # fmt: skip
    return trl("Reward", key, cause, fact, leave, plan, also=also, weak=weak)


def letter(completions: list[str], **_: Any) -> list[float]:  # noqa: ANN401
    """Share of the letter a."""
    return [c.count("a") / 12 for c in completions]


def nothing(completions: list[str], **_: Any) -> list[float]:  # noqa: ANN401
    """A pattern that is never met, for a mistake in its expression."""
    return [float("<answer>" in c) for c in completions]


def grpo(key: str, cause: str, fact: str, leave: str, rule: Any, *, also: Also = (), **args: Any) -> Run:  # noqa: ANN401
    """GRPO with TRL."""
    usual: Row = {"max_steps": 30, "learning_rate": 1e-3, "max_completion_length": 12, "num_generations": 8,
    "beta": 0.0,
                  "per_device_train_batch_size": 16, "logging_steps": 1}  # fmt: skip
    plan = {"args": usual | args, "model": hub.warm_decoder,
    "train": lambda: [{"prompt": example(i)[0]} for i in range(200)],
            "more": lambda: {"reward_funcs": rule}}  # fmt: skip
    return trl("GRPO", key, cause, fact, leave, plan, also=also)


def bert() -> Any:  # noqa: ANN401
    """A tiny BERT for four classes."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=256, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, num_labels=4
    )
    return BertForSequenceClassification(config)


def frozen_bert() -> Any:  # noqa: ANN401
    """The same, frozen but for one bias of its pooler, which a name filter let through."""
    model = bert()
    model.requires_grad_(requires_grad=False)
    model.bert.pooler.dense.bias.requires_grad_(requires_grad=True)
    return model


def sentences(count: int, seed: int, *, noise: float = 0.0, sort: bool = False, shares: list[float] | None = None,
              overlap: float = 0.7) -> list[Row]:  # fmt: skip
    """Word ids and topics."""
    ids, labels = topic_sentences(count, 4, seed, overlap=overlap, shares=shares)
    draw = torch.Generator().manual_seed(seed)
    flip = torch.rand(count, generator=draw) < noise
    labels[flip] = torch.randint(0, 4, (int(flip.sum()),), generator=draw)
    rows = [{"input_ids": i.tolist(), "labels": int(y)} for i, y in zip(ids, labels, strict=True)]
    return sorted(rows, key=lambda row: row["labels"]) if sort else rows


def in_order(base: type) -> type:
    """A trainer whose sampler does not shuffle."""

    class Ordered(base):  # type: ignore[misc]
        def _get_train_sampler(self, *_: Any) -> Any:  # noqa: ANN401
            return torch.utils.data.SequentialSampler(self.train_dataset)

    return Ordered


def softmaxed(base: type) -> type:
    """A trainer with a loss of its own that is fed probabilities."""

    class Softmaxed(base):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:  # noqa: ANN401
            out = model(**inputs)
            loss = torch.nn.functional.cross_entropy(out.logits.softmax(-1), inputs["labels"])
            return (loss, out) if return_outputs else loss

    return Softmaxed


def metrics(predictions: Any) -> dict[str, float]:  # noqa: ANN401
    """Accuracy and macro F1."""
    guess, labels = predictions.predictions.argmax(-1), predictions.label_ids
    scores = [
        2 * ((guess == k) & (labels == k)).sum() / max(1, (guess == k).sum() + (labels == k).sum()) for k in range(4)
    ]
    return {"accuracy": float((guess == labels).mean()), "f1": float(sum(scores) / 4)}


def wrong_column(predictions: Any) -> dict[str, float]:  # noqa: ANN401
    """Accuracy of the guess against the row's number."""
    guess = predictions.predictions.argmax(-1)
    return {"accuracy": float((guess == predictions.label_ids.argsort() % 97 + 4).mean())}


def cls(key: str, cause: str, fact: str, leave: str = "state", *, data: Row | None = None,
        model: Callable[[], Any] = bert, rows: int = 800, trainer: Callable[[type], type] | None = None,
        score: Callable[[Any], dict[str, float]] = metrics, also: Also = (), weak: bool = False,
        test_overlap: float = 0.7, **args: Any) -> Run:  # fmt: skip  # noqa: ANN401
    """Fine-tuning of an encoder with the Trainer."""
    usual: Row = {"max_steps": 120, "learning_rate": 1e-3, "per_device_train_batch_size": 16, "warmup_steps": 5}
    even = {"overlap": (data or {}).get("overlap", test_overlap), "shares": (data or {}).get("shares")}
    plan = {"args": usual | args, "model": model, "train": lambda: sentences(rows, 1, **data or {}),
            "held_out": lambda: sentences(160, 2, **even), "trainer": trainer,
            "more": lambda: {"compute_metrics": score}}  # fmt: skip
    return trl("trainer", key, cause, fact, leave, plan, also=also, weak=weak)


RUNS: list[Run] = [
    sft("ok/1", OK, "falls from a low start, eval follows", "state args"),
    sft("ok/2", OK, "console alone, small batch noise", "console", per_device_train_batch_size=4, held_out=False,
        logging_steps=2, seed=7),
    sft("lr/1", "lr_too_high", "lr 0.1 throws the model far above its start", "state args", learning_rate=0.1,
        max_grad_norm=0.0),
    sft("bad_init/1", "bad_init", "first loss far above ln 99", "state", fresh=True, init=0.6),
    sft("template/1", "train_eval_mismatch", "eval loss far above train and rising: another template", "state args",
        template=True, learning_rate=3e-3),
    sft("overfit/1", "overfitting", "eval turns while train goes to 0", "state args", rows=40, learning_rate=4e-3,
        max_steps=120, also=("duplicated_data",)),
    sft("warmup/1", "lr_schedule_bug", "warm-up of a thousand steps in a run of eighty: the rate stays tiny",
        "state args", warmup_steps=1500,
        learning_rate=1e-4, also=("lr_too_low",)),
    dpo("ok/1", OK, "margins grow", "state args"),
    dpo("collapse/1", "dpo_collapse", "both logps fall by far", "state args", learning_rate=2e-2, beta=0.01,
        max_grad_norm=0.0, also=("lr_too_high", "kl_blowup")),
    dpo("same/1", "no_preference_signal", "0.6931 and margins 0", "console repr", data={"same": True}),
    reward("ok/1", OK, "accuracy climbs", "state args"),
    grpo("ok/1", OK, "reward climbs", "console", letter),
    grpo("broken/1", "reward_broken", "reward 0 in every step", "state args", nothing, also=("no_reward_variance",
        "exploration_failure")),
    grpo("collapse/1", "entropy_collapse", "entropy goes to 0 within steps", "console repr", letter,
        learning_rate=2e-2, max_grad_norm=10.0,
         also=("lr_too_high", "reward_hacking")),
    cls("ok/1", OK, "accuracy climbs", "state args"),
    cls("sorted/1", "unshuffled_data", "the loss follows the order of the labels", "state", data={"sort": True},
        trainer=in_order, logging_steps=2, max_steps=150),
    cls("frozen/1", "params_not_training", "the loss stays at ln 4, the gradient norm is tiny", "state args",
        model=frozen_bert),
    cls("imbalance/1", "class_imbalance", "accuracy 0.95 with f1 a quarter", "console", data={"shares": [0.95, 0.02,
        0.02, 0.01], "overlap": 0.9}, learning_rate=3e-4),
    cls("metric/1", "metric_bug", "accuracy 0 at every evaluation while the loss falls", "state args",
        score=wrong_column),
]  # fmt: skip
