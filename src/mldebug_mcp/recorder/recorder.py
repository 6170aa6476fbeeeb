"""`Recorder`, for a loop of one's own, and callbacks for Transformers, Lightning, Keras and Accelerate."""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mldebug_mcp.capture import save_batch
from mldebug_mcp.core.conventions import STD_PER_MAD
from mldebug_mcp.recorder.alarm import Alarm, Looks, Watchdog
from mldebug_mcp.recorder.batches import Batches, Step, complete
from mldebug_mcp.recorder.late import Budget, Draft, Late, Value, event_now, failed_at, guarded, number_of
from mldebug_mcp.recorder.recording import Record, Recording
from mldebug_mcp.recorder.watched import Place, place_in_world, settings_of

if TYPE_CHECKING:
    from torch import nn

    from mldebug_mcp.recorder.watched import Watched

# Does the loss leave its course? Told step by step, from the last values alone.


LOSS_WINDOW_RECORDS = 64
"""Losses that the course is made of. Chosen: long enough for a median, short enough to follow a falling loss."""
MIN_LOSSES_BEFORE_SPIKE = 20
"""Losses before a spike is reported. Chosen: the first ones of a run fall far."""
MIN_SPIKE_SIGMAS = 8.0
"""Standard deviations above the median. Chosen: a healthy run of a million steps reaches six."""
MIN_SPIKE_LEVEL_RATIO = 1.1
"""... and times the median itself. Chosen: where the loss hardly varies, eight of its deviations are nothing."""
COURSE_EVERY = 8
"""Losses between two looks at the course. Chosen: two medians take longer than all else of a step."""
MIN_STEPS_BETWEEN_SPIKES = 25
"""Steps after a spike in which none is reported. Chosen: one spike takes some steps to come back."""


class Course:
    """Takes losses one by one."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=LOSS_WINDOW_RECORDS)
        self.bound = math.inf
        """The loss up to which nothing is odd."""
        self.fresh: list[float] = []
        """Losses up to the bound since the last look at the course; `look` belongs to each `COURSE_EVERY` of them."""
        self._taken = self._rests_until = 0
        self.is_lost = False

    def take(self, loss: float) -> str:
        """Return "nonfinite" at the first value that is not finite, "spike" at a jump, else ""."""
        if not math.isfinite(loss):
            first, self.is_lost = not self.is_lost, True
            return "nonfinite" if first else ""
        made = self._taken + len(self.fresh)
        spike = loss > self.bound and made >= self._rests_until
        if spike:
            self._rests_until = made + MIN_STEPS_BETWEEN_SPIKES
        self.is_lost = False
        self.fresh.append(loss)
        if len(self.fresh) >= COURSE_EVERY:
            self.look()
        return "spike" if spike else ""

    def look(self) -> None:
        """Set the bound anew."""
        self._last += self.fresh
        self._taken += len(self.fresh)
        self.fresh.clear()
        if self._taken >= MIN_LOSSES_BEFORE_SPIKE:
            self.bound = _bound(self._last)


def _bound(losses: Collection[float]) -> float:
    """Return the loss above which one is off the course of these."""
    level = _median(losses)
    spread = STD_PER_MAD * _median([abs(loss - level) for loss in losses])
    return level + max(MIN_SPIKE_SIGMAS * spread, (MIN_SPIKE_LEVEL_RATIO - 1) * abs(level))


def _median(losses: Collection[float]) -> float:
    ordered, half = sorted(losses), len(losses) // 2  # in a loop, `statistics.median` takes several times as long
    return (ordered[half] + ordered[-half - 1]) / 2


# What is kept of a step at which the loss left its course: the batch, and an event that says where it is.


UNKNOWN_ORIGIN = "where it began is not known: an earlier step may have spoilt the weights, or values came too late"

FOLDER = "batches"
MOST_BATCHES = 8
"""Batches that are saved of a run. Chosen: the first spikes tell, and a run in trouble has hundreds."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a batch that is saved."""


