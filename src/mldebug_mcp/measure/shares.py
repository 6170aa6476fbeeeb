"""Accuracies as shares of one, whether they are logged so or in per cent."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats


def as_share(accuracy: float) -> float:
    """Return an accuracy as a share; above 1 it is in per cent."""
    return accuracy / 100 if accuracy > 1 else accuracy


def as_shares(accuracies: Floats) -> Floats:
    """Return the values of one accuracy as shares: if any is above 1, all are in per cent, the small ones too."""
    return accuracies / 100 if len(accuracies) and float(np.nanmax(accuracies)) > 1 else accuracies
