"""Console lines in the manner of well-known training scripts."""

import math
from datetime import datetime
from typing import TYPE_CHECKING

from benchmarks.loops.language.writers import Writer, extras

if TYPE_CHECKING:
    from benchmarks.loops.language.task import Record


def stamp(form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Now, in local time."""
    return datetime.now().strftime(form)


def pairs(record: "Record", form: str = "{} {:.4f}", joint: str = ", ") -> str:
    """Name and value of metrics in a row."""
    return joint.join(form.format(name, value) for name, value in record.items())


class NanoGpt(Writer):
    """iter lines without rate or gradients, and step lines of evaluations."""

    def opening(self) -> None:
        """Its start-up lines."""
        self.line(f"tokens per iteration will be: {self.tokens:,}\nnumber of parameters: {self.params / 1e6:.2f}M")

    def step_line(self, record: "Record") -> None:
        """Loss and time of an iteration."""
        extra = f", {pairs(extras(record))}" if extras(record) else ""
        self.last = record["loss"]
        spent = record["step_s"] * 1000
        self.line(f"iter {record['step']:.0f}: loss {record['loss']:.4f}, time {spent:.2f}ms, mfu -100.00%{extra}")

    def eval_line(self, step: int, metrics: "Record") -> None:
        """Train and validation loss side by side."""
        rest = {k: v for k, v in metrics.items() if k != "loss"}
        train = f"train loss {self.last:.4f}, " if step else ""
        self.line(f"step {step}: {train}val loss {metrics['loss']:.4f}{', ' + pairs(rest) if rest else ''}")


class Modded(Writer):
    """step:n/N with times since the start."""

    def times(self, step: float) -> str:
        """Milliseconds since the start and per step."""
        import time

        spent = (time.perf_counter() - self.begun) * 1000
        return f"train_time:{spent:.0f}ms step_avg:{spent / max(1, step):.2f}ms"

    def step_line(self, record: "Record") -> None:
        """Loss of a step."""
        extra = " ".join(f"{k}:{v:.4f}" for k, v in extras(record).items())
        step = record["step"] + 1
        self.line(
            f"step:{step:.0f}/{self.s.steps} train_loss:{record['loss']:.4f} "
            f"{extra + ' ' if extra else ''}{self.times(step)}"
        )

    def eval_line(self, step: int, metrics: "Record") -> None:
        """Validation metrics."""
        shown = " ".join(f"val_{k}:{v:.4f}" for k, v in metrics.items())
        self.line(f"step:{step}/{self.s.steps} {shown} {self.times(step)}")


class Titan(Writer):
    """Lines of a Python logger with memory and throughput."""

    def log(self, text: str) -> None:
        """One line of the logger."""
        self.line(f"[rank0]:[titan] {stamp()},{datetime.now().microsecond // 1000:03d} - root - INFO - {text}")

    def opening(self) -> None:
        """Its start-up lines."""
        self.log(f"Model size: {self.params:,} total parameters")
        self.log(f"Training starts at step 1, with local batch size {self.s.batch_size}, total steps {self.s.steps}")

    def step_line(self, record: "Record") -> None:
        """Loss, gradient norm, memory and throughput."""
        extra = "".join(f"  {k}: {v:.4f}" for k, v in extras(record).items())
        self.log(
            f"step: {record['step'] + 1:2.0f}  loss: {record['loss']:7.4f}  grad_norm: {record['grad_norm']:7.4f}"
            f"{extra}  memory: {record['rss_mb'] / 1024:5.2f}GiB  tps: {self.tokens / record['step_s']:,.0f}  "
            f"lr: {record['lr']:.3e}"
        )

    def eval_line(self, step: int, metrics: "Record") -> None:
        """Validation metrics."""
        self.log(f"validate step: {step:2d}  {'  '.join(f'{k}: {v:7.4f}' for k, v in metrics.items())}")

    def resumed(self, step: int) -> None:
        """Its message about a checkpoint."""
        self.log(f"Loading the checkpoint from outputs/checkpoint/step-{step}.")
        self.log(f"Training starts at step {step + 1}")


class Megatron(Writer):
    """Iteration lines with bars, and validation between dashes."""

    evaluates_at_start = False

    def step_line(self, record: "Record") -> None:
        """All of an iteration."""
        step, batch = record["step"] + 1, self.s.batch_size * self.s.accum
        extra = "".join(f" {k}: {v:.6E} |" for k, v in extras(record).items())
        bad = not math.isfinite(record["loss"])
        self.line(
            f" [{stamp()}] iteration {step:8.0f}/{self.s.steps:8d} | consumed samples: {step * batch:12.0f} | "
            f"elapsed time per iteration (ms): {record['step_s'] * 1000:.1f} | learning rate: {record['lr']:.6E} | "
            f"global batch size: {batch:5d} | lm loss: {record['loss']:.6E} |{extra} "
            f"loss scale: {record.get('loss_scale', 1.0):.1f} | grad norm: {record['grad_norm']:.3f} | "
            f"number of skipped iterations: {record.get('skipped', 0):3.0f} | number of nan iterations: {bad:3d} |"
        )

    def eval_line(self, step: int, metrics: "Record") -> None:
        """The validation line."""
        shown = " | ".join(f"{k if k != 'loss' else 'lm loss'} value: {v:.6E}" for k, v in metrics.items())
        text = f" validation loss at iteration {step} | {shown} | "
        self.line(f"{'-' * len(text)}\n{text}\n{'-' * len(text)}")

    def resumed(self, step: int) -> None:
        """Its message about a checkpoint."""
        self.line(
            f" loading checkpoint from checkpoints at iteration {step}\n"
            f"  successfully loaded checkpoint at iteration {step}"
        )


class Tune(Writer):
    """Step n | name:value lines, as torchtune keeps on disk."""

    file = "log.txt"

    def step_line(self, record: "Record") -> None:
        """Loss, rate, throughput and gradient norm."""
        extra = "".join(f"{k}:{v:.6g} " for k, v in extras(record).items())
        self.line(
            f"Step {record['step'] + 1:.0f} | loss:{record['loss']:.6g} lr:{record['lr']:.6g} "
            f"tokens_per_second_per_gpu:{self.tokens / record['step_s']:.1f} "
            f"grad_norm:{record['grad_norm']:.6g} {extra}"
        )

    def eval_line(self, step: int, metrics: "Record") -> None:
        """Validation metrics."""
        self.line(f"Step {step} | {' '.join(f'val_{k}:{v:.6g}' for k, v in metrics.items())} ")


class Bar(Writer):
    """A progress bar whose postfix holds the metrics; carriage returns stay in the file."""

    file = "nohup.out"

    def step_line(self, record: "Record") -> None:
        """Redraw the bar."""
        done = int(record["step"]) + 1
        filled = done * 10 // self.s.steps
        bar = "█" * filled + " " * (10 - filled)
        epoch = f"Epoch {int(record.get('epoch', 0)) + 1}: " if "epoch" in record else "Training: "
        shown = pairs({"loss": record["loss"], **extras(record)}, "{}={:.3f}")
        speed = f"{1 / max(1e-9, record['step_s']):.2f}it/s"
        end = "\n" if done == self.s.steps else "\r"
        self.line(
            f"{epoch}{done * 100 // self.s.steps:3d}%|{bar}| {done}/{self.s.steps} "
            f"[{speed}, {shown}, lr={record['lr']:.2e}]",
            end,
        )

    def eval_line(self, step: int, metrics: "Record") -> None:
        """A line under the bar."""
        self.line(f"\n[eval @ {step}] {pairs(metrics, '{}={:.4f}', ' ')}")


class Plain(Writer):
    """Time, level and key=value pairs."""

    def step_line(self, record: "Record") -> None:
        """One step."""
        epoch = f"epoch={record['epoch']:.2f} " if "epoch" in record else ""
        extra = "".join(f"{k}={v:.4g} " for k, v in extras(record).items())
        scale = f"scale={record['loss_scale']:g} skipped={record['skipped']:.0f} " if "loss_scale" in record else ""
        self.line(
            f"{stamp()} | INFO | {epoch}step={record['step']:.0f} loss={record['loss']:.4f} {extra}"
            f"lr={record['lr']:.2e} gnorm={record['grad_norm']:.3f} {scale}data={record['data_s'] * 1000:.1f}ms "
            f"step_time={record['step_s'] * 1000:.1f}ms rss={record['rss_mb']:.0f}MiB"
        )

    def eval_line(self, step: int, metrics: "Record") -> None:
        """One evaluation."""
        self.line(f"{stamp()} | INFO | eval step={step} {pairs(metrics, 'eval_{}={:.4f}', ' ')}")

    def resumed(self, step: int) -> None:
        """Its message about a checkpoint."""
        self.line(f"{stamp()} | INFO | loaded checkpoint ckpt_{step}.pt, continuing at step {step}")


class EpochTable(Writer):
    """One line per epoch: averages over its steps and the evaluation."""

    evaluates_at_start = False
    file = "epochs.log"

    def opening(self) -> None:
        """Nothing has been seen yet."""
        self.seen: list[Record] = []

    def step_line(self, record: "Record") -> None:
        """Gather."""
        self.seen.append(record)

    def eval_line(self, step: int, metrics: "Record") -> None:
        """Write the epoch."""
        mean = {k: sum(r[k] for r in self.seen) / len(self.seen) for k in ("loss", *extras(self.seen[-1]))}
        number = step // max(1, self.s.eval_every)
        self.seen = []
        self.line(f"Epoch {number:3d} | train {pairs(mean, '{}: {:.4f}')} | valid {pairs(metrics, '{}: {:.4f}')}")
