"""In what precision a run computes, as its settings or the loss scaler of half precision tell, and what is lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.gradients import gradient_norm
from mldebug_mcp.measure.not_finite import first_lost, training_losses
from mldebug_mcp.measure.scaler import DESCENT

LEAST, SHARE = 3, 0.02
"""Records with a lost gradient behind the scaler's descent, and their share. Chosen: scalers lose one in a hundred."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """A loss or a gradient norm that is not finite beyond a scaler's search for its scale.

    Args:
        series: Which of them, the first to be lost.
        step: The first step at which it is not finite.
        lost: Records in which it is not.
        records: Records in all.
    """

    series: str
    step: float
    lost: int
    records: int


def in_half_precision(run: Run) -> bool | None:
    """Say whether a run computes in fp16: as its settings say, else as a scale of its loss shows; None is not known.

    Only fp16 needs its loss scaled. A scale of 1 throughout is that of a scaler which is switched off.
    """
    precision = run.facts.precision
    if precision is not None:
        return precision == "fp16"
    scale = next(run.with_role(Quantity.LOSS_SCALE, phase="train"), None)
    if scale is None or not len(scale.finite) or float(np.max(scale.finite.value)) <= 1:
        return None
    return bool(np.all(np.mod(np.log2(np.maximum(scale.finite.value, 1e-30)), 1) == 0)) or None


def overflow(run: Run) -> Overflow | None:
    """Return where numbers are lost: the training loss in any record, or gradients again and again."""
    loss = first_lost(training_losses(run))
    norm = gradient_norm(run)
    of_norm = None if norm is None else _again_and_again(norm)
    of_loss = None if loss is None else Overflow(loss.series.name, loss.step, loss.count, len(loss.bad))
    return min((one for one in (of_norm, of_loss) if one is not None), key=lambda one: one.step, default=None)


def _again_and_again(norm: Series) -> Overflow | None:
    bad = ~np.isfinite(norm.value)
    later = int(bad.sum()) - min(DESCENT, int(bad[:DESCENT].sum()))
    if later < max(LEAST, SHARE * len(bad)):
        return None
    return Overflow(norm.name, float(norm.step[int(np.argmax(bad))]), int(bad.sum()), len(bad))
