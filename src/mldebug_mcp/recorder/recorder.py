"""`Recorder`, for a loop of one's own, and callbacks for Transformers, Lightning, Keras and Accelerate."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mldebug_mcp.recorder.alarm import Alarm, Looks
from mldebug_mcp.recorder.late import Value, event_now
from mldebug_mcp.recorder.recording import Recording
from mldebug_mcp.recorder.stepping import Stepping
from mldebug_mcp.recorder.watched import Place, place_in_world, settings_of

if TYPE_CHECKING:
    from torch import nn

# `Recorder`: what a training loop tells step by step, at next to no cost, in a file that our readers know.


Batch = TypeVar("Batch")
FILE = "recorder.jsonl"


class Recorder(Stepping):
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
        keep_batches: Whether the batch is saved when the loss jumps or stops being finite.
        hang_after: Seconds without a step after which the stacks of all threads are written down, and what the flight
            recorder of torch.distributed holds; 0 for never. Nothing is stopped.
        alarm: Is called with an `Alarm` when a cause other than healthy leads at two looks in a row. Looks are made
            during the training, in a process of low priority, by the first rank alone.
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
        place = place_in_world()
        self.path = file_of(Path(path), place)
        head: dict[str, object] = {"recorder": 1, "time": time.time()}
        if place.world > 1:
            head |= {"rank": place.rank, "world": place.world}
        if settings:
            head["settings"] = dict(settings)
        recording = Recording(self.path, max_bytes, head)
        super().__init__(recording, place, every, keep_batches=keep_batches, hang_after=hang_after)
        folder = self.path.parent if self.path.name.startswith(FILE.partition(".")[0]) else self.path
        self._alarm = Looks(folder, look_every, alarm) if alarm is not None and place.rank == 0 else None
        self._has_ended = False
        self._within = _Within(self)
        atexit.register(self.close)

    def watch(self, model: nn.Module, optimizer: Value = None, scaler: Value = None) -> Recorder:
        """Watch a model of torch and its optimizer; call it once for each pair, after the model is on its device.

        Args:
            model: The model as the loop calls it, within `DistributedDataParallel` where it is.
            optimizer: Its optimizer. Without it no learning rates and movements of weights are recorded, nor,
                on a GPU, where values that are not finite began.
            scaler: The `GradScaler`, whose scale and skipped steps are recorded.

        Returns:
            This recorder.
        """
        from mldebug_mcp.recorder.watched import Watched

        watched = Watched(model, optimizer, scaler, self)
        self._watched.append(watched)
        self._on_gpu = self._on_gpu or watched.on_gpu
        self._has_scaler = self._has_scaler or watched.scaler is not None
        self._now = event_now if self._on_gpu else time.perf_counter
        if len(self._watched) == 1:
            self.configure(settings_of(model, watched.optimizer))
        return self

    def steps(self, loader: Iterable[Batch], accumulation: int = 1) -> Iterator[Batch]:
        """Yield the batches of a loader; what the loop does with each is a step, or a part of one.

        It receives how long the loop waits for each batch, and which rows are in it.

        Args:
            loader: A `DataLoader` of torch, whose sampler tells the rows, or anything that yields batches.
            accumulation: Batches of a step, where gradients are accumulated.
        """
        if accumulation < 1:
            raise ValueError(f"steps(accumulation={accumulation}): a step has one batch at least")
        self._batches.watch(loader, accumulation)
        made = 0
        batches = iter(loader)
        try:
            while True:
                asked = time.perf_counter()
                try:
                    batch = next(batches)
                except StopIteration:
                    return
                self._waited += time.perf_counter() - asked
                if self.step_now is None:
                    self.begin(batch)
                    made = 0
                self.take_batch(batch)
                yield batch
                made += 1
                if made >= accumulation:
                    self.end()
        finally:
            self.end()

    def step(self, batch: Value = None) -> AbstractContextManager[None]:
        """Take what is done within as one step: `with recorder.step(batch): ...`.

        An exception in it is recorded, and goes on.

        Args:
            batch: The batch, saved when the loss leaves its course; rows that are no longer on the CPU have no keys.
        """
        self._within.batch = batch
        return self._within

    def close(self) -> None:
        """Write what is left and end the recording; called at the end of the program as well."""
        if self._stream.is_closed:
            return
        error = getattr(sys, "last_value", None)
        if error is not None:
            self.failed(error)
        self.end()
        for watched in self._watched:
            watched.leave()
        if self._alarm is not None:
            self._alarm.stop()
        self._stream.close({"step": self._last, "event": "closed"})
        atexit.unregister(self.close)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.failed(error)
        self.close()

    def failed(self, error: BaseException) -> None:
        """Record the exception that ends the training, once."""
        if self._has_ended or isinstance(error, GeneratorExit | SystemExit):
            return
        self._has_ended = True
        self._stream.write(
            {"step": self.number, "event": "exception", "error": f"{type(error).__name__}: {error}"[:2000]}
        )


class _Within:
    """A step of a recorder: a class of its own, as a generator takes a hundredth of a millisecond more."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.batch: Value = None

    def __enter__(self) -> None:
        batch, self.batch, recorder = self.batch, None, self._recorder
        step = recorder.begin(batch)
        if batch is not None:
            recorder._batches.take(step, batch)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._recorder.failed(error)
        self._recorder.end()


