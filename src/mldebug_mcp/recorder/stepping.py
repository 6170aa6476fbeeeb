"""The steps of a loop, and what is written of each. A step at which the loss leaves its course is kept."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from mldebug_mcp.capture import save_batch
from mldebug_mcp.recorder.alarm import Watchdog
from mldebug_mcp.recorder.batches import Batches, Step
from mldebug_mcp.recorder.late import Budget, Draft, Late, Value, clock_of, guarded, number_of
from mldebug_mcp.recorder.recording import Record, Recording
from mldebug_mcp.recorder.watched import Place

if TYPE_CHECKING:
    from mldebug_mcp.recorder.watched import Watched

# Does the loss leave its course? Told step by step, from the last values alone.


WINDOW = 64
"""Losses that the course is made of. Chosen: long enough for a median, short enough to follow a falling loss."""
MIN_LOSSES_BEFORE_SPIKE = 20
"""Losses before a spike is reported. Chosen: the first ones of a run fall far."""
MIN_SPIKE_SIGMAS = 8.0
"""Standard deviations above the median. Chosen: a healthy run of a million steps reaches six."""
RISE = 1.1
"""... and times the median itself. Chosen: where the loss hardly varies, eight of its deviations are nothing."""
COURSE_EVERY = 8
"""Losses between two looks at the course. Chosen: two medians take longer than all else of a step."""
REST = 25
"""Steps after a spike in which none is reported. Chosen: one spike takes some steps to come back."""
_SIGMA = 1.4826
"""Standard deviations in a median absolute deviation of a normal distribution."""


class Course:
    """Takes losses one by one."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=WINDOW)
        self._bound = math.inf
        self._taken = self._resting = 0
        self._lost = False

    def take(self, loss: float) -> str:
        """Return "nonfinite" at the first value that is not finite, "spike" at a jump, else ""."""
        if not math.isfinite(loss):
            first, self._lost = not self._lost, True
            return "nonfinite" if first else ""
        self._lost = False
        self._resting = max(0, self._resting - 1)
        spike = not self._resting and loss > self._bound
        if spike:
            self._resting = REST
        self._last.append(loss)
        self._taken += 1
        if len(self._last) >= MIN_LOSSES_BEFORE_SPIKE and self._taken % COURSE_EVERY == 0:
            self._bound = _bound(self._last)
        return "spike" if spike else ""


def _bound(losses: Collection[float]) -> float:
    """Return the loss above which one is off the course of these."""
    level = median(losses)
    spread = _SIGMA * median(abs(loss - level) for loss in losses)
    return level + max(MIN_SPIKE_SIGMAS * spread, (RISE - 1) * abs(level))


# What is kept of a step at which the loss left its course: the batch, and an event that says where it is.


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


TICK = 0.5
"""Seconds after which the background thread writes what there is. Chosen: a kill costs less than a second, and
records that are written together cost half of what they cost one by one."""
OVERDUE = 0.75
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
        self._late, self._course = Late(), Course()
        self._ready: list[Record] = []
        self._flushed = 0.0
        self._lost = False
        self._skipped, self._scale = 0, 0.0
        self._over = threading.Event()
        self._ticker: threading.Thread | None = None

    def put(self, draft: Draft) -> None:
        """Take a draft; its loss is followed now if it is here, and it is written with those of the next moment."""
        now = time.monotonic()
        with self._lock:
            self._late.put(draft, now)
            what = "" if draft.away else self._follow(draft)
            incidents = self._settle(now) if draft.away else [(what, draft)] if what else []
        for what, odd in incidents:
            self._tell(what, odd)
        if now - self._flushed >= OVERDUE:
            self.write()

    def write(self, *last: Record, wait: bool = False) -> None:
        """Write the records whose values are there, and at once behind them what is complete.

        Args:
            last: Records that are complete.
            wait: Whether to wait for values that are on their way.
        """
        with self._writing:
            with self._lock:
                self._flushed = time.monotonic()
                incidents = self._settle(self._flushed, wait=wait)
                records, self._ready = [*self._ready, *last], []
            self.recording.write(*records)
        for what, draft in incidents:
            self._tell(what, draft)

    def each(self, seconds: Callable[[], None]) -> None:
        """Start the thread that writes what arrives while the loop does something else; it calls this each time."""
        if self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, args=(seconds,), name="mldebug-recorder", daemon=True)
            self._ticker.start()

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is written."""
        return self._over.is_set()

    def close(self, last: Record) -> None:
        """Write what is on its way, and a last record."""
        self.write(wait=True)
        self.write(last)
        self._over.set()
        self.recording.close()

    def _tick(self, also: Callable[[], None]) -> None:
        while not self._over.wait(TICK):
            self.write()
            also()

    def _settle(self, now: float, *, wait: bool = False) -> list[tuple[str, Draft]]:
        """Take the drafts whose values have arrived; return what the losses of those from a device tell."""
        incidents: list[tuple[str, Draft]] = []
        for draft in self._late.arrived(now, wait=wait):
            values = draft.values
            norm, scale = values.get("grad_norm"), values.get("loss_scale")
            if norm is not None and draft.max_norm:
                values["clip_factor"] = min(1.0, draft.max_norm / (norm + 1e-6))  # as torch works it out
            if scale is not None:
                self._skipped += scale < self._scale
                self._scale = scale
                values["skipped_steps"] = self._skipped
            self._ready.append(values)
            if draft.away and (what := self._follow(draft)):
                incidents.append((what, draft))
        return incidents

    def _follow(self, draft: Draft) -> str:
        """Return what a draft says about the loss: "spike", "nonfinite" or nothing; then its batch is not kept."""
        loss = draft.values.get(LOSS)
        what = self._course.take(loss) if isinstance(loss, float) else ""
        if draft.origin and not self._lost:
            self._lost = True  # gradients are lost a step before the loss is
            return "nonfinite"
        if self._lost:
            what = "spike" if what == "spike" else ""
            self._lost = bool(draft.origin) or not isinstance(loss, float) or not math.isfinite(loss)
        if not what:
            draft.batch = None
        return what

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
        self.write(event)


# Memory of the process and of its GPU, at most a few times a second.


MEMORY_EVERY = 0.25
"""Seconds between two readings. Chosen: the allocator's counts take a tenth of a millisecond."""
_STATM = Path("/proc/self/statm")
GIB = 2.0**30


