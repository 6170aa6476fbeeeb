"""The Trainer of Transformers on models made from configurations; its own `trainer_state.json` is diagnosed."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.faults.experiment import Experiment, Record, Settings, Subject
from benchmarks.faults.tasks import text

CONTEXT = 32
Row = dict[str, Tensor]


def language_model() -> nn.Module:
    """Return a GPT-2 of two layers."""
    transformers = import_module("transformers")
    size = text()[1]
    model: nn.Module = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=size, n_positions=CONTEXT, n_embd=48, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
        )
    )
    return model


def classifier() -> nn.Module:
    """Return a BERT classifier of two layers."""
    transformers = import_module("transformers")
    model: nn.Module = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=24, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
            max_position_embeddings=CONTEXT, num_labels=4,
        )
    )  # fmt: skip
    return model


def text_rows(generator: torch.Generator, count: int, *, evaluation: bool) -> list[Row]:
    """Return windows of text, from its last tenth for evaluation."""
    characters, _ = text()
    split = int(0.9 * len(characters))
    low, high = (split, len(characters) - CONTEXT) if evaluation else (0, split - CONTEXT)
    starts = torch.randint(low, high, (count,), generator=generator).tolist()
    windows = [characters[start : start + CONTEXT] for start in starts]
    return [{"input_ids": window, "labels": window.clone()} for window in windows]


def class_rows(generator: torch.Generator, count: int, *, evaluation: bool) -> list[Row]:
    """Return sequences whose class is the most frequent of four tokens."""
    del evaluation
    labels = torch.randint(0, 4, (count,), generator=generator)
    tokens = torch.randint(4, 24, (count, 20), generator=generator)
    marked = torch.rand(count, 20, generator=generator) < 0.3
    tokens = torch.where(marked, labels.unsqueeze(1), tokens)
    return [{"input_ids": row, "labels": label} for row, label in zip(tokens, labels, strict=True)]


Rows = Callable[..., list[Row]]


@dataclass(frozen=True)
class Job:
    """What a Trainer is given: a model, rows, and a learning rate that works."""

    name: str
    model: Callable[[], nn.Module]
    rows: Rows
    lr: float
    steps: int
    tuning: bool


JOBS = (
    Job("hf_gpt2", language_model, text_rows, 2e-3, 200, tuning=True),
    Job("hf_bert", classifier, class_rows, 5e-4, 200, tuning=False),
)


@dataclass(slots=True, kw_only=True)
class HfRun(Experiment):
    """A run of the Trainer.

    Args:
        job: What is trained.
        examples: Rows of the training set.
        prepare: Changes the model before it is trained.
        spoil: Changes the training rows.
        options: Further arguments of TrainingArguments.
    """

    formats = ("own",)
    intervals = (1,)

    job: Job
    examples: int = 4000
    batch: int = 16
    warmup: int = 20
    prepare: Callable[[nn.Module], None] | None = None
    spoil: Callable[[list[Row], torch.Generator], None] | None = None
    options: Mapping[str, float | str | bool] | None = None

    @classmethod
    def usual(cls, job: Job, seed: int) -> HfRun:
        """Return the healthy run of a job."""
        return cls(job=job, seed=seed, lr=job.lr, steps=job.steps)

    def train(self) -> list[Record]:
        """Train with the Trainer and return its history; its state is kept as the log of the run."""
        transformers = import_module("transformers")
        generator = torch.Generator().manual_seed(self.seed)
        rows = self.job.rows(generator, self.examples, evaluation=False)
        if self.spoil:
            self.spoil(rows, generator)
        held_out = self.job.rows(torch.Generator().manual_seed(10_000 + self.seed), 128, evaluation=True)
        torch.manual_seed(self.seed)
        model = self.job.model()
        if self.prepare:
            self.prepare(model)
        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                output_dir=folder, seed=self.seed, max_steps=self.steps, learning_rate=self.lr,
                per_device_train_batch_size=self.batch, warmup_steps=self.warmup, logging_steps=5,
                eval_strategy="steps", eval_steps=25, save_strategy="no", report_to=[], use_cpu=True,
                disable_tqdm=True, log_level="error", **(self.options or {}),
            )  # fmt: skip
            trainer = transformers.Trainer(
                model=model, args=arguments, train_dataset=rows, eval_dataset=held_out,
                compute_metrics=accuracy if self.job.name == "hf_bert" else None,
            )  # fmt: skip
            records, self.own_log = trained(trainer, folder)
            return records

    def settings(self) -> Settings:
        """Return the arguments that the Trainer was given."""
        return {
            "learning_rate": self.lr,
            "warmup_steps": self.warmup,
            "max_steps": self.steps,
            "per_device_train_batch_size": self.batch,
            **(self.options or {}),
            **({"vocab_size": text()[1]} if self.job.name == "hf_gpt2" else {"num_labels": 4}),
        }


def accuracy(outcome: Any) -> dict[str, float]:  # noqa: ANN401 - EvalPrediction exists where transformers does
    """Return the share of right classes."""
    return {"accuracy": float((outcome.predictions.argmax(axis=-1) == outcome.label_ids).mean())}


def trained(trainer: Any, folder: str) -> tuple[list[Record], str]:  # noqa: ANN401
    """Train; return the history, evaluations in the record of their step, and the state as the Trainer wrote it."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        trainer.train()
        trainer.save_state()
    state = Path(folder, "trainer_state.json").read_text(encoding="utf-8")
    records: dict[float, Record] = {}
    for row in json.loads(state)["log_history"]:
        records.setdefault(row["step"], {}).update(row)
    return list(records.values()), state


SUBJECTS = tuple(
    Subject(job.name, partial(HfRun.usual, job), job.tuning, needs=("transformers", "accelerate")) for job in JOBS
)
