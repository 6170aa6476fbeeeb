"""The training loop that all supervised tasks share, with the places where faults enter."""

from __future__ import annotations

import copy
import math
import resource
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.loops.dialogue.core import Knobs, Record, lr_at
from benchmarks.loops.dialogue.task import Loader, Task

ROOT = str(Path(__file__).resolve().parents[1])


def _pages(column: int) -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[column]) * resource.getpagesize()


def make_optimizer(model: nn.Module, k: Knobs) -> torch.optim.Optimizer:
    """The optimizer over all parameters but the frozen ones."""
    params = [p for n, p in model.named_parameters() if p.requires_grad and not any(part in n for part in k.freeze)]
    if k.opt == "sgd":
        return torch.optim.SGD(params, lr=k.lr, momentum=k.momentum, weight_decay=k.wd)
    kind = torch.optim.AdamW if k.opt == "adamw" else torch.optim.Adam
    return kind(params, lr=k.lr, betas=(0.9, k.beta2), eps=k.eps, weight_decay=k.wd)


def _norm(model: nn.Module, part: str = "") -> float:
    total = _squares(p.grad for n, p in model.named_parameters() if p.grad is not None and part in n)
    return math.sqrt(total) if total >= 0 else float("nan")


def _squares(tensors: Iterable[Tensor]) -> float:
    return sum(float(t.float().square().sum()) for t in tensors)