class Incidents:
    """Saves batches next to a recording.

    Args:
        folder: Where they go.
        mark: What stands in their names: the rank, where there are several.
    """

    def __init__(self, folder: Path, mark: str) -> None:
        self._folder, self._mark, self._saved = folder, mark, 0

    def save(self, step: int, batch: Value) -> str:
        """Save the batch of a step; return the name of its file, "" where it cannot be saved or enough are."""
        columns = columns_of(batch)
        if not columns or self._saved >= MOST_BATCHES or _bytes_of(columns) > MOST_BYTES:
            return ""
        ending = ".pt" if "torch" in sys.modules else ".json"
        file = self._folder / FOLDER / f"step-{step}{self._mark}{ending}"
        try:
            save_batch(columns, file)
        except (ValueError, TypeError, AttributeError, OSError, RuntimeError) as error:
            sys.stderr.write(f"mldebug_mcp.recorder: the batch of step {step} cannot be saved: {error}\n")
            return ""
        self._saved += 1
        return f"{FOLDER}/{file.name}"


def columns_of(batch: Value) -> dict[str, Value]:
    """Return a batch as columns; a pair of tensors is inputs and labels, more are numbered."""
    if batch is None:
        return {}
    if isinstance(batch, Mapping) or hasattr(batch, "items"):
        return {str(name): value for name, value in batch.items() if value is not None}
    if not isinstance(batch, tuple | list):
        return {"inputs": batch}
    if batch and all(isinstance(row, Mapping) for row in batch):
        return {str(name): [row.get(name) for row in batch] for name in batch[0]}
    names = ["inputs", "labels"] if len(batch) == 2 else [f"column_{at}" for at in range(len(batch))]
    return dict(zip(names, batch, strict=True))


def _bytes_of(columns: Mapping[str, Value]) -> int:
    return sum(column.numel() * column.element_size() for column in columns.values() if hasattr(column, "element_size"))


# From drafts of records to lines in the file, as soon as their values are there, and what they tell of the loss.


WRITE_INTERVAL_SECONDS = 0.8
"""Seconds after which the background thread writes what there is. Chosen: a kill costs less than a second, and
records that are written together cost half of what they cost one by one."""
WRITE_OVERDUE_SECONDS = 0.9
"""Seconds after which the loop itself writes what there is: the thread does not get its turn."""
LOSS = "train/loss"
"""The name of the loss that is followed."""