def file_of(path: Path, place: Place) -> Path:
    """Return the file of one process.

    Raises:
        ValueError: the path is a file that does not end in .jsonl.
    """
    if path.is_file() and path.suffix != ".jsonl":
        raise ValueError(f"{path}: a recording is a folder or a file that ends in .jsonl; name one of those")
    file = path if path.suffix == ".jsonl" else path / FILE
    return file.with_name(f"{file.stem}{place.mark}.jsonl")


# Lightning, Keras and Accelerate: a callback or tracker each, to be given to the framework in one line.


AnyPath = str | os.PathLike[str]


def lightning_callback(path: AnyPath, **options: Value) -> Any:  # noqa: ANN401 - a Callback
    """Return a callback for `lightning.Trainer(callbacks=[...])`; the options are those of `Recorder`.

    Raises:
        ImportError: neither lightning nor pytorch_lightning is installed.
    """
    package = "lightning.pytorch" if find_spec("lightning") else "pytorch_lightning"
    base = import_module(f"{package}.callbacks").Callback
    return type("RecorderCallback", (LightningEvents, base), {})(path, options)


def keras_callback(path: AnyPath, **options: Value) -> Any:  # noqa: ANN401 - a Callback
    """Return a callback for `model.fit(callbacks=[...])`; the options are those of `Recorder`.

    Raises:
        ImportError: keras is not installed.
    """
    base = import_module("keras.callbacks").Callback
    return type("RecorderCallback", (KerasEvents, base), {})(path, options)


def accelerate_tracker(path: AnyPath, **options: Value) -> Any:  # noqa: ANN401 - a GeneralTracker
    """Return a tracker for `Accelerator(log_with=[...])`, which records what is given to `accelerator.log`.

    Its `recorder` can watch the model and its optimizer as well. The options are those of `Recorder`.

    Raises:
        ImportError: accelerate is not installed.
    """
    base = import_module("accelerate.tracking").GeneralTracker
    return type("RecorderTracker", (TrackerCalls, base), {})(path, options)


