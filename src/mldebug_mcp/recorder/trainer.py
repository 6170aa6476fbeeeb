"""Transformers and TRL: `Trainer(..., callbacks=[trainer_callback("runs/a")])`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from mldebug_mcp.recorder.late import Value
from mldebug_mcp.recorder.recorder import Recorder

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
        told = {**args.to_sanitized_dict(), **self._options.get("settings", {})}
        self.recorder = Recorder(self._path, **{**self._options, "settings": told})
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