class Stream:
    """Writes the records of one process, in order.

    Args:
        recording: The file.
        batches: Where batches are saved; None where they are not.
        inputs: Returns what the model was called with last, where the loop did not show its batch.
        incident: Is called when the loss leaves its course.
    """

    def __init__(
        self,
        recording: Recording,
        batches: Incidents | None,
        inputs: Callable[[], Value],
        incident: Callable[[], None],
    ) -> None:
        self.recording = recording
        self._batches, self._inputs, self._incident = batches, inputs, incident
        self._lock, self._writing = threading.RLock(), threading.RLock()  # who takes both takes the second first
        self._late, self.course = Late(), Course()
        self._ready: list[Draft] = []
        self.overdue = 0.0
        """When the loop writes by itself."""
        self._lost = False
        self._is_alert = False
        """Whether a draft may be odd, or has to wait, for what was before it."""
        self._skipped = self._tokens = 0
        self._scale = 0.0
        self._over = threading.Event()
        self.is_closed = False
        self.memory = Memory()

    def put(self, draft: Draft, now: float) -> None:
        """Take a draft; its loss is followed now if it is here, and it is written with those of the next moment."""
        loss, course = draft.values.get(LOSS), self.course
        is_plain = loss is None or (type(loss) is float and -math.inf < loss <= course.bound)
        if is_plain and not (self._is_alert or draft.away or draft.origin):
            if loss is not None:
                course.fresh.append(loss)
                if len(course.fresh) >= COURSE_EVERY:
                    course.look()
            self._late.sent.append(draft)
        else:
            self._look_at(draft, now)
        if now >= self.overdue:
            self.write()

    def write(self, *last: Record, wait: bool = False) -> None:
        """Write the records whose values are there, and at once behind them what is complete.

        Args:
            last: Records that are complete.
            wait: Whether to wait for values that are on their way.
        """
        with self._writing:
            with self._lock:
                now = time.perf_counter()
                self.overdue = now + WRITE_OVERDUE_SECONDS
                incidents = self._settle(now, wait=wait)
                drafts, self._ready = self._ready, []
            self._complete([draft for draft in drafts if isinstance(draft, Step)], time.time() - now)
            self.recording.write(*[draft.values for draft in drafts], *last)
        for what, draft in incidents:
            self._tell(what, draft)

    def start(self, also: Callable[[], None]) -> None:
        """Start the thread that writes what arrives while the loop does something else; it calls this each time."""
        threading.Thread(target=self._tick, args=(also,), name="mldebug-recorder", daemon=True).start()

    def close(self, last: Record) -> None:
        """Write what is on its way, and a last record."""
        self.write(wait=True)
        self.write(last)
        self.is_closed = True
        self._over.set()
        self.recording.close()
        self.memory.close()

    def _tick(self, also: Callable[[], None]) -> None:
        while not self._over.wait(WRITE_INTERVAL_SECONDS):
            self.write()
            also()

    def _look_at(self, draft: Draft, now: float) -> None:
        """Take a draft that may be odd, or whose values are still on their way."""
        with self._lock:
            self._late.put(draft, now)
            incidents = self._settle(now) if draft.away else self._follow(draft)
            self._is_alert = self._lost or self.course.is_lost or bool(self._late.waiting)
        for what, odd in incidents:
            self._tell(what, odd)

    @guarded
    def _complete(self, steps: Sequence[Step], since: float) -> None:
        complete(steps, since)
        for step in steps:
            if step.tokens:
                self._tokens += step.tokens
                step.values["num_tokens"] = self._tokens
        if steps:
            steps[-1].values |= self.memory.read()

    def _settle(self, now: float, *, wait: bool = False) -> list[tuple[str, Draft]]:
        """Take the drafts whose values have arrived; return what the losses of those from a device tell."""
        incidents: list[tuple[str, Draft]] = []
        for draft in self._late.arrived(now, wait=wait):
            values = draft.values
            if (scale := values.get("loss_scale")) is not None:
                self._skipped += scale < self._scale
                self._scale = scale
                values["skipped_steps"] = self._skipped
            self._ready.append(draft)
            if draft.away:
                incidents += self._follow(draft)
        return incidents

    def _follow(self, draft: Draft) -> Sequence[tuple[str, Draft]]:
        """Return a draft with "spike" or "nonfinite" where it says that of the loss; else its batch is not kept."""
        loss = draft.values.get(LOSS)
        what = self.course.take(loss) if isinstance(loss, float) else ""
        if draft.origin and not self._lost:
            self._lost = True  # gradients are lost a step before the loss is
            return [("nonfinite", draft)]
        if self._lost:
            what = "spike" if what == "spike" else ""
            self._lost = bool(draft.origin) or not isinstance(loss, float) or not math.isfinite(loss)
        if what:
            return [(what, draft)]
        draft.batch = None
        return ()

    @guarded
    def _tell(self, what: str, draft: Draft) -> None:
        """Record that the loss left its course: with the batch, and where values that are not finite began."""
        self._incident()
        step = int(draft.values["step"])
        event: dict[str, object] = {"step": step, "event": what, "value": draft.values.get(LOSS)}
        if self._batches is not None:
            file = self._batches.save(step, draft.batch if draft.batch is not None else self._inputs())
            event |= {"batch": file} if file else {}
        if what == "nonfinite" and draft.origin is not None:
            event["began"] = draft.origin
        elif what == "nonfinite" and draft.sizes:
            event["note"] = UNKNOWN_ORIGIN
        self.write(event)


