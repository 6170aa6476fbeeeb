"""`Recorder`: what a training loop tells step by step, at next to no cost, in a file that our readers know."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mldebug_mcp.recorder.alarm import Alarm, Looks
from mldebug_mcp.recorder.late import Value
from mldebug_mcp.recorder.recording import Recording
from mldebug_mcp.recorder.settings import Place, place_in_world, settings_of
from mldebug_mcp.recorder.stepping import Stepping

if TYPE_CHECKING:
    from torch import nn

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
        self._has_failed = False
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

        watched = Watched(model, optimizer, scaler, self.configure)
        self._watched.append(watched)
        self._on_gpu = self._on_gpu or watched.on_gpu
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
        made = 0
        try:
            for batch in self._batches.of(loader):
                if self._step is None:
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
        return _Within(self, batch)

    def close(self) -> None:
        """Write what is left and end the recording; called at the end of the program as well."""
        if self._stream.is_closed:
            return
        error = getattr(sys, "last_value", None)
        if error is not None:
            self.failed(error)
        self.end()
        for one in self._watched:
            one.leave()
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
        if self._has_failed or isinstance(error, GeneratorExit | SystemExit):
            return
        self._has_failed = True
        self._stream.write(
            {"step": self.number, "event": "exception", "error": f"{type(error).__name__}: {error}"[:2000]}
        )


class _Within:
    """A step of a recorder: a class of its own, as a generator takes a hundredth of a millisecond more."""

    def __init__(self, recorder: Recorder, batch: Value) -> None:
        self._recorder, self._batch = recorder, batch

    def __enter__(self) -> None:
        self._recorder.begin(self._batch)
        if self._batch is not None:
            self._recorder.take_batch(self._batch)

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
