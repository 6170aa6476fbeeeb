"""What symptoms of runs on preference pairs share: accuracy and margin, by whatever name."""

from __future__ import annotations

from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.registry import CannotTell
from mldebug_mcp.text import counted

ACCURACIES = ("rewards/accuracies", "accuracy")
"""The share of pairs in which the chosen answer has the higher reward: of DPO and its like, of a reward model."""
MARGINS = ("rewards/margins", "margin")
"""How much higher its reward is. In both, -log(sigmoid(margin)) is the loss."""


def of_pairs(run: Run, names: tuple[str, str], least: int) -> Series:
    """Return the finite values of a metric of pairs.

    Raises:
        CannotTell: fewer than `least` values, or the run scores no pairs: then `accuracy` is another one.
    """
    name = names[0] if names[0] in run else names[1]
    if name not in run or (name == names[1] and not scores_pairs(run)):
        raise CannotTell(f"not logged: {names[0]}")
    series = run[name].finite
    if len(series) < least:
        raise CannotTell(f"{name} has {counted(len(series), 'finite value')} here; {least} are needed")
    return series