# Memory of the process and of its GPU, each time that records are written.


_STATM = Path("/proc/self/statm")
GIB = 2.0**30


class Memory:
    """Reads the memory of the process, or of its GPU."""

    def __init__(self) -> None:
        self.device: Value = None
        """The GPU of the model, if it is on one."""
        self._file = os.open(_STATM, os.O_RDONLY) if _STATM.exists() else None
        self._page = os.sysconf("SC_PAGE_SIZE") if self._file is not None else 0

    def read(self) -> dict[str, float]:
        """Return the memory in GiB, by name."""
        if self.device is not None:
            cuda = sys.modules["torch"].cuda
            taken = {"allocated": cuda.memory_allocated(self.device), "reserved": cuda.memory_reserved(self.device)}
            return {f"memory/{name}_gib": size / GIB for name, size in taken.items()}
        if self._file is None:
            return {}
        pages = int(os.pread(self._file, 100, 0).split(maxsplit=2)[1])
        return {"host_memory_gib": pages * self._page / GIB}

    def close(self) -> None:
        """Close the file of the system that tells it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


# The steps of a loop, begun and ended by whoever makes them: a plain loop, or the callback of a framework.


LOSSES = ("loss", "train_loss", LOSS)
"""Names under which a loop logs the loss that is followed."""


class Stepping:
    """Takes what belongs to each step, and hands it on when the step is over.

    Args:
        recording: The file.
        place: The rank of this process, and how many there are.
        every: Steps between two looks into the model.
        keep_batches: Whether the batch is saved when the loss leaves its course.
        hang_after: Seconds without a step after which the stacks are written down.
    """

    def __init__(
        self, recording: Recording, place: Place, every: int, *, keep_batches: bool, hang_after: float
    ) -> None:
        folder = recording.path.parent
        saved = Incidents(folder, place.mark) if keep_batches else None
        self._stream = Stream(recording, saved, self._inputs, self._look_soon)
        self._watchdog = Watchdog(hang_after, folder, (place.rank, place.mark), self._stream.write, lambda: self.number)
        self.batches = Batches(recording.describe, (place.rank, place.world))
        self._looks, self._is_started = Budget(every), False
        self._watched: list[Watched] = []
        self._clock = self._now = time.perf_counter
        self._on_gpu = self._has_scaler = False
        self._batch: Value = None
        self._waited = 0.0
        """Seconds that the loop waited for the batches of the next step."""
        self.seconds = 0.0
        """What all steps took."""
        self.step_now: Step | None = None
        """The step that is being made."""
        self._last = 0
        self.sees_losses = False
        """Whether the losses of single steps are seen, in the outputs of the model or as the loop logs them."""

    @property
    def number(self) -> int:
        """The number of the step that is being made, or of the last one."""
        return self.step_now.number if self.step_now is not None else self._last

    def log(self, **values: Value) -> None:
        """Record numbers, or tensors of one number, under their names; `loss` is the one that is followed.

        Within a step they belong to it, and several losses of one step are averaged. Otherwise, as those of an
        evaluation, they are a record of their own at the last step. Names tell what a number is, as in any log:
        `loss`, `eval_loss`, `accuracy`, `kl_loss`.

        Raises:
            ValueError: a tensor holds more than one number, or none.
        """
        step = self.step_now
        if step is None:
            self.put(self._last, values)
            return
        for name, value in values.items():
            number = value if type(value) is float else number_of(value, name)
            if name not in LOSSES:
                step.put(name, number)
                continue
            step.losses += (number,)
            if type(number) is float and not -math.inf < number < math.inf:
                step.is_nonfinite = True

    def put(self, number: int, values: Mapping[str, Value]) -> None:
        """Record numbers of a step that is over, or of a loop that others make; see `log`.

        Raises:
            ValueError: a tensor holds more than one number, or none.
        """
        draft = Draft({"step": number})
        for name, value in values.items():
            draft.put(LOSS if name in LOSSES else name, number_of(value, name))
        self._last = max(self._last, number)
        if values and not self._stream.is_closed:
            self._stream.put(draft, time.perf_counter())

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
        self.batches.watch(loader, accumulation, skipped)

    def take_batch(self, batch: Value) -> None:
        """Put the rows of a batch into the step, by the keys of their tokens where it is on the CPU."""
        if self.step_now is not None:
            self.batches.take(self.step_now, batch)

    def take_rows(self, batches: int) -> None:
        """Put the rows of the next batches of the noted loader into the step."""
        step, noting = self.step_now, self.batches.noting
        if step is not None and noting is not None:
            for _ in range(batches):
                step.rows += (noting.next_rows(),)

    def begin(self, batch: Value = None, number: int | None = None, waited: float = 0.0) -> Step:
        """Begin a step, where neither `step` nor `steps` fits, and return it.

        Args:
            batch: Its batch.
            number: Which step it is, counted from 1; the next by default.
            waited: Seconds that the loop waited for the batch before.
        """
        if self.step_now is not None:
            self.end()
        if number is None:
            number = self._last + 1
        deep = number >= self._looks.next_step and self._is_deep(number)
        now = self._watchdog.since = self._clock()
        self.step_now = step = Step(number, now, self._now, deep)
        self._batch = batch
        self._waited += waited
        if deep or self._has_scaler:
            self.batches.labels = None
            for watched in self._watched:
                watched.begin(step)
        return step

    def _is_deep(self, number: int) -> bool:
        """Say whether the model is looked into at a step for which a look is due."""
        if not self._is_started:
            self._is_started = True
            self._stream.start(self._watchdog.look)
        if self._watched:
            return not self._looks.next_step or self._looks.allows(number, self.seconds)
        self._looks.next_step = sys.maxsize  # until there is a model
        return False

    def end(self) -> None:
        """End the step that was begun, if one was."""
        step, self.step_now = self.step_now, None
        if step is None:
            return
        self._last = step.number
        values = step.values
        try:
            if step.deep or step.is_nonfinite or self._has_scaler or "learning_rate" not in values:
                for watched in self._watched:
                    watched.end(step)
            if step.deep:
                self._looks.spent(step.number, step.cost)
            losses = step.losses or step.model_losses
            if losses:
                self.sees_losses = True
                loss = losses[0] if len(losses) == 1 else step.loss()
                values[LOSS] = loss if type(loss) is float else step.put(LOSS, loss)
            step.ended = now = self._watchdog.since = self._clock()
            if self._waited:
                step.waited, self._waited = self._waited, 0.0
            self.seconds += now - step.began + step.waited
            if self._on_gpu or step.away:
                step.away, step.batch = True, self._batch
            self._stream.put(step, now)
        except Exception as error:  # noqa: BLE001 - see `guarded`
            failed_at(self, "end", error)

    def _look_soon(self) -> None:
        self._looks.next_step = 0

    def _inputs(self) -> Value:
        """Return the batch of the last step; where the loop did not show it, what the model was called with last."""
        if self._batch is not None:
            return self._batch
        for watched in self._watched:
            if watched.inputs is not None:
                args, kwargs = watched.inputs
                return kwargs or (args[0] if len(args) == 1 else args)
        return None


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
        self._on_gpu = self._on_gpu or watched.device is not None
        self._stream.memory.device = self._stream.memory.device or watched.device
        self._looks.next_step = 0
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
        self.batches.watch(loader, accumulation)
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
        self._watchdog.notice()
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
    """A step of a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.batch: Value = None

    def __enter__(self) -> None:
        batch, self.batch = self.batch, None
        step = self._recorder.begin(batch)
        if batch is not None:
            self._recorder.batches.take(step, batch)

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