class LightningEvents:
    """What Lightning calls."""

    def __init__(self, path: AnyPath, options: Mapping[str, Value]) -> None:
        self._path, self._options = path, dict(options)
        self.recorder: Recorder | None = None
        self._since = 0.0

    def on_train_start(self, trainer: Value, module: Value) -> None:
        """Open the recording, and watch the module with its first optimizer."""
        self.recorder = Recorder(self._path, **self._options)
        self.recorder.watch(module, next(iter(trainer.optimizers), None), getattr(trainer, "scaler", None))
        self._since = time.perf_counter()

    def on_train_batch_start(self, trainer: Value, _module: Value, batch: Value, _number: int) -> None:
        """Begin a step, or another batch of it."""
        if self.recorder is not None:
            if self.recorder.step_now is None:
                self.recorder.begin(batch, trainer.global_step + 1, time.perf_counter() - self._since)
            self.recorder.take_batch(batch)  # Lightning begins to iterate before any callback sees the loader

    def on_train_batch_end(self, trainer: Value, _module: Value, outputs: Value, _batch: Value, _number: int) -> None:
        """Take the loss; end the step once the optimizer has made it."""
        if self.recorder is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        times = trainer.accumulate_grad_batches
        if loss is not None:
            self.recorder.log(loss=loss if times == 1 else loss * times)  # Lightning divides it by them
        if trainer.global_step >= self.recorder.number:
            self.recorder.log(epoch=trainer.current_epoch)
            self.recorder.end()
        self._since = time.perf_counter()

    def on_validation_end(self, trainer: Value, _module: Value) -> None:
        """Take the results of an evaluation."""
        if self.recorder is not None and not trainer.sanity_checking:
            wanted = {
                name: value for name, value in trainer.callback_metrics.items() if name.startswith(("val", "eval"))
            }
            self.recorder.put(trainer.global_step, wanted)
        self._since = time.perf_counter()

    def on_train_end(self, _trainer: Value, _module: Value) -> None:
        """Close the recording."""
        if self.recorder is not None:
            self.recorder.close()
            self.recorder = None

    def on_exception(self, _trainer: Value, _module: Value, error: BaseException) -> None:
        """Record the exception that ends the training."""
        if self.recorder is not None:
            self.recorder.__exit__(type(error), error, None)
            self.recorder = None


class KerasEvents:
    """What Keras calls."""

    params: Mapping[str, Value]

    def __init__(self, path: AnyPath, options: Mapping[str, Value]) -> None:
        super().__init__()
        self._record_to, self._options = path, dict(options)
        self.recorder: Recorder | None = None
        self._step, self._batches, self._sum, self._since = 0, 0, 0.0, 0.0
        self.model: Value

    def on_train_begin(self, logs: Value = None) -> None:
        """Open the recording."""
        del logs
        settings: dict[str, Value] = {
            name: value for name, value in self.params.items() if isinstance(value, int | float)
        }
        optimizer = getattr(self.model, "optimizer", None)
        settings |= {"optimizer": type(optimizer).__name__.lower()} if optimizer is not None else {}
        self.recorder = Recorder(self._record_to, **{**self._options, "settings": settings})
        self._since = time.perf_counter()

    def on_epoch_begin(self, epoch: int, logs: Value = None) -> None:
        """Begin anew with the mean of the losses, as Keras does."""
        del epoch, logs
        self._batches, self._sum = 0, 0.0

    def on_train_batch_begin(self, batch: int, logs: Value = None) -> None:
        """Begin a step."""
        del batch, logs
        if self.recorder is not None:
            self._step += 1
            self.recorder.begin(number=self._step, waited=time.perf_counter() - self._since)

    def on_train_batch_end(self, batch: int, logs: Value = None) -> None:
        """Take the loss of the batch out of the mean of the epoch so far, which is what Keras tells."""
        del batch
        if self.recorder is None:
            return
        values = dict(logs or {})
        if "loss" in values:
            self._batches += 1
            whole = float(values.pop("loss")) * self._batches
            self.recorder.log(loss=whole - self._sum)
            self._sum = whole
        rate = getattr(getattr(self.model, "optimizer", None), "learning_rate", None)
        self.recorder.log(**({"learning_rate": float(rate)} if rate is not None else {}))
        self.recorder.end()
        self._since = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Value = None) -> None:
        """Take what Keras reports of an epoch: its evaluation, and the means of its metrics."""
        if self.recorder is not None:
            values = {name: float(value) for name, value in (logs or {}).items() if name != "loss"}
            self.recorder.put(self._step, {**values, "epoch": epoch + 1})
        self._since = time.perf_counter()

    def on_train_end(self, logs: Value = None) -> None:
        """Close the recording."""
        del logs
        if self.recorder is not None:
            self.recorder.close()
            self.recorder = None