class _Training:
    """A training under way."""

    def __init__(self, task: Task, k: Knobs, rec: Record) -> None:
        self.task, self.k, self.rec, self.model = task, k, rec, task.model
        if k.pure_bf16:
            self.model.to(torch.bfloat16)
        self.model.train()
        self.opt = make_optimizer(self.model, k)
        half = k.amp == "fp16"
        self.scaler = torch.amp.GradScaler("cpu", init_scale=k.init_scale, growth_interval=40, enabled=half)
        self.cast = torch.float16 if half else torch.bfloat16
        self.stale = copy.deepcopy(self.model) if k.eval_stale else None
        self.loader = Loader(task, k)
        self.history, self.loss = list[Tensor](), torch.zeros(())
        self.skipped, self.shift, self.done = 0, 0, 0

    def run(self) -> None:
        """All steps, with the evaluations between them."""
        if self.k.eval_first:
            self.rec.eval(0, self.evaluate())
        for step in range(self.k.stop_at or self.k.steps):
            self.step(step)
            if (step + 1) % self.k.eval_every == 0:
                self.rec.eval(step + 1, self.evaluate())
            self.done = step + 1

    def evaluate(self) -> dict[str, float]:
        """What the task says of the model."""
        live = self.task.model
        self.task.model = live if self.stale is None else self.stale
        if not self.k.eval_stays_train:
            self.task.model.eval()
        with torch.no_grad():
            values = self.task.evaluate()
        self.task.model = live
        if not self.k.train_stays_eval:
            live.train()
        return values

    def step(self, step: int) -> None:
        """One update, and its row if one is due."""
        k, begin = self.k, time.perf_counter()
        self.loader.waited = 0.0
        if k.resume_at and step == k.resume_at:
            self.resume()
        row = {"loss": 0.0, "lr": self.set_rate(step), "gnorm": 0.0}
        if not k.keep_grads:
            self.opt.zero_grad()
        losses, extra = self.gradients(step)
        row["loss"] = sum(loss / (1 if k.report_sum else len(losses)) for loss in losses)
        self.scaler.unscale_(self.opt)
        row["gnorm"] = _norm(self.model)
        row |= extra | self.update(due=step % k.log_every == 0)
        self.linger(step, self.loss)
        took = time.perf_counter() - begin
        if step % k.log_every == 0 or step == k.steps - 1:
            self.rec.train(step, row | self.watched(took) | self.by_rank(losses))

    def resume(self) -> None:
        """Go on from a checkpoint that holds all, or less than all."""
        k = self.k
        self.rec.event(k.resume_at, f"Resuming from checkpoint ckpt/step_{k.resume_at}.pt")
        if k.resume == "data":
            self.loader.offset = k.resume_at * k.accum
        state = copy.deepcopy(self.opt.state_dict())
        self.opt = make_optimizer(self.task.model, k)
        if k.resume not in ("weights", "warmup"):
            self.opt.load_state_dict(state)
        self.shift = k.resume_at if k.resume == "warmup" else 0

    def set_rate(self, step: int) -> float:
        """Give the optimizer the rate of a step."""
        rate = lr_at(self.k, step - self.shift)
        for group in self.opt.param_groups:
            group["lr"] = rate
        return rate

    def gradients(self, step: int) -> tuple[list[float], dict[str, float]]:
        """Add up the gradients of the micro-batches of all ranks; gives their losses and the values of the last."""
        k, losses, extra = self.k, list[float](), dict[str, float]()
        parts = k.accum * k.ranks
        for micro in range(parts):
            batch = self.loader.get(step * parts + micro, step)
            with torch.autocast("cpu", dtype=self.cast, enabled=bool(k.amp)):
                loss, extra = self.task.loss(batch)
            if micro % k.ranks == k.ranks - 1 and step in k.bitflip:
                loss = loss * 2.0**7
            losses.append(float(loss.detach()))
            self.loss = loss
            if loss.requires_grad:
                self.scaler.scale(loss if k.accum_sum else loss / parts).backward()  # type: ignore[no-untyped-call]
        return losses, extra

    def update(self, *, due: bool) -> dict[str, float]:
        """Clip and step; gives what is watched of gradients and updates when a row is due."""
        k, row = self.k, dict[str, float]()
        if "layers" in k.watch and due:
            last = len(getattr(self.model, "blocks", [1])) - 1
            row |= {f"g_{part}": _norm(self.model, part) for part in ("blocks.0", f"blocks.{last}", "head")}
        if k.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), k.clip)
        before = [p.detach().clone() for p in self.model.parameters()] if "upd" in k.watch and due else []
        scale = self.scaler.get_scale()
        if not k.no_step:
            self.scaler.step(self.opt)
            self.scaler.update()
        self.skipped += int(self.scaler.is_enabled() and self.scaler.get_scale() < scale)
        if before:
            moved = _squares(p.detach() - b for p, b in zip(self.model.parameters(), before, strict=True))
            row["upd"] = math.sqrt(moved) / (math.sqrt(_squares(before)) + 1e-12)
        return row

    def linger(self, step: int, loss: Tensor) -> None:
        """Keep memory and waste time, where the run does so."""
        history, size = self.history, int(self.k.leak_mb * 2**18)
        if size:
            history.append(loss.detach().expand(size).clone())
        if self.k.slow_ms:
            time.sleep(self.k.slow_ms * step / self.k.steps / 1000)

    def watched(self, took: float) -> dict[str, float]:
        """Further values that this run logs of weights, machine and scaler."""
        row: dict[str, float] = {}
        if "wnorm" in self.k.watch:
            row["wnorm"] = math.sqrt(_squares(p.detach() for p in self.model.parameters()))
        if "mem" in self.k.watch:
            row["mem_mb"] = _pages(1) / 2**20
        if "timing" in self.k.watch:
            row |= {"step_ms": took * 1000, "data_ms": self.loader.waited * 1000}
        if self.scaler.is_enabled():
            row |= {"scale": self.scaler.get_scale(), "skipped": self.skipped}
        return row

    def by_rank(self, losses: list[float]) -> dict[str, float]:
        """The loss of each rank, where there are several."""
        return {f"loss_rank{i}": v for i, v in enumerate(losses[: self.k.ranks])} if self.k.ranks > 1 else {}


def fit(task: Task, k: Knobs, rec: Record) -> None:
    """Train `task` by `k` and note everything in `rec`; errors end up in the record as well."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    rec.epoch_len = max(1, task.epoch_len // max(k.accum, 1))
    if k.cap_mb:
        resource.setrlimit(resource.RLIMIT_AS, (_pages(0) + int(k.cap_mb * 2**20), hard))
    training = _Training(task, k, rec)
    try:
        training.run()
    except KeyboardInterrupt:
        return
    except (RuntimeError, IndexError, ValueError, MemoryError) as error:
        lines = traceback.format_exc().strip().split("\n")
        text = "\n".join([lines[0], *lines[-3:-1]]) + f"\n{type(error).__name__}: {str(error)[:300]}"
        text = text.replace(ROOT, "/home/user/project").replace("dialogue/", "src/")
        rec.event(max(training.done, 1), text)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
