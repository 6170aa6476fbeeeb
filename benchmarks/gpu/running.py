"""Cases, one at a time: each within what is left of the time, and none stopping the others."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, NamedTuple

State = Literal["passed", "failed", "error", "skipped"]
Figures = Mapping[str, str | float | int | bool | None]
LAST_LINES = 6
"""Lines of a traceback that are kept of a case that broke."""


class Told(NamedTuple):
    """What a case came to.

    Args:
        passed: Whether all is as it should be.
        figures: What was measured, by name.
        why: What is wrong; "" where nothing is.
    """

    passed: bool
    figures: Figures
    why: str = ""


class Skip(Exception):  # noqa: N818 - it is no error
    """Raised by a case that cannot be run here."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case with what came of it; `error` is a case that broke, `failed` one that ran and is not as it should be."""

    part: str
    case: str
    state: State
    seconds: float
    figures: Figures = field(default_factory=dict)
    why: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON carries it."""
        return asdict(self)


class Clock:
    """The time that is left for a whole run.

    Args:
        seconds: For all of it.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left, 0 at least."""
        return max(0.0, self._end - time.monotonic())

    def share(self, part: float) -> Clock:
        """Return a clock for a share of what is left."""
        return Clock(part * self.left)


def run_case(part: str, case: str, clock: Clock, work: Callable[[], Told]) -> Outcome:
    """Run a case and return what came of it, whatever it raises; without time left it is skipped."""
    if not clock.left:
        return Outcome(part, case, "skipped", 0.0, why="no time was left")
    begun = time.monotonic()

    def outcome(state: State, figures: Figures, why: str) -> Outcome:
        return Outcome(part, case, state, round(time.monotonic() - begun, 2), figures, why)

    try:
        told = work()
    except Skip as reason:
        return outcome("skipped", {}, str(reason))
    except Exception as error:  # noqa: BLE001 - a case that breaks is an outcome, and the next is run
        last = "".join(traceback.format_exception(error)).strip().splitlines()[-LAST_LINES:]
        return outcome("error", {}, "\n".join(last))
    return outcome("passed" if told.passed else "failed", told.figures, "" if told.passed else told.why)