class Memory:
    """Reads the memory when it is due."""

    def __init__(self) -> None:
        self._next = 0.0
        self._is_there = _STATM.exists()

    def read(self, into: dict[str, object], *, on_gpu: bool) -> None:
        """Put the memory in GiB into a record, by name, unless it was read a moment ago."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + MEMORY_EVERY
        if on_gpu:
            cuda = sys.modules["torch"].cuda
            into["memory/allocated_gib"] = cuda.memory_allocated() / GIB
            into["memory/reserved_gib"] = cuda.memory_reserved() / GIB
        elif self._is_there:
            with _STATM.open("rb", buffering=0) as file:
                pages = int(file.read().split()[1])
            into["host_memory_gib"] = pages * os.sysconf("SC_PAGE_SIZE") / GIB


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
        self._watchdog = Watchdog(hang_after, folder, (place.rank, place.mark), self._stream.write)
        self._batches = Batches(recording.describe, (place.rank, place.world))
        self._memory, self._looks, self._look_now = Memory(), Budget(every), False
        self._watched: list[Watched] = []
        self._on_gpu = False
        self._step: Step | None = None
        self._last = 0
        self._sees_losses = False

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
        for name, value in values.items():
            _check(name, value)
            if name in LOSSES:
                step.losses.append(number_of(value))
            else:
                step.draft.put(name, value)

    def put(self, number: int, values: Mapping[str, Value]) -> None:
        """Record numbers of a step that is over, or of a loop that others make; see `log`.

        Raises:
            ValueError: a tensor holds more than one number, or none.
        """
        draft = Draft({"step": number})
        for name, value in values.items():
            _check(name, value)
            draft.put(LOSS if name in LOSSES else name, value)
        self._last = max(self._last, number)
        if values and not self._stream.is_closed:
            self._stream.put(draft)

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
        number = self._last + 1 if number is None else number
        step = Step(number, time.perf_counter(), Draft({"step": number}, batch=batch), clock_of(on_gpu=self._on_gpu))
        step.deep = bool(self._watched) and (self._look_now or self._looks.allows(number))
        self._watchdog.moved(number)
        self._batches.waited += waited
        self._step = step
        for watched in self._watched:
            watched.begin(step)

    def end(self) -> None:
        """End the step that was begun, if one was."""
        step = self._step
        if step is None:
            return
        self._finish(step)
        self._step, self._last = None, step.number
        self._watchdog.moved(step.number)

    @guarded
    def _finish(self, step: Step) -> None:
        for watched in self._watched:
            watched.end(step)
        wall = time.perf_counter() - step.began + self._batches.waited
        if step.deep:
            self._looks.spent(step.number, step.cost)
            self._look_now = False
        self._looks.step(wall)
        draft, loss = step.draft, step.loss()
        if loss is not None:
            self._sees_losses = True
            draft.put(LOSS, loss)
        draft.away = draft.away or self._on_gpu
        draft.values["time/step_s"] = wall
        draft.values["timestamp"] = time.time()
        self._memory.read(draft.values, on_gpu=self._on_gpu)
        self._batches.count(step)
        self._stream.put(draft)

    def _look_soon(self) -> None:
        self._look_now = True

    def _inputs(self) -> Value:
        """Return what the model was called with last: the batch, where the loop did not show it."""
        for watched in self._watched:
            if watched.inputs is not None:
                args, kwargs = watched.inputs
                return kwargs or (args[0] if len(args) == 1 else args)
        return None


def _check(name: str, value: Value) -> None:
    if hasattr(value, "numel") and value.numel() != 1:
        raise ValueError(f"log({name}=…): a tensor of {value.numel()} numbers; log its mean, or single numbers")
