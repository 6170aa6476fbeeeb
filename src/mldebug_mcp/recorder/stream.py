"""From drafts of records to lines in the file, as soon as their values are there, and what they tell of the loss."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from mldebug_mcp.recorder.course import Course
from mldebug_mcp.recorder.guard import guarded
from mldebug_mcp.recorder.incidents import Incidents
from mldebug_mcp.recorder.late import Draft, Late, Value
from mldebug_mcp.recorder.recording import Record, Recording

TICK = 0.5
"""Seconds after which the thread beside the loop writes what there is. Chosen: a kill costs less than a second, and
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
            told = self._settle(now) if draft.away else [(what, draft)] if what else []
        for what, one in told:
            self._tell(what, one)
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
                told = self._settle(self._flushed, wait=wait)
                records, self._ready = [*self._ready, *last], []
            self.recording.write(*records)
        for what, draft in told:
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
        told: list[tuple[str, Draft]] = []
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
                told.append((what, draft))
        return told

    def _follow(self, draft: Draft) -> str:
        """Return what a draft tells of the loss: "spike", "nonfinite" or nothing; then its batch is not kept."""
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
        if what == "nonfinite" and draft.origin:
            event["began"] = draft.origin
        self.write(event)
