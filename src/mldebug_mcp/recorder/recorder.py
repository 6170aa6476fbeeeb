"""`Recorder`: what a training loop tells step by step, at next to no cost, in a file that our readers know."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mldebug_mcp.recorder.alarm import Alarm, Looks
from mldebug_mcp.recorder.batches import Batches
from mldebug_mcp.recorder.budget import Budget
from mldebug_mcp.recorder.clock import Stamp
from mldebug_mcp.recorder.guard import guarded
from mldebug_mcp.recorder.incidents import Incidents
from mldebug_mcp.recorder.late import Draft, Value
from mldebug_mcp.recorder.memory import Memory
from mldebug_mcp.recorder.recording import Recording
from mldebug_mcp.recorder.settings import place_in_world, settings_of
from mldebug_mcp.recorder.step import Step
from mldebug_mcp.recorder.stream import LOSS, Stream
from mldebug_mcp.recorder.watchdog import Watchdog

if TYPE_CHECKING:
    from torch import nn

    from mldebug_mcp.recorder.watched import Watched

Batch = TypeVar("Batch")
FILE = "recorder.jsonl"
LOSSES = ("loss", "train_loss", LOSS)
"""Names under which a loop logs the loss that is followed."""


class Recorder:
    """Records a training loop into a file, or into `recorder.jsonl` of a folder.

        recorder = Recorder("runs/a").watch(model, optimizer)
        for batch in recorder.steps(loader):
            ...
            recorder.log(loss=loss)

    Each process of several writes a file of its own, `recorder.rank0.jsonl` and so on; give all the same folder.

    Args:
        path: A folder, or a file that ends in .jsonl. What stands in it already is kept, and appended to.
        every: Steps between two looks into the model. They come later where they would take more than 0.5 % of the
            time, and at once when the loss leaves its course.
        max_bytes: Bytes that the recording may take, its rotated parts together.
        settings: What else is known of the run, such as the arguments of the script.
        keep_batches: Whether the batch is saved when the loss jumps or is no longer finite.
        hang_after: Seconds without a step after which the stacks of all threads are written down, and what the flight
            recorder of torch.distributed holds; 0 for never. Nothing is stopped.
        alarm: Is called with an `Alarm` when a cause other than healthy leads at two looks in a row. Looks are made
            beside the training, in a process of low priority, by the first rank alone.
        look_every: Seconds between two looks.

    Raises:
        ValueError: `path` is a file of another kind, or a number is not above zero.
        OSError: the file cannot be made.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        every: int = 50,
        max_bytes: int = 100_000_000,
        settings: Mapping[str, object] | None = None,
        keep_batches: bool = True,
        hang_after: float = 600.0,
        alarm: Callable[[Alarm], None] | None = None,
        look_every: float = 300.0,
    ) -> None:
        if every < 1 or max_bytes < 1:
            raise ValueError(f"Recorder(every={every}, max_bytes={max_bytes}): both must be above zero")
        self.rank, self.world = place_in_world()
        self.path = file_of(Path(path), self.rank, self.world)
        head: dict[str, object] = {"recorder": 1, "time": time.time()}
        if self.world > 1:
            head |= {"rank": self.rank, "world": self.world}
        if settings:
            head["settings"] = dict(settings)
        mark = f".rank{self.rank}" if self.world > 1 else ""
        saved = Incidents(self.path.parent, mark) if keep_batches else None
        self._stream = Stream(Recording(self.path, max_bytes, head), saved, self._inputs, self._look_soon)
        self._watchdog = Watchdog(hang_after, self.path.parent, (self.rank, mark), self._stream.write)
        folder = self.path.parent if self.path.name.startswith(FILE.partition(".")[0]) else self.path
        self._alarm = Looks(folder, look_every, alarm) if alarm is not None and self.rank == 0 else None
        self._batches = Batches(self._stream.recording.describe, (self.rank, self.world))
        self._memory, self._looks, self._look_now = Memory(), Budget(every), False
        self._watched: list[Watched] = []
        self._step: Step | None = None
        self._made, self._last = 0, 0
        self._has_failed = self._sees_losses = False
        atexit.register(self.close)

    def watch(self, model: nn.Module, optimizer: Value = None, scaler: Value = None) -> Recorder:
        """Watch a model of torch and its optimizer; call it once for each pair, after the model is on its device.

        Args:
            model: The model as the loop calls it, within `DistributedDataParallel` where it is.
            optimizer: Its optimizer. Without it neither learning rates nor movements of weights are recorded.
            scaler: The `GradScaler`, whose scale and skipped steps are recorded.

        Returns:
            This recorder.
        """
        from mldebug_mcp.recorder.watched import Watched

        watched = Watched(model, optimizer, scaler, lambda: self._step, self.configure)
        self._watched.append(watched)
        if len(self._watched) == 1:
            self.configure(settings_of(model, watched.optimizer))
        return self

    def steps(self, loader: Iterable[Batch], accumulation: int = 1) -> Iterator[Batch]:
        """Yield the batches of a loader; what the loop does with each is a step, or a part of one.

        It is told how long the loop waits for each batch, and which rows are in it.

        Args:
            loader: A `DataLoader` of torch, whose sampler tells the rows, or anything that yields batches.
            accumulation: Batches of a step, where gradients are accumulated.
        """
        if accumulation < 1:
            raise ValueError(f"steps(accumulation={accumulation}): a step has one batch at least")
        self._batches.watch(loader, accumulation)
        try:
            for batch in self._batches.of(loader):
                if self._step is None:
                    self.begin(batch)
                self.take_batch(batch)
                yield batch
                self._made += 1
                if self._made >= accumulation:
                    self.end()
        finally:
            self.end()

    @contextmanager
    def step(self, batch: Value = None) -> Iterator[None]:
        """Take what is done within as one step: `with recorder.step(batch): ...`.

        An exception in it is recorded, and goes on.

        Args:
            batch: The batch, saved when the loss leaves its course; rows that are no longer on the CPU have no keys.
        """
        self.begin(batch)
        if batch is not None:
            self.take_batch(batch)
        try:
            yield
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self.end()

    def log(self, **values: Value) -> None:
        """Record numbers, or tensors of one number, under their names; `loss` is the one that is followed.

        Within a step they belong to it, and several losses of one step are averaged. Otherwise, as those of an
        evaluation, they are a record of their own at the last step. Names tell what a number is, as in any log:
        `loss`, `eval_loss`, `accuracy`, `kl_loss`.

        Raises:
            ValueError: a tensor holds more than one number, or none.
        """
        step = self._step
        if step is None:
            self.put(self._last, values)
            return
        for name, value in _checked(values).items():
            if name in LOSSES:
                step.losses.append(_detached(value))
            else:
                step.put(name, value)

    def put(self, number: int, values: Mapping[str, Value]) -> None:
        """Record numbers of a step that is over, or of a loop that others make; see `log`.

        Raises:
            ValueError: a tensor holds more than one number, or none.
        """
        named = {LOSS if name in LOSSES else name: _detached(value) for name, value in _checked(values).items()}
        self._last = max(self._last, number)
        if named and not self._stream.is_closed:
            self._stream.put(Draft({"step": number, **named}))

    def configure(self, settings: Mapping[str, Value]) -> None:
        """Record settings of the run, such as the arguments of the script."""
        self._stream.recording.describe({"settings": dict(settings)})

    def note_rows(self, loader: Value, accumulation: int = 1, skipped: int = 0) -> None:
        """Note the rows of the batches of a loader that others iterate; `take_rows` puts them into a step.

        Args:
            loader: The loader, of torch or of Accelerate.
            accumulation: Batches of a step.
            skipped: Steps made before a resume, whose batches the loader passes over.
        """
        self._batches.watch(loader, accumulation, skipped)

    def take_batch(self, batch: Value) -> None:
        """Put the rows of a batch into the step, by the keys of their tokens where it is on the CPU."""
        if self._step is not None:
            self._batches.take(self._step, batch)

    def take_rows(self, batches: int) -> None:
        """Put the rows of the next batches of the noted loader into the step."""
        if self._step is not None:
            self._batches.take_noted(self._step, batches)

    def begin(self, batch: Value = None, number: int | None = None, waited: float = 0.0) -> None:
        """Begin a step, where neither `step` nor `steps` fits.

        Args:
            batch: Its batch.
            number: Which step it is, counted from 1; the next by default.
            waited: Seconds that the loop waited for the batch before.
        """
        if self._step is not None:
            self.end()
        self._stream.each(self._watchdog.look)
        on_gpu = any(one.on_gpu for one in self._watched)
        number = self._last + 1 if number is None else number
        step = Step(number, Stamp(time.perf_counter()), on_gpu, batch=batch)
        step.deep = bool(self._watched) and (self._look_now or self._looks.allows(number))
        self._made = 0
        self._watchdog.moved(number)
        self._batches.waited += waited
        self._step = step
        for one in self._watched:
            one.begin(step)

    def end(self) -> None:
        """End the step that was begun, if one was."""
        step = self._step
        if step is None:
            return
        self._finish(step)
        self._step, self._last = None, step.number
        self._watchdog.moved(step.number)

    def close(self) -> None:
        """Write what is left and end the recording; called at the end of the program as well."""
        if self._stream.is_closed:
            return
        error = getattr(sys, "last_value", None)
        if error is not None:
            self._failed(error)
        self.end()
        for one in self._watched:
            one.leave()
        if self._alarm is not None:
            self._alarm.stop()
        self._stream.close({"step": self._last, "event": "closed"})
        atexit.unregister(self.close)

    @property
    def number(self) -> int:
        """The number of the step that is being made, or of the last one."""
        return self._step.number if self._step is not None else self._last

    @property
    def is_in_step(self) -> bool:
        """Whether a step is being made."""
        return self._step is not None

    @property
    def sees_losses(self) -> bool:
        """Whether the losses of single steps are seen, in the outputs of the model or as the loop logs them."""
        return self._sees_losses

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._failed(error)
        self.close()

    @guarded
    def _finish(self, step: Step) -> None:
        for one in self._watched:
            one.end(step)
        wall = time.perf_counter() - step.began.wall + self._batches.waited
        if step.deep:
            self._looks.spent(step.number, step.cost)
            self._look_now = False
        self._looks.step(wall)
        loss = step.loss()
        self._sees_losses = self._sees_losses or loss is not None
        step.draft.values = {
            "step": step.number,
            **({LOSS: loss} if loss is not None else {}),
            **step.draft.values,
            "time/step_s": wall,
            "timestamp": time.time(),
            **self._memory.read(on_gpu=step.on_gpu),
            **self._batches.counted(step),
        }
        step.draft.batch, step.draft.max_norm, step.draft.origin = step.batch, step.max_norm, step.origin
        self._stream.put(step.draft)

    def _look_soon(self) -> None:
        self._look_now = True

    def _inputs(self) -> Value:
        """Return what the model was called with last: the batch, where the loop did not show it."""
        for one in self._watched:
            if one.inputs is not None:
                args, kwargs = one.inputs
                return kwargs or (args[0] if len(args) == 1 else args)
        return None

    def _failed(self, error: BaseException) -> None:
        """Record the exception that ends the training, once."""
        if self._has_failed or isinstance(error, GeneratorExit | SystemExit):
            return
        self._has_failed = True
        self._stream.write(
            {"step": self.number, "event": "exception", "error": f"{type(error).__name__}: {error}"[:2000]}
        )


def file_of(path: Path, rank: int, world: int) -> Path:
    """Return the file of one process.

    Raises:
        ValueError: the path is a file that does not end in .jsonl.
    """
    if path.is_file() and path.suffix != ".jsonl":
        raise ValueError(f"{path}: a recording is a folder or a file that ends in .jsonl; name one of those")
    file = path if path.suffix == ".jsonl" else path / FILE
    return file.with_name(f"{file.stem}.rank{rank}.jsonl") if world > 1 else file


def _checked(values: Mapping[str, Value]) -> Mapping[str, Value]:
    for name, value in values.items():
        if hasattr(value, "numel") and value.numel() != 1:
            raise ValueError(f"log({name}=…): a tensor of {value.numel()} numbers; log its mean, or single numbers")
    return values


def _detached(value: Value) -> Value:
    return value.detach() if hasattr(value, "detach") else value
