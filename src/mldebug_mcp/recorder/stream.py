"""From drafts of records to lines in the file, as soon as their values are there, and what they tell of the loss."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mldebug_mcp.recorder.course import Course
from mldebug_mcp.recorder.guard import guarded
from mldebug_mcp.recorder.incidents import Incidents
from mldebug_mcp.recorder.late import Draft, Late, Value
from mldebug_mcp.recorder.recording import Record, Recording

TICK = 0.5
"""Seconds between two looks of the thread that writes what has arrived from the device."""
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
        self._lock = threading.RLock()
        self._late, self._course = Late(), Course()
        self._skipped, self._scale = 0, 0.0
        self._over = threading.Event()
        self._ticker: threading.Thread | None = None

    def put(self, draft: Draft) -> None:
        """Take a draft; it is written now if its values are there."""
        with self._lock:
            self._late.put(draft, time.monotonic())
            self._settle()

    def write(self, record: Record) -> None:
        """Write a record that is complete, before those that are not."""
        self.recording.write(record)

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
        with self._lock:
            self._settle(wait=True)
            self.write(last)
            self._over.set()
            self.recording.close()

    def _tick(self, also: Callable[[], None]) -> None:
        while not self._over.wait(TICK):
            with self._lock:
                if not self._over.is_set():
                    self._settle()
            also()

    def _settle(self, *, wait: bool = False) -> None:
        """Write the records whose values have arrived."""
        for draft in self._late.arrived(time.monotonic(), wait=wait):
            values = draft.values
            norm, scale, loss = values.get("grad_norm"), values.get("loss_scale"), values.get(LOSS)
            if norm is not None and draft.max_norm:
                values["clip_factor"] = min(1.0, draft.max_norm / (norm + 1e-6))  # as torch works it out
            if scale is not None:
                self._skipped += scale < self._scale
                self._scale = scale
                values["skipped_steps"] = self._skipped
            self.write(values)
            what = self._course.take(loss) if isinstance(loss, float) else ""
            if what:
                self._tell(what, draft)

    @guarded
    def _tell(self, what: str, draft: Draft) -> None:
        """Record that the loss left its course: with the batch, and where values that are not finite began."""
        self._incident()
        step = int(draft.values["step"])
        event: dict[str, object] = {"step": step, "event": what, "value": draft.values[LOSS]}
        if self._batches is not None:
            file = self._batches.save(step, draft.batch if draft.batch is not None else self._inputs())
            event |= {"batch": file} if file else {}
        if what == "nonfinite" and draft.origin:
            event["began"] = draft.origin
        self.write(event)
