"""The tasks of the plain loop by Lightning's Trainer; the `metrics.csv` of its CSVLogger is what is diagnosed."""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import tempfile
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.faults.experiment import Record, Subject
from benchmarks.faults.loop import Data, Setup, evaluation_batch, make_optimizer, scheduled
from benchmarks.faults.tasks import TASKS, Batch, Task

NAMES = {
    "train_loss_step": "loss", "val_loss": "eval_loss", "val_acc": "eval_accuracy", "lr-AdamW": "learning_rate",
    "lr-SGD": "learning_rate", "grad_2.0_norm_total": "grad_norm",
}  # fmt: skip
"""What the columns are called elsewhere in the benchmark."""


@dataclass(slots=True, kw_only=True)
class LightningRun(Setup):
    """A run of Lightning's Trainer, four epochs or more over a training set."""

    formats = ("own",)
    own_file = "metrics.csv"

    @classmethod
    def usual(cls, task: Task, seed: int) -> LightningRun:
        """Return the healthy run of a task."""
        return cls(task=task, seed=seed, lr=task.lr, steps=task.steps, batch=task.batch, examples=100 * task.batch)

    def train(self) -> list[Record]:
        """Train with Lightning and return what it logged by step; its own file is kept as the log of the run."""
        lightning = import_module("pytorch_lightning")
        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
        with (
            tempfile.TemporaryDirectory() as folder,
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            trainer = lightning.Trainer(
                accelerator="cpu", devices=1, max_steps=self.steps, max_epochs=-1, log_every_n_steps=5,
                val_check_interval=self.eval_every, check_val_every_n_epoch=None, gradient_clip_val=self.clip,
                num_sanity_val_steps=0, enable_checkpointing=False, enable_progress_bar=False,
                enable_model_summary=False, callbacks=[lightning.callbacks.LearningRateMonitor("step")],
                logger=lightning.loggers.CSVLogger(folder, name="", version=""),
            )  # fmt: skip
            data = Data(self)
            assert data.pool is not None, "a run of Lightning has a training set"
            rows = data.pool[data.order]
            torch.manual_seed(self.seed)
            trainer.fit(module(self), loader(self, rows, train=True), loader(self, evaluation_batch(self), train=False))
            self.own_log = Path(folder, "metrics.csv").read_text(encoding="utf-8")
        return records(self.own_log)


def loader(run: LightningRun, rows: Batch, *, train: bool) -> Any:  # noqa: ANN401 - of tuples of tensors
    """Return a loader over rows."""
    data = torch.utils.data.TensorDataset(rows.inputs, rows.targets, rows.mask)
    size, shuffled = (run.batch, run.order == "shuffled") if train else (len(rows.inputs), False)
    return torch.utils.data.DataLoader(data, batch_size=size, shuffle=shuffled, drop_last=train)


def module(run: LightningRun) -> Any:  # noqa: ANN401 - its class exists where Lightning does
    """Return the LightningModule of a run."""
    lightning = import_module("pytorch_lightning")

    class Learner(lightning.LightningModule):  # type: ignore[misc, name-defined]
        """Steps of training and validation."""

        def __init__(self) -> None:
            super().__init__()
            self.body: nn.Module = run.task.model(run.shape)
            self.spoiling = torch.Generator().manual_seed(run.seed + 1)
            if run.prepare:
                run.prepare(self.body)

        def training_step(self, given: list[Tensor], _: int) -> Tensor:
            loss = training_loss(run, self.body, Batch(*given), self.global_step, self.spoiling)
            self.log("train_loss", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, given: list[Tensor], _: int) -> None:
            self.log_dict(validated(run, self.body, Batch(*given)))

        def on_after_backward(self) -> None:
            if run.after_backward:
                run.after_backward(self.global_step, self.body)

        def on_before_optimizer_step(self, _: torch.optim.Optimizer) -> None:
            if run.seed % 2:
                self.log_dict(lightning.utilities.grad_norm(self, norm_type=2, group_separator="_"))

        def configure_optimizers(self) -> dict[str, Any]:
            optimizer = make_optimizer(run, self.body)
            rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: scheduled(run, step) / run.lr)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}

    return Learner()


def training_loss(run: LightningRun, body: nn.Module, batch: Batch, step: int, spoiling: torch.Generator) -> Tensor:
    """Return the loss of a batch, as the fault leaves it."""
    if run.spoil:
        batch = run.spoil(step, batch, spoiling)
    return run.loss(body(batch.inputs), batch)


def validated(run: LightningRun, body: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Return what is logged of the validation set."""
    body.train(run.eval_in_training_mode)
    logits = body(batch.inputs)
    loss = (run.evaluation_loss or run.loss)(logits, batch)
    return {"val_loss": loss, "val_acc": (logits.argmax(dim=1) == batch.targets).float().mean()}


def records(table: str) -> list[Record]:
    """Return what a `metrics.csv` holds, one record for each step, under the names used elsewhere."""
    by_step: dict[int, Record] = defaultdict(dict)
    for row in csv.DictReader(io.StringIO(table)):
        values = {NAMES.get(name, name): float(value) for name, value in row.items() if value}
        by_step[int(values["step"])] |= values
    return [by_step[step] for step in sorted(by_step)]


SUBJECTS = tuple(
    Subject(
        f"lightning_{name}",
        partial(LightningRun.usual, TASKS[name]),
        tuning=name == "tabular",
        needs=("pytorch_lightning",),
    )
    for name in ("tabular", "sequences")
)
