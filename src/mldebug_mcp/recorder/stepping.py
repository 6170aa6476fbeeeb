"""The steps of a loop, begun and ended by whoever makes them: a plain loop, or the callback of a framework."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mldebug_mcp.recorder.batches import Batches
from mldebug_mcp.recorder.budget import Budget
from mldebug_mcp.recorder.clock import clock_of
from mldebug_mcp.recorder.guard import guarded
from mldebug_mcp.recorder.incidents import Incidents
from mldebug_mcp.recorder.late import Draft, Value, number_of
from mldebug_mcp.recorder.memory import Memory
from mldebug_mcp.recorder.recording import Recording
from mldebug_mcp.recorder.settings import Place
from mldebug_mcp.recorder.step import Step
from mldebug_mcp.recorder.stream import LOSS, Stream
from mldebug_mcp.recorder.watchdog import Watchdog

if TYPE_CHECKING:
    from mldebug_mcp.recorder.watched import Watched

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

    @guarded
    def _finish(self, step: Step) -> None:
        for one in self._watched:
            one.end(step)
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
        for one in self._watched:
            if one.inputs is not None:
                args, kwargs = one.inputs
                return kwargs or (args[0] if len(args) == 1 else args)
        return None


def _check(name: str, value: Value) -> None:
    if hasattr(value, "numel") and value.numel() != 1:
        raise ValueError(f"log({name}=…): a tensor of {value.numel()} numbers; log its mean, or single numbers")
