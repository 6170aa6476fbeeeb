"""Terms of a loss that set in during a run, as planned: the adversarial one of a VQ-GAN, a penalty with a delay."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import figure

LEAST = 5
"""Records in a row at zero, from the first on, and then others mostly not. Chosen: terms are delayed by more."""
SHORTLY, SHORTLY_OF_RUN = 2, 0.02
"""Records, and share of them, by which a loss is seen to rise after a term set in. Chosen: it may grow."""
_TERM = re.compile(r"loss|weight|factor|coef|penalty|(?:^|[/_.])(?:adv|disc|gan|kl|reg|beta|lambda)", re.IGNORECASE)
_NO_TERM = re.compile(r"^eval_|^(?:loss|learning_rate|weight_decay|loss_scale|grad_norm)$|scale|skip|weight_norm")


@dataclass(frozen=True, slots=True)
class SetsIn:
    """A term that is zero up to some step, and not from there on.

    Args:
        name: What it is called.
        last_zero: The last step at which it is zero.
        step: The first at which it is not.
    """

    name: str
    last_zero: float
    step: float


def terms_set_in(run: Run) -> list[SetsIn]:
    """Return the terms of the loss that set in: before and after, the loss is not the same quantity."""
    names = (name for name in run.series if _TERM.search(name) and not _NO_TERM.search(name))
    return [one for name in names if (one := _sets_in(run[name].finite)) is not None]


def refuse_new_terms(run: Run) -> None:
    """Raise CannotTell if a term of the loss sets in during the run: its levels before and after do not compare."""
    if terms := terms_set_in(run):
        one = terms[0]
        raise CannotTell(
            f"{one.name} sets in at {run.step_name} {figure(one.step)}: the loss is another one from there"
        )


def term_set_in(run: Run, step: float) -> SetsIn | None:
    """Return the term that sets in where the loss begins to rise at a step, if one does: shortly before, or next to it.

    The loss is then another one from there on, and what it does there says nothing of the weights.
    """
    steps = run["loss"].finite.step
    at, near = int(np.searchsorted(steps, step)), max(SHORTLY, round(SHORTLY_OF_RUN * len(steps)))
    earliest, latest = float(steps[max(0, at - near)]), float(steps[min(len(steps) - 1, at + 1)])
    return next((one for one in terms_set_in(run) if one.last_zero <= latest and one.step >= earliest), None)


def _sets_in(series: Series) -> SetsIn | None:
    there = np.flatnonzero(series.value)
    if len(there) < LEAST or there[0] < LEAST or 2 * len(there) < len(series) - there[0]:
        return None
    first = int(there[0])
    return SetsIn(series.name, float(series.step[first - 1]), float(series.step[first]))
