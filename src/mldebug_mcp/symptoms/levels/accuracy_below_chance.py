"""An accuracy that goes far below that of a guess while the loss goes up."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.scale import uniform_loss
from mldebug_mcp.measure.statistics import aligned, end_level, median, start_level
from mldebug_mcp.symptoms.quality import as_shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

PAIRS = (("loss", "accuracy"), ("eval_loss", "eval_accuracy"))
LEAST = 6
SHARE = 0.3
"""Of the accuracy of a guess: below it the model is wrong on purpose. One class for all rows is right as often as a
guess."""
RISES = 1.1
"""Times its first level: so far the loss is up at the end."""
MEASURED = 0.02
"""An accuracy of a guess below it is hardly measured in a batch, or the first loss is a mean that has risen already."""
OF_THOUSANDS, LEARNT = 0.0008, 0.5
"""No guess among a thousand classes is right so seldom; and what had learnt more at first has turned since. All were
chosen by hand."""


def accuracy_below_chance(run: Run) -> Evidence | None:
    """The loss rises far above its first level and the accuracy goes from about that of a guess to nearly zero.

    Training then moves away from the right answers, not just at random: weights that are thrown about are right as
    often as a guess. Not this when: the accuracy is that of a guess at the end; the loss falls. Without a configured
    number of classes, a guess is taken to be right as often as the first loss says, exp(-loss).
    """
    for name, beside in PAIRS:
        if name not in run or beside not in run:
            continue
        steps, right, loss = aligned(run[beside].finite, run[name].finite)
        if len(loss) < LEAST:
            continue
        start, end, shares = start_level(loss[: max(3, len(loss) // 10)]), end_level(loss), as_shares(right)
        guess = math.exp(-(uniform_loss(run) or min(start, float(loss[0]))))
        reached = median(shares[len(shares) // 2 :])
        least = SHARE * guess if guess >= MEASURED else OF_THOUSANDS
        first = float(shares[0])
        if start <= 0 or end < RISES * start or reached > least or not max(reached, OF_THOUSANDS) < first < LEARNT:
            return None
        return Evidence(
            f"{name} goes from {figure(start)} to {figure(end)} and {beside} from {figure(first)} to "
            f"{figure(reached)} (median of the later half)",
            steps=(float(steps[0]),),
            values={"start": start, "end": end, "accuracy": reached, "guess": guess},
        )
    raise CannotTell(f"a loss and an accuracy do not stand together at {LEAST} steps")
