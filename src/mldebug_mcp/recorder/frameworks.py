"""Lightning, Keras and Accelerate: a callback or tracker each, to be given to the framework in one line."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mldebug_mcp.recorder.late import Value
from mldebug_mcp.recorder.recorder import Recorder

Path = str | os.PathLike[str]


def lightning_callback(path: Path, **options: Value) -> Any:  # noqa: ANN401 - a Callback
    """Return a callback for `lightning.Trainer(callbacks=[...])`; the options are those of `Recorder`.

    Raises:
        ImportError: neither lightning nor pytorch_lightning is installed.
    """
    package = "lightning.pytorch" if find_spec("lightning") else "pytorch_lightning"
    base = import_module(f"{package}.callbacks").Callback
    return type("RecorderCallback", (LightningEvents, base), {})(path, options)


def keras_callback(path: Path, **options: Value) -> Any:  # noqa: ANN401 - a Callback
    """Return a callback for `model.fit(callbacks=[...])`; the options are those of `Recorder`.

    Raises:
        ImportError: keras is not installed.
    """
    base = import_module("keras.callbacks").Callback
    return type("RecorderCallback", (KerasEvents, base), {})(path, options)


def accelerate_tracker(path: Path, **options: Value) -> Any:  # noqa: ANN401 - a GeneralTracker
    """Return a tracker for `Accelerator(log_with=[...])`, which records what is given to `accelerator.log`.

    Its `recorder` can watch the model and its optimizer as well. The options are those of `Recorder`.

    Raises:
        ImportError: accelerate is not installed.
    """
    base = import_module("accelerate.tracking").GeneralTracker
    return type("RecorderTracker", (TrackerCalls, base), {})(path, options)


class LightningEvents:
    """What Lightning calls."""

    def __init__(self, path: Path, options: Mapping[str, Value]) -> None:
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
            if not self.recorder.is_in_step:
                self.recorder.begin(batch, trainer.global_step + 1, time.perf_counter() - self._since)
            self.recorder.take_batch(batch)  # Lightning begins to iterate before any callback sees the loader

    def on_train_batch_end(self, trainer: Value, _module: Value, outputs: Value, _batch: Value, _number: int) -> None:
        """Take the loss; end the step once the optimizer has made it."""
        if self.recorder is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is not None:
            self.recorder.log(loss=loss * trainer.accumulate_grad_batches)  # Lightning divides it by them
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

    def __init__(self, path: Path, options: Mapping[str, Value]) -> None:
        super().__init__()
        self._record_to, self._options = path, dict(options)
        self.recorder: Recorder | None = None
        self._step, self._batches, self._sum, self._since = 0, 0, 0.0, 0.0
        self.model: Value

    def on_train_begin(self, logs: Value = None) -> None:
        """Open the recording."""
        del logs
        told: dict[str, Value] = {name: value for name, value in self.params.items() if isinstance(value, int | float)}
        optimizer = getattr(self.model, "optimizer", None)
        told |= {"optimizer": type(optimizer).__name__.lower()} if optimizer is not None else {}
        self.recorder = Recorder(self._record_to, **{**self._options, "settings": told})
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
        """Take what Keras tells of an epoch: its evaluation, and the means of its metrics."""
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

    def __init__(self, path: Path, options: Mapping[str, Value]) -> None:
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
