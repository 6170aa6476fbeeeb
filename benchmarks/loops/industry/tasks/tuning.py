"""Fine-tunes of tiny models by the Trainer of transformers, logged as it logs."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from benchmarks.loops.industry.tasks.sequences import text
from benchmarks.loops.industry.trace import Trace

_LABELS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tune:
    """The settings of a fine-tune; `bug` is what they do not tell."""

    kind: str = "bert"
    steps: int = 200
    rows: int = 1600
    lr: float = 2e-3
    batch: int = 16
    schedule: str = "linear"
    warmup: int = 0
    decay: float = 0.0
    norm: float = 1.0
    dropout: float = 0.1
    every: int = 10
    eval_every: int = 40
    bug: str = ""
    resume: int = 0
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """Return the arguments as a script would keep them."""
        return {
            "model_type": self.kind,
            "learning_rate": self.lr,
            "per_device_train_batch_size": self.batch,
            "max_steps": self.steps,
            "lr_scheduler_type": self.schedule,
            "warmup_steps": self.warmup,
            "weight_decay": self.decay,
            "max_grad_norm": self.norm,
            "logging_steps": self.every,
            "eval_steps": self.eval_every,
            "seed": self.seed,
        }


class Tickets(Dataset[dict[str, Tensor]]):
    """Tickets with a class each, or for a language model with themselves as labels."""

    def __init__(self, tune: Tune, rows: int, seed: int, training: bool) -> None:
        tokens = text(rows, seed)[:, :24]
        if tune.kind == "bert":
            share = (tokens % 7 == 0).sum(1)
            labels = torch.bucketize(share, torch.tensor([2, 3, 5]))
            if tune.bug == "shuffled":
                labels = labels[torch.randperm(rows, generator=torch.Generator().manual_seed(1))]
        else:
            labels = tokens.clone()
            if training and tune.bug == "masked":
                labels[:] = -100
            if training and tune.bug == "shifted":
                labels = torch.cat([labels[:, 1:], torch.full((rows, 1), -100)], 1)
        self.tokens, self.labels = tokens, labels

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, at: int) -> dict[str, Tensor]:
        return {"input_ids": self.tokens[at], "labels": self.labels[at]}


def _model(tune: Tune) -> Any:  # noqa: ANN401 - a model of transformers
    from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(tune.seed)
    if tune.kind == "bert":
        config = BertConfig(
            vocab_size=48,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=32,
            num_labels=_LABELS,
            hidden_dropout_prob=tune.dropout,
        )
        model = BertForSequenceClassification(config)
        if tune.bug == "frozen":
            model.requires_grad_(requires_grad=False)
            model.classifier.bias.requires_grad_(requires_grad=True)
        return model
    config = GPT2Config(vocab_size=48, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=tune.dropout)
    return GPT2LMHeadModel(config)


def _arguments(tune: Tune, place: str) -> Any:  # noqa: ANN401 - arguments of transformers
    from transformers import TrainingArguments

    return TrainingArguments(
        output_dir=place,
        max_steps=tune.steps,
        learning_rate=tune.lr,
        per_device_train_batch_size=tune.batch,
        per_device_eval_batch_size=128,
        lr_scheduler_type=tune.schedule,
        warmup_steps=tune.warmup,
        weight_decay=tune.decay,
        max_grad_norm=tune.norm,
        logging_steps=tune.every,
        eval_strategy="steps",
        eval_steps=tune.eval_every,
        save_strategy="steps" if tune.resume else "no",
        save_steps=tune.resume or 500,
        report_to="none",
        use_cpu=True,
        seed=tune.seed,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )


def _accuracy(said: Any) -> dict[str, float]:  # noqa: ANN401 - a prediction of transformers
    return {"accuracy": float((said.predictions.argmax(-1) == said.label_ids).mean())}


def _trainer(tune: Tune, place: str) -> Any:  # noqa: ANN401 - a trainer of transformers
    from transformers import Trainer

    model = _model(tune)
    held = Tickets(tune, 400, 82, training=False)
    return Trainer(
        model=model,
        args=_arguments(tune, place),
        train_dataset=Tickets(tune, tune.rows, 71 + tune.seed, training=True),
        eval_dataset=held,
        compute_metrics=_accuracy if tune.kind == "bert" else None,
    )


def _stopper(last: int) -> Any:  # noqa: ANN401 - a callback of transformers
    from transformers import TrainerCallback

    class Stopper(TrainerCallback):  # type: ignore[misc]
        """Ends a training as a limit of time does."""

        def on_step_end(self, _args: object, state: Any, control: Any, **_more: object) -> None:  # noqa: ANN401
            """Stop after the last step that is granted."""
            control.should_training_stop = state.global_step >= last

    return Stopper()


def _attempts(tune: Tune, place: str) -> list[dict[str, float]]:
    if not tune.resume:
        trainer = _trainer(tune, place)
        trainer.train()
        return list(trainer.state.log_history)
    first = _trainer(tune, place)
    first.add_callback(_stopper(tune.resume))
    first.train()
    rows = [row for row in first.state.log_history if "train_runtime" not in row]
    saved = Path(place) / f"checkpoint-{tune.resume}"
    if tune.bug == "lost_state":
        for name in ("optimizer.pt", "scheduler.pt"):
            (saved / name).unlink()
    second = _trainer(tune, place)
    second.train(resume_from_checkpoint=str(saved))
    return rows + [row for row in second.state.log_history if row["step"] > tune.resume]


def tuning(tune: Tune, *, state: bool = False) -> Trace:
    """Fine-tune; the log is what was printed, or the state that the Trainer saves."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(printed):
        history = _attempts(tune, place)
    trace = Trace(settings=tune.shown())
    if state:
        saved = {
            "global_step": tune.steps,
            "max_steps": tune.steps,
            "logging_steps": tune.every,
            "log_history": history,
        }
        trace.note(json.dumps(saved, indent=2))
    else:
        for line in printed.getvalue().splitlines():
            trace.note(line)
    return trace
