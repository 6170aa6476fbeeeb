"""The loop of the supervised runs."""

from __future__ import annotations

import copy
import math
import traceback
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from benchmarks.loops.industry.recipe import Batch, Job, Recipe
from benchmarks.loops.industry.trace import Row, Trace

_TRACE = 'Traceback (most recent call last):\n  File "train.py", line 184, in <module>\n    loss = step(batch)'


def fit(job: Job, recipe: Recipe) -> Trace:
    """Train a job by its recipe and return what was logged."""
    torch.manual_seed(recipe.seed)
    return _Loop(job, recipe).run()


class _Loop:
    """One run: the state that a checkpoint would hold, and the log."""

    def __init__(self, job: Job, recipe: Recipe) -> None:
        self.job, self.recipe = job, recipe
        self.trace = Trace(settings={**job.settings, **recipe.shown()})
        self.optimizer = self._optimizer()
        self.stream = self._indices(recipe.seed)
        self.clock = 0
        self.drawn = 0
        self.window: list[Row] = []
        self.best, self.stale = math.inf, 0

    def run(self) -> Trace:
        """Train to the end, to the early stop or to the crash."""
        self.job.model.train()
        step, end = 0, self.recipe.stop or self.recipe.steps
        saved: dict[str, object] = {}
        restart = -1
        while step < end:
            if not saved and step == self.recipe.resume_at:
                saved = self._save(step)
                restart = step + max(1, self.recipe.overrun)
            try:
                self._step(step)
                ended = self._log(step + 1)
            except (RuntimeError, IndexError) as error:
                lines = traceback.format_exception_only(error)
                self.trace.note(f"{_TRACE}\n{''.join(lines).strip()}")
                return self.trace
            step += 1
            for text in (text for at, text in self.recipe.says if at == step):
                self.trace.note(text)
            if ended:
                break
            if step == restart:
                step, restart = self._restore(saved), -1
        return self.trace

    def _optimizer(self) -> torch.optim.Optimizer:
        parameters = [p for p in self.job.model.parameters() if p.requires_grad]
        if "not_in_optimizer" in self.recipe.bugs:
            parameters = [nn.Parameter(torch.zeros(1))]
        if self.recipe.optimizer == "sgd":
            decay = self.recipe.weight_decay
            return torch.optim.SGD(parameters, lr=self.recipe.lr, momentum=self.recipe.momentum, weight_decay=decay)
        kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
        kind = kinds[self.recipe.optimizer]
        made: torch.optim.Optimizer = kind(
            parameters, lr=self.recipe.lr, betas=self.recipe.betas, weight_decay=self.recipe.weight_decay
        )
        return made

    def _indices(self, seed: int) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        rows, epoch = len(self.job.train[0]), 0
        while True:
            order = self.job.order(epoch, generator) if self.job.order else torch.randperm(rows, generator=generator)
            size = min(self.recipe.batch, len(order))
            for start in range(0, len(order) - size + 1, size):
                yield order[start : start + size]
            epoch += 1

    def _batch(self, step: int) -> Batch:
        rows = next(self.stream)
        self.drawn += 1
        return self.job.touch(step, rows, tuple(part[rows] for part in self.job.train))

    def _step(self, step: int) -> None:
        lr = self.recipe.lr_at(self.clock)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        if "no_zero_grad" not in self.recipe.bugs:
            self.job.model.zero_grad()
        total = 0.0
        for _ in range(self.recipe.accumulate):
            loss = self.job.loss(self.job.model, self._batch(step))
            scale = 1 if "sum_accumulation" in self.recipe.bugs else self.recipe.accumulate
            if loss.requires_grad:
                (loss / scale).backward()  # type: ignore[no-untyped-call]
            total += loss.item() / scale
        limit = self.recipe.clip or math.inf
        norm = float(nn.utils.clip_grad_norm_(self.job.model.parameters(), limit))
        self.optimizer.step()
        self.clock += self.recipe.accumulate if "clock_per_micro" in self.recipe.bugs else 1
        self.window.append({"loss": total, "gnorm": norm, "lr": lr})

    def _log(self, step: int) -> bool:
        """Log at the steps that are logged; true if the run stops early."""
        if step % self.recipe.every and step % self.recipe.eval_every and step != 1:
            return False
        seen = len(self.window) if self.recipe.smooth else 1
        size = self.recipe.batch
        row: Row = {
            "step": step,
            "epoch": self.drawn * size / len(self.job.train[0]),
            "samples": step * size * self.recipe.accumulate,
            "loss": sum(one["loss"] for one in self.window[-seen:]) / seen,
            "gnorm": self.window[-1]["gnorm"],
            "lr": self.window[-1]["lr"],
        }
        self.window.clear()
        if self.recipe.machine:
            row |= self.recipe.machine.at(step)
        ended = False
        if step % self.recipe.eval_every == 0:
            row |= self._evaluate()
            ended = self._stale(row["val_loss"])
        self.trace.log(**row)
        if ended:
            self.trace.note(f"Early stopping at step {step}: no improvement of {self.best:.5f}")
        return ended

    def _evaluate(self) -> Row:
        model = self.job.model
        if "eval_in_train_mode" not in self.recipe.bugs:
            model.eval()
        with torch.no_grad():
            loss = (self.job.valid_loss or self.job.loss)(model, self.job.valid)
            row = {"val_loss": float(loss), **self.job.metrics(model, self.job.valid)}
        if "stays_in_eval" not in self.recipe.bugs:
            model.train()
        return row

    def _stale(self, loss: float) -> bool:
        self.stale = 0 if loss < self.best else self.stale + 1
        self.best = min(loss, self.best)
        return self.recipe.patience is not None and self.stale >= self.recipe.patience

    def _save(self, step: int) -> dict[str, object]:
        self.trace.note(f"saved checkpoint ckpt/step_{step}.pt")
        return {
            "step": step,
            "model": copy.deepcopy(self.job.model.state_dict()),
            "optimizer": copy.deepcopy(self.optimizer.state_dict()),
            "clock": self.clock,
            "drawn": self.drawn,
        }

    def _restore(self, saved: dict[str, object]) -> int:
        """Start again as a new process would, with what the bugs leave of the checkpoint."""
        bugs, step = self.recipe.bugs, int(str(saved["step"]))
        self.trace.note(f"---- job restarted ----\nresuming from ckpt/step_{step}.pt")
        self.job.model.load_state_dict(saved["model"])  # type: ignore[arg-type]
        self.optimizer = self._optimizer()
        if "lose_optimizer" not in bugs:
            self.optimizer.load_state_dict(saved["optimizer"])  # type: ignore[arg-type]
        self.clock = 0 if "lose_schedule" in bugs else int(str(saved["clock"]))
        self.drawn = int(str(saved["drawn"]))
        self.stream = self._indices(self.recipe.seed)
        if "lose_position" not in bugs:
            for _ in range(self.drawn):
                next(self.stream)
        self.window.clear()
        return step