class TrackerCalls:
    """What Accelerate calls."""

    name = "mldebug_mcp"
    requires_logging_directory = False
    main_process_only = True

    def __init__(self, path: AnyPath, options: Mapping[str, Value]) -> None:
        self.recorder = Recorder(path, **options)
        super().__init__()

    @property
    def tracker(self) -> Recorder:
        """The recorder."""
        return self.recorder

    def store_init_configuration(self, values: Mapping[str, Value]) -> None:
        """Take the settings of the run."""
        self.recorder.configure(values)

    def log(self, values: Mapping[str, Value], step: int | None = None, **_: Value) -> None:
        """Record values at a step."""
        numbers = {name: value for name, value in values.items() if not isinstance(value, str)}
        self.recorder.put(self.recorder.number + 1 if step is None else step, numbers)

    def finish(self) -> None:
        """Close the recording."""
        self.recorder.close()


# Transformers and TRL: `Trainer(..., callbacks=[trainer_callback("runs/a")])`.


PER_STEP = frozenset({"loss", "grad_norm", "learning_rate", "epoch"})
"""What a Trainer logs that is recorded step by step already."""


def trainer_callback(path: str | os.PathLike[str], **options: Value) -> Any:  # noqa: ANN401 - a TrainerCallback
    """Return a callback that records what a Trainer of Transformers or TRL does.

    Args:
        path: A folder, or a file that ends in .jsonl; see `Recorder`.
        options: Those of `Recorder`.

    Raises:
        ImportError: Transformers is not installed.
    """
    from transformers import TrainerCallback

    return type("RecorderCallback", (TrainerEvents, TrainerCallback), {})(path, options)


class TrainerEvents:
    """What the Trainer calls.

    Args:
        path: The recording.
        options: Those of `Recorder`.
    """

    def __init__(self, path: str | os.PathLike[str], options: Mapping[str, Value]) -> None:
        self._path, self._options = path, dict(options)
        self.recorder: Recorder | None = None
        self._passes = 0
        self._since = 0.0

    def on_train_begin(self, args: Value, state: Value, _control: Value, **objects: Value) -> None:
        """Open the recording, and watch the model, its optimizer and the loader."""
        settings = {**args.to_sanitized_dict(), **self._options.get("settings", {})}
        self.recorder = Recorder(self._path, **{**self._options, "settings": settings})
        model, optimizer, loader = objects.get("model"), objects.get("optimizer"), objects.get("train_dataloader")
        if model is not None:
            self.recorder.watch(model, optimizer)
        if loader is not None:
            done = 0 if args.ignore_data_skip else state.global_step
            self.recorder.note_rows(loader, args.gradient_accumulation_steps, done)
        self._since = time.perf_counter()

    def on_step_begin(self, _args: Value, state: Value, _control: Value, **_: Value) -> None:
        """Begin a step; the Trainer has waited for its batches since the last event."""
        if self.recorder is not None:
            self.recorder.begin(number=state.global_step + 1, waited=time.perf_counter() - self._since)
            self._passes = 1

    def on_substep_end(self, *_: Value, **__: Value) -> None:
        """Count the batches of a step."""
        self._passes += 1

    def on_step_end(self, _args: Value, state: Value, _control: Value, **_: Value) -> None:
        """End a step."""
        if self.recorder is not None:
            self.recorder.take_rows(self._passes)
            if state.epoch is not None:
                self.recorder.log(epoch=state.epoch)
            self.recorder.end()
        self._since = time.perf_counter()

    def on_log(self, _args: Value, state: Value, _control: Value, logs: Value = None, **_: Value) -> None:
        """Take what else the Trainer logs: evaluations, rewards, the mean loss where the model tells none."""
        if self.recorder is not None and logs:
            known = PER_STEP if self.recorder.sees_losses and "eval_loss" not in logs else {"epoch"}
            values = {name: value for name, value in logs.items() if name not in known and _is_number(value)}
            self.recorder.put(state.global_step, values)
        self._since = time.perf_counter()

    def on_evaluate(self, *_: Value, **__: Value) -> None:
        """Leave the time of an evaluation out of the wait for data."""
        self._since = time.perf_counter()

    on_save = on_epoch_begin = on_evaluate

    def on_train_end(self, *_: Value, **__: Value) -> None:
        """Close the recording."""
        if self.recorder is not None:
            self.recorder.close()
            self.recorder = None


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) or getattr(value, "numel", lambda: 0)() == 1
