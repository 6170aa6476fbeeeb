"""What the gradient norm does in the records just before something happens to the loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import median

LAST, BASE, LEAST = 4, 40, 3
"""Records just before the event, those before them to compare with, and the fewest. Chosen: what leads does soon."""
MOVES, BEYOND = 3.0, 1.5
"""Times the median of the norms before, and their highest. Fitted: on trained runs, where bad batches reach 1.5."""
FEW, MOVES_OF_FEW = 8, 10.0
"""With fewer records to compare with, so many times their median. Chosen: a few norms scatter by less."""
CALM = 1.2
"""Times the highest norm before up to which it is as before. Chosen: below what moves."""
ALIKE = 1e-6
"""Share by which norms differ at most that stand at the clip. Chosen: there a growth does not show."""


@dataclass(frozen=True, slots=True)
class GradientLead:
    """The gradient norm before a step.

    Args:
        level: Median of the norms before the last few.
        highest: The highest of those.
        last: The highest of the last few before the step.
        since: The step at which the first of the last few stands beyond what came before; None where none does.
        final: The last norm before the step.
    """

    level: float
    highest: float
    last: float
    since: float | None
    final: float

    @property
    def moved(self) -> bool:
        """Whether the norm had left its level."""
        return self.since is not None

    @property
    def calm(self) -> bool:
        """Whether the norm was as before, up to the last record."""
        return self.last <= CALM * self.highest


def gradient_norm(run: Run) -> Series | None:
    """Return the gradient norm of the whole model, None if it is not logged."""
    return next(run.with_role(Quantity.GRADIENT_NORM, phase="train"), None)


def gradient_lead(run: Run, step: float) -> GradientLead | None:
    """Return what the gradient norm does before a step.

    None if it is not logged, in too few records, or stands at the clip there.
    """
    norm = gradient_norm(run)
    if norm is None:
        return None
    before = norm.finite.where(norm.finite.step < step)
    base, last = before.value[-BASE - LAST : -LAST], before.value[-LAST:]
    if len(base) < LEAST or _is_clipped(base, last):
        return None
    level, highest = median(base), float(base.max())
    least = (MOVES if len(base) >= FEW else MOVES_OF_FEW) * level
    beyond = np.flatnonzero((last > least) & (last > BEYOND * highest) & (level > 0))
    since = float(before.step[-LAST:][int(beyond[0])]) if len(beyond) else None
    return GradientLead(level, highest, float(last.max()), since, float(last[-1]))


def _is_clipped(base: Floats, last: Floats) -> bool:
    """Say whether the highest norm is one and the same number again and again, as where norms are logged clipped."""
    top = float(max(base.max(), last.max()))
    return int((np.concatenate([base, last]) >= (1 - ALIKE) * top).sum()) >= LEAST
