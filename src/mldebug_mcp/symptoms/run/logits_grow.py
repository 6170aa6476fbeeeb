"""Logits, or their normaliser, grow until the loss fails."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import blocks, median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.turning import fails_at
from mldebug_mcp.text import figure

_NAMES = re.compile(r"(?:.*[_/])?(?:log_?z|z_loss|(?:max_)?(?:attn_|attention_)?logits?(?:[_/](?:max|norm|abs_max))?)")
_NOT = re.compile(r"chosen|rejected|scale|eval")
FACTOR = 1.4
"""Their growth from the lowest quarter of the run to where the loss fails. Chosen by hand: logits of sound runs grow
as long as something is learnt, so that growth alone means nothing."""
LEAST = 20
BACKGROUND = 0.001
"""Few runs log their logits, so that the priors of causes, which are shares of all runs, come too low here. Chosen."""


@symptom(
    needs=("loss",),
    sources=("small_scale_proxies",),
    not_for=("grpo", "ppo", "rl"),
    background=BACKGROUND,
    as_chosen=True,
)
def logits_grow(run: Run) -> Evidence | None:
    """The logits, their maximum or their log Z grow over the run, up to where the loss turns or is no longer finite.

    Not this when: the loss goes on falling, because logits grow as long as something is learnt. The numbers were chosen
    by hand.
    """
    names = [name for name in run.series if _NAMES.fullmatch(name.lower()) and not _NOT.search(name.lower())]
    if not names:
        raise CannotTell("not logged: the logits, their maximum or their log Z")
    end = fails_at(run["loss"])
    if end is None:
        return None
    found = [evidence for name in names if (evidence := _growth(run, run[name], end)) is not None]
    return max(found, key=lambda one: one.values["factor"]) if found else None


def _growth(run: Run, logits: Series, end: float) -> Evidence | None:
    before = logits.finite.where(logits.finite.step <= end)
    if len(before) < LEAST:
        return None
    level = np.abs(blocks(before.value, 10).level)
    late = float(level[-1])
    early = median(level[len(level) // 4 : len(level) // 2])
    rising = np.diff(level[len(level) // 2 :])
    if early <= 0 or late < FACTOR * early or (rising > 0).mean() < 0.6:
        return None
    return Evidence(
        f"{logits.name} grows from {figure(early)} to {figure(late)} up to {run.step_name} {figure(end)}, where the "
        "loss fails",
        steps=(end,),
        values={"from": early, "to": late, "factor": late / early},
    )
